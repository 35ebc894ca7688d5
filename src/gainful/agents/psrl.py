"""PSRL: plan in an MDP drawn from the posterior, in the episodes of TSDE (Ouyang et al., NeurIPS 2017)."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.posterior_planning import DrawnModel, empty_model, plan_on_sample, write_rows
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, DefaultWas, choice, finite
from gainful.errors import InvalidArgumentError, MultichainError, NotConvergedError, PrecisionError, TooLargeError
from gainful.mdp.model import MDP
from gainful.planning.plan import Plan
from gainful.planning.solve import solve
from gainful.rng import Role, mixed_key, planning_generator, stream_key

MAX_ENTRIES = 1 << 23
"""Probabilities a sampled model may hold (64 MiB): S²A for PSRL, S²A times the number of samples for Opt-PSRL."""
PSRL_MAX_SWEEPS = 100_000
QUICK_SWEEPS = 3_000
"""Sweeps in a model drawn as needed, after which all of it is drawn and handed to `solve`."""
LOG_BELOW = 0.1
"""The prior below which Gamma variables are drawn as logarithms: all of a row's might underflow to 0."""

Sampler = Literal["compiled", "numpy"]


def check_size(agent: str, entries: int, formula: str) -> None:
    """Refuse a sampled model that would be too large; it has no zeros, so no sparse form helps."""
    if entries > MAX_ENTRIES:
        raise TooLargeError(
            f"{agent} draws models of {formula} = {entries} probabilities",
            found=entries,
            expected=f"at most {MAX_ENTRIES}",
            hint="agents that plan on what was seen (SCAL+) have no such limit",
        )


def dense_counts(statistics: Statistics) -> NDArray[np.float64]:
    """(S*A, S) transition counts."""
    table = np.zeros((statistics.visits.size, statistics.n_states))
    seen = statistics.to_arrays()
    table[np.repeat(np.arange(statistics.visits.size), seen["length"]), seen["next_state"]] = seen["count"]
    return table


