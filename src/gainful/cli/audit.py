"""`gainful audit`: check whether the theorems hold for an agent in an environment, with its constants."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gainful.cli import completion, console, failures, numbers, options
from gainful.number_text import four_digits
from gainful.progress import duration, live_line

if TYPE_CHECKING:
    from gainful.audit.audit import Audit
    from gainful.audit.verdicts import Verdict
    from gainful.experiments.auditing import Audits

STYLES = {"certified": "green", "violated": "bold red", "inconclusive": "yellow", "not applicable": "dim"} | {
    "cannot fail here": "dim",
    "implied": "dim",
    "no theorem": "cyan",
}
WORST_CASE_BESIDE = 130
"""Columns of a terminal from which on worst cases are shown beside the verdicts."""
UNUSUAL_MODELS = {
    "given_up": "had states that are all but cut off: their plans have no certified precision",
    "redrawn": "had no single gain and were drawn again",
}
"""What PSRL and Opt-PSRL say of some samples."""


def audit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENV|TABLE|SPEC",
            autocompletion=completion.environments_and_specs,
            help="An environment, as for gainful solve, or a spec, as for gainful run, to audit every agent in it.",
            show_default=False,
        ),
    ],
    agent_name: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            autocompletion=completion.agents,
            help="scal-plus (the default), or any other that gainful list agents shows; for continuous states it is "
            "c-scal-plus (the default), c-kl-scal-plus, uccrl, balanced-grids, adaptive-kl-scal-plus, "
            "or a tabular one, which is discretised.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Number of runs, one seed each; 59 without a failure certify δ = 0.05."),
    ] = 100,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="STEPS", help="Steps of each run: by default 1e5, or as the spec says.", show_default=False
        ),
    ] = None,
    span: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="The bound c on the span given to the agent; auto is 1.001 times the model's own span. By default "
            "auto for agents that need a bound, and none for agents that can do without.",
            show_default=False,
        ),
    ] = None,
    bins: options.Bins = None,
    first_seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the first run.")] = 0,
    settings: options.EnvironmentSettings = None,
    agent_settings: options.AgentSettings = None,
    jobs: options.Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save the audit in this folder (audit.json); gainful report DIR shows it.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the audit as an HTML page.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: verdicts, worst cases, curves.")
    ] = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> int:
    """Check the theorems on real runs. The exit code is 1 if something that should hold does not.

    \b
    gainful audit riverswim
    gainful audit riverswim --agent kl-scal-plus
    gainful audit riverswim --agent-set bonus_scale=0.1 --horizon 1e6
    gainful audit lqg --bins 20 --runs 60
    gainful audit quickstart --runs 60 --horizon 1e5 --out results/quickstart
    """  # noqa: D301
    from gainful.cli.source import read_number, read_settings
    from gainful.environments import registry
    from gainful.errors import InvalidArgumentError
    from gainful.experiments.auditing import save_audits
    from gainful.simulation.run import checked_horizon

    steps = None if horizon is None else checked_horizon(read_number("--horizon", horizon, "1e5"))
    of_the_agent = read_settings(agent_settings or (), "--agent-set")
    if _is_spec(source):
        _only_for_environments(agent_name, span, bins, settings, agent_settings)
        found = _of_spec(source, steps, runs, first_seed, jobs)
    else:
        c = span if span is None or "auto" in span else read_number("--span", span, "2.5")
        if isinstance(c, float | int) and not math.isfinite(c):
            raise InvalidArgumentError("--span", c, "a finite number, or auto", problem=f"--span is {span}")
        if "seed" in of_the_agent:
            raise InvalidArgumentError(
                "seed",
                of_the_agent["seed"],
                hint="--first-seed sets the first one",
                problem="--agent-set seed: every run has a seed of its own",
            )
        asked = _Question(source, settings or [], agent_name, c, bins, of_the_agent, steps or 100_000, runs, first_seed)
        if source in registry.names() or source in registry.continuous_names():
            found = _of_named_environment(asked, jobs)
        elif jobs is not None:
            raise InvalidArgumentError(
                "--jobs",
                jobs,
                hint="leave it out: a table is audited by one process",
                problem="--jobs is for named environments and specs",
            )
        else:
            found = _of_table(asked)
    if as_json:
        console.write([json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    else:
        console.show(*_page(found))
    if out is not None:  # after the verdicts, so that a full disk does not lose them
        typer.echo(console.printable(f"written: {save_audits(found, out)}; next: gainful report {out}"), err=True)
    if html is not None:
        from gainful.report.audit_section import save_audit_page

        typer.echo(console.printable(f"page: {save_audit_page(found.to_dict(), html)}"), err=True)
    return 0 if found.ok else failures.FAILED


def _is_spec(source: str) -> bool:
    from gainful.experiments.spec import shipped

    return source.lower().endswith(".toml") or source in [name for name, _ in shipped()]


def _only_for_environments(agent: str | None, span: str | None, bins: int | None, *settings: list[str] | None) -> None:
    from gainful.errors import InvalidArgumentError

    given = {"--agent": agent, "--span": span, "--bins": bins}
    for name, value in {**given, "--set": settings[0], "--agent-set": settings[1]}.items():
        if value:
            raise InvalidArgumentError(
                name,
                value,
                hint="leave it out, or audit an environment",
                problem=f"{name} cannot be combined with a spec, which sets it itself",
            )


def _of_spec(source: str, horizon: int | None, runs: int, first_seed: int, jobs: int | None) -> Audits:
    from gainful.experiments.auditing import audit_all, audit_requests
    from gainful.experiments.spec import read_spec

    spec = read_spec(source)
    with _watched() as show:
        return audit_all(
            audit_requests(spec, horizon),
            title=spec.title,
            folders=spec.folders,
            runs=runs,
            first_seed=first_seed,
            jobs=jobs,
            progress=lambda done, total, part: show(round(1000 * (done + part)), 1000 * total),
        )


@contextmanager
def _watched() -> Iterator[Callable[[int, int], None]]:
    """A function to tell thousandths of runs to; Ctrl-C then ends the command with what was done."""
    made = total = 0
    with live_line(_ProgressText()) as show:

        def note(done: int, of: int) -> None:
            nonlocal made, total
            made, total = done, of
            show(done, of)

        try:
            yield note
        except KeyboardInterrupt:
            runs = (
                f"after {made // 1000:,} of {numbers.count(total // 1000, 'run')}" if total else "before the first run"
            )
            raise failures.JobInterruptedError(f"{runs}; nothing is kept of an audit that is not complete") from None


class _ProgressText:
    """Write the progress line on stderr: runs audited, their rate, and the time left."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def __call__(self, done: int, total: int) -> str:
        made, seconds = done / 1000, time.monotonic() - self.began
        text = f"{made:.0f} of {total // 1000:,} runs audited"
        if made < 0.05:
            return f"{text}; solving and compiling"
        return f"{text}, {made / seconds:.3g} per second, about {duration(seconds * (total - done) / done)} left"


