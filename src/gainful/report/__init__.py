"""Reports of experiments: one self-contained HTML file, tables as Markdown, everything as JSON."""
