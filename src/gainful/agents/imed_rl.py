"""IMED-RL: the exact index of minimum empirical divergence in ergodic MDPs (Pesquerel & Maillard, NeurIPS 2022)."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import one_hot
from gainful.agents.guarantee import Guarantee
from gainful.agents.observed_graph import known_to_be_ergodic, observed_avoidable_state
from gainful.agents.saved_arrays import check_saved
from gainful.agents.stepwise import INDEXED, StepwiseAgent
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.optimism.imed_rl import (
    MOST_ATOMS,
    IndexRoom,
    RewardAtoms,
    count_rewards,
    least_index,
    new_atoms,
    untried_actions,
    write_indices,
)
from gainful.planning.skeleton import MOST_EXACT_STATES, CountedModel, SkeletonPlan, plan_on_skeleton
from gainful.rng import Key, draw, uniform

LOST_RUNS = "without it IMED-RL may lose whole runs, as it did in 3 of 40 on Maillard's RiverSwim of six states"


class IndexTables(NamedTuple):
    """All that IMED-RL decides by, besides what it has counted; groups of arrays as plain tuples."""

    atoms: Any
    """`RewardAtoms`"""
    plan: Any
    """`SkeletonPlan`"""
    room: Any
    """`IndexRoom`"""
    planned_at: Any
    """(1,) the steps observed before the plan in force; -1 if there is none."""
    lazy: float
    """The share of steps after which a plan is made again."""
    decisions: Any
    """(n,) the actions chosen after 0, 1, … steps, if they are kept; empty if not."""
    key: Key
    """The agent's own draws."""


