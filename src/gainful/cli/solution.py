"""Everything that `gainful solve` shows about a problem, computed in one place."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gainful.cli.console import compilation_notice
from gainful.errors import MultichainError, PlanningError, PrecisionError

if TYPE_CHECKING:
    from gainful.mdp.model import MDP
    from gainful.mdp.structure import Structure
    from gainful.planning.plan import Plan

DIAMETER_UP_TO = 300
DIAMETER_AT_MOST = 2000
"""States up to which the diameter is computed without being asked for."""
UNICHAIN_UP_TO = 200_000
"""Transitions up to which a communicating process is searched for policies with several classes (NP-hard)."""
_DIAMETER_PRECISIONS = (1e-9, 1e-6, 1e-3)
_CLASSES_SOLVED = 8


@dataclass(frozen=True)
class Solution:
    """A solved problem: its plan, structure and diameter."""

    name: str
    mdp: MDP
    structure: Structure
    unichain: bool | None
    """Whether every policy has one recurrent class; None if that is not known."""
    plan: Plan
    """The plan to follow: under the span constraint, if there is one."""
    seconds: float
    compiled: bool
    """Whether `seconds` includes compilation."""
    diameter: tuple[float, float] | None
    """Certified bounds, or None if it was not computed."""
    why_no_diameter: str
    unconstrained: Plan | None
    """The plan without the span constraint, if there is a constraint."""
    span_bound: float | None

    @property
    def truncated(self) -> frozenset[int]:
        """The states whose value the span constraint truncates."""
        return frozenset(int(s) for s in self.plan.details.get("truncated", ()))

    def json_chunks(self, extra: dict[str, Any]) -> Iterator[str]:
        """One JSON object with one line per state of the policy, in pieces, because there may be a million states."""
        head = json.dumps(
            self._head() | extra,
            indent=2,
            ensure_ascii=False,
            allow_nan=False,
        )
        yield head.removesuffix("\n}") + ',\n  "policy": ['
        for s in range(self.mdp.n_states):
            yield ("\n    " if s == 0 else ",\n    ") + json.dumps(self._state(s), ensure_ascii=False, allow_nan=False)
        yield "\n  ]\n}\n"

    def _head(self) -> dict[str, Any]:
        mdp, plan = self.mdp, self.plan
        head: dict[str, Any] = {
            "name": self.name,
            "n_states": mdp.n_states,
            "n_actions": mdp.n_actions,
            "n_transitions": mdp.n_transitions,
            "max_support": mdp.max_support,
            "objective": mdp.units.objective,
            "gain_is": mdp.units.gain_name,
            "step_duration": mdp.units.step_duration,
            "gain": plan.gain + 0.0,
            "gain_bounds": list(plan.gain_bounds),
            "span": plan.span,
            "diameter": None if self.diameter is None else _number(middle(self.diameter)),
            "diameter_bounds": None if self.diameter is None else [_number(x) for x in self.diameter],
            "structure": str(self.structure),
            "unichain": self.unichain,
            "method": plan.method,
            "sweeps": plan.sweeps,
            "seconds": self.seconds,
        }
        if self.unconstrained is not None:
            head["constraint"] = {
                "span_bound": self.span_bound,
                "truncated": [self._name(s) for s in sorted(self.truncated)],
                "policy_unichain": plan.details["unichain"],
                "unconstrained_gain": self.unconstrained.gain,
                "unconstrained_gain_bounds": list(self.unconstrained.gain_bounds),
                "unconstrained_span": self.unconstrained.span,
            }
        return head

    def _name(self, s: int) -> str | int:
        return s if self.mdp.state_labels is None else self.mdp.state_labels[s]

    def _state(self, s: int) -> dict[str, Any]:
        entry: dict[str, Any] = {"state": self._name(s)}
        chosen = actions_of(self.plan, s)
        if len(chosen) == 1:
            a = chosen[0][0]
            entry["action"] = a if self.mdp.action_labels is None else self.mdp.action_labels[a]
        else:
            entry["probabilities"] = {self.mdp.action_name(a): p for a, p in chosen}
        entry["bias"] = float(self.plan.bias[s])
        return entry


def find_solution(
    name: str,
    mdp: MDP,
    *,
    precision: float,
    span: float | None,
    diameter: bool | None,
    device: Any,
    say: Callable[[str], None],
) -> Solution:
    """Solve `mdp`, under a span constraint if `span` is given; `say` is called with what is being done."""
    from gainful.mdp.structure import structure
    from gainful.planning.scopt import scopt
    from gainful.planning.solve import solve

    notice = compilation_notice()
    silent_before = not notice.said
    say("solving")
    begin = perf_counter()
    try:
        plan = solve(mdp, precision=precision, device=device)
    except MultichainError as error:
        raise MultichainError(
            "the optimal gain depends on the initial state. Solve one class at a time, in Python: "
            "gf.solve(mdp.restricted(gf.structure(mdp).classes[0])). The process is\n"
            + _classes_in_words(structure(mdp), precision),
            error.classes,
        ) from error
    unconstrained = None
    if span is not None:
        say("solving under the span constraint")
        begin = perf_counter()
        unconstrained, plan = plan, scopt(mdp, span, precision=precision)
    seconds = perf_counter() - begin
    compiled = notice.said and silent_before
    say("analysing the structure")
    found = structure(mdp)
    searched = found != "communicating" or mdp.n_transitions <= UNICHAIN_UP_TO
    unichain = found.unichain if searched else None
    bounds, why = _diameter(mdp, diameter, say)
    return Solution(name, mdp, found, unichain, plan, seconds, compiled, bounds, why, unconstrained, span)


def _diameter(mdp: MDP, wanted: bool | None, say: Callable[[str], None]) -> tuple[tuple[float, float] | None, str]:
    """Certified bounds, as narrow as rounding allows; or None and the reason."""
    from gainful.planning.hitting import diameter_bounds

    if wanted is False:
        return None, "not computed"
    if wanted is None and mdp.n_states > DIAMETER_UP_TO:
        if mdp.n_states > DIAMETER_AT_MOST:
            return None, f"not computed for more than {DIAMETER_AT_MOST} states"
        return (
            None,
            f"not computed for more than {DIAMETER_UP_TO} states; --diameter does, in seconds to minutes",
        )
    say("computing the diameter")
    for precision in _DIAMETER_PRECISIONS:
        try:
            return diameter_bounds(mdp, precision=precision, max_states=DIAMETER_AT_MOST), ""
        except PrecisionError as error:
            failure = error
    if wanted:
        raise failure
    return None, "not computed, because float64 cannot certify three digits of so large a diameter"


def _classes_in_words(found: Structure, precision: float) -> str:
    """The classes of a multichain MDP, with the best gain of staying in each if that can be computed."""
    from gainful.planning.solve import solve

    try:
        gains = [
            solve(found.mdp.restricted(c), precision=precision).gain + 0.0 for c in found.classes[:_CLASSES_SOLVED]
        ]
    except PlanningError:
        gains = None
    return found.describe(gains)


def middle(bounds: tuple[float, float]) -> float:
    """The middle of a bracket that may be infinite."""
    low, high = bounds
    return low if low == high else low + (high - low) / 2


def actions_of(plan: Plan, s: int) -> list[tuple[int, float]]:
    """The actions the plan takes in state s, with their probabilities."""
    if plan.actions is not None:
        return [(int(plan.actions[s]), 1.0)]
    row = plan.policy[s]
    return [(int(a), float(row[a])) for a in row.nonzero()[0]]


def _number(value: float) -> float | str:
    """JSON has no infinity: the string "inf", which Python's float() reads."""
    return value if math.isfinite(value) else "inf"
