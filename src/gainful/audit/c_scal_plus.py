"""The auditor of C-SCAL+: every episode's plan and model of cells compared with points of the true environment.

Events are checked at points sampled from each cell (`points.POINTS`). A violation found there is real; that an event
holds at these points does not prove it for all others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.c_scal_plus import CSCALPlus
from gainful.agents.episodic import EpisodeView
from gainful.agents.refinement import TransitionLog
from gainful.audit.cell_tables import CellTables, PointCounter
from gainful.audit.cells import CellsTruth, exact_edges, grid_of, right_closed_edges
from gainful.audit.episodes import EpisodeFactors, episode_rule
from gainful.audit.findings import Cases, Finding, Floats, compared, joined, not_applicable
from gainful.audit.interval_law import IntervalCounter
from gainful.audit.planned import (
    EpisodeRecorder,
    PlannedEpisodes,
    ScalPlusConstants,
    largest_of,
    over_actions,
    over_pairs,
    plan_cases,
)
from gainful.audit.points import BIAS, POINTS, TRUE_VALUES, CellSums, LoggedTransitions
from gainful.audit.rows import TrueRows, counted_rows
from gainful.audit.scal_plus import STATEMENTS_OF_SCAL_PLUS
from gainful.audit.sharp import STATEMENTS_OF_THEOREM_11
from gainful.audit.terms import EpisodeSums, RegretTotals, executions
from gainful.partition import Partition
from gainful.simulation.continuous import LOGGED_PAUSE, ContinuousSimulation
from gainful.theory.regret import episodes_at

ONE_BY_ONE = 4000
"""The number of points up to which `Partition.index` is checked too, and not only `index_many`."""
SAMPLED = (
    f"events are checked at {POINTS} points of each cell: a violation there is real, but holding at them is no proof "
    "for the others"
)


class DrainedLog(TransitionLog):
    """A log of raw transitions that is emptied before it grows: memory stays bounded in a run of any length."""

    def __init__(self, dim: int, drain: Callable[[], None]) -> None:
        super().__init__(dim)
        self._drain = drain

    def reserve(self, more: int) -> None:
        """Make room for `more` transitions."""
        if self.n and self.n + more > LOGGED_PAUSE:
            self._drain()
        super().reserve(more)


@dataclass(frozen=True, eq=False)
class SampledModel:
    """The true model at the sampled points of the cells, in internal units; arrays are (S, A, POINTS)."""

    tables: CellTables
    rewards: Floats
    """r(x,a), from 0."""
    expected_bias: Floats
    """E[h(X') | x, a]."""
    counted: NDArray[np.bool_]
    """The points and actions at which events are checked."""
    best: Floats
    """(S, POINTS) Lh(x) = max_a (r + E h)."""

    @classmethod
    def of(cls, tables: CellTables, reward_min: float, possible: NDArray[np.bool_]) -> SampledModel:
        """Make the model from the tables of a partition."""
        S, A = possible.shape

        def by_pair(x: Floats) -> Floats:
            return np.ascontiguousarray(x.reshape(S, POINTS, A).transpose(0, 2, 1))

        rewards, expected = by_pair(tables.rewards) - reward_min, by_pair(tables.expected)
        best = np.where(possible[:, :, None], rewards + expected, -np.inf).max(axis=1)
        counted = possible[:, :, None] & tables.inside.reshape(S, 1, POINTS)
        return cls(tables, rewards, expected, counted, best)


@dataclass(frozen=True, eq=False)
class SampledEpisodes:
    """K episodes as they begin, and what is known of them at the sampled points."""

    planned: PlannedEpisodes
    model: SampledModel
    bias_sums: Floats
    """(K,S,A) Σ h(x') over the visits."""
    true_values: Floats
    distance: Floats
    """(K,S,A,POINTS) p(·|x,a)·v_k and ‖p̂ - p(·|x,a)‖₁."""

    @property
    def estimated_bias(self) -> Floats:
        """(K,S,A) p̂·h = (Σ h(x') + n·∫ h over I(s̄)) / (N+1): definition estimated.cont.mdp."""
        return (self.bias_sums + self.model.tables.anchor) * (1.0 / (self.planned.visits + 1.0))

    @property
    def reward_errors(self) -> Floats:
        """(K,S,A,POINTS) r̄ - r(x,a)."""
        return self.planned.mean_rewards[..., None] - self.model.rewards

    def visited_only(self, errors: Floats) -> Floats:
        """Errors (K,S,A,POINTS), 0 at the pairs never visited."""
        return np.asarray(np.where(self.planned.visited[..., None], errors, 0.0))

    def at_worst(self, found: Floats, allowed: Floats) -> tuple[Cases, Floats]:
        """The point of each episode where found/allowed is largest, and where it lies in the unit cube."""
        ratio = np.where(self.model.counted, found / allowed[..., None], -1.0)
        at, (left,) = largest_of(ratio, found)
        A, pair, K = self.planned.constants.n_actions, at // POINTS, len(found)
        right = allowed.reshape(K, -1)[np.arange(K), pair]
        places = self.model.tables.places[pair // A * POINTS + at % POINTS]
        return Cases.of(left, right, states=pair // A, actions=pair % A), places


# ---------------------------------------------------------------------- statements about the true model


def bonus_rewards(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """|r̄(I,a) - r(x,a)| ≤ r_max·(min{β, 1} + L·n^{-α}) at every point."""
    c = e.planned.constants
    return e.at_worst(np.abs(e.visited_only(e.reward_errors)), c.reward_range * (e.planned.capped_beta + c.smoothness))


def bonus_transitions(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """|p̄·h - E[h(X')|x,a]| ≤ c·(min{β, 1} + L·n^{-α}) at every point; p̄·h = Σ h(x')/N."""
    c, n = e.planned.constants, np.maximum(1, e.planned.visits)
    errors = e.visited_only((e.bias_sums / n)[..., None] - e.model.expected_bias)
    return e.at_worst(np.abs(errors), c.span * (e.planned.capped_beta + c.smoothness))


def bonus_bias(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """|r̄(I,a) - r(x,a) + p̂·h - E[h(X')|x,a]| ≤ b_k at every point."""
    errors = e.reward_errors + e.estimated_bias[..., None] - e.model.expected_bias
    return e.at_worst(np.abs(errors), e.planned.b)


def bonus_values(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """|r̄(I,a) - r(x,a) + p̂·v_k - p(·|x,a)·v_k| ≤ d_k at every point."""
    errors = e.reward_errors + e.planned.estimated_values[..., None] - e.true_values
    return e.at_worst(np.abs(errors), e.planned.d)


def bonus_all_values(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """|r̄(I,a) - r(x,a)| + (c/2)·‖p̂ - p(·|x,a)‖₁ ≤ d_k at every point: for all v of span c at once."""
    return e.at_worst(np.abs(e.reward_errors) + 0.5 * e.planned.constants.span * e.distance, e.planned.d)


def reward_domination(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """The reward r(x,a) is at most r̃(I,a) + r_max·L·n^{-α} at every point; both sides less r̄."""
    (rewards, _), c = e.planned.parts_at_bias, e.planned.constants
    return e.at_worst(-e.reward_errors, rewards - e.planned.mean_rewards + c.smoothness * c.reward_range)


def bias_domination(e: SampledEpisodes) -> tuple[Cases, Floats]:
    """The expectation E[h(X')|x,a] is at most b + p̂·h + c·L·n^{-α} at every point; both sides less p̂·h."""
    (_, b), c = e.planned.parts_at_bias, e.planned.constants
    errors = e.model.expected_bias - e.estimated_bias[..., None]
    return e.at_worst(errors, b + c.smoothness * c.span)


EVENTS = {
    "bonus-rewards": bonus_rewards,
    "bonus-transitions": bonus_transitions,
    "bonus-bias": bonus_bias,
    "bonus-values": bonus_values,
    "bonus-all-values": bonus_all_values,
}
SHARP_EVENTS = {"reward-domination": reward_domination, "bias-domination": bias_domination}


def optimism_excess(e: SampledEpisodes) -> Floats:
    """(2,K) mean and maximum over the points of L̂h(I) - Lh(x)."""
    planned, inside = e.planned, e.model.tables.inside.reshape(-1, POINTS)
    best = over_actions(np.maximum, planned.where_possible(planned.optimistic_rewards + e.estimated_bias, -np.inf))
    excess = best[:, :, None] - e.model.best
    mean = over_pairs(np.add, np.where(inside, excess, 0.0)) / np.count_nonzero(inside)
    return np.stack([mean, over_pairs(np.maximum, np.where(inside, excess, -np.inf))])


# ---------------------------------------------------------------------- the cells of one stage


class CellStage:
    """The cells that an agent has between two refinements: the true model on them, and what was counted on them."""

    def __init__(self, agent: CSCALPlus, truth: CellsTruth) -> None:
        core, part, solved = agent.core, agent.partition, truth.solution
        self.partition = part
        S, A = part.n_cells, agent.n_actions
        pairs, error = S * A, 0.0
        if agent.lipschitz is not None and agent.holder is not None:  # from the settings, not from the agent's own sum
            error = (agent.span + agent.reward_range) * agent.lipschitz / min(part.bins) ** agent.holder
        n = min(part.bins)
        self.constants = ScalPlusConstants.of(core, S + 1, error, pairs * n * (n + 1) if agent.doubling else pairs)
        self.checked_cells = checked_cells(part, [right_closed_edges(part, i) for i in range(part.dim)])
        self.grid = grid_of(part, A)
        self.sums = CellSums(np.zeros(pairs, dtype=np.int64), np.zeros(pairs))
        self.tables: CellTables | None = None if solved is None else truth.on(part)
        self._counter: PointCounter = IntervalCounter.without_a_law()
        if self.tables is not None:
            self._counter = self.tables.counter()
        self.level = self._counter.level
        nothing = TrueRows(np.zeros(pairs + 1, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0))
        for array in nothing:
            array.flags.writeable = False  # as the rows of an MDP: one compiled kernel for both
        possible = core.allowed
        self._possible = np.ascontiguousarray(possible.reshape(-1))
        self.recorder = EpisodeRecorder(self.constants, possible, nothing, np.zeros(S), POINTS)
        self._model = None if self.tables is None else SampledModel.of(self.tables, core.reward_min, possible)
        capacity = self.recorder.capacity
        self._counts = np.zeros((capacity, pairs), dtype=np.int64)
        self._bias_sums = np.zeros((capacity, pairs))
        self._true_values, self._distance = (np.zeros((capacity, pairs, POINTS)) for _ in range(2))
        self.episodes = 0
        """Begun on these cells."""

    def count(self, log: TransitionLog, begin: int, end: int, level: int, episode: int, values: Floats) -> float:
        """Count transitions of the log; returns Σ (p(·|x,a)·v - v(x)) of them."""
        moves = LoggedTransitions(log.origin, log.target, log.action)
        return self._counter.take(moves, (begin, end), self.grid, level, (episode, values), self.sums)

    def cell(self, point: Floats) -> int:
        """The right-closed cell of a point."""
        cell = 0
        for i, (n, at) in enumerate(zip(self.partition.bins, self.grid.offset, strict=True)):
            inner = self.grid.edges[at + 1 : at + n]
            cell = cell * n + int(np.searchsorted(inner, point[i], "left"))
        return cell

    def record(self, view: EpisodeView) -> None:
        """An episode begins."""
        i = self.recorder.n
        self.recorder.add(view)
        self._counts[i], self._bias_sums[i] = self.sums
        self._counter.compare(
            counted_rows(view.statistics), self._possible, view.plan.values, self._true_values[i], self._distance[i]
        )
        self.episodes += 1

    def examine(self) -> tuple[PlannedEpisodes, SampledEpisodes | None, NDArray[np.int64]]:
        """The episodes recorded, also at the sampled points if known, and the visits before and after each."""
        e = self.recorder.take()
        n, shape = e.step.size, e.possible.shape
        visits = np.concatenate([self._counts[:n], self.sums.counts[None]]).reshape(n + 1, *shape)
        if self._model is None:
            return e, None, visits
        points = (array[:n].reshape(n, *shape, POINTS) for array in (self._true_values, self._distance))
        return e, SampledEpisodes(e, self._model, self._bias_sums[:n].reshape(n, *shape), *points), visits


@dataclass(frozen=True)
class _Beginning:
    """What is known when an episode begins."""

    step: int
    value: float
    """v_k at the first point."""
    earned: float
    """Rewards before it."""
    pairs: int
    factor: float
    """f_k of the rule that ends it."""
    number: int
    """Its number among those on the same cells, from 1."""
    cells_wrong: int
    """Visits counted in other cells than the right-closed ones."""


class CellsAuditor:
    """Checks every episode of one C-SCAL+ agent in one continuous environment.

    The agent keeps its raw transitions during the run, in a log that is emptied as it goes; `findings` takes the log
    away again. An agent that refines its cells as it learns has a log of its own: transitions are then counted again on
    the new cells, the episode cut short by them needs no doubled pair, episodes are numbered per stage, and the
    explicit bound (of fixed cells) is not applicable.

    Parameters
    ----------
    agent : CSCALPlus
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = (*STATEMENTS_OF_SCAL_PLUS, "cells")

    def __init__(self, agent: CSCALPlus, truth: CellsTruth, simulation: ContinuousSimulation) -> None:
        self.agent, self.truth, self.simulation = agent, truth, simulation
        self.sharp = agent.core.bonus == "sharp"
        self._events = SHARP_EVENTS if self.sharp else EVENTS
        if self.sharp:
            self.names = (*STATEMENTS_OF_THEOREM_11, "cells")
        self._own_log = agent.log
        if self._own_log is None:
            agent.log = DrainedLog(agent.dim, self._absorb)
        self._counted = 0
        """LoggedTransitions of the agent's own log that have been counted."""
        self._beginnings: list[_Beginning] = []
        self._factors = EpisodeFactors(agent.core)
        self._ends: list[float] = []
        """v_k at the last point of episode k."""
        self._drifts: list[float] = []
        """Σ (p(·|x,a)·v_k - v_k(x)) in episode k."""
        self._cases: dict[str, list[Cases]] = defaultdict(list)
        self._places: dict[str, list[Floats]] = defaultdict(list)
        """Per event and episode: the sampled point that came nearest to violating it."""
        self._sums: list[EpisodeSums] = []
        self._excess: list[Floats] = []
        self._indexed: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        self._law_error, self._law_known = 0.0, True
        self._enter_stage()

    # ------------------------------------------------------------------ cells

    @property
    def partition(self) -> Partition:
        """The cells of the last episode."""
        return self._stage.partition

    def _enter_stage(self) -> None:
        """Begin on the agent's present cells, and count everything so far on them."""
        self._stage = stage = CellStage(self.agent, self.truth)
        self._indexed.append((self.agent.t + 1, *stage.checked_cells))
        self._values, self._drift = np.zeros(stage.partition.n_cells), 0.0
        if stage.tables is not None:
            self._law_known = self._law_known and stage.level == TRUE_VALUES
            self._law_error = max(self._law_error, stage.tables.error)
        if self._own_log is not None and self._counted:
            stage.count(self._own_log, 0, self._counted, min(stage.level, BIAS), 0, self._values)

    def _absorb(self) -> None:
        """Count what the log holds of the present episode."""
        log, stage = self.agent.log, self._stage
        assert log is not None
        first = 0 if self._own_log is None else self._counted
        self._drift += stage.count(log, first, log.n, stage.level, len(self._beginnings), self._values)
        if self._own_log is None:
            log.n = 0
        else:
            self._counted = log.n

    # ------------------------------------------------------------------ episodes

    def see(self, view: EpisodeView) -> None:
        """Record an episode that begins, and close the previous one."""
        self._close()
        if self.agent.partition is not self._stage.partition:
            self._examine(refined=True)
            self._enter_stage()
        elif self._stage.recorder.full:
            self._examine()
        stage = self._stage
        stage.record(view)
        self._values = np.array(view.plan.values)
        self._beginnings.append(
            _Beginning(
                step=view.step,
                value=float(self._values[stage.cell(self.simulation.point)]),
                earned=self.simulation.total,
                pairs=view.statistics.visits.size,
                factor=self._factors.begin(view, view.statistics.visits.size),
                number=stage.episodes,
                cells_wrong=int(np.abs(stage.sums.counts - view.statistics.visits).sum()),
            )
        )

    def _close(self) -> None:
        """Close the present episode."""
        self._absorb()
        if len(self._ends) < len(self._beginnings):
            self._ends.append(float(self._values[self._stage.cell(self.simulation.point)]))
            self._drifts.append(self._drift)
        self._drift = 0.0

    def _examine(self, refined: bool = False) -> None:
        """Examine the episodes recorded; `refined`: new cells ended the last one."""
        if not self._stage.recorder.n:
            return
        e, sampled, visits = self._stage.examine()
        for name, case in plan_cases(e, self.truth.gain_low - self.agent.reward_min).items():
            self._cases[name].append(case)
        if sampled is not None:
            for name, event in self._events.items():
                case, places = event(sampled)
                self._cases[name].append(case)
                self._places[name].append(places)
            self._excess.append(optimism_excess(sampled))
        last = slice(len(self._ends) - e.step.size, len(self._ends))
        factors = np.array([beginning.factor for beginning in self._beginnings[last]])
        nu, ratio, pair, full = executions(visits, factors)
        full[-1] |= refined
        begun = [beginning.value for beginning in self._beginnings[last]]
        self._sums.append(
            EpisodeSums(
                steps=over_pairs(np.add, nu).astype(np.float64),
                ratio=ratio,
                pair=pair,
                full=full,
                bonus=over_pairs(np.add, nu * e.b),
                deviation=over_pairs(np.add, nu * e.d),
                drift=np.array(self._drifts[last]),
                telescoping=np.array(self._ends[last]) - begun,
            )
        )

    # ------------------------------------------------------------------ findings

    @property
    def cases(self) -> dict[str, Cases]:
        """Found and allowed of each statement that is checked once per episode, for the episodes examined."""
        return {name: joined(parts) for name, parts in self._cases.items()}

    @property
    def miscounted(self) -> list[int]:
        """For each episode, the visits that the agent had counted in other cells than the right-closed ones."""
        return [beginning.cells_wrong for beginning in self._beginnings]

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and numbers to show; the agent has its own log again."""
        if len(self._ends) < len(self._beginnings):
            self._close()
        self._examine()
        self.agent.log = self._own_log
        step = np.array([beginning.step for beginning in self._beginnings], dtype=np.float64)
        found = {name: case.finding(step) for name, case in self.cases.items()}
        found["cells"] = self._of_cells(step)
        more, shown = self._of_sums(step)
        found |= more
        for name, reason in self._reasons().items():
            found[name] = not_applicable(reason)
        if self.truth.solution is not None:
            shown["points"] = {"per_cell": POINTS, "note": SAMPLED, **self._nearest(found)}
            mean, largest = np.concatenate(self._excess, axis=1)
            shown["tightness"] = {
                "step": step.astype(np.int64).tolist(),
                "mean": mean.tolist(),
                "largest": largest.tolist(),
            }
        return {name: found[name] for name in self.names}, shown

    def _nearest(self, found: dict[str, Finding]) -> dict[str, float | list[float]]:
        """For each event the point, in the agent's coordinates, where it was worst: a number if d = 1."""
        origin, length = np.array([self.truth.to_unit(self.partition, i) for i in range(self.partition.dim)]).T
        nearest: dict[str, float | list[float]] = {}
        for name in self._events:
            worst = found[name].worst
            if worst is not None:
                point = (origin + length * np.concatenate(self._places[name])[worst.episode - 1]).tolist()
                nearest[name] = point[0] if len(point) == 1 else point
        return nearest

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, core, truth = self.agent, self.agent.core, self.truth
        reasons: dict[str, str] = {}

        def say(reason: str, *names: str) -> None:
            for name in names:
                reasons.setdefault(name, reason)

        optimal = ("optimism", "decomposition", "regret-bound", "mean-regret-bound")
        of_the_lemma = (*self._events, *optimal)
        uncovered = truth.uncovered(agent, self.partition)
        if uncovered:
            say(uncovered, *of_the_lemma, *(("term-martingale",) if truth.solution is None else ()))
        if truth.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            say(
                f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}: the theorem does not apply",
                "bonus-transitions",
                "bonus-bias",
                "bias-domination",
                *optimal,
            )
        if not agent.allowed.all():
            say("the agent may not take every action in every cell, and g* is the gain with all of them", *optimal)
        if core.mixture != "copy":
            say("the policy draws its actions: the inequality holds in expectation over them", "decomposition")
            if core.bonus != "appendix":
                say("with drawn actions the bound is for the appendix's bonus", "regret-bound")
        if not self._law_known:
            say(
                f"no polynomials in x approximate p(J|x,a) well enough (their error is {self._law_error:.1e})",
                "term-martingale",
                "decomposition",
            )
        if agent.doubling:
            fixed = ("term-bonus", "term-deviation", "term-precision", "regret-bound", "mean-regret-bound")
            say("the agent refines its cells, and the explicit bound is for fixed cells", *fixed)
        if agent.bonus_scale > 1.0:
            say(f"bonus_scale is {agent.bonus_scale:g}: b is larger than the theorem's", "term-bonus")
        return reasons

    def _of_cells(self, step: Floats) -> Finding:
        """Whether points at and beside every edge, and all visits up to each episode, are in the right cells."""
        wrong, cells, when = [], [], []
        for began, given, right in self._indexed:
            wrong.append(np.abs(given - right))
            cells.append(right)
            when.append(np.full(right.size, began))
        wrong.append(np.array([beginning.cells_wrong for beginning in self._beginnings]))
        cells.append(np.zeros(step.size, dtype=np.int64))
        when.append(step.astype(np.int64))
        at = np.concatenate(when)
        episodes = np.maximum(np.searchsorted(step, at, "right"), 1)
        return compared(np.concatenate(wrong), 0.0, at, states=np.concatenate(cells), episodes=episodes)

    def _of_sums(self, step: Floats) -> tuple[dict[str, Finding], dict[str, Any]]:
        """What episodes add up to: the rule that ends them, their number, and the terms of the regret.

        Regret is measured against the proven lower end of g*: a violation is one for every possible g*.
        """
        agent, simulation, truth = self.agent, self.simulation, self.truth
        sums, run = joined(self._sums), simulation.run()
        earned = np.append([beginning.earned for beginning in self._beginnings[1:]], simulation.total)
        totals = RegretTotals.of(
            sums,
            step,
            gain=truth.gain_low,
            earned=earned,
            reward_luck=np.zeros_like(step),  # r_t = r(x_t,a_t)
            constants=self._stage.constants,
            mixture=agent.core.mixture,
            episodes=self._factors.rule,
            least_reward=agent.reward_min,
        )
        T = np.maximum(totals.after, 1.0)
        rule = self._factors.rule
        most = [episodes_at(T[i : i + 1], begun.pairs, rule)[0] for i, begun in enumerate(self._beginnings)]
        found = totals.findings(step, self._law_error if self._law_known else 0.0)
        found["episode-rule"] = episode_rule(step, sums.ratio, sums.pair, sums.full, agent.n_actions)
        found["episode-count"] = compared([beginning.number for beginning in self._beginnings], most, step)
        found["mean-regret-bound" if self.sharp else "regret-bound"] = totals.regret_bound(
            run.steps * truth.gain_low - run.rewards, run.steps, step
        )
        known = totals.shown() | {"regret": None}
        if truth.gain is not None:
            known["regret"] = replace(totals, regret=totals.after * truth.gain - earned).shown()["regret"]
        if truth.solution is None or not self._law_known:
            del known["martingale"]
        shown: dict[str, Any] = {"sums": known}
        if truth.solution is not None and not agent.doubling:
            shown["bound"] = totals.total_bound(run.steps).tolist()
        if "bound" in shown and not self.sharp:
            allowed = totals.bound(run.steps.astype(np.float64))
            shown["terms"] = {name: float(values[-1]) for name, values in allowed.items()}
        return found, shown


def checked_cells(partition: Partition, edges: list[Floats]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells that `index` returns at every edge, the doubles beside it and the ends of the box; and the right ones.

    On [0, 1] an edge is the double nearest to k/n, and belongs to the cell at its left. On other boxes edges are the
    result of several operations: the partition's own must be within 4 roundings of the exact fractions, and stand for
    them. Along one axis at a time, at the centre of the others.
    """
    given, right = [], []
    home = partition.n_cells // 2
    middle = partition.centers[home]
    for i, (n, low, high) in enumerate(zip(partition.bins, partition.low, partition.high, strict=True)):
        own = edges[i]
        near = np.abs(own - exact_edges(partition, i)) <= 4 * 2.0**-53 * max(abs(low), abs(high))
        given.append((~near).astype(np.int64))
        right.append(np.zeros(n + 1, dtype=np.int64))
        x = np.concatenate([own, np.nextafter(own, -np.inf), np.nextafter(own, np.inf)])
        x = np.append(x[(x >= low) & (x <= high)], [low, high])
        points = np.repeat(middle[None, :], x.size, axis=0)
        points[:, i] = x
        stride = math.prod(partition.bins[i + 1 :])
        others = home - (home // stride) % n * stride
        wanted = others + np.searchsorted(own[1:-1], x, "left") * stride
        given.append(np.asarray(partition.index_many(points), dtype=np.int64))
        right.append(wanted)
        few = slice(0, ONE_BY_ONE)
        given.append(np.array([partition.index(point) for point in points[few]], dtype=np.int64))
        right.append(wanted[few])
    return np.concatenate(given), np.concatenate(right)
