"""SCAL+: an exploration bonus and a span constraint (Qian, Fruit, Pirotta & Lazaric, sec. 3)."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.optimism.scal_plus import APPENDIX, MAIN_TEXT, bonus, confidence_log, deviation
from gainful.planning.local_scopt import BAND_NUMBERS, LocalScOpt
from gainful.planning.mixture import constrained_greedy
from gainful.planning.scopt_on_counts import expected_values, scopt_on_counts

Bonus: TypeAlias = Literal["appendix", "main text"]
Mixture: TypeAlias = Literal["copy", "min-action"]
Replanning: TypeAlias = Literal["full", "local"]
BATCH_WORK = 20_000_000  # transitions read between two returns to Python, so that Ctrl-C is heard


LOCAL_FROM = 10_000
"""The number of pairs S·A from which on plans are repaired, not swept, unless told otherwise."""
BAND, DRIFT = 0.64, 0.15
"""Parts of ε_k that a local plan's band takes, and that stale logarithms may take; the rest is for ε_k to fall."""
MANY, WIDE = 1 / 64, 0.95
"""From this part of all pairs changed on, repairs do not pay: sweep, to a band that is to serve one episode only."""
CLASSES = 63  # of pairs by their visits: max{1,N} in [2^j, 2^(j+1))


@kernel
def optimistic_rewards(
    visits: NDArray[Any], reward_sum: NDArray[Any], allowed: NDArray[Any], n_states: int, n_actions: int, t: int,
    delta: float, scale: float, span: float, reward_max: float, variant: int, added: float, r: NDArray[Any],
) -> None:  # fmt: skip
    """r̂ = r̄ + b for every pair, r̄ = 0 where N = 0; -inf where an action is not allowed."""
    log_term = confidence_log(n_states, n_actions, t, delta)
    for k in range(visits.size):
        b = bonus(variant, deviation(log_term, visits[k], scale), visits[k], span, reward_max) + added
        r[k] = reward_sum[k] / max(1, visits[k]) + b if allowed[k] else -np.inf


@kernel
def bonuses_of(
    visits: NDArray[Any], n_states: int, n_actions: int, t: int, delta: float, scale: float, span: float,
    reward_max: float, variant: int, added: float, out: NDArray[Any],
) -> None:  # fmt: skip
    """The bonus b of every pair, with what the model's own error adds (C-SCAL+'s Hölder term)."""
    log_term = confidence_log(n_states, n_actions, t, delta)
    for k in range(visits.size):
        out[k] = bonus(variant, deviation(log_term, visits[k], scale), visits[k], span, reward_max) + added


@kernel
def span_of(v: NDArray[Any]) -> float:
    """sp(v), without the microseconds NumPy takes for a small array."""
    low = high = v[0]
    for s in range(1, v.size):
        low, high = min(low, v[s]), max(high, v[s])
    return float(high - low)


@kernel
def changed_rewards(
    pairs: NDArray[Any], visits: NDArray[Any], reward_sum: NDArray[Any], allowed: NDArray[Any], n_states: int,
    n_actions: int, t: int, delta: float, scale: float, span: float, reward_max: float, variant: int, added: float,
    r: NDArray[Any],
) -> None:  # fmt: skip
    """r̂ of some pairs."""
    log_term = confidence_log(n_states, n_actions, t, delta)
    for i in range(pairs.size):
        k = pairs[i]
        b = bonus(variant, deviation(log_term, visits[k], scale), visits[k], span, reward_max) + added
        r[k] = reward_sum[k] / max(1, visits[k]) + b if allowed[k] else -np.inf


@kernel
def largest_drifts(
    since: NDArray[Any], n_states: int, n_actions: int, t: int, delta: float, scale: float, span: float,
    reward_max: float, variant: int, out: NDArray[Any],
) -> None:  # fmt: skip
    """For each class of counts a bound on b_t(N) - b_u(N), u ≥ since[j] being the step when r̂ was computed.

    The logarithm grows, so b does. A term of the appendix's bonus that was at its cap stays there; below it,
    β_t(N) - β_u(N) falls with N, so the smallest count of the class that was below the cap bounds it: for the term in c
    that is N > 7ℓ·scale²/4 at least (β < 2), for the one in r_max N > 7ℓ·scale² (β < 1).
    """
    now = confidence_log(n_states, n_actions, t, delta)
    for j in range(out.size):
        first, last = 2.0**j, 2.0 ** (j + 1) - 1.0
        then = confidence_log(n_states, n_actions, since[j], delta)
        growth = scale * (math.sqrt(7.0 * now) - math.sqrt(7.0 * then))
        n = m = first
        if variant != MAIN_TEXT:
            n, m = max(first, 7.0 * then * scale * scale / 4.0), max(first, 7.0 * then * scale * scale)
        out[j] = 0.0
        if n <= last:
            out[j] += span * growth / math.sqrt(n)
        if m <= last:
            out[j] += reward_max * growth / math.sqrt(m)


