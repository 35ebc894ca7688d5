"""Runs and plans on the emulated GPU, for comparison with the CPU: `python -m tests.gpu.emulated FOLDER`.

A process of its own, because the emulated GPU takes the place of a real one for good.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from tests.gpu.emulator.device import COUNTED, emulate_gpu
from tests.gpu.simulated import Case, made_by
from tests.gpu.simulated import main as make_all


def has_compiler() -> bool:
    """Whether NVIDIA's compiler is installed as a Python package."""
    parts = ("nvidia", "nvidia.cuda_nvcc", "nvidia.cuda_nvrtc")
    return all(importlib.util.find_spec(part) for part in parts)


def emulated(cases: list[Case], folder: Path) -> list[dict[str, Any]]:
    """The arrays of each case, made by the emulated GPU of another process."""
    return made_by("tests.gpu.emulated", cases, folder, {})


def all_kernels() -> set[str]:
    """The names of all kernels."""
    import gainful.planning.device.solve
    import gainful.simulation.device.many  # noqa: F401
    from gainful.cuda_device import DeviceKernel

    modules = [module for name, module in sys.modules.items() if name.startswith("gainful.")]
    return {thing.__name__ for module in modules for thing in vars(module).values() if isinstance(thing, DeviceKernel)}


def main(folder: Path) -> None:
    """Do what the simulator does, and write how many instructions each kernel has executed."""
    emulate_gpu()
    from gainful.planning.device import transfer  # after the GPU is there

    transfer.WORTH_THREADS, transfer.PART_BYTES = 0, 64  # small arrays go the way of large ones
    make_all(folder)
    (folder / "kernels.json").write_text(json.dumps(COUNTED))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
