from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.agents.refinement import FIRST_HORIZON
from gainful.agents.registry import agent_class, continuous_class, continuous_names, describe
from gainful.errors import InvalidAgentError, InvalidArgumentError, UnknownAgentError
from gainful.optimism.c_scal_plus import bins_for_horizon, holder_term, regret_exponent


def wander(agent: Any, steps: int, dim: int = 1, seed: int = 0, start: Any = None) -> Any:
    """A walk on the cube that reflects at its ends and pays more the further up one is; returns the last point."""
    rng = np.random.default_rng(seed)
    x = np.full(dim, 0.5) if start is None else start
    for _ in range(steps):
        action = agent.act(x)
        to = x + 0.1 * (action - 1) + 0.05 * rng.standard_normal(dim)
        to = np.clip(np.abs(to), 0.0, 1.0)
        agent.observe(x, action, float(x[0]), to)
        x = to
    return x


def of_unit(bins: int = 10, **options: Any) -> gf.CSCALPlus:
    given: dict[str, Any] = {"n_actions": 3, "span": 2.0, "lipschitz": 1.0, "holder": 1.0, **options}
    return gf.CSCALPlus(partition=gf.Partition.uniform(bins=bins), **given)


# ---------------------------------------------------------------------- equations


def test_the_holder_term_and_the_number_of_cells_by_hand() -> None:
    assert holder_term(2.0, 1.0, 4.0, 0.5, 16) == 3.0  # 3·4/4
    assert bins_for_horizon(10**6, 4, 2.0, 1.0) == 32  # sqrt(2·500) = 31.6
    assert bins_for_horizon(10**6, 4, 2.0, 1.0, dim=2) == 8  # ⌈500^(1/3)⌉ = ⌈7.94⌉
    assert bins_for_horizon(10**6, 4, 2.0, 0.5) == 63  # 500^(2/3) = 62.996
    assert bins_for_horizon(1, 100, 0.001, 1.0) == 1
    assert regret_exponent(1.0) == 3 / 4
    assert regret_exponent(1.0, 2) == 5 / 6


@given(st.integers(1, 10**9), st.integers(1, 20), st.floats(0.01, 100), st.floats(0.05, 1.0), st.integers(1, 4))
def test_the_number_of_cells_minimises_the_bound(T: int, A: int, L: float, alpha: float, d: int) -> None:
    n = bins_for_horizon(T, A, L, alpha, d)

    def bound(k: float) -> float:
        return math.pow(k, d) * math.sqrt(A * T) + L * math.pow(k, -alpha) * T

    best = min(bound(k) for k in np.linspace(max(1, n - 1), n, 11))
    assert best <= bound(n + 1) * (1 + 1e-9)
    assert n == 1 or best <= bound(max(1, n - 2)) * (1 + 1e-9)


@pytest.mark.parametrize("variant", ["appendix", "main text"])
def test_the_bonus_by_hand(variant: Any) -> None:
    agent = of_unit(5, bonus=variant, lipschitz=0.5, delta=0.1)
    seen: list[Any] = []
    agent.on_episode = seen.append
    for _ in range(400):
        agent.observe(0.1, 1, 0.25, 0.3)
    agent.act(0.1)
    b, N, S, A, t = seen[-1].plan.details["bonus"], 400, 5, 3, 401
    beta = math.sqrt(7 * math.log(2 * S * A * t / 0.1) / N)
    term = 3.0 * 0.5 / 5
    small = 2.0 * (beta + 1 / (N + 1)) + beta + term
    assert b[0, 1] == pytest.approx(small, rel=1e-14, abs=0)  # both variants agree below the caps
    at_zero = math.sqrt(7 * math.log(2 * S * A * t / 0.1))
    never = 2.0 * 2.0 + 1.0 + term if variant == "appendix" else 3.0 * at_zero + 2.0 + term
    assert b[3, 2] == pytest.approx(never, rel=1e-14, abs=0)
    assert agent.model_error == pytest.approx(term, rel=1e-15, abs=0)


