"""UCRL2B: UCRL2 with empirical-Bernstein intervals around every transition probability."""

from __future__ import annotations

from gainful._compiled import inlined, kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
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
from gainful.optimism.bernstein import entry_variance, log_term, reward_variance, width


@kernel
def bernstein_sets(rows: EmpiricalRows, sums: Sums, constants: SetConstants, out: EntryIntervals) -> None:
    """Bounds of every entry of the rows, of the states that a row does not list, and optimistic rewards."""
    rows, sums, c, out = EmpiricalRows(*rows), Sums(*sums), SetConstants(*constants), EntryIntervals(*out)
    for k in range(sums.visits.size):
        write_intervals(rows, sums, c, k, out)


@inlined
def write_intervals(rows: EmpiricalRows, sums: Sums, c: SetConstants, k: int, out: EntryIntervals) -> None:
    """The intervals and the optimistic reward of pair k."""
    n = sums.visits[k]
    if n == 0:
        allow_everything(rows.indptr, k, c.reward_max, out)
    else:
        log = log_term(c.n_states, c.n_actions, n, c.delta)
        out.unseen[k] = min(1.0, width(0.0, log, n, 1.0, c.scale))
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            bound_entry(rows.p, j, width(entry_variance(rows.p[j]), log, n, 1.0, c.scale), out)
        spread = reward_variance(sums.rewards[k], sums.squares[k], n)
        out.rewards[k] = capped_reward(sums, k, width(spread, log, n, c.reward_max, c.scale), c.reward_max)


class UCRL2B(ExtendedAgent):
    r"""UCRL2B (Fruit, Pirotta & Lazaric 2020): per-entry Bernstein intervals, extended value iteration.

    r and each p(s') lie within 2·sqrt(σ̂²ℓ/N⁺) + 6·range·ℓ/N⁺ of the estimate, ℓ = ln(6SAN⁺/δ), N⁺ = max{1,N}, σ̂² the
    empirical variance. With probability 1-δ the regret is Õ(r_max·sqrt(D·Γ·S·A·T)) in an MDP of diameter D.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies every radius and width. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.UCRL2B(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        order = self.order_with_episodes("r_max·sqrt(D·Γ·S·A·T)", "r_max·D")
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - self.delta:g}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source=self.source_with_episodes("Fruit, Pirotta & Lazaric 2020, theorem on UCRL2B"),
            reason_void=self.scaled,
            communicating=True,
        )

    def intervals(self, statistics: Statistics, filler: int = 0) -> tuple[EmpiricalRows, EntryIntervals]:
        """Compute the empirical rows and the Bernstein intervals around them.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.
        filler : int
            The state to which the rows of pairs never visited lead.

        Returns
        -------
        rows : EmpiricalRows
            The empirical rows.
        intervals : EntryIntervals
            The bounds of every entry, and the optimistic reward of every pair.
        """
        rows = empirical_rows(statistics, self.allowed, filler)
        found = empty_intervals(statistics.visits.size, rows.p.size)
        bernstein_sets(tuple(rows), sums_of(statistics), self.set_constants, tuple(found))
        return rows, found

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the intervals, to precision r_max/√t."""
        return self.plan_over(self.interval_models(*self.intervals(statistics)), t)
