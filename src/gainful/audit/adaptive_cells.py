"""The auditor of KL-SCAL+ on adaptive cells: its leaves, sets, plans and episodes, from the counts of the finest cells.

The leaves are found again from the rule that splits them: finest interval i of n on an axis lies in cell ⌊i·2^j/n⌋ of
depth j.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.adaptive_kl_scal_plus import AdaptiveKLSCALPlus
from gainful.agents.balanced_grids import BalancedGrids
from gainful.agents.episodic import EpisodeView
from gainful.audit.c_kl_scal_plus import MOST_LEVELS
from gainful.audit.c_scal_plus import SAMPLED, checked_cells
from gainful.audit.cells import CellsTruth, right_closed_edges
from gainful.audit.episodes import execution_limits
from gainful.audit.findings import Finding, Floats, compared, not_applicable, without_theorem
from gainful.audit.kl_plans import STATEMENTS_ABOUT_KL_PLANS, KLPlanAuditor
from gainful.audit.kl_rows import NO_SQUARES, SetsInUse, optimistic_values, set_errors
from gainful.audit.leaf_dominations import LeafDominations, Leaves
from gainful.audit.points import POINTS
from gainful.audit.rows import CountedRows
from gainful.theory.kl import klup


class FoundTrees:
    """The leaves of every action, found again from the visits of the finest cells.

    Parameters
    ----------
    agent : AdaptiveKLSCALPlus or BalancedGrids
        The agent, of which only settings are read.
    """

    def __init__(self, agent: Any) -> None:
        told, bins = agent.settings(), agent.partition.bins
        self._n_actions, self._delta, self._dim = agent.n_actions, agent.delta, len(bins)
        self._rule, self._scale = told.get("rule"), told.get("split_scale")
        L, alpha = told.get("lipschitz") or 1.0, told.get("holder") or 1.0
        places = np.indices(bins).reshape(len(bins), -1)
        self.finest = math.ceil(math.log2(max(bins)))
        labels, widths = [], []
        for j in range(self.finest + 1):
            per_axis = [place * 2**j // n for place, n in zip(places, bins, strict=True)]
            wide = [np.bincount(np.arange(n) * 2**j // n).max() / n for n in bins]
            labels.append(np.ravel_multi_index(tuple(per_axis), (2**j,) * len(bins)))
            widths.append(max(wide))
        self._labels = np.array(labels, dtype=np.int64)
        self._widths = np.array(widths)
        self.biases: Floats = L * self._widths**alpha
        self._sizes = [len(np.unique(row)) for row in self._labels]
        self.depths: NDArray[np.int64] = np.full((places.shape[1], agent.n_actions), told.get("start_depth", 0))

    def size(self, depth: int) -> int:
        """The number of cells of a depth."""
        return self._sizes[depth]

    def log_union(self, depth: int) -> float:
        """ln(2·K_j·A·(j+1)(j+2)/δ)."""
        return math.log(2 * self._sizes[depth] * self._n_actions * (depth + 1) * (depth + 2) / self._delta)

    def leaves(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of the leaf of every finest pair, counted from 0, and the first pair of each leaf."""
        S, A = self.depths.shape
        label = self._labels[self.depths, np.arange(S)[:, None]]
        key = ((np.arange(A) * (self.finest + 1) + self.depths) << (self.finest * self._dim)) + label
        _, first, leaf = np.unique(key.reshape(-1), return_index=True, return_inverse=True)
        return leaf.reshape(-1), first

    def split(self, visits: NDArray[np.int64]) -> None:
        """Split all leaves that the rule splits, after these visits of the finest pairs."""
        while True:
            leaf, first = self.leaves()
            n, depth = np.bincount(leaf, weights=visits), self.depths.reshape(-1)[first]
            due = np.array([self._is_due(int(j), float(m)) for j, m in zip(depth, n, strict=True)])
            if not due.any():
                return
            self.depths += due[leaf].reshape(self.depths.shape)

    def _is_due(self, depth: int, n: float) -> bool:
        if n == 0 or depth == self.finest:
            return False
        if self._rule == "zorl":
            return bool(n / self._scale >= self._widths[depth] ** (-self._dim - 2))
        level = self.log_union(depth) + 0.5 * math.log(n) + math.log(2)
        return bool(self._scale * level / n <= self.biases[depth] ** 2)


