"""What all kernels that step have in common: the length of a launch, its end, checkpoints and sums of rewards.

One thread steps one run until its episode ends, it reaches a checkpoint, or the launch has made its steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.simulation.counters import total_over_pairs
from gainful.simulation.device.runs import FINISHED, NEEDS_PLAN, DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.repeated_sum import repeated_sum
from gainful.simulation.transition_table import DETERMINISTIC, RewardLaw

MIN_LAUNCH_STEPS = 16
"""The fewest steps of a launch. Later launches make a fraction of the steps made before, so that few threads idle."""
MAX_LAUNCH_STEPS = 1 << 30
"""The most steps of a launch: counters have 32 bits."""
STEPPING_REGISTERS = 64
"""Registers of a thread that steps: with fewer, values are spilled; with more, fewer threads run at a time."""


class StepRule(NamedTuple):
    """How agents step, apart from their plans."""

    reward_min: float
    """The agents' least reward."""
    steps_divisor: int
    """A launch makes 1/steps_divisor of the steps made before."""
    cumulative: Any
    """(S, A) cumulative probabilities of a policy that draws actions; else empty."""
    key: Any
    """(R,) the random stream from which a run draws its actions."""


@inlined
def draw_number(t: Any) -> Any:
    """The index of the random number that chooses the action at step t, for agents that plan only once."""
    return np.uint64(2 * t + (t == 0))


@inlined
def steps_of_launch(step: Any, checkpoint: Any, steps_divisor: int) -> Any:
    """How many steps a run makes in this launch, if its episode does not end before."""
    return min(checkpoint - step, min(max(MIN_LAUNCH_STEPS, step // steps_divisor), MAX_LAUNCH_STEPS))


@inlined
def record_checkpoint(law: RewardLaw, curves: DeviceCurves, visits: Any, i: Any, run: int, earned: float) -> None:
    """Record the rewards and the expected regret of a run at checkpoint i."""
    curves.rewards[i, run] = earned
    if len(law.kind) == DETERMINISTIC:
        curves.means[i, run] = earned
    else:
        curves.means[i, run] = total_over_pairs(visits, curves.zeros, law.means)
    curves.expected_regret[i, run] = total_over_pairs(visits, curves.zeros, curves.gaps)


@inlined
def pass_checkpoint(runs: DeviceRuns, curves: DeviceCurves, run: int, passed: Any) -> None:
    """Advance a run to the next checkpoint; it is finished if checkpoint `passed` was the last."""
    runs.passed[run] = passed + 1
    if passed + 1 == curves.checkpoints.size:
        runs.status[run] = FINISHED


@inlined
def end_launch(
    law: RewardLaw, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, run: int, t: Any, over: bool
) -> None:
    """Store the step that a run has reached, and record a checkpoint; `over` says whether its episode is over."""
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_PLAN
    passed = np.int64(runs.passed[run])
    if t == curves.checkpoints[passed]:
        record_checkpoint(law, curves, counts.visits[run], passed, run, runs.earned[run])
        pass_checkpoint(runs, curves, run, passed)


@inlined
def bernoulli_sum(total: float, successes: float, failures: float, success: float, failure: float) -> float:
    """A sum of rewards after `successes` further rewards of `success` and `failures` of `failure`."""
    return total + (successes * success + failures * failure)


@inlined
def add_deterministic_rewards(
    law: RewardLaw, counts: DeviceCounts, run: int, k: Any, n: Any, reward_min: float
) -> None:
    """Add the rewards of n executions of pair k, each of them the mean."""
    shifted = law.means[k] - reward_min
    counts.reward_sum[run, k] = repeated_sum(counts.reward_sum[run, k], shifted, n)
    if counts.reward_squares.size > 0:
        counts.reward_squares[run, k] = repeated_sum(counts.reward_squares[run, k], shifted * shifted, n)


@inlined
def add_bernoulli_rewards(
    law: RewardLaw, counts: DeviceCounts, run: int, k: Any, successes: float, failures: float, reward_min: float
) -> None:
    """Add Bernoulli rewards of pair k: a success gives `law.success`, a failure 0."""
    success, failure = law.success - reward_min, 0.0 - reward_min
    counts.reward_sum[run, k] = bernoulli_sum(counts.reward_sum[run, k], successes, failures, success, failure)
    if counts.reward_squares.size > 0:
        squares = counts.reward_squares[run, k]
        squares = bernoulli_sum(squares, successes, failures, success * success, failure * failure)
        counts.reward_squares[run, k] = squares
