"""A plan in force as compiled loops see it: the draw of an action, and the limits as an episode begins."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.statistics import AgentCounts, execution_limit, named
from gainful.rng import Key, draw, uniform


class Policy(NamedTuple):
    """A plan in force, for kernels.

    The agent had observed `steps_before` steps before the run; `planned_now`: its episode begins at this very step.
    """

    actions: Any
    cumulative: Any
    key: Key
    steps_before: int
    planned_now: bool
    doubling: bool
    stop_on_new_state: bool
    reward_min: float
    reward_max: float
    groups: Any
    group_left: Any
    """How often the pairs of each group may still be executed; empty if every pair has a limit of its own."""


@kernel
def choose(cumulative: NDArray[Any], s: int, key: Any, number: Any) -> int:
    """The action of state s whose cumulative probability is the first to exceed draw `number`."""
    u = uniform(draw(key, number))
    a = 0
    while cumulative[s, a] <= u:
        a += 1
    return a


@kernel
def grant(counts: AgentCounts) -> None:
    """Begin an episode: N_k of the pairs observed since the last plan, and how often they may be executed."""
    counts = named(counts)
    for i in range(counts.n_changed[0]):
        k = counts.changed[i]
        counts.visits_before[k] = counts.visits[k]
        counts.remaining[k] = execution_limit(counts.multiplier, counts.visits[k])
        counts.is_changed[k] = False
    counts.n_changed[0] = 0
