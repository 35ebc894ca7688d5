"""UCCRL on a partition, in the variant that can be implemented."""

from __future__ import annotations

from typing import Annotated, Any

from numpy.typing import ArrayLike

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import SmoothAgent
from gainful.agents.planning_agent import Episodes
from gainful.agents.sets import SIMPLEX, Balls, SetConstants, Sums, capped_reward, empty_balls, sums_of
from gainful.agents.smoothness import Ends, Smoothness, box_to_cut, checked_horizon, checked_partition
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, real
from gainful.errors import InvalidArgumentError
from gainful.optimism.c_scal_plus import regret_exponent
from gainful.optimism.uccrl import cell_widening, reward_log, reward_width, transition_log, transition_radius
from gainful.partition import Outside, Partition

UNPROVEN = (
    "the published algorithm cannot be implemented, and for this variant of it, which Qian, Fruit, Pirotta & Lazaric "
    "(sec. 4) name, no proof is published"
)


@kernel
def widened_sets(sums: Sums, t: int, widening: float, constants: SetConstants, out: Balls) -> None:
    """The ℓ₁ radius and the optimistic reward of every pair."""
    sums, c, out = Sums(*sums), SetConstants(*constants), Balls(*out)
    of_rewards, of_rows = reward_log(c.n_states, c.n_actions, t, c.delta), transition_log(c.n_actions, t, c.delta)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        if n == 0:
            out.radius[k], out.rewards[k] = SIMPLEX, c.reward_max
            continue
        out.radius[k] = min(SIMPLEX, transition_radius(c.n_states, of_rows, n, widening, c.scale))
        width = reward_width(of_rewards, n, c.reward_max, widening, c.scale)
        out.rewards[k] = capped_reward(sums, k, width, c.reward_max)


