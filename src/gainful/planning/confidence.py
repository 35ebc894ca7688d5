"""Sets of transition rows around an empirical MDP, over which extended value iteration is optimistic.

Each is plain data about the rows of one MDP. `extended_value_iteration` takes the best member of the set for
every pair; the formulas that give radii and widths from visit counts belong to the learning algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP


@dataclass(frozen=True, eq=False)
class L1Ball:
    r"""{p : ‖p - p̄(·|s,a)‖₁ <= radius[s,a]}: UCRL2 (Jaksch, Ortner & Auer 2010).

    Parameters
    ----------
    radius : array_like, shape (S, A)
        2 or more is the whole simplex, as for a pair never visited.
    reachable : array_like of bool, shape (S,), optional
        The states that truncated pairs may move to (TUCRL, Fruit et al. 2018).
    truncated : array_like of bool, shape (S, A), optional
        The pairs that may not move outside `reachable`; given together with it.

    Examples
    --------
    >>> L1Ball(np.full((2, 1), 0.2)).radius
    array([[0.2],
           [0.2]])
    """

    radius: NDArray[np.float64]
    reachable: NDArray[np.bool_] | None = None
    truncated: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _set(self, "radius", _numbers("radius", self.radius, 2))
        _truncation(self, self.radius.shape)


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""{p : lower <= p(s') <= upper on the row's entries, p(s') <= unseen elsewhere, p(floor_state) >= floor}.

    The sets of UCRL2B and SCAL.

    Parameters
    ----------
    lower, upper : array_like
        One number for each stored transition of the MDP (`mdp.indices`).
    unseen : array_like, shape (S, A)
        Bounds each next state that the row does not list.
    floor_state : int, optional
        The state on which every member keeps mass.
    floor : float
        How much it keeps (SCAL's perturbation η_k: an upper bound below `floor` is raised to it), so that 1 - floor
        bounds the contraction.
    reachable, truncated : array_like of bool, optional
        As in `L1Ball`.

    Examples
    --------
    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
    >>> Intervals.around(mdp, 0.2, 0.2).upper
    array([1. , 0.3, 0.7, 0.7])
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    unseen: NDArray[np.float64]
    floor_state: int | None = None
    floor: float = 0.0
    reachable: NDArray[np.bool_] | None = None
    truncated: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _set(self, "lower", _numbers("lower", self.lower, 1))
        _set(self, "upper", _numbers("upper", self.upper, 1))
        _set(self, "unseen", _numbers("unseen", self.unseen, 2))
        if self.lower.shape != self.upper.shape:
            raise InvalidArgumentError(
                "upper",
                self.upper.size,
                hint="each entry needs one of both",
                problem=f"{self.lower.size} lower bounds but {self.upper.size} upper bounds",
            )
        for name, values in (("lower", self.lower), ("upper", self.upper), ("unseen", self.unseen)):
            if values.size and values.max() > 1.0:
                where = _place(values, values > 1.0)
                raise InvalidArgumentError(f"{name}{where}", float(values.max()), "a probability in [0, 1]")
        if np.any(self.lower > self.upper):
            j = int(np.flatnonzero(self.lower > self.upper)[0])
            raise InvalidArgumentError(
                f"lower[{j}]",
                float(self.lower[j]),
                problem=f"lower[{j}] = {self.lower[j]:g} is above upper[{j}] = {self.upper[j]:g}",
            )
        if not 0.0 <= self.floor <= 1.0:
            raise InvalidArgumentError("floor", self.floor, "a probability in [0, 1]")
        if self.floor > 0.0 and self.floor_state is None:
            raise InvalidArgumentError(
                "floor_state",
                None,
                hint="say which state keeps it",
                problem=f"floor is {self.floor:g} but floor_state is not given",
            )
        n_states = self.unseen.shape[0]
        if self.floor_state is not None and not 0 <= self.floor_state < n_states:
            raise InvalidArgumentError("floor_state", self.floor_state, f"0 … {n_states - 1}")
        _truncation(self, self.unseen.shape)
        if self.floor > 0.0 and self.reachable is not None and not self.reachable[self.floor_state]:
            raise InvalidArgumentError(
                "floor_state",
                self.floor_state,
                problem=f"floor_state {self.floor_state} is not reachable, so no row can keep mass on it",
            )

    @classmethod
    def around(cls, mdp: MDP, width: ArrayLike, width_unseen: ArrayLike, **options: Any) -> Self:
        """p̄ ± `width` (one half-width per stored transition, or one for all), cut to [0, 1].

        `width_unseen` is (S,A), or one number for all pairs. `options`: floor_state, floor, reachable, truncated.

        >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
        >>> Intervals.around(mdp, 0.2, 0.2).upper
        array([1. , 0.3, 0.7, 0.7])
        """
        p = mdp.probabilities
        half = np.broadcast_to(_numbers("width", width, None), p.shape)
        unseen = np.broadcast_to(_numbers("width_unseen", width_unseen, None), (mdp.n_states, mdp.n_actions))
        return cls(np.maximum(p - half, 0.0), np.minimum(p + half, 1.0), np.minimum(unseen, 1.0), **options)


@dataclass(frozen=True, eq=False)
class NearOptimistic(Intervals):
    r"""The rows of `Intervals`, on supports that leave out states that can hardly matter: EVI-NOSS of UCRL3.

    With u = v - min v and F(X) = max { Σ_X u·p : p between the bounds, Σ_X p <= 1 }, the support of a pair is what its
    row lists and the best state; while F(outside) >= min{κ, F(inside)}, κ(s,a) = tolerance[s,a]·sp(v), the best state
    outside joins it. The pair is then worth r + min v + F(inside): more than the maximum over `Intervals` less κ, and
    probability that the bounds leave over is worth min v (Bourel, Maillard & Talebi 2020, algorithm 3).

    The support changes with v, so that the operator is not monotone, and the iteration need not converge. The bracket
    of a plan is that of the operator with the supports of its values.

    Parameters
    ----------
    lower, upper, unseen, floor_state, floor, reachable, truncated
        As in `Intervals`.
    tolerance : array_like, shape (S, A)
        κ/sp(v); 0 gives every pair all states, and inf what its row lists and the best state, unless more is outside.

    Examples
    --------
    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
    >>> NearOptimistic.around(mdp, 0.2, 0.2, tolerance=np.full((2, 1), 0.1)).tolerance
    array([[0.1],
           [0.1]])
    """

    tolerance: NDArray[np.float64] = field(default_factory=lambda: np.zeros((1, 1)))

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "tolerance", _numbers("tolerance", self.tolerance, 2))
        if self.tolerance.shape != self.unseen.shape:
            raise InvalidArgumentError("tolerance", self.tolerance.shape, f"the shape of unseen, {self.unseen.shape}")


@dataclass(frozen=True, eq=False)
class KLBall:
    r"""{p : KL(p̄(·|s,a), p) <= radius[s,a]}, KL(p̄, p) = Σ p̄ ln(p̄/p): KL-UCRL (Filippi, Cappé & Garivier 2010).

    The row is the first argument, so a member may put mass on states that the row does not list.

    Parameters
    ----------
    radius : array_like, shape (S, A)
        inf is the whole simplex.
    reachable, truncated : array_like of bool, optional
        As in `L1Ball`.

    Examples
    --------
    >>> KLBall(np.full((1, 2), 0.1)).radius
    array([[0.1, 0.1]])
    """

    radius: NDArray[np.float64]
    reachable: NDArray[np.bool_] | None = None
    truncated: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        _set(self, "radius", _numbers("radius", self.radius, 2))
        _truncation(self, self.radius.shape)


Confidence: TypeAlias = L1Ball | Intervals | KLBall


def _set(owner: Any, name: str, value: NDArray[Any]) -> None:
    object.__setattr__(owner, name, value)


def _place(values: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    if values.ndim == 0:
        return ""
    first = np.argwhere(wrong)[0]
    return "[" + ", ".join(str(int(i)) for i in first) + "]"


def _numbers(name: str, values: ArrayLike, ndim: int | None) -> NDArray[np.float64]:
    """A read-only copy, checked to be non-negative numbers of the right dimension."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            name, values, "an array of numbers", problem=f"{name} is not an array of numbers: {error}"
        ) from error
    if ndim is not None and array.ndim != ndim:
        expected = "(S, A)" if ndim == 2 else "one number per stored transition"
        raise InvalidArgumentError(name, array.shape, expected, problem=f"{name} has shape {array.shape}")
    wrong = ~(array >= 0.0)  # also NaN
    if np.any(wrong):
        raise InvalidArgumentError(f"{name}{_place(array, wrong)}", float(array[wrong].flat[0]), "a number >= 0")
    array.flags.writeable = False
    return array


def _truncation(owner: L1Ball | Intervals | KLBall, shape: tuple[int, ...]) -> None:
    """Check the two masks: both or neither."""
    if (owner.reachable is None) != (owner.truncated is None):
        raise InvalidArgumentError(
            "truncated", owner.truncated, hint="give both or neither", problem="reachable and truncated go together"
        )
    if owner.reachable is None or owner.truncated is None:
        return
    for name, size in (("reachable", shape[:1]), ("truncated", shape)):
        mask = np.array(getattr(owner, name))
        if mask.dtype != np.bool_ or mask.shape != size:
            raise InvalidArgumentError(
                name, mask.shape, f"{size} and bool", problem=f"{name} has shape {mask.shape} and type {mask.dtype}"
            )
        mask.flags.writeable = False
        _set(owner, name, mask)
    if not np.any(owner.reachable):
        raise InvalidArgumentError(
            "reachable",
            owner.reachable,
            hint="truncated pairs would have nowhere to go",
            problem="reachable has no state",
        )
