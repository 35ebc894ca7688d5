"""The chain structure of an MDP, read from its graph alone: end components, and what they imply about the gain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gainful._compiled import inlined, kernel
from gainful.mdp.model import MDP

_SHOWN_STATES = 8
_SHOWN_CLASSES = 8
_WORK = 200_000_000  # transitions the search for a proof about `unichain` may read
_ROUNDS = 64
_ENUMERATED = 1000  # policies tried one by one where nothing else decides


class Structure(str):
    """The chain structure of an MDP: a string that also has the classes behind it.

    It is equal to 'communicating', 'unichain', 'weakly communicating' or 'multichain'. These words overlap;
    `structure` documents which one is chosen.

    Attributes
    ----------
    mdp : MDP
        The decision process.
    classes : tuple of ndarray
        The maximal end components.
    transient : ndarray
        The states in no end component, which every policy visits finitely often.
    unichain : bool or None
        Whether every stationary policy has one recurrent class; None if neither was proven.

    Examples
    --------
    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[0, 0], [1, 1]], state_labels=["in", "out"])
    >>> structure(mdp) == "multichain"
    True
    >>> print(structure(mdp).describe())
    multichain: 2 classes in which a policy can stay forever
      class 1 (1 state): in
      class 2 (1 state): out
    """

    _mdp: MDP
    _classes: tuple[NDArray[np.int64], ...]
    _transient: NDArray[np.int64]
    _unichain: bool | None
    _decided: bool

    def __new__(
        cls,
        label: str,
        mdp: MDP,
        classes: tuple[NDArray[np.int64], ...],
        transient: NDArray[np.int64],
        unichain: bool | None = None,
        decided: bool = False,
    ) -> Structure:
        """A label with its evidence; `decided` False leaves `unichain` to be worked out when it is asked for."""
        self = super().__new__(cls, label)
        for array in (*classes, transient):
            array.flags.writeable = False
        values = {
            "_mdp": mdp,
            "_classes": classes,
            "_transient": transient,
            "_unichain": unichain,
            "_decided": decided,
        }
        self.__dict__.update(values)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Structure is read-only; cannot set {name!r}")

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self._mdp, self._classes, self._transient, self._unichain, self._decided

    @property
    def mdp(self) -> MDP:
        """The MDP described."""
        return self._mdp

    @property
    def classes(self) -> tuple[NDArray[np.int64], ...]:
        """The maximal end components, as increasing arrays of states, ordered by their first state."""
        return self._classes

    @property
    def transient(self) -> NDArray[np.int64]:
        """The states in no end component: transient under every policy."""
        return self._transient

    @property
    def unichain(self) -> bool | None:
        """Whether every stationary policy has one recurrent class; None when neither was proven.

        Deciding it is NP-hard (Tsitsiklis 2007). Every recurrent class is an end component and every end component
        contains a recurrent class of some policy, so an MDP is unichain exactly when no two end components are
        disjoint. Proven by a state that no end component avoids; refuted by two disjoint end components; settled
        by trying all deterministic policies where there are at most 1000. The search reads a bounded number of
        transitions. Worked out on first use for communicating MDPs.
        """
        if not self._decided:
            answer = _EndComponents(self._mdp).unichain()
            self.__dict__.update({"_unichain": answer, "_decided": True})
        return self._unichain

    def describe(self, gains: Sequence[float] | None = None) -> str:
        """Describe the classes in a few lines of text; long lists are shortened.

        Parameters
        ----------
        gains : sequence of float, optional
            One gain per class, to be shown with it.

        Returns
        -------
        str
        """
        n, left = len(self.classes), self.transient.size
        text = f"{self}: {n} {'class' if n == 1 else 'classes'} in which a policy can stay forever"
        if left:
            text += f", {left} transient state{'' if left == 1 else 's'}"
        lines = [text]
        for i, states in enumerate(self.classes[:_SHOWN_CLASSES]):
            gain = "" if gains is None else f", gain {gains[i]:.10g}"
            lines.append(f"  class {i + 1} ({_size(states)}{gain}): {self._names(states)}")
        if n > _SHOWN_CLASSES:
            lines.append(f"  … and {n - _SHOWN_CLASSES} more classes")
        if left:
            lines.append(f"  transient ({_size(self.transient)}): {self._names(self.transient)}")
        return "\n".join(lines)

    def _names(self, states: NDArray[np.int64]) -> str:
        shown = ", ".join(self._mdp.state_name(int(s)) for s in states[:_SHOWN_STATES])
        return shown + (f", … ({states.size} in all)" if states.size > _SHOWN_STATES else "")


def structure(mdp: MDP) -> Structure:
    """Classify an MDP as communicating, unichain, weakly communicating or multichain.

    An end component is a set of states with actions that keep the process inside and connect all of it; the
    maximal ones (MECs) are disjoint. The answer is the first of

    - 'communicating': every state can be reached from every other;
    - 'unichain': one MEC and transient states, and every policy proven to have one recurrent class;
    - 'weakly communicating': one MEC;
    - 'multichain': several MECs, so that the optimal gain may depend on the start.

    `.unichain` answers that question on its own, also for communicating MDPs.

    One MEC is the same as weakly communicating (Puterman 1994, sec. 8.3: a closed set C whose states reach each
    other, all other states transient under every policy). If C is the only MEC, a state x outside is recurrent under
    no policy, recurrent classes being end components. And C is closed: let X be what can be reached from C; no action
    leaves X, and from X any policy ends in its recurrent classes, inside C; so X is itself an end component, X = C.
    Conversely a state x of any end component is recurrent under the policy that stays in it and heads back to x,
    so x is in C, and C is an end component since it is closed and connected.

    MECs are found by repeated strong components (de Alfaro 1997): pairs that can leave their component are dropped,
    states without pairs follow through predecessor lists, and only components that lost a pair are split again. Each
    round is linear in the transitions concerned; the number of rounds is small in practice.

    Parameters
    ----------
    mdp : MDP
        The decision process; only its graph matters.

    Returns
    -------
    Structure
        A string that also has the classes, the transient states and a description.

    Examples
    --------
    >>> import gainful as gf
    >>> structure(gf.environments.riverswim(6)) == "communicating"
    True
    """
    work = _EndComponents(mdp)
    connected = work.maximal()
    classes, transient = _groups(work.label)
    if connected:
        return Structure("communicating", mdp, classes, transient)
    if len(classes) > 1:
        return Structure("multichain", mdp, classes, transient, False, True)
    unichain = work.unichain()
    return Structure("unichain" if unichain else "weakly communicating", mdp, classes, transient, unichain, True)


def recurrent_classes(P: sp.csr_array) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """The recurrent classes of one Markov chain P (S,S), ordered by first state, and its transient states.

    A recurrent class is a strong component of the graph that no transition leaves.
    """
    P = sp.csr_array(P, copy=True)
    P.sum_duplicates()  # SciPy's search for components does not end on a matrix with duplicates
    S = int(P.shape[0])
    if np.any(P.data == 0.0):
        P = P.copy()
        P.eliminate_zeros()
    n, label = connected_components(P, directed=True, connection="strong")
    if n == 1:
        return [np.arange(S)], np.zeros(0, dtype=np.int64)
    source = np.repeat(label, np.diff(P.indptr))
    left = np.zeros(n, dtype=bool)
    left[source[source != label[P.indices]]] = True
    classes, transient = _groups(np.where(left[label], -1, label))
    return list(classes), transient


def _size(states: NDArray[np.int64]) -> str:
    return f"{states.size} state{'' if states.size == 1 else 's'}"


def _groups(label: NDArray[Any]) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """The states of each label >= 0, ordered by first state; and the states with a negative label."""
    inside = np.flatnonzero(label >= 0)
    order = inside[np.argsort(label[inside], kind="stable")]
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    groups = [g.copy() for g in np.split(order, cuts)] if order.size else []
    groups.sort(key=lambda g: int(g[0]))
    return tuple(groups), np.flatnonzero(label < 0)


# ---------------------------------------------------------------------- end components


class Graph(NamedTuple):
    """Which state each pair s*A + a can move to, as CSR."""

    indptr: Any
    indices: Any
    n_actions: Any


class PredecessorLists(NamedTuple):
    """The pairs that can move to each state: `pointers` (S+1,) into `pairs`."""

    pointers: Any
    pairs: Any


class _SearchSpace(NamedTuple):
    """Work space (S,) of the search for strong components."""

    order: Any
    """When each state was first seen; 0 before."""
    low: Any
    """The earliest state on the stack that is known to be reachable."""
    stack: Any
    """States whose component is not complete."""
    calls: Any
    """The path from the root to the present state."""
    pair: Any
    """Where the search stands at each state: the pair, and"""
    entry: Any
    """its transition."""


class _EndComponents:
    """The pairs still usable while end components are looked for, and the work space of the kernels."""

    def __init__(self, mdp: MDP) -> None:
        S = mdp.n_states
        self.mdp = mdp
        self.alive = mdp.allowed.reshape(-1).copy()  # (S*A,) pairs not dropped yet
        self.count = mdp.allowed.sum(axis=1).astype(np.int32)  # (S,) such pairs of each state
        self.label = np.full(S, -1, dtype=np.int32)  # (S,) one state of its component; -1 without pairs
        self._graph = Graph(mdp.indptr, mdp.indices, mdp.n_actions)
        self._space = _SearchSpace(
            order=np.zeros(S, dtype=np.int32),
            low=np.empty(S, dtype=np.int32),
            stack=np.empty(S, dtype=np.int32),
            calls=np.empty(S, dtype=np.int32),
            pair=np.empty(S, dtype=np.int64),
            entry=np.empty(S, dtype=np.int64),
        )
        self._before: PredecessorLists | None = None

    @property
    def before(self) -> PredecessorLists:
        if self._before is None:
            self._before = predecessors(self.mdp)
        return self._before

    def components(self, alive: NDArray[np.bool_], roots: NDArray[np.int64], only_first: bool = False) -> int:
        """Label the strong components reached from `roots` through the pairs `alive`; how many."""
        self.label[roots] = -1
        self._space.order[roots] = 0
        found = _strong_components(self._graph, alive, roots, self.label, self._space, only_first)
        return int(found)

    def maximal(self) -> bool:
        """Label the maximal end components (-1: none); whether the whole graph was one strong component."""
        mdp = self.mdp
        roots = np.arange(mdp.n_states)
        if self.components(self.alive, roots) == 1:
            return True
        touched = np.zeros(mdp.n_states, dtype=bool)
        stack = np.empty(mdp.n_states, dtype=np.int32)
        changed = np.zeros(mdp.n_states, dtype=bool)  # by label
        while roots.size:
            depth = _drop_leaving(self._graph, self.alive, self.label, roots, self.count, touched, stack)
            if depth:
                _cascade(self.before, mdp.n_actions, self.alive, self.count, touched, stack, depth)
            changed[self.label[roots[touched[roots]]]] = True
            again = roots[changed[self.label[roots]]]
            changed[self.label[roots]] = False
            touched[roots] = False
            self.label[again] = -1
            roots = again[self.count[again] > 0]
            if roots.size:
                self.components(self.alive, roots)
        return False

    def avoiding(self, states: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Pairs and states from which `states` can be avoided forever (every end component that does is inside)."""
        alive, count = self.alive.copy(), self.count.copy()
        stack = np.empty(self.mdp.n_states, dtype=np.int32)
        _avoid(self.before, self.mdp.n_actions, alive, count, states, stack)
        return alive, count > 0

    def unichain(self) -> bool | None:
        """See `Structure.unichain`."""
        mdp = self.mdp
        if mdp.n_states == 1:
            return True
        inside = self.count > 0
        popular = np.diff(self.before.pointers)  # a state many pairs can move to is hard to avoid
        hits = np.where(inside, 0, -1)
        tried = np.zeros(mdp.n_states, dtype=bool)
        rounds = max(3, min(_ROUNDS, _WORK // max(1, mdp.n_transitions)))
        for _ in range(rounds):
            # a state in all end components found so far; failing that, one in as many of them as possible
            best = np.flatnonzero((hits == hits[~tried].max()) & ~tried)
            x = best[np.argmax(popular[best])]
            if hits[x] < 0:
                break
            tried[x] = True
            alive, where = self.avoiding(np.array([x]))
            if not where.any():
                return True
            inner = self.sink(alive, int(np.flatnonzero(where)[0]))
            if self.avoiding(inner)[1].any():
                return False
            hits[inner] += 1
            if tried.all():
                break
        return self.unichain_by_enumeration()

    def unichain_by_enumeration(self) -> bool | None:
        """The classes of every deterministic policy inside if there are few of them; else None."""
        mdp = self.mdp
        states = np.flatnonzero(self.count > 0)
        if np.log(self.count[states]).sum() > np.log(_ENUMERATED):
            return None
        number = np.zeros(mdp.n_states, dtype=np.int64)
        number[states] = np.arange(states.size)
        pairs = [s * mdp.n_actions + np.flatnonzero(self.alive.reshape(-1, mdp.n_actions)[s]) for s in states]
        targets = {
            int(k): number[mdp.indices[mdp.indptr[k] : mdp.indptr[k + 1]]] for own in pairs for k in own
        }  # none leaves the component
        for policy in itertools.product(*pairs):
            rows = [targets[int(k)] for k in policy]
            indptr = np.concatenate([[0], np.cumsum([row.size for row in rows])])
            columns = np.concatenate(rows)
            chain = sp.csr_array((np.ones(columns.size), columns, indptr), shape=(states.size, states.size))
            if len(recurrent_classes(chain)[0]) > 1:
                return False
        return True

    def sink(self, alive: NDArray[np.bool_], state: int) -> NDArray[np.int64]:
        """A recurrent class, reached from `state`, of the policy playing alive pairs with the fewest next states."""
        mdp = self.mdp
        A = mdp.n_actions
        lengths = np.where(alive, np.diff(mdp.indptr), np.iinfo(np.int64).max).reshape(-1, A)
        chosen = lengths.argmin(axis=1)
        one = np.zeros_like(alive)
        one[np.arange(mdp.n_states) * A + chosen] = True
        one &= alive
        saved = self.label.copy()
        self._space.order[:] = 0
        self.label[:] = -1
        self.components(one, np.array([state]), only_first=True)
        found = np.flatnonzero(self.label >= 0)
        self.label = saved
        return found


def predecessors(mdp: MDP) -> PredecessorLists:
    """The pairs s*A + a that can move to each state: `pointers` (S+1,) into `pairs`."""
    pointers = np.zeros(mdp.n_states + 1, dtype=np.int64)
    np.cumsum(np.bincount(mdp.indices.view(np.int32), minlength=mdp.n_states), out=pointers[1:])
    small = mdp.n_states * mdp.n_actions < 2**32
    pairs = np.empty(mdp.n_transitions, dtype=np.uint32 if small else np.int64)
    _fill_predecessors(mdp.indptr, mdp.indices, pointers[:-1].copy(), pairs)
    return PredecessorLists(pointers, pairs)


@kernel
def _fill_predecessors(
    indptr: NDArray[np.int64], indices: NDArray[np.uint32], place: NDArray[np.int64], pairs: NDArray[Any]
) -> None:
    for k in range(indptr.size - 1):
        for j in range(indptr[k], indptr[k + 1]):
            t = indices[j]
            pairs[place[t]] = k
            place[t] += 1


@kernel
def _strong_components(
    graph: Graph,
    alive: NDArray[np.bool_],
    roots: NDArray[np.int64],
    label: NDArray[np.int32],
    space: _SearchSpace,
    only_first: bool,
) -> int:
    """Tarjan (1972) without recursion, reading alive pairs only.

    A component is labelled by the state it was entered through. The first one completed has no way out.
    """
    order, low, stack, calls, pair, entry = space
    found = 0
    visited = 0
    height = 0
    for root in roots:
        if order[root] != 0:
            continue
        calls[0] = root
        depth = 1
        fresh = True
        while depth > 0:
            s = np.int64(calls[depth - 1])
            if fresh:
                visited += 1
                order[s] = visited
                low[s] = visited
                stack[height] = s
                height += 1
                pair[s] = s * graph.n_actions
                entry[s] = graph.indptr[pair[s]]
            new = _next_unseen(graph, alive, label, space, s)
            fresh = bool(new >= 0)
            if fresh:
                calls[depth] = new
                depth += 1
                continue
            depth -= 1
            if low[s] == order[s]:
                found += 1
                height = _complete(stack, height, label, s)
                if only_first:
                    return found
            elif low[calls[depth - 1]] > low[s]:
                low[calls[depth - 1]] = low[s]
    return found


@inlined
def _next_unseen(
    graph: Graph, alive: NDArray[np.bool_], label: NDArray[np.int32], space: _SearchSpace, s: np.int64
) -> np.int64:
    """Go on with the transitions of s to the first state not seen before; -1 if there is none left."""
    order, low, _, _, pair, entry = space
    indptr, indices, n_actions = graph
    last = (s + 1) * n_actions
    k, j, lowest = pair[s], entry[s], low[s]
    new = np.int64(-1)
    while k < last and new < 0:
        end = indptr[k + 1]
        if alive[k]:
            while j < end:
                t = indices[j]
                j += 1
                if order[t] == 0:
                    new = np.int64(t)
                    break
                if label[t] < 0 and order[t] < lowest:  # still on the stack
                    lowest = order[t]
        if new < 0:
            j = end
            k += 1
    pair[s], entry[s], low[s] = k, j, lowest
    return new


@inlined
def _complete(stack: NDArray[np.int32], height: int, label: NDArray[np.int32], s: np.int64) -> int:
    """Label the component entered through s, which is on top of the stack; returns the height that is left."""
    while True:
        height -= 1
        label[stack[height]] = s
        if stack[height] == s:
            return height


@kernel
def _drop_leaving(
    graph: Graph,
    alive: NDArray[np.bool_],
    label: NDArray[np.int32],
    roots: NDArray[np.int64],
    count: NDArray[np.int32],
    touched: NDArray[np.bool_],
    stack: NDArray[np.int32],
) -> int:
    """Drop the pairs of `roots` that can leave their component; states left without pairs go on the stack."""
    indptr, indices, n_actions = graph
    depth = 0
    for s in roots:
        own = label[s]
        for k in range(s * n_actions, (s + 1) * n_actions):
            if not alive[k]:
                continue
            for j in range(indptr[k], indptr[k + 1]):
                if label[indices[j]] != own:
                    alive[k] = False
                    touched[s] = True
                    count[s] -= 1
                    break
        if count[s] == 0:
            stack[depth] = s
            depth += 1
    return depth


@kernel
def _cascade(
    before: PredecessorLists,
    n_actions: int,
    alive: NDArray[np.bool_],
    count: NDArray[np.int32],
    touched: NDArray[np.bool_],
    stack: NDArray[np.int32],
    depth: int,
) -> None:
    """Drop the pairs that can move to a state on the stack, which takes in the states this leaves without pairs."""
    pointers, pairs = before
    while depth > 0:
        depth -= 1
        t = stack[depth]
        for j in range(pointers[t], pointers[t + 1]):
            k = np.int64(pairs[j])
            if alive[k]:
                alive[k] = False
                s = k // n_actions
                touched[s] = True
                count[s] -= 1
                if count[s] == 0:
                    stack[depth] = s
                    depth += 1


@kernel
def _avoid(
    before: PredecessorLists,
    n_actions: int,
    alive: NDArray[np.bool_],
    count: NDArray[np.int32],
    states: NDArray[np.int64],
    stack: NDArray[np.int32],
) -> None:
    """As `_cascade`, beginning with `states` deprived of all their pairs."""
    depth = 0
    for x in states:
        for own in range(x * n_actions, (x + 1) * n_actions):
            alive[own] = False
        if count[x] > 0:
            count[x] = 0
            stack[depth] = x
            depth += 1
    _cascade(before, n_actions, alive, count, np.zeros(count.size, dtype=np.bool_), stack, depth)
