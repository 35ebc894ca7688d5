"""The command as a process: start-up, pipes, signals, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gainful as gf
from gainful.about import commit

COMMAND = (sys.executable, "-m", "gainful")
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


def gainful(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.slow
def test_a_second_run_is_quick_and_says_nothing_on_stderr() -> None:
    gainful("solve", "riverswim")  # compiles, unless cached
    second = gainful("solve", "riverswim", "--json")
    assert second.returncode == 0
    assert second.stderr == ""
    assert json.loads(second.stdout)["gain"] == pytest.approx(gf.solve(gf.environments.riverswim()).gain, abs=1e-8)


def test_the_installed_command() -> None:
    script = Path(sys.executable).with_name("gainful.exe" if os.name == "nt" else "gainful")
    assert script.exists(), "the command is not installed beside this interpreter: pip install -e ."
    result = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60)
    built_from = commit()
    expected = f"gainful {gf.__version__}" + (f" (commit {built_from})" if built_from else "")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{expected}\n", "")


@pytest.mark.slow
def test_bad_input_as_a_process(tmp_path: Path) -> None:
    table = tmp_path / "off.csv"
    table.write_text("state,action,next_state,probability,reward\na,x,a,0.9,1\n")
    result = gainful("solve", str(table), "--json")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"InvalidMDPError: {table}, line 2, column 'probability'")
    assert gainful("solve", "riverswam").returncode == 2


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from gainful.cli.main import run; run(['solve', '--help']); "
        "heavy = {'numpy', 'scipy', 'numba', 'pandas', 'gymnasium'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_solving_an_environment_loads_no_pandas() -> None:
    code = (
        "import sys; from gainful.cli.main import run; run(['solve', 'two-state-toy']); "
        "heavy = {'pandas', 'gymnasium'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


@posix
def test_a_reader_that_leaves_is_no_failure_of_ours() -> None:
    with subprocess.Popen(
        [*COMMAND, "solve", "garnet", "--set", "n_states=5000", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"{\n"
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(60) == 141
    assert [line for line in said.splitlines() if not line.startswith("compiling")] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*COMMAND, "list", "environments", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["OSError: [Errno 28] No space left on device"]


@posix
@pytest.mark.parametrize(
    "slow",
    [
        ("learn", "riverswim", "--horizon", "1e13"),
        pytest.param(("solve", "garnet", "--set", "n_states=4000000"), marks=pytest.mark.slow),  # built for seconds
    ],
)
def test_ctrl_c_ends_with_a_line(slow: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*COMMAND, *slow],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored if these tests run in the background
    ) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    # Python ends by the signal itself if it arrived in a string given to exec, as dataclasses do while modules load
    assert process.returncode in (130, -signal.SIGINT)
    assert out == ""
    assert err.strip().splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in err


def test_a_stream_without_greek_letters_still_gets_the_answer() -> None:
    result = gainful("solve", "two-state-toy", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "certified: between" in result.stdout
    assert result.stdout.isascii()


@posix
def test_a_terminal_gets_colours_and_eighty_columns() -> None:
    import pty

    controller, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*COMMAND, "solve", "riverswim"], stdout=terminal, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        shown = b""
        while True:
            try:
                piece = os.read(controller, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait(60) == 0
    os.close(controller)
    assert b"\x1b[1;32m0.4286224338" in shown
    assert "solving …".encode() in shown
