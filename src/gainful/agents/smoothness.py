"""Hölder constants, and the cells that agents on points choose by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gainful.arguments import finite, number_of
from gainful.errors import InvalidArgumentError
from gainful.optimism.c_scal_plus import bins_for_horizon
from gainful.partition import Outside, Partition

Ends: TypeAlias = ArrayLike | Sequence[float | None] | None
"""The lower or upper ends of a box: one number, or one per axis; None keeps those of a Gymnasium Box."""


@dataclass(frozen=True)
class Smoothness:
    """The Hölder constants L and α of an environment; None if they are unknown."""

    lipschitz: float | None
    holder: float | None

    def __post_init__(self) -> None:
        for name, top, wanted in (
            ("lipschitz", np.inf, "a finite number above 0"),
            ("holder", 1.0, "a number in (0, 1]"),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            if not (finite(value) and 0.0 < value <= top):
                raise InvalidArgumentError(name, value, f"{wanted}, or None if it is unknown")
            object.__setattr__(self, name, float(value))

    @property
    def constants(self) -> tuple[float, float] | None:
        """(L, α) if both are known."""
        return None if self.lipschitz is None or self.holder is None else (self.lipschitz, self.holder)

    @property
    def reason_void(self) -> str:
        """Why there is no guarantee without L and α; empty if both are known."""
        missing = [name for name in ("lipschitz", "holder") if getattr(self, name) is None]
        if not missing:
            return ""
        return (
            f"{' and '.join(missing)} not given: nothing is assumed of states in one cell, and nothing added for their "
            "difference"
        )

    def bins(self, horizon: int, n_actions: int, dim: int) -> int:
        """The theorem's number of intervals per axis for T = `horizon` steps."""
        if self.constants is None:
            raise InvalidArgumentError(
                "lipschitz and holder",
                (self.lipschitz, self.holder),
                hint="give a partition",
                problem="without lipschitz and holder there is no formula for the number of cells",
            )
        try:
            return bins_for_horizon(horizon, n_actions, *self.constants, dim)
        except OverflowError as error:
            raise InvalidArgumentError(
                "lipschitz",
                self.lipschitz,
                hint="give a partition",
                problem=f"lipschitz {self.lipschitz:g} and horizon {horizon:g} ask for too many cells",
            ) from error


def checked_partition(partition: Any, **instead: Any) -> Partition:
    """A Partition, or the settings of one as a file holds them; `instead` are arguments that it makes superfluous."""
    if isinstance(partition, dict):
        partition = Partition.from_settings(partition)
    if not isinstance(partition, Partition):
        raise InvalidArgumentError(
            "partition", partition, "a Partition", "gf.Partition.uniform(bins=20, dim=2) makes one"
        )
    given = [name for name, value in instead.items() if value is not None]
    if given:
        raise InvalidArgumentError(
            given[0],
            instead[given[0]],
            hint="leave them out, the partition has them",
            problem="a partition was given, and dim, low, high, box or outside too",
        )
    return partition


def box_to_cut(dim: int | None, low: Ends, high: Ends, box: Any, outside: Outside | None) -> Partition:
    """The box whose cells an agent chooses itself, as one cell: [low, high], or a Gymnasium Box."""
    if box is None:
        ends: dict[str, Any] = {"low": low, "high": high}
        return Partition.uniform(bins=1, dim=dim, outside=outside or "error", **ends)
    found = Partition.from_box(box, bins=1, low=low, high=high, outside=outside)
    if dim is not None and dim != found.dim:
        raise InvalidArgumentError(
            "dim", dim, hint="leave dim out", problem=f"dim is {dim}, but the box has {found.dim} axes"
        )
    return found


def checked_horizon(horizon: float | None) -> int | None:
    """A number of steps, at least 1, or None; 1e7 is accepted as an integer."""
    return None if horizon is None else number_of("steps", "horizon", horizon)
