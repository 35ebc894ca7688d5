"""The auditor of PSRL: the model of every plan is a draw of the posterior, and the plan is one of that model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodeView
from gainful.agents.posterior_planning import DrawnModel
from gainful.agents.psrl import PSRL
from gainful.audit.calibration import REWARD, BetaDraws, Calibration, group_of
from gainful.audit.case_log import CaseLog, ExecutionLog
from gainful.audit.episodes import EpisodeFactors, growing_episode_rule
from gainful.audit.findings import Finding, Floats, compared, without_theorem
from gainful.audit.rows import CountedRows, counted_rows
from gainful.audit.sampled_rows import (
    AT_ONCE,
    BY_RULE,
    MIXED,
    as_drawn,
    broken_sticks,
    room_for,
    sample_errors,
    sampled_values,
)
from gainful.audit.set_plans import check_plan
from gainful.audit.truth import Truth
from gainful.theory.regret import episodes_at

NOT_OPTIMISTIC = (
    "a sampled gain exceeds g* in some episodes only; the proof of Ouyang et al. 2017 needs that it is right on "
    "average over the prior"
)
BAYESIAN = "no bound of its regret in one given MDP is proven; theorem 1 of Ouyang et al. 2017 averages over the prior"


class PSRLAuditor:
    """Checks every episode of one PSRL agent, on the states of an MDP or on cells.

    Parameters
    ----------
    agent : Agent
        A new `PSRL`, or one on cells.
    truth : Truth or None
        The MDP, solved; None on cells.
    seed : int
        Of the run, for the audit's own random numbers.
    """

    names: tuple[str, ...] = (
        "sampled-model",
        "posterior-sample",
        "fresh-sample",
        "certificate",
        "precision",
        "greedy",
        "episode-rule",
        "episode-count",
        "optimism",
        "regret-bound",
    )

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        self.agent: PSRL = agent.core
        self.truth = truth
        agent = self.agent
        pairs = agent.n_states * agent.n_actions
        self._possible = np.ascontiguousarray(agent.allowed.reshape(-1))
        self._cases, self._executed = CaseLog(agent.n_actions), ExecutionLog(pairs)
        self._factors = EpisodeFactors(self.agent)
        self._calibration = Calibration(simulation.seed)
        self._room = room_for(pairs, 0)
        self._errors, self._low, self._high = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self._given_up = 0
        """Plans without the precision asked for, because states are all but cut off in the sample."""

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        rows = counted_rows(view.statistics)
        model, division = self._sample(view)
        self._cases.begin(view.step)
        self._executed.begin(rows.visits, self._factors.begin(view, self._possible.size))
        sample_errors(tuple(rows), tuple(model), self._possible, self.agent.reward_range, self._errors)
        self._cases.keep_worst("sampled-model", self._errors, 0.0, 1e-9)
        self._calibrate(rows, view.statistics.reward_sum, model, division)
        self._examine_plan(view, model)

    def _sample(self, view: EpisodeView) -> tuple[DrawnModel, int]:
        """The model of the plan, and how the mass of states never seen was divided in it."""
        details = view.plan.details
        if "sample" in details:
            return details["sample"], MIXED if details["completed"] else BY_RULE
        S, pairs = self.agent.n_states, self._possible.size
        seen = np.zeros((pairs, S), dtype=bool)
        kept = view.statistics.to_arrays()
        seen[np.repeat(np.arange(pairs), kept["length"]), kept["next_state"]] = True
        transitions, rewards = details["transitions"].reshape(pairs, S), details["rewards"].reshape(-1)
        return as_drawn(transitions, rewards, seen, self._possible), AT_ONCE

    def _calibrate(self, rows: CountedRows, reward_sum: Floats, model: DrawnModel, division: int) -> None:
        """Compare the model with Dirichlet(α + counts) and r_max·Beta(β + Σr/r_max, β + N - Σr/r_max)."""
        agent, N = self.agent, rows.visits
        entries = int(rows.length.sum())
        if self._room.one.size < entries + 2 * N.size:
            self._room = room_for(N.size, 2 * entries)
        n, ranks = broken_sticks(
            tuple(rows), tuple(model), self._possible, agent.transition_prior, division, tuple(self._room)
        )
        one, others, a, b, group, rank, among, rank_group = self._room
        self._calibration.add(BetaDraws(*(column[:n].copy() for column in (one, others, a, b, group))))
        if ranks:
            self._calibration.add_ranks(rank[:ranks], among[:ranks], rank_group[:ranks])
        k, r_max, beta = self._possible, agent.reward_range, agent.reward_prior
        wins = np.minimum(reward_sum[k] / r_max, N[k])
        r, losses = model.rewards[k], N[k] - wins
        self._calibration.add_at_places(BetaDraws(r, r_max - r, beta + wins, beta + losses, group_of(REWARD, N[k])))

    def _examine_plan(self, view: EpisodeView, model: DrawnModel) -> None:
        """Lv - v in the sample, the bracket of its gain, and what the actions played are worth."""
        agent, plan, keep = self.agent, view.plan, self._cases.keep
        S, A, r_max = agent.n_states, agent.n_actions, agent.reward_range
        sampled_values(tuple(model), self._possible, plan.values, self._low, self._high)
        check = check_plan(self._low.reshape(S, A), self._high.reshape(S, A), plan.values, plan.actions)
        low, high = (end - agent.reward_min for end in plan.gain_bounds)
        epsilon, rounding = r_max / np.sqrt(view.step), 1e-9 * (r_max + float(np.ptp(plan.values)))
        if plan.details.get("completed", False) and high - low > epsilon:  # both contain the gain of the sample
            self._given_up += 1
            keep("certificate", max(low - check.optimistic, check.least - high), 0.0, rounding)
        else:
            keep("certificate", max(low - check.least, check.most - high), 0.0, rounding)
            keep("precision", high - low, epsilon, 1e-12 * r_max)
            pair = check.state * A + check.action
            keep("greedy", check.most - check.played, epsilon, rounding, pair=pair)
        if self.truth is not None:
            keep("optimism", self.truth.gain_low - agent.reward_min, check.optimistic, rounding)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and how many plans were given up, to show."""
        self._executed.end(self.agent.statistics.visits)
        cases, step = self._cases, np.array(self._cases.steps, dtype=np.float64)
        ratio, pair, full, made = self._executed.columns
        found = {name: cases.finding(name) for name in ("sampled-model", "certificate", "precision", "greedy")}
        found |= self._calibration.findings(step.size, cases.steps[-1])
        found["episode-rule"] = growing_episode_rule(step, ratio, pair, full, made, self.agent.n_actions)
        most = most_growing_episodes(made, self._possible.size, self._factors.rule)
        found["episode-count"] = compared(np.arange(1, step.size + 1), most, step, certain=most >= np.cumsum(made))
        seen = cases.finding("optimism") if self.truth is not None else None
        found["optimism"] = without_theorem(NOT_OPTIMISTIC, seen)
        found["regret-bound"] = without_theorem(BAYESIAN)
        return {name: found[name] for name in self.names}, {"given_up": self._given_up}


def most_growing_episodes(made: NDArray[np.int64], n_pairs: int, rule: str = "doubling") -> Floats:
    """The episodes of TSDE after so many steps: sqrt(2·M·T), M - 1 being the number ended by the limits (lemma 1).

    Ouyang et al. 2017: between two episodes that doubling ended, each is one step longer than the one before.
    """
    T = np.maximum(np.cumsum(made), 1.0)
    return np.asarray(np.sqrt(2.0 * episodes_at(T, n_pairs, rule) * T))
