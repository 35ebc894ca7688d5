"""What only a real GPU can show; skipped where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.cli.main import run as command_line
from gainful.experiments.spec import read_spec
from gainful.experiments.store import Store
from gainful.experiments.wire_format import unpack
from tests.gpu.simulated import rows_of_all_lengths

numba_cuda = pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")


def _card() -> bool:
    from numba import cuda

    return bool(cuda.is_available())


pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _card(), reason="needs an NVIDIA GPU")]


HORIZON, SEEDS = 1000, 16
SPEC = {
    "horizon": HORIZON,
    "seeds": SEEDS,
    "environments": [{"name": "riverswim"}],
    "agents": [
        {"name": "scal-plus", "parameters": {"span": 7.0}},
        {"name": "ucrl2b"},
        {"name": "kl-scal-plus", "parameters": {"span": 7.0}},
        {"name": "fixed"},
    ],
}
TOML = f"""
horizon = {HORIZON}
seeds = {SEEDS}
[[environments]]
name = "riverswim"
[[agents]]
name = "scal-plus"
parameters = {{ span = 7.0 }}
"""


def scal_plus(mdp: gf.MDP, **settings: Any) -> Any:
    low, high = mdp.reward_min, mdp.reward_max
    return lambda seed: gf.SCALPlus(
        mdp.n_states, mdp.n_actions, span=7.0, reward_min=low, reward_max=high, seed=seed, **settings
    )


@pytest.mark.parametrize("bonus", ["appendix", "main text", "sharp", "bernstein", "authors"])
def test_the_traces_are_those_of_the_cpu(bonus: str) -> None:
    mdp = gf.environments.riverswim(6, reward_law="bernoulli")
    make = scal_plus(mdp, bonus=bonus)
    there = gf.simulate_many(make, mdp, 10**5, range(64), device="cuda")
    here = gf.simulate_many(make, mdp, 10**5, range(64))
    same = [np.array_equal(a.rewards, b.rewards) for a, b in zip(there, here, strict=True)]
    assert sum(same) >= 62  # a last bit of a logarithm may break a tie otherwise


@pytest.mark.parametrize("agent", ["UCRL2", "UCRL2B", "KLSCALPlus", "Fixed"])
def test_other_agents_have_the_regret_of_the_cpu(agent: str) -> None:
    mdp = gf.environments.riverswim(6, reward_law="bernoulli")

    def make(seed: int) -> Any:
        return getattr(gf, agent)(6, 2, seed=seed)

    there = gf.simulate_many(make, mdp, 10**4, range(64), device="cuda")
    here = gf.simulate_many(make, mdp, 10**4, range(64))
    same = [np.array_equal(a.rewards, b.rewards) for a, b in zip(there, here, strict=True)]
    assert sum(same) >= 60  # a last bit of a logarithm may break a tie otherwise


def test_cells_have_the_traces_of_the_cpu() -> None:
    env = gf.environments.lqg()

    def make(seed: int) -> Any:
        return gf.CSCALPlus(partition=gf.Partition.uniform(bins=20), n_actions=5, span=2.0, seed=seed)

    there = gf.simulate_many(make, env, 10**4, range(16), device="cuda")
    here = gf.simulate_many(make, env, 10**4, range(16))
    assert sum(np.array_equal(a.rewards, b.rewards) for a, b in zip(there, here, strict=True)) >= 14


@pytest.mark.parametrize(("n_actions", "longest"), [(1, 3), (5, 40), (256, 7)])
def test_sweeps_over_rows_of_all_lengths_have_the_bits_of_the_cpu(n_actions: int, longest: int) -> None:
    mdp = rows_of_all_lengths(3000, n_actions, longest)
    there, here = (gf.relative_value_iteration(mdp, device=where) for where in ("cuda", "cpu"))
    assert (there.gain_bounds, there.sweeps) == (here.gain_bounds, here.sweeps)
    np.testing.assert_array_equal(there.bias, here.bias)
    np.testing.assert_array_equal(there.actions, here.actions)


def test_large_arrays_come_back_from_the_card_as_they_were() -> None:
    from gainful.planning.device.transfer import WORTH_THREADS, downloaded, uploaded

    numbers = np.random.default_rng(0).integers(0, 2**31, size=WORTH_THREADS // 4 + 1)
    for _ in range(2):  # the second time through the buffers of the first
        whole, short = uploaded((numbers.astype(np.float64), np.float64), (numbers, np.uint32))
        np.testing.assert_array_equal(whole.copy_to_host(), numbers)
        np.testing.assert_array_equal(short.copy_to_host(), numbers)
        for found in downloaded((whole, np.float64), (short, np.int64)):
            np.testing.assert_array_equal(found, numbers)


def test_planners_have_the_bits_of_the_cpu() -> None:
    mdp = gf.environments.garnet(2000, 4, 8)
    there, here = gf.relative_value_iteration(mdp, device="cuda"), gf.relative_value_iteration(mdp)
    assert there.gain_bounds == here.gain_bounds
    np.testing.assert_array_equal(there.bias, here.bias)
    solved = gf.solve(mdp, device="cuda")
    assert max(solved.gain_bounds[0], here.gain_bounds[0]) <= min(solved.gain_bounds[1], here.gain_bounds[1])


@pytest.mark.parametrize("branching", [8, 12])  # packed runs with logs, and counters in global memory
def test_larger_models_give_the_traces_of_the_cpu(branching: int) -> None:
    mdp = gf.environments.garnet(200, 4, branching)
    make = scal_plus(mdp)
    there = gf.simulate_many(make, mdp, 10**4, range(8), device="cuda")
    here = gf.simulate_many(make, mdp, 10**4, range(8))
    for a, b in zip(there, here, strict=True):
        np.testing.assert_array_equal(a.rewards, b.rewards)
        np.testing.assert_allclose(a.expected_regret, b.expected_regret, rtol=1e-12, atol=1e-9)


def test_quotients_by_the_inverse_are_rounded_as_divisions_are() -> None:
    from gainful.cuda_device import cuda, device_kernel, grid_for, quotient

    @device_kernel()
    def divide(x: Any, n: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            out[i] = quotient(x[i], n[i], 1.0 / n[i])

    rng, size = np.random.default_rng(0), 10**7
    n = np.floor(2.0 ** rng.uniform(0.0, 32.0, size))
    x = rng.normal(size=size) * 10.0 ** rng.uniform(-200.0, 200.0, size)
    x[:1000], x[1000:2000] = 0.0, n[1000:2000] * rng.random(1000)
    out = cuda.device_array(size, np.float64)
    divide.prepared(grid_for(size, 256), cuda.to_device(x), cuda.to_device(n), out)()
    np.testing.assert_array_equal(out.copy_to_host(), x / n)


def test_a_summary_is_that_of_the_runs() -> None:
    mdp = gf.environments.riverswim(6)
    make = scal_plus(mdp)
    runs = gf.simulate_many(make, mdp, 10**4, range(100), device="cuda")
    found = gf.simulate_many(make, mdp, 10**4, range(100), device="cuda", keep="summary")
    mean = np.mean([run.expected_regret for run in runs], axis=0)
    np.testing.assert_allclose(found.expected_regret.mean, mean, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("dask", [None, "local"])
def test_an_experiment_stores_what_the_cpu_does(dask: str | None, tmp_path: Path) -> None:
    """With Dask by one worker for each GPU of this machine."""
    if dask:
        pytest.importorskip("distributed")
    spec = read_spec(SPEC)
    assert gf.run_experiment(spec, tmp_path / "here", jobs=2).complete
    assert gf.run_experiment(spec, tmp_path / "there", dask=dask, device="cuda").complete
    here, there = (rewards_of(tmp_path / name) for name in ("here", "there"))
    assert here.keys() == there.keys()
    assert sum(np.array_equal(here[i], there[i]) for i in here) >= 0.9 * len(here)  # KL-SCAL+ may break a tie otherwise


def rewards_of(folder: Path) -> dict[str, Any]:
    """The stored rewards of each run."""
    with Store.read(folder) as store:
        return {run["run_id"]: unpack(run["data"])[1]["rewards"] for run in store.runs()}


def test_the_command_line_runs_an_experiment_on_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.toml").write_text(TOML, encoding="utf-8")
    words = ["run", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), "--device", "cuda", "--json"]
    assert command_line(words) == 0
    assert json.loads(capsys.readouterr().out)["finished"] == SEEDS


def test_learn_shows_the_distribution_of_many_runs(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["learn", "riverswim", "--agent", "scal-plus", "--span", "7", "--horizon", str(HORIZON)]
    assert command_line([*words, "--runs", str(SEEDS), "--device", "cuda", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["device"], facts["runs"]) == ("cuda", SEEDS)


def test_the_command_line_solves_on_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["solve", "garnet", "--device", "cuda", "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["gain_bounds"]
    assert low <= gf.solve(gf.environments.garnet()).gain_bounds[1]
    assert gf.solve(gf.environments.garnet()).gain_bounds[0] <= high
