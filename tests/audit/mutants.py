"""Deliberate mistakes in a copy of the library, and what an audit by that copy says of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "src"
RIVER = ("riverswim",)
LQG = ("lqg", "--bins", "10")
UCRL2 = ("--agent", "ucrl2")
SHARP = ("--agent-set", "bonus=sharp")
KL = ("--agent", "kl-scal-plus")
ROOMS = (
    *("four-rooms", "--set", "size=17", "--agent", "scal-plus", "--span", "5"),
    *("--agent-set", "replanning=local", "--agent-set", "bonus_scale=0.05"),
)
"""More than 10³ pairs: nearly all plans are repairs of the last one."""
UCRL2B, SCAL, TUCRL, KL_UCRL = (("--agent", name) for name in ("ucrl2b", "scal", "tucrl", "kl-ucrl"))
NARROW = ("--agent-set", "width_scale=0.02")
"""Sets that exclude something after a few hundred steps."""
C_KL = ("--agent", "c-kl-scal-plus", "--span", "auto")


@dataclass(frozen=True)
class Mutant:
    """One mistake: what is replaced in which file, which statements must notice, and which test does beside them."""

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    noticed: tuple[str, ...]
    test: str
    audited: tuple[str, ...] = RIVER
    compiled: bool = False
    """Whether plain Python would take longer than compiling a copy of the sources."""
    horizon: str = "600"
    """Steps, few because they are made in plain Python; the mistake shows by then."""


_BONUS, _SCOPT = "optimism/scal_plus.py", "planning/scopt_on_counts.py"
_ESTIMATE, _CUT = "planning/estimated.py", "planning/truncation.py"
_EPISODES, _SHARP = "agents/statistics.py", "optimism/sharp.py"
_SHARP_EQUATION = "tests/agents/test_sharp.py::test_the_rewards_are_the_equation"
_EQUATION = "tests/agents/test_scal_plus.py::test_the_bonus_is_the_equation"
_SAME_LIFE = "tests/reference/test_reference.py::test_scal_plus_makes_the_same_run_as_the_dense_one"
_CONFIRMED = "tests/agents/test_scal_plus.py::test_the_certified_precision_of_each_plan_is_confirmed_from_outside"
_LOCAL = "tests/agents/test_scal_plus_local.py::test_every_local_plan_is_confirmed_by_a_full_sweep"
_KL_AGENT, _KL_SETS = "agents/kl_scal_plus.py", "optimism/kl_scal_plus.py"
_KL_EQUATIONS = "tests/agents/test_kl_scal_plus.py::test_the_plan_uses_the_sets_of_the_equations"
_EXTENDED, _INNER = "planning/extended.py", "planning/inner_maximum.py"
_TABULAR, _COUNTERS, _POINTS = "simulation/tabular.py", "simulation/counters.py", "simulation/continuous.py"
_STEPPED = "tests/simulation/test_tabular.py::test_stepped_and_compiled_runs_are_equal_to_the_bit"
_STEPPED_POINTS = "tests/simulation/test_continuous.py::test_stepped_and_compiled_runs_are_equal_to_the_bit"
_INTERVALS = "tests/planning/test_intervals.py::test_the_best_row_matches_a_linear_programme"
_BEFORE = "tests/agents/test_scal_plus.py::test_an_action_is_tested_before_it_is_executed"

MUTANTS = (
    Mutant(
        "β halved", _BONUS, (("math.sqrt(7.0 * log_term", "math.sqrt(1.75 * log_term"),), ("bonus-formula",), _EQUATION
    ),
    Mutant(
        "β quartered",
        _BONUS,
        (("math.sqrt(7.0 * log_term", "math.sqrt(0.4375 * log_term"),),
        ("bonus-formula",),
        _EQUATION,
    ),
    Mutant(
        "no c/(N+1)",
        _BONUS,
        (("min(beta + 1.0 / (visits + 1), 2.0)", "min(beta, 2.0)"),),
        ("bonus-formula",),
        _EQUATION,
    ),
    Mutant(
        "no t in the logarithm",
        _BONUS,
        (("2.0 * n_states * n_actions * t / delta", "2.0 * n_states * n_actions / delta"),),
        ("bonus-formula",),
        _EQUATION,
    ),
    Mutant(
        "no attractive state in p̂",
        _ESTIMATE,
        (
            ("np.uint64(1), v, v[model.attractive]", "np.uint64(1), v, 0.0"),
            ("total / (model.visits[k] + 1)", "total / max(1, model.visits[k])"),
        ),
        ("certificate",),
        _CONFIRMED,
    ),
    Mutant(
        "cut at twice the span",
        _CUT,
        (("return least + span", "return least + 2.0 * span"),),
        ("span",),
        _SAME_LIFE,
    ),
    Mutant(
        "nothing is cut",
        _CUT,
        (("return least + span", "return np.inf"),),
        ("span",),
        _SAME_LIFE,
    ),
    Mutant(
        "cut at half the span",
        _CUT,
        (("return least + span", "return least + 0.5 * span"),),
        ("certificate",),
        _SAME_LIFE,
    ),
    Mutant(
        "never action 1",
        _SCOPT,
        (("best, best_action = q, a", "best, best_action = q, 0"),),
        ("bellman-error",),
        _SAME_LIFE,
    ),
    Mutant(
        "one execution too many",
        _EPISODES,
        (("return max(1, visits_before)", "return max(1, visits_before) + 1"),),
        ("episode-rule",),
        _BEFORE,
    ),
    Mutant(
        "one execution too few",
        _EPISODES,
        (("return max(1, visits_before)", "return max(1, visits_before - 1)"),),
        ("episode-rule",),
        _BEFORE,
    ),
    Mutant(
        "r̂ halved in local planning",
        "planning/local_scopt.py",
        (
            (
                "rewards.write(renewed, self.rewards)",
                "rewards.write(renewed, self.rewards); self.rewards[renewed] /= 2",
            ),
            (
                "rewards.write(np.arange(self.rewards.size), self.rewards)",
                "rewards.write(np.arange(self.rewards.size), self.rewards); self.rewards /= 2",
            ),
        ),
        ("bonus-formula",),
        _LOCAL,
        (*RIVER, "--agent-set", "replanning=local"),
    ),
    Mutant(
        "a local plan does not look at what has changed",
        "planning/local_scopt.py",
        (("good = self.repair(model, renewed)", "good = self.repair(model, renewed[:0])"),),
        ("certificate",),
        _LOCAL,
        ROOMS,
        compiled=True,
    ),
    Mutant(
        "the sharp β of one state",
        _SHARP,
        (("0.5 + n_deviations * math.sqrt", "0.5 + math.sqrt"),),
        ("bonus-formula",),
        _SHARP_EQUATION,
        (*RIVER, *SHARP),
    ),
    Mutant(
        "the sharp bonus without the imagined visit",
        _SHARP,
        (("(n * beta + 1.0) / (n + 1.0)", "beta"),),
        ("bonus-formula",),
        _SHARP_EQUATION,
        (*RIVER, *SHARP),
    ),
    Mutant(
        "on cells the deviations of S pairs alone",
        "agents/c_scal_plus.py",
        (("return pairs * n * (n + 1) if self.doubling else pairs", "return self.partition.n_cells"),),
        ("bonus-formula",),
        "tests/agents/test_sharp.py::test_on_cells_all_pairs_are_bounded_and_the_hoelder_term_is_added",
        (*LQG, *SHARP),
    ),
    Mutant(
        "UCRL2's radius with 7 for 14",
        "optimism/ucrl2.py",
        (("UCRL2_TRANSITION_CONSTANT = 14.0", "UCRL2_TRANSITION_CONSTANT = 7.0"),),
        ("set-formula",),
        "tests/agents/test_ucrl2.py::test_radii_are_the_equations",
        (*RIVER, *UCRL2),
    ),
    Mutant(
        "cells closed at the left",
        "partition.py",
        (
            ("x <= edge(k, n, low, high)", "x < edge(k, n, low, high)"),
            ("x > edge(k + 1, n, low, high)", "x >= edge(k + 1, n, low, high)"),
        ),
        ("cells",),
        "tests/test_partition.py::test_every_edge_and_its_neighbours_on_the_unit_interval",
        LQG,
    ),
    Mutant(
        "ι without ½ ln n",
        _KL_SETS,
        (("log_union + 0.5 * math.log(visits) + math.log(2.0)", "log_union + math.log(2.0)"),),
        ("set-formula",),
        "tests/agents/test_kl_scal_plus.py::test_the_deviation_level_by_hand",
        (*RIVER, *KL),
    ),
    Mutant(
        "one statement in place of S(S+1)",
        _KL_AGENT,
        (("math.log(self.n_states * (self.n_states + 1)) - math", "0.0 - math"),),
        ("set-formula",),
        _KL_EQUATIONS,
        (*RIVER, *KL),
    ),
    Mutant(
        "r̄ in place of klup",
        _KL_SETS,
        (
            (
                "pairs.rewards[k] = kl_upper(min(max(mean, 0.0), 1.0), pairs.radius[k])",
                "pairs.rewards[k] = min(max(mean, 0.0), 1.0)",
            ),
        ),
        ("set-formula",),
        _KL_EQUATIONS,
        (*RIVER, *KL),
    ),
    Mutant(
        "half of ρ in the maximum",
        "planning/kl_dual.py",
        (("share - pairs.radius[k])", "share - 0.5 * pairs.radius[k])"),),
        ("certificate",),
        "tests/planning/test_kl_on_counts.py::test_the_maximum_lies_between_the_bounds_whatever_the_scale",
        (*RIVER, *KL),
    ),
    Mutant(
        "KL-SCAL+ never plays action 1",
        _KL_AGENT,
        (("actions=found.actions,", "actions=0 * found.actions,"),),
        ("greedy",),
        "tests/agents/test_kl_scal_plus.py::test_one_state_is_a_bandit_with_kl_ucb_and_these_radii",
        (*RIVER, *KL),
    ),
    Mutant(
        "one sweep and a false bracket",
        "planning/kl_on_counts.py",
        (
            (
                "        if high - low <= TRIAL_SHARE * problem.precision:",
                "        if n == 0:\n            return 1, low, low + 0.5 * problem.precision, span, True\n"
                "        if high - low <= TRIAL_SHARE * problem.precision:",
            ),
        ),
        ("certificate", "greedy"),
        "tests/planning/test_kl_on_counts.py::test_the_bracket_agrees_with_extended_value_iteration",
        (*RIVER, *KL),
    ),
    Mutant(
        "a pair may be executed twice as often",
        "agents/planning_agent.py",
        (("or t < 2:\n        return 1.0", "or t < 2:\n        return 2.0"),),
        ("episode-rule",),
        "tests/agents/test_kl_scal_plus.py::test_optimism_and_the_span_by_the_diameter_on_riverswim",
        (*RIVER, *KL),
    ),
    Mutant(
        "Ĥ halved",
        "agents/planning_agent.py",
        (("max(1.0, most_span) / t", "max(1.0, 0.5 * most_span) / t"),),
        ("episode-rule",),
        "tests/agents/test_kl_scal_plus.py::test_vanishing_episodes_follow_the_largest_span_so_far",
        (*RIVER, *KL, "--agent-set", "episodes=vanishing"),
    ),
    Mutant(
        "KL-SCAL+ cuts at twice the span",
        _KL_AGENT,
        (("else self.span / self.reward_range", "else 2.0 * self.span / self.reward_range"),),
        ("span",),
        "tests/agents/test_kl_scal_plus.py::test_a_span_keeps_the_values_within_it_where_states_are_unreachable",
        (*RIVER, *KL, "--span", "1.5"),
    ),
    Mutant(
        "one statement in place of 2KA",
        "agents/c_kl_scal_plus.py",
        (("math.log(2 * self.n_states * self.n_actions) - math", "0.0 - math"),),
        ("set-formula",),
        "tests/agents/test_c_kl_scal_plus.py::test_its_radius_is_that_of_all_pairs_of_cells_and_actions",
        (*LQG, *C_KL),
    ),
    Mutant(
        "c in place of c/2 in b",
        _KL_SETS,
        (("(reward_max + 0.5 * span) * lipschitz", "(reward_max + span) * lipschitz"),),
        ("certificate",),
        "tests/agents/test_c_kl_scal_plus.py::test_smoothness_moves_the_gain_and_nothing_else",
        (*LQG, *C_KL),
    ),
    Mutant(
        "UCRL2 plays the worst action",
        "agents/extended.py",
        (('actions=plan.details["greedy"].copy()', 'actions=self.n_actions - 1 - plan.details["greedy"]'),),
        ("greedy",),
        "tests/reference/test_reference.py::test_ucrl2b_makes_the_same_run_as_the_dense_one",
        (*RIVER, *UCRL2),
    ),
    Mutant(
        "the whole ℓ₁ radius moves",
        "planning/l1.py",
        (("free = 0.5 * radius  #", "free = radius  #"), ("free, moved = 0.5 * radius[k]", "free, moved = radius[k]")),
        ("certificate",),
        "tests/planning/test_l1.py::test_the_best_row_of_the_ball_matches_a_linear_programme",
        (*RIVER, *UCRL2, *NARROW),
    ),
    Mutant(
        "UCRL2B stops after one sweep with a false bracket",
        "planning/set_sweeps.py",
        (
            (
                "        if is_narrow(low, high, slack, limits.precision):",
                "        if n == 0:\n            return 1, low, low + 0.5 * limits.precision, slack, True\n"
                "        if is_narrow(low, high, slack, limits.precision):",
            ),
        ),
        ("certificate",),
        "tests/planning/test_extended.py::test_the_rows_in_details_earn_the_bracket",
        (*RIVER, *UCRL2B),
    ),
    Mutant(
        "nothing for states never seen",
        "planning/intervals.py",
        (("free, bound, m = free_mass[k], unseen[k], level[k]", "free, bound, m = free_mass[k], 0.0, level[k]"),),
        ("certificate",),
        _INTERVALS,
        (*RIVER, *UCRL2B),
    ),
    Mutant(
        "UCRL2B's range term with 3 for 6",
        "optimism/bernstein.py",
        (("BERNSTEIN_RANGE_CONSTANT = 6.0", "BERNSTEIN_RANGE_CONSTANT = 3.0"),),
        ("set-formula",),
        "tests/agents/test_ucrl2b.py::test_the_width_is_the_equation",
        (*RIVER, *UCRL2B),
    ),
    Mutant(
        "SCAL without η_k",
        _INNER,
        (("if intervals.floor > 0.0 and", "if intervals.floor > 2.0 and"),),
        ("certificate",),
        "tests/planning/test_intervals.py::test_the_floor_is_kept",
        (*RIVER, *SCAL, *NARROW),
    ),
    Mutant(
        "SCAL cuts at twice the span",
        _EXTENDED,
        (("else checked_span(span)", "else 2.0 * checked_span(span)"),),
        ("span",),
        "tests/agents/test_scal.py::test_the_span_is_kept_also_where_the_sets_are_narrower_than_the_perturbation",
        (*RIVER, *SCAL, *NARROW, "--span", "1.5"),
    ),
    Mutant(
        "TUCRL truncates nothing",
        _INNER,
        (("level = truncated.reshape(-1).astype(np.uint8)", "level = 0 * truncated.reshape(-1).astype(np.uint8)"),),
        ("certificate",),
        "tests/planning/test_intervals.py::test_truncated_pairs_stay_on_the_reachable_states",
        ("weakly-communicating-toy", *TUCRL, *NARROW),
    ),
    Mutant(
        "TUCRL goes on after a new state",
        "agents/tucrl.py",
        (("self.plan_over(models, t, stop_on_new_state=True)", "self.plan_over(models, t)"),),
        ("episode-rule",),
        "tests/agents/test_tucrl.py::test_a_new_state_ends_the_episode",
        (*RIVER, *TUCRL),
    ),
    Mutant(
        "KL-UCRL with half its radius",
        "planning/kl.py",
        (("if f < radius:", "radius = 0.5 * radius\n        if f < radius:"),),
        ("certificate",),
        "tests/planning/test_kl.py::test_the_best_row_reaches_the_dual_bound",
        (*RIVER, *KL_UCRL),
    ),
    Mutant(
        "another action in a tenth of the steps",
        _TABULAR,
        (
            (
                "action: Any = np.uint64(policy.actions[state])",
                "action: Any = np.uint64(policy.actions[state] if t % 10 else 0)",
            ),
        ),
        ("execution",),
        _STEPPED,
    ),
    Mutant(
        "a clock that is four times slow",
        _TABULAR,
        (
            (
                "self.agent.t = self.steps_before + int(now[STEP])",
                "self.agent.t = self.steps_before + int(now[STEP]) // 4",
            ),
        ),
        ("clock",),
        _STEPPED,
    ),
    Mutant(
        "half of every reward is lost",
        _COUNTERS,
        (("inner = reward - low", "inner = 0.5 * (reward - low)"),),
        ("data",),
        _STEPPED,
    ),
    Mutant(
        "every transition is counted as the first of its row",
        _COUNTERS,
        (("counters.counter[at + at + SEEN + rank] +=", "counters.counter[at + at + SEEN] +="),),
        ("data",),
        _STEPPED,
        (*RIVER, *KL),
    ),
    Mutant(
        "half of every reward among points is lost",
        _POINTS,
        (("inner = reward - policy.reward_min", "inner = 0.5 * (reward - policy.reward_min)"),),
        ("data",),
        _STEPPED_POINTS,
        LQG,
    ),
    Mutant(
        "another action in a tenth of the steps among points",
        _POINTS,
        (("action = policy.actions[state]", "action = policy.actions[state] if t % 10 else 0"),),
        ("execution",),
        _STEPPED_POINTS,
        (*LQG, *C_KL),
    ),
)


def mistaken(mutant: Mutant, text: str) -> str:
    """The text of a file with this mistake in it."""
    for old, new in mutant.changes:
        assert old in text, f"{mutant.name}: {mutant.file} no longer has {old!r}"
        text = text.replace(old, new)
    return text


def copied(mutant: Mutant | None, folder: Path) -> dict[str, str]:
    """A copy of the library with this mistake in it; the environment variables by which Python finds it."""
    sources = folder / "src"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        file = sources / "gainful" / mutant.file
        file.write_text(mistaken(mutant, file.read_text(encoding="utf-8")), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(folder / "cache")}


def audited(
    mutant: Mutant | None,
    folder: Path,
    *,
    runs: int,
    horizon: str,
    what: tuple[str, ...] | None = None,
    compiled: bool = True,
) -> dict[str, Any]:
    """What `gainful audit` says with this mistake in it, or with none of `what`, as its JSON.

    Not compiled, the kernels run as plain Python: slow per step, but a copy of the sources need not be compiled first.
    """
    asked = what or RIVER if mutant is None else mutant.audited
    command = ["audit", *asked, "--runs", str(runs), "--horizon", horizon, "--jobs", "1", "--json"]
    found = subprocess.run(
        [sys.executable, "-m", "gainful", *command],
        env=copied(mutant, folder) | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"}),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=600,
    )
    assert found.returncode in (0, 1), found.stderr
    answer = json.loads(found.stdout) if found.stdout else {}
    assert answer, found.stderr
    assert "Warning" not in found.stderr, found.stderr
    return {**answer["audits"][0], "exit_code": found.returncode}


def noticed_by_its_test(mutant: Mutant, folder: Path) -> bool:
    """Whether the test named beside the audit fails with this mistake in the library, or does not come to an end."""
    try:
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test],
            env=copied(mutant, folder),
            capture_output=True,
            text=True,
            check=False,
            cwd=SOURCES.parent,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return True
    assert found.returncode in (0, 1), found.stdout + found.stderr
    return found.returncode == 1
