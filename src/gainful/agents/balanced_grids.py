"""KL-SCAL+ on grids of 1, 2, 4, … cells per axis, among which it balances regret: for an unknown smoothness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.adaptive_kl_scal_plus import KLSCALPlusOnTrees, check_all_allowed
from gainful.agents.dyadic_trees import cell_widths
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.kl_scal_plus import Episodes, KLSCALPlus
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.saved_arrays import check_saved
from gainful.agents.smoothness import checked_partition
from gainful.agents.statistics import Statistics
from gainful.agents.turns import Turns
from gainful.arguments import AddedLater, choice, positive_scale
from gainful.partition import Partition

Elimination: TypeAlias = Literal["proven", "plain"]
"""The test by which grids are given up."""


class GridRecord(NamedTuple):
    """What one grid has done so far."""

    bins: int
    """Its cells per axis, at most."""
    steps: int
    average_reward: float
    """Per step, in the user's units; NaN if it has made none."""
    active: bool
    """Whether it is still played."""


class Balance(Turns):
    """Steps, rewards and segments of every grid, which to play next, and which are eliminated.

    Parameters
    ----------
    pairs : list of int
        The number of pairs of a cell and an action of each grid.
    reward_range : float
        r_max.
    delta : float
        δ in w_i.
    scale : float
        κ: grid i claims to lose at most κ·r_max·sqrt(K_i·A·n·ln(1+n)) in n steps.
    elimination : {"plain", "proven"}
        Which w_i: see `BalancedGrids`.
    """

    def __init__(
        self, pairs: list[int], reward_range: float, delta: float, scale: float, elimination: Elimination = "plain"
    ) -> None:
        super().__init__(len(pairs))
        self._pairs, self._r_max, self._scale = np.array(pairs, dtype=np.float64), reward_range, scale
        self._delta, self._elimination = delta, elimination
        self.active: NDArray[np.bool_] = np.ones(len(pairs), dtype=bool)

    def claims(self) -> NDArray[np.float64]:
        """κ·r_max·sqrt(K_i·A·n_i·ln(1+n_i)) of every grid."""
        n = self.steps
        return np.asarray(self._scale * self._r_max * np.sqrt(self._pairs * n * np.log1p(n)))

    def widths(self, grids: NDArray[np.int64], span: float) -> NDArray[np.float64]:
        """w_i of grids that have played; `span` is c."""
        n, i = self.steps[grids].astype(np.float64), grids + 1.0
        if self._elimination == "plain":
            return np.asarray(self._r_max * np.sqrt(n * math.log(self.steps.size / self._delta)))
        level = 0.5 * np.log(n + 1.0) + np.log(i * (i + 1.0)) - math.log(self._delta)
        return np.asarray((self._r_max + span) * np.sqrt(0.5 * (n + 1.0) * level))

    def eliminate(self, span: float) -> None:
        """Give up grids that earn less than another even with their claim added, unless none would be left."""
        played = np.flatnonzero(self.steps > 0)
        if not played.size:
            return
        n = self.steps[played]
        unsure = span * self.segments[played] + self.widths(played, span)
        mean = self.rewards[played] / n
        others = np.max(mean - unsure / n)
        kept = self.active.copy()
        kept[played] &= mean + (self.claims()[played] + unsure) / n >= others
        if kept.any():
            self.active[:] = kept

    def choose(self) -> int:
        """The active grid with the least claim, the coarsest of several."""
        return int(np.argmin(np.where(self.active, self.claims(), np.inf)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, for a file."""
        return {
            "balance_steps": self.steps,
            "balance_rewards": self.rewards,
            "balance_segments": self.segments,
            "balance_active": self.active,
            "balance_last": np.array([self.playing, self.seen_steps], dtype=np.int64),
            "balance_earned": np.array([self.seen_reward]),
        }

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `to_arrays` returned; a ValueError if it does not fit."""
        for name, own in self.to_arrays().items():
            check_saved(arrays, name, own, low=-1 if name == "balance_last" else 0)
        playing, seen = arrays["balance_last"].tolist()
        if playing >= self.steps.size or not arrays["balance_active"].any():
            raise ValueError("array 'balance_last' or 'balance_active' leaves no grid to play")
        self.steps[:], self.rewards[:] = arrays["balance_steps"], arrays["balance_rewards"]
        self.segments[:], self.active[:] = arrays["balance_segments"], arrays["balance_active"]
        self.playing, self.seen_steps, self.seen_reward = playing, seen, float(arrays["balance_earned"][0])


class KLSCALPlusOnGrids(EpisodicAgent):
    """KL-SCAL+ on one of several uniform grids in each episode, chosen by regret balancing; all share their counts.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of cells of the finest grid and of actions.
    bins : sequence of int
        The intervals of the finest grid.
    span : float, optional
        c.
    regret_scale, episodes, width_scale, elimination
        As for `BalancedGrids`.
    **options
        The other arguments of `EpisodicAgent`.
    """

    unreachable: None = None
    """No rule for states that may be unreachable."""
    reward_bound: str = "mean"
    """Mean rewards are bounded by the mean of the rewards seen."""

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        bins: Sequence[int],
        span: float | None = None,
        regret_scale: float = 1.0,
        episodes: Episodes = "doubling",
        width_scale: float = 1.0,
        elimination: Elimination = "proven",
        **options: Any,
    ) -> None:
        super().__init__(n_states, n_actions, **options)
        self._bins = list(bins)
        n_grids = len(cell_widths(tuple(bins)))
        kept: dict[str, Any] = {"span": span, "episodes": episodes, "width_scale": width_scale, **options}
        self.grids = [
            KLSCALPlusOnTrees(
                n_states,
                n_actions,
                bins=bins,
                split_scale=math.inf,  # never
                bias_scale=0.0,  # the same everywhere on a uniform grid
                start_depth=depth,
                **kept,
            )
            for depth in range(n_grids)
        ]
        for grid in self.grids:
            grid.statistics = self.statistics
        self.span, self.episode_rule, self.width_scale = span, episodes, width_scale
        self.regret_scale, self.elimination = regret_scale, elimination
        self.balance = Balance(
            [grid.trees.n_leaves for grid in self.grids], self.reward_range, self.delta, regret_scale, elimination
        )
        self._most_span = np.zeros(1)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Settle the last episode, eliminate grids, and plan on the active one that claims to have lost least."""
        balance, earned = self.balance, float(statistics.reward_sum.sum())
        balance.credit(t - 1, earned)
        balance.eliminate(self.switching_cost)
        balance.begin(balance.choose())
        grid = self.grids[balance.playing]
        grid.on_episode = self.on_episode  # for its details
        plan = grid.plan(statistics, t)
        assert plan.span is not None
        self._most_span[0] = max(float(self._most_span[0]), plan.span)
        if self.on_episode is not None:
            plan.details["grid"] = balance.playing
        return plan

    @property
    def switching_cost(self) -> float:
        """What a switch of grids may cost: c, or without it the largest span planned so far, at least r_max."""
        return max(self.reward_range, float(self._most_span[0])) if self.span is None else self.span

    @property
    def vacuous(self) -> bool:
        """Whether the balls of the last plan were all so large that they bound nothing."""
        return self.grids[max(0, self.balance.playing)].vacuous

    @property
    def guarantee(self) -> Guarantee:
        """None on the regret; what is proven is that a grid which keeps its claim is not given up."""
        reason = "no bound on the regret is proven for grids that share their counts"
        if self.elimination == "proven" and self.span is not None:
            reason += (
                f"; only that with probability {1.0 - self.delta:g} no grid which keeps its claim is given up if "
                f"sp(h*) ≤ {self.span:g} (docs/adaptive_cells.md)"
            )
        return Guarantee("none", (), "", reason)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        mine = {"span": self.span, "episodes": self.episode_rule, "width_scale": self.width_scale}
        grids = {"bins": self._bins, "regret_scale": self.regret_scale, "elimination": self.elimination}
        return {**super().settings(), **mine, **grids}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The balance, and what the next plan on every grid starts from."""
        found = {**self.balance.to_arrays(), "largest_span": self._most_span}
        for i, grid in enumerate(self.grids):
            found |= {f"grid{i}_{name}": array for name, array in grid.own_arrays().items()}
        return found

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        self.balance.from_arrays(arrays)
        check_saved(arrays, "largest_span", self._most_span, low=0.0)
        self._most_span[:] = arrays["largest_span"]
        for i, grid in enumerate(self.grids):
            prefix = f"grid{i}_"
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            if own["splits"].size:
                raise ValueError(f"array '{prefix}splits' splits cells of a uniform grid")
            grid.restore(own)


class BalancedGrids(PartitionedAgent):
    r"""KL-SCAL+ on grids of 1, 2, 4, … cells per axis, between which it balances regret: L and α are not needed.

    Every episode is planned on one grid; all grids share what was observed. Grid i, of K_i cells, claims to lose at
    most U_i(n) = κ·r_max·sqrt(K_i·A·n·ln(1+n)) in n steps: the statistical part, as if its states did not differ within
    a cell. The grid with the least U_i(n_i) is played next, n_i its steps so far. A grid is eliminated once
    X_i/n_i + (U_i(n_i) + c·m_i + w_i)/n_i < max_j [X_j/n_j - (c·m_j + w_j)/n_j], with X_i its rewards, m_i the times it
    was switched to, and w_i = (r_max + c)·sqrt(½(n_i+1)·ln(sqrt(n_i+1)·(i+1)(i+2)/δ)): it is too coarse for its claim.

    This is regret balancing and elimination (Pacchiano et al. 2020) in our reading. With probability 1-δ no grid that
    keeps its claim is given up, if sp(h*) ≤ c (docs/adaptive_cells.md, with the proof). The claims themselves, U_i with
    κ = 1, are an order and not a theorem, so there is no guarantee on the regret.

    Parameters
    ----------
    partition : Partition
        The finest grid.
    n_actions : int
        The number of actions A.
    span : float, optional
        c, as for `CKLSCALPlus`. Without it the largest span planned so far stands for it.
    reward_max, reward_min : float
        The range of the rewards.
    delta : float
        δ of w_i and of KL-SCAL+.
    seed : int
        The seed of the agent's own randomness, which it does not use.
    allowed : array_like, optional
        (cells, A) of True: every cell has every action.
    episodes, width_scale
        As for `KLSCALPlus`.
    regret_scale : float
        κ. A larger one eliminates later.
    elimination : {"proven", "plain"}
        "plain" has w_i = r_max·sqrt(n_i·ln(number of grids/δ)), which leaves out the luck of states and covers one n_i
        at a time: it gives up grids sooner, and no proof covers it. Agents saved by versions without this parameter
        have it.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.BalancedGrids(gf.Partition.uniform(bins=8), n_actions=2, span=1.0)
    >>> for i in range(100):
    ...     x = (0.37 * i) % 1.0
    ...     agent.observe(x, agent.act(x), x, (x + 0.37) % 1.0)
    >>> [grid.bins for grid in agent.grids()]
    [1, 2, 4, 8]
    """

    core: KLSCALPlusOnGrids

    def __init__(
        self,
        partition: Partition | dict[str, Any],
        n_actions: int,
        *,
        span: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Episodes = "doubling",
        width_scale: float = 1.0,
        regret_scale: float = 1.0,
        elimination: Annotated[Elimination, AddedLater("plain")] = "proven",
    ) -> None:
        self.partition = checked_partition(partition)
        check_all_allowed(allowed)
        options: dict[str, Any] = {"reward_max": reward_max, "reward_min": reward_min, "delta": delta, "seed": seed}
        KLSCALPlus(1, n_actions, span=span, episodes=episodes, width_scale=width_scale, **options)  # its errors first
        self.core = KLSCALPlusOnGrids(
            self.partition.n_cells,
            n_actions,
            bins=self.partition.bins,
            span=None if span is None else float(span),
            regret_scale=positive_scale("regret_scale", regret_scale, "the default is 1"),
            episodes=episodes,
            width_scale=float(width_scale),
            elimination=choice("elimination", elimination, ("proven", "plain")),  # type: ignore[arg-type]
            **options,
        )

    @property
    def span(self) -> float | None:
        """The bound c on sp(h*); None if there is none."""
        return self.core.span

    def grids(self) -> list[GridRecord]:
        """Return what every grid has done up to the present episode, the coarsest first.

        Returns
        -------
        list of GridRecord
            Cells per axis, steps, average reward, and whether the grid is still played.
        """
        balance, low = self.core.balance, self.reward_min
        found = []
        for i, n in enumerate(balance.steps.tolist()):
            mean = low + float(balance.rewards[i]) / n if n else math.nan
            bins = max(min(size, 1 << i) for size in self.partition.bins)
            found.append(GridRecord(bins, n, mean, bool(balance.active[i])))
        return found

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        kept = super().settings()
        del kept["bins"]
        return kept

    @property
    def guarantee(self) -> Guarantee:
        """None: claims of the right order are not proven ones."""
        return self.core.guarantee