class _Question(NamedTuple):
    """What to audit in one environment: an agent with its parameters, and how many runs."""

    source: str
    settings: list[str]
    agent: str | None
    span: float | str | None
    bins: int | None
    parameters: dict[str, Any]
    horizon: int
    runs: int
    first_seed: int


def _of_named_environment(asked: _Question, jobs: int | None) -> Audits:
    """Audit a named environment, in several processes."""
    from gainful.cli.source import read_settings
    from gainful.environments import registry
    from gainful.errors import InvalidArgumentError
    from gainful.experiments.auditing import AuditRequest, audit_all
    from gainful.experiments.configuration import Configuration, checkpoint_steps
    from gainful.experiments.foreign_agents import checked_agent
    from gainful.experiments.foreign_names import agent_called, is_foreign_agent

    source, span, horizon = asked.source, asked.span, asked.horizon
    name = agent_called(asked.agent or ("c-scal-plus" if source in registry.continuous_names() else "scal-plus"))
    if "span" in asked.parameters and span is not None:
        raise InvalidArgumentError(
            "--span", span, hint="leave one out", problem="--span and --agent-set span=… both set c"
        )
    if span is not None and not _takes_span(name):
        raise InvalidArgumentError("--span", span, hint="leave it out", problem=f"--span {span}: {name} takes no span")
    parameters = {**({} if span is None else {"span": span}), **asked.parameters}
    if asked.bins is not None:
        parameters["bins"] = asked.bins
    if is_foreign_agent(name):
        checked = checked_agent(name, parameters, source in registry.continuous_names())
        for problem in checked.problems.values():
            raise problem
        parameters = checked.values
    of_the_environment = read_settings(asked.settings)
    steps = checkpoint_steps(20, horizon)
    configuration = Configuration(source, of_the_environment, name, parameters, horizon, steps, 0)
    configuration.canonical()  # so that its errors come before any work
    with _watched() as show:
        return audit_all(
            [AuditRequest(source, name, configuration)],
            runs=asked.runs,
            first_seed=asked.first_seed,
            folders=(str(Path.cwd()),),
            jobs=jobs,
            progress=lambda done, total, part: show(round(1000 * (done + part)), 1000 * total),
        )


