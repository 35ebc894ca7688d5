"""UCBVI-CH: optimistic backward induction over H steps (Azar, Osband & Munos, ICML 2017), in a continuing task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.saved_arrays import check_saved
from gainful.agents.sets import SetConstants, Sums, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import number_of, positive_scale
from gainful.machine import check_memory
from gainful.mdp.model import MDP
from gainful.optimism.ucbvi import bonus, confidence_log
from gainful.planning.finite_horizon import finite_horizon_value_iteration


@kernel
def rewards_with_bonus(
    sums: Sums, episode_length: int, horizon: int, constants: SetConstants, bonuses: NDArray[Any], out: NDArray[Any]
) -> None:
    """r̄ + b for every pair; H·r_max, the cap of all values, where N = 0."""
    sums, c = Sums(*sums), SetConstants(*constants)
    log_term = confidence_log(c.n_states, c.n_actions, horizon, c.delta)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        bonuses[k] = bonus(log_term, episode_length, n, c.reward_max, c.scale)
        out[k] = sums.rewards[k] / n + bonuses[k] if n > 0 else episode_length * c.reward_max


class UCBVI(EpisodicAgent):
    r"""UCBVI-CH (Azar, Osband & Munos 2017): optimistic backward induction over blocks of H steps.

    Every H steps, whatever the current state, it plans the next H steps by backward induction,
    Q_h(s,a) = min{ r̄ + b + p̄·V_{h+1}, H·r_max }, b = 7·H·r_max·ln(5SAT/δ)/√N; H·r_max where N = 0. `bonus_scale`
    multiplies b. The published minimum with the Q_h of the previous plan is left out (it would need H·S·A numbers).
    Ties go to the lowest action; while b is so large that all values are cut (`vacuous`), it plays action 0.

    The policy depends on the step h. An episode of this agent is one block of H steps; inside it the plan in force
    changes whenever the actions of step h differ from those of step h - 1, without planning and without a record.
    The gain recorded lies in [min V_0, max V_0]/H, the optimistic reward per step of one block: an estimate, which
    brackets no gain of a continuing process.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    episode_length : int
        H, the number of steps planned at once.
    horizon : float
        T, the number of steps that the agent will run for.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    bonus_scale : float
        Multiplies b.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.UCBVI(n_states=2, n_actions=2, episode_length=10, horizon=1000)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        episode_length: int,
        horizon: float,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        bonus_scale: float = 1.0,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        self.episode_length = number_of("steps", "episode_length", episode_length)
        table = f"the actions of {self.episode_length:,} steps in {self.n_states:,} states"
        check_memory("episode_length", self.episode_length, 24.0 * self.episode_length * self.n_states, table)
        self.horizon = number_of("steps", "horizon", horizon)
        self.bonus_scale = positive_scale("bonus_scale", bonus_scale)
        self._table: NDArray[np.int64] = np.empty((0, self.n_states), dtype=np.int64)
        """(H,S) the actions of the present block, from step `_block` + 1 on; empty before the first plan."""
        self._block = 0

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "episode_length": self.episode_length,
            "horizon": self.horizon,
            "bonus_scale": self.bonus_scale,
        }

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The actions of the present block, and when it began."""
        return {"table": self._table, "block": np.array([self._block])}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the present block."""
        length = self.episode_length if self.current is not None else 0
        actions = np.empty((length, self.n_states), dtype=np.int64)
        check_saved(arrays, "table", actions, low=0, high=self.n_actions - 1)
        check_saved(arrays, "block", np.empty(1, dtype=np.int64), low=0, high=self.t)
        self._table, self._block = arrays["table"].copy(), int(arrays["block"][0])

    @property
    def guarantee(self) -> Guarantee:
        """None in a continuing task."""
        return Guarantee(
            bound="none",
            assumptions=(),
            source="Azar, Osband & Munos 2017",
            reason_void=f"UCBVI's theorem needs a restart after every H = {self.episode_length} steps and bounds "
            "regret against H-step values; a continuing task has no restart",
        )

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data: the value of every state was cut at H·r_max."""
        if self.current is None:
            return True
        return bool(self.current.values.min() >= self.episode_length * self.reward_range)

    def begin_episode(self, plan: EpisodePlan | None = None, seconds: float = 0.0) -> None:
        """Begin a new block if the present one is over; otherwise switch to the actions of the next steps."""
        h = self.t - self._block
        if plan is not None or self.current is None or h >= self.episode_length:
            super().begin_episode(plan, seconds)
        else:
            self.current = replace(self.current, actions=self._table[h], last_step=self._last_step(h))
            self.interrupted = False

    def _last_step(self, h: int) -> int:
        """The last step (from 1) to which the actions of step h of the block apply."""
        differs = np.flatnonzero((self._table[h:] != self._table[h]).any(axis=1))
        return self._block + (h + int(differs[0]) if differs.size else self.episode_length)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Backward induction over the next H steps; the plan of its first steps."""
        S, A, pairs, H = self.n_states, self.n_actions, statistics.visits.size, self.episode_length
        bonuses, r = np.empty(pairs), np.empty(pairs)
        constants = (S, A, self.delta, self.bonus_scale, self.reward_range)
        rewards_with_bonus(sums_of(statistics), H, self.horizon, constants, bonuses, r)
        # r = H·r_max alone puts an unvisited pair at the cap, wherever its row leads
        model = MDP.from_rows(*empirical_rows(statistics, self.allowed, 0), r.reshape(S, A))
        found = finite_horizon_value_iteration(model, H, value_cap=np.full(H, H * self.reward_range))
        self._table, self._block = found.actions.copy(), t - 1
        low, high = float(found.values[0].min()) - found.rounding, float(found.values[0].max()) + found.rounding
        return EpisodePlan(
            actions=self._table[0],
            gain_bounds=(low / H + self.reward_min, high / H + self.reward_min),
            values=found.values[0].copy(),
            sweeps=H,
            doubling=False,
            last_step=self._last_step(0),
            details={"bonus": bonuses.reshape(S, A), "rewards": r, "actions": self._table},
        )
