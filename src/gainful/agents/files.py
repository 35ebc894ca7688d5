"""Agents in files: the whole state of an agent as a JSON header and plain arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.agents.agent import Agent
from gainful.agents.episode_log import EPISODE_RECORD, EpisodeLog
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.labels import AgentLabels
from gainful.agents.rebuilding import check_can_be_rebuilt, module_of, rebuilt, stored_class, with_core_class
from gainful.agents.saved_arrays import check_saved
from gainful.archive import Format, read_archive, write_archive
from gainful.errors import InvalidAgentError, MemoryLimitError, UnknownAgentError
from gainful.user_modules import ImportRefusedError

AGENT_FILE = Format("gainful-agent", 2, "agent", "agent.save", InvalidAgentError, checked_since=2)
"""Since version 2 the header has "module" and "labels", see `agent_state`, and the file a checksum."""

Header: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, NDArray[Any]]


def save_agent(agent: Agent, path: str | Path) -> None:
    """Write the whole state of `agent` to one plain file."""
    check_can_be_rebuilt(agent)
    write_archive(AGENT_FILE, path, *agent_state(agent))


def load_agent(path: str | Path, *, allow: Sequence[str] = ()) -> Any:
    """Load an agent from the file that `agent.save(path)` wrote.

    The agent continues from where it was saved. It makes the same decisions, bit for bit, as if it had never been
    written to a file.

    Parameters
    ----------
    path : str or Path
        The file. It holds plain arrays and JSON; nothing in it is unpickled or executed.
    allow : sequence of str
        Modules that may be imported if the agent's class is defined there, such as ``["my_module"]``. A class of your
        own that is imported already needs no permission; no other file causes an import.

    Returns
    -------
    agent
        An agent of the class that was saved, such as `gf.SCALPlus` or `gf.CSCALPlus`.

    Raises
    ------
    InvalidAgentError
        If the file does not exist, is damaged, does not hold an agent, was written by a newer gainful, or holds an
        agent of a class that is neither imported nor allowed.

    Examples
    --------
    >>> import tempfile, gainful as gf
    >>> agent = gf.UCRL2(n_states=2, n_actions=2)
    >>> agent.observe(0, agent.act(0), 0.5, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     agent.save(f"{folder}/my.agent")
    ...     again = gf.load_agent(f"{folder}/my.agent")
    >>> again.t, again.act(1) == agent.act(1)
    (1, True)
    """
    header, arrays = read_archive(AGENT_FILE, path)
    module = header.get("module") or ""
    try:
        made = stored_class(str(header.get("agent")), str(module), tuple(allow))
        settings = with_core_class(header["settings"], tuple(allow))
    except (UnknownAgentError, ImportRefusedError) as error:
        raise InvalidAgentError(
            f"{path}: {error.problem}", name=str(path), found=module or header.get("agent"), hint=error.hint
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise AGENT_FILE.damaged(path, f"{type(error).__name__}: {error}") from error
    try:
        _check_sizes(header["settings"], arrays["allowed"])
        agent = rebuilt(made, settings, arrays["allowed"])
        take_state(agent, header, arrays)
    except MemoryLimitError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        if module:
            raise InvalidAgentError(
                f"{path}: the {module} in it cannot be made again: {type(error).__name__}: {error}",
                name=str(path),
                found=module,
                hint="its class may have changed since it was saved",
            ) from error
        raise AGENT_FILE.damaged(path, f"{type(error).__name__}: {error}") from error
    return agent


def _check_sizes(settings: dict[str, Any], allowed: NDArray[Any]) -> None:
    """Raise a ValueError unless the settings and the arrays agree on the sizes, before anything is built."""
    sizes = settings.get("n_states", allowed.shape[0]), settings.get("n_actions", allowed.shape[-1])
    if allowed.shape != sizes:
        raise ValueError(f"{sizes[0]} states and {sizes[1]} actions, but array 'allowed' has shape {allowed.shape}")


def agent_state(agent: Agent) -> tuple[Header, Arrays]:
    """The whole state of an agent: settings and clock as a JSON header; statistics, plan and records as arrays.

    In the header, "module" is "" for a class of gainful and "my_module:MyAgent" for another; "labels" is None, or the
    `AgentLabels` of the agent in plain values. Headers from before they were kept have neither.
    """
    core = agent.core
    header: Header = {
        "agent": type(agent).__name__,
        "module": module_of(type(agent)),
        "labels": None if agent.labels is None else agent.labels.to_json(),
        "settings": agent.settings(),
        "t": core.t,
        "planned_at": core.planned_at,
        "interrupted": core.interrupted,
        "plan": None,
    }
    arrays: Arrays = {
        "allowed": core.allowed,
        "remaining": core.remaining,
        "visits_before": core.visits_before,
        "visited": core.visited,
        "records": core.episodes,
    }
    plan = core.current
    if plan is not None:
        header["plan"] = {
            "gain_bounds": plan.gain_bounds,
            "sweeps": plan.sweeps,
            "doubling": plan.doubling,
            "last_step": plan.last_step,
            "stop_on_new_state": plan.stop_on_new_state,
            "span": plan.span,
        }
        if plan.multiplier != 1.0:
            header["plan"]["multiplier"] = plan.multiplier
        arrays |= {"plan_actions": plan.actions, "plan_values": plan.values}
        if plan.probabilities is not None:
            arrays["plan_probabilities"] = plan.probabilities
        if plan.groups is not None:
            arrays["plan_groups"] = plan.groups
    return header, arrays | _prefixed("statistics_", core.statistics.to_arrays()) | _prefixed(
        "own_", agent.own_arrays()
    )


def take_state(agent: Agent, header: Header, arrays: Arrays) -> None:
    """Give a new agent of the same settings the state that `agent_state` described.

    Raises
    ------
    ValueError, KeyError
        If the arrays do not fit the agent, or each other.
    """
    agent.resize(header["settings"])
    core = agent.core
    core.statistics.from_arrays(_without("statistics_", arrays))
    visits = core.statistics.visits
    if "visits_before" not in arrays:
        # files from before it was kept: N = N_k + ν after ν executions, of which max{1, N_k} - ν were left
        arrays = arrays | {"visits_before": (visits + arrays["remaining"]) // 2}
    _check_arrays(core, header, arrays)
    core.remaining[:], core.visited[:] = arrays["remaining"], arrays["visited"]
    core.visits_before[:] = arrays["visits_before"]
    core.statistics.set_changes(np.flatnonzero(visits != core.visits_before))  # executed in the present episode
    core.records = EpisodeLog(arrays["records"])
    core.t, core.planned_at = int(header["t"]), int(header["planned_at"])
    core.interrupted = bool(header["interrupted"])
    core.current = None if header["plan"] is None else _plan(core, header["plan"], arrays)
    core.renew_group_limits()
    if header.get("labels") is not None:  # an older file has none, and the agent keeps those that it was made with
        n_states = core.n_states if agent.dim == 0 else None
        agent.labels = AgentLabels.from_json(header["labels"], n_states, core.n_actions)
    agent.restore(_without("own_", arrays))


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {prefix + name: array for name, array in arrays.items()}


def _without(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose name has the prefix, under the rest of their name."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _check_arrays(agent: EpisodicAgent, header: Header, arrays: Arrays) -> None:
    visits = agent.statistics.visits
    check_saved(arrays, "remaining", visits)
    check_saved(arrays, "visits_before", visits, low=0, high=visits)
    check_saved(arrays, "visited", np.empty(agent.n_states, dtype=np.bool_))
    if arrays["records"].dtype != EPISODE_RECORD or arrays["records"].ndim != 1:
        raise ValueError(f"records have dtype {arrays['records'].dtype} and shape {arrays['records'].shape}")
    if int(header["t"]) != int(visits.sum()):
        raise ValueError(f"{header['t']} steps, but {visits.sum()} visits")
    if not -1 <= int(header["planned_at"]) <= int(header["t"]) + 1:
        raise ValueError(f"planned at step {header['planned_at']} of {header['t']}")
    if visits.reshape(agent.allowed.shape)[~agent.allowed].any():
        raise ValueError("an action was counted in a state that does not have it")


def _plan(agent: EpisodicAgent, kept: dict[str, Any], arrays: Arrays) -> EpisodePlan:
    """The plan in force; a ValueError unless it is one for the agent's states and actions."""
    plan = EpisodePlan(
        **{**kept, "gain_bounds": tuple(kept["gain_bounds"])},
        actions=arrays["plan_actions"],
        values=arrays["plan_values"],
        probabilities=arrays.get("plan_probabilities"),
        groups=arrays.get("plan_groups"),
    )
    if plan.groups is not None:
        check_saved(arrays, "plan_groups", agent.statistics.visits, low=0, high=agent.statistics.visits.size - 1)
    S, A = agent.n_states, agent.n_actions
    actions, p = plan.actions, plan.probabilities
    if actions.shape != (S,) or actions.dtype != np.int64 or not (actions.min() >= 0 and actions.max() < A):
        raise ValueError(
            f"the plan's actions have shape {actions.shape} and dtype {actions.dtype}, or are out of range"
        )
    if plan.values.shape != (S,) or not np.isfinite(plan.values).all():
        raise ValueError(f"the plan's values have shape {plan.values.shape}, or are not finite")
    if p is not None and (p.shape != (S, A) or not np.all(np.abs(p.sum(axis=1) - 1.0) < 1e-6) or p.min() < 0.0):
        raise ValueError("the plan's probabilities are not probabilities")
    if type(plan.last_step) is not int or not plan.gain_bounds[0] <= plan.gain_bounds[1]:
        raise ValueError(f"the plan ends at step {plan.last_step} with the bracket {plan.gain_bounds}")
    if not 0.0 < plan.multiplier < np.inf:
        raise ValueError(f"the plan's multiplier is {plan.multiplier}")
    return plan
