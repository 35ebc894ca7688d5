"""Worked problems: a call centre, a stockroom, a machine, two packing lines, each with all that a decision needs.

Each has a simulator of the real system, the exact model with its optimum, the rules of thumb that people use, a bound c
from business facts, and SCAL+ told that c. Money is in euros and time in days, so a gain is euros per day.
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
