"""SCAL: Bernstein intervals and a bound on the span of the bias."""

from __future__ import annotations

from typing import Annotated, Any

from numpy.typing import ArrayLike

from gainful._compiled import kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes
from gainful.agents.sets import (
    EntryIntervals,
    SetConstants,
    Sums,
    allow_everything,
    bound_entry,
    capped_reward,
    empty_intervals,
    sums_of,
)
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, real
from gainful.optimism.bernstein import entry_variance, reward_variance
from gainful.optimism.scal import log_term, perturbation, width

ATTRACTIVE = 0
"""s̄, the state on which every row keeps mass η_k."""


@kernel
def scal_sets(
    rows: EmpiricalRows, sums: Sums, t: int, span: float, constants: SetConstants, out: EntryIntervals
) -> float:
    """Bounds of entries and of other next states, and optimistic rewards; returns η_k.

    If the lower bounds leave less than η_k for s̄ (narrow sets, a small c), they are shrunk by a common factor
    until they do not.
    """
    rows, sums, c, out = EmpiricalRows(*rows), Sums(*sums), SetConstants(*constants), EntryIntervals(*out)
    log, eta = log_term(c.n_states, c.n_actions, t, c.delta), perturbation(span, c.reward_max, t)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        if n == 0:
            allow_everything(rows.indptr, k, c.reward_max, out)
            continue
        out.unseen[k] = min(1.0, width(0.0, log, n, 1.0, c.scale))
        others = 0.0
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            bound_entry(rows.p, j, width(entry_variance(rows.p[j]), log, n, 1.0, c.scale), out)
            if rows.indices[j] != ATTRACTIVE:
                others += out.lower[j]
        if others > 1.0 - eta:
            for j in range(rows.indptr[k], rows.indptr[k + 1]):
                if rows.indices[j] != ATTRACTIVE:
                    out.lower[j] *= (1.0 - eta) / others
        spread = reward_variance(sums.rewards[k], sums.squares[k], n)
        out.rewards[k] = capped_reward(sums, k, width(spread, log, n, c.reward_max, c.scale), c.reward_max)
    return eta


class SCAL(ExtendedAgent):
    r"""SCAL (Fruit, Pirotta, Lazaric & Ortner 2018): Bernstein intervals under a bound on the span of the bias.

    r and each p(s') lie within sqrt(14σ̂²b/N⁺) + (49/3)·range·b/max{1,N-1} of the estimate, b = ln(2SAt_k/δ). Rows
    keep p(s̄) ≥ η_k = r_max/(c·t_k), s̄ = state 0; planning is extended value iteration cut to span c (ScOpt on the
    extended MDP), to precision r_max/√t_k. Where the constraint cuts, the greedy action is mixed with its own copy of
    reward 0, so that the policy executed is deterministic. With probability 1-δ the regret is
    Õ(max{r_max, min{r_max·D, c}}·sqrt(ΓSAT)) if c ≥ sp(h*), D the diameter, possibly infinite. The perturbation lowers
    the optimistic gain by at most c·η_k = r_max/t_k.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    span : float
        c, an upper bound on the span of the optimal bias; above 0.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies every radius and width. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.SCAL(n_states=2, n_actions=2, span=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        span: float,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        width_scale: float = 1.0,
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
    ) -> None:
        super().__init__(
            n_states,
            n_actions,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            width_scale=width_scale,
            episodes=episodes,
        )
        self.span = real("span", span, 0.0, low_open=True)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "span": self.span}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        order = self.order_with_episodes("max{r_max, min{r_max·D, c}}·sqrt(Γ·S·A·T)", "c")
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - self.delta:g}",
            assumptions=(f"the optimal bias has span at most c = {self.span:g}", "the MDP is weakly communicating"),
            source=self.source_with_episodes("Fruit, Pirotta, Lazaric & Ortner 2018, theorem on SCAL"),
            reason_void=self.scaled,
            span=self.span,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Span-constrained extended value iteration over the perturbed intervals, to precision r_max/√t."""
        rows = empirical_rows(statistics, self.allowed)
        found = empty_intervals(statistics.visits.size, rows.p.size)
        eta = scal_sets(tuple(rows), sums_of(statistics), t, self.span, self.set_constants, tuple(found))
        models = self.interval_models(rows, found, floor_state=ATTRACTIVE, floor=float(eta))
        return self.plan_over(models, t, span=self.span)
