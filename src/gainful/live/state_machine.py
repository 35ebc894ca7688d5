"""The state of a durable agent as a state machine: what each record does, when it is written and when it is replayed.

The state is a function of a snapshot and the records since. What happens before its record can be written (a decision
begins an episode) is noted in `unwritten`, to be written before any other record.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.files import agent_state, take_state
from gainful.agents.guarantee import Guarantee
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import DamagedJournalError, GainfulError, InvalidArgumentError
from gainful.live.agent_config import plain_settings, rebuild_agent
from gainful.live.background_planner import BackgroundPlanner, copy_agent, makes_only_plans
from gainful.live.batch_counting import cells_of, observe_rows
from gainful.live.decision_ledger import DecisionLedger, RecordedAnswer
from gainful.live.earnings import Earnings
from gainful.live.folder import AgentDescription
from gainful.live.receipts import Change
from gainful.live.records import TWO_NUMBERS, Record, RecordKind, RecordLayout, TransitionColumns, request_checksum
from gainful.live.validation import checked_transition

Planning: TypeAlias = Literal["auto", "inline", "background"]
PLAN_WAIT_SECONDS = 0.004
"""Seconds that a decision waits for a plan, with `planning="auto"`, before it is made from the present one.

Getting the interpreter back from the planning thread may take 5 ms more: together less than 10.
"""
QUICK_PLAN_SECONDS = 0.002
"""With `planning="auto"`, plans that take less time are made without a thread."""
BACKGROUND_FROM_PAIRS = 1000
"""Agents with as many pairs S·A get a background planner when they are opened, not when the first slow plan is due."""
CHANGEABLE_SETTINGS = ("span", "bonus_scale", "width_scale")
_PLAN, _PLAN_BEGUN = int(RecordKind.PLAN), int(RecordKind.PLAN_BEGUN)


class AgentStateMachine:
    """An agent, its ledger of decisions and its background planner, restored from the contents of a snapshot."""

    core: EpisodicAgent

    def __init__(
        self,
        description: AgentDescription,
        planning: Planning,
        header: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
    ) -> None:
        self._description, self._planning = description, planning
        self.layout = RecordLayout(description.salt, description.dim)
        self.points = description.dim > 0
        options = description.options
        self.ledger = DecisionLedger(self.layout, int(options["remember"]), int(options["max_pending"]))
        self.ledger.from_arrays({name: arrays[f"memory_{name}"] for name in ("pending", "reported", "requests")})
        theirs = {name.removeprefix("agent_"): a for name, a in arrays.items() if name.startswith("agent_")}
        agent = rebuild_agent(header["agent"], theirs["allowed"])
        take_state(agent, header["agent"], theirs)
        self._install(agent)
        self.planner = BackgroundPlanner(self.core, arrays["planner_changed"]) if "planner_changed" in arrays else None
        kept = {name.removeprefix("earnings_"): a for name, a in arrays.items() if name.startswith("earnings_")}
        self.earnings = Earnings.from_arrays(self.layout, kept) if kept else Earnings(self.core.t)
        """What it earned over time; snapshots of earlier versions do not have it."""
        live = header["live"]
        self._decided_t, self._decided_n = (int(x) for x in live["decided"])
        self.must_replan = bool(live["renew"])
        """Whether the next decision must begin an episode, because settings have changed."""
        self._late_plans, self._late_outcomes = int(live["late_plans"]), int(live["late_outcomes"])
        self._foreign = int(live.get("foreign", 0))  # observations of no decision; not in the first snapshots
        self.changes = [Change(**change) for change in live["changes"]]
        self.unwritten: list[tuple[int, bytes]] = []
        """Records (kind, payload) of what has happened already and is not written yet."""
        self.differing_decisions = 0
        """The number of recorded decisions that this replay would have made differently."""
        self._plans_made, self._seconds = 0, 0.0  # in this process; of the last plans

    def _install(self, agent: Any) -> None:
        self.agent, self.core = agent, agent.core
        self.plans_in_background = makes_only_plans(agent) and agent.log is None
        """Whether its plans can be made in the background."""

    def finish_replay(self) -> None:
        """Get ready for new calls: a plan under way that cannot be made is forgotten, and another is due."""
        planned = len(self.core.records)
        self._plans_made, self._seconds = min(planned, 1), float(self.core.records[-1][-1]) if planned else 0.0
        if self.planner is not None and self.planner.failed():
            self.must_replan = True
        large = self.core.n_states * self.core.n_actions >= BACKGROUND_FROM_PAIRS
        if self.planner is None and self.plans_in_background and large and self._planning != "inline":
            self.planner = BackgroundPlanner(self.core)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """A copy of the whole state, for a snapshot; no plan may be under way, and no record unwritten."""
        agent_header, arrays = self._agent_state()
        kept = {f"agent_{name}": np.array(array) for name, array in arrays.items()}
        if self.planner is not None:
            kept["planner_changed"] = self.planner.changed_pairs()
        kept |= {f"memory_{name}": array for name, array in self.ledger.to_arrays().items()}
        kept |= {f"earnings_{name}": array for name, array in self.earnings.to_arrays(self.layout).items()}
        live = {
            "decided": [self._decided_t, self._decided_n],
            "renew": self.must_replan,
            "late_plans": self._late_plans,
            "late_outcomes": self._late_outcomes,
            "foreign": self._foreign,
            "changes": [asdict(change) for change in self.changes],
        }
        return {"agent": {**agent_header, "settings": plain_settings(agent_header["settings"])}, "live": live}, kept

    def _agent_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = agent_state(self.agent)
        if self.planner is not None:
            arrays = arrays | {f"own_{name}": array for name, array in self.planner.own_arrays().items()}
        return header, arrays

    def copy(self) -> Any:
        """A plain agent in the same state."""
        header, arrays = self._agent_state()
        made = rebuild_agent(header, arrays["allowed"])
        take_state(made, header, {name: np.array(array) for name, array in arrays.items()})
        return made

    # ------------------------------------------------------------------ replay

    def replay(self, record: Record) -> None:
        """Apply a record that was read: the same statistics, the same plans, the same random draws."""
        try:
            self._replay(record)
        except (KeyError, ValueError, IndexError, AssertionError) as error:
            if isinstance(error, GainfulError) and not isinstance(error, InvalidArgumentError):
                raise
            raise DamagedJournalError(
                f"record {record.sequence} does not fit what came before: {error!r}",
                intact=record.sequence - 1,
                hint="gainful recover saves what can be saved",
            ) from error

    def _replay(self, record: Record) -> None:
        kind, flags, sequence, when, payload, request = record
        action = -1
        if kind == RecordKind.DECISION:
            state, action = self.layout.one_decision(payload)
            self.agent.cell(state)  # raises for what is not a state
            self.refine_if_due()
            self.differing_decisions += self._draw(self.cell(state)) != action
            self.apply_decision(sequence, state, action)
        elif kind == RecordKind.OBSERVATION:
            s, a, r, to, decision_id = self.layout.one_row(payload)
            checked_transition(self.agent, s, a, r, to)
            self.apply_observation(s, a, r, to, decision_id, sequence, payload)
        elif kind == RecordKind.BATCH:
            self.apply_batch(self.layout.unpack_rows(payload))
        elif kind == RecordKind.PLAN:
            self._replay_plan(*TWO_NUMBERS.unpack(payload))
        elif kind == RecordKind.PLAN_BEGUN:
            self._begin_in_background()
        elif kind == RecordKind.CHANGE:
            change = json.loads(payload)
            self.apply_change(change["settings"], change["reason"], sequence, when)
        else:
            self.ledger.closed(TWO_NUMBERS.unpack(payload)[0], sequence, b"")
        if request:
            self.ledger.answered(
                request, RecordedAnswer(sequence, request_checksum(self.layout, kind, flags, payload), action, kind)
            )

    def _replay_plan(self, planned_from: int, adopted_at: int) -> None:
        self.refine_if_due()
        if adopted_at != self.core.t:
            raise ValueError(f"a plan adopted at {adopted_at}, at step {self.core.t}")
        if self.planner is not None:
            if self.planner.planned_from < 0:
                self._begin_in_background()
            if self.planner.planned_from != planned_from:
                raise ValueError(f"a plan from {planned_from}, expected one from {self.planner.planned_from}")
            self._adopt_finished_plan()
        elif planned_from == adopted_at:
            self.core.begin_episode()
            self.must_replan = False
        else:
            raise ValueError(f"a plan from {planned_from} that never began")

    # ------------------------------------------------------------------ deciding

    def cell(self, state: Any) -> int:
        """The number of a valid state, or of the cell of a point."""
        found: int = self.agent.cell(state) if self.points else state
        return found

    def same(self, one: Any, other: Any) -> bool:
        """Whether two states are the same."""
        return bool(np.array_equal(one, other)) if self.points else bool(one == other)

    def refine_if_due(self) -> None:
        """Refine the partition if a stage is over (C-SCAL+ without a horizon)."""
        if self.points:
            self.agent.refine()
            self.core = self.agent.core

    def choose(self, s: int, begin_plans: bool) -> int:
        """The action in cell s, after adopting a plan that is finished, and beginning one that is due."""
        core, planner = self.core, self.planner
        if planner is not None and planner.planned_from >= 0:
            if not planner.made:
                return self._draw(s)
            self.finish_plan()
            if not begin_plans:
                return self._draw(s)
        plan = core.current
        if plan is None or core.interrupted or core.t >= plan.last_step or self.must_replan:
            self._plan()
            return self._draw(s)
        action = self._draw(s)
        if core.limit_reached(s * core.n_actions + action):
            self._plan()
            action = self._draw(s)
        return action

    def _draw(self, s: int) -> int:
        """The present policy's action; decisions after the first at one t have a stream of their own."""
        return self.core.decide(s, self._decided_n if self._decided_t == self.core.t else 0)

    def apply_decision(self, sequence: int, state: Any, action: int) -> None:
        """Note a decision that is in the journal."""
        t = self.core.t
        if self._decided_t == t:
            self._decided_n += 1
        else:
            self._decided_t, self._decided_n = t, 1
        self.ledger.decision_made(sequence, state, action, t)

    def _plan(self) -> None:
        """Begin an episode, immediately or in the background; its records are still to be written."""
        core, t = self.core, self.core.t
        at_once = (
            core.current is None
            or self._planning == "inline"
            or not self.plans_in_background
            or (self._planning == "auto" and self._seconds < QUICK_PLAN_SECONDS)
        )
        if at_once and self.planner is None:
            began = time.perf_counter()
            core.begin_episode()
            self.must_replan = False
            self._note_duration(time.perf_counter() - began)
            self.unwritten.append((_PLAN, TWO_NUMBERS.pack(t, t)))
            return
        self._begin_in_background()
        assert self.planner is not None
        if at_once or (self._planning == "auto" and self.planner.wait(PLAN_WAIT_SECONDS)):
            self.finish_plan()
        else:
            self.unwritten.append((_PLAN_BEGUN, TWO_NUMBERS.pack(t, 0)))

    def _note_duration(self, seconds: float) -> None:
        self._plans_made += 1
        if self._plans_made > 1:  # the first one may compile
            self._seconds = max(seconds, self._seconds / 2)

    @property
    def plan_under_way(self) -> bool:
        """Whether a plan is being made in the background, or is finished and not yet adopted."""
        return self.planner is not None and self.planner.planned_from >= 0

    def _begin_in_background(self) -> None:
        if self.planner is None:
            self.planner = BackgroundPlanner(self.core)
        self.core.interrupted = self.must_replan = False
        self.planner.begin(self.core)

    def finish_plan(self) -> None:
        """Wait for the plan under way and adopt it; the record of that is to be written."""
        planned_from = self._adopt_finished_plan()
        self.unwritten.append((_PLAN, TWO_NUMBERS.pack(planned_from, self.core.t)))

    def _adopt_finished_plan(self) -> int:
        assert self.planner is not None
        planned_from = self.planner.planned_from
        plan, seconds = self.planner.take()
        self._note_duration(seconds)
        self.core.begin_episode(plan, seconds)
        self._late_plans += self.core.t != planned_from
        return planned_from

    # ------------------------------------------------------------------ observing and changing

    def apply_observation(
        self, s: Any, a: int, r: float, to: Any, decision_id: int, sequence: int, payload: bytes
    ) -> None:
        """Learn from an observation that has been checked and is in the journal."""
        if decision_id:
            # of two decisions of the same action in the same state, the newer one counts: after a crash the older may
            # never have been carried out
            self._late_outcomes += self.ledger.newest_like(decision_id).t != self.core.t
            self.ledger.closed(decision_id, sequence, payload[self.layout.state.size + 4 : -8])
        else:
            self._foreign += 1
        core = self.core
        here, there = self.cell(s), self.cell(to)
        if self.planner is not None:
            self.planner.observe(here * core.n_actions + a, there, r - core.reward_min)
        core.learn(here, a, r, there)
        self.earnings.add(s, a, r, to)
        if self.agent.log is not None:
            self.agent.log.append(s, a, r, to)

    def apply_batch(self, rows: TransitionColumns) -> None:
        """Learn from a batch that is in the journal."""
        self._foreign += len(rows.actions)
        if self.planner is not None:
            core = self.core
            cells, to = cells_of(self.agent, rows)
            self.planner.observe_many(cells * core.n_actions + rows.actions, to, rows.rewards - core.reward_min)
        observe_rows(self.agent, rows)
        self.earnings.add_rows(rows)

    def check_change(self, settings: dict[str, Any]) -> None:
        """Raise an InvalidArgumentError unless these settings can be changed to these values."""
        old = self.agent.settings()
        able = () if isinstance(self.core, StepwiseAgent) else tuple(n for n in CHANGEABLE_SETTINGS if n in old)
        for name, value in settings.items():
            if name not in able:
                raise InvalidArgumentError(
                    name,
                    value,
                    hint=f"{' and '.join(able)} can be" if able else "what it has learned depends on its settings",
                    problem=f"{name} of a {type(self.agent).__name__} in use cannot be changed",
                )
        copy_agent(self.agent, **settings)

    def apply_change(self, new: dict[str, float], reason: str, sequence: int, when: int) -> None:
        """Change settings by a record that is in the journal; the next decision begins an episode."""
        old = self.agent.settings()
        self.changes += [
            Change(sequence, when, self.core.t, name, old[name], float(value), reason) for name, value in new.items()
        ]
        self._install(copy_agent(self.agent, **new))
        self.planner, self.must_replan = None, True

    # ------------------------------------------------------------------ what it is

    @property
    def vacuous(self) -> bool:
        """Whether the present plan ignores the data; False for agents that have no bounds."""
        if self.planner is None or isinstance(self.core, SCALPlus):
            return bool(self.agent.vacuous)
        return self.planner.vacuous

    @property
    def guarantee(self) -> Guarantee:
        """The agent's own guarantee, void if its theorem does not apply to what happened."""
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
                f"it began with {self._description.initial['t']:,} observations that are not known to be outcomes of "
                "its own decisions"
            )
        if self._foreign:
            reasons.append(f"{self._foreign:,} observations were not outcomes of its own decisions")
        for change in self.changes[-1:]:
            old = "none" if change.old is None else f"{change.old:g}"
            reasons.append(f"{change.name} was changed from {old} to {change.new:g} after {change.t:,} steps")
        if self._late_plans:
            reasons.append(f"{self._late_plans:,} plans were adopted later than the observations they were made from")
        if self._late_outcomes:
            reasons.append(
                f"{self._late_outcomes:,} outcomes were reported after observations that their decisions had not seen"
            )
        return replace(found, reason_void="; ".join(reasons))
