"""Agents for a model or an environment, which says how many states and actions there are, and what they are called."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from gainful.agents.labels import AgentLabels
from gainful.errors import InvalidArgumentError, describe, suggestion
from gainful.optimism.c_scal_plus import bins_for_horizon
from gainful.partition import Partition

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

BINS_WITHOUT_FORMULA = 10
"""Cells per axis if neither the user nor a formula gives their number."""
LEAST_REWARD_RANGE = 1e-9
"""The range of rewards of a model in which all rewards are the same."""


class TabularAgentForModels:
    """Gives tabular agents `for_mdp`."""

    labels: AgentLabels | None

    @classmethod
    def for_mdp(cls, mdp: MDP, **parameters: Any) -> Self:
        """Make an agent for a model: sizes, range of rewards, allowed actions, labels and sign are the model's.

        The agent learns nothing from the model. Where its states and actions have labels, `act`, `predict` and
        `observe` take them too: a label in, a label out. Rewards are to be maximised: where the model has costs, the
        agent's rewards are their negatives.

        Parameters
        ----------
        mdp : MDP
            The model.
        **parameters
            The other arguments of the agent, such as `span` and `seed`; `reward_min`, `reward_max` and `allowed`
            take the place of the model's.

        Returns
        -------
        agent
            A new agent.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have a parameter, or one that it needs is missing.

        Examples
        --------
        >>> import gainful as gf
        >>> mdp = gf.environments.riverswim(6)
        >>> agent = gf.KLSCALPlus.for_mdp(mdp, seed=3)
        >>> agent.n_states, agent.act("left bank")
        (6, 'left')
        """
        for name in ("n_states", "n_actions"):
            if name in parameters:
                problem = f"{name} is given, but the model has it"
                raise InvalidArgumentError(name, parameters[name], hint="leave it out", problem=problem)
        if not hasattr(mdp, "indptr"):
            raise InvalidArgumentError(
                "mdp", mdp, "an MDP", "gf.MDP.from_table reads a table", problem=f"the model is {describe(mdp)}"
            )
        sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "allowed": mdp.allowed}
        agent: Self = make_with(cls, {**sizes, **reward_range(mdp), **parameters})
        agent.labels = AgentLabels.of(mdp)
        return agent


class CellAgentForEnvironments:
    """Gives agents on the cells of a partition `for_environment`."""

    labels: AgentLabels | None

    @classmethod
    def for_environment(cls, env: Any, bins: int | None = None, **parameters: Any) -> Self:
        """Make an agent for an environment on points: box, actions, range of rewards and labels are the environment's.

        Parameters
        ----------
        env : ContinuousEnvironment or gymnasium.Env
            The environment. Cells are in its own units. A Gymnasium environment has Discrete actions and a Box of
            observations; it does not say its range of rewards, which is [0, 1] unless `reward_min` and `reward_max` are
            given.
        bins : int, optional
            Cells per axis. By default the theorem's number for the `horizon`, if that is given and the environment's
            smoothness is known; otherwise 10.
        **parameters
            The other arguments of the agent, such as `span` and `seed` (and `agent_class` for `Discretized`); a
            `partition` takes the place of `bins`.

        Returns
        -------
        agent
            A new agent.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have a parameter, one that it needs is missing, or the box has no bounds.

        Examples
        --------
        >>> import gainful as gf
        >>> agent = gf.CKLSCALPlus.for_environment(gf.environments.lqg(), bins=20)
        >>> agent.n_states, agent.n_actions, agent.partition.low
        (20, 5, (-2.0,))
        """
        known = inspect.signature(cls).parameters
        if "partition" in parameters:
            if bins is not None:
                raise InvalidArgumentError("bins", bins, hint="leave one out", problem="both bins and partition given")
            cells = parameters["partition"]
        else:
            cells = cells_for(env, bins, parameters.get("horizon"))
        options: dict[str, Any] = {"n_actions": number_of_actions(env), "partition": cells, **reward_range(env)}
        for name in ("lipschitz", "holder"):
            if name in known and getattr(env, name, None) is not None:
                options[name] = getattr(env, name)
        agent: Self = make_with(cls, {**options, **parameters})
        agent.labels = AgentLabels.of(env)
        return agent


def make_with(made: Any, options: dict[str, Any]) -> Any:
    """Call a class of agents; an InvalidArgumentError for a parameter that it does not have, or needs."""
    parameters = inspect.signature(made).parameters
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for name, value in options.items():
            if name not in parameters:
                raise InvalidArgumentError(
                    name,
                    value,
                    hint=suggestion(name, parameters),
                    problem=f"{made.__name__} has no parameter {name!r}",
                )
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and parameter.kind not in variadic and name not in options:
            hint = "gf.solve(mdp).span is the model's own, which a learner could not know" if name == "span" else ""
            raise InvalidArgumentError(name, hint=hint, problem=f"{made.__name__} needs {name}, which no model gives")
    return made(**options)


def reward_range(environment: Any) -> dict[str, float]:
    """`reward_min` and `reward_max` of a model or an environment; empty if it does not say."""
    low, high = getattr(environment, "reward_min", None), getattr(environment, "reward_max", None)
    if low is None or high is None:
        return {}
    return {"reward_min": low, "reward_max": max(high, low + LEAST_REWARD_RANGE * max(1.0, abs(low)))}


def number_of_actions(env: Any) -> int:
    """The number of actions of an environment on points."""
    space = getattr(env, "action_space", None)
    found = getattr(env, "n_actions", None) if space is None else getattr(space, "n", None)
    if found is None:
        raise InvalidArgumentError(
            "env",
            env,
            "an environment with finitely many actions",
            problem=f"the environment is {describe(env)}" if space is None else f"its action space is {space}",
        )
    return int(found)


def cells_for(env: Any, bins: int | None, horizon: float | None) -> Partition:
    """Equal cells on the box of an environment."""
    space = getattr(env, "observation_space", None)
    if space is not None:
        return Partition.from_box(space, bins or BINS_WITHOUT_FORMULA)
    if not hasattr(env, "low"):
        raise InvalidArgumentError(
            "env",
            env,
            "an environment on points",
            "an MDP has for_mdp of the tabular agents",
            problem=f"the environment is {describe(env)}",
        )
    if bins is None and horizon is not None and env.lipschitz is not None and env.holder is not None:
        bins = bins_for_horizon(int(horizon), env.n_actions, env.lipschitz, env.holder, env.dim)
    return Partition.uniform(bins=bins or BINS_WITHOUT_FORMULA, dim=env.dim, low=env.low, high=env.high)