class TabularUCCRL(ExtendedAgent):
    """The tabular part: ℓ₁ balls widened by `widening` = L·n^{-α}, and a bound `span` on the optimistic bias."""

    def __init__(self, n_states: int, n_actions: int, *, span: float, widening: float, **options: Any) -> None:
        super().__init__(n_states, n_actions, **options)
        self.span, self.widening = real("span", span, 0.0), float(widening)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "span": self.span, "widening": self.widening}

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Span-constrained extended value iteration over the widened balls, to precision r_max/√t."""
        balls = empty_balls(statistics.visits.size)
        widened_sets(sums_of(statistics), t, self.widening, self.set_constants, tuple(balls))
        return self.plan_over(self.l1_models(statistics, balls), t, span=self.span)


class UCCRL(SmoothAgent):
    r"""UCCRL (Ortner & Ryabko 2012) with SCAL's planner: ℓ₁ balls on the cells of a continuous state space.

    On n cells, N the visits of (cell, action): ‖p̃ - p̄‖₁ ≤ sqrt(56·n·ln(2At_k/δ)/N⁺) + L·m^{-α} and
    |r̃ - r̄| ≤ r_max·(sqrt(7·ln(2nAt_k/δ)/(2N⁺)) + L·m^{-α}), m the cells per axis (the coarsest axis, if they differ).

    **How it differs from the paper.** The published algorithm takes the best of all plausible MDPs whose optimal bias
    has span at most c, a problem for which no method is known. Qian, Fruit, Pirotta & Lazaric (sec. 4) suggest
    SCAL's planner: here extended value iteration on the cells is cut to span c (ScOpt on the extended MDP), to
    precision r_max/√t_k, with SCAL's copies of reward 0, so that the policy executed is deterministic. SCAL's
    perturbation is left out: ℓ₁ balls of positive radius reach every cell already. No proof is published for the
    variant: `guarantee` is void.

    A radius of 2 is every law: until N > 14·n·ln(2At/δ) the agent ignores what it sees (`vacuous`).

    Parameters
    ----------
    n_actions : int
        The number of actions A.
    span : float
        A bound c on the span of the optimal bias, in the units of the rewards; at least 0.
    partition : Partition, optional
        The cells. Without one the agent cuts the box described by `dim`, `low`, `high`, `box` and `outside` into
        ⌈((α/d)·L·sqrt(T/A))^{1/(d+α)}⌉ intervals per axis.
    lipschitz, holder : float, optional
        The Hölder constants L > 0 and α in (0, 1], as for `CSCALPlus`. Without them the balls are not widened.
    reward_max, reward_min : float
        Every reward lies between them.
    delta : float
        δ, the probability with which the bound may fail.
    seed : int
        The seed of the agent's own randomness.
    allowed : array_like of bool, shape (cells, A), optional
        The actions that each cell has; all by default.
    width_scale : float
        Multiplies the statistical widths but not the widening.
    horizon : float, optional
        The number of steps T for which to choose the number of cells; needed if there is no partition.
    dim, low, high, box, outside
        The box to cut: [low, high] in `dim` dimensions, by default [0, 1]^dim, or a Gymnasium `box`; see
        `Partition.from_box`.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> cells = gf.Partition.uniform(bins=5)
    >>> agent = gf.UCCRL(partition=cells, n_actions=2, span=1.0, lipschitz=1.0, holder=1.0)
    >>> agent.observe(0.31, agent.act(0.31), 0.5, 0.33)
    """

    core: TabularUCCRL

    def __init__(
        self,
        *,
        n_actions: int,
        span: float,
        partition: Partition | dict[str, Any] | None = None,
        lipschitz: float | None = None,
        holder: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        width_scale: float = 1.0,
        horizon: float | None = None,
        dim: int | None = None,
        low: Ends = None,
        high: Ends = None,
        box: Any = None,
        outside: Outside | None = None,
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
    ) -> None:
        self.smoothness, self.horizon = Smoothness(lipschitz, holder), checked_horizon(horizon)
        options: dict[str, Any] = {
            "n_actions": n_actions,
            "span": span,
            "reward_max": reward_max,
            "reward_min": reward_min,
            "delta": delta,
            "seed": seed,
            "width_scale": width_scale,
            "episodes": episodes,
        }
        TabularUCCRL(1, widening=0.0, **options)  # its errors come before those of the cells
        if partition is not None:
            self.partition = checked_partition(partition, dim=dim, low=low, high=high, box=box, outside=outside)
        elif self.horizon is None:
            raise InvalidArgumentError(
                "partition",
                None,
                hint="give a partition, or the horizon for which to choose the number of cells",
                problem="neither a partition nor a horizon is given",
            )
        else:
            self.space = box_to_cut(dim, low, high, box, outside)
            self.partition = self.space.with_bins(self.smoothness.bins(self.horizon, n_actions, self.space.dim))
        widening = 0.0
        if self.smoothness.constants is not None:
            widening = cell_widening(*self.smoothness.constants, min(self.partition.bins))
        self.core = TabularUCCRL(self.partition.n_cells, widening=widening, allowed=allowed, **options)

    @property
    def span(self) -> float:
        """The bound c on sp(h*)."""
        return self.core.span

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        kept = super().settings()
        del kept["widening"]
        return kept

    @property
    def guarantee(self) -> Guarantee:
        """The theorem of the published algorithm, which has not been proven for this variant."""
        alpha, d = self.holder or 1.0, self.dim
        return Guarantee(
            bound=f"regret Õ(c·(n·sqrt(A·T) + L·m^(-α)·T)), n = {self.n_states} cells, "
            f"m = {min(self.partition.bins)} per axis, with probability {1 - self.delta:g}; "
            f"Õ(T^{regret_exponent(alpha, d):.4g}) where m is chosen for T",
            assumptions=self.assumptions(),
            source="Ortner & Ryabko 2012, for the published algorithm",
            reason_void=self.core.scaled or self.smoothness.reason_void or UNPROVEN,
        )
