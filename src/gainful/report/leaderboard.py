"""The ranked table beside the regret chart, and the sentences above it."""

from __future__ import annotations

from gainful.report import tables
from gainful.report.content import Environment, Group, Report
from gainful.report.ranking import leads, ranked
from gainful.report.writing import escaped
from gainful.simulation.run import MEASURE_NAMES

GUARANTEES = {"yes": "yes", "yes, c from an oracle": "oracle c", "no guarantee": "none"}
"""Short words for the ranked table."""
UNDER_NAMES = {"yes": "guarantee", "none": "no guarantee"}
"""The same under the name of an agent."""


def lead_sentences(environment: Environment) -> str:
    """Who loses least, and by how much; for a single agent, what it lost."""
    sentences = []
    for lead in leads(environment):
        before, amount, after = lead.sentence
        sentences.append(f"{escaped(before)}<strong>{escaped(amount)}</strong>{escaped(after)}")
    if not sentences:
        sentences = [escaped(_alone(group)) for group in environment.groups[:1] if len(environment.groups) == 1]
    return f'<p class="winner">{" ".join(sentences)}</p>' if sentences else ""


def _alone(group: Group) -> str:
    measure = next((name for name in ("expected_regret", "pseudo_regret", "regret") if name in group.finals), "")
    if not measure or group.row["final_step"] is None:
        return ""
    (lost,) = tables.amounts([group.row[f"{measure}_mean"]])
    return f"{group.agent} lost {lost} in {group.row['final_step']:,} steps ({MEASURE_NAMES[measure]})."


def leaderboard(report: Report, environment: Environment, i: int) -> str:
    """The agents, the best first: regret with its interval, how many times the least regret, and the guarantee."""
    order = ranked(environment)
    groups = [group for _, group in order]
    measure = environment.measure
    known = [g.row[f"{measure}_mean"] for g in groups]
    rewards = all(mean is None for mean in known)
    means = [g.row["reward_per_step"] for g in groups] if rewards else known
    lows = [None if rewards else g.row[f"{measure}_mean_low"] for g in groups]
    highs = [None if rewards else g.row[f"{measure}_mean_high"] for g in groups]
    write = tables.rates if rewards else tables.amounts
    texts = write([*means, *lows, *highs])
    n = len(groups)
    best = next((mean for (rank, _), mean in zip(order, means, strict=True) if rank == 1), None)
    name = "Reward per step" if rewards else MEASURE_NAMES[measure].capitalize()
    heads = [("#", "rank"), ("Agent", "word agent keyed"), (name, "number")]
    heads += [] if rewards else [("× best", "number")]
    head = "".join(
        f'<th scope="col" class="{kind}">{escaped(text)}</th>'
        for text, kind in [*heads, ("Guarantee", "word guarantee")]
    )
    rows = []
    for r, (rank, group) in enumerate(order):
        range_ = ""
        if lows[r] is not None and highs[r] is not None:
            range_ = f'<span class="range">{escaped(texts[n + r])} … {escaped(texts[2 * n + r])}</span>'
        short = group.row["final_step"] if rank is None and group.row["final_step"] is not None else None
        at = "" if short is None else f'<span class="range">at step {short:,}</span>'
        cells = [
            f'<td class="rank">{"–" if rank is None else rank}</td>',
            f'<th scope="row" class="word agent keyed">{_key(report.agents.index(group.agent), i, group.agent)}'
            f"{escaped(group.agent)}{_guarantee(group, 'span')}</th>",
            f'<td class="number">{escaped(texts[r])}{range_}{at}</td>',
        ]
        if not rewards:
            cells.append(f'<td class="number">{escaped(_times(means[r], best) if rank is not None else "–")}</td>')
        cells.append(_guarantee(group, "td"))
        rows.append(f'<tr data-agent="{report.agents.index(group.agent)}">{"".join(cells)}</tr>')
    about = f"Agents in {environment.label}, the best first"
    return (
        f'<div class="box ranked" tabindex="0" role="region" aria-label="{escaped(about)}"><table class="leaderboard" '
        f'data-env="{i}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="caption">{_caption(environment, rewards)}</p>'
    )


def _caption(environment: Environment, rewards: bool) -> str:
    runs = {g.row["runs"] for g in environment.groups}
    count = f"{min(runs):,}" if len(runs) == 1 else f"{min(runs):,} to {max(runs):,}"
    of = f"{count} run{'' if runs == {1} else 's'}"
    return f"Mean of {of}." if rewards or runs == {1} else f"Mean of {of} with its 95 % interval; lower is better."


def _times(mean: float | None, best: float | None) -> str:
    if mean is None or best is None or best <= 0.0:
        return "–"
    times = mean / best
    return f"{times:.2f}" if times < 10 else f"{times:.1f}" if times < 100 else f"{times:,.0f}"


def _guarantee(group: Group, element: str) -> str:
    """A cell, or the words under the name of an agent, which a narrow screen shows instead."""
    word = GUARANTEES.get(group.row["guarantee"], str(group.row["guarantee"]))
    if group.row["vacuous_runs"]:
        word += ", vacuous"
    kind = "word none" if word.startswith("none") else "word"
    text = escaped(word) if element == "td" else escaped(UNDER_NAMES.get(word, f"guarantee, {word}"))
    return f'<{element} class="{kind} guarantee" title="{escaped(str(group.row["guarantee_text"]))}">{text}</{element}>'


def _key(index: int, environment: int, agent: str) -> str:
    return (
        f'<button type="button" class="key" data-env="{environment}" data-agent="{index}" aria-pressed="true" '
        f'aria-label="{escaped(f"Show the curve of {agent}")}"><svg viewBox="0 0 22 10" aria-hidden="true">'
        f'<line x1="1" y1="5" x2="21" y2="5" stroke-width="3" data-agent="{index}"/></svg></button>'
    )
