"""Continuous environments: dynamics, bounds, Hölder constants, names, Gymnasium."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import kstest

import gainful as gf
from gainful._compiled import kernel
from gainful.environments import ContinuousEnvironment, continuous_names, describe, gymnasium_id, make_continuous
from gainful.environments.continuous.dispatch import GridPolicy, follow, step_once
from gainful.environments.continuous.gymnasium_env import ContinuousEnv
from gainful.environments.continuous.noise import exponential, inner_uniform, normal, normal_quantile
from gainful.errors import InvalidArgumentError, UnknownEnvironmentError
from gainful.partition import Partition
from gainful.rng import Role, draw, stream_key, uniform

NAMES = continuous_names()
ON_A_LINE = [name for name in NAMES if make_continuous(name).law is not None]
SMOOTH = [name for name in NAMES if make_continuous(name).lipschitz is not None]
Array = NDArray[np.float64]


@kernel
def quantiles(u: Any, out: Any) -> None:
    for i in range(u.size):
        out[i] = normal_quantile(u[i])


@kernel
def samples(key: Any, n: int, which: int, out: Any) -> None:
    for i in range(n):
        bits = draw(key, np.uint64(i))
        out[i] = normal(bits) if which == 0 else exponential(bits)


def bits_of(env: ContinuousEnvironment, key: np.uint64, t: int) -> list[np.uint64]:
    with np.errstate(over="ignore"):
        return [np.uint64(draw(key, np.uint64(env.draws * t + i))) for i in range(env.draws)]


# ---------------------------------------------------------------------- random numbers


def test_the_normal_quantile_is_exact_to_double_precision() -> None:
    u = np.concatenate([np.linspace(0, 1, 20_001)[1:-1], 2.0 ** -np.arange(2, 55), 1 - 2.0 ** -np.arange(2, 53)])
    found = np.empty_like(u)
    quantiles(u, found)
    wanted = ndtri(u)
    assert np.max(np.abs(found - wanted) / np.maximum(np.abs(wanted), 1.0)) < 4e-15


@pytest.mark.parametrize(("which", "law"), [(0, "norm"), (1, "expon")])
def test_draws_have_their_law(which: int, law: str) -> None:
    out = np.empty(50_000)
    samples(stream_key(5, Role.ENVIRONMENT), out.size, which, out)
    assert kstest(out, law).pvalue > 1e-3  # a fixed seed
    assert np.all(np.isfinite(out))


def test_a_uniform_that_is_never_0_nor_1() -> None:
    assert 0.0 < inner_uniform(np.uint64(0)) < 1e-15
    assert inner_uniform(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53


# ---------------------------------------------------------------------- what every environment promises


@pytest.mark.parametrize("name", NAMES)
def test_names_parameters_and_functions_agree(name: str) -> None:
    factory = getattr(gf.environments, name.replace("-", "_"))
    env = factory()
    assert env == make_continuous(name)
    assert env.name == name
    assert hash(env) == hash(make_continuous(name))
    about = describe(name)
    assert about.summary.endswith(".")
    assert make_continuous(name, **about.parameters) == env
    assert make_continuous(name, **json.loads(json.dumps(env.settings))) == env
    assert pickle.loads(pickle.dumps(env)) == env
    assert (env.lipschitz is None) == (env.no_guarantee is not None) == (env.holder is None)
    assert len(env.action_labels) == env.n_actions
    with pytest.raises(AttributeError):
        env.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        env.parameters[0] = 1.0


@pytest.mark.parametrize("name", NAMES)
def test_states_stay_in_the_unit_cube_and_rewards_in_their_range(name: str) -> None:
    env = make_continuous(name)
    key = stream_key(2, Role.ENVIRONMENT)
    generator = np.random.default_rng(0)
    x, out = env.start.copy(), np.empty(env.dim)
    rewards = []
    for t in range(3000):
        if t % 10 == 0:  # also from corners and faces
            x = np.clip(generator.uniform(-0.5, 1.5, env.dim), 0.0, 1.0)
        rewards.append(step_once(env.kind, env.parameters, x, t % env.n_actions, key, t, out))
        assert np.all((out >= 0.0) & (out <= 1.0)), (x, out)
        x = out.copy()
    assert env.reward_min <= min(rewards)
    assert max(rewards) <= env.reward_max


@pytest.mark.parametrize("name", SMOOTH)
def test_the_range_of_rewards_is_reached(name: str) -> None:
    env = make_continuous(name)
    points = np.repeat(np.linspace(0.0, 1.0, 20_001)[:, None], env.dim, axis=1)
    found = np.concatenate([env.rewards(points, a) for a in range(env.n_actions)])
    tolerance = 1e-6 * env.reward_range
    assert found.min() == pytest.approx(env.reward_min, rel=0, abs=tolerance)
    assert found.max() == pytest.approx(env.reward_max, rel=0, abs=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_in_python_is_the_compiled_step(name: str) -> None:
    env = make_continuous(name)
    key = stream_key(7, Role.ENVIRONMENT)
    n_cells = 3**env.dim
    actions = np.arange(n_cells) % env.n_actions
    compiled, sums = env.start.copy(), np.zeros(1)
    follow(env.kind, env.parameters, compiled, GridPolicy(actions, np.full(env.dim, 3)), key, 0, 200, sums)
    x, total, part = env.start, 0.0, Partition.uniform(bins=3, dim=env.dim)
    for t in range(200):
        reward, x = env.step(t, x, int(actions[part.index(x)]), seed=7)
        total += reward
    assert np.array_equal(x, compiled)
    assert total == sums[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_reward_does_not_depend_on_the_draws(name: str) -> None:
    env = make_continuous(name)
    points = np.random.default_rng(1).random((40, env.dim))
    for action in range(env.n_actions):
        mean = env.rewards(points, action)
        for seed in (1, 2):
            assert [env.step(9, x, action, seed=seed)[0] for x in points] == mean.tolist()


def test_a_step_may_write_where_it_reads() -> None:
    for name in NAMES:
        env = make_continuous(name)
        for x in np.random.default_rng(2).random((20, env.dim)):
            reward, out = env.step(3, x, 1, seed=1)
            place = x.copy()
            again = step_once(env.kind, env.parameters, place, 1, stream_key(1, Role.ENVIRONMENT), 3, place)
            assert (again, place.tolist()) == (reward, out.tolist())


def test_a_step_that_cannot_be() -> None:
    env = gf.environments.lqg()
    for x in ([1.5], [math.nan], [0.5, 0.5]):
        with pytest.raises(InvalidArgumentError, match="the state is"):
            env.step(0, x, 0)
    with pytest.raises(InvalidArgumentError, match="action is 5, expected an integer from 0 to 4"):
        env.step(0, [0.5], 5)
    with pytest.raises(InvalidArgumentError, match="t is -1"):
        env.step(-1, [0.5], 0)


def test_units_go_there_and_back() -> None:
    env = gf.environments.mountain_car()
    assert env.from_unit(env.start) == pytest.approx([-0.5, 0.0], rel=0, abs=1e-15)
    assert env.from_unit([0.0, 1.0]).tolist() == [-1.2, 0.07]
    assert env.to_unit([[-1.2, -0.07], [0.6, 0.07]]).tolist() == [[0.0, 0.0], [1.0, 1.0]]


# ---------------------------------------------------------------------- the equations, once more, in plain Python


def smooth(u: float) -> float:
    u = min(max(u, 0.0), 1.0)
    return 3 * u**2 - 2 * u**3


def river(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    z, noise = x[0], float(ndtri(inner_uniform(bits[1]))) * 0.05 / 6
    if a == 0:
        return 0.005 * smooth(1 - 6 * z), [z - 0.1 / 6 + noise]
    if z < 1 / 6:
        right, left = 0.6 + (0.35 - 0.6) * 6 * z, 0.05 * 6 * z
    elif z < 5 / 6:
        right, left = 0.35, 0.05
    else:
        right, left = 0.35 * 6 * (1 - z), 0.05 + (0.4 - 0.05) * (6 * z - 5)
    u = uniform(bits[0])
    move = 0.1 / 6 if u < right else -0.1 / 6 if u < right + left else 0.0
    return smooth(6 * z - 5), [z + move + noise]


def linear(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    position, control = 4 * x[0] - 2, -1 + a / 2
    moved = position + control + 0.5 * float(ndtri(inner_uniform(bits[0])))
    return 1 - (position**2 / 2 + control**2 / 2) / 2.5, [(moved + 2) / 4]


def shop(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    stock = 10 * x[0]
    faced = min(stock + 2.5 * a, 10.0)
    sold = 2 * (1 - math.exp(-faced / 2))
    profit = 5 * sold - 2 * (faced - stock) - 0.2 * (faced - sold) - (3 if a else 0)
    return profit, [(faced + 2 * math.log(inner_uniform(bits[0]))) / 10]


def machine(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    if a == 1:
        return -1.0, [0.0]
    return 1 - x[0], [x[0] - 0.1 * math.log(inner_uniform(bits[0]))]


def ship(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    east, north = 2 * x[0] - 1, 2 * x[1] - 1
    if math.hypot(east, north) <= 0.2:
        return 1.0, [uniform(b) for b in bits[1:]]
    turn = math.radians(-20 + 40 * a / 6 + 2 * (2 * uniform(bits[0]) - 1))
    heading = (x[2] + turn / (2 * math.pi)) % 1.0
    angle = 2 * math.pi * heading - math.pi
    east, north = east + 0.25 * (math.cos(angle) - north), north + 0.25 * math.sin(angle)
    return 0.0, [(east + 1) / 2, (north + 1) / 2, heading]


def car(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    position, velocity = -1.2 + 1.8 * x[0], 0.14 * x[1] - 0.07
    if position >= 0.5:
        return 1.0, [(-0.6 + 0.2 * uniform(bits[1]) + 1.2) / 1.8, 0.5]
    velocity += 0.001 * (a - 1) - 0.0025 * math.cos(3 * position) + 0.0005 * float(ndtri(inner_uniform(bits[0])))
    velocity = min(max(velocity, -0.07), 0.07)
    position += velocity
    if position <= -1.2:
        velocity = max(velocity, 0.0)
    return 0.0, [(position + 1.2) / 1.8, (velocity + 0.07) / 0.14]


def mixture(env: ContinuousEnvironment, x: Array, a: int, bits: list[np.uint64]) -> tuple[float, list[float]]:
    m, alpha = int(env.settings["teeth"]), float(env.settings["holder"])

    def tooth(y: float) -> float:
        return 2 * m * min(abs(y - k / m) for k in range(m + 1))

    pay = float(np.mean([tooth(y) for y in x])) ** alpha
    good = uniform(bits[0]) < (0.5 if a == 0 else 0.5 * (1 - pay))
    to = [uniform(b) for b in bits[1:]]
    if (np.mean([tooth(y) for y in to]) > 0.5) != good:
        to = [(y + 0.5 / m) % 1.0 for y in to]
    return (0.4 if a == 0 else pay), to


WRITTEN_OUT = {
    "continuous-riverswim": river,
    "lqg": linear,
    "continuous-inventory": shop,
    "replacement": machine,
    "ship-steering": ship,
    "rough-mixture": mixture,
    "planar-mixture": mixture,
    "mountain-car": car,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_compiled_step_is_the_equation(name: str) -> None:
    env = make_continuous(name)
    key = stream_key(11, Role.ENVIRONMENT)
    points = np.random.default_rng(3).random((150, env.dim))
    points[:5], points[5:10] = 0.0, 1.0
    points[10:15] = 0.5
    for t, x in enumerate(points):
        action = t % env.n_actions
        reward, out = env.step(t, x, action, key=key)
        wanted, place = WRITTEN_OUT[name](env, x, action, bits_of(env, key, t))
        assert reward == pytest.approx(wanted, rel=0, abs=1e-13 * (1 + env.reward_range))
        assert out == pytest.approx(np.clip(place, 0.0, 1.0), rel=0, abs=1e-13)


def test_the_mountain_car_moves_as_gymnasiums_does_without_noise() -> None:
    env = gf.environments.mountain_car(noise=0.0)
    theirs: Any = gymnasium.make("MountainCar-v0").unwrapped
    theirs.reset(seed=0)
    x = env.start
    theirs.state = tuple(env.from_unit(x))
    for t in range(300):
        action = 0 if env.from_unit(x)[1] < 0 else 2
        _, x = env.step(t, x, action)
        theirs.step(action)
        assert env.from_unit(x) == pytest.approx(np.array(theirs.state), rel=0, abs=1e-10)
        if theirs.state[0] >= 0.5:
            assert env.rewards(x, 0)[0] == 1.0
            break
    else:
        pytest.fail("energy pumping never reached the goal")


# ---------------------------------------------------------------------- Hölder constants


def densities(env: ContinuousEnvironment, points: Array, action: int, cells: int) -> Array:
    """(N, cells) masses of the next state in equal cells of [0, 1], the atoms at the ends in the outer ones."""
    assert env.law is not None
    edges = np.arange(cells + 1)[None, :] / cells
    cdf, _ = env.law(points[:, None], action, edges)
    cdf = np.array(np.broadcast_to(cdf, (points.size, cells + 1)))
    cdf[:, 0], cdf[:, -1] = 0.0, 1.0
    return np.asarray(np.diff(cdf, axis=1))


@pytest.mark.parametrize("name", ON_A_LINE)
def test_rewards_and_laws_obey_the_stated_constants(name: str) -> None:
    """On a grid the ℓ₁ distance of cell masses is at most that of the laws, and close to it for small cells."""
    env = make_continuous(name)
    assert env.lipschitz is not None
    assert env.reward_lipschitz is not None
    assert env.transition_lipschitz is not None
    assert env.holder == 1.0
    assert env.lipschitz == max(env.reward_lipschitz / env.reward_range, env.transition_lipschitz)
    points = np.linspace(0.0, 1.0, 301)
    fine = np.linspace(0.0, 1.0, 20_001)
    steepest_reward, steepest_law = 0.0, 0.0
    for action in range(env.n_actions):
        slopes = np.abs(np.diff(env.rewards(fine, action))) / np.diff(fine)
        steepest_reward = max(steepest_reward, float(slopes.max()))
        for gap in (1e-4, 1e-2, 0.2):
            there = np.clip(points + gap, 0.0, 1.0)
            moved = there > points
            apart = np.abs(densities(env, there, action, 1200) - densities(env, points, action, 1200)).sum(axis=1)
            steepest_law = max(steepest_law, float((apart[moved] / (there - points)[moved]).max()))
    assert steepest_reward <= env.reward_lipschitz * (1 + 1e-9)
    assert 0.5 * env.transition_lipschitz <= steepest_law <= env.transition_lipschitz * (1 + 1e-9)


def test_the_constants_of_the_defaults() -> None:
    river_L = math.sqrt(2 / math.pi) / (0.05 / 6) + 0.7 * 6
    found = {name: make_continuous(name).lipschitz for name in NAMES}
    assert found == {
        "continuous-riverswim": pytest.approx(river_L, rel=1e-12, abs=0),
        "lqg": pytest.approx(math.sqrt(2 / math.pi) / 0.125, rel=1e-12, abs=0),
        "continuous-inventory": pytest.approx(10.0, rel=1e-12, abs=0),
        "replacement": pytest.approx(20.0, rel=1e-12, abs=0),
        "rough-mixture": 2.0,
        "planar-mixture": 2.0,
        "ship-steering": None,
        "mountain-car": None,
    }
    assert river_L == pytest.approx(99.946, rel=0, abs=1e-3)


@pytest.mark.parametrize("name", ON_A_LINE)
def test_steps_have_the_stated_law(name: str) -> None:
    env = make_continuous(name)
    assert env.law is not None
    key = stream_key(4, Role.ENVIRONMENT)
    for start in (0.05, 0.5, 0.93):
        for action in (0, env.n_actions - 1):
            out = np.array([env.step(t, [start], action, key=key)[1][0] for t in range(2000)])
            inside = (out > 0.0) & (out < 1.0)
            cdf, _ = env.law(np.full((1, 1), start), action, out[inside][None, :])
            cdf_ends, _ = env.law(np.full((1, 1), start), action, np.array([[0.0, 1.0 - 1e-12]]))
            for end, expected in ((0.0, cdf_ends[0, 0]), (1.0, 1 - cdf_ends[0, 1])):  # atoms, within 4 deviations
                assert np.mean(out == end) == pytest.approx(expected, rel=0, abs=4 * math.sqrt(0.25 / out.size))
            if inside.sum() > 100:  # within the box the law is the conditional one
                u = (cdf[0] - cdf_ends[0, 0]) / (cdf_ends[0, 1] - cdf_ends[0, 0])
                assert kstest(u, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", ON_A_LINE)
def test_the_integral_of_the_law_is_its_integral(name: str) -> None:
    env = make_continuous(name)
    assert env.law is not None
    y = np.linspace(0.0, 1.0, 4001)[None, :]
    x = np.linspace(0.0, 1.0, 13)[:, None]
    for action in range(env.n_actions):
        cdf, integral = (np.broadcast_to(part, (13, 4001)) for part in env.law(x, action, y))
        trapezes = np.cumsum(0.5 * (cdf[:, 1:] + cdf[:, :-1]), axis=1) / 4000
        assert np.max(np.abs(integral[:, 1:] - integral[:, :1] - trapezes)) < 2e-5
        assert np.all(np.diff(cdf, axis=1) >= -1e-15)


# ---------------------------------------------------------------------- Gymnasium


def made(name: str, **options: Any) -> ContinuousEnv:
    env = gymnasium.make(gymnasium_id(name), **options).unwrapped
    assert isinstance(env, ContinuousEnv)
    return env


def test_ids() -> None:
    assert [gymnasium_id(name) for name in NAMES] == [
        "gainful/ContinuousInventory-v0",
        "gainful/ContinuousRiverSwim-v0",
        "gainful/LQG-v0",
        "gainful/MountainCar-v0",
        "gainful/PlanarMixture-v0",
        "gainful/Replacement-v0",
        "gainful/RoughMixture-v0",
        "gainful/ShipSteering-v0",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checks_every_id_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_seeded_gymnasium_run_takes_the_compiled_steps_and_never_ends(name: str) -> None:
    env = gymnasium.make(gymnasium_id(name))
    assert env.spec is not None
    assert env.spec.max_episode_steps is None
    direct = make_continuous(name)
    observation, info = env.reset(seed=5)
    x = direct.start
    for t in range(100):
        assert np.array_equal(info["unit_state"], x)
        assert np.array_equal(observation, direct.from_unit(x))
        assert env.observation_space.contains(observation)
        action = t % direct.n_actions
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        wanted, x = direct.step(t, x, action, seed=5)
        assert (reward, terminated, truncated) == (wanted, False, False)
        assert info["action_label"] == direct.action_labels[action]


def test_parameters_options_and_rendering() -> None:
    env = made("lqg", n_actions=3, render_mode="ansi")
    assert env.action_space == gymnasium.spaces.Discrete(3)
    observation, _ = env.reset(seed=0, options={"state": [1.5]})
    assert observation.tolist() == [1.5]
    assert env.render() == "x 1.5\n"
    env.step(np.int64(0))
    told = env.render()
    assert told is not None
    assert told.startswith("x 1.5 --u = -1 (0.35)--> x ")
    first = env.reset(seed=None)[0]
    assert first.tolist() == [0.0]


def test_gymnasium_misuse() -> None:
    env = made("replacement")
    with pytest.raises(InvalidArgumentError, match="step was called before reset"):
        env.step(np.int64(0))
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="out of range, expected 0 … 1"):
        env.step(np.int64(2))
    with pytest.raises(InvalidArgumentError, match="options"):
        env.reset(options={"state": [3.0]})
    with pytest.raises(InvalidArgumentError, match="render_mode"):
        gf.environments.lqg().to_gymnasium("human")
    with pytest.raises(InvalidArgumentError, match="has no parameter 'wear'"):
        gymnasium.make("gainful/Replacement-v0", wear=1)


def test_a_partition_of_the_gymnasium_box_has_the_cells_of_the_unit_cube() -> None:
    for name in NAMES:
        env = make_continuous(name)
        unit = Partition.uniform(bins=7, dim=env.dim)
        part = Partition.from_box(env.to_gymnasium().observation_space, bins=7)  # type: ignore[arg-type]
        points = np.random.default_rng(4).random((500, env.dim))
        points[0], points[1] = 0.0, 1.0
        assert np.array_equal(part.index_many(env.from_unit(points)), unit.index_many(points))


# ---------------------------------------------------------------------- names and arguments


def test_tables_and_continuous_environments_are_told_apart() -> None:
    with pytest.raises(InvalidArgumentError, match=r"lqg has continuous states.*make_continuous\('lqg'\)"):
        gf.environments.make("lqg")
    with pytest.raises(InvalidArgumentError, match=r"riverswim has finitely many states; make\('riverswim'\)"):
        make_continuous("riverswim")
    with pytest.raises(UnknownEnvironmentError, match="did you mean 'mountain-car'"):
        make_continuous("mountaincar")
    with pytest.raises(UnknownEnvironmentError, match="did you mean 'ship-steering'"):
        gf.environments.make("ship-stearing")
    assert not set(NAMES) & set(gf.environments.names())
    assert sorted(gf.environments.__all__) == dir(gf.environments)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gf.environments.nothing


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("continuous-riverswim", {"length": 1.0}, "length is 1"),
        ("continuous-riverswim", {"noise": 0.0}, "noise is 0"),
        ("lqg", {"n_actions": 1}, "n_actions is 1"),
        ("lqg", {"bound": -1.0}, "bound is -1"),
        ("continuous-inventory", {"mean_demand": math.nan}, "mean_demand is nan"),
        ("replacement", {"mean_wear": 0.0}, "mean_wear is 0"),
        ("rough-mixture", {"holder": 1.5}, "holder is 1.5"),
        ("rough-mixture", {"chance": 1.0}, "chance is 1"),
        ("planar-mixture", {"teeth": 0}, "teeth is 0"),
        ("planar-mixture", {"rest_reward": -0.1}, "rest_reward is -0.1"),
        ("ship-steering", {"goal_radius": "big"}, "goal_radius is 'big'"),
        ("mountain-car", {"force": 0.0}, "force is 0"),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name}: {message}.*its parameters are"):
        make_continuous(name, **parameters)


# ---------------------------------------------------------------------- users' own


def wander(x: Any, action: int, uniforms: Any, out: Any) -> float:
    z = x[0]
    out[0] = min(max(z + 0.1 * (2.0 * action - 1.0) + 0.2 * (uniforms[0] + uniforms[1] - 1.0), 0.0), 1.0)
    return float(1.0 - abs(z - 0.5))


def test_a_function_of_the_user_is_an_environment() -> None:
    env = ContinuousEnvironment.from_function(
        wander,
        dim=1,
        n_actions=2,
        draws=2,
        low=-1.0,
        high=1.0,
        reward_lipschitz=1.0,
        transition_lipschitz=10.0,
        holder=1.0,
        name="wander",
    )
    assert env.lipschitz == 10.0
    key = stream_key(3, Role.ENVIRONMENT)
    reward, x = env.step(4, [0.25], 1, seed=3)
    out = np.empty(1)
    numbers = np.array([uniform(b) for b in bits_of(env, key, 4)])
    assert reward == wander(np.array([0.25]), 1, numbers, out) == 0.75
    assert x.tolist() == out.tolist()
    assert env.rewards([0.5, 1.0], 0).tolist() == [1.0, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Gymnasium wants an id
        check_env(env.to_gymnasium(), skip_render_check=True)
    assert ContinuousEnvironment.from_function(wander, dim=1, n_actions=2, draws=2).no_guarantee is not None


def leaves(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = x[0] + 0.5
    return 0.0


def forgets(x: Any, action: int, uniforms: Any, out: Any) -> float:
    return 0.0


def overpays(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = x[0]
    return 2.0


def fails(x: Any, action: int, uniforms: Any, out: Any) -> Any:
    return x.no_such_thing


@pytest.mark.parametrize(
    ("step", "options", "message"),
    [
        (leaves, {}, r"step moved from .* to .*expected a point of the unit cube"),
        (forgets, {}, r"to \[nan\]"),
        (overpays, {}, r"step returned the reward 2\.0 .*expected a reward in \[0, 1\]"),
        (fails, {}, "failed at x = "),
        (3, {}, "step is 3"),
        (wander, {"draws": 2, "holder": 1.0}, "belong together"),
        (wander, {"draws": 2, "dim": 0}, "dim is 0"),
        (wander, {"draws": 2, "high": -1.0}, r"axis 0 is \[0, -1\]"),
        (wander, {"draws": 2, "start": 2.0}, "start is"),
        (wander, {"draws": 2, "reward_max": -1.0}, "rewards in"),
        (wander, {"draws": 2, "action_labels": ["one"]}, "1 action labels"),
    ],
)
def test_a_function_that_is_no_environment(step: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ContinuousEnvironment.from_function(step, **{"dim": 1, "n_actions": 2, **options})
