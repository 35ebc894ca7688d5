"""Whether an environment that is known meets what a theorem assumes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gainful.agents.guarantee import Guarantee
from gainful.agents.lipschitz_bound import guarantee_after
from gainful.errors import GainfulError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.bias_uniqueness import bias_is_unique

SPAN_MARGIN = 1.001
"""A span is known up to the precision of a plan: c is too small if the span exceeds it by more than this factor."""
ORACLE_MARGIN = 1.01
"""The same for the span of the bias of a continuous environment, which is that of a fine grid."""
CHECKED_UP_TO = 5000
"""States up to which conditions are checked that need more than the span."""


def guarantee_in(agent: Any, environment: Any, span: float | None) -> Guarantee:
    """The guarantee of an agent after what it has seen, void if the environment does not meet a condition of it.

    Parameters
    ----------
    agent : Agent
        Any agent.
    environment : object
        Where it has played: an MDP, a continuous environment, or anything else, of which nothing is known.
    span : float or None
        sp(h*), in units of reward; None if it is unknown.

    Returns
    -------
    Guarantee

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> print(guarantee_in(gf.SCALPlus.for_mdp(river, span=3.0), river, gf.solve(river).span))
    no guarantee: c = 3 is below the span of the optimal bias, 6.31
    >>> guarantee_in(gf.SCALPlus.for_mdp(river, span=7.0), river, gf.solve(river).span).holds
    True
    """
    promised = guarantee_after(agent)
    reason = unmet_condition(promised, agent, environment, span) if promised.holds else ""
    return replace(promised, reason_void=reason) if reason else promised


def unmet_condition(guarantee: Guarantee, agent: Any, environment: Any, span: float | None) -> str:
    """The condition of a theorem that an environment does not meet, in words; empty if none is known.

    Parameters
    ----------
    guarantee : Guarantee
        What the theorem assumes.
    agent, environment, span
        As for `guarantee_in`.

    Returns
    -------
    str
    """
    if not isinstance(environment, MDP):
        return _rougher(guarantee, agent, environment) or _too_small_span(guarantee.span, span, ORACLE_MARGIN)
    if guarantee.communicating and structure(environment) != "communicating":
        return "some states cannot be reached from others; give kl-scal-plus a bound (--span NUMBER), or take tucrl"
    reason = _too_small_span(guarantee.span, span, SPAN_MARGIN)
    return reason if reason and _only_bias(environment) else ""


def _too_small_span(told: float | None, span: float | None, margin: float) -> str:
    if told is None or span is None or span <= margin * told:
        return ""
    return f"c = {told:.6g} is below the span of the optimal bias, {span:.3g}"


def _only_bias(mdp: MDP) -> bool:
    """Whether no other solution of the optimality equation may have a smaller span."""
    if mdp.n_states > CHECKED_UP_TO:
        return False
    try:
        return bias_is_unique(mdp)
    except GainfulError:
        return False


def _rougher(guarantee: Guarantee, agent: Any, environment: Any) -> str:
    """Whether an environment has a larger L, or a smaller α, on the same box than the agent was told; in words."""
    true_l, true_alpha = getattr(environment, "lipschitz", None), getattr(environment, "holder", None)
    partition = getattr(agent, "partition", None)
    if guarantee.smoothness is None or true_l is None or true_alpha is None or partition is None:
        return ""
    ends, unit = (tuple(partition.low), tuple(partition.high)), ((0.0,) * partition.dim, (1.0,) * partition.dim)
    same_box = ends in (unit, (tuple(environment.low), tuple(environment.high)))
    same_rewards = (agent.reward_min, agent.reward_max) == (environment.reward_min, environment.reward_max)
    L, alpha = guarantee.smoothness
    if not (same_box and same_rewards) or (true_l * (1.0 - 1e-12) <= L and true_alpha >= alpha):
        return ""
    return (
        f"L = {L:.6g}, α = {alpha:g} are smoother than the environment, which has L = {true_l:.6g}, α = {true_alpha:g}"
    )
