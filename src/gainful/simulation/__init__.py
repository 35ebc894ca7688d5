"""Agent and environment in one loop."""
