"""The auditor of SCAL+: every episode's plan and model compared with the true MDP."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gainful.agents.episodic import EpisodeView
from gainful.agents.scal_plus import SCALPlus
from gainful.audit.episodes import EpisodeFactors, allowed_episodes, episode_count, episode_rule
from gainful.audit.findings import Cases, Finding, Floats, joined, not_applicable
from gainful.audit.planned import (
    STATEMENTS_ABOUT_PLANS,
    EpisodeRecorder,
    PlannedEpisodes,
    ScalPlusConstants,
    over_actions,
    over_pairs,
    plan_cases,
)
from gainful.audit.rows import ANCHOR, TrueRows
from gainful.audit.terms import EpisodeSums, RegretTotals, executions
from gainful.audit.truth import Truth
from gainful.simulation.run import Run
from gainful.simulation.tabular import TabularSimulation

STATEMENTS_OF_SCAL_PLUS = (
    "bonus-formula",
    "bonus-rewards",
    "bonus-transitions",
    "bonus-bias",
    "bonus-values",
    "bonus-all-values",
    *STATEMENTS_ABOUT_PLANS,
    "term-bonus",
    "term-deviation",
    "term-precision",
    "term-telescoping",
    "term-martingale",
    "decomposition",
    "regret-bound",
)


class TrueModel:
    """The true MDP in the agent's internal units: r from 0, g* and h*."""

    def __init__(self, truth: Truth, agent: SCALPlus) -> None:
        S, A = agent.n_states, agent.n_actions
        self.rows = TrueRows(*truth.rows)
        self.rewards: Floats = (truth.rewards - agent.reward_min).reshape(S, A)
        self.bias, self.gain = truth.bias, truth.gain - agent.reward_min
        self.gain_low = truth.gain_low - agent.reward_min
        ptr, idx, p = truth.rows
        self.expected_bias: Floats = np.asarray(csr_matrix((p, idx, ptr), shape=(S * A, S)) @ self.bias).reshape(S, A)
        """(S,A) p·h*."""
        possible = np.where(agent.allowed, self.rewards + self.expected_bias, -np.inf)
        self.best_actions: NDArray[np.int64] = possible.argmax(axis=1)
        """(S,) π*."""


# ---------------------------------------------------------------------- statements about the true model


