"""`evaluate_log`: the gain of a policy from logged data, with an interval, where the log covers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError, NotCoveredError
from gainful.estimation.counts import count_log
from gainful.estimation.dead_ends import Ends, without_dead_ends
from gainful.estimation.fit import REPLICATES, first_states, middle_of
from gainful.estimation.log_table import read_transition_log
from gainful.estimation.policy_gain import PolicyGain
from gainful.estimation.resampling import clusters_of, resampled_models
from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP
from gainful.planning.evaluation import Evaluation, evaluate
from gainful.planning.plan import Plan
from gainful.planning.policies import PolicyRow, index_by_name, policy_rows

Values = NDArray[np.float64]

_NAMES_SHOWN = 5


@dataclass(frozen=True, eq=False)
class LogEvaluation:
    """The gain of a policy, estimated from a log: the result of `evaluate_log`.

    Attributes
    ----------
    gain : float
        The average reward (or cost) per step of the policy, from the states in which trajectories begin.
    gain_interval : tuple of float or None
        Its bootstrap interval; None without replicates.
    confidence : float
        The level of the interval.
    evaluation : Evaluation
        Bias, stationary distribution and classes in the estimated model.
    visits : ndarray of int, shape (S, A)
        How often the log has each pair.
    least_visits : int
        The fewest visits of a pair that the policy plays again and again.
    resampled : str
        What was resampled, in words.
    notes : tuple of str
        What was left out or assumed.

    Examples
    --------
    >>> import gainful as gf
    >>> log = {"state": ["up", "up", "down"] * 40, "action": ["run", "run", "fix"] * 40,
    ...        "reward": [1.0, 1.0, 0.0] * 40, "next_state": ["up", "down", "up"] * 40}
    >>> round(gf.evaluate_log(log, {"up": "run", "down": "fix"}).gain, 4)
    0.6667
    """

    gain: float
    gain_interval: tuple[float, float] | None
    confidence: float
    evaluation: Evaluation = field(repr=False)
    visits: NDArray[np.int64] = field(repr=False)
    least_visits: int
    resampled: str
    notes: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the policy with what the log knows of it.

        Returns
        -------
        pandas.DataFrame
            One row per state and action played: probability, visits in the log, long-run fraction of time.
        """
        mdp, policy = self.evaluation.mdp, _as_table(self.evaluation.mdp, self.evaluation.policy)
        s, a = np.nonzero(policy)
        return pd.DataFrame(
            {
                "state": label_column(mdp.state_labels, mdp.n_states)[s],
                "action": label_column(mdp.action_labels, mdp.n_actions)[a],
                "probability": policy[s, a],
                "visits": self.visits[s, a],
                "frequency": self.evaluation.stationary[s],
                "bias": self.evaluation.bias[s],
            }
        )


