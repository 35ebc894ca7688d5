"""The auditor of IMED-RL: plans, indices and decisions computed again from the run's own draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodeView
from gainful.agents.imed_rl import IMEDRL
from gainful.audit.findings import Finding, Floats, compared, not_applicable, without_theorem
from gainful.audit.trace import MDPTrace, PlayedPolicy, PointsTrace
from gainful.audit.truth import Truth
from gainful.mdp.ergodicity import avoidable_state
from gainful.optimism.imed_rl import MOST_ATOMS
from gainful.planning.skeleton import ITERATED_PRECISION, MOST_EXACT_STATES
from gainful.simulation.callbacks import CheckpointView
from gainful.simulation.transition_table import BERNOULLI, DETERMINISTIC
from gainful.theory.imed_rl import (
    imed_rl_divergence,
    imed_rl_estimates,
    imed_rl_index,
    imed_rl_optimum,
    imed_rl_skeleton,
)

FIRST_DECISIONS = 100
"""Decisions at the beginning that are all examined; later ones are at checkpoints."""
MOST_NUMBERS = 1 << 22
"""S²A up to which an estimated MDP is written out."""
ASYMPTOTIC = "theorem 2 of Pesquerel & Maillard 2022 is about T → ∞, and gives no bound at a given T"


@dataclass(frozen=True)
class PlanInForce:
    """What the agent decided by when a checkpoint was passed."""

    step: int
    planned_at: int
    bias: Floats
    gain: Floats
    """(2,)"""
    indices: Floats
    """(S, A)"""


class Estimates(NamedTuple):
    """The estimated MDP of the trace: (S, A) N, r̂ and the skeleton, (S, A, S) p̂."""

    visits: NDArray[np.int64]
    rewards: Floats
    rows: Floats
    skeleton: NDArray[np.bool_]


class IMEDRLAuditor:
    """Repeats the run of one IMED-RL agent with the decisions that it kept, and examines plans, indices and decisions.

    Nothing but the decisions, the bias and the indices that are examined is read from the agent; what it had counted is
    counted again. If an action was executed that is not the one decided, the trace and the agent have other visits.

    Parameters
    ----------
    agent : IMEDRL or Discretized
        A new agent, on states or on cells.
    truth : Truth or None
        The MDP, solved; None on cells.
    simulation : IndexedSimulation or ContinuousSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = ("skeleton-plan", "index-formula", "least-index", "optimism", "regret-bound")

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        self.agent: IMEDRL = agent.core
        self.truth, self._simulation, self._on_cells = truth, simulation, agent
        self._trace: MDPTrace | PointsTrace
        if truth is not None:
            self._trace = MDPTrace(simulation.mdp, simulation.seed, agent)
        else:
            self._trace = PointsTrace(simulation.env, simulation.seed, agent, simulation.user_units)
        self._began: list[tuple[int, int]] = []
        self._plans: list[PlanInForce] = []
        self._cases, self._indices_known = _Cases(), True
        self.agent.decisions = np.full(int(simulation.checkpoints[-1]), -1, dtype=np.int32)
        simulation.callback = self._look

    # ------------------------------------------------------------------ during the run

    def see(self, view: EpisodeView) -> None:
        """Note the only episode."""
        self._began.append((view.step, self._simulation.t))

    def _look(self, view: CheckpointView) -> None:
        """Keep the plan and the indices at a checkpoint."""
        agent = self.agent
        if agent.skeleton_planned_at[0] < 0:
            return
        indices = np.array([agent.indices(s) for s in range(agent.n_states)])
        self._plans.append(
            PlanInForce(
                view.step,
                int(agent.skeleton_planned_at[0]),
                agent.bias.copy(),
                agent.skeleton_gain.copy(),
                indices,
            )
        )

    # ------------------------------------------------------------------ the run once more

    def _go_on(self, until: int) -> None:
        """Repeat the run up to step `until`, with the actions that the agent says it chose."""
        core = self.agent
        chosen = np.broadcast_to(core.decisions[:, None], (core.decisions.size, core.n_states))
        self._trace.go_on(PlayedPolicy(chosen, np.empty((0, 0)), core.key, 0), until)

    @property
    def _state(self) -> int:
        """Where the trace is."""
        trace = self._trace
        if isinstance(trace, MDPTrace):
            return trace.state
        x = trace.env.from_unit(trace.x) if self._simulation.user_units else trace.x
        return int(self._on_cells.cell(x))

    def _estimates(self) -> Estimates:
        """The estimated MDP of what the trace has counted."""
        core, trace = self.agent, self._trace
        S, A = core.n_states, core.n_actions
        counts = np.zeros((S * A, S))
        if isinstance(trace, MDPTrace):
            pairs = np.repeat(np.arange(S * A), np.diff(trace.law.indptr))
            np.add.at(counts, (pairs, trace.law.indices), trace.tally.transitions)
        else:
            counts += trace.tally.transitions
        visits = trace.tally.visits.reshape(S, A).copy()
        r, p = imed_rl_estimates(counts.reshape(S, A, S), trace.tally.reward_sum.reshape(S, A), core.reward_range)
        return Estimates(visits, r, p, imed_rl_skeleton(visits, core.allowed))

    def _reward_law(self, pair: int) -> tuple[Floats, Floats]:
        """The different rewards of a pair, from 0, and how often each was seen; r_max/2 once more than it was."""
        assert isinstance(self._trace, MDPTrace)
        law, tally, least = self._trace.law, self._trace.tally, self.agent.reward_min
        n = float(tally.visits[pair])
        if law.kind == DETERMINISTIC:
            values, weights = np.array([law.means[pair] - least]), np.array([n])
        elif law.kind == BERNOULLI:
            values = np.array([0.0, law.success]) - least
            successes = round((tally.reward_sum[pair] - n * values[0]) / law.success)
            weights = np.array([n - successes, successes])
        else:
            row = slice(law.indptr[pair], law.indptr[pair + 1])
            values, weights = law.entry_rewards[row] - least, tally.transitions[row].astype(np.float64)
        return np.append(values, 0.5 * self.agent.reward_range), np.append(weights, 1.0)

    def _indices(self, found: Estimates, bias: Floats, s: int) -> tuple[Floats, float]:
        """(A,) H of every action of a state by the equations, and how far an error of 1 in the bias may move N·K."""
        agent, A = self.agent, self.agent.n_actions
        allowed = agent.allowed[s]
        untried = allowed & (found.visits[s] == 0)
        if untried.any():
            return np.where(untried, -np.inf, np.inf), 0.0
        values = found.rewards[s] + found.rows[s] @ bias
        needed, indices = float(values[allowed].max()), np.full(A, np.inf)
        for a in np.flatnonzero(allowed).tolist():
            rewards, weights = self._reward_law(s * A + a)
            law, r_max = (rewards, weights / weights.sum()), agent.reward_range
            below = values[a] < needed
            K = imed_rl_divergence(law, found.rows[s, a], bias, needed, r_max) if below else 0.0
            indices[a] = imed_rl_index(int(found.visits[s, a]), K)
        room = agent.reward_range + float(bias.max()) - needed
        return indices, 4.0 * float(found.visits[s].max()) / room

    # ------------------------------------------------------------------ findings

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, those about the trace among them."""
        agent, T = self.agent, self._simulation.t
        why_none, why_no_index = self._not_examined()
        self._indices_known = not why_no_index
        if not why_none:
            self._examine_all()
        self._go_on(T)
        agent.decisions = np.empty(0, dtype=np.int32)
        reasons = {"skeleton-plan": why_none, "index-formula": why_no_index, "least-index": why_no_index}
        found = {
            name: not_applicable(reason) if reason else self._cases.finding(name, agent.n_actions)
            for name, reason in reasons.items()
        }
        found["optimism"] = without_theorem("it plans on an estimate and not on an upper bound")
        found["regret-bound"] = without_theorem(self._why_no_bound())
        return {name: found[name] for name in self.names} | self._traced(T), {}

    def _not_examined(self) -> tuple[str, str]:
        """Why plans, and why indices, cannot be computed again; empty if they can."""
        core = self.agent
        if core.n_states**2 * core.n_actions > MOST_NUMBERS:
            return (why := "too many states to write out the estimated MDP"), why
        if self.truth is None:
            return "", "the rewards of a cell are not written down one by one"
        if np.any(core.atoms.number == MOST_ATOMS):
            return "", f"a pair had {MOST_ATOMS} different rewards or more"
        return "", ""

    def _why_no_bound(self) -> str:
        if self.truth is None:
            return "the states of a cell are not one state of an MDP"
        avoided = avoidable_state(self.truth.mdp)
        if avoided is None:
            return ASYMPTOTIC
        return f"the MDP is not ergodic: a policy may never visit state {self.truth.mdp.state_name(avoided)!r}"

    def _traced(self, T: int) -> dict[str, Finding]:
        """Clock, execution and data: the trace against the agent."""
        agent, A = self.agent, self.agent.n_actions
        errors = self._trace.errors(agent.statistics)
        for step, made in [*self._began, (agent.t + 1, T)]:
            self._cases.keep("clock", abs(step - (made + 1)), 0.0, 0.0, min(step, T))
        pairs = {
            name: {"states": [int(pair) // A], "actions": [int(pair) % A]}
            for name, pair in (("execution", errors.visited_pair), ("data", errors.data_pair))
        }
        return {
            "clock": self._cases.finding("clock", A),
            "execution": compared([errors.visits], 0.0, [T], **pairs["execution"]),
            "data": compared([errors.data], 0.0, [T], rounding=1e-9, **pairs["data"]),
        }

    def _examine_all(self) -> None:
        """The first decisions, and at every checkpoint the plan in force, the decision made by it, and the indices."""
        for plan in self._plans:
            if plan.planned_at >= self._trace.t:  # a lazy plan may have been seen at the checkpoint before
                self._go_on_examining(plan.planned_at)
                found = self._estimates()
                self._examine_plan(found, plan)
                if self._indices_known:
                    self._examine_decision(found, plan.bias, plan.planned_at)
            self._go_on_examining(plan.step - 1)
            self._examine_time(plan)
            self._go_on(plan.step)
            if self._indices_known:
                self._examine_indices(self._estimates(), plan)
        self._go_on_examining(self._simulation.t)

    def _go_on_examining(self, until: int) -> None:
        """Repeat the run up to step `until`, and examine the first decisions, if each has a plan of its own."""
        every = self._indices_known and self.agent.lazy == 0.0 and self.agent.n_states <= MOST_EXACT_STATES
        while every and self._trace.t < min(until, FIRST_DECISIONS):
            found = self._estimates()
            self._examine_decision(found, self._own_bias(found), self._trace.t)
            self._go_on(self._trace.t + 1)
        self._go_on(until)

    def _examine_time(self, plan: PlanInForce) -> None:
        """Whether the last decision before a checkpoint had to make a plan of its own."""
        agent, s = self.agent, self._state
        tried = self._trace.tally.visits.reshape(agent.allowed.shape)[s] > 0
        if np.all(tried | ~agent.allowed[s]):
            good_until = int(plan.planned_at + agent.lazy * plan.planned_at)
            self._cases.keep("clock", plan.step - 1, max(good_until, plan.planned_at), 0.0, plan.step)

    def _own_bias(self, found: Estimates) -> Floats:
        """The optimal bias of the skeleton, solved."""
        return imed_rl_optimum(found.rewards, found.rows, found.skeleton)[1]

    def _scale(self, bias: Floats) -> float:
        return self.agent.reward_range + float(np.abs(bias).max())

    def _examine_plan(self, found: Estimates, plan: PlanInForce) -> None:
        """sp(Th - h) over the skeleton, and the gain between the ends of Th - h."""
        values = np.where(found.skeleton, found.rewards + found.rows @ plan.bias, -np.inf)
        residual = values.max(axis=1) - plan.bias
        exact = self.agent.n_states <= MOST_EXACT_STATES
        allowed = 0.0 if exact else ITERATED_PRECISION * self.agent.reward_range
        off = max(plan.gain[0] - residual.min(), residual.max() - plan.gain[1], float(np.ptp(residual)) - allowed)
        self._cases.keep("skeleton-plan", off, 0.0, 1e-9 * self._scale(plan.bias), plan.planned_at + 1)

    def _examine_decision(self, found: Estimates, bias: Floats, t: int) -> None:
        """The action chosen after t steps, in the state of the trace."""
        s, A = self._state, self.agent.n_actions
        action = int(self.agent.decisions[t])
        indices, slope = self._indices(found, bias, s)
        if np.isneginf(indices).any():
            self._cases.keep("least-index", float(not np.isneginf(indices[action])), 0.0, 0.0, t + 1, s * A + action)
        else:
            spare = 1e-9 + 1e-8 * slope * self._scale(bias)
            self._cases.keep("least-index", float(indices[action]), float(indices.min()), spare, t + 1, s * A + action)

    def _examine_indices(self, found: Estimates, plan: PlanInForce) -> None:
        """The indices of all states by the plan in force."""
        A, finite = self.agent.n_actions, np.isfinite
        for s in range(self.agent.n_states):
            right, slope = self._indices(found, plan.bias, s)
            used, some = plan.indices[s], finite(right) | finite(plan.indices[s])
            same = np.array_equal(used[~some], right[~some])
            off = np.zeros(A)
            off[some] = np.abs(used[some] - right[some])
            a = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            spare = 1e-9 * (1.0 + abs(float(right[a])) if some[a] else 1.0) + 1e-13 * slope * self._scale(plan.bias)
            self._cases.keep("index-formula", off[a] if same else np.inf, 0.0, spare, plan.step, s * A + a)


class _Cases:
    """What was found about each statement, one entry per examination."""

    def __init__(self) -> None:
        self._kept: dict[str, list[tuple[float, float, float, int, int]]] = {}

    def keep(self, name: str, found: float, allowed: float, rounding: float, step: int, pair: int = -1) -> None:
        """Note one examination of a statement found ≤ allowed."""
        self._kept.setdefault(name, []).append((found, allowed, rounding, step, pair))

    def finding(self, name: str, n_actions: int) -> Finding:
        """The finding over all of them."""
        if name not in self._kept:
            return not_applicable("nothing to check: no state had all its actions tried")
        found, allowed, rounding, steps, pairs = (np.array(column) for column in zip(*self._kept[name], strict=True))
        places: dict[str, Any] = {"episodes": np.ones(steps.size, dtype=np.int64)}
        if pairs.max() >= 0:
            places |= {"states": pairs // n_actions, "actions": pairs % n_actions}
        return compared(found, allowed, steps, rounding=rounding, **places)
