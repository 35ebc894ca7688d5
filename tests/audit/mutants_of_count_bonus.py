"""Deliberate mistakes in the agent with a count-based bonus, and in its pseudo-counts; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import RIVER, Mutant

COUNT_BONUS = ("--agent", "count-bonus")
HASHED = ("--agent-set", "counts=modulo:buckets=2")
DENSITY = ("--agent-set", "counts=density:shape=3x2")

_BONUS, _AGENT = "optimism/count_bonus.py", "agents/count_bonus.py"

MUTANTS_OF_COUNT_BONUS = (
    Mutant(
        "count bonus: β/N̂ in place of β/√N̂",
        _BONUS,
        (("beta / np.sqrt(np.maximum(1.0, counts))", "beta / np.maximum(1.0, counts)"),),
        ("bonus-formula",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus: planned without r̄",
        _BONUS,
        (("r = self.reward_sum / np.maximum(1, self.visits) + self.bonus", "r = 0.0 * self.reward_sum + self.bonus"),),
        ("bonus-formula",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus: no attractive state in p̂",
        "planning/estimated.py",
        (
            ("np.uint64(1), v, v[model.attractive]", "np.uint64(1), v, 0.0"),
            ("total / (model.visits[k] + 1)", "total / max(1, model.visits[k])"),
        ),
        ("certificate",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus: planned to twenty times ε_k",
        _AGENT,
        (("precision=self.reward_range / math.sqrt(t)", "precision=20.0 * self.reward_range / math.sqrt(t)"),),
        ("precision",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus plays the worst action",
        _AGENT,
        (("actions=found.actions,", "actions=self.n_actions - 1 - found.actions,"),),
        ("greedy",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus: one execution too many",
        "agents/statistics.py",
        (("return max(1, visits_before)", "return max(1, visits_before) + 1"),),
        ("episode-rule",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "hashed counts: those of all actions",
        "pseudo_counts/hashed.py",
        (
            (
                "return np.asarray(sums[self.codes])",
                "return np.asarray(sums[self.codes] * 0.0 + sums.sum(axis=1)[self.codes, None])",
            ),
        ),
        ("bonus-formula",),
        "",
        (*RIVER, *COUNT_BONUS, *HASHED),
    ),
    Mutant(
        "density counts: ρ in place of 1-ρ′",
        "pseudo_counts/density.py",
        (("-np.expm1(log_after[known])", "np.exp(log_after[known])"),),
        ("bonus-formula",),
        "",
        (*RIVER, *COUNT_BONUS, *DENSITY),
    ),
    Mutant(
        "count bonus: another action in a tenth of the steps",
        "simulation/tabular.py",
        (
            (
                "action: Any = np.uint64(policy.actions[state])",
                "action: Any = np.uint64(policy.actions[state] if t % 10 else 0)",
            ),
        ),
        ("execution",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
    Mutant(
        "count bonus: half of every reward is lost",
        "simulation/counters.py",
        (("inner = reward - low", "inner = 0.5 * (reward - low)"),),
        ("data",),
        "",
        (*RIVER, *COUNT_BONUS),
    ),
)
