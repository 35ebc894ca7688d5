"""TUCRL: optimism over Bernstein sets for MDPs with states that can never be reached."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import PlausibleModels
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes
from gainful.agents.scal import scal_sets
from gainful.agents.sets import SIMPLEX, SetConstants, empty_intervals, sums_of
from gainful.agents.statistics import Statistics
from gainful.agents.ucrl2b import UCRL2B
from gainful.arguments import AddedLater, choice
from gainful.optimism.bernstein import entry_variance, well_visited
from gainful.optimism.scal import log_term, width
from gainful.planning.confidence import L1Ball

TUCRLBounds = Literal["published", "ucrl2b"]
NO_SPAN = np.inf
"""The c of SCAL's sets at which they keep no mass on s̄."""


@kernel
def truncated_pairs(visits: NDArray[Any], n_states: int, n_actions: int, t: int, out: NDArray[Any]) -> None:
    """Mark the pairs that may not move to states never visited."""
    for k in range(visits.size):
        out[k] = well_visited(visits[k], n_states, n_actions, t)


@kernel
def relaxed_radii(
    rows: EmpiricalRows, visits: NDArray[Any], t: int, constants: SetConstants, out: NDArray[Any]
) -> None:
    """Σ_{s'} β(s,a,s') over all S next states, cut at 2; 2 if N = 0."""
    rows, c = EmpiricalRows(*rows), SetConstants(*constants)
    log = log_term(c.n_states, c.n_actions, t, c.delta)
    for k in range(visits.size):
        n = visits[k]
        if n == 0:
            out[k] = SIMPLEX
            continue
        listed = rows.indptr[k + 1] - rows.indptr[k]
        total = (c.n_states - listed) * width(0.0, log, n, 1.0, c.scale)
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            total += width(entry_variance(rows.p[j]), log, n, 1.0, c.scale)
        out[k] = min(SIMPLEX, total)


class TUCRL(UCRL2B):
    r"""TUCRL (Fruit, Pirotta & Lazaric 2018): optimism that gives up states it has never seen.

    r and each p(s') lie within β = sqrt(14σ̂²b/N⁺) + (49/3)·range·b/max{1,N-1} of the estimate, b = ln(2SAt_k/δ). A
    pair with max{1, N-1} > sqrt(t_k/(SA)) may not move to a state never visited, so that an unreachable state loses
    its attraction; when all pairs of the visited states are such, states never visited are left out of the plan
    altogether. While there are states never visited, plans use the larger ball ‖p̃ - p̄‖₁ ≤ Σ_{s'} β(s,a,s') in place
    of the intervals. Reaching a new state ends the episode. With probability 1-δ the regret is
    Õ(r_max·D_C·sqrt(Γ_C·S_C·A·T)) in a weakly communicating MDP, C its communicating part, started inside C.

    `bounds="ucrl2b"` has the narrower intervals of UCRL2B instead, always, which no theorem covers; agents saved by
    versions without this parameter have them.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies every radius and width. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.
    bounds : {"published", "ucrl2b"}
        The sets: those of the published algorithm, or the intervals of UCRL2B, without a guarantee.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.TUCRL(n_states=2, n_actions=2)
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
        width_scale: float = 1.0,
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
        bounds: Annotated[TUCRLBounds, AddedLater("ucrl2b")] = "published",
    ) -> None:
        super().__init__(
            n_states,
            n_actions,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            width_scale=width_scale,
            episodes=episodes,
        )
        self.bounds = choice("bounds", bounds, ("published", "ucrl2b"))

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "bounds": self.bounds}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if its sets or constants were changed."""
        other = "bounds are UCRL2B's, which are narrower than the theorem's" if self.bounds == "ucrl2b" else ""
        order = self.order_with_episodes("r_max·D_C·sqrt(Γ_C·S_C·A·T)", "r_max·D_C")
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - self.delta:g}",
            assumptions=("the MDP is weakly communicating", "the start lies in its communicating part C"),
            source=self.source_with_episodes("Fruit, Pirotta & Lazaric 2018, theorem on TUCRL"),
            reason_void=other or self.scaled,
        )

    def truncation(self, statistics: Statistics, t: int) -> NDArray[np.bool_]:
        """Find the pairs that may not move to states never visited; none before the first step.

        If no pair of a visited state may, no pair may at all; otherwise the states never visited would be a second
        closed class, with a gain of their own.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.
        t : int
            The number of the episode's first step, from 1.

        Returns
        -------
        ndarray of bool, shape (S, A)
            True if the pair is restricted to visited states.
        """
        marks = np.zeros(statistics.visits.size, dtype=bool)
        if self.visited.any():
            truncated_pairs(statistics.visits, self.n_states, self.n_actions, t, marks)
        table = marks.reshape(self.n_states, self.n_actions)
        if self.visited.any() and np.all(table[self.visited] | ~self.allowed[self.visited]):
            table[:] = True
        return table

    def published_models(
        self, statistics: Statistics, t: int, known: NDArray[np.bool_], truncated: NDArray[np.bool_]
    ) -> PlausibleModels:
        """Give the models of the published sets: intervals, or ℓ₁ balls while there are states never visited.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.
        t : int
            The number of the episode's first step, from 1.
        known : ndarray of bool, shape (S,)
            The states that truncated pairs may move to.
        truncated : ndarray of bool, shape (S, A)
            The pairs that may not move to others.

        Returns
        -------
        PlausibleModels
            What `plan_over` plans over.
        """
        rows = empirical_rows(statistics, self.allowed, int(np.argmax(known)))
        found = empty_intervals(statistics.visits.size, rows.p.size)
        scal_sets(tuple(rows), sums_of(statistics), t, NO_SPAN, self.set_constants, tuple(found))
        if self.visited.all():
            return self.interval_models(rows, found, reachable=known, truncated=truncated)
        radius = np.empty(statistics.visits.size)
        relaxed_radii(tuple(rows), statistics.visits, t, self.set_constants, radius)
        ball = L1Ball(radius.reshape(self.n_states, self.n_actions), reachable=known, truncated=truncated)
        return PlausibleModels(rows, ball, found.rewards, radius >= SIMPLEX)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the truncated sets, to precision r_max/√t."""
        known = self.visited.copy() if self.visited.any() else np.ones(self.n_states, dtype=bool)
        truncated = self.truncation(statistics, t)
        if self.bounds == "published":
            models = self.published_models(statistics, t, known, truncated)
        else:
            found = self.intervals(statistics, filler=int(np.argmax(known)))
            models = self.interval_models(*found, reachable=known, truncated=truncated)
        return self.plan_over(models, t, stop_on_new_state=True)
