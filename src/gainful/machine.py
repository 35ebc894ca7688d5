"""What this machine offers to the process: cores, memory, disk."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from pathlib import Path

MEMORY_SHARE = 0.8
"""The share of the free memory that parallel runs may use."""


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
