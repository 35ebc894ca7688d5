r"""ScOpt repaired where the model changed, instead of swept anew: planning that costs what changed.

Kept between two plans: v, every q(s,a) = r̂(s,a) + p̂(·|s,a)·v and w(s) = Lv(s) = max_a q(s,a), a floor F and a band
[lo, hi], such that

    (1) F ≤ v(s) ≤ F + c                        for every state,
    (2) lo ≤ w(s) - v(s)                        for every state,
    (3) w(s) - v(s) ≤ hi, or v(s) = F + c       for every state,
    (4) min w ≤ F + hi                          if some state needs the second half of (3).

Then lo ≤ T_c v - v ≤ hi everywhere, which brackets the gain of T_c, and sp(v) ≤ c. Proof: by (2) and (1)
min w + c ≥ F + lo + c, so T_c v(s) - v(s) = min{w(s), min w + c} - v(s) ≥ min{lo, lo + (F + c - v(s))} = lo. Where
w - v ≤ hi the upper half is plain; elsewhere v(s) = F + c and T_c v(s) - v(s) ≤ min w + c - F - c ≤ hi by (4).

All four are tested at one state from its own numbers, so after a change only the rows that changed, and then the
predecessors of the states whose v had to move, are evaluated again (prioritised sweeping, Moore & Atkeson 1993, with a
certificate). A v that moves is set to the middle of its band, so it moves by a good part of the precision or not at
all. Every row leads to s̄: when v(s̄) moves, all are evaluated. When the least w leaves the middle of its band
the floor follows it. What no repair mends is a gain that has left the band: after `budget` rows `repair` gives up, and
`refresh` runs ScOpt from v and lays the band anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.growable_rows import FIRST_ROOM, add
from gainful.planning.plan import UNIT_ROUNDOFF
from gainful.planning.scopt_on_counts import scopt_on_counts

LOW, HIGH, AIM, FLOOR, MAX_REWARD, BAND_NUMBERS = 0, 1, 2, 3, 4, 5
N_CUT, WITNESS, TOP, BOTTOM, SUPPORT, WHOLE_NUMBERS = 0, 1, 2, 3, 4, 5
BUDGET = 2
"""Sweeps' worth of rows that a repair may take."""
BATCH_WORK = 20_000_000  # transitions read between two returns to Python, so that Ctrl-C is heard


@inlined
def _row_value(
    begin: Any, length: Any, next_state: Any, count: Any, visits: Any, r: Any, attractive: int, v: Any, k: int
) -> float:
    """Pair k: q = r̂ + Σ (N(s') + 1{s' = s̄})·v(s') / (N + 1) as in `scopt_on_counts`, bit for bit."""
    total, first = v[attractive], np.uint64(begin[k])
    for j in range(first, first + np.uint64(length[k])):
        total += count[j] * v[next_state[j]]
    value: float = r[k] + total / (visits[k] + 1)
    return value


@kernel
def lay_band(
    begin: Any, length: Any, next_state: Any, count: Any, visits: Any, r: Any, n_actions: int, attractive: int,
    span: float, v: Any, q: Any, w: Any, act: Any, cut: Any, band: Any, whole: Any,
) -> bool:  # fmt: skip
    """Evaluate everything at v with the band and floor given; False where (1)–(4) do not hold."""
    n = v.size
    top = band[FLOOR] + span
    max_reward, support = 0.0, 0
    for k in range(r.size):
        q[k] = _row_value(begin, length, next_state, count, visits, r, attractive, v, k)
        if r[k] > -np.inf:
            max_reward = max(max_reward, abs(r[k]))
        support = max(support, length[k])
    band[MAX_REWARD] = max_reward
    whole[SUPPORT] = support
    whole[N_CUT] = whole[WITNESS] = whole[TOP] = whole[BOTTOM] = 0
    good = True
    for s in range(n):
        best, chosen = -np.inf, 0
        for a in range(n_actions):
            if q[s * n_actions + a] > best:
                best, chosen = q[s * n_actions + a], a
        w[s], act[s] = best, chosen
        gap = best - v[s]
        cut[s] = gap > band[HIGH]
        whole[N_CUT] += cut[s]
        good = good and gap >= band[LOW] and (not cut[s] or v[s] == top) and band[FLOOR] <= v[s] <= top
        if best < w[whole[WITNESS]]:
            whole[WITNESS] = s
        if v[s] > v[whole[TOP]]:
            whole[TOP] = s
        if v[s] < v[whole[BOTTOM]]:
            whole[BOTTOM] = s
    return good and (whole[N_CUT] == 0 or w[whole[WITNESS]] <= band[FLOOR] + band[HIGH])


