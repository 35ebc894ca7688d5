"""What holds for every worked problem: simulator and model agree, rules are below the optimum, c bounds the span."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import gainful as gf
from gainful.errors import GainfulError, InvalidArgumentError
from gainful.problems import (
    CallCentre,
    Maintenance,
    Problem,
    Routine,
    Stockroom,
    System,
    TwoServers,
    live,
    live_together,
)

PROBLEMS: list[Problem] = [CallCentre(), Stockroom(), Maintenance(), TwoServers()]
OTHERS: list[Problem] = [
    CallCentre(calls_per_hour=20.0, n_agents=1, n_lines=6, waiting_cost=0.1),
    CallCentre(calls_per_hour=90.0, n_agents=6, n_lines=12, value_per_call=2.0, waiting_cost=1.5),
    CallCentre(n_agents=3, n_lines=3),
    Stockroom(lead_days=1, case_size=1, capacity=9, order_cost=0.0),
    Stockroom(lead_days=3, case_size=3, capacity=11, margin=5.0, holding_cost=0.1),
    Stockroom(mean_demand=0.3, lead_days=2, case_size=2, capacity=7, order_cost=80.0),
    Maintenance(n_levels=2, breakdown_rate=0.0),
    Maintenance(n_levels=5, days_per_level=0.4, worse=3.0, service_cost=6_500.0),
    TwoServers(fast_per_hour=6.0, slow_per_hour=6.0, shelf=4, idle_share=0.1),
    TwoServers(orders_per_hour=4.0, shelf=2, courier_cost=1.0, waiting_cost=9.0),
]
EVERY = pytest.mark.parametrize(
    "problem",
    [*PROBLEMS, *(pytest.param(p, marks=pytest.mark.slow) for p in OTHERS)],
    ids=lambda p: type(p).__name__,
)
MAIN = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: type(p).__name__)


def rewards_of(mdp: gf.MDP) -> dict[tuple[int, int, int], set[float]]:
    """What each transition may pay, in the units of `mdp.rewards`."""
    pair = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
    entries = mdp.entry_rewards if mdp.entry_rewards is not None else mdp.pair_rewards[pair]
    found: dict[tuple[int, int, int], set[float]] = {}
    for k, to, reward in zip(pair, mdp.indices, entries, strict=True):
        found.setdefault((*divmod(int(k), mdp.n_actions), int(to)), set()).add(float(reward) + mdp.units.offset)
    return found


def wander(system: System, mdp: gf.MDP, steps: int, seed: int) -> tuple[list[tuple[int, int, float, int]], float]:
    """Random play: every transition, and the days it took."""
    random = np.random.default_rng(seed)
    choices = [np.flatnonzero(row) for row in mdp.allowed]
    seen = []
    state = system.state
    for u in random.random(steps):
        action = int(choices[state][int(u * choices[state].size)])
        reward, following, elapsed = system.step(action)
        assert elapsed > 0.0
        seen.append((state, action, reward, following))
        state = following
    return seen, system.days


# ---------------------------------------------------------------------- the simulator is the model


@EVERY
def test_the_simulator_moves_as_the_model_says(problem: Problem) -> None:
    mdp, steps = problem.model, 60_000
    seen, days = wander(problem.system(seed=5), mdp, steps, seed=7)
    counts = np.zeros((mdp.n_states * mdp.n_actions, mdp.n_states))
    for s, a, _, to in seen:
        counts[s * mdp.n_actions + a, to] += 1
    P, _ = mdp.to_dense()
    P = P.reshape(counts.shape)
    assert not counts[P == 0.0].any()  # nothing happens that the model excludes
    # Pearson's statistic over all cells that expect at least 5; a false alarm has probability 1e-6
    statistic, freedom = 0.0, 0
    for row, p in zip(counts, P, strict=True):
        expected = row.sum() * p
        large = expected >= 5.0
        if large.sum() >= 2:
            rest = row[~large].sum(), expected[~large].sum()
            statistic += float(((row[large] - expected[large]) ** 2 / expected[large]).sum())
            statistic += (rest[0] - rest[1]) ** 2 / rest[1] if rest[1] >= 5.0 else 0.0
            freedom += int(large.sum()) - 1 + int(rest[1] >= 5.0)
    assert freedom > 0
    assert statistic <= chi2.isf(1e-6, freedom)
    # a step lasts 1/Λ on average, exponentially distributed where time is continuous: five standard deviations
    mean = mdp.units.step_duration
    assert days / steps == pytest.approx(mean, rel=5 / np.sqrt(steps) if mdp.units.continuous else 1e-12, abs=0)


@EVERY
def test_the_simulator_pays_as_the_model_says(problem: Problem) -> None:
    mdp = problem.model
    system = problem.system(seed=3)
    seen, _ = wander(system, mdp, 20_000, seed=2)
    paid = rewards_of(mdp)
    room = 1e-9 * max(1.0, abs(mdp.reward_min), abs(mdp.reward_max))
    told = 0.0
    for s, a, reward, to in seen:
        assert min(abs(reward - r) for r in paid[s, a, to]) <= room
        assert mdp.reward_min - room <= reward <= mdp.reward_max + room
        told += reward
    if not mdp.units.continuous:
        assert system.money == pytest.approx(told, rel=1e-9, abs=1e-6)


def asymptotic_deviation(problem: Problem, policy: Any) -> float:
    """σ of the central limit theorem for (money - gain · days), per step.

    The increments lump + flow·τ - g·τ + h(s') - h(s) have mean 0 and are uncorrelated. With τ = 1/Λ fixed their square
    is the usual one; where time is continuous τ is exponential, with variance 1/Λ², and independent of s', which
    adds (flow - g)²/Λ².
    """
    mdp = problem.model
    found = gf.evaluate(mdp, policy)
    g = mdp.units.sign * float(found.class_gains[0]) * mdp.units.step_duration
    h = found.bias * mdp.units.sign
    assert mdp.entry_rewards is not None
    pair = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
    s, a = np.divmod(pair, mdp.n_actions)
    chosen = np.asarray(policy)[s] == a
    squares = (mdp.entry_rewards + mdp.units.offset + h[mdp.indices] - h[s] - g) ** 2
    variance = float((found.stationary[s] * mdp.probabilities * squares)[chosen].sum())
    if mdp.units.continuous:  # lumps are gains in one model and costs in the other
        least = np.minimum if mdp.units.objective == "reward" else np.maximum
        flow = least.reduceat(mdp.entry_rewards, mdp.indptr[:-1][mdp.allowed.reshape(-1)]) + mdp.units.offset
        by_pair = np.zeros(mdp.n_states * mdp.n_actions)
        by_pair[mdp.allowed.reshape(-1)] = flow
        bill = by_pair.reshape(mdp.n_states, -1)[np.arange(mdp.n_states), np.asarray(policy)]
        variance += float(found.stationary @ (bill - g) ** 2)
    return float(np.sqrt(variance))


@pytest.mark.slow
@MAIN
@pytest.mark.parametrize("which", ["optimum", "rule"])
def test_a_long_simulation_earns_the_exact_money_per_day(problem: Problem, which: str) -> None:
    actions = problem.optimum.actions if which == "optimum" else problem.rules[1].actions
    assert actions is not None
    ledger = live(Routine(actions), problem.system(seed=11), 150_000 / problem.steps_per_day)
    exact = problem.money_per_day(actions)
    span = gf.evaluate(problem.model, actions).span
    # five standard deviations, and what the first and the last state may add
    room = (5 * asymptotic_deviation(problem, actions) * np.sqrt(ledger.steps) + span) / ledger.days
    assert abs(ledger.money_per_day - exact) <= room
    assert room < 0.15 * abs(exact)  # so the test could fail


@MAIN
def test_the_same_seed_gives_the_same_life(problem: Problem) -> None:
    first, second, other = (wander(problem.system(seed=s), problem.model, 500, seed=1)[0] for s in (4, 4, 5))
    assert first == second
    assert first != other


# ---------------------------------------------------------------------- optimum, rules, c


@EVERY
def test_no_rule_earns_more_than_the_optimum(problem: Problem) -> None:
    assert len(problem.rules) >= 3
    room = 1e-6 + 1e-9 * abs(problem.best_money_per_day)
    for rule in problem.rules:
        assert rule.money_per_day <= problem.best_money_per_day + room, rule.name
        if rule.actions is not None:
            assert problem.money_per_day(rule.actions) == pytest.approx(rule.money_per_day, rel=0, abs=1e-9)
    assert problem.money_per_day(problem.optimum) == pytest.approx(problem.best_money_per_day, rel=0, abs=room)


@MAIN
def test_the_rule_of_thumb_leaves_money_on_the_table(problem: Problem) -> None:
    assert problem.rules[0].money_per_day < problem.best_money_per_day - 0.04 * abs(problem.best_money_per_day)


@EVERY
def test_c_is_at_least_the_span(problem: Problem) -> None:
    assert problem.optimum.span <= problem.c * (1 + 1e-9)


@MAIN
def test_c_is_not_a_wild_guess(problem: Problem) -> None:
    assert problem.c <= 5 * problem.optimum.span


@pytest.mark.parametrize("seed", range(20))
def test_c_bounds_the_span_of_random_businesses(seed: int) -> None:
    random = np.random.default_rng(seed)

    def some(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    agents, repair = int(random.integers(1, 7)), some(5, 30_000)
    lines = TwoServers(
        orders_per_hour=some(1, 40),
        fast_per_hour=some(2, 20),
        slow_per_hour=some(1, 20),
        shelf=int(random.integers(1, 9)),
        waiting_cost=some(0.1, 30),
        courier_cost=some(0.1, 60),
    )
    idle = gf.evaluate(lines.model, lines.optimum).stationary.reshape(lines.shelf + 1, -1)
    businesses: list[Problem] = [
        CallCentre(
            calls_per_hour=some(1, 400),
            talk_minutes=some(0.5, 20),
            n_agents=agents,
            n_lines=agents + int(random.integers(0, 20)),
            value_per_call=some(0.1, 100),
            waiting_cost=some(0.001, 20),
        ),
        Stockroom(
            mean_demand=some(0.1, 8),
            lead_days=int(random.integers(1, 4)),
            case_size=int(random.integers(2, 6)),
            capacity=int(random.integers(6, 14)),
            margin=some(0.5, 100),
            order_cost=some(0.5, 300),
            holding_cost=some(0.01, 30),
        ),
        Maintenance(
            n_levels=int(random.integers(2, 14)),
            days_per_level=some(0.1, 100),
            breakdown_rate=some(1e-5, 0.5),
            worse=some(1.01, 3),
            income=some(10, 9000),
            scrap_cost=some(0.1, 900),
            repair_cost=repair,
            service_cost=some(0.01, 1) * repair,
        ),
        replace(lines, idle_share=float(min(idle[0].sum(), idle[:, 0].sum()))),
    ]
    for problem in businesses:
        assert problem.optimum.span <= problem.c * (1 + 1e-9), problem


def test_a_shop_that_loses_money_on_every_unit_has_a_bound_too() -> None:
    # a full shelf is carried for M(M+1)/2 unit-nights over the demand; M²/2 was not enough
    problem = Stockroom(
        mean_demand=0.18, lead_days=3, case_size=2, capacity=6, margin=4.8, order_cost=0.7, holding_cost=17.6
    )
    assert problem.optimum.span <= problem.c


# ---------------------------------------------------------------------- the learner in the loop


@MAIN
def test_a_learner_lives_in_the_simulator(problem: Problem) -> None:
    agent, system = problem.learner(seed=1), problem.system(seed=1)
    days = 4_000 / problem.steps_per_day
    ledger = live(agent, system, days)
    assert ledger.days >= days
    assert agent.t == ledger.steps > 3_000
    assert len(agent.episodes) > 10
    low, high = problem.model.reward_min * problem.steps_per_day, problem.model.reward_max * problem.steps_per_day
    assert 2 * low <= ledger.money_per_day <= 2 * high
    again = live(agent, system, days)  # business goes on
    assert system.days == pytest.approx(ledger.days + again.days, rel=1e-12, abs=0)
    assert agent.t == ledger.steps + again.steps


@MAIN
def test_the_learner_is_told_c_if_it_needs_it_and_says_what_is_guaranteed(problem: Problem) -> None:
    agent, paper = problem.learner(), problem.learner("scal-plus")
    assert agent.settings()["span"] is None
    assert paper.settings()["span"] == problem.c
    assert agent.guarantee.holds
    assert paper.guarantee.holds
    assert not problem.learner("scal-plus", bonus_scale=0.1).guarantee.holds


def test_where_a_state_cannot_be_reached_the_learner_is_told_c() -> None:
    never_breaks = Maintenance(n_levels=2, breakdown_rate=0.0)
    assert never_breaks.learner().settings()["span"] == never_breaks.c


def test_a_parameter_of_another_agent_is_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidArgumentError, match=r"learner\('scal-plus', bonus_scale=0.1\)"):
        Maintenance().learner(bonus_scale=0.1)
    with pytest.raises(InvalidArgumentError, match="did you mean 'episodes'"):
        Maintenance().learner(episode="vanishing")


def test_a_learner_beats_the_rule_of_thumb_in_the_simulator() -> None:
    problem = CallCentre()
    agent, system = problem.learner(seed=2), problem.system(seed=2)
    live(agent, system, days=30)
    assert live(agent, system, days=20).money_per_day > problem.rules[0].money_per_day + 200


def test_a_fleet_learns_together() -> None:
    problem = Maintenance()
    agent = problem.learner(seed=1)
    fleet = [problem.system(seed) for seed in range(10)]
    ledger = live_together(agent, fleet, days=50)
    assert ledger.steps == agent.t == 500
    assert ledger.days == 500.0
    assert ledger.money == pytest.approx(sum(machine.money for machine in fleet), rel=1e-12, abs=1e-9)


class Counting:
    """Somebody else's learner: two verbs and nothing more."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, float, int]] = []

    def act(self, state: int) -> int:
        return 1 if state == Maintenance().n_levels else 0

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        self.told.append((state, action, reward, next_state))


def test_any_object_with_two_verbs_can_run_a_system() -> None:
    learner = Counting()
    ledger = live(learner, Maintenance().system(seed=1), days=400)
    assert ledger.steps == len(learner.told) == 400
    assert all(a[3] == b[0] for a, b in zip(learner.told[:-1], learner.told[1:], strict=True))
    assert ledger.money == pytest.approx(sum(x[2] for x in learner.told), rel=1e-12, abs=1e-9)


# ---------------------------------------------------------------------- hostile input


@pytest.mark.parametrize(
    ("factory", "facts"),
    [
        (CallCentre, {"calls_per_hour": 0.0}),
        (CallCentre, {"talk_minutes": float("nan")}),
        (CallCentre, {"value_per_call": "six"}),
        (CallCentre, {"n_agents": 0}),
        (CallCentre, {"n_agents": 4, "n_lines": 3}),
        (CallCentre, {"waiting_cost": -1.0}),
        (CallCentre, {"hours_per_day": float("inf")}),
        (CallCentre, {"promised_minutes": None}),
        (Stockroom, {"lead_days": 0}),
        (Stockroom, {"lead_days": 1.5}),
        (Stockroom, {"case_size": 13}),
        (Stockroom, {"capacity": 500, "lead_days": 6, "case_size": 1}),
        (Stockroom, {"mean_demand": -2.0}),
        (Stockroom, {"margin": 0.0}),
        (Stockroom, {"order_cost": True}),
        (Maintenance, {"n_levels": 1}),
        (Maintenance, {"days_per_level": 0.0}),
        (Maintenance, {"worse": 0.5}),
        (Maintenance, {"worse": 1e300}),
        (Maintenance, {"repair_cost": float("-inf")}),
        (Maintenance, {"service_cost": 7_001.0}),
        (TwoServers, {"orders_per_hour": -1.0}),
        (TwoServers, {"shelf": 0}),
        (TwoServers, {"idle_share": 0.0}),
        (TwoServers, {"idle_share": 1.5}),
        (TwoServers, {"courier_cost": 10**400}),
    ],
)
def test_impossible_facts_are_refused(factory: Any, facts: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(facts)).split("_")[0]):
        factory(**facts)


