"""Agents by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gainful.errors import UnknownAgentError, suggestion

if TYPE_CHECKING:
    from gainful.agents.episodic import EpisodicAgent
    from gainful.agents.partitioned import PartitionedAgent

# the name on a command line -> (module, class)
AGENTS: dict[str, tuple[str, str]] = {
    "scal-plus": ("gainful.agents.scal_plus", "SCALPlus"),
    "kl-scal-plus": ("gainful.agents.kl_scal_plus", "KLSCALPlus"),
    "balanced-kl-scal-plus": ("gainful.agents.balanced_kl_scal_plus", "BalancedKLSCALPlus"),
    "optimistic-q": ("gainful.agents.optimistic_q", "OptimisticQ"),
    "epsilon-greedy-q": ("gainful.agents.epsilon_greedy_q", "EpsilonGreedyQ"),
    "count-bonus": ("gainful.agents.count_bonus", "CountBonus"),
    "fixed": ("gainful.agents.fixed", "Fixed"),
    "mbie-eb": ("gainful.agents.mbie_eb", "MBIEEB"),
    "opt-psrl": ("gainful.agents.opt_psrl", "OptPSRL"),
    "imed-rl": ("gainful.agents.imed_rl", "IMEDRL"),
    "psrl": ("gainful.agents.psrl", "PSRL"),
    "ucbvi": ("gainful.agents.ucbvi", "UCBVI"),
    "kl-ucrl": ("gainful.agents.kl_ucrl", "KLUCRL"),
    "scal": ("gainful.agents.scal", "SCAL"),
    "tucrl": ("gainful.agents.tucrl", "TUCRL"),
    "pmevi-dt": ("gainful.agents.pmevi_dt", "PMEVIDT"),
    "ucrl2": ("gainful.agents.ucrl2", "UCRL2"),
    "ucrl2b": ("gainful.agents.ucrl2b", "UCRL2B"),
    "ucrl3": ("gainful.agents.ucrl3", "UCRL3"),
}

# agents on continuous states, which have a partition instead of `n_states`
PARTITIONED: dict[str, tuple[str, str]] = {
    "c-scal-plus": ("gainful.agents.c_scal_plus", "CSCALPlus"),
    "c-kl-scal-plus": ("gainful.agents.c_kl_scal_plus", "CKLSCALPlus"),
    "adaptive-kl-scal-plus": ("gainful.agents.adaptive_kl_scal_plus", "AdaptiveKLSCALPlus"),
    "balanced-grids": ("gainful.agents.balanced_grids", "BalancedGrids"),
    "uccrl": ("gainful.agents.uccrl", "UCCRL"),
    "discretized": ("gainful.agents.discretized", "Discretized"),
}

NOT_IMPLEMENTABLE = {
    "regal": "no tractable planner is known for its penalised optimisation (Bartlett & Tewari 2009); "
    "SCAL and SCAL+ solve the constrained problem instead",
}


def usual_name(name: str) -> str:
    """The name of an agent as this module spells it: SCAL+ is scal-plus, KL-SCAL+ is kl-scal-plus.

    >>> usual_name("SCAL+"), usual_name("KL-SCAL+"), usual_name("c-scal-plus")
    ('scal-plus', 'kl-scal-plus', 'c-scal-plus')
    """
    plain = name.strip().lower().replace("+", "-plus")
    return plain if plain in AGENTS or plain in PARTITIONED or plain in NOT_IMPLEMENTABLE else name


def names() -> list[str]:
    """The names of all tabular agents, in kebab-case."""
    return list(AGENTS)


def continuous_names() -> list[str]:
    """The names of all agents on continuous states, in kebab-case."""
    return list(PARTITIONED)


def agent_class(name: str) -> type[EpisodicAgent]:
    """The class behind a name such as 'scal-plus' or 'SCAL+'."""
    name = usual_name(name)
    if name in NOT_IMPLEMENTABLE:
        raise UnknownAgentError(f"'{name}' is not implementable: {NOT_IMPLEMENTABLE[name]}", name=name, found=name)
    if name in PARTITIONED:
        if name == "discretized":
            problem = "'discretized' stands for any tabular agent on cells"
            hint = "name that agent, which is discretised if states are points (in Python gf.Discretized)"
        else:
            problem = f"'{name}' is an agent on points, for continuous states"
            hint = "take a tabular one, such as kl-scal-plus"
        raise UnknownAgentError(problem, name=name, found=name, hint=hint)
    if name not in AGENTS:
        raise _unknown(name, AGENTS)
    found: type[EpisodicAgent] = _loaded(AGENTS[name])
    return found


def continuous_class(name: str) -> type[PartitionedAgent]:
    """The class behind the name of an agent on continuous states, such as 'c-scal-plus'."""
    name = usual_name(name)
    if name not in PARTITIONED:
        raise _unknown(name, PARTITIONED)
    found: type[PartitionedAgent] = _loaded(PARTITIONED[name])
    return found


def _unknown(name: str, known: Iterable[str]) -> UnknownAgentError:
    return UnknownAgentError(f"'{name}'", name=name, found=name, hint=suggestion(name, known))


def class_named(name: str) -> type[Any] | None:
    """The class by its own name, such as 'SCALPlus', as files have it; None if there is none."""
    for home in (*AGENTS.values(), *PARTITIONED.values()):
        if home[1] == name:
            found: type[Any] = _loaded(home)
            return found
    return None


def registered_name(class_name: str) -> str | None:
    """The name of the class on a command line: 'scal-plus' for 'SCALPlus'; None for a class of somebody else.

    >>> registered_name("SCALPlus"), registered_name("MyAgent")
    ('scal-plus', None)
    """
    homes = {**AGENTS, **PARTITIONED}
    return next((name for name, (_, found) in homes.items() if found == class_name), None)


def _loaded(home: tuple[str, str]) -> Any:
    module, attribute = home
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class AgentSummary:
    """An agent in one line: its name, what it is, and its own parameters with their defaults."""

    name: str
    summary: str
    parameters: dict[str, Any]


def describe(name: str) -> AgentSummary:
    """The first line of the agent's docstring, and its parameters; one without a default must be given."""
    made: Any = continuous_class(name) if name in PARTITIONED else agent_class(name)
    parameters = {
        p.name: "required" if p.default is inspect.Parameter.empty else p.default
        for p in inspect.signature(made).parameters.values()
        if p.name not in ("n_states", "n_actions", "allowed", "reward_min", "reward_max", "seed")
    }
    return AgentSummary(name, (inspect.getdoc(made) or "").splitlines()[0], parameters)
