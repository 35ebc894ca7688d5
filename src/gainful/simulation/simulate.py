"""`simulate`: an agent in an environment, whatever kind the two are."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.simulation.checkpoint import finish_with_checkpoints
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.tabular import TabularSimulation, check_fit, optimal_gain

if TYPE_CHECKING:
    import gymnasium

    from gainful.agents.episodic import EpisodicAgent
    from gainful.agents.partitioned import PartitionedAgent
    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.environments.continuous.oracle import OracleGain
    from gainful.simulation.continuous import ContinuousRun, ContinuousSimulation
    from gainful.simulation.gymnasium_loop import GymnasiumSimulation

Progress = Callable[[int, int], None] | None


@overload
def simulate(
    agent: EpisodicAgent, environment: MDP, horizon: float, seed: int = 0, *, checkpoints: ArrayLike | None = None,
    progress: Progress = None, gain: float | OracleGain | None = None, checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Run: ...  # fmt: skip
@overload
def simulate(
    agent: EpisodicAgent | PartitionedAgent, environment: ContinuousEnvironment | gymnasium.Env[Any, Any],
    horizon: float, seed: int = 0, *, checkpoints: ArrayLike | None = None, progress: Progress = None,
    gain: float | OracleGain | None = None, checkpoint_file: str | Path | None = None, checkpoint_every: float = 30.0,
) -> ContinuousRun: ...  # fmt: skip
def simulate(
    agent: Any, environment: Any, horizon: float, seed: int = 0, *, checkpoints: ArrayLike | None = None,
    progress: Progress = None, gain: float | OracleGain | None = None, checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Run:  # fmt: skip
    """Let `agent` live in `environment` for `horizon` steps and measure its regret against the optimal gain.

    The environment is an MDP, one of gainful's continuous environments, or any Gymnasium environment with Discrete
    actions and Discrete or Box observations (points are for agents on a partition: `CSCALPlus`, `UCCRL`,
    `Discretized`). The trace is that of stepping `agent.act`, the environment and `agent.observe`, to the bit. An agent
    that has lived before goes on learning. Checkpoints of the regret are about 20 per decade unless given.
    `progress(step, horizon)` is called now and then. The optimal gain per step, to be maximised, is computed unless it
    is given as `gain`; where nobody knows it the regret is NaN, and `run.gain_source` says so.

    *MDPs and continuous environments* are compiled. An agent sees the points of a continuous environment in the unit
    cube if its partition is of the unit cube, and else in the environment's own units. With a `checkpoint_file` the run
    is kept there every `checkpoint_every` seconds and at its end; called again with the same arguments (and a new
    agent) after a kill, it continues from that file to the same bits. A file of another run is refused.

    *Gymnasium.* The run begins with `env.reset(seed=seed)`. A step that terminates leads back to the beginning: the
    agent is told that its next state is the first observation of `env.reset()`, as `MDP.from_gymnasium` has it, so the
    task goes on for ever and average reward makes sense. (Where every step pays the same, as in CartPole, restarts cost
    nothing: give it a reward that tells them apart, such as `gymnasium.make("CartPole-v1", sutton_barto_reward=True)`.)
    A step that only truncates (a limit of time) is told as it was, and the run goes on from `env.reset()`, a jump that
    is no transition and is not told. Such a run cannot be kept in a file.
    """
    steps = checked_horizon(horizon)
    life = new_simulation(agent, environment, steps, seed, checkpoints=checkpoints, gain=gain)
    run_simulation(life, progress=progress, checkpoint_file=checkpoint_file, checkpoint_every=checkpoint_every)
    return life.run()


def new_simulation(
    agent: Any, environment: Any, horizon: int, seed: int, *, checkpoints: ArrayLike | None = None,
    gain: float | OracleGain | None = None,
) -> TabularSimulation | ContinuousSimulation | GymnasiumSimulation:  # fmt: skip
    """A life about to begin, of the kind the environment asks for."""
    grid = checked_checkpoints(checkpoints, horizon)
    if isinstance(environment, MDP):
        check_fit(agent, environment)
        return TabularSimulation(
            agent, environment, seed, grid, optimal_gain(environment) if gain is None else _number(gain)
        )
    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.simulation.continuous import ContinuousSimulation, check_points_fit, known_gain

    if isinstance(environment, ContinuousEnvironment):
        check_points_fit(agent, environment)
        return ContinuousSimulation(agent, environment, seed, grid, known_gain(environment, gain))
    from gainful.simulation.gymnasium_loop import GymnasiumSimulation, check_environment

    check_environment(agent, environment)
    return GymnasiumSimulation(agent, environment, seed, grid, known_gain(None, gain))


def run_simulation(
    life: TabularSimulation | ContinuousSimulation | GymnasiumSimulation, *, progress: Progress = None,
    checkpoint_file: str | Path | None = None, checkpoint_every: float = 30.0,
) -> None:  # fmt: skip
    """Run to the end, from and into the checkpoint file if there is one."""
    if checkpoint_file is None:
        life.finish(progress)
        return
    from gainful.simulation.gymnasium_loop import GymnasiumSimulation

    if isinstance(life, GymnasiumSimulation):
        raise InvalidArgumentError(
            "checkpoint_file: a Gymnasium environment does not tell its state, so a run in it cannot be continued; "
            "leave checkpoint_file out, and keep the agent with agent.save"
        )
    finish_with_checkpoints(life, checkpoint_file, checkpoint_every, progress)


def _number(gain: float | OracleGain) -> float:
    value = gain if isinstance(gain, (int, float)) else getattr(gain, "gain", math.nan)
    if not math.isfinite(value):
        raise InvalidArgumentError(f"gain is {gain}, expected a finite number, or None")
    return float(value)
