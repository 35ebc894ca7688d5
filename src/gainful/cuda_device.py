"""Access to a GPU: finding it, compiling and launching kernels, and device functions that several kernels use.

Only modules with kernels import this module, and only when a GPU is asked for, because numba-cuda is an optional
dependency. A kernel may call every function marked `inlined` or `kernel` (`gainful._compiled`): Numba compiles it for
the GPU, so that CPU and GPU share one source.
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
for _name, _successor in _REMOVED.items():  # by NumPy 2.5, but numba-cuda 0.30 uses them when it is imported
    if not hasattr(np, _name):
        setattr(np, _name, getattr(np, _successor))

try:
    from numba import cuda as cuda
except ImportError as error:  # later versions of Numba do not include it
    raise DeviceError(
        'device is "cuda" and numba-cuda is not installed',
        name="device",
        found="cuda",
        hint="install gainful[cuda], or leave device out",
    ) from error

F = TypeVar("F", bound=Callable[..., Any])
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
"""Whether kernels run in numba-cuda's simulator, which runs them slowly on the CPU, for tests."""
LISTING_BLOCK = 256
"""Threads of a block of `list_where`."""
WARP = 1 if SIMULATED else 32
"""Threads of a warp; 1 in the simulator, which has no warps."""
MAX_WARPS = 8
"""The most warps of a block that calls `block_min_max`."""
REDUCTION_SIZE = 4 * MAX_WARPS
"""Numbers of shared memory that `block_min_max` needs: a minimum and a maximum of each warp, in two buffers."""
FULL_MASK = 0xFFFFFFFF
"""All lanes of a warp."""
DEFAULT_SHARED_BYTES = (8 if SIMULATED else 48) * 1024
"""Bytes of shared memory that a block can have on every GPU without setting an attribute of the kernel."""
STATIC_SHARED_BYTES = 0 if SIMULATED else 1024
"""The most bytes of static shared memory of a kernel; the rest can be dynamic shared memory."""

MIN_DIVIDEND = 1e-250
"""The least nonzero number that `quotient` can divide."""


def require_device() -> Any:
    """The current GPU; raises an error if there is none."""
    return _ask_cuda(cuda.get_current_device)


def gpus() -> list[Any]:
    """All GPUs that this process can see, without initialising them; raises an error if there is none."""
    return list(_ask_cuda(lambda: cuda.gpus))


def _ask_cuda(question: Callable[[], Any]) -> Any:
    """Call a function of CUDA; raises an error if there is no GPU."""
    try:
        if cuda.is_available():
            return question()
        reason = "no GPU that CUDA can use was found"
    except Exception as error:  # whatever a damaged driver raises
        reason = f"CUDA does not start: {error}"
    raise DeviceError(f"device asks for a GPU, but {reason}", name="device", found="cuda", hint="leave device out")


