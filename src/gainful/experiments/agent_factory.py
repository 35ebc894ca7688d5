"""Makes agents by name for environments of any kind, for the command line and for experiments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError, suggestion
from gainful.experiments.foreign_agents import (
    agent_maker,
    checked_agent,
    foreign_parameters,
    is_on_points,
    is_tabular,
    made_by,
)
from gainful.experiments.foreign_environments import check_source
from gainful.experiments.foreign_names import agent_called, is_foreign_agent, without_marks
from gainful.experiments.foreign_signatures import owners_of_parameters, raised_by
from gainful.experiments.parameters import AUTO, DOUBLING, parse_span, signature_parameters

if TYPE_CHECKING:
    import gymnasium

    from gainful.mdp.model import MDP
    from gainful.partition import Partition

FALLBACK_BINS = 10
"""Cells per axis if no formula gives their number."""
EXPLORATORY_STEPS = 2_000
"""Random steps taken to find out where the states of an unbounded box lie."""
DEFAULT, DEFAULT_ON_POINTS = "kl-scal-plus", "c-kl-scal-plus"
"""The agents that learn if none is named: of those with a theorem, the ones that lose least (docs/which_agent.md)."""
OWN_SPAN_FACTOR = 1.001
"""The model's own span is multiplied by this, because it is known only up to the precision of a plan."""


