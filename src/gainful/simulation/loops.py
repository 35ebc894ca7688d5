"""Which loop runs an agent: a compiled one if it does what was written, else Python's."""

from __future__ import annotations

import warnings
from typing import Any

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.own_verbs import (
    STATE_PATH,
    check_can_act,
    chooses_by_index,
    has_own_rule,
    is_learner,
    not_a_learner,
    own_verbs,
    sees_steps,
)
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.plain_learner import PlainLearner, PlainLearnerOnPoints, is_plain
from gainful.errors import SteppedInPythonWarning, level_of_the_caller
from gainful.mdp.model import MDP
from gainful.partition import Partition
from gainful.simulation.indexed import IndexedSimulation
from gainful.simulation.own_rule import OwnRuleSimulation, can_be_compiled
from gainful.simulation.path import PathSimulation
from gainful.simulation.stepped import SteppedSimulation
from gainful.simulation.tabular import TabularSimulation


def agent_for(agent: Any, environment: Any) -> Any:
    """The agent itself, or what stands for an object of another kind that has `act` and `observe`."""
    if isinstance(agent, EpisodicAgent | PartitionedAgent):
        check_can_act(agent)
        return agent
    if not is_learner(agent):
        raise not_a_learner(agent)
    low, high = getattr(environment, "reward_min", None), getattr(environment, "reward_max", None)
    rewards = {} if low is None or high is None else {"reward_min": low, "reward_max": max(high, low + 1e-9)}
    if isinstance(environment, MDP):
        n_states, n_actions = environment.n_states, environment.n_actions
        return PlainLearner(agent, n_states, n_actions, allowed=environment.allowed, **rewards)
    if hasattr(environment, "action_space"):
        n_actions = int(getattr(environment.action_space, "n", 1))  # other spaces are refused later
        if type(environment.observation_space).__name__ == "Discrete":
            return PlainLearner(agent, int(environment.observation_space.n), n_actions)
        return PlainLearnerOnPoints(agent, n_actions)
    if not hasattr(environment, "n_actions"):
        return PlainLearnerOnPoints(agent, 1)  # whatever the environment is, it is refused later
    box = Partition.uniform(bins=1, dim=environment.dim, low=environment.low, high=environment.high)
    return PlainLearnerOnPoints(agent, environment.n_actions, box, **rewards)


def simulation_class(agent: EpisodicAgent) -> type[TabularSimulation]:
    """The kind of simulation in an MDP: compiled, compiled with the agent's own rule, or stepped in Python."""
    if own_verbs(agent) == (STATE_PATH,):
        return PathSimulation
    if own_verbs(agent):
        notice_slow_steps(agent)
        return SteppedSimulation
    if not has_own_rule(agent):
        return TabularSimulation
    if chooses_by_index(agent):
        return IndexedSimulation
    if can_be_compiled(agent):  # type: ignore[arg-type]
        return OwnRuleSimulation
    notice_slow_steps(agent)
    return SteppedSimulation


def notice_slow_steps(agent: Any) -> None:
    """Warn that the steps of this agent are made in Python, and what would make them faster."""
    own = [verb for verb in own_verbs(agent) if verb in ("act", "observe", "decide", "learn")]
    page = "docs/howto/own_agent.md"
    if is_plain(agent):
        what, do = f"{agent.core.title} has methods of its own", "derive it from EpisodicAgent and write plan"
    elif own:
        what, do = f"{type(agent).__name__} has its own {' and '.join(own)}", "write plan instead"
    elif agent.core.path is not None:
        return  # the library's own way, which no user could change
    elif sees_steps(agent):
        counts = agent.core.bonus_counts.title
        what, do = f"the counts of {counts} see every step", f"give {counts} a method table(visits)"
        page = "docs/howto/pseudo_counts.md"
    elif chooses_by_index(agent):
        what = f"{type(agent.core).__name__} computes an index at every step, and has no compiled loop among points"
        do, page = "make a finite MDP of the process", "docs/continuous.md"
    else:
        what, do = f"the rule of {type(agent.core).__name__} is not compiled", "put @numba.njit above its functions"
    warnings.warn(
        f"{what}, so its steps are made in Python: tens of thousands per second, where compiled loops make tens "
        f"of millions. To be faster, {do} ({page})",
        SteppedInPythonWarning,
        stacklevel=level_of_the_caller(),
    )
