"""The finite Markov decision process: sparse rows, a reward law, labels and the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError, TooLargeError
from gainful.mdp.arrays import allowed_mask, reward_arrays, rows_of_pairs, stacked_matrices
from gainful.mdp.labels import are_numbers, checked_labels, index_of
from gainful.mdp.reward_limits import check_sizes, check_step_duration
from gainful.mdp.rows import TransitionRows, as_float, checked_rows, merged
from gainful.mdp.units import Objective, Units

if TYPE_CHECKING:
    import gymnasium
    import pandas as pd

RewardLaw: TypeAlias = Literal["deterministic", "bernoulli", "transition"]
Start: TypeAlias = int | str | ArrayLike | None

DENSE_LIMIT_BYTES = 1 << 30


class MDP:
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

    n_states: int
    n_actions: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    entry_rewards: NDArray[np.float64] | None
    pair_rewards: NDArray[np.float64]
    reward_law: RewardLaw
    allowed: NDArray[np.bool_]
    start: NDArray[np.float64]
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None
    units: Units
    name: str | None

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
        if isinstance(P, Sequence) and len(P) > 0 and all(sp.issparse(m) for m in P):
            n_states, n_actions, indptr, indices, values = stacked_matrices(P)
            dense_rewards = as_float("R", R)
        else:
            if sp.issparse(P):
                raise InvalidMDPError(
                    "P is one sparse matrix", name="P", found=P, hint="pass a sequence with one (S,S) matrix per action"
                )
            dense = as_float("P", P)
            if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
                hint = ""
                if dense.ndim == 3 and dense.shape[1] == dense.shape[2] and 0 not in dense.shape:
                    hint = "this looks like (A, S, S): pass P.transpose(1, 0, 2)"
                raise InvalidMDPError(
                    f"P has shape {dense.shape}",
                    name="P",
                    found=dense.shape,
                    expected="(S, A, S): [state, action, next state]",
                    hint=hint,
                )
            n_states, n_actions, _ = dense.shape
            indices = np.tile(np.arange(n_states, dtype=np.uint32), n_states * n_actions)
            indptr = np.arange(n_states * n_actions + 1, dtype=np.int64) * n_states
            values = dense.reshape(-1)
            dense_rewards = as_float("R", R)
        mask = (
            np.ones((n_states, n_actions), dtype=bool)
            if allowed is None
            else allowed_mask(allowed, n_states, n_actions)
        )
        if not mask.all():  # whatever stands in the rows of actions that are not allowed is ignored
            values = np.where(np.repeat(mask.reshape(-1), np.diff(indptr)), values, 0.0)
        pairs, entries = reward_arrays(dense_rewards, n_states, n_actions, indptr, indices)
        self._assemble(
            n_states,
            n_actions,
            indptr,
            indices,
            values,
            pairs,
            entries,
            reward_law=reward_law,
            start=start,
            allowed=mask,
            state_labels=state_labels,
            action_labels=action_labels,
            units=Units(objective=objective),
            name=name,
            user_rewards=True,
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
        table = as_float("rewards", rewards)
        entries: NDArray[np.float64] | None = None
        n_pairs = int(np.size(indptr)) - 1
        if n_actions is not None:
            if n_actions < 1 or n_pairs < 1 or n_pairs % n_actions:
                raise InvalidMDPError(
                    f"{n_pairs} rows do not divide into {n_actions} actions per state",
                    name="n_actions",
                    found=n_actions,
                    expected=f"a divisor of {n_pairs}",
                )
            n_states = n_pairs // n_actions
            if table.ndim == 1:
                entries, table = table, np.zeros((n_states, n_actions))
            if table.shape != (n_states, n_actions):
                raise InvalidMDPError(
                    f"rewards have shape {table.shape}",
                    name="rewards",
                    found=table.shape,
                    expected=f"({n_states}, {n_actions}) or one per transition",
                )
        elif table.ndim != 2 or 0 in table.shape:
            raise InvalidMDPError(
                f"rewards have shape {table.shape}",
                name="rewards",
                found=table.shape,
                expected="(S, A)",
                hint="for one reward per transition give n_actions=",
            )
        n_states, n_actions = table.shape
        pairs = table.reshape(-1)
        if len(np.asarray(indptr)) != n_states * n_actions + 1:
            raise InvalidMDPError(
                f"indptr has {len(np.asarray(indptr))} entries",
                name="indptr",
                found=len(np.asarray(indptr)),
                expected=f"S*A+1 = {n_states * n_actions + 1}",
            )
        self = cls.__new__(cls)
        self._assemble(
            n_states,
            n_actions,
            indptr,
            indices,
            probabilities,
            pairs,
            entries,
            reward_law=reward_law,
            start=start,
            allowed=None,
            state_labels=state_labels,
            action_labels=action_labels,
            units=Units(objective=objective),
            name=name,
            user_rewards=True,
        )
        return self

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

    # ------------------------------------------------------------------ what it is made of

    def _assemble(
        self,
        n_states: int,
        n_actions: int,
        indptr: ArrayLike,
        indices: ArrayLike,
        probabilities: ArrayLike,
        pair_rewards: NDArray[np.float64],
        entry_rewards: NDArray[np.float64] | None,
        *,
        reward_law: RewardLaw | None,
        start: Start,
        allowed: ArrayLike | None,
        state_labels: Sequence[str] | None,
        action_labels: Sequence[str] | None,
        units: Units,
        name: str | None,
        user_rewards: bool,
    ) -> None:
        """Check everything and set the attributes; with `user_rewards`, rewards are first converted by `units`."""
        if n_states >= 2**31:
            raise InvalidMDPError(
                f"there are {n_states} states",
                name="n_states",
                found=n_states,
                expected=f"at most {2**31 - 1}",
                hint="next states are stored in 32 bits",
            )
        self.n_states, self.n_actions = n_states, n_actions
        self.state_labels = checked_labels("state_labels", state_labels, n_states)
        self.action_labels = checked_labels("action_labels", action_labels, n_actions)
        if units.objective not in get_args(Objective):
            raise InvalidArgumentError("objective", units.objective, "'reward' or 'cost'")
        check_step_duration(units)
        self.units, self.name = units, name
        self.reward_law = _checked_law(reward_law, entry_rewards)
        if entry_rewards is not None and user_rewards:  # before rows are sorted, which is by internal rewards too
            entry_rewards = units.sign * entry_rewards - units.offset + 0.0
        rows = checked_rows(indptr, indices, probabilities, n_states, self._pair_in_message, entry_rewards)
        rows = self._set_allowed(rows, allowed)
        self._set_rewards(rows, pair_rewards, user_rewards)
        if rows.entry_rewards is not None and self.reward_law != "transition":
            # next states that are listed with several rewards become one entry
            rows = merged(TransitionRows(rows.indptr, rows.indices, rows.probabilities, None))
        self.indptr, self.indices, self.probabilities = rows.indptr, rows.indices, rows.probabilities
        self.start = self._start_distribution(start)
        arrays = (self.indptr, self.indices, self.probabilities, self.pair_rewards, self.allowed, self.start)
        for array in (*arrays, *(() if self.entry_rewards is None else (self.entry_rewards,))):
            array.flags.writeable = False
        object.__setattr__(self, "_frozen", True)

    def _set_allowed(self, rows: TransitionRows, allowed: ArrayLike | None) -> TransitionRows:
        """Set `allowed` from the mask, or from the rows that are not empty; returns the rows of allowed pairs."""
        filled = rows.indptr[1:] > rows.indptr[:-1]
        if allowed is not None:
            mask = allowed_mask(allowed, self.n_states, self.n_actions).reshape(-1)
            if np.any(mask & ~filled):
                k = int(np.flatnonzero(mask & ~filled)[0])
                raise InvalidMDPError(
                    f"{self._pair_in_message(k)} sums to 0",
                    name="P",
                    found=0.0,
                    expected="1",
                    hint="mark an action that the state does not have as False in allowed=",
                )
            rows = rows_of_pairs(rows, mask)
            filled = mask
        self.allowed = filled.reshape(self.n_states, self.n_actions).copy()
        without = np.flatnonzero(~self.allowed.any(axis=1))
        if without.size:
            raise InvalidMDPError(
                f"state {self.state_name(int(without[0]))} has no action (all its rows are empty); "
                f"{without.size} of {self.n_states} states",
                name="P",
                found=self.state_name(int(without[0])),
                hint="a state that ends the process can loop on itself or restart",
            )
        return rows

    def _set_rewards(self, rows: TransitionRows, pair_rewards: NDArray[np.float64], user_rewards: bool) -> None:
        """Set the internal rewards of pairs and transitions, and check them."""
        entries, filled, units = rows.entry_rewards, self.allowed.reshape(-1), self.units
        if entries is not None:
            check_sizes(entries, units, user_rewards, "transitions", lambda i: self._entry_in_message(rows, i))
            pair_rewards = np.zeros(self.n_states * self.n_actions)
            inside = np.flatnonzero(filled)
            pair_rewards[inside] = np.add.reduceat(rows.probabilities * entries, rows.indptr[inside])
        else:
            pair_rewards = np.where(filled, pair_rewards, 0.0)
            if user_rewards:
                pair_rewards = np.where(filled, units.sign * pair_rewards - units.offset + 0.0, 0.0)
            kind = units.objective
            check_sizes(
                pair_rewards, units, user_rewards, "pairs", lambda k: f"the {kind} of {self._pair_in_message(k)}"
            )
        if self.reward_law == "bernoulli":
            mean = units.reward(pair_rewards)[filled]
            if mean.min() < 0.0 or mean.max() > 1.0:
                k = int(np.flatnonzero(filled)[np.flatnonzero((mean < 0.0) | (mean > 1.0))[0]])
                found = float(units.reward(pair_rewards[k : k + 1])[0])
                raise InvalidMDPError(
                    f"the mean reward of {self._pair_in_message(k)} is {found:g}",
                    name="R",
                    found=found,
                    expected="a number in [0, 1] for Bernoulli rewards",
                )
        self.entry_rewards = entries if self.reward_law == "transition" else None
        self.pair_rewards = np.ascontiguousarray(pair_rewards)

    def _start_distribution(self, start: Start) -> NDArray[np.float64]:
        S = self.n_states
        if start is None or isinstance(start, str) or np.ndim(start) == 0:
            p = np.zeros(S)
            p[0 if start is None else self.state_index(start)] = 1.0  # type: ignore[arg-type]
            return p
        p = as_float("start", start)
        if p.shape != (S,):
            raise InvalidMDPError(
                f"start has shape {p.shape}",
                name="start",
                found=p.shape,
                expected=f"a state or a distribution over {S} states",
            )
        if not np.all(p >= 0.0) or abs(p.sum() - 1.0) > 1e-8:
            raise InvalidMDPError(
                f"start sums to {p.sum():.10g} (smallest entry {p.min():g})",
                name="start",
                found=float(p.sum()),
                expected="a distribution",
            )
        total = float(p.sum())  # divided once, it stays as it is: copies and loaded files are equal to the bit
        return p if abs(total - 1.0) <= (S + 2) * 2.0**-53 else p / total

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"an MDP cannot be changed: '{name}'; build a new one")
        object.__setattr__(self, name, value)

    # ------------------------------------------------------------------ names

    def state_index(self, state: int | str) -> int:
        """The index of a state.

        Parameters
        ----------
        state : int or str
            A label or an index. If all labels are integers, a number is a label.

        Returns
        -------
        int

        Raises
        ------
        InvalidArgumentError
            If there is no such state; the message suggests the nearest label.
        """
        return index_of("state", state, self.n_states, self.state_labels, self._numbered_states)

    def action_index(self, action: int | str) -> int:
        """The index of an action.

        Parameters
        ----------
        action : int or str
            A label or an index. If all labels are integers, a number is a label.

        Returns
        -------
        int

        Raises
        ------
        InvalidArgumentError
            If there is no such action; the message suggests the nearest label.
        """
        return index_of("action", action, self.n_actions, self.action_labels, are_numbers(self.action_labels))

    @cached_property
    def _numbered_states(self) -> bool:
        return are_numbers(self.state_labels)

    def state_name(self, s: int) -> str:
        """The label of a state, or its index as text if there are no labels.

        Parameters
        ----------
        s : int
            The index of the state.

        Returns
        -------
        str
        """
        return str(s) if self.state_labels is None else self.state_labels[s]

    def action_name(self, a: int) -> str:
        """The label of an action, or its index as text if there are no labels.

        Parameters
        ----------
        a : int
            The index of the action.

        Returns
        -------
        str
        """
        return str(a) if self.action_labels is None else self.action_labels[a]

    def _pair_in_message(self, k: int) -> str:
        s, a = divmod(k, self.n_actions)
        place = f"P[{s}, {a}]"
        if self.state_labels is None and self.action_labels is None:
            return place
        return f"{place} (state '{self.state_name(s)}', action '{self.action_name(a)}')"

    def _entry_in_message(self, rows: TransitionRows, i: int) -> str:
        pair = self._pair_in_message(int(np.searchsorted(rows.indptr, i, side="right")) - 1)
        return f"{pair}: the {self.units.objective} of moving to state {self.state_name(int(rows.indices[i]))}"

    # ------------------------------------------------------------------ views

    @property
    def rewards(self) -> NDArray[np.float64]:
        """(S,A) mean rewards in the user's units, with costs negated (what is maximised); 0 if not allowed."""
        table = (self.pair_rewards + self.units.offset).reshape(self.n_states, self.n_actions)
        return np.where(self.allowed, table, 0.0)

    @property
    def costs(self) -> NDArray[np.float64]:
        """(S,A) mean costs; InvalidArgumentError unless the objective is "cost"."""
        if self.units.objective != "cost":
            raise InvalidArgumentError("costs", hint="read mdp.rewards", problem="this MDP has rewards, not costs")
        return 0.0 - self.rewards

    @property
    def n_transitions(self) -> int:
        """The number of stored transitions."""
        return int(self.indices.size)

    @property
    def n_pairs(self) -> int:
        """The number of allowed state-action pairs."""
        return int(self.allowed.sum())

    @property
    def max_support(self) -> int:
        """Γ: the largest number of next states of any pair."""
        if self.entry_rewards is None:
            return int(np.diff(self.indptr).max())
        # a next state may be listed with several rewards
        rows = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        new = np.ones(self.indices.size, dtype=bool)
        new[1:] = (self.indices[1:] != self.indices[:-1]) | (rows[1:] != rows[:-1])
        return int(np.bincount(rows[new]).max())

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and largest reward that a step can give, in the units of `rewards` (costs negated)."""
        if self.reward_law == "bernoulli":
            return (0.0, 1.0) if self.units.sign > 0 else (-1.0, 0.0)
        values = self.pair_rewards[self.allowed.reshape(-1)] if self.entry_rewards is None else self.entry_rewards
        return float(values.min()) + self.units.offset, float(values.max()) + self.units.offset

    @property
    def reward_min(self) -> float:
        """The smallest reward that a step can give: the `reward_min` of learners."""
        return self.reward_range[0]

    @property
    def reward_max(self) -> float:
        """The largest reward that a step can give: the `reward_max` of learners."""
        return self.reward_range[1]

    @property
    def is_full(self) -> bool:
        """Whether every row lists all states, so that `probabilities` is the dense array."""
        return self.entry_rewards is None and self.n_transitions == self.n_states**2 * self.n_actions

    def to_dense(self, limit_bytes: int = DENSE_LIMIT_BYTES) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P and the mean rewards as dense arrays.

        Parameters
        ----------
        limit_bytes : int
            The largest size of P.

        Returns
        -------
        P : ndarray (S,A,S)
            Zero where an action is not allowed.
        rewards : ndarray (S,A)
            As the property `rewards`.

        Raises
        ------
        TooLargeError
            If P would be larger than `limit_bytes`.

        Examples
        --------
        >>> import gainful as gf
        >>> P, rewards = gf.environments.riverswim(6).to_dense()
        >>> P.shape, rewards.shape
        ((6, 2, 6), (6, 2))
        """
        S, A = self.n_states, self.n_actions
        size = 8 * S * S * A
        if size > limit_bytes:
            raise TooLargeError(
                f"a dense (S, A, S) array for S = {S}, A = {A} takes {size / 2**30:.1f} GiB, more than the limit of "
                f"{limit_bytes / 2**30:.3g} GiB",
                name="limit_bytes",
                found=size,
                hint="use the sparse rows (indptr, indices, probabilities) or raise limit_bytes",
            )
        P = self.matrix().toarray()
        return P.reshape(S, A, S), self.rewards

    def to_sparse(self) -> list[sp.csr_array]:
        """The transition probabilities as sparse matrices.

        Returns
        -------
        list of scipy.sparse.csr_array
            One (S,S) matrix per action; the row of an action that is not allowed is empty.

        Examples
        --------
        >>> import gainful as gf
        >>> left, right = gf.environments.riverswim(6).to_sparse()
        >>> right.shape, right.nnz
        ((6, 6), 16)
        """
        stacked = self.matrix()
        return [sp.csr_array(stacked[a :: self.n_actions]) for a in range(self.n_actions)]

    def matrix(self) -> sp.csr_array:
        """All transition probabilities as one sparse matrix.

        Returns
        -------
        scipy.sparse.csr_array (S*A, S)
            Its row s*A + a is p(·|s,a).

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.riverswim(6).matrix().shape
        (12, 6)
        """
        return sp.csr_array(
            (self.probabilities, self.indices.view(np.int32), self.indptr),
            shape=(self.n_states * self.n_actions, self.n_states),
        )

    def transition(self, state: int | str, action: int | str) -> dict[int, float]:
        """p(·|s,a) as a dictionary from next state to probability.

        Parameters
        ----------
        state, action : int or str
            An index or a label.

        Returns
        -------
        dict of int to float

        Examples
        --------
        >>> import gainful as gf
        >>> gf.environments.riverswim(6).transition(0, 1)
        {0: 0.4, 1: 0.6}
        """
        k = self.state_index(state) * self.n_actions + self.action_index(action)
        out: dict[int, float] = {}
        for j in range(self.indptr[k], self.indptr[k + 1]):
            out[int(self.indices[j])] = out.get(int(self.indices[j]), 0.0) + float(self.probabilities[j])
        return out

    def q_values(self, values: ArrayLike) -> NDArray[np.float64]:
        """The values r(s,a) + sum_s' p(s'|s,a) v(s') of one step followed by `values`.

        This is plain SciPy, for checks and small problems; planners have their own sweeps.

        Parameters
        ----------
        values : array_like (S,)
            v, in the units of `rewards`.

        Returns
        -------
        ndarray (S,A)
            -inf if an action is not allowed.
        """
        v = np.asarray(values, dtype=np.float64)
        q = (self.pair_rewards + self.units.offset + self.matrix() @ v).reshape(self.n_states, self.n_actions)
        return np.where(self.allowed, q, -np.inf)

    # ------------------------------------------------------------------ changes, each a new MDP

    def _replace(self, **changes: Any) -> Self:
        """A copy with some parts changed; it is checked like any other input."""
        parts: dict[str, Any] = {
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "indptr": self.indptr,
            "indices": self.indices,
            "probabilities": self.probabilities,
            "pair_rewards": self.pair_rewards,
            "entry_rewards": self.entry_rewards,
            "reward_law": self.reward_law,
            "start": self.start,
            "allowed": None,
            "state_labels": self.state_labels,
            "action_labels": self.action_labels,
            "units": self.units,
            "name": self.name,
            "user_rewards": False,
        }
        parts.update(changes)
        new = type(self).__new__(type(self))
        new._assemble(**parts)
        return new

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
        from dataclasses import replace

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
        chosen = np.asarray(states)
        if chosen.dtype == bool:
            fine = chosen.shape == (self.n_states,) and bool(chosen.any())
        else:
            fine = chosen.dtype.kind in "iu" and chosen.size > 0 and chosen.min() >= 0 and chosen.max() < self.n_states
        if not fine:
            raise InvalidArgumentError(
                "states",
                states,
                f"a mask of shape ({self.n_states},) or indices 0 … {self.n_states - 1}, at least one",
            )
        keep = np.zeros(self.n_states, dtype=bool)
        keep[chosen] = True
        inside = keep[self.indices]
        per_pair = np.zeros(self.indptr.size - 1, dtype=np.int64)
        lengths = np.diff(self.indptr)
        filled = lengths > 0
        per_pair[filled] = np.add.reduceat(inside.astype(np.int64), self.indptr[:-1][filled])
        pairs = np.repeat(keep, self.n_actions) & filled & (per_pair == lengths)
        old = np.flatnonzero(keep)
        rows = rows_of_pairs(TransitionRows(self.indptr, self.indices, self.probabilities, self.entry_rewards), pairs)
        number = np.cumsum(keep) - 1
        of_kept = np.repeat(keep, self.n_actions)
        new_lengths = np.diff(rows.indptr)[of_kept]
        start = self.start[keep]
        total = float(start.sum())
        if total == 0.0:
            start = np.zeros(old.size)
            start[0] = total = 1.0
        return self._replace(
            n_states=int(old.size),
            indptr=np.concatenate([[0], np.cumsum(new_lengths)]),
            indices=number[rows.indices],
            probabilities=rows.probabilities,
            entry_rewards=rows.entry_rewards,
            pair_rewards=self.pair_rewards[of_kept],
            start=start / total,
            state_labels=[self.state_name(int(s)) for s in old],
        )

    # ------------------------------------------------------------------ comparisons and text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MDP):
            return NotImplemented
        same = (
            self.n_states == other.n_states
            and self.n_actions == other.n_actions
            and self.reward_law == other.reward_law
            and self.state_labels == other.state_labels
            and self.action_labels == other.action_labels
            and self.units == other.units
        )
        names = ("indptr", "indices", "probabilities", "pair_rewards", "start")
        return (
            same
            and all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
            and (self.entry_rewards is None) == (other.entry_rewards is None)
            and (self.entry_rewards is None or np.array_equal(self.entry_rewards, other.entry_rewards))  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def plural(n: int, word: str) -> str:
            return f"{n} {word}" + ("" if n == 1 else "s")

        title = f"'{self.name}', " if self.name else ""
        return (
            f"MDP({title}{plural(self.n_states, 'state')}, {plural(self.n_actions, 'action')}, "
            f"{plural(self.n_transitions, 'transition')})"
        )


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


# ---------------------------------------------------------------------- helpers


def _checked_law(given: RewardLaw | None, entry_rewards: NDArray[np.float64] | None) -> RewardLaw:
    """The reward law, or the one that follows from the kind of rewards."""
    law = given if given is not None else ("deterministic" if entry_rewards is None else "transition")
    if law not in get_args(RewardLaw):
        raise InvalidArgumentError("reward_law", law, f"one of {', '.join(get_args(RewardLaw))}")
    if law == "transition" and entry_rewards is None:
        raise InvalidMDPError(
            "reward_law 'transition' needs one reward per transition",
            name="reward_law",
            found=law,
            hint="give R (S, A, S) or a table",
        )
    return law
