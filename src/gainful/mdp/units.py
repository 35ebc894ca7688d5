"""The conversion from internal numbers (rewards per step, maximised) to the user's (costs, per unit of time)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

SMALLEST_ROOM = 2.0**-1021
"""What a bracket is widened by at least in a conversion, which may underflow."""

Objective: TypeAlias = Literal["reward", "cost"]


@dataclass(frozen=True)
class Units:
    """The affine map from internal rewards to the user's units, stored with the MDP and applied to every answer.

    Internally a reward per step is maximised. The user's reward per step is `sign * (internal + offset)`
    (sign -1: costs), and one step lasts `step_duration` of the user's time (1/Λ after uniformisation),
    so the user's gain is `sign * (internal gain + offset) / step_duration`. Bias, span and regret are
    amounts, not rates: only their sign changes.

    Parameters
    ----------
    objective : {"reward", "cost"}
        Whether the user maximises rewards or minimises costs.
    offset : float
        Added to internal rewards.
    step_duration : float
        The length of a step in the user's time.
    continuous : bool
        Whether time is continuous.

    Examples
    --------
    >>> Units("cost", offset=-10.0, step_duration=0.5).gain(4.0)
    12.0
    """

    objective: Objective = "reward"
    offset: float = 0.0
    step_duration: float = 1.0
    continuous: bool = False
    """Whether time is continuous (built from rates): then gains are per unit of time even if a step lasts 1."""

    @property
    def sign(self) -> float:
        """+1 for rewards, -1 for costs."""
        return 1.0 if self.objective == "reward" else -1.0

    def gain(self, internal: float) -> float:
        """Convert a gain.

        Parameters
        ----------
        internal : float
            An internal gain, per step.

        Returns
        -------
        float
            The user's gain: average reward or cost per unit of time.
        """
        return self.sign * (internal + self.offset) / self.step_duration

    def gain_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Convert a bracket on the gain.

        Parameters
        ----------
        low, high : float
            The ends of an internal bracket, per step.

        Returns
        -------
        tuple of float
            The user's bracket, in increasing order, widened for the rounding of the conversion itself.
        """
        ends = self.gain(low), self.gain(high)
        room = 0.0 if self.is_plain else self.rounding(max(abs(low), abs(high))) / self.step_duration + SMALLEST_ROOM
        return min(ends) - room, max(ends) + room

    @property
    def is_plain(self) -> bool:
        """Whether the map changes no more than the sign."""
        return self.offset == 0.0 and self.step_duration == 1.0

    def rounding(self, largest: float) -> float:
        """Bound the rounding error of `gain`, per step.

        Parameters
        ----------
        largest : float
            A bound on the absolute internal gain.

        Returns
        -------
        float
        """
        return 4 * 2.0**-53 * (2 * largest + 2 * abs(self.offset))

    def amount(self, internal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert amounts, such as a bias.

        Parameters
        ----------
        internal : ndarray
            Internal values.

        Returns
        -------
        ndarray
            In the user's units; for costs, high numbers are bad.
        """
        return internal if self.objective == "reward" else 0.0 - internal

    def reward(self, internal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert one-step rewards.

        Parameters
        ----------
        internal : ndarray
            Internal rewards.

        Returns
        -------
        ndarray
            Rewards (or costs) in the user's units.
        """
        return self.sign * (internal + self.offset) + 0.0

    def internal_precision(self, precision: float) -> float:
        """Convert the width of a bracket on the gain to internal units.

        Parameters
        ----------
        precision : float
            The width in the user's units.

        Returns
        -------
        float
        """
        return precision * self.step_duration

    @property
    def gain_name(self) -> str:
        """What to call the gain in an output."""
        kind = "reward" if self.objective == "reward" else "cost"
        return f"average {kind} per {'unit of time' if self.continuous else 'step'}"
