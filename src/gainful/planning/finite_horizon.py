"""Finite-horizon value iteration (backward induction)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.mdp.model import DENSE_LIMIT_BYTES, MDP
from gainful.planning.backup import backup
from gainful.planning.batches import resumed_sweeps
from gainful.planning.bellman import SparseModel, sparse_model
from gainful.planning.rewards import replaced_rewards
from gainful.planning.rounding import LARGEST_VALUE, reward_scale, rounding_slack
from gainful.planning.value_plan import FiniteHorizonPlan


def finite_horizon_value_iteration(
    mdp: MDP,
    horizon: int,
    *,
    terminal: ArrayLike | None = None,
    value_cap: float | ArrayLike | None = None,
    rewards: ArrayLike | None = None,
) -> FiniteHorizonPlan:
    r"""Optimal values of the next H steps, by backward induction.

    Q_h(s,a) = r(s,a) + p(·|s,a)·V_{h+1}, V_h(s) = max_a Q_h(s,a), V_H given. Exact but for rounding, which `rounding`
    bounds: the sum over steps of 2(Γ+4)·2⁻⁵³·(max|V| + max|r|).

    Parameters
    ----------
    mdp : MDP
        The process.
    horizon : int
        H, the number of steps.
    terminal : array_like, shape (S,), optional
        V_H, in the user's units; 0 by default.
    value_cap : float or array_like, shape (H,), optional
        Replaces Q_h by min{Q_h, cap_h} before the maximum, as UCBVI needs when `rewards` contain a bonus
        (Azar, Osband & Munos 2017). A number c is the largest reward of one step: cap_h = c·(H-h) + max `terminal`, no
        optimistic value above what H-h steps can give. An array gives cap_0 … cap_{H-1} (UCBVI as published: all H).
        In the units of `mdp.rewards` (costs negated).
    rewards : array_like, shape (S, A), optional
        Replace the MDP's own, in the units of `mdp.rewards`.

    Returns
    -------
    FiniteHorizonPlan
        Values and actions of every step, in the user's units; an offset of the reward counts once per step. Equal
        values, also those cut at the cap, go to the lowest action.

    Raises
    ------
    TooLargeError
        If values and actions of all steps do not reasonably fit.

    Examples
    --------
    >>> mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]])
    >>> finite_horizon_value_iteration(mdp, 3).values
    array([[2., 1.],
           [1., 1.],
           [1., 0.],
           [0., 0.]])
    """
    if horizon != int(horizon) or horizon < 1:
        raise InvalidArgumentError("horizon", horizon, "a whole number of steps >= 1")
    H, S, units = int(horizon), mdp.n_states, mdp.units
    size = 16 * (H + 1) * S
    if size > DENSE_LIMIT_BYTES:
        raise TooLargeError(
            f"values and actions for H = {H}, S = {S} take {size / 2**30:.1f} GiB, "
            f"more than the limit of {DENSE_LIMIT_BYTES / 2**30:g} GiB",
            name="horizon",
            found=H,
        )
    to_go = np.arange(H, -1, -1)  # (H+1,) steps that remain at h
    r = replaced_rewards(mdp, rewards)
    values, actions = np.zeros((H + 1, S)), np.empty((H, S), dtype=np.int64)
    if terminal is not None:
        end = np.array(terminal, dtype=np.float64)
        if end.shape != (S,) or not np.all(np.abs(end) <= LARGEST_VALUE / 4):
            raise InvalidArgumentError(
                "terminal", terminal, f"({S},) finite numbers", problem=f"terminal has shape {end.shape}"
            )
        values[H] = units.sign * end
    caps = np.full(H, np.inf)
    if value_cap is not None:
        caps = np.array(value_cap, dtype=np.float64)
        if caps.ndim == 0:
            caps = float(caps) * to_go[:H] + values[H].max()
        if caps.shape != (H,) or np.any(np.isnan(caps)):
            raise InvalidArgumentError(
                "value_cap",
                value_cap,
                f"one number, or ({H},): one for each step",
                problem=f"value_cap has shape {caps.shape}",
            )
        caps = caps - units.offset * to_go[:H]
    model = sparse_model(mdp, r)
    batch = resumed_sweeps(mdp.n_transitions + S)
    for last in range(H, 0, -batch):
        _steps(model, values, actions, caps, max(0, last - batch), last)
    largest = np.abs(values[1:]).max(axis=1)
    scale = reward_scale(mdp) if rewards is None else float(np.abs(r).max())
    rounding = H * rounding_slack(int(np.diff(mdp.indptr).max()), float(largest.mean()), scale)
    if units.offset != 0.0:
        values += units.offset * to_go[:, None]
        rounding += 2.0**-52 * (abs(units.offset) * H + float(np.abs(values).max()))
    if units.sign < 0:
        values = 0.0 - values
    values.flags.writeable = actions.flags.writeable = False
    return FiniteHorizonPlan(values, actions, rounding, mdp)


@kernel
def _steps(
    model: SparseModel, values: NDArray[Any], actions: NDArray[Any], caps: NDArray[Any], first: int, last: int
) -> None:
    """Steps last - 1 down to first."""
    for h in range(last - 1, first - 1, -1):
        backup(model, 1.0, caps[h], values[h + 1], values[h], actions[h])
