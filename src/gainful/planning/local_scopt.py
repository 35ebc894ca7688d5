"""ScOpt that repairs its last plan where the model changed, so that the cost depends on the amount of change.

`LocalScOpt` keeps its last plan together with a band that certifies it (`planning.band`). The next plan repairs that
one around the pairs that have changed. Pairs not visited since keep the reward of an earlier step, and the bracket is
widened by the most that their rewards can have grown. If a repair is not possible, or would cost more than sweeping,
the whole model is swept and a new band is laid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.band import BAND, EXTREMES, BandState, RepairSpace, lay_band, repair_rows
from gainful.planning.batches import sweeps_per_batch
from gainful.planning.estimated import EstimatedMDP, TransitionCounts, estimated_mdp
from gainful.planning.predecessors import Predecessors
from gainful.planning.rounding import UNDERFLOW, UNIT_ROUNDOFF
from gainful.planning.scopt_on_counts import OptimisticRewards, ScOptPlan, scopt_on_counts, too_precise

LOCAL_FROM_PAIRS = 10_000
"""The number of pairs S·A from which repairing plans is faster than sweeping."""
BAND_SHARE = 0.64
"""The part of the precision that a band takes when it is to serve many plans: precision falls, the band stays."""
DRIFT_SHARE = 0.15
"""The part of the precision that rewards of an earlier step may take."""
ONE_PLAN_BAND_SHARE = 0.95
"""The part of the precision that a band takes when it is to serve one plan only."""
MANY_CHANGES = 1 / 64
"""From this part of all pairs changed on, a repair costs more than sweeping."""
BRACKET_SHARE, ONE_PLAN_BRACKET_SHARE = 0.5, 0.9
"""The part of a new band that the bracket of the sweeps may take; what it leaves is room for changes."""
SWEEPS_PER_REPAIR = 2
"""Sweeps' worth of rows that a repair may evaluate."""
COUNT_CLASSES = 63
"""Classes of pairs by their visits: 2^j ≤ max{1,N} < 2^(j+1)."""


@kernel
def stale_pairs(visits: NDArray[Any], is_changed: NDArray[Any], stale: NDArray[Any], out: NDArray[Any]) -> int:
    """The pairs that have changed or whose class of counts is stale, in increasing order; returns their number."""
    n = 0
    for k in range(visits.size):
        renew = is_changed[k]
        if not renew:
            j, count = 0, max(1, visits[k])
            while count > 1:
                count >>= 1
                j += 1
            renew = stale[j]
        if renew:
            out[n] = k
            n += 1
    return n