def _of_table(asked: _Question) -> Audits:
    """Audit a table, or any other environment without a name, in this process."""
    from gainful.audit.audit import gathered
    from gainful.audit.run import audit_run, truth_of
    from gainful.cli.source import read_environment
    from gainful.experiments.agent_factory import AgentFactory, name_of
    from gainful.experiments.auditing import Audits

    with _watched() as show:
        environment, began = read_environment(asked.source, asked.settings), time.monotonic()
        truth = truth_of(environment)
        made = []
        for i in range(asked.runs):
            seed = asked.first_seed + i
            factory = AgentFactory(
                asked.agent or "scal-plus",
                environment,
                asked.span,
                seed,
                asked.horizon,
                asked.bins,
                asked.parameters,
                own_span=truth.span,
            )
            made.append(audit_run(factory.make(), environment, asked.horizon, seed, truth=truth))
            show(1000 * (i + 1), 1000 * asked.runs)
        found = gathered(made, factory.make(), name_of(environment, asked.source), truth, agent_name=factory.name)
        return Audits("", [found], seconds=time.monotonic() - began)


def _takes_span(name: str) -> bool:
    import inspect

    from gainful.agents import registry
    from gainful.experiments.foreign_agents import foreign_parameters
    from gainful.experiments.foreign_names import is_foreign_agent

    if is_foreign_agent(name):
        return "span" in foreign_parameters(name, False)[0]
    made: Any = registry.continuous_class(name) if name in registry.PARTITIONED else registry.agent_class(name)
    return "span" in inspect.signature(made).parameters


# ---------------------------------------------------------------------- for people


def _page(found: Audits) -> list[Any]:
    from rich.text import Text

    parts: list[Any] = []
    for one in found.audits:
        parts += [*_audit(one), Text()]
    places: dict[str, list[str]] = {}
    for skipped in found.skipped:
        places.setdefault(skipped.reason, []).append(f"{skipped.agent} in {skipped.environment}")
    for reason, where in places.items():
        parts.append(Text(console.printable(f"not audited: {'; '.join(where)}: {reason}")))
    broken = sum(verdict.broken for one in found.audits for verdict in one.verdicts.values())
    if not broken:
        return [*parts, Text("Nothing that should hold is violated.")]
    verb = "is" if broken == 1 else "are"
    return [
        *parts,
        Text(f"{numbers.count(broken, 'statement')} that should hold {verb} violated.", style="bold red"),
    ]


def _audit(one: Audit) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    size = f"{numbers.count(len(one.runs), 'run')} of {numbers.count(one.horizon, 'step')}"
    head = f"{one.agent} in {one.environment}: {size}, δ = {one.delta:g}"
    parts: list[Any] = [Text(console.printable(head), style="bold"), Text(), *_verdicts(one), Text()]
    parts += [Text(console.printable(line)) for line in _lines(one)]
    terms = one.terms()
    if terms:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("term of the bound", "measured", "allowed", "share"):
            table.add_column(name, justify="left" if name.startswith("term") else "right")
        for name, term in terms.items():
            share = term["measured"] / term["allowed"] if term["allowed"] else 0.0
            table.add_row(name, four_digits(term["measured"]), four_digits(term["allowed"]), f"{share:.1%}")
        parts += [Text(), table]
    return parts


