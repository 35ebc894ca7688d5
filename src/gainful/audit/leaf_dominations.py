"""Rewards and bias at points of the leaves of adaptive cells: what the proposition of docs/adaptive_cells.md is about.

The law of the next states is counted on the finest cells, and added up over the leaves that an agent plans with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.agents.adaptive_kl_scal_plus import AdaptiveKLSCALPlus
from gainful.audit.c_kl_scal_plus import LEVELS, MOST_LEVELS, NextStates
from gainful.audit.c_scal_plus import DrainedLog
from gainful.audit.cells import CellsTruth
from gainful.audit.findings import Floats
from gainful.audit.kl_rows import Dominations, Functions, dominations
from gainful.audit.points import POINTS
from gainful.audit.rows import CountedRows, TrueRows


class Leaves(NamedTuple):
    """The leaves of all actions when a plan is made."""

    leaf: NDArray[np.int64]
    """(S*A,) the leaf of every finest pair, from 0."""
    first: NDArray[np.int64]
    """(n,) a finest pair of each leaf."""
    bias: Floats
    """(n,) L·w^α of each leaf."""


class LeafDominations:
    """The true rewards and E[h(X')] at points of every cell, and the law of h(X') that was seen.

    Parameters
    ----------
    agent : AdaptiveKLSCALPlus
        A new agent; it keeps its raw transitions during the run, in a log that is emptied as it goes.
    truth : CellsTruth
        The environment, solved.
    """

    def __init__(self, agent: AdaptiveKLSCALPlus, truth: CellsTruth) -> None:
        part, tables = agent.partition, truth.on(agent.partition)
        assert agent.span is not None
        self._half_span, self._agent = agent.span / 2.0, agent
        self._next = NextStates(agent, truth, tables, 0.0)
        agent.log = DrainedLog(agent.dim, self._absorb)
        shape = (part.n_cells, POINTS, agent.n_actions)
        inside = tables.inside.reshape(shape[:2])[:, :, None]
        self._rewards = np.where(inside, tables.rewards.reshape(shape), -np.inf).max(axis=1).reshape(-1)
        self._rewards -= agent.reward_min

    @staticmethod
    def possible(agent: AdaptiveKLSCALPlus, truth: CellsTruth) -> bool:
        """Whether the environment is solved and not too large, and the agent was told L, α and c."""
        told = agent.span is not None and agent.lipschitz is not None and agent.holder is not None
        return told and truth.solution is not None and agent.n_states * agent.n_actions * LEVELS <= MOST_LEVELS

    def _absorb(self) -> None:
        self._next.absorb(self._agent.log)

    def miscounted(self, visits: NDArray[np.int64]) -> int:
        """How many transitions were counted in another finest cell than the agent's."""
        self._absorb()
        return int(np.abs(self._next.counts.sum(axis=1) - visits).sum())

    def rewards(self, leaves: Leaves) -> Floats:
        """(n,) the largest reward at the points of each leaf, from 0."""
        return _largest(self._rewards, leaves)

    def divergences(self, leaves: Leaves, radius: Floats) -> Floats:
        """(n,) kinf(F, h, sup E[h(X')|x,a] - (c/2)·L·w^α) of every leaf, at most ρ if its ball dominates the bias."""
        n = leaves.first.size
        counts = np.zeros((n, LEVELS), dtype=np.int64)
        np.add.at(counts, leaves.leaf, self._next.counts)
        level = _largest(self._next.most_expected, leaves) - self._half_span * leaves.bias
        asked = np.isfinite(level)
        questions = Functions(
            np.concatenate([[0], np.cumsum(asked)]).astype(np.int64),
            np.zeros(int(asked.sum()), dtype=np.int64),
            np.ascontiguousarray(level[asked]),
            self._next.asked.values,
            self._next.asked.top,
        )
        index = np.tile(np.arange(LEVELS, dtype=np.uint32), n)
        begin, length = np.arange(n, dtype=np.int64) * LEVELS, np.full(n, LEVELS, dtype=np.int64)
        rows = CountedRows(begin, length, index, counts.reshape(-1), counts.sum(axis=1))
        nothing = TrueRows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0))
        found, seen = np.zeros(n), np.zeros(n, dtype=np.int64)
        dominations(tuple(rows), tuple(nothing), radius, tuple(questions), seen, True, tuple(Dominations(found)))
        return found


def _largest(values: Floats, leaves: Leaves) -> Floats:
    """(n,) the largest value of the finest pairs of each leaf."""
    found = np.full(leaves.first.size, -np.inf)
    np.maximum.at(found, leaves.leaf, values)
    return found
