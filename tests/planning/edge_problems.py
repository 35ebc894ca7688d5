"""Random small problems over the whole range of float64, and what every planner must make of them.

A planner either answers, and then the exact answer lies in its bracket, which is as narrow as was asked, or it raises
one of gainful's own errors, whose partial plan has a valid bracket too. Ten seconds of CPU are a hang.
"""

from __future__ import annotations

import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np

import gainful as gf
from gainful.errors import GainfulError, PlanningError, SlowMixingWarning
from gainful.planning.confidence import Confidence, Intervals, KLBall, L1Ball
from gainful.planning.discounted import discounted_value_iteration
from gainful.planning.extended import extended_value_iteration
from gainful.planning.finite_horizon import finite_horizon_value_iteration
from tests.planning.exact import ExactMDP, chain_gains

HANG_SECONDS = 10
LARGEST_EXPONENT, SMALLEST_EXPONENT = 150.0, -323.0


class HangError(AssertionError):
    """A call took ten seconds of CPU."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise `HangError` after ten seconds of CPU."""

    def stop(*_: object) -> None:
        raise HangError(f"{HANG_SECONDS} s of CPU")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---------------------------------------------------------------------- problems


def random_row(rng: np.random.Generator, n_states: int) -> np.ndarray[Any, Any]:
    """A distribution: even, skewed, or with entries of any size down to the smallest float."""
    support = rng.choice(n_states, size=rng.integers(1, n_states + 1), replace=False)
    row = np.zeros(n_states)
    kind = rng.integers(4)
    if kind == 0:
        row[support] = rng.dirichlet(np.ones(support.size))
    elif kind == 1:
        row[support] = 1.0 / support.size
    else:
        lowest = SMALLEST_EXPONENT if kind == 2 else -20.0
        row[support] = 10.0 ** rng.uniform(lowest, 0.0, support.size) / n_states
        row[support[0]] = max(0.0, 1.0 - np.delete(row, support[0]).sum())
    return row


