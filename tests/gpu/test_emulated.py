"""Kernels as NVIDIA's compiler makes them, run by the emulated GPU: the CPU's traces, no race, no stray access."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.emulated import all_kernels, emulated, has_compiler
from tests.gpu.simulated import Case, arrays_of, check_plans

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason="needs NVIDIA's compiler: gainful[cuda-compiler], on Linux"),
]
SPAN, BERNOULLI = {"span": 7.0}, {"reward_law": "bernoulli"}
PACKED = {"n_states": 200, "n_actions": 4, "branching": 8}
WARPS = tuple(range(40))
"""Seeds of more runs than a warp has threads."""
SHARED_MEMORY = [  # counters of steps and vectors of plans are in shared memory
    Case("riverswim", "SCALPlus", 2000, WARPS, {}, SPAN),
    Case("riverswim", "SCALPlus", 500, WARPS, BERNOULLI, {**SPAN, "bonus": "main text"}),
    Case("riverswim", "SCALPlus", 500, WARPS, BERNOULLI, {**SPAN, "bonus": "sharp"}),
    Case("riverswim", "SCALPlus", 500, WARPS, {}, {**SPAN, "bonus": "bernstein"}),
    Case("riverswim", "SCALPlus", 500, WARPS, BERNOULLI, {**SPAN, "bonus": "authors"}),
    Case("riverswim", "UCRL2", 300, WARPS, BERNOULLI, {"width_scale": 0.3}),
    Case("riverswim", "UCRL2B", 300, WARPS, BERNOULLI, {"width_scale": 0.2}),
    Case("riverswim", "KLSCALPlus", 300, WARPS, BERNOULLI, SPAN),
    Case("riverswim", "KLSCALPlus", 300, WARPS, {}, {**SPAN, "reward_bound": "variance"}),
    Case("riverswim", "Fixed", 500, WARPS, {}, {"policy": [1] * 6}),
    Case("riverswim", "Fixed", 500, WARPS, BERNOULLI, {}),
]
PACKED_RUNS = [  # steps are logged
    Case("garnet", "SCALPlus", 2000, (0, 1, 2), PACKED, {"span": 1.0}),
    Case("garnet", "Fixed", 40_000, (1,), PACKED, {"policy": [0] * 200}),  # fills the log, and action words run out
    Case("garnet", "UCRL2B", 60, (1, 2), {"n_states": 80, "n_actions": 2, "branching": 4}, {"width_scale": 0.05}),
    Case("riverswim", "SCALPlus", 500, (1, 2), {"n_states": 60, **BERNOULLI}, SPAN),
    Case("lqg", "CSCALPlus", 2000, (1, 2, 3), {}, {"span": 2.0}, cells=20),
    Case("lqg", "CSCALPlus", 300, (1, 2), {}, {"span": 2.0}, cells=40),
    Case("lqg", "CKLSCALPlus", 100, (0, 1), {}, {"span": 2.0, "reward_bound": "variance"}, cells=4),
]
GLOBAL_MEMORY = [  # counters, vectors of plans, or both are in global memory
    Case("garnet", "SCALPlus", 300, (0, 1), {**PACKED, "branching": 12}, {"span": 1.0, "bonus": "sharp"}),
    Case("garnet", "SCALPlus", 12, (1,), {"n_states": 900, "n_actions": 4, "branching": 12}, {"span": 1.0}),
    Case("lqg", "CSCALPlus", 10, (1,), {}, {"span": 2.0}, cells=130),
    Case("lqg", "Fixed", 500, WARPS, {}, {}, cells=20),
]


KERNELS = {
    "shared": {
        "list_where",
        "step_shared",
        "step_global",
        "plan_scal_plus",
        "plan_extended",
        "plan_kl_scal_plus",
        "plan_fixed",
        "fill_rows_of_runs",
    },
    "packed": {"step_packed", "step_packed_points", "count_logs", "load_policies"},
    "global": {"step_global", "step_points"},
    "planners": {
        "survey_model",
        "sweep_incumbents",
        "bellman_sweep",
        "reduce_stats",
        "damped_step",
        "subtract_first",
        "copy_vectors",
        "policy_residual",
        "store_difference",
        "inner_products",
        "anderson_step",
    },
}
"""Kernels that a test executes."""


def executed(folder: Path) -> set[str]:
    return set(json.loads((folder / "kernels.json").read_text()))


def check(cases: list[Case], folder: Path) -> None:
    """The CPU's rewards and episodes; bounds but for the last bits of logarithms, in which GPU and CPU differ."""
    for case, found in zip(cases, emulated(cases, folder), strict=True):
        expected, close = arrays_of(case.runs()), 1e-6 if "KL" in case.agent else 1e-11
        assert set(found) == set(expected)
        for name, array in expected.items():
            rtol = close if name.split()[1] in ("gain", "gain_low", "gain_high", "span") else 0
            np.testing.assert_allclose(found[name], array, rtol=rtol, atol=rtol, err_msg=f"{case}: {name}")


def test_runs_in_shared_memory_have_the_traces_of_the_cpu(tmp_path: Path) -> None:
    check(SHARED_MEMORY, tmp_path)
    assert executed(tmp_path) == KERNELS["shared"]


def test_packed_runs_have_the_traces_of_the_cpu(tmp_path: Path) -> None:
    check(PACKED_RUNS, tmp_path)
    assert executed(tmp_path) >= KERNELS["packed"]


def test_runs_in_global_memory_have_the_traces_of_the_cpu(tmp_path: Path) -> None:
    check(GLOBAL_MEMORY, tmp_path)
    assert executed(tmp_path) >= KERNELS["global"]


def test_planners_have_the_bits_of_the_cpu(tmp_path: Path) -> None:
    emulated([], tmp_path)
    check_plans(tmp_path)
    assert executed(tmp_path) >= KERNELS["planners"]


def test_every_kernel_is_executed() -> None:
    assert all_kernels() == set().union(*KERNELS.values())
