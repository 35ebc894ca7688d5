"""What a durable agent earned over time, in little room: sums over blocks of observations, and the last outcomes."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.live.records import RecordLayout, TransitionColumns

MAX_BLOCKS = 256
"""With so many blocks, neighbours are joined, and a block is twice as long."""
MAX_OUTCOMES = 20
"""The number of outcomes that are kept."""


class Outcome(NamedTuple):
    """One of the last outcomes of a durable agent.

    Attributes
    ----------
    step : int
        The number of the observation.
    state, next_state : int, str or list of float
        The state and the one after it, by their labels if they have any.
    action : int or str
        The action, by its label if it has one.
    amount : float
        The reward, or the cost.

    Examples
    --------
    >>> last = Outcome(step=41, state="worn", action="service", amount=6.0, next_state="new")
    >>> f"{last.action} in state {last.state}: {last.amount}"
    'service in state worn: 6.0'
    """

    step: int
    state: Any
    action: Any
    amount: float
    next_state: Any


class EarningsOverTime(NamedTuple):
    """The average reward, or cost, of a durable agent over time.

    Attributes
    ----------
    before : int
        The number of observations before the first block: those of versions that did not keep this, and of logs and
        prior models that the agent began with.
    length : int
        The number of observations in a block.
    averages : ndarray of float64
        The average of each block, the oldest first; the last observations that fill no block are in none.
    outcomes : tuple of Outcome
        The last 20 outcomes, the oldest first.

    Examples
    --------
    >>> import tempfile
    >>> from gainful.live import open_agent
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place, open_agent(f"{place}/pump", config) as agent:
    ...     receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     earned = agent.earnings()
    >>> earned.averages.tolist(), earned.outcomes[-1].state
    ([0.5], 0)
    """

    before: int
    length: int
    averages: NDArray[np.float64]
    outcomes: tuple[Outcome, ...]


class Earnings:
    """Sums of rewards over consecutive blocks of equal length, and the last transitions.

    Parameters
    ----------
    before : int
        The number of observations that came before, and are in no block.
    """

    def __init__(self, before: int = 0) -> None:
        self.before, self.length = before, 1
        self.sums: list[float] = []
        self._open_sum, self._open_count = 0.0, 0
        self.transitions: deque[tuple[Any, int, float, Any]] = deque(maxlen=MAX_OUTCOMES)

    def add(self, state: Any, action: int, reward: float, next_state: Any) -> None:
        """Count one transition."""
        self.transitions.append((state, action, reward, next_state))
        self._open_sum += reward
        self._open_count += 1
        if self._open_count == self.length:
            self._close_block()

    def add_rows(self, rows: TransitionColumns) -> None:
        """Count a batch of transitions, block by block."""
        at, n = 0, len(rows.actions)
        while at < n:
            taken = min(n - at, self.length - self._open_count)
            self._open_sum += float(rows.rewards[at : at + taken].sum())
            self._open_count += taken
            at += taken
            if self._open_count == self.length:
                self._close_block()
        for i in range(max(0, n - MAX_OUTCOMES), n):
            transition = rows.states[i], int(rows.actions[i]), float(rows.rewards[i]), rows.next_states[i]
            self.transitions.append(transition)

    def _close_block(self) -> None:
        self.sums.append(self._open_sum)
        self._open_sum, self._open_count = 0.0, 0
        if len(self.sums) == MAX_BLOCKS:
            self.sums = [one + other for one, other in zip(self.sums[::2], self.sums[1::2], strict=True)]
            self.length *= 2

    def to_arrays(self, layout: RecordLayout) -> dict[str, NDArray[Any]]:
        """Everything as arrays, for a snapshot."""
        numbers = [float(self.before), float(self.length), float(self._open_count), self._open_sum, *self.sums]
        states, actions, rewards, nexts = ([row[i] for row in self.transitions] for i in range(4))
        shape = (len(actions), layout.dim) if layout.dim else (len(actions),)
        rows = TransitionColumns(
            np.array(states).reshape(shape),
            np.array(actions, dtype=np.uint32),
            np.array(rewards, dtype=np.float64),
            np.array(nexts).reshape(shape),
        )
        return {"blocks": np.array(numbers), "outcomes": np.frombuffer(layout.pack_rows(rows), dtype=np.uint8)}

    @classmethod
    def from_arrays(cls, layout: RecordLayout, arrays: dict[str, NDArray[Any]]) -> Earnings:
        """What `to_arrays` gave; a ValueError if it cannot be that."""
        numbers = arrays["blocks"].tolist()
        before, length, count = (int(x) for x in numbers[:3])
        if not np.isfinite(numbers).all() or before < 0 or not 0 <= count < length or len(numbers) - 4 >= MAX_BLOCKS:
            raise ValueError("the blocks of the earnings are not those of an agent")
        made = cls(before)
        made.length, made._open_count, made._open_sum = length, count, numbers[3]
        made.sums = numbers[4:]
        rows = layout.unpack_rows(arrays["outcomes"].tobytes())
        for s, a, r, to in zip(rows.states, rows.actions, rows.rewards, rows.next_states, strict=True):
            made.transitions.append((s, int(a), float(r), to))
        return made
