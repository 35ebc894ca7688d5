"""Lives that are killed at random instants go on as if nothing had happened.

Three kills in `make test`, 20 in `make test-all`, 200 in `make soak`; GAINFUL_KILLS sets their number. They
land in observations, snapshots, compactions and in writes that fail for want of room; each is a SIGKILL.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gainful.errors import AgentInUseError
from gainful.live import open_agent, read_journal
from gainful.live.agent_config import make_agent
from tests.live.lives import CONFIG, bits, lived, replayed_from_the_beginning, reward_at, state_at

FEW, MANY = 3, 20
KILLS = (
    [int(os.environ["GAINFUL_KILLS"])]
    if "GAINFUL_KILLS" in os.environ
    else [FEW, pytest.param(MANY, marks=pytest.mark.slow)]
)
NAMES = {0: "between", 1: "snapshot", 2: "compaction"}


def check_table(path: Path, acknowledged: int) -> int:
    """No acknowledged observation is missing, none is there twice, and each is what was told; their number."""
    frame = read_journal(path)
    assert frame.sequence.tolist() == list(range(1, len(frame) + 1))
    seen = frame[frame.kind == "observation"]
    n = len(seen)
    assert acknowledged <= n <= acknowledged + 1
    assert seen.step.tolist() == list(range(1, n + 1))
    assert seen.state.tolist() == [state_at(t) for t in range(n)]
    assert seen.next_state.tolist() == [state_at(t + 1) for t in range(n)]
    assert seen.reward.tolist() == [reward_at(t, int(a)) for t, a in enumerate(seen.action)]
    assert seen.decision_id.is_unique
    made = frame[frame.kind == "decision"].set_index("decision_id").action
    assert (made[seen.decision_id].to_numpy() == seen.action.to_numpy()).all()
    return n


@pytest.mark.parametrize("least", KILLS)
@pytest.mark.parametrize(("planning", "fsync"), [("inline", "off"), ("inline", "record"), ("background", 3)])
def test_kills_at_random_instants_lose_nothing(planning: Any, fsync: Any, least: int, tmp_path: Path) -> None:
    from tests.live.victim import ACKNOWLEDGED, FAILURES, OPENED, STAGE, WRONG, Board, life

    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.live.victim"])
    path, board = tmp_path / "agent", Board(tmp_path / "board")
    options = {"planning": planning, "fsync": fsync, "snapshot_every": 9}
    open_agent(path, CONFIG, **options).close()
    first_snapshot = (path / "snapshot-0.npz").read_bytes()
    chance, where = random.Random(7), Counter[str]()
    kills = 0
    never = 10**9
    while kills < least or (least >= MANY and not (where["snapshot"] and where["compaction"] and board[FAILURES])):
        known = board[ACKNOWLEDGED]
        board[OPENED], board[STAGE] = never, 0
        arguments = (path, tmp_path / "board", kills, options, never)
        process = server.Process(target=life, args=arguments, daemon=True)
        process.start()
        if chance.random() < 0.85:  # else the kill lands where it lands, in opening perhaps
            patience = time.monotonic() + 60
            while board[OPENED] == never and process.is_alive():
                assert time.monotonic() < patience
                time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.12))
        if board[OPENED] != never and kills % 7 == 0:
            with pytest.raises(AgentInUseError) as refused:
                open_agent(path)
            assert refused.value.pid == process.pid
        process.kill()
        process.join()
        assert process.exitcode == -9, "the life ended by itself"
        assert board[WRONG] == 0
        if board[OPENED] != never:
            assert known <= board[OPENED] <= known + 1
        kills += 1
        where[NAMES[board[STAGE]]] += 1
        check_table(path, board[ACKNOWLEDGED])
        assert kills < 20 * least + 200
    print(f"{kills} kills: {dict(where)}, {board[FAILURES]} writes failed, {board[ACKNOWLEDGED]} observations")
    with open_agent(path, **options) as agent:
        until = (agent.t // 100 + 1) * 100
        if agent.pending:  # the decision that the last life was killed after
            t, (waiting, *_) = agent.t, agent.pending
            agent.report(waiting.decision_id, reward_at(t, waiting.action), state_at(t + 1))
        lived(agent, until)
        found = bits(agent)
    assert check_table(path, until) == until
    if planning == "inline":
        undisturbed, _ = make_agent(CONFIG)
        lived(undisturbed, until)
        assert found == bits(undisturbed)
    with replayed_from_the_beginning(path, first_snapshot, tmp_path / "again") as again:
        assert bits(again) == found


@pytest.mark.parametrize("kills", KILLS)
def test_a_folder_is_begun_whole_or_not_at_all(kills: int, tmp_path: Path) -> None:
    """Killed while it is made, the folder is begun anew."""
    from tests.live.victim import Board, life

    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.live.victim"])
    chance, unfinished = random.Random(3), 0
    Board(tmp_path / "board")
    for i in range(kills):
        path = tmp_path / f"agent {i}"
        options = {"fsync": "record", "planning": "inline"}
        process = server.Process(target=life, args=(path, tmp_path / "board", i, options, 1), daemon=True)
        process.start()
        while not path.exists() and process.is_alive():
            pass
        time.sleep(chance.uniform(0.0, 0.012))
        process.kill()
        process.join()
        unfinished += path.exists() and not (path / "agent.json").exists()
        with open_agent(path, CONFIG, planning="inline", fsync="off") as agent:
            assert agent.t <= 1
            lived(agent, 3)
    assert unfinished or kills < MANY  # a few kills may all miss the moment
