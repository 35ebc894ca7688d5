"""Checks that an agent keeps the promises of `act`, `observe`, `save` and of the same seed giving the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.registry import load_agent
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.riverswim import riverswim
from gainful.errors import ConformanceError, GainfulError
from gainful.mdp.model import MDP
from gainful.simulation.simulate import simulate
from gainful.simulation.world import World

STEPS = 300


def check_agent(make: Callable[[MDP], EpisodicAgent], mdps: Sequence[MDP] | None = None, *, saved: bool = True) -> None:
    """Run an agent through the conformance checks; ConformanceError says which promise it breaks, and where.

    `make(mdp)` gives a new agent for `mdp`, always with the same seed. The default MDPs are a RiverSwim, one whose
    states have different actions and costs, and one with Bernoulli rewards. `saved=False` leaves out files
    (for a class that `gf.load_agent` does not know).
    """
    river = riverswim(4)
    bernoulli = MDP(*river.to_dense(), reward_law="bernoulli")
    for mdp in mdps if mdps is not None else (river, machine_replacement(), bernoulli):
        _decisions_repeat(make, mdp)
        _bad_observations_change_nothing(make, mdp)
        _same_seed_same_bits(make, mdp)
        _stepped_equals_compiled(make, mdp)
        _foreign_transitions_are_taken(make, mdp)
        if saved:
            _saved_goes_on(make, mdp)


def _require(holds: bool, promise: str, mdp: MDP, detail: str = "") -> None:
    if not holds:
        raise ConformanceError(f"{promise}, on {mdp!r}{': ' + detail if detail else ''}")


def _step(agent: EpisodicAgent, world: World, state: int, steps: int) -> int:
    for _ in range(steps):
        t = agent.t
        action = agent.act(state)
        reward, to = world.step(t, state, action)
        agent.observe(state, action, reward, to)
        state = to
    return state


def _state(agent: EpisodicAgent) -> dict[str, Any]:
    """Everything that the promise of equal bits covers; the time spent planning is not."""
    arrays = {**agent.statistics.to_arrays(), **{f"own {k}": v for k, v in agent.own_arrays().items()}}
    records = agent.episodes[[n for n in agent.episodes.dtype.names or () if n != "planning_seconds"]]
    return {**{k: v.copy() for k, v in arrays.items()}, "t": agent.t, "records": records}


def _difference(first: dict[str, Any], second: dict[str, Any]) -> str:
    for name, value in first.items():
        if name not in second or not np.array_equal(value, second[name]):
            return f"'{name}' differs"
    return ""


def _decisions_repeat(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    agent, world = make(mdp), World(mdp, 0)
    state = world.first_state
    for _ in range(STEPS):
        action = agent.act(state)
        _require(
            0 <= action < mdp.n_actions and bool(mdp.allowed[state, action]),
            "act gives an action the state has", mdp, f"state {state}, action {action}",
        )  # fmt: skip
        before = _state(agent)
        _require(agent.act(state) == action, "act asked again before observe answers the same", mdp, f"state {state}")
        _require(
            not _difference(before, _state(agent)), "act asked again changes nothing", mdp,
            _difference(before, _state(agent)),
        )  # fmt: skip
        state = _step(agent, world, state, 1)


def _bad_observations_change_nothing(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    agent, world = make(mdp), World(mdp, 0)
    state = _step(agent, world, world.first_state, 20)
    before = _state(agent)
    fine = (state, int(np.argmax(mdp.allowed[state])), mdp.reward_min, 0)
    for place, value in (
        (0, -1), (0, mdp.n_states), (1, -1), (1, mdp.n_actions), (2, float("nan")), (2, mdp.reward_max + 10.0),
        (2, mdp.reward_min - 10.0), (3, mdp.n_states), (3, -1),
    ):  # fmt: skip
        wrong: list[Any] = list(fine)
        wrong[place] = value
        try:
            agent.observe(*wrong)
        except GainfulError:
            pass
        else:
            raise ConformanceError(f"observe refuses a transition that cannot be, on {mdp!r}: took {tuple(wrong)}")
        _require(
            not _difference(before, _state(agent)), "a refused observation changes nothing", mdp,
            f"{tuple(wrong)}: {_difference(before, _state(agent))}",
        )  # fmt: skip


def _same_seed_same_bits(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    first, second = make(mdp), make(mdp)
    for agent in (first, second):
        simulate(agent, mdp, STEPS, seed=1)
    found = _difference(_state(first), _state(second))
    _require(not found, "the same seed gives the same bits", mdp, found)


def _stepped_equals_compiled(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    stepped, compiled, world = make(mdp), make(mdp), World(mdp, 2)
    run = simulate(compiled, mdp, STEPS, seed=2)
    state = _step(stepped, world, world.first_state, STEPS)
    _require(state == run.final_state, "stepping act and observe is the simulated run", mdp, "the states differ")
    stepped.act(state)
    compiled.act(state)
    found = _difference(_state(stepped), _state(compiled))
    _require(not found, "stepping act and observe is the simulated run", mdp, found)


def _foreign_transitions_are_taken(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    """Any valid transition may be observed, chosen by the agent or not, before it was ever asked."""
    agent, rng = make(mdp), np.random.default_rng(0)
    for _ in range(50):
        s = int(rng.integers(mdp.n_states))
        a = int(rng.choice(np.flatnonzero(mdp.allowed[s])))
        agent.observe(s, a, mdp.reward_max, int(rng.integers(mdp.n_states)))
    _require(agent.t == 50, "every observation counts as a step", mdp, f"t is {agent.t} after 50")
    _step(agent, World(mdp, 3), 0, 20)


def _saved_goes_on(make: Callable[[MDP], EpisodicAgent], mdp: MDP) -> None:
    agent = make(mdp)
    simulate(agent, mdp, STEPS, seed=4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent"
        agent.save(path)
        again = load_agent(path)
    _require(again.settings() == agent.settings(), "a saved agent has the same settings", mdp)
    for each in (agent, again):
        simulate(each, mdp, STEPS, seed=5)
    found = _difference(_state(agent), _state(again))
    _require(not found, "a saved agent goes on to the same bits", mdp, found)
