"""One self-contained HTML file: it opens from a disk, without a network, and requests nothing.

Text from a spec or a store is escaped where it enters the HTML, and the JSON that the script reads contains no `<`. A
content security policy names the two scripts by their hashes, so that nothing else can run, and allows no requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

from gainful.plot.centres import CENTRES, DEFAULT_CENTRE
from gainful.report import tables
from gainful.report.audit_section import audit_section
from gainful.report.collect import collect
from gainful.report.content import Environment, Group, Report
from gainful.report.page_data import drawable_groups, page_data, shown_measures
from gainful.report.writing import REPORT_FILE, asset, escaped, head, plotly_bundle, write_page

SHOWN_FAILURES = 100
"""Failures that are shown with their tracebacks."""


def write_report(folder: str | Path, file: str | Path | None = None) -> Path:
    """Write the report of an experiment as one HTML file.

    Parameters
    ----------
    folder : path
        The folder of the experiment.
    file : path, optional
        Where to write the page; by default `report.html` in the folder. If anything fails, the file stays as it was.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ExperimentError
        If no run has finished yet.
    StoreError
        If the file cannot be written.
    """
    return save_page(collect(folder), file if file is not None else Path(folder) / REPORT_FILE)


def save_page(report: Report, file: str | Path) -> Path:
    """Write the page of a collected report, and return its file."""
    return write_page(page(report), file)


def page(report: Report) -> str:
    """The page of a collected report, as HTML."""
    bundle, script = plotly_bundle(), asset("page.js")
    policy = (
        f"default-src 'none'; script-src {_hash(bundle)} {_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    title = report.title or "Experiment"
    sections = "".join(_environment(report, e, i) for i, e in enumerate(report.environments))
    links = [(f"env-{i}", e.label) for i, e in enumerate(report.environments)] + [("origin", "Spec and provenance")]
    if report.audit is not None:
        links.insert(-1, ("audit", "Audit"))
    if report.failures:
        links.append(("failures", "Failures"))
    nav = "".join(f'<a href="#{place}">{escaped(name)}</a>' for place, name in links)
    notes = "".join(f"<p>{escaped(part)}</p>" for part in report.notes.split("\n\n") if part.strip())
    return f"""{head(title, policy)}<body>
