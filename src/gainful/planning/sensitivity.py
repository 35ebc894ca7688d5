"""What a change of one reward or one transition does to the optimal gain and to the optimal action."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import PlanningError
from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP, require_mdp
from gainful.planning.evaluation import chain_of, evaluate, evaluate_chain
from gainful.planning.optimality_gaps import gaps_at, precise_plan
from gainful.planning.plan import Plan
from gainful.planning.solve import solve

if TYPE_CHECKING:
    import pandas as pd

FALLS_UP_TO = 500
"""States up to which it is computed how far the rewards of actions played may fall: one linear system each."""
PAST_THE_CHANGE = 1e-3
"""How far beyond the reward at which the optimal action changes the process is solved again, relative to the change."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How the optimal gain depends on rewards and transitions, in the user's units: the result of `sensitivity`.

    Attributes
    ----------
    plan : Plan
        The optimal plan.
    frequency : ndarray, shape (S,)
        Long-run fractions of time in each state under the optimal policy.
    reward_effect : ndarray, shape (S, A)
        ∂g/∂r(s,a): by how much the gain changes per unit of the reward (or cost) of a pair; 0 for actions not played.
    transition_effect : ndarray, one per transition of the MDP
        By how much the gain changes per unit of probability given to a transition, the others of its row shrinking in
        proportion; 0 for actions not played.
    change_at : ndarray, shape (S, A)
        The change of a pair's reward (or cost) at which it becomes optimal (if it is not played), or at which the
        optimal policy changes somewhere (if it is played); infinite if none does that, NaN where an action is not
        allowed, and for actions played in MDPs of more than 500 states.
    mdp : MDP
        The process.

    Examples
    --------
    >>> import gainful as gf
    >>> found = gf.sensitivity(gf.environments.riverswim(6))
    >>> found.to_frame().iloc[0][["state", "action"]].tolist()
    ['river 4', 'right']
    """

    plan: Plan
    frequency: NDArray[np.float64] = field(repr=False)
    reward_effect: NDArray[np.float64] = field(repr=False)
    transition_effect: NDArray[np.float64] = field(repr=False)
    change_at: NDArray[np.float64] = field(repr=False)
    mdp: MDP = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Tabulate rewards: those whose change matters most to the gain first, then the nearest to being optimal.

        Returns
        -------
        pandas.DataFrame
            One row per allowed pair: state, action, whether it is optimal, its reward (or cost), the change of the gain
            per unit of it, and the change at which the optimal action changes.
        """
        import pandas as pd

        mdp = self.mdp
        s, a = np.nonzero(mdp.allowed)
        states, actions = self._names
        kind = mdp.units.objective
        table = pd.DataFrame(
            {
                "state": states[s],
                "action": actions[a],
                "optimal": self.plan.policy[s, a] > 0.0,
                kind: mdp.units.sign * mdp.rewards[s, a] + 0.0,
                "gain_per_unit": self.reward_effect[s, a],
                "changes_at": self.change_at[s, a],
            }
        )
        keys = np.lexsort((np.abs(self.change_at[s, a]), -np.abs(self.reward_effect[s, a])))
        return table.iloc[keys].reset_index(drop=True)

    def transitions_to_frame(self) -> pd.DataFrame:
        """Tabulate transitions of the optimal policy, those that matter most to the gain first.

        Returns
        -------
        pandas.DataFrame
            One row per transition: state, action, next state, probability, and the change of the gain per unit of
            probability that it is given at the expense of the others of its row.
        """
        import pandas as pd

        mdp = self.mdp
        pair = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
        s, a = np.divmod(pair, mdp.n_actions)
        states, actions = self._names
        keep = np.flatnonzero(self.plan.policy[s, a] > 0.0)
        keep = keep[np.argsort(-np.abs(self.transition_effect[keep]), kind="stable")]
        return pd.DataFrame(
            {
                "state": states[s[keep]],
                "action": actions[a[keep]],
                "next_state": states[mdp.indices[keep]],
                "probability": mdp.probabilities[keep],
                "gain_per_unit": self.transition_effect[keep],
            }
        )

    def check(self, state: int | str, action: int | str) -> dict[str, Any]:
        """Solve again with the reward of one pair changed, just before and just beyond `change_at`.

        Parameters
        ----------
        state, action : int or str
            The pair, by index or label.

        Returns
        -------
        dict
            `change`, the `state` whose optimal action changes, the action `before` and `beyond` it, and both gains.

        Examples
        --------
        >>> import gainful as gf
        >>> found = gf.sensitivity(gf.environments.riverswim(6)).check(0, "left")  # the reward of staying rises
        >>> found["before"], found["beyond"]
        ('right', 'left')
        """
        mdp = self.mdp
        s, a = mdp.state_index(state), mdp.action_index(action)
        change = float(self.change_at[s, a])
        if not np.isfinite(change):
            problem = f"no known change of the reward of state {mdp.state_name(s)}, action {mdp.action_name(a)} matters"
            raise PlanningError(problem, self.plan, name="state", found=mdp.state_name(s))
        room = PAST_THE_CHANGE * max(abs(change), 1e-3 * float(np.abs(mdp.rewards).max()))
        direction = np.sign(change) or mdp.units.sign
        before = solve(with_reward(mdp, s, a, change - direction * room), precision=_precision(mdp))
        beyond = solve(with_reward(mdp, s, a, change + direction * room), precision=_precision(mdp))
        assert before.actions is not None
        assert beyond.actions is not None
        differs = np.flatnonzero(before.actions != beyond.actions)
        where = s if not differs.size or s in differs else int(differs[0])
        return {
            "change": change,
            "state": mdp.state_name(where),
            "before": before.action(where),
            "beyond": beyond.action(where),
            "gain_before": before.gain,
            "gain_beyond": beyond.gain,
        }

    @cached_property
    def _names(self) -> tuple[NDArray[Any], NDArray[Any]]:
        mdp = self.mdp
        states = np.asarray(label_column(mdp.state_labels, mdp.n_states), dtype=object)
        return states, np.asarray(label_column(mdp.action_labels, mdp.n_actions), dtype=object)


