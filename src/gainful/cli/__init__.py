"""The command `gainful`: one module per command, no numerics."""
