"""What a comparison has decided, agent by agent, for the terminal, Markdown and the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AgentStanding:
    """One agent in one environment: whom it beats, whom it loses to, and what is undecided."""

    environment: str
    agent: str
    seeds: int
    better_than: tuple[str, ...]
    worse_than: tuple[str, ...]
    undecided: tuple[str, ...]


def standings(comparison: dict[str, Any]) -> list[AgentStanding]:
    """The agents of every environment, those that are better than most first.

    Parameters
    ----------
    comparison : dict
        What `gainful.experiments.until_decided.read_comparison` returns.

    Returns
    -------
    list of AgentStanding
        By environment, then by comparisons won minus lost.

    Examples
    --------
    >>> pairs = [{"environment": "river", "better": "b", "worse": "a", "decided": True}]
    >>> found = standings({"seeds": {"river": {"a": 10, "b": 10}}, "pairs": pairs})
    >>> [(one.agent, one.better_than, one.worse_than) for one in found]
    [('b', ('a',), ()), ('a', (), ('b',))]
    """
    found: list[AgentStanding] = []
    for environment, agents in comparison["seeds"].items():
        pairs = [pair for pair in comparison["pairs"] if pair["environment"] == environment]
        here = [_standing(environment, agent, seeds, pairs) for agent, seeds in agents.items()]
        found += sorted(here, key=lambda one: len(one.worse_than) - len(one.better_than))
    return found


def _standing(environment: str, agent: str, seeds: int, pairs: list[dict[str, Any]]) -> AgentStanding:
    decided = [pair for pair in pairs if pair["decided"]]
    others = [(pair["worse"], pair["better"]) for pair in pairs if not pair["decided"]]
    return AgentStanding(
        environment,
        agent,
        seeds,
        tuple(pair["worse"] for pair in decided if pair["better"] == agent),
        tuple(pair["better"] for pair in decided if pair["worse"] == agent),
        tuple(b if a == agent else a for a, b in others if agent in (a, b)),
    )


def decision_sentence(comparison: dict[str, Any]) -> str:
    """How much is decided, at which error, and what that means.

    >>> design = {"error": 0.05, "seeds_per_interim": 10, "max_interims": 3}
    >>> pairs = [{"decided": True, "environment": "river"}, {"decided": False, "environment": "river"}]
    >>> decision_sentence({"design": design, "pairs": pairs, "interims": 3, "finished": True}).split(". ")[0]
    '1 of 2 comparisons is decided after 3 looks; 1 stays undecided, because 30 seeds are the most'
    """
    design, pairs = comparison["design"], comparison["pairs"]
    total, open_pairs = len(pairs), sum(not pair["decided"] for pair in pairs)
    looks = comparison["interims"]
    after = f"after {looks} look{'' if looks == 1 else 's'}"
    decided = total - open_pairs
    if not open_pairs:
        said = f"{'The comparison is' if total == 1 else f'All {total:,} comparisons are'} decided {after}."
    elif comparison["finished"]:
        most = design["seeds_per_interim"] * design["max_interims"]
        said = (
            f"{decided:,} of {total:,} comparisons {'is' if decided == 1 else 'are'} decided {after}; {open_pairs:,} "
            f"stay{'s' if open_pairs == 1 else ''} undecided, because {most:,} seeds are the most."
        )
    else:
        said = f"{decided:,} of {total:,} comparisons {'is' if decided == 1 else 'are'} decided {after}, so far."
    where = {pair["environment"] for pair in pairs}
    family = "all pairs of agents" + (" in all environments" if len(where) > 1 else "")
    return (
        f"{said} The probability that any two equal agents are called different is at most "
        f"{100 * design['error']:g} %, over {family} and all looks."
    )
