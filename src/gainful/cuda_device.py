"""The one entrance to a GPU: whether there is one, kernels for it, and lists of what a kernel has to do.

Only modules with kernels for a GPU import this, and they are imported when a GPU is asked for: numba-cuda is an extra.
A kernel may call every function marked `inlined` or `kernel` (`gainful._compiled`); Numba then compiles that function
for the GPU, so that there is one source for both.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import int64

from gainful._compiled import inlined
from gainful.errors import DeviceError

_REMOVED = {"row_stack": "vstack", "in1d": "isin", "trapz": "trapezoid"}
for _name, _successor in _REMOVED.items():  # by NumPy 2.5; numba-cuda 0.30 looks them up when it is imported
    if not hasattr(np, _name):
        setattr(np, _name, getattr(np, _successor))

try:
    from numba import cuda as cuda
except ImportError as error:  # Numba of a later version without numba-cuda
    raise DeviceError(
        'device is "cuda" and numba-cuda is not installed',
        name="device",
        found="cuda",
        hint="install gainful[cuda], or leave device out",
    ) from error

F = TypeVar("F", bound=Callable[..., Any])
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
"""Whether kernels run in numba-cuda's simulator: slowly, on the CPU, for tests."""
LISTING_BLOCK = 256
WARP = 1 if SIMULATED else 32
"""Threads that run in step and can read each other's registers."""
MOST_WARPS = 8
"""Warps of a block whose threads compare their numbers, at most."""
PARTS = 4 * MOST_WARPS
"""Numbers that a block needs to compare those of its warps, twice two of each."""
EVERY_LANE = 0xFFFFFFFF
MOST_SHARED = (8 if SIMULATED else 48) * 1024
"""Bytes of shared memory that a block can have on every GPU without asking for them."""
OWN_SHARED = 0 if SIMULATED else 1024
"""Bytes of these that a kernel may have in arrays of its own, at most; the others are given to it at its launch."""

LEAST_DIVIDED = 1e-250
"""The least number but 0 that `quotient` divides."""


def require_device() -> Any:
    """The present GPU; an error if there is none."""
    return _asked_for(cuda.get_current_device)


def gpus() -> list[Any]:
    """All GPUs that CUDA shows to this process, none of which is put to use; an error if there is none."""
    return list(_asked_for(lambda: cuda.gpus))


def _asked_for(question: Callable[[], Any]) -> Any:
    """What CUDA answers; an error if there is no GPU."""
    try:
        if cuda.is_available():
            return question()
        reason = "no GPU that CUDA can use was found"
    except Exception as error:  # whatever a damaged driver raises
        reason = f"CUDA does not start: {error}"
    raise DeviceError(f"device asks for a GPU, but {reason}", name="device", found="cuda", hint="leave device out")


def device_name() -> str:
    """The name of the present GPU, such as "NVIDIA H200"."""
    name = "simulated GPU" if SIMULATED else cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def multiprocessors() -> int:
    """The number of multiprocessors of the present GPU."""
    return 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def most_shared() -> int:
    """Bytes of shared memory that a block of the present GPU can be given; kernels ask for more than `MOST_SHARED`."""
    if SIMULATED:
        return MOST_SHARED
    return max(MOST_SHARED, int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) - OWN_SHARED


class _Exact:
    """While this is entered, products and sums are compiled as two roundings each, as on the CPU.

    Numba has no option for it; NVVM, the compiler below, does, and fuses them by default.
    """

    depth = 0

    def __enter__(self) -> None:
        _Exact.depth += 1

    def __exit__(self, *_: object) -> None:
        _Exact.depth -= 1


def _exact_when_asked(compile_ir: Callable[..., Any]) -> Callable[..., Any]:
    def compile_for_gpu(ir: Any, **options: Any) -> Any:
        if _Exact.depth > 0 and not options.get("fastmath"):
            options["fma"] = False
        return compile_ir(ir, **options)

    return compile_for_gpu


if not SIMULATED:
    from numba.cuda.cudadrv.driver import device_memset

    _module: Any
    for _module in list(sys.modules.values()):  # numba-cuda takes the place of numba.cuda, and may be there twice
        if getattr(_module, "__name__", "").endswith("cuda.cudadrv.nvvm"):
            _module.compile_ir = _exact_when_asked(_module.compile_ir)


