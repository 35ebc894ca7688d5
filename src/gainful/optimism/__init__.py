"""Bonuses and confidence sets, one equation per function."""
