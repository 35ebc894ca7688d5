"""The auditor of PSRL: the model of every plan is a draw of the posterior, and the plan is one of that model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.agents.posterior_planning import DrawnModel
from gainful.agents.psrl import PSRL
from gainful.audit.calibration import REWARD, BetaDraws, Calibration, group_of
from gainful.audit.episode_auditor import STATEMENTS_ABOUT_A_MODEL, EpisodeAuditor
from gainful.audit.episodes import allowed_growing_episodes, episode_count, growing_episode_rule
from gainful.audit.findings import Finding, Floats, without_theorem
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

NOT_OPTIMISTIC = (
    "a sampled gain exceeds g* in some episodes only; the proof of Ouyang et al. 2017 needs that it is right on "
    "average over the prior"
)
BAYESIAN = "no bound of its regret in one given MDP is proven; theorem 1 of Ouyang et al. 2017 averages over the prior"


class PSRLAuditor(EpisodeAuditor):
    """Checks every episode of one PSRL agent, on the states of an MDP or on cells.

    The seed of the simulation is that of the audit's own random numbers.
    """

    names = ("sampled-model", "posterior-sample", "fresh-sample", *STATEMENTS_ABOUT_A_MODEL)

    agent: PSRL

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        pairs = self.possible.size
        self._calibration = Calibration(simulation.seed)
        self._room = room_for(pairs, 0)
        self._errors, self._low, self._high = np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
        self._given_up = 0
        """Plans without the precision asked for, because states are all but cut off in the sample."""

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        rows = counted_rows(view.statistics)
        model, division = self._sample(view)
        self.begin(view)
        sample_errors(tuple(rows), tuple(model), self.possible, self.agent.reward_range, self._errors)
        self.cases.keep_worst("sampled-model", self._errors, 0.0, 1e-9)
        self._calibrate(rows, view.statistics.reward_sum, model, division)
        self._examine_plan(view, model)

    def _sample(self, view: EpisodeView) -> tuple[DrawnModel, int]:
        """The model of the plan, and how the mass of states never seen was divided in it."""
        details = view.plan.details
        if "sample" in details:
            return details["sample"], MIXED if details["completed"] else BY_RULE
        S, pairs = self.agent.n_states, self.possible.size
        seen = np.zeros((pairs, S), dtype=bool)
        kept = view.statistics.to_arrays()
        seen[np.repeat(np.arange(pairs), kept["length"]), kept["next_state"]] = True
        transitions, rewards = details["transitions"].reshape(pairs, S), details["rewards"].reshape(-1)
        return as_drawn(transitions, rewards, seen, self.possible), AT_ONCE

    def _calibrate(self, rows: CountedRows, reward_sum: Floats, model: DrawnModel, division: int) -> None:
        """Compare the model with Dirichlet(α + counts) and r_max·Beta(β + Σr/r_max, β + N - Σr/r_max)."""
        agent, N = self.agent, rows.visits
        entries = int(rows.length.sum())
        if self._room.one.size < entries + 2 * N.size:
            self._room = room_for(N.size, 2 * entries)
        n, ranks = broken_sticks(
            tuple(rows), tuple(model), self.possible, agent.transition_prior, division, tuple(self._room)
        )
        one, others, a, b, group, rank, among, rank_group = self._room
        self._calibration.add(BetaDraws(*(column[:n].copy() for column in (one, others, a, b, group))))
        if ranks:
            self._calibration.add_ranks(rank[:ranks], among[:ranks], rank_group[:ranks])
        k, r_max, beta = self.possible, agent.reward_range, agent.reward_prior
        wins = np.minimum(reward_sum[k] / r_max, N[k])
        r, losses = model.rewards[k], N[k] - wins
        self._calibration.add_at_places(BetaDraws(r, r_max - r, beta + wins, beta + losses, group_of(REWARD, N[k])))

    def _examine_plan(self, view: EpisodeView, model: DrawnModel) -> None:
        """Lv - v in the sample, the bracket of its gain, and what the actions played are worth."""
        agent, plan = self.agent, view.plan
        S, A = agent.n_states, agent.n_actions
        sampled_values(tuple(model), self.possible, plan.values, self._low, self._high)
        check = check_plan(self._low.reshape(S, A), self._high.reshape(S, A), plan.values, plan.actions)
        low, high = (end - agent.reward_min for end in plan.gain_bounds)
        if plan.details.get("completed", False) and high - low > agent.reward_range / np.sqrt(view.step):
            self._given_up += 1  # both intervals contain the gain of the sample
            outside = max(low - check.optimistic, check.least - high)
            self.cases.keep("certificate", outside, 0.0, self.rounding(view))
        else:
            self.keep_plan(view, check)
        self.keep_optimism(view, check)

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        step, (ratio, pair, full, made) = self.steps, self.executed.columns
        found = self.kept("sampled-model", "certificate", "precision", "greedy")
        found |= self._calibration.findings(step.size, self.cases.steps[-1])
        found["episode-rule"] = growing_episode_rule(step, ratio, pair, full, made, self.agent.n_actions)
        found["episode-count"] = episode_count(
            step, made, allowed_growing_episodes(self.factors.rule, made, self.possible.size)
        )
        found["optimism"] = self.unproven_optimism(NOT_OPTIMISTIC)
        found["regret-bound"] = without_theorem(BAYESIAN)
        return found

    def shown(self) -> dict[str, Any]:
        """How many plans were given up."""
        return {"given_up": self._given_up}
