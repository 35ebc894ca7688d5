"""The auditor of Opt-PSRL: the rows of every plan are those of the equations or of the posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodeView
from gainful.agents.opt_psrl import OptPSRL
from gainful.audit.calibration import SEEN_SHARE, UNSEEN_RANK, BetaDraws, Calibration, group_of
from gainful.audit.episode_auditor import STATEMENTS_ABOUT_A_MODEL, EpisodeAuditor
from gainful.audit.findings import Finding, Floats, not_applicable, without_theorem
from gainful.audit.set_plans import check_plan
from gainful.audit.truth import Truth
from gainful.theory.baselines import opt_psrl_lower, opt_psrl_reward, opt_psrl_samples, opt_psrl_threshold

WITHDRAWN = "the proof of Agrawal & Jia 2017, in which samples are optimistic, was withdrawn by its authors"


class OptPSRLAuditor(EpisodeAuditor):
    """Checks every episode of one Opt-PSRL agent, on the states of an MDP or on cells.

    The constants η, ω, ψ are those of `gainful.theory`. Where a drawn MDP had no single gain and was drawn again, what
    is left is no longer a draw of the posterior, and the two statements about that are not applicable.
    """

    names = (
        "sampled-model",
        "posterior-sample",
        "fresh-sample",
        "reward-domination",
        *STATEMENTS_ABOUT_A_MODEL,
    )

    agent: OptPSRL

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        S, A, horizon, delta = self.agent.n_states, self.agent.n_actions, self.agent.horizon, self.agent.delta
        self._omega = float(np.log(horizon / delta))
        self._threshold = opt_psrl_threshold(S, A, horizon=horizon, delta=delta)
        self._samples = int(self.agent.settings()["samples"] or opt_psrl_samples(S, A, delta))
        self._calibration = Calibration(simulation.seed)
        self._redrawn = 0

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        agent, s = self.agent, view.statistics
        S, A, N = agent.n_states, agent.n_actions, view.statistics.visits.copy()
        kept = s.to_arrays()
        p = np.zeros((S * A, S))
        p[np.repeat(np.arange(S * A), kept["length"]), kept["next_state"]] = kept["count"]
        counts, p = p, p / np.maximum(1, N)[:, None]
        rewards = opt_psrl_reward(
            s.reward_sum / np.maximum(1, N),
            N,
            S,
            A,
            horizon=agent.horizon,
            delta=agent.delta,
            reward_max=agent.reward_range,
        )
        self.begin(view)
        self._redrawn += view.plan.details["attempts"] > 1
        rows = view.plan.details["rows"]
        if rows.shape != (S * A, self._samples, S):
            self.cases.keep("sampled-model", np.inf, 0.0)
            return
        lower, sure = opt_psrl_lower(p, N[:, None], S), self._threshold <= N
        self._check_rows(rows, lower, sure, view.plan.details["rewards"], rewards)
        self._calibrate(rows, counts, lower, sure, N)
        self._examine_plan(view, rows, rewards)
        if self.truth is not None and view.step <= agent.horizon:
            true = self.truth.rewards - agent.reward_min
            self.cases.keep_worst(
                "reward-domination", true, rewards, 1e-9 * agent.reward_range, self.possible & (N > 0)
            )

    def _check_rows(self, rows: Floats, lower: Floats, sure: NDArray[np.bool_], used: Floats, rewards: Floats) -> None:
        """Rewards of the equation; rows that are distributions, and p⁻ with all other mass on one state if N < η."""
        wrong = np.abs(used.reshape(-1) - rewards) / self.agent.reward_range
        off = np.maximum(np.abs(rows.sum(axis=2) - 1.0), np.maximum(-rows, 0.0).max(axis=2)).max(axis=1)
        extra = rows - lower[:, None, :]
        missing = 1.0 - lower.sum(axis=1)
        largest = extra.max(axis=2)
        elsewhere = np.abs(extra).sum(axis=2) - np.abs(largest)
        simple = np.maximum(np.abs(largest - missing[:, None]), elsewhere).max(axis=1)
        off = np.where(sure, off, np.maximum(off, simple))
        self.cases.keep_worst("sampled-model", np.maximum(wrong, off), 0.0, 1e-9, self.possible)

    def _calibrate(
        self, rows: Floats, counts: Floats, lower: Floats, sure: NDArray[np.bool_], N: NDArray[np.int64]
    ) -> None:
        """Posterior rows against Dirichlet((counts + ω)/κ), the chosen states of the others against the uniform law."""
        psi, S = rows.shape[1:]
        exact = np.flatnonzero(sure & self.possible)
        if exact.size and S > 1:
            left = np.cumsum(rows[exact][:, :, ::-1], axis=2)[:, :, ::-1]  # Σ of an entry and those after it
            weight = (counts[exact] + self._omega) / self._omega
            later = np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
            shape = (exact.size, psi, S - 1)
            a, b = (np.broadcast_to(w[:, None, :], shape).reshape(-1) for w in (weight[:, :-1], later[:, 1:]))
            group = np.broadcast_to(group_of(SEEN_SHARE, N[exact])[:, None, None], shape).reshape(-1)
            one, others = rows[exact][:, :, :-1].reshape(-1), left[:, :, 1:].reshape(-1)
            self._calibration.add(BetaDraws(one, others, a, b, group))
        simple = np.flatnonzero(~sure & self.possible & (lower.sum(axis=1) < 1.0 - 1e-9))
        places = np.full((N.size, psi), np.nan)
        if simple.size:
            chosen = (rows[simple] - lower[simple][:, None, :]).argmax(axis=2)
            group = np.repeat(group_of(UNSEEN_RANK, N[simple]), psi)
            places[simple] = self._calibration.uniform_ranks(chosen.reshape(-1), S, group).reshape(chosen.shape)
        self._calibration.correlate(places.reshape(-1))

    def _examine_plan(self, view: EpisodeView, rows: Floats, rewards: Floats) -> None:
        """Lv - v in the MDP whose actions are (action, sample), its bracket, and what the actions played are worth."""
        plan = view.plan
        best = rewards + (rows @ plan.values).max(axis=1)
        q = np.where(self.possible, best, -np.inf).reshape(self.agent.allowed.shape)
        check = check_plan(q, q, plan.values, plan.actions)
        self.keep_plan(view, check)
        self.keep_optimism(view, check)

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        found = self.kept("sampled-model", "reward-domination", "certificate", "precision", "greedy")
        found |= self._calibration.findings(self.steps.size, self.cases.steps[-1])
        if self._redrawn:
            why = f"{self._redrawn:,} models had no single gain and were drawn again, which changes their law"
            found |= {name: not_applicable(why) for name in ("posterior-sample", "fresh-sample")}
        found |= self.episodes()
        found["optimism"] = self.unproven_optimism(WITHDRAWN)
        found["regret-bound"] = without_theorem(str(self.agent.guarantee.reason_void))
        return found

    def shown(self) -> dict[str, Any]:
        """How many plans were drawn again."""
        return {"redrawn": self._redrawn}
