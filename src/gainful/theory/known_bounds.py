"""Which agents have a regret bound that can be computed, and why the others have none."""

from __future__ import annotations

from gainful.arguments import choice
from gainful.errors import InvalidArgumentError, suggestion

BOUNDED_AGENTS = ("scal-plus", "c-scal-plus", "kl-scal-plus", "c-kl-scal-plus", "pmevi-dt", "ucrl2")
"""The agents of `gf.theory.regret_bound`, by name."""

WITHOUT_BOUND = {
    "ucrl3": (
        "the last term of its theorem, O(D·S²·A·ln²(T/δ)), is printed without a constant",
        "gf.theory.ucrl3_regret_terms, which computes the terms that have one, and docs/ucrl3.md",
    ),
    "imed-rl": (
        "its theorem is about T → ∞: C(M)·ln T + O((ln T)^(10/11)), without a constant for the rest",
        "gf.theory.asymptotic_slope(mdp, unknown='joint'), which computes C(M) of an ergodic MDP and bounds nothing at "
        "a given T",
    ),
    "balanced-kl-scal-plus": (
        "no bound on its regret is proven, only that no bound on the span that is large enough is given up",
        "docs/unknown_span.md; kl-scal-plus has a bound if the span or the diameter is known",
    ),
    "adaptive-kl-scal-plus": (
        "no bound on the regret is proven for cells that the data choose, only that plans are optimistic",
        "docs/adaptive_cells.md; c-kl-scal-plus has a bound on a uniform grid",
    ),
    "balanced-grids": (
        "no bound on the regret is proven for grids that share their counts",
        "docs/adaptive_cells.md; c-kl-scal-plus has a bound on one grid",
    ),
    "ucrl2b": (
        "its theorem is an order, Õ(r_max·sqrt(D·Γ·S·A·T)), without constants",
        "Fruit, Pirotta & Lazaric 2020",
    ),
    "kl-ucrl": (
        "its theorem is an order, Õ(r_max·D·S·sqrt(A·T)), without constants",
        "Filippi, Cappé & Garivier 2010",
    ),
    "scal": (
        "its theorem is an order, Õ(max{r_max, min{r_max·D, c}}·sqrt(Γ·S·A·T)), without constants",
        "Fruit, Pirotta, Lazaric & Ortner 2018; scal-plus has a bound",
    ),
    "tucrl": (
        "its theorem is an order, Õ(r_max·D_C·sqrt(Γ_C·S_C·A·T)), without constants",
        "Fruit, Pirotta & Lazaric 2018",
    ),
    "optimistic-q": (
        "its theorem is an order, Õ(sp·(S·A)^⅓·T^⅔), without constants",
        "Wei, Jafarnia-Jahromi, Luo, Sharma & Jain 2020",
    ),
    "psrl": (
        "its theorem is about the regret on average over the prior, not in a given MDP",
        "Ouyang, Gagrani, Nayyar & Jain 2017",
    ),
    "opt-psrl": ("its published bound was withdrawn by the authors", "Agrawal & Jia 2017"),
    "mbie-eb": ("its theorem counts steps of small discounted value and bounds no regret", "Strehl & Littman 2008"),
    "ucbvi": (
        "its theorem is for episodes of fixed length that begin anew, not for a continuing task",
        "Azar, Osband & Munos 2017",
    ),
    "count-bonus": ("nothing is proven about its bonus", "docs/howto/pseudo_counts.md"),
    "epsilon-greedy-q": ("nothing is proven: with a fixed ε its regret grows linearly", "docs/reference/agents.md"),
    "fixed": ("it does not learn", "gf.evaluate, which says what its policy loses at every step"),
    "uccrl": (
        "the published algorithm cannot be implemented, and no proof of this variant is published",
        "docs/reference/agents.md; c-scal-plus and c-kl-scal-plus have a bound",
    ),
    "discretized": (
        "the theorems of tabular agents do not hold on cells",
        "c-scal-plus and c-kl-scal-plus, which have a bound on cells",
    ),
}
"""Why the regret bound of an agent cannot be computed, and where to look instead, by the agent's name."""

PMEVI_BASES = ("kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl")


def why_no_bound(agent: str) -> str:
    """The reason why the regret bound of an agent cannot be computed, and where to look; empty if it can.

    Parameters
    ----------
    agent : str
        The name of an agent, such as "ucrl3" or "KL-SCAL+".

    Returns
    -------
    str

    Raises
    ------
    InvalidArgumentError
        If there is no agent of this name.

    Examples
    --------
    >>> why_no_bound("kl-scal-plus")
    ''
    >>> why_no_bound("opt-psrl")
    'its published bound was withdrawn by the authors; see Agrawal & Jia 2017'
    """
    name = _usual_name(agent)
    return "" if name in BOUNDED_AGENTS else "; see ".join(WITHOUT_BOUND[name])


def _usual_name(agent: str) -> str:
    """The name as the registry of agents spells it: KL-SCAL+ is kl-scal-plus; an error for an unknown one."""
    known = (*BOUNDED_AGENTS, *WITHOUT_BOUND)
    name = str(agent).strip().lower().replace("+", "-plus")
    if name not in known:
        raise InvalidArgumentError("agent", agent, "the name of an agent", suggestion(str(agent), known))
    return name


def require_bound(agent: str, base: str = "kl-scal-plus") -> str:
    """The name of an agent whose bound can be computed; an error with the reason for any other."""
    name = _usual_name(agent)
    if name not in BOUNDED_AGENTS:
        reason, where = WITHOUT_BOUND[name]
        problem = f"there is no regret bound of {name} to compute: {reason}"
        raise InvalidArgumentError("agent", agent, hint=f"see {where}", problem=problem)
    if choice("base", base, PMEVI_BASES) != "kl-scal-plus" and name == "pmevi-dt":
        raise InvalidArgumentError(
            "base",
            base,
            "'kl-scal-plus'",
            "see docs/pmevi.md",
            problem=f"the bound of pmevi-dt on the sets of {base} is an order without constants",
        )
    return name
