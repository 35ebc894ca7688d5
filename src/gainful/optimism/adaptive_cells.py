"""The deviation levels, the optimistic rewards and the rules that split cells, for adaptive cells."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.optimism.kl_scal_plus import KLConstants, KLSums, deviation_level, kl_upper
from gainful.planning.kl_dual import KLPairs


class LeafTerms(NamedTuple):
    """What depends on the depth of the cell of a pair."""

    log_union: Any
    """(pairs,) ln(1/δ_j')."""
    extra: Any
    """(pairs,) what the cell's width adds beyond that of the finest cells, in units of r_max."""
    most: Any
    """A reward above this is no better than knowing nothing: 1 + c, in units of r_max."""


def log_union_at(depth: int, n_cells: int, n_actions: int, delta: float) -> float:
    """ln(1/δ_j'), δ_j' = δ/((j+1)(j+2)·2·K_j·A): for two statements at each of K_j cells of depth j and every action.

    The shares 1/((j+1)(j+2)) of all depths add up to 1, so cells may be chosen by the data.

    >>> round(log_union_at(0, 1, 2, 0.5), 12) == round(math.log(2 * 2 * 2 / 0.5), 12)
    True
    """
    return math.log(2 * n_cells * n_actions) - math.log(delta / ((depth + 1) * (depth + 2)))


def narrow_enough(level: float, visits: float, bias: float) -> bool:
    """Whether a cell's statistical width is no more than what its states differ by: ι/n ≤ (L·w^α)².

    >>> narrow_enough(8.0, 200.0, 0.25), narrow_enough(8.0, 100.0, 0.25)
    (True, False)
    """
    return level <= visits * bias * bias


def visited_enough(visits: float, width: float, dim: int) -> bool:
    """Whether a cell has n ≥ w^{-(d+2)} visits: the rule in the code of ZoRL (Kar & Singh 2025).

    >>> visited_enough(8.0, 0.5, 1), visited_enough(7.0, 0.5, 1)
    (True, False)
    """
    return visits >= width ** -(dim + 2)


@inlined
def leaf_radius(log_union: float, visits: int, scale: float) -> float:
    """ρ = scale·ι_n/n of a leaf with n ≥ 1 visits."""
    return scale * deviation_level(log_union, visits) / visits


@kernel
def leaf_sets(sums: KLSums, terms: LeafTerms, constants: KLConstants, pairs: KLPairs) -> None:
    """Renew the reward and the radius of the pairs whose cells were visited since the last plan.

    As `kl_scal_plus_sets`, with a level and a term of its own for every depth. The pair of an optimistic reward above
    1 + c is worth at least 1 + max v, and counts as one that was never visited, which is worth exactly that.
    """
    sums, terms, c, pairs = KLSums(*sums), LeafTerms(*terms), KLConstants(*constants), KLPairs(*pairs)
    for k in range(sums.visits.size):
        n, before = sums.visits[k], sums.planned[k]
        if n == before:
            continue
        sums.planned[k] = n
        pairs.key[k] = np.inf
        if n == 0 or not sums.allowed[k]:
            continue
        pairs.radius[k] = leaf_radius(terms.log_union[k], n, c.scale)
        if before > 0:  # pairs.radius may have been inf in between, and an agent that was loaded does not know
            pairs.x[k] *= math.sqrt(leaf_radius(terms.log_union[k], before, c.scale) / pairs.radius[k])
        mean = sums.reward_sum[k] / (n * c.reward_range)
        pairs.rewards[k] = kl_upper(min(max(mean, 0.0), 1.0), pairs.radius[k]) + terms.extra[k]
        if pairs.rewards[k] > terms.most:
            pairs.rewards[k], pairs.radius[k] = 1.0, np.inf
