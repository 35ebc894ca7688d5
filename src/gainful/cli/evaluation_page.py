"""What `gainful evaluate` prints and writes as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from gainful.cli import numbers
from gainful.cli.console import printable
from gainful.errors import GainfulError, MultichainError, PlanningError
from gainful.planning.shortfall import Shortfall, played

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gainful.estimation.evaluate_log import LogEvaluation
    from gainful.planning.evaluation import Evaluation

_CLASSES_SHOWN = 5


@dataclass(frozen=True)
class Answer:
    """An evaluated policy and, where there is one, its distance from the optimum."""

    name: str
    evaluation: Evaluation

    @cached_property
    def shortfall(self) -> Shortfall | GainfulError:
        """The comparison with the optimal plan, or the error that says why there is none."""
        try:
            return self.evaluation.shortfall
        except (MultichainError, PlanningError) as error:
            return error


def page(answer: Answer, states_shown: int) -> list[RenderableType]:
    """The parts of the page, in order."""
    parts: list[RenderableType] = [_title(answer), Text(), _facts(answer)]
    if states_shown > 0:
        parts += [Text(), _states(answer, states_shown), _footnote(answer, states_shown)]
    return parts


def data(answer: Answer) -> dict[str, Any]:
    """Everything as one JSON object."""
    found, mdp = answer.evaluation, answer.evaluation.mdp
    lost = answer.shortfall if isinstance(answer.shortfall, Shortfall) else None
    states = found.to_frame()["state"].tolist()
    return {
        "name": answer.name,
        "n_states": mdp.n_states,
        "objective": mdp.units.objective,
        "gain_is": mdp.units.gain_name,
        "gain": found.gain_from_start,
        "span": found.span,
        "residual": found.residual,
        "class_gains": found.class_gains.tolist(),
        "optimal_gain": lost.optimal.gain if lost else None,
        "optimal_gain_bounds": list(lost.optimal.gain_bounds) if lost else None,
        "loss": lost.total if lost else None,
        "why_no_comparison": None if lost else str(answer.shortfall),
        "policy": [
            {
                "state": states[s],
                **_choice(found, s),
                "gain": float(found.gain[s]),
                "bias": float(found.bias[s]),
                "frequency": float(found.stationary[s]),
                **(_loss(lost, s) if lost else {}),
            }
            for s in range(mdp.n_states)
        ],
    }


def _choice(found: Evaluation, s: int) -> dict[str, Any]:
    mdp, policy = found.mdp, found.policy
    if policy.ndim == 1:
        a = int(policy[s])
        return {"action": a if mdp.action_labels is None else mdp.action_name(a)}
    return {"probabilities": {mdp.action_name(int(a)): float(policy[s, a]) for a in np.flatnonzero(policy[s])}}


def _loss(lost: Shortfall, s: int) -> dict[str, Any]:
    best = lost.optimal.action_named(s)
    return {"best": best, "loss_per_visit": float(lost.per_visit[s]), "loss": float(lost.by_state[s])}


def _title(answer: Answer) -> Text:
    mdp = answer.evaluation.mdp
    sizes = f": a policy in {numbers.count(mdp.n_states, 'state')}"
    return Text.assemble((printable(answer.name), "bold cyan"), sizes)


def _facts(answer: Answer) -> Table:
    grid, found = _grid(), answer.evaluation
    units = found.mdp.units
    gain = numbers.digits(found.gain_from_start, 8)
    start = "" if found.unichain else ", from the start"
    grid.add_row("gain", Text.assemble((gain, "bold green"), f"  {units.gain_name}{start}"))
    if not found.unichain:
        grid.add_row("", _classes(found))
    lost = answer.shortfall
    if isinstance(lost, Shortfall):
        grid.add_row("optimal", f"{numbers.digits(lost.optimal.gain, 8)}  {_distance(lost)}")
    else:
        grid.add_row("optimal", f"not known: {printable(str(lost))}")
    grid.add_row("span", f"{numbers.digits(found.span)}  of the bias")
    return grid


def _distance(lost: Shortfall) -> str:
    if not lost.by_state.any():
        return "the policy is optimal from the start"
    wrong = int((lost.by_state > 0.0).sum())
    share = ""
    gain = lost.optimal.gain
    if gain != 0.0 and lost.total / abs(gain) < 100.0:
        share = f", {100 * lost.total / abs(gain):.3g} %"
    word = "lost per" if lost.evaluation.mdp.units.objective == "reward" else "too much per"
    time = "unit of time" if lost.evaluation.mdp.units.continuous else "step"
    return f"{numbers.digits(lost.total)} {word} {time}{share}, in {numbers.count(wrong, 'state')}"


def _classes(found: Evaluation) -> str:
    shown = [
        f"{numbers.count(states.size, 'state')} with {numbers.digits(float(gain))}"
        for states, gain in zip(found.classes[:_CLASSES_SHOWN], found.class_gains, strict=False)
    ]
    more = len(found.classes) - _CLASSES_SHOWN
    return f"{len(found.classes)} classes: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


def _states(answer: Answer, states_shown: int) -> Table:
    found, mdp, lost = answer.evaluation, answer.evaluation.mdp, answer.shortfall
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("state", overflow="fold")
    table.add_column("action", overflow="fold")
    for name in ("frequency", "bias"):
        table.add_column(name, justify="right", no_wrap=True)
    order = np.arange(mdp.n_states)
    if isinstance(lost, Shortfall):
        table.add_column("best", overflow="fold")
        for name in ("loss per visit", "loss"):
            table.add_column(name, justify="right", no_wrap=True)
        order = np.argsort(-lost.by_state, kind="stable")
    shown = order[:states_shown]
    biases = numbers.column([float(found.bias[s]) for s in shown], found.span)
    for s, bias in zip(shown.tolist(), biases, strict=True):
        names = [printable(mdp.state_name(s)), printable(played(mdp, found.policy, s))]
        cells = [*names, f"{found.stationary[s]:.4f}", bias]
        if isinstance(lost, Shortfall):
            best = "" if lost.per_visit[s] == 0.0 else printable(lost.optimal.action_named(s))
            cells += [best, numbers.digits(lost.per_visit[s]), numbers.digits(lost.by_state[s])]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _footnote(answer: Answer, states_shown: int) -> Text:
    n = answer.evaluation.mdp.n_states
    lines = []
    if n > states_shown:
        lines.append(f"… and {numbers.count(n - states_shown, 'more state')}: --max-states-shown {n}, or --json")
    if isinstance(answer.shortfall, Shortfall):
        lines.append("loss: frequency times the loss of a visit; the losses of all states add up to the distance")
    return Text("\n".join(lines), style="dim")


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    return grid


# ---------------------------------------------------------------------- from a log


def log_page(found: LogEvaluation, states_shown: int) -> list[RenderableType]:
    """The parts of the page of a policy evaluated from a log."""
    evaluation = found.evaluation
    mdp, units = evaluation.mdp, evaluation.mdp.units
    transitions = f": a policy, from {numbers.count(int(found.visits.sum()), 'transition')}"
    title = Text.assemble((printable(mdp.name or "log"), "bold cyan"), transitions)
    grid = _grid()
    grid.add_row("gain", Text.assemble((numbers.digits(found.gain), "bold green"), f"  {units.gain_name}"))
    if found.gain_interval is not None:
        low, high = (numbers.digits(x) for x in found.gain_interval)
        grid.add_row("", f"{100 * found.confidence:.4g} % interval {low} to {high}, by resampling {found.resampled}")
    grid.add_row("data", f"every pair that the policy keeps playing has at least {found.least_visits:,} visits")
    for i, note in enumerate(found.notes):
        grid.add_row("" if i else "note", printable(note))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), header_style="bold")
    for name in ("state", "action"):
        table.add_column(name, overflow="fold")
    for name in ("visits", "frequency", "bias"):
        table.add_column(name, justify="right", no_wrap=True)
    frame = found.to_frame()
    frame = frame[frame["frequency"] > 0.0]
    for row in frame.head(states_shown).itertuples(index=False):
        action = f"{row.action}" if row.probability == 1.0 else f"{row.action} {row.probability:.4g}"
        cells = (f"{row.visits:,}", f"{row.frequency:.4f}", numbers.digits(float(row.bias)))  # type: ignore[arg-type]
        table.add_row(Text(printable(str(row.state))), Text(printable(action)), *cells)
    footnote = f"… and {len(frame) - states_shown:,} more: --json" if len(frame) > states_shown else ""
    return [title, Text(), grid, Text(), table, Text(footnote, style="dim")] if states_shown else [title, Text(), grid]


def log_data(found: LogEvaluation) -> dict[str, Any]:
    """Everything as one JSON object."""
    mdp = found.evaluation.mdp
    return {
        "log": mdp.name,
        "n_transitions": int(found.visits.sum()),
        "objective": mdp.units.objective,
        "gain": found.gain,
        "gain_interval": found.gain_interval,
        "confidence": found.confidence,
        "least_visits": found.least_visits,
        "resampled": found.resampled,
        "notes": found.notes,
        "policy": [
            {key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
            for row in found.to_frame().to_dict("records")
        ],
    }
