"""`simulate`: an agent in an environment, whatever kind the two are."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from gainful.agents.own_verbs import has_own_rule, own_verbs
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.progress import Progress, shown_progress
from gainful.simulation.base import ResumableSimulation
from gainful.simulation.callbacks import Callback, checked_callback
from gainful.simulation.checkpoint import finish_with_checkpoints
from gainful.simulation.loops import agent_for, notice_slow_steps, simulation_class
from gainful.simulation.optimum import known_gaps, optimal_gain
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.tabular import TabularSimulation, check_fit

if TYPE_CHECKING:
    import gymnasium

    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.environments.continuous.oracle import OracleGain
    from gainful.simulation.continuous import ContinuousRun, ContinuousSimulation
    from gainful.simulation.gymnasium_loop import GymnasiumSimulation


@overload
def simulate(
    agent: Any,
    environment: MDP,
    horizon: float,
    seed: int = 0,
    *,
    checkpoints: ArrayLike | None = None,
    progress: Progress = None,
    callback: Callback = None,
    gain: float | OracleGain | None = None,
    checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Run: ...
@overload
def simulate(
    agent: Any,
    environment: ContinuousEnvironment | gymnasium.Env[Any, Any],
    horizon: float,
    seed: int = 0,
    *,
    checkpoints: ArrayLike | None = None,
    progress: Progress = None,
    callback: Callback = None,
    gain: float | OracleGain | None = None,
    checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> ContinuousRun: ...
def simulate(
    agent: Any,
    environment: Any,
    horizon: float,
    seed: int = 0,
    *,
    checkpoints: ArrayLike | None = None,
    progress: Progress = None,
    callback: Callback = None,
    gain: float | OracleGain | None = None,
    checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Run:
    """Run `agent` in `environment` for `horizon` steps and measure its regret against the optimal gain.

    The trace is bit-identical to stepping `agent.act`, the environment and `agent.observe` yourself. MDPs and
    continuous environments are compiled. An agent that has learned before continues to learn.

    Any object with `act(state)` and `observe(state, action, reward, next_state)` is an agent. It is stepped in Python,
    and so is a subclass of an agent with an `act` or `observe` of its own; a `SteppedInPythonWarning` says so.

    Parameters
    ----------
    agent : agent
        A tabular agent such as `SCALPlus` for an MDP; an agent on a partition (`CSCALPlus`, `UCCRL`, `Discretized`)
        for states that are points. It sees the points of a continuous environment in the unit cube if its partition is
        of the unit cube, and otherwise in the environment's own units. An object of another kind sees the number of the
        state, the point in the environment's own units, or the observation.
    environment : MDP, ContinuousEnvironment or gymnasium.Env
        A Gymnasium environment has Discrete actions and Discrete or Box observations.
    horizon : int
        The number of steps; 1e7 is accepted as an integer.
    seed : int
        The seed of the environment's randomness.
    checkpoints : array_like of int, optional
        The steps at which the regret is recorded; about 20 per decade by default. The horizon is always one.
    progress : bool or callable, optional
        True shows the progress on stderr; a function `progress(step, horizon)` is called now and then.
    callback : callable, optional
        Called at every checkpoint with a `CheckpointView`: the step, the reward and the regret so far, and the agent.
        The run has the same bits with and without it. A run that continues from a file shows the checkpoints to come.
    gain : float or OracleGain, optional
        The optimal gain g* per step, to be maximised. By default it is computed; if it is unknown, the regret is NaN,
        and `run.gain_source` explains why. Expected regret has the gain of the model in any case.
    checkpoint_file : str or Path, optional
        The run is saved to this file every `checkpoint_every` seconds and at its end. If the process is killed, the
        same call with a new agent continues from the file and gives the same bits.
    checkpoint_every : float
        Seconds between two versions of the file.

    Returns
    -------
    Run
        Rewards and regret at the checkpoints, and the episodes of the agent; a `ContinuousRun` for environments
        other than MDPs.

    Raises
    ------
    InvalidArgumentError
        If the states, actions or rewards of the agent are not those of the environment.
    InvalidRunError
        If the checkpoint file belongs to another run, or is damaged.

    Notes
    -----
    A Gymnasium run begins with `env.reset(seed=seed)`. A step that terminates leads back to the beginning: the next
    state that the agent observes is the first observation of `env.reset()`, as in `MDP.from_gymnasium`. So the task
    continues forever, and average reward makes sense. (If every step pays the same, as in CartPole, restarts cost
    nothing; use a reward that penalises them, such as `gymnasium.make("CartPole-v1", sutton_barto_reward=True)`.)
    The agent observes a step that only truncates (a time limit) as it is, and the run continues from `env.reset()`.
    That jump is not a transition, and the agent does not observe it. Such a run cannot be saved to a file. The model of
    a Gymnasium id of gainful's own is known, unless a wrapper may change it, and regret is measured against it.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.riverswim(6)
    >>> run = gf.simulate(gf.SCALPlus(n_states=6, n_actions=2, span=7.0), mdp, horizon=1000, seed=1)
    >>> run.horizon, round(run.gain, 4)
    (1000, 0.4286)
    """
    steps = checked_horizon(horizon)
    simulation = new_simulation(agent, environment, steps, seed, checkpoints=checkpoints, gain=gain)
    simulation.callback = checked_callback(callback)
    with shown_progress(progress, type(agent).__name__) as tell:
        run_simulation(simulation, progress=tell, checkpoint_file=checkpoint_file, checkpoint_every=checkpoint_every)
    return simulation.run()


def new_simulation(
    agent: Any,
    environment: Any,
    horizon: int,
    seed: int,
    *,
    checkpoints: ArrayLike | None = None,
    gain: float | OracleGain | None = None,
) -> TabularSimulation | ContinuousSimulation | GymnasiumSimulation:
    """A simulation that has not begun, of the kind that the environment needs."""
    grid = checked_checkpoints(checkpoints, horizon)
    agent = agent_for(agent, environment)
    if isinstance(environment, MDP):
        check_fit(agent, environment)
        best = optimal_gain(environment) if gain is None else _number(gain)
        return simulation_class(agent)(agent, environment, seed, grid, best, known_gaps(environment))
    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.simulation.continuous import ContinuousSimulation, check_points_fit, known_gain

    if isinstance(environment, ContinuousEnvironment):
        check_points_fit(agent, environment)
        if own_verbs(agent) or has_own_rule(agent):
            notice_slow_steps(agent)
        return ContinuousSimulation(agent, environment, seed, grid, known_gain(environment, gain))
    from gainful.simulation.gymnasium_loop import GymnasiumSimulation, check_environment
    from gainful.simulation.gymnasium_model import gymnasium_model

    check_environment(agent, environment)
    return GymnasiumSimulation(agent, environment, seed, grid, gymnasium_model(environment, gain))


def run_simulation(
    simulation: TabularSimulation | ContinuousSimulation | GymnasiumSimulation,
    *,
    progress: Callable[[int, int], None] | None = None,
    checkpoint_file: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> None:
    """Run to the end, from and into the checkpoint file if there is one."""
    if checkpoint_file is None:
        simulation.finish(progress)
        return
    if simulation.restarts_because or not isinstance(simulation, ResumableSimulation):
        raise InvalidArgumentError(
            "checkpoint_file",
            checkpoint_file,
            hint="leave checkpoint_file out",
            problem=f"checkpoint_file: {simulation.restarts_because}, so its run cannot be continued",
        )
    finish_with_checkpoints(simulation, checkpoint_file, checkpoint_every, progress)


def _number(gain: float | OracleGain) -> float:
    value = gain if isinstance(gain, (int, float)) else getattr(gain, "gain", math.nan)
    if not math.isfinite(value):
        raise InvalidArgumentError("gain", gain, "a finite number, or None")
    return float(value)
