"""What `gainful learn` prints: the curve, what was earned and lost, the policy learned, what to do next."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.console import printable
from gainful.cli.learned import TIE, LearnedRun
from gainful.cli.next_steps import WHICH_AGENT
from gainful.cli.sketch import axis_for, sketch
from gainful.simulation.run import MEASURE_NAMES, REGRETS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gainful.agents.learned_policy import LearnedPolicy

PAGE_WIDTH = 80
STATE_WIDTH, ACTION_WIDTH = 60, 24
"""Characters of a state's and an action's name that a table shows; a terminal may wrap them."""
MAP_WIDTH, MAP_HEIGHT = 64, 32
"""The largest policy on a plane that is drawn as a map."""
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def learned_page(found: LearnedRun, states_shown: int, suggestions: list[str]) -> list[RenderableType]:
    """The parts of the page, in order."""
    title = f"{found.factory.name} in {printable(found.name)}, seed {found.run.seed}, {found.seconds:.1f} s"
    parts: list[RenderableType] = [Text(title, style="bold"), Text(), *_curve(found), Text(), _facts(found)]
    if found.learned is not None and states_shown > 0:
        parts += [Text(), Text("policy learned", style="bold"), *_policy(found, found.learned, states_shown)]
    parts += [Text(), Text("what next", style="bold")]
    return [*parts, *(Text(line) for step in suggestions for line in _item(step))]


def _item(text: str) -> list[str]:
    return textwrap.wrap(text, PAGE_WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _curve(found: LearnedRun) -> list[RenderableType]:
    run = found.run
    if math.isnan(run.gain):
        counts, sums = np.diff(run.steps, prepend=0), np.diff(run.rewards, prepend=0.0)
        words = f"{found.kind} per step since the previous point, over steps (logarithmic)"
        lines = sketch(run.steps.tolist(), (found.units.sign * sums / counts + 0.0).tolist(), scale="linear")
    else:
        values = getattr(run, run.measure).tolist()
        known = [y for y in values if math.isfinite(y)]
        axis = axis_for(known, "logarithmic").name
        both = "both axes logarithmic" if axis == "logarithmic" else f"which are logarithmic; values are {axis}"
        words = f"{MEASURE_NAMES[run.measure]} over steps, {both}"
        lines = sketch(run.steps.tolist(), values)
    return [Text(words, style="dim"), Text("\n".join(lines))]


def _facts(found: LearnedRun) -> Table:
    run, agent = found.run, found.agent
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row(
        f"average {found.kind}",
        Text.assemble((numbers.digits(found.average), "bold green"), f" {found.per}, over {run.horizon:,} steps"),
    )
    share = "last tenth" if abs(found.last.share - 0.1) < 1e-3 else f"last {found.last.share:.1%}"
    grid.add_row(share, f"{numbers.digits(found.last_average)} {found.per}")
    _optimum(found, grid)
    if hasattr(found.simulation, "restarts"):
        grid.add_row("restarts", f"{found.simulation.restarts:,}")
    if found.gain_estimate is not None:
        estimate = f"{numbers.digits(found.gain_estimate)} {found.per}, in episode {len(run.episodes):,}"
        grid.add_row("plan's estimate", estimate)
    busy = max(run.planning_seconds + run.acting_seconds, 1e-9)
    planning = f"{run.planning_seconds / busy:.1%} of it planning"
    grid.add_row("speed", f"{run.horizon / busy / 1e6:.3g} million steps per second, {planning}")
    if found.factory.among_points:
        bins = sorted(set(agent.partition.bins))
        grid.add_row("cells", f"{agent.n_states:,}, {' or '.join(map(str, bins))} per axis{_joined_cells(agent)}")
    if found.factory.span_is_oracle:
        c = numbers.digits(float(agent.settings()["span"]))
        grid.add_row("span", f"{c}: an oracle, taken from the model itself")
    if found.unmet_condition:
        grid.add_row("guarantee", str(agent.guarantee))
        grid.add_row("", Text(f"but not here: {found.unmet_condition}", style="yellow"))
    else:
        grid.add_row("guarantee", str(found.guarantee))
    _smoothness(found, grid)
    if run.vacuous:
        grid.add_row("bounds", "vacuous: still so wide that the plan ignores the data; run more steps")
    if found.still_linear:
        text = f"still exploring after {run.horizon:,} steps: the regret is linear so far; see {WHICH_AGENT}"
        grid.add_row("learning", text)
    return grid


def _smoothness(found: LearnedRun, grid: Table) -> None:
    """The lower bound on the Hölder constant, and what the agent was told."""
    bound = found.lipschitz
    if bound is None or not bound.cells:
        return
    told = getattr(found.agent, "lipschitz", None)
    if told is not None and bound.refutes(told):
        if not found.agent.guarantee.holds:  # otherwise it is said under the guarantee
            grid.add_row("smoothness", Text(f"L = {told:g} is refuted: {bound}", style="yellow"))
    else:
        grid.add_row("smoothness", f"{bound}{'' if told is None else f'; the agent was told {told:g}'}")


def _joined_cells(agent: Any) -> str:
    """With how many pairs of a cell and an action the last plan was made, if the agent can join cells."""
    groups = None if agent.current is None else agent.current.groups
    if groups is None:
        return ""
    planned = np.unique(groups).size
    if planned == groups.size:
        return "; planned with each by itself"
    return f"; joined for planning: {planned:,} pairs of a cell and an action instead of {groups.size:,}"


def _optimum(found: LearnedRun, grid: Table) -> None:
    """The optimal average, what the learned policy earns, and the regret."""
    run = found.run
    if found.optimal is None:
        grid.add_row("regret", "unknown, because no model gives the optimal gain; pass --gain NUMBER if you know it")
        return
    grid.add_row("optimal", f"{numbers.digits(found.optimal)} {found.per}")
    if found.policy_gain is not None:
        grid.add_row("learned policy", _worth(found, found.policy_gain, found.optimal))
        if found.favoured_gain is not None and found.favoured_gain != found.policy_gain:
            grid.add_row("data's policy", _worth(found, found.favoured_gain, found.optimal))
    total = float(getattr(run, run.measure)[-1])
    lost = numbers.digits(total / run.horizon / found.units.step_duration, 3)
    grid.add_row(
        MEASURE_NAMES[run.measure],
        f"{numbers.digits(total)} after {run.horizon:,} steps, {lost} {found.per}",
    )
    for other in REGRETS[REGRETS.index(run.measure) + 1 :]:
        if not math.isnan(getattr(run, other)[-1]):
            grid.add_row(MEASURE_NAMES[other], numbers.digits(float(getattr(run, other)[-1])))


def _worth(found: LearnedRun, gain: float, optimal: float) -> str:
    """What the learned policy earns if it is kept, next to the optimum."""
    text = f"{numbers.digits(gain)} {found.per} if it is kept"
    lost = found.units.sign * (optimal - gain)
    scale = found.agent.core.reward_range / found.units.step_duration
    return f"{text}: optimal" if lost <= 1e-6 * scale else f"{text}, {numbers.digits(lost, 3)} {_worse(found)}"


def _worse(found: LearnedRun) -> str:
    return "below the optimum" if found.kind == "reward" else "above the optimum"


# ---------------------------------------------------------------------- the policy


def _policy(found: LearnedRun, learned: LearnedPolicy, states_shown: int) -> list[RenderableType]:
    if not found.factory.among_points:
        return _states(found, learned, states_shown)
    bins = found.agent.partition.bins
    if len(bins) == 1:
        return _intervals(found, learned, states_shown)
    if len(bins) == 2 and bins[0] <= MAP_WIDTH and bins[1] <= MAP_HEIGHT:
        return _map(found, learned)
    return _cells(found, learned, states_shown)


def _table(place: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    table.add_column(place, overflow="fold")
    table.add_column("action", overflow="fold")
    for name in ("visits", "sure", "ahead by"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _short(text: str, width: int = ACTION_WIDTH) -> str:
    text = printable(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def _action(found: LearnedRun, learned: LearnedPolicy, s: int) -> str:
    row, a, best = learned.probabilities[s], int(learned.actions[s]), int(learned.favoured[s])
    if row[a] == 1.0:
        other = f" (data: {_short(found.action_name(best))})" if best not in (a, -1) else ""
        return _short(found.action_name(a)) + other
    likely = np.argsort(-row, kind="stable")[: int((row > 0.0).sum())].tolist()
    words = ", ".join(f"{_short(found.action_name(b))} {row[b]:.2g}" for b in likely[:3])
    return words + (", …" if len(likely) > 3 else "")


def _sureness(found: LearnedRun, learned: LearnedPolicy, s: int) -> tuple[str, str]:
    """How sure the action of a state is, and by how much it is ahead, in words."""
    sure, lead = float(learned.sure[s]), float(learned.lead[s])
    if not learned.visits[s].any():
        return "never visited", ""
    if math.isinf(lead):
        return "only action", ""
    if math.isnan(sure):
        tried = int((learned.visits[s] > 0).sum())
        if not learned.visits[s, learned.actions[s]]:
            return "untried", ""
        return "others untried" if tried == 1 else "unknown", ""
    if abs(lead) <= TIE * found.agent.core.reward_range:
        return "tie", numbers.digits(lead, 3)
    shown = ">99.9 %" if sure > 0.999 else "<0.1 %" if sure < 0.001 else f"{100 * sure:.1f} %"
    return shown + (" *" if learned.untried[s] else ""), numbers.digits(lead, 3)


def _add(table: Table, found: LearnedRun, learned: LearnedPolicy, s: int, place: str) -> None:
    sure, lead = _sureness(found, learned, s)
    visits = int(learned.visits[s].sum())
    table.add_row(Text(place), Text(_action(found, learned, s)), f"{visits:,}", sure, lead)


def _most_visited(learned: LearnedPolicy, n: int) -> list[int]:
    """All states in order, if there are few, or else the most visited ones."""
    if learned.actions.size <= n:
        return list(range(learned.actions.size))
    return [int(s) for s in np.argsort(-learned.state_visits, kind="stable")[:n]]


def _states(found: LearnedRun, learned: LearnedPolicy, states_shown: int) -> list[RenderableType]:
    table, shown = _table("state"), _most_visited(learned, states_shown)
    for s in shown:
        _add(table, found, learned, s, _short(found.state_name(s), STATE_WIDTH))
    return [table, *_notes(found, learned, shown, "state")]


def _cells(found: LearnedRun, learned: LearnedPolicy, states_shown: int) -> list[RenderableType]:
    table, shown = _table("middle of the cell"), _most_visited(learned, states_shown)
    for s in shown:
        low, high = found.cell_ends(s)
        middle = ", ".join(f"{(a + b) / 2:.3g}" for a, b in zip(low, high, strict=True))
        _add(table, found, learned, s, f"({middle})")
    return [table, *_notes(found, learned, shown, "cell")]


def _intervals(found: LearnedRun, learned: LearnedPolicy, states_shown: int) -> list[RenderableType]:
    """Neighbouring cells with the same action in one line, which shows the least sure of them."""
    edges, visited = found.edges(0), learned.state_visits > 0
    kind = np.where(visited, learned.actions, -1)
    begins = np.flatnonzero(np.diff(kind, prepend=-2))
    ends = np.append(begins[1:], kind.size)
    names: tuple[str, ...] = getattr(found.environment, "axis_labels", ()) or ("state",)
    table = _table(_short(names[0]))
    visits = np.add.reduceat(learned.state_visits, begins)
    shown = np.sort(np.argsort(-visits, kind="stable")[:states_shown]).tolist()
    for i in shown:
        first, last = int(begins[i]), int(ends[i])
        place = f"{edges[first]:.4g} … {edges[last]:.4g}"
        cells = np.arange(first, last)
        weakest = int(cells[np.argmin(np.nan_to_num(learned.sure[cells], nan=-1.0))])
        sure, lead = _sureness(found, learned, weakest)
        action = _action(found, learned, weakest) if visited[first] else "?"
        table.add_row(Text(place), Text(action), f"{int(visits[i]):,}", sure, lead)
    lines = ["one line per range of cells with the same action; sure and ahead by: of its least sure cell"]
    if begins.size > len(shown):
        lines.append(f"… and {numbers.count(begins.size - len(shown), 'more range')}: --max-states-shown, or --json")
    return [table, *(Text(line, style="dim") for line in lines), *_notes(found, learned, None, "cell")]


def _map(found: LearnedRun, learned: LearnedPolicy) -> list[RenderableType]:
    """The plane as a picture with one character per cell: the first axis to the right, the second upwards."""
    across, up = found.agent.partition.bins
    visited = (learned.state_visits > 0).reshape(across, up)
    actions = learned.actions.reshape(across, up)
    x, y = found.edges(0), found.edges(1)
    lines = []
    for j in reversed(range(up)):
        row = "".join(SYMBOLS[actions[i, j] % len(SYMBOLS)] if visited[i, j] else "·" for i in range(across))
        label = f"{y[up]:.3g}" if j == up - 1 else f"{y[0]:.3g}" if j == 0 else ""
        lines.append(f"{label:>9} │{row}")
    left, right = f"{x[0]:.3g}", f"{x[-1]:.3g}"
    lines += [" " * 10 + "└" + "─" * across, " " * 11 + left + right.rjust(max(across - len(left), len(right) + 1))]
    names: tuple[str, ...] = getattr(found.environment, "axis_labels", ())
    if len(names) == 2:
        lines.append(" " * 11 + f"{_short(names[0])} to the right, {_short(names[1])} upwards")
    played = sorted({int(a) for a in actions[visited]})
    legend = ", ".join(f"{SYMBOLS[a % len(SYMBOLS)]} {_short(found.action_name(a))}" for a in played)
    legend += ", · never visited" if not visited.all() else ""
    return [Text("\n".join(lines)), *(Text(line, style="dim") for line in textwrap.wrap(legend, PAGE_WIDTH))]


def _notes(found: LearnedRun, learned: LearnedPolicy, shown: list[int] | None, place: str) -> list[RenderableType]:
    """What the columns mean, and what is not shown."""
    lines = []
    if shown is not None and len(shown) < learned.actions.size:
        rest = np.setdiff1d(np.arange(learned.actions.size), shown)
        never = int((learned.state_visits[rest] == 0).sum())
        unvisited = f", {never:,} of them never visited" if never else ""
        more = numbers.count(rest.size, f"more {place}")
        lines.append(f"… and {more}{unvisited}: --max-states-shown {learned.actions.size}, or --json")
    better = "more reward" if found.kind == "reward" else "less cost"
    lines.append(
        "sure: how probable it is, by what was seen, that the action beats the others tried there; ahead by: how much "
        f"{better} it brings in total than the best of them, taken once"
    )
    visible = np.arange(learned.actions.size) if shown is None else np.array(shown, dtype=np.int64)
    if ((learned.untried[visible] > 0) & np.isfinite(learned.lead[visible])).any():
        lines.append("* some action was never tried there")
    return [Text(line, style="dim") for text in lines for line in textwrap.wrap(text, PAGE_WIDTH)]
