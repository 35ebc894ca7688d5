"""What the worked problems share: business facts in, a simulator, an exact model, rules of thumb and a bound c out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.scal_plus import SCALPlus
from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.evaluation import evaluate
from gainful.planning.plan import Plan
from gainful.planning.solve import solve

OPTIMUM_PRECISION = 1e-6
"""Euros per day: the optimum is known at least this well."""


class Happened(NamedTuple):
    """What followed an action."""

    reward: float
    """Euros: what a learner is told."""
    next_state: int
    elapsed: float
    """Days of business since the last decision."""


class Learner(Protocol):
    """Anything with the two verbs of an agent."""

    def act(self, state: int) -> int:
        """The action to take now."""
        ...

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """What it led to."""
        ...


class System(ABC):
    """The real thing, simulated: it has a state, takes an action, and lets time pass until it asks again.

    It knows the business facts and nothing of the model's table. `money` and `days` are the books: euros earned and
    days of business since the beginning. Randomness is a NumPy generator of its own, made from `seed`.
    """

    def __init__(self, n_actions: int, seed: int) -> None:
        self._n_actions = n_actions
        self._random = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
        self.days = 0.0
        """Days of business so far."""
        self.money = 0.0
        """Euros earned so far."""

    @property
    @abstractmethod
    def state(self) -> int:
        """The state now, numbered as in the model."""

    def step(self, action: int) -> Happened:
        """Take the action, let things happen until the next decision, and say what did."""
        a = whole("action", action, 0, self._n_actions - 1)
        reward, earned, elapsed = self._happen(a)
        self.days += elapsed
        self.money += earned
        return Happened(reward, self.state, elapsed)

    @abstractmethod
    def _happen(self, action: int) -> tuple[float, float, float]:
        """The reward told, the euros booked and the days elapsed; moves the state."""

    def _refuse(self, action: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            "action",
            action,
            hint="see model.allowed",
            problem=f"action '{action}' is not available in state {self.state}",
        )


class Ledger(NamedTuple):
    """A stretch of business: how many decisions, how long, and what came in."""

    steps: int
    days: float
    money: float

    @property
    def money_per_day(self) -> float:
        """Euros per day of business."""
        return self.money / self.days


def live(learner: Learner, system: System, days: float) -> Ledger:
    """Let `learner` run `system` for so many days: ask it, do what it says, tell it what happened.

    The learner is anything with `act(state)` and `observe(state, action, reward, next_state)`. The stretch ends with
    the first decision at or after its last moment; called again, business goes on.
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
    """Let one learner run several systems of the same kind, in turn, for so many days each: a fleet, a chain of shops.

    What one of them teaches serves all. SCAL+'s theorem is for one system; no theorem covers this. The books are of all
    systems together, per system and day.
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
    """A fixed policy with the two verbs of an agent: what a rule of thumb looks like to a simulator."""

    def __init__(self, actions: ArrayLike) -> None:
        self._actions = [int(a) for a in np.asarray(actions)]

    def act(self, state: int) -> int:
        """What the policy says."""
        return self._actions[state]

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learns nothing."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of thumb, and what it earns in the long run."""

    name: str
    money_per_day: float
    """Exact, by solving the equations of the chain it makes."""
    actions: NDArray[np.int64] | None = field(default=None, repr=False)
    """(S,) its action in each state of the model; None if it looks at something that the model's state does not tell"""


class Problem(ABC):
    """A business problem; its facts are the fields of a frozen data class. Money is in euros, time in days."""

    @abstractmethod
    def system(self, seed: int = 0) -> System:
        """The simulated system at its beginning."""

    @abstractmethod
    def _model(self) -> MDP:
        """The exact model; one unit of its time is a day."""

    @cached_property
    def model(self) -> MDP:
        """The exact model of the system as an MDP; its gain is in euros per day."""
        return self._model()

    @cached_property
    def optimum(self) -> Plan:
        """The best policy of all, by `solve`."""
        return solve(self.model, precision=OPTIMUM_PRECISION)

    @property
    def steps_per_day(self) -> float:
        """Decisions per day, on average."""
        return 1.0 / self.model.units.step_duration

    @property
    def best_money_per_day(self) -> float:
        """What the best policy earns."""
        return self.model.units.sign * self.optimum.gain

    def money_per_day(self, policy: Plan | ArrayLike) -> float:
        """What a policy earns per day in the long run, exactly, from the beginning of the business."""
        return self.model.units.sign * evaluate(self.model, policy).gain_from_start

    def _rule(self, name: str, actions: ArrayLike) -> Rule:
        table = np.asarray(actions, dtype=np.int64)
        return Rule(name, self.money_per_day(table), table)

    @property
    @abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """The rules of thumb that people use, the commonest first."""

    @property
    @abstractmethod
    def c(self) -> float:
        """A bound on the span of the optimal bias, in euros, from business facts alone."""

    def learner(self, *, bonus_scale: float = 1.0, seed: int = 0, delta: float = 0.05) -> SCALPlus:
        """SCAL+ for this system, told c and the range of the rewards; it knows nothing else.

        `bonus_scale` 1 has the theorem's constants. Anything else has no guarantee.
        """
        model = self.model
        return SCALPlus(
            model.n_states,
            model.n_actions,
            span=self.c,
            reward_min=model.reward_min,
            reward_max=model.reward_max,
            allowed=model.allowed,
            bonus_scale=bonus_scale,
            seed=seed,
            delta=delta,
        )
