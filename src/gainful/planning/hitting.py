"""Minimal expected hitting times and the diameter: stochastic shortest paths, solved exactly and certified."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.errors import InvalidArgumentError, NotConvergedError, PrecisionError, TooLargeError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import Graph, PredecessorLists, predecessors, structure
from gainful.planning.bellman import SparseModel, sparse_model
from gainful.planning.evaluation import Linear, chain_of
from gainful.planning.rounding import UNIT_ROUNDOFF

_DENSE_STATES = 1000  # up to here one dense matrix per policy
_MAX_POLICIES = 1000


def hitting_times(
    mdp: MDP, target: int | str | None = None, *, precision: float = 1e-9, max_states: int = 5000
) -> NDArray[np.float64]:
    r"""The smallest expected number of steps to reach a target, over all policies.

    Solves the stochastic shortest path problem ::

        v(target) = 0,   v(s) = 1 + min_a sum_s' p(s'|s,a) v(s')

    by policy iteration from a policy that reaches the target (Bertsekas & Tsitsiklis 1991), over the states and
    actions from which it can be reached with probability 1. Each number is certified to the relative `precision`:
    if P_d v <= v - (1 - e1) for the policy d, its hitting time is at most v/(1 - e1); if P_a v >= v - (1 + e2) for
    every action a, every policy's is at least v/(1 + e2).

    Parameters
    ----------
    mdp : MDP
        The process.
    target : int or str, optional
        A state's index or label; all states by default.
    precision : float
        Relative, in (0, 1).
    max_states : int
        All targets cost S linear systems of size S or more; above this number of states an error is raised.

    Returns
    -------
    ndarray
        (S,) for one target, (S,S) for all of them, [s, target]; 0 on the target itself and inf if no policy reaches
        it with probability 1. Counted in steps: after `from_rates`, multiply by `mdp.units.step_duration` for time.

    Raises
    ------
    PrecisionError
        If rounding does not allow the precision.
    TooLargeError
        For all targets of more than `max_states` states.

    Examples
    --------
    >>> mdp = MDP([[[0.5, 0.5]], [[0.25, 0.75]]], [[0.0], [0.0]])
    >>> hitting_times(mdp)
    array([[0., 2.],
           [4., 0.]])
    """
    _check(mdp, precision)
    work = _ShortestPaths(mdp)
    if target is not None:
        return work.solve(mdp.state_index(target), precision).times
    _refuse_above(mdp, max_states, "hitting_times for all targets")
    times = np.empty((mdp.n_states, mdp.n_states))
    for t in range(mdp.n_states):
        times[:, t] = work.solve(t, precision).times
    return times


def diameter(mdp: MDP, *, precision: float = 1e-9, max_states: int = 5000) -> float:
    r"""The diameter: the largest over pairs s ≠ s' of the smallest expected number of steps from s to s'.

    Jaksch, Ortner & Auer 2010, definition 1. Certified: it is the middle of `diameter_bounds`.

    Parameters
    ----------
    mdp : MDP
        The process.
    precision : float
        Relative, in (0, 1).
    max_states : int
        Above this number of states an error is raised, because each state costs a linear system.

    Returns
    -------
    float
        inf unless the MDP is communicating, 0 for a single state. In steps: after `from_rates`, multiply by
        `mdp.units.step_duration`.

    Raises
    ------
    PrecisionError
        If rounding does not allow the precision.
    TooLargeError
        For more than `max_states` states.

    Examples
    --------
    >>> mdp = MDP([[[0.5, 0.5]], [[0.25, 0.75]]], [[0.0], [0.0]])
    >>> round(diameter(mdp), 6)
    4.0
    """
    low, high = diameter_bounds(mdp, precision=precision, max_states=max_states)
    return low if low == high else low + (high - low) / 2


def diameter_bounds(mdp: MDP, *, precision: float = 1e-9, max_states: int = 5000) -> tuple[float, float]:
    """A certified bracket of the diameter, of relative width at most `precision`.

    See `hitting_times` for equation and certificate. A target is given up as soon as some policy reaches it sooner,
    from everywhere, than the largest time already certified.
    """
    _check(mdp, precision)
    if mdp.n_states == 1:
        return 0.0, 0.0
    if structure(mdp) != "communicating":
        return np.inf, np.inf
    _refuse_above(mdp, max_states, "the diameter")
    work = _ShortestPaths(mdp)
    low = high = 0.0
    for t in range(mdp.n_states):
        found = work.solve(t, precision / 2, enough=low)
        low, high = max(low, found.low), max(high, found.high)
    return low, high


def _check(mdp: MDP, precision: float) -> None:
    require_mdp(mdp)
    if not 0.0 < precision < 1.0:
        raise InvalidArgumentError(
            "precision", precision, "a number in (0, 1): it is relative", problem=f"precision {precision}"
        )


def _refuse_above(mdp: MDP, max_states: int, what: str) -> None:
    if mdp.n_states > max_states:
        raise TooLargeError(
            f"{what} of {mdp.n_states} states needs that many linear systems of that size",
            name="max_states",
            found=mdp.n_states,
            hint=(
                f"raise max_states (now {max_states}) if you can wait, or ask hitting_times(mdp, target) for one target"
            ),
        )


class _Found(NamedTuple):
    times: NDArray[np.float64]
    """(S,), inf if the target is not reached with probability 1."""
    low: float
    """Certified bounds of the largest finite time; only `high` when the target was given up."""
    high: float


class _ShortestPaths:
    """Shortest paths to one target after another, beginning with the last target's policy."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp = mdp
        S, A = mdp.n_states, mdp.n_actions
        self._graph, self._before = Graph(mdp.indptr, mdp.indices, A), predecessors(mdp)
        self._model = sparse_model(mdp)
        self._rows = np.diff(mdp.indptr)
        self._last: NDArray[np.int64] | None = None
        # the usual residual's rounding, relative to sum p|v(s) - v(s')|: the dot product and rows that sum to nearly 1
        self._unit = (2 * int(self._rows.max()) + 8) * UNIT_ROUNDOFF
        self._dense: NDArray[np.float64] | None = None
        if S <= _DENSE_STATES and S * S * A * 8 <= 1 << 28:
            self._dense = mdp.matrix().toarray().reshape(S, A, S)

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused below
    def solve(self, target: int, precision: float, enough: float = -1.0) -> _Found:
        """Policy iteration for `target`; given up once some policy is certified to need at most `enough` steps."""
        mdp = self.mdp
        S = mdp.n_states
        usable = mdp.allowed.reshape(-1).copy()
        actions = np.empty(S, dtype=np.int64)
        last = np.full(S, -1, dtype=np.int64) if self._last is None else self._last
        _proper_policy(self._graph, self._before, target, usable, last, actions)
        inside = actions >= 0  # where the target is reached with probability 1, itself excepted
        v = np.zeros(S)
        e1 = e2 = 0.0
        if inside.any():
            if enough >= 0.0:
                enough *= 1.0 - 4 * UNIT_ROUNDOFF
            for _ in range(_MAX_POLICIES):
                v = self._times_of(actions, inside)
                better = actions.copy()
                e1, e2, changes = _improve(self._model, usable, v, self._unit, precision / 4, better)
                if e1 < 1.0 and v.max() / (1.0 - e1) <= enough:
                    break
                if changes == 0:
                    if not (np.isfinite(v).all() and e1 + e2 <= precision):
                        raise PrecisionError(
                            f"hitting times of state {mdp.state_name(target)}, up to {v.max():.6g} steps: certified to "
                            f"{e1 + e2:.3g}, wanted {precision:g}",
                            name="precision",
                            found=precision,
                            hint="ask for a coarser precision",
                        )
                    break
                actions = better
            else:
                raise NotConvergedError(
                    f"hitting times of state {mdp.state_name(target)}: {_MAX_POLICIES} policies tried without an end"
                )
        largest = float(v.max())
        self._last = actions
        v[~inside] = np.inf
        v[target] = 0.0
        widen = 1.0 + 4 * UNIT_ROUNDOFF
        low = largest / (1.0 + e2) / widen
        if largest / (1.0 - e1) <= enough:
            low = 0.0
        high = largest / (1.0 - e1) * widen
        if not high < np.inf:
            raise PrecisionError(
                f"hitting times of state {mdp.state_name(target)} leave the range of float64",
                name="target",
                found=mdp.state_name(target),
                hint="some state is left too rarely; leave out transitions of tiny probability",
            )
        return _Found(v, low, high)

    def _times_of(self, actions: NDArray[np.int64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The solution of (I - P_d) v = 1 on the states `inside`, 0 elsewhere, after one step of refinement."""
        mdp = self.mdp
        S = mdp.n_states
        ones = inside.astype(np.float64)
        if self._dense is not None:
            M = self._dense[np.arange(S), np.maximum(actions, 0)]
            np.negative(M, out=M)
            M[~inside] = 0.0
            M[:, ~inside] = 0.0
            M[np.arange(S), np.arange(S)] += 1.0
            factor(M)
            v: NDArray[np.float64] = substitute(M, ones)
            rest = _remainder(self._model, actions, v)
            v = v + substitute(M, rest)
        else:
            played = np.where(inside, actions, mdp.allowed.argmax(axis=1))
            P, _ = chain_of(mdp, played)
            where = np.flatnonzero(inside)
            block = sp.csr_array(P[where][:, where])
            solver = Linear(sp.csr_array(sp.eye_array(where.size, format="csr") - block))
            v = np.zeros(S)
            v[where] = solver.solve(np.ones(where.size))
            rest = _remainder(self._model, actions, v)
            v[where] += solver.solve(rest[where])
        v[~inside] = 0.0
        np.maximum(v, 0.0, out=v)
        return v


@kernel
def _proper_policy(
    graph: Graph,
    before: PredecessorLists,
    target: int,
    usable: NDArray[np.bool_],
    last: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> None:
    """A policy that reaches `target` with probability 1 wherever one exists; -1 elsewhere and on the target.

    Backward search from the target; states not found lose, and with them every pair that can move to them (also
    cleared from `usable`); repeated until nothing is lost. Where following `last` alone reaches the target with
    probability 1 it is kept; elsewhere a state takes a pair that may move closer in the search.
    """
    n_actions = graph.n_actions
    lost = np.zeros(actions.size, dtype=np.bool_)
    for own in range(target * n_actions, (target + 1) * n_actions):
        usable[own] = False
    while True:
        found = _search_back(before, n_actions, target, usable, actions)
        losses = 0
        for t in range(actions.size):
            if not found[t] and not lost[t]:
                lost[t] = True
                losses += 1
                for j in range(before.pointers[t], before.pointers[t + 1]):
                    usable[np.int64(before.pairs[j])] = False
        if losses == 0:
            break
    _keep_where_it_leads(graph, before, target, usable, last, actions)


@kernel
def _search_back(
    before: PredecessorLists, n_actions: int, target: int, usable: NDArray[np.bool_], actions: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The states from which usable pairs lead to `target`; their actions are the pairs by which they were found."""
    found = np.zeros(actions.size, dtype=np.bool_)
    queue = np.empty(actions.size, dtype=np.int64)
    actions[:] = -1
    found[target] = True
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        x = queue[head]
        head += 1
        for j in range(before.pointers[x], before.pointers[x + 1]):
            k = np.int64(before.pairs[j])
            s = k // n_actions
            if usable[k] and not found[s]:
                found[s] = True
                actions[s] = k - s * n_actions
                queue[tail] = s
                tail += 1
    return found


@kernel
def _keep_where_it_leads(
    graph: Graph,
    before: PredecessorLists,
    target: int,
    usable: NDArray[np.bool_],
    last: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> None:
    """Set actions[s] = last[s] where following `last` alone reaches the target with probability 1."""
    n, n_actions = actions.size, graph.n_actions
    follows = np.zeros(n * n_actions, dtype=np.bool_)  # one usable pair per state
    for i in range(n):
        if last[i] >= 0 and actions[i] >= 0:
            follows[i * n_actions + last[i]] = usable[i * n_actions + last[i]]
    leading = np.empty(n, dtype=np.int64)
    while True:
        found = _search_back(before, n_actions, target, follows, leading)
        losses = 0
        for i in range(n):
            played = i * n_actions + max(last[i], 0)
            if last[i] < 0 or not follows[played]:
                continue
            if found[i]:
                for j in range(graph.indptr[played], graph.indptr[played + 1]):
                    if not found[graph.indices[j]]:
                        found[i] = False
                        break
            if not found[i]:
                follows[played] = False
                losses += 1
        if losses == 0:
            break
    for i in range(n):
        if last[i] >= 0 and follows[i * n_actions + last[i]]:
            actions[i] = last[i]


@kernel
def factor(M: NDArray[np.float64]) -> None:
    """LU in place, without pivoting: I - P_d of a proper policy is an M-matrix, whose elimination is stable as it is.

    Four columns at a time, so that a row is read and written once for four updates. One thread: hundreds of systems of
    this size gain nothing from a threaded LAPACK and lose a hundredfold to it on a busy machine.
    """
    n = M.shape[0]
    tiny = 1e-300
    k = 0
    while k + 4 <= n:
        for p in range(k, k + 4):
            if not M[p, p] > tiny:
                M[p, p] = tiny
            for i in range(p + 1, k + 4):
                f = M[i, p] / M[p, p]
                M[i, p] = f
                for j in range(p + 1, n):
                    M[i, j] -= f * M[p, j]
        d0, d1, d2, d3 = M[k, k], M[k + 1, k + 1], M[k + 2, k + 2], M[k + 3, k + 3]
        row0, row1, row2, row3 = M[k], M[k + 1], M[k + 2], M[k + 3]
        for i in range(k + 4, n):
            row = M[i]
            if row[k] == 0.0 and row[k + 1] == 0.0 and row[k + 2] == 0.0 and row[k + 3] == 0.0:
                continue
            f0 = row[k] / d0
            f1 = (row[k + 1] - f0 * row0[k + 1]) / d1
            f2 = (row[k + 2] - f0 * row0[k + 2] - f1 * row1[k + 2]) / d2
            f3 = (row[k + 3] - f0 * row0[k + 3] - f1 * row1[k + 3] - f2 * row2[k + 3]) / d3
            row[k], row[k + 1], row[k + 2], row[k + 3] = f0, f1, f2, f3
            for j in range(k + 4, n):
                row[j] -= f0 * row0[j] + f1 * row1[j] + f2 * row2[j] + f3 * row3[j]
        k += 4
    for p in range(k, n):
        if not M[p, p] > tiny:
            M[p, p] = tiny
        for i in range(p + 1, n):
            f = M[i, p] / M[p, p]
            M[i, p] = f
            for j in range(p + 1, n):
                M[i, j] -= f * M[p, j]


@kernel
def substitute(lu: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x with L U x = b, both factors in one array."""
    n = b.size
    x = b.copy()
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= lu[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= lu[i, j] * x[j]
        x[i] = total / lu[i, i]
    return x


@kernel
def _remainder(model: SparseModel, actions: NDArray[np.int64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - (v - P_d v) where a policy is defined, from differences so that large times cancel exactly."""
    n_actions = np.int64(model.n_actions)
    out = np.zeros(v.size)
    for s in range(v.size):
        if actions[s] >= 0:
            drop, _ = _drop(model, v, s, s * n_actions + actions[s])
            out[s] = 1.0 - drop
    return out


@inlined
def _drop(model: SparseModel, v: NDArray[np.float64], s: int, k: int) -> tuple[float, float]:
    """v(s) - p(·|s,a)·v of pair k of state s, and the sum of the absolute values of its terms."""
    drop, size = 0.0, 0.0
    for j in range(model.indptr[k], model.indptr[k + 1]):
        move = model.probabilities[j] * (v[s] - v[model.indices[j]])
        drop += move
        size += abs(move)
    return drop, size


@kernel
def _improve(
    model: SparseModel,
    usable: NDArray[np.bool_],
    v: NDArray[np.float64],
    unit: float,
    tolerance: float,
    actions: NDArray[np.int64],
) -> tuple[float, float, int]:
    """The certificate (e1, e2) of v for `actions`, rounding included, then the better actions; how many changed.

    The drop v(s) - p(·|s,a)·v is 1 for the policy's own action and at most 1 for every other when v is optimal; an
    action with a drop larger by more than rounding and `tolerance` replaces it.
    """
    n_actions = np.int64(model.n_actions)
    e1, e2, changes = 0.0, 0.0, 0
    for s in range(v.size):
        if actions[s] < 0:
            continue
        own = s * n_actions + actions[s]
        best, best_drop, best_slack = own, -np.inf, 0.0
        own_drop, own_slack = 0.0, 0.0
        for k in range(s * n_actions, (s + 1) * n_actions):
            if not usable[k]:
                continue
            drop, size = _drop(model, v, s, k)
            slack = unit * (size + 1.0)
            e2 = max(e2, drop + slack - 1.0)
            if k == own:
                own_drop, own_slack = drop, slack
            if drop > best_drop:
                best, best_drop, best_slack = k, drop, slack
        e1 = max(e1, 1.0 - own_drop + own_slack)
        if best_drop > own_drop + own_slack + best_slack + tolerance:
            actions[s] = best - s * n_actions
            changes += 1
    return e1, e2, changes
