"""The auditor of SCAL+: every episode's plan and model held against the true MDP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodeView
from gainful.agents.scal_plus import SCALPlus
from gainful.audit.episodes import episode_rule
from gainful.audit.findings import Finding, compared, not_applicable
from gainful.audit.truth import Truth
from gainful.simulation.tabular import TabularSimulation
from gainful.theory.regret import episodes_at, terms_at

(
    A_FOUND, A_ALLOWED, A_PAIR, V_FOUND, V_ALLOWED, V_PAIR, ALL_FOUND, ALL_ALLOWED, ALL_PAIR, FORMULA, FORMULA_B,
    FORMULA_PAIR, LOW, HIGH, SLACK, ONE_SIDED, ONE_SIDED_STATE, TWO_SIDED, TWO_SIDED_STATE, FEASIBLE, CEILING,
    FEASIBLE_STATE, GAMMA, GAMMA_BOUND, REACH, REACH_STATE, GAP_MEAN, GAP_MAX,
) = range(28)  # fmt: skip
"""Columns that `examine` fills, one row per episode."""
(SUM_B, SUM_D, DRIFT, SUM_R, OVER, OVER_PAIR, TIGHT, STEPS) = range(8)
"""Columns that `settle` fills when an episode is over."""
PAIRWISE_WORK = 20_000
"""Numbers read up to which the contraction coefficient is computed exactly; beyond, Doeblin's bound of it."""
APPENDIX = 1


