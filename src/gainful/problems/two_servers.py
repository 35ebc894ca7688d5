"""Routing between two servers: which packing line gets the next order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import real, whole
from gainful.environments.server_routing import server_routing
from gainful.mdp.model import MDP
from gainful.problems.problem import Problem, Rule, System

FAST, SLOW = 0, 1


@dataclass(frozen=True)
class TwoServers(Problem):
    """Two packing lines of different speed; each order is assigned to one of them on arrival and stays there.

    Orders arrive at random (Poisson), and packing takes an exponential time. The state is the number of orders at each
    line, including the one being packed. An order that is not yet packed costs `waiting_cost` per hour. An order sent
    to a line whose shelf is full goes to a courier instead, for `courier_cost`. All of these are costs, so money per
    day is negative. The model is `gf.environments.server_routing`, with rates per day.

    A step is one event: an order arrives, an order is packed, or an idle line reports "nothing to do". The last event
    changes nothing and happens as often as that line packs, so that all steps have the same mean length.

    Parameters
    ----------
    orders_per_hour : float
        Mean number of orders in an hour.
    fast_per_hour : float
        Orders that the first line packs in an hour.
    slow_per_hour : float
        Orders that the second line packs in an hour.
    shelf : int
        The largest number of orders at a line.
    waiting_cost : float
        Euros per order and hour.
    courier_cost : float
        Euros per order sent to a full shelf.
    hours_per_day : float
        Opening hours.
    idle_share : float
        A lower bound on the fraction of its time that each line is idle, from the timesheets; used for c only.

    Examples
    --------
    >>> lines = TwoServers()
    >>> lines.model.n_states, lines.best_money_per_day < 0
    (49, True)
    """

    orders_per_hour: float = 10.0
    fast_per_hour: float = 12.0
    slow_per_hour: float = 3.0
    shelf: int = 6
    waiting_cost: float = 4.0
    courier_cost: float = 12.0
    hours_per_day: float = 10.0
    idle_share: float = 0.2

    def __post_init__(self) -> None:
        for name in ("orders_per_hour", "fast_per_hour", "slow_per_hour", "hours_per_day"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0, low_open=True))
        for name in ("waiting_cost", "courier_cost"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0))
        whole("shelf", self.shelf, 1)
        object.__setattr__(self, "idle_share", real("idle_share", self.idle_share, 0.0, 1.0, low_open=True))

    # ------------------------------------------------------------------ system and model

    def system(self, seed: int = 0) -> TwoServersSystem:
        """The depot with both lines idle."""
        return TwoServersSystem(self, seed)

    def _model(self) -> MDP:
        return server_routing(
            self.shelf,
            arrival_rate=self.orders_per_hour * self.hours_per_day,
            first_service_rate=self.fast_per_hour * self.hours_per_day,
            second_service_rate=self.slow_per_hour * self.hours_per_day,
            first_holding_cost=self.waiting_cost * self.hours_per_day,
            second_holding_cost=self.waiting_cost * self.hours_per_day,
            loss_cost=self.courier_cost,
        )

    # ------------------------------------------------------------------ rules of thumb

    def _lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(S,) orders at the fast and at the slow line."""
        first, second = np.divmod(np.arange((self.shelf + 1) ** 2), self.shelf + 1)
        return first, second

    @property
    def join_the_shortest(self) -> NDArray[np.int64]:
        """The policy that picks the line with fewer orders, the faster one if equal (Winston 1977)."""
        fast, slow = self._lengths()
        tie = SLOW if self.slow_per_hour > self.fast_per_hour else FAST
        return np.where(fast == slow, tie, np.where(fast < slow, FAST, SLOW))

    @property
    def shortest_expected_delay(self) -> NDArray[np.int64]:
        """The policy that picks the line with the smaller (orders there + 1) / speed, but never a full one."""
        fast, slow = self._lengths()
        sooner = np.where((fast + 1) / self.fast_per_hour <= (slow + 1) / self.slow_per_hour, FAST, SLOW)
        return np.where(fast == self.shelf, SLOW, np.where(slow == self.shelf, FAST, sooner))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Join the shortest queue; the line that packs it soonest; the fast line only."""
        return (
            self._rule("join the shortest queue", self.join_the_shortest),
            self._rule("join the line that packs it soonest", self.shortest_expected_delay),
            self._rule("all to the fast line", np.full((self.shelf + 1) ** 2, FAST)),
        )

    # ------------------------------------------------------------------ c

    @property
    def c(self) -> float:
        """The cost of a full depot (both shelves full) compared with an empty one, while business goes on.

        Imagine a second depot that starts empty, and send each order to the same line as it does. At each line, the
        additional orders are packed while the second depot's line is idle, so the j-th is packed after about
        j / (speed · idle_share) hours; until then it costs the waiting of one order. Or a new order finds a shelf that
        is full here but not in the second depot: that costs one courier, and one additional order fewer is left. So a
        full depot costs at most the couriers and the waiting of all its orders, and sp(h*) is at most that.
        """
        K = self.shelf
        hours = sum(K * (K + 1) / 2 / (speed * self.idle_share) for speed in (self.fast_per_hour, self.slow_per_hour))
        return self.waiting_cost * hours + self.courier_cost * 2 * K


class TwoServersSystem(System):
    """The packing lines event by event: a time for the next order, and one for each line."""

    def __init__(self, facts: TwoServers, seed: int) -> None:
        super().__init__(2, seed)
        self._facts = facts
        day = facts.hours_per_day
        self._between = 1.0 / (facts.orders_per_hour * day)
        self._pack = [1.0 / (facts.fast_per_hour * day), 1.0 / (facts.slow_per_hour * day)]
        self._mean_step = 1.0 / ((facts.orders_per_hour + facts.fast_per_hour + facts.slow_per_hour) * day)
        self._next_order = self._random.exponential(self._between)
        self._looks_up = [self._random.exponential(mean) for mean in self._pack]
        self._orders = [0, 0]

    @property
    def state(self) -> int:
        """Orders at the fast line times (shelf + 1), plus orders at the slow line."""
        return self._orders[FAST] * (self._facts.shelf + 1) + self._orders[SLOW]

    def _happen(self, action: int) -> tuple[float, float, float]:
        facts = self._facts
        now = min(self._next_order, *self._looks_up)
        elapsed, present, paid = now - self.days, sum(self._orders), 0.0
        if now == self._next_order:
            self._next_order = now + self._random.exponential(self._between)
            if self._orders[action] == facts.shelf:
                paid = facts.courier_cost
            else:
                self._orders[action] += 1
                if self._orders[action] == 1:  # the line was idle and begins immediately
                    self._looks_up[action] = now + self._random.exponential(self._pack[action])
        else:
            line = self._looks_up.index(now)
            self._looks_up[line] = now + self._random.exponential(self._pack[line])
            self._orders[line] = max(0, self._orders[line] - 1)
        bill = facts.waiting_cost * facts.hours_per_day * present
        return 0.0 - paid - bill * self._mean_step, 0.0 - paid - bill * elapsed, elapsed
