"""Callbacks and progress: they see the run and change no bit of it."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful import progress as progress_module
from gainful.errors import InvalidArgumentError
from gainful.simulation.callbacks import CheckpointView

RIVER = gf.environments.riverswim(6)


def assert_same_bits(one: gf.Run, other: gf.Run) -> None:
    for name in ("steps", "rewards", "regret", "pseudo_regret", "expected_regret"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in one.episodes.dtype.names or ():
        if name != "planning_seconds":
            np.testing.assert_array_equal(one.episodes[name], other.episodes[name])


def test_a_callback_sees_every_checkpoint_and_changes_no_bit() -> None:
    seen: list[CheckpointView] = []
    plain = gf.simulate(gf.PSRL(6, 2), RIVER, 2000, seed=4)
    agent = gf.PSRL(6, 2)

    def look(now: CheckpointView) -> None:
        assert now.agent is agent
        assert now.agent.t == now.step
        assert now.agent.predict(0) in (0, 1)
        assert repr(now.agent)
        seen.append(now)

    run = gf.simulate(agent, RIVER, 2000, seed=4, callback=look, progress=lambda step, horizon: None)
    assert_same_bits(run, plain)
    for name, values in {
        "step": run.steps,
        "reward": run.rewards,
        "regret": run.regret,
        "pseudo_regret": run.pseudo_regret,
        "expected_regret": run.expected_regret,
    }.items():
        np.testing.assert_array_equal([getattr(now, name) for now in seen], values)
    assert seen[-1].episodes == len(run.episodes)
    assert {(now.horizon, now.seed) for now in seen} == {(2000, 4)}


def test_many_runs_call_back_with_their_seeds_in_the_order_of_their_steps() -> None:
    seen: dict[int, list[int]] = {seed: [] for seed in range(5)}
    plain = gf.simulate_many(lambda seed: gf.PSRL(6, 2, seed=seed), RIVER, 1000, range(5))
    runs = gf.simulate_many(
        lambda seed: gf.PSRL(6, 2, seed=seed),
        RIVER,
        1000,
        range(5),
        callback=lambda now: seen[now.seed].append(now.step),
    )
    for one, other in zip(runs, plain, strict=True):
        assert_same_bits(one, other)
        assert seen[one.seed] == one.steps.tolist()


def test_unknown_measures_are_left_out_of_the_values() -> None:
    env = RIVER.to_gymnasium()
    seen: list[CheckpointView] = []
    halved = gymnasium.wrappers.TransformReward(env, lambda r: float(r) / 2)
    gf.simulate(gf.PSRL(6, 2), halved, 50, checkpoints=[50], callback=seen.append)
    assert list(seen[0].values()) == ["reward", "reward_per_step", "episodes"]
    gf.simulate(gf.PSRL(6, 2), env, 50, checkpoints=[50], callback=seen.append)
    assert {"regret", "pseudo_regret", "expected_regret"} < set(seen[1].values())
    assert np.isfinite(list(seen[1].values().values())).all()


def test_a_resumed_run_shows_the_checkpoints_to_come(tmp_path: Path) -> None:
    class PowerCutError(Exception):
        pass

    def fail(now: CheckpointView) -> None:
        if now.step > 100:
            raise PowerCutError

    file, steps = tmp_path / "run", [10, 100, 1000, 2000]
    with pytest.raises(PowerCutError):
        gf.simulate(
            gf.PSRL(6, 2), RIVER, 2000, checkpoints=steps, callback=fail, checkpoint_file=file, checkpoint_every=0.0
        )
    seen: list[int] = []
    run = gf.simulate(
        gf.PSRL(6, 2), RIVER, 2000, checkpoints=steps, callback=lambda now: seen.append(now.step), checkpoint_file=file
    )
    assert seen == [1000, 2000]
    assert_same_bits(run, gf.simulate(gf.PSRL(6, 2), RIVER, 2000, checkpoints=steps))


@pytest.mark.parametrize("verb", ["act", "observe"])
def test_a_callback_that_moves_the_agent_is_refused(verb: str) -> None:
    def meddle(now: CheckpointView) -> None:
        if verb == "observe":
            now.agent.observe(0, 0, 0.0, 0)
        else:
            now.agent.begin_episode()

    with pytest.raises(InvalidArgumentError, match="the callback at step 10 let the agent act or observe"):
        gf.simulate(gf.PSRL(6, 2), RIVER, 100, checkpoints=[10], callback=meddle)


def test_an_agent_of_ones_own_is_shown_as_it_is() -> None:
    class Left:
        def act(self, state: int) -> int:
            return 0

        def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
            pass

    mine: Any = Left()
    seen: list[CheckpointView] = []
    with pytest.warns(gf.errors.SteppedInPythonWarning):
        gf.simulate(mine, RIVER, 20, checkpoints=[10], callback=seen.append)
    assert [now.agent for now in seen] == [mine, mine]
    assert seen[-1].expected_regret > 0


def test_a_callback_or_progress_that_cannot_be_called_is_refused() -> None:
    bad: Any = 3
    with pytest.raises(InvalidArgumentError, match="callback"):
        gf.simulate(gf.PSRL(6, 2), RIVER, 10, callback=bad)
    with pytest.raises(InvalidArgumentError, match="progress"):
        gf.simulate(gf.PSRL(6, 2), RIVER, 10, progress=bad)
    with pytest.raises(InvalidArgumentError, match="progress"):
        gf.simulate_many(lambda seed: gf.PSRL(6, 2), RIVER, 10, [1], progress=bad)


def test_progress_is_a_line_now_and_then_in_a_log(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    gf.simulate(gf.PSRL(6, 2), RIVER, 1000, progress=True)
    written = capsys.readouterr()
    assert written.out == ""
    assert "PSRL: 1,000 of 1,000 steps (100 %)" in written.err.splitlines()[-1]
    gf.simulate_many(lambda seed: gf.PSRL(6, 2, seed=seed), RIVER, 500, range(2), progress=True)
    assert "2 runs: 1,000 of 1,000 steps (100 %)" in capsys.readouterr().err.splitlines()[-1]


def test_solve_tells_its_sweeps_and_its_bracket_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    told: list[tuple[int, float]] = []
    plain, watched = gf.solve(RIVER), gf.solve(RIVER, progress=lambda sweeps, width: told.append((sweeps, width)))
    assert (watched.gain_bounds, watched.sweeps) == (plain.gain_bounds, plain.sweeps)
    assert np.array_equal(watched.bias, plain.bias)
    assert [sweeps for sweeps, _ in told] == sorted({sweeps for sweeps, _ in told})
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    gf.solve(RIVER, progress=True)
    assert "sweeps, gain within " in capsys.readouterr().err.splitlines()[-1]


def test_progress_on_a_terminal_is_rewritten_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "REWRITE_EVERY", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    gf.simulate(gf.PSRL(6, 2), RIVER, 1000, progress=True)
    text = terminal.getvalue()
    assert "PSRL: 1,000 of 1,000 steps" in text
    assert text.endswith(("\x1b[2K", "\x1b[?25h\r\x1b[1A\x1b[2K"))


def test_progress_in_a_notebook_is_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda data, raw: updates.append(data))
    notebook = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(display=lambda data, raw, display_id: handle),
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(progress_module, "REWRITE_EVERY", 0.0)
    gf.simulate(gf.PSRL(6, 2), RIVER, 1000, progress=True)
    assert updates[-2]["text/html"].startswith("<code>PSRL: 1,000 of 1,000 steps (100 %)")
    assert updates[-1] == {"text/plain": ""}