@kernel
def repair_rows(
    begin: Any, length: Any, next_state: Any, count: Any, visits: Any, r: Any, n_actions: int, attractive: int,
    span: float, v: Any, q: Any, w: Any, act: Any, cut: Any, band: Any, whole: Any, to_begin: Any, to_length: Any,
    to_pair: Any, pairs: Any, n_pairs: int, states: Any, marked: Any, budget: int,
) -> tuple[bool, int]:  # fmt: skip
    """Make (1)–(4) true again after the rows of the first n_pairs `pairs`, in increasing order, have changed.

    Works in rounds: evaluate the rows of a round, test their states, move the v of those that fail, and take the rows
    that lead to them as the next round, in increasing order whatever the order in which they were found. Returns
    whether it succeeded within `budget` rows, and the number of rows evaluated.
    """
    low, high, aim = band[LOW], band[HIGH], band[AIM]
    done = 0
    for i in range(n_pairs):
        k = pairs[i]
        if r[k] > -np.inf:
            band[MAX_REWARD] = max(band[MAX_REWARD], abs(r[k]))
        whole[SUPPORT] = max(whole[SUPPORT], length[k])
    look_for_ends = False
    while True:
        floor, top = band[FLOOR], band[FLOOR] + span
        done += n_pairs
        if done > budget:
            return False, done
        for i in range(n_pairs):
            k = pairs[i]
            marked[k] = False
            q[k] = _row_value(begin, length, next_state, count, visits, r, attractive, v, k)
        n_states, last, lowest = 0, -1, np.inf
        for i in range(n_pairs):
            s = pairs[i] // n_actions
            if s == last:
                continue
            last = s
            best, chosen = -np.inf, 0
            for a in range(n_actions):
                if q[s * n_actions + a] > best:
                    best, chosen = q[s * n_actions + a], a
            w[s], act[s] = best, chosen
            gap = best - v[s]
            if gap < low or (gap > high and v[s] != top):
                moved = min(max(best - aim, floor), top)
                if best - moved < low:
                    lowest = min(lowest, best)
                look_for_ends |= s == whole[TOP] or s == whole[BOTTOM]
                v[s] = moved
                states[n_states] = s
                n_states += 1
            is_cut = best - v[s] > high
            whole[N_CUT] += np.int64(is_cut) - np.int64(cut[s])
            cut[s] = is_cut
            if v[s] > v[whole[TOP]]:
                whole[TOP] = s
            if v[s] < v[whole[BOTTOM]]:
                whole[BOTTOM] = s
        if lowest == np.inf and n_states == 0 and whole[N_CUT] > 0 and w[whole[WITNESS]] > floor + high:
            for s in range(w.size):
                if w[s] < w[whole[WITNESS]]:
                    whole[WITNESS] = s
            if w[whole[WITNESS]] > floor + high:
                lowest = w[whole[WITNESS]]
        if lowest < np.inf:  # the least w has left its band: floor and ceiling follow
            band[FLOOR] = floor = lowest - aim
            top = floor + span
            for s in range(v.size):
                wanted = w[s] - aim if cut[s] or w[s] - v[s] < low else v[s]
                moved = min(max(wanted, floor), top)
                if moved != v[s]:
                    v[s] = moved
                    states[n_states] = s
                    n_states += 1
                is_cut = w[s] - v[s] > high
                whole[N_CUT] += np.int64(is_cut) - np.int64(cut[s])
                cut[s] = is_cut
            look_for_ends = True
        elif n_states == 0:
            break
        n_pairs = 0
        for i in range(n_states):
            s = states[i]
            if s == attractive:
                n_pairs = q.size
                marked[:] = True
                break
            for j in range(to_begin[s], to_begin[s] + to_length[s]):
                k = np.int64(to_pair[j])
                if not marked[k]:
                    marked[k] = True
                    pairs[n_pairs] = k
                    n_pairs += 1
        if 8 * n_pairs < q.size:
            pairs[:n_pairs].sort()
        else:  # the same order, found by passing over all of them
            n_pairs = 0
            for k in range(q.size):
                if marked[k]:
                    pairs[n_pairs] = k
                    n_pairs += 1
    if look_for_ends:
        for s in range(v.size):
            if v[s] > v[whole[TOP]]:
                whole[TOP] = s
            if v[s] < v[whole[BOTTOM]]:
                whole[BOTTOM] = s
    return True, done


