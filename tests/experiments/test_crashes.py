"""A sweep whose workers and driver are killed at random moments ends as if nothing had happened.

Three kills in `make test`, 20 in `make test-all`, 200 in `make soak` (GAINFUL_KILLS).
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from gainful.experiments.store import Store
from tests.experiments.sweeps import bits, command, finished, workers_of, written

MANY_KILLS = int(os.environ.get("GAINFUL_KILLS", "20"))
SPEC = """
title = "a sweep under fire"
horizon = 5e7
seeds = 4
[[environments]]
name = "riverswim"
[[environments]]
name = "lqg"
horizon = 2e6
[[agents]]
name = "scal-plus"
[[agents]]
name = "psrl"
horizon = 1e6
[[agents]]
name = "c-scal-plus"
parameters = { bins = 20 }
only = ["lqg"]
"""
OPTIONS = ("-j", "2", "--checkpoint-every", "0.1", "--tries", "1000")


def started(spec: Path, out: Path) -> subprocess.Popen[str]:
    """A driver that says nothing: what it holds back in a pipe must not hold it up."""
    return subprocess.Popen(
        command(spec, out, *OPTIONS), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )


def strike(driver: subprocess.Popen[str], chance: random.Random) -> bool:
    """Wait a moment and kill a worker, or the driver; False if the sweep was over before."""
    workers_too = chance.random() < 0.6
    patience = time.monotonic() + 120.0
    while workers_too and driver.poll() is None and not workers_of(driver):
        assert time.monotonic() < patience
        time.sleep(0.01)
    time.sleep(chance.uniform(0.0, 3.0))
    if driver.poll() is not None:
        return False
    workers = workers_of(driver)
    if workers_too and workers:
        chance.choice(workers).kill()
    else:
        driver.kill()
        driver.wait()
    return True


SHORT_SPEC = """
title = "a short sweep under fire"
horizon = 2e7
seeds = 2
[[environments]]
name = "riverswim"
[[environments]]
name = "lqg"
horizon = 5e5
[[agents]]
name = "scal-plus"
"""


@pytest.mark.parametrize(
    ("kills", "text", "runs"),
    [
        pytest.param(3, SHORT_SPEC, 4, marks=pytest.mark.slow),
        pytest.param(MANY_KILLS, SPEC, 20, marks=pytest.mark.slow),
    ],
    ids=["few", "many"],
)
def test_kills_at_random_moments_change_nothing(kills: int, text: str, runs: int, tmp_path: Path) -> None:
    spec = written(tmp_path, text)
    finished(spec, tmp_path / "whole", "-j", "2")
    wanted = bits(tmp_path / "whole")
    assert len(wanted) == runs
    chance, killed, sweeps = random.Random(1), 0, 0
    while killed < kills:
        out = tmp_path / f"sweep {sweeps}"
        driver = started(spec, out)
        while killed < kills:
            if strike(driver, chance):
                killed += 1
            elif driver.returncode == 0:
                break
            if driver.poll() is not None:
                driver = started(spec, out)
        if driver.wait(timeout=300) != 0:
            finished(spec, out, *OPTIONS)
        assert bits(out) == wanted
        with Store.read(out) as store:
            assert sum(row["finished"] for row in store.progress()) == len(wanted)
            assert store.failures() == []
        assert [p.name for p in (out / "checkpoints").iterdir()] == ["token"]
        sweeps += 1
