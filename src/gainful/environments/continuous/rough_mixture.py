"""A rough problem on an interval: Hölder with α = ½, and no better."""

from __future__ import annotations

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import mixture_environment


def rough_mixture(
    holder: float = 0.5, *, teeth: int = 2, rest_reward: float = 0.4, chance: float = 0.5
) -> ContinuousEnvironment:
    r"""Rough mixture: work where a jagged wave is high, rest where it is low; Hölder with α = ½ and an exact L.

    The state is x in [0, 1], ψ(x) = 2m·dist(x, {0, 1/m, …, 1}) a wave of m = `teeth` teeth, and φ(x) = ψ(x)^α.
    "work" earns φ(x), "rest" earns ρ = `rest_reward`. The next state is uniform on the upper halves of the teeth,
    {ψ > ½}, with probability w = κ·(1 - φ(x)) after work and w = κ after rest (κ = `chance`), otherwise uniform on the
    lower halves: what work pays today it costs in chances of a good tomorrow.

    *Constants.* r_max = 1. φ rises from 0 like a power: |φ(x) - φ(y)| ≤ (2m·|x-y|)^α, with equality along a tooth, and
    the two laws have disjoint supports, so that ‖p(·|x,a) - p(·|y,a)‖₁ = 2·|w(x) - w(y)|. Both L_r = (2m)^α and
    L_p = 2κ·(2m)^α are the least possible. With the defaults L = 2, and there is no L for any α above ½.

    Parameters
    ----------
    holder : float
        α, in (0, 1]; with 1 the wave is Lipschitz.
    teeth : int
        m, the number of teeth.
    rest_reward : float
        ρ, in [0, 1].
    chance : float
        κ, in (0, 1).

    Returns
    -------
    ContinuousEnvironment
        With Δ the difference of the expected bias under the two laws, work is optimal where φ > ρ/(1 - κΔ), and Δ
        solves an equation in closed form (`docs/mixtures.md`); the myopic rule is φ > ρ. With the defaults the gain is
        .602614, certified to 1e-12, and the bias span .46073.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.rough_mixture()
    ContinuousEnvironment('rough-mixture', dim 1, 2 actions, L = 2, α = 0.5)
    """
    settings = {"holder": holder, "teeth": teeth, "rest_reward": rest_reward, "chance": chance}
    return mixture_environment("rough-mixture", ("position",), settings, [0.0])
