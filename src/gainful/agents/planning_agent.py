"""The base of agents whose episodes end when the visits of a pair have grown by a factor, and the rules for it."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from gainful.agents.episodic import EpisodicAgent
from gainful.arguments import choice

Episodes: TypeAlias = Literal["doubling", "vanishing", "vanishing-sqrt"]
"""The rules, by the name that `episodes` of an agent takes."""


def episode_multiplier(rule: str, t: int, n_pairs: int, most_span: float) -> float:
    """f_k of an episode that begins at step t; `most_span` is max_{j≤k} sp(v_j)/r_max.

    >>> [episode_multiplier(rule, 10_000, 12, 3.0) for rule in ("doubling", "vanishing")]
    [1.0, 0.06]
    """
    if rule == "doubling" or t < 2:
        return 1.0
    if rule == "vanishing-sqrt":
        return math.sqrt(math.log(t) / t)
    return min(1.0, math.sqrt(n_pairs * max(1.0, most_span) / t))


class PlanningAgent(EpisodicAgent):
    """An agent with a choice of how long its episodes are; a subclass implements `plan`.

    Episode k ends before a pair would be executed more than max{1, ⌊f_k·N_k⌋} times in it. "doubling": f_k = 1.
    "vanishing": f_k = min{1, sqrt(SA·Ĥ_k/t_k)}, Ĥ_k = max{1, max_{j≤k} sp(v_j)/r_max}. "vanishing-sqrt":
    f_k = sqrt(ln t_k/t_k) (Boone & Gaujal 2025). Shorter episodes make more plans and act on them sooner. Of a proof
    for doubling episodes they change the number of episodes only (docs/kl_scal_plus.md, "Shorter episodes").

    Parameters
    ----------
    n_states, n_actions, reward_max, reward_min, delta, seed, allowed
        As for `EpisodicAgent`.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes.
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
        episodes: Episodes = "doubling",
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        self.episode_rule = choice("episodes", episodes, ("doubling", "vanishing", "vanishing-sqrt"))
        """The rule that ends episodes."""
        self._recorded_span, self._n_recorded = 0.0, 0  # the largest span of so many records

    def multiplier(self, t: int, span: float) -> float:
        """Compute f_k, which the plan of an episode carries.

        Parameters
        ----------
        t : int
            The number of the episode's first step, from 1.
        span : float
            The span of the values of its plan, in units of reward.

        Returns
        -------
        float
            A number in (0, 1].

        Examples
        --------
        >>> import gainful as gf
        >>> gf.UCRL2(6, 2, episodes="vanishing").multiplier(10_000, span=3.0)
        0.06
        """
        if self.episode_rule != "vanishing":
            return episode_multiplier(self.episode_rule, t, 0, 0.0)
        return episode_multiplier("vanishing", t, self.n_states * self.n_actions, self._most_span_with(span))

    def _most_span_with(self, span: float) -> float:
        """max_{j≤k} sp(v_j)/r_max: of all episodes recorded, and of one more."""
        new = self.records.array["span"][self._n_recorded :]
        self._recorded_span = max(self._recorded_span, float(new.max(initial=0.0)))
        self._n_recorded += new.size
        return max(self._recorded_span, span) / self.reward_range

    @property
    def is_doubling(self) -> bool:
        """Whether episodes end when the visits of a pair have doubled, as in most theorems."""
        return self.episode_rule == "doubling"

    def order_with_episodes(self, order: str, per_episode: str) -> str:
        """The order of a regret bound for doubling episodes, with what shorter ones may add to it.

        Parameters
        ----------
        order : str
            The order for doubling episodes, of which sqrt(r_max·sp·S·A·T) is a part.
        per_episode : str
            What every episode may cost: a bound on the span of its values.

        Returns
        -------
        str
            The order for the agent's own rule.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.UCRL2(2, 2, episodes="vanishing-sqrt").order_with_episodes("D·S·sqrt(A·T)", "D")
        'D·S·sqrt(A·T) + D·S·A·sqrt(T)'
        """
        return order + (f" + {per_episode}·S·A·sqrt(T)" if self.episode_rule == "vanishing-sqrt" else "")

    def source_with_episodes(self, source: str) -> str:
        """Where a theorem is proven, with the section that counts shorter episodes.

        Parameters
        ----------
        source : str
            The source for doubling episodes.

        Returns
        -------
        str
            The source, and ours of the number of episodes if there are more.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.UCRL2(2, 2).source_with_episodes("theorem 2")
        'theorem 2'
        """
        return source if self.is_doubling else f"{source}; shorter episodes: docs/kl_scal_plus.md, section 5"

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "episodes": self.episode_rule}
