"""Experiments: a spec, its runs, a durable store, and statistics over the runs."""