def _linked_as_compiled(library: Any) -> Any:
    """A kernel's code, to be linked without optimising it again: the linker would fuse products and sums.

    That is asked for when the kernel is made (`lto`), and numba-cuda 0.30 was seen not to heed it.
    """
    if library._lto:
        library._lto = False
        library._cubin_cache.clear()
        library._cufunc_cache.clear()
    return library


def _ask_for_shared_memory(code: Any, n_bytes: int) -> None:
    """Let a kernel have more shared memory than it may have unasked; Numba has no function for it."""
    if n_bytes > MOST_SHARED - OWN_SHARED:
        from numba.cuda.cudadrv.driver import binding, driver

        attribute = binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuKernelSetAttribute(attribute, n_bytes, code.handle, cuda.get_current_device().id)


class DeviceKernel:
    """A kernel for the GPU, compiled at its first launch: `kernel[blocks, threads, shared_bytes](*arguments)`."""

    def __init__(self, function: Callable[..., None], registers: int | None) -> None:
        self.__doc__, self.__name__, self.__wrapped__ = function.__doc__, function.__name__, function
        options = {} if SIMULATED else {"lto": False, "max_registers": registers}
        self._compiled = cuda.jit(**options)(function)

    def __getitem__(self, where: tuple[int, ...]) -> Callable[..., None]:
        launch = self._configured(where)

        def launched(*arguments: Any) -> None:
            with _Exact():
                launch(*arguments)

        return launched

    def _configured(self, where: tuple[int, ...]) -> Any:
        """The launch of Numba; that few runs do not fill a GPU is no reason to warn."""
        blocks, threads, *shared = where
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._compiled[blocks, threads, 0, shared[0] if shared else 0]

    def prepared(self, where: tuple[int, ...], *arguments: Any, at_once: bool = False) -> PreparedLaunch:
        """A function that launches with these very arguments, many times: their types and places are looked up once.

        Numba looks them up at every launch, which takes milliseconds for dozens of arrays. With `at_once`, there are no
        more blocks than run at a time; each of them must do the work of several, then.
        """
        if SIMULATED:
            return PreparedLaunch(self.__name__, lambda: self[where](*arguments), arguments)
        compiled, numba_launch = self._compiled, cuda.dispatcher
        with _Exact():
            kernel = compiled.compile(tuple(compiled.typeof_pyval(argument) for argument in arguments))
            code = _linked_as_compiled(kernel._codelibrary).get_cufunc().kernel
        launch = self._configured(where)
        _ask_for_shared_memory(code, launch.sharedmem)
        places: list[Any] = []
        for kind, argument in zip(kernel.argument_types, arguments, strict=True):
            kernel._prepare_args(kind, argument, launch.stream, [], places)
        grid = launch.griddim
        if at_once:
            most = kernel.max_cooperative_grid_blocks(launch.blockdim, launch.sharedmem)
            grid = (max(1, min(grid[0], most)), 1, 1)
        how = numba_launch.LaunchConfig(grid=grid, block=launch.blockdim, shmem_size=launch.sharedmem)
        return PreparedLaunch(self.__name__, lambda: numba_launch.launch(launch.stream, how, code, *places), arguments)


class PreparedLaunch:
    """A launch of the kernel `name` with its arguments, whose arrays must live as long as it: it knows places alone."""

    def __init__(self, name: str, launch: Callable[[], None], arguments: tuple[Any, ...]) -> None:
        self.name, self._launch, self._arguments = name, launch, arguments

    def __call__(self) -> None:
        """Launch the kernel."""
        self._launch()


def device_kernel(registers: int | None = None) -> Callable[[Callable[..., None]], DeviceKernel]:
    """Mark a kernel for the GPU; with fewer `registers` per thread, more threads run at a time."""
    return lambda function: DeviceKernel(function, registers)


def device_function(function: F) -> F:
    """Mark a function of kernels that speaks to the other threads of its block; anything else is `inlined`."""
    return cast(F, cuda.jit(device=True)(function))


