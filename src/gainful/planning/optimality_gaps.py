"""What each action loses against the optimum: the terms of the expected regret."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful.errors import PrecisionError
from gainful.mdp.model import MDP, require_mdp
from gainful.planning.plan import Plan
from gainful.planning.solve import solve

FIRST_EXPONENT, LAST_EXPONENT = -10, -6
"""Exponents of the precisions to ask `solve` for, relative to the range of rewards: the first that it can certify."""
NOISE_FACTOR = 100.0
"""Gaps below this many times the precision are 0."""


def optimality_gaps(mdp: MDP) -> NDArray[np.float64]:
    r"""What each action loses against the optimal policy, in the long run.

    gap(s,a) = g* + h*(s) - r(s,a) - p(·|s,a)·h* ≥ 0, and 0 for an action that the optimality equation chooses. The sum
    of the gaps of the pairs that an agent plays is its expected regret (`Run.expected_regret`). Its expectation is that
    of T·g* - Σ r_t up to sp(h*): h*(s_t) - p·h* sums to h*(s_1) - h*(s_{T+1}) and a martingale.

    g* and h* are those of `solve` with a precision of 1e-10 times the range of rewards, and gaps below 1e-8 times
    that range are 0. Where float64 cannot certify that precision, both numbers are ten times larger, and so on up to
    1e-6 and 1e-4. The solution h* of the optimality equation need not be unique; that of `solve` is meant.

    Parameters
    ----------
    mdp : MDP
        A process whose optimal gain does not depend on the start.

    Returns
    -------
    ndarray, shape (S, A)
        The gaps, per step, in the units of the rewards or costs; NaN for actions that are not allowed.

    Raises
    ------
    MultichainError
        If the optimal gain depends on the start.
    PlanningError
        If `solve` finds no answer of the precision.

    Examples
    --------
    >>> import gainful as gf
    >>> gaps = gf.optimality_gaps(gf.environments.riverswim(6))
    >>> bool((gaps[:, 1] == 0.0).all()), gaps[:, 0].round(2).tolist()  # swimming right is optimal everywhere
    (True, [0.42, 1.14, 1.76, 1.84, 1.86, 1.86])
    """
    require_mdp(mdp)
    if _constant(mdp):
        return np.where(mdp.allowed, 0.0, np.nan)
    return gaps_at(mdp, *precise_plan(mdp))


def _constant(mdp: MDP) -> bool:
    """Whether every reward is the same."""
    low, high = mdp.reward_range
    return not 10.0**FIRST_EXPONENT * (high - low) > 0.0


def precise_plan(mdp: MDP) -> tuple[Plan, float]:
    """The optimal plan, as precise as float64 can certify, and its precision per step."""
    low, high = mdp.reward_range
    duration = mdp.units.step_duration
    if _constant(mdp):
        return solve(mdp, precision=max(1e-8, 1e-10 * abs(high) / duration)), np.inf
    for exponent in range(FIRST_EXPONENT, LAST_EXPONENT + 1):
        precision = 10.0**exponent * (high - low)
        try:
            best = solve(mdp, precision=precision / duration)
        except PrecisionError:
            if exponent == LAST_EXPONENT:
                raise
        else:
            break
    return best, precision


def gaps_at(mdp: MDP, best: Plan, precision: float) -> NDArray[np.float64]:
    """The gaps (S,A) at the gain and bias of a plan; those below the noise of its precision are 0."""
    h = mdp.units.amount(best.bias)  # of rewards to be maximised, as `q_values` needs it
    gain = mdp.units.sign * best.gain * mdp.units.step_duration
    gaps = np.where(mdp.allowed, gain + h[:, None] - mdp.q_values(h), np.nan)
    gaps[gaps < NOISE_FACTOR * precision] = 0.0
    return gaps
