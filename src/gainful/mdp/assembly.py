"""From what an MDP is made of, as it was given, to its checked and read-only parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.arrays import allowed_mask, rows_of_pairs
from gainful.mdp.labels import PairNames, are_numbers, checked_labels, index_of
from gainful.mdp.parts import RowPart, each, row_parts, stretches
from gainful.mdp.reward_limits import check_sizes, check_step_duration
from gainful.mdp.rows import TransitionRows, as_float, checked_rows, merged
from gainful.mdp.units import Objective, Units

RewardLaw: TypeAlias = Literal["deterministic", "bernoulli", "transition"]
Start: TypeAlias = int | str | ArrayLike | None

STATE_LIMIT = 2**31 - 1
"""Next states are stored in 32 bits, and SciPy reads them as signed."""


@dataclass(frozen=True, kw_only=True)
class Ingredients:
    """What an MDP is made of, as a builder or a caller gives it; nothing is checked yet."""

    n_states: int
    n_actions: int
    indptr: ArrayLike
    indices: ArrayLike
    probabilities: ArrayLike
    pair_rewards: NDArray[np.float64]
    """(S*A,) mean rewards; ignored if there are rewards of transitions."""
    entry_rewards: NDArray[np.float64] | None = None
    """One reward per transition."""
    reward_law: RewardLaw | None = None
    start: Start = None
    allowed: ArrayLike | None = None
    """(S,A) mask; by default the pairs whose rows are not empty."""
    state_labels: Sequence[str] | None = None
    action_labels: Sequence[str] | None = None
    units: Units = field(default_factory=Units)
    name: str | None = None
    user_rewards: bool = True
    """Whether rewards are in the user's units, and have to be converted to internal ones."""


class CheckedParts(NamedTuple):
    """The attributes of an MDP."""

    n_states: int
    n_actions: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    pair_rewards: NDArray[np.float64]
    entry_rewards: NDArray[np.float64] | None
    reward_law: RewardLaw
    allowed: NDArray[np.bool_]
    start: NDArray[np.float64]
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None
    units: Units
    name: str | None


