"""Every agent as a parameter of a test; those whose kernels take seconds to compile are for make test-all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gainful.agents import registry

COMPILES_LONG = ("imed-rl", "ucrl3")


def as_parameters(names: Iterable[str]) -> list[Any]:
    """The names, some of them marked as slow."""
    return [pytest.param(name, marks=pytest.mark.slow if name in COMPILES_LONG else ()) for name in names]


TABULAR_AGENTS = as_parameters(registry.names())
ALL_AGENTS = as_parameters([*registry.names(), *registry.continuous_names()])
