"""Planners at the edge of float64: what an attack found, and problems over the whole range against exact fractions.

40 problems with the planners of the gain in `make test`, 150 with all planners in `make test-all`, 20,000 in
`make soak`; GAINFUL_PROBLEMS sets their number.
"""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError, InvalidMDPError, NotConvergedError, PrecisionError, SlowMixingWarning
from gainful.planning import batches, mixing
from gainful.planning.discounted import discounted_value_iteration
from gainful.planning.finite_horizon import finite_horizon_value_iteration
from gainful.planning.mixing import MixingEstimate, bandwidth, is_local
from gainful.planning.relaxation import Relaxation, relaxation
from tests.planning.edge_problems import check_gains_of_problems, check_problems, no_hang
from tests.planning.exact import ExactMDP

FEW, MANY = 40, 150
PROBLEMS = int(os.environ.get("GAINFUL_PROBLEMS", MANY))
STAY = [[[1.0, 0.0]], [[0.0, 1.0]]]


def test_problems_over_the_range_of_float64_agree_with_exact_fractions() -> None:
    outcomes = check_gains_of_problems(0, FEW)
    assert outcomes["solve: answered"] > FEW / 2


@pytest.mark.slow
def test_all_planners_over_the_range_of_float64_agree_with_exact_fractions() -> None:
    outcomes: Counter[str] = Counter()
    for first in range(0, PROBLEMS, 1000):
        outcomes += check_problems(first, min(1000, PROBLEMS - first))
        print(f"{outcomes['problems']} problems, nothing wrong", flush=True)
    print("\n".join(f"{number:>8,} {what}" for what, number in sorted(outcomes.items())))
    assert outcomes["solve: answered"] > PROBLEMS / 2


@pytest.mark.parametrize("size", [9e307, 1.1e150, -2e200])
def test_rewards_of_9e307_gave_a_false_certificate(size: float) -> None:
    with pytest.raises(InvalidMDPError, match=r"at most 1e\+150"):
        gf.MDP(STAY, [[size], [0.0]])
    with pytest.raises(InvalidMDPError, match=r"the cost of .* at most 1e\+150"):
        gf.MDP(STAY, [[size], [0.0]], objective="cost")
    with pytest.raises(InvalidMDPError, match=r"moving to state 0 .* at most 1e\+150"):
        gf.MDP.from_rows([0, 1, 2], [0, 1], [1.0, 1.0], [size, 0.0], n_actions=1)
    with pytest.raises(InvalidMDPError, match=r"at most 1e\+150"):
        gf.MDP.from_rates([[[0.0, 1.0]], [[1.0, 0.0]]], [size, 0.0])


def test_a_reward_per_unit_of_time_left_the_range_of_float64() -> None:
    with pytest.raises(InvalidMDPError, match="a step lasts 1e-100"):
        gf.MDP.from_rates(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]) * 1e100, jump_rewards=[[[0, 1e120]], [[0, 0]]])
    with pytest.raises(InvalidArgumentError, match="step_duration"):
        gf.MDP.from_rates(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]) * 1e200, [1.0, 0.0])


@pytest.mark.parametrize("ends", [(0.0, 1e200), (-1e151, 0.0), (0.0, 1e-200)])
def test_an_agent_with_rewards_up_to_1e200_could_not_be_reopened(ends: tuple[float, float]) -> None:
    with pytest.raises(InvalidArgumentError, match="float64"):
        gf.SCALPlus(n_states=2, n_actions=2, span=1.0, reward_min=ends[0], reward_max=ends[1])


@pytest.mark.parametrize("planner", [discounted_value_iteration, finite_horizon_value_iteration])
def test_rewards_given_to_a_planner_have_the_same_limit(planner: object) -> None:
    mdp = gf.MDP(STAY, [[1.0], [0.0]])
    with pytest.raises(InvalidArgumentError, match=r"at most 1e\+150"):
        planner(mdp, 0.5 if planner is discounted_value_iteration else 3, rewards=[[1e160], [0.0]])  # type: ignore[operator]


def test_the_largest_rewards_that_are_allowed_can_be_shifted_and_solved() -> None:
    mdp = gf.MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1e150], [-1e150]])
    for model in (mdp, mdp.normalised()):
        low, high = gf.solve(model, precision=1e140).gain_bounds
        assert low <= 0.0 <= high


@pytest.mark.parametrize("reward", [5e-324, 1e-320, 3e-310])
def test_slack_underflowed_where_rewards_are_the_smallest_floats(reward: float) -> None:
    mdp = gf.MDP([[[1 / 3, 2 / 3]], [[0.7, 0.3]]], [[reward], [0.0]])
    exact = ExactMDP(mdp).optimal_gains[0]
    plan = gf.solve(mdp, precision=1e-300)
    assert Fraction(plan.gain_bounds[0]) <= exact <= Fraction(plan.gain_bounds[1])
    with pytest.raises(PrecisionError):
        gf.solve(mdp, precision=5e-324)


