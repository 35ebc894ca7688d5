"""Gymnasium environments that have a transition table (`env.unwrapped.P`), made continuing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from gainful.errors import InvalidMDPError
from gainful.mdp.arrays import rewards_by_pair
from gainful.mdp.assembly import Ingredients, Start
from gainful.mdp.gymnasium_env import MDPEnv
from gainful.mdp.rows import as_float

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)


def from_gymnasium(
    cls: type[Model],
    env: gymnasium.Env[Any, Any] | str,
    *,
    start: Start | None = None,
    drop_unreachable: bool = False,
    name: str | None = None,
) -> Model:
    """Build the continuing MDP of an environment with a transition table: FrozenLake, Taxi, CliffWalking and others.

    The table is `P[s][a]`, a list of (probability, next state, reward, terminated). A transition that terminates
    restarts at once: its next state is drawn from the initial distribution, and its reward is kept. Wrappers, such as
    time limits, have no effect. Rewards belong to the transition (law "transition"), or to the pair where they do not
    differ ("deterministic").

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    env : gymnasium.Env or str
        An environment, or the id of one.
    start : int or array_like, optional
        A state or a distribution in place of the environment's `initial_state_distrib`.
    drop_unreachable : bool
        Whether to keep only the states that some policy reaches from the start; labels are their original numbers.
    name : str, optional
        A name to show; the id by default.

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError
        If the environment cannot be made, or has no valid table.
    """
    made = isinstance(env, str)
    environment = _make(env) if isinstance(env, str) else env
    try:
        base = getattr(environment, "unwrapped", environment)
        spec = getattr(environment, "spec", None)
        title = str(env) if made else (spec.id if spec is not None else type(base).__name__)
        if isinstance(base, MDPEnv) and issubclass(type(base.mdp), cls):
            changes = {} if start is None else {"start": start}
            if name is not None:
                changes["name"] = name
            mdp: Model = base.mdp._replace(**changes) if changes else base.mdp  # type: ignore[assignment]
        else:
            mdp = _from_p(cls, base, title, start, name if name is not None else title)
    finally:
        if made:
            environment.close()
    if not drop_unreachable:
        return mdp
    reached = _reachable(mdp)
    return mdp if reached.all() else mdp.restricted(reached)


def _make(name: str) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        detail = str(error).strip().rstrip(".")
        raise InvalidMDPError(
            f"Gymnasium has no environment '{name}': {detail}",
            name="env",
            found=name,
            hint="check the id, or pass the environment",
        ) from error
    except ImportError as error:
        raise InvalidMDPError(
            f"Gymnasium cannot make '{name}': {error}",
            name="env",
            found=name,
            hint="install what it needs, or pass the environment",
        ) from error


def _from_p(cls: type[Model], base: Any, title: str, start: Start | None, name: str) -> Model:
    P = getattr(base, "P", None)
    if P is None:
        raise InvalidMDPError(
            f"{title} has no transition table: {type(base).__name__} has no attribute P with P[s][a] = "
            "[(probability, next state, reward, terminated), …]",
            name="env",
            found=title,
            hint="build the MDP from arrays or a table of transitions",
        )
    states = _keys(P, f"{title}: P")
    if not states or states != list(range(len(states))):
        raise InvalidMDPError(
            f"{title}: the states of P are {_few(states)}", name="P", found=states, expected="0 … S-1"
        )
    S = len(states)
    A = 1 + max((a for s in states for a in _keys(P[s], f"{title}: P[{s}]")), default=0)
    initial = _initial(base, title, start, S)
    pair, target, p, r, end = _read_transitions(P, title, S, A)
    # restart: each transition that terminates becomes one per initial state
    begin = np.flatnonzero(initial)
    copies = np.where(end, begin.size, 1)
    row = np.repeat(np.arange(pair.size), copies)
    within = np.arange(row.size) - np.repeat(np.cumsum(copies) - copies, copies)
    target = np.where(end[row], begin[np.where(end[row], within, 0)], target[row])
    p = p[row] * np.where(end[row], initial[begin[np.where(end[row], within, 0)]], 1.0)
    pair, r = pair[row], r[row]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=S * A))])
    pair_rewards, constant = rewards_by_pair(pair, p, r, S * A)
    order = np.argsort(pair, kind="stable")
    try:
        return cls._made_of(
            Ingredients(
                n_states=S,
                n_actions=A,
                indptr=indptr,
                indices=target[order],
                probabilities=p[order],
                pair_rewards=pair_rewards,
                entry_rewards=None if constant else r[order],
                start=initial,
                name=name,
            )
        )
    except InvalidMDPError as error:
        raise InvalidMDPError(
            f"{title}: {error.problem}", name=error.name, found=error.found, expected=error.expected, hint=error.hint
        ) from error


def _read_transitions(P: Any, title: str, S: int, A: int) -> tuple[NDArray[Any], ...]:
    """The entries of P as arrays: pair s*A + a, next state, probability, reward, and whether it terminates."""
    pairs: list[int] = []
    targets: list[int] = []
    masses: list[float] = []
    rewards: list[float] = []
    ends: list[bool] = []
    for s in range(S):
        for a in _keys(P[s], f"{title}: P[{s}]"):
            for entry in P[s][a]:
                try:
                    mass, target, reward, *rest = entry
                    number = int(target)
                    masses.append(float(mass))
                    rewards.append(float(reward))
                    ends.append(bool(rest and rest[0]))
                except (TypeError, ValueError) as error:
                    raise InvalidMDPError(
                        f"{title}: P[{s}][{a}] contains {entry!r}",
                        name="P",
                        found=entry,
                        expected="(probability, next state, reward, terminated)",
                    ) from error
                if a < 0 or not 0 <= number < S:
                    raise InvalidMDPError(
                        f"{title}: P[{s}][{a}] moves to state {number}",
                        name="P",
                        found=number,
                        expected=f"0 … {S - 1}",
                    )
                pairs.append(s * A + a)
                targets.append(number)
    if not pairs:
        raise InvalidMDPError(f"{title}: P has no transitions", name="P", found=P)
    return tuple(np.array(column) for column in (pairs, targets, masses, rewards, ends))


def _keys(table: Any, place: str) -> list[int]:
    """The indices of one level of P: a dictionary or a list."""
    try:
        if isinstance(table, Mapping):
            return sorted(int(k) for k in table)
        return list(range(len(table)))
    except (TypeError, ValueError) as error:
        raise InvalidMDPError(
            f"{place} is a {type(table).__name__}",
            name="P",
            found=table,
            expected="a dictionary with integer keys",
        ) from error


def _initial(base: Any, title: str, start: Start | None, n_states: int) -> NDArray[np.float64]:
    given: Any
    if start is not None:
        if isinstance(start, str):
            raise InvalidMDPError(
                f"{title}: start='{start}', but its states have no names",
                name="start",
                found=start,
                hint="give an index",
            )
        if np.ndim(start) == 0:
            s = int(start)  # type: ignore[arg-type]
            if not 0 <= s < n_states:
                raise InvalidMDPError(
                    f"{title}: start={s}", name="start", found=s, expected=f"a state 0 … {n_states - 1}"
                )
            single: NDArray[np.float64] = np.zeros(n_states)
            single[s] = 1.0
            return single
        given, what = start, "start"
    else:
        given, what = getattr(base, "initial_state_distrib", None), "initial_state_distrib"
        if given is None:
            raise InvalidMDPError(
                f"{title}: {type(base).__name__} has no initial_state_distrib, so it is not known where the next "
                "episode starts",
                name="start",
                hint="pass start= (a state, or a distribution over states)",
            )
    p = as_float(what, given)
    if p.shape != (n_states,) or not np.all(p >= 0.0) or abs(p.sum() - 1.0) > 1e-8:
        raise InvalidMDPError(
            f"{title}: {what} has shape {p.shape} and sums to {p.sum():.10g}",
            name=what,
            found=p.shape,
            expected=f"a distribution over {n_states} states",
        )
    return p


def _reachable(mdp: MDP) -> NDArray[np.bool_]:
    """(S,) mask of the states some policy reaches from the start distribution."""
    S = mdp.n_states
    source = np.repeat(np.arange(S * mdp.n_actions) // mdp.n_actions, np.diff(mdp.indptr))
    begin = np.flatnonzero(mdp.start)
    row = np.concatenate([source, np.full(begin.size, S)])  # state S: before the start
    column = np.concatenate([mdp.indices.astype(np.int64), begin])
    graph = sp.csr_array((np.ones(row.size), (row, column)), shape=(S + 1, S + 1))
    reached = np.zeros(S + 1, dtype=bool)
    reached[breadth_first_order(graph, S, return_predecessors=False)] = True
    return reached[:S]


def _few(values: list[int]) -> str:
    return ", ".join(map(str, values[:5])) + (", …" if len(values) > 5 else "") if values else "missing"
