"""Admission control at a call centre: which calls to take when all agents are busy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import real, whole
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.problems.problem import Problem, Rule, System

REJECT, ACCEPT = 0, 1


@dataclass(frozen=True)
class CallCentre(Problem):
    """A call centre whose callers earn money when they are accepted and cost money while they wait.

    Calls arrive at random (Poisson) and last an exponential time. The state is the number of callers on the line,
    talking or waiting. "accept" accepts the next caller, who earns `value_per_call`; "reject" plays the busy tone.
    Every waiting caller costs `waiting_cost` per minute (the toll-free number, and goodwill). When all lines are taken,
    only "reject" is possible. This is an M/M/n/K queue, in which a threshold is optimal (Naor 1969 for one agent,
    Knudsen 1972 for several).

    A step is one event: a call arrives, a call ends, or an idle agent reports "nothing to do". The last event changes
    nothing and happens as often as that agent's calls would end, so that all steps have the same mean length and euros
    per step translate into euros per day.

    Parameters
    ----------
    calls_per_hour : float
        Mean number of calls in an hour.
    talk_minutes : float
        Mean length of a call.
    n_agents : int
        Agents who take calls.
    n_lines : int
        The number of callers who can be on the line at the same time, talking or waiting.
    value_per_call : float
        Euros earned by an accepted caller.
    waiting_cost : float
        Euros per waiting caller and minute.
    hours_per_day : float
        Opening hours.
    promised_minutes : float
        The longest wait that the call centre promises; only one of the rules of thumb uses it.

    Examples
    --------
    >>> centre = CallCentre()
    >>> centre.model.n_states, centre.best_money_per_day > max(rule.money_per_day for rule in centre.rules) - 1e-6
    (21, True)
    """

    calls_per_hour: float = 56.0
    talk_minutes: float = 4.0
    n_agents: int = 4
    n_lines: int = 20
    value_per_call: float = 6.0
    waiting_cost: float = 0.5
    hours_per_day: float = 10.0
    promised_minutes: float = 2.0

    def __post_init__(self) -> None:
        for name in ("calls_per_hour", "talk_minutes", "value_per_call", "hours_per_day", "promised_minutes"):
            object.__setattr__(self, name, real(name, getattr(self, name), 0.0, low_open=True))
        object.__setattr__(self, "waiting_cost", real("waiting_cost", self.waiting_cost, 0.0))
        whole("n_agents", self.n_agents, 1)
        whole("n_lines", self.n_lines, 1)
        if self.n_lines < self.n_agents:
            raise InvalidArgumentError(
                "n_lines", self.n_lines, f"at least one line for each of the {self.n_agents} agents"
            )

    # ------------------------------------------------------------------ facts, per day

    @property
    def calls_per_day(self) -> float:
        """Mean number of calls in a day."""
        return self.calls_per_hour * self.hours_per_day

    @property
    def talks_per_day(self) -> float:
        """Calls that one busy agent completes in a day."""
        return 60.0 / self.talk_minutes * self.hours_per_day

    @property
    def waiting_cost_per_day(self) -> float:
        """The cost of one caller waiting all day, in euros."""
        return self.waiting_cost * 60.0 * self.hours_per_day

    # ------------------------------------------------------------------ system and model

    def system(self, seed: int = 0) -> CallCentreSystem:
        """The call centre when it opens, with no caller on the line."""
        return CallCentreSystem(self, seed)

    def _model(self) -> MDP:
        K, n = self.n_lines, self.n_agents
        S = K + 1
        rates, pay = np.zeros((S, 2, S)), np.zeros((S, 2, S))
        for s in range(S):
            if s > 0:
                rates[s, :, s - 1] = min(s, n) * self.talks_per_day
            if s < K:
                rates[s, ACCEPT, s + 1], pay[s, ACCEPT, s + 1] = self.calls_per_day, self.value_per_call
        allowed = np.ones((S, 2), dtype=bool)
        allowed[K, ACCEPT] = False
        waiting = np.maximum(np.arange(S) - n, 0)
        return MDP.from_rates(
            rates,
            np.repeat(-self.waiting_cost_per_day * waiting[:, None], 2, axis=1),
            jump_rewards=pay,
            uniformization=self.calls_per_day + n * self.talks_per_day,
            allowed=allowed,
            state_labels=[f"{min(s, n)} talking, {w} waiting" for s, w in enumerate(waiting)],
            action_labels=("reject", "accept"),
            name="call-centre",
        )

    # ------------------------------------------------------------------ rules of thumb

    def threshold(self, most: int) -> NDArray[np.int64]:
        """Make the policy that accepts while fewer than `most` callers are on the line.

        Parameters
        ----------
        most : int
            The threshold, from 0 (accept no caller) to `n_lines` (accept while a line is free).

        Returns
        -------
        ndarray of int64, shape (S,)
            The action of each state: 1 to accept, 0 to reject.

        Examples
        --------
        >>> CallCentre(n_agents=2, n_lines=4).threshold(3).tolist()
        [1, 1, 1, 0, 0]
        """
        n = whole("most", most, 0, self.n_lines)
        return (np.arange(self.n_lines + 1) < n).astype(np.int64)

    def waits_at_most(self, minutes: float) -> int:
        """Compute the threshold of "take a call whose mean wait is at most `minutes`".

        With k >= n callers on the line the next one waits for k - n + 1 talks to end, each after talk_minutes / n.

        Parameters
        ----------
        minutes : float
            The longest mean wait.

        Returns
        -------
        int
            The threshold, an argument for `threshold`.

        Examples
        --------
        >>> CallCentre(talk_minutes=4.0, n_agents=4).waits_at_most(2.0)
        6
        """
        ends = real("minutes", minutes, 0.0) * self.n_agents / self.talk_minutes
        return int(min(self.n_lines, self.n_agents + np.floor(ends + 1e-9)))

    @property
    def pays_for_its_wait(self) -> int:
        """The threshold of "take a call if it pays for its own wait" (Naor's self-optimisation, for n agents)."""
        return self.n_lines if self.waiting_cost == 0.0 else self.waits_at_most(self.value_per_call / self.waiting_cost)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules: pays for its own wait; a free line; the promised wait; a free agent; the best threshold."""
        own, promised = self.pays_for_its_wait, self.waits_at_most(self.promised_minutes)
        tried = [self.money_per_day(self.threshold(n)) for n in range(self.n_lines + 1)]
        best = int(np.argmax(tried))
        return (
            self._rule(f"take a call that pays for its own wait (fewer than {own} on the line)", self.threshold(own)),
            self._rule(f"take every call while one of {self.n_lines} lines is free", self.threshold(self.n_lines)),
            self._rule(
                f"take a call that waits {self.promised_minutes:g} minutes at most (fewer than {promised})",
                self.threshold(promised),
            ),
            self._rule(f"take a call only if one of {self.n_agents} agents is free", self.threshold(self.n_agents)),
            self._rule(f"the best threshold, by trying all on the model (fewer than {best})", self.threshold(best)),
        )

    # ------------------------------------------------------------------ c

    @property
    def c(self) -> float:
        """The cost of clearing the board once: no caller is accepted until every line is free again.

        From the worst state (all lines taken) this is always possible, and it leads to the best state (no caller
        waits). It costs the waiting time of the callers on the line, of whom the j-th waits until j calls have ended,
        and the income lost meanwhile, which is at most the value of all calls that the agents can take. So it is at
        least sp(h*) if an empty board is the best state and a full one the worst.
        """
        n, queue = self.n_agents, self.n_lines - self.n_agents
        minutes_per_end = self.talk_minutes / n
        waiting = self.waiting_cost * minutes_per_end * queue * (queue + 1) / 2
        clearing = minutes_per_end * queue + self.talk_minutes * sum(1.0 / i for i in range(1, n + 1))  # minutes
        income = self.value_per_call * min(self.calls_per_hour, 60.0 / self.talk_minutes * n) / 60.0  # per minute
        return waiting + income * clearing


class CallCentreSystem(System):
    """The call centre event by event: a time for the next call, and one for each agent."""

    def __init__(self, facts: CallCentre, seed: int) -> None:
        super().__init__(2, seed)
        self._facts = facts
        self._between_calls = 1.0 / facts.calls_per_day
        self._talk = 1.0 / facts.talks_per_day
        self._mean_step = 1.0 / (facts.calls_per_day + facts.n_agents * facts.talks_per_day)
        self._next_call = self._random.exponential(self._between_calls)
        self._looks_up = [self._random.exponential(self._talk) for _ in range(facts.n_agents)]
        self._talking = [False] * facts.n_agents
        self._waiting = 0

    @property
    def state(self) -> int:
        """Callers on the line."""
        return sum(self._talking) + self._waiting

    def _happen(self, action: int) -> tuple[float, float, float]:
        facts = self._facts
        if action == ACCEPT and self.state == facts.n_lines:
            raise self._refuse("accept")
        first = min(self._looks_up)
        now = min(first, self._next_call)
        elapsed, waited, paid = now - self.days, self._waiting, 0.0
        if self._next_call <= first:
            self._next_call = now + self._random.exponential(self._between_calls)
            if action == ACCEPT:
                paid = facts.value_per_call
                if all(self._talking):
                    self._waiting += 1
                else:
                    agent = self._talking.index(False)
                    self._talking[agent] = True
                    self._looks_up[agent] = now + self._random.exponential(self._talk)
        else:
            agent = self._looks_up.index(first)
            self._looks_up[agent] = now + self._random.exponential(self._talk)
            if self._talking[agent]:
                if self._waiting:
                    self._waiting -= 1
                else:
                    self._talking[agent] = False
        bill = facts.waiting_cost_per_day * waited
        # a learner needs bounded rewards: they charge waiting at the mean length of a step, the accounts the real time
        return paid - bill * self._mean_step, paid - bill * elapsed, elapsed
