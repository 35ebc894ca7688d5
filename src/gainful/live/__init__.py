"""Durable agents: a journal, snapshots, recovery; decisions and outcomes that arrive out of step."""

from gainful.live.durable_agent import DurableAgent
from gainful.live.earnings import EarningsOverTime, Outcome
from gainful.live.journal_table import export, is_live, read_journal
from gainful.live.labels import LabelledDecision
from gainful.live.logs import fit_log
from gainful.live.opening import open_agent
from gainful.live.receipts import Change, Decision, JournalWarning, Pending, Receipt
from gainful.live.recovery import Recovered, recover

__all__ = [
    "Change",
    "Decision",
    "DurableAgent",
    "EarningsOverTime",
    "JournalWarning",
    "LabelledDecision",
    "Outcome",
    "Pending",
    "Receipt",
    "Recovered",
    "export",
    "fit_log",
    "is_live",
    "open_agent",
    "read_journal",
    "recover",
]
