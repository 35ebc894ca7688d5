"""How slowly regret must grow in the end: the constant of Burnetas and Katehakis for ergodic MDPs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from gainful.arguments import choice
from gainful.errors import InvalidArgumentError
from gainful.mdp.ergodicity import avoidable_state
from gainful.mdp.model import MDP
from gainful.planning.optimality_gaps import gaps_at, precise_plan
from gainful.theory.kl import binary_kl, kinf

if TYPE_CHECKING:
    import pandas as pd

Unknown: TypeAlias = Literal["transitions", "product", "joint"]
"""What a learner does not know: the transitions only, both laws of a pair, or their joint law."""


@dataclass(frozen=True, repr=False)
class AsymptoticSlope:
    """The slope of regret over ln T that no consistent learner can stay below in the end.

    Attributes
    ----------
    slope : float
        C(M) = Σ Δ(s,a) / K(s,a) over pairs of positive gap and finite information, in units of reward.
    gaps : ndarray of shape (S, A)
        Δ(s,a), NaN for actions that are not allowed.
    information : ndarray of shape (S, A)
        K(s,a), what one visit of a pair tells at least against every model in which it would be optimal; infinite where
        there is no such model, NaN where the gap is 0 or the action is not allowed.

    Examples
    --------
    >>> import gainful as gf
    >>> found = asymptotic_slope(gf.environments.riverswim_ergodic(6))
    >>> found
    AsymptoticSlope(26.3585 per unit of ln T)
    """

    slope: float
    gaps: NDArray[np.float64]
    information: NDArray[np.float64]
    _mdp: MDP

    def to_frame(self) -> pd.DataFrame:
        """Give what each pair contributes, the largest first.

        Returns
        -------
        DataFrame
            With the columns state, action, gap, information and slope.
        """
        import pandas as pd

        states, actions = np.nonzero(self.gaps > 0.0)
        table = pd.DataFrame(
            {
                "state": [self._mdp.state_name(int(s)) for s in states],
                "action": [self._mdp.action_name(int(a)) for a in actions],
                "gap": self.gaps[states, actions],
                "information": self.information[states, actions],
            }
        )
        table["slope"] = table["gap"] / table["information"]
        return table.sort_values("slope", ascending=False, ignore_index=True, kind="stable")

    def __repr__(self) -> str:
        return f"AsymptoticSlope({self.slope:.6g} per unit of ln T)"


def asymptotic_slope(mdp: MDP, *, unknown: Unknown = "product") -> AsymptoticSlope:
    """The asymptotic lower bound on regret in an ergodic MDP: liminf R(T)/ln T ≥ C(M) for every consistent learner.

    C(M) = Σ Δ(s,a)/K(s,a) over the pairs with Δ = g* + h*(s) - r(s,a) - p(·|s,a)·h* > 0, where K is the least
    Kullback-Leibler divergence from the laws of the pair to laws under which it would be better than optimal:
    mean + q·h* > γ = g* + h*(s) (Burnetas & Katehakis 1997, Optimal adaptive policies for Markov decision processes;
    Pesquerel & Maillard 2022, IMED-RL, theorem 1). It is computed in one dimension:

    - transitions unknown: kinf(p, h*, γ - r);
    - product, rewards and next states independent: the minimum over the mean m of the reward law of its divergence plus
      kinf(p, h*, γ - m). The divergence is kl(r, m) for Bernoulli rewards and, since a learner only knows that rewards
      are at most r_max, ln((r_max - r)/(r_max - m)) for deterministic ones;
    - joint: kinf over the atoms R + h*(Y), with values up to r_max + max h*. It is the index of IMED-RL.

    It is a slope at infinity, and no bound on the regret at any T: an optimal learner approaches it from below.

    Parameters
    ----------
    mdp : MDP
        An ergodic process (`gainful.mdp.ergodicity.is_ergodic`).
    unknown : {"transitions", "product", "joint"}
        What the learner does not know; the more is unknown, the larger is the slope.

    Returns
    -------
    AsymptoticSlope
        The slope and what each pair contributes to it. Gaps that are 0 to within the precision of the solver do not.

    Raises
    ------
    InvalidArgumentError
        If the MDP is not ergodic: the formula does not hold there, and nothing else that can be computed is known.

    Examples
    --------
    One state is a bandit, and the slope that of Lai and Robbins:

    >>> import numpy as np
    >>> bandit = MDP(np.ones((1, 3, 1)), [[0.3, 0.5, 0.7]], reward_law="bernoulli")
    >>> round(asymptotic_slope(bandit).slope, 6)
    3.474414
    """
    choice("unknown", unknown, ("transitions", "product", "joint"))
    _require_ergodic(mdp)
    if mdp.entry_rewards is not None and unknown == "product":
        raise InvalidArgumentError(
            "unknown",
            unknown,
            "'joint' or 'transitions'",
            problem="rewards of this MDP depend on the next state, so the two laws are not independent",
        )
    best, precision = precise_plan(mdp)
    gaps = gaps_at(mdp, best, precision)
    h = mdp.units.amount(best.bias)
    gain = mdp.units.sign * best.gain * mdp.units.step_duration
    information = np.full(gaps.shape, np.nan)
    for s, a in zip(*np.nonzero(gaps > 0.0), strict=True):
        information[s, a] = _information(mdp, _Pair(mdp, int(s), int(a), h, float(gain + h[s])), unknown)
    some = (gaps > 0.0) & np.isfinite(information)
    return AsymptoticSlope(float(np.sum(gaps[some] / information[some])), gaps, information, mdp)


def _require_ergodic(mdp: MDP) -> None:
    avoided = avoidable_state(mdp)
    if avoided is not None:
        raise InvalidArgumentError(
            "mdp",
            mdp.name or "an MDP",
            "an ergodic process, in which every policy visits every state",
            hint="no constant that can be computed is known for other processes",
            problem=f"a policy may never visit state {mdp.state_name(avoided)!r}",
        )


@dataclass(frozen=True)
class _Pair:
    """A pair in the units of internal rewards: its next states, the values after it, and what it would need."""

    mdp: MDP
    s: int
    a: int
    h: NDArray[np.float64]
    needed: float

    @property
    def row(self) -> NDArray[np.float64]:
        """(S,) p(·|s,a)."""
        mdp, k = self.mdp, self.s * self.mdp.n_actions + self.a
        row = np.zeros(mdp.n_states)
        entries = slice(mdp.indptr[k], mdp.indptr[k + 1])
        row[mdp.indices[entries]] = mdp.probabilities[entries]
        return row

    @property
    def reward(self) -> float:
        """The mean reward."""
        mdp = self.mdp
        return float(mdp.pair_rewards[self.s * mdp.n_actions + self.a]) + mdp.units.offset

    @property
    def entry_rewards(self) -> NDArray[np.float64]:
        """(S,) the reward before each next state."""
        mdp, k = self.mdp, self.s * self.mdp.n_actions + self.a
        rewards = np.full(mdp.n_states, self.reward)
        if mdp.entry_rewards is not None:
            entries = slice(mdp.indptr[k], mdp.indptr[k + 1])
            rewards[mdp.indices[entries]] = mdp.entry_rewards[entries] + mdp.units.offset
        return rewards


def _information(mdp: MDP, pair: _Pair, unknown: Unknown) -> float:
    if unknown == "transitions":
        after = pair.h + (pair.entry_rewards - pair.reward if mdp.entry_rewards is not None else 0.0)
        return kinf(pair.row, after, pair.needed - pair.reward)
    if unknown == "joint":
        return _joint_information(mdp, pair)
    return _product_information(mdp, pair)


def _joint_information(mdp: MDP, pair: _Pair) -> float:
    """Kinf over the atoms R + h*(Y), any value up to r_max + max h* being possible."""
    low, high = mdp.reward_range
    row, h = pair.row, pair.h
    if mdp.reward_law == "bernoulli":
        chance = (pair.reward - low) / (high - low)
        weights, atoms = np.concatenate([row * (1.0 - chance), row * chance]), np.concatenate([h + low, h + high])
    else:
        weights, atoms = row, h + pair.entry_rewards
    return kinf(np.append(weights, 0.0), np.append(atoms, high + h.max()), pair.needed)


def _product_information(mdp: MDP, pair: _Pair) -> float:
    """Min over m of the divergence of a reward law of mean m plus kinf(p, h*, γ - m), which is convex in m."""
    low, high = mdp.reward_range
    row, h, needed, r = pair.row, pair.h, pair.needed, pair.reward

    def divergence(m: float) -> float:
        if mdp.reward_law == "bernoulli":
            return float(binary_kl((r - low) / (high - low), (m - low) / (high - low)))
        return math.log((high - r) / (high - m)) if m < high else (0.0 if r == high else math.inf)

    def total(m: float) -> float:
        return divergence(m) + kinf(row, h, needed - m)

    first, last = max(r, needed - float(h.max())), min(high, needed - float(row @ h))
    if first > last:
        return math.inf
    ends = min(total(first), total(last))
    if last - first <= 0.0:
        return ends
    found = minimize_scalar(total, bounds=(first, last), method="bounded", options={"xatol": 1e-12 * (last - first)})
    return min(ends, float(found.fun))
