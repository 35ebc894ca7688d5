"""PSRL: plan in an MDP drawn from the posterior, in the episodes of TSDE (Ouyang et al., NeurIPS 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.mdp.model import MDP
from gainful.planning.solve import solve
from gainful.rng import planning_generator

MAX_ENTRIES = 1 << 23
"""Probabilities a sampled model may hold (64 MiB): S²A for PSRL, S²A times the number of samples for Opt-PSRL."""
PSRL_MAX_SWEEPS = 100_000


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
    """Rows from Dirichlet(prior + counts), one for each row of `counts` (…, S): normalised Gamma variables."""
    rows = rng.standard_gamma(prior + counts)
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


class PSRL(EpisodicAgent):
    r"""PSRL in the episodes of TSDE (Ouyang et al. 2017): plans in one MDP drawn from the posterior.

    Episode k plans in one MDP drawn from the posterior, to precision r_max/√t_k: rows from
    Dirichlet(`transition_prior` + counts), mean rewards from r_max·Beta(`reward_prior` + Σr/r_max,
    `reward_prior` + N - Σr/r_max). Both priors are 1 (uniform) by default. The Beta posterior is exact for rewards in
    {0, r_max}; for others in between it is the usual substitute, with the right mean and at least the right width.

    Episodes are those of TSDE (Ouyang, Gagrani, Nayyar & Jain 2017): the k-th lasts at most T_{k-1} + 1 steps
    (T_0 = 1), and ends earlier when visits have doubled. TSDE ends after the visit that makes N > 2·N_k; here, as for
    all agents with doubling episodes, the episode ends before a pair is executed more than max{1, N_k} times.

    A sampled row has no zeros, so planning works on S²A numbers; more than `MAX_ENTRIES` = 2²³ raise an error.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    transition_prior, reward_prior : float
        The parameters of the Dirichlet and Beta priors, at least 0.1; 1 is uniform.

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
        transition_prior: float = 1.0,
        reward_prior: float = 1.0,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        for name, prior in (("transition_prior", transition_prior), ("reward_prior", reward_prior)):
            if not (finite(prior) and prior >= 0.1):  # below, all Gamma variables of a row may underflow to 0
                raise InvalidArgumentError(name, prior, "a number of at least 0.1", "1 is uniform")
        check_size("PSRL", self.n_states**2 * self.n_actions, "S²A")
        self.transition_prior, self.reward_prior = float(transition_prior), float(reward_prior)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "transition_prior": self.transition_prior,
            "reward_prior": self.reward_prior,
        }

    @property
    def guarantee(self) -> Guarantee:
        """TSDE's theorem, and why it does not quite cover this agent."""
        return Guarantee(
            bound="Bayesian regret Õ(H·S·sqrt(A·T)), in expectation over the prior",
            assumptions=("the MDP is a draw from the prior", "every MDP of the prior has sp(h*) at most H"),
            source="Ouyang, Gagrani, Nayyar & Jain 2017, theorem 1",
            reason_void="TSDE's theorem needs a prior whose MDPs all have bias spans below one bound; "
            "Dirichlet rows have none",
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """The optimal policy of one MDP of the posterior; at most one step longer than the episode before."""
        shape = (self.n_states, self.n_actions)
        rng = planning_generator(self.seed, len(self.records))
        p = sample_transitions(dense_counts(statistics), self.transition_prior, rng)
        r = sample_mean_rewards(
            statistics.visits, statistics.reward_sum, self.reward_range, self.reward_prior, rng
        ).reshape(shape)
        found = solve(
            MDP(p.reshape(*shape, self.n_states), r, allowed=self.allowed),
            precision=self.reward_range / math.sqrt(t),
            max_sweeps=PSRL_MAX_SWEEPS,
            threads=1,
            start_values=None if self.current is None else self.current.values,
        )
        assert found.actions is not None
        low, high = found.gain_bounds
        previous = self.records[-1][0] if self.records else 0  # t_{k-1}; 0 makes T_0 = 1
        return EpisodePlan(
            actions=found.actions.copy(),
            gain_bounds=(low + self.reward_min, high + self.reward_min),
            values=found.bias,
            sweeps=found.sweeps,
            last_step=t + (t - previous),
            details={"transitions": p.reshape(*shape, self.n_states), "rewards": r},
        )
