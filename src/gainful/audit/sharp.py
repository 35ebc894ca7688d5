"""The auditors of SCAL+ with the sharp and the Bernstein bonus: docs/kl_scal_plus.md checked in every episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.audit.findings import Cases, Finding, Floats, not_applicable
from gainful.audit.planned import PlannedEpisodes, largest_of
from gainful.audit.scal_plus import ScalPlusAuditor, TrueModel
from gainful.audit.terms import RegretTotals
from gainful.simulation.run import Run

STATEMENTS_OF_THEOREM_11 = (
    "bonus-formula",
    "reward-domination",
    "bias-domination",
    "optimism",
    "span",
    "certificate",
    "precision",
    "bellman-error",
    "contraction",
    "episode-rule",
    "episode-count",
    "mean-regret-bound",
)

STATEMENTS_OF_BERNSTEIN = tuple(name for name in STATEMENTS_OF_THEOREM_11 if name != "contraction")
"""Of the Bernstein bonus: p̂ alone does not say by how much its operator contracts."""


def reward_domination(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """The reward r is at most r̃ at (s, π*(s)) in every state."""
    rewards, _ = e.parts_at_bias
    return _at_best_actions(true, np.broadcast_to(true.rewards, rewards.shape), rewards)


def bias_domination(e: PlannedEpisodes, true: TrueModel) -> Cases:
    """The expectation p·h* is at most b + p̂·h* at (s, π*(s)) in every state; both sides less min h*."""
    _, b = e.parts_at_bias
    least = true.bias.min()
    return _at_best_actions(true, np.broadcast_to(true.expected_bias - least, b.shape), b + e.estimated_bias - least)


def _at_best_actions(true: TrueModel, found: Floats, allowed: Floats) -> Cases:
    """The state of each episode in which found(s, π*(s)) exceeds allowed(s, π*(s)) by most."""
    chosen = true.best_actions[None, :, None]
    left, right = (
        np.take_along_axis(x, np.broadcast_to(chosen, (len(x), *chosen.shape[1:])), axis=2)[:, :, 0]
        for x in (found, allowed)
    )
    state, (worst, limit) = largest_of(left - right, left, right)
    return Cases.of(worst, limit, states=state, actions=true.best_actions[state])


class SharpAuditor(ScalPlusAuditor):
    """Checks every episode of one SCAL+ agent with the sharp bonus in one MDP; used like `ScalPlusAuditor`."""

    names: tuple[str, ...] = STATEMENTS_OF_THEOREM_11

    def _against_truth(self, e: PlannedEpisodes) -> dict[str, Cases]:
        """The domination of rewards and bias that the proof of optimism needs, and nothing else."""
        return {
            "reward-domination": reward_domination(e, self._true),
            "bias-domination": bias_domination(e, self._true),
        }

    def _against_bound(self, totals: RegretTotals, run: Run, step: Floats) -> tuple[dict[str, Finding], dict[str, Any]]:
        """The regret in mean rewards against theorem 11."""
        found = totals.regret_bound(run.pseudo_regret, run.steps, step)
        return {"mean-regret-bound": found}, {
            "sums": totals.shown(),
            "bound": totals.total_bound(run.steps).tolist(),
        }

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, span = self.agent, self.truth.span
        if span <= agent.span * (1.0 + 1e-9):
            return {}
        reason = f"the optimal bias has span {span:.6g}, more than c = {agent.span:g}: the theorem does not apply"
        return dict.fromkeys(("bias-domination", "optimism", "mean-regret-bound"), reason)


class BernsteinAuditor(SharpAuditor):
    """Checks every episode of one SCAL+ agent with the Bernstein bonus in one MDP; used like `ScalPlusAuditor`."""

    names = STATEMENTS_OF_BERNSTEIN

    def _against_bound(self, totals: RegretTotals, run: Run, step: Floats) -> tuple[dict[str, Finding], dict[str, Any]]:  # noqa: ARG002
        """There is no explicit bound."""
        reason = "the regret of the Bernstein bonus is sketched, and has no explicit bound"
        return {"mean-regret-bound": not_applicable(reason)}, {"sums": totals.shown()}
