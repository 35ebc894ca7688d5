"""PMEVI-DT: planning within what a path says about the optimal bias (Boone & Zhang, NeurIPS 2024)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.agents.kl_ucrl import KLUCRL
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.saved_arrays import check_saved
from gainful.agents.state_path import StatePath
from gainful.agents.statistics import Statistics
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.arguments import choice, number_of, positive_scale, real
from gainful.errors import InvalidArgumentError
from gainful.optimism.bias_differences import (
    PathSums,
    azuma_radius,
    bias_intervals,
    freedman_radius,
    largest_jumps,
    mitigation,
    reward_squares,
)
from gainful.planning.order_projection import BiasConstraint, closed_differences, order_projection
from gainful.planning.projected_kl import ProjectedKLPlanner

Base: TypeAlias = Literal["kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl"]
BiasBound: TypeAlias = Literal["freedman", "azuma", "none"]
Floats: TypeAlias = NDArray[np.float64]

BASES = ("kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl")
BOUNDING_ROUNDS = 12
"""How often the jumps of the bias are bounded again by the differences that they gave."""
WORTH_ANOTHER = 0.98
"""Another round is made if the last one brought the sum of squared jumps below this share."""
ORDERS = {
    "kl-scal-plus": "sqrt(r_max·c·Γ·S·A·T)",
    "ucrl2": "c·S·sqrt(A·T)",
    "ucrl2b": "c·sqrt(Γ·S·A·T)",
    "kl-ucrl": "c·S·sqrt(A·T)",
}


class KLSCALPlusWithin(KLSCALPlus):
    """KL-SCAL+ that can plan within a constraint on the bias."""

    planner_class = ProjectedKLPlanner
    _planner: ProjectedKLPlanner

    def confine(self, within: BiasConstraint) -> None:
        """Plan within this constraint, in units of reward, from now on."""
        self._planner.within = within.scaled(1.0 / self.reward_range)

    def radii(self, visits: NDArray[np.int64], reward_sum: Floats) -> Floats:
        """(S*A,) ρ of every pair; inf if it was never visited."""
        self._renew_sets(visits, reward_sum)
        found: Floats = np.where(visits > 0, self._planner.pairs.radius, np.inf)
        return found


class PMEVIDT(PlanningAgent):
    r"""PMEVI-DT (Boone & Zhang 2024): any base set, within what the path so far says about the optimal bias.

    The base (`base`) gives a set of models for every pair, as UCRL2, UCRL2B, KL-UCRL or KL-SCAL+ has it. The planner
    iterates v ← v + 0.9(Γ𝓛v - v) to precision r_max/√t_k, where 𝓛v(s) = max_a [r̃ + min{max_p p·v, p̄·v + β}]:
    Γ projects onto the v whose differences v(s) - v(s') do not exceed the bounds known of h*(s) - h*(s'), and β bounds
    (p - p̄)·h* by the variance that h* can have ("mitigation"). It plays the greedy actions of 𝓛.

    Differences of h* are bounded along the path. With c ≥ sp(h*), the least optimistic gain g so far, T steps,
    n segments from a visit of s to the next of s', X = Σ_segments (g - R_t), B = Σ_t (g - R_t):
    (X - B - c - A - A_ss')/n ≤ h*(s') - h*(s) ≤ (X + A_ss')/n, where A and A_ss' bound martingales, for all T at once,
    by their range (`bias="azuma"`) or by the squared jumps of the bias that were seen, which the differences found
    bound in turn ("freedman"). Proofs, and how this differs from the published algorithm, of which the constants could
    not be checked: docs/pmevi.md. Where nothing is known yet, plans are the base's to the bit.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    horizon : float
        T, the number of steps that the agent will run for, a whole number of at least 2.
    base : {"kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl"}
        The sets.
    span : float, optional
        c, an upper bound on the span of the optimal bias, above 0. By default r_max·T^(1/5), which is one for large T.
    bias : {"freedman", "azuma", "none"}
        How differences of the bias are bounded; "none" leaves c alone.
    mitigation : bool
        Whether β bounds the values of pairs.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies the radii and widths of the base. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.PMEVIDT(n_states=2, n_actions=2, horizon=1000, span=2.0)
    >>> agent.differences().tolist()  # between the states, before anything was observed
    [[0.0, 2.0], [2.0, 0.0]]
    """

    path: StatePath

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        horizon: float,
        base: Base = "kl-scal-plus",
        span: float | None = None,
        bias: BiasBound = "freedman",
        mitigation: bool = True,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
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
            episodes=episodes,
        )
        self.horizon = number_of("steps", "horizon", horizon, 2)
        self.base: Base = choice("base", base, BASES)  # type: ignore[assignment]
        self.bias: BiasBound = choice("bias", bias, ("freedman", "azuma", "none"))  # type: ignore[assignment]
        if not isinstance(mitigation, bool):
            raise InvalidArgumentError("mitigation", mitigation, "True or False")
        self.mitigation = mitigation
        self.width_scale = positive_scale("width_scale", width_scale)
        self.given_span = None if span is None else real("span", span, 0.0, low_open=True)
        self.span = self.reward_range * self.horizon**0.2 if self.given_span is None else self.given_span
        """c, in units of reward."""
        self.path = StatePath(self.n_states)
        self._base = self._new_base()
        self._base.statistics = self.statistics
        self._gain = 1.0  # the least optimistic gain so far, in units of r_max
        self._closed: Floats = np.full((self.n_states, self.n_states), self.span / self.reward_range)
        np.fill_diagonal(self._closed, 0.0)
        self._refused = 0
        nothing = np.full((self.n_states, self.n_states), np.inf)
        self._intervals = -nothing, nothing  # of h*(s') - h*(s) at (s, s'), as last computed

    @property
    def base_agent(self) -> ExtendedAgent | KLSCALPlus:
        """The agent whose sets these are; it plans within what is known about the bias."""
        return self._base

    def _new_base(self) -> ExtendedAgent | KLSCALPlusWithin:
        given: dict[str, Any] = {
            "reward_max": self.reward_max,
            "reward_min": self.reward_min,
            "delta": self.delta,
            "seed": self.seed,
            "allowed": self.allowed,
            "width_scale": self.width_scale,
        }
        size = self.n_states, self.n_actions
        if self.base == "kl-ucrl":
            return KLUCRL(*size, horizon=self.horizon, **given)
        if self.base == "kl-scal-plus":
            return KLSCALPlusWithin(*size, **given)
        return UCRL2(*size, **given) if self.base == "ucrl2" else UCRL2B(*size, **given)

    # ------------------------------------------------------------------ the algorithm

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Plan over the base's sets within the differences and β that are known now, to precision r_max/√t."""
        if self.bias != "none":
            self._renew_differences(statistics)
        rows = empirical_rows(statistics, self.allowed)
        within = BiasConstraint(
            self.reward_range * self._closed, *rows, self.reward_range * self._mitigation(statistics, rows)
        )
        base = self._base
        base.on_episode = self.on_episode  # details are made if somebody looks
        if isinstance(base, KLSCALPlusWithin):
            base.confine(within)
        else:
            base.within = within
        found = base.plan(statistics, t)
        self._gain = min(self._gain, max(0.0, (found.gain_bounds[1] - self.reward_min) / self.reward_range))
        span = float(np.ptp(found.values))
        details = {**found.details, "within": within, "bias_intervals": self._intervals}
        return replace(found, multiplier=self.multiplier(t, span), details=details)

    def _renew_differences(self, statistics: Statistics) -> None:
        """Bound h*(s) - h*(s') by the path so far; bounds found before stay."""
        sums, known = self._path_sums(), self._closed
        squares = np.inf
        for _ in range(BOUNDING_ROUNDS):
            squares, before = self._squares(statistics, known), squares
            if not squares < WORTH_ANOTHER * before:
                break
            self._intervals = low, high = bias_intervals(sums, self._gain, self._c, *self._radii(sums, squares))
            closed = closed_differences(np.minimum(known, np.minimum(high.T, -low)))
            if closed is None:
                self._refused += 1
                break
            known = closed
        self._closed = known

    @property
    def _c(self) -> float:
        return self.span / self.reward_range

    def _path_sums(self) -> PathSums:
        """The path, in units of r_max."""
        s, r_max = self.path.segments, self.reward_range
        return PathSums(
            s.completed.astype(np.float64),
            s.cut.astype(np.float64),
            s.steps.astype(np.float64),
            s.earned / r_max,
            self.path.under_way.astype(np.float64),
            self.path.n_steps,
            float(s.total[0]) / r_max,
            self.path.n_pieces,
        )

    def _squares(self, statistics: Statistics, closed: Floats) -> float:
        """Σ of the squared jumps of bias and reward along the path, at most; for "azuma" any number."""
        if self.bias == "azuma":
            return 0.0
        jumps, s, r_max = largest_jumps(closed), statistics, self.reward_range
        kept = s.to_arrays()
        origin = np.repeat(np.arange(s.visits.size), kept["length"]) // self.n_actions
        of_bias = float(np.sum(kept["count"] * jumps[origin, kept["next_state"]] ** 2))
        of_rewards = reward_squares(s.visits, s.reward_sum / r_max, s.reward_squares / r_max**2)
        return (math.sqrt(of_bias) + math.sqrt(of_rewards)) ** 2

    def _radii(self, sums: PathSums, squares: float) -> tuple[Floats, float]:
        """A_ss' (S, S), and A of the whole path."""
        failure = self.delta / (self.n_states * (self.n_states - 1) + 1)
        width, all_steps = self._c + 1.0, np.array([float(sums.n_steps)])
        if self.bias == "azuma":
            return azuma_radius(sums.under_way, width, failure), float(azuma_radius(all_steps, width, failure)[0])
        everything = float(freedman_radius(np.array([squares]), width, failure)[0])
        radius = np.full(sums.steps.shape, everything)
        few = width**2 * sums.under_way < squares
        radius[few] = freedman_radius(width**2 * sums.under_way[few], width, failure)
        return radius, everything

    def _mitigation(self, statistics: Statistics, rows: EmpiricalRows) -> Floats:
        """(S*A,) β, in units of r_max; inf where nothing is known."""
        n_pairs = statistics.visits.size
        if not self.mitigation:
            return np.full(n_pairs, np.inf)
        d, states = self._closed, np.arange(n_pairs) // self.n_actions
        centre = order_projection(np.zeros(self.n_states) if self.current is None else self._last_values(), d)
        jump = centre[None, :] - centre[:, None]  # (S, S) h0(y) - h0(s)
        error = np.maximum(d.T - jump, jump + d)
        lengths = np.diff(rows.indptr)
        pair, to, p = np.repeat(np.arange(n_pairs), lengths), rows.indices, rows.p
        x, e = jump[states[pair], to], error[states[pair], to]
        largest = largest_jumps(d)[states[pair], to]

        def mean(values: Floats) -> Floats:
            return np.bincount(pair, weights=p * values, minlength=n_pairs).astype(np.float64)

        spread = np.sqrt(np.maximum(mean((x - mean(x)[pair]) ** 2), 0.0)) + np.sqrt(mean(e * e))
        deviation = np.minimum(spread, np.sqrt(mean(largest * largest)))
        return mitigation(deviation, float(d.max(initial=0.0)), self._deviation_radii(statistics))

    def _last_values(self) -> Floats:
        assert self.current is not None
        return np.asarray(self.current.values / self.reward_range)

    def _deviation_radii(self, statistics: Statistics) -> Floats:
        """(S*A,) ρ with klmax(p̄, h*, ρ) ≥ p·h* at the optimal actions: KL-SCAL+'s, or ι_n/n with ln(S/δ)."""
        if isinstance(self._base, KLSCALPlusWithin):
            return self._base.radii(statistics.visits, statistics.reward_sum)
        n = np.maximum(statistics.visits, 1)
        level = math.log(self.n_states / self.delta) + 0.5 * np.log(n) + math.log(2.0)
        return np.where(statistics.visits > 0, self.width_scale * level / n, np.inf)

    def differences(self) -> NDArray[np.float64]:
        """Give the bounds on differences of the optimal bias that the last plan was made with.

        Returns
        -------
        ndarray of shape (S, S)
            At (s, s') an upper bound of h*(s) - h*(s'), in units of reward.

        Examples
        --------
        >>> PMEVIDT(2, 1, horizon=100, span=3.0).differences().tolist()
        [[0.0, 3.0], [3.0, 0.0]]
        """
        return self.reward_range * self._closed

    # ------------------------------------------------------------------ what it is

    @property
    def vacuous(self) -> bool:
        """Whether the base's sets ignored the data in the last plan."""
        return self._base.vacuous

    @property
    def failures(self) -> int:
        """How many events of probability δ the bound on the regret needs."""
        return self.failures_of_optimism + (2 if self.base == "kl-scal-plus" else 0)

    @property
    def failures_of_optimism(self) -> int:
        """How many of them optimism needs: the base's, the mitigation's unless it is the base's, and the path's."""
        return 1 + (self.mitigation and self.base != "kl-scal-plus") + (self.bias != "none")

    @property
    def guarantee(self) -> Guarantee:
        """What is proven for these constants, void if they were changed or the horizon has passed."""
        order = self.order_with_episodes(ORDERS[self.base], "c")
        told = f"the optimal bias has span at most c = {self.span:g}"
        if self.given_span is None:
            told += ", which is r_max·T^(1/5)"
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - self.failures * self.delta:g} at T = {self.horizon}; every "
            f"plan optimistic with probability {1 - self.failures_of_optimism * self.delta:g}",
            assumptions=("the MDP is weakly communicating", told),
            source="docs/pmevi.md; the published Õ(sqrt(sp·S·A·T)) is for other constants (Boone & Zhang 2024)",
            reason_void=self._reason_void(),
            span=self.span,
        )

    def _reason_void(self) -> str:
        if self.width_scale != 1.0:
            return f"width_scale is {self.width_scale:g}, the theorem needs 1"
        if self.t > self.horizon:
            return f"{self.t} steps observed, more than the horizon of {self.horizon}"
        if self.failures * self.delta >= 1.0:
            return f"delta is {self.delta:g}, and the bound may fail with probability {self.failures}·delta"
        return ""

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "horizon": self.horizon,
            "base": self.base,
            "span": self.given_span,
            "bias": self.bias,
            "mitigation": self.mitigation,
            "width_scale": self.width_scale,
        }

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The path, what is known of the bias, and what the base's next plan starts from."""
        known = {"differences": self._closed, "gain": np.array([self._gain]), "refused": np.array([self._refused])}
        return {**self.path.arrays(), **known, **{f"base_{n}": a for n, a in self._base.own_arrays().items()}}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        c = self._c
        check_saved(arrays, "differences", self._closed, low=-c * (1 + 1e-9), high=c * (1 + 1e-9))
        check_saved(arrays, "gain", np.empty(1), low=0.0, high=1.0)
        check_saved(arrays, "refused", np.empty(1, dtype=np.int64), low=0)
        if np.any(np.diag(arrays["differences"]) != 0.0):
            raise ValueError("array 'differences' is not 0 on its diagonal")
        self.path.restore(arrays, self.t)
        self._base.restore({n.removeprefix("base_"): a for n, a in arrays.items() if n.startswith("base_")})
        self._closed, self._gain = arrays["differences"].copy(), float(arrays["gain"][0])
        self._refused = int(arrays["refused"][0])
