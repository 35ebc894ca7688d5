r"""A band around the residual of T_c that certifies the gain, and that can be tested state by state.

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
the floor follows it. What no repair mends is a gain that has left the band: after `budget` rows `repair_rows` gives up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.planning.estimated import EstimatedMDP, best_pair, expected_value
from gainful.planning.predecessors import PairLists
from gainful.planning.truncation import ceiling_of

BAND = np.dtype([("low", "f8"), ("high", "f8"), ("aim", "f8"), ("floor", "f8"), ("max_reward", "f8")])
"""lo and hi, the middle that a moved v aims at, F, and the largest |r̂|."""
EXTREMES = np.dtype([("n_cut", "i8"), ("witness", "i8"), ("top", "i8"), ("bottom", "i8"), ("support", "i8")])
"""States with w - v > hi; a state of small w (for (4)); states of largest and least v; the longest row."""


class BandState(NamedTuple):
    """Everything that is kept between two plans."""

    values: Any
    """(S,) v."""
    q: Any
    """(S*A,)."""
    best: Any
    """(S,) w = Lv, not cut."""
    actions: Any
    """(S,) the greedy actions, lowest first."""
    cut: Any
    """(S,) whether w - v > hi."""
    band: Any
    """One record of `BAND`."""
    extremes: Any
    """One record of `EXTREMES`."""
    span: Any
    """c."""


class RepairSpace(NamedTuple):
    """Work space of a repair."""

    pairs: Any
    """The rows to evaluate in this round, in increasing order."""
    marked: Any
    """(S*A,) whether a pair is among them."""
    states: Any
    """The states whose v has moved in this round."""


@kernel
def lay_band(model: EstimatedMDP, state: BandState) -> bool:
    """Evaluate everything at v with the band and floor given; False if (1)–(4) do not hold."""
    model, state = EstimatedMDP(*model), BandState(*state)
    v, q, w, cut = state.values, state.q, state.best, state.cut
    band, extremes = state.band[0], state.extremes[0]
    top = ceiling_of(band["floor"], state.span)
    max_reward, support = 0.0, 0
    for k in range(q.size):
        q[k] = model.rewards[k] + expected_value(model, v, k)
        if model.rewards[k] > -np.inf:
            max_reward = max(max_reward, abs(model.rewards[k]))
        support = max(support, model.length[k])
    band["max_reward"], extremes["support"] = max_reward, support
    extremes["n_cut"] = extremes["witness"] = extremes["top"] = extremes["bottom"] = 0
    good = True
    for s in range(v.size):
        w[s], state.actions[s] = best_pair(model, q, s)
        gap = w[s] - v[s]
        cut[s] = gap > band["high"]
        extremes["n_cut"] += cut[s]
        good = good and gap >= band["low"] and (not cut[s] or v[s] == top) and band["floor"] <= v[s] <= top
        if w[s] < w[extremes["witness"]]:
            extremes["witness"] = s
        _note_extreme(v, extremes, s)
    return good and (extremes["n_cut"] == 0 or w[extremes["witness"]] <= band["floor"] + band["high"])


@kernel
def repair_rows(
    model: EstimatedMDP, state: BandState, leading: PairLists, space: RepairSpace, n_pairs: int, budget: int
) -> tuple[bool, int]:
    """Make (1)–(4) true again after the rows of the first n_pairs `space.pairs`, in increasing order, have changed.

    Works in rounds: evaluate the rows of a round, test their states, move the v of those that fail, and take the rows
    that lead to them as the next round, in increasing order whatever the order in which they were found. Returns
    whether it succeeded within `budget` rows, and the number of rows evaluated.
    """
    model, state, leading, space = EstimatedMDP(*model), BandState(*state), PairLists(*leading), RepairSpace(*space)
    _note_sizes(model, state, space, n_pairs)
    done = 0
    look_for_extremes = False
    while True:
        done += n_pairs
        if done > budget:
            return False, done
        _evaluate(model, state, space, n_pairs)
        n_moved, lowest, extreme_moved = _test_states(model, state, space, n_pairs)
        look_for_extremes |= extreme_moved
        if lowest == np.inf and n_moved == 0:
            lowest = _failed_witness(state)
        if lowest < np.inf:  # the least w has left its band: floor and ceiling follow
            n_moved = _move_floor(state, space, n_moved, lowest)
            look_for_extremes = True
        elif n_moved == 0:
            break
        n_pairs = _rows_leading_to(model, leading, space, n_moved)
    if look_for_extremes:
        for s in range(state.values.size):
            _note_extreme(state.values, state.extremes[0], s)
    return True, done


@inlined
def _note_extreme(v: Any, extremes: Any, s: int) -> None:
    """Keep the states of largest and least v."""
    if v[s] > v[extremes["top"]]:
        extremes["top"] = s
    if v[s] < v[extremes["bottom"]]:
        extremes["bottom"] = s


@inlined
def _note_cut(state: BandState, s: int) -> None:
    """Whether w(s) - v(s) is above the band, and in how many states it is."""
    is_cut = state.best[s] - state.values[s] > state.band[0]["high"]
    state.extremes[0]["n_cut"] += np.int64(is_cut) - np.int64(state.cut[s])
    state.cut[s] = is_cut


@inlined
def _note_sizes(model: EstimatedMDP, state: BandState, space: RepairSpace, n_pairs: int) -> None:
    """The largest reward and the longest row, on which rounding depends."""
    band, extremes = state.band[0], state.extremes[0]
    for i in range(n_pairs):
        k = space.pairs[i]
        if model.rewards[k] > -np.inf:
            band["max_reward"] = max(band["max_reward"], abs(model.rewards[k]))
        extremes["support"] = max(extremes["support"], model.length[k])


@inlined
def _evaluate(model: EstimatedMDP, state: BandState, space: RepairSpace, n_pairs: int) -> None:
    """The q of the rows of this round."""
    for i in range(n_pairs):
        k = space.pairs[i]
        space.marked[k] = False
        state.q[k] = model.rewards[k] + expected_value(model, state.values, k)


@inlined
def _test_states(model: EstimatedMDP, state: BandState, space: RepairSpace, n_pairs: int) -> tuple[int, float, bool]:
    """Test (2) and (3) at the states of this round's rows, and move the v that fail as far as floor and ceiling let.

    Returns how many have moved, the least w of a state that still fails (inf if none), and whether the state of largest
    or least v was among those moved.
    """
    v, w = state.values, state.best
    band, extremes = state.band[0], state.extremes[0]
    low, high, aim, floor = band["low"], band["high"], band["aim"], band["floor"]
    top = ceiling_of(floor, state.span)
    n_moved, last, lowest, extreme_moved = 0, -1, np.inf, False
    for i in range(n_pairs):
        s = space.pairs[i] // model.n_actions
        if s == last:
            continue
        last = s
        w[s], state.actions[s] = best_pair(model, state.q, s)
        gap = w[s] - v[s]
        if gap < low or (gap > high and v[s] != top):
            moved = min(max(w[s] - aim, floor), top)
            if w[s] - moved < low:
                lowest = min(lowest, w[s])
            extreme_moved |= s == extremes["top"] or s == extremes["bottom"]
            v[s] = moved
            space.states[n_moved] = s
            n_moved += 1
        _note_cut(state, s)
        _note_extreme(v, extremes, s)
    return n_moved, lowest, extreme_moved


@inlined
def _failed_witness(state: BandState) -> float:
    """Min w where it breaks (4), inf if (4) holds or is not needed."""
    w, band, extremes = state.best, state.band[0], state.extremes[0]
    if extremes["n_cut"] > 0 and w[extremes["witness"]] > band["floor"] + band["high"]:
        for s in range(w.size):
            if w[s] < w[extremes["witness"]]:
                extremes["witness"] = s
        if w[extremes["witness"]] > band["floor"] + band["high"]:
            return float(w[extremes["witness"]])
    return np.inf


@inlined
def _move_floor(state: BandState, space: RepairSpace, n_moved: int, lowest: float) -> int:
    """Set the floor so that `lowest`, the least w, is in the middle of its band, and move every v that this concerns.

    Returns how many states have moved in this round.
    """
    v, w, cut, band = state.values, state.best, state.cut, state.band[0]
    low, aim = band["low"], band["aim"]
    floor = lowest - aim
    band["floor"] = floor
    top = ceiling_of(floor, state.span)
    for s in range(v.size):
        wanted = w[s] - aim if cut[s] or w[s] - v[s] < low else v[s]
        moved = min(max(wanted, floor), top)
        if moved != v[s]:
            v[s] = moved
            space.states[n_moved] = s
            n_moved += 1
        _note_cut(state, s)
    return n_moved


@inlined
def _rows_leading_to(model: EstimatedMDP, leading: PairLists, space: RepairSpace, n_moved: int) -> int:
    """The rows that lead to the states that have moved become the next round; returns their number."""
    pairs, marked = space.pairs, space.marked
    n_pairs = 0
    for i in range(n_moved):
        s = space.states[i]
        if s == model.attractive:
            n_pairs = marked.size
            marked[:] = True
            break
        for j in range(leading.begin[s], leading.begin[s] + leading.length[s]):
            k = np.int64(leading.pair[j])
            if not marked[k]:
                marked[k] = True
                pairs[n_pairs] = k
                n_pairs += 1
    if 8 * n_pairs < marked.size:
        pairs[:n_pairs].sort()
        return n_pairs
    n_pairs = 0  # the same order, found by passing over all of them
    for pair in range(marked.size):
        if marked[pair]:
            pairs[n_pairs] = pair
            n_pairs += 1
    return n_pairs
