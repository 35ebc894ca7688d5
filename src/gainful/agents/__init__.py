"""Learners: statistics, an optimism rule and a planner, behind `act` and `observe`."""
