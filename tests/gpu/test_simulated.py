"""Kernels for GPUs in numba-cuda's simulator: the CPU's traces, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gainful as gf
from gainful.experiments.spec import read_spec
from gainful.experiments.store import Store
from gainful.experiments.sweep import SilentWatcher
from gainful.experiments.wire_format import unpack
from gainful.simulation.repeated_sum import repeated_sum
from tests.gpu.simulated import SPEC, Case, arrays_of, check_plans, simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")
SPAN = {"span": 7.0}
BERNOULLI = {"reward_law": "bernoulli"}
CASES = [
    Case("riverswim", "SCALPlus", 60, (3,), {}, SPAN),
    Case("riverswim", "SCALPlus", 60, (1,), BERNOULLI, {**SPAN, "bonus": "main text"}),
    Case("riverswim", "SCALPlus", 60, (2,), BERNOULLI, {**SPAN, "bonus": "sharp"}),
    Case("riverswim", "SCALPlus", 60, (4,), {}, {**SPAN, "bonus": "bernstein"}),
    Case("riverswim", "SCALPlus", 60, (5,), BERNOULLI, {**SPAN, "bonus": "authors"}),
    Case("riverswim", "Fixed", 60, (5,), {}, {"policy": [1] * 6}),
    Case("riverswim", "Fixed", 60, (5,), BERNOULLI, {}),
    Case("riverswim", "UCRL2", 120, (0,), BERNOULLI, {"width_scale": 0.3}),
    Case("riverswim", "UCRL2B", 120, (0,), BERNOULLI, {"width_scale": 0.2}),
    Case("garnet", "UCRL2B", 80, (0,), {"n_states": 12, "n_actions": 2, "branching": 9}, {"width_scale": 0.05}),
    Case("garnet", "SCALPlus", 80, (0,), {"n_states": 20, "n_actions": 2, "branching": 4}, {"span": 1.0}),
    Case("garnet", "SCALPlus", 20, (1,), {"n_states": 120, "n_actions": 2, "branching": 4}, {"span": 1.0}),
    Case("garnet", "SCALPlus", 60, (2,), {"n_states": 20, "n_actions": 3, "branching": 5}, {"span": 1.0}),
    Case("garnet", "UCRL2B", 60, (1,), {"n_states": 20, "n_actions": 2, "branching": 4}, {"width_scale": 0.05}),
    Case("riverswim", "SCALPlus", 60, (1,), {"n_states": 30, **BERNOULLI}, SPAN),
    Case("riverswim", "UCRL2B", 60, (1,), {"n_states": 30, **BERNOULLI}, {"width_scale": 0.2}),
    Case("riverswim", "KLSCALPlus", 60, (2,), BERNOULLI, SPAN),
    Case("riverswim", "KLSCALPlus", 60, (2,), {}, {**SPAN, "reward_bound": "variance"}),
    Case("lqg", "CSCALPlus", 60, (1,), {}, {"span": 2.0}, cells=6),
    Case("lqg", "CKLSCALPlus", 40, (0,), {}, {"span": 2.0, "reward_bound": "variance"}, cells=4),
    Case("lqg", "UCRL2B", 40, (0,), {}, {"width_scale": 0.2}, cells=5),
    Case("lqg", "Fixed", 40, (3,), {}, {}, cells=5),
]


def test_a_repeated_sum_has_the_roundings_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    for total, amount in [
        (0.0, 0.1),
        (0.0, 1 / 3),
        (2.0**40, 0.7),
        (0.5, 2.0**-54),
        (1.0, 2.0**-53),
        *rng.random((20, 2)),
    ]:
        expected = float(total)
        for n in range(1, 1001):
            expected += float(amount)
            assert repeated_sum(float(total), float(amount), n) == expected


def check(cases: list[Case], folder: Path) -> None:
    for case, found in zip(cases, simulated(cases, folder), strict=True):
        expected = arrays_of(case.runs())
        assert set(found) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{case}: {name}")


@pytest.mark.slow
def test_the_simulator_gives_the_traces_of_the_cpu(tmp_path: Path) -> None:
    check(CASES, tmp_path)


@pytest.mark.slow
def test_the_simulator_plans_and_stores_what_the_cpu_does(tmp_path: Path) -> None:
    simulated([], tmp_path)
    check_plans(tmp_path)
    gf.run_experiment(read_spec(SPEC), tmp_path / "here", jobs=1)
    there, here = (stored(tmp_path / name) for name in ("experiment", "here"))
    assert there.keys() == here.keys()
    for run_id, arrays in here.items():
        assert arrays.keys() == there[run_id].keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(there[run_id][name], array, err_msg=name)


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """What the store of an experiment has of each run: curves, episodes, visits, policy, values, bonus."""
    with Store.read(folder) as store:
        return {run["run_id"]: unpack(run["data"])[1] for run in store.runs()}


def test_what_cannot_run_on_a_gpu_is_named(tmp_path: Path) -> None:
    spec = read_spec({**SPEC, "agents": [{"name": "fixed"}, {"name": "psrl"}]})
    with pytest.raises(gf.errors.DeviceError, match="psrl in riverswim"):
        gf.run_experiment(spec, tmp_path, device="cuda")


def test_without_a_gpu_the_error_says_so() -> None:
    from numba import cuda

    if cuda.is_available():
        pytest.skip("this machine has a GPU: what is said without one cannot be seen here")
    mdp = gf.environments.riverswim(6)
    with pytest.raises(gf.errors.DeviceError, match="no GPU"):
        gf.simulate_many(lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), mdp, 10, [0], device="cuda")


@pytest.mark.slow
def test_without_a_gpu_auto_is_the_cpu() -> None:
    from numba import cuda

    if cuda.is_available():
        pytest.skip("this machine has a GPU: what is done without one cannot be seen here")
    mdp = gf.environments.riverswim(6)

    def agent(seed: int) -> gf.UCRL2:
        return gf.UCRL2(6, 2, seed=seed)

    there, here = (gf.simulate_many(agent, mdp, 10, [0], device=where)[0] for where in ("auto", "cpu"))
    np.testing.assert_array_equal(there.rewards, here.rewards)
    assert gf.solve(mdp, device="auto").gain == gf.solve(mdp).gain


@pytest.mark.slow
def test_an_experiment_without_a_gpu_says_that_auto_is_the_cpu(tmp_path: Path) -> None:
    from numba import cuda

    if cuda.is_available():
        pytest.skip("this machine has a GPU: what is said without one cannot be seen here")
    heard: list[str] = []

    class Watcher(SilentWatcher):
        def noticed(self, words: str) -> None:
            heard.append(words)

    assert gf.run_experiment(read_spec(SPEC), tmp_path, jobs=1, device="auto", watcher=Watcher()).complete
    assert [words for words in heard if "all runs are made on the CPU" in words]


def test_an_unknown_device_is_an_error() -> None:
    mdp = gf.environments.riverswim(6)
    with pytest.raises(gf.errors.InvalidArgumentError, match="device"):
        gf.simulate_many(lambda seed: gf.UCRL2(6, 2, seed=seed), mdp, 10, [0], device=cast(Any, "tpu"))
