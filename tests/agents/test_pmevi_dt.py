"""PMEVI-DT against its equations from the definitions, its bases to the bit, and the differences of the true bias."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.state_path import StatePath
from gainful.errors import InvalidArgumentError
from gainful.optimism.bias_differences import (
    PathSums,
    azuma_radius,
    bias_intervals,
    freedman_radius,
    mitigation,
    reward_squares,
)
from gainful.planning.order_projection import closed_differences, order_projection
from gainful.simulation.stepped import SteppedSimulation
from gainful.theory import klmax

Floats = NDArray[np.float64]
RIVER = gf.environments.riverswim(6)
BASES: dict[str, Any] = {
    "kl-scal-plus": lambda: gf.KLSCALPlus(6, 2),
    "ucrl2": lambda: gf.UCRL2(6, 2),
    "ucrl2b": lambda: gf.UCRL2B(6, 2),
    "kl-ucrl": lambda: gf.KLUCRL(6, 2, horizon=3000),
}
numbers = st.floats(-5.0, 5.0)


# ---------------------------------------------------------------------- the projection


@settings(max_examples=30)
@given(arrays(np.float64, 4, elements=numbers), arrays(np.float64, (4, 4), elements=st.floats(-1.0, 4.0)), numbers)
def test_the_projection_is_the_largest_vector_below_that_satisfies_the_bounds(u: Floats, d: Floats, c: float) -> None:
    closed = closed_differences(d)
    np.fill_diagonal(d, 0.0)
    if closed is None:  # a cycle of negative length: no vector satisfies all bounds
        x = d.copy()
        for k in range(4):
            x = np.minimum(x, x[:, k, None] + x[None, k, :])
        assert np.diag(x).min() < 0.0
        return
    found = order_projection(u, closed)
    assert np.all(found <= u)
    assert np.all(found[:, None] - found[None, :] <= d + 1e-9)
    w = u.copy()
    for _ in range(5):  # lower what violates a bound until nothing does: from above, the largest is reached
        w = np.minimum(w, (w[None, :] + d).min(axis=1))
    assert found == pytest.approx(w, rel=0, abs=1e-9)
    assert order_projection(u + c, closed) == pytest.approx(found + c, rel=0, abs=1e-9)
    assert np.all(order_projection(np.minimum(u, c), closed) <= found + 1e-12)


@settings(max_examples=20)
@given(arrays(np.float64, 5, elements=numbers), st.floats(0.0, 5.0))
def test_equal_bounds_are_the_cut_of_scopt(u: Floats, c: float) -> None:
    d = np.full((5, 5), c)
    np.fill_diagonal(d, 0.0)
    assert np.array_equal(order_projection(u, d), np.minimum(u, u.min() + c))


def test_contradicting_bounds_have_no_closure() -> None:
    assert closed_differences(np.array([[0.0, -2.0], [1.0, 0.0]])) is None


# ---------------------------------------------------------------------- the path


def segments_from_the_definition(steps: list[tuple[int, float, int]], n: int) -> dict[str, Floats]:
    """Segments complete and cut short, their steps and rewards, and the steps of all, by a walk for each pair."""
    found = {name: np.zeros((n, n)) for name in ("completed", "cut", "steps", "earned", "under_way")}
    for s in range(n):
        for y in range(n):
            if s == y:
                continue
            begun: int | None = None
            for i, (x, _, to) in enumerate(steps):
                if i > 0 and steps[i - 1][2] != x:  # another piece: what was under way is cut short
                    if begun is not None:
                        found["cut"][s, y] += 1
                        found["steps"][s, y] += i - begun
                        found["earned"][s, y] += sum(r for _, r, _ in steps[begun:i])
                    begun = None
                if begun is None and x == s:
                    begun = i
                if begun is not None and to == y:
                    found["completed"][s, y] += 1
                    found["steps"][s, y] += i + 1 - begun
                    found["earned"][s, y] += sum(r for _, r, _ in steps[begun : i + 1])
                    begun = None
            found["under_way"][s, y] = found["steps"][s, y] + (0 if begun is None else len(steps) - begun)
            if begun is None and steps and steps[-1][2] == s:
                assert found["under_way"][s, y] == found["steps"][s, y]
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans(), st.integers(0, 2)), min_size=1, max_size=40)
)
def test_segments_are_those_of_the_definition(made: list[tuple[int, int, bool, int]]) -> None:
    path, steps, state = StatePath(3), [], made[0][0]
    for elsewhere, reward, jump, to in made:
        state = elsewhere if jump else state
        steps.append((state, reward / 4.0, to))
        state = to
    together = StatePath(3)
    for x, r, to in steps:
        path.follow(x, r, to)
    pairs, rewards, targets = (np.array(column) for column in zip(*steps, strict=True))
    together.follow_many(pairs, targets, rewards, 1)
    wanted = segments_from_the_definition(steps, 3)
    for one in (path, together):
        for name in ("completed", "cut", "steps", "earned"):
            assert getattr(one.segments, name) == pytest.approx(wanted[name], rel=0, abs=1e-12), name
        assert one.under_way == pytest.approx(wanted["under_way"], rel=0, abs=0)
        breaks = sum(steps[i - 1][2] != steps[i][0] for i in range(1, len(steps)))
        assert (one.n_steps, one.n_pieces) == (len(steps), 1 + breaks)


def test_a_file_from_before_segments_were_cut_short_is_read() -> None:
    path, again = StatePath(3), StatePath(3)
    for state, reward, to in ((0, 1.0, 1), (1, 0.5, 0), (2, 0.0, 0)):  # a break before the last step
        path.follow(state, reward, to)
    assert path.segments.cut.any()
    older = {name: array for name, array in path.arrays().items() if name != "path_log_cut"}
    again.restore(older, 3)
    assert not again.segments.cut.any()
    assert again.n_pieces == path.n_pieces == 2


def test_the_intervals_by_hand() -> None:
    one = np.array([[0.0, 2.0], [0.0, 0.0]])
    path = PathSums(one, 0.0 * one, 3.0 * one, 1.5 * one, 3.0 * one, n_steps=10, total=4.0, n_pieces=1)
    low, high = bias_intervals(path, 0.5, 2.0, np.full((2, 2), 0.25), 0.75)
    # X = 0.5·6 - 3 = 0, B = 0.5·10 - 4 = 1: (0 - 1 - 2 - 0.75 - 0.25)/2 and (0 + 0.25)/2
    assert (low[0, 1], high[0, 1]) == (-2.0, 0.125)
    assert (low[1, 0], high[1, 0]) == (-math.inf, math.inf)
    # one segment cut short: c = 2 more on either side
    low, high = bias_intervals(path._replace(cut=0.5 * one), 0.5, 2.0, np.full((2, 2), 0.25), 0.75)
    assert (low[0, 1], high[0, 1]) == (-3.0, 1.125)


def test_radii_by_hand_and_the_sum_of_squares_of_rewards() -> None:
    assert azuma_radius(np.array([3.0]), 2.0, 0.5)[0] == pytest.approx(2.0 * math.sqrt(2.0 * math.log(4.0)), rel=1e-14)
    least = min(
        3.0 * ((-math.log(1 - 2.0**-j) - 2.0**-j) * 50.0 / 9.0 + math.log(2 * j * (j + 1) / 0.1)) * 2.0**j
        for j in range(1, 30)
    )
    assert freedman_radius(np.array([50.0]), 3.0, 0.1)[0] == pytest.approx(least, rel=1e-14)
    rng = np.random.default_rng(0)
    rewards = rng.random(50)
    online = sum((rewards[i] - (rewards[:i].mean() if i else 0.0)) ** 2 for i in range(50))
    bound = reward_squares(np.array([50]), np.array([rewards.sum()]), np.array([(rewards**2).sum()]))
    assert online <= bound <= online + 6.0


@settings(max_examples=30)
@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.lists(st.floats(0.0, 3.0), min_size=6, max_size=6),
    st.floats(0.001, 2.0),
)
def test_mitigation_is_never_below_the_best_row_of_the_ball(weights: list[float], h: list[float], rho: float) -> None:
    p, v = np.array(weights) / sum(weights), np.array(h[: len(weights)])
    beta = mitigation(np.array([math.sqrt(float(p @ (v - p @ v) ** 2))]), float(np.ptp(v)), np.array([rho]))[0]
    assert klmax(p, v, rho) <= p @ v + beta + 1e-9


# ---------------------------------------------------------------------- the bases


def bits(run: gf.Run) -> list[Any]:
    return [run.rewards.tolist(), *(run.episodes[n].tolist() for n in ("step", "gain_low", "gain_high", "span"))]


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_it_is_its_base_to_the_bit_where_nothing_is_in_the_way(base: str) -> None:
    alone = gf.simulate(BASES[base](), RIVER, 3000, seed=2)
    for options in ({"span": 1e6}, {"span": 1e6, "bias": "azuma"}, {"span": 1e6, "bias": "none", "mitigation": False}):
        agent = gf.PMEVIDT(6, 2, horizon=3000, base=base, **options)  # type: ignore[arg-type]
        assert bits(gf.simulate(agent, RIVER, 3000, seed=2)) == bits(alone)


@pytest.mark.slow
def test_with_the_span_alone_it_is_kl_scal_plus_with_that_span() -> None:
    toy = gf.environments.weakly_communicating_toy()
    told: dict[str, Any] = {"reward_min": toy.reward_min, "reward_max": toy.reward_max, "allowed": toy.allowed}
    size = toy.n_states, toy.n_actions
    cut = gf.simulate(gf.KLSCALPlus(*size, span=0.7, **told), toy, 2000, seed=1)
    within = gf.PMEVIDT(*size, horizon=2000, span=0.7, bias="none", mitigation=False, **told)
    found = gf.simulate(within, toy, 2000, seed=1)
    assert np.array_equal(found.rewards, cut.rewards)
    assert found.episodes["span"].max() <= 0.7 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_a_compiled_run_is_the_one_stepped_in_python_and_files_continue_it(base: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"horizon": 3000, "base": base, "span": 8.0}
    compiled = gf.PMEVIDT(6, 2, **options)
    run = gf.simulate(compiled, RIVER, 3000, seed=5)
    stepped = gf.PMEVIDT(6, 2, **options)
    by_hand = SteppedSimulation(stepped, RIVER, 5, run.steps, 0.0, np.zeros(12))
    by_hand.finish(None)
    assert np.array_equal(by_hand.rewards, run.rewards)
    for name, array in compiled.own_arrays().items():
        assert np.array_equal(array, stepped.own_arrays()[name]), name
    compiled.save(tmp_path / "agent")
    again = gf.load_agent(tmp_path / "agent")
    assert np.array_equal(again.differences(), compiled.differences())
    for one in (compiled, again):
        gf.simulate(one, RIVER, 2000, seed=6)
    assert np.array_equal(again.statistics.visits, compiled.statistics.visits)
    assert np.array_equal(again.differences(), compiled.differences())
    assert compiled.guarantee.reason_void == "5000 steps observed, more than the horizon of 3000"


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["freedman", "azuma"])
def test_differences_of_the_true_bias_are_covered_and_become_narrow(bias: Any) -> None:
    plan = gf.solve(RIVER, precision=1e-10)
    apart = plan.bias[:, None] - plan.bias[None, :]
    for seed in range(5):
        agent = gf.PMEVIDT(6, 2, horizon=100_000, span=6.4, bias=bias)
        run = gf.simulate(agent, RIVER, 100_000, seed=seed)
        d = agent.differences()
        assert np.all(apart <= d + 1e-9)
        assert run.episodes["gain_high"].min() >= plan.gain_bounds[0]
        assert d[4, 5] < 0.0 < d[5, 4] < 3.0  # the sign of the last difference is known, and that it is not 3


@pytest.mark.slow
def test_mitigation_makes_ucrl2_lose_less() -> None:
    lost = [
        gf.simulate(gf.PMEVIDT(6, 2, horizon=20_000, base="ucrl2", mitigation=used), RIVER, 20_000, seed=1).regret[-1]
        for used in (False, True)
    ]
    assert lost[1] < 0.8 * lost[0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("base", {"base": "scal"}),
        ("bias", {"bias": "hoeffding"}),
        ("span", {"span": 0.0}),
        ("mitigation", {"mitigation": 1}),
        ("horizon", {"horizon": 1}),
    ],
)
def test_wrong_arguments_are_named(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        gf.PMEVIDT(2, 2, **{"horizon": 100, **options})
    assert caught.value.name == name


def test_the_guarantee_says_which_span_it_needs() -> None:
    found = gf.PMEVIDT(2, 2, horizon=10**5).guarantee
    assert "c = 10, which is r_max·T^(1/5)" in str(found)
    assert "probability 0.8" in found.bound
    assert not gf.PMEVIDT(2, 2, horizon=10**5, width_scale=0.5).guarantee.holds
    assert "Boone & Zhang 2024" in found.source
