"""Every error that gainful raises on purpose, under one base class.

An error has fields: `problem` (what is wrong), `name` (of the argument, file or row it concerns), `found`,
`expected` and `hint` (what to do next). Its message is composed from them, so no code ever has to parse a message.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import Any, Final

_BEGINNING = 4
"""Letters of a name from which on its beginning stands for the whole."""
LONGEST = 200
"""Characters of a found value that a message shows."""


class _Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands for "no value was found", because None may well be a value that was found."""


def describe(value: Any) -> str:
    """A value as a message shows it: its repr, shortened; NumPy scalars look like plain numbers.

    >>> describe("abc"), describe(0.1), describe([1] * 500)[-12:]
    ("'abc'", '0.1', '1, 1, 1, 1 …')
    """
    if type(value).__module__ == "numpy" and not getattr(value, "shape", True):
        value = value.item()
    text = repr(value)
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip(", ") + " …"


class GainfulError(Exception):
    """The base of every error that gainful raises on purpose.

    Parameters
    ----------
    problem : str
        What is wrong, as a clause: "P[3, 1] sums to 0.98".
    name : str
        The argument, member or file concerned if there is one.
    found : object
        The offending value itself.
    expected : str
        What was expected instead, without the word "expected".
    hint : str
        What to do next.

    Examples
    --------
    >>> error = GainfulError("P[3, 1] sums to 0.98", found=0.98, expected="1", hint="normalise the row")
    >>> str(error)
    'P[3, 1] sums to 0.98, expected 1; normalise the row'
    >>> error.found, error.hint
    (0.98, 'normalise the row')
    """

    def __init__(
        self, problem: str = "", *, name: str = "", found: Any = MISSING, expected: str = "", hint: str = ""
    ) -> None:
        self.problem, self.name, self.found, self.expected, self.hint = problem, name, found, expected, hint
        message = problem
        if expected:
            message += f", expected {expected}"
        if hint:
            message += f"; {hint}"
        super().__init__(message)


class InvalidArgumentError(GainfulError, ValueError):
    """An argument of a function is outside what it accepts.

    Parameters
    ----------
    name : str
        The argument's name, as the caller wrote it.
    found : object
        Its value.
    expected : str
        What is accepted.
    hint : str
        What to do next.
    problem : str
        What is wrong, where "{name} is {found}" does not say it.

    Examples
    --------
    >>> str(InvalidArgumentError("span", -1.0, "a finite number of at least 0"))
    'span is -1.0, expected a finite number of at least 0'
    >>> str(InvalidArgumentError("seeds", [3, 3], hint="each seed is one run", problem="seed 3 occurs twice"))
    'seed 3 occurs twice; each seed is one run'
    """

    def __init__(
        self, name: str, found: Any = MISSING, expected: str = "", hint: str = "", *, problem: str = ""
    ) -> None:
        if not problem:
            problem = name if found is MISSING else f"{name} is {describe(found)}"
        super().__init__(problem, name=name, found=found, expected=expected, hint=hint)


class InvalidMDPError(GainfulError, ValueError):
    """The description of a decision process is not one: rows, rewards, indices, labels, a file."""


class InvalidPlanError(GainfulError, ValueError):
    """A file does not hold a plan, or not all of it."""


class InvalidAgentError(GainfulError, ValueError):
    """A file does not hold an agent, or not all of it."""


class InvalidRunError(GainfulError, ValueError):
    """A checkpoint file of a run is damaged, or belongs to another run."""