@kernel
def examine(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    reward_sum: NDArray[Any], possible: NDArray[Any], n_actions: int, anchor: int, r_hat: NDArray[Any],
    used_bonus: NDArray[Any], drift: float, v: NDArray[Any], actions: NDArray[Any], mixed: NDArray[Any],
    true_r: NDArray[Any],
    ptr: NDArray[Any], idx: NDArray[Any], p: NDArray[Any], h: NDArray[Any], gain: float, log2: float, log3: float,
    c: float, r_max: float, scale: float, variant: int, added: float, spread: int, estimate: float, exact: bool,
    from_values: NDArray[Any], b: NDArray[Any], d: NDArray[Any], pv: NDArray[Any], qv: NDArray[Any],
    least: NDArray[Any], common: NDArray[Any], w: NDArray[Any], greedy: NDArray[Any], out: NDArray[Any],
) -> None:  # fmt: skip
    """Everything about the beginning of one episode, in internal units of reward; results in `out`.

    `r_hat` are the rewards that were planned with. Rows of counts and of the true model are sorted by next state, so
    they are merged. `b` and `d` get the theorem's b_k and d_k (with `added`, the cells' term), `pv` and `qv` p·v and
    p̂·v of every pair.
    """
    S = v.size
    for i in range(out.size):
        out[i] = -np.inf
    out[A_PAIR] = out[V_PAIR] = out[ALL_PAIR] = out[FORMULA_PAIR] = -1
    worst_a = worst_v = worst_all = -1.0  # of visited pairs; a pair never visited counts where it fails
    out[A_FOUND] = out[V_FOUND] = out[ALL_FOUND] = 0.0
    out[A_ALLOWED] = out[V_ALLOWED] = out[ALL_ALLOWED] = 2.0 * c + r_max
    for s in range(S):
        least[s], common[s] = np.inf, 0
    n_possible, min_anchor, max_r, longest = 0, np.inf, 0.0, 0
    gap_sum, gap_max = 0.0, -np.inf
    lowest, largest = np.inf, 0.0
    for s in range(S):
        best, best_action, best_h = -np.inf, 0, -np.inf
        largest = max(largest, abs(v[s]))
        for a in range(n_actions):
            k = s * n_actions + a
            if not possible[k]:
                continue
            n_possible += 1
            N = visits[k]
            inv = 1.0 / (N + 1.0)
            beta, phi = math.sqrt(7.0 * log2 / max(1, N)), math.sqrt(7.0 * spread * log3 / max(1, N))
            phi += 14.0 * S * log3 / max(1, N)
            scaled = scale * beta
            if variant == APPENDIX:
                b[k] = c * min(scaled + inv, 2.0) + r_max * min(scaled, 1.0) + added
            else:
                b[k] = (c + r_max) * scaled + c * inv + added
            d[k] = c * min(phi + inv, 2.0) + r_max * min(beta, 1.0) + added
            # p̂ and p, merged
            i, i_end = begin[k], begin[k] + length[k]
            j, j_end = ptr[k], ptr[k + 1]
            longest = max(longest, length[k] + 1)
            anchored, q_anchor = False, inv
            qh, ph, q_v, p_v, l1 = 0.0, 0.0, 0.0, 0.0, 0.0
            while i < i_end or j < j_end:
                x, y = S, S
                if i < i_end:
                    x = int(next_state[i])
                if j < j_end:
                    y = int(idx[j])
                to = min(x, y)
                q, true = 0.0, 0.0
                if x == to:
                    q = count[i] * inv
                    i += 1
                if y == to:
                    true = p[j]
                    j += 1
                if to == anchor:
                    q += inv
                    q_anchor = q
                    anchored = True
                qh += q * h[to]
                ph += true * h[to]
                q_v += q * v[to]
                p_v += true * v[to]
                l1 += abs(q - true)
                if q > 0.0:
                    least[to] = min(least[to], q)
                    common[to] += 1
            if not anchored:
                qh += inv * h[anchor]
                q_v += inv * v[anchor]
                l1 += inv
                least[anchor] = min(least[anchor], inv)
                common[anchor] += 1
            pv[k], qv[k] = p_v, q_v
            min_anchor = min(min_anchor, q_anchor)
            r_bar = reward_sum[k] / max(1, N)
            late = r_bar + b[k] - r_hat[k]  # what a stale logarithm may hold back, up to drift
            wrong = max(abs(used_bonus[k] - b[k]), -late, late - drift) / (r_max + b[k])
            if wrong > out[FORMULA]:
                out[FORMULA], out[FORMULA_B], out[FORMULA_PAIR] = wrong, b[k], k
            found = abs(r_bar - true_r[k] + qh - ph)
            if found / b[k] > worst_a and (N > 0 or found > b[k]):
                worst_a = found / b[k]
                out[A_FOUND], out[A_ALLOWED], out[A_PAIR] = found, b[k], k
            found = abs(r_bar - true_r[k] + q_v - p_v)
            if found / d[k] > worst_v and (N > 0 or found > d[k]):
                worst_v = found / d[k]
                out[V_FOUND], out[V_ALLOWED], out[V_PAIR] = found, d[k], k
            found = abs(r_bar - true_r[k]) + 0.5 * c * l1
            if found / d[k] > worst_all and (N > 0 or found > d[k]):
                worst_all = found / d[k]
                out[ALL_FOUND], out[ALL_ALLOWED], out[ALL_PAIR] = found, d[k], k
            value = r_bar + b[k] + q_v
            max_r = max(max_r, r_bar + b[k])
            if value > best:
                best, best_action = value, a
            best_h = max(best_h, r_bar + b[k] + qh)
        w[s], greedy[s] = best, best_action
        lowest = min(lowest, best)
        gap = best_h - h[s] - gain
        gap_sum += gap
        gap_max = max(gap_max, gap)
    out[GAP_MEAN], out[GAP_MAX] = gap_sum / S, gap_max
    ceiling = lowest + c
    out[SLACK] = 2.0 * (longest + 4) * 2.0**-53 * (largest + max_r)
    out[LOW], out[HIGH] = np.inf, -np.inf
    out[REACH] = np.inf
    out[FEASIBLE], out[CEILING], out[FEASIBLE_STATE] = 0.0, c, -1
    for s in range(S):
        cut = min(w[s], ceiling)
        residual = cut - v[s]
        out[LOW], out[HIGH] = min(out[LOW], residual), max(out[HIGH], residual)
        if abs(estimate - residual) > out[TWO_SIDED]:
            out[TWO_SIDED], out[TWO_SIDED_STATE] = abs(estimate - residual), s
        earned, reach, partner = 0.0, 0.0, np.inf
        for a in range(n_actions):
            k = s * n_actions + a
            if not possible[k]:
                continue
            share = mixed[s, a] if mixed.size else (1.0 if actions[s] == a else 0.0)
            if share > 0.0:
                earned += share * (reward_sum[k] / max(1, visits[k]) + b[k] + qv[k])
                reach += share * from_values[k]
            if mixed.size == 0 and a == greedy[s]:
                partner = qv[k]
            elif mixed.size:
                partner = min(partner, qv[k])
        if estimate - earned + v[s] > out[ONE_SIDED]:
            out[ONE_SIDED], out[ONE_SIDED_STATE] = estimate - earned + v[s], s
        if w[s] > ceiling and (out[FEASIBLE_STATE] < 0 or partner - lowest > out[FEASIBLE]):
            out[FEASIBLE], out[FEASIBLE_STATE] = partner - lowest, s
        if reach < out[REACH]:
            out[REACH], out[REACH_STATE] = reach, s
    out[GAMMA_BOUND] = 1.0 - min_anchor
    gamma = 0.0
    if exact:
        for k in range(visits.size):
            for m in range(k):
                if possible[k] and possible[m]:
                    overlap = 0.0
                    i, i_end, j, j_end = begin[k], begin[k] + length[k], begin[m], begin[m] + length[m]
                    x_inv, y_inv = 1.0 / (visits[k] + 1.0), 1.0 / (visits[m] + 1.0)
                    x_anchor, y_anchor = x_inv, y_inv
                    while i < i_end or j < j_end:
                        x, y = S, S
                        if i < i_end:
                            x = int(next_state[i])
                        if j < j_end:
                            y = int(next_state[j])
                        to = min(x, y)
                        q, true = 0.0, 0.0
                        if x == to:
                            q = count[i] * x_inv
                            i += 1
                        if y == to:
                            true = count[j] * y_inv
                            j += 1
                        if to == anchor:
                            x_anchor += q
                            y_anchor += true
                        else:
                            overlap += min(q, true)
                    gamma = max(gamma, 1.0 - overlap - min(x_anchor, y_anchor))
    else:
        shared = 0.0
        for s in range(S):
            if common[s] == n_possible:
                shared += least[s]
        gamma = 1.0 - shared
    out[GAMMA] = gamma


