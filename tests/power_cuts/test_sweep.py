"""Power cuts at random moments lose no run that a sweep has stored, and the sweep ends with the same bits.

30 cuts in `make test-all`, 1,000 in `make soak`; GAINFUL_CUTS sets their number.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gainful.errors import StoreError
from gainful.experiments.store import Store
from gainful.experiments.sweep import run_experiment
from tests.experiments.sweeps import bits
from tests.power_cuts.recording import CUTS, CUTS_PER_RECORDING, Cut, Recording
from tests.power_cuts.workloads import RESULTS, finish_sweep


def check_nothing_is_lost(cut: Cut) -> None:
    """Everything stored and planned is there, for a reader and for a writer."""
    folder = cut.folder / RESULTS
    stored = {mark["stored"] for mark in cut.marks if "stored" in mark}
    planned = max((mark["planned"] for mark in cut.marks if "planned" in mark), default=0)
    if not (folder / "runs.sqlite").exists():
        assert not planned
        return
    try:
        with Store.read(folder) as store:
            assert stored <= store.finished()
            assert all(row["data"] for row in store.runs())
    except StoreError:
        assert not planned
    with Store.open(folder) as store:
        assert stored <= store.finished()
        assert len(store.planned()) >= planned


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(1, CUTS // CUTS_PER_RECORDING)))
def test_power_cuts_lose_no_stored_run(seed: int, place: Path) -> None:
    """Every second recording begins on a disk that a power cut left."""
    made = Recording(place / "recorded", "sweep", seeds=[2, 4])
    expected = bits(made.root / RESULTS)
    if seed % 2:
        cut = next(made.cuts(1, place, seed))
        made = Recording(place / "again", "sweep", start=cut.folder, seeds=[2, 4])
        assert bits(made.root / RESULTS) == expected
    for cut in made.cuts(min(CUTS, CUTS_PER_RECORDING), place, seed):
        check_nothing_is_lost(cut)
        finish_sweep(cut.folder / RESULTS, 4, lambda **_: None)
        assert bits(cut.folder / RESULTS) == expected


@pytest.mark.slow
def test_power_cuts_of_an_experiment_with_workers(place: Path) -> None:
    spec = (
        'horizon = 2e4\nseeds = 3\ncheckpoints = 5\n[[environments]]\nname = "riverswim"\n[[agents]]\nname = "psrl"\n'
    )
    made = Recording(place / "recorded", "experiment", spec=spec)
    expected = bits(made.root / RESULTS)
    for i, cut in enumerate(made.cuts(CUTS, place, 1)):
        finished = max((mark["finished"] for mark in cut.marks), default=0)
        if finished:
            with Store.read(cut.folder / RESULTS) as store:
                assert len(store.finished()) >= finished
        if i % max(10, CUTS // 20) == 0:
            assert run_experiment(spec, cut.folder / RESULTS, jobs=1).complete
            assert bits(cut.folder / RESULTS) == expected


def test_a_store_whose_creation_was_cut_off_was_refused(place: Path) -> None:
    """The file was there, in WAL mode and without a table."""
    with sqlite3.connect(place / "runs.sqlite", isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(StoreError, match="nothing was stored"):
        Store.read(place)
    assert (place / "runs.sqlite").stat().st_size > 0
    with Store.open(place) as store:
        assert store.planned() == []
