"""The auditor of PMEVI-DT: differences of the bias and β by their equations, and plans within them.

The path is walked once more: in an MDP by the environment's own draws and the plans, on cells as the agent noted it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.agents.pmevi_dt import BOUNDING_ROUNDS, PMEVIDT, WORTH_ANOTHER
from gainful.audit.episode_auditor import EpisodeAuditor
from gainful.audit.findings import Finding, Floats, compared, not_applicable, without_theorem
from gainful.audit.kl_rows import NO_SQUARES, PairValues, SetsInUse, optimistic_values, set_errors
from gainful.audit.rows import counted_rows
from gainful.audit.seen import Seen
from gainful.audit.set_plans import PlanCheck
from gainful.audit.sets import formula_errors, pair_brackets, widths_of
from gainful.audit.truth import Truth
from gainful.simulation.transition_table import TabularStepper
from gainful.theory.bias_differences import (
    WalkedPath,
    bias_deviation,
    difference_bounds,
    largest_within,
    range_deviation,
    shortest_differences,
    square_deviation,
)
from gainful.theory.kl_regret import kl_scal_plus_terms_at, value_range

ON_CELLS_NO_BIAS = "the states of a cell are not one state of an MDP, and have no one bias"


class Known(NamedTuple):
    """What the equations give when a plan is made, in units of r_max."""

    low: Floats
    high: Floats
    """(S, S) the intervals of h*(s') - h*(s)."""
    closed: Floats
    """(S, S) d⁺."""
    beta: Floats
    """(S*A,) β."""


class PMEVIAuditor(EpisodeAuditor):
    """Checks every episode of one PMEVI-DT agent, on the states of an MDP or on cells."""

    names: tuple[str, ...] = (
        "set-formula",
        "bias-formula",
        "bias-differences",
        "mitigation",
        "optimism",
        "span",
        "certificate",
        "precision",
        "greedy",
        "episode-rule",
        "episode-count",
        "regret-bound",
    )
    agent: PMEVIDT

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        agent = self.agent
        S, c = agent.n_states, agent.span / agent.reward_range
        self._closed = np.where(np.eye(S, dtype=bool), 0.0, c)
        self._gain = 1.0
        self._path = WalkedPath(S)
        self._plan: EpisodePlan | None = None
        self._stepper = None if truth is None else TabularStepper(truth.mdp, simulation.seed)
        self._walked = 0
        self._errors = np.zeros(self.possible.size)
        if truth is not None and agent.base == "kl-scal-plus":
            self.names = tuple("projected-regret-bound" if name == "regret-bound" else name for name in self.names)

    # ------------------------------------------------------------------ the equations, once more

    def _walk(self, until: int) -> None:
        """Make the steps of the last plan up to `until` again."""
        agent = self.agent
        if self._stepper is None:
            self._copy_path()
            return
        state = self._stepper.first_state if self._path.at < 0 else self._path.at
        for t in range(self._walked, until):
            assert self._plan is not None
            reward, to = self._stepper.step(t, state, int(self._plan.actions[state]))
            self._path.walk(state, (reward - agent.reward_min) / agent.reward_range, to)
            state = to
        self._walked = until

    def _copy_path(self) -> None:
        """Take the path as the agent noted it."""
        s, path, r_max = self.agent.path.segments, self._path, self.agent.reward_range
        path.n, path.cut, path.length = (table.astype(np.float64) for table in (s.completed, s.cut, s.steps))
        path.rewards, path.steps = s.earned / r_max, self.agent.path.n_steps
        path.earned, path.pieces = float(s.total[0]) / r_max, self.agent.path.n_pieces

    def _known(self, view: EpisodeView, seen: Seen) -> Known:
        agent, S = self.agent, self.agent.n_states
        c = agent.span / agent.reward_range
        low, high = np.full((S, S), -np.inf), np.full((S, S), np.inf)
        squares = np.inf
        for _ in range(BOUNDING_ROUNDS if agent.bias != "none" else 0):
            before, squares = squares, self._squares(seen)
            if not squares < WORTH_ANOTHER * before:
                break
            radius, everything = self._radii(squares, c)
            low, high = difference_bounds(self._path, self._gain, c, radius, everything)
            bounds = np.minimum(self._closed, np.minimum(high.T, -low))
            np.fill_diagonal(bounds, 0.0)
            closed = shortest_differences(bounds)
            if np.diag(closed).min() < -1e-12 * np.abs(closed).max():
                break
            np.fill_diagonal(closed, 0.0)
            self._closed = closed
        return Known(low, high, self._closed, self._beta(view, seen))

    def _squares(self, seen: Seen) -> float:
        """V: jumps of the bias between states, and of rewards around the mean of their pair."""
        if self.agent.bias == "azuma":
            return 0.0
        A, r_max = self.agent.n_actions, self.agent.reward_range
        origin, counts = seen.pair // A, np.rint(seen.p * seen.visits[seen.pair])
        jumps = np.maximum(np.maximum(self._closed, self._closed.T), 0.0)[origin, seen.next_state]
        n = seen.visits[seen.visits > 0]
        rewards = n * seen.variance[seen.visits > 0] / r_max**2 + 1.0 + np.log(n)
        return float((math.sqrt(float(counts @ jumps**2)) + math.sqrt(float(rewards.sum()))) ** 2)

    def _radii(self, squares: float, c: float) -> tuple[Floats, float]:
        agent, S, path = self.agent, self.agent.n_states, self._path
        failure = agent.delta / (S * (S - 1) + 1)
        lengths = path.all_lengths if self._stepper is not None else agent.path.under_way.astype(np.float64)
        if agent.bias == "azuma":
            return range_deviation(lengths, c, failure), float(range_deviation(np.array([path.steps]), c, failure)[0])
        own = square_deviation(np.minimum(squares, (c + 1.0) ** 2 * lengths), c, failure)
        return own, float(square_deviation(np.array([squares]), c, failure)[0])

    def _beta(self, view: EpisodeView, seen: Seen) -> Floats:
        """(S*A,) √(2ρ)·σ + 2·max d⁺·ρ; inf if N = 0 or without mitigation."""
        agent, A, S = self.agent, self.agent.n_actions, self.agent.n_states
        found = np.full(self.possible.size, np.inf)
        if not agent.mitigation:
            return found
        last = np.zeros(S) if self._plan is None else self._plan.values / agent.reward_range
        centre, most = largest_within(last, self._closed), float(self._closed.max(initial=0.0))
        union = S * (S + 1) if agent.base == "kl-scal-plus" else S
        for k in np.flatnonzero((seen.visits > 0) & self.possible):
            n = int(seen.visits[k])
            rho = agent.width_scale * (math.log(union / agent.delta) + 0.5 * math.log(n) + math.log(2.0)) / n
            row = np.zeros(S)
            to, counts = view.statistics.row(int(k))
            row[to] = counts / n
            sigma = bias_deviation(row, int(k) // A, centre, self._closed)
            found[k] = math.sqrt(2.0 * rho) * sigma + 2.0 * most * rho
        return found

    # ------------------------------------------------------------------ an episode

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        self.begin(view)
        self._walk(view.step - 1)
        agent, plan, seen = self.agent, view.plan, Seen.of(view.statistics)
        known = self._known(view, seen)
        self._keep_formulas(plan, known)
        low, high, rewards = self._base_values(view, seen)
        self._keep_values(view, known, (low, high, rewards), seen)
        if self.truth is not None:
            self._compare_with_truth(plan, seen)
        self._plan = plan
        self._gain = min(self._gain, max(0.0, (plan.gain_bounds[1] - agent.reward_min) / agent.reward_range))

    def _keep_formulas(self, plan: EpisodePlan, known: Known) -> None:
        """The intervals, their closure and β in use against the equations, relative to 1 + the number."""
        within, r_max, A = plan.details["within"], self.agent.reward_range, self.agent.n_actions
        used_low, used_high = plan.details["bias_intervals"]
        wrong = [0.0]
        tables = ((used_low, known.low), (used_high, known.high), (within.differences / r_max, known.closed))
        for used, expected in tables:
            if not np.array_equal(np.isfinite(used), np.isfinite(expected)):
                wrong.append(np.inf)
            real = np.isfinite(expected) & np.isfinite(used)
            relative = np.abs(used[real] - expected[real]) / (1.0 + np.abs(expected[real]))
            wrong.append(float(relative.max(initial=0.0)))
        self.cases.keep("bias-formula", max(wrong), 0.0, 1e-8)
        used, known_beta = within.mitigation / r_max, known.beta
        real = np.isfinite(known_beta) & self.possible
        off = np.where(np.isfinite(used) == np.isfinite(known_beta), 0.0, np.inf)
        off[real] = np.maximum(off[real], np.abs(used[real] - known_beta[real]) / (1.0 + known_beta[real]))
        k = int(np.argmax(np.where(self.possible, off, -1.0)))
        self.cases.keep("bias-formula", off[k], 0.0, 1e-8, pair=k // A * A + k % A)

    def _base_values(self, view: EpisodeView, seen: Seen) -> tuple[Floats, Floats, Floats]:
        """(S*A,) brackets of r̃ + max p·v over the base's sets, and r̃; and whether these are the base's equations."""
        agent, base, plan = self.agent, self.agent.base_agent, view.plan
        if isinstance(base, KLSCALPlus):
            sets = SetsInUse(plan.details["rewards"], plan.details["radius"], self.possible)
            union = math.log(agent.n_states * (agent.n_states + 1)) - math.log(agent.delta)
            sums = seen.visits, view.statistics.reward_sum, NO_SQUARES
            constants = union, agent.reward_range, agent.width_scale
            set_errors(sums, constants, tuple(sets), self._errors)
            self.cases.keep_worst("set-formula", self._errors, 0.0, 1e-9, self.possible)
            low, high = np.empty(self.possible.size), np.empty(self.possible.size)
            found = PairValues(low, high, np.zeros(self.possible.size))
            optimistic_values(
                tuple(counted_rows(view.statistics)), tuple(sets), plan.values, plan.actions, tuple(found)
            )
            return low, high, np.asarray(plan.details["rewards"])
        widths = widths_of(base, seen, view.step)
        wrong = formula_errors(base, plan, seen, widths, view.step)
        self.cases.keep_worst("set-formula", wrong, 0.0, 1e-12, self.possible)
        low, high = pair_brackets(base, view, seen, widths)
        r_max = agent.reward_range
        return low, high, np.where(seen.visits > 0, np.minimum(r_max, seen.mean + widths.rewards), r_max)

    def _keep_values(self, view: EpisodeView, known: Known, values: tuple[Floats, Floats, Floats], seen: Seen) -> None:
        """Γ𝓛v - v against the plan's bracket, and what the actions played are worth."""
        agent, v, r_max = self.agent, view.plan.values, self.agent.reward_range
        low, high, rewards = values
        with np.errstate(invalid="ignore"):
            limit = np.where(self.possible, rewards + seen.expected(v) + r_max * known.beta, -np.inf)
        shape = agent.allowed.shape
        q_low, q_high = np.minimum(low, limit).reshape(shape), np.minimum(high, limit).reshape(shape)
        check = projected_check(q_low, q_high, v, view.plan.actions, r_max * known.closed)
        self.keep_plan(view, check)
        self.keep_optimism(view, check)
        self.cases.keep("span", float(np.ptp(v)), agent.span, 1e-12 * (agent.span + r_max))

    def _compare_with_truth(self, plan: EpisodePlan, seen: Seen) -> None:
        """h* within the differences, and p·h* ≤ p̄·h* + β at the optimal actions."""
        assert self.truth is not None
        truth, agent, within = self.truth, self.agent, plan.details["within"]
        S, A, h = agent.n_states, agent.n_actions, truth.bias
        apart = h[:, None] - h[None, :] - within.differences
        worst = int(np.argmax(apart))
        s, y = divmod(worst, S)
        rounding = 1e-9 * (agent.reward_range + agent.span)
        self.cases.keep("bias-differences", h[s] - h[y], within.differences[s, y], rounding, pair=s * A)
        ptr, idx, p = truth.rows
        expected = np.asarray(csr_matrix((p, idx, ptr), shape=(S * A, S)) @ h)
        worth = np.where(agent.allowed, (truth.rewards + expected).reshape(S, A), -np.inf)
        best: NDArray[np.int64] = np.arange(S) * A + worth.argmax(axis=1)
        visited = best[np.isfinite(within.mitigation[best])]
        if visited.size:
            own = seen.expected(h)[visited] + within.mitigation[visited]
            k = int(np.argmax(expected[visited] - own))
            self.cases.keep("mitigation", expected[visited][k], own[k], rounding, pair=int(visited[k]))

    # ------------------------------------------------------------------ findings

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        agent, truth = self.agent, self.truth
        found = self.kept("set-formula", "bias-formula", "span", "certificate", "precision", "greedy")
        found |= self.episodes()
        about_truth = ("bias-differences", "mitigation", "optimism")
        found["regret-bound"] = without_theorem(f"the bound on the sets of {agent.base} is an order without constants")
        if truth is None:
            return found | {name: not_applicable(ON_CELLS_NO_BIAS) for name in about_truth}
        found |= self.kept(*about_truth)
        found["projected-regret-bound"] = self._regret_finding(truth)
        if not agent.mitigation:
            found["mitigation"] = not_applicable("mitigation is False")
        if truth.span > agent.span * (1.0 + 1e-9):
            why = f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}"
            void = (*about_truth, "projected-regret-bound")
            found |= {name: not_applicable(f"{why}: the theorem does not apply") for name in void}
        return found

    def _regret_finding(self, truth: Truth) -> Finding:
        """The regret at the checkpoints of the run against KL-SCAL+'s bound with H = max{1, c}."""
        agent, run = self.agent, self.simulation.run()
        terms = kl_scal_plus_terms_at(
            run.steps.astype(np.float64),
            agent.n_states,
            agent.n_actions,
            value_range=value_range(agent.span, None, agent.reward_range),
            support=truth.support,
            reward_max=agent.reward_range,
            delta=agent.delta,
            episodes=agent.episode_rule,
        )
        bound, at = np.sum(list(terms.values()), axis=0), np.searchsorted(self.steps, run.steps, "right")
        certain = bound >= run.steps * (truth.gain - agent.reward_min)
        return compared(run.pseudo_regret, bound, run.steps, episodes=at, certain=certain)


def projected_check(q_low: Floats, q_high: Floats, v: Floats, actions: NDArray[np.int64], closed: Floats) -> PlanCheck:
    """`check_plan` with Γ in the place of the cut at c."""
    below = largest_within(q_low.max(axis=1), closed) - v
    above = largest_within(q_high.max(axis=1), closed) - v
    played = q_high[np.arange(v.size), actions] - v
    s = int(played.argmin())
    return PlanCheck(float(above.min()), float(below.max()), float(above.max()), float(played[s]), s, int(actions[s]))
