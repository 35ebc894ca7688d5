"""The auditor of UCBVI-CH: its bonus, the backward induction of every block, and V_h ≥ V*_h (Azar et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodeView
from gainful.agents.ucbvi import UCBVI
from gainful.audit.episode_auditor import EpisodeAuditor
from gainful.audit.episodes import block_rule
from gainful.audit.findings import Finding, Floats, not_applicable, without_theorem
from gainful.audit.own_problem import block_values
from gainful.audit.rows import CountedRows, counted_rows
from gainful.audit.truth import Truth
from gainful.theory.baselines import ucbvi_bonus


@kernel
def backward_induction(rows: CountedRows, rewards: Any, possible: Any, cap: float, actions: Any, values: Any) -> Any:
    """Fill values (H+1, S) with V_h = max_a min{ r̄ + b + p̄·V_{h+1}, cap }, V_H = 0, and judge the actions (H, S).

    Returns the largest loss of an action played against the best one, and its step, state and action. A pair never
    visited is worth the cap.
    """
    rows = CountedRows(*rows)
    H, S = actions.shape
    A = rewards.size // S
    worst, at, state, action = -np.inf, 0, 0, 0
    values[H] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, played = -np.inf, -np.inf
            for a in range(A):
                k = s * A + a
                if not possible[k]:
                    continue
                q = cap
                if rows.visits[k] > 0:
                    total = 0.0
                    for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
                        total += rows.count[i] * values[h + 1, rows.next_state[i]]
                    q = min(cap, rewards[k] + total / rows.visits[k])
                best = max(best, q)
                if a == actions[h, s]:
                    played = q
            values[h, s] = best
            if best - played > worst:
                worst, at, state, action = best - played, h, s, actions[h, s]
    return worst, at, state, action


class UCBVIAuditor(EpisodeAuditor):
    """Checks every block of one UCBVI agent, on the states of an MDP or on cells.

    That V_h ≥ V*_h needs no restart: b bounds (p̄ - p)·V*_{h+1}, for all pairs and numbers of visits, wherever the data
    come from. The regret bound does need restarts.
    """

    names = (
        "bonus-formula",
        "value-domination",
        "certificate",
        "greedy",
        "episode-rule",
        "optimism",
        "regret-bound",
    )

    agent: UCBVI

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        H = self.agent.episode_length
        self._values = np.zeros((H + 1, self.agent.n_states))
        self._true: Floats | None = None
        if truth is not None:
            self._true = block_values(truth, truth.rewards - self.agent.reward_min, H)

    def see(self, view: EpisodeView) -> None:
        """Examine a block that begins, and close the one before."""
        agent, plan, keep = self.agent, view.plan, self.cases.keep
        S, A, H, r_max = agent.n_states, agent.n_actions, agent.episode_length, agent.reward_range
        rows, cap = counted_rows(view.statistics), H * r_max
        N, actions = rows.visits, plan.details["actions"]
        self.begin(view)
        bonus = agent.bonus_scale * ucbvi_bonus(
            N, S, A, episode_length=H, horizon=agent.horizon, delta=agent.delta, reward_max=r_max
        )
        rewards = np.where(N > 0, view.statistics.reward_sum / np.maximum(1, N) + bonus, cap)
        off = np.maximum(np.abs(plan.details["bonus"].reshape(-1) - bonus), np.abs(plan.details["rewards"] - rewards))
        self.cases.keep_worst("bonus-formula", off / (r_max + bonus), 0.0, 1e-12, self.possible)
        if actions.shape != (H, S):
            keep("greedy", np.inf, 0.0)
            return
        lost, _, s, a = backward_induction(tuple(rows), rewards, self.possible, cap, actions, self._values)
        rounding, first = 1e-9 * cap, self._values[0]
        keep("greedy", lost, 0.0, rounding, pair=int(s) * A + int(a))
        low, high = ((end - agent.reward_min) * H for end in plan.gain_bounds)
        outside = max(low - first.min(), first.max() - high, float(np.abs(plan.values - first).max()))
        keep("certificate", outside, 0.0, rounding)
        self._compare_values(view.step, rounding)

    def _compare_values(self, t: int, rounding: float) -> None:
        """V_h ≥ V*_h at every step of the block and in every state."""
        agent = self.agent
        if self._true is None or t > agent.horizon:
            return
        above = (self._true - self._values)[:-1]  # at the end of a block both are 0
        h, s = np.unravel_index(int(above.argmax()), above.shape)
        most = agent.reward_range * np.arange(agent.episode_length, -1, -1)  # of any V*_h
        certain = bool(np.all(self._values.min(axis=1) >= most))
        found, allowed = self._true[h, s], self._values[h, s]
        self.cases.keep("value-domination", found, allowed, rounding, pair=int(s) * agent.n_actions, certain=certain)

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        agent = self.agent
        found = self.kept("bonus-formula", "value-domination", "certificate", "greedy")
        if self._true is None:
            found["value-domination"] = not_applicable("the states of a cell are not one state of an MDP")
        found["episode-rule"] = block_rule(self.steps, self.executed.columns.made, agent.episode_length)
        why = "its values are those of H steps: V_0/H may lie on either side of g*"
        found["optimism"] = without_theorem(why)
        found["regret-bound"] = without_theorem(agent.guarantee.reason_void)
        return found
