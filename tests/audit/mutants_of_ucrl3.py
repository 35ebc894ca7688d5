"""Deliberate mistakes in UCRL3 and in its near-optimistic supports; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import RIVER, Mutant

UCRL3 = ("--agent", "ucrl3")

_BOUNDS, _AGENT, _SUPPORTS = "optimism/ucrl3.py", "agents/ucrl3.py", "planning/near_optimistic.py"

MUTANTS_OF_UCRL3 = (
    Mutant(
        "UCRL3: ℓ_n without η",
        _BOUNDS,
        (("return PEELING * math.log(pieces / level) / visits", "return math.log(pieces / level) / visits"),),
        ("set-formula",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: the larger of the two widths of rewards",
        _BOUNDS,
        (("scale * min(0.5 * laplace", "scale * max(0.5 * laplace"),),
        ("set-formula",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: tails as they are printed",
        _AGENT,
        (('AS_PRINTED if self.tails == "printed" else LOWER_TAIL', "AS_PRINTED"),),
        ("set-formula",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: κ is ten times too large",
        _AGENT,
        (("KAPPA = 10.0", "KAPPA = 100.0"),),
        ("set-formula",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: δ' for one pair",
        _AGENT,
        (
            (
                "return self.delta / ((3.0 + 3.0 * self.n_states) * self.n_states * self.n_actions)",
                "return self.delta / (3.0 + 3.0 * self.n_states)",
            ),
        ),
        ("set-formula",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: supports need not be worth more than the rest",
        _SUPPORTS,
        (("outside < kappa and outside < value_inside(sets, ranking, u, k, end)", "outside < kappa"),),
        ("support",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: supports without the best state",
        _SUPPORTS,
        (("== 0 else 0  # too few", "== 0 else -1  # too few"),),
        ("support",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: every support has all states",
        _SUPPORTS,
        (("while enough - below > 1 and kappa > 0.0:", "while enough - below > 1 and kappa < 0.0:"),),
        ("support",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: one state outside the support counts too",
        _SUPPORTS,
        (
            (
                "q[k] = rewards[k] + (least + value_inside(bounds, ranking, u, k, end))",
                "q[k] = rewards[k] + (least + value_inside(bounds, ranking, u, k, min(end + 1, u.size)))",
            ),
        ),
        ("certificate",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: planned to twenty times ε_k",
        "agents/extended.py",
        (("precision=self.reward_range / math.sqrt(t)", "precision=20.0 * self.reward_range / math.sqrt(t)"),),
        ("precision",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3 plays the worst action",
        "agents/extended.py",
        (('actions=plan.details["greedy"].copy()', 'actions=self.n_actions - 1 - plan.details["greedy"]'),),
        ("greedy",),
        "",
        (*RIVER, *UCRL3),
    ),
    Mutant(
        "UCRL3: one execution too many",
        "agents/statistics.py",
        (("return max(1, visits_before)", "return max(1, visits_before) + 1"),),
        ("episode-rule",),
        "",
        (*RIVER, *UCRL3),
    ),
)
