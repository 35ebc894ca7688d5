"""Checks that an MDP is one an agent can live in, and survives every way in and out of the library."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

from gainful.errors import ConformanceError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.solve import solve


def check_environment(mdp: MDP, *, precision: float = 1e-8, gymnasium: bool = True) -> None:
    """Run an MDP through the conformance checks; ConformanceError says what fails.

    Its gain does not depend on the start (weakly communicating), it solves to `precision`, rewards lie in the range it
    states, a table and a file give it back, and (`gymnasium`) its Gymnasium environment passes `check_env`.
    """
    found = structure(mdp)
    if found == "multichain":
        raise ConformanceError(f"{mdp!r}: the gain depends on the start: {found.describe()}")
    plan = solve(mdp, precision=precision)
    if not plan.gain_bounds[1] - plan.gain_bounds[0] <= precision * (1 + 1e-9):
        raise ConformanceError(f"{mdp!r}: bracket {plan.gain_bounds} wider than {precision}")
    low, high = mdp.reward_range
    inside = mdp.rewards[mdp.allowed]
    if inside.min() < low - 1e-12 or inside.max() > high + 1e-12:
        raise ConformanceError(
            f"{mdp!r}: mean rewards in [{inside.min()}, {inside.max()}], range stated [{low}, {high}]"
        )
    if MDP.from_table(mdp.to_table()) != mdp:
        raise ConformanceError(f"{mdp!r}: to_table and from_table give another MDP")
    with tempfile.TemporaryDirectory() as folder:
        mdp.save(Path(folder) / "mdp")
        if MDP.load(Path(folder) / "mdp") != mdp:
            raise ConformanceError(f"{mdp!r}: save and load give another MDP")
    if gymnasium and mdp.allowed.all():
        from gymnasium.utils.env_checker import check_env

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(mdp.to_gymnasium(), skip_render_check=True)
    if not np.isfinite(plan.bias).all():
        raise ConformanceError(f"{mdp!r}: the bias is not finite")