def test_the_coarsest_axis_sets_the_holder_term_and_all_cells_the_logarithm() -> None:
    part = gf.Partition.uniform(bins=[4, 10])
    agent = gf.CSCALPlus(partition=part, n_actions=2, span=1.0, lipschitz=2.0, holder=0.5)
    assert agent.model_error == 2.0 * 2.0 * 4**-0.5
    assert agent.n_states == 40
    view: list[Any] = []
    agent.on_episode = view.append
    for _ in range(1000):
        agent.observe([0.1, 0.1], 0, 0.0, [0.1, 0.1])
    agent.act([0.1, 0.1])
    beta = math.sqrt(7 * math.log(2 * 40 * 2 * 1001 / 0.05) / 1000)
    wanted = 1.0 * (beta + 1 / 1001) + beta + 2.0
    assert view[-1].plan.details["bonus"][0, 0] == pytest.approx(wanted, rel=1e-14, abs=0)


# ---------------------------------------------------------------------- what the term does, and does not


def test_the_holder_term_moves_the_gain_and_nothing_else() -> None:
    """The theorem of THEORY sec. 4: T_c commutes with a constant, so v, argmax and the truncated set stay."""
    with_term, without = of_unit(16, bonus_scale=0.02, lipschitz=0.5), of_unit(16, bonus_scale=0.02, lipschitz=None)
    plans: dict[str, list[Any]] = {"with": [], "without": []}
    with_term.on_episode = lambda view: plans["with"].append(view.plan)
    without.on_episode = lambda view: plans["without"].append(view.plan)
    wander(with_term, 3000)
    wander(without, 3000)
    assert len(plans["with"]) == len(plans["without"]) > 50
    term = 3.0 * 0.5 / 16
    for k, (one, other) in enumerate(zip(plans["with"], plans["without"], strict=True)):
        assert np.array_equal(one.actions, other.actions)
        np.testing.assert_allclose(one.values - one.values[0], other.values - other.values[0], rtol=0, atol=1e-9)
        shift = np.array(one.gain_bounds) - np.array(other.gain_bounds)
        np.testing.assert_allclose(shift, term, rtol=0, atol=1e-9, err_msg=str(k))


def test_the_weights_of_the_min_action_mixture_do_depend_on_it() -> None:
    """Copies have reward 0, with the term or without: the weights (th - m)/(Lv - m) move."""
    options: dict[str, Any] = {"bonus_scale": 0.02, "span": 0.1, "mixture": "min-action"}
    with_term, without = of_unit(16, lipschitz=4.0, **options), of_unit(16, lipschitz=None, **options)
    rng = np.random.default_rng(0)
    for _ in range(20_000):
        x, a = rng.random(), int(rng.integers(3))
        to = min(1.0, abs(x + 0.1 * (a - 1) + 0.05 * rng.standard_normal()))
        for agent in (with_term, without):
            agent.observe(x, a, x, to)
    for agent in (with_term, without):
        agent.act(0.5)
    one, other = with_term.current, without.current
    assert one is not None
    assert other is not None
    assert np.array_equal(one.actions, other.actions)
    assert one.probabilities is not None
    assert other.probabilities is not None
    assert np.abs(one.probabilities - other.probabilities).max() > 0.01


