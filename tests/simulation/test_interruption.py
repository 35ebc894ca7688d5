"""Ctrl-C and errors end long simulations soon, progress is told within a run, and slices change no bit."""

from __future__ import annotations

import _thread
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import gainful as gf
from gainful.simulation import slices
from gainful.simulation.slices import PAUSE, STEPS_AT_A_TIME, SliceLength
from gainful.simulation.threads import in_threads
from tests.simulation.test_many import factory, same

RIVER = gf.environments.riverswim(6)
PATIENCE = 10.0
"""Seconds after which a thread that was not ended gives up."""


@pytest.fixture
def python_answers_ctrl_c() -> Iterator[None]:
    """As in a foreground process: a background one may have been told to ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def waits_to_be_ended(pause: Callable[[], None]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        pause()
        time.sleep(0.001)
    raise AssertionError("nobody ended the thread")


def test_an_error_in_one_thread_ends_the_others() -> None:
    begun: list[int] = []

    def work(item: int, pause: Callable[[], None]) -> None:
        begun.append(item)
        if item == 1:
            raise ValueError("item 1")
        waits_to_be_ended(pause)

    with pytest.raises(ValueError, match="item 1"):
        in_threads(work, range(100), 2)
    assert len(begun) < 100


def test_ctrl_c_ends_all_threads(python_answers_ctrl_c: None) -> None:
    def work(item: int, pause: Callable[[], None]) -> None:
        if item == 0:
            _thread.interrupt_main()
        waits_to_be_ended(pause)

    with pytest.raises(KeyboardInterrupt):
        in_threads(work, range(8), 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_runs_of_a_million_million_steps(threads: int, python_answers_ctrl_c: None) -> None:
    told: list[int] = []

    def tell(done: int, total: int) -> None:
        told.append(done)
        if len(told) == 30:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        gf.simulate_many(factory(RIVER), RIVER, 10**12, range(2), threads=threads, progress=tell)
    assert told == sorted(told)


def test_a_summary_tells_its_progress_within_the_runs() -> None:
    told: list[tuple[int, int]] = []
    gf.simulate_many(
        factory(RIVER),
        RIVER,
        1000,
        range(3),
        threads=1,
        keep="summary",
        progress=lambda done, total: told.append((done, total)),
    )
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == (3000, 3000)


def test_slices_grow_and_shrink_with_the_time_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    length, taken = SliceLength(), []
    for seconds_per_step in [1e-9] * 16 + [1e-6] * 3:
        length.begin()
        now += seconds_per_step * length.steps
        taken.append(length.steps)
        length.end(length.steps)
    assert taken[:3] == [STEPS_AT_A_TIME, 2 * STEPS_AT_A_TIME, 4 * STEPS_AT_A_TIME]
    assert taken[15] == PAUSE
    assert taken[16] == PAUSE  # the first slow one
    assert taken[18] * 1e-6 < slices.LONGEST_SLICE


def test_where_four_runs_in_turn_are_cut_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    make, options = factory(RIVER), {"threads": 1, "checkpoints": [3000]}
    whole = gf.simulate_many(make, RIVER, 3000, range(4), **options)  # type: ignore[call-overload]
    monkeypatch.setattr(slices, "STEPS_AT_A_TIME", 7)  # the first slice
    monkeypatch.setattr(slices, "PAUSE", 7)  # and the longest
    for run in gf.simulate_many(make, RIVER, 3000, range(4), **options):  # type: ignore[call-overload]
        same(run, whole[run.seed])


def test_ctrl_c_in_progress_saves_the_run_as_it_is(tmp_path: Path) -> None:
    make, file, steps = factory(RIVER), tmp_path / "run", 4000
    whole = gf.simulate(make(5), RIVER, steps, 5)
    told: list[int] = []

    def interrupt(step: int, _: int) -> None:
        told.append(step)
        if step >= 1500:
            raise KeyboardInterrupt

    options = {"checkpoint_file": file, "checkpoint_every": 1e9}
    with pytest.raises(KeyboardInterrupt):
        gf.simulate(make(5), RIVER, steps, 5, progress=interrupt, **options)  # type: ignore[call-overload]
    stopped_at = told[-1]
    told.clear()
    continued = gf.simulate(make(5), RIVER, steps, 5, progress=lambda step, _: told.append(step), **options)  # type: ignore[call-overload]
    assert told[0] > stopped_at
    assert np.array_equal(whole.rewards, continued.rewards)
    same(continued, whole)
