"""UCRL3: time-uniform bounds on every transition probability, and supports that leave out what can hardly matter."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from gainful._compiled import inlined, kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent, PlausibleModels
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes
from gainful.agents.sets import EntryIntervals, Sums, allow_everything, capped_reward, empty_intervals, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import choice, flag
from gainful.optimism.bernstein import reward_variance
from gainful.optimism.ucrl3 import (
    AS_PRINTED,
    LOWER_TAIL,
    laplace_term,
    lower_probability,
    peeling_term,
    reward_width,
    upper_probability,
)
from gainful.planning.confidence import NearOptimistic

Tails: TypeAlias = Literal["proven", "printed"]

KAPPA = 10.0
"""κ(s,a) = KAPPA·sp(v)·|supp p̄(s,a)|/max{1, max N}^{2/3}."""


class UCRL3Constants(NamedTuple):
    """What the bounds depend on beside the counts."""

    level: float
    """δ' = δ/((3 + 3S)·S·A)."""
    scale: float
    reward_max: float
    proxy: int
    """g̲: `LOWER_TAIL`, or `AS_PRINTED` in the paper."""
    published_code: bool
    """Whether a next state that always followed has probability at least ½^{1/n}."""


@kernel
def ucrl3_sets(rows: EmpiricalRows, sums: Sums, constants: UCRL3Constants, out: EntryIntervals) -> None:
    """Bounds of every entry of the rows, of the states that a row does not list, and optimistic rewards."""
    rows, sums, c, out = EmpiricalRows(*rows), Sums(*sums), UCRL3Constants(*constants), EntryIntervals(*out)
    for k in range(sums.visits.size):
        if sums.visits[k] == 0:
            allow_everything(rows.indptr, k, c.reward_max, out)
        else:
            write_bounds(rows, sums, c, k, out)


@inlined
def write_bounds(rows: EmpiricalRows, sums: Sums, c: UCRL3Constants, k: int, out: EntryIntervals) -> None:
    """The bounds and the optimistic reward of pair k, which has been visited."""
    n = sums.visits[k]
    peeling, laplace = peeling_term(n, c.level), laplace_term(n, c.level)
    out.unseen[k] = upper_probability(0.0, peeling, laplace, c.scale, c.proxy)
    for j in range(rows.indptr[k], rows.indptr[k + 1]):
        out.lower[j] = lower_probability(rows.p[j], peeling, laplace, c.scale)
        out.upper[j] = upper_probability(rows.p[j], peeling, laplace, c.scale, c.proxy)
        if c.published_code and rows.p[j] == 1.0:
            out.lower[j] = max(out.lower[j], 0.5 ** (1.0 / n))
    spread = reward_variance(sums.rewards[k], sums.squares[k], n) / (c.reward_max * c.reward_max)
    out.rewards[k] = capped_reward(
        sums, k, c.reward_max * reward_width(spread, peeling, laplace, c.scale), c.reward_max
    )


