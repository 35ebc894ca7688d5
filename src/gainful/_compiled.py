"""The one entrance to compiled code: cached on disk, without the GIL, and never failing for want of a cache."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # not POSIX: processes that start together compile the same kernels
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])
ROOT = Path(__file__).parent
LONGEST_WAIT = 60.0
"""Seconds to wait for another process that compiles the same kernel."""
_IMPORT = re.compile(r"^from gainful\.([\w.]+) import", re.MULTILINE)
_HOLDS_KERNELS = re.compile(r"^@(?:kernel|inlined|overload)\b|\(NamedTuple\)", re.MULTILINE)


@functools.cache
def _source(module: str) -> str:
    """The text of `gainful.{module}`."""
    path = ROOT / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8")


@functools.cache
def source_stamp(module: str) -> str:
    """A digest of every file that compiled code of `gainful.{module}` may come from.

    Numba's own stamp covers the kernel's file alone, and so misses an edit in a callee, a constant or a NamedTuple
    of another file, and loads stale machine code. These are the files with kernels or their types among all that
    the module imports, directly or not. Constants that kernels use must be defined in such files.
    """
    found, waiting = {module}, [module]
    while waiting:
        for imported in _IMPORT.findall(_source(waiting.pop())):
            if imported not in found:
                found.add(imported)
                waiting.append(imported)
    digest = hashlib.sha256()
    for name in sorted(found):
        if name == module or _HOLDS_KERNELS.search(_source(name)):
            digest.update(f"{name}\0{_source(name)}\0".encode())
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call: machine code cached on disk, GIL released, IEEE arithmetic.

    Where no cache folder can be found the function is compiled in every process. Where a folder cannot be read or
    written when the time comes (read-only, full, damaged files), it is compiled again: a cache is a convenience,
    never a reason to fail. With NUMBA_DISABLE_JIT=1 the function stays plain Python.
    """
    # typed as Any: kernels are called with argument tuples put together elsewhere, which a type checker cannot count
    options = {"nogil": True, "error_model": "numpy", "fastmath": False, "no_cfunc_wrapper": True}
    if numba.config.DISABLE_JIT:
        return function
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(**options)(function)
    cache = dispatcher._cache
    package, _, module = function.__module__.partition(".")
    if package == "gainful":
        cache._cache_file._source_stamp = source_stamp(module)
    save, load = cache.save_overload, cache.load_overload

    def save_if_possible(signature: Any, data: Any) -> None:
        try:
            save(signature, data)
        except Exception:  # a damaged index raises whatever its bytes happen to spell
            cache.disable()

    def load_if_possible(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception:
            return None

    cache.save_overload, cache.load_overload = save_if_possible, load_if_possible
    compile_now = dispatcher.compile

    def compile_undisturbed(signature: Any) -> Any:
        with interrupts_held(), global_compiler_lock, compiling_alone(cache):
            return compile_now(signature)

    dispatcher.compile = compile_undisturbed
    return dispatcher


@contextmanager
def compiling_alone(cache: Any) -> Iterator[None]:
    """Let no other process compile this kernel at the same time: it waits, and loads what is compiled here.

    Callers hold Numba's own lock, which comes first everywhere, and a kernel's lock is taken before those of the
    kernels it calls: no two processes or threads can wait for each other. Where no lock can be had, both compile.
    """
    lock = None
    try:
        if fcntl is not None:
            folder = Path(cache.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(folder / f"{cache._impl.filename_base}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _take(lock)
    except OSError:
        pass
    try:
        yield
    finally:
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_UN)  # also for a child that was forked meanwhile
            os.close(lock)


def _take(lock: int) -> None:
    """Wait for the lock, but not for ever: its holder may have been suspended."""
    end = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < end:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Deliver a Ctrl-C that arrives inside this block at its end.

    While a kernel is compiled or loaded, LLVM calls back into Python, and a KeyboardInterrupt raised in such a callback
    is printed and forgotten: the program would go on as if nobody had asked it to stop.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda _, frame: arrived.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived:
            before(signal.SIGINT, arrived[0])


def inlined(function: F) -> F:
    """Mark a piece of a kernel, always inlined into its callers: a call in an inner loop costs up to half the speed."""
    if numba.config.DISABLE_JIT:
        return function
    return cast(F, numba.njit(forceinline=True, error_model="numpy", no_cfunc_wrapper=True)(function))


class _Announcer(event.Listener):  # type: ignore[misc]
    def __init__(self, say: Callable[[], None]) -> None:
        self._say = say
        self._said = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        if not self._said:
            self._said = True
            self._say()

    def on_end(self, event: Any) -> None:
        """Nothing to do when a compilation ends."""


def announce_compilation(say: Callable[[], None]) -> None:
    """Call `say()` once, when something is first compiled in this process (loading from the cache is silent)."""
    event.register("numba:compile", _Announcer(say))