def sample_transitions(counts: NDArray[np.float64], prior: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows from Dirichlet(prior + counts), one for each row of `counts` (…, S): normalised Gamma variables.

    If prior < 0.1 they are drawn as logarithms: ln Gamma(a) is ln Gamma(a + 1) + ln U/a.
    """
    if prior >= LOG_BELOW:
        rows = rng.standard_gamma(prior + counts)
    else:
        shape = prior + counts
        logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
        rows = np.exp(logs - logs.max(axis=-1, keepdims=True))
    rows /= rows.sum(axis=-1, keepdims=True)
    return rows


def sample_mean_rewards(
    visits: NDArray[np.int64],
    reward_sum: NDArray[np.float64],
    reward_max: float,
    prior: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """r_max·Beta(prior + Σr/r_max, prior + N - Σr/r_max) for every pair, r in [0, r_max]."""
    successes = np.minimum(reward_sum / reward_max, visits)  # rounding may put the sum above N·r_max
    return reward_max * rng.beta(prior + successes, prior + (visits - successes))


class PSRL(PlanningAgent):
    r"""PSRL in the episodes of TSDE (Ouyang et al. 2017): plans in one MDP drawn from the posterior.

    Episode k plans in one MDP drawn from the posterior, to precision r_max/√t_k: rows from
    Dirichlet(`transition_prior` + counts), mean rewards from r_max·Beta(`reward_prior` + Σr/r_max,
    `reward_prior` + N - Σr/r_max). By default the prior of a row is Dirichlet(1/S, …, 1/S), which weighs as much as one
    observation: it learns faster where pairs lead to few states, and a uniform prior may not learn at all on a long
    river. That of a reward is uniform. The Beta posterior is exact for rewards in {0, r_max}; for others in between it
    is the usual substitute, with the right mean and at least the right width.

    Episodes are those of TSDE (Ouyang, Gagrani, Nayyar & Jain 2017): the k-th lasts at most T_{k-1} + 1 steps
    (T_0 = 1), and ends earlier when visits have doubled. TSDE ends after the visit that makes N > 2·N_k; here, as for
    all agents with doubling episodes, the episode ends before a pair is executed more than max{1, N_k} times.

    The probabilities of states that a pair was never seen to lead to are drawn only as far as the plan depends on them
    (`gainful.agents.posterior_planning`), which does not change their law. A model in which some states are all but
    cut off from others may have no certified plan; its best policy so far is then used, with the wide bracket that it
    has. A complete sample has no zeros, S²A numbers; more than `MAX_ENTRIES` = 2²³ raise an error.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    transition_prior : float, optional
        The parameter of the Dirichlet prior, above 0; 1 is uniform, and 1/S the default.
    reward_prior : float
        The parameter of the Beta prior, at least 0.1; 1 is uniform.
    sampler : {"compiled", "numpy"}
        "numpy" draws complete models with NumPy, as all versions without this parameter did: the same law, other bits,
        and much slower.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.PSRL(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        transition_prior: Annotated[float | None, DefaultWas(1.0)] = None,
        reward_prior: float = 1.0,
        sampler: Annotated[Sampler, AddedLater("numpy")] = "compiled",
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
    ) -> None:
        super().__init__(
            n_states,
            n_actions,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            episodes=episodes,
        )
        prior = 1.0 / self.n_states if transition_prior is None else transition_prior
        if not (finite(prior) and prior > 0.0):
            raise InvalidArgumentError("transition_prior", prior, "a number above 0", "1 is uniform, 1/S the default")
        if not (finite(reward_prior) and reward_prior >= LOG_BELOW):
            raise InvalidArgumentError("reward_prior", reward_prior, "a number of at least 0.1", "1 is uniform")
        check_size("PSRL", self.n_states**2 * self.n_actions, "S²A")
        self.transition_prior, self.reward_prior = float(prior), float(reward_prior)
        self.sampler = choice("sampler", sampler, ("compiled", "numpy"))
        self._planning_key = stream_key(self.seed, Role.PLANNING)
        self._model: DrawnModel | None = None  # room to draw in

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "transition_prior": self.transition_prior,
            "reward_prior": self.reward_prior,
            "sampler": self.sampler,
        }

    @property
    def guarantee(self) -> Guarantee:
        """TSDE's theorem, and why it does not quite cover this agent."""
        shorter = "" if self.is_doubling else "; nor is the number of shorter episodes of order sqrt(T)"
        return Guarantee(
            bound="Bayesian regret Õ(H·S·sqrt(A·T)), in expectation over the prior",
            assumptions=("the MDP is a draw from the prior", "every MDP of the prior has sp(h*) at most H"),
            source="Ouyang, Gagrani, Nayyar & Jain 2017, theorem 1",
            reason_void="TSDE's theorem needs a prior whose MDPs all have bias spans below one bound; "
            f"Dirichlet rows have none{shorter}",
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """The optimal policy of one MDP of the posterior; at most one step longer than the episode before."""
        if self.sampler == "numpy":
            return self._plan_on_complete_sample(statistics, t)
        return self._plan_on_lazy_sample(statistics, t)

    def posterior(self, statistics: Statistics) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Give the data and the law of the next model, for kernels.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.

        Returns
        -------
        counts : tuple
            The fields of `PosteriorCounts`, in order. The arrays are those of `statistics` and not copies.
        law : tuple
            The fields of `PosteriorLaw`, in order.
        """
        s = statistics
        counts = (s.begin, s.length, s.next_state, s.count, s.visits, s.reward_sum, self.allowed.reshape(-1))
        key = mixed_key(self._planning_key, len(self.records))
        return counts, (
            self.n_states,
            self.n_actions,
            self.transition_prior,
            self.reward_prior,
            self.reward_range,
            key,
        )

    def _plan_on_lazy_sample(self, statistics: Statistics, t: int) -> EpisodePlan:
        counts, law = self.posterior(statistics)
        if self._model is None:
            self._model = empty_model(self.n_states, self.n_actions)
        model = self._model
        values = np.zeros(self.n_states) if self.current is None else self.current.values.copy()
        actions = np.empty(self.n_states, dtype=np.int64)
        precision = self.reward_range / math.sqrt(t)
        low, high, sweeps, narrow = plan_on_sample(counts, law, precision, QUICK_SWEEPS, tuple(model), values, actions)
        if not narrow:
            rows = np.empty((statistics.visits.size, self.n_states))
            write_rows(law, tuple(model), rows)
            try:
                found = self._solve(rows, np.where(np.isfinite(model.rewards), model.rewards, 0.0), t, values)
                assert found.actions is not None
                actions, values, (low, high) = found.actions.copy(), found.bias, found.gain_bounds
                sweeps += found.sweeps
            except (NotConvergedError, PrecisionError, MultichainError):
                pass  # some states are all but cut off: the policy found is as good as any
        shown = {} if self.on_episode is None else {"sample": model, "completed": not narrow}
        return self._episode(actions, (low, high), values, sweeps, t, shown)

    def _solve(
        self, rows: NDArray[np.float64], rewards: NDArray[np.float64], t: int, start: NDArray[np.float64] | None
    ) -> Plan:
        shape = (self.n_states, self.n_actions)
        return solve(
            MDP(rows.reshape(*shape, self.n_states), rewards.reshape(shape), allowed=self.allowed),
            precision=self.reward_range / math.sqrt(t),
            max_sweeps=PSRL_MAX_SWEEPS,
            threads=1,
            start_values=start,
        )

    def _plan_on_complete_sample(self, statistics: Statistics, t: int) -> EpisodePlan:
        shape = (self.n_states, self.n_actions)
        rng = planning_generator(self.seed, len(self.records))
        p = sample_transitions(dense_counts(statistics), self.transition_prior, rng)
        r = sample_mean_rewards(statistics.visits, statistics.reward_sum, self.reward_range, self.reward_prior, rng)
        found = self._solve(p, r, t, None if self.current is None else self.current.values)
        assert found.actions is not None
        details = {"transitions": p.reshape(*shape, self.n_states), "rewards": r.reshape(shape)}
        return self._episode(found.actions.copy(), found.gain_bounds, found.bias, found.sweeps, t, details)

    def _episode(
        self,
        actions: NDArray[np.int64],
        bounds: tuple[float, float],
        values: NDArray[np.float64],
        sweeps: int,
        t: int,
        details: dict[str, Any],
    ) -> EpisodePlan:
        previous = self.records[-1][0] if self.records else 0  # t_{k-1}; 0 makes T_0 = 1
        return EpisodePlan(
            actions=actions,
            gain_bounds=(bounds[0] + self.reward_min, bounds[1] + self.reward_min),
            values=values,
            sweeps=sweeps,
            multiplier=self.multiplier(t, float(np.ptp(values))),
            last_step=t + (t - previous),
            details=details,
        )
