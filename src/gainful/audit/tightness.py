r"""How far the optimistic operator lies above the true one, and how that grows with the support Γ.

Optimism by a bonus needs L̂h* ≥ Lh*, by a set that it contains the true model. How much larger L̂h* is than Lh* = h* + g*
is the cost of optimism. Qian, Fruit, Pirotta & Lazaric (sec. 3, remark on optimism) put it at
Θ̃(max{r_max, c}·sqrt(1/N)) for SCAL+ and at Θ̃(max{r_max, c}·sqrt(Γ/N)) for SCAL: tighter by √Γ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.empirical import EmpiricalRows
from gainful.agents.episodic import EpisodePlan, EpisodeView, EpisodicAgent
from gainful.agents.scal import SCAL
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.statistics import Statistics
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.arguments import real, whole
from gainful.audit.truth import Truth
from gainful.environments.garnet import garnet
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.estimated import estimated_mdp, expected_values
from gainful.planning.inner_maximum import inner_maximum

if TYPE_CHECKING:
    import pandas as pd

MEASURED_AGENTS = ("SCALPlus", "SCAL", "UCRL2B", "UCRL2")
"""The agents whose optimism can be measured."""


def optimism_gap(
    plan: EpisodePlan, statistics: Statistics, bias: NDArray[np.float64], gain: float
) -> NDArray[np.float64]:
    """(S,) L̂h* − h* − g*, L̂ the operator that `plan` was made with; `gain` in the agent's units, rewards from 0.

    L̂h(s) = max_a { r̃(s,a) + max_p̃ p̃·h } over the plan's set, or max_a { r̂(s,a) + p̂·h } for SCAL+, whose plan must
    have been made with an observer (`on_episode`).
    """
    S, A = statistics.n_states, statistics.n_actions
    q = np.empty(S * A)
    if "confidence" in plan.details:
        r = np.ascontiguousarray(plan.details["rewards"])
        rows: EmpiricalRows = plan.details["rows"]
        model = MDP.from_rows(rows.indptr, rows.indices, rows.p, r)
        inner_maximum(model, plan.details["confidence"]).values(bias, r.reshape(-1), q)
    else:
        rewards = plan.details["rewards"]
        expected_values(tuple(estimated_mdp(statistics, rewards)), bias, q)
        q += rewards
    return np.asarray(q.reshape(S, A).max(axis=1) - bias - gain)


# ---------------------------------------------------------------------- families of problems


def fixed_bias(
    n_states: int, n_actions: int, support: int, *, span: float = 0.4, stay: float = 0.0, instance: int = 0
) -> MDP:
    """Garnet's rows with rewards that make h* the same whatever the rows: only Γ differs along the family.

    h*(s) runs over 0, c/(S-1), …, c in an order drawn at random, g* = 1/2, and r(s,a) = g* + h*(s) − p·h* for the first
    action, 0.05 less for every other but not below 0. Every pair stays with probability `stay` and else moves as in
    Garnet. Rewards in [0, 1] set a limit to c: c·(1 − stay) ≤ 1/2 keeps them there.
    """
    base = garnet(n_states, n_actions, support, instance=instance)
    S = base.n_states
    h = np.random.default_rng([instance, 1]).permutation(S) / max(1, S - 1)
    return _with_bias(base.matrix().toarray(), h, span, stay, "fixed-bias")


def even_split(
    n_states: int, n_actions: int, support: int, *, span: float = 1.0, stay: float = 0.0, instance: int = 0
) -> MDP:
    """The worst case for intervals: h* is 0 in half of the states and c in the others.

    Every pair moves to Γ/2 random states of each half, with probability 1/Γ each; the rest is as in `fixed_bias`. With
    entries of width w each, the best row gains c·w·Γ/2: for w = sqrt(14·p(1-p)·b/N), as in SCAL for large N,
    c·sqrt(3.5·(Γ-1)·b/N). Γ is even, and at most S; rewards are in [0, 1] for c·(1 − stay) ≤ 1.
    """
    S, A, G = whole("n_states", n_states, 2), whole("n_actions", n_actions, 1), whole("support", support, 2)
    if S % 2 or G % 2 or G > S:
        raise InvalidArgumentError(
            "support",
            G,
            "two even numbers, the first not larger than the second",
            problem=f"support is {G} and n_states is {S}",
        )
    rng = np.random.default_rng([instance, 2])
    high = rng.permutation(S) < S // 2
    moves = np.zeros((S * A, S))
    for row in moves:
        for half in (np.flatnonzero(high), np.flatnonzero(~high)):
            row[rng.choice(half, size=G // 2, replace=False)] = 1.0 / G
    return _with_bias(moves, high.astype(np.float64), span, stay, "even-split")


def _with_bias(moves: NDArray[Any], shape: NDArray[np.float64], span: float, stay: float, name: str) -> MDP:
    """Rows (S*A, S), made lazy, with the rewards for which h* = span·shape and g* = 1/2."""
    c, m = real("span", span, 0.0, low_open=True), real("stay", stay, 0.0, 1.0)
    pairs, S = moves.shape
    A = pairs // S
    P = (1.0 - m) * moves
    P[np.arange(pairs), np.arange(pairs) // A] += m
    r = 0.5 + c * (np.repeat(shape, A) - P @ shape)
    if r.min() < -1e-12 or r.max() > 1.0 + 1e-12:
        raise InvalidArgumentError(
            "span",
            c,
            "rewards in [0, 1]",
            "lower the span",
            problem=f"span {c:g} needs rewards from {r.min():g} to {r.max():g}",
        )
    r -= 0.05 * (np.arange(pairs) % A > 0)
    return MDP(P.reshape(S, A, S), np.clip(r, 0.0, 1.0).reshape(S, A), name=name)


Family = Callable[[int, int], MDP]
"""(Γ, seed) -> an MDP whose pairs have Γ next states."""


# ---------------------------------------------------------------------- measuring


def evenly_visited(truth: Truth, visits: int, seed: int) -> Statistics:
    """What is known after N visits of every pair: next states drawn from the true rows, rewards by the MDP's law.

    For rewards in [0, 1] that belong to pairs: certain, or 0 or 1 (Bernoulli).
    """
    mdp, rng = truth.mdp, np.random.default_rng([seed, visits])
    if mdp.entry_rewards is not None:
        raise InvalidArgumentError("family", mdp, "r(s,a)", problem="the rewards of a problem depend on the next state")
    low, high = mdp.reward_range
    if low < 0.0 or high > 1.0:
        raise InvalidArgumentError(
            "family", mdp, "[0, 1]", problem=f"the rewards of a problem lie in [{low:g}, {high:g}]"
        )
    ptr, idx, p = truth.rows
    pairs = mdp.n_states * mdp.n_actions
    counts = np.concatenate([rng.multinomial(visits, p[ptr[k] : ptr[k + 1]]) for k in range(pairs)])
    seen = counts > 0
    row = np.repeat(np.arange(pairs), np.diff(ptr))
    N = np.bincount(row, weights=counts, minlength=pairs).astype(np.int64)  # 0 if an action is not allowed
    mean = np.where(N > 0, truth.rewards, 0.0)
    total = N.astype(np.float64) * mean
    squares = total * mean
    if mdp.reward_law == "bernoulli":
        total = rng.binomial(N, np.clip(mean, 0.0, 1.0)).astype(np.float64)
        squares = total
    statistics = Statistics(mdp.n_states, mdp.n_actions)
    statistics.from_arrays(
        {
            "visits": N,
            "reward_sum": total,
            "reward_squares": squares,
            "length": np.bincount(row[seen], minlength=pairs).astype(np.int64),
            "next_state": idx[seen].astype(np.uint32),
            "count": counts[seen].astype(np.int64),
        }
    )
    return statistics


def _ignore(view: EpisodeView) -> None:
    """An observer that does nothing; SCAL+ reports its bonuses only if there is an observer."""


def _agent(name: str, truth: Truth, delta: float) -> EpisodicAgent:
    size = truth.mdp.n_states, truth.mdp.n_actions
    common: dict[str, Any] = {"delta": delta, "allowed": truth.mdp.allowed}
    if name == "SCALPlus":
        return SCALPlus(*size, span=truth.span, replanning="full", **common)
    if name == "SCAL":
        return SCAL(*size, span=truth.span, **common)
    if name == "UCRL2B":
        return UCRL2B(*size, **common)
    if name == "UCRL2":
        return UCRL2(*size, **common)
    raise InvalidArgumentError(
        "agents", name, f"one of {', '.join(MEASURED_AGENTS)}", problem=f"the optimism of '{name}' cannot be measured"
    )


def measured_tightness(
    family: Family,
    supports: Iterable[int],
    visits: Iterable[int],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    agents: Sequence[str] = MEASURED_AGENTS,
    delta: float = 0.05,
) -> pd.DataFrame:
    """Optimism's excess L̂h* − Lh* of each agent after N visits of every pair, over a family of problems.

    Each agent plans once, by its own code and with the theorem's constants, on one and the same statistics, at
    t = total visits + 1, given c = sp(h*) and r_max = 1. One row per problem, number of visits and agent: n_states S,
    support Γ, visits N, seed, agent, span c, mean, largest and least excess over states, and `relative`, the mean over
    max{r_max, c}.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    counts = [whole("visits", n, 1) for n in visits]
    for support in supports:
        for seed in seeds:
            truth = Truth.of(family(whole("support", support, 1), seed))
            for n in counts:
                statistics = evenly_visited(truth, n, seed)
                t = int(statistics.visits.sum()) + 1
                for name in agents:
                    agent = _agent(name, truth, delta)
                    agent.on_episode = _ignore
                    gap = optimism_gap(agent.plan(statistics, t), statistics, truth.bias, truth.gain)
                    mean = float(gap.mean())
                    rows.append(
                        {
                            "n_states": truth.mdp.n_states,
                            "support": support,
                            "visits": n,
                            "seed": seed,
                            "agent": name,
                            "span": truth.span,
                            "mean": mean,
                            "largest": float(gap.max()),
                            "least": float(gap.min()),
                            "relative": mean / max(1.0, truth.span),
                        }
                    )
    return pd.DataFrame(rows)


