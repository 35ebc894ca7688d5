"""What discounted and finite-horizon planners return."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP


@dataclass(frozen=True, eq=False)
class ValuePlan:
    """Discounted values in the user's units, and a stationary policy. Holding one means that it converged.

    The optimal value of every state, and the value of `policy` itself, lie between the two arrays of
    `value_bounds`, rounding included; `values` is their middle.
    """

    values: NDArray[np.float64]
    value_bounds: tuple[NDArray[np.float64], NDArray[np.float64]]
    actions: NDArray[np.int64]
    discount: float
    sweeps: int
    method: str
    mdp: MDP = field(repr=False)

    @cached_property
    def policy(self) -> NDArray[np.float64]:
        """(S,A) action probabilities."""
        table = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        table[np.arange(self.mdp.n_states), self.actions] = 1.0
        table.flags.writeable = False
        return table

    @property
    def value(self) -> float:
        """The value from the MDP's start (state or distribution)."""
        return float(self.mdp.start @ self.values)

    def action(self, state: int | str) -> str:
        """The label of the action in `state` (index or label)."""
        return self.mdp.action_name(int(self.actions[self.mdp.state_index(state)]))

    def __repr__(self) -> str:
        low, high = self.value_bounds
        return (
            f"ValuePlan(value={self.value:.10g}, bounds {float((high - low).max()):.1e} apart, "
            f"discount={self.discount:g}, {self.mdp.n_states} states, {self.method}, {self.sweeps} sweeps)"
        )


@dataclass(frozen=True, eq=False)
class FiniteHorizonPlan:
    """Values to go in the user's units, and the action of every step and state.

    `values` is (H+1, S): values[h, s] is the total of steps h … H-1 from state s, values[H] the terminal values.
    `actions` is (H, S). Each value is within `rounding` of the exact one.
    """

    values: NDArray[np.float64]
    actions: NDArray[np.int64]
    rounding: float
    mdp: MDP = field(repr=False)

    @property
    def horizon(self) -> int:
        """H, the number of steps."""
        return int(self.actions.shape[0])

    @property
    def value(self) -> float:
        """The total of all H steps from the MDP's start (state or distribution)."""
        return float(self.mdp.start @ self.values[0])

    def action(self, step: int, state: int | str) -> str:
        """The label of the action at `step` (0 … H-1) in `state` (index or label)."""
        return self.mdp.action_name(int(self.actions[step, self.mdp.state_index(state)]))

    def __repr__(self) -> str:
        return f"FiniteHorizonPlan(value={self.value:.10g}, horizon={self.horizon}, {self.mdp.n_states} states)"
