"""UCCRL's confidence sets on the cells of a partition.

Ortner & Ryabko 2012, Online regret bounds for undiscounted continuous reinforcement learning. The constants are those
the literature quotes: the original was not at hand to check them.
"""

from __future__ import annotations

import math

from gainful._compiled import inlined

UCCRL_REWARD_CONSTANT = 7.0 / 2.0
UCCRL_TRANSITION_CONSTANT = 56.0


@inlined
def reward_log(n_cells: int, n_actions: int, t: int, delta: float) -> float:
    """ln(2·n·A·t_k/δ), n the number of cells."""
    return math.log(2.0 * n_cells * n_actions * t / delta)


@inlined
def transition_log(n_actions: int, t: int, delta: float) -> float:
    """ln(2·A·t_k/δ)."""
    return math.log(2.0 * n_actions * t / delta)


@inlined
def reward_width(log_term: float, visits: int, reward_max: float, widening: float, scale: float) -> float:
    """|r̃ - r̄| ≤ r_max·(scale·sqrt(7·ln(2nAt_k/δ) / (2·max{1,N})) + `widening`); scale 1 is the theorem's."""
    return reward_max * (scale * math.sqrt(UCCRL_REWARD_CONSTANT * log_term / max(1, visits)) + widening)


@inlined
def transition_radius(n_cells: int, log_term: float, visits: int, widening: float, scale: float) -> float:
    """‖p̃ - p̄‖₁ ≤ scale·sqrt(56·n·ln(2At_k/δ) / max{1,N}) + `widening`; scale 1 is the theorem's."""
    return scale * math.sqrt(UCCRL_TRANSITION_CONSTANT * n_cells * log_term / max(1, visits)) + widening


def cell_widening(lipschitz: float, holder: float, bins: int) -> float:
    """L·n^{-α}, n = `bins` the intervals per axis: how far the laws of two states of one cell can be apart."""
    return lipschitz * math.pow(bins, -holder)
