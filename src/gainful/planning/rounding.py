"""The amount by which rounding may move a Bellman residual; every certified bracket is widened by it."""

from __future__ import annotations

from gainful._compiled import inlined

UNIT_ROUNDOFF = 2.0**-53


def rounding_slack(max_support: int, max_value: float, max_reward: float) -> float:
    """How far a computed (Tv - v)(s) may be from the exact one: 2(Γ+4)·2⁻⁵³·(max|v| + max|r|).

    Half of it is the rounding of a Γ-term dot product and of r + p·v - v; the other half covers stored rows,
    which sum to 1 only up to Γ+2 roundings.
    """
    return 2 * (max_support + 4) * UNIT_ROUNDOFF * (max_value + max_reward)


@inlined
def counts_slack(max_support: int, max_value: float, max_reward: float) -> float:
    """The same for rows p̂ read off counts, which have one entry more and a division: Γ+6 for Γ+4."""
    return 2.0 * (max_support + 6) * UNIT_ROUNDOFF * (max_value + max_reward)
