"""A small experiment with names that would do harm if they could, its page in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gainful.cli.main import run
from gainful.experiments.sweep import run_experiment
from gainful.report.page import write_report
from tests.browser import chromium
from tests.cli.conftest import Outcome
from tests.experiments.sweeps import edited

TITLE = "</script><script>alert(1)</script>"
QUOTES = """SCAL+ "it's" & <img src=x onerror=alert(2)>"""
LATEX = r"$\LaTeX$ %{y} <b>bold</b>"
RIVER = "River 'swim' </h2><a href=javascript:alert(3)>x</a>"
SPEC = f"""
title = '''{TITLE}'''
notes = '''First <i>note</i>.

Second note & more.'''
horizon = 5e3
seeds = 3
checkpoints = 10
[[environments]]
name = "riverswim"
label = '''{RIVER}'''
[[environments]]
name = "toy3d"
label = "Toy3D"
[[environments]]
name = "ship-steering"
label = "Ship"
horizon = 500
[[agents]]
name = "scal-plus"
label = '''{QUOTES}'''
except = ["Ship"]
[[agents]]
name = "scal-plus"
label = "SCAL+, bonus_scale = {{bonus_scale}}"
parameters = {{ bonus_scale = 0.1 }}
except = ["Ship"]
[[agents]]
name = "psrl"
label = 'latex'
except = ["Ship"]
[[agents]]
name = "ucrl2b"
label = "UCRL2B"
except = ["Ship"]
[[agents]]
name = "psrl"
label = "on cells"
parameters = {{ bins = 2 }}
only = ["Ship"]
"""


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment, run."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    outcome = run_experiment(SPEC, out, jobs=1)
    assert outcome.complete
    with edited(out) as store:  # a spec refuses such braces, a store may hold them
        store.execute("UPDATE configurations SET agent_label = ? WHERE agent_label = 'latex'", (LATEX,))
    return out


@pytest.fixture(scope="package")
def file(folder: Path) -> Path:
    """Its page."""
    return write_report(folder)


# ---------------------------------------------------------------------- the command


Reporter = Callable[..., Outcome]


@pytest.fixture
def reporter(capsys: pytest.CaptureFixture[str]) -> Reporter:
    """`reporter(folder, "--json")`: `gainful report` in this process, as the installed command does it."""

    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = run(["report", *map(str, arguments)])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


# ---------------------------------------------------------------------- the browser


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    with chromium() as found:
        yield found


@dataclass
class Sight:
    """A page that was opened, and everything it did that it should not."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def draw_all(self) -> None:
        """Scroll through it, as charts are drawn when they come into view."""
        self.page.evaluate(
            """async () => {
                for (const node of document.querySelectorAll(".chart")) {
                    node.scrollIntoView({behavior: "instant"});
                    while (!node.dataset.drawn) await new Promise((done) => setTimeout(done, 20));
                }
                scrollTo({top: 0, behavior: "instant"});
            }"""
        )


Look = Callable[..., Sight]


@pytest.fixture
def look(browser: Any) -> Iterator[Look]:
    """`look(file, width=375, scheme="dark")`; at the end no request, error or dialog may have happened."""
    opened: list[tuple[Any, Sight]] = []

    def call(file: Path, width: int = 1400, scheme: str = "light") -> Sight:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        sight = Sight(page)

        def ask(route: Any) -> None:
            if route.request.url == file.as_uri():
                route.continue_()
            else:
                sight.requests.append(route.request.url)
                route.abort()

        def refuse(dialog: Any) -> None:
            sight.errors.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.route("**/*", ask)
        page.on("console", lambda m: sight.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: sight.errors.append(str(error)))
        page.on("dialog", refuse)
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        opened.append((context, sight))
        return sight

    yield call
    for context, sight in opened:
        context.close()
        assert sight.requests == []
        assert sight.errors == []
