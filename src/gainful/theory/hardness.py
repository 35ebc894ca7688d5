"""How hard an MDP is to learn: the quantities that regret bounds depend on, with honest limits on their cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from gainful.errors import GainfulError
from gainful.mdp.ergodicity import is_ergodic
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import recurrent_classes
from gainful.planning.evaluation import chain_of
from gainful.planning.hitting import hitting_times
from gainful.planning.optimality_gaps import gaps_at, precise_plan
from gainful.theory.asymptotic import Unknown, asymptotic_slope
from gainful.theory.local_hardness import effective_supports, local_diameters

MAX_STATES = 500
"""States up to which quantities that cost S linear systems, or all eigenvalues, are computed."""


@dataclass(frozen=True)
class Hardness:
    """What makes an MDP hard to learn; None where a quantity does not exist or would take too long.

    Attributes
    ----------
    ergodic : bool or None
        Whether every policy visits every state again and again.
    least_gap : float
        The smallest positive optimality gap: how close the best mistake is.
    inverse_gaps : float
        Σ 1/Δ(s,a) over pairs of positive gap, per unit of reward.
    span : float
        The span of the optimal bias, in units of reward.
    variance : float
        The largest variance of h*(next state) over pairs, in squared units of reward.
    support : float
        The largest effective support L(s,a) = (Σ sqrt(p(1-p)))² of a pair (Bourel, Maillard & Talebi 2020, UCRL3).
    local_diameter : float or None
        The largest over states s of the time it takes at most to get from one possible next state of s to another
        (the same paper).
    diameter : float or None
        The largest over pairs of states of the least expected time between them; infinite if some cannot be reached.
    relaxation : float or None
        1/(1 - |λ₂|) for the second largest eigenvalue of the optimal policy's chain on its recurrent class: steps until
        it forgets where it started, by a factor e; infinite for a periodic chain.
    slope : float or None
        The asymptotic lower bound on regret per unit of ln T (`asymptotic_slope`); None unless ergodic.
    skipped : tuple of str
        Why quantities are None, a sentence each.

    Examples
    --------
    >>> import gainful as gf
    >>> found = hardness(gf.environments.riverswim(6))
    >>> found.ergodic, round(found.local_diameter, 2), round(found.support, 2), found.slope
    (False, 6.66, 1.4, None)
    """

    ergodic: bool | None
    least_gap: float
    inverse_gaps: float
    span: float
    variance: float
    support: float
    local_diameter: float | None
    diameter: float | None
    relaxation: float | None
    slope: float | None
    skipped: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values for JSON; infinite numbers become None, and are said in `skipped`.

        Returns
        -------
        dict
        """
        found = dict(self.__dict__)
        infinite = [name for name, value in found.items() if isinstance(value, float) and math.isinf(value)]
        found |= dict.fromkeys(infinite)
        found["skipped"] = [*self.skipped, *(f"{name} is infinite" for name in infinite)]
        return found


def hardness(mdp: MDP, *, max_states: int = MAX_STATES) -> Hardness:
    """Measure how hard an MDP is to learn.

    Parameters
    ----------
    mdp : MDP
        A process whose optimal gain does not depend on the start.
    max_states : int
        Diameters and mixing cost S linear systems and all eigenvalues of a matrix; above this number of states they are
        left out.

    Returns
    -------
    Hardness

    Raises
    ------
    MultichainError
        If the optimal gain depends on the start.
    PlanningError
        If the gaps cannot be computed to any useful precision.

    Examples
    --------
    >>> import gainful as gf
    >>> hardness(gf.environments.toy3d()).ergodic
    False
    """
    require_mdp(mdp)
    skipped: list[str] = []

    def unless(reason: str, compute: Callable[[], Any]) -> Any:
        """The value, or None with the reason if there is one or the computation gives up."""
        if reason:
            skipped.append(reason)
            return None
        try:
            return compute()
        except GainfulError as error:
            skipped.append(str(error))
            return None

    best, precision = precise_plan(mdp)
    gaps = gaps_at(mdp, best, precision)
    h, positive = mdp.units.amount(best.bias), gaps[gaps > 0.0]
    large = f"more than {max_states:,} states" if mdp.n_states > max_states else ""
    times = unless(f"diameters: {large}" if large else "", lambda: hitting_times(mdp, max_states=max_states))
    ergodic = unless("", lambda: is_ergodic(mdp))
    slope = None
    if ergodic and not large:
        unknown: Unknown = "product" if mdp.entry_rewards is None else "joint"
        slope = unless("", lambda: asymptotic_slope(mdp, unknown=unknown).slope)
    relaxation = unless(f"mixing: {large}" if large else "", lambda: _relaxation(mdp, best.policy))
    return Hardness(
        ergodic=ergodic,
        least_gap=float(positive.min()) if positive.size else 0.0,
        inverse_gaps=float(np.sum(1.0 / positive)),
        span=float(np.ptp(h)),
        variance=_largest_variance(mdp, h),
        support=float(effective_supports(mdp).max()),
        local_diameter=None if times is None else float(local_diameters(mdp, times).max()),
        diameter=None if times is None else float(times.max()),
        relaxation=relaxation,
        slope=slope,
        skipped=tuple(skipped),
    )


def _largest_variance(mdp: MDP, h: Any) -> float:
    P = mdp.matrix()
    centred = h - h.min()
    mean = P @ centred
    pairs = mdp.allowed.reshape(-1)
    return float(np.maximum(P @ centred**2 - mean**2, 0.0)[pairs].max())


def _relaxation(mdp: MDP, policy: Any) -> float:
    """1/(1 - |λ₂|) of the policy's chain on its largest recurrent class."""
    P, _ = chain_of(mdp, policy)
    classes, _ = recurrent_classes(P)
    inside = max(classes, key=len)
    if len(inside) == 1:
        return 1.0
    sizes = np.sort(np.abs(scipy.linalg.eigvals(P[inside][:, inside].toarray())))[::-1]
    return 1.0 / (1.0 - float(sizes[1])) if sizes[1] < 1.0 - 1e-12 else math.inf
