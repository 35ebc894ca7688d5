"""From runs to verdicts: each run is one Bernoulli trial, judged by the interval of Clopper and Pearson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from gainful.audit.findings import Finding, Worst
from gainful.audit.statements import DEFINITION, STATEMENTS

Word: TypeAlias = Literal[
    "certified", "violated", "inconclusive", "not applicable", "cannot fail here", "implied", "no theorem"
]
CONFIDENCE = 0.95
"""The confidence of each one-sided bound."""


def clopper_pearson(failures: int, runs: int) -> tuple[float, float]:
    """One-sided 95 % bounds on a probability after `failures` in `runs` independent trials.

    The lower bound is the probability at which at least `failures` failures occur with probability 0.05; the upper
    bound is the probability at which at most `failures` occur with probability 0.05 (Clopper & Pearson 1934).

    Parameters
    ----------
    failures, runs : int
        Failures among the trials.

    Returns
    -------
    tuple of float
        Lower and upper bound; each holds with probability 0.95.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 59)
    >>> low, round(high, 4)
    (0.0, 0.0495)
    """
    from scipy.stats import beta

    low = 0.0 if failures == 0 else float(beta.ppf(1.0 - CONFIDENCE, failures, runs - failures + 1))
    high = 1.0 if failures == runs else float(beta.ppf(CONFIDENCE, failures + 1, runs - failures))
    return low, high


def word_for(failed_runs: int, runs: int, allowed: float) -> Word:
    """The verdict on a statement that may fail in a fraction `allowed` of all runs.

    It is violated if the lower bound on the frequency of failing runs exceeds `allowed`, certified if the upper bound
    does not exceed it, and inconclusive otherwise. A statement that may never fail (`allowed` 0) is certified if no run
    fails and violated by a single failure.

    Examples
    --------
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
    """One statement over all runs.

    Attributes
    ----------
    statement : str
        Its name in `STATEMENTS`.
    verdict : str
        "certified", "violated", "inconclusive" or "not applicable"; "cannot fail here" where everything possible was
        allowed in every run, "implied" where it follows from other statements that held in every run, "no theorem"
        where nobody has proven it for this agent.
    promised : bool
        Whether a theorem guarantees it for this agent; if not, the verdict only describes what happened.
    allowed : float
        The fraction of runs in which it may fail.
    runs, failed_runs : int
        Runs in which it was checked, and in which it failed.
    frequency : tuple of float
        One-sided 95 % bounds on the fraction of runs in which it fails.
    checks, failures : int
        How often it was checked and how often it failed, over all runs.
    worst : Worst or None
        The worst case of all runs.
    reason : str
        Why it is not applicable, or why there is no theorem; empty otherwise.
    implied_by : tuple of str
        What it follows from, if the verdict is "implied".

    Examples
    --------
    >>> verdict = judge("span", [(seed, Finding(checks=10, failures=0, worst=None)) for seed in range(3)], 0.05, "")
    >>> verdict.verdict, verdict.runs, verdict.checks, verdict.text
    ('certified', 3, 30, 'sp(v_k) ≤ c')
    """

    statement: str
    verdict: Word
    promised: bool
    allowed: float
    runs: int
    failed_runs: int
    frequency: tuple[float, float]
    checks: int
    failures: int
    worst: Worst | None
    reason: str = ""
    implied_by: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdict as it is shown: with what implies it."""
        return f"implied by {' and '.join(self.implied_by)}" if self.implied_by else self.verdict

    @property
    def broken(self) -> bool:
        """Whether the statement is violated although it is guaranteed."""
        return self.promised and self.verdict == "violated"

    @property
    def remark(self) -> str:
        """Why it is not applicable, or why there is no theorem, and then how often it held nevertheless."""
        if self.verdict != "no theorem" or not self.checks:
            return self.reason
        return f"{self.reason}; it held in {self.checks - self.failures:,} of {self.checks:,} checks"

    @property
    def text(self) -> str:
        """The statement in words."""
        return STATEMENTS[self.statement].text

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name, with the `remark`, and the `text`, the `source` and the `likely` of the statement.
        """
        known = STATEMENTS[self.statement]
        about = {"text": known.text, "source": known.source, "likely": known.likely}
        return {**asdict(self), "remark": self.remark, **about}


def judge(name: str, findings: Sequence[tuple[int, Finding]], delta: float, void: str) -> Verdict:
    """The verdict on statement `name` from (seed, finding) of each run; `void` is the reason for no guarantee."""
    statement = STATEMENTS[name]
    allowed = min(1.0, statement.events * delta) if statement.likely else 0.0
    used = [(seed, f) for seed, f in findings if f.applicable]
    failed = sum(f.failures > 0 for _, f in used)
    cases = [(f.failures > 0, f.worst.excess, replace(f.worst, seed=seed)) for seed, f in used if f.worst is not None]
    worst = max(cases, key=lambda case: case[:2])[2] if cases else None
    certain = bool(used) and not failed and all(f.certain for _, f in used)
    unproven = next((f.unproven for _, f in used if f.unproven), "")
    word: Word = "cannot fail here" if certain else word_for(failed, len(used), allowed)
    return Verdict(
        statement=name,
        verdict="no theorem" if unproven else word,
        promised=not (unproven or (void and statement.constants)),
        allowed=allowed,
        runs=len(used),
        failed_runs=failed,
        frequency=clopper_pearson(failed, len(used)) if used else (0.0, 1.0),
        checks=sum(f.checks for _, f in used),
        failures=sum(f.failures for _, f in used),
        worst=worst,
        reason=unproven if used else next((f.reason for _, f in findings if f.reason), "no run was audited"),
    )


def with_implications(verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    """Mark the verdicts on statements that follow from others which held in every run, and so had no way to fail."""

    def holds(name: str) -> bool:
        return name == DEFINITION or (name in verdicts and verdicts[name].runs > 0 and not verdicts[name].failures)

    found = {}
    for name, verdict in verdicts.items():
        reasons = STATEMENTS[name].implied_by
        if reasons and verdict.verdict in ("certified", "inconclusive") and all(holds(reason) for reason in reasons):
            found[name] = replace(verdict, verdict="implied", implied_by=reasons)
        else:
            found[name] = verdict
    return found
