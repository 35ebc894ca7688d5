"""The agent to take for what the user knows: the table at the top of docs/which_agent.md."""

from __future__ import annotations

from benchmarks.markdown import Table

C_IF_NEEDED = "nothing; c in the last"
"""What an agent is told that is given c in the problem with unreachable states, and there only."""
BY_VARIANCE = "KL-SCAL+, vanishing, variance"
"""Mean rewards are bounded by the variance seen."""
WITHOUT_C, WITH_RULE = "KL-SCAL+, without c", "KL-SCAL+, TUCRL's rule"
"""Rows for the problem with unreachable states only."""
ANSWERS = [
    ("that every state can be reached from every other", "KLSCALPlus(S, A)", "KL-SCAL+"),
    ("the same, and plans may be made more often", 'KLSCALPlus(S, A, episodes="vanishing")', "KL-SCAL+, vanishing"),
    (
        "the same, and that rewards are not all 0 or r_max",
        'KLSCALPlus(S, A, episodes="vanishing", reward_bound="variance")',
        BY_VARIANCE,
    ),
    ("the same, and no theorem is needed", "PSRL(S, A)", "PSRL"),
    ("c, and some states may be unreachable", "KLSCALPlus(S, A, span=c)", "KL-SCAL+"),
    ("that some states may be unreachable, but not c", "TUCRL(S, A)", "TUCRL"),
    ("the same, and no theorem is needed", 'KLSCALPlus(S, A, unreachable="tucrl")', WITH_RULE),
    ("c, and you want an explicit bonus", 'SCALPlus(S, A, span=c, bonus="sharp")', "SCAL+, sharp"),
    ("c, and you want what the paper proves", "SCALPlus(S, A, span=c)", "SCAL+, the paper's bonus"),
]
"""What the user knows, the agent to take, and its row in the table."""
SHOWN = ("RiverSwim-6, 10⁵", "Garnet(50, 3, 5), 10⁶", "unreachable states, 10⁵")
"""The problems in which the table says what each agent lost."""


def answers(measured: Table) -> Table:
    """The agents for what the user knows, with their losses of the table of small problems."""
    where = {name: i for i, name in enumerate(measured["columns"])}
    found = {row[0]: row for row in measured["rows"]}

    def lost(label: str, problem: str) -> str:
        return str(found[label][where[problem]]).split(" ±")[0]

    rows = []
    for knows, code, label in ANSWERS:
        losses = [lost(label, problem) for problem in SHOWN]
        if found[label][where["is told"]] == C_IF_NEEDED:
            losses = ["", "", losses[-1]] if "span" in code else [*losses[:-1], ""]
        if code == "KLSCALPlus(S, A)":
            losses[-1] = lost(WITHOUT_C, SHOWN[-1])
        rows.append([knows, f"`{code}`", found[label][where["theorem"]], *losses])
    return {
        "columns": ["you know", "take", "theorem", *SHOWN],
        "align": [*["left"] * 3, *["right"] * len(SHOWN)],
        "rows": rows,
    }
