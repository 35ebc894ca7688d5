"""The base of the worked problems: a simulator, an exact model, rules of thumb and a bound c from business facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.labels import AgentLabels
from gainful.agents.registry import agent_class
from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError, suggestion
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.evaluation import evaluate
from gainful.planning.plan import Plan
from gainful.planning.solve import solve

OPTIMUM_PRECISION = 1e-6
"""Euros per day, to which the optimum is computed."""


class Happened(NamedTuple):
    """The outcome of an action.

    Attributes
    ----------
    reward : float
        The reward in euros, as the learner observes it.
    next_state : int
        The state at the next decision.
    elapsed : float
        Days of business since the last decision.

    Examples
    --------
    >>> from gainful.problems import Maintenance
    >>> Maintenance().system(seed=1).step(1)  # a new machine is serviced
    Happened(reward=-800.0, next_state=0, elapsed=1.0)
    """

    reward: float
    next_state: int
    elapsed: float


class Learner(Protocol):
    """Anything with the two methods of an agent, `act` and `observe`.

    Every agent on numbered states is a learner, and so is a `Routine`.

    Examples
    --------
    >>> from gainful.problems import Maintenance, live
    >>> class AlwaysService:
    ...     def act(self, state):
    ...         return 1
    ...
    ...     def observe(self, state, action, reward, next_state):
    ...         pass
    >>> live(AlwaysService(), Maintenance().system(seed=1), days=10).money_per_day
    -800.0
    """

    def act(self, state: int) -> int:
        """Choose the action to take in a state.

        Parameters
        ----------
        state : int
            The present state, from 0.

        Returns
        -------
        int
            The action, from 0.
        """
        ...

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learn what an action led to.

        Parameters
        ----------
        state : int
            The state in which the action was taken.
        action : int
            The action taken.
        reward : float
            The reward received.
        next_state : int
            The state at the next decision.
        """
        ...


class System(ABC):
    """A simulated system: it has a state, takes an action, and lets time pass until the next decision.

    It is built on the business facts and knows nothing of the model. Its randomness is a NumPy generator of its own,
    made from `seed`.

    Parameters
    ----------
    n_actions : int
        The number of actions.
    seed : int
        The seed of its randomness.

    Attributes
    ----------
    days : float
        Days of business so far.
    money : float
        Euros earned so far.

    Examples
    --------
    >>> from gainful.problems import Maintenance
    >>> machine = Maintenance().system(seed=1)
    >>> machine.step(1).reward
    -800.0
    >>> machine.state, machine.days, machine.money
    (0, 1.0, -800.0)
    """

    def __init__(self, n_actions: int, seed: int) -> None:
        self._n_actions = n_actions
        self._random = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
        self.days = 0.0
        self.money = 0.0

    @property
    @abstractmethod
    def state(self) -> int:
        """The present state, numbered as in the model."""

    def step(self, action: int) -> Happened:
        """Take an action and simulate until the next decision.

        Parameters
        ----------
        action : int
            The action, from 0.

        Returns
        -------
        Happened
            The reward, the next state and the days elapsed.

        Raises
        ------
        InvalidArgumentError
            For an action that the state does not have.
        """
        a = whole("action", action, 0, self._n_actions - 1)
        reward, earned, elapsed = self._happen(a)
        self.days += elapsed
        self.money += earned
        return Happened(reward, self.state, elapsed)

    @abstractmethod
    def _happen(self, action: int) -> tuple[float, float, float]:
        """Change the state; return the reward to observe, the euros earned and the days elapsed."""

    def _refuse(self, action: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            "action",
            action,
            hint="see model.allowed",
            problem=f"action '{action}' is not available in state {self.state}",
        )


class Ledger(NamedTuple):
    """The accounts of a period of business.

    Attributes
    ----------
    steps : int
        Decisions made.
    days : float
        Days of business.
    money : float
        Euros earned.

    Examples
    --------
    >>> Ledger(steps=100, days=50.0, money=400.0).money_per_day
    8.0
    """

    steps: int
    days: float
    money: float

    @property
    def money_per_day(self) -> float:
        """Euros per day of business."""
        return self.money / self.days


