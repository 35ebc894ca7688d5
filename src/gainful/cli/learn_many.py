"""`gainful learn --runs N`: many runs of one agent, on the CPU or on a GPU, and the distribution of their regret."""

from __future__ import annotations

import json
import math
import time
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gainful.cli import console, numbers
from gainful.cli.failures import JobInterruptedError
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.progress import RateText, live_line
from gainful.simulation.many import chosen_device, simulate_many
from gainful.simulation.run import MEASURE_NAMES
from gainful.simulation.summary import RunSummary

QUANTILES = {"5 %": 0.05, "median": 0.5, "95 %": 0.95, "99.9 %": 0.999}
"""The quantiles that are shown."""


@dataclass(frozen=True)
class ManyLearned:
    """The runs of one call."""

    source: str
    agent: str
    device: str
    summary: RunSummary
    seconds: float

    @property
    def measure(self) -> str:
        """What is shown: expected regret, or realised regret where there are no optimality gaps."""
        return "regret" if np.isnan(self.summary.expected_regret.mean[-1]) else "expected_regret"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each checkpoint."""
        measure, steps = getattr(self.summary, self.measure), self.summary.steps
        error = np.where(measure.minimum == measure.maximum, 0.0, measure.standard_error)  # not what rounding leaves
        columns = {"mean": measure.mean, "standard error": error}
        columns |= {name: measure.quantile(q) for name, q in QUANTILES.items()} | {"largest": measure.maximum}
        return [
            {"steps": int(t)} | {k: None if math.isnan(v[i]) else float(v[i]) for k, v in columns.items()}
            for i, t in enumerate(steps)
        ]

    def to_json(self) -> str:
        """Everything as one JSON object."""
        facts = {
            "source": self.source,
            "agent": self.agent,
            "device": self.device,
            "runs": self.summary.n_runs,
            "horizon": int(self.summary.steps[-1]),
            "gain": self.summary.gain,
            "seconds": self.seconds,
            self.measure: self.rows,
        }
        return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)


def learn_many(source: str, environment: Any, factory: Any, seeds: range, horizon: int, device: Any) -> ManyLearned:
    """Make the runs; `factory` is that of the first seed."""
    if not isinstance(environment, MDP | ContinuousEnvironment):
        raise InvalidArgumentError(
            "--runs", len(seeds), "1 in an environment of Gymnasium", problem=f"--runs {len(seeds)} in {source}"
        )

    def agent(seed: int) -> Any:
        other = copy(factory)
        other.options = {**factory.options, "seed": seed}
        return other.make()

    checkpoints = [10**k for k in range(1, int(math.log10(horizon)) + 1)]
    began, made, total = time.perf_counter(), 0, horizon * len(seeds)
    device = chosen_device(device, agent, environment, np.array(checkpoints), list(seeds))
    with live_line(RateText(f"{len(seeds):,} runs")) as show:

        def note(done: int, of: int) -> None:
            nonlocal made
            made = done
            show(done, of)

        try:
            found = simulate_many(
                agent,
                environment,
                horizon,
                seeds,
                checkpoints=checkpoints,
                progress=note,
                device=device,
                keep="summary",
            )
        except KeyboardInterrupt:
            kept = "nothing is kept (gainful run keeps every run, and continues those that were interrupted)"
            runs = numbers.count(len(seeds), "run")
            raise JobInterruptedError(f"after {made:,} of {total:,} steps of {runs}; {kept}") from None
    return ManyLearned(source, factory.name, device, found, time.perf_counter() - began)


def show_many(found: ManyLearned) -> None:
    """Print a table of expected regret."""
    from rich.table import Table
    from rich.text import Text

    regret = MEASURE_NAMES[found.measure]
    title = Text(f"{found.agent} in {found.source}: {regret} over {found.summary.n_runs:,} runs", style="bold")
    table = Table(box=None, pad_edge=False, header_style="bold")
    n = found.summary.n_runs
    beyond_all = {name for name, q in QUANTILES.items() if n * min(q, 1.0 - q) < 1.0}
    shown = [name for name in found.rows[0] if name not in beyond_all]
    for name in shown:
        table.add_column("± s.e." if name == "standard error" else name, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(*(_cell(row[name], row["largest"]) for name in shown))
    steps = found.summary.n_runs * int(found.summary.steps[-1])
    rate = numbers.large(steps / found.seconds)
    console.show(title, table, f"{found.seconds:.1f} s on {found.device}, {rate} steps per second, compiling included")


def _cell(value: float | None, beside: float | None) -> str:
    """A number of steps as it is, an amount of regret to four digits, an unknown one empty."""
    if value is None or isinstance(value, int):
        return "" if value is None else f"{value:,}"
    return numbers.amount(value, beside or 0.0)
