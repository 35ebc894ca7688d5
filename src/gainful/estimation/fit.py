"""`fit`: a log of transitions to an estimated MDP, with how sure each number is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.arguments import choice, real, whole
from gainful.errors import MultichainError, PlanningError
from gainful.estimation.counts import LogCounts, count_log
from gainful.estimation.dead_ends import Ends, without_dead_ends
from gainful.estimation.intervals import clopper_pearson, student
from gainful.estimation.log_table import read_transition_log
from gainful.estimation.policy_gain import PolicyGain
from gainful.estimation.resampling import clusters_of, resampled_models
from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP
from gainful.planning.solve import solve

if TYPE_CHECKING:
    from gainful.planning.plan import Plan

Values = NDArray[np.float64]

REPLICATES = 200
"""Resampled models behind an interval, unless another number is asked for."""
_FINE, _COARSE = 1e-9, 1e-6
"""The precision of the plan and of those of resampled models, relative to the range of rewards."""


@dataclass(frozen=True, eq=False)
class LogFit:
    """An MDP estimated from a log: the result of `fit`.

    Attributes
    ----------
    mdp : MDP
        The estimate: relative frequencies and mean rewards. It has the pairs that were tried, and no others.
    visits : ndarray of int, shape (S, A)
        How often each pair was tried.
    plan : Plan or None
        The optimal plan of the estimate; None if its gain depends on the start.
    gain_interval : tuple of float or None
        The bootstrap interval of the optimal gain; None without replicates or without a plan.
    policy_gain_interval : tuple of float or None
        The bootstrap interval of the gain that the plan's policy earns.
    resampled_gains : ndarray
        The optimal gain of each resampled model.
    agreement : ndarray, shape (S,)
        The share of resampled models whose optimal plan takes the plan's action.
    confidence : float
        The level of every interval.
    resampled : str
        What was resampled, in words.
    notes : tuple of str
        What was left out or assumed.

    Examples
    --------
    >>> import gainful as gf
    >>> log = {"state": ["up", "up", "down"] * 40, "action": ["run", "run", "fix"] * 40,
    ...        "reward": [1.0, 1.0, 0.0] * 40, "next_state": ["up", "down", "up"] * 40}
    >>> fitted = gf.fit(log)
    >>> fitted.mdp.transition("up", "run"), round(fitted.gain, 4)
    ({0: 0.5, 1: 0.5}, 0.6667)
    >>> fitted.never_tried
    [('up', 'fix'), ('down', 'run')]
    """

    mdp: MDP
    visits: NDArray[np.int64] = field(repr=False)
    plan: Plan | None
    gain_interval: tuple[float, float] | None
    policy_gain_interval: tuple[float, float] | None
    resampled_gains: Values = field(repr=False)
    agreement: Values = field(repr=False)
    confidence: float
    resampled: str
    notes: tuple[str, ...]
    why_no_plan: str = field(repr=False)
    counts: LogCounts = field(repr=False)

    @property
    def gain(self) -> float:
        """The optimal gain of the estimate; NaN if it depends on the start."""
        return float("nan") if self.plan is None else self.plan.gain

    @property
    def n_transitions(self) -> int:
        """How many transitions of the log were counted."""
        return self.counts.log.n_transitions

    @property
    def n_units(self) -> int:
        """How many trajectories they form."""
        return self.counts.log.n_units

    @cached_property
    def never_tried(self) -> list[tuple[str | int, str | int]]:
        """The pairs (state, action) that the log has no row of: labels, or indices where there are none."""
        states = label_column(self.mdp.state_labels, self.mdp.n_states).tolist()
        actions = label_column(self.mdp.action_labels, self.mdp.n_actions).tolist()
        return [(states[s], actions[a]) for s, a in np.argwhere(self.visits == 0)]

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row per pair that was tried: visits, mean reward with its interval, and what one unseen outcome may hide.

        The interval of a mean is Student's, mean ± t·s/√n, which is not known after one visit; where all rewards of the
        log are 0 or 1 it is Clopper and Pearson's. `unseen_high` bounds, at the level of the intervals, the probability
        of any one next state that was never seen: 1 - ((1 - confidence)/2)^(1/n).
        """
        counts, tried = self.counts, np.flatnonzero(self.counts.visits)
        visits = counts.visits[tried]
        mean = counts.reward_sum[tried] / visits
        if counts.reward_law == "bernoulli":
            low, high = clopper_pearson(np.round(counts.reward_sum[tried]), visits, self.confidence)
        else:
            low, high = student(mean, counts.reward_variance[tried], visits, self.confidence)
        state, action = np.divmod(tried, self.mdp.n_actions)
        name = self.mdp.units.objective
        return pd.DataFrame(
            {
                "state": label_column(self.mdp.state_labels, self.mdp.n_states)[state],
                "action": label_column(self.mdp.action_labels, self.mdp.n_actions)[action],
                "visits": visits,
                name: mean,
                "low": low,
                "high": high,
                "unseen_high": clopper_pearson(np.zeros(tried.size), visits, self.confidence)[1],
            }
        )

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """One row per transition that was seen: count, probability, and its interval of Clopper and Pearson.

        That interval covers a single probability at least as often as `confidence` says, however few the visits; it is
        not one for all rows at once.
        """
        counts = self.counts
        pair = counts.entry_pair
        state, action = np.divmod(pair, self.mdp.n_actions)
        low, high = clopper_pearson(counts.count, counts.visits[pair], self.confidence)
        states = label_column(self.mdp.state_labels, self.mdp.n_states)
        return pd.DataFrame(
            {
                "state": states[state],
                "action": label_column(self.mdp.action_labels, self.mdp.n_actions)[action],
                "next_state": states[counts.next_state],
                "probability": counts.count / counts.visits[pair],
                self.mdp.units.objective: self._reward_of_entries(pair),
                "count": counts.count,
                "low": low,
                "high": high,
            }
        )

    def _reward_of_entries(self, pair: NDArray[np.int64]) -> Values:
        counts = self.counts
        if counts.entry_reward is not None:
            return counts.entry_reward
        return np.asarray(counts.reward_sum[pair] / counts.visits[pair])

    def __repr__(self) -> str:
        found = f"{self.n_transitions:,} transitions, {len(self.never_tried):,} pairs never tried"
        if self.plan is None:
            return f"LogFit({self.mdp!r}, {found}, no gain: {self.why_no_plan})"
        interval = ""
        if self.gain_interval is not None:
            low, high = self.gain_interval
            interval = f" in [{low:.6g}, {high:.6g}] at {self.confidence:.3g}"
        return f"LogFit({self.mdp!r}, {found}, gain={self.gain:.6g}{interval})"


