"""Who loses least in an environment, and by how much: the order of the agents and the sentences above the chart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gainful.experiments.aggregates import Improvement
from gainful.experiments.improvement import improvement_of
from gainful.experiments.paired_ratios import PairedRatio, ratio_of_means
from gainful.report.content import Environment, Group
from gainful.simulation.run import MEASURE_NAMES


@dataclass(frozen=True)
class LeadOverNext:
    """The best agent and the next one, compared on shared seeds."""

    first: str
    second: str
    measure: str
    among: str
    """Whom the first is the best of: "" for all, or words such as "of those with a guarantee"."""
    aside: str
    """What is worth a word about the first: "" or "which has no guarantee", where others have one."""
    ratio: PairedRatio | None
    """How many times less the first loses; None where there is no regret to divide."""
    difference: Improvement
    """First minus second, per step where rewards are compared (then the second minus the first)."""

    @property
    def sentence(self) -> tuple[str, str, str]:
        """Before the amount, the amount, and after it."""
        start = f"{self.among[:1].upper()}{self.among[1:]}, " if self.among else ""
        pairs, wins = self.difference.pairs, self.difference.wins
        seeds = f"on {wins} of {pairs} seeds" if pairs > 1 else "on the one seed that both have"
        r, d = self.ratio, self.difference
        first = f"{self.first}, {self.aside}," if self.aside else self.first
        if r is None:
            return (
                f"{start}{first} earns ",
                f"{-d.difference:.3g} more",
                f" per step than {self.second}{_ends(-d.difference_high, -d.difference_low)}, {seeds}.",
            )
        if np.isnan(r.ratio):
            return (
                f"{start}{first} loses ",
                f"{-d.difference:,.4g} less",
                f" than {self.second}{_ends(-d.difference_high, -d.difference_low)}, {seeds}.",
            )
        if r.pairs > 1 and not r.decided:
            return (
                f"{start}{self.first} and {self.second} ",
                "cannot be told apart",
                f": the ratio of their {MEASURE_NAMES[self.measure]}s is {_factor(r.ratio)}{_ends(r.low, r.high)}; "
                f"the first is lower {seeds}.",
            )
        return (
            f"{start}{first} loses ",
            f"{_factor(r.ratio)} times less",
            f" than {self.second}{_ends(r.low, r.high)}, {seeds}.",
        )


def ranked(environment: Environment) -> list[tuple[int | None, Group]]:
    """The groups with their ranks by the mean, the best first.

    Only groups that reached the last step of the environment have a rank; the others follow.
    """
    measure = compared_measure(environment)
    last = max((g.row["final_step"] or 0 for g in environment.groups), default=0)
    known = [g for g in environment.groups if g.row["final_step"] == last and g.finals.get(measure)]
    sign = -1.0 if measure == "reward" else 1.0
    known.sort(key=lambda g: sign * _mean(g, measure))
    rest = [g for g in environment.groups if g not in known]
    return [*((i + 1, g) for i, g in enumerate(known)), *((None, g) for g in rest)]


def leads(environment: Environment) -> list[LeadOverNext]:
    """The best agent against the next one; and if no theorem covers it, the same among those that have one."""
    measure = compared_measure(environment)
    order = [group for rank, group in ranked(environment) if rank is not None]
    covered = [g for g in order if g.row["guarantee"] != "no guarantee"]
    aside = "which has no guarantee" if covered and order[0] is not covered[0] else ""
    found = [_lead(order[0], order[1], measure, "", aside)] if len(order) > 1 else []
    if len(covered) > 1 and order[0] is not covered[0]:
        found.append(_lead(covered[0], covered[1], measure, "of those with a guarantee"))
    return [lead for lead in found if lead.difference.pairs]


def lead_json(lead: LeadOverNext) -> dict[str, Any]:
    """A lead as plain values; NaN is None."""
    found = asdict(lead) | {"sentence": "".join(lead.sentence)}
    for name in ("ratio", "difference"):
        if found[name] is not None:
            found[name] = {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in found[name].items()}
    return found


def compared_measure(environment: Environment) -> str:
    """What agents are ranked by: the regret that tables show, or the reward if the optimal gain is unknown."""
    known = any(environment.measure in g.finals for g in environment.groups)
    return environment.measure if known else "reward"


def _mean(group: Group, measure: str) -> float:
    return float(np.mean(list(group.finals[measure].values())))


def _lead(first: Group, second: Group, measure: str, among: str, aside: str = "") -> LeadOverNext:
    a, b = first.finals[measure], second.finals[measure]
    shared = [seed for seed in a if seed in b]
    x, y = np.array([a[s] for s in shared]), np.array([b[s] for s in shared])
    if measure == "reward":  # the larger the better: negated, and per step
        steps = float(first.row["final_step"] or 1)
        return LeadOverNext(
            first.agent, second.agent, measure, among, aside, None, improvement_of(-x / steps, -y / steps, 0.95)
        )
    return LeadOverNext(
        first.agent, second.agent, measure, among, aside, ratio_of_means(a, b), improvement_of(x, y, 0.95)
    )


def _ends(low: float, high: float) -> str:
    if np.isnan(low) or np.isnan(high):
        return ""
    return f" (95 % interval {_factor(low)} … {_factor(high)})"


def _factor(x: float) -> str:
    """Two digits below 10, and three or more above.

    >>> _factor(8.01), _factor(9.98), _factor(12.34), _factor(1234.5)
    ('8.0', '10', '12.3', '1,234')
    """
    size = abs(x)
    if size >= 1000:
        return f"{x:,.0f}"
    return f"{x:.3g}" if size >= 10 else f"{x:#.2g}".rstrip(".")
