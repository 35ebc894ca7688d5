"""Compiled code: nothing at import, cached where it can be, working where it cannot."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import caching, event

from gainful._compiled import kernel


def double(x: float) -> float:
    return 2.0 * x


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def test_importing_gainful_is_silent_and_loads_nothing_heavy() -> None:
    result = run(
        "import sys, gainful; heavy = {'numba', 'pandas', 'scipy', 'matplotlib', 'plotly'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_importing_every_planner_compiles_nothing() -> None:
    result = run(
        "from gainful._compiled import announce_compilation; announce_compilation(lambda: print('compiled')); "
        "import pkgutil, importlib, gainful; "
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(gainful.__path__, 'gainful.') "
        "if not m.name.endswith('__main__')]"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_compiling_is_announced_once_and_a_cached_load_is_silent(tmp_path: Path) -> None:
    code = (
        "from gainful._compiled import announce_compilation; announce_compilation(lambda: print('compiled')); "
        "import gainful as gf; print(gf.solve(gf.environments.two_state_toy()).gain)"
    )
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stdout.splitlines()[0] == "compiled"
    assert first.stdout.splitlines()[1:] == second.stdout.splitlines()
    assert list(tmp_path.rglob("*.nbi"))


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal; a test run in the background ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_while_a_kernel_is_compiled_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's callbacks into Python swallow it if it is delivered there."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # where no earlier test run left it compiled

    def interrupted(x: float) -> float:
        return x + 1.0

    class PressCtrlC(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            os.kill(os.getpid(), signal.SIGINT)

        def on_end(self, event: Any) -> None:
            """Nothing to do."""

    compiled = kernel(interrupted)
    with pytest.raises(KeyboardInterrupt), event.install_listener("numba:compile", PressCtrlC()):
        compiled(1.0)
    assert len(compiled.signatures) == 1  # the compilation was finished first
    assert compiled(1.0) == 2.0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_processes_that_start_together_compile_a_kernel_once(tmp_path: Path) -> None:
    (tmp_path / "triple.py").write_text(
        "import time\nfrom numba.core import event\nfrom gainful._compiled import kernel\n"
        "class Slow(event.Listener):\n"
        "    def on_start(self, e):\n        print('compiled')\n        time.sleep(3)\n"
        "    def on_end(self, e):\n        pass\n"
        "@kernel\ndef triple(x):\n    return 3.0 * x\n"
        "event.register('numba:compile', Slow())\nprint(triple(2.0))\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", "import triple"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0].split() for process in both]
    assert sorted(said) == [["6.0"], ["compiled", "6.0"]]


def test_without_any_place_for_a_cache_code_is_compiled_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(cls: type, py_func: Any, py_file: str) -> None:
        return None

    for name in dir(caching):
        locator = getattr(caching, name)
        if isinstance(locator, type) and issubclass(locator, caching._CacheLocator):
            monkeypatch.setattr(locator, "from_function", classmethod(nowhere))
    compiled: Any = kernel(double)
    assert isinstance(compiled._cache, caching.NullCache)
    assert compiled(1.5) == 3.0


def test_a_cache_that_cannot_be_written_is_given_up_silently(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def full(self: Any, name: str, data: Any) -> None:
        tried.append(name)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", full)
    compiled: Any = kernel(double)
    assert compiled(1.5) == 3.0
    assert compiled(2) == 4.0  # another signature: not tried again
    assert len(tried) == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root can write")
def test_solve_works_where_the_cache_folder_cannot_be_written() -> None:
    code = "import gainful as gf; print(gf.solve(gf.environments.two_state_toy()).gain)"
    result = run(code, NUMBA_CACHE_DIR="/proc/self/nowhere", NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) == pytest.approx(1.0, abs=1e-8)