@MAIN
@pytest.mark.parametrize("action", [-1, 99, 0.5, "accept", None])
def test_an_action_that_is_none_is_refused(problem: Problem, action: Any) -> None:
    system = problem.system()
    with pytest.raises(GainfulError, match="action"):
        system.step(action)
    assert system.days == system.money == 0.0


@MAIN
def test_an_action_the_state_does_not_have_is_refused(problem: Problem) -> None:
    mdp = problem.model
    system = problem.system(seed=1)
    random = np.random.default_rng(0)
    for _ in range(5_000):
        state = system.state
        for a in np.flatnonzero(~mdp.allowed[state]):
            with pytest.raises(InvalidArgumentError, match="is not available in state"):
                system.step(int(a))
            assert system.state == state
        if not mdp.allowed[state].all():
            return
        choices = np.flatnonzero(mdp.allowed[state])
        system.step(int(choices[-1] if isinstance(problem, CallCentre) else random.choice(choices)))
    assert mdp.allowed.all()


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan"), "week"])
def test_a_life_of_no_length_is_refused(days: Any) -> None:
    problem = CallCentre()
    with pytest.raises(InvalidArgumentError, match="days"):
        live(problem.learner(), problem.system(), days)
    with pytest.raises(InvalidArgumentError, match="days"):
        live_together(problem.learner(), [problem.system()], days)


def test_an_empty_fleet_and_a_bad_seed_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="systems"):
        live_together(Maintenance().learner(), [], 5.0)
    with pytest.raises(InvalidArgumentError, match="seed"):
        Maintenance().system(-1)
