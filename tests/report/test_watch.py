"""`gainful watch`: one page on this machine that follows an experiment."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gainful.cli.main import run
from gainful.errors import GainfulError, InvalidArgumentError
from gainful.experiments.store import STORE_FILE, Store
from gainful.report.collect import SHOWN_EPISODES, collect
from gainful.report.page import write_report
from gainful.report.watching import WatchedFolder, WatchServer
from gainful.report.writing import escaped


@pytest.fixture
def part(folder: Path, tmp_path: Path) -> Path:
    """The experiment with only the runs of the first two seeds."""
    copy = tmp_path / "part"
    shutil.copytree(folder, copy)
    drop_runs(copy, "seed > 1")
    return copy


def drop_runs(folder: Path, which: str) -> None:
    (folder / f"{STORE_FILE}.sha256").unlink(missing_ok=True)
    with sqlite3.connect(folder / STORE_FILE) as store:
        store.execute(f"DELETE FROM runs WHERE {which}")


@pytest.fixture
def server(part: Path) -> Iterator[WatchServer]:
    made = WatchServer(part, 0)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def asked(server: WatchServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, Any, str]:
    port = server.server_address[1]
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers={"Host": host or f"localhost:{port}"})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, reply.headers, text


def test_the_page_and_the_progress_are_served_to_this_machine_alone(server: WatchServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, headers, text = asked(server, "/")
    assert (status, headers["Cache-Control"], headers["X-Content-Type-Options"]) == (200, "no-store", "nosniff")
    assert "connect-src &#x27;self&#x27;" in text
    assert "Not running: 18 of 27 runs." in text
    status, _, text = asked(server, "/progress")
    told = json.loads(text)
    assert (status, told["planned"], told["finished"], told["running"]) == (200, 27, 18, False)
    assert asked(server, "/", host="attacker.example")[0] == 421
    assert asked(server, "/../runs.sqlite")[0] == 404
    assert asked(server, "/", method="POST")[0] == 501
    assert asked(server, "/", method="HEAD")[2] == ""


def test_a_page_is_new_only_if_runs_were_stored(part: Path, folder: Path) -> None:
    watched = WatchedFolder(part)
    before, version = watched.page(), watched.progress().version
    assert watched.page() is before
    shutil.copy(folder / STORE_FILE, part / STORE_FILE)
    while watched.progress().version == version:  # it rests a little after it has made a page
        pass
    assert watched.progress().complete
    assert "Complete: 27 of 27 runs." in watched.page()


def test_a_folder_without_a_finished_run_waits_for_one(part: Path) -> None:
    drop_runs(part, "1")
    page = WatchedFolder(part).page()
    with Store.read(part) as store:
        title = escaped(store.title)
    assert title
    assert f"<h1>{title}</h1>" in page
    assert f"<title>Waiting: {title}</title>" in page
    assert "None of 27 runs has finished yet" in page
    assert page.count("<script>") == 1


def test_a_folder_without_an_experiment_and_a_taken_port_are_errors(tmp_path: Path, part: Path) -> None:
    with pytest.raises(GainfulError, match="there is no experiment here"):
        WatchServer(tmp_path)
    with WatchServer(part, 0) as first, pytest.raises(InvalidArgumentError, match="is in use"):
        WatchServer(part, first.server_address[1])


def test_the_command_waits_a_while_for_an_experiment_to_begin(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("gainful.cli.watch.WAIT_FOR_BEGINNING", 0.1)
    assert run(["watch", str(tmp_path / "never")]) == 1
    told = capsys.readouterr().err
    assert f"waiting for an experiment in {tmp_path / 'never'}" in told
    assert "there is no experiment here" in told


def test_the_command_says_where_and_ends_with_the_experiment(folder: Path, capsys: Any) -> None:
    assert run(["watch", str(folder), "--port", "0", "--until-complete"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()[-2:]
    assert first.startswith("http://localhost:")
    assert f"shows {folder}; Ctrl-C ends it" in first
    assert second == f"complete: 27 of 27 runs; gainful report {folder} writes the page to a file"


def test_the_episodes_of_every_stored_run_are_served(server: WatchServer, part: Path) -> None:
    run = collect(part).environments[0].groups[0].runs[1]
    status, _, text = asked(server, f"/plans/{run.run_id}")
    sent = np.frombuffer(base64.b64decode(json.loads(text)["plans"]), dtype="<f4").reshape(4, -1)
    assert (status, sent.shape[1]) == (200, min(run.episodes, SHOWN_EPISODES))
    np.testing.assert_array_equal(sent, np.asarray(list(run.plans.values()), dtype="<f4"))
    for other in ("", "nobody", "%27%20OR%201", "../runs.sqlite", "%ff", "a" * 9000):
        assert asked(server, f"/plans/{other}")[0] == 404


@pytest.mark.slow
def test_episodes_for_which_a_page_has_no_room_are_fetched(
    server: WatchServer, part: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gainful.report.collect.SHOWN_EPISODE_VALUES", 0)
    run = collect(part).environments[0].groups[0].runs[1]
    assert not run.plans
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{server.address}#run-{run.run_id}")
    page.wait_for_selector(f"#episodes-0:has-text('seed {run.seed} ({run.run_id}) is shown')", timeout=30_000)
    assert page.locator("#episode-table-0 tbody tr").count() > 5
    write_report(part, part / "page.html")
    page.goto(f"{(part / 'page.html').as_uri()}#run-{run.run_id}")
    page.wait_for_selector("#episodes-0:has-text('gainful watch shows those of every run')")
    page.close()


@pytest.mark.slow
def test_the_open_page_takes_over_new_runs_and_keeps_what_the_reader_did(
    server: WatchServer, part: Path, folder: Path, browser: Any
) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.goto(server.address)
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.wait_for_selector(".chart[data-chart=regret][data-drawn]")
    page.click('.tools button[data-key="y"][data-value="linear"]')
    page.click("details.notes summary")
    page.click('.key[data-env="0"][data-agent="1"]')
    page.click('#env-0 table.headline th:has-text("Pseudo-regret") button')
    page.evaluate("document.querySelector('.chart').dataset.mine = 'yes'; scrollTo({top: 700, behavior: 'instant'})")
    shutil.copy(folder / STORE_FILE, part / STORE_FILE)
    page.wait_for_selector("#live:has-text('Complete: 27 of 27 runs.')", timeout=30_000)
    assert page.inner_text(".lead").startswith("27 runs")
    assert page.evaluate("document.querySelector('.chart').dataset.mine") == "yes"  # the same chart, with new data
    axis, hidden = page.evaluate(
        """() => { const c = document.querySelector(".chart"); return [c._fullLayout.yaxis.type,
            c.data.filter((t) => t.visible === "legendonly").length > 0]; }"""
    )
    assert (axis, hidden) == ("linear", True)
    assert page.evaluate("document.querySelector('details.notes').open")
    assert page.get_attribute('#env-0 table.headline th:has-text("Pseudo-regret")', "aria-sort") == "ascending"
    assert abs(page.evaluate("scrollY") - 700) < 60
    assert errors == []
    page.close()