def sensitivity(mdp: MDP) -> Sensitivity:
    r"""Which reward or transition, changed by how much, changes the optimal gain or the optimal action.

    For the optimal policy d with stationary distribution π and bias h, at any optimum where d stays optimal,

        ∂g/∂r(s,a) = π(s)·1(a = d(s)),
        ∂g/∂p(s'|s,a) = π(s)·[h(s') + r(s,a,s') - (r + p·h)(s,a)]/(1 - p(s'|s,a)), the other entries in proportion

    (Schweitzer 1968; Cao 1998). An action that is not played becomes optimal when its reward rises by its optimality
    gap. If the reward of a played one falls, gain and bias fall in proportion, until the gap of some other pair is
    closed. `Sensitivity.check` solves again on both sides of such a change.

    Parameters
    ----------
    mdp : MDP
        A process whose optimal gain does not depend on the start, and whose optimal policy has one recurrent class.

    Returns
    -------
    Sensitivity
        Per unit of time and in the user's sign: for costs, a positive effect makes the gain dearer.

    Raises
    ------
    PlanningError
        If the optimal policy has several recurrent classes, or `solve` finds no answer.

    Examples
    --------
    A machine earns 1 while it works, breaks in a tenth of the steps and is mended for 2 in one step:

    >>> import gainful as gf
    >>> machine = gf.MDP([[[0.9, 0.1]], [[1.0, 0.0]]], [[1.0], [-2.0]], state_labels=["up", "down"])
    >>> found = gf.sensitivity(machine)
    >>> found.reward_effect.round(4).tolist()
    [[0.9091], [0.0909]]
    """
    require_mdp(mdp)
    plan, precision = precise_plan(mdp)
    assert plan.actions is not None
    value = evaluate(mdp, plan)
    if not value.unichain:
        raise PlanningError(
            f"the optimal policy has {len(value.classes)} recurrent classes, so that its gain has no derivative",
            plan,
            name="mdp",
            hint="look at one class: gf.sensitivity(mdp.restricted(states))",
        )
    return Sensitivity(
        plan=plan,
        frequency=value.stationary,
        reward_effect=_reward_effect(mdp, plan, value.stationary),
        transition_effect=_transition_effect(mdp, plan, value.stationary),
        change_at=_change_at(mdp, plan, precision),
        mdp=mdp,
    )


