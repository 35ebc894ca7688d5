"""Learning speed; every claim is a ratio measured in this one run (steps per second of CPU time, best of several).

    python benchmarks/learning.py [riverswim] [garnet] [many] [stepping] [rule] [psrl] [--quick | --record]

riverswim  SCAL+ in the whole `simulate` call against the best bare compiled simulator, 6 states
garnet     the same with 200 states, 4 actions, 8 next states
many       `simulate_many` per core against the best bare loop, and on all cores in wall time
stepping   `act` and `observe` called from Python
rule       a user's own compiled rule in `StepwiseAgent` against the same rule stepped in Python, 6 states
psrl       PSRL that draws as much of a model as its plan needs, against complete models drawn with NumPy, in four rooms
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numba
import numpy as np

import gainful as gf
from gainful.agents.stepwise import StepwiseAgent
from gainful.simulation.transition_table import TabularStepper

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.bare_loops import bare_loops
from benchmarks.parts import run_parts

Loops: TypeAlias = dict[str, tuple[Callable[[], Any], int]]
STEPS = 10**7
SEEDS = range(8)


def best_rates(loops: Loops, rounds: int, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Steps per second of each loop, the best of several rounds in which all are run: a busy moment hurts all."""
    for run, _ in loops.values():
        run()  # compile
    times = dict.fromkeys(loops, np.inf)
    for _ in range(rounds):
        for name, (run, _) in loops.items():
            began = clock()
            run()
            times[name] = min(times[name], clock() - began)
    return {name: steps / times[name] for name, (_, steps) in loops.items()}


def show(rates: dict[str, float], ours: str, wanted: float | None) -> None:
    best = max(rate for name, rate in rates.items() if name.startswith("bare"))
    for name, rate in rates.items():
        ratio = "" if name.startswith("bare") else f"   {rate / best:5.2f} of the best bare loop"
        print(f"  {name:<28} {rate / 1e6:8.1f} M steps/s{ratio}")
    if wanted is None:
        return
    found = rates[ours] / best
    print(f"  {'claim: at least':<28} {wanted:8.2f}, found {found:.2f}{'' if found >= wanted else '   MISSED'}")


def learner(mdp: gf.MDP, span: float) -> gf.SCALPlus:
    return gf.SCALPlus(mdp.n_states, mdp.n_actions, span=span)


def single(mdp: gf.MDP, span: float, wanted: float, quick: bool) -> dict[str, Any]:
    print(f"\nSCAL+ in {mdp}, {STEPS:.0e} steps")
    loops: Loops = {name: (run, STEPS) for name, run in bare_loops(mdp, STEPS).items()}
    last: list[gf.Run] = []

    def learn() -> None:
        last[:] = [gf.simulate(learner(mdp, span), mdp, STEPS, seed=1)]

    rates = best_rates({**loops, "SCAL+, whole simulate call": (learn, STEPS)}, 4 if quick else 12)
    show(rates, "SCAL+, whole simulate call", wanted)
    run = last[0]
    print(
        f"  {len(run.episodes)} episodes; in the last run {1e3 * run.planning_seconds:.0f} ms planning, "
        f"{1e3 * run.acting_seconds:.0f} ms acting"
    )
    return {"wanted": wanted, "steps": STEPS, "steps_per_second": rates}


def riverswim(quick: bool) -> dict[str, Any]:
    return single(gf.environments.riverswim(6), 7.0, 0.7, quick)


def garnet(quick: bool) -> dict[str, Any]:
    return single(gf.environments.garnet(200, 4, 8), 3.0, 0.6, quick)


def many(quick: bool) -> list[dict[str, Any]]:
    found = []
    for mdp, span, wanted in (
        (gf.environments.riverswim(6), 7.0, 1.2),
        (gf.environments.garnet(200, 4, 8), 3.0, None),
    ):
        print(f"\nsimulate_many in {mdp}, {len(SEEDS)} seeds of {STEPS:.0e} steps")
        loops: Loops = {name: (run, STEPS) for name, run in bare_loops(mdp, STEPS).items()}
        total = len(SEEDS) * STEPS

        def make(_: int, mdp: gf.MDP = mdp, span: float = span) -> gf.SCALPlus:
            return learner(mdp, span)

        one, all_of_them = (
            (partial(gf.simulate_many, make, mdp, STEPS, SEEDS, threads=threads), total) for threads in (1, None)
        )
        name = "simulate_many, one core"
        single_thread = best_rates({**loops, name: one}, 3 if quick else 8)
        show(single_thread, name, wanted)
        rates = best_rates({"all cores": all_of_them, "one core": one}, 2 if quick else 4, time.perf_counter)
        print(
            f"  in wall time: one core {rates['one core'] / 1e6:.0f}, all {os.cpu_count()} cores "
            f"{rates['all cores'] / 1e6:.0f} M steps/s"
        )
        found.append({"problem": str(mdp), "wanted": wanted, "steps_per_second": single_thread, "in_wall_time": rates})
    return found


