"""The result of a planner: a gain with a proof of its accuracy, a bias and a policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.atomic_files import write_file
from gainful.cards import MOST_ROWS, card, left_out, rows_table
from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Plan:
    r"""The result of a planner, in the user's units; a returned plan has converged.

    `gain` is the middle of `gain_bounds`, which is certified: the optimal gain (for `scopt`, the growth rate
    of the truncated operator) lies inside, rounding included.

    Attributes
    ----------
    gain : float
        The average reward (or cost) per unit of time.
    gain_bounds : tuple of float
        The certified bracket.
    bias : ndarray, shape (S,)
        Pinned by bias[0] = 0.
    actions : ndarray of int, shape (S,), or None
        The action of each state; None if the policy mixes actions.
    policy : ndarray, shape (S, A)
        Action probabilities, always.
    sweeps : int
        Sweeps made, or policies tried.
    method : str
        How it was found.

    Examples
    --------
    >>> import gainful as gf
    >>> plan = gf.solve(gf.environments.riverswim(6))
    >>> plan.actions
    array([1, 1, 1, 1, 1, 1])
    >>> low, high = plan.gain_bounds
    >>> high - low <= 1e-8
    True
    """

    gain: float
    gain_bounds: tuple[float, float]
    bias: NDArray[np.float64]
    actions: NDArray[np.int64] | None
    sweeps: int
    method: str
    mdp: MDP = field(repr=False)
    stochastic: NDArray[np.float64] | None = field(default=None, repr=False)
    """(S,A) probabilities when `actions` is None."""
    augmented: NDArray[np.float64] | None = field(default=None, repr=False)
    """(S,2A) probabilities on the augmented actions (first the A rewarded ones, then their copies of reward 0)."""
    details: dict[str, Any] = field(default_factory=dict, repr=False)
    """Further results of a planner: number of policies tried, unichain or not, span bound, ..."""

    @cached_property
    def policy(self) -> NDArray[np.float64]:
        """(S,A) action probabilities."""
        if self.actions is None:
            assert self.stochastic is not None
            return self.stochastic
        table = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        table[np.arange(self.mdp.n_states), self.actions] = 1.0
        table.flags.writeable = False
        return table

    @property
    def span(self) -> float:
        """sp(bias) = max - min."""
        return float(self.bias.max() - self.bias.min())

    def action(self, state: int | str) -> str:
        """Name the action to take in a state.

        Parameters
        ----------
        state : int or str
            The label or the index of the state.

        Returns
        -------
        str
            The label of the action, or the labels with their probabilities if the policy mixes actions there.
        """
        return self.action_named(self.mdp.state_index(state))

    def action_named(self, s: int) -> str:
        """Name the action of the state with index s, or the mixture of actions.

        Parameters
        ----------
        s : int
            The index of the state.

        Returns
        -------
        str
        """
        if self.actions is not None:
            return self.mdp.action_name(int(self.actions[s]))
        row = self.policy[s]
        chosen = np.flatnonzero(row)
        if chosen.size == 1:
            return self.mdp.action_name(int(chosen[0]))
        return " | ".join(f"{self.mdp.action_name(int(a))} {row[a]:.4g}" for a in chosen)

    @cached_property
    def stationary(self) -> NDArray[np.float64]:
        """(S,) long-run fractions of time under the policy, when starting from `mdp.start`."""
        from gainful.planning.evaluation import evaluate

        return evaluate(self.mdp, self).stationary

    def to_dict(self) -> dict[str, Any]:
        """The plan as a dictionary that JSON can hold.

        Returns
        -------
        dict
            Gain, bounds, span and method, and under "policy" the action and bias of each state, as `gainful solve
            --json` prints them.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.solve(gf.environments.riverswim(6)).to_dict()["policy"][0]
        {'state': 'left bank', 'action': 'right', 'bias': 0.0}
        """
        from gainful.planning.plan_files import plan_to_dict

        return plan_to_dict(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """The plan as JSON, which `gf.evaluate` and `gainful evaluate --policy` read.

        Parameters
        ----------
        path : str or Path, optional
            A file to write it to, too.

        Returns
        -------
        str
        """
        import json

        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_file(Path(path), text.encode())
        return text

    def save(self, path: str | Path) -> None:
        """Write the plan with its MDP to one file (arrays and JSON, no pickle).

        Parameters
        ----------
        path : str or Path
            The file, which is written completely or not at all.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import gainful as gf
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "river.plan"
        >>> plan = gf.solve(gf.environments.riverswim(6))
        >>> plan.save(file)
        >>> gf.Plan.load(file).gain == plan.gain
        True
        """
        from gainful.planning.plan_files import save_plan

        save_plan(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Plan
            With its MDP; arrays in `details` come back as lists.

        Raises
        ------
        InvalidPlanError
            If the file is missing, damaged or something else.
        """
        from gainful.planning.plan_files import load_plan

        return load_plan(cls, path)

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the plan.

        Returns
        -------
        pandas.DataFrame
            One row per state: label, action (or mixture of actions), and bias.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "state": label_column(self.mdp.state_labels, self.mdp.n_states),
                "action": [self.action_named(s) for s in range(self.mdp.n_states)],
                "bias": self.bias,
            }
        )

    def __repr__(self) -> str:
        low, high = self.gain_bounds
        count = f"{self.sweeps} sweep{'' if self.sweeps == 1 else 's'}"
        return (
            f"Plan(gain={self.gain:.12g}, certified to {high - low:.1e}, span={self.span:.6g}, "
            f"{self.mdp.n_states} states, {self.method}, {count})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: what is known of the gain, and the first states with action and bias."""
        low, high = self.gain_bounds
        facts = {
            self.mdp.units.gain_name: f"{self.gain:.10g}",
            "certified": f"in [{low:.12g}, {high:.12g}], {high - low:.1e} wide",
            "span of the bias": f"{self.span:.6g}",
            "found by": f"{self.method}, {self.sweeps:,} sweep{'' if self.sweeps == 1 else 's'}",
        }
        shown = min(MOST_ROWS, self.mdp.n_states)
        rows = [(self.mdp.state_name(s), self.action_named(s), f"{self.bias[s]:.6g}") for s in range(shown)]
        return card(
            f"Plan of {self.mdp.name}" if self.mdp.name else "Plan",
            facts,
            rows_table(["state", "action", "bias"], rows),
            left_out(shown, self.mdp.n_states, "states", "plan.to_frame()"),
        )


def make_plan(
    mdp: MDP,
    *,
    low: float,
    high: float,
    values: NDArray[np.float64],
    actions: NDArray[np.int64] | None,
    sweeps: int,
    method: str,
    stochastic: NDArray[np.float64] | None = None,
    augmented: NDArray[np.float64] | None = None,
    details: dict[str, Any] | None = None,
    own_values: bool = False,
) -> Plan:
    """A Plan from internal numbers (gain per step, already widened for rounding): the one place units are applied.

    `own_values` says that nobody else uses the values, so that no copy is made of those that are pinned already.
    """
    units = mdp.units
    bounds = units.gain_bounds(low, high)
    bias = units.amount(values if own_values and values[0] == 0.0 else values - values[0])
    for array in (bias, actions, stochastic, augmented):
        if array is not None:
            array.flags.writeable = False
    return Plan(
        gain=units.gain(low + (high - low) / 2),
        gain_bounds=bounds,
        bias=bias,
        actions=actions,
        sweeps=sweeps,
        method=method,
        mdp=mdp,
        stochastic=stochastic,
        augmented=augmented,
        details=details or {},
    )