<a class="skip" href="#main">Skip to the results</a>
<div class="top"><nav aria-label="Sections">{nav}</nav><button type="button" id="theme">Dark</button></div>
<main id="main">
<header>
<h1>{escaped(title)}</h1>
<p class="lead">{escaped(_lead(report))}</p>
{f'<div class="notes">{notes}</div>' if notes else ""}
<noscript><p>The tables are complete without JavaScript; the charts need it.</p></noscript>
</header>
{_tools(report)}
{sections}
{"" if report.audit is None else audit_section(report.audit)}
{_origin(report)}
{_failures(report)}
<footer>Made {time.strftime("%Y-%m-%d %H:%M", time.gmtime())} UTC by gainful. This file is self-contained and makes no
network requests.</footer>
</main>
<script type="application/json" id="data">{_json(page_data(report))}</script>
<script>{bundle}</script>
<script>{script}</script>
</body>
</html>
"""


# ---------------------------------------------------------------------- parts


def _lead(report: Report) -> str:
    planned, finished = (sum(row[name] for row in report.progress) for name in ("planned", "finished"))
    runs = f"{finished:,} runs" if finished == planned else f"{finished:,} of {planned:,} runs"
    return (
        f"{runs}: {_count(len(report.agents), 'agent')}, {_count(len(report.environments), 'environment')}, "
        f"{_count(len(report.seeds), 'seed')}"
    )


_CHOICES: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Regret", "measure", (("expected_regret", "expected"), ("pseudo_regret", "pseudo"), ("regret", "realised"))),
    ("Centre", "centre", (("median", "median"), ("mean", "mean"), ("iqm", "IQM"))),
    ("x axis", "x", (("log", "log"), ("linear", "linear"))),
    ("y axis", "y", (("log", "log"), ("linear", "linear"))),
)


def _tools(report: Report) -> str:
    groups = []
    measures = shown_measures(report)
    for name, key, possible in _CHOICES:
        values = [v for v in possible if key != "measure" or v[0] in measures]
        if not values:
            continue
        buttons = "".join(
            f'<button type="button" data-key="{key}" data-value="{value}" aria-pressed="{_truth(i == 0)}"'
            f"{_about(value)}>{word}</button>"
            for i, (value, word) in enumerate(values)
        )
        groups.append(
            f'<span class="choice" role="group" aria-label="{name}"><span>{name}</span><span>{buttons}</span></span>'
        )
    shown = max((len(c.seeds) for e in report.environments for g in e.groups for c in g.curves.values()), default=0)
    most = max((g.row["runs"] for e in report.environments for g in e.groups), default=0)
    some = f" ({shown} of {most} seeds)" if shown < most else ""
    for key, word, on in (
        ("step", "per step", False),
        ("bands", "bands", True),
        ("seeds", f"single runs{some}", False),
    ):
        groups.append(
            f'<span class="choice"><span><button type="button" data-key="{key}" aria-pressed="{_truth(on)}">{word}'
            "</button></span></span>"
        )
    return f'<div class="tools" role="toolbar" aria-label="Display of the regret curves">{"".join(groups)}</div>'


def _about(value: str) -> str:
    return f' title="{escaped(tables.ABOUT[value])}"' if value in tables.ABOUT else ""


def _environment(report: Report, environment: Environment, i: int) -> str:
    name = escaped(environment.label)
    parts = [
        f'<section id="env-{i}" aria-labelledby="env-{i}-name">',
        f'<h2 id="env-{i}-name">{name}</h2>',
        f'<p class="sub">{escaped(_made_as(environment))}{escaped(tables.subtitle(environment))}</p>',
        _table(report, environment, i, tables.headline(environment), f"Regret of each agent in {environment.label}"),
        _remarks(environment),
        _promises(environment),
        _part("Regret", _regret_section(environment, i)),
        _part("Optimism", _optimism_section(environment, i)),
        _part("Cost of planning", _planning_section(report, environment, i)),
        _part("Bonus against visits", _bonus_section(environment, i)),
        _part("The problem and the learned policy", _problem_section(environment, i)),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _part(head: str, content: str) -> str:
    return f'<div class="part"><h3>{head}</h3>{content}</div>'


def _made_as(environment: Environment) -> str:
    given = ", ".join(f"{name} = {_shown(value)}" for name, value in environment.parameters.items())
    return f"{environment.name} with {given}: " if given else f"{environment.name}: "


def _table(
    report: Report, environment: Environment, i: int, columns: list[tables.Column], caption: str, bar: int = -1
) -> str:
    keyed = " keyed" if bar < 0 else ""
    head = "".join(
        f'<th scope="col" aria-sort="none" class="{_class(c, j)}{keyed if j == 0 else ""}" title="{escaped(c.about)}">'
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
                key = _key(report.agents.index(group.agent), i, group.agent) if bar < 0 else ""
                cells.append(f'<th scope="row" class="word agent{keyed}" {data} {name}>{key}{escaped(c.texts[r])}</th>')
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


def _key(index: int, environment: int, agent: str) -> str:
    return (
        f'<button type="button" class="key" data-env="{environment}" data-agent="{index}" aria-pressed="true" '
        f'aria-label="{escaped(f"Show the curve of {agent}")}"><svg viewBox="0 0 22 10" aria-hidden="true">'
        f'<line x1="1" y1="5" x2="21" y2="5" stroke-width="3" data-agent="{index}"/></svg></button>'
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


def _regret_section(environment: Environment, i: int) -> str:
    if not any(g.curves for g in environment.groups):
        return '<p class="why">There are no curves, because no agent has runs that share a checkpoint.</p>'
    what = f'<span class="centre-caption">{escaped(CENTRES[DEFAULT_CENTRE].caption)}</span>'
    if environment.gain is None:
        what = f"The optimal gain is unknown here, so the chart shows the reward per step. {what}"
    return (
        f'<p class="caption">{what} Click a name in the legend, or its key in the table, to hide a curve; double-click '
        "a name to see it alone.</p>"
        + _chart("regret", i, f"Regret curves of {len(environment.groups)} agents in {environment.label}", f"low-{i}")
        + f'<p class="why" id="low-{i}" hidden>The logarithmic scale cannot show values at or below 0; the linear '
        "scale shows them.</p>"
    )


def _optimism_section(environment: Environment, i: int) -> str:
    shown = [g for g in environment.groups if g.optimism]
    if not shown:
        return '<p class="why">No run stored the gain of its plans.</p>'
    target = "the optimal gain g*" if environment.gain is not None else "the optimal gain, which is unknown here"
    return (
        f'<p class="caption">The gain of the plan of each episode, with its certified bracket, compared with {target}. '
        "For each agent the run with the lowest seed is shown.</p>"
        + _chart("optimism", i, f"Gain of the plans of {len(shown)} agents over episodes in {environment.label}")
    )


def _planning_section(report: Report, environment: Environment, i: int) -> str:
    table = _table(
        report, environment, i, tables.planning(environment), f"Cost of planning in {environment.label}", bar=1
    )
    return '<p class="caption">CPU time per run, averaged over runs. A sweep is one pass over all states.</p>' + table


def _bonus_section(environment: Environment, i: int) -> str:
    shown = [g for g in environment.groups if g.bonus]
    if not shown:
        return '<p class="why">No agent here stores a bonus, or the problem is too large to store it.</p>'
    return (
        '<p class="caption">One point for each visited pair of state and action, at the end of the run with the lowest '
        "seed.</p>" + _chart("bonus", i, f"Bonus against visits of {len(shown)} agents in {environment.label}")
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
        + _chart("visits", i, "Visits of each state and action")
        + '<p class="caption">Visits. A dot marks the action of the last plan.</p></div><div>'
        + _chart("values", i, "Value of each state")
        + '<p class="caption">Values of the last plan; an orange diamond marks a state where the span constraint is '
        "binding.</p></div></div>"
    )


def _chart(kind: str, i: int, about: str, note: str = "") -> str:
    more = f' data-note="{note}"' if note else ""
    named = f'role="figure" aria-label="{escaped(about)}"'
    return f'<div class="chart" data-chart="{kind}" data-env="{i}"{more} {named}></div>'


def _origin(report: Report) -> str:
    seeds = ", ".join(map(str, report.seeds[:20])) + (f", … ({len(report.seeds):,})" if len(report.seeds) > 20 else "")
    if len(report.seeds) > 3 and report.seeds == list(range(report.seeds[0], report.seeds[-1] + 1)):
        seeds = f"{report.seeds[0]} … {report.seeds[-1]}"
    facts = [
        ("Seeds", seeds),
        ("Time", f"{_duration(report.seconds)}, summed over all runs"),
        ("Finished", f"{_moment(report.first_finished)} to {_moment(report.last_finished)}"),
    ]
    for made in report.made_by:
        commit = f", commit {made['commit'][:12]}{'+' * made['commit'].endswith('+')}" if made["commit"] else ""
        versions = (
            f"gainful {made['version']}{commit}, results version {made['results_version']}, Python {made['python']}, "
            f"{made['packages']}, {made['platform']}"
        )
        facts.append((f"{_count(made['runs'], 'run')} made by", versions))
    older = sum(row["older"] for row in report.progress)
    if older:
        facts.append(("Left out", f"{_count(older, 'run')} with another results version"))
    listed_facts = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in facts)
    return (
        '<section id="origin" aria-labelledby="origin-name"><h2 id="origin-name">Spec and provenance</h2>'
        f"<dl>{listed_facts}</dl><details><summary>The spec</summary><pre>{escaped(report.spec)}</pre></details>"
        "</section>"
    )


def _failures(report: Report) -> str:
    if not report.failures:
        return ""
    items = []
    for failure in report.failures[:SHOWN_FAILURES]:
        head = f"{failure['agent']} in {failure['environment']}, seed {failure['seed']}, try {failure['try']}"
        what = f"{failure['kind']}: {failure['message']}"
        trace = f"<pre>{escaped(failure['traceback'])}</pre>" if failure["traceback"] else ""
        items.append(f"<details><summary>{escaped(head)}</summary><p>{escaped(what)}</p>{trace}</details>")
    more = len(report.failures) - SHOWN_FAILURES
    rest = f'<p class="why">… and {more:,} more; gainful status DIR --json lists all of them.</p>' if more > 0 else ""
    return (
        '<section id="failures" aria-labelledby="failures-name"><h2 id="failures-name">Failures</h2>'
        f'<p class="sub">{_count(len(report.failures), "run")} failed; everything above leaves them out.</p>'
        f"{''.join(items)}{rest}</section>"
    )


# ---------------------------------------------------------------------- text


def _json(value: Any) -> str:
    """JSON that cannot end a script element."""
    written = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: every other character as \\uXXXX
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.3g} h"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
