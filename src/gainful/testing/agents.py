"""Checks that an agent keeps the contracts of `act`, `observe` and `save`, and is deterministic given its seed."""

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
from gainful.testing.adapters import EnvironmentAdapter, adapter_for

Make = Callable[[Any], Any]


def check_agent(
    make: Make,
    environments: Sequence[MDP | ContinuousEnvironment] | None = None,
    *,
    saved: bool = True,
    steps: int = 300,
) -> None:
    """Check that an agent keeps the contracts that every agent of gainful keeps.

    `act` returns an action of the state, and the same one if it is called again before `observe`. `observe` rejects an
    impossible transition without changing anything and accepts any possible one. The same seed gives the same bits,
    whether stepped or simulated, and a saved agent continues bit for bit.

    Parameters
    ----------
    make : callable
        `make(environment)` returns a new agent for the environment, always with the same seed.
    environments : sequence of MDP or ContinuousEnvironment, optional
        By default a RiverSwim, an MDP whose states have different actions and costs, and one with Bernoulli rewards.
        For an agent on continuous states give `gf.environments.lqg()` or another one; the agent sees its points in the
        unit cube.
    saved : bool
        Whether to check files too. False is for a class that `gf.load_agent` does not know.
    steps : int
        The number of steps in each of the runs.

    Raises
    ------
    ConformanceError
        If a contract is broken; the message names it, and the environment.

    Examples
    --------
    >>> import gainful as gf
    >>> from gainful.testing import check_agent
    >>> def make(mdp):
    ...     rewards = {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max}
    ...     return gf.UCRL2(mdp.n_states, mdp.n_actions, allowed=mdp.allowed, seed=3, **rewards)
    >>> check_agent(make, [gf.environments.riverswim(3)], steps=50)
    """
    if environments is None:
        river = riverswim(4)
        environments = (river, machine_replacement(), MDP(*river.to_dense(), reward_law="bernoulli"))
    for environment in environments:
        adapter = adapter_for(environment)
        _decisions_repeat(make, adapter, steps)
        _bad_observations_change_nothing(make, adapter)
        _same_seed_same_bits(make, adapter, steps)
        _stepped_equals_compiled(make, adapter, steps)
        _foreign_transitions_are_taken(make, adapter)
        if saved:
            _saved_goes_on(make, adapter, steps)


def _require(holds: bool, promise: str, adapter: EnvironmentAdapter, detail: str = "") -> None:
    if not holds:
        environment = adapter.environment
        problem = f"a contract is broken on {environment!r}: {promise}{f' ({detail})' if detail else ''}"
        raise ConformanceError(problem, name=promise, found=detail, hint="every agent of gainful keeps it")


def _step(agent: Any, adapter: EnvironmentAdapter, state: Any, steps: int, seed: int) -> Any:
    for _ in range(steps):
        t = agent.t
        action = agent.act(state)
        reward, to = adapter.step(t, state, action, seed)
        agent.observe(state, action, reward, to)
        state = to
    return state


def _state(agent: Any) -> dict[str, Any]:
    """Everything that must be equal to the bit: all but the time spent planning."""
    arrays = {**agent.statistics.to_arrays(), **{f"own {k}": v for k, v in agent.own_arrays().items()}}
    records = agent.episodes[[n for n in agent.episodes.dtype.names or () if n != "planning_seconds"]]
    return {**{k: v.copy() for k, v in arrays.items()}, "t": agent.t, "records": records}


def _difference(first: dict[str, Any], second: dict[str, Any]) -> str:
    for name, value in first.items():
        if name not in second or not np.array_equal(value, second[name]):
            return f"'{name}' differs"
    return ""


def _decisions_repeat(make: Make, adapter: EnvironmentAdapter, steps: int) -> None:
    agent, state = make(adapter.environment), adapter.start()
    for _ in range(steps):
        action = agent.act(state)
        _require(
            adapter.has(state, action), "act returns an action of the state", adapter, f"state {state}, action {action}"
        )
        before = _state(agent)
        _require(
            agent.act(state) == action,
            "act called again before observe returns the same action",
            adapter,
            f"at {state}",
        )
        found = _difference(before, _state(agent))
        _require(not found, "act called again changes nothing", adapter, found)
        state = _step(agent, adapter, state, 1, 0)


def _bad_observations_change_nothing(make: Make, adapter: EnvironmentAdapter) -> None:
    agent = make(adapter.environment)
    state = _step(agent, adapter, adapter.start(), 20, 0)
    before = _state(agent)
    for wrong in adapter.impossible(state):
        try:
            agent.observe(*wrong)
        except GainfulError:
            pass
        else:
            _require(False, "observe rejects an impossible transition", adapter, f"it accepted {wrong}")
        found = _difference(before, _state(agent))
        _require(not found, "a rejected observation changes nothing", adapter, f"{wrong}: {found}")


def _same_seed_same_bits(make: Make, adapter: EnvironmentAdapter, steps: int) -> None:
    first, second = make(adapter.environment), make(adapter.environment)
    for agent in (first, second):
        simulate(agent, adapter.environment, steps, seed=1, gain=0.0)
    found = _difference(_state(first), _state(second))
    _require(not found, "the same seed gives the same bits", adapter, found)


def _stepped_equals_compiled(make: Make, adapter: EnvironmentAdapter, steps: int) -> None:
    stepped, compiled = make(adapter.environment), make(adapter.environment)
    run = simulate(compiled, adapter.environment, steps, seed=2, gain=0.0)
    state = _step(stepped, adapter, adapter.start(), steps, 2)
    promise = "stepping act and observe gives the simulated run"
    _require(adapter.ended_at(run, state), promise, adapter, "the states differ")
    stepped.act(state)
    compiled.act(state)
    found = _difference(_state(stepped), _state(compiled))
    _require(not found, promise, adapter, found)


def _foreign_transitions_are_taken(make: Make, adapter: EnvironmentAdapter) -> None:
    """Any valid transition may be observed, chosen by the agent or not, even before its first action."""
    agent, rng = make(adapter.environment), np.random.default_rng(0)
    for _ in range(50):
        agent.observe(*adapter.any_transition(rng))
    _require(agent.t == 50, "every observation counts as a step", adapter, f"t is {agent.t} after 50")
    _step(agent, adapter, adapter.start(), 20, 3)


def _saved_goes_on(make: Make, adapter: EnvironmentAdapter, steps: int) -> None:
    agent = make(adapter.environment)
    simulate(agent, adapter.environment, steps, seed=4, gain=0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent"
        agent.save(path)
        again = load_agent(path)
    _require(again.settings() == agent.settings(), "a saved agent has the same settings", adapter)
    for each in (agent, again):
        simulate(each, adapter.environment, steps, seed=5, gain=0.0)
    found = _difference(_state(agent), _state(again))
    _require(not found, "a saved agent continues with the same bits", adapter, found)
