"""Experiments: a spec, its runs, a store that nothing is lost from, and what the runs say together."""
