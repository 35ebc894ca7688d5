"""One run of an experiment, on whichever machine: a task in JSON goes in, a packed result comes out."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.conditions import guarantee_in
from gainful.agents.plain_learner import PlainLearner
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import GainfulError, InvalidArgumentError, InvalidRunError
from gainful.experiments.agent_factory import AgentFactory
from gainful.experiments.configuration import RESULTS_VERSION, Configuration
from gainful.experiments.folder_token import TOKEN_FILE
from gainful.experiments.foreign_environments import is_gymnasium, made_environment
from gainful.experiments.foreign_names import is_foreign_environment
from gainful.experiments.wire_format import pack
from gainful.user_modules import look_in

MAX_STORED_EPISODES = 1024
"""Episodes stored per run; if there are more, this many are chosen, evenly over the logarithm of the step."""
MAX_STORED_PAIRS = 4096
"""Visits and policy are stored for up to this many pairs of state and action."""


class RunStoppedError(Exception):
    """The run was asked to stop; its checkpoint file has its state."""


@dataclass(frozen=True)
class Task:
    """Everything that a worker needs to make a run, as plain values."""

    run_id: str
    configuration: dict[str, Any]
    gain: float | None
    """g*, which regret is measured against; None if it is unknown."""
    gain_source: str
    span: float | None
    """The model's own span, for agents with `span = "auto"`, and to see whether a given c is large enough."""
    checkpoint_file: str | None = None
    checkpoint_every: float = 30.0
    folder_token: str | None = None
    """The content of the file `token` beside the checkpoints; a worker that does not see it writes no checkpoint."""
    folders: tuple[str, ...] = ()
    """Where modules and tables of the spec are looked for."""
    audit: bool = False
    """Whether to audit the run: the result is then a `RunAudit`, which is not stored."""

    def to_json(self) -> str:
        """The task as text, for a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task that `to_json` wrote."""
        return cls(**json.loads(text))


def _made_environment(name: str, parameters: str) -> Any:
    from gainful.environments import registry

    given = json.loads(parameters)
    if is_foreign_environment(name):
        return made_environment(name, given)
    if name in registry.continuous_names():
        return registry.make_continuous(name, **given)
    return registry.make(name, **given)


_environment = lru_cache(maxsize=4)(_made_environment)


def environment_of(configuration: Configuration) -> Any:
    """The environment of a run; the last few are cached, but every run has a Gymnasium environment of its own."""
    key = configuration.environment, json.dumps(configuration.environment_parameters, sort_keys=True)
    environment = _environment(*key)
    return _made_environment(*key) if is_gymnasium(environment) else environment


def agent_factory_of(configuration: Configuration, environment: Any, span: float | None) -> AgentFactory:
    """The factory of the run's agent."""
    c = configuration
    return AgentFactory.from_parameters(c.agent, environment, c.agent_parameters, c.seed, c.horizon, span)


def execute(
    task: Task, progress: Callable[[int, int], None] | None = None, stop: Callable[[], bool] | None = None
) -> bytes:
    """Make the run, from its checkpoint file if there is one; raises RunStoppedError once `stop()` is true."""
    if task.audit:
        return audited(task, progress, stop)
    from gainful.simulation.checkpoint import Checkpoint
    from gainful.simulation.simulate import new_simulation

    look_in(task.folders)
    configuration = Configuration.from_json(task.configuration)
    environment = environment_of(configuration)
    factory = agent_factory_of(configuration, environment, task.span)
    gain = math.nan if task.gain is None else task.gain
    began = time.perf_counter()

    def new_run() -> Any:
        simulation = new_simulation(
            factory.make(),
            environment,
            configuration.horizon,
            configuration.seed,
            checkpoints=configuration.checkpoints,
            gain=0.0 if task.gain is None else task.gain,
        )
        simulation.gain = gain
        return simulation

    simulation, notice = new_run(), ""
    checkpoint: Checkpoint | None = None
    if task.checkpoint_file is not None and not simulation.restarts_because and _same_folder(task):
        checkpoint = Checkpoint(simulation, task.checkpoint_file, task.checkpoint_every)
        try:
            checkpoint.resume()
        except InvalidRunError as error:  # damaged, or written by other code
            notice = f"{error.problem}; the run was made from its beginning"
            simulation = new_run()
            checkpoint = Checkpoint(simulation, task.checkpoint_file, task.checkpoint_every)

    def pause() -> None:
        if stop is not None and stop():
            if checkpoint is not None:
                with contextlib.suppress(InvalidArgumentError):  # a user's agent may turn out not to tell its state
                    checkpoint.write()
            raise RunStoppedError
        if checkpoint is not None:
            with contextlib.suppress(GainfulError):  # a full disk must not end the run
                checkpoint.write_if_due()

    if progress is not None:
        progress(simulation.t, configuration.horizon)  # where it starts, or resumes
    if not simulation.finished:
        simulation.finish(progress, pause=pause)
    return packed(simulation, factory, task, time.perf_counter() - began, notice)


