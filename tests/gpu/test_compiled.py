"""Kernels are compiled for a GPU by NVIDIA's compiler, which needs no GPU."""

from __future__ import annotations

import pytest

from tests.gpu.compiled import compiled_kernels, has_compiler

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason="needs NVIDIA's compiler: gainful[cuda-compiler], on Linux")
def test_every_kernel_is_compiled() -> None:
    compiled, there_are = compiled_kernels()
    assert compiled == there_are
    assert {"step_packed", "plan_scal_plus", "bellman_sweep"} <= compiled