def fitted_slopes(table: pd.DataFrame, column: str = "relative", against: str = "support") -> pd.DataFrame:
    """For each agent and number of visits, the slope of log(excess) against log Γ by least squares, and its error.

    0 says that the excess does not depend on Γ, 1/2 that it grows like √Γ. `error` is the standard error of the slope.
    `against="n_states"` fits it against log S.

    >>> import pandas as pd
    >>> roots = pd.DataFrame({"agent": "x", "visits": 9, "support": [1, 4, 16], "relative": [2.0, 4.0, 8.0]})
    >>> fitted_slopes(roots)["slope"].round(6).tolist()
    [0.5]
    """
    import pandas as pd

    rows = []
    for (agent, n), part in table.groupby(["agent", "visits"], sort=False):
        x, y = np.log(part[against].to_numpy(float)), np.log(part[column].to_numpy(float))
        if np.unique(x).size < 2:
            values = part[against].unique()
            raise InvalidArgumentError(
                "table", values, problem=f"a slope needs at least two values of {against}, found {values}"
            )
        about = x - x.mean()
        slope = float(about @ y / (about @ about))
        rest = y - y.mean() - slope * about
        error = float(np.sqrt(rest @ rest / max(1, x.size - 2) / (about @ about)))
        rows.append({"agent": agent, "visits": n, "slope": slope, "error": error})
    return pd.DataFrame(rows)
