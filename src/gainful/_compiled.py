"""The one door to compiled code: cached, without the GIL, never failing for want of a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call: machine code cached on disk, GIL released, IEEE arithmetic.

    Where no cache folder can be found the function is compiled in every process; where a folder cannot be read or
    written when the time comes (read-only, full, damaged files), it is compiled again: a cache is a convenience,
    never a reason to fail.
    """
    # typed as Any: kernels are called with argument tuples put together elsewhere, which a type checker cannot count
    options = {"nogil": True, "error_model": "numpy", "fastmath": False}
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(**options)(function)
    cache = dispatcher._cache
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
    return dispatcher


def inlined(function: F) -> F:
    """A piece of a kernel: always inlined into its callers (a call in an inner loop costs up to half the speed)."""
    return cast(F, numba.njit(forceinline=True, error_model="numpy")(function))


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
    """Call `say()` once, when something is first compiled in this process (a cached load is silent)."""
    event.register("numba:compile", _Announcer(say))
