"""Everything that `gainful learn` tells about a finished run, computed in one place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP
from gainful.mdp.units import Units

if TYPE_CHECKING:
    from gainful.agents.guarantee import Guarantee
    from gainful.agents.learned_policy import LearnedPolicy
    from gainful.agents.lipschitz_bound import LipschitzBound
    from gainful.experiments.agent_factory import AgentFactory
    from gainful.simulation.run import Run

EVALUATED_UP_TO = 2000
"""States up to which the learned policy is evaluated in the model."""
SETTLED = 0.95
"""How sure a choice must be to count as settled."""
TIE = 1e-3
"""Two actions that differ by at most this share of the range of rewards count as equally good."""


def grid_with_last_tenth(horizon: int) -> NDArray[np.int64]:
    """The checkpoints of `simulate`, and the step at which the last tenth begins."""
    from gainful.simulation.run import log_checkpoints

    return np.unique(np.append(log_checkpoints(horizon), max(horizon - max(horizon // 10, 1), 1)))


@dataclass(frozen=True)
class LastPart:
    """What was earned at the end of a run, per step, to be maximised."""

    share: float
    """Which part of the run it is."""
    reward: float


def last_part(run: Run) -> LastPart:
    """The last tenth of the run, or as near to it as the checkpoints allow."""
    wanted = run.horizon - max(run.horizon // 10, 1)
    i = int(np.argmin(np.abs(run.steps - wanted)))
    if run.steps[i] == run.horizon:
        return LastPart(1.0, float(run.rewards[-1]) / run.horizon)
    n = run.horizon - int(run.steps[i])
    return LastPart(n / run.horizon, float(run.rewards[-1] - run.rewards[i]) / n)


def at_usual_checkpoints(run: Run) -> Run:
    """The run at the checkpoints of `simulate` alone."""
    from gainful.simulation.run import log_checkpoints

    kept = np.isin(run.steps, log_checkpoints(run.horizon))
    curves = ("steps", "rewards", "regret", "pseudo_regret", "expected_regret")
    changed: dict[str, Any] = {f.name: getattr(run, f.name)[kept] for f in fields(run) if f.name in curves}
    return replace(run, **changed)


class LearnedRun:
    """A finished run of one agent: what it earned and lost, the policy it learned, and what to do next.

    Numbers are in the user's units: costs are costs, and gains are per unit of time if the model is one of rates.

    Parameters
    ----------
    source : str
        The environment, as the user named it.
    factory : AgentFactory
        What made the agent.
    simulation : object
        The simulation, which is finished.
    seconds : float
        How long it took.
    """

    def __init__(self, source: str, factory: AgentFactory, simulation: Any, seconds: float) -> None:
        whole: Run = simulation.run()
        self.source, self.factory, self.simulation, self.seconds = source, factory, simulation, seconds
        self.last = last_part(whole)
        self.run = at_usual_checkpoints(whole)
        self.agent: Any = simulation.agent
        self.environment: Any = factory.environment
        self.mdp = self.environment if isinstance(self.environment, MDP) else None
        self.units = Units() if self.mdp is None else self.mdp.units

    # ------------------------------------------------------------------ in the user's words

    @property
    def name(self) -> str:
        """The environment's name."""
        from gainful.experiments.agent_factory import name_of

        return name_of(self.environment, self.source)

    @property
    def kind(self) -> str:
        """`reward` or `cost`."""
        return self.units.objective

    @property
    def per(self) -> str:
        """`per step` or `per unit of time`."""
        return "per unit of time" if self.units.continuous else "per step"

    def gain(self, reward: float) -> float:
        """A reward per step, to be maximised, as the user's average."""
        return self.units.sign * reward / self.units.step_duration + 0.0

    @property
    def average(self) -> float:
        """What a step, or a unit of time, earned or cost on average."""
        return self.gain(float(self.run.rewards[-1]) / self.run.horizon)

    @property
    def last_average(self) -> float:
        """The same over the last tenth."""
        return self.gain(self.last.reward)

    @property
    def optimal(self) -> float | None:
        """The optimal average; None if it is unknown."""
        return None if math.isnan(self.run.gain) else self.gain(self.run.gain)

    @property
    def gain_estimate(self) -> float | None:
        """What the agent expects at best, by its last plan; None if it makes none."""
        if not len(self.run.episodes) or self.run.episodes[-1]["sweeps"] == 0:
            return None
        return self.gain(float(self.run.episodes[-1]["gain"]))

    def action_name(self, a: int) -> str:
        """The label of an action, or its number."""
        labels = getattr(self.environment, "action_labels", None)
        return labels[a] if labels else str(a)

    def state_name(self, s: int) -> str:
        """The label of a state, or its number."""
        return str(s) if self.mdp is None else self.mdp.state_name(s)

    # ------------------------------------------------------------------ what was learned

    @cached_property
    def learned(self) -> LearnedPolicy | None:
        """The policy, and how sure the data make it; None for an agent that keeps no counts of states and actions."""
        from gainful.agents.episodic import EpisodicAgent
        from gainful.agents.learned_policy import learned_policy

        core = getattr(self.agent, "core", None)
        return learned_policy(self.agent) if isinstance(core, EpisodicAgent) else None

    @cached_property
    def policy_gain(self) -> float | None:
        """What the learned policy earns in the model if it is kept; None without a model or for a large one."""
        return None if self.learned is None else self._gain_of(self.learned.probabilities)

    @cached_property
    def favoured_gain(self) -> float | None:
        """What the actions that the data favour earn in the model; None without a model, or if there is no estimate."""
        if self.learned is None or not (self.learned.favoured >= 0).any():
            return None
        favoured = self.learned.favoured
        return self._gain_of(np.where(favoured >= 0, favoured, self.learned.actions))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The agent's guarantee; void if the data refute its smoothness, or the environment a condition of it."""
        from gainful.agents.conditions import guarantee_in

        return guarantee_in(self.agent, self.environment, self._span_to_compare())

    @property
    def unmet_condition(self) -> str:
        """The condition of the agent's guarantee that does not hold in this environment; empty if there is none."""
        return self.guarantee.reason_void if self.agent.guarantee.holds else ""

    def _span_to_compare(self) -> float | None:
        """sp(h*), if the guarantee needs a bound on it that somebody has chosen."""
        from gainful.experiments.agent_factory import own_span

        needed = self.agent.guarantee.holds and self.agent.guarantee.span is not None
        if not needed or self.factory.span_is_oracle or math.isnan(self.run.gain):
            return None
        small = self.mdp is None or self.mdp.n_states <= EVALUATED_UP_TO
        return own_span(self.environment) if small else None

    @cached_property
    def lipschitz(self) -> LipschitzBound | None:
        """How large the Hölder constant is at least, by the data; None for an agent without counts on cells."""
        from gainful.agents.lipschitz_bound import lipschitz_lower_bound

        return lipschitz_lower_bound(self.agent) if self.factory.among_points and self.learned is not None else None

    def _gain_of(self, policy: NDArray[Any]) -> float | None:
        from gainful.planning.evaluation import evaluate

        if self.mdp is None or self.mdp.n_states > EVALUATED_UP_TO:
            return None
        return evaluate(self.mdp, policy).gain_from_start + 0.0

    @property
    def is_learner(self) -> bool:
        """Whether the agent learns; a fixed policy does not."""
        from gainful.agents.fixed import Fixed

        return not isinstance(getattr(self.agent, "core", None), Fixed)

    @property
    def still_linear(self) -> bool:
        """Whether a learner's regret still grows linearly."""
        from gainful.experiments.growth import is_still_linear

        if not self.is_learner or math.isnan(self.run.gain):
            return False
        low = getattr(getattr(self.agent, "core", self.agent), "reward_min", None)
        if low is None:
            return False
        return is_still_linear(self.run.steps, getattr(self.run, self.run.measure), self.run.gain - low)

    def unsettled(self) -> NDArray[np.int64]:
        """The visited states whose action the data do not make sure, the most visited first."""
        learned = self.learned
        if learned is None:
            return np.empty(0, dtype=np.int64)
        visits = learned.state_visits
        tie = np.abs(learned.lead) <= TIE * self.agent.core.reward_range
        known = (visits > 0) & ~(learned.sure >= SETTLED) & ~tie
        states = np.flatnonzero(known)
        return states[np.argsort(-visits[states], kind="stable")]

    # ------------------------------------------------------------------ as JSON

    def json_chunks(self, suggestions: list[str]) -> Iterator[str]:
        """One JSON object, with one line per state of the policy."""
        head = json.dumps(self._head(suggestions), indent=2, ensure_ascii=False, allow_nan=False)
        learned = self.learned
        if learned is None:
            yield head.removesuffix("\n}") + ',\n  "policy": null\n}\n'
            return
        yield head.removesuffix("\n}") + ',\n  "policy": ['
        for s in range(learned.actions.size):
            yield ("\n    " if s == 0 else ",\n    ") + json.dumps(self._state(learned, s), ensure_ascii=False)
        yield "\n  ]\n}\n"

    def _head(self, suggestions: list[str]) -> dict[str, Any]:
        run, agent = self.run, self.agent

        def known(values: Any) -> list[float | None]:
            return [None if math.isnan(x) else x for x in values.tolist()]

        totals = {"rewards": run.rewards.tolist()}
        if self.kind == "cost":
            totals = {"costs": (0.0 - run.rewards).tolist()}
        return {
            "environment": self.name,
            "agent": self.factory.name,
            "settings": agent.settings(),
            "span_is_oracle": self.factory.span_is_oracle,
            "guarantee": str(self.guarantee),
            "guarantee_holds": self.guarantee.holds and not self.factory.span_is_oracle,
            "seed": run.seed,
            "horizon": run.horizon,
            "objective": self.kind,
            "gain_is": self.units.gain_name,
            "step_duration": self.units.step_duration,
            "gain": self.optimal,
            "gain_source": getattr(run, "gain_source", "solved"),
            "average": self.average,
            "average_at_the_end": self.last_average,
            "end_is_the_last": self.last.share,
            "gain_of_the_policy": self.policy_gain,
            "gain_of_what_the_data_favour": self.favoured_gain,
            "gain_estimate": self.gain_estimate,
            "steps": run.steps.tolist(),
            **totals,
            "regret": known(run.regret),
            "pseudo_regret": known(run.pseudo_regret),
            "expected_regret": known(run.expected_regret),
            "measure": None if math.isnan(run.gain) else run.measure,
            "still_linear": self.still_linear,
            "episodes": len(run.episodes),
            "seconds": self.seconds,
            "planning_seconds": run.planning_seconds,
            "acting_seconds": run.acting_seconds,
            "vacuous": run.vacuous,
            **self._lipschitz(),
            "next": suggestions,
        }

    def _lipschitz(self) -> dict[str, Any]:
        """The lower bound on the Hölder constant, for agents on cells."""
        found = self.lipschitz
        if found is None:
            return {}
        what = {"at_least": found.lipschitz, "holder": found.holder, "delta": found.delta, "cells": list(found.cells)}
        told = getattr(self.agent, "lipschitz", None)
        return {"lipschitz": {**what, "told": told, "refuted": told is not None and found.refutes(told)}}

    def _state(self, learned: LearnedPolicy, s: int) -> dict[str, Any]:
        """One state of the policy; the names of states and actions are labels where the model has them."""
        entry: dict[str, Any] = {"state": s}
        labels = getattr(self.environment, "action_labels", None) or None
        if self.mdp is not None and self.mdp.state_labels is not None:
            entry["state"] = self.mdp.state_labels[s]
        elif self.factory.among_points:
            low, high = self.cell_ends(s)
            entry = {"cell": s, "low": low, "high": high}
        a, row = int(learned.actions[s]), learned.probabilities[s]
        if row[a] == 1.0:
            entry["action"] = a if labels is None else labels[a]
        else:
            entry["probabilities"] = {self.action_name(int(b)): float(row[b]) for b in row.nonzero()[0]}
        entry["visits"] = int(learned.visits[s].sum())
        entry["visits_of_action"] = int(learned.visits[s, a])
        entry["actions_untried"] = int(learned.untried[s])
        best = int(learned.favoured[s])
        entry["favoured"] = None if best < 0 else best if labels is None else labels[best]
        entry["sure"] = _or_none(float(learned.sure[s]))
        entry["lead"] = _or_none(float(learned.lead[s]))
        return entry

    # ------------------------------------------------------------------ cells

    def edges(self, axis: int) -> NDArray[np.float64]:
        """The edges of the cells on one axis, in the user's units."""
        partition, env = self.agent.partition, self.environment
        edges: NDArray[np.float64] = partition.edges(axis)
        if not hasattr(env, "from_unit") or (partition.low[axis], partition.high[axis]) != (0.0, 1.0):
            return edges
        low, high = float(env.low[axis]), float(env.high[axis])
        return low + edges * (high - low)

    def cell_ends(self, cell: int) -> tuple[list[float], list[float]]:
        """The lowest and the highest corner of a cell, in the user's units."""
        where = np.unravel_index(cell, self.agent.partition.bins)
        edges = [self.edges(axis) for axis in range(len(where))]
        low = [float(e[k]) for e, k in zip(edges, where, strict=True)]
        return low, [float(e[k + 1]) for e, k in zip(edges, where, strict=True)]


def _or_none(value: float) -> float | None:
    """JSON has neither NaN nor infinity."""
    return value if math.isfinite(value) else None
