"""C-KL-SCAL+: KL-SCAL+ on the cells of a partition of a continuous state space."""

from __future__ import annotations

import math
from typing import Annotated, Any

from numpy.typing import ArrayLike

from gainful.agents.guarantee import Guarantee
from gainful.agents.kl_scal_plus import Episodes, KLSCALPlus, RewardBound
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.smoothness import Smoothness, checked_partition
from gainful.arguments import AddedLater
from gainful.optimism.c_scal_plus import regret_exponent
from gainful.optimism.kl_scal_plus import cell_error
from gainful.partition import Partition


class KLSCALPlusOnCells(KLSCALPlus):
    """KL-SCAL+ with the deviation level for cells, in which the optimal action may vary: over all K·A pairs."""

    @property
    def log_union(self) -> float:
        """ln(1/δ'), δ' = δ/(2KA): for r and h* at every pair of a cell and an action."""
        return math.log(2 * self.n_states * self.n_actions) - math.log(self.delta)


class CKLSCALPlus(PartitionedAgent):
    r"""C-KL-SCAL+: KL-SCAL+ on the cells of a continuous state space.

    KL-SCAL+ runs on the K cells of a partition with ι_n = ln(2KA/δ) + ½ ln n + ln 2, n the visits of a cell and an
    action, and b = (r_max + c/2)·L·w^α added to Lv, w the longest side of a cell: states of one cell differ by at most
    that much. b is one constant, so neither the plan nor the actions depend on L or α; only the gain moves by b.

    With c ≥ sp(h*) the regret is, with probability 1-3δ, at most that of docs/kl_scal_plus.md, theorem 13, for all T at
    once: Õ(T^{(α+2)/(2α+2)}) for d = 1 and Õ(T^{(2d+α)/(2d+2α)}) in d dimensions, if K is chosen for T. Without c
    every plan is optimistic up to b, but nothing bounds the span of its values, and no bound on the regret is known.

    Parameters
    ----------
    partition : Partition
        The cells.
    n_actions : int
        The number of actions A.
    span : float, optional
        A bound c on the span of the optimal bias, sp(h*) ≤ c, in the units of the rewards.
    lipschitz, holder : float, optional
        L > 0 and α in (0, 1] with |r(x,a) - r(y,a)| ≤ r_max·L·‖x-y‖^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L·‖x-y‖^α, in the
        sup-norm and with the box scaled to [0, 1]^d. Without them the agent does the same, but its gain lacks b, and
        its guarantee cannot be stated.
    reward_max, reward_min : float
        The range of the rewards.
    delta : float
        The probability with which each of three events may fail.
    seed : int
        The seed of the agent's own randomness, which it does not use.
    allowed : array_like, optional
        (cells, A) the actions each cell has.
    episodes, width_scale, reward_bound
        As for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=20), n_actions=3, span=2.0, lipschitz=1.0, holder=1.0)
    >>> action = agent.act(0.31)
    >>> agent.observe(0.31, action, 0.5, 0.33)
    >>> agent.model_error  # (1 + 2/2)·1/20
    0.1
    """

    core: KLSCALPlusOnCells

    def __init__(
        self,
        partition: Partition | dict[str, Any],
        n_actions: int,
        *,
        span: float | None = None,
        lipschitz: float | None = None,
        holder: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Episodes = "doubling",
        width_scale: float = 1.0,
        reward_bound: Annotated[RewardBound, AddedLater("mean")] = "mean",
    ) -> None:
        self.smoothness = Smoothness(lipschitz, holder)
        self.partition = checked_partition(partition)
        self.core = KLSCALPlusOnCells(
            self.partition.n_cells,
            n_actions,
            span=span,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            episodes=episodes,
            width_scale=width_scale,
            reward_bound=reward_bound,
        )
        if self.smoothness.constants is not None and self.span is not None:
            L, alpha = self.smoothness.constants
            width = 1.0 / min(self.partition.bins)
            self.core.model_error = cell_error(self.span, self.reward_range, L, alpha, width)

    @property
    def span(self) -> float | None:
        """The bound c on sp(h*); None if there is none."""
        return self.core.span

    @property
    def lipschitz(self) -> float | None:
        """The Hölder constant L; None if it is unknown."""
        return self.smoothness.lipschitz

    @property
    def holder(self) -> float | None:
        """The Hölder exponent α; None if it is unknown."""
        return self.smoothness.holder

    @property
    def model_error(self) -> float:
        """The term b = (r_max + c/2)·L·w^α in the gain; 0 if L, α or c is unknown."""
        return self.core.model_error

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        kept = {**super().settings(), "lipschitz": self.lipschitz, "holder": self.holder}
        del kept["unreachable"]
        return kept

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed or are unknown."""
        alpha, d, chance = self.holder or 1.0, self.dim, 1.0 - 3.0 * self.delta
        power = "(α+2)/(2α+2)" if d == 1 else "(2d+α)/(2d+2α)"
        rate = f"Õ(T^({power})) = Õ(T^{regret_exponent(alpha, d):.4g})"
        episodes = " + c·S·A·sqrt(T)" if self.core.episode_rule == "vanishing-sqrt" else ""
        constants = "" if self.lipschitz is None else f" with L = {self.lipschitz:g}, α = {alpha:g}"
        span = "c" if self.span is None else f"c = {self.span:g}"
        return Guarantee(
            bound=f"regret Õ(max{{c, r_max}}·(S·sqrt(A·T) + L·n^(-α)·T){episodes}), S = {self.n_states} cells, "
            f"n = {min(self.partition.bins)} per axis, with probability {chance:g}, all T at once; "
            f"{rate} where n is the theorem's for T",
            assumptions=(
                f"the optimal bias has span at most {span}",
                f"rewards and transitions are Hölder{constants} on the box scaled to [0, 1]^{d}",
            ),
            source=f"proved in docs/kl_scal_plus.md, theorem 13{self.core.lemma_of_rewards}",
            reason_void=self._reason_void(),
            span=self.span,
            smoothness=self.smoothness.constants,
        )

    def _reason_void(self) -> str:
        if self.core.guarantee.reason_void:
            return self.core.guarantee.reason_void
        if self.partition.outside == "clip":
            return "outside is 'clip': the end cells hold states farther apart than their sides"
        if self.span is None:
            gap = "(r_max + sp(h*)/2)·L·w^α"
            return f"span not given: plans are optimistic up to {gap}, but no bound on the regret is known"
        if self.smoothness.constants is None:
            missing = " and ".join(n for n in ("lipschitz", "holder") if getattr(self, n) is None)
            return f"{missing} not given: the agent does the same with them, but without them no bound can be stated"
        return ""
