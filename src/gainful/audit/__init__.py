"""Do the theorems hold on this run? Statements checked on real runs, and verdicts over many of them."""

from gainful.audit.audit import Audit, audit
from gainful.audit.findings import Finding, Worst
from gainful.audit.run import RunAudit, audit_run, truth_of
from gainful.audit.statements import STATEMENTS, Statement
from gainful.audit.verdicts import Verdict, clopper_pearson

__all__ = [
    "STATEMENTS",
    "Audit",
    "Finding",
    "RunAudit",
    "Statement",
    "Verdict",
    "Worst",
    "audit",
    "audit_run",
    "clopper_pearson",
    "truth_of",
]
