"""An audit as a section of the report, or as a page of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gainful.audit.findings import Worst
from gainful.number_text import count, four_digits
from gainful.report.audit_summary import (
    VERDICT_MARKS,
    audit_summary,
    counted,
    fold_id,
    name_of_audit,
    size_of,
)
from gainful.report.writing import escaped, head, write_page

TABLE_HEAD = (
    ("Statement", "word agent"),
    ("Verdict", "word"),
    ("Failed runs", "number"),
    ("95 % bounds", "range"),
    ("Worst case: found, allowed, where", "word"),
)


def audit_section(found: dict[str, Any], *, unfolded: bool = False) -> str:
    """The section of a page that shows what `gainful audit` wrote: for each audit a table of verdicts and a chart.

    Several audits are summarised first, and folded. The table of a single one is folded if everything in it is
    certified, unless `unfolded` is true.
    """
    audits = found["audits"]
    broken = [one for one in audits if not one["ok"]]
    lead = "No statement that should hold is violated."
    if broken:
        lead = f"{len(broken)} of {len(audits)} audits found a violation of a statement that should hold."
    name = "Verdicts" if unfolded else "Audit"  # a page of its own has the other word above
    parts = [
        f'<section id="audit" aria-labelledby="audit-name"><h2 id="audit-name">{name}</h2>',
        f'<p class="winner">{escaped(lead)}</p>'
        '<p class="sub">Do the theorems hold on these runs? For a statement that may fail in a fraction δ of all runs, '
        "each run is one trial; it is certified or violated if a one-sided 95 % Clopper–Pearson bound says so.</p>",
        *([audit_summary(audits), *map(_folded, range(len(audits)), audits)] if len(audits) > 1 else ()),
        *(_unfolded(one, unfolded) for one in audits if len(audits) == 1),
        _skipped(found.get("not_audited", [])),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def save_audit_page(found: dict[str, Any], file: str | Path) -> Path:
    """Write an audit as a page of its own, which contains no script, and return its file."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    version = found["made_by"]["version"]
    title = f"Audit: {found['title']}" if found["title"] else "Audit"
    page = f"""{head(title, policy)}<body>
<main id="main">
<header><h1>{escaped(title)}</h1></header>
{audit_section(found, unfolded=True)}
<footer>Made {time.strftime("%Y-%m-%d %H:%M", time.gmtime())} UTC by gainful {escaped(version)}.</footer>
</main>
</body>
</html>
"""
    return write_page(page, file)


def _folded(i: int, one: dict[str, Any]) -> str:
    """One of several audits: a fold with everything about it, which the links of the summary open."""
    return (
        f'<details class="audit-fold"><summary><h3>{escaped(name_of_audit(one))}</h3> '
        f'<span class="caption">{counted(one)}</span></summary>'
        f'<div id="{fold_id(i)}">{_size(one)}{_table(one)}{_facts(one)}{_chart(one)}</div></details>'
    )


def _unfolded(one: dict[str, Any], unfolded: bool) -> str:
    """The only audit, of which no more than the table is folded."""
    words = [verdict["verdict"] for verdict in one["verdicts"]]
    shown = unfolded or "violated" in words or "inconclusive" in words
    return (
        f'<div class="part"><h3>{escaped(name_of_audit(one))}</h3>{_size(one)}'
        f"<details{' open' if shown else ''}><summary>{len(words)} statements: {counted(one)}</summary>"
        f"{_table(one)}</details>{_facts(one)}{_chart(one)}</div>"
    )


def _size(one: dict[str, Any]) -> str:
    promised = "" if not one["void"] else f" No guarantee applies here: {one['void']}."
    return f'<p class="caption">{size_of(one)}, δ = {one["delta"]:g}.{escaped(promised)}</p>'


def _table(one: dict[str, Any]) -> str:
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in TABLE_HEAD)
    label = escaped(f"Audit of {name_of_audit(one)}")
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{label}"><table class="audit"><thead><tr>{head}</tr>'
        f"</thead><tbody>{''.join(map(_row, one['verdicts']))}</tbody></table></div>"
    )


