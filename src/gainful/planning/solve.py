"""`solve`: the optimal gain of a weakly communicating MDP, as fast as it can be certified."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import MultichainError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.mdp.structure import Structure, structure
from gainful.planning.anderson import evaluate_by_anderson
from gainful.planning.arguments import checked_precision, positive_cap, precision_error, start_vector
from gainful.planning.plan import Plan, make_plan
from gainful.planning.policy_iteration import EXACT_UP_TO, policy_iteration
from gainful.planning.sweeper import Sweeper
from gainful.progress import SearchProgress, shown_search

PATIENCE = 8
"""Sweeps of value iteration before its speed is judged."""
CHEAP_WORK = 3_000_000
"""Transitions that value iteration may read before it must contract fast."""
SLOW_FROM = 30
"""Predicted remaining sweeps above which policies are evaluated instead."""
EVALUATION_SWEEPS = 500
"""The most sweeps to evaluate one policy."""
IDLE_ROUNDS = 30
"""Rounds of accelerated policy iteration without a better bracket after which it is given up."""
DAMPED_SWEEPS = 200
"""Sweeps of damped value iteration, sure but slow, after the other ways have failed; four times as many each time."""
EXACT_FIRST, EXACT_AFTER = 300, 60_000
"""States up to which exact policy iteration comes before damped sweeps, and damped sweeps after which it comes."""


def solve(
    mdp: MDP,
    *,
    precision: float = 1e-8,
    max_sweeps: int = 1_000_000,
    start_values: ArrayLike | None = None,
    threads: int | None = None,
    progress: SearchProgress = None,
) -> Plan:
    r"""Optimal gain, bias and policy, as fast as they can be certified.

    Solves g + h(s) = max_a { r(s,a) + p(·|s,a)·h } and stops when the bracket min(Lv - v) ≤ g* ≤ max(Lv - v), widened
    for rounding, is no wider than `precision` (Puterman 1994, sec. 8.5): whatever produced v, the answer is proven.
    Three ways to a better v are tried, each only when the one before is slow: value iteration; inexact policy
    iteration, each policy evaluated by Anderson-accelerated sweeps; exact policy iteration (up to 3000 states).

    Parameters
    ----------
    mdp : MDP
        A process whose optimal gain does not depend on the start. A weakly communicating one has that property; on
        another one the bracket closes only if all its closed classes happen to have the same optimal gain.
    precision : float
        Width of the certified bracket on the gain, in the units of the rewards.
    max_sweeps : int
        Sweeps after which to give up.
    start_values : array_like, shape (S,), optional
        Where to start, for example the bias of an earlier plan.
    threads : int, optional
        Threads to use; by default all cores on large problems. No result depends on it.
    progress : bool or callable, optional
        True shows the progress on stderr; a function `progress(sweeps, width)` is called now and then with the sweeps
        made and the width of the best bracket so far.

    Returns
    -------
    Plan
        Gain with its bracket, bias, policy, sweeps.

    Raises
    ------
    MultichainError
        If the gain depends on the start; it names the classes.
    NotConvergedError
        After `max_sweeps`; it carries the partial plan.
    PrecisionError
        If float64 cannot certify the precision.

    Examples
    --------
    >>> import gainful as gf
    >>> plan = gf.solve(gf.environments.riverswim(6))
    >>> round(plan.gain, 6)
    0.428622
    """
    target = checked_precision(mdp, precision)
    if threads is not None:
        positive_cap("threads", threads)
    v = start_vector(mdp, start_values)
    with Sweeper(mdp, threads) as sweeper, shown_search(progress, precision) as tell:
        search = _SolveSearch(mdp, sweeper, target, precision, positive_cap("max_sweeps", max_sweeps))
        search.tell = tell
        plan = search.value_iteration(v)
        sweeps = DAMPED_SWEEPS
        while plan is None:
            plan = search.policy_rounds()
            if plan is None and (mdp.n_states <= EXACT_FIRST or sweeps > EXACT_AFTER or search.is_multichain()):
                plan = search.exact()
            if plan is None:
                search.check_structure()
                plan = search.damped(sweeps)
                sweeps *= 4
    return plan


class _SolveSearch:
    """The current v, the best one so far, and the stages of `solve`; each returns a Plan once the bracket is narrow."""

    def __init__(self, mdp: MDP, sweeper: Sweeper, target: float, precision: float, max_sweeps: int) -> None:
        self.mdp, self.sweeper, self.target = mdp, sweeper, target
        self.precision, self.max_sweeps = precision, max_sweeps
        self.sweeps = 0
        self.v: NDArray[np.float64] = np.zeros(mdp.n_states)
        self.best, self.actions = self.v, sweeper.act.copy()
        self.bounds = (-np.inf, np.inf)  # at best, rounding included
        self.stage = "value iteration"
        self.structure: Structure | None = None
        self.exact_failed = False
        self.tell: Callable[[int, float], None] | None = None

    @property
    def width(self) -> float:
        return self.bounds[1] - self.bounds[0]

    def next(self) -> NDArray[np.float64]:
        """Lv of the current v, pinned."""
        return np.asarray(self.sweeper.w - self.sweeper.w[0])

    def look(self, v: NDArray[np.float64]) -> bool:
        """One Bellman sweep at v; keep it as the best if its bracket is the narrowest; whether it is narrow enough."""
        low, high = self.sweeper.bellman(v)
        slack = self.sweeper.slack
        self.v = v
        self.sweeps += 1
        if self.tell is not None:
            self.tell(self.sweeps, self.width / self.mdp.units.step_duration)
        if high - low + 2 * slack <= self.width:
            self.bounds = (low - slack, high + slack)
            self.best, self.actions = v, self.sweeper.act.copy()
            if self.width <= self.target:
                return True
            if high - low <= 2 * slack:
                raise precision_error(self.mdp, self.precision, slack, self.plan())
        if self.sweeps >= self.max_sweeps:
            raise NotConvergedError(
                f"the gain is bracketed within {self.width / self.mdp.units.step_duration:.1e} after "
                f"{self.sweeps} sweeps (wanted {self.precision:.1e})",
                self.plan(),
                name="max_sweeps",
                found=self.max_sweeps,
                hint="raise max_sweeps or accept the partial plan, which this error carries",
            )
        return False

    def plan(self) -> Plan:
        low, high = self.bounds
        return make_plan(
            self.mdp, low=low, high=high, values=self.best, actions=self.actions, sweeps=self.sweeps, method=self.stage
        )

    def value_iteration(self, v: NDArray[np.float64]) -> Plan | None:
        """Plain value iteration for as long as it contracts fast, or is cheap and still changes the policy.

        News travels one state per sweep (a long river): evaluating a policy before it has arrived is wasted.
        """
        widths: list[float] = []
        cheap = 10 * self.mdp.n_states
        if self.mdp.n_transitions > 10 * self.mdp.n_states:  # not a chain
            cheap = min(cheap, CHEAP_WORK // self.mdp.n_transitions)
        actions, unchanged = self.sweeper.act.copy(), 0
        while not self.look(v):
            widths.append(self.width)
            unchanged = unchanged + 1 if np.array_equal(actions, self.sweeper.act) else 0
            settled = unchanged >= 3 * PATIENCE or len(widths) > cheap
            if len(widths) > PATIENCE and settled and self._is_slow(widths):
                return None
            actions[:] = self.sweeper.act
            v = self.next()
        return self.plan()

    def _is_slow(self, widths: list[float]) -> bool:
        rate = float(widths[-1] / widths[-PATIENCE]) ** (1 / (PATIENCE - 1))
        return rate >= 1.0 or math.log(self.target / widths[-1]) / math.log(rate) > SLOW_FROM

    def policy_rounds(self) -> Plan | None:
        """Inexact policy iteration: evaluate the greedy policy ten times more finely than its bracket is wide.

        The bracket of a better policy may be wider for a while; only many rounds without a new best one are a failure.
        """
        self.stage = "accelerated policy iteration"
        idle, width = 0, self.width
        while idle < IDLE_ROUNDS:
            v, _, sweeps = evaluate_by_anderson(
                self.sweeper,
                self.next(),
                tolerance=max(0.1 * width, 0.4 * self.target),
                max_sweeps=EVALUATION_SWEEPS,
            )
            self.sweeps += sweeps
            before = self.width
            if self.look(v):
                return self.plan()
            width = float(np.ptp(self.sweeper.w - v))
            idle = 0 if self.width < 0.9 * before else idle + 1
        return None

    def exact(self) -> Plan | None:
        """Policy iteration with exact evaluation, where its linear systems are affordable."""
        if self.mdp.n_states > EXACT_UP_TO or self.exact_failed:
            return None
        try:
            plan = policy_iteration(self.mdp, precision=self.precision, start_actions=self.actions)
        except (NotConvergedError, PrecisionError):  # a policy on the way may be too ill-conditioned to evaluate
            self.exact_failed = True
            return None
        return replace(plan, sweeps=self.sweeps + plan.sweeps)

    def damped(self, sweeps: int) -> Plan | None:
        """Damped value iteration from the best v, v ← v + ½(Lv - v): its bracket never widens, and it gets there."""
        self.stage = "damped value iteration"
        v = self.best
        for _ in range(sweeps):
            if self.look(v):
                return self.plan()
            v = v + 0.5 * (self.next() - v)
        return None

    def is_multichain(self) -> bool:
        """Whether the MDP is multichain: asked only when the bracket does not close by itself."""
        if self.structure is None:
            self.structure = structure(self.mdp)
        return self.structure == "multichain"

    def check_structure(self) -> None:
        """Refuse a multichain MDP, naming its classes."""
        if self.is_multichain():
            found = self.structure
            assert found is not None
            raise MultichainError(
                f"the optimal gain depends on the start: {found.describe()}; "
                f"bracket [{self.plan().gain_bounds[0]:.6g}, {self.plan().gain_bounds[1]:.6g}]",
                found.classes,
                hint="solve one class at a time: gf.solve(mdp.restricted(gf.structure(mdp).classes[0]))",
            )