@kernel
def link(
    length: Any, begin: Any, next_state: Any, attractive: int, known: Any, pairs: Any, n_pairs: int, to_begin: Any,
    to_length: Any, to_room: Any, to_used: Any, to_pair: Any, to_mark: Any,
) -> bool:  # fmt: skip
    """Enter the new transitions of `pairs` in the lists of predecessors; False if there is no space left."""
    for i in range(n_pairs):
        k = pairs[i]
        if length[k] == known[k]:
            continue
        for j in range(begin[k], begin[k] + length[k]):
            s = np.int64(next_state[j])
            if s != attractive and not add(to_begin, to_length, to_room, to_used, to_pair, to_mark, s, k, 0):
                return False
        known[k] = length[k]
    return True


class LocalScOpt:
    """ScOpt on counts with everything it needs to repair its last answer."""

    def __init__(self, n_states: int, n_actions: int, span: float, attractive: int = 0) -> None:
        pairs = n_states * n_actions
        self.n_actions, self.span, self.attractive = n_actions, span, attractive
        self.v: NDArray[np.float64] = np.zeros(n_states)
        self.q: NDArray[np.float64] = np.full(pairs, -np.inf)
        self.w: NDArray[np.float64] = np.zeros(n_states)
        self.actions: NDArray[np.int64] = np.zeros(n_states, dtype=np.int64)
        self.cut: NDArray[np.bool_] = np.zeros(n_states, dtype=bool)
        self.band: NDArray[np.float64] = np.zeros(BAND_NUMBERS)
        self.whole: NDArray[np.int64] = np.zeros(WHOLE_NUMBERS, dtype=np.int64)
        self.sweeps = 0
        """Full sweeps of the last plan, rounded up."""
        self._pairs: NDArray[np.int64] = np.empty(pairs, dtype=np.int64)
        self._states: NDArray[np.int64] = np.empty(2 * n_states, dtype=np.int64)
        self._marked: NDArray[np.bool_] = np.zeros(pairs, dtype=bool)
        # predecessors: row s lists the pairs seen to lead to s
        self._known: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self._to_begin, self._to_length, self._to_room = (np.zeros(n_states, dtype=np.int64) for _ in range(3))
        self._to_used: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._to_pair: NDArray[np.uint32] = np.zeros(max(16, FIRST_ROOM * n_states), dtype=np.uint32)
        self._to_mark: NDArray[np.int8] = np.zeros(self._to_pair.size, dtype=np.int8)

    @property
    def bracket(self) -> tuple[float, float]:
        """[lo, hi], widened for rounding: it holds g of T_c for the rewards and counts last given."""
        slack = self.rounding / 2
        return float(self.band[LOW] - slack), float(self.band[HIGH] + slack)

    @property
    def rounding(self) -> float:
        """What rounding adds to the width of the bracket."""
        largest = max(abs(self.band[FLOOR]), abs(self.band[FLOOR] + self.span))
        return float(4.0 * (self.whole[SUPPORT] + 6) * UNIT_ROUNDOFF * (largest + self.band[MAX_REWARD]))

    @property
    def span_of_values(self) -> float:
        """sp(v)."""
        return float(self.v[self.whole[TOP]] - self.v[self.whole[BOTTOM]])

    def _link(self, rows: tuple[Any, ...], pairs: NDArray[np.int64]) -> None:
        begin, length, next_state = rows[:3]
        while not link(
            length, begin, next_state, self.attractive, self._known, pairs, pairs.size, self._to_begin,
            self._to_length, self._to_room, self._to_used, self._to_pair, self._to_mark,
        ):  # fmt: skip
            for name in ("_to_pair", "_to_mark"):
                old = getattr(self, name)
                new = np.zeros(2 * old.size, dtype=old.dtype)
                new[: old.size] = old
                setattr(self, name, new)

    def refresh(self, rows: tuple[Any, ...], r: NDArray[np.float64], width: float, share: float) -> bool:
        """Sweep until the bracket is that `share` of `width`, and lay a band of that width around it.

        What the bracket leaves of the band is room for changes. `rows` are begin, length, next_state, count and visits;
        r the rewards, -inf where an action is not allowed.
        False where rounding does not let the bracket become so narrow.
        """
        self._link(rows, np.flatnonzero(rows[1] != self._known))
        batch = max(8, BATCH_WORK // max(1, int(rows[2].size)))
        sweeps, tight = 0, share * width
        while True:
            done, low, high, slack, met = scopt_on_counts(
                *rows, r, self.n_actions, self.attractive, self.span, tight, batch, self.v, self.w, self.actions
            )
            sweeps += done
            if met:
                self._lay(low + (high - low) / 2, width, bool(np.any(self.w > self.w.min() + self.span)))
                self.sweeps = 0
                good = self.evaluate(rows, r) or self.repair(rows, r, np.arange(self.q.size))
                sweeps += 1 + self.sweeps
                if good:
                    self.sweeps = sweeps
                    return True
                tight /= 4
            elif high - low <= 2 * slack:
                return False

    def _lay(self, gain: float, width: float, is_cut: bool) -> None:
        bottom, highest = float(self.v.min()), float(self.v.max())
        room = max(0.0, self.span - (highest - bottom))
        floor = bottom if is_cut or room <= width else bottom - room / 2
        top = floor + self.span
        if is_cut:
            self.v[self.v >= top - 4 * np.spacing(abs(top) + abs(floor))] = top
        np.minimum(self.v, top, out=self.v)
        self.band[LOW], self.band[AIM], self.band[FLOOR] = gain - width / 2, gain, floor
        self.band[HIGH] = self.band[LOW] + width

    def evaluate(self, rows: tuple[Any, ...], r: NDArray[np.float64]) -> bool:
        """Evaluate every row at v; whether the band given holds."""
        return bool(
            lay_band(
                *rows, r, self.n_actions, self.attractive, self.span, self.v, self.q, self.w, self.actions, self.cut,
                self.band, self.whole,
            )
        )  # fmt: skip

    def resume(
        self, rows: tuple[Any, ...], r: NDArray[np.float64], v: NDArray[np.float64], band: NDArray[np.float64]
    ) -> None:
        """Take up a plan kept as v, its rewards and its band: the next repair gives the bits it would have given.

        Rows that have changed since the plan are evaluated as they are now: `repair` will be told of them.
        """
        self._link(rows, np.flatnonzero(rows[1] != self._known))
        self.v[:], self.band[:] = v, band
        largest = band[MAX_REWARD]
        self.evaluate(rows, r)
        self.band[MAX_REWARD] = largest

    def repair(self, rows: tuple[Any, ...], r: NDArray[np.float64], changed: NDArray[np.int64]) -> bool:
        """Make the band hold again after the rows or rewards of `changed` (in increasing order) have changed.

        False where that is not possible, or not cheaper than sweeping: `refresh` is due then.
        """
        self._link(rows, changed)
        self._pairs[: changed.size] = changed
        good, done = repair_rows(
            *rows, r, self.n_actions, self.attractive, self.span, self.v, self.q, self.w, self.actions, self.cut,
            self.band, self.whole, self._to_begin, self._to_length, self._to_pair, self._pairs, changed.size,
            self._states, self._marked, BUDGET * self.q.size,
        )  # fmt: skip
        self.sweeps = -(-done // self.q.size)
        if not good:
            self._marked[:] = False
        return bool(good)
