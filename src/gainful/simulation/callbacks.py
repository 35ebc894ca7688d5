"""What a user's function is shown at every checkpoint of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gainful.agents.plain_learner import is_plain
from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gainful.simulation.base import Simulation

Callback: TypeAlias = "Callable[[CheckpointView], object] | None"


@dataclass(frozen=True)
class CheckpointView:
    """A run at one of its checkpoints, shown to the `callback` of `simulate`.

    Attributes
    ----------
    step, horizon : int
        The steps made, and how many there will be.
    reward : float
        The total reward so far.
    regret, pseudo_regret, expected_regret : float
        As in `Run`; NaN if they are unknown.
    episodes : int
        The number of the agent's episodes so far.
    seed : int
        The seed of the run.
    agent : object
        The agent, to look at: a callback that lets it act or observe is an error.

    Examples
    --------
    >>> import gainful as gf
    >>> seen = []
    >>> agent, mdp = gf.UCRL2(6, 2), gf.environments.riverswim(6)
    >>> run = gf.simulate(agent, mdp, 100, checkpoints=[10, 100], callback=seen.append)
    >>> [now.step for now in seen], bool(seen[-1].reward == run.rewards[-1])
    ([10, 100], True)
    """

    step: int
    horizon: int
    reward: float
    regret: float
    pseudo_regret: float
    expected_regret: float
    episodes: int
    seed: int
    agent: Any

    def values(self) -> dict[str, float]:
        """The numbers that loggers want, by name; unknown ones are left out.

        Returns
        -------
        dict of str to float
            reward, reward_per_step, regret, pseudo_regret, expected_regret and episodes.
        """
        found = {
            "reward": self.reward,
            "reward_per_step": self.reward / self.step,
            "regret": self.regret,
            "pseudo_regret": self.pseudo_regret,
            "expected_regret": self.expected_regret,
            "episodes": float(self.episodes),
        }
        return {name: value for name, value in found.items() if value == value}


def checked_callback(callback: Any) -> Any:
    """The function, or None."""
    if callback is None or callable(callback):
        return callback
    raise InvalidArgumentError("callback", callback, "a function of one argument, the CheckpointView")


def one_at_a_time(callback: Callback) -> Callback:
    """The function, but called by one thread at a time."""
    if callback is None:
        return None
    lock = threading.Lock()

    def call(now: CheckpointView) -> None:
        with lock:
            callback(now)

    return call


def show_checkpoint(callback: Callable[[CheckpointView], object], simulation: Simulation) -> None:
    """Call back with the checkpoint just passed; an error if that made the agent act or learn."""
    i, agent = simulation.checkpoints_passed - 1, simulation.agent
    before = _moves(agent)
    callback(
        CheckpointView(
            step=int(simulation.checkpoints[i]),
            horizon=int(simulation.checkpoints[-1]),
            reward=float(simulation.rewards[i]),
            **simulation.regrets_at(i),
            episodes=before[1],
            seed=simulation.seed,
            agent=agent.core.learner if is_plain(agent) else agent,
        )
    )
    if _moves(agent) != before:
        raise InvalidArgumentError(
            "callback",
            callback,
            "one that only looks",
            "use agent.predict, and act and observe on a copy that gf.load_agent makes",
            problem=f"the callback at step {int(simulation.checkpoints[i]):,} let the agent act or observe",
        )


def _moves(agent: Any) -> tuple[int, int]:
    """The steps and the episodes of the agent: what acting and observing change."""
    return int(agent.t), len(agent.core.records)
