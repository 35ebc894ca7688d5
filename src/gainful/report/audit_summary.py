"""What several audits found, in short: one line for each, and every statement that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gainful.number_text import count, four_digits
from gainful.report.writing import escaped

VERDICT_MARKS = {"certified": "✓", "violated": "✗", "inconclusive": "?", "not applicable": "–"} | {
    "implied": "→",
    "cannot fail here": "∞",
    "no theorem": "·",
}
SYMBOLS_EXPLAINED = (
    "δ is the fraction of runs in which a statement may fail, c the bound on the span that the agent was given, and "
    "r_max the range of rewards."
)


def audit_summary(audits: Sequence[dict[str, Any]]) -> str:
    """What was checked, a table with a line for each audit, and what failed."""
    rows = "".join(_row(i, one) for i, one in enumerate(audits))
    return (
        f'<p class="caption">{escaped(_what_was_checked(audits))} {escaped(SYMBOLS_EXPLAINED)}</p>'
        '<div class="box" tabindex="0" role="region" aria-label="All audits">'
        '<table class="audits"><thead><tr><th scope="col" class="word agent">Agent, environment</th>'
        '<th scope="col" class="word">Result</th><th scope="col">Mean regret</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_failures(audits)}"
    )


def fold_id(i: int) -> str:
    """The anchor inside the fold of audit i: a link to it opens the fold."""
    return f"audit-{i + 1}"


def name_of_audit(one: dict[str, Any]) -> str:
    """Agent and environment."""
    return f"{one['agent']} in {one['environment']}"


def broken_statements(one: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdicts of an audit on statements that should hold and are violated."""
    return [v for v in one["verdicts"] if v["verdict"] == "violated" and v["promised"]]


def counted(one: dict[str, Any]) -> str:
    """How many statements have which verdict."""
    words = [verdict["verdict"] for verdict in one["verdicts"]]
    return ", ".join(f"{words.count(word)} {word}" for word in VERDICT_MARKS if word in words)


def size_of(one: dict[str, Any]) -> str:
    """Runs and steps of an audit."""
    return f"{count(len(one['runs']), 'run')} of {count(one['horizon'], 'step')}"


def _what_was_checked(audits: Sequence[dict[str, Any]]) -> str:
    agents, environments = ({one[key] for one in audits} for key in ("agent", "environment"))
    statements, sizes = sum(len(one["verdicts"]) for one in audits), {size_of(one) for one in audits}
    each = f", {sizes.pop()} each" if len(sizes) == 1 else ""
    what = f"{count(len(agents), 'agent')} in {count(len(environments), 'environment')}"
    return f"{len(audits):,} audits: {what}{each}; {statements:,} statements in all."


def _row(i: int, one: dict[str, Any]) -> str:
    broken = len(broken_statements(one))
    result, kind = (f"✗ {broken} violated", "violated") if broken else ("✓ nothing violated", "certified")
    guarantee = "" if not one["void"] else ", no guarantee applies"
    regret, bound = one["regret"]["mean"][-1], one["regret"]["bound"]
    limit = "" if not bound else f'<span class="range">bound {four_digits(bound[-1])}</span>'
    return (
        f'<tr><th scope="row" class="word agent"><a href="#{fold_id(i)}">{escaped(one["agent"])}</a>'
        f'<span class="range">{escaped(one["environment"])}</span></th>'
        f'<td class="word verdict {kind}">{result}<span class="range">{counted(one)}{guarantee}</span></td>'
        f'<td class="number">{"unknown" if regret is None else four_digits(regret)}{limit}</td></tr>'
    )


def _failures(audits: Sequence[dict[str, Any]]) -> str:
    """Every statement that should hold and is violated, with the audit that found it."""
    items = "".join(
        f'<li><a href="#{fold_id(i)}">{escaped(name_of_audit(one))}</a>: {escaped(v["text"])} '
        f"({escaped(v['statement'])}), violated in {v['failed_runs']:,} of {count(v['runs'], 'run')}</li>"
        for i, one in enumerate(audits)
        for v in broken_statements(one)
    )
    return f'<h3>What is violated</h3><ul class="failures">{items}</ul>' if items else ""
