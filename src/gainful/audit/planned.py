"""The beginnings of SCAL+'s episodes in arrays, and what can be checked about a plan without the true model.

One function per statement; each takes a batch of K episodes and returns K cases. The equations are those of
`gainful.theory`, the estimated model p̂ is computed from the counts by `gainful.audit.rows`, and nothing is taken from
the planner that could be computed. Symbols are those of Qian, Fruit, Pirotta & Lazaric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodeView
from gainful.audit.findings import Cases, Floats
from gainful.audit.rows import (
    RowProducts,
    TrueRows,
    compare_rows,
    contraction,
    contraction_bound,
    counted_rows,
    row_variances,
)
from gainful.theory.equations import authors_bonus, scal_plus_beta, scal_plus_bonus, scal_plus_deviation
from gainful.theory.sharp import bernstein_bonus, sharp_bonus

STATEMENTS_ABOUT_PLANS = (
    "optimism",
    "span",
    "certificate",
    "precision",
    "bellman-error",
    "feasible",
    "contraction",
    "unichain",
    "episode-rule",
    "episode-count",
)
"""About the plans and episodes of SCAL+, whatever its bonus."""
BATCH_EPISODES, BATCH_NUMBERS = 256, 64_000
"""Episodes in a batch, at most, and numbers in one of its arrays: NumPy is then quick, and memory stays small."""
PAIRWISE_WORK = 20_000
"""Numbers read up to which the contraction coefficient is computed exactly; beyond, Doeblin's bound of it."""
HALF_ULP = 2.0**-53


