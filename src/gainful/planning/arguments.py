"""Arguments the planners share, checked in one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import DeviceError, InvalidArgumentError, PrecisionError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.units import SMALLEST_ROOM
from gainful.planning.plan import Plan
from gainful.planning.rounding import LARGEST_VALUE, reward_scale


def checked_precision(mdp: MDP, precision: float) -> float:
    """The internal bracket width (per step) that answers the user's `precision`."""
    require_mdp(mdp)
    if not (isinstance(precision, int | float | np.number) and 0.0 < precision < np.inf):  # type: ignore[redundant-expr]
        raise InvalidArgumentError("precision", precision, "a positive number such as 1e-8")
    target = mdp.units.internal_precision(precision)
    if not mdp.units.is_plain:  # the map to the user's units rounds too
        room = 2 * mdp.units.rounding(reward_scale(mdp)) + 4 * SMALLEST_ROOM * mdp.units.step_duration
        if target <= 2 * room:
            raise precision_error(mdp, precision, room, None)
        target -= room
    return target


def checked_damping(damping: float) -> float:
    """The weight of a new value, in (0, 1]."""
    if not 0.0 < damping <= 1.0:
        raise InvalidArgumentError("damping", damping, "a number in (0, 1]")
    return damping


WORTH_A_GPU = 10_000_000
"""Transitions of a model from which on `device="auto"` sweeps on a GPU."""


def checked_device(device: str, worthwhile: bool = True) -> str:
    """Where to compute: "cpu" or "cuda". "auto" is a GPU if that is worthwhile and there is one that can be used."""
    if device not in ("cpu", "cuda", "auto"):
        raise InvalidArgumentError("device", device, '"cpu", "cuda" or "auto"')
    if device == "auto":
        return "cuda" if worthwhile and has_gpu() else "cpu"
    return device


def has_gpu() -> bool:
    """Whether this machine has a GPU that can be used."""
    try:
        from gainful.cuda_device import require_device  # numba-cuda is an extra

        require_device()
    except DeviceError:
        return False
    return True


def checked_span(span: float) -> float:
    """A bound on a span: finite, at least 0."""
    if not (np.isfinite(span) and span >= 0.0):
        raise InvalidArgumentError("span", span, "a finite number of at least 0")
    return float(span)


def start_vector(mdp: MDP, values: ArrayLike | None) -> NDArray[np.float64]:
    """The internal vector a planner starts from: zeros, or a warm start given in the user's units (a bias)."""
    if values is None:
        return np.zeros(mdp.n_states)
    v: NDArray[np.float64] = np.array(values, dtype=np.float64)
    if v.shape != (mdp.n_states,) or not (np.abs(v) <= LARGEST_VALUE / 4).all():
        raise InvalidArgumentError(
            "start_values",
            values,
            f"{mdp.n_states} finite numbers",
            problem=f"start_values have shape {v.shape}, or are not finite, or leave the range of float64",
        )
    v = mdp.units.amount(v)  # its own inverse
    v -= v[0]
    return v


def lowest_allowed(mdp: MDP) -> NDArray[np.int64]:
    """(S,) the lowest allowed action of each state."""
    if mdp.allowed[:, 0].all():
        return np.zeros(mdp.n_states, dtype=np.int64)
    return np.asarray(np.argmax(mdp.allowed, axis=1), dtype=np.int64)


def positive_cap(name: str, value: int) -> int:
    """A cap on iterations: an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:  # type: ignore[redundant-expr]
        raise InvalidArgumentError(name, value, "a whole number of at least 1")
    return int(value)


def precision_error(mdp: MDP, precision: float, slack: float, plan: Plan | None) -> PrecisionError:
    """The error for a precision that rounding makes impossible to certify."""
    reachable = 4.4 * slack / mdp.units.step_duration
    return PrecisionError(
        f"precision {precision:.1e} cannot be certified: "
        f"rounding alone makes the bracket {2 * slack / mdp.units.step_duration:.1e} "
        "wide here (float64, bias span and rewards considered)",
        plan,
        name="precision",
        found=precision,
        hint=f"ask for {reachable:.1e} or more",
    )