def grid_for(n: int, most: int) -> tuple[int, int]:
    """Blocks and their threads, at most `most`, for `n` threads."""
    threads = max(1, min(n, most))
    return max(1, -(-n // threads)), threads


def device_zeros(shape: Any, dtype: Any) -> Any:
    """An array of zeros on the GPU."""
    array = cuda.device_array(shape, dtype)
    if SIMULATED:
        array[...] = 0
    elif array.size:
        device_memset(array, 0, array.nbytes)
    return array


@device_kernel()
def list_where(status: Any, least: int, most: int, found: Any, n_found: Any) -> None:
    """List where `status` is from `least` to `most`, in any order; `n_found[0]`, 0 before, is the number of places.

    A block counts its own first, so that blocks and not threads wait for the common counter.
    """
    here = cuda.shared.array(2, int64)
    x, i = cuda.threadIdx.x, cuda.grid(1)
    if x == 0:
        here[0] = 0
    cuda.syncthreads()
    rank, mine = np.int64(0), i < status.size and least <= status[i] <= most
    if mine:
        rank = cuda.atomic.add(here, 0, 1)
    cuda.syncthreads()
    if x == 0:
        here[1] = cuda.atomic.add(n_found, 0, here[0])
    cuda.syncthreads()
    if mine:
        found[here[1] + rank] = i


@inlined
def lesser(a: float, b: float) -> float:
    """The lesser of two numbers, neither of them NaN: fewer instructions than `min`, which looks for NaN."""
    return a if a < b else b


@inlined
def larger(a: float, b: float) -> float:
    """The larger of two numbers, neither of them NaN."""
    return a if a > b else b


@device_function
def quotient(x: float, divisor: float, inverse: float) -> float:
    """x/divisor, rounded as division rounds it, where `inverse` is 1/divisor, for divisors from 1 to 2⁵³.

    With the correctly rounded inverse, one step of Newton's iteration rounds correctly (Markstein 1990), unless the
    remainder underflows: x is 0 or at least `LEAST_DIVIDED`. A division on a GPU takes several times as long, most of
    all if x is 0.
    """
    if SIMULATED:
        return x / divisor
    guess = x * inverse
    return float(cuda.fma(cuda.fma(-divisor, guess, x), inverse, guess))


@device_function
def together(low: float, high: float, parts: Any, half: int) -> tuple[float, float]:
    """The least `low` and the largest `high` of all threads of a block.

    All of them wait here for each other. `parts` has `PARTS` numbers. Two calls in turn take its two halves, so that
    the second does not overwrite what some thread still reads for the first.
    """
    x, at, n_warps = np.uint32(cuda.threadIdx.x), np.uint32(2 * MOST_WARPS * half), np.uint32(MOST_WARPS)
    warp, last = x // np.uint32(WARP), np.uint32(cuda.blockDim.x - 1) // np.uint32(WARP)
    if WARP == 1:
        parts[at + warp], parts[at + n_warps + warp] = low, high
        cuda.syncthreads()
        for i in range(last + 1):
            low, high = lesser(low, parts[at + i]), larger(high, parts[at + n_warps + i])
        return low, high
    # the first half of a warp looks for the least, the other half for the largest, which is the least of -high
    lane, offset = x % np.uint32(WARP), WARP // 4
    upper = lane >= np.uint32(WARP // 2)
    sent, kept = (low, -high) if upper else (-high, low)
    kept = lesser(kept, cuda.shfl_xor_sync(EVERY_LANE, sent, WARP // 2))
    while offset > 0:
        kept = lesser(kept, cuda.shfl_xor_sync(EVERY_LANE, kept, offset))
        offset //= 2
    if lane % np.uint32(WARP // 2) == 0:
        parts[at + warp + (n_warps if upper else np.uint32(0))] = kept
    cuda.syncthreads()
    # then eight of its threads for the least of all warps, and eight for the largest, without a loop
    kept, offset = parts[at + lane % np.uint32(2 * MOST_WARPS)], MOST_WARPS // 2
    kept = kept if lane % n_warps <= last else np.inf
    while offset > 0:
        kept = lesser(kept, cuda.shfl_xor_sync(EVERY_LANE, kept, offset))
        offset //= 2
    other = cuda.shfl_xor_sync(EVERY_LANE, kept, MOST_WARPS)
    return (kept, -other) if lane % np.uint32(2 * MOST_WARPS) < n_warps else (other, -kept)
