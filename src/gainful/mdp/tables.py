"""Tables of transitions, to an MDP and back.

A table has one line per transition, with the columns state, action, next_state, probability, and reward or cost.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.arrays import rewards_by_pair
from gainful.mdp.assembly import Ingredients, RewardLaw, Start
from gainful.mdp.labels import label_column
from gainful.mdp.rows import SUM_TOLERANCE
from gainful.mdp.table_labels import Pairs, label_pairs
from gainful.mdp.table_reading import read_table
from gainful.mdp.table_source import FRAME_ATTRIBUTES, LABEL_COLUMNS, Source
from gainful.mdp.units import Units

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)


def from_table(
    cls: type[Model],
    table: Any,
    *,
    reward_law: RewardLaw | None = None,
    start: Start | None = None,
    name: str | None = None,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    step_duration: float | None = None,
) -> Model:
    """Build an MDP from a CSV (.csv, .tsv, also compressed) or Parquet file, or any data frame.

    States that are the integers 0 … S-1 are indices; any other names become labels, in order of first appearance in the
    column `state`; the same holds for actions. A pair without a row is an action that the state does not have. The
    same next state may be listed with several rewards.

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    table : path, data frame or dict of columns
        With the columns state, action, next_state, probability, and either `reward` (maximised) or `cost`
        (minimised); other columns are ignored. A frame from `to_table` also brings its law, start, actions and step
        duration in `frame.attrs`; arguments take precedence over them.
    reward_law : {"deterministic", "bernoulli", "transition"}, optional
        By default "deterministic" if the rewards of each pair are equal, otherwise "transition". With the first two,
        the mean of the pair is used.
    start : int, str or array_like, optional
        A state or a distribution; the first state by default.
    name : str, optional
        A name to show.
    state_labels, action_labels : sequence of str, optional
        All labels, in the order of their indices.
    step_duration : float, optional
        The length of a step in the user's time.

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError
        Naming the file, line (or row) and column of the first error.
    """
    source = read_table(table)
    _refuse_log(source)
    source.require(*LABEL_COLUMNS, "probability")
    values = source.one_of("reward", "cost")
    source.require(values)
    kept = source.attributes()
    probability = source.numbers("probability", low=0.0, expected="a number in [0, 1]")
    reward = source.numbers(values)
    pairs = label_pairs(source, state_labels, action_labels, kept)
    S, A, k = pairs.n_states, pairs.n_actions, pairs.pair
    _check_sums(source, pairs, probability)

    if np.all(k[1:] >= k[:-1]):
        target = pairs.next_state
    else:
        order = np.argsort(k, kind="stable")
        k, target, probability, reward = k[order], pairs.next_state[order], probability[order], reward[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(k, minlength=S * A))])
    pair_rewards, constant = rewards_by_pair(k, probability, reward, S * A)

    law = reward_law or (kept.get("reward_law", "deterministic") if constant else "transition")
    if start is None:
        start = _kept_start(source, pairs, kept)
    duration = step_duration if step_duration is not None else float(kept.get("step_duration", 1.0))
    continuous = step_duration is not None or "step_duration" in kept
    if not (duration > 0.0 and np.isfinite(duration)):
        raise InvalidArgumentError("step_duration", duration, "a positive number")
    return cls._made_of(
        Ingredients(
            n_states=S,
            n_actions=A,
            indptr=indptr,
            indices=target,
            probabilities=probability,
            pair_rewards=pair_rewards,
            entry_rewards=reward if law == "transition" or not constant else None,
            reward_law=law,
            start=start,
            state_labels=pairs.state_labels,
            action_labels=pairs.action_labels,
            units=Units("cost" if values == "cost" else "reward", step_duration=duration, continuous=continuous),
            name=name if name is not None else kept.get("name"),
        )
    )


def _refuse_log(source: Source) -> None:
    """InvalidMDPError for a table of what happened, which has no probabilities."""
    have = set(source.columns())
    if "probability" in have or "rate" in have or not {"state", "action"} <= have or not have & {"reward", "cost"}:
        return
    if "next_state" not in have and not have & {"unit", "time"}:
        return
    if difflib.get_close_matches("probability", have, cutoff=0.5):  # misspelt: the missing column is named in a moment
        return
    raise InvalidMDPError(
        f"{source.title}: no column 'probability': this looks like a log of what happened",
        name="probability",
        found=source.columns(),
        hint=f"estimate a model from it: gainful fit {source.title} --save model.csv, or gf.fit(log).mdp in "
        "Python; the gain of a policy from it: gainful evaluate --log",
    )


def to_table(mdp: MDP) -> pd.DataFrame:
    """Write an MDP as a data frame with one row per transition, with rewards (or costs) in the user's units.

    `from_table` restores the same MDP: what the columns cannot hold (start, reward law, actions that no state has,
    name, step duration) is in `frame.attrs`, which pandas and Parquet preserve; with a CSV file, pass it as arguments.
    The offset of `normalised()` is lost, because rewards are the user's.

    Parameters
    ----------
    mdp : MDP
        The decision process.

    Returns
    -------
    pandas.DataFrame
        With the columns state, action, next_state, probability, and reward or cost.
    """
    pair = np.repeat(np.arange(mdp.n_states * mdp.n_actions), np.diff(mdp.indptr))
    state, action = np.divmod(pair, mdp.n_actions)
    rewards = mdp.pair_rewards[pair] if mdp.entry_rewards is None else mdp.entry_rewards

    states = label_column(mdp.state_labels, mdp.n_states)
    frame = pd.DataFrame(
        {
            "state": states[state],
            "action": label_column(mdp.action_labels, mdp.n_actions)[action],
            "next_state": states[mdp.indices],
            "probability": mdp.probabilities,
            mdp.units.objective: mdp.units.reward(rewards),
        }
    )
    begin = np.flatnonzero(mdp.start)
    frame.attrs[FRAME_ATTRIBUTES] = {
        "reward_law": mdp.reward_law,
        "start": [[int(s) if mdp.state_labels is None else mdp.state_labels[s], float(mdp.start[s])] for s in begin],
        "actions": mdp.n_actions if mdp.action_labels is None else list(mdp.action_labels),
        "name": mdp.name,
    }
    if mdp.units.continuous:
        frame.attrs[FRAME_ATTRIBUTES]["step_duration"] = mdp.units.step_duration
    return frame


def _check_sums(source: Source, pairs: Pairs, probability: NDArray[np.float64]) -> None:
    n = pairs.n_states * pairs.n_actions
    sums = np.bincount(pairs.pair, weights=probability, minlength=n)
    there = np.zeros(n, dtype=bool)
    there[pairs.pair] = True
    wrong = there & (np.abs(sums - 1.0) > SUM_TOLERANCE)
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong[pairs.pair])
    k = int(pairs.pair[rows[0]])
    own = source.row_numbers[np.flatnonzero(pairs.pair == k)]
    listed = ", ".join(str(x) for x in own[:8]) + (", …" if own.size > 8 else "")
    word = ("line" if source.is_text else "row") + ("s" if own.size > 1 else "")
    count = int(wrong.sum())
    raise InvalidMDPError(
        f"{source.place(int(rows[0]))}, column 'probability': the probabilities of {pairs.title(k)} "
        f"sum to {sums[k]:.10g}",
        name="probability",
        found=float(sums[k]),
        expected=f"1 (tolerance {SUM_TOLERANCE:g})",
        hint=f"{count} of {int(there.sum())} pairs fail{'s' if count == 1 else ''}; "
        f"correct {word} {listed}, or add what is missing",
    )


def _kept_start(source: Source, pairs: Pairs, kept: Mapping[str, Any]) -> Start:
    """The start distribution that `to_table` stored, or None for the first state."""
    entries = kept.get("start")
    if not entries:
        return None
    p = np.zeros(pairs.n_states)
    number = None if pairs.state_labels is None else {label: s for s, label in enumerate(pairs.state_labels)}
    for state, mass in entries:
        s = int(state) if number is None and isinstance(state, int) else (number or {}).get(str(state), -1)
        if not 0 <= s < pairs.n_states:
            raise InvalidMDPError(
                f"{source.title}: the start state '{state}' in its attrs has no row",
                name="start",
                found=state,
                hint="pass start=",
            )
        p[s] += mass
    return p
