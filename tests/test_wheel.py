"""The wheel, installed into an empty environment, has everything that the package needs."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gainful import __version__
from gainful.about import commit

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("gainful-*.whl")
    shipped = zipfile.ZipFile(wheel).namelist()
    assert "gainful/py.typed" in shipped
    assert any(name.endswith("LICENSE") for name in shipped)
    assert {f"gainful/_vendor/plotly/{name}" for name in ("plotly-cartesian.min.js", "LICENSE")} <= set(shipped)
    assert not any(name.startswith("tests/") for name in shipped)
    run(sys.executable, "-m", "venv", tmp_path / "empty", cwd=tmp_path)
    programs = tmp_path / "empty" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    printed = run(programs / "gainful", "--version", cwd=tmp_path)
    built_from = commit()  # empty in a copy without its history
    assert printed.strip() == f"gainful {__version__}" + (f" (commit {built_from})" if built_from else "")
    solved = json.loads(run(programs / "gainful", "solve", "riverswim", "--json", cwd=tmp_path))
    assert solved["gain"] == pytest.approx(7203 / 16805, rel=0, abs=1e-8)
    listed = run(programs / "gainful", "list", "specs", cwd=tmp_path)
    assert "quickstart" in listed
    run(programs / "gainful", "learn", "toy3d", "--horizon", "1e3", "--json", cwd=tmp_path)