class InvalidSpecError(GainfulError, ValueError):
    """A spec cannot be run: `problems` lists everything that is wrong with it, each with path, line and message."""

    def __init__(self, problem: str = "", problems: Iterable[Any] = (), **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.problems = tuple(problems)


class StoreError(GainfulError, RuntimeError):
    """The store of an experiment cannot be read or written: damaged, newer, full, not there, in use."""


class ExperimentError(GainfulError, RuntimeError):
    """An experiment cannot continue, or does not match the contents of its folder; finished runs are safe."""


class NotCoveredError(GainfulError, ValueError):
    """A log has too little data, or none, of what a policy does; `pairs` lists (state, action, visits)."""

    def __init__(self, problem: str = "", pairs: tuple[Any, ...] = (), **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.pairs = pairs


class MemoryLimitError(InvalidArgumentError, MemoryError):
    """Something would take more memory than it may; nothing was built.

    `needed` is the estimate and `limit` what is allowed, in bytes (`gainful.machine.memory_limit`).
    """

    def __init__(self, name: str, found: Any, problem: str, needed: int, limit: int, hint: str) -> None:
        super().__init__(name, found, hint=hint, problem=problem)
        self.needed, self.limit = needed, limit


class TooLargeError(GainfulError, MemoryError):
    """A dense array was asked for that would not reasonably fit; the sparse form is what to use."""


class DeviceError(GainfulError, RuntimeError):
    """A GPU was asked for, and there is none, or what was asked for does not run on one."""


class MultichainError(GainfulError, ValueError):
    """The optimal gain may depend on the start: there is more than one closed class.

    `classes` holds the states of each class, as arrays of indices.
    """

    def __init__(self, problem: str = "", classes: tuple[Any, ...] = (), **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.classes = classes


class PlanningError(GainfulError, RuntimeError):
    """A planner stopped without the answer asked for; `plan` is what it had (None if nothing)."""

    def __init__(self, problem: str = "", plan: Any = None, **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.plan = plan


class NotConvergedError(PlanningError):
    """The iteration cap came first. `plan` carries the partial plan with its (still valid) bracket."""


class PrecisionError(PlanningError):
    """The precision asked for is finer than float64 can certify on this problem."""


class SlowMixingWarning(UserWarning):
    """A planner says early that it will take long, and why: states of the MDP become known to each other slowly."""


class InfeasibleSpanError(PlanningError):
    """No mixture of actions meets the span constraint at `state`; `plan` is the partial plan."""

    def __init__(self, problem: str = "", state: int = -1, plan: Any = None, **fields: Any) -> None:
        super().__init__(problem, plan, **fields)
        self.state = state


class ConformanceError(GainfulError, AssertionError):
    """An agent or an environment breaks a contract that `gainful.testing` checks."""


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
    near = nearest_name(name, names)
    return f"did you mean '{near}'?" if near else "known: " + ", ".join(names)


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to a misspelt one, or "" if none is near.

    >>> nearest_name("river-swim", ["riverswim", "toy3d"]), nearest_name("x", ["riverswim"])
    ('riverswim', '')
    >>> nearest_name("klscal", ["scal", "scal-plus", "kl-scal-plus", "balanced-kl-scal-plus"])
    'kl-scal-plus'
    """
    names = sorted(known)
    wanted = _letters(name)
    longer = [n for n in names if len(wanted) >= _BEGINNING and _letters(n).startswith(wanted)]
    if longer:
        return min(longer, key=len)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return near[0] if near else ""


def _letters(name: str) -> str:
    """A name without what people leave out or add: case, hyphens, underscores, spaces."""
    return "".join(c for c in name.lower().replace("+", "plus") if c.isalnum())


def level_of_the_caller() -> int:
    """The `stacklevel` that makes a warning of the function that asks point at the line outside gainful."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gainful."):
        frame, level = frame.f_back, level + 1
    return level


class JournalError(GainfulError, RuntimeError):
    """The folder of a durable agent cannot be opened, read or written; what was acknowledged before is safe."""


class DamagedJournalError(JournalError):
    """A journal is damaged before its end: `file`, `offset` and `intact`, the number of records before the damage."""

    def __init__(self, problem: str = "", file: str = "", offset: int = 0, intact: int = 0, **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.file, self.offset, self.intact = file, offset, intact


class AgentInUseError(JournalError):
    """Another process (or object) has the agent open for writing; `pid` is its number, 0 if unknown."""

    def __init__(self, problem: str = "", pid: int = 0, **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.pid = pid


class UnknownDecisionError(GainfulError, LookupError):
    """No decision with this id is waiting for its outcome."""


class ConflictError(GainfulError, ValueError):
    """A decision was reported, or a request made, before with other contents."""


class SteppedInPythonWarning(UserWarning):
    """An agent cannot run in a compiled loop, and makes its steps in Python instead: the same run, but slower."""