def fit(
    log: Any,
    *,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    columns: Mapping[str, str] | None = None,
    ends: Ends = "auto",
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> LogFit:
    r"""Estimate an MDP from a log, and say how sure it is.

    The estimate is the most likely model: p(s'|s,a) = n(s,a,s') / n(s,a), and mean rewards. It has only the pairs that
    the log tried. Each probability has an exact interval (Clopper & Pearson 1934), each mean reward Student's.

    The optimal gain of the estimate has a bootstrap interval: `replicates` models with independent exponential weights
    (Rubin 1981) on whole trajectories if there are at least 20, and on blocks of consecutive rows otherwise, each
    solved; the interval holds the middle of their gains. Its limits: no resampled model has a transition that the log
    does not have, so what was never tried, and rows with few visits, are surer in it than they should be; with few
    trajectories it relies on blocks being alike; and it takes the process for Markov and unchanging.

    Parameters
    ----------
    log : str, Path, DataFrame, dict of columns, or four arrays
        One transition per row: state, action, reward (or cost) and next_state, in order of time; or one row per unit
        and time: unit, time, state, action and reward (or cost), where the next state is that of the unit's next row. A
        file is CSV, TSV or Parquet, also compressed. Four arrays are states, actions, rewards and next states.
    states, actions : sequence, optional
        All labels, in the order of their numbers. An action that the log never has is then reported as never tried.
    columns : mapping, optional
        The log's own names of columns: {"state": "condition", "unit": "machine"}.
    ends : {"auto", "drop", "restart"}
        What to do with states that the log enters and never leaves. "restart": go on to the first state of the next
        trajectory. "drop": leave the transitions into them out. "auto" drops them if each is entered once, as where a
        log just stops, and is an error otherwise.
    confidence : float
        The level of the intervals, each by itself.
    replicates : int
        Resampled models; 0 for no bootstrap.
    seed : int
        Of the weights.

    Returns
    -------
    LogFit

    Raises
    ------
    InvalidMDPError
        If the log cannot be read, or a row is wrong; the message names the first one.

    Examples
    --------
    >>> import gainful as gf
    >>> fitted = gf.fit(([0, 1, 0, 1], [0, 0, 0, 0], [1.0, 0.0, 1.0, 0.0], [1, 0, 1, 0]))
    >>> fitted.gain
    0.5
    """
    confidence = real("confidence", confidence, 0.0, 1.0, low_open=True, high_open=True)
    replicates = whole("replicates", replicates, 0)
    seed = whole("seed", seed, 0)
    choice("ends", ends, get_args(Ends))
    read = without_dead_ends(read_transition_log(log, states=states, actions=actions, columns=columns), ends)
    counts = count_log(read)
    start = first_states(counts)
    mdp = counts.model(counts.count.astype(np.float64), counts.reward_sum, start, name=read.title)
    plan, why = _plan_of(mdp, _FINE)
    cluster, resampled = clusters_of(read)
    gains, of_policy, same = np.zeros(0), np.zeros(0), np.full(mdp.n_states, np.nan)
    notes = list(read.notes)
    if plan is not None and replicates > 0:
        gains, of_policy, same = _bootstrap(plan, resampled_models(counts, cluster, start, replicates, seed))
        if gains.size < replicates:
            notes.append(f"{replicates - gains.size} of {replicates} resampled models could not be solved: not counted")
    return LogFit(
        mdp=mdp,
        visits=counts.visits.reshape(mdp.n_states, mdp.n_actions),
        plan=plan,
        gain_interval=middle_of(gains, confidence),
        policy_gain_interval=middle_of(of_policy, confidence),
        resampled_gains=gains,
        agreement=same,
        confidence=confidence,
        resampled=resampled,
        notes=tuple(notes),
        why_no_plan=why,
        counts=counts,
    )


def first_states(counts: LogCounts) -> Values:
    """The distribution of the first states of trajectories."""
    log = counts.log
    first = np.zeros(log.n_units, dtype=np.int64)
    first[log.unit[::-1]] = log.state[::-1]
    return np.bincount(first, minlength=log.n_states) / log.n_units


def middle_of(resampled: Values, confidence: float) -> tuple[float, float] | None:
    """The percentile interval of resampled values; None without any."""
    if resampled.size == 0:
        return None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    return float(low), float(high)


def _plan_of(mdp: MDP, relative: float) -> tuple[Plan | None, str]:
    """The optimal plan, or None and the reason."""
    try:
        return solve(mdp, precision=_precision(mdp, relative)), ""
    except MultichainError as error:
        return None, f"the optimal gain depends on the start: the log has {len(error.classes)} parts without a way out"
    except PlanningError as error:
        return None, str(error)


def _precision(mdp: MDP, relative: float) -> float:
    low, high = mdp.reward_range
    return max(relative * (high - low), 1e-12 * max(abs(low), abs(high)), 1e-300)


def _bootstrap(plan: Plan, models: Any) -> tuple[Values, Values, Values]:
    """Optimal gains, gains of the plan's policy, and how often each of its actions is optimal."""
    gains, of_policy = [], []
    same = np.zeros(plan.mdp.n_states)
    assert plan.actions is not None
    gain_of_policy = PolicyGain(plan.mdp, plan.actions)
    for mdp in models:
        found, _ = _plan_of(mdp, _COARSE)
        if found is None or found.actions is None:
            continue
        gains.append(found.gain)
        agrees = found.actions == plan.actions
        of_policy.append(found.gain if agrees.all() else gain_of_policy(mdp))
        same += agrees
    return np.array(gains), np.array(of_policy), same / max(1, len(gains))
