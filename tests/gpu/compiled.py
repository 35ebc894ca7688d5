"""Every kernel compiled for a GPU, where there is none: `python -m tests.gpu.compiled`.

The simulator runs kernels as Python, and accepts what a compiler refuses. Here NVIDIA's compiler translates them (to
PTX), and nothing runs. A process of its own: it lets Numba believe in a GPU, whose memory is the CPU's.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

CAPABILITY = (9, 0)
"""Of the GPU that kernels are compiled for: an H100 or H200."""
READ_TOGETHER = {"bellman_sweep", "incumbents", "policy_residual"}
"""Kernels in which four threads read a row together, and exchange numbers so many times, as halves, for each row:"""
EXCHANGES = 17
GPU = SimpleNamespace(
    id=0,
    name="a GPU that is not there",
    compute_capability=CAPABILITY,
    MULTIPROCESSOR_COUNT=132,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232_448,
)


class ArrayHere(np.ndarray[Any, Any]):
    """What stands for an array on the GPU."""

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        """The array itself."""
        return self


def array_here(shape: Any, dtype: Any = np.float64) -> ArrayHere:
    """An array of zeros that stands for one on the GPU."""
    return np.zeros(shape, dtype).view(ArrayHere)


def has_compiler() -> bool:
    """Whether NVIDIA's compiler is installed as a Python package."""
    parts = ("nvidia", "nvidia.cuda_nvcc", "nvidia.cuda_nvrtc")
    return all(importlib.util.find_spec(part) for part in parts)


def compiled_kernels() -> tuple[set[str], set[str]]:
    """The names of the kernels that another process has compiled, and of all that there are."""
    command = [sys.executable, "-m", "tests.gpu.compiled"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled, _, there_are = done.stdout.partition("of ")
    return set(compiled.split()), set(there_are.split())


def believe_in_a_gpu() -> None:
    """Compile at every launch of a kernel, and keep arrays in the CPU's memory."""
    from numba import typeof

    from gainful import cuda_device
    from gainful.cuda_device import DeviceKernel, cuda

    def compile_for(kernel: DeviceKernel, *arguments: Any) -> str:
        kinds = tuple(typeof(argument) for argument in arguments)
        code, _ = cuda.compile_ptx(kernel.__wrapped__, kinds, cc=CAPABILITY)
        assert ".visible .entry" in code
        if kernel.__name__ in READ_TOGETHER:  # a compiler may not make two loops of one, for different threads
            assert 0 < code.count("shfl.sync.idx") <= EXCHANGES * code.count("bar.warp.sync")
        print(kernel.__name__)
        return str(code)

    def prepared(kernel: DeviceKernel, where: Any, *arguments: Any, at_once: bool = False) -> Any:
        del at_once
        code = compile_for(kernel, *arguments)
        if len(where) > 2 and where[2] > 0:  # it is given shared memory besides its own
            own = re.findall(r"\.shared .*\[(\d+)\];", code)
            assert sum(map(int, own)) <= cuda_device.OWN_SHARED, kernel.__name__
        return lambda: None

    def launch(kernel: DeviceKernel, _where: Any) -> Any:
        return lambda *arguments: compile_for(kernel, *arguments)

    for module in (cuda, cuda.dispatcher):
        module.get_current_device = lambda: GPU
    cuda.is_available = lambda: True
    cuda.device_array = array_here
    cuda.to_device = lambda array: array
    cuda_device.device_zeros = np.zeros
    DeviceKernel.prepared, DeviceKernel.__getitem__ = prepared, launch  # type: ignore[assignment, method-assign]


def compile_simulation() -> None:
    """Kernels of each kind of agent, in models that shared memory holds, that are packed, and that are too large."""
    from gainful.simulation.device.batch import Batch
    from gainful.simulation.device.many import DeviceSweep
    from tests.gpu.simulated import Case

    span, bernoulli = {"span": 7.0}, {"reward_law": "bernoulli"}
    packed, wide = ({"n_states": 200, "n_actions": 4, "branching": n} for n in (8, 12))
    for case in [
        Case("riverswim", "SCALPlus", 10, (1,), bernoulli, {**span, "bonus": "bernstein"}),
        Case("riverswim", "UCRL2", 10, (1,), {}, {}),
        Case("riverswim", "UCRL2B", 10, (1,), bernoulli, {}),
        Case("riverswim", "KLSCALPlus", 10, (1,), bernoulli, {**span, "reward_bound": "variance"}),
        Case("riverswim", "Fixed", 10, (1,), {}, {}),
        Case("garnet", "SCALPlus", 10, (1,), packed, span),
        Case("garnet", "Fixed", 10, (1,), packed, {"policy": [0] * 200}),
        Case("garnet", "SCALPlus", 10, (1,), wide, {**span, "bonus": "sharp"}),
        Case("lqg", "CSCALPlus", 10, (1,), {}, {"span": 2.0}, cells=20),
        Case("lqg", "CSCALPlus", 10, (1,), {}, {"span": 2.0}, cells=40),
        Case("lqg", "Fixed", 10, (1,), {}, {}, cells=20),
    ]:
        world, agent = case.world_and_agent()
        seeds = np.arange(2, dtype=np.uint64)
        sweep = DeviceSweep(agent, world, np.array([case.horizon]), seeds, keep_episodes=True)
        Batch(sweep.many, seeds).launches()


def compile_planners() -> None:
    """The kernels of `solve` and `relative_value_iteration`, with the arguments that they have there."""
    from gainful.planning.device import kernels
    from gainful.planning.device.sweeper import DeviceSweeper
    from tests.gpu.simulated import models

    mdp = models()[0]
    sweeper = DeviceSweeper(mdp, np.zeros(mdp.n_states))
    model, v, w, act, one = sweeper.model, sweeper.v, sweeper.w, sweeper.act, np.zeros(1)
    vectors, partial, stats = sweeper.new_vectors(3), np.zeros((4, 8)), np.zeros(6)
    kernels.survey[1, 1](model, act, partial)
    out, known = kernels.GreedyVectors(w, act, v), np.zeros(3)
    contested = kernels.ContestedStates(act, np.zeros(1, np.int64))
    kernels.incumbents[1, 1](model, v, out, known, contested, partial)
    kernels.bellman_sweep[1, 1](model, v, out, known, contested, partial)
    kernels.gather_stats[1, 1](partial, 0, contested, v, w, 1.0, stats)
    kernels.damped_step[1, 1](v, w, 1.0, stats)
    kernels.shifted[1, 1](w, v)
    kernels.keep_vectors[1, 1](v, act, w, act)
    kernels.policy_residual[1, 1](model, act, v, w, partial)
    kernels.note_difference[1, 1](vectors, one, 0)
    kernels.products[1, 1](vectors.changes, vectors.f, 0, 1, np.zeros((2, 3, 8)))
    kernels.anderson_step[1, 1](vectors, one, 1, 1.0)


def all_kernels() -> set[str]:
    """The names of all kernels of the modules that were imported."""
    from gainful.cuda_device import DeviceKernel

    modules = [module for name, module in sys.modules.items() if name.startswith("gainful.")]
    found = (value for module in modules for value in vars(module).values())
    return {value.__name__ for value in found if isinstance(value, DeviceKernel)}


if __name__ == "__main__":
    believe_in_a_gpu()
    compile_simulation()
    compile_planners()
    print("of", *sorted(all_kernels()))
