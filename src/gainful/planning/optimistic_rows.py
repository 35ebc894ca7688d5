"""The rows that an optimistic operator chose."""

from __future__ import annotations

from typing import Any, NamedTuple


class OptimisticRows(NamedTuple):
    """One transition row per state, as CSR: the member of the confidence set that the operator chose."""

    indptr: Any
    """int64 (S+1,)."""
    indices: Any
    """uint32, one next state per entry."""
    probabilities: Any
    """float64, one per entry."""
