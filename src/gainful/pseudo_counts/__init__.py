"""Counts for agents with a count-based bonus: exact, hashed, from a density model, or the user's own."""
