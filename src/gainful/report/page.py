"""One self-contained HTML file: it opens from a disk, without a network, and requests nothing.

Text from a spec or a store is escaped where it enters the HTML, and the JSON that the script reads contains no `<`. A
content security policy names the two scripts by their hashes, so that nothing else can run, and allows no requests.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from gainful.report import tables
from gainful.report.audit_section import audit_section
from gainful.report.collect import collect
from gainful.report.comparison_section import comparison_section
from gainful.report.content import Report
from gainful.report.environment_section import chart, environment_section
from gainful.report.live_note import LiveNote, live_note
from gainful.report.page_data import page_data, profile_factors, shown_measures
from gainful.report.writing import REPORT_FILE, asset, escaped, head, page_policy, plotly_bundle, write_page

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


def page(report: Report, live: LiveNote | None = None) -> str:
    """The page of a collected report, as HTML; with `live`, one that asks its server for news."""
    scripts = [plotly_bundle(), asset("page.js"), *([asset("watch.js")] if live else [])]
    title = report.title or "Experiment"
    sections = "".join(environment_section(report, e, i) for i, e in enumerate(report.environments))
    notes = "".join(f"<p>{escaped(part)}</p>" for part in report.notes.split("\n\n") if part.strip())
    about = f'<details class="notes"><summary>About this experiment</summary>{notes}</details>' if notes else ""
    end = (
        "It is renewed while the experiment runs."
        if live
        else "This file is self-contained and makes no network requests."
    )
    return f"""{head(title, page_policy(scripts, live))}<body>
<a class="skip" href="#main">Skip to the results</a>
<div class="top"><nav aria-label="Sections">{_links(report)}</nav><button type="button" id="theme">Dark</button></div>
{live_note(live) if live else ""}<main id="main">
<header>
<div class="title"><h1>{escaped(title)}</h1><p class="lead">{escaped(_lead(report))}</p></div>
{about}
<noscript><p>The tables are complete without JavaScript, except that of single runs; the charts need it.</p></noscript>
</header>
{_tools(report)}
{sections}
{"" if report.comparison is None else comparison_section(report.comparison)}
{_profile(report)}
{"" if report.audit is None else audit_section(report.audit)}
{_origin(report)}
{_failures(report)}
<footer>Made {time.strftime("%Y-%m-%d %H:%M", time.gmtime())} UTC by gainful. {end}</footer>
</main>
<script type="application/json" id="data">{_json(page_data(report))}</script>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


# ---------------------------------------------------------------------- parts


def _links(report: Report) -> str:
    links = [(f"env-{i}", e.label) for i, e in enumerate(report.environments)]
    links += [("comparison", "Who is better")] if report.comparison is not None else []
    links += [("profile", "Performance profile")] if len(profile_factors(report)) > 1 else []
    links += [("audit", "Audit")] if report.audit is not None else []
    links += [("origin", "Spec and provenance")]
    links += [("failures", "Failures")] if report.failures else []
    return "".join(f'<a href="#{place}">{escaped(name)}</a>' for place, name in links)


def _lead(report: Report) -> str:
    planned, finished = (sum(row[name] for row in report.progress) for name in ("planned", "finished"))
    runs = _count(finished, "run") if finished == planned else f"{finished:,} of {planned:,} runs"
    if report.failures and finished < planned:
        runs += f", {len(report.failures):,} failed"
    return (
        f"{runs}: {_count(len(report.agents), 'agent')}, {_count(len(report.environments), 'environment')}, "
        f"{_count(len(report.seeds), 'seed')}"
    )


_CHOICES: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Regret", "measure", (("expected_regret", "expected"), ("pseudo_regret", "pseudo"), ("regret", "realised"))),
    ("Centre", "centre", (("mean", "mean"), ("median", "median"), ("iqm", "IQM"))),
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
    return (
        '<details class="display" open><summary>Display</summary>'
        f'<div class="tools" role="toolbar" aria-label="Display of the regret curves">{"".join(groups)}</div></details>'
    )


def _about(value: str) -> str:
    return f' title="{escaped(tables.ABOUT[value])}"' if value in tables.ABOUT else ""


def _profile(report: Report) -> str:
    factors = profile_factors(report)
    if len(factors) < 2:
        return ""
    problems = max(f.size for f in factors.values())
    about = f"Performance profiles of {_count(len(factors), 'agent')} over {_count(problems, 'problem')}"
    return (
        '<section id="profile" aria-labelledby="profile-name"><h2 id="profile-name">Performance profile</h2>'
        f'<p class="caption">Over {_count(problems, "problem")} (an environment with a seed): on which share of them '
        "the final regret of an agent is at most τ times that of the best agent there. At τ = 1 it is the share of "
        "problems on which the agent is the best; the higher a curve, the better.</p>"
        f"{chart('profile', 0, about)}</section>"
    )


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
        first = what.splitlines()[0]
        brief = f"{head}: {first if len(first) <= 90 else first[:89] + '…'}"
        items.append(f"<details><summary>{escaped(brief)}</summary><p>{escaped(what)}</p>{trace}</details>")
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


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.3g} h"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
