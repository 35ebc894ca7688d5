"""The auditor of C-SCAL+: every episode's plan and model of cells held against points of the true environment.

Events are checked at points sampled from each cell (`cells.POINTS`): a violation found is real, while holding at
these points is no proof for all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.c_scal_plus import CSCALPlus
from gainful.agents.episodic import EpisodeView
from gainful.agents.refinement import TransitionLog
from gainful.audit.cells import NODES, POINTS, CellsTruth, CellTables, exact_edges, right_closed_edges, to_coefficients
from gainful.audit.episodes import episode_rule
from gainful.audit.findings import Finding, Floats, compared, not_applicable
from gainful.audit.scal_plus import (
    A_ALLOWED,
    A_FOUND,
    A_PAIR,
    ALL_ALLOWED,
    ALL_FOUND,
    ALL_PAIR,
    DRIFT,
    GAP_MAX,
    GAP_MEAN,
    OVER,
    OVER_PAIR,
    PAIRWISE_WORK,
    STEPS,
    SUM_B,
    SUM_D,
    TIGHT,
    V_ALLOWED,
    V_FOUND,
    V_PAIR,
    examine,
    of_plans,
    optimism,
    reaching,
    settle,
)
from gainful.partition import Partition
from gainful.simulation.continuous import LOGGED_PAUSE, ContinuousSimulation
from gainful.theory.regret import episodes_at, terms_at

ONE_BY_ONE = 4000
"""Points up to which `Partition.index` is asked too, beside `index_many`."""
COUNTS, BIAS, VALUES = range(3)
"""What `take` sums up: the transitions alone, h too, the true p·v too."""
SAMPLED = (
    f"events are checked at {POINTS} points of each cell: a violation is real, holding at them is no proof for others"
)


@kernel
def take(
    origin: NDArray[Any], target: NDArray[Any], action: NDArray[Any], first: int, last: int, bins: NDArray[Any],
    edges: NDArray[Any], offset: NDArray[Any], n_actions: int, level: int, nodes: NDArray[Any], bias: NDArray[Any],
    guide: NDArray[Any], unit_low: float, unit_length: float, pieces: int, band_first: NDArray[Any],
    band_ptr: NDArray[Any], band_p: NDArray[Any], coefficients_of: NDArray[Any], v: NDArray[Any], known: NDArray[Any],
    episode: int, coefficients: NDArray[Any], counts: NDArray[Any], sum_h: NDArray[Any],
) -> float:  # fmt: skip
    """Count transitions first … last-1 of a log on right-closed cells, and add h(x') up; returns Σ (p(·|x,a)·v - v(x)).

    p(·|x,a)·v is a polynomial of x on each piece of a cell, put together when an episode first comes there.
    """
    d, drift = bins.size, 0.0
    for i in range(first, last):
        cell = 0
        for j in range(d):
            x, n, at = origin[i, j], bins[j], offset[j]
            k = min(max(int((x - edges[at]) / (edges[at + n] - edges[at]) * n), 0), n - 1)
            while k > 0 and x <= edges[at + k]:
                k -= 1
            while k < n - 1 and x > edges[at + k + 1]:
                k += 1
            cell = cell * n + k
        pair = cell * n_actions + action[i]
        counts[pair] += 1
        if level == COUNTS:
            continue
        y = min(max((target[i, 0] - unit_low) / unit_length, 0.0), 1.0)
        k = guide[int(y * (guide.size - 1))]
        while nodes[k + 1] < y:
            k += 1
        sum_h[pair] += bias[k] + (bias[k + 1] - bias[k]) * ((y - nodes[k]) / (nodes[k + 1] - nodes[k]))
        if level == BIAS:
            continue
        place = (origin[i, 0] - edges[cell]) / (edges[cell + 1] - edges[cell]) * pieces
        piece = min(max(int(place), 0), pieces - 1)
        s = 2.0 * (place - piece) - 1.0
        row = (action[i] * bins[0] + cell) * pieces + piece
        if known[row] != episode:
            known[row] = episode
            for m in range(NODES):
                coefficients[row, m] = 0.0
            for j in range(NODES):
                at = row * NODES + j
                value, to = 0.0, band_first[at]
                for m in range(band_ptr[at], band_ptr[at + 1]):
                    value += band_p[m] * v[to]
                    to += 1
                for m in range(NODES):
                    coefficients[row, m] += coefficients_of[m, j] * value
        value = coefficients[row, NODES - 1]
        for m in range(NODES - 2, -1, -1):
            value = value * s + coefficients[row, m]
        drift += value - v[cell]
    return drift


@kernel
def hold(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    reward_sum: NDArray[Any], possible: NDArray[Any], n_actions: int, b: NDArray[Any], d: NDArray[Any],
    qv: NDArray[Any], v: NDArray[Any], c: float, lowest: float, sum_h: NDArray[Any], anchor_h: float,
    inside: NDArray[Any], rewards: NDArray[Any], expected: NDArray[Any], first: NDArray[Any], ptr: NDArray[Any],
    p: NDArray[Any], q: NDArray[Any], out: NDArray[Any], where: NDArray[Any],
) -> None:  # fmt: skip
    """The events (a) and (b) at the sampled points of every cell, and how far L̂h lies above Lh there.

    (a) |r̄(I,a) - r(x,a) + p̂·h - E[h(X')|x,a]| ≤ b_k with p̂·h = (Σ h(x') + n·∫_{I(s̄)} h)/(N+1): definition
    estimated.cont.mdp; (b) the same with v, or for all v at once, ≤ d_k. `q` is scratch, all zero before and after.
    """
    S = v.size
    worst_a = worst_v = worst_all = -1.0
    gap_sum, gap_max, n_points = 0.0, -np.inf, 0
    for cell in range(S):
        best = -np.inf
        for a in range(n_actions):
            k = cell * n_actions + a
            if not possible[k]:
                continue
            inv, r_bar = 1.0 / (visits[k] + 1.0), reward_sum[k] / max(1, visits[k])
            row_end = begin[k] + length[k]
            for i in range(begin[k], row_end):
                q[next_state[i]] = count[i] * inv
            q[0] += inv
            qh = (sum_h[k] + anchor_h) * inv
            best = max(best, r_bar + b[k] + qh)
            for j in range(cell * POINTS, (cell + 1) * POINTS):
                if not inside[j]:
                    continue
                row = j * n_actions + a
                to, pv, l1 = first[row], 0.0, 1.0
                for i in range(ptr[row], ptr[row + 1]):
                    pv += p[i] * v[to]
                    l1 += abs(q[to] - p[i]) - q[to]
                    to += 1
                r = rewards[j, a] - lowest
                found = abs(r_bar - r + qh - expected[j, a])
                if found / b[k] > worst_a:
                    worst_a = found / b[k]
                    out[A_FOUND], out[A_ALLOWED], out[A_PAIR], where[0] = found, b[k], k, j
                found = abs(r_bar - r + qv[k] - pv)
                if found / d[k] > worst_v:
                    worst_v = found / d[k]
                    out[V_FOUND], out[V_ALLOWED], out[V_PAIR], where[1] = found, d[k], k, j
                found = abs(r_bar - r) + 0.5 * c * l1
                if found / d[k] > worst_all:
                    worst_all = found / d[k]
                    out[ALL_FOUND], out[ALL_ALLOWED], out[ALL_PAIR], where[2] = found, d[k], k, j
            for i in range(begin[k], row_end):
                q[next_state[i]] = 0.0
            q[0] = 0.0
        for j in range(cell * POINTS, (cell + 1) * POINTS):
            if inside[j]:
                true = -np.inf
                for a in range(n_actions):
                    if possible[cell * n_actions + a]:
                        true = max(true, rewards[j, a] - lowest + expected[j, a])
                gap_sum += best - true
                gap_max = max(gap_max, best - true)
                n_points += 1
    out[GAP_MEAN], out[GAP_MAX] = gap_sum / n_points, gap_max


class DrainedLog(TransitionLog):
    """A log of raw transitions that is emptied before it grows: memory stays bounded in a run of any length."""

    def __init__(self, dim: int, drain: Callable[[], None]) -> None:
        super().__init__(dim)
        self._drain = drain

    def reserve(self, more: int) -> None:
        """Make room for so many more."""
        if self.n and self.n + more > LOGGED_PAUSE:
            self._drain()
        super().reserve(more)


@dataclass(frozen=True)
class _Start:
    """What is known when an episode begins."""

    step: int
    low: float
    high: float
    span: float
    value: float
    """v_k at the first point."""
    earned: float
    """Rewards before it."""
    pairs: int
    number: int
    """Its number among those on the same cells, from 1."""
    cells_wrong: int
    """Visits counted in other cells than the right-closed ones."""


class CellsAuditor:
    """Looks at every episode of one C-SCAL+ agent in one continuous environment.

    The agent keeps its raw transitions during the run, in a log that is emptied as it goes; `findings` takes the log
    away again. An agent that refines its cells in life has a log of its own: transitions are then counted again on the
    new cells, the episode cut short by them needs no doubled pair, episodes are numbered per stage, and the explicit
    bound (of fixed cells) is not applicable.
    """

    names = (
        "bonus-formula", "bonus-bias", "bonus-values", "bonus-all-values", "optimism", "span", "certificate",
        "precision", "bellman-error", "feasible", "contraction", "unichain", "episode-rule", "episode-count",
        "term-bonus", "term-deviation", "term-precision", "term-telescoping", "term-martingale", "decomposition",
        "regret-bound", "cells",
    )  # fmt: skip

    def __init__(self, agent: CSCALPlus, truth: CellsTruth, life: ContinuousSimulation) -> None:
        self.agent, self.truth, self.life = agent, truth, life
        self._own_log = agent.log
        if self._own_log is None:
            agent.log = DrainedLog(agent.dim, self._absorb)
        self._taken = 0
        """Transitions of the agent's own log that have been summed up."""
        self._none = np.empty((0, 0))
        self._seen: Floats = np.zeros((64, GAP_MAX + 1))
        self._where: NDArray[np.int64] = np.full((64, 3), -1, dtype=np.int64)
        """Per episode: the sampled points that came nearest to violating the three events."""
        self._places: Floats = np.zeros((64, 3))
        self._sums: Floats = np.zeros((64, STEPS + 1))
        self._starts: list[_Start] = []
        self._ends: list[float] = []
        """v_k at the last point of episode k."""
        self._indexed: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        self._law_error, self._law_known = 0.0, True
        self._cut()

    # ------------------------------------------------------------------ cells

    def _cut(self) -> None:
        """Begin on the agent's present cells: tables of the true model, and everything so far counted on them."""
        agent, truth, solved = self.agent, self.truth, self.truth.solution
        part = self.partition = agent.partition
        S, A = part.n_cells, agent.n_actions
        pairs = S * A
        edges = [right_closed_edges(part, i) for i in range(part.dim)]
        self._indexed.append((agent.t + 1, *checked_cells(part, edges)))
        self._edges = np.concatenate(edges)
        self._offset = np.append(0, np.cumsum([e.size for e in edges]))[:-1].astype(np.int64)
        self._tables: CellTables | None = None if solved is None else truth.on(part)
        self._level = COUNTS
        nothing = np.zeros(2)
        nothing.flags.writeable = False  # as the oracle's arrays: one compiled kernel for both
        self._line: tuple[Any, ...] = (nothing, nothing, np.zeros(2, dtype=np.int64), 0.0, 1.0)
        self._pieces: tuple[Any, ...] = (0, *(np.zeros(1, dtype=np.int64),) * 2, np.zeros(1))
        rows = 1
        if self._tables is not None and solved is not None:
            t = self._tables
            self._level = VALUES if t.pieces else BIAS
            self._law_known = self._law_known and t.pieces > 0
            self._law_error = max(self._law_error, t.error)
            guide = np.searchsorted(
                solved.nodes, np.arange(4 * solved.nodes.size + 1) / (4 * solved.nodes.size), "left"
            )
            guide = np.clip(guide - 1, 0, solved.nodes.size - 2)
            self._line = (solved.nodes, solved.bias, guide, *truth.to_unit(part))
            self._pieces = (t.pieces, *t.polynomials)
            rows = max(1, A * S * t.pieces)
        self._known = np.full(rows, -1, dtype=np.int64)
        self._coefficients, self._coefficients_of = np.zeros((rows, NODES)), to_coefficients()
        self._counts, self._before = np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
        self._sum_h, self._zeros = np.zeros(pairs), np.zeros(pairs)
        self._b, self._d, self._pv, self._qv, self._reach = (np.zeros(pairs) for _ in range(5))
        self._least, self._w, self._q, self._v, self._flat = (np.zeros(S) for _ in range(5))
        self._common, self._greedy = np.zeros(S, dtype=np.int64), np.zeros(S, dtype=np.int64)
        self._empty = np.zeros(pairs + 1, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0)
        for array in self._empty:
            array.flags.writeable = False  # as the rows of an MDP
        self._exact = pairs * pairs * max(2, S) <= PAIRWISE_WORK
        self._added = 0.0
        """(c + r_max)·L·n^{-α}, from the settings and not from the agent's own sum."""
        if agent.lipschitz is not None and agent.holder is not None:
            self._added = (agent.span + agent.reward_range) * agent.lipschitz / min(part.bins) ** agent.holder
        self._bins = np.array(part.bins, dtype=np.int64)
        self._drift, self._number = 0.0, 0
        if self._own_log is not None and self._taken:
            self._take(self._own_log, 0, self._taken, min(self._level, BIAS))
            self._before[:] = self._counts

    def _take(self, log: TransitionLog, first: int, last: int, level: int) -> float:
        return float(
            take(
                log.origin, log.target, log.action, first, last, self._bins, self._edges, self._offset,
                self.agent.n_actions, level, *self._line, *self._pieces, self._coefficients_of, self._v, self._known,
                len(self._starts), self._coefficients, self._counts, self._sum_h,
            )
        )  # fmt: skip

    def _absorb(self) -> None:
        """Sum up what the log holds of the present episode."""
        log = self.agent.log
        assert log is not None
        if self._own_log is not None:
            self._drift += self._take(log, self._taken, log.n, self._level)
            self._taken = log.n
        else:
            self._drift += self._take(log, 0, log.n, self._level)
            log.n = 0

    def _cell(self) -> int:
        """The cell of the point where the agent is, on the cells of the last episode."""
        cell, x = 0, self.life.point
        for i, (n, at) in enumerate(zip(self.partition.bins, self._offset, strict=True)):
            inner = self._edges[at + 1 : at + n]
            cell = cell * n + int(np.searchsorted(inner, x[i], "left"))
        return cell

    # ------------------------------------------------------------------ episodes

    def see(self, view: EpisodeView) -> None:
        """One episode begins: the last one is settled, the new one examined."""
        agent, inner, plan, s = self.agent, self.agent.core, view.plan, view.statistics
        k = len(self._starts)
        self._absorb()
        if k:
            self._settle(k - 1)
        if agent.partition is not self.partition:
            if k:
                self._sums[k - 1, TIGHT] = 1.0  # ended by the new cells
            self._cut()
        if k == len(self._seen):
            for name in ("_seen", "_where", "_places", "_sums"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        wrong = int(np.abs(self._counts - s.visits).sum())
        low, high = plan.gain_bounds
        v, pairs, c = plan.values, self.partition.n_cells * inner.n_actions, inner.span
        rows = (s.begin, s.length, s.next_state, s.count, s.visits)
        possible = inner.allowed.reshape(-1)
        reaching(*rows, 0, self._reach)
        examine(
            *rows, s.reward_sum, possible, inner.n_actions, 0, plan.details["rewards"],
            plan.details["bonus"].reshape(-1), plan.details["drift"], v, plan.actions,
            self._none if plan.probabilities is None else plan.probabilities, self._zeros, *self._empty, self._flat,
            0.0, math.log(2.0 * pairs * view.step / inner.delta), math.log(3.0 * pairs * view.step / inner.delta), c,
            inner.reward_range, inner.bonus_scale, int(inner.bonus == "appendix"), self._added, self.partition.n_cells,
            (low + high) / 2.0 - inner.reward_min, self._exact, self._reach, self._b, self._d, self._pv, self._qv,
            self._least, self._common, self._w, self._greedy, self._seen[k],
        )  # fmt: skip
        self._v[:] = v
        t = self._tables
        if t is not None:
            hold(
                *rows, s.reward_sum, possible, inner.n_actions, self._b, self._d, self._qv, v, c, inner.reward_min,
                self._sum_h, t.anchor, t.inside, t.rewards, t.expected, *t.laws, self._q, self._seen[k], self._where[k],
            )  # fmt: skip
            self._places[k] = t.places[self._where[k]]
        span = float(v.max() - v.min())
        self._number += 1
        value = float(v[self._cell()])
        self._starts.append(
            _Start(view.step, low, high, span, value, self.life.total, pairs, self._number, wrong)
        )  # fmt: skip

    def _settle(self, k: int) -> None:
        settle(
            self._counts, self._before, self._b, self._d, self._zeros, self._flat, self._zeros, self.agent.n_actions,
            self._sums[k],
        )  # fmt: skip
        self._sums[k, DRIFT], self._drift = self._drift, 0.0
        self._ends.append(float(self._v[self._cell()]))

    # ------------------------------------------------------------------ findings

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and numbers to show; the agent has its own log again."""
        agent, truth = self.agent, self.truth
        if len(self._ends) < len(self._starts):
            self._absorb()
            self._settle(len(self._starts) - 1)
        agent.log = self._own_log
        n = len(self._starts)
        seen, step = self._seen[:n], np.array([s.step for s in self._starts], dtype=np.float64)
        starts = np.array([(s.step, s.low, s.high, s.span) for s in self._starts])
        A, r_max = agent.n_actions, agent.reward_range

        def event(found: int, allowed: int, pair: int) -> Finding:
            at = seen[:, pair]
            return compared(seen[:, found], seen[:, allowed], step, states=at // A, actions=at % A)

        found = {
            **of_plans(agent, seen, starts),
            "bonus-bias": event(A_FOUND, A_ALLOWED, A_PAIR),
            "bonus-values": event(V_FOUND, V_ALLOWED, V_PAIR),
            "bonus-all-values": event(ALL_FOUND, ALL_ALLOWED, ALL_PAIR),
            "optimism": optimism(truth.gain_low - agent.reward_min, seen, step, r_max),
            "cells": self._of_cells(step),
        }
        more, shown = self._of_sums(step)
        found |= more
        for name, reason in self._reasons().items():
            found[name] = not_applicable(reason)
        if truth.solution is not None:
            shown["points"] = {"per_cell": POINTS, "note": SAMPLED, **self._nearest(found)}
            shown["tightness"] = {
                "step": step.astype(np.int64).tolist(), "mean": seen[:, GAP_MEAN].tolist(),
                "largest": seen[:, GAP_MAX].tolist(),
            }  # fmt: skip
        return {name: found[name] for name in self.names}, shown

    def _nearest(self, found: dict[str, Finding]) -> dict[str, float]:
        """For each event the point, in the agent's coordinates, where it was worst."""
        origin, length = self.truth.to_unit(self.partition)
        places = {}
        for i, name in enumerate(("bonus-bias", "bonus-values", "bonus-all-values")):
            worst = found[name].worst
            if worst is not None:
                places[name] = origin + length * float(self._places[worst.episode - 1, i])
        return places

    def _reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent, truth, env = self.agent, self.truth, self.truth.environment
        reasons: dict[str, str] = {}

        def say(reason: str, *names: str) -> None:
            for name in names:
                reasons.setdefault(name, reason)

        optimal = ("optimism", "decomposition", "regret-bound")
        of_the_lemma = ("bonus-bias", "bonus-values", "bonus-all-values", *optimal)
        least = truth.lipschitz_for(self.partition, agent.reward_range)
        if truth.solution is None:
            say(
                f"{env.name}: {env.no_guarantee or 'the law of its steps is unknown'}", *of_the_lemma, "term-martingale"
            )
        elif least is None or env.holder is None:
            say(f"{env.name}: {env.no_guarantee}", *of_the_lemma)
        elif agent.lipschitz is None or agent.holder is None:
            say(agent.smoothness.reason_void, *of_the_lemma)
        elif agent.lipschitz < least * (1.0 - 1e-12) or agent.holder > env.holder:
            say(
                f"the agent was told L = {agent.lipschitz:.6g}, α = {agent.holder:g}, the environment has "
                f"{least:.6g} and {env.holder:g}: the theorem assumes an L at least, and an α at most, the true one",
                *of_the_lemma,
            )
        if self.partition.outside == "clip":
            say("outside is 'clip': the end cells hold states farther apart than their sides", *of_the_lemma)
        if truth.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            say(
                f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}: the theorem does not speak "
                "of it",
                "bonus-bias", *optimal,
            )  # fmt: skip
        if not agent.allowed.all():
            say("the agent may not take every action in every cell, and g* is that of all", *optimal)
        if agent.core.mixture != "copy":
            say("the policy draws its actions: the inequality holds in expectation over them", "decomposition")
            if agent.core.bonus != "appendix":
                say("with drawn actions the bound is for the appendix's bonus", "regret-bound")
        if not self._law_known:
            say(
                f"p(J|x,a) has no polynomials in x that are right between their points (to {self._law_error:.1e})",
                "term-martingale", "decomposition",
            )  # fmt: skip
        if agent.doubling:
            fixed = ("term-bonus", "term-deviation", "term-precision", "regret-bound")
            say("the cells change in life, the explicit bound is that of fixed ones", *fixed)
        if agent.bonus_scale > 1.0:
            say(f"bonus_scale is {agent.bonus_scale:g}: b is larger than the theorem's", "term-bonus")
        return reasons

    def _of_cells(self, step: Floats) -> Finding:
        """Points at and beside every edge, and in every episode all visits so far, in the right cells."""
        wrong, cells, when = [], [], []
        for began, told, right in self._indexed:
            wrong.append(np.abs(told - right))
            cells.append(right)
            when.append(np.full(right.size, began))
        wrong.append(np.array([s.cells_wrong for s in self._starts]))
        cells.append(np.zeros(step.size, dtype=np.int64))
        when.append(step.astype(np.int64))
        at = np.concatenate(when)
        episodes = np.maximum(np.searchsorted(step, at, "right"), 1)
        return compared(np.concatenate(wrong), 0.0, at, states=np.concatenate(cells), episodes=episodes)

    def _of_sums(self, step: Floats) -> tuple[dict[str, Finding], dict[str, Any]]:
        """What episodes add up to: the rule that ends them, their number, and the terms of the regret.

        Regret is held against the proven lower end of g*: a violation is one for every g* that is possible.
        """
        agent, life, truth = self.agent, self.life, self.truth
        n = len(self._starts)
        sums = self._sums[:n]
        c, r_max = agent.span, agent.reward_range
        after = np.cumsum(sums[:, STEPS])  # T at the end of each episode
        earned = np.append([s.earned for s in self._starts[1:]], life.total)
        telescoping = np.array(self._ends) - [s.value for s in self._starts]
        totals = {
            "bonus": np.cumsum(sums[:, SUM_B]), "deviation": np.cumsum(sums[:, SUM_D]),
            "precision": np.cumsum(sums[:, STEPS] * r_max / np.sqrt(step)),
            "martingale": np.cumsum(sums[:, DRIFT] - telescoping),  # rewards bring no luck: r_t = r(x_t,a_t)
            "telescoping": np.cumsum(telescoping),
        }  # fmt: skip
        numbers = np.arange(1, n + 1)
        T = np.maximum(after, 1.0)
        bound, right = self._terms(T), np.sum(list(totals.values()), axis=0)
        unsure = c * self._law_error * T if self._law_known else 0.0 * T
        allowed = np.array([episodes_at(T[i : i + 1], s.pairs)[0] for i, s in enumerate(self._starts)])
        found = {
            "episode-rule": episode_rule(step, sums[:, OVER], sums[:, OVER_PAIR], sums[:, TIGHT], agent.n_actions),
            "episode-count": compared([s.number for s in self._starts], allowed, step),
            "term-martingale": compared(totals["martingale"], bound["martingale"], step, rounding=unsure),
            "term-telescoping": compared(totals["telescoping"], c * numbers, step, rounding=1e-9 * (c + r_max)),
            "decomposition": compared(
                after * truth.gain_low - earned, right, step, rounding=unsure + 1e-9 * (np.abs(right) + r_max)
            ),
            "term-precision": compared(totals["precision"], bound["precision"], step),
        }
        for name in ("bonus", "deviation"):  # each has half of the cells' term
            found[f"term-{name}"] = compared(totals[name], bound[name] + bound["cells"] / 2.0, step)
        run = life.run()
        terms = self._terms(run.steps.astype(np.float64))
        explicit = np.sum(list(terms.values()), axis=0)
        found["regret-bound"] = compared(
            run.steps * truth.gain_low - run.rewards, explicit, run.steps,
            episodes=np.searchsorted(step, run.steps, "right"),
        )  # fmt: skip
        if truth.solution is None or not self._law_known:
            del totals["martingale"]
        shown: dict[str, Any] = {
            "sums": {
                "steps": after.astype(np.int64).tolist(),
                "regret": None if truth.gain is None else (after * truth.gain - earned).tolist(),
                **{name: values.tolist() for name, values in totals.items()},
            },
        }  # fmt: skip
        if truth.solution is not None and not agent.doubling:
            shown["bound"] = explicit.tolist()
            shown["terms"] = {name: float(values[-1]) for name, values in terms.items()}
        return found, shown

    def _terms(self, T: Floats) -> dict[str, Floats]:
        """The terms of the bound on the present cells."""
        agent = self.agent
        return terms_at(
            T, agent.n_states, agent.n_actions, span=agent.span, spread=agent.n_states, reward_max=agent.reward_range,
            delta=agent.delta, model_error=self._added, mixture=agent.core.mixture,
        )  # fmt: skip


def checked_cells(partition: Partition, edges: list[Floats]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What `index` says of every edge, of the doubles beside it and of the ends of the box, and the right cells.

    On [0, 1] an edge is the double nearest to k/n, and belongs to the cell at its left. On other boxes edges are the
    result of several operations: the partition's own must be within 4 roundings of the exact fractions, and stand for
    them. Along one axis at a time, at the centre of the others.
    """
    told, right = [], []
    home = partition.n_cells // 2
    middle = partition.centers[home]
    for i, (n, low, high) in enumerate(zip(partition.bins, partition.low, partition.high, strict=True)):
        own = edges[i]
        near = np.abs(own - exact_edges(partition, i)) <= 4 * 2.0**-53 * max(abs(low), abs(high))
        told.append((~near).astype(np.int64))
        right.append(np.zeros(n + 1, dtype=np.int64))
        x = np.concatenate([own, np.nextafter(own, -np.inf), np.nextafter(own, np.inf)])
        x = np.append(x[(x >= low) & (x <= high)], [low, high])
        points = np.repeat(middle[None, :], x.size, axis=0)
        points[:, i] = x
        stride = math.prod(partition.bins[i + 1 :])
        others = home - (home // stride) % n * stride
        wanted = others + np.searchsorted(own[1:-1], x, "left") * stride
        told.append(np.asarray(partition.index_many(points), dtype=np.int64))
        right.append(wanted)
        few = slice(0, ONE_BY_ONE)
        told.append(np.array([partition.index(point) for point in points[few]], dtype=np.int64))
        right.append(wanted[few])
    return np.concatenate(told), np.concatenate(right)