def test_the_aggregated_operator_is_the_continuous_one_on_piecewise_constant_functions() -> None:
    """Proof of Lem. optimism.cont: L̂^ag v(I(x)) = L̂v(x), with p̂(·|x,a) on points, the extra mass spread over I(s̄)."""
    agent, rng = of_unit(7, bonus_scale=0.1), np.random.default_rng(1)
    seen: list[Any] = []
    agent.on_episode = seen.append
    points, actions, targets = rng.random(500), rng.integers(3, size=500), rng.random(500)
    for x, a, y in zip(points, actions, targets, strict=True):
        agent.observe(x, int(a), x * y, y)
    agent.act(0.2)
    part, v = agent.partition, rng.random(7)
    r = seen[-1].plan.details["rewards"].reshape(7, 3)
    N = np.zeros((7, 3, 7))
    for pair in range(21):
        to, counts = agent.statistics.row(pair)
        N[pair // 3, pair % 3, to] = counts
    p = (N + np.eye(7)[0]) / (N.sum(axis=2, keepdims=True) + 1)
    aggregated = (r + p @ v).max(axis=1)
    cells = part.index_many(points)
    for x in rng.random(20):
        i = part.index(x)
        values = []
        for a in range(3):
            here = (cells == i) & (actions == a)
            n = here.sum()
            on_points = sum(v[part.index(y)] for y in targets[here])  # Σ over the observed next points
            values.append(r[i, a] + (on_points + v[0]) / (n + 1))  # the density n·1{y in I(s̄)} integrates to 1
        assert max(values) == pytest.approx(aggregated[i], rel=0, abs=1e-12)


# ---------------------------------------------------------------------- the interface


def test_the_policy_is_that_of_the_cell() -> None:
    agent = of_unit(10, bonus_scale=0.02)
    assert agent.predict(0.95) == 0
    assert agent.t == len(agent.episodes) == 0
    wander(agent, 4000)
    before = len(agent.episodes)
    plan = agent.current
    assert plan is not None
    for x in (0.0, 0.05, 0.1, 0.1000001, 0.55, 1.0):
        assert agent.predict(x) == agent.predict([x]) == plan.actions[agent.partition.index(x)]
    table = agent.policy(np.linspace(0, 1, 101))
    assert table.shape == (101, 3)
    assert np.array_equal(table.argmax(axis=1), plan.actions[agent.partition.index_many(np.linspace(0, 1, 101))])
    assert len(agent.episodes) == before
    assert agent.predict(0.05) == 2  # up is where the reward is


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ((1.5, 0, 0.5, 0.2), r"axis 0 is 1.5, outside \[0.0, 1.0\]"),
        ((0.5, 0, 0.5, -0.1), "axis 0 is -0.1, outside"),
        ((float("nan"), 0, 0.5, 0.2), "axis 0 is NaN"),
        ((0.5, 0, 0.5, float("nan")), "axis 0 is NaN"),
        (([0.5, 0.5], 0, 0.5, 0.2), r"the point has shape \(2,\), expected \(1,\) or a number"),
        ((0.5, 0, 0.5, "far"), "expected 1 finite"),
        ((0.5, 3, 0.5, 0.2), "action is 3"),
        ((0.5, 0, 1.5, 0.2), "reward 1.5 at step"),
        ((0.5, 0, float("nan"), 0.2), "reward nan"),
    ],
)
@pytest.mark.parametrize("doubling", [False, True])
def test_a_bad_observation_is_refused_and_changes_nothing(transition: Any, message: str, doubling: bool) -> None:
    agent = of_unit() if not doubling else gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=1.0, holder=1.0)
    wander(agent, 30)
    before = {name: array.copy() for name, array in agent.statistics.to_arrays().items()}
    with pytest.raises(InvalidArgumentError, match=message):
        agent.observe(*transition)
    assert agent.t == 30
    assert agent.log is None or agent.log.n == 30
    assert all(np.array_equal(array, before[name]) for name, array in agent.statistics.to_arrays().items())


