"""Worked problems: a call centre, a stockroom, a machine, and two packing lines.

Each comes with a simulator of the real system, the exact model with its optimum, the rules of thumb in use, a bound c
derived from business facts, and a learner that knows none of this. Money is in euros and time in days, so a gain is in
euros per day.
"""

from gainful.problems.call_centre import CallCentre
from gainful.problems.maintenance import Maintenance
from gainful.problems.problem import Happened, Learner, Ledger, Problem, Routine, Rule, System, live, live_together
from gainful.problems.stockroom import Stockroom
from gainful.problems.two_servers import TwoServers

__all__ = [
    "CallCentre",
    "Happened",
    "Learner",
    "Ledger",
    "Maintenance",
    "Problem",
    "Routine",
    "Rule",
    "Stockroom",
    "System",
    "TwoServers",
    "live",
    "live_together",
]
