"""Machine maintenance: when to service a machine that wears out, before it breaks down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.evaluation import evaluate
from gainful.problems.problem import Problem, Rule, System

RUN, SERVICE = 0, 1
LONGEST_INTERVAL = 2_000
"""The longest interval between two services that is tried, in days."""


@dataclass(frozen=True)
class Maintenance(Problem):
    """A machine whose wear is measured every morning (vibration, temperature). A worn machine makes scrap and may fail.

    While the machine runs, wear rises from one level to the next after an exponential time of `days_per_level` on
    average. At level w the machine breaks down at a rate of `breakdown_rate` · `worse`^w per day. "run" earns `income`
    minus `scrap_cost` · w for the day; a day with a breakdown earns nothing. "service" takes the whole day and costs
    `service_cost`; the machine is as new the next morning. A broken machine must be repaired, which costs `repair_cost`
    and takes the whole day.

    The state is the wear 0 … n_levels - 1 in the morning, or broken. It is optimal to service from some level on
    (a control limit: Derman 1963). A fixed interval ignores the reading.

    Parameters
    ----------
    n_levels : int
        Levels of wear.
    days_per_level : float
        Mean number of days on a level while the machine runs.
    breakdown_rate : float
        Breakdowns per day when the machine is new.
    worse : float
        Each level of wear multiplies the rate of breakdowns by this factor.
    income : float
        Euros per day on which it runs.
    scrap_cost : float
        Euros per day and level of wear.
    service_cost : float
        Euros per service.
    repair_cost : float
        Euros per repair.

    Examples
    --------
    >>> machine = Maintenance()
    >>> machine.optimum.policy.argmax(axis=1).tolist()  # service from level 3 on; the last state is "broken"
    [0, 0, 0, 1, 1, 1, 1, 1, 1]
    """

    n_levels: int = 8
    days_per_level: float = 6.0
    breakdown_rate: float = 0.002
    worse: float = 1.9
    income: float = 1_000.0
    scrap_cost: float = 30.0
    service_cost: float = 800.0
    repair_cost: float = 6_000.0

    def __post_init__(self) -> None:
        whole("n_levels", self.n_levels, 2, 200)
        object.__setattr__(self, "days_per_level", real("days_per_level", self.days_per_level, 0.0, low_open=True))
        object.__setattr__(self, "worse", real("worse", self.worse, 1.0))
        for name in ("breakdown_rate", "income", "scrap_cost", "service_cost", "repair_cost"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0))
        real("breakdown_rate · worse^(n_levels - 1)", self.breakdown_rates[-1], 0.0, 1e6)
        if self.service_cost > self.repair_cost + self.income:
            raise InvalidArgumentError(
                "service_cost",
                self.service_cost,
                f"at most repair_cost + income, {self.repair_cost + self.income:g}",
                "a breakdown costs no more than that, so nobody would service the machine",
            )

    @property
    def breakdown_rates(self) -> list[float]:
        """Breakdowns per day, by level of wear."""
        try:
            return [self.breakdown_rate * self.worse**w for w in range(self.n_levels)]
        except OverflowError:
            return [float("inf")]

    # ------------------------------------------------------------------ system and model

    def system(self, seed: int = 0) -> MaintenanceSystem:
        """The simulated machine, as new."""
        return MaintenanceSystem(self, seed)

    @cached_property
    def day(self) -> NDArray[np.float64]:
        """(n+1, n+1) where a day of running leads, from each level; the last state is "broken". exp of the rates."""
        n = self.n_levels
        rates = np.zeros((n + 1, n + 1))
        for w, hazard in enumerate(self.breakdown_rates):
            rates[w, n] = hazard
            if w + 1 < n:
                rates[w, w + 1] = 1.0 / self.days_per_level
            rates[w, w] = -rates[w].sum()
        day = np.clip(expm(rates), 0.0, None)
        day[np.tril_indices(n + 1, -1)] = 0.0
        found: NDArray[np.float64] = day / day.sum(axis=1, keepdims=True)
        return found

    def _money(self) -> NDArray[np.float64]:
        """(n+1, 2, n+1) euros of a day, by wear, action and next state."""
        n = self.n_levels
        euros = np.zeros((n + 1, 2, n + 1))
        euros[:n, RUN, :n] = (self.income - self.scrap_cost * np.arange(n))[:, None]
        euros[:n, SERVICE] = -self.service_cost
        euros[n, SERVICE] = -self.repair_cost
        return euros

    def _model(self) -> MDP:
        n = self.n_levels
        P = np.zeros((n + 1, 2, n + 1))
        P[:n, RUN] = self.day[:n]
        P[:, SERVICE, 0] = 1.0
        allowed = np.ones((n + 1, 2), dtype=bool)
        allowed[n, RUN] = False
        return MDP(
            P,
            self._money(),
            allowed=allowed,
            state_labels=[*(f"wear {w}" for w in range(n)), "broken"],
            action_labels=("run", "service"),
            name="maintenance",
        )

    # ------------------------------------------------------------------ rules of thumb

    def control_limit(self, wear: int) -> NDArray[np.int64]:
        """Make the policy that services the machine from some level of wear on.

        Parameters
        ----------
        wear : int
            The first level at which to service, from 0 (always) to `n_levels` (never before it breaks).

        Returns
        -------
        ndarray of int64, shape (S,)
            The action of each state: 0 to run, 1 to service. A broken machine is always repaired.

        Examples
        --------
        >>> Maintenance(n_levels=4).control_limit(2).tolist()
        [0, 0, 1, 1, 1]
        """
        limit = whole("wear", wear, 0, self.n_levels)
        return np.append((np.arange(self.n_levels) >= limit).astype(np.int64), SERVICE)

    @cached_property
    def _intervals(self) -> NDArray[np.float64]:
        """Euros per day of each fixed interval 1, 2, … LONGEST_INTERVAL days: the money of a cycle over its days.

        A cycle begins as new and ends with a service or a repair, so all cycles are alike (renewal-reward theorem).
        """
        n = self.n_levels
        alive = np.zeros(n)  # where the machine is on each morning on which it runs
        alive[0] = 1.0
        income = self.income - self.scrap_cost * np.arange(n)
        money, length, found = 0.0, 1.0, np.empty(LONGEST_INTERVAL)  # the day of service or repair counts
        for i in range(LONGEST_INTERVAL):
            after = alive @ self.day[:n]
            length += float(alive.sum())
            money += float((alive * (1.0 - self.day[:n, n])) @ income) - self.repair_cost * float(after[n])
            alive = after[:n]
            found[i] = (money - self.service_cost * float(alive.sum())) / length
        return found

    def every(self, days: int) -> float:
        """Compute what "service after `days` days of running, whatever the wear; repair when it breaks" earns.

        By the renewal-reward theorem, it is the money earned in a cycle divided by the length of the cycle.

        Parameters
        ----------
        days : int
            Days of running between two services.

        Returns
        -------
        float
            Euros per day.

        Examples
        --------
        >>> machine = Maintenance()
        >>> machine.every(machine.best_interval) >= machine.every(1)
        True
        """
        return float(self._intervals[whole("days", days, 1, LONGEST_INTERVAL) - 1])

    @cached_property
    def best_interval(self) -> int:
        """The number of days of running between two services that earns most."""
        return 1 + int(np.argmax(self._intervals))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The best fixed interval, running until it breaks, and service at the first sign of wear."""
        days = self.best_interval
        return (
            Rule(f"service after every {days} days, the best fixed interval", self.every(days)),
            self._rule("run it until it breaks", self.control_limit(self.n_levels)),
            self._rule("service at the first sign of wear", self.control_limit(1)),
        )

    def with_a_calendar(self, days: int) -> MDP:
        """Make a larger model, whose state also counts the days since the last service.

        There a fixed interval is a policy: run below `days`, service at it. Wear w at age a is state w·(days + 1) + a;
        the last state is "broken".

        Parameters
        ----------
        days : int
            The age at which the machine must be serviced.

        Returns
        -------
        MDP
            The model; its gain is in euros per day.

        Examples
        --------
        >>> Maintenance(n_levels=4).with_a_calendar(9).n_states
        41
        """
        n, ages = self.n_levels, whole("days", days, 1) + 1
        S = n * ages + 1
        P, R = np.zeros((S, 2, S)), np.zeros((S, 2, S))
        allowed, euros = np.ones((S, 2), dtype=bool), self._money()
        for w in range(n):
            for age in range(ages):
                s = w * ages + age
                P[s, SERVICE, 0], R[s, SERVICE, 0] = 1.0, euros[w, SERVICE, 0]
                if age == days:
                    allowed[s, RUN] = False
                    continue
                to = np.append(np.arange(n) * ages + age + 1, S - 1)
                P[s, RUN, to], R[s, RUN, to] = self.day[w], euros[w, RUN]
        P[-1, SERVICE, 0], R[-1, SERVICE, 0] = 1.0, -self.repair_cost
        allowed[-1, RUN] = False
        return MDP(P, R, allowed=allowed, name="maintenance-with-a-calendar")

    def every_by_evaluation(self, days: int) -> float:
        """Compute the same as `every`, by exact evaluation of the policy on the larger model of `with_a_calendar`.

        Parameters
        ----------
        days : int
            Days of running between two services.

        Returns
        -------
        float
            Euros per day.

        Examples
        --------
        >>> machine = Maintenance(n_levels=4)
        >>> abs(machine.every_by_evaluation(9) - machine.every(9)) < 1e-6
        True
        """
        mdp = self.with_a_calendar(days)
        ages = np.append(np.tile(np.arange(days + 1), self.n_levels), days)
        return evaluate(mdp, (ages == days).astype(np.int64)).gain_from_start

    # ------------------------------------------------------------------ c

    @property
    def c(self) -> float:
        """The cost of putting things right: one repair (or one service, if that costs more) and a day's income.

        At this cost the machine can be as new tomorrow, whatever its state. A new machine is the best state, and a day
        cannot earn more than `income`, so h*(new) - h*(s) <= cost + income for every s, and c is at least sp(h*).
        """
        return max(self.repair_cost, self.service_cost) + self.income