def _verdicts(one: Audit) -> list[Any]:
    """A line for each statement; its worst case beside it, or on a narrow terminal in a second table."""
    from rich.table import Table
    from rich.text import Text

    narrow = console.is_narrow(WORST_CASE_BESIDE)
    numeric = ("failed runs", "95 % bounds", "checks")
    grid = Table(box=None, pad_edge=False, header_style="bold")
    worst = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("statement", "verdict", *numeric, *(() if narrow else ("worst case",))):
        # no name of a statement is cut: the longest one is also the longest word of a verdict
        least = max(map(len, one.verdicts)) if name == "verdict" else None
        fixed = name == "statement" or name in numeric
        grid.add_column(name, justify="right" if name in numeric else "left", no_wrap=fixed, min_width=least)
    worst.add_column("statement", no_wrap=True)
    worst.add_column("worst case")
    for verdict in one.verdicts.values():
        first, last = _cells(verdict)
        grid.add_row(*first, *(() if narrow else (last,)))
        worst.add_row(verdict.statement, last)
    return [grid, Text(), worst] if narrow else [grid]


def _cells(verdict: Verdict) -> tuple[list[Any], Any]:
    """What is shown of a statement, and its worst case or why it is not checked."""
    from rich.text import Text

    explained = verdict.verdict in ("not applicable", "no theorem")
    style = STYLES[verdict.verdict]
    word = Text(verdict.words + ("" if verdict.promised or explained else " (not guaranteed)"), style=style)
    if explained:
        return [verdict.statement, word, "", "", ""], Text(console.printable(verdict.remark), style=style)
    low, high = verdict.frequency
    bounds = f"{low:.3f} … {high:.3f}" if verdict.allowed else ""
    failed = f"{verdict.failed_runs:,} of {verdict.runs:,}"
    worst = Text("" if verdict.worst is None else str(verdict.worst))
    return [verdict.statement, word, failed, bounds, f"{verdict.checks:,}"], worst


def _lines(one: Audit) -> list[str]:
    lines = [f"guarantee: {one.guarantee}" + ("; r_max is the range of rewards" if "r_max" in one.guarantee else "")]
    curves = one.regret_curves()
    bound, mean, largest = curves["bound"], curves["mean"][-1], curves["largest"][-1]
    if mean != mean:
        lines.append("regret: unknown, because the optimal gain is unknown here")
    else:
        line = f"regret after {numbers.count(one.horizon, 'step')}: "
        line += f"{four_digits(mean)} on average, {four_digits(largest)} at most"
        if bound is not None:
            line += f"; the explicit bound is {four_digits(bound[-1])}"
            if bound[-1] > one.horizon * one.facts["range"]:
                line += " (vacuous: more than the largest reward at every step)"
        lines.append(line)
    if curves["lower_bound"] is not None:
        needs = curves["lower_bound_needs"]
        what = (
            f"not a lower bound here, because that needs {needs}"
            if needs
            else "some MDP of this size costs every learner this much"
        )
        lines.append(f"0.015·sqrt(DSAT) = {four_digits(curves['lower_bound'][-1])}: {what}")
    tight = one.tightness()
    if tight is not None:
        lines.append(
            f"optimism of the last plan: L̂h* lies {four_digits(tight['mean'])} above Lh* on average over states, "
            f"{four_digits(tight['largest'])} at most"
        )
    plans = [run.shown["plans"] for run in one.runs if "plans" in run.shown]
    if any(made["repaired"] for made in plans):
        swept, repaired = (sum(made[how] for made in plans) for how in ("swept", "repaired"))
        lines.append(f"plans: {swept:,} swept the whole model, {repaired:,} repaired the one before")
    lines += [
        f"{numbers.count(number, 'model')} of all runs {what}"
        for name, what in UNUSUAL_MODELS.items()
        if (number := sum(run.shown.get(name, 0) for run in one.runs))
    ]
    return lines if not one.note else [*lines, f"note: {one.note}"]
