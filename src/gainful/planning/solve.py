"""`solve`: the optimal gain of a weakly communicating MDP, as fast as it can be certified."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import MultichainError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.mdp.structure import Structure, structure
from gainful.planning.anderson import evaluate_by_anderson
from gainful.planning.arguments import (
    WORTH_A_GPU,
    checked_device,
    checked_precision,
    lowest_allowed,
    positive_cap,
    precision_error,
    start_vector,
)
from gainful.planning.batches import sweeps_per_batch
from gainful.planning.bellman import StoppingRule, sparse_model
from gainful.planning.evaluation import DENSE_STATES
from gainful.planning.goals import better_policy, towards_the_largest_reward
from gainful.planning.mixing import SlowSearch, is_local, is_narrow
from gainful.planning.plan import Plan, make_plan
from gainful.planning.policy_iteration import EXACT_UP_TO, HowardSearch
from gainful.planning.relative_value_iteration import damped_sweeps
from gainful.planning.relaxation import Relaxation, relaxation
from gainful.planning.rounding import roundoff
from gainful.planning.sweeper import THREADS_FROM_TRANSITIONS, Sweeper
from gainful.progress import SearchProgress, shown_search

PATIENCE = 8
"""Sweeps of value iteration before its speed is judged."""
CHEAP_WORK = 3_000_000
"""Transitions that value iteration may read before it must contract fast."""
CHEAP_WORK_ON_CHAINS = 3_000_000_000
"""The same where states have few transitions, as in a river: seconds of work."""
WORK_BEFORE_EXACT = 100_000_000
"""The same where policies of many states are evaluated exactly in seconds."""
SLOW_FROM = 30
"""Predicted remaining sweeps above which policies are evaluated instead."""
EVALUATION_SWEEPS = 500
"""The most sweeps to evaluate one policy."""
IDLE_ROUNDS = 30
"""Rounds of accelerated policy iteration without a better bracket after which it is given up."""
DAMPED_SWEEPS = 200
"""Sweeps of damped value iteration, sure but slow, after the other ways have failed; four times as many each time."""
DAMPING_WHEN_SLOW = 0.97
"""The weight of the new value in these sweeps: enough for periodic chains."""
MAX_POLICIES, POLICIES_IN_TURN = 1000, 16
"""Policies of exact policy iteration in one turn; with many states, in the first turn, then four times as many each."""
ROUNDS_SHARE, ROUNDS_AT_MOST = 8, 10_000
"""A turn of accelerated policy iteration has this fraction of the sweeps of damped value iteration, at most so many."""
EXACT_FIRST, EXACT_AFTER = 300, 60_000
"""States up to which exact policy iteration comes before damped sweeps, and damped sweeps after which it comes."""

EXACT_UNDER_WAY = "exact policy iteration, which does not depend on mixing, is being tried and may end sooner"


def solve(
    mdp: MDP,
    *,
    precision: float = 1e-8,
    max_sweeps: int = 1_000_000,
    start_values: ArrayLike | None = None,
    threads: int | None = None,
    progress: SearchProgress = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
) -> Plan:
    r"""Optimal gain, bias and policy, as fast as they can be certified.

    Solves g + h(s) = max_a { r(s,a) + p(·|s,a)·h } and stops when the bracket min(Lv - v) ≤ g* ≤ max(Lv - v), widened
    for rounding, is no wider than `precision` (Puterman 1994, sec. 8.5): whatever produced v, the answer is proven.
    Three ways to a better v are tried, each only when the one before is slow: value iteration; inexact policy
    iteration, each policy evaluated by Anderson-accelerated sweeps; exact policy iteration (up to 3000 states, and any
    number if each state leads to near ones only, as in a river or a ring, where it comes before inexact policy
    iteration). Then they take turns, value iteration damped. If that takes more than ten seconds, a
    `SlowMixingWarning` estimates what is left.

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
    device : {"cpu", "cuda", "auto"}
        Where to sweep. "cuda" needs an NVIDIA GPU and the extra `gainful[cuda]`, and pays off where there are
        tens of millions of transitions (docs/gpu.md). It has no exact policy iteration. "auto" is the GPU from ten
        million transitions on, if there is one, and else the CPU.

    Returns
    -------
    Plan
        Gain with its bracket, bias, policy, sweeps.

    Raises
    ------
    DeviceError
        If `device` is "cuda" and there is no GPU.
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
    if checked_device(device, mdp.n_transitions >= WORTH_A_GPU) == "cuda":
        from gainful.planning.device.solve import solve_on_device  # numba-cuda is an extra

        start = None if start_values is None else v
        with shown_search(progress, precision) as tell:
            return solve_on_device(mdp, start, target, precision, positive_cap("max_sweeps", max_sweeps), tell)
    with Sweeper(mdp, threads) as sweeper, shown_search(progress, precision) as tell:
        search = SolveSearch(mdp, sweeper, target, precision, positive_cap("max_sweeps", max_sweeps))
        search.tell = tell
        plan = search.value_iteration(v) or search.exact_first()
        sweeps = DAMPED_SWEEPS
        while plan is None:  # turn and turn about: each way continues where it stopped
            plan = search.policy_rounds(
                search.first_rounds if sweeps == DAMPED_SWEEPS else min(sweeps // ROUNDS_SHARE, ROUNDS_AT_MOST)
            )
            if plan is None and search.exact_is_due(sweeps):
                plan = search.exact(POLICIES_IN_TURN * sweeps // DAMPED_SWEEPS)
            if plan is None:
                search.check_structure()
                plan = search.damped(sweeps)
                sweeps *= 4
    return plan


class SolveSearch:
    """The current v, the best one so far, and the stages of `solve`; each returns a Plan once the bracket is narrow."""

    def __init__(self, mdp: MDP, sweeper: Any, target: float, precision: float, max_sweeps: int) -> None:
        self.mdp, self.sweeper, self.target = mdp, sweeper, target
        self.precision, self.max_sweeps = precision, max_sweeps
        self.sweeps = 0
        self.v: Any = np.zeros(mdp.n_states)
        self.best: Any
        self.actions: Any
        self.best, self.actions = self.v, self.first_actions()
        self.bounds = (-np.inf, np.inf)  # at best, rounding included
        self.stage = "value iteration"
        self.structure: Structure | None = None
        self.exact_failed = False
        self.howard: HowardSearch | None = None
        self.local: bool | None = None
        self.narrow: bool | None = None
        self.damped_values: Any = None  # where damped value iteration stopped
        itself = weakref.ref(self)  # what a search holds on a GPU is returned when the search ends

        def known() -> Relaxation | None:
            search = itself()
            return None if search is None else relaxation(mdp, search.greedy(), DAMPING_WHEN_SLOW)

        self.slow = SlowSearch("solve", mdp, target, known=known)
        self.tell: Callable[[int, float], None] | None = None

    @property
    def width(self) -> float:
        """The width of the best bracket."""
        return self.bounds[1] - self.bounds[0]

    def first_actions(self) -> Any:
        """(S,) the lowest allowed action of each state."""
        return lowest_allowed(self.mdp)

    def next(self) -> NDArray[np.float64]:
        """Lv of the current v, pinned."""
        return np.asarray(self.sweeper.w - self.sweeper.w[0])

    def look(self, v: NDArray[np.float64]) -> bool:
        """One Bellman sweep at v; keep it as the best if its bracket is the narrowest; whether it is narrow enough."""
        low, high = self.sweeper.bellman(v)
        self.v = v
        return self.judge(low, high, self.sweeper.slack)

    def keep_best(self) -> None:
        """Keep the present v as the best one."""
        self.best, self.actions = self.v, self.sweeper.act.copy()

    def judge(self, low: float, high: float, slack: float) -> bool:
        """Count a sweep at the present v, and keep v if its bracket is the narrowest; whether it is narrow enough."""
        self.sweeps += 1
        if self.tell is not None:
            self.tell(self.sweeps, self.width / self.mdp.units.step_duration)
        self.slow.look(self.sweeps, self.width)
        if high - low + 2 * slack <= self.width:
            self.bounds = (low - slack, high + slack)
            self.keep_best()
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
                hint=f"{self.slow.what_is_left()}; raise max_sweeps or accept the partial plan, which this "
                "error carries",
            )
        return False

    def plan(self) -> Plan:
        """The plan at the best v."""
        low, high = self.bounds
        return make_plan(
            self.mdp, low=low, high=high, values=self.best, actions=self.actions, sweeps=self.sweeps, method=self.stage
        )

    def value_iteration(self, v: NDArray[np.float64]) -> Plan | None:
        """Plain value iteration for as long as it contracts fast, or is cheap and still changes the policy.

        News travels one state per sweep (a long river): evaluating a policy before it has arrived is wasted.
        """
        widths: list[float] = []
        cheap = min(10 * self.mdp.n_states, CHEAP_WORK_ON_CHAINS // self.mdp.n_transitions)
        if self.mdp.n_transitions > 10 * self.mdp.n_states:  # not a chain
            cheap = min(cheap, CHEAP_WORK // self.mdp.n_transitions)
        actions, unchanged = self.sweeper.act.copy(), 0
        while not self.look(v):
            widths.append(self.width)
            unchanged = unchanged + 1 if np.array_equal(actions, self.sweeper.act) else 0
            settled = unchanged >= 3 * PATIENCE or len(widths) > cheap
            settled = settled or (len(widths) * self.mdp.n_transitions > WORK_BEFORE_EXACT and self.is_narrow())
            if len(widths) > PATIENCE and settled and self.is_slow(widths):
                return None
            actions[:] = self.sweeper.act
            v = self.next()
        return self.plan()

    def exact_first(self) -> Plan | None:
        """A turn of exact policy iteration before the others where policies are evaluated in seconds."""
        return self.exact(POLICIES_IN_TURN) if self.is_narrow() else None

    @property
    def first_rounds(self) -> int:
        """Sweeps of accelerated policy iteration in its first turn: any number where sweeps are cheap."""
        return max(EVALUATION_SWEEPS, CHEAP_WORK_ON_CHAINS // self.mdp.n_transitions)

    def greedy(self) -> NDArray[np.int64]:
        """(S,) the greedy actions of the last sweep."""
        found: NDArray[np.int64] = self.sweeper.act
        return found

    def is_slow(self, widths: list[float]) -> bool:
        """Whether brackets of these widths narrow too slowly."""
        rate: float = float(widths[-1] / widths[-PATIENCE]) ** (1 / (PATIENCE - 1))
        if not 0.0 < rate < 1.0:
            return rate != 0.0
        return (math.log(self.target) - math.log(widths[-1])) / math.log(rate) > SLOW_FROM

    def policy_rounds(self, most: int) -> Plan | None:
        """Inexact policy iteration: evaluate the greedy policy ten times more finely than its bracket is wide.

        The bracket of a better policy may be wider for a while; only many rounds without a new best one are a failure,
        or `most` sweeps without an end.
        """
        self.stage = "accelerated policy iteration"
        idle, width, end = 0, self.width, self.sweeps + most
        while idle < IDLE_ROUNDS and self.sweeps < end:
            v, _, sweeps = evaluate_by_anderson(
                self.sweeper,
                self.next(),
                tolerance=max(0.1 * width, 0.4 * self.target),
                max_sweeps=EVALUATION_SWEEPS,
                every_sweep=lambda made: self.slow.look(self.sweeps + made, self.width),
            )
            self.sweeps += sweeps
            before = self.width
            if self.look(v):
                return self.plan()
            width = float(np.ptp(self.sweeper.w - v))
            idle = 0 if self.width < 0.9 * before else idle + 1
        return None

    def exact_is_due(self, sweeps: int) -> bool:
        """Whether exact policy iteration is affordable now: small, local, or everything else has failed for long."""
        if self.exact_failed:
            return False
        if self.mdp.n_states <= EXACT_FIRST or self.is_local():
            return True
        return self.mdp.n_states <= EXACT_UP_TO and (sweeps > EXACT_AFTER or self.is_multichain())

    def is_local(self) -> bool:
        """Whether each state leads to near ones only: asked only where value iteration is slow."""
        if self.local is None:
            self.local = is_local(self.mdp)
        return self.local

    def is_narrow(self) -> bool:
        """Whether an exact evaluation takes seconds at most though there are many states."""
        if self.narrow is None:
            self.narrow = is_narrow(self.mdp)
        return self.narrow

    def first_policy(self) -> NDArray[np.int64]:
        """Where exact policy iteration starts: the best policy so far, or the way to the largest reward.

        Howard's iteration may change one state at a time as long as news of a reward has not reached the others.
        """
        if self.mdp.n_states > EXACT_FIRST and not self.is_narrow():
            found: NDArray[np.int64] = self.actions.copy()
            return found
        goal = towards_the_largest_reward(self.mdp, self.actions)
        return better_policy(self.mdp, self.actions, goal, local=self.is_narrow())

    def exact(self, most: int) -> Plan | None:
        """Policy iteration with exact evaluation: `most` policies more, or a thousand where there are few states.

        If nothing but rounding is left at an optimal policy, no sweep can do better. Otherwise a policy on the way was
        too ill-conditioned to evaluate, and the other ways go on.
        """
        search, large = self.howard, self.mdp.n_states > EXACT_FIRST
        if search is None:
            local = self.is_narrow() if self.mdp.n_states <= DENSE_STATES else self.is_local()
            search = HowardSearch(self.mdp, self.precision, self.first_policy(), local=local)
        self.howard, end = search, search.policies + (most if large else MAX_POLICIES)
        try:
            while not search.step():
                if self.tell is not None:
                    self.tell(self.sweeps + search.policies, self.width / self.mdp.units.step_duration)
                self.slow.look(self.sweeps, self.width, EXACT_UNDER_WAY)
                if search.policies >= end:
                    self.exact_failed = not large
                    return None
            return replace(search.accepted(), sweeps=self.sweeps + search.policies)
        except PrecisionError as error:
            self.exact_failed = True
            if error.plan is not None and search.rounding_only:
                raise
            return None

    def damped(self, sweeps: int) -> Plan | None:
        """Damped value iteration, v ← v + θ(Lv - v), from the best v on, or from where it stopped the last time.

        Its bracket never widens, and it gets there. Progress may not show for long (news of a reward travels one
        transition per sweep), so the v reached is kept even if it is not the best one.
        """
        self.stage = "damped value iteration"
        v = self.best if self.damped_values is None else self.damped_values
        plan = self._damped_in_batches(v.copy(), sweeps) if self._is_small() else self._damped_by_sweeper(v, sweeps)
        self.damped_values = self.v
        return plan

    def _is_small(self) -> bool:
        return self.mdp.n_transitions < THREADS_FROM_TRANSITIONS

    def _damped_by_sweeper(self, v: NDArray[np.float64], sweeps: int) -> Plan | None:
        """With the threads of the sweeper."""
        for _ in range(sweeps):
            if self.look(v):
                return self.plan()
            v = v + DAMPING_WHEN_SLOW * (self.next() - v)
        self.v = v
        return None

    def _damped_in_batches(self, v: NDArray[np.float64], sweeps: int) -> Plan | None:
        """In compiled batches, each ended by a look."""
        model, n = sparse_model(self.mdp), self.mdp.n_states
        w, act = np.empty(n), np.zeros(n, dtype=np.int64)
        unit, batch = roundoff(self.sweeper.max_support), sweeps_per_batch(self.mdp.n_transitions)
        end = min(self.sweeps + sweeps, self.max_sweeps)
        while self.sweeps < end:
            number = min(batch, end - self.sweeps)
            rule = StoppingRule(DAMPING_WHEN_SLOW, self.target, unit, self.sweeper.max_reward, number)
            done, low, high, slack, met = damped_sweeps(model, v, w, act, rule, False)
            self.sweeps += done - 1
            if self.look(v.copy()):
                return self.plan()
            if not met and not high - low > 2 * slack:  # rounding only, though an earlier v had a narrower bracket
                raise precision_error(self.mdp, self.precision, slack, self.plan())
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
