"""The part of a page about one environment: chart and ranking first, then everything else about it."""

from __future__ import annotations

import json
from typing import Any

from gainful.experiments.foreign_names import TABLE
from gainful.number_text import count
from gainful.plot.centres import CENTRES, DEFAULT_CENTRE
from gainful.report import tables
from gainful.report.content import Environment, Group, Report
from gainful.report.importance_section import importance_section
from gainful.report.leaderboard import lead_sentences, leaderboard
from gainful.report.page_data import drawable_groups
from gainful.report.ranking import compared_measure
from gainful.report.writing import escaped
from gainful.simulation.run import MEASURE_NAMES


def environment_section(report: Report, environment: Environment, i: int) -> str:
    """The section of environment number `i`."""
    name = escaped(environment.label)
    about = escaped(f"{_made_as(environment)}{tables.subtitle(environment)}")
    headline = _table(environment, tables.headline(environment), f"Regret of each agent in {environment.label}")
    parts = [
        f'<section id="env-{i}" aria-labelledby="env-{i}-name">',
        f'<h2 id="env-{i}-name">{name}</h2>',
        lead_sentences(environment),
        f'<div class="first"><div>{_regret_chart(environment, i)}</div>',
        f"<div>{leaderboard(report, environment, i)}</div></div>",
        f'<p class="caption">{about}. {_about_curves(environment)} <span id="low-{i}" hidden></span></p>',
        _remarks(environment),
        _part(
            f"Final {MEASURE_NAMES[compared_measure(environment)]} of every run",
            _distribution_section(environment, i) + _runs_section(environment, i),
        ),
        _part("All numbers", headline + _promises(environment)),
        importance_section(environment),
        _part("Episodes: the gain of every plan", _optimism_section(environment, i)),
        _part("Cost of planning", _planning_section(environment)),
        _part("Bonus against visits", _bonus_section(environment, i)),
        _part("The problem and the learned policy", _problem_section(environment, i)),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _part(head: str, content: str) -> str:
    kind = "part brief" if content.startswith('<p class="why">') else "part"  # nothing but the reason why not
    return f'<div class="{kind}"><h3>{head}</h3>{content}</div>'


def _made_as(environment: Environment) -> str:
    if environment.name.startswith(TABLE):  # the digest of its content says nothing to a reader
        return f"{environment.name.removeprefix(TABLE)}: "
    given = ", ".join(f"{name} = {_shown(value)}" for name, value in environment.parameters.items())
    return f"{environment.name} with {given}: " if given else f"{environment.name}: "


def _table(environment: Environment, columns: list[tables.Column], caption: str, bar: int = -1) -> str:
    head = "".join(
        f'<th scope="col" aria-sort="none" class="{_class(c, j)}" title="{escaped(c.about)}">'
        f'<button type="button" class="sort">{escaped(c.head)}</button></th>'
        for j, c in enumerate(columns)
    )
    rows = []
    for r, group in enumerate(environment.groups):
        cells = []
        for j, c in enumerate(columns):
            value = c.values[r]
            data = f'data-value="{escaped("" if value is None else value if isinstance(value, str) else repr(value))}"'
            name = f'data-column="{c.key}"'
            if j == 0:
                cells.append(f'<th scope="row" class="word agent" {data} {name}>{escaped(c.texts[r])}</th>')
                continue
            style = f' style="--share:{float(value):.4f}"' if j == bar and isinstance(value, float) else ""
            kind = _class(c, j) + (" share" if style else "")
            if c.key == "guarantee" and "no guarantee" in c.texts[r]:
                kind += " none"
            about = f' title="{escaped(group.row["guarantee_text"])}"' if c.key == "guarantee" else ""
            cells.append(f'<td class="{kind}"{style}{about} {data} {name}>{escaped(c.texts[r])}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    kind = "headline" if bar < 0 else "planning"
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escaped(caption)}">'
        f'<table class="sortable {kind}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _class(column: tables.Column, j: int) -> str:
    return (
        "word agent" if j == 0 else "word" if not column.numeric else "range" if "interval" in column.head else "number"
    )


def _remarks(environment: Environment) -> str:
    notes = [f"{g.agent}: {g.row['note']}." for g in environment.groups if g.row["note"]]
    notes += [why] if (why := tables.about_measure(environment)) else []
    return "".join(f'<p class="caption">{escaped(note)}</p>' for note in notes)


def _promises(environment: Environment) -> str:
    items = "".join(f"<dt>{escaped(g.agent)}</dt><dd>{escaped(_promise(g))}</dd>" for g in environment.groups)
    return f"<details><summary>Guarantees, and why some do not apply</summary><dl>{items}</dl></details>"


def _promise(group: Group) -> str:
    row, text = group.row, str(group.row["guarantee_text"])
    if row["guarantee"] == "yes, c from an oracle":
        text += "; here c is the span of the model itself, which a learner would not know"
    if row["vacuous_runs"]:
        text += (
            f"; vacuous in {row['vacuous_runs']} of {row['runs']} runs: at the end of the run the bounds were still so "
            "wide that the data did not influence the plan"
        )
    return text


def _regret_chart(environment: Environment, i: int) -> str:
    if not any(g.curves for g in environment.groups):
        return '<p class="why">There are no curves, because no agent has runs that share a checkpoint.</p>'
    return chart(
        "regret", i, f"Regret curves of {count(len(environment.groups), 'agent')} in {environment.label}", f"low-{i}"
    )


def _about_curves(environment: Environment) -> str:
    what = f'<span class="centre-caption">{escaped(CENTRES[DEFAULT_CENTRE].caption)}</span>'
    if all(group.row["runs"] == 1 for group in environment.groups):
        what = "One run of each agent." if len(environment.groups) > 1 else "One run."
    if environment.gain is None:
        what = f"The optimal gain is unknown here, so the chart shows the reward per step. {what}"
    if len(environment.groups) == 1:
        return what
    hint = "Click the key of an agent to hide its curve; double-click it to see it alone."
    return f'{what} <span class="hint">{hint}</span>'


def _distribution_section(environment: Environment, i: int) -> str:
    measure = compared_measure(environment)
    shown = [g for g in environment.groups if measure in g.finals]
    if not shown:
        return '<p class="why">Not drawn: the runs share no checkpoint.</p>'
    about = f"Final {MEASURE_NAMES[measure]} of every run of {count(len(shown), 'agent')} in {environment.label}"
    return (
        '<p class="caption">Box: quartiles and median; whiskers: the last runs within 1.5 times the distance between '
        'the quartiles. A dot is a run<span class="hint">; click it to see its episodes</span>.</p>'
        + chart("distribution", i, about)
    )


def _runs_section(environment: Environment, i: int) -> str:
    runs = sum(len(g.runs) for g in environment.groups)
    left_out = sum(1 for g in environment.groups for r in g.runs if g.optimism and not r.plans)
    more = ""
    if left_out:
        more = (
            f" The file has room for the episodes of {runs - left_out:,} of these runs, evenly spread; "
            "<code>gainful watch</code> shows those of all."
        )
    return (
        f'<details class="runs" data-env="{i}" id="runs-{i}"><summary>Every run: a table of {runs:,}</summary>'
        '<p class="caption">Click a heading to sort, and a number of episodes to see the episodes of that run.'
        f"{more}</p>"
        f'<div class="box" tabindex="0" role="region" aria-label="{escaped(f"Runs in {environment.label}")}"></div>'
        "</details>"
    )


def _optimism_section(environment: Environment, i: int) -> str:
    shown = [g for g in environment.groups if g.optimism]
    if not shown:
        return '<p class="why">No run stored the gain of its plans.</p>'
    name = environment.gain_name
    target = f"the optimal {name} g*" if environment.gain is not None else f"the optimal {name}, which is unknown here"
    about = f"{name.capitalize()} of the plans of {len(shown)} agents over episodes in {environment.label}"
    return (
        f'<p class="caption">The {name} of the plan of each episode, with the bracket of its planner, compared with '
        f"{target}. "
        f'<span id="episodes-{i}">For each agent the run with the lowest seed is shown.</span></p>'
        + chart("optimism", i, about)
        + f'<div class="episodes" id="episode-table-{i}"></div>'
    )


def _planning_section(environment: Environment) -> str:
    table = _table(environment, tables.planning(environment), f"Cost of planning in {environment.label}", bar=1)
    return '<p class="caption">CPU time per run, averaged over runs. A sweep is one pass over all states.</p>' + table


def _bonus_section(environment: Environment, i: int) -> str:
    shown = [g for g in environment.groups if g.bonus]
    if not shown:
        return '<p class="why">No agent here stores a bonus, or the problem is too large to store it.</p>'
    return (
        '<p class="caption">One point for each visited pair of state and action, at the end of the run with the lowest '
        "seed.</p>" + chart("bonus", i, f"Bonus against visits of {len(shown)} agents in {environment.label}")
    )


def _problem_section(environment: Environment, i: int) -> str:
    plans = drawable_groups(environment)
    drawing = environment.drawing
    if drawing is None:
        return f'<p class="why">Not drawn: {escaped(environment.no_drawing)}.</p>'
    if not plans:
        return '<p class="why">Not drawn: no run stored its last plan.</p>'
    options = "".join(f'<option value="{j}">{escaped(g.agent)}</option>' for j, g in enumerate(plans))
    graph = (
        f'<div class="graph" id="graph-{i}" tabindex="0" role="region" aria-label="Graph of the problem"></div>'
        '<p class="caption">The area of a node shows its visits, and its colour the value v of the last plan: the '
        "stronger, the higher. Bold arrows are the learned policy, faint ones other actions. An orange ring marks a "
        "state where the span constraint is binding: v = min v + c.</p>"
        if drawing.positions
        else '<p class="why">The graph is not drawn, because it has too many arrows to be readable.</p>'
    )
    return (
        f'<div class="row"><label for="plan-{i}">Agent</label><select class="plan" id="plan-{i}" data-env="{i}">'
        f'{options}</select></div><p class="caption" id="story-{i}" aria-live="polite"></p>{graph}'
        '<div class="pair"><div>'
        + chart("visits", i, "Visits of each state and action")
        + '<p class="caption">Visits. A dot marks the action of the last plan.</p></div><div>'
        + chart("values", i, "Value of each state")
        + '<p class="caption">Values of the last plan; an orange diamond marks a state where the span constraint is '
        "binding.</p></div></div>"
    )


def chart(kind: str, i: int, about: str, note: str = "") -> str:
    """The place of a chart that the script draws; `about` is read aloud."""
    more = f' data-note="{note}"' if note else ""
    named = f'role="figure" aria-label="{escaped(about)}"'
    return f'<div class="chart" data-chart="{kind}" data-env="{i}"{more} {named}></div>'


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
