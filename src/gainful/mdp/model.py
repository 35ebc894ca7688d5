"""The finite Markov decision process: sparse rows, a reward law, labels and the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.arrays import allowed_mask, pair_rows, reward_arrays, reward_table
from gainful.mdp.assembly import Ingredients, RewardLaw, Start
from gainful.mdp.finite_process import DENSE_LIMIT_BYTES, FiniteProcess
from gainful.mdp.restriction import restricted_to
from gainful.mdp.rows import as_float
from gainful.mdp.units import Objective, Units

if TYPE_CHECKING:
    import gymnasium
    import pandas as pd

__all__ = ["DENSE_LIMIT_BYTES", "MDP", "RewardLaw", "Start", "require_mdp"]


class MDP(FiniteProcess):
    r"""A finite Markov decision process, stored as sparse rows over pairs k = s*A + a.

    Other ways to build one are `from_rows`, `from_sparse`, `from_table`, `from_function`, `from_gymnasium`,
    `from_rates`, `from_drn` and `load`.
    All arrays are copied and read-only.

    Parameters
    ----------
    P : array_like (S,A,S), or sequence of A sparse (S,S) matrices
        Transition probabilities p(s'|s,a).
    R : array_like (S,A), (S,) or (S,A,S)
        Mean rewards of pairs, rewards of states, or rewards of transitions.
    reward_law : {"deterministic", "bernoulli", "transition"}, optional
        How a reward is drawn around its mean: the mean itself; 1 with probability the mean and 0 otherwise; or a
        function of state, action and next state. The default follows from the shape of `R`.
    start : int, str or array_like (S,), optional
        The start state (index or label) or a distribution over states; the first state by default.
    allowed : array_like of bool (S,A), optional
        Which actions each state has; all by default. The rows of other pairs are ignored.
    state_labels, action_labels : sequence of str, optional
        Names of states and actions.
    objective : {"reward", "cost"}
        With "cost", `R` is minimised and every answer comes back as a cost.
    name : str, optional
        A name to show.

    Attributes
    ----------
    n_states, n_actions : int
        S and A.
    indptr, indices, probabilities : ndarray
        The rows in CSR form: `indptr` int64 (S*A+1,), `indices` uint32 and `probabilities` float64, one entry per
        transition.
    pair_rewards : ndarray (S*A,)
        Internal mean rewards; `rewards` has them in the user's units.
    entry_rewards : ndarray or None
        Internal rewards of transitions, for the law "transition".
    allowed : ndarray of bool (S,A)
        Which actions each state has.
    start : ndarray (S,)
        The start distribution.
    units : Units
        How internal numbers become the user's.

    Raises
    ------
    InvalidMDPError
        If the arrays do not describe a decision process; the message names the first wrong row.

    Examples
    --------
    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]], state_labels=["up", "down"])
    >>> mdp
    MDP(2 states, 1 action, 4 transitions)
    >>> mdp.q_values([0.0, -2.0])
    array([[ 0.8],
           [-1. ]])
    """

    def __init__(
        self,
        P: ArrayLike | Sequence[Any],
        R: ArrayLike,
        *,
        reward_law: RewardLaw | None = None,
        start: Start = None,
        allowed: ArrayLike | None = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
        objective: Objective = "reward",
        name: str | None = None,
    ) -> None:
        n_states, n_actions, indptr, indices, values = pair_rows(P)
        dense_rewards = as_float("R", R)
        mask = (
            np.ones((n_states, n_actions), dtype=bool)
            if allowed is None
            else allowed_mask(allowed, n_states, n_actions)
        )
        if not mask.all():  # whatever stands in the rows of actions that are not allowed is ignored
            values = np.where(np.repeat(mask.reshape(-1), np.diff(indptr)), values, 0.0)
        pairs, entries = reward_arrays(dense_rewards, n_states, n_actions, indptr, indices)
        super().__init__(
            Ingredients(
                n_states=n_states,
                n_actions=n_actions,
                indptr=indptr,
                indices=indices,
                probabilities=values,
                pair_rewards=pairs,
                entry_rewards=entries,
                reward_law=reward_law,
                start=start,
                allowed=mask,
                state_labels=state_labels,
                action_labels=action_labels,
                units=Units(objective=objective),
                name=name,
            )
        )

    # ------------------------------------------------------------------ builders

    @classmethod
    def from_rows(
        cls,
        indptr: ArrayLike,
        indices: ArrayLike,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        *,
        n_actions: int | None = None,
        reward_law: RewardLaw | None = None,
        start: Start = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
        objective: Objective = "reward",
        name: str | None = None,
    ) -> Self:
        """Build an MDP from CSR rows over pairs s*A + a.

        Parameters
        ----------
        indptr : array_like (S*A+1,)
            Row k is indptr[k] … indptr[k+1]-1. A pair that is not allowed is an empty row.
        indices, probabilities : array_like
            The next state and the probability of each transition.
        rewards : array_like (S,A), or one per transition
            Mean rewards, whose shape determines S and A; or, with `n_actions`, one reward per transition.
        n_actions : int, optional
            A, needed for one reward per transition.
        reward_law, start, state_labels, action_labels, objective, name
            As for `MDP`.

        Returns
        -------
        MDP

        Examples
        --------
        >>> MDP.from_rows([0, 1, 3], [1, 0, 1], [1.0, 0.5, 0.5], [[0.0], [1.0]])
        MDP(2 states, 1 action, 3 transitions)
        """
        table, entries = reward_table(rewards, int(np.size(indptr)) - 1, n_actions)
        return cls._made_of(
            Ingredients(
                n_states=table.shape[0],
                n_actions=table.shape[1],
                indptr=indptr,
                indices=indices,
                probabilities=probabilities,
                pair_rewards=table.reshape(-1),
                entry_rewards=entries,
                reward_law=reward_law,
                start=start,
                state_labels=state_labels,
                action_labels=action_labels,
                units=Units(objective=objective),
                name=name,
            )
        )

    @classmethod
    def from_sparse(cls, matrices: Sequence[Any], R: ArrayLike, **options: Any) -> Self:
        """Build an MDP from one SciPy sparse (S,S) matrix per action.

        Parameters
        ----------
        matrices : sequence of A sparse matrices (S,S)
            Transition probabilities of each action.
        R : array_like
            Rewards, as for `MDP`.
        **options
            The other arguments of `MDP`.

        Returns
        -------
        MDP

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> MDP.from_sparse([sp.eye_array(3), sp.eye_array(3)], [0.0, 0.5, 1.0])
        MDP(3 states, 2 actions, 6 transitions)
        """
        if not len(matrices) or not all(sp.issparse(m) for m in matrices):
            raise InvalidMDPError(
                "matrices are not sparse matrices",
                name="matrices",
                found=matrices,
                expected="a sequence with one SciPy sparse (S,S) matrix per action",
            )
        return cls(list(matrices), R, **options)

    @classmethod
    def from_table(cls, table: pd.DataFrame | str | Path | Any, **options: Any) -> Self:
        """Build an MDP from a table with one row per transition.

        Parameters
        ----------
        table : path, data frame or dict of columns
            A CSV, TSV or Parquet file, or a data frame, with the columns state, action, next_state, probability, and
            reward or cost.
        **options
            start, reward_law, name, state_labels and action_labels (which fix their order), step_duration; see
            `gainful.mdp.tables.from_table`.

        Returns
        -------
        MDP

        Raises
        ------
        InvalidMDPError
            Naming the file, line and column of the first error.

        Examples
        --------
        >>> table = {"state": ["up", "down"], "action": ["run", "fix"], "next_state": ["down", "up"],
        ...          "probability": [1.0, 1.0], "reward": [1.0, -0.5]}
        >>> MDP.from_table(table).state_labels
        ('up', 'down')
        """
        from gainful.mdp import tables

        return tables.from_table(cls, table, **options)

    @classmethod
    def from_gymnasium(cls, env: gymnasium.Env[Any, Any] | str, **options: Any) -> Self:
        """Build the continuing MDP of a Gymnasium environment that has a transition table.

        Episodes that terminate restart at once from the initial distribution.

        Parameters
        ----------
        env : gymnasium.Env or str
            An environment with `env.unwrapped.P`, or the id of one.
        **options
            drop_unreachable=True leaves out the states that no episode reaches; start; name; see
            `gainful.mdp.gymnasium_table.from_gymnasium`.

        Returns
        -------
        MDP

        Examples
        --------
        >>> MDP.from_gymnasium("FrozenLake-v1").n_states
        16
        """
        from gainful.mdp import gymnasium_table

        return gymnasium_table.from_gymnasium(cls, env, **options)

    @classmethod
    def from_rates(cls, rates: Any, rewards: ArrayLike | None = None, **options: Any) -> Self:
        """Build the uniformised MDP of a continuous-time process; its gains are per unit of time.

        Parameters
        ----------
        rates : array_like (S,A,S), sequence of sparse matrices, or table
            Transition rates q(s'|s,a).
        rewards : array_like (S,A) or (S,), optional
            Earned per unit of time.
        **options
            costs instead of rewards; jump_rewards or jump_costs (S,A,S) or (S,A), earned at a jump; sojourn_times
            (S,A), with which `rates` are probabilities of the next state (semi-Markov); uniformization, start, allowed,
            state_labels, action_labels, name; see `gainful.mdp.rates.from_rates`.

        Returns
        -------
        MDP

        Examples
        --------
        A machine fails at rate 1 and is repaired at rate 3, so it works 3/4 of the time:

        >>> import gainful as gf
        >>> machine = MDP.from_rates([[[0, 1]], [[3, 0]]], [1.0, 0.0])
        >>> round(gf.solve(machine).gain, 6)
        0.75
        """
        from gainful.mdp import rates as rates_module

        return rates_module.from_rates(cls, rates, rewards, **options)

    @classmethod
    def from_function(cls, start: Any, actions: Any, outcomes: Any, **options: Any) -> Self:
        """Build an MDP from functions, on the states that can be reached from the start.

        Parameters
        ----------
        start : hashable, or mapping
            The start state, or a distribution: {state: probability}.
        actions : callable or sequence
            actions(state) lists the actions of a state; a sequence means the same ones in all states.
        outcomes : callable
            outcomes(state, action) lists (next state, probability, reward or cost).
        **options
            objective, "reward" or "cost"; name; labels; max_states; progress=True; see
            `gainful.mdp.exploration.from_function`.

        Returns
        -------
        MDP

        Examples
        --------
        A shelf for two, on which one item sells with probability 0.6; ordering fills it up for a cost of 2:

        >>> def outcomes(stock, order):
        ...     full = 2 if order == "fill" else stock
        ...     sold = [(full - 1, 0.6, 3.0), (full, 0.4, 0.0)] if full else [(0, 1.0, 0.0)]
        ...     return [(s, p, r - (2.0 if order == "fill" else 0.0)) for s, p, r in sold]
        >>> mdp = MDP.from_function(2, ["wait", "fill"], outcomes)
        >>> mdp, mdp.state_labels
        (MDP(3 states, 2 actions, 11 transitions), ('2', '1', '0'))
        """
        from gainful.mdp import exploration

        return exploration.from_function(cls, start, actions, outcomes, **options)

    @classmethod
    def from_drn(cls, path: str | Path, **options: Any) -> Self:
        """Build an MDP from a file in Storm's explicit format (.drn, also compressed by gzip or xz).

        Parameters
        ----------
        path : str or Path
            The file, of type MDP, DTMC or CTMC.
        **options
            reward_model, which one to use if there are several; objective, "reward" or "cost"; name; see
            `gainful.mdp.drn.from_drn`.

        Returns
        -------
        MDP

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import gainful as gf
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "river.drn"
        >>> gf.environments.riverswim(6).to_drn(file)
        >>> MDP.from_drn(file).state_labels[0]
        'left bank'
        """
        from gainful.mdp import drn

        return drn.from_drn(cls, path, **options)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an MDP that `save` wrote, equal to the bit.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        MDP

        Raises
        ------
        InvalidMDPError
            If the file is missing, damaged or something else.
        """
        from gainful.mdp import storage

        return storage.load(cls, path)

    def save(self, path: str | Path) -> None:
        """Write the MDP to one file (arrays and JSON, no pickle).

        Parameters
        ----------
        path : str or Path
            The file, which is written completely or not at all.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import gainful as gf
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "river.mdp"
        >>> gf.environments.riverswim(6).save(file)
        >>> MDP.load(file) == gf.environments.riverswim(6)
        True
        """
        from gainful.mdp import storage

        storage.save(self, path)

    def to_table(self) -> pd.DataFrame:
        """A data frame with one row per transition, which `from_table` reads.

        Returns
        -------
        pandas.DataFrame
            With the columns state, action, next_state, probability, and reward or cost.

        Examples
        --------
        >>> import gainful as gf
        >>> list(gf.environments.riverswim(6).to_table().columns)
        ['state', 'action', 'next_state', 'probability', 'reward']
        """
        from gainful.mdp import tables

        return tables.to_table(self)

    def to_drn(self, path: str | Path | None = None) -> str | None:
        r"""The MDP in the explicit format of the model checker Storm, with its rewards (or costs) as a reward model.

        Storm's long-run average of it is the gain; one of a continuous-time process is per unit of time. The format has
        no laws of rewards (their means are written) and no probabilities of initial states, and labels that it cannot
        hold are left out.

        Parameters
        ----------
        path : str or Path, optional
            The file; compressed if its name ends in .gz or .xz.

        Returns
        -------
        str or None
            The text if there is no path.

        Examples
        --------
        >>> text = MDP([[[0, 1]], [[1, 0]]], [[1.0], [0.5]]).to_drn()
        >>> text.splitlines()[-3:]
        ['state 1 [0]', '\taction 0 [0.5]', '\t\t0 : 1.0']
        """
        from gainful.mdp import drn

        return drn.to_drn(self, path)

    def to_networkx(self, **options: Any) -> Any:
        """The transitions as a graph of networkx, which is an optional dependency (`pip install 'gainful[graph]'`).

        Parameters
        ----------
        **options
            max_edges, the most transitions to turn into edges; a million by default.

        Returns
        -------
        networkx.MultiDiGraph
            Nodes are labels or indices of states, with `index` and `start`; edges have `action`, `probability`, and
            `reward` or `cost`.

        Examples
        --------
        >>> import gainful as gf
        >>> graph = gf.environments.riverswim(6).to_networkx()
        >>> graph.number_of_edges(), graph.has_edge("left bank", "river 1")
        (22, True)
        """
        from gainful.mdp import networkx_graph

        return networkx_graph.to_networkx(self, **options)

    def to_gymnasium(self, **options: Any) -> gymnasium.Env[Any, Any]:
        """A continuing Gymnasium environment with these dynamics.

        Parameters
        ----------
        **options
            render_mode, None or "ansi".

        Returns
        -------
        gymnasium.Env
            With Discrete spaces; it never terminates or truncates.

        Examples
        --------
        >>> import gainful as gf
        >>> env = gf.environments.riverswim(6).to_gymnasium()
        >>> state, info = env.reset(seed=1)
        >>> info["action_mask"]
        array([1, 1], dtype=int8)
        """
        from gainful.mdp import gymnasium_env

        return gymnasium_env.MDPEnv(self, **options)

    # ------------------------------------------------------------------ changes, each a new MDP

    def normalised(self) -> Self:
        """The same process with internal rewards in [0, r_max], as learners and span constraints need.

        Returns
        -------
        MDP
            `units` keeps the shift, so every answer is still in the user's units.
        """
        shift = self.reward_min - self.units.offset
        if shift == 0.0:
            return self
        return self._replace(
            pair_rewards=self.pair_rewards - shift,
            entry_rewards=None if self.entry_rewards is None else self.entry_rewards - shift,
            units=replace(self.units, offset=self.units.offset + shift),
        )

    def restricted(self, states: ArrayLike) -> Self:
        """The process on a subset of states; pairs that can leave the subset are dropped.

        Parameters
        ----------
        states : array_like
            Indices, or a mask (S,).

        Returns
        -------
        MDP
            With the original names as labels.

        Raises
        ------
        InvalidMDPError
            If a state is left without an action.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.riverswim(6).restricted([0, 1, 2]).state_labels
        ('left bank', 'river 1', 'river 2')
        """
        return restricted_to(self, states)


def require_mdp(mdp: object) -> None:
    """InvalidArgumentError unless `mdp` is an MDP."""
    if not isinstance(mdp, MDP):
        shown = repr(mdp) if isinstance(mdp, str | int | float) else f"a {type(mdp).__name__}"
        raise InvalidArgumentError(
            "mdp",
            mdp,
            "an MDP",
            "build one with MDP(P, R), MDP.from_table(...) or gf.environments.riverswim()",
            problem=f"mdp is {shown}",
        )
