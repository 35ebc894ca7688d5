"""How packed runs are laid out: what can be seen without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")

from gainful.simulation.device.packed_layout import LOG_CAPACITY, MAX_PACKED_ACTIONS, LogFormat
from gainful.simulation.device.runs import rows_of
from gainful.simulation.device.scal_plus_space import action_major_rows, are_paired, row_pitch
from gainful.simulation.device.worlds import even_block

SHARED = 232_448
"""Bytes of shared memory that a block of an H200 can have."""


@pytest.mark.parametrize(("n_actions", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6)])
def test_an_action_word_has_bits_for_every_action_and_for_executions(n_actions: int, bits: int) -> None:
    layout = LogFormat(10, 4, n_actions, 0, False).layout()
    assert int(layout.one_execution) == 1 << bits >= n_actions
    assert int(layout.max_executions) * int(layout.one_execution) + n_actions - 1 <= 0xFFFF


@pytest.mark.parametrize("bernoulli", [False, True])
@pytest.mark.parametrize("n_sums", [0, 1, 2])
def test_the_action_words_of_a_run_begin_where_its_sums_end(n_sums: int, bernoulli: bool) -> None:
    log_format = LogFormat(7, 3, 2, n_sums, bernoulli)
    layout = log_format.layout()
    assert int(layout.action_words_start) * 2 == 8 * n_sums * 7
    assert log_format.run_bytes == 4 * int(layout.words_per_run) >= 2 * (int(layout.action_words_start) + 7)
    assert n_sums == 0 or log_format.run_bytes % 8 == 0  # the sums of the next run are aligned
    assert log_format.n_entries == 7 * 3 * (1 + bernoulli)


def test_the_state_of_every_entry_is_its_quotient() -> None:
    entries = np.arange(1 << 16, dtype=np.uint64)
    for width in [*range(1, 130), 1000, 30_000, 65_535]:
        layout = LogFormat(1, width, 2, 0, False).layout()
        np.testing.assert_array_equal(
            (entries * layout.inverse_pitch) >> np.uint64(32), entries // np.uint64(layout.pitch)
        )


def test_entries_of_the_log_have_sixteen_bits() -> None:
    assert LogFormat(200, 8, 4, 0, False).fits(SHARED)
    assert not LogFormat(7282, 8, 4, 0, False).fits(1 << 30)  # 7,282 * 9 entries
    assert LogFormat(7281, 8, 4, 0, False).fits(1 << 30)
    assert not LogFormat(10, 4, MAX_PACKED_ACTIONS + 1, 0, False).fits(SHARED)
    assert not LogFormat(2000, 8, 4, 0, False).fits(SHARED)  # its counters leave no room for other runs
    assert LOG_CAPACITY % 8 == 0


@pytest.mark.parametrize(("n_runs", "most"), [(100_000, 456), (1, 456), (131, 33), (10**6, 1500), (60_000, 31)])
def test_blocks_have_whole_warps_and_the_last_wave_is_as_full_as_the_others(n_runs: int, most: int) -> None:
    from gainful.cuda_device import SIMULATED, WARP

    assert not SIMULATED
    block = even_block(n_runs, most, n_multiprocessors=132)
    assert block % WARP == 0
    assert WARP <= block <= max(WARP, min(most, 1024))
    waves = -(-n_runs // (132 * block))
    assert waves == -(-n_runs // (132 * max(WARP, min(most, 1024) // WARP * WARP)))


def test_slots_are_by_action_then_by_state() -> None:
    lengths = np.array([2, 1, 3, 1])  # of two states with two actions each
    indices = np.array([0, 1, 1, 0, 1, 1, 0], dtype=np.uint32)
    allowed = np.array([[True, False], [True, True]])
    rows = action_major_rows(rows_of(lengths, indices, allowed), n_actions=2)
    assert rows.length.tolist() == [2, 3, 1, 1]
    assert rows.allowed.tolist() == [True, True, False, True]
    assert rows.next_state.reshape(4, 3).tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert rows.next_state_quads.view(np.uint16).reshape(4, 4)[:, :3].tolist() == rows.next_state.reshape(4, 3).tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 8, 11, 12])
def test_every_counter_of_an_agent_is_copied_to_the_row_of_its_slot(width: int) -> None:
    n_states, n_actions = 5, 3
    indices = np.tile(np.arange(width, dtype=np.uint32), n_states * n_actions)
    rows = rows_of(np.full(n_states * n_actions, width), indices, np.ones((n_states, n_actions), dtype=bool))
    destinations = action_major_rows(rows, n_actions).destinations.astype(np.int64)
    counts: np.ndarray[Any, Any] = np.arange(1, n_states * n_actions * width + 1, dtype=np.uint32)
    words = counts.view(np.uint64) if are_paired(width) else counts  # as a block reads them
    block = np.zeros(n_states * n_actions * row_pitch(width), dtype=np.uint64)
    block[destinations] = words & np.uint64(0xFFFFFFFF)
    if are_paired(width):
        block[destinations + 1] = words >> np.uint64(32)
    by_slot = block.reshape(n_actions, n_states, row_pitch(width))
    np.testing.assert_array_equal(by_slot[:, :, :width].transpose(1, 0, 2).reshape(-1), counts)
    assert not by_slot[:, :, width:].any()


def test_rows_of_counts_begin_in_different_banks() -> None:
    for width in range(1, 40):
        assert row_pitch(width) % 2 == 1
        assert row_pitch(width) > width  # visits come last
