"""Semi-Markov processes: where the process goes next and how long it stays, on average, made into rates.

The gain per unit of time of a policy is the ratio of what it earns to how long it takes, per jump in the long run. Both
depend on the mean times alone, whatever their distribution, so rates p(s'|s,a)/τ(s,a) have the same gain (the
data transformation of Schweitzer 1971; Puterman 1994, sec. 11.4; Tijms 2003, sec. 7.3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidMDPError
from gainful.mdp.rows import SUM_TOLERANCE, as_float


def mean_times(times: ArrayLike, n_states: int, n_actions: int) -> NDArray[np.float64]:
    """(S*A,) mean sojourn times, from one per pair or one per state."""
    table = as_float("sojourn_times", times)
    if table.shape == (n_states,):
        table = np.repeat(table, n_actions)
    elif table.shape == (n_states, n_actions):
        table = table.reshape(-1)
    else:
        raise InvalidMDPError(
            f"sojourn_times have shape {table.shape}",
            name="sojourn_times",
            found=table.shape,
            expected=f"(S, A) = ({n_states}, {n_actions}) or ({n_states},)",
        )
    return table


def rates_of(
    pair: NDArray[np.int64],
    probability: NDArray[np.float64],
    times: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    name: Callable[[int], str],
) -> NDArray[np.float64]:
    """The rate p/τ of each jump; an error unless the probabilities of every allowed pair sum to 1 and τ is positive."""
    sums = np.bincount(pair, weights=probability, minlength=times.size)
    wrong = np.flatnonzero(allowed & ~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
    if wrong.size or np.any(probability < 0.0):
        k = int(wrong[0]) if wrong.size else int(pair[np.argmax(probability < 0.0)])
        raise InvalidMDPError(
            f"with sojourn times, rates are probabilities of the next state; those of {name(k)} sum to {sums[k]:.10g}",
            name="rates",
            found=float(sums[k]),
            expected=f"numbers of at least 0 that sum to 1 (tolerance {SUM_TOLERANCE:g})",
        )
    bad = np.flatnonzero(allowed & ~((times > 0.0) & (times < np.inf)))
    if bad.size:
        raise InvalidMDPError(
            f"the sojourn time of {name(int(bad[0]))} is {times[bad[0]]:g}",
            name="sojourn_times",
            found=float(times[bad[0]]),
            expected="a positive number",
            hint="leave out a state that is left at once, and lead to where it leads",
        )
    return probability / sums[pair] / times[pair]
