"""Agents by name, and back from their files."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from gainful.agents.episodic import AGENT_FILE, EpisodicAgent, restore_agent
from gainful.archive import read_archive
from gainful.errors import InvalidAgentError, UnknownAgentError, suggestion

# the name on a command line -> (module, class)
AGENTS: dict[str, tuple[str, str]] = {
    "scal-plus": ("gainful.agents.scal_plus", "SCALPlus"),
}

NOT_IMPLEMENTABLE = {
    "regal": "no tractable planner is known for its penalised optimisation (Bartlett & Tewari 2009); "
    "SCAL and SCAL+ solve the constrained problem instead",
}


def names() -> list[str]:
    """The names of all agents, in kebab-case."""
    return list(AGENTS)


def agent_class(name: str) -> type[EpisodicAgent]:
    """The class behind a name such as 'scal-plus'."""
    if name in NOT_IMPLEMENTABLE:
        raise UnknownAgentError(f"'{name}' is not implementable: {NOT_IMPLEMENTABLE[name]}")
    if name not in AGENTS:
        raise UnknownAgentError(f"'{name}'; {suggestion(name, AGENTS)}")
    module, attribute = AGENTS[name]
    found: type[EpisodicAgent] = getattr(importlib.import_module(module), attribute)
    return found


def load_agent(path: str | Path) -> Any:
    """The agent that `agent.save(path)` wrote; it goes on to the same bits."""
    header, arrays = read_archive(AGENT_FILE, path)
    for name, (_, attribute) in AGENTS.items():
        if attribute == header.get("agent"):
            return restore_agent(agent_class(name), path, header, arrays)
    raise InvalidAgentError(
        f"{path}: holds a {header.get('agent')!r}, which this gainful does not know; upgrade gainful"
    )
