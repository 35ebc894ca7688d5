"""Performance profiles: on which share of the problems an agent comes within a factor of the best one.

Source: Dolan and Moré (2002), Benchmarking Optimization Software with Performance Profiles, Mathematical Programming
91(2).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from gainful.experiments.run_values import Floats


def factors_of_best(values: Mapping[str, Mapping[Hashable, float]]) -> dict[str, Floats]:
    r"""Every agent's regret on a problem over the least regret of any agent there.

    Parameters
    ----------
    values : mapping from agents to mappings from problems to regrets
        A problem is an environment with a seed. A problem that only one agent has compares nothing, and is left out;
        so are values that are NaN.

    Returns
    -------
    dict from agents to ndarray
        The factors r(agent, problem) = regret / least regret, in ascending order: 1 where the agent is the best. Where
        the least regret is not above 0, the factor is 1 for all that are not above 0, and ∞ for the others. The share
        of an agent's entries up to τ is its profile at τ.

    Examples
    --------
    >>> found = factors_of_best({"A": {1: 10.0, 2: 30.0}, "B": {1: 20.0, 2: 10.0, 3: 5.0}})
    >>> {agent: factors.tolist() for agent, factors in found.items()}
    {'A': [1.0, 3.0], 'B': [1.0, 2.0]}
    """
    known = {a: {p: v for p, v in mine.items() if np.isfinite(v)} for a, mine in values.items()}
    least: dict[Hashable, float] = {}
    shared: dict[Hashable, int] = {}
    for mine in known.values():
        for problem, value in mine.items():
            least[problem] = min(least.get(problem, np.inf), value)
            shared[problem] = shared.get(problem, 0) + 1
    found = {}
    for agent, mine in known.items():
        factors = [_factor(v, least[p]) for p, v in mine.items() if shared[p] > 1]
        if factors:
            found[agent] = np.sort(np.array(factors, dtype=np.float64))
    return found


def _factor(value: float, least: float) -> float:
    if least > 0.0:
        return value / least
    return 1.0 if value <= 0.0 else np.inf


def profile_curve(factors: Floats, end: float) -> tuple[Floats, Floats]:
    """The corners of a profile as steps from τ = 1 to `end`: (τ, share), where a share holds until the next τ.

    >>> tau, share = profile_curve(np.array([1.0, 3.0, 3.0, 50.0]), 10.0)
    >>> tau.tolist(), share.tolist()
    ([1.0, 3.0, 10.0], [0.25, 0.75, 0.75])
    """
    jumps = np.unique(factors[factors <= end])
    share = np.searchsorted(factors, jumps, side="right") / factors.size
    if jumps.size == 0 or jumps[0] > 1.0:
        jumps, share = np.append(1.0, jumps), np.append(0.0, share)
    if jumps[-1] < end:
        jumps, share = np.append(jumps, end), np.append(share, share[-1])
    return jumps, share


def profile_end(factors: Mapping[str, Floats], most: float = 1e4) -> float:
    """Where a drawing of profiles ends: a little after the last jump, at most at `most` and at least at 2."""
    finite = [f[np.isfinite(f)] for f in factors.values()]
    last = max((float(f[-1]) for f in finite if f.size), default=2.0)
    return float(min(max(2.0, 1.1 * last), most))
