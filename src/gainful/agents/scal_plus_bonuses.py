"""The bonuses that SCAL+ can be given: the rewards of each, how it plans, and what is proven about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.optimism.bernstein_scal_plus import BernsteinConstants, BernsteinRewards
from gainful.optimism.scal_plus import APPENDIX, AUTHORS, MAIN_TEXT, BonusConstants, BonusRewards
from gainful.optimism.sharp import SharpConstants, SharpRewards
from gainful.planning.bernstein_scopt import BernsteinScOpt
from gainful.planning.scopt_on_counts import FullScOpt

if TYPE_CHECKING:
    from gainful.agents.scal_plus import SCALPlus

Bonus: TypeAlias = Literal["appendix", "main text", "sharp", "bernstein", "authors"]
OptimisticRewards: TypeAlias = BonusRewards | SharpRewards | BernsteinRewards
SHARP_DAMPING = 0.9
"""θ of v ← (1-θ)v + θT_c v if the bonus is not the paper's: periodic MDPs then need no more sweeps than others."""
ORDER = "max{c, r_max}·sqrt(Γ·S·A·T)"


class PaperBonus:
    """One of the paper's two bonuses; the others differ from it."""

    damping: ClassVar[float] = 1.0  # the paper's ScOpt is not damped
    planner: ClassVar[type[FullScOpt]] = FullScOpt
    repairable: ClassVar[bool] = True
    """Whether a plan can be repaired row by row: the bonus of a pair depends on its own counts alone."""
    failures: ClassVar[int] = 1
    """The regret bound holds with probability 1 - failures·δ."""

    def __init__(self, variant: int) -> None:
        self.variant = variant

    def constants(self, agent: SCALPlus) -> BonusConstants:
        """The quantities other than the step and the visits on which the bonus depends."""
        return BonusConstants(
            agent.n_states,
            agent.n_actions,
            agent.delta,
            agent.bonus_scale,
            agent.span,
            agent.reward_range,
            self.variant,
            agent.model_error,
        )

    def rewards(
        self, agent: SCALPlus, visits: NDArray[np.int64], reward_sum: NDArray[np.float64], t: int
    ) -> OptimisticRewards:
        """The rewards that these visits justify at step t."""
        return BonusRewards(visits, reward_sum, agent.allowed.reshape(-1), t, self.constants(agent))

    def theorem(self, agent: SCALPlus) -> tuple[str, str]:
        """The bound and where it is proven."""
        order = agent.order_with_episodes(ORDER, "c")
        bound = f"regret Õ({order}) with probability {1 - self.failures * agent.delta:g}, all T at once"
        return bound, "Qian, Fruit, Pirotta & Lazaric, theorem on SCAL+"

    def reason_void(self, agent: SCALPlus) -> str:
        """Which choice voids the theorem; empty if none does."""
        return "" if agent.bonus_scale == 1.0 else f"bonus_scale is {agent.bonus_scale:g}, the theorem needs 1"


class AuthorsBonus(PaperBonus):
    """The constants of the authors' experiments, for which nothing is proven."""

    def theorem(self, agent: SCALPlus) -> tuple[str, str]:
        """No bound."""
        del agent
        return "none", ""

    def reason_void(self, agent: SCALPlus) -> str:
        """Always."""
        del agent
        return "bonus is 'authors', the constants of the authors' experiments, which are smaller than the theorem's"


class SharpBonus(PaperBonus):
    """Time-uniform deviations at h* alone."""

    damping, failures = SHARP_DAMPING, 3

    def rewards(
        self, agent: SCALPlus, visits: NDArray[np.int64], reward_sum: NDArray[np.float64], t: int
    ) -> OptimisticRewards:
        """The rewards that these visits justify."""
        return SharpRewards(visits, reward_sum, agent.allowed.reshape(-1), t, sharp_constants(agent))

    def theorem(self, agent: SCALPlus) -> tuple[str, str]:
        """The paper's bound, and that every plan is optimistic."""
        return f"{super().theorem(agent)[0]}; {optimistic(agent)}", "proved in docs/kl_scal_plus.md, theorem 11"

    def reason_void(self, agent: SCALPlus) -> str:
        """The scale, the mixture, or a δ that leaves no probability."""
        found = super().reason_void(agent) or mixture_void(agent)
        if not found and self.failures * agent.delta >= 1.0:
            return f"delta is {agent.delta:g}, and the theorem holds with probability 1-3δ"
        return found


class BernsteinBonus(PaperBonus):
    """The variance of the values in place of their range."""

    damping, planner, repairable = SHARP_DAMPING, BernsteinScOpt, False

    def rewards(
        self, agent: SCALPlus, visits: NDArray[np.int64], reward_sum: NDArray[np.float64], t: int
    ) -> OptimisticRewards:
        """The rewards that these visits justify, to which the planner adds the bonus at its values."""
        constants = BernsteinConstants(agent.n_states, agent.delta, agent.bonus_scale, agent.reward_range)
        return BernsteinRewards(visits, reward_sum, agent.allowed.reshape(-1), t, constants)

    def theorem(self, agent: SCALPlus) -> tuple[str, str]:
        """Optimism is proven, the regret bound sketched."""
        bound = f"{optimistic(agent)}; regret Õ(sqrt(r_max·c·Γ·S·A·T) + c·S²·A) sketched only"
        return bound, "sketched in docs/kl_scal_plus.md; no published proof"

    def reason_void(self, agent: SCALPlus) -> str:
        """The scale or the mixture."""
        return super().reason_void(agent) or mixture_void(agent)


def sharp_constants(agent: SCALPlus) -> SharpConstants:
    """The quantities other than what was seen on which the sharp bonus depends."""
    return SharpConstants(
        agent.n_deviations, agent.delta, agent.bonus_scale, agent.span, agent.reward_range, agent.model_error
    )


def optimistic(agent: SCALPlus) -> str:
    """That every plan is, in words."""
    return f"every plan optimistic with probability {1 - agent.delta:g}"


def mixture_void(agent: SCALPlus) -> str:
    """The reason if the agent's mixture is not the one of the proofs of ours."""
    return (
        ""
        if agent.mixture == "copy"
        else f"mixture is {agent.mixture!r}, and the theorem is for the greedy action alone"
    )


BONUSES: dict[str, PaperBonus] = {
    "appendix": PaperBonus(APPENDIX),
    "main text": PaperBonus(MAIN_TEXT),
    "sharp": SharpBonus(APPENDIX),
    "bernstein": BernsteinBonus(APPENDIX),
    "authors": AuthorsBonus(AUTHORS),
}
"""By the name that `SCALPlus(bonus=)` takes."""
