"""Agents on continuous states: a partition of a box, and a tabular agent over its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import (
    AGENT_FILE,
    NEVER,
    EpisodeLog,
    EpisodePlan,
    EpisodeView,
    EpisodicAgent,
    agent_state,
)
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.agents.stepwise import StepwiseAgent
from gainful.archive import write_archive
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError
from gainful.optimism.c_scal_plus import bins_for_horizon
from gainful.partition import Outside, Partition

T = TypeVar("T")
Ends: TypeAlias = ArrayLike | Sequence[float | None] | None
"""The lower or upper ends of a box: one number, or one per axis; None keeps a Gymnasium Box's own."""


class _OfInner(Generic[T]):
    """An attribute that is the inner agent's own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, agent: Any, owner: type) -> T:
        return cast(T, self if agent is None else getattr(agent.inner, self._name))

    def __set__(self, agent: Any, value: T) -> None:
        setattr(agent.inner, self._name, value)


class TransitionLog:
    """Raw transitions in the order they were observed, in arrays that double: 16·d + 12 bytes each."""

    def __init__(self, dim: int) -> None:
        self.n = 0
        self.origin: NDArray[np.float64] = np.empty((256, dim))
        self.target: NDArray[np.float64] = np.empty((256, dim))
        self.action: NDArray[np.int32] = np.empty(256, dtype=np.int32)
        self.reward: NDArray[np.float64] = np.empty(256)

    NAMES = ("origin", "target", "action", "reward")

    def reserve(self, more: int) -> None:
        """Make room for so many more."""
        size = self.action.size
        while size < self.n + more:
            size *= 2
        if size > self.action.size:
            for name in self.NAMES:
                old = getattr(self, name)
                new = np.empty((size, *old.shape[1:]), dtype=old.dtype)
                new[: self.n] = old[: self.n]
                setattr(self, name, new)

    def append(self, x: ArrayLike, action: int, reward: float, to: ArrayLike) -> None:
        """One more."""
        self.reserve(1)
        self.origin[self.n], self.target[self.n] = x, to
        self.action[self.n], self.reward[self.n] = action, reward
        self.n += 1

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What is in it, for a file."""
        return {f"log_{name}": getattr(self, name)[: self.n] for name in self.NAMES}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave; ValueError where it does not fit together."""
        n = arrays["log_action"].size
        for name in self.NAMES:
            found, wanted = arrays[f"log_{name}"], getattr(self, name)
            if found.shape != (n, *wanted.shape[1:]) or found.dtype != wanted.dtype:
                raise ValueError(f"array 'log_{name}' has shape {found.shape} and dtype {found.dtype}")
        if n and (
            arrays["log_action"].min() < 0 or not all(np.isfinite(arrays[f"log_{name}"]).all() for name in self.NAMES)
        ):
            raise ValueError("a logged transition is out of range")
        self.n = 0
        self.reserve(n)
        for name in self.NAMES:
            getattr(self, name)[:n] = arrays[f"log_{name}"]
        self.n = n


class PartitionedAgent:
    """An agent whose states are points: `inner`, a tabular agent, sees the cells of `partition`.

    The policy of a cell is that of every point in it. What a tabular agent has (clock, statistics, plan, records) is
    the inner one's, under the same names. Points outside the partition, NaN and points of another shape are errors of
    the partition, and leave the agent as it was.
    """

    inner: EpisodicAgent
    partition: Partition
    log: TransitionLog | None = None
    """The raw transitions, where the partition is going to be refined."""
    space: Partition | None = None
    """The box as one cell, where the agent chooses the number of cells itself."""
    refines_at = NEVER
    """The number of steps after which the next decision refines the partition."""

    n_actions = _OfInner[int]()
    allowed = _OfInner[NDArray[np.bool_]]()
    """(cells, A) the actions each cell has."""
    reward_min = _OfInner[float]()
    reward_max = _OfInner[float]()
    delta = _OfInner[float]()
    seed = _OfInner[int]()
    key = _OfInner[np.uint64]()
    statistics = _OfInner[Statistics]()
    t = _OfInner[int]()
    """Steps observed so far; the next one is number t + 1."""
    current = _OfInner[EpisodePlan | None]()
    remaining = _OfInner[NDArray[np.int64]]()
    planned_at = _OfInner[int]()
    interrupted = _OfInner[bool]()
    visited = _OfInner[NDArray[np.bool_]]()
    records = _OfInner[EpisodeLog]()
    on_episode = _OfInner[Callable[[EpisodeView], None] | None]()

    @property
    def n_states(self) -> int:
        """The number of cells."""
        return self.inner.n_states

    @property
    def dim(self) -> int:
        """d, the number of coordinates of a state."""
        return self.partition.dim

    @property
    def reward_range(self) -> float:
        """r_max of the theory: reward_max - reward_min."""
        return self.inner.reward_range

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode so far, see `episodic.EPISODE_RECORD`."""
        return self.inner.episodes

    @property
    def guarantee(self) -> Guarantee:
        """What this agent promises with its present constants."""
        raise NotImplementedError

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data, for agents that know."""
        return self.inner.vacuous

    # ------------------------------------------------------------------ the online interface

    def act(self, state: ArrayLike) -> int:
        """The action to take at the point `state`; asked again before `observe`, the answer is the same."""
        return self.inner.act(self.partition.index(state))

    def observe(self, state: ArrayLike, action: int, reward: float, next_state: ArrayLike) -> None:
        """What happened: any valid transition, whether or not the agent chose it."""
        self.inner.observe(self.partition.index(state), action, reward, self.partition.index(next_state))
        if self.log is not None:
            self.log.append(state, int(action), float(reward), next_state)

    def predict(self, observation: ArrayLike) -> int:
        """The greedy action of the present policy at a point; begins no episode and learns nothing.

        Of a policy that mixes actions it is the most probable one, ties to the lowest; before the first plan the
        lowest action that the cell has.
        """
        return int(np.argmax(self._probabilities(np.array([self.partition.index(observation)]))[0]))

    def policy(self, points: ArrayLike) -> NDArray[np.float64]:
        """(N, A) probabilities of the present policy at many points (N, d), or (N,) if d = 1; see `predict`."""
        return self._probabilities(self.partition.index_many(points))

    def _probabilities(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        agent, plan = self.inner, self.inner.current
        if plan is not None and plan.probabilities is not None:
            return plan.probabilities[cells]
        table = np.zeros((cells.size, agent.n_actions))
        if isinstance(agent, StepwiseAgent):
            chosen = agent.q.reshape(agent.allowed.shape)[cells].argmax(axis=1)
        elif plan is None:
            chosen = agent.allowed[cells].argmax(axis=1)
        else:
            chosen = plan.actions[cells]
        table[np.arange(cells.size), chosen] = 1.0
        return table

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again (what a saved file holds beside the arrays)."""
        kept = self.inner.settings()
        del kept["n_states"]
        if self.space is None:
            return {"partition": self.partition.settings(), **kept}
        box = self.space
        return {
            "partition": None, "dim": box.dim, "low": list(box.low), "high": list(box.high), "outside": box.outside,
            **kept,
        }  # fmt: skip

    def resize(self, settings: dict[str, Any]) -> None:
        """Take the cells of an agent with these settings, where they change in the course of a life."""

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What must be kept beside the statistics and the current plan: the inner agent's, and the log."""
        return {**self.inner.own_arrays(), **({} if self.log is None else self.log.to_arrays())}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `own_arrays` gave."""
        if self.log is not None:
            self.log.from_arrays(arrays)
            if self.log.n != self.t:
                raise ValueError(f"the log has {self.log.n} transitions after {self.t} steps")
        self.inner.restore({name: array for name, array in arrays.items() if not name.startswith("log_")})

    def save(self, path: str | Path) -> None:
        """Write the whole state to one plain file; `gf.load_agent(path)` goes on to the same bits."""
        write_archive(AGENT_FILE, path, *agent_state(cast(EpisodicAgent, self)))


def checked_partition(partition: Any) -> Partition:
    """A Partition, or the settings of one as a file holds them."""
    if isinstance(partition, dict):
        return Partition.from_settings(partition)
    if not isinstance(partition, Partition):
        raise InvalidArgumentError(
            f"partition is {partition!r}, expected a Partition; gf.Partition.uniform(bins=20, dim=2) makes one"
        )
    return partition


def box_to_cut(dim: int | None, low: Ends, high: Ends, box: Any, outside: Outside | None) -> Partition:
    """The box whose cells an agent chooses itself, as one cell: [low, high], or a Gymnasium Box."""
    if box is None:
        ends: dict[str, Any] = {"low": low, "high": high}
        return Partition.uniform(bins=1, dim=dim, outside=outside or "error", **ends)
    found = Partition.from_box(box, bins=1, low=low, high=high, outside=outside)
    if dim is not None and dim != found.dim:
        raise InvalidArgumentError(f"dim is {dim}, but the box has {found.dim} axes")
    return found


def checked_horizon(horizon: float | None) -> int | None:
    """A number of steps, at least 1, or None; 1e7 is accepted as an integer."""
    if horizon is None:
        return None
    if isinstance(horizon, bool) or not (finite(horizon) and horizon >= 1 and int(horizon) == horizon):
        raise InvalidArgumentError(f"horizon is {horizon!r}, expected a whole number of steps, at least 1")
    return int(horizon)


def chosen_bins(horizon: int, n_actions: int, lipschitz: float | None, holder: float | None, dim: int) -> int:
    """The theorem's number of intervals per axis."""
    if lipschitz is None or holder is None:
        raise InvalidArgumentError(
            "without lipschitz and holder there is no formula for the number of cells; give a partition"
        )
    try:
        return bins_for_horizon(horizon, n_actions, lipschitz, holder, dim)
    except OverflowError as error:
        raise InvalidArgumentError(
            f"lipschitz {lipschitz:g} and horizon {horizon:g} ask for too many cells; give a partition"
        ) from error


def checked_smoothness(lipschitz: float | None, holder: float | None) -> tuple[float | None, float | None]:
    """L and α, each positive, α at most 1, or None where unknown."""
    for name, value, top in (("lipschitz", lipschitz, np.inf), ("holder", holder, 1.0)):
        good = value is None or (isinstance(value, Real) and np.isfinite(value) and 0.0 < value <= top)
        if not good or isinstance(value, bool):
            wanted = "a finite number above 0" if name == "lipschitz" else "a number in (0, 1]"
            raise InvalidArgumentError(f"{name} is {value!r}, expected {wanted}, or None where it is unknown")
    return None if lipschitz is None else float(lipschitz), None if holder is None else float(holder)


def unknown_smoothness(lipschitz: float | None, holder: float | None) -> str:
    """Why there is no guarantee without L and α; empty where both are known."""
    missing = [name for name, value in (("lipschitz", lipschitz), ("holder", holder)) if value is None]
    if not missing:
        return ""
    return (
        f"{' and '.join(missing)} not given: nothing is assumed of states in one cell, and nothing added for their "
        "difference"
    )
