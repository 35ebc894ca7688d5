"""KL-SCAL+ on adaptive cells: one dyadic tree per action, split where the data are dense enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.dyadic_trees import DyadicTrees, LeafCounts
from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.kl_scal_plus import KL_UNINFORMATIVE, Episodes, KLSCALPlus
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.planning_agent import episode_multiplier
from gainful.agents.smoothness import Smoothness, checked_partition
from gainful.agents.statistics import Statistics
from gainful.arguments import choice, positive_scale, real, whole
from gainful.errors import InvalidArgumentError
from gainful.optimism.adaptive_cells import leaf_sets, log_union_at, narrow_enough, visited_enough
from gainful.optimism.kl_scal_plus import cell_error, deviation_level
from gainful.partition import Partition
from gainful.planning.kl_on_counts import KLPlanner

SplitRule: TypeAlias = Literal["variance", "zorl"]


class KLSCALPlusOnTrees(KLSCALPlus):
    """KL-SCAL+ whose statistics are of the finest cells, and whose plans are on the leaves of one tree per action.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of finest cells and of actions.
    bins : sequence of int
        The finest intervals of each axis.
    lipschitz, holder : float
        L and α.
    rule, split_scale, bias_scale, start_depth
        As for `AdaptiveKLSCALPlus`.
    **options
        The other arguments of `KLSCALPlus`.
    """

    hint_without_span = "give span, if some states may be unreachable"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        bins: Sequence[int],
        lipschitz: float = 1.0,
        holder: float = 1.0,
        rule: str = "variance",
        split_scale: float = 1.0,
        bias_scale: float = 1.0,
        start_depth: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(n_states, n_actions, **options)
        self._constants: dict[str, Any] = {"bins": list(bins), "lipschitz": lipschitz, "holder": holder}
        self.trees = trees = DyadicTrees(tuple(bins), self.n_actions, start_depth)
        self.rule, self.split_scale, self.bias_scale = rule, split_scale, bias_scale
        L, alpha = lipschitz, holder
        c, r_max = self.span or 0.0, self.reward_range
        self._biases = L * trees.widths**alpha  # L·w_j^α
        self._added = np.array([bias_scale * cell_error(c, r_max, L, alpha, w) for w in trees.widths.tolist()])  # b_j
        levels = [log_union_at(j, size, self.n_actions, self.delta) for j, size in enumerate(trees.sizes)]
        self._log_unions = np.array(levels)
        self._begin_on_new_cells()

    # ------------------------------------------------------------------ the cells

    def _begin_on_new_cells(self) -> None:
        """Counts and a planner for the present refinement, with nothing in them."""
        trees = self.trees
        S, A = trees.first_cells.size, self.n_actions
        cut = np.inf if self.span is None else self.span / self.reward_range
        self._planner = KLPlanner(S, A, cut, np.ones((S, A), dtype=bool))
        self._counts: LeafCounts = trees.counts()
        self._possible = np.ones(S * A, dtype=bool)
        self._planned_visits = np.full(S * A, -1, dtype=np.int64)
        depths = trees.depths[trees.first_cells].reshape(-1)
        finest = float(self._added[int(depths.max())])
        most = np.inf if self.span is None else 1.0 + cut
        self._terms = (self._log_unions[depths], (self._added[depths] - finest) / self.reward_range, most)
        self.model_error = finest

    def _split(self, visits: NDArray[np.int64], t: int) -> None:
        """Split the leaves that are due, and their halves; values and actions of the last plan stay where they were."""
        old, number = self._planner.state, self.trees.number
        n_splits = len(self.trees.splits)
        due = self._due(visits)
        while due.size:
            self.trees.split(due, t - 1)
            due = self._due(visits)
        if len(self.trees.splits) > n_splits:
            cells = self.trees.first_cells
            self._begin_on_new_cells()
            self._planner.state.values[:] = old.values[number[cells]]
            self._planner.state.actions[:] = old.actions[number[cells]]

    def _due(self, visits: NDArray[np.int64]) -> NDArray[np.int64]:
        """The leaves that the rule splits."""
        trees, n = self.trees, self.trees.summed(visits)
        leaves = trees.leaves
        leaves = leaves[(n[leaves] > 0) & (trees.depths_of(leaves) < trees.finest)]
        found = [leaf for leaf in leaves.tolist() if self._is_due(int(trees.depths_of(leaf)), n[leaf])]
        return np.array(found, dtype=np.int64)

    def _is_due(self, depth: int, visits: float) -> bool:
        if self.rule == "zorl":
            return visited_enough(visits / self.split_scale, float(self.trees.widths[depth]), self.trees.dim)
        level = deviation_level(float(self._log_unions[depth]), int(visits))
        return narrow_enough(self.split_scale * level, visits, float(self._biases[depth]))

    # ------------------------------------------------------------------ the algorithm

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Split the cells that are due, and plan on the common refinement of all trees, to precision r_max/√t."""
        self._split(statistics.visits, t)
        trees, counts = self.trees, self._counts
        counts.take_sums(trees.summed(statistics.visits), trees.summed(statistics.reward_sum))
        counts.take_rows(trees.merged(statistics.begin, statistics.length, statistics.next_state, statistics.count))
        self._renew_sets(counts.visits, counts.reward_sum)
        found = self._planned(counts, t)
        r_max = self.reward_range
        return EpisodePlan(
            actions=found.actions[trees.number],
            gain_bounds=self._gain_bounds(found),
            values=r_max * found.values[trees.number],
            sweeps=found.sweeps,
            multiplier=episode_multiplier(self.episode_rule, t, trees.n_leaves, self._most_span),
            span=r_max * found.span,
            groups=trees.leaf,
            details=self._details(),
        )

    def _renew_sets(
        self,
        visits: NDArray[np.int64],
        reward_sum: NDArray[np.float64],
        reward_squares: NDArray[np.float64] | None = None,  # noqa: ARG002
    ) -> None:
        """ρ and r̃ of the pairs of the refinement whose leaves were visited since the last plan."""
        sums = (visits, reward_sum, self._possible, self._planned_visits)
        constants = (0.0, self.reward_range, self.width_scale)  # the levels are those of the depths
        leaf_sets(sums, self._terms, constants, tuple(self._planner.pairs))

    def _details(self) -> dict[str, Any]:
        """For `on_episode`: r̃ and ρ of the finest pairs, and the depths of their leaves."""
        if self.on_episode is None:
            return {}
        pairs, A = self._planner.pairs, self.n_actions
        wide = {"rewards": self.reward_range * pairs.rewards, "radius": pairs.radius}
        shown = {name: table.reshape(-1, A)[self.trees.number].reshape(-1) for name, table in wide.items()}
        return {**shown, "depths": self.trees.depths.copy(), "model_error": self.model_error}

    @property
    def vacuous(self) -> bool:
        """Whether every ball of the last plan was so large that Pinsker's inequality bounds nothing."""
        return bool(np.all(self._planner.pairs.radius >= KL_UNINFORMATIVE))

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        mine = {"rule": self.rule, "split_scale": self.split_scale, "bias_scale": self.bias_scale}
        return {**super().settings(), **self._constants, **mine, "start_depth": self.trees.start}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The splits so far, what the next plan starts from, and the largest span."""
        return {**super().own_arrays(), "splits": self.trees.splits}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        self.trees.replay(arrays["splits"])
        if self.trees.splits.size and self.trees.splits[-1, 0] > self.t:
            raise ValueError("array 'splits' holds a split after the last step")
        self._begin_on_new_cells()
        visits, rewards = self.statistics.visits, self.statistics.reward_sum
        self._counts.take_sums(self.trees.summed(visits), self.trees.summed(rewards))
        self._restore_planner(arrays, self._counts.visits, self._counts.reward_sum)


class AdaptiveKLSCALPlus(PartitionedAgent):
    r"""KL-SCAL+ on adaptive cells: every action has a dyadic tree of cells, which is split where the data are dense.

    A leaf I of depth j has the width w = 2^{-j}, n visits of its action, and the level
    ι = ln(2·K_j·A·(j+1)(j+2)/δ) + ½ ln n + ln 2 with K_j = 2^{dj} cells of that depth: a union over all dyadic cells,
    so that choosing them by the data costs nothing. A plan is made on the common refinement of all trees, where the
    pair (x, a) has the statistics of the leaf of a that holds x: r̃ = klup(r̄, ι/n), the ball KL(p̄‖q) ≤ ι/n, and
    b_I = (r_max + c/2)·L·w^α added to its value. Values are iterated as by `KLSCALPlus`, and an episode ends when the
    visits of a leaf have doubled. Before each plan a leaf is split if ι/n ≤ (L·w^α)², its statistical width being no
    more than its bias, until it is as fine as the cells of `partition`.

    With c ≥ sp(h*) and the true L and α every plan is optimistic with probability 1-δ (docs/adaptive_cells.md). No
    bound on the regret is proven for cells that are chosen by the data. Here, other than for `CKLSCALPlus`, L and c
    matter: a wide cell is worth more than a narrow one.

    Parameters
    ----------
    partition : Partition
        The finest cells, best a power of two per axis; otherwise halves are as equal as they can be. Cells narrower
        than T^{-1/(2d+2α)} are more than T steps can use.
    n_actions : int
        The number of actions A.
    span : float, optional
        A bound c on the span of the optimal bias, in the units of the rewards. Without it c/2 is left out of b_I.
    lipschitz, holder : float, optional
        L > 0 and α in (0, 1], as for `CKLSCALPlus`; 1 by default.
    reward_max, reward_min : float
        The range of the rewards.
    delta : float
        The probability with which optimism may fail.
    seed : int
        The seed of the agent's own randomness, which it does not use.
    allowed : array_like, optional
        (cells, A) of True: every cell has every action.
    episodes, width_scale
        As for `KLSCALPlus`.
    rule : {"variance", "zorl"}
        When a leaf is split: "variance" as above, "zorl" if n ≥ w^{-(d+2)}, the rule in the code of ZoRL (Kar & Singh
        2025), which needs no L.
    split_scale : float
        Multiplies ι in the first rule and w^{-(d+2)} in the second: above 1 cells are split later.
    bias_scale : float
        Multiplies b_I. Optimism is proven for 1.
    start_depth : int
        The depth of the first leaves; if it is that of `partition`, the cells are those of `CKLSCALPlus`.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, or some cell does not have every action.

    Examples
    --------
    >>> import gainful as gf
    >>> cells = gf.Partition.uniform(bins=32)
    >>> agent = gf.AdaptiveKLSCALPlus(cells, n_actions=2, span=1.0, lipschitz=2.0)
    >>> for i in range(200):
    ...     x = 0.2 + 0.001 * i
    ...     agent.observe(x, agent.act(x), 0.5, x + 0.001)
    >>> float(agent.leaf_widths(0).max()), float(agent.leaf_widths(0).min())
    (0.5, 0.125)
    """

    core: KLSCALPlusOnTrees

    def __init__(
        self,
        partition: Partition | dict[str, Any],
        n_actions: int,
        *,
        span: float | None = None,
        lipschitz: float | None = None,
        holder: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Episodes = "doubling",
        width_scale: float = 1.0,
        rule: SplitRule = "variance",
        split_scale: float = 1.0,
        bias_scale: float = 1.0,
        start_depth: int = 0,
    ) -> None:
        self.smoothness = Smoothness(lipschitz, holder)
        self.partition = checked_partition(partition)
        check_all_allowed(allowed)
        options: dict[str, Any] = {"reward_max": reward_max, "reward_min": reward_min, "delta": delta, "seed": seed}
        KLSCALPlus(1, n_actions, span=span, episodes=episodes, width_scale=width_scale, **options)  # its errors first
        finest = max((n - 1).bit_length() for n in self.partition.bins)
        self.core = KLSCALPlusOnTrees(
            self.partition.n_cells,
            n_actions,
            bins=self.partition.bins,
            lipschitz=self.lipschitz or 1.0,
            holder=self.holder or 1.0,
            rule=choice("rule", rule, ("variance", "zorl")),
            split_scale=positive_scale("split_scale", split_scale, "the default is 1"),
            bias_scale=real("bias_scale", bias_scale, 0.0),
            start_depth=whole("start_depth", start_depth, 0, finest),
            span=span,
            episodes=episodes,
            width_scale=width_scale,
            **options,
        )

    @property
    def span(self) -> float | None:
        """The bound c on sp(h*); None if there is none."""
        return self.core.span

    @property
    def lipschitz(self) -> float | None:
        """The Hölder constant L; None if it is unknown."""
        return self.smoothness.lipschitz

    @property
    def holder(self) -> float | None:
        """The Hölder exponent α; None if it is unknown."""
        return self.smoothness.holder

    @property
    def depths(self) -> NDArray[np.int8]:
        """(cells, A) the depth of the leaf of every finest cell and action."""
        return self.core.trees.depths.copy()

    @property
    def splits(self) -> NDArray[np.int64]:
        """(m, 3) every split so far: the steps made before it, the lowest finest cell of the leaf, and the action."""
        t, leaf = self.core.trees.splits.T
        return np.stack([t, leaf // self.n_actions, leaf % self.n_actions], axis=1)

    def leaf_widths(self, action: int) -> NDArray[np.float64]:
        """(cells,) the width of the leaf of every finest cell, the box being scaled to [0, 1]^d.

        Parameters
        ----------
        action : int
            The action, from 0.

        Returns
        -------
        ndarray of shape (cells,)
        """
        trees = self.core.trees
        return trees.widths[trees.depths[:, whole("action", action, 0, self.n_actions - 1)]]

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        kept = {**super().settings(), "lipschitz": self.lipschitz, "holder": self.holder}
        del kept["unreachable"], kept["reward_bound"], kept["bins"]
        return kept

    @property
    def guarantee(self) -> Guarantee:
        """That plans are optimistic; no bound on the regret is known."""
        return Guarantee(
            bound="none",
            assumptions=(),
            source="optimism: docs/adaptive_cells.md",
            reason_void=self.not_optimistic
            or "no bound on the regret is proven for cells that the data choose; every plan is optimistic with "
            f"probability {1.0 - self.delta:g} if sp(h*) ≤ {self.span:g} and L = {self.lipschitz:g}, α = "
            f"{self.holder:g} are right",
        )

    @property
    def not_optimistic(self) -> str:
        """Why plans need not be optimistic; empty if they are, by the proposition."""
        core = self.core
        if core.width_scale != 1.0:
            return f"width_scale is {core.width_scale:g}, optimism needs 1"
        if core.bias_scale < 1.0:
            return f"bias_scale is {core.bias_scale:g}, optimism needs 1"
        if self.partition.outside == "clip":
            return "outside is 'clip': the end cells hold states farther apart than their sides"
        if self.span is None:
            return "span not given: nothing is added for the transitions of states in one cell"
        return self.smoothness.reason_void


def check_all_allowed(allowed: ArrayLike | None) -> None:
    """Raise an InvalidArgumentError unless every cell has every action."""
    if allowed is not None and not np.all(allowed):
        raise InvalidArgumentError(
            "allowed",
            allowed,
            "every action in every cell",
            "CKLSCALPlus takes a mask on its cells",
            problem="some cells do not have every action",
        )