def test_a_gain_per_unit_of_time_underflowed_to_zero() -> None:
    rates = np.array([[[0.0, 1.0]], [[1.0, 0.0]]]) * 1e-140
    mdp = gf.MDP.from_rates(rates, jump_rewards=[[[0.0, 1e-200]], [[0.0, 0.0]]])
    low, high = gf.solve(mdp, precision=1e-300).gain_bounds
    gain = ExactMDP(mdp).gain_in_units(ExactMDP(mdp).optimal_gains[0])
    assert Fraction(low) <= gain <= Fraction(high)


def test_rounding_of_rewards_that_cancel_was_not_covered() -> None:
    """The mean of 2e16 and -1e16 is rounded relative to them, not to itself."""
    mdp = gf.MDP.from_rows([0, 2], [0, 0], [1 / 3, 2 / 3], [2e16, -1e16], n_actions=1)
    exact = ExactMDP(mdp).optimal_gains[0]
    low, high = gf.solve(mdp, precision=100.0).gain_bounds
    assert Fraction(low) <= exact <= Fraction(high)


@pytest.mark.parametrize("p", [1e-100, 1e-20, 1e-300])
def test_a_state_that_is_left_once_in_1e100_steps_took_half_a_minute(p: float) -> None:
    mdp = gf.MDP([[[1.0, 0.0]], [[p, 1.0]]], [[0.0], [1.0]])
    with no_hang():
        plan = gf.solve(mdp)
    assert plan.gain == pytest.approx(0.0, rel=0, abs=1e-8)
    assert plan.bias[1] == pytest.approx(1.0 / p, rel=1e-9, abs=0)


def test_values_beyond_float64_ended_as_converged() -> None:
    mdp = gf.MDP([[[1.0, 0.0]], [[1e-300, 1.0]]], [[0.0], [1e140]])
    with no_hang(), pytest.raises((PrecisionError, NotConvergedError)):
        gf.solve(mdp, precision=1.0)
    with pytest.raises(PrecisionError, match="left so rarely"):
        gf.evaluate(mdp, [0, 0])


@pytest.mark.parametrize("start", [[0.0, 1e305], [np.inf, 0.0], [np.nan, 0.0]])
def test_start_values_beyond_float64_are_refused(start: list[float]) -> None:
    mdp = gf.MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]])
    for planner in (gf.solve, gf.relative_value_iteration):
        with pytest.raises(InvalidArgumentError, match="start_values"):
            planner(mdp, start_values=start)


def test_scopt_on_copies_returned_a_bracket_wider_than_asked() -> None:
    mdp = gf.MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1e6], [1e6 - 1.0]], objective="cost")
    plan = gf.scopt(mdp, 5.0, augmented=True, precision=1e-8)
    assert plan.gain_bounds[1] - plan.gain_bounds[0] <= 1e-8
    with pytest.raises(PrecisionError):
        gf.scopt(mdp, 5.0, augmented=True, precision=2e-10)


@pytest.mark.slow
def test_a_span_was_rounded_up_by_more_than_an_ulp() -> None:
    assert check_problems(16847, 1)["problems"] == 1


def river(n_states: int, right: float, left: float) -> gf.MDP:
    """Swim left surely, or right with a little more success than failure."""
    s = np.arange(n_states)
    moves = np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, n_states - 1), s, np.maximum(s - 1, 0)], axis=1)
    weights = np.tile([1.0, right, 1.0 - right - left, left], (n_states, 1))
    rewards = np.zeros((n_states, 2))
    rewards[0, 0], rewards[-1, 1] = 0.005, 1.0
    starts = np.stack([4 * s, 4 * s + 1], axis=1).reshape(-1)
    return gf.MDP.from_rows(np.append(starts, 4 * n_states), moves.reshape(-1), weights.reshape(-1), rewards)


@pytest.mark.parametrize("n_states", [300, 3500, 10_000])
def test_nearly_symmetric_rivers_ran_into_the_cap(n_states: int) -> None:
    plan = gf.solve(river(n_states, 0.31, 0.3))
    assert plan.gain == pytest.approx(1 / 31, rel=0, abs=1e-8 if n_states > 1000 else 2e-6)
    assert plan.sweeps < n_states + 3000


def ring(n_states: int, *, forward: float, jump: float = 0.0) -> gf.MDP:
    """A way round with two speeds and random rewards; the slower one jumps anywhere now and then."""
    rng, s = np.random.default_rng(0), np.arange(n_states)
    after, before = (s + 1) % n_states, (s - 1) % n_states
    moves = np.stack([after, s, rng.integers(0, n_states, n_states), after, before], axis=1)
    weights = np.tile([forward - jump, 1.0 - forward, jump, 0.8, 0.2], (n_states, 1))
    starts = np.stack([5 * s, 5 * s + 3], axis=1).reshape(-1)
    rewards = rng.random((n_states, 2))
    return gf.MDP.from_rows(np.append(starts, 5 * n_states), moves.reshape(-1), weights.reshape(-1), rewards)