@kernel
def pairs_to_renew(visits: NDArray[Any], is_changed: NDArray[Any], stale: NDArray[Any], out: NDArray[Any]) -> int:
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


class SCALPlus(EpisodicAgent):
    r"""SCAL+ for S states and A actions, told a bound c = `span` on the span of the optimal bias.

    At the beginning of episode k it plans by ScOpt(c), to precision ε_k = r_max/√t_k, on the MDP with
    p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄})/(N(s,a) + 1), s̄ = state 0, and rewards r̄ + b_k, where with
    β = sqrt(7 ln(2SAt_k/δ)/max{1,N}) the bonus is c·min{β + 1/(N+1), 2} + r_max·min{β, 1} (`bonus="appendix"`) or
    (c + r_max)·β + c/(N+1) ("main text"). Where the span constraint cuts, the greedy action is mixed with its
    own copy of reward 0, so that the policy executed is deterministic.
    `replanning="full"` sweeps the whole model in every episode; "local" repairs the last plan around what has changed
    (`planning.local_scopt`), to the same certified ε_k: the rows not visited since keep the bonus of an earlier t, and
    the bracket is widened by the most that the logarithm can have moved it. By default S·A decides.
    `mixture="min-action"` mixes with the worst of all copies instead: the policy of Fruit et al. 2018, which draws its
    actions where the constraint cuts (full re-planning only).
    With probability 1-δ the regret is Õ(max{c, r_max}·sqrt(ΓSAT)) if c ≥ sp(h*), with `bonus_scale` 1: it multiplies
    β, and anything else comes with no guarantee.

    >>> agent = SCALPlus(n_states=2, n_actions=2, span=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self, n_states: int, n_actions: int, *, span: float, reward_max: float = 1.0, reward_min: float = 0.0,
        delta: float = 0.05, seed: int = 0, allowed: ArrayLike | None = None, bonus: Bonus = "appendix",
        bonus_scale: float = 1.0, mixture: Mixture = "copy", replanning: Replanning | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        if not (finite(span) and span >= 0.0):
            raise InvalidArgumentError(f"span is {span}, expected a finite number of at least 0")
        if bonus not in ("appendix", "main text"):
            raise InvalidArgumentError(f"bonus is {bonus!r}, expected 'appendix' or 'main text'")
        if not (finite(bonus_scale) and bonus_scale > 0.0):
            raise InvalidArgumentError(f"bonus_scale is {bonus_scale}, expected a positive number; 1 is the theorem's")
        if replanning not in (None, "full", "local"):
            raise InvalidArgumentError(f"replanning is {replanning!r}, expected 'full' or 'local'")
        if mixture not in ("copy", "min-action"):
            raise InvalidArgumentError(f"mixture is {mixture!r}, expected 'copy' or 'min-action'")
        if mixture == "min-action" and replanning == "local":
            raise InvalidArgumentError("mixture='min-action' needs replanning='full'; a local plan is deterministic")
        self.span, self.bonus, self.bonus_scale = float(span), bonus, float(bonus_scale)
        self.mixture: Mixture = mixture
        pairs = self.n_states * self.n_actions
        large = pairs >= LOCAL_FROM and mixture == "copy"
        self.replanning: Replanning = replanning or ("local" if large else "full")
        self.model_error = 0.0
        """Added to every bonus: what a model of cells may be wrong by (C-SCAL+)."""
        self._variant = APPENDIX if self.bonus == "appendix" else MAIN_TEXT
        self._possible = self.allowed.reshape(-1)
        self._values = np.zeros(self.n_states)  # the last plan's v: a warm start
        self._rewards = np.empty(pairs)
        self._local: LocalScOpt | None = None
        self._laid_at = 0  # the t at which the local plan's band was laid; 0: never
        self._since: NDArray[np.int64] = np.zeros(CLASSES, dtype=np.int64)
        """For each class of counts, the earliest t at which the r̂ of one of its pairs may have been computed."""

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        return {
            **super().settings(), "span": self.span, "bonus": self.bonus, "bonus_scale": self.bonus_scale,
            "mixture": self.mixture, "replanning": self.replanning,
        }  # fmt: skip

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The warm start; for local plans the rewards they were made with and their band too."""
        if self._local is None:
            return {"values": self._values}
        numbers = np.append(self._since, self._laid_at)
        return {"values": self._local.v, "rewards": self._rewards, "band": self._local.band, "numbers": numbers}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back the warm start."""
        if arrays["values"].shape != (self.n_states,) or not np.isfinite(arrays["values"]).all():
            raise ValueError(f"array 'values' has shape {arrays['values'].shape}, or is not finite")
        self._values = arrays["values"]
        if "band" in arrays:
            for name, shape in (
                ("rewards", self._rewards.shape),
                ("band", (BAND_NUMBERS,)),
                ("numbers", (CLASSES + 1,)),
            ):
                if arrays[name].shape != shape:
                    raise ValueError(f"array '{name}' has shape {arrays[name].shape}")
            self._rewards = arrays["rewards"]
            self._since, self._laid_at = arrays["numbers"][:-1].copy(), int(arrays["numbers"][-1])
            self._local = LocalScOpt(self.n_states, self.n_actions, self.span)
            self._local.resume(self._rows(self.statistics), self._rewards, arrays["values"], arrays["band"])

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        scaled = f"bonus_scale is {self.bonus_scale:g}, the theorem needs 1" if self.bonus_scale != 1.0 else ""
        return Guarantee(
            bound=f"regret Õ(max{{c, r_max}}·sqrt(Γ·S·A·T)) with probability {1 - self.delta:g}, all T at once",
            assumptions=(f"the optimal bias has span at most c = {self.span:g}", "the MDP is weakly communicating"),
            source="Qian, Fruit, Pirotta & Lazaric, theorem on SCAL+",
            reason_void=scaled,
        )

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data: every pair's bonus was so wide that its cap was reached."""
        if self.current is None:
            return True
        before = (self.statistics.visits + self.remaining) // 2  # N_k: ν executions later N = N_k + ν, max{1,N_k} - ν
        bonuses = self._bonuses(before, self.planned_at + 1)
        return bool(np.min(bonuses[self._possible]) - self.model_error >= self.span + self.reward_range)

    def _bonuses(self, visits: NDArray[np.int64], t: int) -> NDArray[np.float64]:
        out = np.empty(visits.size)
        bonuses_of(visits, *self._constants(t), self.model_error, out)
        return out

    def _constants(self, t: int) -> tuple[Any, ...]:
        return (
            self.n_states, self.n_actions, t, self.delta, self.bonus_scale, self.span, self.reward_range, self._variant,
        )  # fmt: skip

    @staticmethod
    def _rows(statistics: Statistics) -> tuple[Any, ...]:
        return statistics.begin, statistics.length, statistics.next_state, statistics.count, statistics.visits

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """ScOpt on the estimated MDP with bonus, to precision r_max/√t."""
        return self._plan_locally(statistics, t) if self.replanning == "local" else self._plan_fully(statistics, t)

    def bonuses(self) -> NDArray[np.float64]:
        """(S,A) the bonus of every pair, if a plan were made now; in the user's units of reward."""
        return self._bonuses(self.statistics.visits, self.t + 1).reshape(self.n_states, self.n_actions)

    def _shown(self, statistics: Statistics, t: int, drift: float = 0.0) -> dict[str, Any]:
        """If somebody looks: bonus b_k (S,A), and the rewards (S*A,) that the plan was made with.

        These are r̄ + b_k, or less by at most `drift` where a local plan keeps the bonus of an earlier t.
        """
        if self.on_episode is None:
            return {}
        bonuses = self._bonuses(statistics.visits, t)
        return {
            "bonus": bonuses.reshape(self.n_states, self.n_actions), "rewards": self._rewards.copy(), "drift": drift,
        }  # fmt: skip

    def _plan_fully(self, statistics: Statistics, t: int) -> EpisodePlan:
        r, epsilon, v = self._rewards, self.reward_range / math.sqrt(t), self._values.copy()
        optimistic_rewards(
            statistics.visits, statistics.reward_sum, self._possible, *self._constants(t), self.model_error, r
        )
        w, act = np.empty(self.n_states), np.zeros(self.n_states, dtype=np.int64)
        batch = max(8, BATCH_WORK // max(1, int(statistics.used[0])))
        sweeps = 0
        while True:
            done, low, high, slack, met = scopt_on_counts(
                *self._rows(statistics), r, self.n_actions, 0, self.span, epsilon, batch, v, w, act
            )
            sweeps += done
            if met:
                break
            if high - low <= 2 * slack:
                raise self._too_precise(epsilon, t, 2 * slack)
        self._values = v
        return EpisodePlan(
            actions=act, gain_bounds=(low - slack + self.reward_min, high + slack + self.reward_min), values=v,
            sweeps=sweeps, probabilities=self._mixed(statistics, v, w, act), span=span_of(v),
            details=self._shown(statistics, t),
        )  # fmt: skip

    def _mixed(
        self, statistics: Statistics, v: NDArray[np.float64], best: NDArray[np.float64], greedy: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """(S,A) of the min-action mixture; None where the policy is deterministic."""
        ceiling = float(best.min()) + self.span
        if self.mixture == "copy" or not np.any(best > ceiling):
            return None
        copies = np.empty(statistics.visits.size)
        expected_values(*self._rows(statistics), 0, v, copies)
        copies = np.where(self.allowed, copies.reshape(self.allowed.shape), np.inf)
        worst = copies.argmin(axis=1)
        _, projected, deterministic = constrained_greedy(
            best, ceiling, greedy, self.n_actions + worst, copies.min(axis=1), self.n_actions
        )
        return None if deterministic else projected

    def _too_precise(self, epsilon: float, t: int, rounding: float) -> NotConvergedError:
        return NotConvergedError(
            f"SCAL+ cannot plan to {epsilon:.1e} at step {t}: rounding alone is {rounding:.1e} (span {self.span:g})"
        )

    def _plan_locally(self, statistics: Statistics, t: int) -> EpisodePlan:
        if self._local is None:
            self._local = LocalScOpt(self.n_states, self.n_actions, self.span)
        local, rows, epsilon = self._local, self._rows(statistics), self.reward_range / math.sqrt(t)
        drift, good, sweeps = 0.0, False, 0
        many = bool(statistics.n_changed[0] > MANY * statistics.visits.size)
        narrow = local.bracket[1] - local.bracket[0] + DRIFT * epsilon <= epsilon
        if self._laid_at and narrow and not many:
            renew, drift = self._to_renew(statistics, t, DRIFT * epsilon)
            self._renew(renew, statistics, t)
            good = local.repair(rows, self._rewards, renew)
            sweeps = local.sweeps
        if not good:
            drift, self._laid_at, self._since[:] = 0.0, t, t
            self._renew(np.arange(statistics.visits.size), statistics, t)
            swept = local.refresh(rows, self._rewards, (WIDE if many else BAND) * epsilon, 0.9 if many else 0.5)
            if not swept or local.bracket[1] - local.bracket[0] > epsilon:
                raise self._too_precise(epsilon, t, local.rounding)
            sweeps += local.sweeps
        low, high = local.bracket[0], local.bracket[1] + drift
        return EpisodePlan(
            actions=local.actions, gain_bounds=(low + self.reward_min, high + self.reward_min), values=local.v,
            sweeps=sweeps, span=local.span_of_values,
            details=self._shown(statistics, t, drift),
        )  # fmt: skip

    def _to_renew(self, statistics: Statistics, t: int, tolerated: float) -> tuple[NDArray[np.int64], float]:
        """The pairs that have changed, or whose bonus may have moved by more than is tolerated; what the others may."""
        drifts = np.empty(t.bit_length() + 1)  # no pair has more than t visits
        largest_drifts(self._since, *self._constants(t), drifts)
        stale = drifts > tolerated
        if not stale.any():
            return statistics.changed_pairs(), float(drifts.max())
        pairs = np.empty(statistics.visits.size, dtype=np.int64)
        n = pairs_to_renew(statistics.visits, statistics.is_changed, stale, pairs)
        self._since[: stale.size][stale] = t
        return pairs[:n], float(drifts[~stale].max(initial=0.0))

    def _renew(self, pairs: NDArray[np.int64], statistics: Statistics, t: int) -> None:
        changed_rewards(
            pairs, statistics.visits, statistics.reward_sum, self._possible, *self._constants(t), self.model_error,
            self._rewards,
        )  # fmt: skip
