"""Deliberate mistakes in PMEVI-DT; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import RIVER, Mutant

PMEVI = ("--agent", "pmevi-dt")
CUT = ("--agent-set", "span=1.0")
"""A span so small that values are cut from the first plans on."""
ON_KL_UCRL = ("--agent-set", "base=kl-ucrl")

_BIAS, _PATH, _AGENT = "optimism/bias_differences.py", "agents/state_path.py", "agents/pmevi_dt.py"
_PROJECTION, _SETS = "planning/order_projection.py", "planning/projected_sweeps.py"
_BY_HAND = "tests/agents/test_pmevi_dt.py::test_the_intervals_by_hand"
_SEGMENTS = "tests/agents/test_pmevi_dt.py::test_segments_are_those_of_the_definition"
_MITIGATED = "tests/agents/test_pmevi_dt.py::test_mitigation_is_never_below_the_best_row_of_the_ball"
_COVERED = "tests/agents/test_pmevi_dt.py::test_differences_of_the_true_bias_are_covered_and_become_narrow"

MUTANTS_OF_PMEVI = (
    Mutant(
        "PMEVI-DT: upper ends of differences without their deviation",
        _BIAS,
        (("(lost + radius + span * path.cut) / n", "lost / n"),),
        ("bias-formula",),
        _BY_HAND,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT: lower ends of differences without the regret of all steps",
        _BIAS,
        (("(lost - others - radius -", "(lost - radius -"),),
        ("bias-formula",),
        _BY_HAND,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT: a segment is one step too short",
        _PATH,
        (("- segments.begun[s, y]\n", "- segments.begun[s, y] - 1\n"),),
        ("bias-formula",),
        _SEGMENTS,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT: every visit begins the segment anew",
        _PATH,
        (("if y != state and segments.begun[state, y] < 0:", "if y != state:"),),
        ("bias-formula",),
        _SEGMENTS,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT: the largest optimistic gain instead of the least",
        _AGENT,
        (("self._gain = min(self._gain,", "self._gain = max(self._gain,"),),
        ("bias-formula",),
        _COVERED,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT: values are projected onto twice the differences",
        _PROJECTION,
        (("least = min(least, u[y] + d[s, y])", "least = min(least, u[y] + 2.0 * d[s, y])"),),
        ("span",),
        "tests/agents/test_pmevi_dt.py::test_with_the_span_alone_it_is_kl_scal_plus_with_that_span",
        (*RIVER, *PMEVI, *CUT),
    ),
    Mutant(
        "PMEVI-DT: β without the variance",
        _BIAS,
        (("found = np.sqrt(2.0 * radius) * np.minimum(deviation, 0.5 * most_span) +", "found = 0.0 * deviation +"),),
        ("bias-formula",),
        _MITIGATED,
        (*RIVER, *PMEVI),
    ),
    Mutant(
        "PMEVI-DT on KL-UCRL's sets: β is not used",
        _SETS,
        (("q[k] = min(q[k], mitigated(within, rewards, v, k))", "q[k] = q[k]"),),
        ("certificate",),
        "tests/agents/test_pmevi_dt.py::test_mitigation_makes_ucrl2_lose_less",
        (*RIVER, *PMEVI, *CUT, *ON_KL_UCRL),
    ),
)
