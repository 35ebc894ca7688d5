"""The auditors of Balanced KL-SCAL+: the plans of its bases, whose turn it was, and what was given up.

The plans are those of KL-SCAL+ with the c of the base that plays. Play, proofs and choices are computed again from the
steps and rewards of the run (`gainful.theory.balancing`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.balanced_kl_scal_plus import BalancedKLSCALPlus
from gainful.agents.episodic import EpisodeView
from gainful.audit.cells import CellsTruth
from gainful.audit.findings import Finding
from gainful.audit.kl_scal_plus import KLScalPlusAuditor
from gainful.audit.plans_on_cells import DiscretizedKLAuditor
from gainful.audit.truth import Truth
from gainful.simulation.tabular import TabularSimulation
from gainful.theory.balancing import balanced_bases, balanced_choice, balanced_proven_gain

STATEMENTS_ABOUT_BALANCED_PLANS = (
    "set-formula",
    "optimism",
    "span",
    "certificate",
    "precision",
    "greedy",
    "episode-rule",
    "base-choice",
)
CLAIM_ROUNDING = 1e-9
"""Of a claim against what is proven, in units of r_max: closer, either decision is right."""


class BalancedPlay:
    """The play of every base, followed from episode to episode, and the mistakes in its book-keeping."""

    def __init__(self, agent: BalancedKLSCALPlus) -> None:
        self._agent, self._playing = agent, -1
        self._seen_steps, self._seen_reward = 0, 0.0
        self.steps = np.zeros(1)
        self._rewards, self._segments = np.zeros(1), np.zeros(1)
        self._surplus, self._seen_surplus = np.zeros((1, agent.n_states)), np.zeros(agent.n_states)
        self._claims = np.full(1, math.inf)
        self._refuted = np.zeros(1, dtype=bool)
        self._longest: list[float] = []
        """How many steps each episode may have."""

    def begin(self, view: EpisodeView) -> int:
        """Follow one more episode; how many things about it are not as the equations say."""
        self._settle(view)
        details, r_max = view.plan.details, self._agent.reward_range
        base, refuted, claims = int(details["base"]), details["refuted"], details["claims"]
        if refuted.size != self.steps.size:
            return 1
        claimed = min(self._claims[base], (view.plan.gain_bounds[1] - self._agent.reward_min) / r_max)
        wrong = int(abs(claims[base] - claimed) > CLAIM_ROUNDING)
        wrong += int(np.sum(claims > self._claims)) + self._wrongly_judged(claims, refuted)
        wrong += int(base != balanced_choice(self.steps, ~refuted))
        wrong += int(view.plan.last_step - view.step + 1 > self._most_steps(base, ~refuted))
        self._longest.append(view.plan.last_step - view.step + 1)
        self._segments[base] += base != self._playing
        self._playing, self._claims, self._refuted = base, claims.copy(), refuted.copy()
        return wrong

    def _settle(self, view: EpisodeView) -> None:
        steps, reward = view.step - 1, float(view.statistics.reward_sum.sum()) / self._agent.reward_range
        surplus = self._surplus_of(view)
        if self._playing >= 0:
            self.steps[self._playing] += steps - self._seen_steps
            self._rewards[self._playing] += reward - self._seen_reward
            self._surplus[self._playing] += surplus - self._seen_surplus
        self._seen_steps, self._seen_reward, self._seen_surplus = steps, reward, surplus
        more = balanced_bases(view.step, self._agent.allowed.size) - self.steps.size
        if more > 0:
            padded = (np.concatenate([old, np.zeros(more)]) for old in (self.steps, self._rewards, self._segments))
            self.steps, self._rewards, self._segments = padded
            self._surplus = np.concatenate([self._surplus, np.zeros((more, self._agent.n_states))])
            self._claims = np.concatenate([self._claims, np.full(more, math.inf)])
            self._refuted = np.concatenate([self._refuted, np.zeros(more, dtype=bool)])

    def _surplus_of(self, view: EpisodeView) -> NDArray[Any]:
        """(S,) how many steps ended in each state less how many began there."""
        S, A = self._agent.allowed.shape
        found = np.zeros(S)
        for k in np.flatnonzero(view.statistics.visits).tolist():
            to, counts = view.statistics.row(k)
            found[to] += counts
            found[k // A] -= counts.sum()
        return found

    def _wrongly_judged(self, claims: NDArray[Any], refuted: NDArray[Any]) -> int:
        """Bases given up without a proof, kept against one, or taken back; the last one may be kept."""
        wrong = int(np.sum(self._refuted & ~refuted))
        for i in np.flatnonzero(~self._refuted).tolist():
            pieces = np.maximum(self._segments, np.abs(self._surplus).sum(axis=1) / 2.0)
            play = (self.steps, self._rewards, pieces)
            proven = balanced_proven_gain(*play, span=2.0**i, delta=self._agent.delta)
            alone = np.sum(~refuted) == 1 and not refuted[i]
            without_proof = refuted[i] and claims[i] >= proven + CLAIM_ROUNDING
            against_one = not refuted[i] and claims[i] < proven - CLAIM_ROUNDING and not alone
            wrong += int(without_proof) + int(against_one)
        return wrong

    def _most_steps(self, base: int, active: NDArray[Any]) -> float:
        """Until c_i·n_i is four times the least of the other bases."""
        weight = self.steps * 2.0 ** np.arange(self.steps.size)
        others = weight[active & (np.arange(weight.size) != base)]
        if not others.size:
            return math.inf
        return max(1.0, 4.0 * max(float(others.min()), 2.0**base) / 2.0**base - float(self.steps[base]))

    def reached_their_length(self, made: NDArray[Any]) -> NDArray[np.bool_]:
        """Which episodes made as many steps as they may have."""
        return np.asarray(made) >= np.array(self._longest)

    def given_up_wrongly(self, span: float) -> int:
        """How many bases whose c is at least `span` (in units of reward) are given up."""
        c = 2.0 ** np.arange(self._refuted.size) * self._agent.reward_range
        return int(np.sum(self._refuted & (c >= span * (1.0 + 1e-9))))


class BalancedKLScalPlusAuditor(KLScalPlusAuditor):
    """Checks every episode of one Balanced KL-SCAL+ agent in one MDP.

    Parameters
    ----------
    agent : BalancedKLSCALPlus
        A new agent.
    truth : Truth
        The MDP, solved.
    simulation : TabularSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = (*STATEMENTS_ABOUT_BALANCED_PLANS, "reward-domination", "bias-domination", "base-kept")

    def __init__(self, agent: Any, truth: Truth, simulation: TabularSimulation) -> None:
        super().__init__(agent, truth, simulation)
        self._play = BalancedPlay(agent)
        self._gain = self.gain_low

    def see(self, view: EpisodeView) -> None:
        """Examine an episode; its plan is optimistic only if its c is at least the span of the optimal bias."""
        agent = self.agent
        wide = agent.span is not None and agent.span >= self.truth.span * (1.0 + 1e-9)
        self.gain_low = self._gain if wide else agent.reward_min
        super().see(view)
        self.keep("base-choice", self._play.begin(view), 0.0, 0.0)
        self.keep("base-kept", self._play.given_up_wrongly(self.truth.span), 0.0, 0.0)

    def ended_otherwise(self, made: NDArray[Any]) -> NDArray[np.bool_]:
        """Episodes that reached the length that balancing allows."""
        return self._play.reached_their_length(made)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; there is no bound to show."""
        found = self.plan_findings()
        return {name: found[name] for name in self.names}, {}


class BalancedKLOnCellsAuditor(DiscretizedKLAuditor):
    """Checks every episode of one Balanced KL-SCAL+ agent on the cells of a continuous environment.

    Parameters
    ----------
    agent : Discretized
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names = (*STATEMENTS_ABOUT_BALANCED_PLANS, "regret-bound")

    def __init__(self, agent: Any, truth: CellsTruth, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        self._play = BalancedPlay(agent.core)

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins."""
        super().see(view)
        self.keep("base-choice", self._play.begin(view), 0.0, 0.0)

    def ended_otherwise(self, made: NDArray[Any]) -> NDArray[np.bool_]:
        """Episodes that reached the length that balancing allows."""
        return self._play.reached_their_length(made)