def test_a_bad_point_cannot_be_acted_upon() -> None:
    agent = gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=1.0, holder=1.0)
    rng = np.random.default_rng(0)
    for _ in range(FIRST_HORIZON):
        agent.observe(rng.random(), 0, 0.5, rng.random())
    with pytest.raises(InvalidArgumentError, match="outside"):
        agent.act(2.0)
    assert agent.stage == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lipschitz": 0.0}, "lipschitz is 0.0, expected a finite number above 0"),
        ({"lipschitz": -1.0}, "lipschitz is -1.0"),
        ({"lipschitz": float("nan")}, "lipschitz is nan"),
        ({"lipschitz": "much"}, "lipschitz is 'much'"),
        ({"holder": 0.0}, r"holder is 0.0, expected a number in \(0, 1\]"),
        ({"holder": 1.5}, "holder is 1.5"),
        ({"span": -1.0}, "span is -1"),
        ({"bonus_scale": 0.0}, "bonus_scale is 0"),
        ({"bonus": "none"}, "'appendix', 'main text', 'sharp', 'bernstein' or 'authors'"),
        ({"horizon": 0}, "horizon is 0"),
        ({"n_actions": 0}, "n_actions is 0"),
        ({"partition": 20}, "partition is 20, expected a Partition"),
        ({"low": 0.0}, "a partition was given, and dim, low"),
        ({"partition": None, "lipschitz": None}, "no formula for the number of cells"),
        ({"partition": None, "dim": 0}, "dim is 0"),
        ({"partition": None, "allowed": [[True, False, True]]}, "mask on cells, which change here"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "partition": gf.Partition.uniform(bins=4),
        "n_actions": 3,
        "span": 1.0,
        "lipschitz": 1.0,
        "holder": 1.0,
        **options,
    }
    with pytest.raises(InvalidArgumentError, match=message):
        gf.CSCALPlus(**given)


def test_no_cells_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="bins is 0"):
        gf.Partition.uniform(bins=0)


def test_guarantees_say_what_they_are_and_when_they_are_none() -> None:
    assert of_unit().guarantee.holds
    assert "S = 10 cells" in of_unit().guarantee.bound
    chosen = gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=1.0, holder=0.5)
    assert "Õ(T^((α+2)/(2α+2))) = Õ(T^0.8333)" in chosen.guarantee.bound
    assert "T ≥ L^(2/α)·A" in chosen.guarantee.bound
    assert "all T at once" in chosen.guarantee.bound
    plane = gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=1.0, holder=1.0, dim=2, horizon=10**6)
    assert "Õ(T^((2d+α)/(2d+2α))) = Õ(T^0.8333) with probability 0.95, at T = 1000000" in plane.guarantee.bound
    for changed, reason in (({"bonus_scale": 0.1}, "bonus_scale is 0.1"), ({"holder": None}, "holder not given")):
        assert not of_unit(**changed).guarantee.holds
        assert f"no guarantee: {reason}" in str(of_unit(**changed).guarantee)
    unknown = of_unit(lipschitz=None)
    assert unknown.model_error == 0.0
    assert not unknown.guarantee.holds


def test_units_of_reward_change_nothing_but_the_units() -> None:
    plain, other = of_unit(8, bonus_scale=0.05), of_unit(8, bonus_scale=0.05, span=8.0, reward_min=-2.0, reward_max=2.0)
    rng = np.random.default_rng(5)
    x = 0.5
    for _ in range(2000):
        a = plain.act(x)
        assert other.act(x) == a
        to, r = min(1.0, abs(x + 0.1 * (a - 1) + 0.02 * rng.standard_normal())), round(64 * x) / 64
        plain.observe(x, a, r, to)
        other.observe(x, a, 4 * r - 2.0, to)
        x = to
    assert other.model_error == 4 * plain.model_error
    np.testing.assert_allclose(other.episodes["gain"], 4 * plain.episodes["gain"] - 2.0, rtol=0, atol=1e-9)


def test_vacuous_ends_when_the_data_speak() -> None:
    agent = of_unit(2, span=0.5, n_actions=1)
    assert agent.vacuous
    agent.act(0.1)
    assert agent.vacuous
    for _ in range(5000):
        agent.observe(0.1, 0, 0.5, 0.6)
    agent.act(0.1)
    assert not agent.vacuous


# ---------------------------------------------------------------------- cells chosen by the agent


