"""The life of a durable agent, without its files: what each record does, live and in replay.

Everything here is a function of the snapshot and the records since. What a decision sets going before its record can be
written (an episode) is noted in `owed`, to be written before anything else.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.agents.files import agent_state, take_state
from gainful.agents.guarantee import Guarantee
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import DamagedJournalError, GainfulError, InvalidArgumentError
from gainful.live.configuration import core_of, make_again, plain
from gainful.live.folder import Description
from gainful.live.memory import Answer, Memory
from gainful.live.observing import cells_of, observe_rows
from gainful.live.planner import Twin, copy_of, plans_plainly
from gainful.live.records import NUMBERS, Kind, Layout, Record, Rows, asked
from gainful.live.results import Change

Planning: TypeAlias = Literal["auto", "inline", "background"]
PATIENCE = 0.004
"""Seconds that a decision waits for a plan, with `planning="auto"`, before it is made from the present one.

Getting the interpreter back from the planning thread may take 5 ms more: together less than 10.
"""
QUICK = 0.002
"""With `planning="auto"` no thread is used while plans take less."""
TWIN_FROM = 1000
"""The number of pairs S·A from which on a twin is made when an agent is opened, not when its first slow plan is due."""
CHANGEABLE = ("span", "bonus_scale", "width_scale")
_PLAN, _PLAN_BEGUN = int(Kind.PLAN), int(Kind.PLAN_BEGUN)


class Life:
    """An agent, its memory, and the plan being made beside it; begun from the contents of a snapshot."""

    def __init__(
        self, description: Description, planning: Planning, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> None:  # fmt: skip
        self._description, self._planning = description, planning
        self.layout = Layout(description.salt, description.dim)
        self.points = description.dim > 0
        options = description.options
        self.memory = Memory(self.layout, int(options["remember"]), int(options["max_pending"]))
        self.memory.from_arrays({name: arrays[f"memory_{name}"] for name in ("pending", "reported", "requests")})
        theirs = {name.removeprefix("agent_"): a for name, a in arrays.items() if name.startswith("agent_")}
        agent = make_again(header["agent"]["agent"], header["agent"]["settings"], theirs["allowed"])
        take_state(agent, header["agent"], theirs)
        self._install(agent)
        self.twin = Twin(self.core, arrays["planner_changed"]) if "planner_changed" in arrays else None
        live = header["live"]
        self._decided_t, self._decided_n = (int(x) for x in live["decided"])
        self.renew = bool(live["renew"])
        """Whether the next decision is to begin an episode, settings having changed."""
        self._late_plans, self._late_outcomes = int(live["late_plans"]), int(live["late_outcomes"])
        self._foreign = int(live.get("foreign", 0))  # observations of no decision; not in the first snapshots
        self.changes = [Change(**change) for change in live["changes"]]
        self.owed: list[tuple[int, bytes]] = []
        """Records (kind, payload) of what has happened already and is not written yet."""
        self.differing = 0
        """Decisions of the journal that were not the ones this replay would make."""
        self._plans_made, self._seconds = 0, 0.0  # in this process; of the last plans

    def _install(self, agent: Any) -> None:
        self.agent, self.core = agent, core_of(agent)
        self.apart = plans_plainly(agent) and agent.log is None
        """Whether its plans can be made by a twin."""

    def ready(self) -> None:
        """The replay is over: a plan under way that cannot be made is forgotten, and another is due."""
        planned = len(self.core.records)
        self._plans_made, self._seconds = min(planned, 1), float(self.core.records[-1][-1]) if planned else 0.0
        if self.twin is not None and self.twin.failed():
            self.renew = True
        large = self.core.n_states * self.core.n_actions >= TWIN_FROM
        if self.twin is None and self.apart and large and self._planning != "inline":
            self.twin = Twin(self.core)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All of it, copied: what a snapshot holds. No plan is under way, and nothing owed."""
        agent_header, arrays = self._agent_state()
        kept = {f"agent_{name}": np.array(array) for name, array in arrays.items()}
        if self.twin is not None:
            kept["planner_changed"] = self.twin.changed_pairs()
        kept |= {f"memory_{name}": array for name, array in self.memory.to_arrays().items()}
        live = {
            "decided": [self._decided_t, self._decided_n], "renew": self.renew, "late_plans": self._late_plans,
            "late_outcomes": self._late_outcomes, "foreign": self._foreign,
            "changes": [asdict(change) for change in self.changes],
        }  # fmt: skip
        return {"agent": {**agent_header, "settings": plain(agent_header["settings"])}, "live": live}, kept

    def _agent_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = agent_state(self.agent)
        if self.twin is not None:
            arrays = arrays | {f"own_{name}": array for name, array in self.twin.own_arrays().items()}
        return header, arrays

    def copy(self) -> Any:
        """A plain agent in the same state."""
        header, arrays = self._agent_state()
        made = make_again(header["agent"], header["settings"], arrays["allowed"])
        take_state(made, header, {name: np.array(array) for name, array in arrays.items()})
        return made

    # ------------------------------------------------------------------ replay

    def replay(self, record: Record) -> None:
        """What a record tells, once more: the same statistics, the same plans, the same draws."""
        try:
            self._replay(record)
        except (KeyError, ValueError, IndexError, AssertionError) as error:
            if isinstance(error, GainfulError) and not isinstance(error, InvalidArgumentError):
                raise
            raise DamagedJournalError(
                f"record {record.sequence} does not fit what came before: {error!r}; gainful recover saves what can be "
                "saved",
                intact=record.sequence - 1,
            ) from error

    def _replay(self, record: Record) -> None:
        kind, flags, sequence, when, payload, request = record
        action = -1
        if kind == Kind.DECISION:
            state, action = self.layout.one_decision(payload)
            self.refine_if_due()
            self.differing += self._draw(self.cell(state)) != action
            self.decided(sequence, state, action)
        elif kind == Kind.OBSERVATION:
            self.observed(*self.layout.one_row(payload), sequence, payload)
        elif kind == Kind.BATCH:
            self.observed_rows(self.layout.unpack_rows(payload))
        elif kind == Kind.PLAN:
            self._replay_plan(*NUMBERS.unpack(payload))
        elif kind == Kind.PLAN_BEGUN:
            self._begin_apart()
        elif kind == Kind.CHANGE:
            told = json.loads(payload)
            self.changed(told["settings"], told["reason"], sequence, when)
        else:
            self.memory.closed(NUMBERS.unpack(payload)[0], sequence, b"")
        if request:
            self.memory.answered(request, Answer(sequence, asked(self.layout, kind, flags, payload), action, kind))

    def _replay_plan(self, planned_from: int, adopted_at: int) -> None:
        self.refine_if_due()
        if adopted_at != self.core.t:
            raise ValueError(f"a plan adopted at {adopted_at}, at step {self.core.t}")
        if self.twin is not None:
            if self.twin.planned_from < 0:
                self._begin_apart()
            if self.twin.planned_from != planned_from:
                raise ValueError(f"a plan from {planned_from}, expected one from {self.twin.planned_from}")
            self._adopt_made()
        elif planned_from == adopted_at:
            self.core.begin_episode()
            self.renew = False
        else:
            raise ValueError(f"a plan from {planned_from} that never began")

    # ------------------------------------------------------------------ deciding

    def cell(self, state: Any) -> int:
        """The number of a state, or of the cell of a point."""
        return int(self.agent.cell(state))

    def same(self, one: Any, other: Any) -> bool:
        """Whether two states are one."""
        return bool(np.array_equal(one, other)) if self.points else bool(one == other)

    def refine_if_due(self) -> None:
        """C-SCAL+ without a horizon takes finer cells, where a stage is over."""
        self.agent.refine()
        self.core = self.agent.core

    def choose(self, s: int, begin_plans: bool) -> int:
        """The action in cell s, after adopting a plan that is made, and beginning one that is due."""
        core, twin = self.core, self.twin
        if twin is not None and twin.planned_from >= 0:
            if not twin.made:
                return self._draw(s)
            self.finish_plan()
            if not begin_plans:
                return self._draw(s)
        plan = core.current
        if plan is None or core.interrupted or core.t >= plan.last_step or self.renew:
            self._plan()
            return self._draw(s)
        action = self._draw(s)
        if plan.doubling and core.remaining[s * core.n_actions + action] <= 0:
            self._plan()
            action = self._draw(s)
        return action

    def _draw(self, s: int) -> int:
        """The present policy's action; decisions after the first at one t have a stream of their own."""
        return self.core.decide(s, self._decided_n if self._decided_t == self.core.t else 0)

    def decided(self, sequence: int, state: Any, action: int) -> None:
        """A decision is in the journal."""
        t = self.core.t
        if self._decided_t == t:
            self._decided_n += 1
        else:
            self._decided_t, self._decided_n = t, 1
        self.memory.decided(sequence, state, action, t)

    def _plan(self) -> None:
        """Begin an episode: at once, or beside the decisions; what happened is owed to the journal."""
        core, t = self.core, self.core.t
        at_once = (
            core.current is None or self._planning == "inline" or not self.apart
            or (self._planning == "auto" and self._seconds < QUICK)
        )  # fmt: skip
        if at_once and self.twin is None:
            began = time.perf_counter()
            core.begin_episode()
            self.renew = False
            self._timed(time.perf_counter() - began)
            self.owed.append((_PLAN, NUMBERS.pack(t, t)))
            return
        self._begin_apart()
        assert self.twin is not None
        if at_once or (self._planning == "auto" and self.twin.wait(PATIENCE)):
            self.finish_plan()
        else:
            self.owed.append((_PLAN_BEGUN, NUMBERS.pack(t, 0)))

    def _timed(self, seconds: float) -> None:
        self._plans_made += 1
        if self._plans_made > 1:  # the first one may compile
            self._seconds = max(seconds, self._seconds / 2)

    @property
    def plan_under_way(self) -> bool:
        """Whether a plan is being made beside the decisions, or is made and not adopted."""
        return self.twin is not None and self.twin.planned_from >= 0

    def _begin_apart(self) -> None:
        if self.twin is None:
            self.twin = Twin(self.core)
        self.core.interrupted = self.renew = False
        self.twin.begin(self.core)

    def finish_plan(self) -> None:
        """Wait for the plan under way and adopt it; that is owed to the journal."""
        planned_from = self._adopt_made()
        self.owed.append((_PLAN, NUMBERS.pack(planned_from, self.core.t)))

    def _adopt_made(self) -> int:
        assert self.twin is not None
        planned_from = self.twin.planned_from
        plan, seconds = self.twin.take()
        self._timed(seconds)
        self.core.begin_episode(plan, seconds)
        self._late_plans += self.core.t != planned_from
        return planned_from

    # ------------------------------------------------------------------ observing and changing

    def observed(
        self, s: Any, a: int, r: float, to: Any, decision_id: int, sequence: int, payload: bytes
    ) -> None:  # fmt: skip
        """Learn from an observation that is in the journal."""
        if decision_id:
            # one decision of the same action in the same state is as good as another: after a crash the oldest of two
            # may be one that nobody carried out
            self._late_outcomes += self.memory.newest_like(decision_id).t != self.core.t
            self.memory.closed(decision_id, sequence, payload[self.layout.state.size + 4 : -8])
        else:
            self._foreign += 1
        if self.twin is not None:
            core = self.core
            self.twin.observe(self.cell(s) * core.n_actions + a, self.cell(to), r - core.reward_min)
        self.agent.observe(s, a, r, to)

    def observed_rows(self, rows: Rows) -> None:
        """Learn from a batch."""
        self._foreign += len(rows.actions)
        if self.twin is not None:
            core = self.core
            cells, to = cells_of(self.agent, rows)
            self.twin.observe_many(cells * core.n_actions + rows.actions, to, rows.rewards - core.reward_min)
        observe_rows(self.agent, rows)

    def check_change(self, settings: dict[str, Any]) -> None:
        """An InvalidArgumentError unless these settings can be changed to these values."""
        old = self.agent.settings()
        able = () if isinstance(self.core, StepwiseAgent) else tuple(n for n in CHANGEABLE if n in old)
        for name in settings:
            if name not in able:
                raise InvalidArgumentError(
                    f"{name} of a living {type(self.agent).__name__} cannot be changed; "
                    + (f"{' and '.join(able)} can" if able else "what it has learned depends on its settings")
                )
        copy_of(self.agent, **settings)

    def changed(self, new: dict[str, float], reason: str, sequence: int, when: int) -> None:
        """Settings are others from now on; the next decision begins an episode."""
        old = self.agent.settings()
        self.changes += [
            Change(sequence, when, self.core.t, name, float(old[name]), float(value), reason)
            for name, value in new.items()
        ]
        self._install(copy_of(self.agent, **new))
        self.twin, self.renew = None, True

    # ------------------------------------------------------------------ what it is

    @property
    def vacuous(self) -> bool:
        """Whether the present plan ignores the data, for agents that know."""
        if self.twin is None or isinstance(self.core, SCALPlus):
            return bool(self.agent.vacuous)
        return self.twin.vacuous

    @property
    def guarantee(self) -> Guarantee:
        """The agent's own, void where this life is not the theorem's."""
        found: Guarantee = self.agent.guarantee
        reasons = [found.reason_void] if found.reason_void else []
        prior = self._description.prior
        if prior is not None:
            reasons.append(
                f"it began with a prior model that counts for {prior['weight']} observations of every pair, which "
                "nobody made"
            )
        elif self._description.initial.get("t"):
            reasons.append(
                f"it began with {self._description.initial['t']} observations that are not known to be of its own "
                "decisions"
            )
        if self._foreign:
            reasons.append(f"{self._foreign} observations were not of its own decisions")
        for change in self.changes[-1:]:
            reasons.append(f"{change.name} was changed from {change.old:g} to {change.new:g} after {change.t} steps")
        if self._late_plans:
            reasons.append(f"{self._late_plans} plans were adopted later than the observations they were made from")
        if self._late_outcomes:
            reasons.append(f"{self._late_outcomes} outcomes were told after other observations than their decision saw")
        return replace(found, reason_void="; ".join(reasons))