def _row(v: dict[str, Any]) -> str:
    word = v["verdict"]
    because = v.get("implied_by") or ()  # audits stored by earlier versions have none
    words = f"implied by {' and '.join(because)}" if because else word
    explained = word in ("not applicable", "no theorem")
    shown = words if v["promised"] or explained else f"{words}, not guaranteed"
    kind = word.replace(" ", "-")
    about = escaped(f"{v['text']} ({v['source']})")
    cells = [
        f'<th scope="row" class="word agent" title="{about}">{escaped(v["text"])}<br>'
        f'<span class="name">{escaped(v["statement"])}</span></th>',
        f'<td class="word verdict {kind}"><span aria-hidden="true">{VERDICT_MARKS[word]}</span> {escaped(shown)}</td>',
    ]
    if explained:
        why = v.get("remark", v["reason"])
        return f"<tr>{''.join(cells)}<td></td><td></td><td class='word'>{escaped(why)}</td></tr>"
    low, high = v["frequency"]
    bounds = f"{low:.3f} … {high:.3f}" if v["allowed"] else "none allowed"
    cells.append(f'<td class="number">{v["failed_runs"]:,} of {v["runs"]:,}</td><td class="range">{bounds}</td>')
    return f"<tr>{''.join(cells)}<td class='word'>{escaped(_worst(v['worst']))}</td></tr>"


def _worst(worst: dict[str, Any] | None) -> str:
    if worst is None:
        return ""
    if worst["found"] is None or worst["allowed"] is None:
        return f"not a number; seed {worst['seed']}, episode {worst['episode']:,}, step {worst['step']:,}"
    return str(Worst(**{**worst, "excess": math.inf if worst["excess"] is None else worst["excess"]}))


def _facts(one: dict[str, Any]) -> str:
    curves, facts = one["regret"], [("Guarantee", one["guarantee"])]
    last = "unknown, because the optimal gain is unknown"
    if curves["mean"][-1] is not None:
        last = f"{four_digits(curves['mean'][-1])} on average, {four_digits(curves['largest'][-1])} at most"
        if curves["bound"]:
            last += f"; explicit bound {four_digits(curves['bound'][-1])}"
    facts.append((f"Regret after {count(one['horizon'], 'step')}", last))
    if one["terms"]:
        terms = (f"{k} {four_digits(t['measured'])} of {four_digits(t['allowed'])}" for k, t in one["terms"].items())
        facts.append(("Terms of the bound", "; ".join(terms)))
    if curves["lower_bound"]:
        needs = curves["lower_bound_needs"]
        why = (
            f"not a lower bound here, because that needs {needs}"
            if needs
            else "the cost to any learner of some MDP of this size"
        )
        facts.append(("0.015·sqrt(DSAT)", f"{four_digits(curves['lower_bound'][-1])}: {why}"))
    if one["tightness"]:
        facts.append(
            (
                "Optimism of the last plan",
                f"L̂h* lies {four_digits(one['tightness']['mean'])} above Lh* on average over states, "
                f"{four_digits(one['tightness']['largest'])} at most",
            )
        )
    if one["note"]:
        facts.append(("Note", one["note"]))
    return "<dl>" + "".join(f"<dt>{escaped(a)}</dt><dd>{escaped(b)}</dd>" for a, b in facts) + "</dl>"


def _skipped(skipped: Sequence[dict[str, Any]]) -> str:
    if not skipped:
        return ""
    items = "".join(
        f"<dt>{escaped(one['agent'])} in {escaped(one['environment'])}</dt><dd>{escaped(one['reason'])}</dd>"
        for one in skipped
    )
    return f"<details><summary>Not audited</summary><dl>{items}</dl></details>"


# ---------------------------------------------------------------------- the chart