class IMEDRL(StepwiseAgent):
    r"""IMED-RL with the exact index: asymptotically optimal in ergodic MDPs (Pesquerel & Maillard 2022).

    Before every decision it computes the optimal bias h of the estimated MDP, restricted in each state to its skeleton,
    the actions with N(s,a) ≥ ln²(max_b N(s,b)). It takes the action of the least index H(s,a) = N·K + ln N,
    ::

        K(s,a) = max over 0 ≤ x ≤ 1/(r_max + max h - γ) of E ln(1 - (R + h(Y) - γ)·x),  γ = max_b [r̂(s,b) + p̂(·|s,b)·h]

    where R and Y have the empirical laws of the pair, and K = 0 for the best action. Every action of a state is tried
    once first; ties are broken at random. One sample that was never seen, of reward r_max/2 and a uniform next state,
    counts in every pair, so that h exists from the first step on.

    **It is made for ergodic MDPs, in which every policy visits every state.** In others it may stop exploring for good:
    on Maillard's RiverSwim of six states, which is not ergodic, it lost 3 of 40 runs entirely; after a million steps
    the median of its expected regret was 142 and the mean 61,528 (docs/reference/agents.md). So it promises nothing
    (`guarantee`) unless `ergodic` is True or the transitions that it has observed prove that its MDP is ergodic.
    `for_mdp` asks the model.

    Public implementations maximise E ln(B - δx) instead, with B = r_max + max h, and leave out the term -ln B: their K
    is too large by ln B, so that they explore too little, and their regret is linear in some runs. This one computes
    the equation of the paper.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min : float
        The largest and the smallest reward.
    delta : float
        Unused; every agent accepts it.
    seed : int
        The seed of the agent's own randomness, which breaks ties.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.
    lazy : float
        After a plan at step t, plan again after step (1 + lazy)·t only. 0 plans before every decision, as the theorem
        assumes; 0.002 lost as much within noise where we measured it, and is several times faster where planning is
        slow.
    ergodic : bool, optional
        Whether every policy visits every state, if you know (`gf.is_ergodic`). By default that is not known, and it is
        left to the data to prove it.

    Notes
    -----
    Up to 64 states a policy is evaluated exactly, by elimination, and improved until nothing improves. Above that,
    values are iterated from those of the last plan until their change has a span of 10⁻⁷·r_max.

    The reward law of a pair is exact up to 32 different rewards, 0, r_max/2 and r_max among them. Further ones are
    divided between their neighbours, which keeps means and makes an index smaller, never larger.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.IMEDRL.for_mdp(gf.environments.riverswim_ergodic(6)).guarantee.holds
    True
    >>> print(gf.IMEDRL.for_mdp(gf.environments.riverswim(6)).guarantee)  # doctest: +ELLIPSIS
    no guarantee: the model is not ergodic: some policy never visits some state; ...
    >>> print(gf.IMEDRL(n_states=6, n_actions=2).guarantee)  # doctest: +ELLIPSIS
    no guarantee: what was observed does not prove that every policy visits every state ...
    """

    kind = INDEXED

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        lazy: float = 0.0,
        ergodic: bool | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        if not (finite(lazy) and 0.0 <= lazy <= 1.0):
            raise InvalidArgumentError("lazy", lazy, "a number in [0, 1]", "0 plans before every decision")
        if ergodic not in (None, True, False):
            raise InvalidArgumentError("ergodic", ergodic, "True, False, or None if you do not know")
        pairs, S = self.n_states * self.n_actions, self.n_states
        check_table_size("n_states", S, self.n_actions, 16.0 * MOST_ATOMS + 100.0, "IMED-RL, with its reward laws,")
        self.lazy, self.ergodic = float(lazy), None if ergodic is None else bool(ergodic)
        self.atoms = new_atoms(pairs, self.reward_range)
        """The reward law of every pair."""
        self.policy: NDArray[np.int64] = self.allowed.argmax(axis=1)
        """(S,) the actions of an optimal policy of the skeleton, by the last plan."""
        self.bias: NDArray[np.float64] = np.zeros(S)
        """(S,) its bias, 0 in state 0."""
        self.skeleton_gain: NDArray[np.float64] = np.zeros(2)
        """(2,) a bracket on its gain, less `reward_min`."""
        self.skeleton_planned_at: NDArray[np.int64] = np.full(1, -1, dtype=np.int64)
        """(1,) the steps observed before the last plan; -1 if there is none."""
        rows = S if S <= MOST_EXACT_STATES else 1
        self._system = np.zeros((rows, S + 1))
        self._room = IndexRoom(np.zeros(S), np.zeros(self.n_actions), np.zeros(self.n_actions))
        self.decisions: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        """Where the first decisions are kept, if it has room: an audit gives it some."""
        self._proven = False

    @classmethod
    def for_mdp(cls, mdp: MDP, **parameters: Any) -> Self:
        """Make an agent for a model; `ergodic` is what the model says, unless it is given.

        Parameters
        ----------
        mdp : MDP
            The model.
        **parameters
            The other arguments of the agent.

        Returns
        -------
        IMEDRL
            A new agent.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.IMEDRL.for_mdp(gf.environments.riverswim(6)).settings()["ergodic"]
        False
        """
        if "ergodic" in inspect.signature(cls).parameters and isinstance(mdp, MDP):
            parameters.setdefault("ergodic", known_to_be_ergodic(mdp))
        return super().for_mdp(mdp, **parameters)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "lazy": self.lazy, "ergodic": self.ergodic}

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, void until the transitions observed prove that the MDP is ergodic."""
        return Guarantee(
            bound="expected regret at most C(M)·ln T + O((ln T)^(10/11)) as T grows, and no consistent learner has a "
            "smaller constant",
            assumptions=(
                "every policy visits every state",
                "no pair earns the largest reward always",
            ),
            source="Pesquerel & Maillard 2022, theorems 2 and 3",
            reason_void=self._why_void(),
        )

    def _why_void(self) -> str:
        if self.lazy > 0.0:
            return f"lazy is {self.lazy:g}, the theorem needs 0"
        if np.any(self.atoms.number == MOST_ATOMS):
            return f"a pair had {MOST_ATOMS} different rewards, with 0, r_max/2 and r_max; more are not kept apart"
        if self._proven or self.ergodic:
            return ""
        if self.ergodic is False:
            return f"the model is not ergodic: some policy never visits some state; {LOST_RUNS}"
        state, reason = observed_avoidable_state(self.statistics, self.allowed)
        self._proven = not reason and state is None
        if self._proven:
            return ""
        if not reason:
            labels = self.labels
            named = state if labels is None or labels.states is None else repr(labels.states[state or 0])
            reason = f"some policy might never visit state {named}"
        return f"what was observed does not prove that every policy visits every state ({reason}); {LOST_RUNS}"

    def model(self) -> tuple[Any, ...]:
        """Give what was counted, for kernels.

        Returns
        -------
        tuple
            The fields of `CountedModel`, in order. The arrays are the agent's own and not copies.
        """
        s = self.statistics
        rows = s.begin, s.length, s.next_state, s.count
        return (*rows, s.visits, s.reward_sum, self.allowed, self.reward_range)

    def tables(self) -> tuple[Any, ...]:
        """Give what else decisions depend on, for kernels.

        Returns
        -------
        tuple
            The fields of `IndexTables`, in order. The arrays are the agent's own and not copies.
        """
        plan = self.policy, self.bias, self.skeleton_gain, self._system
        return tuple(self.atoms), plan, tuple(self._room), self.skeleton_planned_at, self.lazy, self.decisions, self.key

    def decide(self, state: int, n: int = 0) -> int:
        """The action of the least index in a valid `state`, after a plan if one is due."""
        tables = *self.tables()[:6], self.decision_key(n)
        return int(choose_by_index(self.model(), tables, state, self.t))

    def indices(self, state: int) -> NDArray[np.float64]:
        """Compute the index H(s,a) of every action by the plan in force.

        Parameters
        ----------
        state : int
            A valid state.

        Returns
        -------
        ndarray of shape (A,)
            Infinite for an action that the state lacks. If some action was never tried there, -inf for such an action
            and infinite for all others.
        """
        found = np.full(self.n_actions, np.inf)
        tried = self.statistics.visits.reshape(self.allowed.shape)[state] > 0
        if np.any(~tried & self.allowed[state]):
            found[~tried & self.allowed[state]] = -np.inf
        else:
            indices_of(self.model(), tuple(self.atoms), self.bias, state, tuple(self._room))
            found[:] = self._room.index
        return found

    def learn(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Count a transition that has been checked, and its reward in the law of the pair."""
        super(StepwiseAgent, self).learn(state, action, reward, next_state)
        pair = np.array([state * self.n_actions + action])
        count_rewards(tuple(self.atoms), pair, np.array([reward - self.reward_min]))

    def policy_at(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N, A) the actions of the last plan, the best of the skeleton, as probabilities; it explores others too."""
        return one_hot(self.policy[states], self.n_actions)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The plan and the reward laws."""
        return {
            "policy": self.policy,
            "bias": self.bias,
            "skeleton_gain": self.skeleton_gain,
            "skeleton_planned_at": self.skeleton_planned_at,
            "reward_value": self.atoms.value,
            "reward_weight": self.atoms.weight,
            "reward_number": self.atoms.number,
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the plan and the reward laws."""
        like = self.own_arrays()
        check_saved(arrays, "policy", like["policy"], low=0, high=self.n_actions - 1)
        if not self.allowed[np.arange(self.n_states), arrays["policy"]].all():
            raise ValueError("array 'policy' holds an action that a state does not have")
        for name in ("bias", "skeleton_gain"):
            check_saved(arrays, name, like[name])
        check_saved(arrays, "skeleton_planned_at", like["skeleton_planned_at"], low=-1, high=self.t)
        check_saved(arrays, "reward_number", like["reward_number"], low=3, high=MOST_ATOMS)
        check_saved(arrays, "reward_value", like["reward_value"], low=0.0, high=self.reward_range)
        check_saved(arrays, "reward_weight", like["reward_weight"], low=0.0)
        _check_laws(arrays, self.statistics.visits)
        self.policy, self.bias = arrays["policy"], arrays["bias"]
        self.skeleton_gain, self.skeleton_planned_at = arrays["skeleton_gain"], arrays["skeleton_planned_at"]
        self.atoms = RewardAtoms(arrays["reward_value"], arrays["reward_weight"], arrays["reward_number"])


def _check_laws(arrays: dict[str, NDArray[Any]], visits: NDArray[np.int64]) -> None:
    """Raise a ValueError unless rewards increase and their weights add up to the visits and one."""
    kept = np.arange(MOST_ATOMS) < arrays["reward_number"][:, None]
    rising = np.diff(arrays["reward_value"], axis=1) > 0.0
    if not rising[kept[:, 1:]].all() or arrays["reward_weight"][~kept].any():
        raise ValueError("the rewards of a pair are not in increasing order")
    if np.any(np.abs(arrays["reward_weight"].sum(axis=1) - (visits + 1)) > 1e-6 * (visits + 1)):
        raise ValueError("the rewards do not add up to the visits")


@kernel
def choose_by_index(model: CountedModel, tables: IndexTables, s: int, t: int) -> int:
    """The action in state s after t steps; a plan is made first if one is due and every action of s was tried."""
    counted, by = CountedModel(*model), IndexTables(*tables)
    atoms, plan, room = RewardAtoms(*by.atoms), SkeletonPlan(*by.plan), IndexRoom(*by.room)
    if not untried_actions(counted, s, room.index):
        before = by.planned_at[0]
        if before < 0 or t > before + by.lazy * before:
            plan_on_skeleton(model, by.plan)
            by.planned_at[0] = t
        write_indices(counted, atoms, plan.bias, s, room)
    action = least_index(room.index, uniform(draw(by.key, np.uint64(2 * t))))
    if t < by.decisions.size:
        by.decisions[t] = action
    return action


@kernel
def indices_of(model: CountedModel, atoms: RewardAtoms, bias: Any, s: int, room: IndexRoom) -> None:
    """H of every action of a state, into `room.index`."""
    write_indices(CountedModel(*model), RewardAtoms(*atoms), bias, s, IndexRoom(*room))
