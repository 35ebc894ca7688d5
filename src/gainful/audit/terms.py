"""Sums over episodes: the terms of the regret, each compared with its part of the explicit bound.

The proof (`docs/regret_bound.md`) splits the regret after every episode into

    R ≤ Σ ν·b + Σ ν·d + Σ ν·ε + Σ (p·v - v(s') + r - r_t) + Σ (v_k(end) - v_k(begin)),

where ν_k(s,a) counts how often episode k executed a pair. The fourth sum is a martingale, the fifth telescopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.audit.episodes import execution_limits
from gainful.audit.findings import Cases, Finding, Floats, compared
from gainful.audit.planned import ScalPlusConstants, largest_of, over_pairs
from gainful.theory.regret import terms_at
from gainful.theory.sharp_regret import sharp_terms_at


@dataclass(frozen=True)
class EpisodeSums:
    """The sums of each of K finished episodes, (K,) each."""

    steps: Floats
    """Σ ν."""
    ratio: Floats
    """The largest ν/max{1, N_k}."""
    pair: NDArray[np.int64]
    """Where it is."""
    full: NDArray[np.bool_]
    """Whether some pair was executed max{1, N_k} times."""
    bonus: Floats
    """Σ ν·b."""
    deviation: Floats
    """Σ ν·d."""
    drift: Floats
    """Σ ν·(p·v_k - v_k(s))."""
    telescoping: Floats
    """v_k at the last state less v_k at the first."""


def executions(
    visits: NDArray[Any], factors: Floats | None = None
) -> tuple[NDArray[Any], Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """ν_k of K episodes from the visits (K+1,S,A) before and after each, the largest ν/max{1, ⌊f·N⌋}, where, if 1.

    `factors` (K,) are f; 1 by default.

    >>> nu, ratio, pair, full = executions(np.array([[[0, 4]], [[0, 6]], [[1, 6]]]))
    >>> nu.tolist(), ratio.tolist(), pair.tolist(), full.tolist()
    ([[[0, 2]], [[1, 0]]], [0.5, 1.0], [1, 0], [False, True])
    """
    factor = 1.0 if factors is None else factors[:, None, None]
    nu, limit = np.diff(visits, axis=0), execution_limits(visits[:-1], factor)
    shares = np.where(nu > 0, nu / limit, -np.inf)
    pair, (ratio,) = largest_of(shares, shares)
    return nu, ratio, np.where(np.isinf(ratio), -1, pair), over_pairs(np.logical_or, nu == limit)


@dataclass(frozen=True)
class RegretTotals:
    """Sums over all episodes up to and including each, (K,) each; regret measured and its terms."""

    constants: ScalPlusConstants
    mixture: str
    episodes: str
    """The rule that ends them."""
    most_lost: float
    """g* less the least reward: no regret after T steps exceeds T times that."""
    after: Floats
    """Steps made."""
    regret: Floats
    bonus: Floats
    deviation: Floats
    precision: Floats
    martingale: Floats
    telescoping: Floats

    @classmethod
    def of(
        cls,
        sums: EpisodeSums,
        step: Floats,
        *,
        gain: float,
        earned: Floats,
        reward_luck: Floats,
        constants: ScalPlusConstants,
        mixture: str,
        episodes: str,
        least_reward: float = 0.0,
    ) -> RegretTotals:
        """Add the episodes up.

        `earned` are all rewards up to the end of each, in the units of `gain`; `reward_luck` is Σ (r - r_t) in each.
        """
        after = np.cumsum(sums.steps)
        return cls(
            constants,
            mixture,
            episodes,
            gain - least_reward,
            after=after,
            regret=after * gain - earned,
            bonus=np.cumsum(sums.bonus),
            deviation=np.cumsum(sums.deviation),
            precision=np.cumsum(sums.steps * (constants.reward_range / np.sqrt(step))),
            martingale=np.cumsum(sums.drift - sums.telescoping + reward_luck),
            telescoping=np.cumsum(sums.telescoping),
        )

    @property
    def terms(self) -> dict[str, Floats]:
        """The five sums by name."""
        return {
            "bonus": self.bonus,
            "deviation": self.deviation,
            "precision": self.precision,
            "martingale": self.martingale,
            "telescoping": self.telescoping,
        }

    def shown(self) -> dict[str, list[float]]:
        """Plain values, by name."""
        return {
            "steps": self.after.astype(np.int64).tolist(),
            "regret": self.regret.tolist(),
            **{name: values.tolist() for name, values in self.terms.items()},
        }

    def bound(self, T: Floats) -> dict[str, Floats]:
        """The terms of the explicit bound after T steps."""
        c = self.constants
        if c.variant == "sharp":
            return sharp_terms_at(
                T,
                c.n_states,
                c.n_actions,
                span=c.span,
                support=c.support,
                reward_max=c.reward_range,
                delta=c.delta,
                smoothness=c.smoothness if c.support > c.n_states else None,
                episodes=self.episodes,
            )
        return terms_at(
            T,
            c.n_states,
            c.n_actions,
            span=c.span,
            spread=c.support - 1,
            reward_max=c.reward_range,
            delta=c.delta,
            model_error=c.model_error,
            mixture=self.mixture,
            episodes=self.episodes,
        )

    def findings(self, step: Floats, law_error: float = 0.0) -> dict[str, Finding]:
        """Each term against its part of the bound, and the regret against the five sums.

        `law_error` is the ℓ₁ error of p(·|x,a) if the martingale was computed with it.
        """
        c, r_max = self.constants.span, self.constants.reward_range
        T = np.maximum(self.after, 1.0)
        bound, right = self.bound(T), np.sum(list(self.terms.values()), axis=0)
        unsure = c * law_error * T
        cells = bound["cells"] / 2.0  # b and d each have the term of the cells once
        cases = {
            "term-bonus": Cases.of(self.bonus, bound["bonus"] + cells),
            "term-deviation": Cases.of(self.deviation, bound["deviation"] + cells),
            "term-precision": Cases.of(self.precision, bound["precision"]),
            "term-martingale": Cases.of(self.martingale, bound["martingale"], unsure),
            "term-telescoping": Cases.of(self.telescoping, c * np.arange(1, step.size + 1), 1e-9 * (c + r_max)),
            "decomposition": Cases.of(
                self.regret,
                right,
                unsure + 1e-9 * (np.abs(right) + r_max),
                certain=right >= self.after * self.most_lost,
            ),
        }
        return {name: case.finding(step) for name, case in cases.items()}

    def regret_bound(self, regret: Floats, checkpoints: NDArray[np.int64], step: Floats) -> Finding:
        """The regret at the checkpoints of the run against the explicit bound."""
        allowed, at = self.total_bound(checkpoints), np.searchsorted(step, checkpoints, "right")
        return compared(regret, allowed, checkpoints, episodes=at, certain=allowed >= checkpoints * self.most_lost)

    def total_bound(self, checkpoints: NDArray[np.int64]) -> Floats:
        """The explicit bound at the checkpoints."""
        return np.asarray(np.sum(list(self.bound(checkpoints.astype(np.float64)).values()), axis=0))