CHART_WIDTH, CHART_HEIGHT = 640, 300
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 62, 190, 12, 36
LABEL_GAP = 15
"""Pixels between the labels of two lines."""
CHART_LINES = (
    ("bound", "explicit bound", "var(--mark)", "6 4"),
    ("largest", "largest regret", "var(--high)", "2 3"),
    ("mean", "mean regret", "var(--high)", ""),
    ("lower_bound", "0.015·sqrt(DSAT)", "var(--soft)", "1 4"),
)
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class _Scale:
    """From powers of ten to pixels."""

    right: float
    low: int
    high: int

    def at(self, x: float, y: float) -> tuple[float, float]:
        width, height = CHART_WIDTH - MARGIN_RIGHT - MARGIN_LEFT, CHART_HEIGHT - MARGIN_BOTTOM - MARGIN_TOP
        across, up = x / self.right, (y - self.low) / (self.high - self.low)
        return MARGIN_LEFT + across * width, CHART_HEIGHT - MARGIN_BOTTOM - up * height


def _chart(one: dict[str, Any]) -> str:
    """Regret over steps with its bounds, both axes logarithmic: plain SVG."""
    curves = one["regret"]
    drawn = {}
    for key, *_ in CHART_LINES:
        points = [(T, y) for T, y in zip(curves["steps"], curves[key] or (), strict=False) if y is not None and y > 0]
        if len(points) > 1:
            drawn[key] = [(math.log10(T), math.log10(y)) for T, y in points]
    if not drawn:
        return ""
    heights = [y for points in drawn.values() for _, y in points]
    scale = _Scale(math.log10(max(curves["steps"])), math.floor(min(heights)), math.ceil(max(heights)))
    if scale.right <= 0.0 or scale.high <= scale.low:
        return ""
    parts = [*_grid_lines(scale), *_lines_and_labels(scale, drawn)]
    middle = (MARGIN_LEFT + CHART_WIDTH - MARGIN_RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{CHART_HEIGHT - 2}" text-anchor="middle">steps</text>')
    title = escaped(f"Regret of {name_of_audit(one)} over steps, with its bounds")
    return (
        f'<figure class="audit-chart"><svg viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" role="img">'
        f"<title>{title}</title>{''.join(parts)}</svg></figure>"
    )


def _grid_lines(scale: _Scale) -> list[str]:
    parts = []
    for x in range(math.floor(scale.right) + 1):
        px, py = scale.at(x, scale.low)
        parts.append(f'<line class="grid" x1="{px:.1f}" y1="{MARGIN_TOP}" x2="{px:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text x="{px:.1f}" y="{py + 16:.1f}" text-anchor="middle">{_power_of_ten(x)}</text>')
    for y in range(scale.low, scale.high + 1, max(1, math.ceil((scale.high - scale.low) / 6))):
        px, py = scale.at(0.0, y)
        end = scale.at(scale.right, y)[0]
        parts.append(f'<line class="grid" x1="{px:.1f}" y1="{py:.1f}" x2="{end:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text x="{px - 6:.1f}" y="{py + 4:.1f}" text-anchor="end">{_power_of_ten(y)}</text>')
    return parts


def _lines_and_labels(scale: _Scale, drawn: dict[str, list[tuple[float, float]]]) -> list[str]:
    """The curves, each named at its right end; labels are moved down where they would overlap."""
    parts, ends = [], []
    for key, label, colour, dash in CHART_LINES:
        if key in drawn:
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (scale.at(*point) for point in drawn[key]))
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
            ends.append((scale.at(*drawn[key][-1])[1], label, colour))
    x, y = CHART_WIDTH - MARGIN_RIGHT + 8, -math.inf
    for height, label, colour in sorted(ends):
        y = max(height, y + LABEL_GAP)
        parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" style="fill:{colour}">{label}</text>')
    return parts


def _power_of_ten(x: int) -> str:
    return {0: "1", 1: "10", 2: "100", 3: "1,000"}.get(x, f"10{str(x).translate(SUPERSCRIPTS)}")
