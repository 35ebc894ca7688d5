"""A smooth problem on a square, with an exact Lipschitz constant and a certified gain."""

from __future__ import annotations

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import mixture_environment


def planar_mixture(
    holder: float = 1.0, *, teeth: int = 1, rest_reward: float = 0.4, chance: float = 0.5
) -> ContinuousEnvironment:
    r"""Planar mixture: work near the middle of a square, rest near its corners; two dimensions and an exact L.

    The state is a point (x, y) of [0, 1]². With the wave ψ(x) = 2m·dist(x, {0, 1/m, …, 1}) of m = `teeth` teeth let
    u = (ψ(x) + ψ(y))/2 and φ = u^α. "work" earns φ, "rest" earns ρ = `rest_reward`. The next state is uniform on
    {u > ½} with probability κ·(1 - φ) after work and κ = `chance` after rest, otherwise uniform on {u ≤ ½}. Work is
    optimal where u exceeds a threshold: a square standing on its corner, which no rectangular cells fit.

    *Constants.* r_max = 1. In the sup-norm u is 2m-Lipschitz (along a diagonal of a tooth), so that
    φ differs by at most (2m·‖·‖)^α, with equality, and the two laws have disjoint supports: L_r = (2m)^α and
    L_p = 2κ·(2m)^α are the least possible. With the defaults L = 2.

    Parameters
    ----------
    holder : float
        α, in (0, 1].
    teeth : int
        m, the number of teeth per axis.
    rest_reward : float
        ρ, in [0, 1].
    chance : float
        κ, in (0, 1).

    Returns
    -------
    ContinuousEnvironment
        The gain is in closed form, as for `rough_mixture` (`docs/mixtures.md`). With the defaults it is .503474,
        certified to 1e-12, and the bias span .50208.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.planar_mixture()
    ContinuousEnvironment('planar-mixture', dim 2, 2 actions, L = 2, α = 1)
    """
    settings = {"holder": holder, "teeth": teeth, "rest_reward": rest_reward, "chance": chance}
    return mixture_environment("planar-mixture", ("x", "y"), settings, [0.0, 0.0])
