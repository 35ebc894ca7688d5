"""SCAL+: an exploration bonus and a span constraint (Qian, Fruit, Pirotta & Lazaric, sec. 3)."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.optimism.scal_plus import APPENDIX, MAIN_TEXT, bonus, confidence_log, deviation
from gainful.planning.scopt_on_counts import scopt_on_counts

Bonus: TypeAlias = Literal["appendix", "main text"]
BATCH_WORK = 20_000_000  # transitions read between two returns to Python, so that Ctrl-C is heard


@kernel
def optimistic_rewards(
    visits: NDArray[Any], reward_sum: NDArray[Any], n_states: int, n_actions: int, t: int, delta: float, scale: float,
    span: float, reward_max: float, variant: int, bonuses: NDArray[Any], r: NDArray[Any],
) -> None:  # fmt: skip
    """r̂ = r̄ + b for every pair, r̄ = 0 where N = 0."""
    log_term = confidence_log(n_states, n_actions, t, delta)
    for k in range(visits.size):
        b = bonus(variant, deviation(log_term, visits[k], scale), visits[k], span, reward_max)
        bonuses[k] = b
        r[k] = reward_sum[k] / max(1, visits[k]) + b


class SCALPlus(EpisodicAgent):
    r"""SCAL+ for S states and A actions, told a bound c = `span` on the span of the optimal bias.

    At the beginning of episode k it plans by ScOpt(c), to precision ε_k = r_max/√t_k, on the MDP with
    p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄})/(N(s,a) + 1), s̄ = state 0, and rewards r̄ + b_k, where with
    β = sqrt(7 ln(2SAt_k/δ)/max{1,N}) the bonus is c·min{β + 1/(N+1), 2} + r_max·min{β, 1} (`bonus="appendix"`) or
    (c + r_max)·β + c/(N+1) ("main text"). Where the span constraint cuts, the greedy action is mixed with its
    own copy of reward 0, so that the policy executed is deterministic.
    With probability 1-δ the regret is Õ(max{c, r_max}·sqrt(ΓSAT)) if c ≥ sp(h*), with `bonus_scale` 1: it multiplies
    β, and anything else comes with no guarantee.

    >>> agent = SCALPlus(n_states=2, n_actions=2, span=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self, n_states: int, n_actions: int, *, span: float, reward_max: float = 1.0, reward_min: float = 0.0,
        delta: float = 0.05, seed: int = 0, allowed: ArrayLike | None = None, bonus: Bonus = "appendix",
        bonus_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        if not (math.isfinite(span) and span >= 0.0):
            raise InvalidArgumentError(f"span is {span}, expected a finite number of at least 0")
        if bonus not in ("appendix", "main text"):
            raise InvalidArgumentError(f"bonus is {bonus!r}, expected 'appendix' or 'main text'")
        if not (math.isfinite(bonus_scale) and bonus_scale > 0.0):
            raise InvalidArgumentError(f"bonus_scale is {bonus_scale}, expected a positive number; 1 is the theorem's")
        self.span, self.bonus, self.bonus_scale = float(span), bonus, float(bonus_scale)
        self._values = np.zeros(self.n_states)  # the last plan's v: a warm start

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        return {**super().settings(), "span": self.span, "bonus": self.bonus, "bonus_scale": self.bonus_scale}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The warm start."""
        return {"values": self._values}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back the warm start."""
        if arrays["values"].shape != (self.n_states,):
            raise ValueError(f"array 'values' has shape {arrays['values'].shape}")
        self._values = arrays["values"]

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        scaled = f"bonus_scale is {self.bonus_scale:g}, the theorem needs 1" if self.bonus_scale != 1.0 else ""
        return Guarantee(
            bound=f"regret Õ(max{{c, r_max}}·sqrt(Γ·S·A·T)) with probability {1 - self.delta:g}, all T at once",
            assumptions=(f"the optimal bias has span at most c = {self.span:g}",),
            source="Qian, Fruit, Pirotta & Lazaric, theorem on SCAL+",
            reason_void=scaled,
        )

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data: every pair's bonus was so wide that its cap was reached."""
        if self.current is None:
            return True
        bonuses = self.current.details.get("bonus")
        return bonuses is None or bool(np.min(bonuses) >= self.span + self.reward_range)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """ScOpt on the estimated MDP with bonus, to precision r_max/√t."""
        pairs = statistics.visits.size
        bonuses, r = np.empty(pairs), np.empty(pairs)
        variant = APPENDIX if self.bonus == "appendix" else MAIN_TEXT
        optimistic_rewards(
            statistics.visits, statistics.reward_sum, self.n_states, self.n_actions, t, self.delta, self.bonus_scale,
            self.span, self.reward_range, variant, bonuses, r,
        )  # fmt: skip
        r[~self.allowed.reshape(-1)] = -np.inf
        epsilon = self.reward_range / math.sqrt(t)
        v = self._values.copy()
        w, act = np.empty(self.n_states), np.zeros(self.n_states, dtype=np.int64)
        batch = max(8, BATCH_WORK // max(1, int(statistics.used[0])))
        sweeps = 0
        while True:
            done, low, high, slack, met = scopt_on_counts(
                statistics.begin, statistics.length, statistics.next_state, statistics.count, statistics.visits,
                r, self.n_actions, 0, self.span, epsilon, batch, v, w, act,
            )  # fmt: skip
            sweeps += done
            if met:
                break
            if high - low <= 2 * slack:
                raise NotConvergedError(
                    f"SCAL+ cannot plan to {epsilon:.1e} at step {t}: rounding alone is {2 * slack:.1e} "
                    f"(span {self.span:g})"
                )
        self._values = v
        return EpisodePlan(
            actions=act, gain_bounds=(low - slack + self.reward_min, high + slack + self.reward_min), values=v.copy(),
            sweeps=sweeps, details={"bonus": bonuses.reshape(self.n_states, self.n_actions), "rewards": r},
        )  # fmt: skip
