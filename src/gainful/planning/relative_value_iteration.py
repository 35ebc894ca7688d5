"""Relative value iteration: the plain, compiled, certified baseline."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from gainful._compiled import kernel
from gainful.errors import MultichainError, NotConvergedError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.arguments import (
    WORTH_A_GPU,
    checked_damping,
    checked_device,
    checked_precision,
    positive_cap,
    precision_error,
    start_vector,
)
from gainful.planning.batches import resumed_sweeps
from gainful.planning.bellman import Floats, Ints, SparseModel, StoppingRule, sparse_model, sweep
from gainful.planning.plan import Plan, make_plan
from gainful.planning.policy_iteration import EXACT_UP_TO, policy_iteration
from gainful.planning.rounding import is_narrow, longest_row, reward_scale, roundoff, slack_at

BATCH_THERE = 1024
"""Sweeps of a GPU between two looks of the CPU."""


@kernel
def damped_sweeps(
    model: SparseModel, v: Floats, w: Floats, act: Ints, rule: StoppingRule, resumes: bool
) -> tuple[int, float, float, float, bool]:
    """Sweep until the range of Lv - v plus twice the rounding slack is at most the target; v is that of the last test.

    Returns the sweeps made, the range, the slack and whether the target was met. The loop also stops where nothing but
    rounding is left. It begins with a sweep at v, or, if it resumes, with the step from v to which w = Lv leads.
    """
    n = v.size
    damping, target, unit, max_reward, max_sweeps = rule
    done = 0
    while True:
        if resumes or done > 0:
            pin = v[0] + damping * (w[0] - v[0])
            for s in range(n):
                v[s] += damping * (w[s] - v[s]) - pin
        low, high = sweep(model, v, np.uint64(0), np.uint64(n), w, act)
        done += 1
        largest = 0.0
        for s in range(n):
            largest = max(largest, abs(v[s]))
        slack = slack_at(unit, largest, max_reward)
        if is_narrow(low, high, slack, target):
            return done, low, high, slack, True
        if done == max_sweeps or not high - low > 2.0 * slack:
            return done, low, high, slack, False


def relative_value_iteration(
    mdp: MDP,
    *,
    precision: float = 1e-8,
    max_sweeps: int = 100_000,
    damping: float = 0.5,
    start_values: ArrayLike | None = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
) -> Plan:
    r"""Optimal gain and bias by damped relative value iteration.

    Solves g + h(s) = max_a [r(s,a) + Σ_s' p(s'|s,a) h(s')], pinned by h(0) = 0, by v ← v + τ(Lv - v). Stops when the
    range of the Bellman residual, widened for rounding, is at most `precision`: then g* lies inside `gain_bounds`
    (Puterman 1994, sec. 8.5).

    Parameters
    ----------
    mdp : MDP
        A weakly communicating process.
    precision : float
        Width of the certified bracket on the gain, in the units of the rewards.
    max_sweeps : int
        Sweeps after which to give up.
    damping : float
        τ, the weight of the new value in (0, 1]; below 1 periodic chains converge too.
    start_values : array_like, shape (S,), optional
        Where to start, for example the bias of an earlier plan.
    device : {"cpu", "cuda", "auto"}
        Where to sweep. "cuda" needs an NVIDIA GPU and the extra `gainful[cuda]`; the plan has the same bits. "auto" is
        the GPU from ten million transitions on, if there is one, and else the CPU.

    Returns
    -------
    Plan
        Gain with its bracket, bias, greedy policy, sweeps.

    Raises
    ------
    NotConvergedError
        After `max_sweeps`; it carries the partial plan.
    MultichainError
        If the gain depends on the start.
    PrecisionError
        If float64 cannot certify the precision.

    Examples
    --------
    >>> import gainful as gf
    >>> plan = gf.relative_value_iteration(gf.environments.riverswim(6))
    >>> round(plan.gain, 4)
    0.4286
    """
    target = checked_precision(mdp, precision)
    checked_damping(damping)
    positive_cap("max_sweeps", max_sweeps)
    v = start_vector(mdp, start_values)
    sweep_on: Any
    if checked_device(device, mdp.n_transitions >= WORTH_A_GPU) == "cuda":
        from gainful.planning.device.sweeper import DeviceSweeper  # numba-cuda is an extra

        there = DeviceSweeper(mdp, None if start_values is None else v)
        sweep_on, vectors, batch = there.damped, there.vectors, BATCH_THERE
        unit, largest = roundoff(there.max_support), there.max_reward
    else:
        w, act = np.empty(mdp.n_states), np.zeros(mdp.n_states, dtype=np.int64)
        sweep_on, vectors = partial(damped_sweeps, sparse_model(mdp), v, w, act), lambda: (v, act)
        unit, largest, batch = roundoff(longest_row(mdp)), reward_scale(mdp), resumed_sweeps(mdp.n_transitions)
    done = 0
    while True:
        rule = StoppingRule(damping, target, unit, largest, min(batch, max_sweeps - done))
        sweeps, low, high, slack, met = sweep_on(rule, done > 0)
        done += sweeps
        plan = None
        if met or done >= max_sweeps or not high - low > 2 * slack:
            values, actions = vectors()
            plan = make_plan(
                mdp,
                low=low - slack,
                high=high + slack,
                values=values,
                actions=actions,
                sweeps=done,
                method="relative value iteration",
                own_values=True,
            )
        if met:
            assert plan is not None
            return plan
        if not high - low > 2 * slack:
            raise precision_error(mdp, precision, slack, plan)
        if done >= max_sweeps:
            found = structure(mdp)
            if found == "multichain" and mdp.n_states <= EXACT_UP_TO:
                policy_iteration(mdp, precision=precision)  # raises MultichainError, with gains, where they differ
            elif found == "multichain":
                raise MultichainError(f"the optimal gain may depend on the start: {found.describe()}", found.classes)
            raise NotConvergedError(
                f"span of the residual {(high - low) / mdp.units.step_duration:.1e} after {done} sweeps "
                f"(wanted {precision:.1e})",
                plan,
                name="max_sweeps",
                found=max_sweeps,
                hint="raise max_sweeps or use gf.solve",
            )
