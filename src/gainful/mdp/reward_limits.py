"""Rewards and durations that are too large, or too small, to compute with in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import REWARD_LIMIT
from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.parts import each, stretches
from gainful.mdp.units import Units

_SHIFTED = 4.0  # an MDP made from a valid one may have its rewards shifted by their range
DURATION_LIMIT = 1e150
"""A step lasts at most this long, and at least 1/this."""


def check_step_duration(units: Units) -> None:
    """InvalidArgumentError unless gains per unit of time can be computed."""
    if not 1.0 / DURATION_LIMIT <= units.step_duration <= DURATION_LIMIT:
        raise InvalidArgumentError(
            "step_duration",
            units.step_duration,
            f"a number in [{1.0 / DURATION_LIMIT:g}, {DURATION_LIMIT:g}]",
            "use another unit of time",
        )


def check_sizes(
    rewards: NDArray[np.float64], units: Units, given: bool, things: str, place: Callable[[int], str]
) -> None:
    """InvalidMDPError if a reward is not finite, or beyond the limit, per step or per unit of time.

    `given` says that they are as the user gave them, but for the sign; `things` are what the rewards are of,
    and `place(i)` names that of entry i in the message.
    """
    room = 1.0 if given else _SHIFTED
    limit = room * REWARD_LIMIT * min(1.0, units.step_duration)

    def within(own: slice) -> bool:
        return bool(rewards[own].min() >= -limit and rewards[own].max() <= limit)  # False for NaN

    if all(each(within, stretches(rewards.size))):
        return
    bad = np.flatnonzero(~(np.abs(rewards) <= limit))
    found = float(units.sign * rewards[bad[0]])
    wrong = f"{bad.size} of {rewards.size} {things} are wrong"
    if not np.isfinite(found):
        problem = f"{place(int(bad[0]))} is {found}"
        raise InvalidMDPError(problem, name="R", found=found, expected="a finite number", hint=wrong)
    per_time = f", and a step lasts {units.step_duration:g}" if units.step_duration < 1.0 else ""
    raise InvalidMDPError(
        f"{place(int(bad[0]))} is {found:g}{per_time}",
        name="R",
        found=found,
        expected=f"an absolute value of at most {REWARD_LIMIT:g}",
        hint="gains and their rounding errors would leave the range of float64: use a larger unit of money; " + wrong,
    )