def psrl(quick: bool) -> dict[str, float]:
    mdp, steps = gf.environments.four_rooms(), 10**5 if quick else 10**6
    print(f"\nPSRL in {mdp}, {steps:.0e} steps")
    times: dict[str, float] = {}
    cases: dict[str, dict[str, Any]] = {
        "compiled, prior 1/S": {},
        "numpy, prior 1/S": {"sampler": "numpy"},
        "numpy, prior 0.1": {"sampler": "numpy", "transition_prior": 0.1},
        "numpy, prior 1 (old default)": {"sampler": "numpy", "transition_prior": 1.0},
    }
    for name, settings in cases.items():
        gf.simulate(gf.PSRL(mdp.n_states, mdp.n_actions, **settings), mdp, 1000, seed=0)  # compile
        agent = gf.PSRL(mdp.n_states, mdp.n_actions, seed=1, **settings)
        began = time.process_time()
        lost = gf.simulate(agent, mdp, steps, seed=1).expected_regret[-1]
        times[name] = time.process_time() - began
        print(
            f"  {name:<28} {times[name]:8.2f} s, {len(agent.records):,} plans of "
            f"{1e6 * times[name] / len(agent.records):,.0f} µs, expected regret {lost:,.0f}"
        )
    ours, *others = times.values()
    ratios = ", ".join(f"{other / ours:.1f}" for other in others)
    found = others[0] / ours
    print(f"  {'times as fast':<28} {ratios}; claim: at least 10 for one prior{'' if found >= 10 else '   MISSED'}")
    return times


@numba.njit
def fading_update(q, target, numbers, state, action, reward, next_state, visits):  # type: ignore[no-untyped-def] # noqa: ARG001
    """The rule of docs/howto/own_agent.md."""
    best = q[next_state, 0]
    for a in range(1, q.shape[1]):
        best = max(best, q[next_state, a])
    error = reward - numbers[1] + best - q[state, action]
    q[state, action] += error / visits**0.6
    numbers[1] += 0.01 * error
    numbers[0] *= 0.99999


@numba.njit
def fading_choice(q, numbers, allowed, state, uniform):  # type: ignore[no-untyped-def]
    """Explore with a probability that fades."""
    n_actions = q.shape[1]
    if uniform < numbers[0]:
        action = int(uniform / numbers[0] * n_actions)
        if allowed[state, action]:
            return action
    chosen = 0
    for a in range(1, n_actions):
        if q[state, a] > q[state, chosen]:
            chosen = a
    return chosen


class FadingQ(StepwiseAgent):
    """Differential Q-learning whose exploration fades."""

    update, choose = fading_update, fading_choice

    def __init__(self, n_states: int, n_actions: int) -> None:
        super().__init__(n_states, n_actions)
        self.numbers = np.array([0.5, 0.0])


class SteppedFadingQ(FadingQ):
    """The same functions, not compiled."""

    update, choose = staticmethod(fading_update.py_func), staticmethod(fading_choice.py_func)


def rule(quick: bool) -> dict[str, float]:
    mdp, n = gf.environments.riverswim(6), STEPS
    print(f"\na rule of one's own in {mdp}")
    warnings.simplefilter("ignore", gf.errors.SteppedInPythonWarning)
    loops: Loops = {
        "compiled rule": (lambda: gf.simulate(FadingQ(6, 2), mdp, n, seed=1), n),
        "the same in Python": (lambda: gf.simulate(SteppedFadingQ(6, 2), mdp, n // 500, seed=1), n // 500),
        "built-in differential Q": (lambda: gf.simulate(gf.EpsilonGreedyQ(6, 2), mdp, n, seed=1), n),
    }
    rates = best_rates(loops, 3 if quick else 8)
    for name, rate in rates.items():
        print(f"  {name:<28} {rate / 1e6:8.3f} M steps/s")
    found = rates["compiled rule"] / 1e6
    print(f"  {'claim: at least':<28} {10.0:8.1f} M steps/s{'' if found >= 10.0 else '   MISSED'}")
    return rates


def stepping(quick: bool) -> dict[str, float]:
    mdp, n = gf.environments.riverswim(6), 20_000 if quick else 100_000
    print(f"\nact and observe from Python in {mdp}, after {n:,} steps of learning")
    agent, world = learner(mdp, 7.0), TabularStepper(mdp, 1)
    gf.simulate(agent, mdp, n, seed=1)
    state, actions, rewards, states = world.first_state, [], [], []
    for t in range(n):  # what happens, beforehand: only the agent is timed
        actions.append(agent.act(state))
        reward, to = world.step(t, state, actions[-1])
        agent.observe(state, actions[-1], reward, to)
        states.append((state, to))
        rewards.append(reward)
        state = to

    def acting() -> None:
        act = agent.act
        for s, _ in states:
            act(s)

    def observing() -> None:
        observe = agent.observe
        for (s, to), a, r in zip(states, actions, rewards, strict=True):
            observe(s, a, r, to)

    def environment() -> None:
        for t, ((s, _), a) in enumerate(zip(states, actions, strict=True)):
            world.step(t, s, a)

    rates = best_rates({"act": (acting, n), "observe": (observing, n), "TabularStepper.step": (environment, n)}, 3)
    both = 1.0 / (1.0 / rates["act"] + 1.0 / rates["observe"])
    for name, rate in (*rates.items(), ("act + observe", both)):
        print(f"  {name:<28} {rate / 1e3:8.0f} k steps/s   {1e6 / rate:6.2f} µs each")
    return {**rates, "act + observe": both}


PARTS: dict[str, Callable[[bool], Any]] = {
    "riverswim": riverswim, "garnet": garnet, "many": many, "stepping": stepping, "rule": rule, "psrl": psrl,
}  # fmt: skip

if __name__ == "__main__":
    run_parts(PARTS)