@kernel
def reaching(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    anchor: int, out: NDArray[Any],
) -> None:  # fmt: skip
    """p̂(s̄|s,a) of every pair."""
    for k in range(visits.size):
        seen = 0
        for j in range(begin[k], begin[k] + length[k]):
            if next_state[j] == anchor:
                seen = count[j]
        out[k] = (seen + 1.0) / (visits[k] + 1.0)


@kernel
def settle(
    visits: NDArray[Any], before: NDArray[Any], b: NDArray[Any], d: NDArray[Any], pv: NDArray[Any], v: NDArray[Any],
    true_r: NDArray[Any], n_actions: int, out: NDArray[Any],
) -> None:  # fmt: skip
    """What an episode has summed up: ν = visits - before; then before = visits."""
    for i in range(out.size):
        out[i] = 0.0
    out[OVER], out[OVER_PAIR] = -np.inf, -1
    for k in range(visits.size):
        nu = visits[k] - before[k]
        if nu == 0:
            continue
        limit = max(1, before[k])
        if nu / limit > out[OVER]:
            out[OVER], out[OVER_PAIR] = nu / limit, k
        if nu == limit:
            out[TIGHT] = 1.0
        out[SUM_B] += nu * b[k]
        out[SUM_D] += nu * d[k]
        out[DRIFT] += nu * (pv[k] - v[k // n_actions])
        out[SUM_R] += nu * true_r[k]
        out[STEPS] += nu
        before[k] = visits[k]


def of_plans(agent: Any, seen: NDArray[np.float64], starts: NDArray[np.float64]) -> dict[str, Finding]:
    """What needs no true model: the plans and the estimated MDP against their definitions, one row per episode.

    `seen` is what `examine` filled; `starts` has t_k, the reported bracket and sp(v_k) in its first columns.
    """
    step, low, high = starts[:, 0], starts[:, 1], starts[:, 2]
    A, c, r_max = agent.n_actions, agent.span, agent.reward_range
    epsilon = r_max / np.sqrt(step)
    told_low, told_high = low - agent.reward_min, high - agent.reward_min
    units = 8 * 2.0**-53 * (abs(agent.reward_min) + np.abs(high))  # of a bracket that has been moved there and back
    slack = seen[:, SLACK] + 1e-9 * r_max + units
    return {
        "bonus-formula": compared(
            seen[:, FORMULA], 0.0, step, rounding=1e-12, states=seen[:, FORMULA_PAIR] // A,
            actions=seen[:, FORMULA_PAIR] % A,
        ),
        "span": compared(starts[:, 3], c, step, rounding=1e-12 * (c + r_max)),
        "certificate": compared(
            np.maximum(told_low - seen[:, LOW], seen[:, HIGH] - told_high), 0.0, step, rounding=slack
        ),
        "precision": compared(high - low, epsilon, step, rounding=1e-12 * r_max + units),
        "bellman-error": compared(
            np.maximum(seen[:, ONE_SIDED], seen[:, TWO_SIDED]), epsilon, step, rounding=slack,
            states=np.where(
                seen[:, ONE_SIDED] > seen[:, TWO_SIDED], seen[:, ONE_SIDED_STATE], seen[:, TWO_SIDED_STATE]
            ),
        ),
        "feasible": compared(
            seen[:, FEASIBLE], seen[:, CEILING], step, rounding=slack, states=seen[:, FEASIBLE_STATE]
        ),
        "contraction": compared(seen[:, GAMMA], seen[:, GAMMA_BOUND], step, rounding=1e-12),
        "unichain": compared(seen[:, REACH] <= 0.0, 0.0, step, states=seen[:, REACH_STATE]),
    }  # fmt: skip


def optimism(gain: float, seen: NDArray[np.float64], step: NDArray[np.float64], r_max: float) -> Finding:
    """Whether max(T_c v_k − v_k), computed anew, is at least g* (its proven lower end, in internal units)."""
    return compared(np.full(step.size, gain), seen[:, HIGH], step, rounding=seen[:, SLACK] + 1e-9 * r_max)


class ScalPlusAuditor:
    """Looks at every episode of one SCAL+ agent in one MDP.

    Set `agent.on_episode = auditor.see` before the run, and ask for `findings()` when it is over.
    """

    names = (
        "bonus-formula", "bonus-bias", "bonus-values", "bonus-all-values", "optimism", "span", "certificate",
        "precision", "bellman-error", "feasible", "contraction", "unichain", "episode-rule", "episode-count",
        "term-bonus", "term-deviation", "term-precision", "term-telescoping", "term-martingale", "decomposition",
        "regret-bound",
    )  # fmt: skip

    def __init__(self, agent: SCALPlus, truth: Truth, life: TabularSimulation) -> None:
        self.agent, self.truth, self.life = agent, truth, life
        S, pairs = agent.n_states, agent.n_states * agent.n_actions
        self._true_r = truth.rewards - agent.reward_min
        self._gain = truth.gain - agent.reward_min
        self._b, self._d, self._pv, self._qv, self._reach = (np.zeros(pairs) for _ in range(5))
        self._least, self._w = np.zeros(S), np.zeros(S)
        self._common, self._greedy = np.zeros(S, dtype=np.int64), np.zeros(S, dtype=np.int64)
        self._before = np.zeros(pairs, dtype=np.int64)
        self._v = np.zeros(S)
        self._none = np.empty((0, 0))
        self._seen: NDArray[np.float64] = np.zeros((64, GAP_MAX + 1))
        self._sums: NDArray[np.float64] = np.zeros((64, STEPS + 1))
        self._starts: list[tuple[int, float, float, float, float, float]] = []
        """Per episode: t_k, the reported bracket, sp(v_k), v_k at its first state, rewards before it."""
        self._ends: list[float] = []
        """v_k at the last state of episode k."""
        self._exact = pairs * pairs * max(2, truth.support) <= PAIRWISE_WORK
        self._possible = agent.allowed.reshape(-1)

    def see(self, view: EpisodeView) -> None:
        """One episode begins: the last one is settled, the new one examined."""
        agent, plan, s = self.agent, view.plan, view.statistics
        k, state = len(self._starts), int(self.life.clock[0])
        if k:
            self._settle(k - 1, state)
        if k == len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        low, high = plan.gain_bounds
        v = plan.values
        pairs = agent.n_states * agent.n_actions
        rows = (s.begin, s.length, s.next_state, s.count, s.visits)
        reaching(*rows, 0, self._reach)
        examine(
            *rows, s.reward_sum, self._possible, agent.n_actions, 0, plan.details["rewards"],
            plan.details["bonus"].reshape(-1), plan.details["drift"], v, plan.actions,
            self._none if plan.probabilities is None else plan.probabilities, self._true_r, *self.truth.rows,
            self.truth.bias, self._gain, math.log(2.0 * pairs * view.step / agent.delta),
            math.log(3.0 * pairs * view.step / agent.delta), agent.span, agent.reward_range, agent.bonus_scale,
            int(agent.bonus == "appendix"), agent.model_error, self.truth.support - 1,
            (low + high) / 2.0 - agent.reward_min, self._exact, self._reach, self._b, self._d, self._pv, self._qv,
            self._least, self._common, self._w, self._greedy, self._seen[k],
        )  # fmt: skip
        self._v[:] = v
        span = float(v.max() - v.min())
        self._starts.append((view.step, low, high, span, float(v[state]), float(self.life.earned[0])))

    def _settle(self, k: int, state: int) -> None:
        settle(
            self.agent.statistics.visits, self._before, self._b, self._d, self._pv, self._v, self._true_r,
            self.agent.n_actions, self._sums[k],
        )  # fmt: skip
        self._ends.append(float(self._v[state]))

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and numbers to show: sums of the terms, tightness of optimism over time."""
        agent, truth = self.agent, self.truth
        if len(self._ends) < len(self._starts):
            self._settle(len(self._starts) - 1, self.life.state)
        seen = self._seen[: len(self._starts)]
        starts = np.array(self._starts)
        step = starts[:, 0]
        A, c, r_max = agent.n_actions, agent.span, agent.reward_range
        epsilon = r_max / np.sqrt(step)

        def pair(column: int) -> dict[str, Any]:
            at = seen[:, column]
            return {"states": at // A, "actions": at % A}

        found = {
            **of_plans(agent, seen, starts),
            "bonus-bias": compared(seen[:, A_FOUND], seen[:, A_ALLOWED], step, **pair(A_PAIR)),
            "bonus-values": compared(seen[:, V_FOUND], seen[:, V_ALLOWED], step, **pair(V_PAIR)),
            "bonus-all-values": compared(seen[:, ALL_FOUND], seen[:, ALL_ALLOWED], step, **pair(ALL_PAIR)),
            "optimism": optimism(truth.gain_low - agent.reward_min, seen, step, r_max),
        }  # fmt: skip
        found |= self._of_sums(step, epsilon)
        if truth.span > c * (1.0 + 1e-9):
            reason = (
                f"the optimal bias has span {truth.span:.6g}, more than c = {c:g}: the theorem does not speak of it"
            )
            for name in ("bonus-bias", "optimism", "decomposition", "regret-bound"):
                found[name] = not_applicable(reason)
        if agent.mixture == "min-action":
            found["decomposition"] = not_applicable("actions are drawn: the inequality holds on average over them")
            if agent.bonus != "appendix":
                found["regret-bound"] = not_applicable("with drawn actions the bound is for the appendix's bonus")
        shown = {
            "tightness": {
                "step": step.astype(np.int64).tolist(), "mean": seen[:, GAP_MEAN].tolist(),
                "largest": seen[:, GAP_MAX].tolist(),
            },
            "sums": self._shown_sums, "bound": self._bound.tolist(), "terms": self._allowed,
        }  # fmt: skip
        return {name: found[name] for name in self.names}, shown

    def _of_sums(self, step: NDArray[np.float64], epsilon: NDArray[np.float64]) -> dict[str, Finding]:
        """What episodes add up to: the rule that ends them, their number, and the terms of the regret."""
        agent, life = self.agent, self.life
        sums, starts = self._sums[: len(self._starts)], np.array(self._starts)
        c, A, r_max = agent.span, agent.n_actions, agent.reward_range
        after = np.cumsum(sums[:, STEPS])  # T at the end of each episode
        earned = np.append(starts[1:, 5], life.total) - agent.reward_min * after  # in internal units
        telescoping = np.array(self._ends) - starts[:, 4]
        luck = sums[:, DRIFT] - telescoping + sums[:, SUM_R] - np.diff(earned, prepend=0.0)
        totals = {
            "bonus": np.cumsum(sums[:, SUM_B]), "deviation": np.cumsum(sums[:, SUM_D]),
            "precision": np.cumsum(sums[:, STEPS] * epsilon), "martingale": np.cumsum(luck),
            "telescoping": np.cumsum(telescoping),
        }  # fmt: skip
        numbers = np.arange(1, step.size + 1)
        lived = after > 0
        bound = self._terms(np.maximum(after, 1.0))
        regret = after * self._gain - earned
        whole_right = np.sum(list(totals.values()), axis=0)
        self._shown_sums = {
            "steps": after.astype(np.int64).tolist(), "regret": regret.tolist(),
            **{name: values.tolist() for name, values in totals.items()},
        }  # fmt: skip
        allowed = episodes_at(np.maximum(after, 1.0), agent.n_states * A)
        found = {
            "episode-rule": episode_rule(step, sums[:, OVER], sums[:, OVER_PAIR], sums[:, TIGHT], A),
            "episode-count": compared(numbers, allowed, step),
            "term-martingale": compared(totals["martingale"][lived], bound["martingale"][lived], step[lived]),
            "term-telescoping": compared(totals["telescoping"], c * numbers, step, rounding=1e-9 * (c + r_max)),
            "decomposition": compared(
                regret[lived], whole_right[lived], step[lived],
                rounding=1e-9 * (np.abs(whole_right[lived]) + r_max),
            ),
        }  # fmt: skip
        for name in ("bonus", "deviation", "precision"):
            found[f"term-{name}"] = compared(totals[name][lived], bound[name][lived], step[lived])
        if agent.bonus_scale > 1.0:
            found["term-bonus"] = not_applicable(
                f"bonus_scale is {agent.bonus_scale:g}: b is larger than the theorem's"
            )
        run = life.run()
        terms = self._terms(run.steps.astype(np.float64))
        self._bound = np.sum(list(terms.values()), axis=0)
        self._allowed = {name: float(values[-1]) for name, values in terms.items()}
        found["regret-bound"] = compared(
            run.regret, self._bound, run.steps,
            episodes=np.searchsorted(step, run.steps, "right"),
        )  # fmt: skip
        return found

    def _terms(self, T: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The terms of the bound; those of the cells are zero in a finite MDP."""
        agent = self.agent
        return terms_at(
            T, agent.n_states, agent.n_actions, span=agent.span, spread=self.truth.support - 1,
            reward_max=agent.reward_range, delta=agent.delta, mixture=agent.mixture,
        )  # fmt: skip
