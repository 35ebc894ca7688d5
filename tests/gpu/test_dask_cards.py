"""Each worker of a Dask cluster uses a GPU of its own; workers here have simulated ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gainful.errors import DeviceError
from gainful.experiments import dask_device_executor
from gainful.experiments.spec import read_spec
from gainful.experiments.store import Store
from gainful.experiments.sweep import SilentWatcher, SweepProgress, run_experiment
from gainful.experiments.wire_format import unpack
from gainful.experiments.worker_card import take_free_card

pytest.importorskip("distributed")
pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")
CARDS = [("GPU-a", "the first"), ("GPU-b", "the second")]
SPEC = {
    "horizon": 20,
    "seeds": 2,
    "environments": [{"name": "riverswim", "parameters": {"n_states": 4}}],
    "agents": [{"name": "scal-plus", "parameters": {"span": 3.0, "bonus": "bernstein"}}, {"name": "fixed"}],
}


def test_every_process_takes_a_card_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = take_free_card(CARDS), take_free_card(CARDS)
    assert [(card.index, card.name) for card in (first, second)] == [(0, "the first"), (1, "the second")]
    with pytest.raises(DeviceError, match="all 2 GPUs of this machine belong to other workers"):
        take_free_card(CARDS)
    first.lock.release()
    assert take_free_card(CARDS).name == "the first"


def test_a_folder_of_locks_that_leads_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    take_free_card(CARDS).lock.release()
    (folder,) = tmp_path.iterdir()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeviceError, match="is not a folder of this user"):
        take_free_card(CARDS)


class KillsOne(SilentWatcher):
    """Kills a worker that has a batch."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.left, self.said = cluster, 3, list[str]()

    def noticed(self, text: str) -> None:
        self.said.append(text)

    def progressed(self, sweep: SweepProgress) -> None:
        self.left -= 1
        if self.left == 0:
            assert sweep.finished == 0
            self.cluster.kill(self.cluster.workers[0])


def stored(folder: Path) -> dict[str, Any]:
    """The arrays and the platform of every run."""
    with Store.read(folder) as store:
        found = {run["run_id"]: unpack(run["data"]) for run in store.runs()}
    return {run_id: (values["platform"], arrays) for run_id, (values, arrays) in found.items()}


@pytest.mark.slow
def test_workers_with_cards_make_the_runs_of_the_cpu_and_replace_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    from tests.experiments.test_dask import cluster_of

    monkeypatch.setattr(dask_device_executor, "FEWEST_IN_BATCH", 1)
    run_experiment(read_spec(SPEC), tmp_path / "here", jobs=1)
    with monkeypatch.context() as simulator:
        for name in ("NUMBA_ENABLE_CUDASIM", "NUMBA_DISABLE_JIT"):
            simulator.setenv(name, "1")
        simulator.setenv("TMPDIR", str(tmp_path))  # for the locks of workers
        with cluster_of(tmp_path / "dask", 2, "--no-nanny") as cluster:
            simulator.delenv("NUMBA_ENABLE_CUDASIM")
            cluster.worker("--no-nanny")  # it has no card
            with Client(cluster.address) as client:  # type: ignore[no-untyped-call]
                client.wait_for_workers(3, timeout=120)
            watcher = KillsOne(cluster)
            outcome = run_experiment(
                read_spec(SPEC), tmp_path / "there", dask=cluster.address, device="cuda", watcher=watcher
            )
    assert outcome.complete
    assert watcher.left < 0
    assert "1 of 3 workers has no GPU of its own and makes no runs" in watcher.said[0]
    here, there = stored(tmp_path / "here"), stored(tmp_path / "there")
    assert here.keys() == there.keys()
    for run_id, (_, arrays) in here.items():
        platform, found = there[run_id]
        assert "simulated GPU" in platform
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.slow
def test_a_cluster_without_cards_is_an_error(tmp_path: Path) -> None:
    from numba import cuda

    from tests.experiments.test_dask import cluster_of

    if cuda.is_available():
        pytest.skip("this machine has a GPU: what is said without one cannot be seen here")
    with (
        cluster_of(tmp_path / "dask", 1) as cluster,
        pytest.raises(DeviceError, match=r"has a GPU of its own:\n  tcp:.*no GPU that CUDA can use was found"),
    ):
        run_experiment(read_spec(SPEC), tmp_path / "out", dask=cluster.address, device="cuda")


@pytest.mark.slow
def test_a_worker_with_another_gainful_has_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.experiments.test_dask import cluster_of

    def unknown_there() -> tuple[str, str]:  # sent by value
        raise ModuleNotFoundError("no module named worker_card")

    monkeypatch.setattr(dask_device_executor, "card_or_problem", unknown_there)
    with (
        cluster_of(tmp_path / "dask", 1) as cluster,
        pytest.raises(DeviceError, match=r"ModuleNotFoundError: .*install the same gainful on every worker"),
    ):
        dask_device_executor.DaskDeviceExecutor(cluster.address, 1)
