"""Planners: an MDP in, a Plan with a certified bracket out."""
