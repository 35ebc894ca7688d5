"""What can be checked about the plans and episodes of KL-SCAL+ from the counts alone, on states or on cells.

The operator is computed again from the counts, the radii and r̃ of the plan, by kernels of its own (`audit.kl_rows`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.audit.episodes import EpisodeFactors, episode_rule, execution_limits
from gainful.audit.findings import Cases, Finding, Floats, compared
from gainful.audit.kl_rows import NO_SQUARES, PairValues, SetsInUse, nearest_miss, optimistic_values, set_errors
from gainful.audit.rows import counted_rows
from gainful.audit.set_plans import check_plan
from gainful.theory.kl_regret import most_episodes

STATEMENTS_ABOUT_KL_PLANS = (
    "set-formula",
    "optimism",
    "span",
    "certificate",
    "precision",
    "greedy",
    "episode-rule",
    "episode-count",
)


class KLPlanAuditor:
    """Checks the set, the plan and the length of every episode of one KL-SCAL+ agent.

    Parameters
    ----------
    core : KLSCALPlus
        A new agent, on states or on cells.
    log_union : float
        ln(1/δ') of ι_n = ln(1/δ') + ½ ln n + ln 2.
    gain_low : float
        The proven lower end of g*, in the agent's units.
    model_error : float
        b, what cells add to the gain; 0 on states.
    """

    names: tuple[str, ...] = STATEMENTS_ABOUT_KL_PLANS

    def __init__(self, core: KLSCALPlus, log_union: float, gain_low: float, model_error: float = 0.0) -> None:
        self.core, self.gain_low = core, gain_low
        self._base = core.reward_min + model_error
        self._constants = log_union, core.reward_range, core.width_scale
        self._by_variance = core.reward_bound == "variance"
        pairs = core.n_states * core.n_actions
        self._possible = np.ascontiguousarray(core.allowed.reshape(-1))
        self._values = PairValues(*(np.zeros(pairs) for _ in PairValues._fields))
        self._errors, self._nothing = np.zeros(pairs), np.zeros(pairs)
        self._before: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self._steps: list[int] = []
        self._limits: list[float] = []
        """f_k of each episode, as the rule says."""
        self._factors = EpisodeFactors(core)
        self._kept: dict[str, list[tuple[float, ...]]] = defaultdict(list)

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        if self._steps:
            self._close(view.statistics.visits)
        plan, t = view.plan, view.step
        visits = view.statistics.visits
        sets = SetsInUse(plan.details["rewards"], plan.details["radius"], self._possible)
        self._steps.append(t)
        squares = view.statistics.reward_squares if self._by_variance else NO_SQUARES
        set_errors((visits, view.statistics.reward_sum, squares), self._constants, tuple(sets), self._errors)
        self.keep_worst("set-formula", self._errors, self._nothing)
        optimistic_values(
            tuple(counted_rows(view.statistics)), tuple(sets), plan.values, plan.actions, tuple(self._values)
        )
        self._examine_plan(plan, t)
        self._limits.append(self._factors.begin(view, visits.size))
        self._before = visits.copy()
        self.compare_with_truth(view, sets)

    def compare_with_truth(self, view: EpisodeView, sets: SetsInUse) -> None:
        """What a subclass knows about the true model."""

    def _examine_plan(self, plan: EpisodePlan, t: int) -> None:
        """Tv - v from the definition, its bracket, and what the actions played are worth."""
        core, v = self.core, plan.values
        S, A, r_max = core.n_states, core.n_actions, core.reward_range
        low, high = (table.reshape(S, A) for table in (self._values.lower, self._values.upper))
        check = check_plan(low, high, v, plan.actions, np.inf if core.span is None else core.span)
        planned_low, planned_high = (end - self._base for end in plan.gain_bounds)
        epsilon, rounding = r_max / np.sqrt(t), 1e-9 * (r_max + np.ptp(v))
        self._kept["optimism"].append((self.gain_low - self._base, check.optimistic, rounding, -1))
        outside = max(planned_low - check.least, check.most - planned_high)
        self._kept["certificate"].append((outside, 0.0, rounding, -1))
        self._kept["precision"].append((planned_high - planned_low, epsilon, 1e-12 * r_max, -1))
        pair = check.state * A + check.action
        self._kept["greedy"].append((check.most - check.played, epsilon, rounding, pair))
        if core.span is not None:
            span = float(np.ptp(v))
            self._kept["span"].append((span, core.span, 1e-12 * (span + r_max), -1))

    def keep_worst(self, name: str, found: Floats, allowed: Floats, pairs: NDArray[np.int64] | None = None) -> None:
        """Keep the entry where found/allowed is largest, or found if nothing is allowed; of `pairs`, or of all."""
        k = nearest_miss(found, allowed)
        pair = k if pairs is None else int(pairs[k])
        rounding = 1e-9 if pairs is None else 1e-9 * self.core.reward_range
        self._kept[name].append((float(found[k]), float(min(allowed[k], 1e300)), rounding, pair))

    def keep(self, name: str, found: float, allowed: float, rounding: float) -> None:
        """Keep one comparison that belongs to no pair."""
        self._kept[name].append((found, allowed, rounding, -1))

    def _close(self, visits: NDArray[np.int64]) -> None:
        """Record what the finished episode executed."""
        nu = visits - self._before
        limit = execution_limits(self._before, self._limits[-1])
        at = int(np.argmax(nu / limit))
        self._kept["executed"].append((nu[at] / limit[at], at, bool(np.any(nu == limit)), nu.sum()))

    def ended_otherwise(self, made: NDArray[Any]) -> NDArray[np.bool_]:
        """Which episodes, of so many steps, may have ended for another reason than a pair: with a rule, a new state."""
        return np.full(made.size, self.core.unreachable is not None)

    @property
    def steps(self) -> Floats:
        """The first steps of the episodes seen."""
        return np.array(self._steps, dtype=np.float64)

    @property
    def cases(self) -> dict[str, Cases]:
        """Found and allowed of each statement that is checked once per episode, for the episodes seen."""
        A, cases = self.core.n_actions, {}
        for name in self.names:
            if name in self._kept:
                found, allowed, rounding, pair = np.array(self._kept[name], dtype=np.float64).T
                places = {} if pair.max() < 0 else {"states": pair // A, "actions": pair % A}
                cases[name] = Cases.of(found, allowed, rounding, **places)
        return cases

    def plan_findings(self) -> dict[str, Finding]:
        """The findings on every statement that was checked in the episodes, and on their lengths and number."""
        core, step = self.core, self.steps
        if len(self._kept["executed"]) < step.size:
            self._close(core.statistics.visits)
        found = {name: case.finding(step) for name, case in self.cases.items()}
        ratio, pair, full, steps = np.array(self._kept["executed"], dtype=np.float64).T
        full = np.maximum(full, self.ended_otherwise(steps))
        found["episode-rule"] = episode_rule(step, ratio, pair, full, core.n_actions)
        after = np.maximum(np.cumsum(steps), 1.0)
        most = most_episodes(after, core.n_states * core.n_actions, core.episode_rule)
        found["episode-count"] = compared(np.arange(1, step.size + 1), most, step)
        return found