def with_reward(mdp: MDP, s: int, a: int, change: float) -> MDP:
    """The same process with the mean reward (or cost) of one pair changed."""
    internal = mdp.units.sign * change
    rewards = mdp.pair_rewards.copy()
    rewards[s * mdp.n_actions + a] += internal
    entries = None
    if mdp.entry_rewards is not None:
        entries = mdp.entry_rewards.copy()
        entries[mdp.indptr[s * mdp.n_actions + a] : mdp.indptr[s * mdp.n_actions + a + 1]] += internal
    law = "deterministic" if mdp.reward_law == "bernoulli" else mdp.reward_law
    return mdp._replace(pair_rewards=rewards, entry_rewards=entries, reward_law=law)


def _precision(mdp: MDP) -> float:
    low, high = mdp.reward_range
    return max(1e-9 * max(high - low, abs(high), abs(low)), 1e-300) / mdp.units.step_duration


def _reward_effect(mdp: MDP, plan: Plan, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """π(s) on the pairs played, per unit of time; rewards and gains have the same sign."""
    return np.asarray(plan.policy * frequency[:, None] / mdp.units.step_duration)


def _transition_effect(mdp: MDP, plan: Plan, frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """π(s)·(worth of a next state - worth of the row)/(1 - p), per unit of time."""
    h = mdp.units.amount(plan.bias)
    pair = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
    played = (plan.policy * frequency[:, None]).reshape(-1)[pair]
    worth = h[mdp.indices] + (mdp.pair_rewards[pair] if mdp.entry_rewards is None else mdp.entry_rewards)
    mean = np.bincount(pair, weights=mdp.probabilities * worth, minlength=mdp.indptr.size - 1)[pair]
    rest = 1.0 - mdp.probabilities
    effect = np.where(rest > 1e-12, played * (worth - mean) / np.maximum(rest, 1e-12), 0.0)
    return np.asarray(mdp.units.sign * effect / mdp.units.step_duration + 0.0)


def _change_at(mdp: MDP, plan: Plan, precision: float) -> NDArray[np.float64]:
    """The change of each pair's reward at which the optimal policy changes."""
    assert plan.actions is not None
    gaps = gaps_at(mdp, plan, precision)
    change = gaps.copy()  # an action that is not played must gain its gap
    states = np.arange(mdp.n_states)
    change[states, plan.actions] = -_falls(mdp, plan, gaps) if mdp.n_states <= FALLS_UP_TO else np.nan
    return np.asarray(mdp.units.sign * change + 0.0)


def _falls(mdp: MDP, plan: Plan, gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much the reward of each action played may fall before another policy is as good.

    Per unit of it the gain falls by π(s) and the bias by that of the reward 1(s), (g_1, h_1); the gap of a pair (x, b)
    that is not played then closes by g_1 + h_1(x) - p(·|x,b)·h_1.
    """
    assert plan.actions is not None
    P, _ = chain_of(mdp, plan.actions)
    rows, shape = mdp.matrix(), gaps.shape
    others = mdp.allowed & (plan.policy == 0.0)
    falls = np.full(mdp.n_states, np.inf)
    for s in range(mdp.n_states):
        unit = np.zeros(mdp.n_states)
        unit[s] = 1.0
        value = evaluate_chain(P, unit, stationary=False)
        closing = value.gain[:, None] + value.bias[:, None] - (rows @ value.bias).reshape(shape)
        near = others & (closing > 1e-12)
        if near.any():
            falls[s] = float((gaps[near] / closing[near]).min())
    return falls
