"""The auditor of C-KL-SCAL+: its plans on cells, and the domination of rewards and bias at points of the cells.

Proposition 12 of `docs/kl_scal_plus.md` is about the empirical law of the next *states* of a pair. The audit keeps it
as a histogram of h(x'), with h the oracle's bias: values are rounded down to one of `LEVELS`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.c_kl_scal_plus import CKLSCALPlus
from gainful.agents.episodic import EpisodeView
from gainful.agents.partitioned import PartitionedAgent
from gainful.audit.c_scal_plus import SAMPLED, DrainedLog, checked_cells
from gainful.audit.cell_tables import CellTables
from gainful.audit.cells import CellsTruth, grid_of, right_closed_edges
from gainful.audit.findings import Finding, Floats, compared, not_applicable
from gainful.audit.kl_plans import STATEMENTS_ABOUT_KL_PLANS, KLPlanAuditor
from gainful.audit.kl_rows import Dominations, Functions, SetsInUse, dominations
from gainful.audit.points import POINTS, LoggedTransitions
from gainful.audit.rows import CountedRows, TrueRows
from gainful.simulation.continuous import ContinuousSimulation
from gainful.theory.kl_regret import c_kl_scal_plus_terms_at

LEVELS = 512
"""Values of h that are told apart."""
MOST_LEVELS = 20_000_000
"""Numbers that the histograms of all pairs may hold; above, the domination of the bias is not checked."""


class NextStates:
    """The empirical law of h(x') for every pair of a cell and an action, counted on right-closed cells."""

    def __init__(self, agent: PartitionedAgent, truth: CellsTruth, tables: CellTables, slack: float) -> None:
        solved, part, A = truth.solution, agent.partition, agent.n_actions
        assert solved is not None
        self._grid = grid_of(part, A)
        self._counter = tables.counter()
        low, top = solved.ends
        pairs = part.n_cells * A
        width = (top - low) / LEVELS
        self._levels = low + width * np.arange(LEVELS, dtype=np.float64)
        self.counts: NDArray[np.int64] = np.zeros((pairs, LEVELS), dtype=np.int64)
        shape = (part.n_cells, POINTS, A)
        expected = np.where(tables.inside.reshape(shape[:2])[:, :, None], tables.expected.reshape(shape), -np.inf)
        self.most_expected: Floats = expected.max(axis=1).reshape(-1) - width
        """(pairs,) the largest E[h(X')|x,a] of a cell, less what rounding down may take; -inf if it has no point."""
        level = self.most_expected - slack
        asked = np.where(agent.core.allowed.reshape(-1) & np.isfinite(level), 1, 0)
        self.asked = Functions(
            np.concatenate([[0], np.cumsum(asked)]),
            np.zeros(int(asked.sum()), dtype=np.int64),
            np.ascontiguousarray(level[asked > 0]),
            self._levels[None, :].copy(),
            np.array([top]),
        )
        self._index = np.tile(np.arange(LEVELS, dtype=np.uint32), pairs)
        self._begin = np.arange(pairs, dtype=np.int64) * LEVELS
        self._length = np.full(pairs, LEVELS, dtype=np.int64)

    def absorb(self, log: Any) -> None:
        """Count the transitions of the log, and empty it."""
        moves = LoggedTransitions(log.origin, log.target, log.action)
        self._counter.count_levels(moves, log.n, self._grid, self._levels, self.counts)
        log.n = 0

    def rows(self) -> tuple[Any, ...]:
        """The histograms as rows of counts over the levels."""
        visits = self.counts.sum(axis=1)
        return tuple(CountedRows(self._begin, self._length, self._index, self.counts.reshape(-1), visits))


class CKLScalPlusAuditor(KLPlanAuditor):
    """Checks every episode of one C-KL-SCAL+ agent in one continuous environment.

    The agent keeps its raw transitions during the run, in a log that is emptied as it goes.

    Parameters
    ----------
    agent : CKLSCALPlus
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names = (
        "set-formula",
        "reward-domination",
        "bias-domination",
        *STATEMENTS_ABOUT_KL_PLANS[1:],
        "mean-regret-bound",
        "cells",
    )

    def __init__(self, agent: CKLSCALPlus, truth: CellsTruth, simulation: ContinuousSimulation) -> None:
        self.agent, self.truth, self.simulation = agent, truth, simulation
        part, core = agent.partition, agent.core
        pairs, r_max = part.n_cells * agent.n_actions, agent.reward_range
        self._own_error = 0.0  # from the settings, not from the agent's own sum
        self._smoothness = 0.0
        if agent.lipschitz is not None and agent.holder is not None:
            self._smoothness = agent.lipschitz / min(part.bins) ** agent.holder
            if agent.span is not None:
                self._own_error = (r_max + agent.span / 2.0) * self._smoothness
        super().__init__(core, math.log(2 * pairs) - math.log(core.delta), truth.gain_low, self._own_error)
        self._half_span = (agent.span if agent.span is not None else truth.span or 0.0) / 2.0
        if agent.span is None:  # optimism up to b, with the true span
            self.gain_low = truth.gain_low - (r_max + self._half_span) * self._smoothness
        self._tables = None if truth.solution is None else truth.on(part)
        self._cells = checked_cells(part, [right_closed_edges(part, i) for i in range(part.dim)])
        self._next: NextStates | None = None
        self._seen, self._least = np.zeros(pairs, dtype=np.int64), np.zeros(pairs)
        self._miscounted: list[int] = []
        if self._tables is not None and pairs * LEVELS <= MOST_LEVELS:
            self._next = NextStates(agent, truth, self._tables, self._half_span * self._smoothness)
            agent.log = DrainedLog(agent.dim, self._absorb)
        if self._tables is not None:
            shape = (part.n_cells, POINTS, agent.n_actions)
            inside = self._tables.inside.reshape(shape[:2])[:, :, None]
            most = np.where(inside, self._tables.rewards.reshape(shape), -np.inf).max(axis=1).reshape(-1)
            self._rewards = np.where(self._possible & np.isfinite(most), most - core.reward_min, 0.0)

    def _absorb(self) -> None:
        if self._next is not None:
            self._next.absorb(self.agent.log)

    def compare_with_truth(self, view: EpisodeView, sets: SetsInUse) -> None:
        """Whether true rewards and bias are dominated at the points of every cell."""
        if self._tables is None:
            return
        pairs = np.flatnonzero(self._possible)
        allowed = sets.rewards + self.agent.reward_range * self._smoothness
        self.keep_worst("reward-domination", self._rewards[pairs], allowed[pairs], pairs)
        if self._next is None:
            return
        self._absorb()
        counted = self._next.rows()
        self._miscounted.append(int(np.abs(counted[-1] - view.statistics.visits).sum()))
        nothing = TrueRows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0))
        seen, found = self._seen, self._least
        dominations(
            counted, tuple(nothing), sets.radius, tuple(self._next.asked), seen, True, tuple(Dominations(found))
        )
        self.keep_worst("bias-domination", found, sets.radius)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and the explicit bound to show."""
        found, reasons = self.plan_findings(), self._reasons()
        told, right = self._cells
        wrong = int(np.count_nonzero(told != right)) + sum(self._miscounted)
        found["cells"] = compared([wrong], 0.0, [1])
        shown: dict[str, Any] = {}
        if "mean-regret-bound" not in reasons:
            run = self.simulation.run()
            bound, at = self.bound(run.steps.astype(np.float64)), np.searchsorted(self.steps, run.steps, "right")
            regret = run.steps * self.truth.gain_low - run.rewards  # rewards are r(x_t,a_t)
            certain = bound >= run.steps * (self.truth.gain_low - self.agent.reward_min)
            found["mean-regret-bound"] = compared(regret, bound, run.steps, episodes=at, certain=certain)
            shown["bound"] = bound.tolist()
        if self._tables is not None:
            shown["points"] = {"per_cell": POINTS, "note": SAMPLED}
        for name, reason in reasons.items():
            found[name] = not_applicable(reason)
        return {name: found[name] for name in self.names}, shown

    def bound(self, T: Floats) -> Floats:
        """The explicit bound after T steps, if c is given."""
        agent = self.agent
        assert agent.span is not None
        terms = c_kl_scal_plus_terms_at(
            T,
            agent.n_states,
            agent.n_actions,
            span=agent.span,
            reward_max=agent.reward_range,
            delta=agent.core.delta,
            smoothness=self._smoothness,
            episodes=agent.core.episode_rule,
        )
        return np.asarray(np.sum(list(terms.values()), axis=0))

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, truth = self.agent, self.truth
        reasons: dict[str, str] = {}

        def say(reason: str, *names: str) -> None:
            for name in names:
                reasons.setdefault(name, reason)

        lemma = ("reward-domination", "bias-domination", "optimism", "mean-regret-bound")
        uncovered = truth.uncovered(agent, agent.partition)
        if uncovered:
            say(uncovered, *lemma)
        if self._next is None:
            say(f"more than {MOST_LEVELS:,} numbers would be kept", "bias-domination")
        if agent.span is None:
            say("no span was given", "span", "mean-regret-bound")
        elif truth.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            why = (
                f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}: the theorem does not apply"
            )
            say(why, "bias-domination", "optimism", "mean-regret-bound")
        if not agent.allowed.all():
            say(
                "the agent may not take every action in every cell, and g* is the gain with all of them",
                "optimism",
                "mean-regret-bound",
            )
        return reasons
