"""Models and values from logged data: a log to an estimated MDP, and the gain of a policy from a log."""