def live(learner: Learner, system: System, days: float) -> Ledger:
    """Let a learner run a system for some days: ask it for an action, take it, report what happened.

    The period ends with the first decision at or after its last moment. Called again, business continues.

    Parameters
    ----------
    learner : Learner
        Anything with `act(state)` and `observe(state, action, reward, next_state)`.
    system : System
        The simulated system.
    days : float
        Days of business.

    Returns
    -------
    Ledger
        The books of the period.

    Examples
    --------
    >>> from gainful.problems import Maintenance, Routine, live
    >>> machine = Maintenance()
    >>> books = live(Routine(machine.control_limit(3)), machine.system(seed=1), days=100)
    >>> books.steps, books.days
    (100, 100.0)
    """
    until = system.days + real("days", days, 0.0, low_open=True)
    began, money, steps = system.days, system.money, 0
    state = system.state
    while system.days < until:
        action = learner.act(state)
        reward, following, _ = system.step(action)
        learner.observe(state, action, reward, following)
        state = following
        steps += 1
    return Ledger(steps, system.days - began, system.money - money)


def live_together(learner: Learner, systems: Sequence[System], days: float) -> Ledger:
    """Let one learner run several systems of the same kind, in turn, for some days each: a fleet, a chain of shops.

    What it learns from one of them serves all. The theorems are for one system; none covers this.

    Parameters
    ----------
    learner : Learner
        Shared by all systems.
    systems : sequence of System
        At least one.
    days : float
        Days of business of each.

    Returns
    -------
    Ledger
        The books of all systems together; `money_per_day` is per system and day.

    Raises
    ------
    InvalidArgumentError
        Without a system.

    Examples
    --------
    >>> from gainful.problems import Maintenance, Routine, live_together
    >>> machine = Maintenance()
    >>> fleet = [machine.system(seed=i) for i in range(3)]
    >>> books = live_together(Routine(machine.control_limit(3)), fleet, days=100)
    >>> books.steps, books.days
    (300, 300.0)
    """
    length = real("days", days, 0.0, low_open=True)
    if not len(systems):
        raise InvalidArgumentError("systems", systems, "at least one", problem="systems is empty")
    until = [system.days + length for system in systems]
    began, money = sum(system.days for system in systems), sum(system.money for system in systems)
    states = [system.state for system in systems]
    steps, running = 0, True
    while running:
        running = False
        for i, system in enumerate(systems):
            if system.days >= until[i]:
                continue
            running = True
            action = learner.act(states[i])
            reward, following, _ = system.step(action)
            learner.observe(states[i], action, reward, following)
            states[i] = following
            steps += 1
    return Ledger(steps, sum(s.days for s in systems) - began, sum(s.money for s in systems) - money)


class Routine:
    """A fixed policy with the two methods of an agent, to run a rule of thumb in a simulator.

    Parameters
    ----------
    actions : array_like
        (S,) the action of each state.

    Examples
    --------
    >>> routine = Routine([0, 0, 1])
    >>> routine.act(2)
    1
    """

    def __init__(self, actions: ArrayLike) -> None:
        self._actions = [int(a) for a in np.asarray(actions)]

    def act(self, state: int) -> int:
        """Give the action of the policy.

        Parameters
        ----------
        state : int
            The state, from 0.

        Returns
        -------
        int
            Its action.
        """
        return self._actions[state]

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Do nothing: the policy is fixed.

        Parameters
        ----------
        state, action, reward, next_state
            As for `Learner.observe`; they are ignored.
        """


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of thumb, and the euros per day that it earns in the long run.

    Attributes
    ----------
    name : str
        What it is called.
    money_per_day : float
        Euros, exact: by solving the equations of its Markov chain.
    actions : ndarray or None
        (S,) its action in each state of the model; None if it depends on something that is not in the model's state.

    Examples
    --------
    >>> from gainful.problems import Maintenance
    >>> rule = Maintenance().rules[1]
    >>> rule.name, rule.actions.tolist()
    ('run it until it breaks', [0, 0, 0, 0, 0, 0, 0, 0, 1])
    """

    name: str
    money_per_day: float
    actions: NDArray[np.int64] | None = field(default=None, repr=False)


