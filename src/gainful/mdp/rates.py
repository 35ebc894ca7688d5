"""Continuous-time decision processes, given by their rates and uniformised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.assembly import Ingredients, RewardLaw, Start
from gainful.mdp.labels import pair_in_words
from gainful.mdp.rows import as_float
from gainful.mdp.sojourn_times import mean_times, rates_of
from gainful.mdp.table_labels import label_pairs
from gainful.mdp.table_reading import read_table
from gainful.mdp.table_source import LABEL_COLUMNS
from gainful.mdp.units import Objective, Units

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

_ROUNDING = 1e-12  # relative tolerance for rates that are equal up to rounding


class _Jumps(NamedTuple):
    """Rates by jump, in order of the pair s*A + a."""

    n_states: int
    n_actions: int
    pair: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.float64]
    lump: NDArray[np.float64] | None  # earned at the jump
    flow: NDArray[np.float64]  # (S*A,), earned per unit of time
    allowed: NDArray[np.bool_]  # (S*A,)
    objective: Objective
    state_labels: Sequence[str] | None
    action_labels: Sequence[str] | None


def from_rates(
    cls: type[Model],
    rates: Any,
    rewards: ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    jump_rewards: Any = None,
    jump_costs: Any = None,
    sojourn_times: ArrayLike | None = None,
    uniformization: float | None = None,
    reward_law: RewardLaw | None = None,
    start: Start = None,
    allowed: ArrayLike | None = None,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    name: str | None = None,
) -> Model:
    r"""Build the uniformised MDP of a continuous-time process; its gains are per unit of time.

    With Λ = `uniformization`, or the largest total rate of a pair (Puterman 1994, sec. 11.5),

        p(s'|s,a) = q(s'|s,a) / Λ, with the remaining probability on s itself;
        r(s,a) = [reward rate + sum_s' q(s'|s,a) jump reward] / Λ;   one step lasts 1/Λ.

    With `sojourn_times` the process is semi-Markov: `rates` are then the probabilities p(s'|s,a) of the next state, and
    q = p/τ. The gain is the ratio of what is earned to the time that it takes, and depends on the mean times alone,
    whatever their distribution (Puterman 1994, sec. 11.4; Tijms 2003, sec. 7.3).

    A pair without any rate stays where it is. With the default Λ the fastest pairs have no self-loop, so the chain may
    be periodic; a larger Λ makes it aperiodic.

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    rates : array_like (S,A,S), sequence of A sparse (S,S) matrices, or table
        q(s'|s,a), per unit of time. A negative diagonal must be minus the sum of its row (a generator) and is dropped;
        a positive one is an event that does not change the state. A table (data frame, CSV or Parquet) has the columns
        state, action, next_state, rate, and optionally reward or cost (at the jump) and reward_rate or cost_rate (per
        unit of time, one value per pair). In place of rate it may have probability and sojourn_time.
    rewards, costs : array_like (S,A) or (S,), optional
        Earned, or paid and minimised, per unit of time.
    jump_rewards, jump_costs : shaped like `rates`, or (S,A), optional
        Earned, or paid, at each jump.
    sojourn_times : array_like (S,A) or (S,), optional
        τ, the mean time until the next jump, in a semi-Markov process.
    uniformization : float, optional
        Λ, at least the largest total rate of a pair.
    reward_law : {"deterministic", "transition"}, optional
        By default "deterministic" without jump rewards, otherwise "transition": reward rate / Λ at each step, plus the
        jump reward when the jump happens. "deterministic" replaces it by its mean.
    start, allowed, state_labels, action_labels, name
        As for `MDP`.

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError, InvalidArgumentError
        If the rates or rewards are not valid.
    """
    if isinstance(rates, (str, Path)) or _is_frame(rates):
        given = {
            "rewards": rewards,
            "costs": costs,
            "jump_rewards": jump_rewards,
            "jump_costs": jump_costs,
            "allowed": allowed,
            "sojourn_times": sojourn_times,
        }
        clash = [key for key, value in given.items() if value is not None]
        if clash:
            raise InvalidArgumentError(
                clash[0],
                given[clash[0]],
                hint="use columns of the table instead",
                problem=f"{clash[0]}= cannot be combined with a table of rates",
            )
        jumps = _from_table(rates, state_labels, action_labels)
    else:
        jumps = _from_arrays(rates, rewards, costs, jump_rewards, jump_costs, allowed, state_labels, action_labels)
        if sojourn_times is not None:
            jumps = _with_times(jumps, mean_times(sojourn_times, jumps.n_states, jumps.n_actions))
    S, A = jumps.n_states, jumps.n_actions
    total = np.bincount(jumps.pair, weights=jumps.rate, minlength=S * A)
    scale = _checked_uniformization(uniformization, jumps, total)
    # the rest of each pair's step: nothing happens
    rest = np.where(jumps.allowed, (scale - total) / scale, 0.0)
    idle = np.flatnonzero(rest > _ROUNDING)
    pair = np.concatenate([jumps.pair, idle])
    order = np.argsort(pair, kind="stable")
    flow = jumps.flow / scale
    entries = None
    if jumps.lump is not None:
        entries = (np.concatenate([jumps.lump, np.zeros(idle.size)]) + flow[pair])[order]
    return cls._made_of(
        Ingredients(
            n_states=S,
            n_actions=A,
            indptr=np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=S * A))]),
            indices=np.concatenate([jumps.target, idle // A])[order],
            probabilities=np.concatenate([jumps.rate / scale, rest[idle]])[order],
            pair_rewards=flow,
            entry_rewards=entries,
            reward_law=reward_law,
            start=start,
            allowed=jumps.allowed.reshape(S, A),
            state_labels=jumps.state_labels,
            action_labels=jumps.action_labels,
            units=Units(objective=jumps.objective, step_duration=1.0 / scale, continuous=True),
            name=name,
        )
    )


def _with_times(jumps: _Jumps, times: NDArray[np.float64]) -> _Jumps:
    """Jumps whose rates were given as probabilities and mean times."""

    def name(k: int) -> str:
        return pair_in_words(k, jumps.n_actions, jumps.state_labels, jumps.action_labels)

    return jumps._replace(rate=rates_of(jumps.pair, jumps.rate, times, jumps.allowed, name))


def _checked_uniformization(given: float | None, jumps: _Jumps, total: NDArray[Any]) -> float:
    """Λ, which must be at least the largest total rate of a pair."""
    fastest = float(total.max(initial=0.0))
    if fastest <= 0.0:
        raise InvalidMDPError(
            "all rates are 0, so nothing ever happens", name="rates", found=0.0, expected="at least one positive rate"
        )
    scale = fastest if given is None else float(given)
    if not np.isfinite(scale) or scale < fastest * (1.0 - _ROUNDING):
        s, a = divmod(int(total.argmax()), jumps.n_actions)
        state = s if jumps.state_labels is None else f"'{jumps.state_labels[s]}'"
        action = a if jumps.action_labels is None else f"'{jumps.action_labels[a]}'"
        raise InvalidArgumentError(
            "uniformization",
            scale,
            f"at least {fastest:.10g}, the total rate of state {state}, action {action}",
            "leave it out to use that rate",
            problem=f"uniformization is {scale:.10g}",
        )
    return scale


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") or hasattr(value, "__dataframe__") or isinstance(value, dict)


def _from_table(table: Any, state_labels: Sequence[str] | None, action_labels: Sequence[str] | None) -> _Jumps:
    source = read_table(table)
    semi_markov = "sojourn_time" in source.columns()
    weight = "probability" if semi_markov else "rate"
    source.require(*LABEL_COLUMNS, weight)
    have = [c for c in ("reward", "reward_rate", "cost", "cost_rate") if c in source.columns()]
    if len({c.removesuffix("_rate") for c in have}) != 1:
        found = ", ".join(f"'{c}'" for c in source.columns())
        raise InvalidMDPError(
            f"{source.title}: found the columns {found}",
            name="reward",
            found=source.columns(),
            expected="'reward' (at the jump) and/or 'reward_rate' (per unit of time), or 'cost' and/or 'cost_rate', "
            "but not both kinds",
        )
    source.require(*have)
    rate = source.numbers(weight, low=0.0, expected=f"a {weight}, at least 0")
    pairs = label_pairs(source, state_labels, action_labels)
    n = pairs.n_states * pairs.n_actions
    objective: Objective = "cost" if have[0].startswith("cost") else "reward"

    def of_pairs(column: str) -> NDArray[np.float64]:
        """A column that has one value per pair."""
        values, table = source.numbers(column), np.zeros(n)
        table[pairs.pair] = values
        differs = np.flatnonzero(table[pairs.pair] != values)
        if differs.size:
            at = int(differs[0])
            expected = f"one value for {pairs.title(int(pairs.pair[at]))} (elsewhere {table[pairs.pair[at]]:g})"
            source.fail(at, column, f"{values[at]:g}", expected, differs.size)
        return table

    lump = source.numbers(objective) if objective in have else None
    flow = of_pairs(f"{objective}_rate") if f"{objective}_rate" in have else np.zeros(n)
    allowed = np.zeros(n, dtype=bool)
    allowed[pairs.pair] = True
    jumps = _Jumps(
        pairs.n_states,
        pairs.n_actions,
        pairs.pair,
        pairs.next_state,
        rate,
        lump,
        flow,
        allowed,
        objective,
        pairs.state_labels,
        pairs.action_labels,
    )
    return _with_times(jumps, of_pairs("sojourn_time")) if semi_markov else jumps


def _from_arrays(
    rates: Any,
    rewards: ArrayLike | None,
    costs: ArrayLike | None,
    jump_rewards: Any,
    jump_costs: Any,
    allowed: ArrayLike | None,
    state_labels: Sequence[str] | None,
    action_labels: Sequence[str] | None,
) -> _Jumps:
    as_rewards = rewards is not None or jump_rewards is not None
    as_costs = costs is not None or jump_costs is not None
    if as_rewards == as_costs:
        if as_costs:
            raise InvalidArgumentError(
                "rewards",
                expected="one kind",
                hint="give costs as negative rewards",
                problem="found both rewards and costs",
            )
        raise InvalidArgumentError(
            "rewards",
            hint="give rewards= or costs= (per unit of time), or jump_rewards= or jump_costs= (at each jump)",
            problem="there are no rewards",
        )
    objective: Objective = "cost" if as_costs else "reward"
    S, A, pair, target, rate = _entries("rates", rates)

    def place(at: int) -> str:
        s, a = divmod(int(pair[at]), A)
        names = ""
        if state_labels is not None and len(state_labels) == S:
            names = f" (from '{state_labels[s]}' to '{state_labels[target[at]]}')"
        return f"rates[{s}, {a}, {int(target[at])}]{names}"

    mask = np.ones(S * A, dtype=bool)
    if allowed is not None:
        table = np.array(allowed, dtype=bool)
        if table.shape != (S, A):
            raise InvalidMDPError(
                f"allowed has shape {table.shape}",
                name="allowed",
                found=table.shape,
                expected=f"(S, A) = ({S}, {A})",
            )
        mask = table.reshape(-1)
    keep = mask[pair]
    pair, target, rate = pair[keep], target[keep], rate[keep]
    diagonal = target == pair // A
    bad = np.flatnonzero(~np.isfinite(rate) | ((rate < 0.0) & ~diagonal))
    if bad.size:
        at = int(bad[0])
        raise InvalidMDPError(
            f"{place(at)} is {rate[at]:.6g}",
            name="rates",
            found=float(rate[at]),
            expected="a finite rate of at least 0",
            hint=f"{bad.size} of {rate.size} rates are wrong",
        )
    off = np.bincount(pair[~diagonal], weights=rate[~diagonal], minlength=S * A)
    generator = diagonal & (rate < 0.0)
    wrong = np.flatnonzero(generator & (np.abs(rate + off[pair]) > 1e-8 * np.maximum(1.0, off[pair])))
    if wrong.size:
        at = int(wrong[0])
        raise InvalidMDPError(
            f"{place(at)} is {rate[at]:.10g}",
            name="rates",
            found=float(rate[at]),
            expected=f"minus the sum of the other rates of its row, {-off[pair[at]] + 0.0:.10g} (a generator), or 0",
            hint=f"rows that are wrong: {wrong.size}",
        )
    lump = _lumps(
        "jump_costs" if as_costs else "jump_rewards", jump_costs if as_costs else jump_rewards, S, A, pair, target
    )
    keep = (rate > 0.0) & ~generator
    flow = _flows("costs" if as_costs else "rewards", costs if as_costs else rewards, S, A)
    return _Jumps(
        S,
        A,
        pair[keep],
        target[keep],
        rate[keep],
        None if lump is None else lump[keep],
        flow,
        mask,
        objective,
        state_labels,
        action_labels,
    )


def _entries(name: str, matrices: Any) -> tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """S, A and the stored (pair, next state, value) of a dense (S,A,S) array or sparse (S,S) matrices per action."""
    if isinstance(matrices, (list, tuple)) and matrices and all(sp.issparse(m) for m in matrices):
        shapes: list[Any] = sorted({m.shape for m in matrices})
        S = int(shapes[0][0])
        if shapes != [(S, S)] or S == 0:
            raise InvalidMDPError(
                f"the matrices of {name} have shapes {shapes}",
                name=name,
                found=shapes,
                expected="the same (S, S) for each action",
            )
        A = len(matrices)
        coo = [sp.coo_array(sp.csr_array(m)) for m in matrices]
        pair = np.concatenate([m.row.astype(np.int64) * A + a for a, m in enumerate(coo)])
        target = np.concatenate([m.col.astype(np.int64) for m in coo])
        return S, A, pair, target, as_float(name, np.concatenate([m.data for m in coo]))
    if sp.issparse(matrices):
        raise InvalidMDPError(
            f"{name} is one sparse matrix",
            name=name,
            found=matrices,
            hint="pass a sequence with one (S,S) matrix per action",
        )
    dense = as_float(name, matrices)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InvalidMDPError(
            f"{name} has shape {dense.shape}",
            name=name,
            found=dense.shape,
            expected="(S, A, S): [state, action, next state]",
        )
    S, A, _ = dense.shape
    s, a, target = np.nonzero(dense)
    return S, A, s * A + a, target, dense[s, a, target]


def _flows(name: str, values: ArrayLike | None, S: int, A: int) -> NDArray[np.float64]:
    """(S*A,) amounts per unit of time."""
    if values is None:
        return np.zeros(S * A)
    array = as_float(name, values)
    if array.shape == (S,):
        return np.repeat(array, A)
    if array.shape != (S, A):
        raise InvalidMDPError(
            f"{name} has shape {array.shape}",
            name=name,
            found=array.shape,
            expected=f"(S, A) = ({S}, {A}) or ({S},)",
            hint=f"a reward at each jump goes to jump_{name}" if array.shape == (S, A, S) else "",
        )
    return array.reshape(-1)


def _lumps(
    name: str, values: Any, S: int, A: int, pair: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """The amount earned at each jump, read from an array shaped like the rates."""
    if values is None:
        return None
    if not isinstance(values, (list, tuple)) or not any(sp.issparse(m) for m in values):
        table = as_float(name, values) if not sp.issparse(values) else np.zeros(0)
        if table.shape == (S, A):
            return table.reshape(-1)[pair]
    lump_S, lump_A, lump_pair, lump_target, lump_value = _entries(name, values)
    if (lump_S, lump_A) != (S, A):
        raise InvalidMDPError(
            f"{name} is for {lump_S} states and {lump_A} actions",
            name=name,
            found=(lump_S, lump_A, lump_S),
            expected=f"the shape of rates ({S}, {A}, {S})",
        )
    key = lump_pair * S + lump_target
    order = np.argsort(key, kind="stable")
    key, lump_value = np.append(key[order], -1), np.append(lump_value[order], 0.0)
    at = np.searchsorted(key[:-1], pair * S + target)
    return np.where(key[at] == pair * S + target, lump_value[at], 0.0)
