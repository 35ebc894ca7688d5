"""Conformance checks that every agent and environment of gainful passes, for your own too."""

from gainful.testing.agents import check_agent
from gainful.testing.environments import check_environment

__all__ = ["check_agent", "check_environment"]