def device_name() -> str:
    """The name of the current GPU, such as "NVIDIA H200"."""
    name = "simulated GPU" if SIMULATED else cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def multiprocessors() -> int:
    """The number of multiprocessors of the current GPU."""
    return 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def max_shared_bytes() -> int:
    """The most bytes of dynamic shared memory of a block on the current GPU."""
    if SIMULATED:
        return DEFAULT_SHARED_BYTES
    return (
        max(DEFAULT_SHARED_BYTES, int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
        - STATIC_SHARED_BYTES
    )


class _Exact:
    """A context in which kernels are compiled without fused multiply-add, so that they round as the CPU does.

    Numba has no option for this. NVVM, the compiler that Numba uses, has one, and fuses by default.
    """

    depth = 0

    def __enter__(self) -> None:
        _Exact.depth += 1

    def __exit__(self, *_: object) -> None:
        _Exact.depth -= 1


def _without_fma_when_exact(compile_ir: Callable[..., Any]) -> Callable[..., Any]:
    def compile_for_gpu(ir: Any, **options: Any) -> Any:
        if _Exact.depth > 0 and not options.get("fastmath"):
            options["fma"] = False
        return compile_ir(ir, **options)

    return compile_for_gpu


if not SIMULATED:
    from numba.cuda.cudadrv.driver import device_memset

    _module: Any
    for _module in list(sys.modules.values()):  # numba-cuda replaces numba.cuda, and may be imported under two names
        if getattr(_module, "__name__", "").endswith("cuda.cudadrv.nvvm"):
            _module.compile_ir = _without_fma_when_exact(_module.compile_ir)


def _without_link_optimization(library: Any) -> Any:
    """Link a kernel without link-time optimization, which would fuse products and sums.

    Kernels are made with `lto=False`, but numba-cuda 0.30 was seen to ignore it.
    """
    if library._lto:
        library._lto = False
        library._cubin_cache.clear()
        library._cufunc_cache.clear()
    return library


def _allow_shared_memory(code: Any, n_bytes: int) -> None:
    """Allow a kernel more dynamic shared memory than the default; Numba has no function for it."""
    if n_bytes > DEFAULT_SHARED_BYTES - STATIC_SHARED_BYTES:
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
        """Numba's kernel with its launch configuration, without the warning that a small grid does not fill the GPU."""
        blocks, threads, *shared = where
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._compiled[blocks, threads, 0, shared[0] if shared else 0]

    def prepared(self, where: tuple[int, ...], *arguments: Any, at_once: bool = False) -> PreparedLaunch:
        """Compile the kernel for these arguments; the result launches it with them, any number of times.

        Numba looks up types and addresses at every launch, which takes milliseconds for dozens of arrays; here this is
        done once. With `at_once`, the grid has at most as many blocks as run at a time, and a kernel must loop over
        its work.
        """
        if SIMULATED:
            return PreparedLaunch(self.__name__, lambda: self[where](*arguments), arguments)
        compiled, numba_launch = self._compiled, cuda.dispatcher
        with _Exact():
            kernel = compiled.compile(tuple(compiled.typeof_pyval(argument) for argument in arguments))
            code = _without_link_optimization(kernel._codelibrary).get_cufunc().kernel
        launch = self._configured(where)
        _allow_shared_memory(code, launch.sharedmem)
        addresses: list[Any] = []
        for kind, argument in zip(kernel.argument_types, arguments, strict=True):
            kernel._prepare_args(kind, argument, launch.stream, [], addresses)
        grid = launch.griddim
        if at_once:
            most = kernel.max_cooperative_grid_blocks(launch.blockdim, launch.sharedmem)
            grid = (max(1, min(grid[0], most)), 1, 1)
        how = numba_launch.LaunchConfig(grid=grid, block=launch.blockdim, shmem_size=launch.sharedmem)
        return PreparedLaunch(
            self.__name__, lambda: numba_launch.launch(launch.stream, how, code, *addresses), arguments
        )


class PreparedLaunch:
    """A launch of the kernel `name`; it holds the arguments, because Numba's launch has only the arrays' addresses."""

    def __init__(self, name: str, launch: Callable[[], None], arguments: tuple[Any, ...]) -> None:
        self.name, self._launch, self._arguments = name, launch, arguments

    def __call__(self) -> None:
        """Launch the kernel."""
        self._launch()


def device_kernel(registers: int | None = None) -> Callable[[Callable[..., None]], DeviceKernel]:
    """Mark a kernel; with fewer `registers` per thread, more threads run at a time."""
    return lambda function: DeviceKernel(function, registers)


def device_function(function: F) -> F:
    """Mark a device function that uses CUDA's own functions, such as barriers; others are marked `inlined`."""
    return cast(F, cuda.jit(device=True)(function))


def grid_for(n: int, most: int) -> tuple[int, int]:
    """The number of blocks, and of threads per block, at most `most`, for n threads."""
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
    """Append to `found` the indices where `status` is from `least` to `most`, in any order, and add to `n_found[0]`.

    A block counts its own indices first, so that there is one atomic operation on global memory per block.
    """
    block = cuda.shared.array(2, int64)  # the number of indices of this block, and where they begin in `found`
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    if thread == 0:
        block[0] = 0
    cuda.syncthreads()
    rank, matches = np.int64(0), i < status.size and least <= status[i] <= most
    if matches:
        rank = cuda.atomic.add(block, 0, 1)
    cuda.syncthreads()
    if thread == 0:
        block[1] = cuda.atomic.add(n_found, 0, block[0])
    cuda.syncthreads()
    if matches:
        found[block[1] + rank] = i


@inlined
def fast_min(a: float, b: float) -> float:
    """The smaller of two numbers, neither of them NaN: fewer instructions than `min`, which checks for NaN."""
    return a if a < b else b


@inlined
def fast_max(a: float, b: float) -> float:
    """The larger of two numbers, neither of them NaN."""
    return a if a > b else b


@device_function
def quotient(x: float, divisor: float, inverse: float) -> float:
    """x/divisor, rounded as division rounds it, where `inverse` is 1/divisor, for divisors from 1 to 2⁵³.

    With a correctly rounded inverse, one Newton step rounds correctly (Markstein 1990), unless the remainder
    underflows; so |x| must be 0 or at least `MIN_DIVIDEND`. A division takes several times as long on a GPU, most of
    all if x is 0.
    """
    if SIMULATED:
        return x / divisor
    guess = x * inverse
    return float(cuda.fma(cuda.fma(-divisor, guess, x), inverse, guess))


@device_function
def block_min_max(low: float, high: float, scratch: Any, buffer: int) -> tuple[float, float]:
    """Reduce over a block: the smallest `low` and the largest `high` of all threads, which all must call this.

    `scratch` is shared memory for `REDUCTION_SIZE` numbers, two buffers. Two calls without a barrier between them must
    use buffers 0 and 1, so that the second does not overwrite what a thread still reads for the first.
    """
    thread, at, n_warps = np.uint32(cuda.threadIdx.x), np.uint32(2 * MAX_WARPS * buffer), np.uint32(MAX_WARPS)
    warp, last = thread // np.uint32(WARP), np.uint32(cuda.blockDim.x - 1) // np.uint32(WARP)
    if WARP == 1:
        scratch[at + warp], scratch[at + n_warps + warp] = low, high
        cuda.syncthreads()
        for i in range(last + 1):
            low, high = fast_min(low, scratch[at + i]), fast_max(high, scratch[at + n_warps + i])
        return low, high
    # the lower lanes of a warp find the minimum, the upper ones the maximum, as the minimum of -high
    lane, offset = thread % np.uint32(WARP), WARP // 4
    upper = lane >= np.uint32(WARP // 2)
    sent, kept = (low, -high) if upper else (-high, low)
    kept = fast_min(kept, cuda.shfl_xor_sync(FULL_MASK, sent, WARP // 2))
    while offset > 0:
        kept = fast_min(kept, cuda.shfl_xor_sync(FULL_MASK, kept, offset))
        offset //= 2
    if lane % np.uint32(WARP // 2) == 0:
        scratch[at + warp + (n_warps if upper else np.uint32(0))] = kept
    cuda.syncthreads()
    # then eight lanes reduce the minima of all warps, and eight lanes the maxima
    kept, offset = scratch[at + lane % np.uint32(2 * MAX_WARPS)], MAX_WARPS // 2
    kept = kept if lane % n_warps <= last else np.inf
    while offset > 0:
        kept = fast_min(kept, cuda.shfl_xor_sync(FULL_MASK, kept, offset))
        offset //= 2
    other = cuda.shfl_xor_sync(FULL_MASK, kept, MAX_WARPS)
    return (kept, -other) if lane % np.uint32(2 * MAX_WARPS) < n_warps else (other, -kept)