class MaintenanceSystem(System):
    """The machine hour by hour: the next wear and the next breakdown compete while it runs."""

    def __init__(self, facts: Maintenance, seed: int) -> None:
        super().__init__(2, seed)
        self._facts = facts
        self._hazard = facts.breakdown_rates
        self._wear = 0
        self._broken = False

    @property
    def state(self) -> int:
        """The wear, or n_levels if it is broken."""
        return self._facts.n_levels if self._broken else self._wear

    def _happen(self, action: int) -> tuple[float, float, float]:
        facts = self._facts
        if action == SERVICE:
            paid = facts.repair_cost if self._broken else facts.service_cost
            self._wear, self._broken = 0, False
            return 0.0 - paid, 0.0 - paid, 1.0
        if self._broken:
            raise self._refuse("run")
        morning, left = self._wear, 1.0
        while True:
            top = self._wear == facts.n_levels - 1
            wears = np.inf if top else self._random.exponential(facts.days_per_level)
            hazard = self._hazard[self._wear]
            breaks = self._random.exponential(1.0 / hazard) if hazard > 0.0 else np.inf
            if min(wears, breaks) >= left:
                earned = facts.income - facts.scrap_cost * morning
                return earned, earned, 1.0
            if breaks < wears:
                self._broken = True
                return 0.0, 0.0, 1.0
            self._wear += 1
            left -= wears