def checked_parts(given: Ingredients) -> CheckedParts:
    """Check everything; an InvalidMDPError or InvalidArgumentError names the first thing that is wrong."""
    n_states, n_actions, units = given.n_states, given.n_actions, given.units
    if n_states > STATE_LIMIT:
        raise InvalidMDPError(
            f"there are {n_states} states",
            name="n_states",
            found=n_states,
            expected=f"at most {STATE_LIMIT}",
            hint="next states are stored in 32 bits",
        )
    names = PairNames(
        n_actions,
        checked_labels("state_labels", given.state_labels, n_states),
        checked_labels("action_labels", given.action_labels, n_actions),
    )
    if units.objective not in get_args(Objective):
        raise InvalidArgumentError("objective", units.objective, "'reward' or 'cost'")
    check_step_duration(units)
    law = _checked_law(given.reward_law, given.entry_rewards)

    def internal(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        return units.sign * rewards - units.offset + 0.0 if given.user_rewards else rewards

    rows = checked_rows(
        given.indptr, given.indices, given.probabilities, n_states, names.pair, given.entry_rewards, internal
    )
    if given.allowed is not None:
        rows = _rows_of_allowed(rows, allowed_mask(given.allowed, n_states, n_actions), names)
    allowed = _states_with_actions(rows, names)
    pair_rewards = _checked_rewards(rows, given, internal, allowed.reshape(-1), names)
    if law == "bernoulli":
        _check_probabilities_of_rewards(pair_rewards, units, allowed.reshape(-1), names)
    if rows.entry_rewards is not None and law != "transition":
        # next states that are listed with several rewards become one entry
        rows = merged(TransitionRows(rows.indptr, rows.indices, rows.probabilities, None))
    start = _start_distribution(given.start, n_states, names.state_labels)
    for array in (*rows, pair_rewards, allowed, start):
        if array is not None:
            array.flags.writeable = False
    return CheckedParts(
        n_states=n_states,
        n_actions=n_actions,
        indptr=rows.indptr,
        indices=rows.indices,
        probabilities=rows.probabilities,
        pair_rewards=pair_rewards,
        entry_rewards=rows.entry_rewards,
        reward_law=law,
        allowed=allowed,
        start=start,
        state_labels=names.state_labels,
        action_labels=names.action_labels,
        units=units,
        name=given.name,
    )


def _checked_law(given: RewardLaw | None, entry_rewards: NDArray[np.float64] | None) -> RewardLaw:
    """The reward law, or the one that follows from the kind of rewards."""
    law = given if given is not None else ("deterministic" if entry_rewards is None else "transition")
    if law not in get_args(RewardLaw):
        raise InvalidArgumentError("reward_law", law, f"one of {', '.join(get_args(RewardLaw))}")
    if law == "transition" and entry_rewards is None:
        raise InvalidMDPError(
            "reward_law 'transition' needs one reward per transition",
            name="reward_law",
            found=law,
            hint="give R (S, A, S) or a table",
        )
    return law


def _rows_of_allowed(rows: TransitionRows, allowed: NDArray[np.bool_], names: PairNames) -> TransitionRows:
    """The rows of the pairs in the mask, none of which may be empty."""
    mask = allowed.reshape(-1)
    empty = np.flatnonzero(mask & (rows.indptr[1:] == rows.indptr[:-1]))
    if empty.size:
        raise InvalidMDPError(
            f"{names.pair(int(empty[0]))} sums to 0",
            name="P",
            found=0.0,
            expected="1",
            hint="mark an action that the state does not have as False in allowed=",
        )
    return rows_of_pairs(rows, mask)


def _states_with_actions(rows: TransitionRows, names: PairNames) -> NDArray[np.bool_]:
    """(S,A) which rows are not empty; every state needs one."""
    begins, ends = rows.indptr[:-1], rows.indptr[1:]
    filled = np.empty(ends.size, dtype=bool)
    each(lambda own: np.greater(ends[own], begins[own], out=filled[own]), stretches(filled.size))
    allowed = filled.reshape(-1, names.n_actions)
    if filled.all():
        return allowed
    without = _places(lambda own: ~allowed[own].any(axis=1), len(allowed))
    if without.size:
        raise InvalidMDPError(
            f"state {names.state(int(without[0]))} has no action (all its rows are empty); "
            f"{without.size} of {len(allowed)} states",
            name="P",
            found=names.state(int(without[0])),
            hint="a state that ends the process can loop on itself or restart",
        )
    return allowed


def _places(found: Callable[[slice], Any], size: int) -> NDArray[np.int64]:
    """The places among 0 … size-1 where `found(part)`, an array of truth values for each part of them, is True."""
    return np.concatenate(each(lambda own: np.flatnonzero(found(own)) + own.start, stretches(size)))


def _checked_rewards(
    rows: TransitionRows,
    given: Ingredients,
    internal: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    filled: NDArray[np.bool_],
    names: PairNames,
) -> NDArray[np.float64]:
    """(S*A,) the internal mean rewards: those of pairs, or the means of those of transitions; 0 for empty rows."""
    units, entries = given.units, rows.entry_rewards
    if entries is not None:

        def transition(i: int) -> str:
            pair = names.pair(int(np.searchsorted(rows.indptr, i, side="right")) - 1)
            return f"{pair}: the {units.objective} of moving to state {names.state(int(rows.indices[i]))}"

        check_sizes(entries, units, given.user_rewards, "transitions", transition)
        return _means(rows, entries, filled)
    means = np.empty(filled.size)

    def convert(own: slice) -> None:
        rewards = np.where(filled[own], given.pair_rewards[own], 0.0)
        means[own] = np.where(filled[own], internal(rewards), 0.0)

    each(convert, stretches(filled.size))
    check_sizes(means, units, given.user_rewards, "pairs", lambda k: f"the {units.objective} of {names.pair(k)}")
    return means


def _means(rows: TransitionRows, entries: NDArray[np.float64], filled: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(S*A,) the mean of the rewards of each row; 0 for empty rows."""
    means = np.zeros(filled.size)

    def average(part: RowPart) -> None:
        here, own = slice(part.first, part.last), slice(part.begin, part.end)
        if part.begin < part.end:
            starts = rows.indptr[here][filled[here]] - part.begin
            means[here][filled[here]] = np.add.reduceat(rows.probabilities[own] * entries[own], starts)

    each(average, row_parts(rows.indptr))
    return means


def _check_probabilities_of_rewards(
    pair_rewards: NDArray[np.float64], units: Units, filled: NDArray[np.bool_], names: PairNames
) -> None:
    """InvalidMDPError unless the means are probabilities, as Bernoulli rewards need."""

    def outside(own: slice) -> NDArray[np.bool_]:
        mean = units.reward(pair_rewards[own])
        return filled[own] & ((mean < 0.0) | (mean > 1.0))

    wrong = _places(outside, filled.size)
    if wrong.size:
        k = int(wrong[0])
        mean = float(units.reward(pair_rewards[k : k + 1])[0])
        raise InvalidMDPError(
            f"the mean reward of {names.pair(k)} is {mean:g}",
            name="R",
            found=mean,
            expected="a number in [0, 1] for Bernoulli rewards",
        )


def _start_distribution(start: Start, n_states: int, labels: tuple[str, ...] | None) -> NDArray[np.float64]:
    """(S,) the distribution over start states, from one state (index or label) or a distribution."""
    if start is None or isinstance(start, str) or np.ndim(start) == 0:
        p = np.zeros(n_states)
        p[0 if start is None else index_of("state", start, n_states, labels, are_numbers(labels))] = 1.0  # type: ignore[arg-type]
        return p
    p = as_float("start", start)
    if p.shape != (n_states,):
        raise InvalidMDPError(
            f"start has shape {p.shape}",
            name="start",
            found=p.shape,
            expected=f"a state or a distribution over {n_states} states",
        )
    total = float(p.sum())
    if not np.all(p >= 0.0) or abs(total - 1.0) > 1e-8:
        raise InvalidMDPError(
            f"start sums to {total:.10g} (smallest entry {p.min():g})",
            name="start",
            found=total,
            expected="a distribution",
        )
    # divided once, it stays as it is: copies and loaded files are equal to the bit
    return p if abs(total - 1.0) <= (n_states + 2) * 2.0**-53 else p / total
