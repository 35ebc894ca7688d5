"""What would take too much memory is refused before anything is built."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful import environments
from gainful.archive import CHECKSUM_WORDS
from gainful.cli.main import run as command
from gainful.errors import InvalidAgentError, InvalidArgumentError, InvalidMDPError, MemoryLimitError
from gainful.experiments.spec import read_spec
from gainful.experiments.wire_format import pack, unpack
from gainful.live.history_files import pack_history, salvage, sealed, unpack_history
from gainful.live.journal import read_history
from gainful.machine import MEMORY_VARIABLE, bytes_of, memory_limit, total_memory


@pytest.fixture(autouse=True)
def one_gigabyte() -> Iterator[None]:
    """The same limit on any machine."""
    gf.set_max_memory("1 GB")
    yield
    gf.set_max_memory(None)


HUGE: dict[str, Callable[[], Any]] = {
    "an agent": lambda: gf.UCRL2(n_states=10**9, n_actions=2),
    "an agent beyond all floats": lambda: gf.SCALPlus(n_states=10**400, n_actions=2, span=1.0),
    "an agent with many actions": lambda: gf.KLSCALPlus(n_states=2, n_actions=10**9),
    "a table of actions": lambda: gf.UCBVI(n_states=1000, n_actions=2, episode_length=10**9, horizon=10**9),
    "a grid of cells": lambda: gf.CSCALPlus(
        partition=gf.Partition.uniform(bins=30_000, dim=2), n_actions=2, span=1.0, lipschitz=1.0
    ),
    "centres": lambda: gf.Partition.uniform(bins=40_000, dim=2).centers,
    "riverswim": lambda: environments.riverswim(10**9),
    "riverswim_bourel": lambda: environments.riverswim_bourel(10**9),
    "riverswim_ergodic": lambda: environments.riverswim_ergodic(10**9),
    "riverswim_maillard": lambda: environments.riverswim_maillard(10**9),
    "garnet": lambda: environments.garnet(10**9, 4, 5),
    "machine_replacement": lambda: environments.machine_replacement(10**6),
    "four_rooms": lambda: environments.four_rooms(10**6 + 1),
    "server_routing": lambda: environments.server_routing(10**6),
    "hard_family": lambda: environments.hard_family(n_pieces=10**9),
    "inventory_control": lambda: environments.inventory_control(10**6),
    "admission_control": lambda: environments.admission_control(10**6),
    "access_control_queue": lambda: environments.access_control_queue(10**6),
    "weakly_communicating_toy": lambda: environments.weakly_communicating_toy(10**6),
    "many runs": lambda: gf.simulate_many(
        lambda seed: gf.UCRL2(6, 2, seed=seed), environments.riverswim(), horizon=100, seeds=range(10**12)
    ),
    "a live agent": lambda: gf.open_agent("never made", {"agent": "ucrl2", "n_states": 10**9, "n_actions": 2}),
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_size_was_built_before_it_was_checked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MemoryLimitError, match="the limit is 1 GB; make it smaller, or raise the limit") as refused:
        HUGE[kind]()
    assert refused.value.limit == 10**9 < refused.value.needed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bins", [1, 2, [2]])
def test_a_partition_of_a_thousand_million_axes_was_built_first(bins: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected an integer from 1 to 10,000"):
        gf.Partition.uniform(bins=bins, dim=10**9)


def test_bins_on_many_axes_are_counted_without_the_product() -> None:
    with pytest.raises(InvalidArgumentError, match="too many cells"):
        gf.Partition.uniform(bins=1000, dim=9000)


@pytest.mark.slow
def test_what_is_refused_takes_no_memory(tmp_path: Path) -> None:
    """All of it in a process of its own, whose largest size is measured."""
    code = (
        "import resource, gainful as gf; from tests.test_memory_limit import HUGE; gf.set_max_memory('1 GB')\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "for build in HUGE.values():\n"
        "    try: build()\n"
        "    except gf.errors.MemoryLimitError: print(peak() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    taken = [int(line) for line in done.stdout.split()]
    assert len(taken) == len(HUGE)
    assert taken[-1] < 200_000  # kB: the modules that are imported on first use


# ---------------------------------------------------------------------- files


def archive_of(path: Path, arrays: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(shape: tuple[int, ...], data: bytes, dtype: str = "u1") -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": f"|{dtype}", "fortran_order": False, "shape": shape})
    return head.getvalue() + data


def test_a_small_archive_that_inflates_to_gigabytes(tmp_path: Path) -> None:
    gf.set_max_memory("10 MB")
    path = archive_of(tmp_path / "bomb", {"header": npy((12_000_000,), bytes(12_000_000))})
    assert path.stat().st_size < 100_000
    for load in (gf.load_agent, gf.MDP.load):
        with pytest.raises(
            MemoryLimitError, match=r"bomb: what is in the file would take about 12 MB .* limit is 10 MB"
        ):
            load(path)


def test_a_history_file_that_inflates_to_gigabytes(tmp_path: Path) -> None:
    """3 MB of zeros in the limit of 1 MB, as one member and as many."""
    gf.set_max_memory("1 MB")
    for bomb in (pack_history(bytes(3 << 20)), sealed(gzip.compress(bytes(1 << 18)) * 12)):
        assert len(bomb) < 8000
        with pytest.raises(MemoryLimitError, match=r"history-1-9\.gz: what is in it"):
            unpack_history(bomb, "history-1-9.gz")
        with pytest.raises(MemoryLimitError):
            salvage(bomb)
    (tmp_path / "history-1-9.gz").write_bytes(pack_history(bytes(3 << 20)))
    with pytest.raises(MemoryLimitError):
        read_history(tmp_path / "history-1-9.gz")
    assert unpack_history(pack_history(bytes(1 << 18))) == bytes(1 << 18)


def test_a_stored_result_that_inflates_to_gigabytes() -> None:
    gf.set_max_memory("1 MB")
    packed = pack({"gain": 0.5}, {"regret": np.zeros(1 << 19)})
    assert len(packed) < 8000
    with pytest.raises(MemoryLimitError, match="a packed result: what is in it"):
        unpack(packed)
    values, arrays = unpack(pack({"gain": 0.5}, {"regret": np.arange(1000.0)}))
    assert (values, arrays["regret"].tolist()) == ({"gain": 0.5}, list(range(1000)))


def test_compressed_data_that_ends_early_is_damage() -> None:
    whole = gzip.compress(np.random.default_rng(0).bytes(20_000))
    for cut in (1, 100, len(whole) - 1):
        with pytest.raises(ValueError, match="early"):
            unpack_history(whole[:cut])
    assert len(salvage(whole[:-100])) > 10_000
    with pytest.raises(ValueError, match="not a packed result"):
        unpack(pack({}, {"x": np.arange(100)})[:-4])


def test_an_array_that_says_it_is_larger_than_its_data(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "bomb", {"header": npy((10**15,), bytes(10))})
    with pytest.raises(InvalidAgentError, match=r"damaged: .*has shape"):
        gf.load_agent(path)


def test_an_agent_on_a_smaller_machine_is_not_called_damaged(tmp_path: Path) -> None:
    agent = gf.UCRL2(n_states=1000, n_actions=2)
    agent.save(tmp_path / "agent")
    assert (tmp_path / "agent").read_bytes()[-100:].count(CHECKSUM_WORDS)
    gf.set_max_memory("100 kB")
    with pytest.raises(MemoryLimitError, match="100 kB"):
        gf.load_agent(tmp_path / "agent")


ROWS = "state,action,next_state,probability,reward\n" + "0,0,0,1,0.5\n" * 20_000


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".parquet"])
def test_a_table_that_is_too_large_is_not_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        pd.read_csv(io.StringIO(ROWS)).to_parquet(path)
    elif suffix == ".csv.zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("table.csv", ROWS)
    else:
        packed: dict[str, Callable[[bytes], bytes]] = {
            ".csv": bytes,
            ".csv.gz": gzip.compress,
            ".csv.bz2": bz2.compress,
            ".csv.xz": lzma.compress,
        }
        path.write_bytes(packed[suffix](ROWS.encode()))
    gf.set_max_memory("1 MB")
    with pytest.raises(MemoryLimitError, match=r"the table.* would take about .* MB of memory, and the limit is 1 MB"):
        gf.MDP.from_table(path)
    gf.set_max_memory("100 MB")
    with pytest.raises(InvalidMDPError):  # it was read: a transition is there twice
        gf.MDP.from_table(path)


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".parquet"])
def test_a_compressed_table_that_is_none_is_told(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    path.write_bytes(b"this is text")
    with pytest.raises(InvalidMDPError, match=f"table{suffix}"):
        gf.MDP.from_table(path)


# ---------------------------------------------------------------------- the limit itself


def test_the_limit_is_half_of_the_machine_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_limit() == 10**9
    gf.set_max_memory(None)
    assert memory_limit() == total_memory() // 2
    monkeypatch.setenv(MEMORY_VARIABLE, "2 KiB")
    assert memory_limit() == 2048
    monkeypatch.setenv(MEMORY_VARIABLE, "a lot")
    with pytest.raises(InvalidArgumentError, match="GAINFUL_MAX_MEMORY is 'a lot', expected a size such as 8GB"):
        memory_limit()


@pytest.mark.parametrize(("text", "size"), [("8GB", 8e9), ("0.5 gib", 2**29), ("1e6", 1e6), (" 7 k ", 7000), (9, 9)])
def test_sizes(text: Any, size: float) -> None:
    assert bytes_of("limit", text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "8 XB", "0", "nan", "1e99", True, None, "8,5 GB", "1e-3 GB"])
def test_what_is_no_size(text: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a size"):
        bytes_of("limit", text)


def test_n_states_of_1e9_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["solve", "riverswim", "--set", "n_states=1000000000", "--max-memory", "2GB"]) == 2
    said = capsys.readouterr().err
    assert "a river with 1,000,000,000 states and 2 actions would take about 1 TB of memory" in said
    assert "--max-memory" in said
    assert memory_limit() == 10**9  # the option was for one command
    assert command(["solve", "riverswim", "--max-memory", "much"]) == 2
    assert "--max-memory" in capsys.readouterr().err


def test_n_states_of_1e9_in_a_spec(tmp_path: Path) -> None:
    spec = {
        "horizon": 100,
        "seeds": 1,
        "environments": [{"name": "riverswim", "parameters": {"n_states": 10**9}}],
        "agents": [{"name": "fixed"}],
    }
    outcome = gf.run_experiment(read_spec(spec), tmp_path / "out", jobs=1)
    assert [failure["kind"] for failure in outcome.failures] == ["MemoryLimitError"]
    assert "would take about 1 TB of memory, and the limit is 1 GB" in outcome.failures[0]["message"]
