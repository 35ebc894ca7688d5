"""Opt-PSRL: the best of many posterior samples per pair (Agrawal & Jia, NeurIPS 2017)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.psrl import PSRL_MAX_SWEEPS, check_size, dense_counts, sample_transitions
from gainful.agents.sets import SetConstants, Sums, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, number_of
from gainful.errors import MultichainError
from gainful.mdp.model import MDP
from gainful.planning.solve import solve
from gainful.rng import planning_generator

REDRAWS = 100
"""Models drawn for one episode, at most, until one has a gain that does not depend on the start."""


@kernel
def n_samples(n_states: int, n_actions: int, delta: float) -> int:
    """ψ = ⌈S·ln(SA/δ)⌉."""
    return math.ceil(n_states * math.log(n_states * n_actions / delta))


@kernel
def sharpness(horizon: int, delta: float) -> float:
    """ω = κ = ln(T/δ)."""
    return math.log(horizon / delta)


@inlined
def threshold(horizon: int, n_states: int, n_actions: int, omega: float) -> float:
    """η = sqrt(TS/A) + 12ωS², the visits from which the posterior is sampled; 12ωS² is not verified."""
    return math.sqrt(horizon * n_states / n_actions) + 12.0 * omega * n_states * n_states


@inlined
def lower_probability(p: float, visits: int, log_term: float) -> float:
    """p⁻ = p̄ - min{sqrt(3p̄·ln(4S)/N) + 3·ln(4S)/N, p̄}; 0 if N = 0."""
    n = max(1, visits)
    return p - min(math.sqrt(3.0 * p * log_term / n) + 3.0 * log_term / n, p)


@kernel
def lower_rows(counts: NDArray[Any], visits: NDArray[Any], out: NDArray[Any]) -> None:
    """p⁻ of every pair, (S*A, S)."""
    log_term = math.log(4.0 * counts.shape[1])
    for k in range(visits.size):
        for i in range(counts.shape[1]):
            out[k, i] = lower_probability(counts[k, i] / max(1, visits[k]), visits[k], log_term)


@kernel
def optimistic_means(sums: Sums, horizon: int, constants: SetConstants, out: NDArray[Any]) -> None:
    """min{ r̄ + r_max·sqrt(ln(SAT/δ)/(2N)), r_max }, r_max where N = 0 (Hoeffding, all pairs and visits at once)."""
    sums, c = Sums(*sums), SetConstants(*constants)
    log_term = math.log(float(c.n_states) * c.n_actions * horizon / c.delta)
    for k in range(sums.visits.size):
        n = max(1, sums.visits[k])
        upper = sums.rewards[k] / n + c.reward_max * math.sqrt(log_term / (2.0 * n))
        out[k] = min(upper, c.reward_max) if sums.visits[k] > 0 else c.reward_max


class OptPSRL(PlanningAgent):
    r"""Opt-PSRL (Agrawal & Jia 2017): the best policy over many posterior samples per pair.

    Each doubling episode draws ψ = ⌈S·ln(SA/δ)⌉ rows for every pair and plans, to precision r_max/√t_k, on the MDP
    whose actions are (action, sample). With ω = κ = ln(T/δ), a pair with N ≥ η = sqrt(TS/A) + 12ωS² visits draws from
    Dirichlet((counts + ω)/κ); one with fewer gives p⁻ + (1 - Σp⁻)·1_i, i uniform,
    p⁻ = p̄ - min{sqrt(3p̄·ln(4S)/N) + 3·ln(4S)/N, p̄}. `samples` replaces ψ.

    The paper takes mean rewards as known; here they are min{r̄ + r_max·sqrt(ln(SAT/δ)/(2N)), r_max}. Should a drawn
    MDP have a gain that depends on the start (small S and ψ only), it is drawn again.

    Of the constants, ω, κ, ψ and p⁻ agree with the texts at hand; η's second term could not be verified: it is 12ωS²
    here, while another public implementation has S⁴ in the place of S².

    **No guarantee.** The bound of the published paper, better than UCRL2's by a factor √S, was withdrawn by its
    authors; the agent is here for comparison.

    Planning works on S²Aψ numbers; more than `psrl.MAX_ENTRIES` = 2²³ raise an error.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    horizon : float
        T, the number of steps that the agent will run for.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    samples : int, optional
        ψ, the rows drawn for each pair; by default ⌈S·ln(SA/δ)⌉.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.OptPSRL(n_states=2, n_actions=2, horizon=1000)
    >>> agent.samples
    9
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        horizon: float,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        samples: int | None = None,
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
        self.horizon = number_of("steps", "horizon", horizon)
        formula = max(1, n_samples(self.n_states, self.n_actions, self.delta))
        self.samples = formula if samples is None else number_of("samples", "samples", samples)
        """ψ, the rows drawn for each pair."""
        self.omega = float(sharpness(self.horizon, self.delta))
        self.threshold = float(threshold(self.horizon, self.n_states, self.n_actions, self.omega))
        """η, the visits from which a pair's rows come from the posterior."""
        check_size("Opt-PSRL", self.n_states**2 * self.n_actions * self.samples, "S²Aψ")

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "horizon": self.horizon, "samples": self.samples}

    @property
    def guarantee(self) -> Guarantee:
        """No guarantee: the published bound was withdrawn."""
        return Guarantee(
            bound="none",
            assumptions=(),
            source="Agrawal & Jia 2017",
            reason_void="the published bound Õ(D·sqrt(S·A·T)) was withdrawn by its authors",
        )

    @property
    def vacuous(self) -> bool:
        """Whether the next plan's transitions would ignore the data: p⁻ = 0 for every pair."""
        lower, known = self._evidence(self.statistics, dense_counts(self.statistics))
        return not (known.any() or lower.any())

    def _evidence(
        self, statistics: Statistics, counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(S*A, S) p⁻, and (S*A,) which pairs have the visits to sample the posterior."""
        lower = np.empty_like(counts)
        lower_rows(counts, statistics.visits, lower)
        return lower, statistics.visits >= self.threshold

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """The optimal policy of the MDP of all samples."""
        S, A, psi = self.n_states, self.n_actions, self.samples
        counts = dense_counts(statistics)
        lower, known = self._evidence(statistics, counts)
        r = np.empty(S * A)
        constants = (S, A, self.delta, 1.0, self.reward_range)
        optimistic_means(sums_of(statistics), self.horizon, constants, r)
        rewards = np.repeat(r.reshape(S, A), psi, axis=1)
        rng = planning_generator(self.seed, len(self.records))
        for attempt in range(REDRAWS):
            rows = self.sample_rows(counts, lower, known, rng)
            model = MDP(
                rows.reshape(S, A * psi, S),
                rewards,
                allowed=np.repeat(self.allowed, psi, axis=1),
            )
            try:
                found = solve(
                    model,
                    precision=self.reward_range / math.sqrt(t),
                    max_sweeps=PSRL_MAX_SWEEPS,
                    threads=1,
                    start_values=None if self.current is None else self.current.values,
                )
                break
            except MultichainError:
                if attempt == REDRAWS - 1:
                    raise
        assert found.actions is not None
        low, high = found.gain_bounds
        shown = {} if self.on_episode is None else {"rows": rows, "attempts": attempt + 1}
        return EpisodePlan(
            actions=found.actions // psi,
            gain_bounds=(low + self.reward_min, high + self.reward_min),
            values=found.bias,
            sweeps=found.sweeps,
            multiplier=self.multiplier(t, float(np.ptp(found.bias))),
            details={"rewards": r, "samples": found.actions % psi, **shown},
        )

    def sample_rows(
        self,
        counts: NDArray[np.float64],
        lower: NDArray[np.float64],
        known: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Draw ψ transition rows for each pair.

        A row comes from the posterior where the pair is `known`. Otherwise it is p⁻, with the missing mass on one state
        drawn at random.

        Parameters
        ----------
        counts : ndarray of shape (S*A, S)
            N(s,a,s').
        lower : ndarray of shape (S*A, S)
            p⁻, the lower bounds of the probabilities.
        known : ndarray of bool, shape (S*A,)
            The pairs with enough visits to sample the posterior.
        rng : Generator
            The source of randomness.

        Returns
        -------
        ndarray of shape (S*A, ψ, S)
            The rows.
        """
        psi = self.samples
        rows = np.repeat(lower[:, None, :], psi, axis=1)
        lucky = rng.integers(self.n_states, size=(known.size, psi))
        missing = np.maximum(1.0 - lower.sum(axis=1), 0.0)
        rows[np.arange(known.size)[:, None], np.arange(psi), lucky] += missing[:, None]
        if known.any():
            scaled = np.repeat(counts[known][:, None, :], psi, axis=1) / self.omega
            rows[known] = sample_transitions(scaled, 1.0, rng)  # (counts + ω)/κ with ω = κ
        return rows
