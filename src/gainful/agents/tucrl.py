"""TUCRL: UCRL2B for MDPs with states that can never be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.agents.ucrl2b import UCRL2B
from gainful.optimism.bernstein import well_visited


@kernel
def truncated_pairs(visits: NDArray[Any], n_states: int, n_actions: int, t: int, out: NDArray[Any]) -> None:
    """Mark the pairs that may not move to states never visited."""
    for k in range(visits.size):
        out[k] = well_visited(visits[k], n_states, n_actions, t)


class TUCRL(UCRL2B):
    r"""TUCRL (Fruit, Pirotta & Lazaric 2018): UCRL2B that stops planning for states it has never seen.

    A pair with max{1, N-1} > sqrt(t_k/(SA)) may not move to a state never visited, so that an unreachable state loses
    its attraction; when all pairs of the visited states are such, states never visited are left out of the plan
    altogether. Reaching a new state ends the episode. The sets are those of UCRL2B. With probability 1-δ the regret is
    Õ(r_max·D_C·sqrt(Γ_C·S_C·A·T)) in a weakly communicating MDP, C its communicating part, started inside C.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies every radius and width. The guarantee holds for 1 only.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.TUCRL(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        return Guarantee(
            bound=f"regret Õ(r_max·D_C·sqrt(Γ_C·S_C·A·T)) with probability {1 - self.delta:g}",
            assumptions=("the MDP is weakly communicating", "the start lies in its communicating part C"),
            source="Fruit, Pirotta & Lazaric 2018, theorem on TUCRL",
            reason_void=self.scaled,
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

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the truncated intervals, to precision r_max/√t."""
        known = self.visited.copy() if self.visited.any() else np.ones(self.n_states, dtype=bool)
        found = self.intervals(statistics, filler=int(np.argmax(known)))
        models = self.interval_models(*found, reachable=known, truncated=self.truncation(statistics, t))
        return self.plan_over(models, t, stop_on_new_state=True)
