"""Conformance checks for your own agents and environments; those of gainful pass all of them."""

from gainful.testing.agents import check_agent
from gainful.testing.environments import check_environment

__all__ = ["check_agent", "check_environment"]
