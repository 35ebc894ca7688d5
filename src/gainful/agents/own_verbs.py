"""Which verbs of an agent are its author's own, so that no loop of the library may stand in for them."""

from __future__ import annotations

import inspect
from typing import Any

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.imed_rl import IMEDRL
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.stepwise import INDEXED, OWN_RULE, StepwiseAgent, rule_problem
from gainful.errors import InvalidArgumentError, describe

_VERBS = ("act", "observe", "decide", "learn")
_VERBS_ON_POINTS = ("act", "observe", "decide", "cell")
OWN_COUNTS = "counts"
"""Stands among the verbs for counts of the user's own that see every step."""
STATE_PATH = "path"
"""Stands among them for an agent of the library that needs the order of states (PMEVI-DT)."""


def own_verbs(agent: Any) -> tuple[str, ...]:
    """The methods of an agent that its class, or the object itself, defines in place of the library's.

    A compiled loop does what the library's own `act` and `observe` do. If this is not empty it would run something
    else than what was written, and the agent has to be stepped in Python.

    >>> from gainful.agents.ucrl2 import UCRL2
    >>> class Timid(UCRL2):
    ...     def act(self, state):
    ...         return 0
    >>> own_verbs(UCRL2(2, 2)), own_verbs(Timid(2, 2))
    ((), ('act',))
    """
    found = []
    if agent.dim:
        found += [verb for verb in _VERBS_ON_POINTS if _is_own(agent, verb, PartitionedAgent)]
    base: type[Any] = StepwiseAgent if isinstance(agent.core, StepwiseAgent) else EpisodicAgent
    base = IMEDRL if isinstance(agent.core, IMEDRL) else base
    found += [verb for verb in _VERBS if _is_own(agent.core, verb, base)]
    if sees_steps(agent):
        found.append(OWN_COUNTS)
    if agent.core.path is not None:
        found.append(STATE_PATH)
    return tuple(dict.fromkeys(found))


def sees_steps(agent: Any) -> bool:
    """Whether the agent has counts of the user's own that see every step."""
    counts = agent.core.bonus_counts
    return counts is not None and bool(counts.sees_steps)


def _is_own(agent: Any, verb: str, base: type[Any]) -> bool:
    return verb in vars(agent) or getattr(type(agent), verb) is not getattr(base, verb)


def has_own_rule(agent: Any) -> bool:
    """Whether it learns by a rule that the common loops do not know: the user's own update, or an index."""
    return isinstance(agent.core, StepwiseAgent) and agent.core.kind in (OWN_RULE, INDEXED)


def chooses_by_index(agent: Any) -> bool:
    """Whether it computes an index before every decision, as `IMEDRL` does."""
    return isinstance(agent.core, StepwiseAgent) and agent.core.kind == INDEXED


def is_learner(agent: Any) -> bool:
    """Whether an object has `act` and `observe`."""
    return (
        not isinstance(agent, type)
        and callable(getattr(agent, "act", None))
        and callable(getattr(agent, "observe", None))
    )


def check_can_act(agent: Any) -> None:
    """Raise an InvalidArgumentError for an agent that lacks what its class leaves to the subclass."""
    core, own = agent.core, own_verbs(agent)
    if isinstance(core, StepwiseAgent):
        problem = rule_problem(core)
        if problem is not None and not {"decide", "learn"} <= {*own} and not {"act", "observe"} <= {*own}:
            raise problem
    elif type(core).plan is EpisodicAgent.plan and "act" not in own:
        core.plan(core.statistics, core.t + 1)  # raises the error that says what to write


def not_a_learner(agent: Any) -> InvalidArgumentError:
    """The error about an object that is no agent."""
    missing = [verb for verb in ("act", "observe") if not callable(getattr(agent, verb, None))]
    if isinstance(agent, type):
        problem, hint = f"the agent is the class {agent.__name__}", f"make one: {agent.__name__}(...)"
    elif inspect.isfunction(agent) or len(missing) == 2:
        problem, hint = f"the agent is {describe(agent)}", ""
    else:
        problem, hint = f"{type(agent).__name__} has no method {missing[0]}", f"write {missing[0]}"
    expected = "an agent such as gf.KLSCALPlus(n_states=6, n_actions=2), or any object with act and observe"
    return InvalidArgumentError("agent", agent, expected, hint, problem=problem)