class Problem(ABC):
    """A business problem: a simulator, the exact model with its optimum, rules of thumb, and a bound c.

    The facts of a problem are the fields of a frozen dataclass. Money is in euros and time in days.

    Examples
    --------
    >>> from gainful.problems import Maintenance
    >>> problem = Maintenance(n_levels=4)
    >>> problem.model.n_states, problem.c
    (5, 7000.0)
    >>> problem.best_money_per_day >= max(rule.money_per_day for rule in problem.rules) - 1e-6
    True
    """

    @abstractmethod
    def system(self, seed: int = 0) -> System:
        """Make a simulated system, at its beginning.

        Parameters
        ----------
        seed : int
            The seed of its randomness.

        Returns
        -------
        System
            A new system, independent of all others.
        """

    @abstractmethod
    def _model(self) -> MDP:
        """The exact model; one unit of its time is a day."""

    @cached_property
    def model(self) -> MDP:
        """The exact model of the system as an MDP; its gain is in euros per day."""
        return self._model()

    @cached_property
    def optimum(self) -> Plan:
        """The optimal policy and its gain, by `solve`."""
        return solve(self.model, precision=OPTIMUM_PRECISION)

    @property
    def steps_per_day(self) -> float:
        """Decisions per day, on average."""
        return 1.0 / self.model.units.step_duration

    @property
    def best_money_per_day(self) -> float:
        """What the optimal policy earns, in euros per day."""
        return self.model.units.sign * self.optimum.gain

    def money_per_day(self, policy: Plan | ArrayLike) -> float:
        """Compute what a policy earns in the long run, in euros per day, from the initial state.

        The equations of the policy's Markov chain are solved; nothing is simulated.

        Parameters
        ----------
        policy : Plan or array_like
            A plan, the action of each state (S,), or the probabilities of the actions (S, A).

        Returns
        -------
        float
            Euros per day.

        Examples
        --------
        >>> from gainful.problems import Maintenance
        >>> machine = Maintenance()
        >>> always_service = machine.control_limit(0)
        >>> round(machine.money_per_day(always_service))
        -800
        """
        return self.model.units.sign * evaluate(self.model, policy).gain_from_start

    def _rule(self, name: str, actions: ArrayLike) -> Rule:
        table = np.asarray(actions, dtype=np.int64)
        return Rule(name, self.money_per_day(table), table)

    @property
    @abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """The rules of thumb in use, the most common first."""

    @property
    @abstractmethod
    def c(self) -> float:
        """A bound on the span of the optimal bias, in euros, from business facts alone."""

    def learner(
        self, agent: str = "kl-scal-plus", *, seed: int = 0, delta: float = 0.05, **settings: Any
    ) -> EpisodicAgent:
        """Make an agent for this system, which knows the range of the rewards and nothing else of the model.

        An agent that needs a bound on the span is given c. KL-SCAL+ is given c only if some states cannot be reached
        from others.

        Parameters
        ----------
        agent : str
            A tabular agent by its name in `gainful list agents`.
        seed : int
            The seed of the agent.
        delta : float
            The probability with which its guarantee may fail, for agents that have one.
        **settings
            The agent's own parameters; they come before what is filled in here.

        Returns
        -------
        EpisodicAgent
            A new agent.

        Raises
        ------
        InvalidArgumentError
            For a parameter that the agent does not have.

        Examples
        --------
        >>> from gainful.problems import Maintenance
        >>> machine = Maintenance()
        >>> machine.learner(seed=1).span is None  # every state can be reached from every other
        True
        >>> machine.learner("scal-plus", bonus="sharp").span == machine.c
        True
        """
        made, model = agent_class(agent), self.model
        known = signature(made).parameters
        for name, value in settings.items():
            if name not in known:
                hint = suggestion(name, [p for p in known if p not in ("n_states", "n_actions")])
                if name in signature(agent_class("scal-plus")).parameters:
                    hint = f"learner('scal-plus', {name}={value!r}) makes SCAL+, which has it"
                raise InvalidArgumentError(name, value, hint=hint, problem=f"{agent} has no parameter '{name}'")
        filled: dict[str, Any] = {
            "reward_min": model.reward_min,
            "reward_max": model.reward_max,
            "allowed": model.allowed,
            "seed": seed,
            "delta": delta,
        }
        if "span" in known:
            needed = known["span"].default is not None or structure(model) != "communicating"
            filled["span"] = self.c if needed else None
        learner = made(
            model.n_states,
            model.n_actions,
            **{name: value for name, value in filled.items() if name in known} | settings,
        )
        learner.labels = AgentLabels.of(model)
        return learner
