"""Exact evaluation of a stationary policy: gain, bias and long-run frequencies, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from numpy.typing import ArrayLike, NDArray

from gainful.cards import MOST_ROWS, card, left_out, rows_table
from gainful.errors import InvalidArgumentError, PrecisionError
from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP
from gainful.mdp.structure import recurrent_classes
from gainful.planning.plan import Plan
from gainful.planning.policies import as_policy_array
from gainful.planning.rounding import LARGEST_VALUE, UNIT_ROUNDOFF

if TYPE_CHECKING:
    import pandas as pd

    from gainful.planning.shortfall import Shortfall

Vector: TypeAlias = NDArray[np.float64]

DENSE_STATES = 2000  # up to here LAPACK, above sparse methods
DENSE_LOCAL_STATES = 300  # the same where states lead to near ones only
_KRYLOV_STEPS = 120
_SUM_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Gain, bias and classes of a stationary policy, in the user's units: the result of `evaluate`.

    Attributes
    ----------
    gain : ndarray, shape (S,)
        Average reward (or cost) per unit of time when starting in each state.
    bias : ndarray, shape (S,)
        h(s), the total difference from the gain when starting in s; its long-run average is 0 in each class.
    classes : tuple of ndarray
        The recurrent classes, ordered by their first states.
    class_gains : ndarray
        The gain of each class.
    class_stationary : tuple of ndarray
        The stationary distribution of each class, over the states of that class.
    transient : ndarray
        The states that are visited finitely often.
    stationary : ndarray, shape (S,)
        Long-run fractions of time when starting from `mdp.start`.
    gain_from_start : float
        The gain when starting from `mdp.start`.
    residual : float
        How far the numbers are from solving their equations: the larger of max|g + h - r - Ph| and max|g - Pg|.
    mdp : MDP
        The model that was evaluated.
    policy : ndarray
        The policy that was evaluated: (S,) actions or (S,A) probabilities.

    Examples
    --------
    >>> import gainful as gf
    >>> always_right = gf.evaluate(gf.environments.riverswim(6), [1] * 6)
    >>> round(always_right.gain_from_start, 4), always_right.unichain
    (0.4286, True)
    """

    gain: Vector = field(repr=False)
    bias: Vector = field(repr=False)
    classes: tuple[NDArray[np.int64], ...] = field(repr=False)
    class_gains: Vector
    class_stationary: tuple[Vector, ...] = field(repr=False)
    transient: NDArray[np.int64] = field(repr=False)
    stationary: Vector = field(repr=False)
    gain_from_start: float
    residual: float
    mdp: MDP = field(repr=False)
    policy: NDArray[Any] = field(repr=False)

    @property
    def span(self) -> float:
        """sp(bias) = max - min."""
        return float(self.bias.max() - self.bias.min())

    @cached_property
    def shortfall(self) -> Shortfall:
        """How far the policy is from optimal, and in which states; MultichainError if no gain is optimal everywhere."""
        from gainful.planning.shortfall import shortfall_of

        return shortfall_of(self)

    @property
    def unichain(self) -> bool:
        """Whether the policy has one recurrent class, so that its gain is one number."""
        return len(self.classes) == 1

    def __repr__(self) -> str:
        classes = f"{len(self.classes):,} recurrent class{'' if self.unichain else 'es'}"
        return (
            f"Evaluation(gain={self.gain_from_start:.12g}, span={self.span:.6g}, {self.mdp.n_states:,} states, "
            f"{classes}, {len(self.transient):,} transient, residual {self.residual:.1e})"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the gain from the start, the classes, and the first states."""
        units, shown = self.mdp.units, min(MOST_ROWS, self.mdp.n_states)
        facts = {
            f"{units.gain_name}, from the start": f"{self.gain_from_start:.10g}",
            "recurrent classes": ", ".join(
                f"{len(states):,} states with gain {gain:.6g}"
                for states, gain in zip(self.classes[:5], self.class_gains.tolist()[:5], strict=True)
            )
            + (f" and {len(self.classes) - 5:,} more" if len(self.classes) > 5 else ""),
            "transient states": f"{len(self.transient):,}",
            "span of the bias": f"{self.span:.6g}",
            "residual": f"{self.residual:.1e}",
        }
        numbers = zip(self.gain[:shown], self.bias[:shown], self.stationary[:shown], strict=True)
        rows = [(self.mdp.state_name(s), *(f"{x:.6g}" for x in each)) for s, each in enumerate(numbers)]
        name = f" in {self.mdp.name}" if self.mdp.name else ""
        return card(
            f"Evaluation of a policy{name}",
            facts,
            rows_table(["state", "gain", "bias", "frequency"], rows),
            left_out(shown, self.mdp.n_states, "states", "evaluation.to_frame()"),
        )

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the evaluation.

        Returns
        -------
        pandas.DataFrame
            One row per state: label, gain, bias, long-run fraction of time, and class (0 means transient).
        """
        import pandas as pd

        number = np.zeros(self.mdp.n_states, dtype=np.int64)
        for i, states in enumerate(self.classes):
            number[states] = i + 1
        return pd.DataFrame(
            {
                "state": label_column(self.mdp.state_labels, self.mdp.n_states),
                "gain": self.gain,
                "bias": self.bias,
                "frequency": self.stationary,
                "class": number,
            }
        )


def evaluate(mdp: MDP, policy: Plan | ArrayLike | Mapping[Any, Any] | Path) -> Evaluation:
    r"""The exact gain, bias and stationary distribution of a stationary policy; any chain structure.

    Solves, P* being the limit of the averages of P^t, ::

        g = P g,   g + h = r + P h,   P* h = 0

    without iteration over time (Puterman 1994, appendix A and sec. 8.2): in each recurrent class one linear system
    gives its gain, h pinned somewhere and, transposed, the stationary distribution π, and h is then shifted to
    π·h = 0; transient states follow from (I - P_TT) g_T = P_TR g_R and (I - P_TT) h_T = r_T - g_T + P_TR h_R.
    Up to 2000 states a system is solved by dense LU, above by GMRES if that reaches rounding accuracy and by sparse
    LU otherwise (whose memory depends on how the states are connected).

    Parameters
    ----------
    mdp : MDP
        The process.
    policy : Plan, mapping, array_like, data frame or file
        A Plan; {"new": "run", "worn": {"run": 0.5, "fix": 0.5}}; (S,) actions (indices or labels); (S,A)
        probabilities; or a table with the columns state and action, and probability if actions are mixed, as a data
        frame or a file (.csv, .tsv, .parquet, or .json as the commands print it).

    Returns
    -------
    Evaluation
        `residual` shows the accuracy reached; `shortfall` how far the policy is from optimal, and where.

    Raises
    ------
    InvalidArgumentError
        If the policy plays an action that a state does not have, or its probabilities do not sum to 1.

    Examples
    --------
    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
    >>> round(evaluate(mdp, [0, 0]).gain_from_start, 6)
    0.833333

    Swimming left in the third state of the river loses 0.43 per step, all of it there:

    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> policy = {s: "left" if s == 2 else "right" for s in range(6)}
    >>> lost = evaluate(river, policy).shortfall
    >>> round(lost.total, 4), lost.to_frame().loc[0, "state"]
    (0.4286, 'river 2')
    """
    checked = checked_policy(mdp, policy)
    P, r = chain_of(mdp, checked)
    found = evaluate_chain(P, r)
    units = mdp.units
    start = mdp.start
    weights, visits = _long_run_fractions(P, found, start)
    by_class = units.reward(found.class_gains) / units.step_duration
    gain = units.reward(found.gain) / units.step_duration
    bias = units.amount(found.bias)
    for array in (checked, gain, bias, visits, by_class, found.transient, *found.classes, *found.class_stationary):
        array.flags.writeable = False
    return Evaluation(
        gain=gain,
        bias=bias,
        classes=tuple(found.classes),
        class_gains=by_class,
        class_stationary=tuple(found.class_stationary),
        transient=found.transient,
        stationary=visits,
        gain_from_start=units.gain(float(weights @ found.class_gains)),
        residual=found.residual,
        mdp=mdp,
        policy=checked,
    )


def checked_policy(mdp: MDP, policy: Any) -> NDArray[np.int64] | Vector:
    """`policy` as (S,) allowed actions or (S,A) probabilities, or an error that names the first bad state."""
    S, A = mdp.n_states, mdp.n_actions
    if isinstance(policy, Plan):
        policy = policy.policy if policy.actions is None else policy.actions
    table = np.asarray(as_policy_array(mdp, policy))
    if table.ndim == 1 and table.dtype.kind in "UO":
        table = np.array([mdp.action_index(a) for a in table], dtype=np.int64)
    if table.shape == (S,) and table.dtype.kind in "iu":
        outside = np.flatnonzero((table < 0) | (table >= A))
        if outside.size:
            s = int(outside[0])
            raise InvalidArgumentError(
                "policy",
                int(table[s]),
                f"0 … {A - 1}",
                problem=f"policy: action {table[s]} in state {mdp.state_name(s)}",
            )
        actions = table.astype(np.int64)
        bad = np.flatnonzero(~mdp.allowed[np.arange(S), actions])
        if bad.size:
            s = int(bad[0])
            raise InvalidArgumentError(
                "policy",
                int(actions[s]),
                hint=f"{bad.size} of {S} states fail",
                problem=f"policy: state {mdp.state_name(s)} does not have action {mdp.action_name(int(actions[s]))}",
            )
        return actions
    if table.shape != (S, A):
        raise InvalidArgumentError(
            "policy",
            table.shape,
            f"({S},) actions (integers or labels) or ({S}, {A}) probabilities",
            problem=f"policy has shape {table.shape} and dtype {table.dtype}",
        )
    weights: Vector = table.astype(np.float64)
    sums = weights.sum(axis=1)
    bad = np.flatnonzero(~((weights >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= _SUM_TOLERANCE)))
    if bad.size:
        s = int(bad[0])
        raise InvalidArgumentError(
            "policy",
            weights[s].tolist(),
            f"numbers >= 0 that sum to 1 (tolerance {_SUM_TOLERANCE:g})",
            f"{bad.size} of {S} states fail",
            problem=f"policy: the probabilities in state {mdp.state_name(s)} are {weights[s]}",
        )
    bad_s, bad_a = np.nonzero((weights > 0.0) & ~mdp.allowed)
    if bad_s.size:
        raise InvalidArgumentError(
            "policy",
            float(weights[bad_s[0], bad_a[0]]),
            problem=(
                f"policy: state {mdp.state_name(int(bad_s[0]))} does not have action "
                f"{mdp.action_name(int(bad_a[0]))}, which has probability {weights[bad_s[0], bad_a[0]]:g}"
            ),
        )
    weights /= sums[:, None]
    return weights


def chain_of(mdp: MDP, policy: NDArray[np.int64] | Vector) -> tuple[sp.csr_array, Vector]:
    """The Markov chain P (S,S) and internal mean rewards (S,) of a checked policy."""
    S, A = mdp.n_states, mdp.n_actions
    if policy.ndim == 1:
        k = np.arange(S) * A + policy.astype(np.int64)
        lengths = mdp.indptr[k + 1] - mdp.indptr[k]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(mdp.indptr[k] - indptr[:-1], lengths) + np.arange(indptr[-1])
        P = sp.csr_array((mdp.probabilities[at], mdp.indices.view(np.int32)[at], indptr), shape=(S, S))
        if mdp.entry_rewards is not None:  # a next state may be listed with several rewards
            P.sum_duplicates()
        return P, mdp.pair_rewards[k]
    s, a = np.nonzero(policy)
    weights = sp.csr_array((policy[s, a], (s, s * A + a)), shape=(S, S * A))
    rewards: Vector = np.asarray(weights @ mdp.pair_rewards)
    P = sp.csr_array(weights @ mdp.matrix())
    P.sort_indices()  # so that a policy gives the same bits however it is written
    return P, rewards


# ---------------------------------------------------------------------- one chain, internal numbers


@dataclass(frozen=True)
class ChainValues:
    """Gain, bias and classes of a chain with rewards, per step."""

    gain: Vector
    bias: Vector
    classes: list[NDArray[np.int64]]
    class_gains: Vector
    class_stationary: list[Vector]
    transient: NDArray[np.int64]
    residual: float


def evaluate_chain(P: sp.csr_array, r: Vector, stationary: bool = True, local: bool = False) -> ChainValues:
    """The equations of `evaluate` for a chain P (S,S) with rewards r (S,).

    Without `stationary` the distributions are left out and h has h = 0 at the first state of each class instead.
    With `local`, each state leads to near ones only, so that large systems are factored at once. Raises PrecisionError
    if the numbers are not finite: some states are left too rarely for float64.
    """
    S = r.size
    classes, transient = recurrent_classes(P)
    g, h = np.zeros(S), np.zeros(S)
    gains = np.zeros(len(classes))
    distributions: list[Vector] = []
    order = np.concatenate(classes)
    blocks = P if order.size == S and len(classes) == 1 else sp.csr_array(P[order][:, order])
    first = 0
    for i, states in enumerate(classes):
        end = first + states.size
        if states.size == 1:
            gains[i], pi = float(r[states[0]]), np.ones(1)
        else:  # the rows of a class move inside it only
            cut = slice(blocks.indptr[first], blocks.indptr[end])
            parts = blocks.data[cut], blocks.indices[cut] - first, blocks.indptr[first : end + 1] - cut.start
            inside = sp.csr_array(parts, shape=(states.size, states.size))
            gains[i], h[states], pi = _one_class(inside, r[states], stationary, local)
        g[states] = gains[i]
        distributions.append(pi)
        first = end
    if transient.size:
        rows = sp.csr_array(P[transient])
        solver = _transient_system(rows, transient, local)
        constant = gains.max() == gains.min()
        g[transient] = gains[0] if constant else np.clip(solver.solve(rows @ g), gains.min(), gains.max())
        h[transient] = solver.solve(r[transient] - g[transient] + rows @ h)
    if not (np.abs(g).max() <= LARGEST_VALUE and np.abs(h).max() <= LARGEST_VALUE):
        raise _too_rare()
    residual = max(float(np.abs(g + h - r - P @ h).max()), float(np.abs(g - P @ g).max()))
    return ChainValues(g, h, classes, gains, distributions, transient, residual)


def _too_rare() -> PrecisionError:
    """The error for a chain whose linear system has no solution in float64."""
    return PrecisionError(
        "the policy cannot be evaluated in float64: some states are left so rarely that their values exceed "
        f"{LARGEST_VALUE:g} or cannot be told apart",
        name="policy",
        hint="leave out the transitions of tiny probability, or scale the rewards down",
    )


def _one_class(P: sp.csr_array, r: Vector, stationary: bool, local: bool) -> tuple[float, Vector, Vector]:
    """Gain, bias and stationary distribution of an irreducible chain.

    M is I - P with its first column replaced by ones: M (g, h_1, …) = r with h_0 = 0, and M' π = (1, 0, …).
    Unlike a system that waits for one state, M stays well conditioned when that state is rare.
    """
    n = r.size
    solver = Linear(_identity_minus(P), ones_first=True, local=local)
    x = solver.solve(r)
    gain, h = float(x[0]), np.concatenate([[0.0], x[1:]])
    if not stationary:
        return gain, h, np.zeros(0)
    unit = np.zeros(n)
    unit[0] = 1.0
    pi = np.maximum(solver.solve(unit, transposed=True), 0.0)
    if not 0.0 < pi.sum() < np.inf:
        raise _too_rare()
    pi /= pi.sum()
    return gain, h - pi @ h, pi


def _long_run_fractions(P: sp.csr_array, found: ChainValues, start: Vector) -> tuple[Vector, Vector]:
    """The probability of ending in each class, and the (S,) long-run fractions of time, from `start`."""
    mass = start.copy()
    if found.transient.size and len(found.classes) > 1 and start[found.transient].any():
        rows = sp.csr_array(P[found.transient])
        solver = _transient_system(rows, found.transient)
        expected_visits = np.maximum(solver.solve(start[found.transient], transposed=True), 0.0)
        mass += expected_visits @ rows
    weights = np.array([mass[c].sum() for c in found.classes])
    if len(found.classes) == 1:
        weights[:] = 1.0
    weights /= weights.sum()
    visits = np.zeros(start.size)
    for w, states, pi in zip(weights, found.classes, found.class_stationary, strict=True):
        visits[states] = w * pi
    return weights, visits


# ---------------------------------------------------------------------- linear systems


def _identity_minus(P: sp.csr_array, leaving: Vector | float = 0.0) -> sp.csr_array:
    """I - P, its diagonal computed as the sum of the other moves (`leaving`: those to states outside).

    1 - p(s|s) would lose the digits of a small probability of moving (Grassmann, Taksar & Heyman 1985).
    """
    others = sp.csr_array(P - sp.diags_array(P.diagonal(), format="csr"))
    diagonal = np.asarray(others.sum(axis=1)).reshape(-1) + leaving
    return sp.csr_array(sp.diags_array(diagonal, format="csr") - others)


def _transient_system(rows: sp.csr_array, transient: NDArray[np.int64], local: bool = False) -> Linear:
    """(I - P) restricted to the transient states, from their full rows."""
    outside = np.ones(rows.shape[1])
    outside[transient] = 0.0
    return Linear(_identity_minus(sp.csr_array(rows[:, transient]), rows @ outside), local=local)


def _factored(dense: Vector) -> tuple[Vector, NDArray[Any]]:
    """LU with pivots, as `scipy.linalg.lu_factor` has it, but an error in place of its warning."""
    lu, pivots, info = la.lapack.dgetrf(dense)
    if info > 0:
        raise _too_rare()
    return lu, pivots


class Linear:
    """Solutions of M x = b and M' x = b for one sparse M, to rounding accuracy.

    Dense LU up to `DENSE_STATES` unknowns. Above, GMRES first (a few dozen products when the chain mixes fast, where LU
    would fill up), accepted when the residual is at rounding level; else sparse LU (best when the chain is local).
    One step of iterative refinement either way. `ones_first` replaces the first column of M by ones; `local` leaves out
    GMRES, and dense LU above `DENSE_LOCAL_STATES`. Raises PrecisionError if M is singular in float64.
    """

    def __init__(self, M: sp.csr_array, ones_first: bool = False, local: bool = False) -> None:
        self.n = int(M.shape[0])
        self._ones = ones_first
        self._lu: Any = None
        if self.n <= (DENSE_LOCAL_STATES if local else DENSE_STATES):
            dense = M.toarray()
            if ones_first:
                dense[:, 0] = 1.0
            self._dense: Vector | None = dense
            self._lu = _factored(dense)
        else:
            self._dense = None
            self._sparse = M
            self._transposed = sp.csr_array(M.T)
            if local:
                self._factor()

    def _product(self, x: Vector, transposed: bool) -> Vector:
        if self._dense is not None:
            return np.asarray(self._dense.T @ x if transposed else self._dense @ x)
        if self._ones and not transposed:
            rest = x.copy()
            rest[0] = 0.0
            return np.asarray(x[0] + self._sparse @ rest)
        out: Vector = np.asarray((self._transposed if transposed else self._sparse) @ x)
        if self._ones:
            out[0] = x.sum()
        return out

    def _apply(self, b: Vector, transposed: bool) -> Vector:
        if self._dense is None:
            return np.asarray(self._lu.solve(b, trans="T" if transposed else "N"))
        return np.asarray(la.lu_solve(self._lu, b, trans=1 if transposed else 0, check_finite=False))

    def solve(self, b: Vector, *, transposed: bool = False) -> Vector:
        """The x with M x = b, or M' x = b."""
        if self._lu is None:
            x = self._krylov(b, transposed)
            if x is not None:
                return x
            self._factor()
        x = self._apply(b, transposed)
        if not np.isfinite(x).all():
            raise _too_rare()
        return x + self._apply(b - self._product(x, transposed), transposed)

    def _factor(self) -> None:
        M = sp.csc_array(self._sparse)
        if self._ones:
            ones = sp.csc_array(np.ones((self.n, 1)))
            M = sp.csc_array(sp.hstack([ones, M[:, 1:]], format="csc"))
        try:
            self._lu = sla.splu(M)
        except RuntimeError as error:  # exactly singular
            raise _too_rare() from error

    def _krylov(self, b: Vector, transposed: bool) -> Vector | None:
        """GMRES, refined until the residual is at rounding level; None when it converges too slowly for that."""
        n = self.n
        operator = sla.LinearOperator((n, n), matvec=lambda y: self._product(y, transposed), dtype=np.float64)
        scale = np.abs(b).max()
        x = np.zeros(n)
        rest = b
        for _ in range(4):
            size = float(np.linalg.norm(rest))
            if size == 0.0:
                return x
            step, failed = sla.gmres(operator, rest, rtol=1e-6, restart=_KRYLOV_STEPS // 2, maxiter=2)
            if failed:
                return None
            x = x + step
            rest = b - self._product(x, transposed)
            if np.abs(rest).max() <= 8 * UNIT_ROUNDOFF * (scale + 2 * np.abs(x).max()):
                return x
        return None