def test_the_horizon_chooses_the_cells_of_any_box() -> None:
    agent = gf.CSCALPlus(n_actions=4, span=1.0, lipschitz=2.0, holder=1.0, horizon=10**6, low=-3.0, high=5.0)
    assert agent.partition == gf.Partition.uniform(bins=32, low=-3.0, high=5.0)
    assert agent.log is None
    assert agent.model_error == 2.0 * 2.0 / 32
    box = spaces.Box(np.array([-1.0, -np.inf], np.float32), np.array([1.0, np.inf], np.float32))
    made = gf.CSCALPlus(
        n_actions=4, span=1.0, lipschitz=2.0, holder=1.0, horizon=10**6, box=box, low=[None, -2.0], high=[None, 2.0]
    )
    assert made.partition.bins == (8, 8)
    assert made.partition.outside == "clip"
    assert made.partition.low == (-1.0, -2.0)
    with pytest.raises(InvalidArgumentError, match="dim is 3, but the box has 2 axes"):
        gf.CSCALPlus(n_actions=4, span=1.0, lipschitz=2.0, holder=1.0, horizon=10, box=box, low=-1.0, high=1.0, dim=3)


@pytest.mark.parametrize("dim", [1, 2])
def test_refining_the_partition_loses_no_observation(dim: int) -> None:
    agent = gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=4.0, holder=1.0, dim=dim, bonus_scale=0.05)
    bins = [agent.partition.bins]
    steps: list[int] = []
    agent.on_episode = lambda view: steps.append(view.step)
    x, transitions = np.full(dim, 0.5), []
    rng = np.random.default_rng(2)
    for _ in range(4 * FIRST_HORIZON + 10):
        action = agent.act(x)
        if agent.partition.bins != bins[-1]:
            bins.append(agent.partition.bins)
            assert agent.core.planned_at == agent.t  # a new episode
            assert agent.statistics.visits.sum() == agent.t
        to = rng.random(dim)
        reward = float(rng.random())
        agent.observe(x, action, reward, to)
        transitions.append((x, action, reward, to))
        x = to
    schedule = [bins_for_horizon(FIRST_HORIZON << i, 3, 4.0, 1.0, dim) for i in range(4)]
    assert bins == [(n,) * dim for n in sorted(set(schedule))]
    assert agent.stage == 3
    assert agent.t == len(transitions)
    assert steps == agent.episodes["step"].tolist() == sorted(steps)
    again = gf.SCALPlus(agent.n_states, 3, span=1.0)  # who counts on these cells from the beginning
    for here, a, r, there in transitions:
        again.observe(agent.partition.index(here), a, r, agent.partition.index(there))
    for name, array in again.statistics.to_arrays().items():
        assert np.array_equal(array, agent.statistics.to_arrays()[name]), name
    assert np.array_equal(again.core.visited, agent.core.visited)
    assert agent.model_error == pytest.approx(2.0 * 4.0 / bins[-1][0], rel=1e-15, abs=0)


def test_stages_are_skipped_when_only_watching_and_the_clock_goes_on() -> None:
    agent, rng = gf.CSCALPlus(n_actions=2, span=1.0, lipschitz=4.0, holder=1.0), np.random.default_rng(0)
    for _ in range(5 * FIRST_HORIZON):
        agent.observe(rng.random(), int(rng.integers(2)), 0.5, rng.random())
    assert agent.stage == 0
    agent.act(0.5)
    assert agent.stage == 3
    assert agent.partition.bins == (bins_for_horizon(8 * FIRST_HORIZON, 2, 4.0, 1.0),)
    assert agent.statistics.visits.sum() == agent.t == 5 * FIRST_HORIZON
    assert agent.episodes["step"].tolist() == [5 * FIRST_HORIZON + 1]


def test_what_was_accepted_as_float32_can_be_counted_again() -> None:
    agent = gf.CSCALPlus(n_actions=1, span=1.0, lipschitz=4.0, holder=1.0, low=0.0, high=0.1)
    edge = np.array([0.1], dtype=np.float32)  # above 0.1, and yet inside
    for _ in range(FIRST_HORIZON):
        agent.observe(edge, 0, 0.5, edge)
    agent.act(edge)
    assert agent.stage == 1
    assert agent.statistics.visits[-1] == FIRST_HORIZON