class AdaptiveCellsAuditor(KLPlanAuditor):
    """Checks every episode of one agent on adaptive cells in one continuous environment.

    Parameters
    ----------
    agent : AdaptiveKLSCALPlus or BalancedGrids
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = (
        *(name for name in STATEMENTS_ABOUT_KL_PLANS if name != "episode-count"),
        "reward-domination",
        "bias-domination",
        "leaves",
        "cells",
        "regret-bound",
    )

    def __init__(
        self,
        agent: AdaptiveKLSCALPlus | BalancedGrids,
        truth: CellsTruth,
        simulation: Any,  # noqa: ARG002
    ) -> None:
        self.agent, self.truth = agent, truth
        core: Any = agent.core
        super().__init__(core, 0.0, truth.gain_low)
        self._trees = FoundTrees(agent)
        c = 0.0 if agent.span is None else agent.span
        self._added = agent.settings().get("bias_scale", 0.0) * (agent.reward_range + c / 2.0) * self._trees.biases
        part = agent.partition
        self._cells = checked_cells(part, [right_closed_edges(part, i) for i in range(part.dim)])
        self._leaf: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._first = self._leaf
        self._points: LeafDominations | None = None
        self._miscounted = 0
        if isinstance(agent, AdaptiveKLSCALPlus) and LeafDominations.possible(agent, truth):
            self._points = LeafDominations(agent, truth)

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        visits, plan = view.statistics.visits, view.plan
        if self._steps:
            self._close(visits)
        self._steps.append(view.step)
        self.choose_cells(view)
        self._leaf, self._first = self._trees.leaves()
        self._base = self.core.reward_min + float(self._added[int(self._trees.depths.max())])
        sets = SetsInUse(plan.details["rewards"], plan.details["radius"], self._possible)
        rows = self._leaf_rows(view.statistics)
        self._check_sets(rows.visits, view.statistics.reward_sum, sets)
        if self._points is not None:
            self._compare_with_points(self._points, visits, sets)
        optimistic_values(tuple(rows), tuple(sets), plan.values, plan.actions, tuple(self._values))
        self._examine_plan(plan, view.step)
        self._limits.append(self._factors.begin(view, self._first.size))
        self._before = visits.copy()

    def choose_cells(self, view: EpisodeView) -> None:
        """The cells that should be planned on, compared with those that are."""
        self._trees.split(view.statistics.visits)
        wrong = int(np.count_nonzero(self._trees.depths != view.plan.details["depths"]))
        self.keep("leaves", float(wrong), 0.0, 0.0)

    def _leaf_rows(self, statistics: Any) -> CountedRows:
        """The rows of the leaves over the finest cells; every finest pair has the row of its leaf."""
        S, n = self.core.n_states, self._first.size
        length, begin = statistics.length, statistics.begin
        where = np.repeat(begin - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
        entry = np.repeat(self._leaf, length) * S + statistics.next_state[where]
        key, place = np.unique(entry, return_inverse=True)
        count = np.bincount(place, weights=statistics.count[where]).astype(np.int64)
        lengths = np.bincount(key // S, minlength=n).astype(np.int64)
        begins = np.cumsum(lengths) - lengths
        visits = np.bincount(self._leaf, weights=statistics.visits, minlength=n).astype(np.int64)
        leaf = self._leaf
        return CountedRows(begins[leaf], lengths[leaf], (key % S).astype(np.uint32), count, visits[leaf])

    def _check_sets(self, visits: NDArray[np.int64], reward_sum: Floats, sets: SetsInUse) -> None:
        """Radius and r̃ of every leaf against the equations of its depth."""
        core, depths = self.core, self._trees.depths.reshape(-1)
        r_max, c = core.reward_range, np.inf if core.span is None else core.span
        sums = np.bincount(self._leaf, weights=reward_sum)[self._leaf]
        finest, wrong = int(depths.max()), np.zeros(visits.size)
        for j in np.unique(depths).tolist():
            extra = float(self._added[j] - self._added[finest])
            log = self._trees.log_union(j)
            here = depths == j
            n = np.maximum(visits, 1)
            upper = r_max * klup(np.clip(sums / (n * r_max), 0.0, 1.0), core.width_scale * _level(log, n) / n) + extra
            # a pair whose reward is above r_max + c counts as never visited
            unknown = here & (visits > 0) & np.isinf(sets.radius) & (upper > (r_max + c) * (1.0 - 1e-9))
            plain = SetsInUse(sets.rewards - np.where(visits > 0, extra, 0.0), sets.radius, here & ~unknown)
            set_errors((visits, sums, NO_SQUARES), (log, r_max, core.width_scale), tuple(plain), self._errors)
            self._errors[unknown] = np.abs(sets.rewards[unknown] / r_max - 1.0)
            wrong = np.maximum(wrong, self._errors)  # 0 at other depths
        self.keep_worst("set-formula", wrong, self._nothing)

    def _compare_with_points(self, points: LeafDominations, visits: NDArray[np.int64], sets: SetsInUse) -> None:
        """r̃ + r_max·L·w^α ≥ r and KLMAX(F, h*, ρ) + (c/2)·L·w^α ≥ p·h* at points of every leaf."""
        r_max, depths, first = self.core.reward_range, self._trees.depths.reshape(-1), self._first
        self._miscounted += points.miscounted(visits)
        leaves = Leaves(self._leaf, first, self._trees.biases[depths[first]])
        extra = self._added[depths[first]] - self._added[int(depths.max())]
        radius = np.ascontiguousarray(sets.radius[first])
        optimistic = np.where(np.isinf(radius), r_max, sets.rewards[first] - extra)
        self.keep_worst("reward-domination", points.rewards(leaves), optimistic + r_max * leaves.bias, first)
        self.keep_worst("bias-domination", points.divergences(leaves, radius), radius, first)

    def _close(self, visits: NDArray[np.int64]) -> None:
        """Record what the finished episode executed, leaf by leaf."""
        before = np.bincount(self._leaf, weights=self._before)
        nu = np.bincount(self._leaf, weights=visits - self._before)
        limit = execution_limits(before, self._limits[-1])
        at = int(np.argmax(nu / limit))
        self._kept["executed"].append((nu[at] / limit[at], self._first[at], bool(np.any(nu == limit)), nu.sum()))

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; nothing more to show."""
        found = self.plan_findings()
        told, right = self._cells
        found["cells"] = compared([int(np.count_nonzero(told != right)) + self._miscounted], 0.0, [1])
        found["regret-bound"] = without_theorem(self.agent.guarantee.reason_void)
        for name, reason in self.reasons().items():
            found[name] = not_applicable(reason)
        shown = {} if self._points is None else {"points": {"per_cell": POINTS, "note": SAMPLED}}
        return {name: found[name] for name in self.names}, shown

    def reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        agent: Any = self.agent
        truth, env = self.truth, self.truth.environment
        reasons = {} if agent.span is not None else {"span": "no span was given"}
        least = truth.lipschitz_for(agent.partition, agent.reward_range)
        why = ""
        if truth.solution is None:
            why = f"{env.name}: {env.no_guarantee or 'the law of its steps is unknown'}"
        elif least is None or env.holder is None:
            why = f"{env.name}: {env.no_guarantee}"
        elif agent.span is None or agent.lipschitz is None or agent.holder is None:
            why = agent.not_optimistic
        elif agent.lipschitz < least * (1.0 - 1e-12) or agent.holder > env.holder:
            why = (
                f"the agent was given L = {agent.lipschitz:.6g}, α = {agent.holder:g}, the environment has "
                f"{least:.6g} and {env.holder:g}: optimism assumes an L at least, and an α at most, the true one"
            )
        elif agent.partition.outside == "clip":
            why = "outside is 'clip': the outermost cells hold states farther apart than their width"
        elif truth.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            why = f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}"
        if why:
            return reasons | dict.fromkeys(("optimism", "reward-domination", "bias-domination"), why)
        if self._points is None:
            large = f"more than {MOST_LEVELS:,} numbers would be kept"
            return reasons | dict.fromkeys(("reward-domination", "bias-domination"), large)
        return reasons


def _level(log: float, visits: NDArray[np.int64]) -> Floats:
    """ι_n = ln(1/δ') + ½ ln n + ln 2."""
    return np.asarray(log + 0.5 * np.log(visits) + math.log(2))