def bonus_rewards(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """|r̄ - r| ≤ r_max·min{β, 1} for every pair."""
    r_max = e.constants.reward_range
    return e.at_worst(np.abs(e.mean_rewards - true.rewards), r_max * e.capped_beta, r_max)


def bonus_transitions(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """|(p̄ - p)·h*| ≤ c·min{β, 1} for every pair; p̄·h* = ((N+1)·p̂·h* - h*(s̄))/N."""
    counted = ((e.visits + 1.0) * e.estimated_bias - true.bias[ANCHOR]) / np.maximum(1, e.visits)
    found = np.where(e.visited, np.abs(counted - true.expected_bias), 0.0)
    return e.at_worst(found, e.constants.span * e.capped_beta, float(np.ptp(true.bias)))


def bonus_bias(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """|r̄ - r + (p̂ - p)·h*| ≤ b_k for every pair."""
    most = e.constants.reward_range + float(np.ptp(true.bias))
    return e.at_worst(np.abs(e.mean_rewards - true.rewards + e.estimated_bias - true.expected_bias), e.b, most)


def bonus_values(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """|r̄ - r + (p̂ - p)·v_k| ≤ d_k for every pair."""
    most = e.constants.reward_range + e.constants.span
    return e.at_worst(np.abs(e.mean_rewards - true.rewards + e.estimated_values - e.true_values), e.d, most)


def bonus_all_values(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """|r̄ - r| + (c/2)·‖p̂ - p‖₁ ≤ d_k for every pair: the inequality for all v of span c at once."""
    most = e.constants.reward_range + e.constants.span
    return e.at_worst(np.abs(e.mean_rewards - true.rewards) + 0.5 * e.constants.span * e.distance, e.d, most)


def optimism_excess(e: PlannedEpisodes, true: TrueModel) -> Floats:
    """(K,S) L̂h* - Lh* = max_a (r̂ + p̂·h*) - h* - g*."""
    best = over_actions(np.maximum, e.where_possible(e.optimistic_rewards + e.estimated_bias, -np.inf))
    return np.asarray(best - true.bias - true.gain)


class ScalPlusAuditor:
    """Checks every episode of one SCAL+ agent in one MDP.

    Set `agent.on_episode = auditor.see` before the run, and ask for `findings()` when it is over.

    Parameters
    ----------
    agent : SCALPlus
        A new agent.
    truth : Truth
        The MDP, solved.
    simulation : TabularSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = STATEMENTS_OF_SCAL_PLUS

    def __init__(self, agent: SCALPlus, truth: Truth, simulation: TabularSimulation) -> None:
        self.agent, self.truth, self.simulation = agent, truth, simulation
        self._true = TrueModel(truth, agent)
        self._constants = ScalPlusConstants.of(agent, truth.support, agent.model_error, agent.n_states)
        self._recorder = EpisodeRecorder(self._constants, agent.allowed, self._true.rows, self._true.bias)
        self._repaired = 0
        """Plans that were repairs of the last one."""
        self._steps: list[int] = []
        self._limits: list[float] = []
        """f_k of each episode."""
        self._factors = EpisodeFactors(agent)
        self._states: list[int] = []
        """The first state of each episode."""
        self._earned: list[float] = []
        """Rewards before each episode."""
        self._cases: dict[str, list[Cases]] = defaultdict(list)
        self._sums: list[EpisodeSums] = []
        self._expected: list[Floats] = []
        """Σ ν·r of each episode: the rewards that were to be expected."""
        self._excess: list[Floats] = []

    def see(self, view: EpisodeView) -> None:
        """Record an episode that begins."""
        if self._recorder.full:
            self._examine(view.statistics.visits, int(self.simulation.clock[0]))
        self._recorder.add(view)
        self._repaired += bool(view.plan.details["repaired"])
        self._steps.append(view.step)
        self._limits.append(self._factors.begin(view, view.statistics.visits.size))
        self._states.append(int(self.simulation.clock[0]))
        self._earned.append(float(self.simulation.earned[0]))

    def _examine(self, visits: NDArray[np.int64], state: int) -> None:
        """Examine the episodes noted; after them come `visits` and `state`."""
        e, true = self._recorder.take(), self._true
        for name, case in (plan_cases(e, true.gain_low) | self._against_truth(e)).items():
            self._cases[name].append(case)
        excess = optimism_excess(e, true)
        self._excess.append(np.stack([excess.mean(axis=1), excess.max(axis=1)]))
        self._sums.append(self._executed(e, visits, state))

    def _against_truth(self, e: PlannedEpisodes) -> dict[str, Cases]:
        """The statements that compare the estimated model with the true one."""
        true = self._true
        return {
            "bonus-rewards": bonus_rewards(e, true),
            "bonus-transitions": bonus_transitions(e, true),
            "bonus-bias": bonus_bias(e, true),
            "bonus-values": bonus_values(e, true),
            "bonus-all-values": bonus_all_values(e, true),
        }

    def _executed(self, e: PlannedEpisodes, visits: NDArray[np.int64], state: int) -> EpisodeSums:
        """Sum up what the episodes of the batch executed."""
        K = e.step.size
        nu, ratio, pair, full = executions(
            np.concatenate([e.visits, visits.reshape(1, *e.possible.shape)]), np.array(self._limits[-K:])
        )
        self._expected.append(over_pairs(np.add, nu * self._true.rewards))
        states = np.array([*self._states[-K:], state])
        number = np.arange(K)
        return EpisodeSums(
            steps=over_pairs(np.add, nu),
            ratio=ratio,
            pair=pair,
            full=full,
            bonus=over_pairs(np.add, nu * e.b),
            deviation=over_pairs(np.add, nu * e.d),
            drift=over_pairs(np.add, nu * (e.true_values - e.values[:, :, None])),
            telescoping=e.values[number, states[1:]] - e.values[number, states[:-1]],
        )

    @property
    def cases(self) -> dict[str, Cases]:
        """Found and allowed of each statement that is checked once per episode, for the episodes examined."""
        return {name: joined(parts) for name, parts in self._cases.items()}

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and numbers to show: sums of the terms, tightness of optimism over time."""
        agent, simulation = self.agent, self.simulation
        if self._recorder.n:
            self._examine(agent.statistics.visits, simulation.state)
        step, sums = np.array(self._steps, dtype=np.float64), joined(self._sums)
        found = {name: case.finding(step) for name, case in self.cases.items()}
        earned = np.append(self._earned[1:], simulation.total) - agent.reward_min * np.cumsum(sums.steps)
        totals = RegretTotals.of(
            sums,
            step,
            gain=self._true.gain,
            earned=earned,
            reward_luck=np.concatenate(self._expected) - np.diff(earned, prepend=0.0),
            constants=self._constants,
            mixture=agent.mixture,
            episodes=self._factors.rule,
        )
        run = simulation.run()
        found |= totals.findings(step)
        bounded, shown = self._against_bound(totals, run, step)
        found |= bounded
        found["episode-rule"] = episode_rule(step, sums.ratio, sums.pair, sums.full, agent.n_actions)
        most = allowed_episodes(self._factors.rule, sums.steps, agent.n_states * agent.n_actions)
        found["episode-count"] = episode_count(step, sums.steps, most)
        for name, reason in self._reasons().items():
            found[name] = not_applicable(reason)
        mean, largest = np.concatenate(self._excess, axis=1)
        shown["plans"] = {"swept": len(self._steps) - self._repaired, "repaired": self._repaired}
        shown["tightness"] = {"step": list(self._steps), "mean": mean.tolist(), "largest": largest.tolist()}
        return {name: found[name] for name in self.names}, shown

    def _against_bound(self, totals: RegretTotals, run: Run, step: Floats) -> tuple[dict[str, Finding], dict[str, Any]]:
        """The regret against the explicit bound, and numbers to show."""
        allowed = totals.bound(run.steps.astype(np.float64))
        shown = {
            "sums": totals.shown(),
            "bound": totals.total_bound(run.steps).tolist(),
            "terms": {name: float(values[-1]) for name, values in allowed.items()},
        }
        return {"regret-bound": totals.regret_bound(run.regret, run.steps, step)}, shown

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, span = self.agent, self.truth.span
        reasons: dict[str, str] = {}
        if agent.bonus_scale > 1.0:
            reasons["term-bonus"] = f"bonus_scale is {agent.bonus_scale:g}: b is larger than the theorem's"
        if span > agent.span * (1.0 + 1e-9):
            for name in ("bonus-transitions", "bonus-bias", "optimism", "decomposition", "regret-bound"):
                reasons[name] = (
                    f"the optimal bias has span {span:.6g}, more than c = {agent.span:g}: the theorem does not apply"
                )
        if agent.mixture == "min-action":
            reasons["decomposition"] = "the policy draws its actions: the inequality holds in expectation over them"
            if agent.bonus != "appendix":
                reasons["regret-bound"] = "with drawn actions the bound is for the appendix's bonus"
        return reasons