# ---------------------------------------------------------------------- files


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 3 * FIRST_HORIZON), st.sampled_from(["fixed", "horizon", "doubling", "mixed", "local"]))
def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path_factory: pytest.TempPathFactory, cut: int, kind: str) -> None:
    options: dict[str, Any] = {
        "n_actions": 3,
        "span": 0.2,
        "lipschitz": 1.0,
        "holder": 1.0,
        "bonus_scale": 0.05,
        "seed": 4,
    }
    if kind != "doubling":
        options |= {"horizon": 10**5} if kind == "horizon" else {"partition": gf.Partition.uniform(bins=12)}
    if kind in ("mixed", "local"):
        options |= {"mixture": "min-action"} if kind == "mixed" else {"replanning": "local"}
    agent = gf.CSCALPlus(**options)
    x = wander(agent, cut)
    path: Path = tmp_path_factory.mktemp("agents") / "it.agent"
    agent.save(path)
    again = gf.load_agent(path)
    assert type(again) is gf.CSCALPlus
    assert again.settings() == agent.settings()
    assert again.guarantee == agent.guarantee
    assert again.predict(0.77) == agent.predict(0.77)
    ends = [wander(each, 1200, seed=9, start=x) for each in (agent, again)]
    assert np.array_equal(*ends)
    assert again.partition == agent.partition
    for name, array in agent.statistics.to_arrays().items():
        assert np.array_equal(array, again.statistics.to_arrays()[name]), name
    for name, array in agent.own_arrays().items():
        assert np.array_equal(array, again.own_arrays()[name]), name
    assert [r[:-1] for r in agent.core.records] == [r[:-1] for r in again.core.records]


def test_a_log_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    agent = gf.CSCALPlus(n_actions=3, span=1.0, lipschitz=1.0, holder=1.0)
    wander(agent, 50)
    assert agent.log is not None
    agent.log.n = 49
    agent.save(tmp_path / "it")
    with pytest.raises(InvalidAgentError, match="49 transitions after 50 steps"):
        gf.load_agent(tmp_path / "it")


def test_agents_on_points_have_names_of_their_own() -> None:
    ours = ["c-scal-plus", "c-kl-scal-plus", "adaptive-kl-scal-plus", "balanced-grids", "uccrl", "discretized"]
    assert continuous_names() == ours
    assert continuous_class("c-scal-plus") is gf.CSCALPlus
    assert describe("c-scal-plus").parameters["span"] == "required"
    with pytest.raises(UnknownAgentError, match="an agent on points"):
        agent_class("c-scal-plus")
    with pytest.raises(UnknownAgentError, match="did you mean 'c-scal-plus'"):
        continuous_class("cscal-plus")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lqg", "replacement", "continuous-inventory"])
@pytest.mark.parametrize("bins", [10, 40])
def test_every_plan_is_optimistic_with_the_theorems_constants(name: str, bins: int) -> None:
    """Lemma optimism.cont, on one run: max (T_c v_k - v_k) ≥ g*, up to the oracle's error."""
    env = gf.environments.make_continuous(name)
    oracle = gf.environments.oracle_gain(env)
    agent = gf.CSCALPlus(
        partition=gf.Partition.uniform(bins=bins),
        n_actions=env.n_actions,
        span=1.001 * oracle.span,
        lipschitz=env.lipschitz,
        holder=env.holder,
        reward_min=env.reward_min,
        reward_max=env.reward_max,
    )
    run = gf.simulate(agent, env, 10**6, seed=1, gain=oracle.gain)
    assert oracle.bounds is not None
    assert agent.guarantee.holds
    assert np.all(run.episodes["gain_high"] >= oracle.bounds[1])
