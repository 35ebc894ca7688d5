"""The conformance kit: what every agent and environment of gainful passes, and yours can too."""

from gainful.testing.agents import check_agent
from gainful.testing.environments import check_environment

__all__ = ["check_agent", "check_environment"]
