"""Every error of gainful, under one base.

A message says what is wrong, where, what was found, what was expected and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class GainfulError(Exception):
    """The base of every error raised on purpose by gainful."""


class InvalidMDPError(GainfulError, ValueError):
    """The description of a decision process is not one: rows, rewards, indices, labels, a file."""


class InvalidArgumentError(GainfulError, ValueError):
    """An argument of a function is outside what it accepts."""


class InvalidAgentError(GainfulError, ValueError):
    """A file does not hold an agent, or not all of it."""


class InvalidRunError(GainfulError, ValueError):
    """A checkpoint file of a run is damaged, or belongs to another run."""


class InvalidSpecError(GainfulError, ValueError):
    """A spec cannot be run: `problems` lists everything that is wrong with it, each with path, line and message."""

    def __init__(self, message: str, problems: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class StoreError(GainfulError, RuntimeError):
    """The store of an experiment cannot be read or written: damaged, newer, full, not there, in use."""


class ExperimentError(GainfulError, RuntimeError):
    """An experiment cannot go on, or does not fit what its folder holds; finished runs are safe."""


class TooLargeError(GainfulError, MemoryError):
    """A dense array was asked for that would not reasonably fit; the sparse form is what to use."""


class MultichainError(GainfulError, ValueError):
    """The optimal gain may depend on the start: there is more than one closed class.

    `classes` holds the states of each class, as arrays of indices.
    """

    def __init__(self, message: str, classes: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.classes = classes


class PlanningError(GainfulError, RuntimeError):
    """A planner stopped without the answer asked for; `plan` is what it had (None if nothing)."""

    def __init__(self, message: str, plan: Any = None) -> None:
        super().__init__(message)
        self.plan = plan


class NotConvergedError(PlanningError):
    """The iteration cap came first. `plan` carries the partial plan with its (still valid) bracket."""


class PrecisionError(PlanningError):
    """The precision asked for is finer than float64 can certify on this problem."""


class InfeasibleSpanError(PlanningError):
    """No mixture of actions meets the span constraint at `state`; `plan` is the partial plan."""

    def __init__(self, message: str, state: int, plan: Any = None) -> None:
        super().__init__(message, plan)
        self.state = state


class ConformanceError(GainfulError, AssertionError):
    """An agent or an environment breaks a promise that `gainful.testing` checks."""


class UnknownNameError(GainfulError, LookupError):
    """A name that gainful does not know; the message suggests the nearest one."""


class UnknownAgentError(UnknownNameError):
    """No agent has this name."""


class UnknownEnvironmentError(UnknownNameError):
    """No environment has this name."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The tail of an unknown-name message: the nearest known name, or all of them.

    >>> suggestion("river-swim", ["riverswim", "toy3d"])
    "did you mean 'riverswim'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return "known: " + ", ".join(names)


class JournalError(GainfulError, RuntimeError):
    """The folder of a durable agent cannot be opened, read or written; what was acknowledged before is safe."""


class DamagedJournalError(JournalError):
    """A journal is damaged before its end: `file`, `offset` and `intact`, the number of records before the damage."""

    def __init__(self, message: str, file: str = "", offset: int = 0, intact: int = 0) -> None:
        super().__init__(message)
        self.file, self.offset, self.intact = file, offset, intact


class AgentInUseError(JournalError):
    """Another process (or object) has the agent open for writing; `pid` is its number, 0 where unknown."""

    def __init__(self, message: str, pid: int = 0) -> None:
        super().__init__(message)
        self.pid = pid


class UnknownDecisionError(GainfulError, LookupError):
    """No decision with this id is waiting for its outcome."""


class ConflictError(GainfulError, ValueError):
    """A decision was reported, or a request made, before with other contents."""
