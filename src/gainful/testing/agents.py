"""Checks that an agent keeps the promises of `act`, `observe`, `save` and of the same seed giving the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gainful.agents.files import load_agent
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.riverswim import riverswim
from gainful.errors import ConformanceError, GainfulError
from gainful.mdp.model import MDP
from gainful.simulation.simulate import simulate
from gainful.testing.places import Place, place

STEPS = 300

Make = Callable[[Any], Any]


def check_agent(
    make: Make, environments: Sequence[MDP | ContinuousEnvironment] | None = None, *, saved: bool = True
) -> None:
    """Run an agent through the conformance checks; ConformanceError says which promise it breaks, and where.

    `make(environment)` gives a new agent for it, always with the same seed. The default environments are a RiverSwim,
    one whose states have different actions and costs, and one with Bernoulli rewards; for an agent on continuous
    states give `gf.environments.lqg()` and the like, whose points it sees in the unit cube. `saved=False` leaves out
    files (for a class that `gf.load_agent` does not know).
    """
    if environments is None:
        river = riverswim(4)
        environments = (river, machine_replacement(), MDP(*river.to_dense(), reward_law="bernoulli"))
    for environment in environments:
        where = place(environment)
        _decisions_repeat(make, where)
        _bad_observations_change_nothing(make, where)
        _same_seed_same_bits(make, where)
        _stepped_equals_compiled(make, where)
        _foreign_transitions_are_taken(make, where)
        if saved:
            _saved_goes_on(make, where)


def _require(holds: bool, promise: str, where: Place, detail: str = "") -> None:
    if not holds:
        raise ConformanceError(f"{promise}, on {where.environment!r}{': ' + detail if detail else ''}")


def _step(agent: Any, where: Place, state: Any, steps: int, seed: int) -> Any:
    for _ in range(steps):
        t = agent.t
        action = agent.act(state)
        reward, to = where.step(t, state, action, seed)
        agent.observe(state, action, reward, to)
        state = to
    return state


def _state(agent: Any) -> dict[str, Any]:
    """Everything that the promise of equal bits covers; the time spent planning is not."""
    arrays = {**agent.statistics.to_arrays(), **{f"own {k}": v for k, v in agent.own_arrays().items()}}
    records = agent.episodes[[n for n in agent.episodes.dtype.names or () if n != "planning_seconds"]]
    return {**{k: v.copy() for k, v in arrays.items()}, "t": agent.t, "records": records}


def _difference(first: dict[str, Any], second: dict[str, Any]) -> str:
    for name, value in first.items():
        if name not in second or not np.array_equal(value, second[name]):
            return f"'{name}' differs"
    return ""


def _decisions_repeat(make: Make, where: Place) -> None:
    agent, state = make(where.environment), where.start()
    for _ in range(STEPS):
        action = agent.act(state)
        _require(
            where.has(state, action), "act gives an action the state has", where, f"state {state}, action {action}"
        )
        before = _state(agent)
        _require(agent.act(state) == action, "act asked again before observe answers the same", where, f"at {state}")
        found = _difference(before, _state(agent))
        _require(not found, "act asked again changes nothing", where, found)
        state = _step(agent, where, state, 1, 0)


def _bad_observations_change_nothing(make: Make, where: Place) -> None:
    agent = make(where.environment)
    state = _step(agent, where, where.start(), 20, 0)
    before = _state(agent)
    for wrong in where.impossible(state):
        try:
            agent.observe(*wrong)
        except GainfulError:
            pass
        else:
            raise ConformanceError(
                f"observe refuses a transition that cannot be, on {where.environment!r}: took {wrong}"
            )
        found = _difference(before, _state(agent))
        _require(not found, "a refused observation changes nothing", where, f"{wrong}: {found}")


def _same_seed_same_bits(make: Make, where: Place) -> None:
    first, second = make(where.environment), make(where.environment)
    for agent in (first, second):
        simulate(agent, where.environment, STEPS, seed=1, gain=0.0)
    found = _difference(_state(first), _state(second))
    _require(not found, "the same seed gives the same bits", where, found)


def _stepped_equals_compiled(make: Make, where: Place) -> None:
    stepped, compiled = make(where.environment), make(where.environment)
    run = simulate(compiled, where.environment, STEPS, seed=2, gain=0.0)
    state = _step(stepped, where, where.start(), STEPS, 2)
    promise = "stepping act and observe is the simulated run"
    _require(where.ended_at(run, state), promise, where, "the states differ")
    stepped.act(state)
    compiled.act(state)
    found = _difference(_state(stepped), _state(compiled))
    _require(not found, promise, where, found)


def _foreign_transitions_are_taken(make: Make, where: Place) -> None:
    """Any valid transition may be observed, chosen by the agent or not, before it was ever asked."""
    agent, rng = make(where.environment), np.random.default_rng(0)
    for _ in range(50):
        agent.observe(*where.any_transition(rng))
    _require(agent.t == 50, "every observation counts as a step", where, f"t is {agent.t} after 50")
    _step(agent, where, where.start(), 20, 3)


def _saved_goes_on(make: Make, where: Place) -> None:
    agent = make(where.environment)
    simulate(agent, where.environment, STEPS, seed=4, gain=0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent"
        agent.save(path)
        again = load_agent(path)
    _require(again.settings() == agent.settings(), "a saved agent has the same settings", where)
    for each in (agent, again):
        simulate(each, where.environment, STEPS, seed=5, gain=0.0)
    found = _difference(_state(agent), _state(again))
    _require(not found, "a saved agent goes on to the same bits", where, found)
