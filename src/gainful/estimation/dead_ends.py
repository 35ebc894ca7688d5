"""States that a log enters and never leaves: the end of the log, or of an episode."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import choice
from gainful.errors import InvalidMDPError
from gainful.estimation.log_table import NumberedLog
from gainful.number_text import count

Ends: TypeAlias = Literal["auto", "drop", "restart"]

_NAMES_SHOWN = 5


def without_dead_ends(log: NumberedLog, ends: Ends) -> NumberedLog:
    """The log on the states in which it shows what some action does, with a note of what was left out or redirected.

    "drop" leaves out the transitions into states that are never left, and then into those that this makes so;
    "restart" lets them go on to the first state of the next trajectory; "auto" drops if no such state is entered more
    than once, as where a log just stops, and is an error otherwise.
    """
    choice("ends", ends, get_args(Ends))
    lost = _entering_dead_ends(log)
    if not lost.any():
        return _on_acted_states(log)
    if ends == "restart":
        return _on_acted_states(_restarted(log))
    kept = log.only(~lost)
    entered = np.bincount(log.next_state[lost], minlength=log.n_states)
    if ends == "auto" and (entered.max() > 1 or int(lost.sum()) > log.n_units):
        raise _ambiguous(log, entered)
    if kept.n_transitions == 0:
        raise InvalidMDPError(
            f"{log.title}: every trajectory ends in a state that is never left, so no action can be followed in the "
            "long run",
            name=log.title,
            found=_named(log, entered),
            hint="if the process starts anew after that, say ends='restart' (--ends restart)",
        )
    what = f"{count(int(lost.sum()), 'transition')} into states that the log never leaves"
    note = f"{what} left out ({_named(log, entered)})"
    return _on_acted_states(replace(kept, notes=(*kept.notes, note)))


def _entering_dead_ends(log: NumberedLog) -> NDArray[np.bool_]:
    """Which transitions enter a state without a transition out of it that stays in the log."""
    lost = np.zeros(log.n_transitions, dtype=bool)
    while True:
        left = np.zeros(log.n_states, dtype=bool)
        left[log.state[~lost]] = True
        more = ~lost & ~left[log.next_state]
        if not more.any():
            return lost
        lost |= more


def _restarted(log: NumberedLog) -> NumberedLog:
    """Transitions into states that are never left go to the first state of the next trajectory, in a circle."""
    left = np.zeros(log.n_states, dtype=bool)
    left[log.state] = True
    ending = ~left[log.next_state]
    first = np.zeros(log.n_units, dtype=np.int64)
    first[log.unit[::-1]] = log.state[::-1]
    target = np.where(ending, np.roll(first, -1)[log.unit], log.next_state)
    number = int(ending.sum())
    note = f"{number:,} trajector{'y' if number == 1 else 'ies'} that ended restart where the next one began"
    return replace(log, next_state=target, notes=(*log.notes, note))


def _on_acted_states(log: NumberedLog) -> NumberedLog:
    """The same log with the states renumbered that it acts in; others keep no number."""
    acted = np.zeros(log.n_states, dtype=bool)
    acted[log.state] = True
    number = np.cumsum(acted) - 1
    kept = np.flatnonzero(acted)
    if kept.size == log.n_states:
        return _renumbered_units(log)
    labels = [str(s) for s in kept] if log.state_labels is None else [log.state_labels[s] for s in kept]
    return _renumbered_units(
        replace(
            log,
            state=number[log.state],
            next_state=number[log.next_state],
            n_states=int(kept.size),
            state_labels=labels,
        )
    )


def _renumbered_units(log: NumberedLog) -> NumberedLog:
    units, unit = np.unique(log.unit, return_inverse=True)
    return replace(log, unit=unit.reshape(-1), n_units=int(units.size))


def _ambiguous(log: NumberedLog, entered: NDArray[np.int64]) -> InvalidMDPError:
    number = int(entered.sum())
    return InvalidMDPError(
        f"{log.title}: {number:,} transitions enter states that the log never leaves ({_named(log, entered)}), so what "
        "follows is not known",
        name=log.title,
        found=number,
        hint="if the process starts anew after them, say ends='restart' (--ends restart); to leave these transitions "
        "out, which makes the estimate blind to them, say ends='drop' (--ends drop)",
    )


def _named(log: NumberedLog, entered: NDArray[np.int64]) -> str:
    """The states that are never left, the most frequent ones first, with how often they are entered."""
    order = np.argsort(-entered, kind="stable")[:_NAMES_SHOWN]
    names = [
        f"'{log.state_labels[s]}'" if log.state_labels is not None else f"state {s}" for s in order if entered[s] > 0
    ]
    more = int((entered > 0).sum()) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
