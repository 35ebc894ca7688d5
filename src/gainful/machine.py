"""What this machine offers to the process: cores, memory, disk."""

from __future__ import annotations

import math
import os
import re
import resource
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from gainful.errors import InvalidArgumentError, MemoryLimitError

MEMORY_SHARE = 0.8
"""The share of the free memory that parallel runs may use."""


MEMORY_VARIABLE = "GAINFUL_MAX_MEMORY"
"""The environment variable with the limit on what is built at once; worker processes inherit it."""
DEFAULT_SHARE = 0.5
"""The share of the machine's memory that is the limit by default."""
_UNITS = {"": 1, "b": 1} | {
    name + end: base**power
    for power, name in enumerate(("k", "m", "g", "t"), 1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def available_cores() -> int:
    """The cores this process may use: its affinity, within the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        cores = cores if quota == "max" else min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return max(1, cores)


def free_memory() -> int:
    """Bytes that can be allocated without swapping, within the limit of the control group."""
    import psutil

    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="utf-8").strip()
        if limit != "max":
            used = int((group / "memory.current").read_text(encoding="utf-8"))
            cached = dict(
                line.split() for line in (group / "memory.stat").read_text(encoding="utf-8").splitlines()
            ).get("inactive_file", "0")
            free = min(free, int(limit) - used + int(cached))
    except (OSError, ValueError):
        pass
    return max(0, free)


def peak_memory() -> int:
    """The largest number of bytes this process has used so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def default_jobs(memory_per_run: int) -> int:
    """How many runs fit side by side into cores and memory; at least one."""
    return max(1, min(available_cores(), int(MEMORY_SHARE * free_memory() / max(1, memory_per_run))))


def free_disk(folder: Path) -> int:
    """Bytes free on the disk where `folder` is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


# ---------------------------------------------------------------------- a limit on what is built


@cache
def total_memory() -> int:
    """Bytes of memory that the machine has, or its control group if that has fewer.

    Returns
    -------
    int
        The number of bytes.

    Examples
    --------
    >>> total_memory() > 10**6
    True
    """
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found.append(int(Path(file).read_text(encoding="utf-8")))
        except (OSError, ValueError):  # another version of control groups, or "max"
            continue
    return min(found)


def memory_limit() -> int:
    """Bytes that one model, agent, table or file may take: GAINFUL_MAX_MEMORY, or half of the machine's memory.

    Returns
    -------
    int
        The number of bytes.

    Raises
    ------
    InvalidArgumentError
        If GAINFUL_MAX_MEMORY is not a size.

    Examples
    --------
    >>> memory_limit() == total_memory() // 2 or MEMORY_VARIABLE in os.environ
    True
    """
    text = os.environ.get(MEMORY_VARIABLE)
    return int(DEFAULT_SHARE * total_memory()) if not text else bytes_of(MEMORY_VARIABLE, text)


def set_max_memory(limit: float | str | None) -> None:
    """Set how many bytes one model, agent, table or file may take, in this process and in the workers it starts.

    Sizes are estimated before anything is built, and what would be larger is refused with a `MemoryLimitError`. It is
    no limit on the process as a whole. `--max-memory` of the command line and the environment variable
    GAINFUL_MAX_MEMORY set the same limit.

    Parameters
    ----------
    limit : int, float, str or None
        Bytes, or a text such as "8 GB" or "512MiB"; None for the default, half of the machine's memory.

    Raises
    ------
    InvalidArgumentError
        If it is not a size.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.set_max_memory("1 GB")
    >>> gf.UCRL2(n_states=10**9, n_actions=2)
    Traceback (most recent call last):
    gainful.errors.MemoryLimitError: an agent with 1,000,000,000 states and 2 actions would take about 200 GB ...
    >>> gf.set_max_memory(None)
    """
    if limit is None:
        os.environ.pop(MEMORY_VARIABLE, None)
    else:
        os.environ[MEMORY_VARIABLE] = str(bytes_of("limit", limit))


@cache
def bytes_of(name: str, size: Any) -> int:
    """A size as a whole number of bytes, at least 1; `name` is what the error calls it.

    >>> bytes_of("limit", "1.5 GB"), bytes_of("limit", "2 KiB"), bytes_of("limit", 1e6)
    (1500000000, 2048, 1000000)
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[0-9]{1,2})?)\s*([a-z]*)\s*", str(size).lower())
    unit = _UNITS.get(found[2]) if found else None
    number = float(found[1]) * unit if found and unit else math.nan
    if isinstance(size, bool) or not 1 <= number <= 2**63:
        raise InvalidArgumentError(name, size, "a size such as 8GB, 512MiB or 1000000", "B, kB, MB, GB, TB; KiB, MiB …")
    return int(number)


def size_text(number: float) -> str:
    """Bytes for people, in powers of 1000.

    >>> size_text(999), size_text(8_040_000_000), size_text(2e11)
    ('999 bytes', '8.04 GB', '200 GB')
    """
    for unit, bound in (("bytes", 1e3), ("kB", 1e6), ("MB", 1e9), ("GB", 1e12), ("TB", 1e15)):
        if number < bound:
            return f"{number / (bound / 1e3):.3g} {unit}"
    return f"{number / 1e12:.3g} TB"


def check_memory(name: str, found: Any, needed: float, thing: str) -> None:
    """Raise a MemoryLimitError if `thing` would take more bytes than the limit; call it before building anything.

    Parameters
    ----------
    name : str
        The argument that makes it large.
    found : object
        Its value.
    needed : float
        The estimate of the bytes it takes, with what building it takes.
    thing : str
        What it is, as in "a model with 10 states".

    Raises
    ------
    MemoryLimitError
        With the estimate, the limit and how to raise it.

    Examples
    --------
    >>> check_memory("n_states", 10**15, 1e18, "a model with 10¹⁵ states")
    Traceback (most recent call last):
    gainful.errors.MemoryLimitError: a model with 10¹⁵ states would take about 1e+06 TB of memory, ...
    """
    limit = memory_limit()
    if needed <= limit:
        return
    share = "" if os.environ.get(MEMORY_VARIABLE) else ", half of the machine's memory"
    raise MemoryLimitError(
        name,
        found,
        f"{thing} would take about {size_text(needed)} of memory, and the limit is {size_text(limit)}{share}",
        int(min(needed, 2**63)),
        limit,
        f"make it smaller, or raise the limit: gf.set_max_memory, --max-memory or {MEMORY_VARIABLE}",
    )


def check_table_size(name: str, n_states: int, n_actions: int, per_pair: float, thing: str) -> None:
    """Raise a MemoryLimitError if something with `per_pair` bytes for each state and action is too large.

    Parameters
    ----------
    name : str
        The argument that makes it large.
    n_states, n_actions : int
        The sizes.
    per_pair : float
        Bytes per state and action.
    thing : str
        "an agent", "a model".

    Raises
    ------
    MemoryLimitError
        If it is too large.

    Examples
    --------
    >>> check_table_size("n_states", 6, 2, 100.0, "an agent")
    """
    words = f"{thing} with {n_states:,} states and {n_actions:,} actions"
    most = 10**18  # beyond any memory, and a float
    check_memory(name, n_states, float(min(n_states, most)) * float(min(n_actions, most)) * per_pair, words)
