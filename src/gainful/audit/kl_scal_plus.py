"""The auditor of KL-SCAL+: every statement of `docs/kl_scal_plus.md` that can be seen on a run.

What needs no true model is in `audit.kl_plans`; here the MDP is known.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gainful.agents.episodic import EpisodeView
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.audit.findings import Finding, Floats, compared, not_applicable
from gainful.audit.kl_plans import KLPlanAuditor
from gainful.audit.kl_rows import Dominations, Functions, SetsInUse, dominations
from gainful.audit.rows import TrueRows, counted_rows
from gainful.audit.truth import LARGEST_DIAMETER, Truth
from gainful.simulation.tabular import TabularSimulation
from gainful.theory.kl_regret import kl_scal_plus_terms_at, value_range

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


class KLScalPlusAuditor(KLPlanAuditor):
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

    names: tuple[str, ...] = STATEMENTS_OF_KL_SCAL_PLUS

    def __init__(self, agent: KLSCALPlus, truth: Truth, simulation: TabularSimulation) -> None:
        super().__init__(agent, math.log(agent.n_states * (agent.n_states + 1)) - math.log(agent.delta), truth.gain_low)
        self.agent, self.truth, self.simulation = agent, truth, simulation
        pairs = agent.n_states * agent.n_actions
        self._true = TrueFunctions.of(truth, agent.allowed)
        self._rows = TrueRows(*truth.rows)
        self._rewards = truth.rewards - agent.reward_min
        self._least = {name: np.zeros(pairs) for name in ("bias-domination", "times-domination")}
        self._seen = {name: np.zeros(pairs, dtype=np.int64) for name in self._least}

    def compare_with_truth(self, view: EpisodeView, sets: SetsInUse) -> None:
        """E1 of `docs/kl_scal_plus.md`, and the span by the diameter."""
        true, r_max, rows = self._true, self.agent.reward_range, tuple(counted_rows(view.statistics))
        self.keep_worst("reward-domination", self._rewards[true.best], sets.rewards[true.best], true.best)
        self._dominated("bias-domination", true.bias, rows, sets.radius)
        if true.times is not None and true.diameter is not None:
            self._dominated("times-domination", true.times, rows, sets.radius)
            span, epsilon = float(np.ptp(view.plan.values)), r_max / math.sqrt(view.step)
            self.keep("span-diameter", span, (r_max + epsilon) * true.diameter + epsilon, 1e-9 * (r_max + span))

    def _dominated(self, name: str, asked: Functions, rows: tuple[Any, ...], radius: Floats) -> None:
        exact = name == "bias-domination" or self.agent.n_states <= EXACT_STATES
        found, seen = self._least[name], self._seen[name]
        dominations(rows, tuple(self._rows), radius, tuple(asked), seen, exact, tuple(Dominations(found)))
        self.keep_worst(name, found, radius)  # 0 ≤ ρ where nothing is asked, or nothing was seen

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and the explicit bound to show."""
        agent, found, reasons = self.agent, self.plan_findings(), self._reasons()
        shown: dict[str, Any] = {}
        if "mean-regret-bound" not in reasons:
            run = self.simulation.run()
            T = run.steps.astype(np.float64)
            bound, at = self.bound(T), np.searchsorted(self.steps, run.steps, "right")
            certain = bound >= run.steps * (self.truth.gain - agent.reward_min)
            found["mean-regret-bound"] = compared(run.pseudo_regret, bound, run.steps, episodes=at, certain=certain)
            log = np.log(6.0 * agent.n_states**2 * agent.n_actions * np.sqrt(T)) - math.log(agent.delta)
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
