"""The rule that ends episodes, compared with how often each pair was executed in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodeView, EpisodicAgent
from gainful.audit.findings import Finding, Floats, compared
from gainful.theory.regret import episodes_at


def rule_of(agent: EpisodicAgent) -> str:
    """The rule that ends the episodes of an agent, by the name of its parameter `episodes`."""
    return str(getattr(agent, "episode_rule", "doubling"))


class EpisodeFactors:
    """f_k of every episode, computed again: a pair may be executed max{1, ⌊f_k·N_k⌋} times.

    "doubling": 1; "vanishing": min{1, √(SA·Ĥ_k/t_k)}, Ĥ_k = max{1, max_{j≤k} sp(v_j)/r_max}; "vanishing-sqrt":
    √(ln t_k/t_k). The first step has 1.
    """

    def __init__(self, agent: EpisodicAgent) -> None:
        self.rule, self._reward_range = rule_of(agent), agent.reward_range
        self._most_span = 0.0

    def begin(self, view: EpisodeView, n_pairs: int) -> float:
        """f_k of the episode that begins."""
        self._most_span = max(self._most_span, float(np.ptp(view.plan.values)) / self._reward_range)
        if self.rule == "doubling" or view.step < 2:
            return 1.0
        if self.rule == "vanishing-sqrt":
            return float(np.sqrt(np.log(view.step) / view.step))
        return float(min(1.0, np.sqrt(n_pairs * max(1.0, self._most_span) / view.step)))


def execution_limits(visits: NDArray[Any], factor: Any) -> NDArray[Any]:
    """max{1, ⌊f_k·N_k⌋} for visits (…) and a factor that fits them; a product just below an integer counts as it.

    >>> execution_limits(np.array([0, 1, 10]), 0.3).tolist()
    [1.0, 1.0, 3.0]
    """
    whole = np.where(np.asarray(factor) == 1.0, visits, np.floor(factor * visits * (1.0 + 1e-12)))
    return np.asarray(np.maximum(1, whole))


def episode_rule(
    steps: Floats,
    ratio: Floats,
    pairs: NDArray[Any],
    full: NDArray[Any],
    n_actions: int,
    new_states: ArrayLike | None = None,
) -> Finding:
    """No pair is executed more than max{1, N_k} times in an episode, and one pair reaches that number.

    Arrays have one entry per episode: `ratio` is the largest ν_k/max{1, N_k}, `pairs` where it is, `full` whether some
    pair reached 1. The last episode was ended by the horizon and needs no such pair. TUCRL also ends an episode at a
    state never visited before: then `new_states` counts those that each episode reached, at most one, and one is enough
    to end it.
    """
    found = compared(ratio, 1.0, steps, states=pairs // n_actions, actions=pairs % n_actions, rounding=1e-12)
    ended = np.asarray(full)
    if new_states is not None:
        reached = np.asarray(new_states, dtype=np.float64)
        if found.failures == 0:
            several = compared(reached, 1.0, steps)
            found = several if several.failures else found
        ended = np.maximum(ended, reached > 0)
    if found.failures == 0 and len(steps) > 1:
        found = compared(1.0 - ended[:-1], 0.0, steps[:-1], rounding=1e-12)
    return found


def growing_episode_rule(
    steps: Floats,
    ratio: Floats,
    pairs: NDArray[Any],
    full: NDArray[Any],
    made: NDArray[Any],
    n_actions: int,
) -> Finding:
    """The rule of TSDE: that of doubling, and no episode is more than one step longer than the one before (T_0 = 1).

    `made` are the steps of each episode. One that is one step longer than the one before needs no doubled pair.
    """
    longest = np.concatenate([[1], made[:-1]]) + 1
    found = compared(made, longest, steps)
    return found if found.failures else episode_rule(steps, ratio, pairs, full | (made == longest), n_actions)


def episode_count(steps: Floats, made: NDArray[Any], most: Floats) -> Finding:
    """No more episodes than `most`, one number for each; it cannot fail where every step may be an episode."""
    return compared(np.arange(1, steps.size + 1), most, steps, certain=most >= np.cumsum(made))


def allowed_episodes(rule: str, made: NDArray[Any], n_pairs: int) -> Floats:
    """The most episodes that a rule allows, up to the end of each of those that made so many steps."""
    return episodes_at(np.maximum(np.cumsum(made), 1.0), n_pairs, rule)


def allowed_growing_episodes(rule: str, made: NDArray[Any], n_pairs: int) -> Floats:
    """The same for TSDE: sqrt(2·M·T), M - 1 being the number ended by the rule (Ouyang et al. 2017, lemma 1).

    Between two episodes that the rule ended, each is one step longer than the one before.
    """
    return np.asarray(np.sqrt(2.0 * allowed_episodes(rule, made, n_pairs) * np.maximum(np.cumsum(made), 1.0)))


def block_rule(steps: Floats, made: NDArray[Any], length: int) -> Finding:
    """Every episode but the last has `length` steps, and the last no more."""
    off = np.abs(np.asarray(made, dtype=np.float64) - length)
    off[-1:] = np.maximum(made[-1:] - length, 0)
    return compared(off, 0.0, steps)
