"""Durable agents: a journal, snapshots, recovery; decisions and outcomes that arrive out of step."""

from gainful.live.agent import DurableAgent
from gainful.live.logs import fit_log
from gainful.live.opening import open_agent
from gainful.live.recovery import Recovered, recover
from gainful.live.results import Change, Decision, JournalWarning, Pending, Receipt
from gainful.live.table import export, is_live, read_journal

__all__ = [
    "Change",
    "Decision",
    "DurableAgent",
    "JournalWarning",
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
