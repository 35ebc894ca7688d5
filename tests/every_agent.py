"""Every agent as a parameter of a test; some are for make test-all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gainful.agents import registry

IN_TEST_ALL = ("imed-rl", "ucrl3", "balanced-kl-scal-plus", "pmevi-dt", "optimistic-q", "epsilon-greedy-q")
"""Agents whose kernels take seconds to compile, or that plan by the kernels of another agent."""


def as_parameters(names: Iterable[str]) -> list[Any]:
    """The names, some of them marked as slow."""
    return [pytest.param(name, marks=pytest.mark.slow if name in IN_TEST_ALL else ()) for name in names]


TABULAR_AGENTS = as_parameters(registry.names())
ALL_AGENTS = as_parameters([*registry.names(), *registry.continuous_names()])