class UCRL3(ExtendedAgent):
    r"""UCRL3 (Bourel, Maillard & Talebi 2020): time-uniform bounds on every entry, near-optimistic supports.

    With δ' = δ/((3+3S)SA), ℓ_n = η·ln(ln(ηn)·ln(η²n)/(ln²(η)·δ')), η = 1.12, and
    β_n = sqrt(2(1+1/n)·ln(sqrt(n+1)/δ')/n), a pair visited n times has |r̃ - r̄| ≤ r_max·min{β_n/2,
    sqrt(2σ̂²ℓ_n/n) + 7ℓ_n/(3n)}, σ̂² the variance of its rewards over r_max², and each p(s') is a q with
    |p̄ - q| ≤ sqrt(2q(1-q)ℓ_n/n) + ℓ_n/(3n) and -β_n·sqrt(g̲(q)) ≤ p̄ - q ≤ β_n·sqrt(g(q)), where
    g(q) = (½-q)/ln(1/q-1) and g̲(q) is q(1-q) for q < ½ and g(q) above.

    Planning is EVI-NOSS: extended value iteration in which a pair moves only to states seen and to as many of the best
    other ones as it takes for the rest to be worth less than κ = 10·sp(v)·|supp p̄|/max N^{2/3}, and less than those
    (`gainful.planning.confidence.NearOptimistic`), to precision r_max/√t_k. With probability 1-4δ the regret is
    Õ(r_max·(sqrt(Σ D_s²·L_sa) + sqrt(SA) + D)·√T) for all T at once, D the diameter, D_s the local ones and L_sa the
    effective supports (`gf.hardness`).

    The choices made where the paper's text, its algorithm and the public code differ are listed in docs/ucrl3.md. The
    paper prints the two cases of g̲ the other way round: such sets miss a true probability of 0.99 at level 2·10⁻⁴ in
    four runs of a hundred.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    tails : {"proven", "printed"}
        Which case of g̲ is which: as it can be proven, or as it is printed, without a guarantee.
    published_code : bool
        Whether a next state that followed all n visits has probability at least ½^{1/n}, as in the public code. No
        inequality covers it, so there is no guarantee; it explores far less.
    width_scale : float
        Multiplies every width. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.UCRL3(n_states=2, n_actions=2).guarantee.holds
    True
    >>> print(gf.UCRL3(2, 2, published_code=True).guarantee)
    no guarantee: published_code: no inequality covers its lower bound of a next state that always followed
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        tails: Tails = "proven",
        published_code: bool = False,
        width_scale: float = 1.0,
        episodes: Episodes = "doubling",
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
        self.tails = choice("tails", tails, ("proven", "printed"))
        self.published_code = flag("published_code", published_code)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "tails": self.tails, "published_code": self.published_code}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        order = self.order_with_episodes("r_max·(sqrt(Σ D_s²·L_sa) + sqrt(S·A) + D)·sqrt(T)", "r_max·D")
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - 4 * self.delta:g}, all T at once",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source=self.source_with_episodes("Bourel, Maillard & Talebi 2020, theorem 1"),
            reason_void=self._reason_void(),
            communicating=True,
        )

    def _reason_void(self) -> str:
        if self.delta >= 0.25:
            return f"delta is {self.delta:g}, and the bound may fail with probability 4·delta"
        if self.tails == "printed":
            return "tails is 'printed': the printed bounds miss probabilities above ½ more often than delta allows"
        if self.published_code:
            return "published_code: no inequality covers its lower bound of a next state that always followed"
        return self.scaled

    @property
    def level(self) -> float:
        """δ' = δ/((3+3S)SA): how often each inequality may fail, for each pair."""
        return self.delta / ((3.0 + 3.0 * self.n_states) * self.n_states * self.n_actions)

    def intervals(self, statistics: Statistics) -> tuple[EmpiricalRows, EntryIntervals]:
        """Compute the empirical rows and the bounds of their entries.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.

        Returns
        -------
        rows : EmpiricalRows
            The empirical rows.
        intervals : EntryIntervals
            The bounds of every entry, and the optimistic reward of every pair.
        """
        rows = empirical_rows(statistics, self.allowed)
        found = empty_intervals(statistics.visits.size, rows.p.size)
        proxy = AS_PRINTED if self.tails == "printed" else LOWER_TAIL
        constants = (self.level, self.width_scale, self.reward_range, proxy, self.published_code)
        ucrl3_sets(tuple(rows), sums_of(statistics), constants, tuple(found))
        return rows, found

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """EVI-NOSS over the bounds, to precision r_max/√t."""
        rows, found = self.intervals(statistics)
        shape = (self.n_states, self.n_actions)
        most = max(1, int(statistics.visits.max()))
        tolerance = KAPPA * statistics.length.reshape(shape) / most ** (2.0 / 3.0)
        sets = NearOptimistic(found.lower, found.upper, found.unseen.reshape(shape), tolerance=tolerance)
        return self.plan_over(PlausibleModels(rows, sets, found.rewards, found.unseen >= 1.0), t)