@dataclass(frozen=True)
class ScalPlusConstants:
    """The constants of an agent that the equations need."""

    n_states: int
    n_actions: int
    span: float
    """c."""
    reward_range: float
    """r_max."""
    reward_min: float
    delta: float
    variant: Any
    """The variant of the bonus: "appendix", "main text", "authors", "sharp" or "bernstein"."""
    scale: float
    support: int
    """Γ, or the number of cells plus one."""
    model_error: float = 0.0
    """What cells add to b and to d: (c + r_max)·L·n^{-α}."""
    n_deviations: int = 0
    """The pairs whose deviations the sharp bonus bounds."""

    @classmethod
    def of(cls, agent: Any, support: int, model_error: float, n_deviations: int) -> ScalPlusConstants:
        """Read the constants of a SCAL+ agent."""
        return cls(
            agent.n_states,
            agent.n_actions,
            agent.span,
            agent.reward_range,
            agent.reward_min,
            agent.delta,
            agent.bonus,
            agent.bonus_scale,
            support,
            model_error,
            n_deviations,
        )

    @property
    def smoothness(self) -> float:
        """L·n^{-α}, how much the states of one cell differ."""
        return self.model_error / (self.span + self.reward_range)

    @property
    def of_the_paper(self) -> bool:
        """Whether the bonus is one of the paper's."""
        return self.variant in ("appendix", "main text")

    def authors_bonus(self, visits: NDArray[Any], step: Floats, mean_rewards: Floats) -> Floats:
        """What the authors' experiments add to r̄, of visits (K,S,A) at steps (K,): r̂ is at most 3(c + r_max)."""
        whole = self.span + self.reward_range
        b = authors_bonus(
            visits,
            step[:, None, None],
            self.n_states,
            self.n_actions,
            span=self.span,
            reward_max=self.reward_range,
            scale=self.scale,
        )
        return np.asarray(np.minimum(mean_rewards + b, 3.0 * whole) - mean_rewards)

    def parts(self, visits: NDArray[Any], mean_rewards: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """r̃ and b of the sharp or the Bernstein bonus, without what cells add; `variance` is that of the values."""
        given: dict[str, Any] = {
            "span": self.span,
            "reward_max": self.reward_range,
            "delta": self.delta,
            "scale": self.scale,
        }
        if self.variant == "sharp":
            return sharp_bonus(visits, mean_rewards, self.n_deviations, **given)
        return bernstein_bonus(visits, mean_rewards, variance, self.n_states, **given)

    def bonus(self, visits: NDArray[Any], step: Floats) -> Floats:
        """b_k of the paper, of visits (K,S,A) at steps (K,)."""
        return self.model_error + scal_plus_bonus(
            visits,
            step[:, None, None],
            self.n_states,
            self.n_actions,
            span=self.span,
            reward_max=self.reward_range,
            delta=self.delta,
            variant=self.variant,
            scale=self.scale,
        )

    def capped_beta(self, visits: NDArray[Any], step: Floats) -> Floats:
        """min{β, 1} of visits (K,S,A) at steps (K,)."""
        beta = scal_plus_beta(visits, step[:, None, None], self.n_states, self.n_actions, self.delta)
        return np.asarray(np.minimum(self.scale * beta, 1.0))

    def deviation(self, visits: NDArray[Any], step: Floats) -> Floats:
        """d_k of visits (K,S,A) at steps (K,)."""
        return self.model_error + scal_plus_deviation(
            visits,
            step[:, None, None],
            self.n_states,
            self.n_actions,
            span=self.span,
            support=self.support,
            reward_max=self.reward_range,
            delta=self.delta,
        )


@dataclass(frozen=True, eq=False)
class PlannedEpisodes:
    """K episodes as they begin, for S states and A actions, rewards in internal units (from 0 to r_max)."""

    constants: ScalPlusConstants
    possible: NDArray[np.bool_]
    """(S,A) the actions that the agent may take."""
    mixed: NDArray[np.bool_]
    """(K,) whether the policy draws its actions."""
    step: Floats
    """(K,) t_k."""
    low: Floats
    high: Floats
    """(K,) the planner's bracket of the gain, in the user's units."""
    drift: Floats
    """(K,) what a reused logarithm may hold back of r̂."""
    longest: Floats
    """(K,) entries of the longest estimated row."""
    gamma: Floats
    """(K,) the contraction coefficient."""
    visits: Floats
    """(K,S,A) N_k."""
    reward_sum: Floats
    """(K,S,A) Σ r."""
    planned_rewards: Floats
    """(K,S,A) the r̂ that the planner was given."""
    used_bonus: Floats
    """(K,S,A) the bonus that the agent reports."""
    actions: NDArray[np.int64]
    """(K,S) the action of a policy that does not draw its actions."""
    probabilities: Floats
    """(K,S,A) π(a|s) of a policy that draws its actions."""
    values: Floats
    """(K,S) v_k."""
    estimated_bias: Floats
    estimated_values: Floats
    true_values: Floats
    distance: Floats
    anchored: Floats
    """(K,S,A) p̂·h, p̂·v_k, p·v_k, ‖p̂ - p‖₁ and p̂(s̄)."""
    variance_of_values: Floats
    variance_of_bias: Floats
    """(K,S,A) Var_p̄(v_k) and Var_p̄(h), for the Bernstein bonus; 0 for others."""

    @cached_property
    def mean_rewards(self) -> Floats:
        """r̄ = Σ r / max{1, N_k}."""
        return np.asarray(self.reward_sum / np.maximum(1, self.visits))

    @cached_property
    def b(self) -> Floats:
        """The theorem's bonus b_k, all that is added to r̄: r̃ - r̄ + b, and what cells add, if it is not the paper's."""
        if self.constants.of_the_paper:
            return self.constants.bonus(self.visits, self.step)
        if self.constants.variant == "authors":
            return self.constants.authors_bonus(self.visits, self.step, self.mean_rewards)
        rewards, b = self.constants.parts(self.visits, self.mean_rewards, self.variance_of_values)
        return np.asarray(rewards - self.mean_rewards + b + self.constants.model_error)

    @cached_property
    def parts_at_bias(self) -> tuple[Floats, Floats]:
        """r̃ and b of the sharp or the Bernstein bonus, for h in place of v_k."""
        return self.constants.parts(self.visits, self.mean_rewards, self.variance_of_bias)

    @cached_property
    def capped_beta(self) -> Floats:
        """min{β, 1}, which bounds the error of a mean in parts of its range."""
        return self.constants.capped_beta(self.visits, self.step)

    @cached_property
    def d(self) -> Floats:
        """The theorem's d_k, which bounds the model's error for every v of span c at once."""
        return self.constants.deviation(self.visits, self.step)

    @cached_property
    def optimistic_rewards(self) -> Floats:
        """r̂ = r̄ + b_k."""
        return np.asarray(self.mean_rewards + self.b)

    @cached_property
    def q(self) -> Floats:
        """r̂ + p̂·v_k."""
        return np.asarray(self.optimistic_rewards + self.estimated_values)

    @cached_property
    def best(self) -> Floats:
        """(K,S) Lv_k = max_a q."""
        return over_actions(np.maximum, self.where_possible(self.q, -np.inf))

    @cached_property
    def ceiling(self) -> Floats:
        """(K,1) min Lv_k + c, where the span constraint cuts."""
        return np.asarray(self.best.min(axis=1, keepdims=True) + self.constants.span)

    @cached_property
    def residual(self) -> Floats:
        """(K,S) T_c v_k - v_k, T_c v = min{Lv, min Lv + c}."""
        return np.asarray(np.minimum(self.best, self.ceiling) - self.values)

    @cached_property
    def gain(self) -> Floats:
        """(K,1) g_k, the middle of the bracket."""
        return np.asarray((self.low + self.high) / 2.0 - self.constants.reward_min)[:, None]

    @cached_property
    def epsilon(self) -> Floats:
        """(K,) ε_k = r_max/√t_k, the precision asked of the planner."""
        return np.asarray(self.constants.reward_range / np.sqrt(self.step))

    @cached_property
    def bracket_rounding(self) -> Floats:
        """(K,) of a bracket that was moved by reward_min and back."""
        return np.asarray(8 * HALF_ULP * (abs(self.constants.reward_min) + np.abs(self.high)))

    @cached_property
    def sweep_rounding(self) -> Floats:
        """(K,) of one application of T_c."""
        largest = np.abs(self.values).max(axis=1)
        rewards = over_pairs(np.maximum, self.where_possible(self.optimistic_rewards, 0.0))
        return np.asarray(2.0 * (self.longest + 4) * HALF_ULP * (largest + np.maximum(rewards, 0.0)))

    @cached_property
    def rounding(self) -> Floats:
        """(K,) of what is compared with the planner's numbers."""
        return np.asarray(self.sweep_rounding + 1e-9 * self.constants.reward_range + self.bracket_rounding)

    def under_policy(self, x: Floats) -> Floats:
        """(K,S) Σ_a π(a|s)·x(s,a)."""
        found = np.take_along_axis(x, self.actions[:, :, None], axis=2)[:, :, 0]
        if self.mixed.any():
            found = np.where(self.mixed[:, None], over_actions(np.add, self.probabilities * x), found)
        return found

    def where_possible(self, x: Floats, other: float) -> Floats:
        """x(K,S,A), with `other` at the pairs that the agent may not choose."""
        return x if self._all_possible else np.where(self.possible, x, other)

    @cached_property
    def _all_possible(self) -> bool:
        return bool(self.possible.all())

    @cached_property
    def visited(self) -> NDArray[np.bool_]:
        """(K,S,A) N_k > 0."""
        return np.asarray(self.visits > 0)

    def at_worst(self, found: Floats, allowed: Floats, most: float) -> Cases:
        """The pair of each episode where found/allowed is largest; 0 ≤ `most` if there is none.

        A pair never visited counts only if it fails: everything is allowed there, and nothing was found. `most` is the
        largest that could have been found.
        """
        ratio = found / np.maximum(allowed, 1e-300)
        ratio = self.where_possible(np.where(self.visited | (ratio > 1.0), ratio, -1.0), -1.0)
        pair, (key, left, right) = largest_of(ratio, ratio, found, allowed)
        none = key < 0.0
        pair = np.where(none, -1, pair)
        left = np.where(none, 0.0, left)
        right = np.where(none, most, right)
        A = self.constants.n_actions
        certain = over_pairs(np.logical_and, ~self.possible | ~self.visited | (allowed >= most))
        rounding = 1e-12 * (self.constants.reward_range + self.constants.span)
        return Cases.of(left, right, rounding, states=pair // A, actions=pair % A, certain=certain)


def largest_of(keys: Floats, *others: Floats) -> tuple[NDArray[np.int64], list[Floats]]:
    """For each first index, where `keys` is largest (the first such place, flat), and the others' entries there.

    >>> at, (found,) = largest_of(np.array([[1.0, 3.0], [5.0, 2.0]]), np.array([[10.0, 20.0], [30.0, 40.0]]))
    >>> at.tolist(), found.tolist()
    ([1, 0], [20.0, 30.0])
    """
    n = len(keys)
    at = keys.reshape(n, -1).argmax(axis=1)
    return at, [other.reshape(n, -1)[np.arange(n), at] for other in others]


def over_pairs(ufunc: np.ufunc, x: NDArray[Any]) -> NDArray[Any]:
    """(K,) x(K,S,A) reduced over pairs."""
    return np.asarray(ufunc.reduce(x.reshape(len(x), -1), axis=1))


def over_actions(ufunc: np.ufunc, x: NDArray[Any]) -> NDArray[Any]:
    """(K,S) x(K,S,A) reduced over actions: one operation per action, as NumPy is slow along a short axis."""
    return np.asarray(reduce(ufunc, (x[:, :, a] for a in range(x.shape[2]))))


class EpisodeRecorder:
    """Collects the beginnings of episodes until there are enough of them for a batch."""

    def __init__(
        self,
        constants: ScalPlusConstants,
        possible: NDArray[np.bool_],
        true: TrueRows,
        bias: Floats,
        numbers_per_pair: int = 1,
    ) -> None:
        self.constants, self.possible = constants, possible
        self._true, self._bias, self._flat = tuple(true), bias, np.ascontiguousarray(possible.reshape(-1))
        S, A = constants.n_states, constants.n_actions
        pairs, row = S * A, int(np.diff(true.indptr).max()) if true.probabilities.size else S
        self._exact = pairs * pairs * max(2, row) <= PAIRWISE_WORK
        self.capacity = int(np.clip(BATCH_NUMBERS // (pairs * numbers_per_pair), 1, BATCH_EPISODES))
        self.n = 0
        self._kept: dict[str, NDArray[Any]] = {
            name: np.zeros(self.capacity) for name in ("step", "low", "high", "drift", "longest", "gamma")
        }
        per_pair = (
            *("visits", "reward_sum", "planned_rewards", "used_bonus", "probabilities"),
            *("variance_of_values", "variance_of_bias"),
            *RowProducts._fields,
        )
        self._kept |= {name: np.zeros((self.capacity, pairs)) for name in per_pair}
        self._kept["mixed"] = np.zeros(self.capacity, dtype=bool)
        self._kept["values"] = np.zeros((self.capacity, S))
        self._kept["actions"] = np.zeros((self.capacity, S), dtype=np.int64)
        self._per_pair = per_pair

    @property
    def full(self) -> bool:
        """Whether the batch must be taken before another episode is added."""
        return self.n == self.capacity

    def add(self, view: EpisodeView) -> None:
        """Add an episode that begins."""
        i, kept, plan, statistics = self.n, self._kept, view.plan, view.statistics
        kept["step"][i], kept["drift"][i] = view.step, plan.details["drift"]
        kept["low"][i], kept["high"][i] = plan.gain_bounds
        kept["visits"][i], kept["reward_sum"][i] = statistics.visits, statistics.reward_sum
        kept["planned_rewards"][i] = plan.details["rewards"].reshape(-1)
        kept["used_bonus"][i] = plan.details["bonus"].reshape(-1)
        kept["values"][i], kept["actions"][i] = plan.values, plan.actions
        kept["mixed"][i] = plan.probabilities is not None
        if plan.probabilities is not None:
            kept["probabilities"][i] = plan.probabilities.reshape(-1)
        counted, products = counted_rows(statistics), tuple(kept[name][i] for name in RowProducts._fields)
        rows = tuple(counted)
        kept["longest"][i] = compare_rows(rows, self._true, self._flat, self._bias, kept["values"][i], products)
        if self.constants.variant == "bernstein":
            kept["variance_of_values"][i] = row_variances(counted, kept["values"][i])
            kept["variance_of_bias"][i] = row_variances(counted, self._bias)
        if self._exact:
            kept["gamma"][i] = contraction(rows, self._flat)
        else:
            kept["gamma"][i] = contraction_bound(rows, self._flat, self.constants.n_states)
        self.n += 1

    def take(self) -> PlannedEpisodes:
        """The episodes collected, to be used before another is added: the arrays are views."""
        n, self.n, shape = self.n, 0, self.possible.shape
        arrays = {name: array[:n] for name, array in self._kept.items()}
        arrays |= {name: arrays[name].reshape(n, *shape) for name in self._per_pair}
        return PlannedEpisodes(self.constants, self.possible, **arrays)


# ---------------------------------------------------------------------- statements about a plan, one function each


def bonus_formula(e: PlannedEpisodes) -> Cases:
    """The bonus in use is the equation's, and the planner was given r̂ = r̄ + b_k.

    Local planning reuses r̂ of an earlier step, which may be smaller by up to `drift`, never larger.
    """
    late = e.optimistic_rewards - e.planned_rewards
    wrong = np.maximum(np.maximum(np.abs(e.used_bonus - e.b), -late), late - e.drift[:, None, None])
    wrong = e.where_possible(wrong / (e.constants.reward_range + e.b), -np.inf)
    pair, (found,) = largest_of(wrong, wrong)
    A = e.constants.n_actions
    rounding = 1e-9 if e.constants.variant == "bernstein" else 1e-12  # klup is computed by Newton steps, from above
    return Cases.of(found, 0.0, rounding, states=pair // A, actions=pair % A)


def optimism(e: PlannedEpisodes, gain: float) -> Cases:
    """g* ≤ max (T_c v_k - v_k), recomputed; `gain` is the proven lower end of g*."""
    rounding = e.sweep_rounding + 1e-9 * e.constants.reward_range
    return Cases.of(np.full(e.step.size, gain), e.residual.max(axis=1), rounding)


def span(e: PlannedEpisodes) -> Cases:
    """sp(v_k) ≤ c."""
    c = e.constants.span
    found = e.values.max(axis=1) - e.values.min(axis=1)
    return Cases.of(found, c, 1e-12 * (c + e.constants.reward_range))


def certificate(e: PlannedEpisodes) -> Cases:
    """T_c v_k - v_k lies in the planner's bracket."""
    low, high = e.low - e.constants.reward_min, e.high - e.constants.reward_min
    outside = np.maximum(low - e.residual.min(axis=1), e.residual.max(axis=1) - high)
    return Cases.of(outside, 0.0, e.rounding)


def precision(e: PlannedEpisodes) -> Cases:
    """The planner's bracket is no wider than ε_k."""
    return Cases.of(e.high - e.low, e.epsilon, 1e-12 * e.constants.reward_range + e.bracket_rounding)


def bellman_error(e: PlannedEpisodes) -> Cases:
    """g_k - Σ π(a|s)·(r̂ + p̂·v_k) + v_k(s) ≤ ε_k, and |g_k - (T_c v_k - v_k)(s)| ≤ ε_k, in every state."""
    earned = e.under_policy(e.q)
    at, (one_sided,) = largest_of(e.gain - earned + e.values, e.gain - earned + e.values)
    two_at, (two_sided,) = largest_of(np.abs(e.gain - e.residual), np.abs(e.gain - e.residual))
    states = np.where(one_sided > two_sided, at, two_at)
    return Cases.of(np.maximum(one_sided, two_sided), e.epsilon, e.rounding, states=states)


def feasible(e: PlannedEpisodes) -> Cases:
    """Where the span constraint cuts, the augmented MDP has an action below the ceiling: p̂·v_k ≤ min Lv_k + c.

    That action is a copy with reward 0 of the greedy one, or with "min-action" of the one that is worth least.
    """
    greedy = e.where_possible(e.q, -np.inf).argmax(axis=2)
    partner = np.take_along_axis(e.estimated_values, greedy[:, :, None], axis=2)[:, :, 0]
    if e.mixed.any():
        least = over_actions(np.minimum, e.where_possible(e.estimated_values, np.inf))
        partner = np.where(e.mixed[:, None], least, partner)
    above = np.where(e.best > e.ceiling, partner - e.best.min(axis=1, keepdims=True), -np.inf)
    state, (found,) = largest_of(above, above)
    cut = found > -np.inf
    return Cases.of(np.where(cut, found, 0.0), e.constants.span, e.rounding, states=np.where(cut, state, -1))


def contracts(e: PlannedEpisodes) -> Cases:
    """γ_k ≤ 1 - min p̂(s̄|s,a)."""
    return Cases.of(e.gamma, 1.0 - over_pairs(np.minimum, e.where_possible(e.anchored, np.inf)), 1e-12)


def unichain(e: PlannedEpisodes) -> Cases:
    """The policy reaches s̄ from every state in one step: Σ π(a|s)·p̂(s̄|s,a) > 0; found is 1 if it does not."""
    reach = e.under_policy(e.anchored)
    state, (least,) = largest_of(-reach, reach)
    return Cases.of(least <= 0.0, 0.0, states=state)


def plan_cases(e: PlannedEpisodes, gain: float) -> dict[str, Cases]:
    """Every statement that needs no true model, and optimism, which needs only the lower end of g*."""
    return {
        "bonus-formula": bonus_formula(e),
        "optimism": optimism(e, gain),
        "span": span(e),
        "certificate": certificate(e),
        "precision": precision(e),
        "bellman-error": bellman_error(e),
        "feasible": feasible(e),
        "contraction": contracts(e),
        "unichain": unichain(e),
    }
