"""Which parameter of a sweep matters, where the configurations of one agent differ in several."""

from __future__ import annotations

from typing import Any

from gainful.experiments.parameter_importance import ParameterEffect, parameter_effects
from gainful.report import tables
from gainful.report.content import Environment, Group
from gainful.report.writing import escaped
from gainful.simulation.run import MEASURE_NAMES


def effects_of(environment: Environment) -> dict[str, tuple[ParameterEffect, ...]]:
    """The effects of the parameters of each agent (by its name) that varies at least two of them."""
    measure = environment.measure
    by_name: dict[str, list[Group]] = {}
    for group in environment.groups:
        if group.row.get(f"{measure}_mean") is not None:
            by_name.setdefault(str(group.row["name"]), []).append(group)
    found = {}
    for name, groups in by_name.items():
        effects = parameter_effects(
            [g.row["parameters"] for g in groups], [float(g.row[f"{measure}_mean"]) for g in groups]
        )
        if effects:
            found[name] = effects
    return found


def importance_section(environment: Environment) -> str:
    """Bars of the shares, and the mean regret at each level; empty if no agent varies several parameters."""
    parts = []
    for name, effects in effects_of(environment).items():
        n = sum(effects[0].configurations)
        rows = "".join(_row(effect) for effect in effects)
        about = f"Parameters of {name} in {environment.label}"
        parts.append(
            f'<p class="caption">{escaped(name)}, {n} configurations: the share of the differences between their mean '
            f"{MEASURE_NAMES[environment.measure]}s (on a logarithmic scale) that each parameter explains alone, and "
            "the mean at each of its values.</p>"
            f'<div class="box" tabindex="0" role="region" aria-label="{escaped(about)}"><table class="importance">'
            '<thead><tr><th scope="col" class="word">Parameter</th><th scope="col" class="number">Share</th>'
            f"<th scope='col' class='word'>Mean regret at each value</th></tr></thead><tbody>{rows}</tbody></table>"
            "</div>"
        )
    if not parts:
        return ""
    return f'<div class="part"><h3>Which parameter matters</h3>{"".join(parts)}</div>'


def _row(effect: ParameterEffect) -> str:
    (share,) = tables.shares([effect.share])
    least = min(effect.means)
    levels = "".join(
        f'<span class="level{" least" if mean == least else ""}">{escaped(level)}: {escaped(text)}</span>'
        for level, mean, text in zip(effect.levels, effect.means, tables.amounts(effect.means), strict=True)
    )
    return (
        f'<tr><th scope="row" class="word">{escaped(effect.name)}</th>'
        f'<td class="number share" style="--share:{effect.share:.4f}">{escaped(share)}</td>'
        f'<td class="word levels">{levels}</td></tr>'
    )


def effects_json(environment: Environment) -> dict[str, Any]:
    """The same as plain values."""
    return {
        agent: [
            {"parameter": e.name, "share": e.share, "levels": list(e.levels), "means": list(e.means)} for e in effects
        ]
        for agent, effects in effects_of(environment).items()
    }
