"""What an experiment found, for people: one HTML file that opens anywhere, tables as Markdown, figures for a paper."""
