"""Every environment as a Gymnasium id: registered in either order of import, checked, continuing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gainful as gf
from gainful.environments import continuous_names, gymnasium_id, make, names, register_all
from gainful.environments.gymnasium_env import NamedEnv
from gainful.errors import InvalidArgumentError
from gainful.gymnasium_ids import CONTINUOUS, TABULAR

RIVERSWIM = "gainful/RiverSwim-v0"


def made(name: str, **options: Any) -> NamedEnv:
    env = gymnasium.make(gymnasium_id(name), **options).unwrapped
    assert isinstance(env, NamedEnv)
    return env


def test_ids_are_the_names_in_camel_case() -> None:
    assert gymnasium_id("riverswim") == RIVERSWIM
    assert gymnasium_id("six-arms") == "gainful/SixArms-v0"
    assert gymnasium_id("toy3d") == "gainful/Toy3D-v0"
    assert gymnasium_id("access-control-queue") == "gainful/AccessControlQueue-v0"
    assert sorted(TABULAR) == names()
    assert sorted(CONTINUOUS) == continuous_names()
    ours = {spec.id for spec in gymnasium.registry.values() if spec.namespace == "gainful"}
    assert ours == {gymnasium_id(name) for name in names() + continuous_names()}


@pytest.mark.parametrize("name", names())
def test_gymnasium_checks_every_id_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(name))


@pytest.mark.parametrize("name", names())
def test_every_id_is_the_environment_and_never_ends(name: str) -> None:
    env = gymnasium.make(gymnasium_id(name))
    assert gf.MDP.from_gymnasium(env) == make(name)
    assert env.spec is not None
    assert env.spec.max_episode_steps is None
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(300):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert not terminated
        assert not truncated
        assert info["action_mask"].any()


def test_parameters_and_render_mode_reach_the_environment() -> None:
    env = made("riverswim", n_states=9, render_mode="ansi")
    assert env.observation_space == gymnasium.spaces.Discrete(9)
    env.reset(seed=0)
    env.step(np.int64(0))
    assert env.render() == "left bank --left (0.005)--> left bank\n"


def test_a_bad_parameter_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="riverswim has no parameter 'n_stats'"):
        gymnasium.make(RIVERSWIM, n_stats=9)


def test_an_action_the_state_does_not_have_acts_as_its_first() -> None:
    env = made("machine-replacement")
    last = env.mdp.n_states - 1
    assert not env.mdp.allowed[last, 0]
    _, info = env.reset(seed=0, options={"state": last})
    assert info["action_mask"].tolist() == [0, 1]
    _, reward, _, _, info = env.step(np.int64(0))
    assert info["action_taken"] == 1
    assert reward == env.mdp.rewards[last, 1]


def test_an_action_the_state_has_is_taken() -> None:
    env = made("machine-replacement")
    env.reset(seed=0)
    assert [env.step(np.int64(a))[4]["action_taken"] for a in (1, 0, 1)] == [1, 0, 1]


@pytest.mark.parametrize("action", [-1, 2])
def test_an_action_out_of_range_is_an_error(action: int) -> None:
    env = made("machine-replacement")
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="out of range"):
        env.step(np.int64(action))


def test_a_step_before_reset_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="step was called before reset"):
        made("toy3d").step(np.int64(0))


def test_registering_twice_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_all()


def test_a_spec_survives_json() -> None:
    spec = gymnasium.spec(RIVERSWIM)
    again = gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())
    assert isinstance(again.make().unwrapped, NamedEnv)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import gainful, gymnasium; gymnasium.make('gainful/RiverSwim-v0')",
        "import gymnasium, gainful; gymnasium.make('gainful/RiverSwim-v0')",
        "import gymnasium; gymnasium.make('gainful:gainful/RiverSwim-v0')",
        "import gymnasium, gainful; gymnasium.register_envs(gainful); gymnasium.make('gainful/Toy3D-v0')",
        "import gymnasium; gymnasium.make('gainful.environments:gainful/RiverSwim-v0')",
        "import gainful as gf; gf.environments.riverswim(); import gymnasium; "
        "gymnasium.make('gainful.environments:gainful/RiverSwim-v0')",
        "import gainful as gf; gf.environments.taxi(); import gymnasium; gymnasium.make('gainful/Taxi-v0')",
        # who only asks where Gymnasium is does not use up the registration
        "import importlib.util as u, gainful; u.find_spec('gymnasium'); u.find_spec('gymnasium'); "
        "import gymnasium; gymnasium.make('gainful/RiverSwim-v0')",
    ],
    ids=[
        "gainful first",
        "gymnasium first",
        "no import",
        "register_envs",
        "by the module of environments",
        "that, gainful first",
        "by an environment",
        "asked",
    ],
)
def test_ids_exist_in_any_order_of_import(code: str) -> None:
    script = (
        f"import sys; {code}; "
        "assert not [f for f in sys.meta_path if type(f).__module__.startswith('gainful')]; "
        "assert gymnasium.__spec__.name == 'gymnasium'"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_importing_gainful_registers_without_loading_gymnasium_or_the_environments() -> None:
    script = (
        "import sys, gainful; first = {'gymnasium', 'numpy', 'gainful.environments'} & set(sys.modules); "
        "import gainful.environments; second = {'gymnasium'} & set(sys.modules); "
        "import gymnasium; sys.exit(bool(first or second or 'gainful/RiverSwim-v0' not in gymnasium.registry))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_without_gymnasium_its_absence_is_said_as_usual() -> None:
    assert importlib.util.find_spec("gymnasium") is not None
    script = (
        "import sys, gainful; "
        "sys.meta_path[1:] = [f for f in sys.meta_path[1:] if 'PathFinder' not in str(f)]; import gymnasium"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert "ModuleNotFoundError: No module named 'gymnasium'" in result.stderr
