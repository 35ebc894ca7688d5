"""The emulated GPU computes what a GPU does, and notices what a kernel may not do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")

from gainful.cuda_device import FULL_MASK, block_min_max, cuda, device_kernel, quotient
from tests.gpu.emulated import has_compiler
from tests.gpu.emulator.device import EmulatedLaunch, EmulationError, copy_here, zeros_here
from tests.gpu.emulator.operations import Op, result
from tests.gpu.emulator.ptx import UnknownInstructionError, parse

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason="needs NVIDIA's compiler: gainful[cuda-compiler], on Linux"),
]
THREADS = 64


def launch(function: Callable[..., None], *arguments: Any, blocks: int = 1, threads: int = THREADS) -> None:
    """Compile a kernel and run it on the emulated GPU."""
    EmulatedLaunch(device_kernel()(function), (blocks, threads), arguments)()


# ---------------------------------------------------------------------- arithmetic


def signed(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


UNSIGNED: dict[Op, Callable[[int, int, int], int]] = {
    Op.MOV: lambda x, y, z: x,
    Op.ADD: lambda x, y, z: x + y,
    Op.SUB: lambda x, y, z: x - y,
    Op.MUL: lambda x, y, z: x * y,
    Op.MAD: lambda x, y, z: x * y + z,
    Op.DIV_U: lambda x, y, z: x // y if y else -1,
    Op.REM_U: lambda x, y, z: x % y if y else -1,
    Op.AND: lambda x, y, z: x & y,
    Op.OR: lambda x, y, z: x | y,
    Op.XOR: lambda x, y, z: x ^ y,
    Op.NOT: lambda x, y, z: ~x,
    Op.NEG: lambda x, y, z: -x,
    Op.SHL: lambda x, y, z: x << min(y, 64),
    Op.SHR_U: lambda x, y, z: x >> min(y, 64),
    Op.MIN_U: lambda x, y, z: min(x, y),
    Op.MAX_U: lambda x, y, z: max(x, y),
    Op.SELP: lambda x, y, z: x if z else y,
    Op.EQ: lambda x, y, z: x == y,
    Op.NE: lambda x, y, z: x != y,
    Op.LT_U: lambda x, y, z: x < y,
    Op.LE_U: lambda x, y, z: x <= y,
    Op.GT_U: lambda x, y, z: x > y,
    Op.GE_U: lambda x, y, z: x >= y,
}
SIGNED: dict[Op, Callable[[int, int], int]] = {
    Op.DIV_S: lambda x, y: towards_zero(x, y) if y else -1,
    Op.REM_S: lambda x, y: x - towards_zero(x, y) * y if y else -1,
    Op.MIN_S: min,
    Op.MAX_S: max,
    Op.ABS_S: lambda x, y: abs(x),
    Op.LT_S: lambda x, y: x < y,
    Op.LE_S: lambda x, y: x <= y,
    Op.GT_S: lambda x, y: x > y,
    Op.GE_S: lambda x, y: x >= y,
}


@pytest.mark.parametrize("width", [16, 32, 64])
def test_integers_are_computed_as_by_python(width: int) -> None:
    draw, most = random.Random(width), (1 << width) - 1
    edges = [0, 1, 2, 5, width - 1, width, width + 1, most, 1 << (width - 1)]
    for _ in range(500):
        numbers = [draw.choice([*edges, draw.getrandbits(width), draw.getrandbits(width // 2)]) for _ in range(3)]
        bits = [np.uint64(x) for x in numbers]
        for op, function in UNSIGNED.items():
            assert int(result(int(op), width, *bits)) == int(function(*numbers)) & most, (op, numbers)
        a, b = (signed(x, width) for x in numbers[:2])
        for op, signed_function in SIGNED.items():
            assert int(result(int(op), width, *bits)) == int(signed_function(a, b)) & most, (op, numbers)
        for op, product in ((Op.MUL_HI_U, numbers[0] * numbers[1]), (Op.MUL_HI_S, a * b)):
            assert int(result(int(op), width, *bits)) == product >> width & most, (op, numbers)
        shifted = a >> min(numbers[1], width)
        assert int(result(int(Op.SHR_S), width, *bits)) == shifted & most, numbers


def arithmetic(x: Any, y: Any, n: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        a, b = x[i], y[i]
        out[0, i], out[1, i], out[2, i] = a * b + a, a / b, cuda.fma(a, b, a)
        out[3, i], out[4, i], out[5, i] = math.sqrt(abs(a)), min(a, b), max(a, b)
        out[6, i], out[7, i], out[8, i] = n[i], np.uint64(n[i]), math.floor(a)
        out[9, i], out[10, i], out[11, i] = np.int64(a), a < b, quotient(abs(a), 7.0, 1.0 / 7.0)
        out[12, i], out[13, i], out[14, i] = n[i] // 3, n[i] % 3, np.int32(n[i] >> 7)


def test_real_numbers_are_rounded_as_by_numpy() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=100) * 10.0 ** rng.uniform(-9.0, 9.0, 100) for _ in range(2))
    n, out = rng.integers(-(2**40), 2**40, size=100), zeros_here((15, 100))
    launch(arithmetic, copy_here(x), copy_here(y), copy_here(n), out, blocks=4, threads=32)
    a, b = (array.astype(np.longdouble) for array in (x, y))
    expected = [x * y + x, x / y, None, np.sqrt(np.abs(x)), np.minimum(x, y), np.maximum(x, y)]
    expected += [n, n.astype(np.uint64), np.floor(x), x.astype(np.int64), x < y, np.abs(x) / 7.0]
    expected += [n // 3, n % 3, (n >> 7).astype(np.int32)]
    for row, array in zip(out, expected, strict=True):
        if array is not None:
            np.testing.assert_array_equal(np.array(row), array)
    np.testing.assert_allclose(np.array(out[2]), (a * b + a).astype(float), rtol=2.0**-52, atol=0)


def shuffles(x: Any, low: Any, high: Any, turned: Any, any_of: Any) -> None:
    parts = cuda.shared.array(32, float64)
    i = cuda.threadIdx.x
    low[i], high[i] = block_min_max(x[i], x[i], parts, 0)
    turned[i] = cuda.shfl_sync(FULL_MASK, x[i], (i + 5) % 32)
    any_of[i] = cuda.any_sync(FULL_MASK, x[i] > 0.9)


def test_threads_exchange_numbers() -> None:
    x = np.random.default_rng(1).random(THREADS)
    out = [zeros_here(THREADS) for _ in range(4)]
    launch(shuffles, copy_here(x), *out)
    low, high, turned, any_of = (np.array(array) for array in out)
    assert (low == x.min()).all()
    assert (high == x.max()).all()
    np.testing.assert_array_equal(turned, np.roll(x.reshape(2, 32), -5, axis=1).reshape(-1))
    np.testing.assert_array_equal(any_of, np.repeat((x.reshape(2, 32) > 0.9).any(axis=1), 32))


def tree_sum(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    i, n = cuda.threadIdx.x, THREADS // 2
    parts[i] = x[i]
    cuda.syncthreads()
    while n > 0:
        if i < n:
            parts[i] += parts[i + n]
        cuda.syncthreads()
        n //= 2
    if i == 0:
        total[0] = parts[0]


def test_a_sum_by_a_tree_is_in_order() -> None:
    x, total = np.random.default_rng(2).random(THREADS), zeros_here(1)
    launch(tree_sum, copy_here(x), total)
    expected = x.copy()
    while expected.size > 1:
        expected = expected[: expected.size // 2] + expected[expected.size // 2 :]
    assert total[0] == expected[0]


# ---------------------------------------------------------------------- what a kernel may not do


def no_barrier(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    i = cuda.threadIdx.x
    parts[i] = x[i]
    total[i] = parts[THREADS - 1 - i]


def no_barrier_before_the_next(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    i = cuda.threadIdx.x
    for k in range(2):
        parts[i] = x[i] + k
        cuda.syncthreads()
        total[i] += parts[THREADS - 1 - i]


def two_blocks_at_one_place(x: Any, total: Any) -> None:
    total[cuda.threadIdx.x] += x[cuda.threadIdx.x] + cuda.blockIdx.x


def neighbours_of_a_warp(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    i = cuda.threadIdx.x
    parts[i] = x[i]
    total[i] = parts[i ^ 1]


@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [(no_barrier, 1), (no_barrier_before_the_next, 1), (two_blocks_at_one_place, 2), (neighbours_of_a_warp, 1)],
)
def test_a_race_is_noticed(kernel: Callable[..., None], blocks: int) -> None:
    x, total = copy_here(np.arange(THREADS) + 1.0), zeros_here(THREADS)
    with pytest.raises(EmulationError, match="in a race with thread"):
        launch(kernel, x, total, blocks=blocks)


def atomic(x: Any, total: Any) -> None:
    cuda.atomic.add(total, 0, x[cuda.grid(1)])


def same_number(x: Any, total: Any) -> None:
    total[0] = 1


def neighbours_in_order(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    i = cuda.threadIdx.x
    parts[i] = x[i]
    cuda.syncwarp()
    total[i] = np.int64(parts[i ^ 1])


@pytest.mark.parametrize("kernel", [atomic, same_number, neighbours_in_order])
def test_what_is_in_order_is_no_race(kernel: Callable[..., None]) -> None:
    x, total = copy_here(np.arange(THREADS)), zeros_here(THREADS, np.int64)
    launch(kernel, x, total)
    assert total.any()


def one_too_far(x: Any, total: Any) -> None:
    total[0] = x[cuda.threadIdx.x + 1]


def shared_too_far(x: Any, total: Any) -> None:
    parts = cuda.shared.array(THREADS, float64)
    parts[cuda.threadIdx.x + 1] = 0.0
    cuda.syncthreads()
    total[0] = parts[1]


@pytest.mark.parametrize("kernel", [one_too_far, shared_too_far])
def test_an_access_beyond_an_array_is_noticed(kernel: Callable[..., None]) -> None:
    x, total = copy_here(np.arange(THREADS) + 1.0), zeros_here(THREADS)
    with pytest.raises(EmulationError, match="outside of all arrays"):
        launch(kernel, x, total)


def barrier_of_some(x: Any, total: Any) -> None:
    if x[cuda.threadIdx.x] > 10:
        return
    cuda.syncthreads()
    total[cuda.threadIdx.x] = 1


def barriers_apart(x: Any, total: Any) -> None:
    if x[cuda.threadIdx.x] > 10:
        cuda.syncthreads()
        total[cuda.threadIdx.x] = 1
    else:
        cuda.syncthreads()
        total[cuda.threadIdx.x] = 2


def shuffle_of_some(x: Any, total: Any) -> None:
    i = cuda.threadIdx.x
    if x[i] > 10:
        total[i] = cuda.shfl_sync(FULL_MASK, x[i], 0)


@pytest.mark.parametrize(
    ("kernel", "how"),
    [
        (barrier_of_some, "others that have returned"),
        (barriers_apart, "at different places"),
        (shuffle_of_some, "threads wait for each other"),
    ],
)
def test_threads_that_wait_in_vain_are_noticed(kernel: Callable[..., None], how: str) -> None:
    x, total = copy_here(np.arange(THREADS) + 1.0), zeros_here(THREADS)
    with pytest.raises(EmulationError, match=how):
        launch(kernel, x, total)


def test_an_unknown_instruction_is_refused() -> None:
    code = ".entry k()\n{\n\t.reg .b64 %rd<3>;\n\tbrev.b64 \t%rd1, %rd2;\n\tret;\n}\n"
    with pytest.raises(UnknownInstructionError, match="brev"):
        parse(code)