def test_a_long_ring_is_solved_exactly() -> None:
    plan = gf.solve(ring(30_000, forward=0.9))
    assert plan.gain_bounds[1] - plan.gain_bounds[0] <= 1e-8
    assert plan.method == "policy iteration"
    assert plan.sweeps < 2000


@pytest.mark.parametrize(
    "mdp",
    [ring(200, forward=0.9), ring(120, forward=1.0), ring(2000, forward=0.9, jump=3e-3), river(1000, 0.4, 0.2)],
    ids=["ring", "one direction", "rare jumps", "river"],
)
def test_the_sweeps_needed_are_estimated_from_the_graph(mdp: gf.MDP) -> None:
    """Within a factor of 4 of what value iteration then takes."""
    truth = gf.relative_value_iteration(mdp, damping=0.97, max_sweeps=10**6)
    found = relaxation(mdp, np.asarray(truth.actions), 0.97)
    assert found is not None
    assert truth.sweeps / 4 < found.sweeps(1.0, 1e-8) < truth.sweeps * 4


def test_parts_that_rare_moves_connect_take_the_time_of_those_moves() -> None:
    n = 400
    mdp = gf.MDP([[[0.5, 0.5 - 1e-5, 1e-5]], [[0.5, 0.5, 0]], [[0, 1e-4, 1 - 1e-4]]], [[1.0], [0.0], [0.0]])
    truth = gf.relative_value_iteration(mdp, damping=0.97, max_sweeps=10**7)
    found = relaxation(mdp, np.zeros(3, dtype=np.int64), 0.97)
    assert found is not None
    assert truth.sweeps / 30 < found.sweeps(1.0, 1e-8) < truth.sweeps * 30
    assert "rare moves" in found.reason
    mixed = gf.environments.garnet(n, 2, 5)
    assert relaxation(mixed, np.zeros(n, dtype=np.int64), 0.97) is None  # the bracket itself shows the rate


def test_a_river_and_a_ring_are_local_and_a_star_is_not() -> None:
    n = 50
    ring = gf.MDP.from_rows(np.arange(n + 1), (np.arange(n) + 1) % n, np.ones(n), np.zeros((n, 1)))
    star = np.full((n, 1, n), 1.0 / n)
    assert bandwidth(river(n, 0.35, 0.3)) == 1
    assert bandwidth(ring) == 2
    assert bandwidth(gf.MDP(star, np.zeros((n, 1)))) == n - 1
    assert is_local(ring)


def test_a_search_that_gives_up_says_that_mixing_is_the_limit() -> None:
    with pytest.raises(NotConvergedError, match="mixing is the limit"):
        gf.solve(river(400, 0.35, 0.3), max_sweeps=60)


def test_the_graph_of_a_large_model_was_searched_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp, actions = gf.environments.riverswim(400), np.ones(400, dtype=np.int64)
    assert relaxation(mdp, actions, 0.97) is not None
    monkeypatch.setattr("gainful.planning.relaxation.GRAPH_UP_TO", mdp.n_transitions - 1)
    assert relaxation(mdp, actions, 0.97) is None


def test_what_is_left_is_told_by_a_steady_rate_or_by_the_graph() -> None:
    steady, falling, stuck = MixingEstimate(1e-8), MixingEstimate(1e-8), MixingEstimate(1e-8)
    for sweeps in range(100, 2100, 100):
        steady.add(sweeps, 10.0 ** (-sweeps / 1000))
        falling.add(sweeps, 1.0 / sweeps)
        stuck.add(sweeps, 1.0)
    assert steady.is_steady
    assert "about 6e+03 sweeps (12 s) more are needed" in steady.in_words(2000, 4.0)
    assert not falling.is_steady
    assert "at least" in falling.in_words(2000, 4.0)
    assert "about 1/p sweeps" in stuck.in_words(2000, 4.0)
    known = Relaxation(500_000, 1e-11, 0.0)
    for estimate in (steady, falling, stuck):
        assert "500,000 moves" in estimate.in_words(2000, 100.0, known)
    assert "about 2e+12 sweeps (about 3e+03 years)" in stuck.in_words(2000, 100.0, known)


def test_planning_with_a_tiny_width_scale_took_long_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "WARN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(mixing, "NOTED_EVERY", 1)
    monkeypatch.setattr(batches, "RESUMED_TRANSITIONS", 1)
    agent = gf.UCRL2B(n_states=2, n_actions=1, width_scale=0.01)
    for _ in range(50):
        agent.observe(0, 0, 0.0, 0)
        agent.observe(1, 0, 1.0, 1)
    with pytest.warns(SlowMixingWarning, match="mixing is the limit.*width_scale"):
        agent.act(0)
