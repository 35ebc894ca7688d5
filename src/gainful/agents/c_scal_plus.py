"""C-SCAL+: SCAL+ on the cells of a partition of a continuous state space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import (
    Ends,
    PartitionedAgent,
    TransitionLog,
    box_to_cut,
    checked_horizon,
    checked_partition,
    checked_smoothness,
    chosen_bins,
    unknown_smoothness,
)
from gainful.agents.scal_plus import Bonus, Mixture, Replanning, SCALPlus
from gainful.agents.statistics import Statistics
from gainful.arguments import whole
from gainful.errors import InvalidArgumentError
from gainful.optimism.c_scal_plus import holder_term, regret_exponent
from gainful.partition import Outside, Partition

FIRST_HORIZON = 1024
"""T_0 of the doubling schedule: stage i serves steps up to 2^i·T_0 and has the cells of that horizon."""


class CSCALPlus(PartitionedAgent):
    r"""C-SCAL+ (Qian, Fruit, Pirotta & Lazaric, sec. 4): states in a box, A actions, Hölder constants L and α.

    SCAL+ on the cells of a partition, S cells in all and n per axis (the coarsest axis, if they differ), with
    (c + r_max)·L·n^{-α} added to every bonus: states of one cell differ by that much. `lipschitz` and `holder` are L
    and α of |r(x,a) - r(y,a)| ≤ r_max·L·‖x-y‖^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L·‖x-y‖^α in the sup-norm, the box scaled
    to [0, 1]^d; without them the term is 0 and there is no guarantee. `span` is c ≥ sp(h*). The other arguments are
    those of SCALPlus; `bonus_scale` multiplies β alone.

    The term is one constant on a uniform partition, and ScOpt commutes with it: the policy executed is that of SCAL+
    on the cells, and only its optimistic gain moves (with `mixture="min-action"` the weights move too).

    Without `partition` a box [low, high] (by default [0, 1]^dim, or a Gymnasium `box`) is cut into
    n = ⌈((α/d)·L·sqrt(T/A))^{1/(d+α)}⌉ intervals per axis for T = `horizon` steps. Without a horizon T doubles: stage i
    has the cells of T = 2^i·1024 and ends after that many steps. The next decision then counts all transitions again
    on the finer cells (they are kept, 16·d + 12 bytes each), keeps the clock, and begins an episode; where n stays the
    same, nothing happens. `stage` is for files.

    With probability 1-δ the regret is Õ(max{c, r_max}·L^{1/(α+1)}·A^{α/(2α+2)}·T^{(α+2)/(2α+2)}) for d = 1 and the n
    above, Õ(T^{(2d+α)/(2d+2α)}) in d dimensions.

    >>> agent = CSCALPlus(partition=Partition.uniform(bins=20), n_actions=3, span=2.0, lipschitz=1.0, holder=1.0)
    >>> action = agent.act(0.31)
    >>> agent.observe(0.31, action, 0.5, 0.33)
    >>> agent.model_error  # 3·1/20
    0.15000000000000002
    """

    inner: SCALPlus

    def __init__(
        self, *, n_actions: int, span: float, partition: Partition | dict[str, Any] | None = None,
        lipschitz: float | None = None, holder: float | None = None, reward_max: float = 1.0, reward_min: float = 0.0,
        delta: float = 0.05, seed: int = 0, allowed: ArrayLike | None = None, bonus: Bonus = "appendix",
        bonus_scale: float = 1.0, mixture: Mixture = "copy", replanning: Replanning | None = None,
        horizon: float | None = None, dim: int | None = None, low: Ends = None,
        high: Ends = None, box: Any = None, outside: Outside | None = None, stage: int = 0,
    ) -> None:  # fmt: skip
        self.lipschitz, self.holder = checked_smoothness(lipschitz, holder)
        self.horizon, self.stage = checked_horizon(horizon), whole("stage", stage, 0, 50)
        self._options: dict[str, Any] = {
            "span": span, "reward_max": reward_max, "reward_min": reward_min, "delta": delta, "seed": seed,
            "bonus": bonus, "bonus_scale": bonus_scale, "mixture": mixture, "replanning": replanning,
        }  # fmt: skip
        SCALPlus(1, n_actions, **self._options)  # its errors come before those of the cells
        if partition is not None:
            self.partition = checked_partition(partition)
            if any(given is not None for given in (dim, low, high, box, outside)):
                raise InvalidArgumentError("a partition was given, and dim, low, high, box or outside too: it has them")
        else:
            self.space = box_to_cut(dim, low, high, box, outside)
            self.partition = self.space.with_bins(self._bins(n_actions))
        self.doubling = partition is None and horizon is None
        """Whether the partition is refined whenever the number of steps has doubled."""
        if self.doubling:
            if allowed is not None and not np.all(allowed):
                raise InvalidArgumentError("allowed is a mask on cells, which change here; give a partition or horizon")
            self.log = TransitionLog(self.partition.dim)
            self.refines_at = FIRST_HORIZON << self.stage
        self.inner = self._cells(n_actions, allowed)

    def _bins(self, n_actions: int) -> int:
        assert self.space is not None
        T = FIRST_HORIZON << self.stage if self.horizon is None else self.horizon
        return chosen_bins(T, n_actions, self.lipschitz, self.holder, self.space.dim)

    def _cells(self, n_actions: int, allowed: ArrayLike | None = None) -> SCALPlus:
        """SCAL+ on the present cells."""
        agent = SCALPlus(self.partition.n_cells, n_actions, allowed=allowed, **self._options)
        if self.lipschitz is not None and self.holder is not None:
            n = min(self.partition.bins)
            agent.model_error = holder_term(agent.span, agent.reward_range, self.lipschitz, self.holder, n)
        return agent

    @property
    def span(self) -> float:
        """The bound c on sp(h*)."""
        return self.inner.span

    @property
    def bonus_scale(self) -> float:
        """What multiplies β; 1 is the theorem's."""
        return self.inner.bonus_scale

    @property
    def model_error(self) -> float:
        """(c + r_max)·L·n^{-α}, added to every bonus."""
        return self.inner.model_error

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        kept = {
            **super().settings(), "lipschitz": self.lipschitz, "holder": self.holder, "horizon": self.horizon,
            "replanning": self._options["replanning"],
        }  # fmt: skip
        return {**kept, "stage": self.stage} if self.doubling else kept

    @property
    def _beyond_the_theorem(self) -> str:
        """What the theorem, of one dimension and a known horizon, does not say itself."""
        more = ["d > 1 by their remark"] if self.dim > 1 else []
        more += ["doubling horizons by our own argument"] if self.doubling else []
        return f" ({', '.join(more)})" if more else ""

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        void = unknown_smoothness(self.lipschitz, self.holder)
        if self.partition.outside == "clip":
            void = "outside is 'clip': the end cells hold states farther apart than their sides"
        if self.bonus_scale != 1.0:
            void = f"bonus_scale is {self.bonus_scale:g}, the theorem needs 1"
        alpha, d = self.holder or 1.0, self.dim
        power = "(α+2)/(2α+2)" if d == 1 else "(2d+α)/(2d+2α)"
        rate = f"Õ(T^({power})) = Õ(T^{regret_exponent(alpha, d):.4g})"
        chance = f"with probability {1 - self.delta:g}"
        if self.space is not None:
            when = "all T at once" if self.horizon is None else f"at T = {self.horizon}"
            bound = f"regret {rate} {chance}, {when}"
        else:
            bound = (
                f"regret Õ(max{{c, r_max}}·(S·sqrt(A·T) + L·n^(-α)·T)), S = {self.n_states} cells, "
                f"n = {min(self.partition.bins)} per axis, {chance}; {rate} where n is the theorem's for T"
            )
        constants = "" if self.lipschitz is None else f" with L = {self.lipschitz:g}, α = {alpha:g}"
        return Guarantee(
            bound=bound,
            assumptions=(
                f"the optimal bias has span at most c = {self.span:g}",
                f"rewards and transitions are Hölder{constants} on the box scaled to [0, 1]^{d}",
            ),
            source="Qian, Fruit, Pirotta & Lazaric, theorem on C-SCAL+" + self._beyond_the_theorem,
            reason_void=void,
        )

    # ------------------------------------------------------------------ doubling

    def act(self, state: ArrayLike) -> int:
        """The action to take at the point `state`; where a stage is over, on finer cells from now on."""
        if self.t >= self.refines_at:
            self.partition.index(state)  # a bad point changes nothing
            self._refine()
        return super().act(state)

    def resize(self, settings: dict[str, Any]) -> None:
        """Take the cells of another stage, nothing counted on them yet."""
        if self.doubling and int(settings["stage"]) != self.stage:
            assert self.space is not None
            self.stage = int(settings["stage"])
            self.refines_at = FIRST_HORIZON << self.stage
            self.partition = self.space.with_bins(self._bins(self.n_actions))
            on_episode, self.inner = self.on_episode, self._cells(self.n_actions)
            self.on_episode = on_episode

    def _refine(self) -> None:
        """The stage of the present step, and all transitions seen counted on its cells."""
        assert self.log is not None
        assert self.space is not None
        while self.t >= FIRST_HORIZON << self.stage:
            self.stage += 1
        self.refines_at = FIRST_HORIZON << self.stage
        finer = self.space.with_bins(self._bins(self.n_actions))
        if finer.bins == self.partition.bins:
            return
        old, self.partition = self.inner, finer
        new = self._cells(old.n_actions)
        count_again(self.log, finer, new)
        new.t, new.records, new.on_episode = old.t, old.records, old.on_episode
        self.inner = new


def count_again(log: TransitionLog, partition: Partition, agent: SCALPlus) -> None:
    """Give a new agent on the cells of `partition` all transitions of `log`, added in the order they came."""
    taken = replace(partition, outside="clip")  # whatever is in the log was accepted, as a float32 perhaps
    cells, to = (taken.index_many(points[: log.n]) for points in (log.origin, log.target))
    rewards = log.reward[: log.n] - agent.reward_min
    pairs = cells * agent.n_actions + log.action[: log.n]
    n = agent.statistics.visits.size
    entries, counts = np.unique(pairs * agent.n_states + to, return_counts=True)
    statistics: Statistics = agent.statistics
    statistics.from_arrays(
        {
            "visits": np.bincount(pairs, minlength=n).astype(np.int64),
            "reward_sum": np.bincount(pairs, weights=rewards, minlength=n),
            "reward_squares": np.bincount(pairs, weights=rewards * rewards, minlength=n),
            "length": np.bincount(entries // agent.n_states, minlength=n).astype(np.int64),
            "next_state": (entries % agent.n_states).astype(np.uint32),
            "count": counts.astype(np.int64),
        }
    )
    agent.remaining[:] = np.maximum(statistics.visits, 1)
    agent.visited[cells], agent.visited[to] = True, True
