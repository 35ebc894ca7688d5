"""Who has played how many steps, and what they earned, of several that take turns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Turns:
    """Steps, rewards and stretches of players that take turns, each for an episode or more.

    Parameters
    ----------
    n : int
        The number of players.
    """

    def __init__(self, n: int) -> None:
        self.steps: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        """(n,) steps played by each."""
        self.rewards: NDArray[np.float64] = np.zeros(n)
        """(n,) the rewards earned in them."""
        self.segments: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        """(n,) how often each was switched to: its stretches of consecutive steps, if the path is not broken."""
        self.playing = -1
        """Who plays the present episode; -1 before the first."""
        self.seen_steps, self.seen_reward = 0, 0.0
        """All steps and rewards of the agent when they were last settled."""

    def credit(self, steps: int, reward: float) -> None:
        """Credit what happened since the last call to the one that played; both are totals of the agent."""
        if self.playing >= 0:
            self.steps[self.playing] += steps - self.seen_steps
            self.rewards[self.playing] += reward - self.seen_reward
        self.seen_steps, self.seen_reward = steps, reward

    def begin(self, i: int) -> None:
        """Let player i play."""
        if self.playing != i:
            self.segments[i] += 1
        self.playing = i
