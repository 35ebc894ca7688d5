"""From runs to verdicts: one Bernoulli trial per run, judged by Clopper and Pearson's interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from gainful.audit.findings import Finding, Worst
from gainful.audit.statements import STATEMENTS

Word: TypeAlias = Literal["certified", "violated", "inconclusive", "not applicable"]
CONFIDENCE = 0.95
"""Of each one-sided bound."""


def clopper_pearson(failures: int, runs: int) -> tuple[float, float]:
    """One-sided 95 % bounds on a probability after `failures` in `runs` independent trials.

    >>> low, high = clopper_pearson(0, 59)
    >>> low, round(high, 4)
    (0.0, 0.0495)
    """
    from scipy.stats import beta

    low = 0.0 if failures == 0 else float(beta.ppf(1.0 - CONFIDENCE, failures, runs - failures + 1))
    high = 1.0 if failures == runs else float(beta.ppf(CONFIDENCE, failures + 1, runs - failures))
    return low, high


def word_for(failed_runs: int, runs: int, allowed: float) -> Word:
    """Violated where the lower bound of the frequency is above what is allowed, certified where the upper is not.

    A statement that may not fail (`allowed` 0) is certified by runs without a failure and violated by one failure.

    >>> word_for(0, 59, 0.05), word_for(0, 58, 0.05), word_for(1, 59, 0.05), word_for(8, 59, 0.05)
    ('certified', 'inconclusive', 'inconclusive', 'violated')
    """
    if runs == 0:
        return "not applicable"
    if allowed <= 0.0:
        return "violated" if failed_runs else "certified"
    low, high = clopper_pearson(failed_runs, runs)
    if low > allowed:
        return "violated"
    return "certified" if high <= allowed else "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """One statement over all runs."""

    statement: str
    verdict: Word
    promised: bool
    """Whether a theorem promises it for the agent as it is; else the verdict only tells what happened."""
    allowed: float
    """The part of runs in which it may fail."""
    runs: int
    failed_runs: int
    frequency: tuple[float, float]
    """One-sided 95 % bounds of the part of runs in which it fails."""
    checks: int
    failures: int
    worst: Worst | None
    reason: str = ""

    @property
    def broken(self) -> bool:
        """Whether something that should hold does not."""
        return self.promised and self.verdict == "violated"

    @property
    def text(self) -> str:
        """The statement in words."""
        return STATEMENTS[self.statement].text

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        known = STATEMENTS[self.statement]
        return {**asdict(self), "text": known.text, "source": known.source, "likely": known.likely}


def judge(name: str, findings: Sequence[tuple[int, Finding]], delta: float, void: str) -> Verdict:
    """The verdict on statement `name` from (seed, finding) of each run; `void` says why nothing is promised."""
    statement = STATEMENTS[name]
    allowed = delta if statement.likely else 0.0
    used = [(seed, f) for seed, f in findings if f.applicable]
    failed = sum(f.failures > 0 for _, f in used)
    cases = [(f.failures > 0, f.worst.excess, replace(f.worst, seed=seed)) for seed, f in used if f.worst is not None]
    worst = max(cases, key=lambda case: case[:2])[2] if cases else None
    return Verdict(
        statement=name, verdict=word_for(failed, len(used), allowed), promised=not (void and statement.constants),
        allowed=allowed, runs=len(used), failed_runs=failed,
        frequency=clopper_pearson(failed, len(used)) if used else (0.0, 1.0),
        checks=sum(f.checks for _, f in used), failures=sum(f.failures for _, f in used), worst=worst,
        reason="" if used else next((f.reason for _, f in findings if f.reason), "no run was audited"),
    )  # fmt: skip
