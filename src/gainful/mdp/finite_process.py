"""The arrays of a finite decision process, and what can be read from them: names, rewards, matrices, values."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.mdp.assembly import Ingredients, RewardLaw, checked_parts
from gainful.mdp.labels import are_numbers, index_of, name_of
from gainful.mdp.units import Units

DENSE_LIMIT_BYTES = 1 << 30


class FiniteProcess:
    """A finite decision process that was checked and cannot be changed; `MDP` has the ways to build and convert one."""

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

    def __init__(self, given: Ingredients) -> None:
        for name, value in checked_parts(given)._asdict().items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_frozen", True)

    @classmethod
    def _made_of(cls, given: Ingredients) -> Self:
        """A process of this class, whatever arguments the class itself takes."""
        self = cls.__new__(cls)
        FiniteProcess.__init__(self, given)
        return self

    def _replace(self, **changes: Any) -> Self:
        """A copy with some of its `Ingredients` changed; it is checked like any other input."""
        own = Ingredients(
            n_states=self.n_states,
            n_actions=self.n_actions,
            indptr=self.indptr,
            indices=self.indices,
            probabilities=self.probabilities,
            pair_rewards=self.pair_rewards,
            entry_rewards=self.entry_rewards,
            reward_law=self.reward_law,
            start=self.start,
            state_labels=self.state_labels,
            action_labels=self.action_labels,
            units=self.units,
            name=self.name,
            user_rewards=False,
        )
        return self._made_of(replace(own, **changes))

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
        return name_of(s, self.state_labels)

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
        return name_of(a, self.action_labels)

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

    # ------------------------------------------------------------------ comparisons and text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteProcess):
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