def evaluate_log(
    log: Any,
    policy: Any,
    *,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    columns: Mapping[str, str] | None = None,
    ends: Ends = "auto",
    min_visits: int = 5,
    confidence: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> LogEvaluation:
    r"""The gain of a policy from a log that other decisions have made, where the log covers the policy.

    The model of the log (see `fit`) is restricted to what the policy plays, and its gain is computed exactly. The
    interval comes from models with other weights on trajectories or blocks, as for `fit`, with the same limits. No
    probability of the logged decisions is needed: what follows a pair does not depend on why the action was chosen,
    provided that the states hold everything that matters. If those who decided knew more than the log shows, the
    estimate is biased, and no log can tell.

    A log says nothing of actions that it does not have. If the policy, from the states in which trajectories begin,
    can reach a state where it plays an action that the log has never tried there, or keeps playing one that was tried
    fewer than `min_visits` times, the answer is a `NotCoveredError` that names these pairs.

    Parameters
    ----------
    log, states, actions, columns, ends
        As for `fit`.
    policy : Plan, mapping, array_like, data frame or file
        As for `evaluate`; by label, best. States that it does not reach, or that have one action in the log, may be
        missing.
    min_visits : int
        The fewest visits that a pair needs if the policy plays it again and again.
    confidence, replicates, seed
        As for `fit`.

    Returns
    -------
    LogEvaluation

    Raises
    ------
    NotCoveredError
        If the log does not cover the policy; `pairs` has the states and actions that lack data, with their visits.

    Examples
    --------
    >>> import gainful as gf
    >>> log = {"state": ["new", "worn"] * 50, "action": ["run", "fix"] * 50, "cost": [1.0, 5.0] * 50,
    ...        "next_state": ["worn", "new"] * 50}
    >>> gf.evaluate_log(log, {"new": "run", "worn": "fix"}).gain
    3.0
    >>> gf.evaluate_log(log, {"new": "run", "worn": "run"})
    Traceback (most recent call last):
    gainful.errors.NotCoveredError: the log never tried run in worn; collect such data, or change the policy there
    """
    confidence = real("confidence", confidence, 0.0, 1.0, low_open=True, high_open=True)
    replicates, seed = whole("replicates", replicates, 0), whole("seed", seed, 0)
    min_visits = whole("min_visits", min_visits, 1)
    read = without_dead_ends(read_transition_log(log, states=states, actions=actions, columns=columns), ends)
    counts = count_log(read)
    start = first_states(counts)
    mdp = counts.model(counts.count.astype(np.float64), counts.reward_sum, start, name=read.title)
    visits = counts.visits.reshape(mdp.n_states, mdp.n_actions)
    covered = _covered_part(mdp, _rows(mdp, policy))
    evaluation = evaluate(mdp, covered)
    least = _check_visits(mdp, covered, evaluation, visits, min_visits)
    cluster, resampled = clusters_of(read)
    models = resampled_models(counts, cluster, start, replicates, seed)
    gain_of_policy = PolicyGain(mdp, evaluation.policy)
    gains = np.array([gain_of_policy(model) for model in models])
    return LogEvaluation(
        gain=evaluation.gain_from_start,
        gain_interval=middle_of(gains, confidence),
        confidence=confidence,
        evaluation=evaluation,
        visits=visits,
        least_visits=least,
        resampled=resampled,
        notes=read.notes,
    )


def _rows(mdp: MDP, policy: Any) -> list[PolicyRow]:
    """The policy by name, however it was given; arrays are in the order of the states of the log."""
    if isinstance(policy, Plan):
        own, table = policy.mdp, policy.policy
    else:
        rows = policy_rows(policy)
        if rows is not None:
            return rows
        own, table = mdp, np.asarray(policy)
        if table.shape == (mdp.n_states,):
            return [PolicyRow("policy", mdp.state_name(s), action, 1.0) for s, action in enumerate(table.tolist())]
        if table.shape != (mdp.n_states, mdp.n_actions) or table.dtype.kind not in "fiu":
            raise InvalidArgumentError(
                "policy",
                table.shape,
                f"({mdp.n_states},) actions or ({mdp.n_states}, {mdp.n_actions}) probabilities",
                'by name is surer: {"new": "run"}',
                problem=f"policy has shape {table.shape} and dtype {table.dtype}",
            )
    return [
        PolicyRow("policy", own.state_name(int(s)), own.action_name(int(a)), float(table[s, a]))
        for s, a in np.argwhere(table)
    ]


def _covered_part(mdp: MDP, rows: list[PolicyRow]) -> Values:
    """The policy (S,A) on the states that it reaches from the start; NotCoveredError for actions never tried there.

    States that it does not reach play what the log did there; this changes no answer.
    """
    state_number = index_by_name(mdp.n_states, mdp.state_labels)
    action_number = index_by_name(mdp.n_actions, mdp.action_labels)
    chosen: dict[int, list[tuple[int | None, PolicyRow]]] = {}
    for row in rows:
        s = state_number(row.state)
        if s is not None and row.probability > 0.0:  # a state that the log never has is never reached either
            chosen.setdefault(s, []).append((action_number(row.action), row))
    table = np.zeros((mdp.n_states, mdp.n_actions))
    table[np.arange(mdp.n_states), mdp.allowed.argmax(axis=1)] = 1.0
    lacking: list[tuple[Any, Any, int]] = []
    waiting = [int(s) for s in np.flatnonzero(mdp.start)]
    seen = set(waiting)
    while waiting:
        s = waiting.pop()
        tried = np.flatnonzero(mdp.allowed[s])
        if s not in chosen and tried.size == 1:
            chosen[s] = [(int(tried[0]), PolicyRow("policy", s, int(tried[0]), 1.0))]
        if s not in chosen:
            raise InvalidArgumentError(
                "policy",
                mdp.state_name(s),
                "one for each state that the policy reaches",
                problem=f"policy: no action for state {mdp.state_name(s)!r}",
            )
        table[s] = 0.0
        for a, row in chosen[s]:
            if a is None or not mdp.allowed[s, a]:
                lacking.append((row.state, row.action, 0))
                continue
            table[s, a] += row.probability
            k = s * mdp.n_actions + a
            for target in mdp.indices[mdp.indptr[k] : mdp.indptr[k + 1]].tolist():
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
    if lacking:
        raise _not_covered("the log never tried ", lacking)
    return table


def _check_visits(mdp: MDP, policy: Values, evaluation: Evaluation, visits: NDArray[np.int64], min_visits: int) -> int:
    """The fewest visits of a pair that is played again and again; NotCoveredError below `min_visits`."""
    again = (policy > 0.0) & (evaluation.stationary > 0.0)[:, None]
    few = np.argwhere(again & (visits < min_visits))
    if few.size:
        pairs = [(mdp.state_name(int(s)), mdp.action_name(int(a)), int(visits[s, a])) for s, a in few]
        raise _not_covered(f"with fewer than {min_visits} visits, the log hardly knows ", pairs, "lower min_visits=")
    return int(visits[again].min())


def _not_covered(words: str, pairs: list[tuple[Any, Any, int]], otherwise: str = "") -> NotCoveredError:
    named = ", ".join(f"{action} in {state}" + (f" ({n})" if n else "") for state, action, n in pairs[:_NAMES_SHOWN])
    more = f" and {len(pairs) - _NAMES_SHOWN} more pairs" if len(pairs) > _NAMES_SHOWN else ""
    return NotCoveredError(
        f"{words}{named}{more}",
        pairs=tuple(pairs),
        name="policy",
        found=pairs,
        hint="collect such data, or change the policy there" + (f", or {otherwise}" if otherwise else ""),
    )


def _as_table(mdp: MDP, policy: NDArray[Any]) -> Values:
    if policy.ndim == 2:
        return policy.astype(np.float64)
    table = np.zeros((mdp.n_states, mdp.n_actions))
    table[np.arange(mdp.n_states), policy.astype(np.int64)] = 1.0
    return table
