"""`simulate`: an agent in an environment, whatever kind the two are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.simulation.checkpoint import finish_with_checkpoints
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.tabular import Life, check_fit, optimal_gain


def simulate(
    agent: Any, environment: Any, horizon: float, seed: int = 0, *, checkpoints: ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None, gain: float | None = None,
    checkpoint_file: str | Path | None = None, checkpoint_every: float = 30.0,
) -> Run:  # fmt: skip
    """Let `agent` live in `environment` for `horizon` steps and measure its regret against the optimal gain.

    In an MDP the life is compiled; the trace is that of stepping `agent.act`, `World.step` and `agent.observe`, to the
    bit. An agent that has lived before goes on learning. Checkpoints of the regret are about 20 per decade unless
    given. `progress(step, horizon)` is called now and then. The optimal gain per step, to be maximised, is computed
    unless it is given as `gain`.

    With a `checkpoint_file` the run is kept there every `checkpoint_every` seconds and at its end; called again with
    the same arguments (and a new agent) after a kill, it continues from that file to the same bits. A file of another
    run is refused.
    """
    steps = checked_horizon(horizon)
    grid = checked_checkpoints(checkpoints, steps)
    if not isinstance(environment, MDP):
        raise InvalidArgumentError(f"the environment is a {type(environment).__name__}, expected an MDP")
    check_fit(agent, environment)
    life = Life(agent, environment, seed, grid, optimal_gain(environment) if gain is None else float(gain))
    if checkpoint_file is None:
        life.finish(progress)
    else:
        finish_with_checkpoints(life, checkpoint_file, checkpoint_every, progress)
    return life.run()
