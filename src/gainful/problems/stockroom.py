"""Inventory with a lead time: how much to order today for the day after tomorrow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, poisson

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.problems.problem import Problem, Rule, System

MOST_STATES = 20_000
"""The largest number of states of a stockroom."""


@dataclass(frozen=True)
class Stockroom(Problem):
    """A shelf, a daily demand, and orders that arrive `lead_days` mornings later. Unmet demand is lost.

    Every morning the order placed `lead_days` ago arrives, and you order some cases (paying `order_cost` if any). Then
    customers come (Poisson). Each unit sold earns `margin`; each unit left in the evening costs `holding_cost`. The
    stock and the outstanding orders together are at most `capacity` units. A lost sale is not observed; it costs its
    margin.

    The state is the stock on hand and every outstanding order, oldest first. For lost sales with a lead time, no simple
    rule is optimal (Karlin & Scarf 1958; Zipkin, Old and new methods for lost-sales inventory systems, 2008).

    Parameters
    ----------
    mean_demand : float
        Units per day.
    lead_days : int
        Mornings from an order to its arrival, at least 1.
    case_size : int
        Units in a case; orders are whole cases.
    capacity : int
        The largest number of units on the shelf and on order together.
    margin : float
        Euros earned by a unit sold: its price minus its cost.
    order_cost : float
        Euros per order, whatever its size: the delivery.
    holding_cost : float
        Euros per unit and night: cold room, space, spoilage.

    Examples
    --------
    >>> room = Stockroom()
    >>> room.model.n_states, room.rules[0].name
    (28, '(s, S) = (7, 11) from the textbook')
    """

    mean_demand: float = 2.0
    lead_days: int = 2
    case_size: int = 4
    capacity: int = 12
    margin: float = 30.0
    order_cost: float = 30.0
    holding_cost: float = 7.5

    def __post_init__(self) -> None:
        for name in ("mean_demand", "margin"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0, low_open=True))
        for name in ("order_cost", "holding_cost"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0))
        whole("lead_days", self.lead_days, 1)
        whole("case_size", self.case_size, 1)
        whole("capacity", self.capacity, 1)
        if self.case_size > self.capacity:
            raise InvalidArgumentError(
                "case_size", self.case_size, f"at most the capacity, {self.capacity}", "not one case would fit"
            )
        if (self.capacity + 1) * (self.capacity // self.case_size + 1) ** (self.lead_days - 1) > 20 * MOST_STATES:
            raise InvalidArgumentError(
                "capacity",
                self.capacity,
                f"about {MOST_STATES:,} at most",
                "count in larger cases, or shorten the lead time",
                problem=f"capacity {self.capacity} with lead_days {self.lead_days} has too many states",
            )

    # ------------------------------------------------------------------ states

    @cached_property
    def states(self) -> tuple[tuple[int, ...], ...]:
        """(stock on hand, units that arrive tomorrow, …, in lead_days - 1 mornings), numbered as in the model."""
        cases = range(0, self.capacity + 1, self.case_size)
        found = tuple(
            (stock, *under_way)
            for stock in range(self.capacity + 1)
            for under_way in product(cases, repeat=self.lead_days - 1)
            if stock + sum(under_way) <= self.capacity
        )
        if len(found) > MOST_STATES:
            raise InvalidArgumentError(
                "capacity",
                self.capacity,
                f"at most {MOST_STATES:,}",
                "count in larger cases, or shorten the lead time",
                problem=f"the stockroom has {len(found):,} states",
            )
        return found

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        """The number of each state."""
        return {state: i for i, state in enumerate(self.states)}

    @property
    def n_actions(self) -> int:
        """Order 0, 1, … cases."""
        return self.capacity // self.case_size + 1

    # ------------------------------------------------------------------ system and model

    def system(self, seed: int = 0) -> StockroomSystem:
        """The stockroom with an empty shelf and no outstanding orders."""
        return StockroomSystem(self, seed)

    def money(self, stock: int, left: int, cases: int) -> float:
        """Compute the money of one day: the margin of the sales minus the costs of delivery and of holding overnight.

        Parameters
        ----------
        stock, left : int
            Units on the shelf in the morning and in the evening.
        cases : int
            Cases ordered.

        Returns
        -------
        float
            Euros.

        Examples
        --------
        >>> Stockroom().money(stock=4, left=2, cases=1)
        15.0
        """
        return self.margin * (stock - left) - self.holding_cost * left - (self.order_cost if cases else 0.0)

    def _model(self) -> MDP:
        indptr, indices, probabilities, rewards = [0], [], [], []
        demand = poisson(self.mean_demand)
        chance, at_least = demand.pmf(np.arange(self.capacity + 1)), demand.sf(np.arange(self.capacity + 1) - 1)
        for stock, *under_way in self.states:
            room = self.capacity - stock - sum(under_way)
            for cases in range(self.n_actions):
                units = cases * self.case_size
                if units <= room:
                    arriving, *later = *under_way, units
                    for left in range(stock + 1):
                        indices.append(self.number[(left + arriving, *later)])
                        probabilities.append(float(at_least[stock] if left == 0 else chance[stock - left]))
                        rewards.append(self.money(stock, left, cases))
                indptr.append(len(indices))
        return MDP.from_rows(
            indptr,
            indices,
            probabilities,
            rewards,
            n_actions=self.n_actions,
            state_labels=[
                f"{stock} on hand" + "".join(f", {units} in {i + 1} d" for i, units in enumerate(under_way))
                for stock, *under_way in self.states
            ],
            action_labels=[f"order {a * self.case_size}" for a in range(self.n_actions)],
            name="stockroom",
        )

    # ------------------------------------------------------------------ rules of thumb

    def order_up_to(self, reorder_point: int, level: int) -> NDArray[np.int64]:
        """Make an (s, S) policy: with at most s units on hand and under way, order until no further case fits below S.

        It orders at least one case if there is room, so that a small S still orders.

        Parameters
        ----------
        reorder_point : int
            s, in units.
        level : int
            S, in units, at most the capacity.

        Returns
        -------
        ndarray of int64
            The number of cases to order in each state.

        Examples
        --------
        >>> room = Stockroom()
        >>> policy = room.order_up_to(7, 11)
        >>> int(policy[room.number[(0, 0)]]), int(policy[room.number[(8, 0)]])
        (2, 0)
        """
        s = whole("reorder_point", reorder_point, 0, self.capacity)
        up_to = whole("level", level, 1, self.capacity)
        position = np.array([sum(state) for state in self.states])
        cases = np.maximum((up_to - position) // self.case_size, 1)
        return np.where(position <= s, np.minimum(cases, (self.capacity - position) // self.case_size), 0)

    @property
    def textbook(self) -> tuple[int, int]:
        """(s, S) from the textbook: demand of the lead time plus safety stock, and the economic order quantity.

        From an order to the evening after its arrival lead_days + 1 demands come, D on average. s = D + z √D with z the
        normal quantile of margin / (margin + holding_cost · days between orders); S = s + sqrt(2 μ K / h), cut to fit.
        """
        if self.holding_cost == 0.0:
            return self.capacity - self.case_size, self.capacity
        lot = min(sqrt(2 * self.mean_demand * self.order_cost / self.holding_cost), float(self.capacity))
        cycle = max(lot / self.mean_demand, 1.0)
        over_lead = self.mean_demand * (self.lead_days + 1)
        z = float(norm.ppf(self.margin / (self.margin + self.holding_cost * cycle)))
        s = min(max(0, round(over_lead + z * sqrt(over_lead))), self.capacity - self.case_size)
        return s, min(self.capacity, s + max(self.case_size, ceil(lot)))

    @cached_property
    def best_order_up_to(self) -> tuple[int, int]:
        """The (s, S) that earns most, by evaluating all of them on the model."""
        seen: dict[bytes, float] = {}
        best, found = -np.inf, (0, 1)
        for s in range(self.capacity - self.case_size + 1):
            for level in range(s + 1, self.capacity + 1):
                actions = self.order_up_to(s, level)
                key = actions.tobytes()
                if key not in seen:
                    seen[key] = self.money_per_day(actions)
                if seen[key] > best:
                    best, found = seen[key], (s, level)
        return found

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The textbook's (s, S), the best (s, S), and a case whenever one has been sold."""
        (s, level), (t, up_to) = self.textbook, self.best_order_up_to
        full = self.capacity - self.case_size
        return (
            self._rule(f"(s, S) = ({s}, {level}) from the textbook", self.order_up_to(s, level)),
            self._rule(f"(s, S) = ({t}, {up_to}), the best one, tried out on the model", self.order_up_to(t, up_to)),
            self._rule(f"keep it full: ({full}, {self.capacity})", self.order_up_to(full, self.capacity)),
        )

    # ------------------------------------------------------------------ c

    @property
    def c(self) -> float:
        """The cost of the worst morning: that of too little or of too much stock, whichever is larger.

        Compare with a second shop on its best morning: order what it has more than you, then order whenever it orders.

        - Too little: one delivery; the margin of the sales missed until it arrives, `lead_days` of demand, and of the
          units that do not fill a case; and the holding cost of what the second shop has sold meanwhile, for as long as
          a full shelf lasts.
        - Too much, or all of it on order: the margin of the days until it arrives, and the holding cost of a full shelf
          until it is sold, its k-th unit after k / mean_demand days.

        There is no other difference between the two shops, so the larger cost is at least sp(h*).
        """
        days, shelf = self.lead_days, self.capacity
        missed = self.mean_demand * days + self.case_size - 1
        little = self.order_cost + self.margin * missed + self.holding_cost * days * shelf
        carried = shelf * (shelf + 1) / (2 * self.mean_demand)  # unit-nights
        return max(little, self.margin * self.mean_demand * (days - 1) + self.holding_cost * carried)


class StockroomSystem(System):
    """The stockroom day by day, customer by customer."""

    def __init__(self, facts: Stockroom, seed: int) -> None:
        super().__init__(facts.n_actions, seed)
        self._facts = facts
        self._between = 1.0 / facts.mean_demand
        self._stock = 0
        self._under_way = [0] * (facts.lead_days - 1)

    @property
    def state(self) -> int:
        """The number of the state in the model; `Stockroom.states` describes it."""
        return self._facts.number[(self._stock, *self._under_way)]

    def _happen(self, action: int) -> tuple[float, float, float]:
        facts = self._facts
        units = action * facts.case_size
        if self._stock + sum(self._under_way) + units > facts.capacity:
            raise self._refuse(f"order {units}")
        self._under_way.append(units)
        sold, hour = 0, self._random.exponential(self._between)
        while hour < 1.0 and sold < self._stock:  # once the shelf is empty, customers are not counted
            sold += 1
            hour += self._random.exponential(self._between)
        left = self._stock - sold
        earned = facts.margin * sold - facts.holding_cost * left - (facts.order_cost if action else 0.0)
        self._stock = left + self._under_way.pop(0)
        return earned, earned, 1.0
