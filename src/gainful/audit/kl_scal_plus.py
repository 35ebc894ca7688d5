"""The auditor of KL-SCAL+: every statement of `docs/kl_scal_plus.md` that can be seen on a run.

The operator is computed again from the counts, the radii and r̃ of the plan, by kernels of its own (`audit.kl_rows`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gainful.agents.episodic import EpisodeView
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.audit.episodes import episode_rule
from gainful.audit.findings import Cases, Finding, Floats, compared, not_applicable
from gainful.audit.kl_rows import (
    Dominations,
    Functions,
    PairValues,
    SetsInUse,
    dominations,
    optimistic_values,
    set_errors,
)
from gainful.audit.rows import TrueRows, counted_rows
from gainful.audit.truth import LARGEST_DIAMETER, Truth
from gainful.simulation.tabular import TabularSimulation
from gainful.theory.kl_regret import kl_scal_plus_terms_at, most_episodes, value_range

STATEMENTS_OF_KL_SCAL_PLUS = (
    "set-formula",
    "reward-domination",
    "bias-domination",
    "times-domination",
    "optimism",
    "span",
    "span-diameter",
    "certificate",
    "precision",
    "greedy",
    "episode-rule",
    "episode-count",
    "mean-regret-bound",
)

EXACT_STATES = 12
"""States up to which the nearest miss of every τ is computed; above, a pair whose ball holds p is passed at once."""


class TrueFunctions(NamedTuple):
    """What E1 is about: h* and -τ_z, with the pairs (s,π*(s)) and (s,π_z(s)) at which they are asked about."""

    best: NDArray[np.int64]
    """(S,) the pairs s*A + π*(s)."""
    bias: Functions
    times: Functions | None
    """None if some state cannot be reached from some other, or if there are too many states."""
    diameter: float | None

    @classmethod
    def of(cls, truth: Truth, allowed: NDArray[np.bool_]) -> TrueFunctions:
        """Solve for them."""
        S, A = allowed.shape
        ptr, idx, p = truth.rows
        rows = csr_matrix((p, idx, ptr), shape=(S * A, S))
        expected_bias = np.asarray(rows @ truth.bias)
        worth = (truth.rewards + expected_bias).reshape(S, A)
        best = np.arange(S) * A + np.where(allowed, worth, -np.inf).argmax(axis=1)
        bias = questions(best, np.zeros(S, dtype=np.int64), expected_bias[best], truth.bias[None, :], S * A)
        if truth.diameter is None:
            return cls(best, bias, None, None)
        times = truth.hitting_times
        expected = np.where(allowed.reshape(-1)[:, None], np.asarray(rows @ times), np.inf).reshape(S, A, S)
        pairs = (np.arange(S)[:, None] * A + expected.argmin(axis=1)).astype(np.int64)  # (S, S): from s to z
        away, target = ~np.eye(S, dtype=bool), np.broadcast_to(np.arange(S), (S, S))
        asked = questions(pairs[away], target[away], -expected.min(axis=1)[away], -times.T, S * A)
        return cls(best, bias, asked, truth.diameter)


def questions(
    pairs: NDArray[np.int64], which: NDArray[np.int64], level: Floats, values: Floats, n_pairs: int
) -> Functions:
    """The questions, one for each i, whether klmax(p̄, h, ρ) ≥ p·h = level[i] at pairs[i] for h = values[which[i]]."""
    order = np.argsort(pairs, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(pairs, minlength=n_pairs))])
    f, of = np.ascontiguousarray(which[order], dtype=np.int64), np.ascontiguousarray(level[order])
    return Functions(ptr, f, of, np.ascontiguousarray(values), values.max(axis=1))


class KLScalPlusAuditor:
    """Checks every episode of one KL-SCAL+ agent in one MDP.

    Set `agent.on_episode = auditor.see` before the run, and ask for `findings()` when it is over.

    Parameters
    ----------
    agent : KLSCALPlus
        A new agent.
    truth : Truth
        The MDP, solved.
    simulation : TabularSimulation
        The run that is about to begin.
    """

    names = STATEMENTS_OF_KL_SCAL_PLUS

    def __init__(self, agent: KLSCALPlus, truth: Truth, simulation: TabularSimulation) -> None:
        self.agent, self.truth, self.simulation = agent, truth, simulation
        pairs = agent.n_states * agent.n_actions
        self._true = TrueFunctions.of(truth, agent.allowed)
        self._rows = TrueRows(*truth.rows)
        self._rewards = truth.rewards - agent.reward_min
        log_union = math.log(agent.n_states * (agent.n_states + 1) / agent.delta)
        self._constants = log_union, agent.reward_range, agent.width_scale
        self._possible = np.ascontiguousarray(agent.allowed.reshape(-1))
        self._values = PairValues(*(np.zeros(pairs) for _ in PairValues._fields))
        self._errors = np.zeros(pairs)
        self._least = {name: np.zeros(pairs) for name in ("bias-domination", "times-domination")}
        self._seen = {name: np.zeros(pairs, dtype=np.int64) for name in self._least}
        self._before: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self._steps: list[int] = []
        self._limits: list[float] = []
        """f_k of each episode, as the rule says."""
        self._most_span = 0.0
        self._kept: dict[str, list[tuple[float, ...]]] = defaultdict(list)

    # ------------------------------------------------------------------ every episode

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        if self._steps:
            self._close(view.statistics.visits)
        agent, plan, t = self.agent, view.plan, view.step
        S, A, r_max = agent.n_states, agent.n_actions, agent.reward_range
        visits = view.statistics.visits
        sets = SetsInUse(plan.details["rewards"], plan.details["radius"], self._possible)
        rows = tuple(counted_rows(view.statistics))
        self._steps.append(t)
        set_errors((visits, view.statistics.reward_sum), self._constants, tuple(sets), self._errors)
        self._keep_worst("set-formula", self._errors, np.zeros_like(self._errors))
        best = self._true.best
        self._keep_worst("reward-domination", self._rewards[best], sets.rewards[best], best)
        asked = {"bias-domination": self._true.bias, "times-domination": self._true.times}
        for name, functions in asked.items():
            if functions is not None:
                self._dominated(name, functions, rows, sets.radius)
        optimistic_values(rows, tuple(sets), plan.values, tuple(self._values))
        self._examine_plan(plan, t)
        self._most_span = max(self._most_span, float(np.ptp(plan.values)) / r_max)
        self._limits.append(self._multiplier(t, S * A))
        self._before = visits.copy()

    def _dominated(self, name: str, asked: Functions, rows: Any, radius: Floats) -> None:
        exact = name == "bias-domination" or self.agent.n_states <= EXACT_STATES
        found, seen = self._least[name], self._seen[name]
        dominations(rows, tuple(self._rows), radius, tuple(asked), seen, exact, tuple(Dominations(found)))
        self._keep_worst(name, np.where(seen > 0, found, 0.0), np.where(seen > 0, radius, np.inf))

    def _examine_plan(self, plan: Any, t: int) -> None:
        """Tv - v from the definition, its bracket, and what the actions played are worth."""
        agent, v = self.agent, plan.values
        S, A, r_max = agent.n_states, agent.n_actions, agent.reward_range
        low, high = (table.reshape(S, A) for table in (self._values.lower, self._values.upper))
        c = np.inf if agent.span is None else agent.span
        from_below, from_above = low.max(axis=1), high.max(axis=1)
        least = np.minimum(from_below, from_below.min() + c) - v
        most = np.minimum(from_above, from_above.min() + c) - v
        base = agent.reward_min + agent.model_error
        planned_low, planned_high = (end - base for end in plan.gain_bounds)
        rounding = 1e-9 * (r_max + np.ptp(v))
        self._kept["optimism"].append((self.truth.gain_low - base, most.max(), rounding, -1))
        outside = max(planned_low - most.min(), least.max() - planned_high)
        self._kept["certificate"].append((outside, 0.0, rounding, -1))
        self._kept["precision"].append((planned_high - planned_low, r_max / np.sqrt(t), 1e-12 * r_max, -1))
        played = high[np.arange(S), plan.actions] - v
        s = int(played.argmin())
        pair = s * A + int(plan.actions[s])
        self._kept["greedy"].append((least.max() - played[s], r_max / np.sqrt(t), rounding, pair))
        span = float(np.ptp(v))
        if agent.span is not None:
            self._kept["span"].append((span, c, 1e-12 * (span + r_max), -1))
        if self._true.diameter is not None:
            epsilon = r_max / np.sqrt(t)
            allowed = (r_max + epsilon) * self._true.diameter + epsilon
            self._kept["span-diameter"].append((span, allowed, rounding, -1))

    def _keep_worst(self, name: str, found: Floats, allowed: Floats, pairs: NDArray[np.int64] | None = None) -> None:
        """Keep the entry where found/allowed is largest, or found if nothing is allowed; of `pairs`, or of all."""
        k = int(np.argmax(np.where(allowed > 0.0, found / np.maximum(allowed, 1e-300), found)))
        pair = k if pairs is None else int(pairs[k])
        rounding = 1e-9 if pairs is None else 1e-9 * self.agent.reward_range
        self._kept[name].append((float(found[k]), float(min(allowed[k], 1e300)), rounding, pair))

    def _multiplier(self, t: int, pairs: int) -> float:
        """f_k, computed again."""
        rule = self.agent.episode_rule
        if rule == "doubling" or t < 2:
            return 1.0
        if rule == "vanishing-sqrt":
            return float(np.sqrt(np.log(t) / t))
        return float(min(1.0, np.sqrt(pairs * max(1.0, self._most_span) / t)))

    def _close(self, visits: NDArray[np.int64]) -> None:
        """Record what the finished episode executed."""
        nu = visits - self._before
        limit = np.maximum(1, np.floor(self._limits[-1] * self._before * (1.0 + 1e-12)))
        at = int(np.argmax(nu / limit))
        self._kept["executed"].append((nu[at] / limit[at], at, bool(np.any(nu == limit)), nu.sum()))

    # ------------------------------------------------------------------ findings

    @property
    def cases(self) -> dict[str, Cases]:
        """Found and allowed of each statement that is checked once per episode, for the episodes seen."""
        A, cases = self.agent.n_actions, {}
        for name in self.names:
            if name in self._kept:
                found, allowed, rounding, pair = np.array(self._kept[name], dtype=np.float64).T
                places = {} if pair.max() < 0 else {"states": pair // A, "actions": pair % A}
                cases[name] = Cases.of(found, allowed, rounding, **places)
        return cases

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and the explicit bound to show."""
        agent = self.agent
        if len(self._kept["executed"]) < len(self._steps):
            self._close(agent.statistics.visits)
        step = np.array(self._steps, dtype=np.float64)
        found = {name: case.finding(step) for name, case in self.cases.items()}
        ratio, pair, full, steps = np.array(self._kept["executed"], dtype=np.float64).T
        after = np.maximum(np.cumsum(steps), 1.0)
        if agent.unreachable is not None:
            full = np.ones_like(full)  # a new state may have ended it
        found["episode-rule"] = episode_rule(step, ratio, pair, full, agent.n_actions)
        most = most_episodes(after, agent.n_states * agent.n_actions, agent.episode_rule)
        found["episode-count"] = compared(np.arange(1, step.size + 1), most, step)
        shown: dict[str, Any] = {}
        reasons = self._reasons()
        if "mean-regret-bound" not in reasons:
            run = self.simulation.run()
            at = np.searchsorted(step, run.steps, "right")
            bound = self.bound(run.steps.astype(np.float64))
            found["mean-regret-bound"] = compared(run.pseudo_regret, bound, run.steps, episodes=at)
            T = run.steps.astype(np.float64)
            log = np.log(6.0 * agent.n_states**2 * agent.n_actions * np.sqrt(T) / agent.delta)
            shown["bound"] = (bound + agent.reward_range * np.sqrt(T * log)).tolist()  # of rewards received
        for name, reason in reasons.items():
            found[name] = not_applicable(reason)
        return {name: found[name] for name in self.names}, shown

    def bound(self, T: Floats) -> Floats:
        """The explicit bound on Σ (g* - r(s_t,a_t)) after T steps."""
        agent = self.agent
        terms = kl_scal_plus_terms_at(
            T,
            agent.n_states,
            agent.n_actions,
            value_range=value_range(agent.span, self._true.diameter, agent.reward_range),
            support=self.truth.support,
            reward_max=agent.reward_range,
            delta=agent.delta,
            episodes=agent.episode_rule,
        )
        return np.asarray(np.sum(list(terms.values()), axis=0))

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, truth, reasons = self.agent, self.truth, {}
        if agent.span is None:
            reasons["span"] = "no span was given"
        if self._true.times is None:
            why = f"more than {LARGEST_DIAMETER} states" if truth.mdp.n_states > LARGEST_DIAMETER else "D is infinite"
            reasons |= {"times-domination": why, "span-diameter": why}
            if agent.span is None:
                reasons["mean-regret-bound"] = f"{why}, and no span was given"
        if agent.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            why = (
                f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}: the theorem does not apply"
            )
            reasons |= {"optimism": why, "mean-regret-bound": why}
        if agent.unreachable is not None:
            for name in ("optimism", "certificate", "greedy", "span-diameter", "mean-regret-bound"):
                reasons[name] = "unreachable is 'tucrl': its operator is another one, and nothing is proven"
        return reasons