@lru_cache(maxsize=4)
def _truth(name: str, parameters: str) -> Any:
    from gainful.audit.run import truth_of

    return truth_of(_environment(name, parameters))


def audited(
    task: Task, progress: Callable[[int, int], None] | None = None, stop: Callable[[], bool] | None = None
) -> bytes:
    """Make a run and audit it."""
    from gainful.audit.run import audit_run

    look_in(task.folders)
    c = Configuration.from_json(task.configuration)
    truth = _truth(c.environment, json.dumps(c.environment_parameters, sort_keys=True))
    agent = agent_factory_of(c, truth.environment, truth.span).make()

    def tell(step: int, horizon: int) -> None:
        if stop is not None and stop():
            raise RunStoppedError
        if progress is not None:
            progress(step, horizon)

    run = audit_run(agent, truth.environment, c.horizon, c.seed, truth=truth, progress=tell)
    return pack({"run_id": task.run_id, "audit": json.dumps(run.to_dict())}, {})


def _same_folder(task: Task) -> bool:
    """Whether this machine sees the folder of the experiment."""
    assert task.checkpoint_file is not None
    try:
        return (Path(task.checkpoint_file).parent / TOKEN_FILE).read_bytes() == (task.folder_token or "").encode()
    except OSError:
        return False


def packed(
    simulation: Any, factory: AgentFactory, task: Task, seconds: float, notice: str = "", device: str = ""
) -> bytes:
    """What the store keeps of a finished run, as bytes; `notice` is for the user, `device` the name of a GPU."""
    run, agent = simulation.run(), simulation.agent
    episodes = run.episodes
    chosen = evenly_in_log(episodes["step"], MAX_STORED_EPISODES)
    arrays: dict[str, NDArray[Any]] = {
        "steps": run.steps,
        "rewards": run.rewards,
        "pseudo_regret": run.pseudo_regret,
        "expected_regret": run.expected_regret,
        "episode": chosen,
        **{f"episode_{name}": episodes[name][chosen] for name in episodes.dtype.names if name != "planning_seconds"},
    }
    pairs = agent.n_states * agent.n_actions
    if pairs <= MAX_STORED_PAIRS:
        visits = getattr(simulation, "visits", agent.statistics.visits)  # a user's own `observe` may count nothing
        arrays["visits"] = visits.reshape(agent.n_states, agent.n_actions)
        plan, core = agent.current, agent.core
        if isinstance(core, StepwiseAgent | PlainLearner):  # what it does now: it makes no plans
            arrays["actions"] = core.policy_at(np.arange(agent.n_states)).argmax(axis=1).astype(np.int32)
        elif plan is not None:
            arrays["actions"] = np.asarray(plan.actions, dtype=np.int32)
            arrays["values"] = np.asarray(plan.values, dtype=np.float64)
            bonus = core.bonuses() if isinstance(core, SCALPlus) else plan.details.get("bonus")
            if bonus is not None:
                arrays["bonus"] = np.asarray(bonus, dtype=np.float64)
    guarantee = guarantee_in(agent, factory.environment, task.span)
    values = {
        "run_id": task.run_id,
        "gain": task.gain,
        "gain_source": task.gain_source,
        "span": None if factory.options.get("span") is None else float(factory.options["span"]),
        "span_is_oracle": factory.span_is_oracle,
        "n_states": agent.n_states,
        "n_actions": agent.n_actions,
        "episodes": len(episodes),
        "vacuous": bool(run.vacuous),
        "guarantee": str(guarantee),
        "guarantee_holds": bool(guarantee.holds),
        "call_seconds": seconds,
        "seconds": run.planning_seconds + run.acting_seconds,
        "planning_seconds": run.planning_seconds,
        "acting_seconds": run.acting_seconds,
        **provenance(),
    }
    if device:
        values["platform"] = f"{values['platform']}, {device}"
    if notice:
        values["notice"] = notice
    return pack(values, arrays)


def evenly_in_log(steps: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Which of increasing `steps` to keep: all of them, or about `most`, including the first and the last.

    >>> evenly_in_log(np.arange(1, 101), 5).tolist()
    [0, 3, 9, 31, 99]
    """
    n = len(steps)
    if n <= most:
        return np.arange(n)
    wanted = np.logspace(0.0, math.log10(float(steps[-1])), most)
    return np.unique(np.append(np.searchsorted(steps, wanted).clip(0, n - 1), [0, n - 1]))


# ---------------------------------------------------------------------- where a run was made


@cache
def provenance() -> dict[str, Any]:
    """The versions of gainful (with its commit where it runs from a clone), Python, and the numerical packages."""
    import numba
    import numpy as np
    import scipy

    return {
        "results_version": RESULTS_VERSION,
        "version": _version(),
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": f"numpy {np.__version__}, scipy {scipy.__version__}, numba {numba.__version__}",
    }


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gainful")
    except PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of the clone that holds this file, followed by "+" if files were changed; None outside a clone."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        if git("ls-files", "--error-unmatch", Path(__file__).name) == "":
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