class LocalScOpt:
    """ScOpt on counts with everything it needs to repair its last plan.

    Parameters
    ----------
    n_states, n_actions : int
        The size of the model.
    span : float
        The bound c on the span of the values.
    damping : float
        The weight of the new value where the whole model is swept.
    """

    def __init__(self, n_states: int, n_actions: int, span: float, damping: float = 1.0) -> None:
        pairs = n_states * n_actions
        self.span, self.damping = span, damping
        self.rewards: NDArray[np.float64] = np.empty(pairs)
        """(S*A,) the rewards of the last plan: of this step, or of an earlier one for pairs not visited since."""
        self.sweeps = 0
        """Full sweeps of the last repair or refresh, rounded up."""
        self._state = BandState(
            values=np.zeros(n_states),
            q=np.full(pairs, -np.inf),
            best=np.zeros(n_states),
            actions=np.zeros(n_states, dtype=np.int64),
            cut=np.zeros(n_states, dtype=bool),
            band=np.zeros(1, dtype=BAND),
            extremes=np.zeros(1, dtype=EXTREMES),
            span=float(span),
        )
        self._space = RepairSpace(
            pairs=np.empty(pairs, dtype=np.int64),
            marked=np.zeros(pairs, dtype=bool),
            states=np.empty(2 * n_states, dtype=np.int64),
        )
        self._predecessors = Predecessors(n_states, n_actions)
        self._laid_at = 0
        """The step at which the band was laid; 0 if there is none."""
        self._since: NDArray[np.int64] = np.zeros(COUNT_CLASSES, dtype=np.int64)
        """For each class of counts, the earliest step of which the reward of one of its pairs may be."""

    # ------------------------------------------------------------------ planning

    def plan(self, counts: TransitionCounts, rewards: OptimisticRewards, precision: float) -> ScOptPlan:
        """Plan on the MDP estimated from `counts`, to a certified `precision`, repairing the last plan if that pays."""
        model = estimated_mdp(counts, self.rewards)
        many = bool(counts.n_changed[0] > MANY_CHANGES * counts.visits.size)
        narrow = self._width + DRIFT_SHARE * precision <= precision
        drift, good, sweeps = 0.0, False, 0
        if self._laid_at and narrow and not many:
            renewed, drift = self._to_renew(counts, rewards, DRIFT_SHARE * precision)
            rewards.write(renewed, self.rewards)
            good = self.repair(model, renewed)
            sweeps = self.sweeps
        repaired = good
        if not good:
            drift, self._laid_at, self._since[:] = 0.0, rewards.t, rewards.t
            rewards.write(np.arange(self.rewards.size), self.rewards)
            band = ONE_PLAN_BAND_SHARE if many else BAND_SHARE
            if (
                not self.refresh(model, band * precision, ONE_PLAN_BRACKET_SHARE if many else BRACKET_SHARE)
                or self._width > precision
            ):
                raise too_precise(precision, rewards.t, self.rounding, self.span)
            sweeps += self.sweeps
        low, high = self.bracket
        v, extremes = self._state.values, self._state.extremes[0]
        span = float(v[extremes["top"]] - v[extremes["bottom"]])
        return ScOptPlan(v, self._state.actions, low, high + drift, sweeps, span, drift=drift, repaired=repaired)

    def _to_renew(
        self, counts: TransitionCounts, rewards: OptimisticRewards, tolerated: float
    ) -> tuple[NDArray[np.int64], float]:
        """The pairs that have changed, or whose reward may have grown by more than is tolerated; what others may."""
        growth = rewards.growth(self._since)
        stale = growth > tolerated
        if not stale.any():
            return counts.changed_pairs(), float(growth.max())
        pairs = np.empty(counts.visits.size, dtype=np.int64)
        n = stale_pairs(counts.visits, counts.is_changed, stale, pairs)
        self._since[: stale.size][stale] = rewards.t
        return pairs[:n], float(growth[~stale].max(initial=0.0))

    # ------------------------------------------------------------------ the bracket

    @property
    def bracket(self) -> tuple[float, float]:
        """[lo, hi], widened for rounding: it contains the gain of T_c for the rewards and counts last given."""
        slack, band = self.rounding / 2, self._state.band[0]
        return float(band["low"] - slack), float(band["high"] + slack)

    @property
    def _width(self) -> float:
        low, high = self.bracket
        return high - low

    @property
    def rounding(self) -> float:
        """What rounding adds to the width of the bracket."""
        band = self._state.band[0]
        largest = max(abs(band["floor"]), abs(band["floor"] + self.span))
        support = self._state.extremes["support"][0]
        return float(4.0 * (support + 6) * UNIT_ROUNDOFF * (largest + band["max_reward"] + UNDERFLOW))

    # ------------------------------------------------------------------ sweeping and repairing

    def refresh(self, model: EstimatedMDP, width: float, share: float) -> bool:
        """Sweep until the bracket is that `share` of `width`, and lay a band of that width around it.

        What the bracket leaves of the band is room for changes. False if rounding does not let the bracket become so
        narrow.
        """
        self._predecessors.enter(model)
        state = self._state
        batch = sweeps_per_batch(int(model.next_state.size))
        sweeps, tight = 0, share * width
        while True:
            done, low, high, slack, met = scopt_on_counts(
                tuple(model), self.span, tight, batch, state.values, state.best, state.actions, self.damping
            )
            sweeps += done
            if met:
                self._place_band(low + (high - low) / 2, width)
                self.sweeps = 0
                good = bool(lay_band(tuple(model), tuple(state))) or self.repair(model, np.arange(state.q.size))
                sweeps += 1 + self.sweeps
                if good:
                    self.sweeps = sweeps
                    return True
                tight /= 4
            elif high - low <= 2 * slack:
                return False

    def _place_band(self, gain: float, width: float) -> None:
        """A band of this width with `gain` in its middle; the floor leaves v room on both sides unless T_c cuts."""
        v, w, band = self._state.values, self._state.best, self._state.band[0]
        is_cut = bool(np.any(w > w.min() + self.span))
        bottom, highest = float(v.min()), float(v.max())
        room = max(0.0, self.span - (highest - bottom))
        floor = bottom if is_cut or room <= width else bottom - room / 2
        top = floor + self.span
        if is_cut:
            v[v >= top - 4 * np.spacing(abs(top) + abs(floor))] = top
        np.minimum(v, top, out=v)
        band["low"], band["aim"], band["floor"] = gain - width / 2, gain, floor
        band["high"] = band["low"] + width

    def repair(self, model: EstimatedMDP, changed: NDArray[np.int64]) -> bool:
        """Make the band hold again after the rows or rewards of `changed` (in increasing order) have changed.

        Returns False if that is not possible, or not cheaper than sweeping; then `refresh` is due.
        """
        self._predecessors.enter(model, changed)
        self._space.pairs[: changed.size] = changed
        n_pairs = self._state.q.size
        good, done = repair_rows(
            tuple(model),
            tuple(self._state),
            tuple(self._predecessors.lists),
            tuple(self._space),
            changed.size,
            SWEEPS_PER_REPAIR * n_pairs,
        )
        self.sweeps = -(-done // n_pairs)
        if not good:
            self._space.marked[:] = False
        return bool(good)

    # ------------------------------------------------------------------ files

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from: the values and, if there is a plan, its rewards and its band."""
        if not self._laid_at:
            return {"values": self._state.values}
        return {
            "values": self._state.values,
            "rewards": self.rewards,
            "band": self._state.band.view(np.float64),
            "numbers": np.append(self._since, self._laid_at),
        }

    def restore(self, arrays: dict[str, NDArray[Any]], counts: TransitionCounts) -> None:
        """Restore what `arrays` returned; the next repair then gives the same bits as without saving.

        Rows that have changed since the plan are evaluated as they are now; the next plan treats them as changed.
        Raises ValueError if an array has the wrong shape.
        """
        if "band" not in arrays:
            return
        shapes = {"rewards": self.rewards.shape, "band": (BAND.itemsize // 8,), "numbers": (COUNT_CLASSES + 1,)}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"array '{name}' has shape {arrays[name].shape}")
        self.rewards = arrays["rewards"]
        self._since, self._laid_at = arrays["numbers"][:-1].copy(), int(arrays["numbers"][-1])
        model, band = estimated_mdp(counts, self.rewards), self._state.band
        self._predecessors.enter(model)
        self._state.values[:], band.view(np.float64)[:] = arrays["values"], arrays["band"]
        largest = float(band["max_reward"][0])
        lay_band(tuple(model), tuple(self._state))
        band["max_reward"] = largest
