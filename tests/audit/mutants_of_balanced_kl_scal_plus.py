"""Deliberate mistakes in Balanced KL-SCAL+; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import RIVER, Mutant

BALANCED = ("--agent", "balanced-kl-scal-plus")
_LEDGER, _AGENT = "agents/span_balancing.py", "agents/balanced_kl_scal_plus.py"

MUTANTS_OF_BALANCED_KL_SCAL_PLUS = (
    Mutant(
        "balanced: the base with the fewest steps plays",
        _LEDGER,
        (("key=lambda i: (int(self.steps[i]) << i, i)", "key=lambda i: (int(self.steps[i]), i)"),),
        ("base-choice",),
        "",
        (*RIVER, *BALANCED),
    ),
    Mutant(
        "balanced: play proves without a deviation, so that good bounds are given up",
        _LEDGER,
        (("(float(self.rewards[j]) - loss) / n)", "(float(self.rewards[j]) + 0.3 * n) / n)"),),
        ("base-choice",),
        "",
        (*RIVER, *BALANCED),
        horizon="3000",
    ),
    Mutant(
        "balanced: nothing is ever given up",
        _LEDGER,
        (("return bool(self.claims[i] < self.proven_gain(i))", "return False"),),
        ("base-choice",),
        "",
        (*RIVER, *BALANCED),
        compiled=True,
        horizon="30000",
    ),
    Mutant(
        "balanced: the last plan's claim in place of the least",
        _AGENT,
        (("min(ledger.claims[i], (found.gain_bounds[1] - self.reward_min) / self.reward_range)", "1.0"),),
        ("base-choice",),
        "",
        (*RIVER, *BALANCED),
    ),
    Mutant(
        "balanced: every base plans with c = r_max",
        _AGENT,
        (("span=2.0**i * self.reward_range", "span=self.reward_range"),),
        ("certificate",),
        "",
        (*RIVER, *BALANCED),
    ),
    Mutant(
        "balanced: episodes as long as the pairs allow",
        _AGENT,
        (("last = NEVER if longest is None else t - 1 + longest", "last = NEVER"),),
        ("base-choice",),
        "",
        (*RIVER, *BALANCED),
    ),
)
