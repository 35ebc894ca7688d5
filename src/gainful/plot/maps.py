"""MDPs that are too large for a graph, as maps: of the cells of a grid, or of states and actions."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.layout import LabelGrid
from gainful.mdp.model import MDP
from gainful.planning.plan import Plan
from gainful.plot.style import (
    HAIR,
    INK,
    calm,
    checked_axes,
    colour_bar,
    figure_of,
    fitted,
    framed,
    heading,
    plain,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats: TypeAlias = NDArray[np.float64]

LARGEST_MAP = 20_000_000
"""Pairs of state and action in the largest map."""
DIRECTION_GLYPHS = {
    "up": "↑",
    "north": "↑",
    "down": "↓",
    "south": "↓",
    "left": "←",
    "west": "←",
    "right": "→",
    "east": "→",
}


def map_of_cells(mdp: MDP, plan: Plan | None, grid: LabelGrid, visits: Floats | None, ax: Axes | None) -> Figure:
    """States as the cells of a grid, coloured by bias (else visits, else best mean reward), with their action."""
    R, C = len(grid.row_values), len(grid.column_values)
    values, name = _cell_values(mdp, plan, visits)
    table = np.full((R, C), np.nan)
    table[grid.rows, grid.columns] = values
    glyphs = _glyphs(mdp) if plan is not None and max(R, C) <= 40 else {}
    says = f"{mdp.n_states:,} states are too many for a graph: the map of {name}"
    if plan is not None and glyphs:
        says += f", with the policy's actions{_glyphs_in_words(mdp, plan, glyphs)}"
    unit = min(0.5, 9.0 / C, 8.0 / R)
    if ax is None:
        width, height = C * unit, R * unit
        right = max(0.95, 4.6 - 0.65 - width)
        below = textwrap.fill(shown(says, 160), int((width + right) / 0.072))
        _, axes = framed((width, height), 0.65, right, 0.55, 0.45 + 0.18 * (1 + below.count("\n")))
    else:
        axes = checked_axes(ax)
        below = fitted(axes, shown(says, 160))
    calm(axes, grid=False)
    norm = linear_colours(values)
    drawn = axes.imshow(np.ma.masked_invalid(table), cmap="viridis", norm=norm, interpolation="nearest")
    axes.set_facecolor(HAIR)
    colour_bar(axes, drawn, name, beside=0.12 if ax is None else None)
    sides = ((axes.xaxis, grid.column_values, grid.column_name), (axes.yaxis, grid.row_values, grid.row_name))
    for axis, numbers, called in sides:
        step = max(1, math.ceil(len(numbers) / 12))
        axis.set_ticks(range(0, len(numbers), step), [str(x) for x in numbers[::step]])
        plain(axis.label).set_text(shown(called, 30))
    if plan is not None and glyphs:
        for s in range(mdp.n_states):
            glyph = glyphs[int(plan.policy[s].argmax())]
            text = axes.text(float(grid.columns[s]), float(grid.rows[s]), glyph, ha="center", va="center")
            plain(text).set_color(ink_on(drawn.cmap(drawn.norm(values[s]))))
            text.set_fontsize(max(5.0, 26 * unit))
    heading(axes, shown(mdp.name or "MDP", 45), below)
    return figure_of(axes)


def _cell_values(mdp: MDP, plan: Plan | None, visits: Floats | None) -> tuple[Floats, str]:
    """What colours the cells, and its name."""
    if plan is not None:
        return plan.bias, "bias" if mdp.units.objective == "reward" else "bias (cost)"
    if visits is not None:
        return visits, "visits"
    best = np.where(mdp.allowed, mdp.rewards, -np.inf).max(axis=1)
    return mdp.units.amount(best), f"best mean {mdp.units.objective}"


def _glyphs_in_words(mdp: MDP, plan: Plan, glyphs: dict[int, str]) -> str:
    """What the glyphs stand for; nothing if they are arrows."""
    if set(glyphs.values()) <= set(DIRECTION_GLYPHS.values()):
        return ""
    used = sorted({int(a) for a in plan.policy.argmax(axis=1)})
    return ": " + ", ".join(f"{glyphs[a]} = {mdp.action_name(a)}" for a in used)


def _glyphs(mdp: MDP) -> dict[int, str]:
    """An arrow per action if all of them are directions, else their first letters if those differ, else numbers."""
    names = [mdp.action_name(a).strip() for a in range(mdp.n_actions)]
    found = [DIRECTION_GLYPHS.get(name.lower(), "") for name in names]
    if not all(found):
        found = [shown(name, 8)[:1] for name in names]
    if len(set(found)) < len(found) or not all(found):
        found = [str(a) for a in range(mdp.n_actions)]
    return dict(enumerate(found))


def map_of_pairs(mdp: MDP, plan: Plan | None, why: str, ax: Axes | None, *, names: bool) -> Figure:
    """States to the right, actions upwards, coloured by what an action loses once, or by mean rewards.

    `names` writes the labels of the states.
    """
    from matplotlib.ticker import MaxNLocator

    S, A = mdp.n_states, mdp.n_actions
    if S * A > LARGEST_MAP:
        raise InvalidArgumentError(
            "mdp",
            mdp,
            f"at most {LARGEST_MAP:,}",
            "draw mdp.restricted(states)",
            problem=f"the MDP has {S * A:,} pairs of state and action",
        )
    if plan is not None:
        q = mdp.q_values(mdp.units.amount(plan.bias))
        table, name = q.max(axis=1, keepdims=True) - np.where(mdp.allowed, q, np.nan), "loss of the action"
    else:
        table, name = np.where(mdp.allowed, mdp.units.amount(mdp.rewards), np.nan), f"mean {mdp.units.objective}"
    dots = plan is not None and S <= 150
    says = f"{why}: {name} by state and action" + (" (dots: the policy)" if dots else "")
    actions = [shown(mdp.action_name(a), 24) for a in range(A)]
    states = [shown(mdp.state_name(s), 24) for s in range(S)] if names and mdp.state_labels else []
    if ax is None:
        left, bottom = 0.5 + 0.07 * max(map(len, actions)), 0.55 + 0.07 * max(map(len, states), default=0)
        _, axes = framed((6.4, min(5.0, max(1.2, 0.3 * A))), left, 0.95, bottom, 0.65)
    else:
        axes = checked_axes(ax)
    calm(axes, grid=False)
    drawn = axes.imshow(
        np.ma.masked_invalid(table.T),
        cmap="viridis" if plan is None else "viridis_r",
        norm=linear_colours(table),
        aspect="auto",
        interpolation="nearest",
        origin="lower",
    )
    axes.set_facecolor(HAIR)
    colour_bar(axes, drawn, name, beside=0.12 if ax is None else None)
    if plan is not None and dots:
        s, a = np.nonzero(plan.policy > 0.0)
        axes.plot(s, a, "o", color="white", markeredgecolor=INK, markersize=3.5, markeredgewidth=0.6, label="_policy")
    step = max(1, math.ceil(A / 24))
    axes.set_yticks(range(0, A, step), actions[::step])
    if states:
        axes.set_xticks(range(S), states, rotation=90)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for tick in [*axes.get_yticklabels(), *(axes.get_xticklabels() if states else [])]:
        plain(tick)
    axes.set_xlabel("state", fontsize=10)
    axes.set_ylabel("action", fontsize=10)
    heading(axes, shown(mdp.name or "MDP", 60), shown(says, 110) if ax is None else fitted(axes, shown(says, 110)))
    return figure_of(axes)


# ---------------------------------------------------------------------- colours


def linear_colours(values: Floats) -> Any:
    """A linear scale over the finite values."""
    from matplotlib.colors import Normalize

    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return Normalize(low, high if high > low else low + 1.0)


def ink_on(face: Any) -> str:
    """The colour of text on a face: dark on pale, white on dark."""
    if isinstance(face, str):
        return INK
    red, green, blue = face[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