class AgentFactory:
    """Makes one agent for one environment: fills in what the agent needs and the user left out.

    A `span` of None is left out: an agent that can do without one gets none, any other the model's own.
    """

    def __init__(
        self,
        name: str | None,
        environment: Any,
        span: float | str | None,
        seed: int,
        horizon: int,
        bins: int | str | None,
        given: dict[str, Any],
        *,
        own_span: float | None = None,
    ) -> None:
        from gainful.mdp.model import MDP

        self.environment, self.seed, self.horizon, self.bins, self.given = environment, seed, horizon, bins, given
        self.among_points = not isinstance(environment, MDP) and not _is_discrete(environment)
        self.name = agent_called(name or (DEFAULT_ON_POINTS if self.among_points else DEFAULT))
        self._is_default = name is None
        self.span, self._known_span = span, own_span
        self.span_is_oracle = False
        """Whether the agent is given the model's own span, which a learner cannot know."""
        self.note = ""
        """What the user should know about the cells, or the agent; empty if there is nothing."""
        self.options = self._options()

    @classmethod
    def from_parameters(
        cls, name: str, environment: Any, parameters: Mapping[str, Any], seed: int, horizon: int, own_span: float | None
    ) -> AgentFactory:
        """From the parameters of a configuration, where span, horizon and bins may be "auto" or left out."""
        if is_foreign_agent(name):
            check_source(name, parameters)
        given = without_marks(parameters)
        span, bins = given.pop("span", None), given.pop("bins", None)
        if given.get("horizon") == AUTO:
            del given["horizon"]
        return cls(name, environment, span, seed, horizon, bins, given, own_span=own_span)

    def make(self) -> Any:
        """A new agent; every call makes an equal one."""
        from gainful.agents import registry

        if is_foreign_agent(self.name):
            return self._foreign_agent()
        try:
            if self.among_points:
                if self.name in registry.PARTITIONED:
                    return registry.continuous_class(self.name)(**self.options)
                from gainful.agents.discretized import Discretized

                return Discretized(self.name, **self.options)
            return registry.agent_class(self.name)(**self.options)
        except TypeError as error:
            raise InvalidArgumentError(
                "agent",
                self.name,
                hint="give it as a parameter of the agent (--agent-set NAME=VALUE)",
                problem=f"{self.name} cannot be made: {error}",
            ) from error

    def _foreign_agent(self) -> Any:
        from gainful.agents.discretized import Discretized

        if not (self.among_points and is_tabular(self.name)):
            return made_by(self.name, self.options)
        with raised_by(self.name):
            return Discretized(agent_maker(self.name), **self.options)

    # ------------------------------------------------------------------ the agent's arguments

    def _options(self) -> dict[str, Any]:
        from gainful.agents import registry

        if is_foreign_agent(self.name):
            return self._foreign_options()
        if self.among_points and self.name in registry.PARTITIONED and self.name != "discretized":
            made: Any = registry.continuous_class(self.name)
        else:
            made = registry.agent_class(self.name)
        known = [p for p in inspect.signature(made).parameters if p not in ("n_states", "n_actions", "stage")]
        for setting in self.given:
            if setting not in known:
                raise InvalidArgumentError(
                    setting,
                    self.given[setting],
                    hint=self._other_agent(setting) or suggestion(setting, known),
                    problem=f"parameter {setting}: {self.name} has no such parameter",
                )
        typed = signature_parameters(made, list(self.given))
        given = {setting: typed[setting].check(value) for setting, value in self.given.items()}
        options = {**self._sizes(), **self._rewards(), "seed": self.seed}
        if "span" in known and "span" not in self.given:
            options["span"] = self._span_for(inspect.signature(made).parameters["span"].default)
        else:
            self._refuse_span()
        if "horizon" in known and self.bins != DOUBLING:
            options["horizon"] = self.horizon
        if self.among_points:
            options |= self._cells(known)
        else:
            self._refuse_bins()
        if "ergodic" in known and "ergodic" not in self.given:
            options["ergodic"] = self._ergodic()
        return {**options, **given}

    def _foreign_options(self) -> dict[str, Any]:
        """What a user's own class or function is given: of what the run knows, the parameters that it names."""
        checked = checked_agent(self.name, self.given, self.among_points)
        for problem in checked.problems.values():
            raise problem
        named, open_ended = owners_of_parameters(agent_maker(self.name))
        facts = {**self._sizes(), **self._rewards(), "seed": self.seed, "horizon": self.horizon}
        if self.among_points and (is_tabular(self.name) or is_on_points(self.name) or "partition" in named):
            facts |= self._cells(list(named))
        elif self.among_points and "n_states" in named:
            raise InvalidArgumentError(
                "agent",
                self.name,
                hint="derive it from EpisodicAgent, which can be put on cells, or let it take points",
                problem=f"{self.name} takes n_states, and {self.title} has points",
            )
        else:
            self._refuse_bins()
        default = foreign_parameters(self.name, self.among_points)[0].get("span")
        if default is not None and (self.span is not None or default.default == AUTO):
            facts["span"] = self._span_for(default.default)
        elif default is None:
            self._refuse_span()
        cells = self.among_points and is_tabular(self.name)
        options = {p: value for p, value in facts.items() if p in named or open_ended or (cells and p == "partition")}
        return {**options, **self.given}

    def _ergodic(self) -> bool | None:
        """Whether every policy visits every state of the model; None if there is no model, or it is too large."""
        from gainful.agents.observed_graph import known_to_be_ergodic
        from gainful.mdp.model import MDP

        found = known_to_be_ergodic(self.environment) if isinstance(self.environment, MDP) else None
        if found is False:
            self.note = (
                f"{self.title} is not ergodic, and {self.name} was made for processes in which every policy visits "
                "every state: it may stop exploring for good and lose the whole run; try kl-scal-plus"
            )
        return found

    def _refuse_span(self) -> None:
        if self.span not in (None, AUTO):
            raise InvalidArgumentError(
                "span", self.span, hint="leave it out", problem=f"span {self.span}: {self.name} takes no span"
            )

    def _refuse_bins(self) -> None:
        if self.bins is not None:
            states = "takes points as they are" if self.among_points else "has finitely many states"
            title = self.name if self.among_points else self.title
            raise InvalidArgumentError(
                "bins", self.bins, hint="leave it out", problem=f"bins {self.bins}: {title} {states}"
            )

    def _span_for(self, default: Any) -> float | None:
        """The span that the agent is given, and None if it was left out and is not needed."""
        if self.span is None and default is None:
            return None
        span = parse_span(AUTO if self.span is None else self.span)
        self.span_is_oracle = span.is_oracle
        return span.resolve(self._own_span)

    def _other_agent(self, setting: str) -> str:
        """The agent that was the default before, if it has the parameter; empty if not."""
        from gainful.agents import registry

        before = "c-scal-plus" if self.among_points else "scal-plus"
        has_it = setting in registry.describe(before).parameters
        return f"it is one of {before} (--agent {before})" if self._is_default and has_it else ""

    @property
    def title(self) -> str:
        """The environment's name in messages."""
        from gainful.environments.continuous.environment import ContinuousEnvironment
        from gainful.mdp.model import MDP

        if isinstance(self.environment, (MDP, ContinuousEnvironment)):
            return str(self.environment.name or "the MDP")
        spec = self.environment.spec
        return str(spec.id if spec is not None else type(self.environment.unwrapped).__name__)

    def _sizes(self) -> dict[str, Any]:
        from gainful.environments.continuous.environment import ContinuousEnvironment
        from gainful.mdp.model import MDP

        env = self.environment
        if isinstance(env, MDP):
            return {"n_states": env.n_states, "n_actions": env.n_actions, "allowed": env.allowed}
        if isinstance(env, ContinuousEnvironment):
            return {"n_actions": env.n_actions}
        actions = getattr(env.action_space, "n", None)
        if actions is None:
            raise InvalidArgumentError(
                "action_space",
                env.action_space,
                "a Discrete space",
                problem=f"{self.title} has the action space {env.action_space}",
            )
        sizes = {"n_actions": int(actions)}
        return sizes if self.among_points else {"n_states": int(env.observation_space.n), **sizes}

    def _rewards(self) -> dict[str, Any]:
        """The range of rewards; empty for a Gymnasium environment, whose agents assume [0, 1] by default."""
        low, high = getattr(self.environment, "reward_min", None), getattr(self.environment, "reward_max", None)
        if low is None or high is None:
            return {}
        return {"reward_min": low, "reward_max": max(high, low + 1e-9)}

    def _own_span(self) -> float:
        if self._known_span is None:
            self._known_span = own_span(self.environment)
        if self._known_span is None:
            raise InvalidArgumentError(
                "span",
                AUTO,
                hint="say how much more total reward one state can be worth than another (--span NUMBER)",
                problem=f"span auto needs a model, and {self.title} has none",
            )
        return OWN_SPAN_FACTOR * self._known_span

    # ------------------------------------------------------------------ cells

    def _cells(self, known: list[str]) -> dict[str, Any]:
        from gainful.environments.continuous.environment import ContinuousEnvironment
        from gainful.optimism.c_scal_plus import bins_for_horizon
        from gainful.partition import Partition

        env, options, bins = self.environment, {}, self.bins
        if bins == DOUBLING:
            return self._doubling_cells()
        assert not isinstance(bins, str)
        if isinstance(env, ContinuousEnvironment):
            if "lipschitz" in known:
                options = {"lipschitz": env.lipschitz, "holder": env.holder}
            if bins is None and env.lipschitz is not None and env.holder is not None:
                bins = bins_for_horizon(self.horizon, env.n_actions, env.lipschitz, env.holder, env.dim)
            partition = Partition.uniform(bins=bins or FALLBACK_BINS, dim=env.dim)
        else:
            partition, self.note = partition_of(env, bins or FALLBACK_BINS, self.seed)
        return {"partition": partition, **options}

    def _doubling_cells(self) -> dict[str, Any]:
        """The box that C-SCAL+ cuts into finer cells as the run goes on."""
        from gainful.environments.continuous.environment import ContinuousEnvironment

        env = self.environment
        if self.name != "c-scal-plus":
            raise InvalidArgumentError(
                "bins",
                self.bins,
                "a number, or auto",
                problem=f'bins = "{DOUBLING}" is for c-scal-plus, not {self.name}',
            )
        if not isinstance(env, ContinuousEnvironment):
            return {"box": env.observation_space}
        return {"dim": env.dim, "lipschitz": env.lipschitz, "holder": env.holder}


