"""Audits of agents by name, several runs at a time: in one environment, or in all that a spec asks for."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gainful.arguments import whole
from gainful.atomic_files import write_file
from gainful.audit.audit import Audit, gathered
from gainful.audit.kinds import AUDITED, auditor_class
from gainful.audit.run import RunAudit, truth_of
from gainful.errors import ExperimentError, GainfulError, InvalidArgumentError, StoreError
from gainful.experiments.configuration import Configuration, checkpoint_steps
from gainful.experiments.execution import Task, agent_factory_of, environment_of, provenance
from gainful.experiments.pool import LocalPool, RunFailed, RunFinished, RunProgress
from gainful.experiments.spec import Spec
from gainful.experiments.wire_format import unpack
from gainful.machine import default_jobs

AUDIT_FILE = "audit.json"
AUDIT_FORMAT = "gainful-audit"
MAX_TRIES = 3
MEMORY_PER_RUN = 300_000_000
"""Bytes that a worker needs, including compiled code."""


@dataclass(frozen=True)
class AuditRequest:
    """One agent in one environment to audit, with their labels."""

    environment: str
    agent: str
    configuration: Configuration
    """The first run; the others differ in their seed."""


@dataclass(frozen=True)
class SkippedAudit:
    """One agent in one environment that is not audited, and why."""

    environment: str
    agent: str
    reason: str


@dataclass
class Audits:
    """The audits of several agents and environments."""

    title: str
    audits: list[Audit]
    skipped: list[SkippedAudit] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing that should hold is violated."""
        return all(audit.ok for audit in self.audits)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; a number that is not finite is null."""
        found = {
            "format": AUDIT_FORMAT,
            "version": 1,
            "title": self.title,
            "ok": self.ok,
            "seconds": self.seconds,
            "made_by": provenance(),
            "audits": [audit.to_dict() for audit in self.audits],
            "not_audited": [vars(skipped) for skipped in self.skipped],
        }
        plain: dict[str, Any] = _plain(found)
        return plain


Progress = Callable[[int, int, float], None]
"""Called with the runs made, the runs in total, and the completed fractions of active runs, summed."""


def audit_requests(spec: Spec, horizon: int | None = None) -> list[AuditRequest]:
    """Every agent in every environment of a spec, once; `horizon`, if given, replaces the spec's."""
    found: dict[tuple[str, str], AuditRequest] = {}
    for labels, c in zip(spec.labels, spec.configurations(), strict=True):
        key = labels.environment, labels.agent
        if key not in found:
            T = c.horizon if horizon is None else horizon
            steps = c.checkpoints if horizon is None else checkpoint_steps(20, T)
            found[key] = AuditRequest(
                *key,
                Configuration(c.environment, c.environment_parameters, c.agent, c.agent_parameters, T, tuple(steps), 0),
            )
    return list(found.values())


def audit_all(
    asked: Sequence[AuditRequest],
    *,
    title: str = "",
    runs: int = 100,
    first_seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    folders: tuple[str, ...] = (),
) -> Audits:
    """Audit `runs` runs of each request, several at a time; a run whose worker is lost is tried again.

    Agents and environments that no theorem covers are skipped and listed. Raises ExperimentError if a run fails.
    """
    n = whole("runs", runs, 1)
    first = whole("first_seed", first_seed, 0)
    began = time.monotonic()
    skipped, wanted, agents = [], [], []
    truths: dict[str, Any] = {}
    for one in asked:
        c = one.configuration
        key = json.dumps([c.environment, c.environment_parameters], sort_keys=True)
        environment = environment_of(c)
        try:
            if key not in truths:
                truths[key] = truth_of(environment)
            agent = agent_factory_of(c, environment, truths[key].span).make()
            auditor_class(agent, truths[key])
        except GainfulError as error:
            if len(asked) == 1:
                raise
            skipped.append(SkippedAudit(one.environment, one.agent, str(error)))
            continue
        wanted.append(one)
        agents.append((agent, truths[key]))
    if not wanted:
        reasons = "; ".join(f"{s.agent} in {s.environment}: {s.reason}" for s in skipped[:3])
        raise InvalidArgumentError(
            "agent", hint=f"agents that can be audited: {', '.join(AUDITED)}", problem=f"nothing to audit: {reasons}"
        )
    tasks: deque[Task] = deque()
    for i, one in enumerate(wanted):
        c = one.configuration
        for seed in range(first, first + n):
            run = Configuration(
                c.environment, c.environment_parameters, c.agent, c.agent_parameters, c.horizon, c.checkpoints, seed
            )
            tasks.append(Task(f"{i}:{seed}", json.loads(run.to_json()), None, "", None, folders=folders, audit=True))
    made = _made(tasks, jobs or default_jobs(MEMORY_PER_RUN), progress)
    audits = []
    for i, (one, (agent, truth)) in enumerate(zip(wanted, agents, strict=True)):
        found = [made[f"{i}:{seed}"] for seed in range(first, first + n)]
        audits.append(gathered(found, agent, one.environment, truth, agent_name=one.agent))
    return Audits(title, audits, skipped, time.monotonic() - began)


