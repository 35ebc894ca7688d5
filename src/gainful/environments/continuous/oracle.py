"""The optimal gain of a continuous environment with a known law, with an error bar; regret is measured against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gainful.arguments import whole
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import REST, WORK, MixtureLaw
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.partition import Partition
from gainful.planning.plan import Plan
from gainful.planning.solve import solve

Array = NDArray[np.float64]

DEFAULT_BINS = {1: 600, 2: 160}
"""Intervals per axis of the coarser grid, by dimension; this takes less than ten seconds."""
COARSEST = 40
"""Intervals of the first grid; each solution is the starting point for a grid with twice as many."""
_TAIL = 1e-16


@dataclass(frozen=True, eq=False, repr=False)
class OracleGain:
    """The optimal gain of a continuous environment, in its units of reward.

    Attributes
    ----------
    gain : float
        The optimal gain.
    bounds : tuple of float, or None
        A proven bracket on the gain (d = 1, and mixtures).
    error : float
        By how much the gain changed from half as many intervals to `bins`: an estimate of the remaining error.
    span : float
        The span of the bias on the grid.
    bins : int
        Intervals per axis.
    method : str
        How it was computed.
    partition : Partition
        Cells of the unit cube.
    actions : ndarray of int
        One action per cell: a near-optimal policy.

    Examples
    --------
    >>> from gainful.environments.continuous.replacement import replacement
    >>> found = oracle_gain(replacement(), bins=50)
    >>> found.certified, found.action(0.1), found.action(0.9)
    (True, 0, 1)
    """

    gain: float
    bounds: tuple[float, float] | None
    error: float
    span: float
    bins: int
    method: str
    partition: Partition = field(repr=False)
    actions: NDArray[np.int64] = field(repr=False)

    @property
    def certified(self) -> bool:
        """Whether the gain is proven to lie in `bounds`; otherwise `error` is an estimate."""
        return self.bounds is not None

    def action(self, x: float | Array) -> int:
        """The action of the policy at a point.

        Parameters
        ----------
        x : float or ndarray (d,)
            A point of the unit cube.

        Returns
        -------
        int
        """
        return int(self.actions[self.partition.index(x)])

    def __repr__(self) -> str:
        proof = f"in [{self.bounds[0]:.8g}, {self.bounds[1]:.8g}]" if self.bounds else "an estimate"
        return f"OracleGain({self.gain:.8g} ± {self.error:.1e}, {proof}, span={self.span:.5g}, {self.method})"


def oracle_gain(env: ContinuousEnvironment, bins: int | None = None) -> OracleGain:
    r"""Compute the optimal gain by planning with the true law, on grids of `bins` and 2·`bins` intervals per axis.

    **d = 1.** Nodes z_0 = 0 < … < z_N = 1: the uniform grid and the kinks of the model. For v given at the nodes let
    h be its linear interpolation, s = max |h'|, and F_a(x) = r(x,a) + E[h(X') | x, a]. With F the distribution function
    of X', E h(X') = v_N - Σ_j (v_{j+1} - v_j)·(mean of F over [z_j, z_{j+1}]), so E h(X') is a convex combination of v
    whose weights are computed from ∫F, exactly: at the nodes this is a finite MDP, which `solve` solves.

    *Why the gain is certified.* If -∞ < m ≤ max_a F_a(x) - h(x) ≤ M for all x in [0, 1], then m ≤ g* ≤ M: summing
    r(x_t,a_t) ≤ M + h(x_t) - E h(x_{t+1}) over T steps, under any policy, the average reward is at most M + sp(h)/T,
    and the policy that takes the maximising action has at least m - sp(h)/T. Between two nodes F_a is differentiable,
    with derivative of Lipschitz constant κ = R₂ + ½·B₂·osc(h') + B₁·s (`env.curvature`). For laws that move with x
    (x' = clip(x + Z)), (E h(x+Z))' = E h'(x+Z), and h' being bounded its difference at x and y is at most ½·osc(h')
    times the ℓ₁ distance of the laws, hence B₂ = L_p; R₂ bounds r'' and B₁ the change of mixing weights. So F_a differs
    from its linear interpolation by at most e = κδ²/8 on an interval of length δ, and as h is linear there,
    M = max over nodes of (max_a F_a - v) + e, and m = min over intervals of the smallest value of
    max_a (interpolated F_a) - h, minus e. Both are evaluated at the solution of `solve`. The error is second order in
    1/bins, where the plain bound (r_max + ½ sp(h))·L·(1/2n)^α of piecewise constant functions is first order with a
    constant of thousands on RiverSwim. The bounds are widened by 1e-9·(1 + sp(h) + max|r|) for rounding.

    **Mixtures.** If the next state has one of two fixed laws (`rough_mixture`, `planar_mixture`), the gain is in closed
    form and certified to rounding, in one dimension and in two; `bins` then only says where to keep the policy.

    **Otherwise, d = 2.** The environment's own grid model is solved (noise by quadrature, next states by bilinear
    interpolation); the answer is an estimate, `error` is its change from `bins` to 2·`bins`, and `bounds` is None.

    Parameters
    ----------
    env : ContinuousEnvironment
        An environment with at most two dimensions whose law is known.
    bins : int, optional
        Intervals per axis of the coarser grid, at least 4; by default 600 (d = 1) or 160 (d = 2).

    Returns
    -------
    OracleGain

    Raises
    ------
    InvalidArgumentError
        If the law is unknown or there are more than two dimensions.

    Examples
    --------
    >>> from gainful.environments.continuous.replacement import replacement
    >>> found = oracle_gain(replacement(), bins=50)
    >>> found.bounds[0] < 0.536675 < found.bounds[1], found.bounds[1] - found.bounds[0] < 0.002
    (True, True)
    """
    if not env.has_oracle:
        reason = (
            f"it has {env.dim} dimensions, and a grid is feasible for at most 2"
            if env.dim > 2
            else "the law of its steps is unknown"
        )
        raise InvalidArgumentError(
            "env",
            env,
            hint="compare agents with each other instead",
            problem=f"{env.name} has no oracle: {reason}",
        )
    n = DEFAULT_BINS[env.dim] if bins is None else whole("bins", bins, 4)
    if env.mixture is not None:
        return _of_mixture(env.mixture, 2 * n)
    if env.law is not None:
        coarse, fine = (_interval(env, k) for k in (n, 2 * n))
        partition = Partition.uniform(bins=2 * n)
        q = [np.interp(partition.centers[:, 0], fine.nodes, fine.q[:, a]) for a in range(env.n_actions)]
        return OracleGain(
            gain=fine.plan.gain,
            bounds=_bounds(env, fine),
            error=abs(fine.plan.gain - coarse.plan.gain),
            span=fine.plan.span,
            bins=2 * n,
            method=f"linear interpolation, {2 * n} intervals",
            partition=partition,
            actions=np.stack(q, axis=1).argmax(axis=1),
        )
    assert env.grid_model is not None
    plans = [solve(env.grid_model(k), precision=1e-9) for k in (n, 2 * n)]
    partition = Partition.uniform(bins=2 * n, dim=2)
    return OracleGain(
        gain=plans[1].gain,
        bounds=None,
        error=abs(plans[1].gain - plans[0].gain),
        span=plans[1].span,
        bins=2 * n,
        method=f"bilinear interpolation, {2 * n} intervals per axis",
        partition=partition,
        actions=_planar_actions(env, plans[1], 2 * n, partition),
    )


def _of_mixture(law: MixtureLaw, bins: int) -> OracleGain:
    """The closed form, and the best action at the centre of each of `bins` cells per axis."""
    solved = law.solution
    partition = Partition.uniform(bins=bins, dim=law.dim)
    return OracleGain(
        gain=solved.gain,
        bounds=solved.bounds,
        error=(solved.bounds[1] - solved.bounds[0]) / 2.0,
        span=solved.span,
        bins=bins,
        method="closed form",
        partition=partition,
        actions=np.where(law.level(partition.centers) > solved.threshold, WORK, REST),
    )


@dataclass(frozen=True, eq=False, repr=False)
class OracleSolution:
    """The solution of `oracle_gain` on its finer grid for d = 1: h, linear between the nodes, and F_a at the nodes.

    h is only close to the optimal bias, but `bounds` hold for max_a F_a - h on all of [0, 1].
    """

    nodes: Array
    """(N+1,) from 0 to 1, increasing."""
    bias: Array
    """(N+1,) h at the nodes."""
    q: Array
    """(N+1, A) F_a(x) = r(x,a) + E[h(X') | x, a] at the nodes."""
    gain: float
    bounds: tuple[float, float]

    @property
    def span(self) -> float:
        """sp(h)."""
        return float(np.ptp(self.bias))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest h."""
        return float(self.bias.min()), float(self.bias.max())


@lru_cache(maxsize=16)
def oracle_solution(env: ContinuousEnvironment, bins: int | None = None) -> OracleSolution:
    """The bias behind `oracle_gain(env, bins)` for a known law (d = 1); cached."""
    if env.law is None or env.curvature is None:
        raise InvalidArgumentError(
            "env", env, problem=f"the bias of {env.name} cannot be computed: the law of its steps is unknown"
        )
    found = _interval(env, 2 * (DEFAULT_BINS[1] if bins is None else whole("bins", bins, 4)))
    arrays = found.nodes.copy(), found.plan.bias.copy(), found.q.copy()
    for array in arrays:
        array.flags.writeable = False
    return OracleSolution(*arrays, gain=found.plan.gain, bounds=_bounds(env, found))


@dataclass(frozen=True)
class _Solved:
    nodes: Array
    plan: Plan
    q: Array
    """F_a at the nodes, (N+1, A)."""


def _on_nodes(env: ContinuousEnvironment, nodes: Array, guess: _Solved | None) -> _Solved:
    """The finite MDP at the nodes, solved; `guess` is a solution on other nodes to begin from."""
    actions = range(env.n_actions)
    rewards = np.stack([env.rewards(nodes, a) for a in actions], axis=1)
    rows = [interpolation_rows(env, nodes, a) for a in actions]
    start = None if guess is None else np.interp(nodes, guess.nodes, guess.plan.bias)
    plan = solve(MDP(rows, rewards), precision=1e-9 * env.reward_range, start_values=start)
    return _Solved(nodes, plan, np.stack([rewards[:, a] + rows[a] @ plan.bias for a in actions], axis=1))


def _interval(env: ContinuousEnvironment, n: int) -> _Solved:
    """Solved on n intervals, from coarse to fine, then once more with nodes where the best action changes.

    There the bias has a kink, and a linear interpolation across it would be off in first order.
    """
    assert env.curvature is not None
    kinks = np.array([k for k in env.curvature.kinks if 0.0 < k < 1.0])
    found = None
    for level in range(5, -1, -1):
        if level == 0 or n >> level >= COARSEST:
            found = _on_nodes(env, _nodes(max(n >> level, 1), kinks), found)
    assert found is not None
    switches = _switches(found)
    return _on_nodes(env, _nodes(n, np.concatenate([kinks, switches])), found) if switches.size else found


def _nodes(n: int, special: Array) -> Array:
    """k/n and the special points; a grid point closer than a hundredth of an interval to one gives way to it."""
    uniform = np.arange(n + 1) / n
    near = np.array([np.min(np.abs(special - z), initial=np.inf) < 0.01 / n for z in uniform])
    near[[0, n]] = False
    points = np.unique(np.concatenate([uniform[~near], special]))
    return np.asarray(points[np.append(np.diff(points) > 1e-12, True)])


def _switches(solved: _Solved) -> Array:
    """Where the maximising action changes between two nodes: where the lines of the two actions cross."""
    best = solved.q.argmax(axis=1)
    j = np.flatnonzero(best[1:] != best[:-1])
    gap = solved.q[np.arange(best.size), best]  # of the best action over the one that is best at the other end
    left = gap[j] - solved.q[j, best[j + 1]]
    right = gap[j + 1] - solved.q[j + 1, best[j]]
    t = np.divide(left, left + right, out=np.full(j.size, 0.5), where=left + right > 0.0)
    return np.asarray(solved.nodes[j] + t * (solved.nodes[j + 1] - solved.nodes[j]))


def _bounds(env: ContinuousEnvironment, solved: _Solved) -> tuple[float, float]:
    """The proven m and M of `oracle_gain`."""
    c = env.curvature
    assert c is not None
    v, widths = solved.plan.bias, np.diff(solved.nodes)
    slopes = np.diff(v) / widths
    up, down = max(float(slopes.max()), 0.0), min(float(slopes.min()), 0.0)
    kappa = c.reward + 0.5 * c.transition * (up - down) + c.blend * max(up, -down)
    gap = kappa * float(widths.max()) ** 2 / 8.0
    slack = 1e-9 * (1.0 + solved.plan.span + float(np.abs(solved.q - v[:, None]).max()))
    residual = solved.q - v[:, None]
    return float(least_between(residual).min()) - gap - slack, float(residual.max()) + gap + slack


def interpolation_rows(env: ContinuousEnvironment, nodes: Array, action: int) -> sp.csr_array:
    """Row i: the weights w with E[h(X') | nodes[i], action] = w·v for the linear interpolation h of v at `nodes`."""
    assert env.law is not None
    indptr, columns, weights = [0], [], []
    N = nodes.size - 1
    widths = np.diff(nodes)
    for begin in range(0, N + 1, 256):
        x = nodes[begin : begin + 256, None]
        cdf, integral = env.law(x, action, nodes[None, :])
        mean = np.clip(np.diff(integral, axis=1) / widths, 0.0, 1.0)  # of the distribution function, per interval
        w = np.empty((x.shape[0], N + 1))
        w[:, 0], w[:, N] = mean[:, 0], 1.0 - mean[:, -1]
        w[:, 1:N] = np.diff(mean, axis=1)
        # beyond the tails differences of ∫F are rounding; the true weights are below 1e-16
        reached = np.ones_like(w, dtype=bool)
        reached[:, :-1] &= cdf[:, 1:] > _TAIL
        reached[:, 1:] &= cdf[:, :-1] < 1.0 - _TAIL
        w = np.where(reached, np.maximum(w, 0.0), 0.0)
        w /= w.sum(axis=1, keepdims=True)
        for row in w:
            used = np.flatnonzero(row)
            columns.append(used)
            weights.append(row[used])
            indptr.append(indptr[-1] + used.size)
    return sp.csr_array((np.concatenate(weights), np.concatenate(columns), np.array(indptr)), shape=(N + 1, N + 1))


def least_between(residual: Array) -> Array:
    """For each interval the least value of max_a of the lines through residual[j, a] and residual[j+1, a].

    The maximum of lines is convex, so its least value is at an end or where two of them cross.
    """
    left, right = residual[:-1], residual[1:]
    found = np.minimum(left.max(axis=1), right.max(axis=1))
    for a in range(residual.shape[1]):
        for b in range(a):
            start, end = left[:, a] - left[:, b], right[:, a] - right[:, b]
            crossing = start * end < 0.0
            if crossing.any():
                t = (start[crossing] / (start[crossing] - end[crossing]))[:, None]
                value = ((1.0 - t) * left[crossing] + t * right[crossing]).max(axis=1)
                found[crossing] = np.minimum(found[crossing], value)
    return np.asarray(found)


def _planar_actions(env: ContinuousEnvironment, plan: Plan, bins: int, partition: Partition) -> NDArray[np.int64]:
    """The action of the node nearest to the centre of each cell, for a grid model on [0, goal] × [0, 1]."""
    assert plan.actions is not None
    table = plan.actions[: (bins + 1) ** 2].reshape(bins + 1, bins + 1)
    reach = (0.5 - env.low[0]) / (env.high[0] - env.low[0])
    at = np.minimum(partition.centers / np.array([reach, 1.0]), 1.0)
    i, j = np.rint(at * bins).astype(np.int64).T
    return np.asarray(table[i, j])