def random_rewards(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Rewards of one size, of all sizes, or whole numbers; some of them 0, some negative."""
    kind = rng.integers(4)
    if kind == 0:
        table = rng.integers(-3, 4, shape).astype(float)
    elif kind == 1:
        table = rng.uniform(-1.0, 1.0, shape) * 10.0 ** rng.uniform(SMALLEST_EXPONENT, LARGEST_EXPONENT)
    elif kind == 2:
        table = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(SMALLEST_EXPONENT, LARGEST_EXPONENT, shape)
    else:
        table = 10.0 ** rng.uniform(-10, 10) + rng.uniform(-1.0, 1.0, shape)
    table[rng.random(shape) < 0.2] = 0.0
    return table if rng.random() < 0.5 else np.abs(table)


def random_mdp(rng: np.random.Generator, n_states: int, n_actions: int) -> gf.MDP:
    """A small process of any structure."""
    S, A = n_states, n_actions
    P = np.array([[random_row(rng, S) for _ in range(A)] for _ in range(S)])
    allowed = rng.random((S, A)) < 0.8
    allowed[np.arange(S), rng.integers(0, A, S)] = True
    objective: Literal["reward", "cost"] = "cost" if rng.random() < 0.3 else "reward"
    shape = (S, A, S) if rng.random() < 0.25 else (S, A)
    if rng.random() < 0.15:
        rates = P * 10.0 ** rng.uniform(-150, 150)
        rates[~allowed] = 0.0
        name = "costs" if objective == "cost" else "rewards"
        return gf.MDP.from_rates(rates, **{name: random_rewards(rng, (S, A))}, allowed=allowed)
    mdp = gf.MDP(P, random_rewards(rng, shape), allowed=allowed, objective=objective)
    return mdp.normalised() if rng.random() < 0.1 else mdp


def random_precision(rng: np.random.Generator, mdp: gf.MDP) -> float:
    """Something sensible for the rewards, or anything."""
    if rng.random() < 0.2:
        return float(10.0 ** rng.uniform(-320, 300))
    low, high = mdp.reward_range
    size = max(abs(low), abs(high), 5e-324) / mdp.units.step_duration
    return max(5e-324, min(1e300, float(size * 10.0 ** rng.uniform(-13, 0))))


# ---------------------------------------------------------------------- checks


class Problem:
    """One random problem, its exact answers, and a count of what the planners did."""

    def __init__(self, seed: int, outcomes: Counter[str]) -> None:
        self.rng, self.outcomes = np.random.default_rng(seed), outcomes
        S, A = int(self.rng.integers(1, 5)), int(self.rng.integers(1, 4))
        self.made: gf.MDP | None = None
        try:
            self.made = random_mdp(self.rng, S, A)
        except GainfulError as error:
            self._count("building", error)
            return
        self.exact = ExactMDP(self.made)
        self.precision = random_precision(self.rng, self.made)

    @property
    def mdp(self) -> gf.MDP:
        assert self.made is not None
        return self.made

    def _count(self, what: str, error: Exception | None = None) -> None:
        self.outcomes[f"{what}: {'answered' if error is None else type(error).__name__}"] += 1

    def check(self) -> None:
        """Every planner, once."""
        self.check_gains()
        self.check_scopt()
        self.check_sets()
        self.check_evaluation()
        self.check_discounted()
        self.check_finite_horizon()
        self.check_hitting_times()

    def attempt(self, what: str, call: Callable[[], Any]) -> tuple[Any, GainfulError | None]:
        """The result of a call, or gainful's own error; whatever else it raises or warns of is a failure."""
        with warnings.catch_warnings(), no_hang():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", SlowMixingWarning)  # by the clock; here CPU time counts
            try:
                result = call()
            except GainfulError as error:
                self._count(what, error)
                return None, error
        self._count(what)
        return result, None

    def planned(self, what: str, call: Callable[[], gf.Plan], truth: list[Fraction] | None) -> gf.Plan | None:
        """Run a planner and hold its bracket, also that of a partial plan, against the exact gains."""
        plan: gf.Plan | None
        plan, error = self.attempt(what, call)
        partial = error.plan if isinstance(error, PlanningError) else None
        if plan is not None:
            self.check_plan(what, plan)
            low, high = plan.gain_bounds
            assert Fraction(high) - Fraction(low) <= Fraction(self.precision) * (1 + Fraction(1, 2**40)), (
                f"{what}: {high - low} wide, asked for {self.precision}"
            )
        for found in (plan, partial):
            if found is not None and truth is not None:
                self.check_bracket(what, found.gain_bounds, truth)
        return plan

    def check_plan(self, what: str, plan: gf.Plan) -> None:
        assert np.isfinite(plan.bias).all(), f"{what}: bias {plan.bias}"
        assert np.isfinite([plan.gain, *plan.gain_bounds]).all(), f"{what}: {plan.gain_bounds}"
        assert plan.gain_bounds[0] <= plan.gain <= plan.gain_bounds[1], f"{what}: {plan.gain} in {plan.gain_bounds}"
        policy = plan.policy
        assert (policy >= 0.0).all(), f"{what}: policy {policy}"
        assert np.abs(policy.sum(axis=1) - 1.0).max() <= 1e-9, f"{what}: policy {policy}"
        assert not policy[~self.mdp.allowed].any(), f"{what}: plays what is not allowed"

    def check_bracket(self, what: str, bounds: tuple[float, float], truth: list[Fraction]) -> None:
        """The exact internal gains lie inside, in the user's units."""
        low, high = bounds
        assert not np.isnan([low, high]).any(), f"{what}: [{low}, {high}]"
        for internal in truth:
            gain = self.exact.gain_in_units(internal)
            assert low == -np.inf or Fraction(low) <= gain, f"{what}: {float(gain)} below [{low}, {high}]"
            assert high == np.inf or gain <= Fraction(high), f"{what}: {float(gain)} above [{low}, {high}]"

    def check_gains(self) -> None:
        mdp, precision = self.mdp, self.precision
        truth = self.exact.optimal_gains
        planners: dict[str, Callable[[], gf.Plan]] = {
            "solve": lambda: gf.solve(mdp, precision=precision),
            "relative_value_iteration": lambda: gf.relative_value_iteration(mdp, precision=precision),
            "policy_iteration": lambda: gf.policy_iteration(mdp, precision=precision),
        }
        for name, call in planners.items():
            plan = self.planned(name, call, truth)
            if plan is not None:
                assert plan.actions is not None
                self.check_policy(name, plan, self.exact.gains(plan.actions.tolist()))

    def check_policy(self, what: str, plan: gf.Plan, gains: list[Fraction]) -> None:
        """A policy earns at least the lower end of the bracket (costs: at most the upper one)."""
        for internal in gains:
            gain = self.exact.gain_in_units(internal)
            if self.exact.sign > 0:
                assert gain >= Fraction(plan.gain_bounds[0]), f"{what}: the policy earns {float(gain)}"
            else:
                assert gain <= Fraction(plan.gain_bounds[1]), f"{what}: the policy costs {float(gain)}"

    def check_scopt(self) -> None:
        mdp, precision = self.mdp, self.precision
        low, high = mdp.reward_range
        span = float((high - low) * 10.0 ** self.rng.uniform(-3, 3))
        truth = None
        if mdp.n_states <= 3 and mdp.n_actions <= 2:
            truth = self.exact.truncated_gains(Fraction(span))
        for augmented in (False, True):
            name = "scopt, augmented" if augmented else "scopt"
            plan = self.planned(name, lambda: gf.scopt(mdp, span, precision=precision, augmented=augmented), truth)  # noqa: B023
            if plan is not None:
                assert plan.span <= span, f"{name}: span {plan.span} > {span}"

    def check_sets(self) -> None:
        """Extended value iteration; with two states the sets have two corners each, so that all can be tried."""
        mdp, precision = self.mdp, self.precision
        shape = (mdp.n_states, mdp.n_actions)
        radius = self.rng.uniform(0.01, 0.5, shape)
        if self.rng.random() < 0.3:
            radius = 10.0 ** self.rng.uniform(SMALLEST_EXPONENT, 0.0, shape)
        lower = mdp.probabilities * 0.5
        upper = np.minimum(1.0, mdp.probabilities * 1.5)
        sets: dict[str, Confidence] = {
            "L1 balls": L1Ball(radius),
            "intervals": Intervals(lower, upper, np.full(shape, 0.25)),
            "KL balls": KLBall(radius),
        }
        for name, confidence in sets.items():
            truth = self.best_of_corners(name, radius) if mdp.n_states == 2 and name != "KL balls" else None
            if mdp.entry_rewards is not None and name == "intervals":
                truth = None
            self.planned(
                f"extended value iteration, {name}",
                lambda: extended_value_iteration(mdp, confidence, precision=precision, max_sweeps=20_000),  # noqa: B023
                truth,
            )

    def best_of_corners(self, name: str, radius: np.ndarray[Any, Any]) -> list[Fraction]:
        """The best gains of the extended MDP with two states."""
        choices: list[list[tuple[dict[int, Fraction], Fraction]]] = []
        for s in range(2):
            options = []
            for a in self.exact.actions(s):
                k = 2 * 0 + s * self.mdp.n_actions + a
                p = self.exact.rows[k].get(0, Fraction(0))
                for q in self.ends(name, k, p, Fraction(float(radius[s, a]))):
                    row = {x: w for x, w in ((0, q), (1, 1 - q)) if w > 0}
                    options.append((row, self.exact.rewards[k]))
            choices.append(options)
        best: list[Fraction] | None = None
        for picked in product(*choices):
            gains = chain_gains([row for row, _ in picked], [r for _, r in picked])
            best = gains if best is None else [max(x, y) for x, y in zip(best, gains, strict=True)]
        assert best is not None
        return best

    def ends(self, name: str, k: int, p: Fraction, radius: Fraction) -> tuple[Fraction, Fraction]:
        """The least and the largest probability of state 0 in the set of a pair."""
        if name == "L1 balls":
            return max(Fraction(0), p - radius / 2), min(Fraction(1), p + radius / 2)
        bounds = {0: (Fraction(0), Fraction(1, 4)), 1: (Fraction(0), Fraction(1, 4))}
        for j in range(int(self.mdp.indptr[k]), int(self.mdp.indptr[k + 1])):
            q = float(self.mdp.probabilities[j])
            bounds[int(self.mdp.indices[j])] = (Fraction(q * 0.5), Fraction(min(1.0, q * 1.5)))
        return max(bounds[0][0], 1 - bounds[1][1]), min(bounds[0][1], 1 - bounds[1][0])

    def check_evaluation(self) -> None:
        """No certificate here, but a residual: finite numbers, and no raw error."""
        policy = [int(self.rng.choice(self.exact.actions(s))) for s in self.exact.states]
        found, _ = self.attempt("evaluate", lambda: gf.evaluate(self.mdp, policy))
        if found is not None:
            assert np.isfinite(found.gain).all(), f"evaluate: gain {found.gain}"
            assert np.isfinite(found.bias).all(), f"evaluate: bias {found.bias}"
            assert np.isfinite(found.stationary).all(), f"evaluate: frequencies {found.stationary}"
            assert np.isfinite(found.residual), f"evaluate: residual {found.residual}"
        self.attempt("optimality_gaps", lambda: gf.optimality_gaps(self.mdp))

    def check_discounted(self) -> None:
        discount = float(self.rng.choice([0.0, 0.5, 0.9, 0.999]))
        precision = self.precision * self.mdp.units.step_duration * 10
        if not 0.0 < precision < np.inf:
            return
        found, error = self.attempt(
            "discounted", lambda: discounted_value_iteration(self.mdp, discount, precision=precision)
        )
        plan = found if found is not None else getattr(error, "plan", None)
        if plan is None:
            return
        exact = self.exact
        factor = Fraction(discount)
        for s, value in enumerate(exact.discounted_values(factor)):
            truth = exact.sign * (value + exact.offset / (1 - factor))
            low, high = plan.value_bounds[0][s], plan.value_bounds[1][s]
            assert Fraction(float(low)) <= truth <= Fraction(float(high)), f"discounted: {float(truth)} in {low, high}"
        if found is not None:
            widths = plan.value_bounds[1] - plan.value_bounds[0]
            assert widths.max() <= precision, f"discounted: {widths.max()} wide, asked for {precision}"

    def check_finite_horizon(self) -> None:
        horizon = int(self.rng.integers(1, 6))
        plan, _ = self.attempt("finite horizon", lambda: finite_horizon_value_iteration(self.mdp, horizon))
        if plan is None:
            return
        exact = self.exact
        for n, values in enumerate(exact.values_to_go(horizon)):
            for s, value in enumerate(values):
                truth = exact.sign * (value + n * exact.offset)
                off = abs(Fraction(float(plan.values[horizon - n, s])) - truth)
                assert off <= Fraction(plan.rounding), f"finite horizon: {float(off)} off, at most {plan.rounding}"

    def check_hitting_times(self) -> None:
        precision = float(10.0 ** self.rng.uniform(-12, -1))
        largest: Fraction | None = Fraction(0)
        for target in self.exact.states:
            truth = self.exact.hitting_times(target)
            times, error = self.attempt(
                "hitting times",
                lambda: gf.hitting_times(self.mdp, target, precision=precision),  # noqa: B023
            )
            if times is None:
                assert isinstance(error, PlanningError), f"hitting times: {error}"
                continue
            for s, time in enumerate(truth):
                if time is None:
                    assert times[s] == np.inf, f"hitting times: {times[s]} where it is infinite"
                    continue
                off = abs(Fraction(float(times[s])) - time)
                assert off <= Fraction(precision) * time, f"hitting times: {times[s]}, exactly {float(time)}"
            finite = [t for t in truth if t is not None]
            largest = None if largest is None or None in truth else max(largest, *finite)
        found, _ = self.attempt("diameter", lambda: gf.diameter(self.mdp, precision=precision))
        if found is not None:
            if largest is None:
                assert found == np.inf, f"diameter: {found} where it is infinite"
            else:
                off = abs(Fraction(float(found)) - largest)
                assert off <= Fraction(precision) * largest, f"diameter: {found}, exactly {float(largest)}"


def _checked(first: int, number: int, check: Callable[[Problem], None]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + number):
        try:
            problem = Problem(seed, outcomes)
            if problem.made is not None:
                check(problem)
        except Exception as error:
            raise AssertionError(f"problem {seed}: {type(error).__name__}: {error}") from error
    outcomes["problems"] = number
    return outcomes


def check_problems(first: int, number: int) -> Counter[str]:
    """Check all planners on problems by seed; what they did, counted."""
    return _checked(first, number, Problem.check)


def check_gains_of_problems(first: int, number: int) -> Counter[str]:
    """Check the planners of the gain alone."""
    return _checked(first, number, Problem.check_gains)