def _made(tasks: deque[Task], jobs: int, progress: Progress | None) -> dict[str, RunAudit]:
    """Make and audit the run of every task; the audits by task id."""
    total, tries = len(tasks), dict.fromkeys((task.run_id for task in tasks), 0)
    found: dict[str, RunAudit] = {}
    shares: dict[str, float] = {}
    pool = LocalPool(min(jobs, total))
    under_way = 0
    try:
        while len(found) < total:
            while tasks and under_way < pool.slots:
                task = tasks.popleft()
                tries[task.run_id] += 1
                pool.submit(task)
                under_way += 1
            for event in pool.wait(0.2):
                name = event.task.run_id
                if isinstance(event, RunProgress):
                    shares[name] = event.step / event.task.configuration["horizon"]
                    continue
                shares.pop(name, None)
                under_way -= 1
                if isinstance(event, RunFinished):
                    values, _ = unpack(event.data)
                    found[name] = RunAudit.from_dict(json.loads(values["audit"]))
                elif isinstance(event, RunFailed) and event.lost and tries[name] < MAX_TRIES:
                    tasks.append(event.task)
                elif isinstance(event, RunFailed):
                    c = event.task.configuration
                    raise ExperimentError(
                        f"{c['agent']} in {c['environment']}, seed {c['seed']}: {event.kind}: {event.message}",
                        name=c["agent"],
                    )
            if progress is not None:
                progress(len(found), total, sum(shares.values()))
    finally:
        pool.close()
    return found


# ---------------------------------------------------------------------- files


def save_audits(audits: Audits, folder: str | Path) -> Path:
    """Write `audit.json` into a folder, which is created if needed; after a failure the file is as it was before.

    An audit of the same agents in the same environments is replaced. Any other is kept, and a StoreError raised.
    """
    target = Path(folder) / AUDIT_FILE
    kept = read_audits(folder)
    if kept is not None:
        there = {(one["environment"], one["agent"]) for one in kept["audits"]}
        if there != {(one.environment, one.agent) for one in audits.audits}:
            some = ", ".join(f"{agent} in {environment}" for environment, agent in sorted(there)[:3])
            raise StoreError(
                f"{target} is an audit of something else ({some}), which is kept",
                name=str(target),
                hint="choose another folder with --out",
            )
    text = json.dumps(audits.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, text.encode())
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            name=str(target),
            hint="check space and permissions, or choose another folder with --out",
        ) from error
    return target


def read_audits(folder: str | Path) -> dict[str, Any] | None:
    """The content of `audit.json` in a folder; None if there is none."""
    file = Path(folder) / AUDIT_FILE
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{file} cannot be read: {error}", name=str(file), hint="delete it, and audit again"
        ) from error
    try:
        found = json.loads(text)
        if found["format"] != AUDIT_FORMAT or found["version"] != 1:
            raise ValueError(f"format {found['format']}, version {found['version']}")
        for audit in found["audits"]:
            for name in ("environment", "agent", "verdicts", "regret", "facts", "delta", "horizon", "ok", "runs"):
                audit[name]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{file} is not an audit of this version: {error}", name=str(file), hint="delete it, and audit again"
        ) from error
    return dict(found)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
