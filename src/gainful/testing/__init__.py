"""Conformance checks for your own agents, counts and environments; those of gainful pass all of them."""

from gainful.testing.agents import check_agent
from gainful.testing.counts import check_counts
from gainful.testing.environments import check_environment

__all__ = ["check_agent", "check_counts", "check_environment"]