def own_span(env: Any) -> float | None:
    """sp(h*) of a model that can be solved, or None."""
    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.environments.continuous.oracle import oracle_gain
    from gainful.mdp.model import MDP
    from gainful.planning.solve import solve

    if isinstance(env, MDP):
        return solve(env).span
    if isinstance(env, ContinuousEnvironment) and env.has_oracle:
        return oracle_gain(env).span
    return None


def _is_discrete(env: Any) -> bool:
    space = getattr(env, "observation_space", None)
    return type(space).__name__ == "Discrete"


def partition_of(env: gymnasium.Env[Any, Any], bins: int, seed: int) -> tuple[Partition, str]:
    """Cells for the observations of a Gymnasium environment; without bounds they cover what random steps reach.

    The second part says so if it has no bounds, and is empty otherwise.
    """
    import numpy as np
    from gymnasium import spaces

    from gainful.partition import Partition

    space = env.observation_space
    if not isinstance(space, spaces.Box) or len(space.shape) > 1:
        raise InvalidArgumentError(
            "observation_space",
            space,
            "a Box with one axis or a Discrete space",
            "gymnasium.wrappers can flatten it",
            problem=f"{env.spec.id if env.spec else env} has the observation space {space}",
        )
    low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)).copy() for end in (space.low, space.high))
    open_axes = np.flatnonzero((low < -1e30) | (high > 1e30))
    if not open_axes.size:
        return Partition.from_box(space, bins), ""
    seen = [np.atleast_1d(env.reset(seed=seed)[0])]
    env.action_space.seed(seed)
    for _ in range(EXPLORATORY_STEPS):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(np.atleast_1d(observation))
        if terminated or truncated:
            env.reset()
    points = np.array(seen, dtype=np.float64)
    for i in open_axes:
        low[i], high[i] = points[:, i].min(), points[:, i].max()
        if low[i] == high[i]:
            low[i], high[i] = low[i] - 1.0, high[i] + 1.0
    ranges = "; ".join(f"axis {i} from {low[i]:.3g} to {high[i]:.3g}" for i in open_axes)
    note = (
        f"the environment has no bounds: cells cover what {EXPLORATORY_STEPS:,} random steps reached ({ranges}); "
        "states beyond belong to the outermost cells"
    )
    return Partition.from_box(space, bins, low=low, high=high, outside="clip"), note


def name_of(environment: MDP | Any, source: str) -> str:
    """The environment's name in output."""
    return str(getattr(environment, "name", "") or source)
