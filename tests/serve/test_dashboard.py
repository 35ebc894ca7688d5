"""The dashboard in a real browser: it shows the numbers of the API, asks nobody else, and takes names for text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium
from tests.serve.service import CONFIG, Running

HOSTILE = """</h2><script>alert(1)</script><img src=x onerror=alert(2)> "it's" & <b>bold</b>"""
Look = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    with chromium() as found:
        yield found


@pytest.fixture
def look(browser: Any, service: Running) -> Iterator[Look]:
    """`look("/", width=375, scheme="dark")`; at the end no foreign request, error or dialog may have happened."""
    opened: list[Any] = []
    wrong: list[str] = []

    def call(path: str, width: int = 1400, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()

        def ask(route: Any) -> None:
            if route.request.url.startswith(f"{service.url}/"):
                route.continue_()
            else:
                wrong.append(route.request.url)
                route.abort()

        def refuse(dialog: Any) -> None:
            wrong.append(f"dialog: {dialog.message}")
            dialog.shutdown()

        page.route("**/*", ask)
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", refuse)
        page.goto(service.url + path)
        opened.append(context)
        return page

    yield call
    for context in opened:
        context.close()
    assert wrong == []


def typed(page: Any, key: str) -> None:
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.fill("#key", key)
    page.click("button:has-text('Show')")
    page.wait_for_selector("html[data-round]", state="attached")


@pytest.fixture(scope="module")
def agent_key(service: Running) -> str:
    """The key of an agent with a hostile name and 40 observations."""
    wanted = {"id": "shown", "name": HOSTILE, "config": {**CONFIG, "bonus_scale": 0.02}}
    key = str(service.post("/agents", wanted).json()["key"])
    state = 0
    for n in range(40):
        decision = service.post("/agents/shown/act", {"state": state}, key).json()
        to = (state + decision["action"]) % 6
        told = {"decision_id": decision["decision_id"], "reward": (n % 3) / 2, "next_state": to}
        service.post("/agents/shown/observe", told, key)
        state = to
    return key


def test_the_page_shows_the_numbers_of_the_api(look: Look, service: Running, agent_key: str) -> None:
    page = look("/")
    typed(page, agent_key)
    assert page.inner_text("#title") == HOSTILE
    assert page.is_hidden("#agents")  # there is only one
    assert page.is_hidden("#form")
    assert page.locator("#list td").nth(1).text_content() == HOSTILE
    assert page.locator("main script, main img").count() == 0
    found = service.ask("GET", "/agents/shown", agent_key).json()
    tiles = page.inner_text("#tiles")
    assert f"\n{found['observations']}\n" in tiles
    assert f"{found['confidence']['pairs_visited']} of {found['confidence']['pairs']}" in tiles
    assert f"{found['mean_reward']:.5g}" in tiles
    earned = service.ask("GET", "/agents/shown/earnings", agent_key).json()["average"]
    assert f"Average reward lately\n{sum(earned[-4:]) / 4:.5g}" in tiles
    assert "certified" not in page.inner_text("main")
    assert f"{found['gain']['estimate']:.5g}" in tiles
    assert found["regret_bound"]["reason"] in tiles
    rows = page.locator("#states tr")
    assert rows.count() == 6
    for s in range(6):
        cells = rows.nth(s).locator("td").all_inner_texts()
        assert cells[:3] == [str(x) for x in (s, found["tables"]["policy"][s], sum(found["tables"]["visits"][s]))]
    page.click("summary")
    for s in range(6):
        cells = page.locator("#pairs tr").nth(s).locator("td").all_inner_texts()
        assert cells[:3] == [str(x) for x in (s, *found["tables"]["visits"][s])]
    assert page.locator("#outcomes tr").first.locator("td").all_inner_texts()[0] == "40"
    assert page.locator("#outcomes tr").count() == 10
    assert page.locator("#gain path.curve").get_attribute("d").startswith("M")
    service.post("/agents/shown/observe", {"state": 5, "action": 0, "reward": 1.0, "next_state": 0}, agent_key)
    page.wait_for_selector("#tiles dd:text-is('41')", timeout=8000)  # it asks again by itself
    page.click("#leave")
    assert page.is_visible("#form")
    assert page.is_hidden("#agent")


@pytest.fixture(scope="module")
def machine_key(service: Running) -> str:
    """The key of an agent with labels, costs, and states that do not have all actions."""
    config = {
        "agent": "scal-plus",
        "span": 40.0,
        "bonus_scale": 0.02,
        "state_labels": ["new", "worn", "<b>broken</b>"],
        "action_labels": ["run", "service", "repair"],
        "allowed": [[True, False, False], [True, True, False], [False, False, True]],
        "cost_min": 1.0,
        "cost_max": 40.0,
    }
    key = str(service.post("/agents", {"id": "press", "config": config}).json()["key"])
    costs = {("new", "run"): 1, ("worn", "run"): 3, ("worn", "service"): 6, ("<b>broken</b>", "repair"): 40}
    state = "new"
    for n in range(30):
        action = service.post("/agents/press/act", {"state": state}, key).json()["action"]
        worse = {"new": "worn", "worn": "<b>broken</b>"}.get(state, "new")
        to = "new" if action != "run" else worse if n % 4 == 3 else state
        told = {"state": state, "action": action, "cost": costs[state, action], "next_state": to}
        assert service.post("/agents/press/observe", told, key).status_code == 200
        state = to
    return key


def test_the_page_shows_labels_and_costs_and_no_bonus_of_actions_that_a_state_lacks(
    look: Look, service: Running, machine_key: str
) -> None:
    page = look("/")
    typed(page, machine_key)
    found = service.ask("GET", "/agents/press", machine_key).json()
    tiles = page.inner_text("#tiles")
    assert "Optimistic average cost" in tiles
    assert f"Average cost so far\n{found['mean_cost']:.5g}" in tiles
    assert page.inner_text("#over") == "Average cost over time"
    assert "(cost)" in page.locator("#list").text_content()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#states tr").all()]
    assert [row[0] for row in rows] == ["new", "worn", "<b>broken</b>"]
    assert [rows[0][1], rows[2][1]] == ["run", "repair"]
    page.click("summary")
    heads = page.locator("#pair-heads th").all_inner_texts()
    assert heads[1:4] == ["visits, run", "visits, service", "visits, repair"]
    pairs = [row.locator("td").all_inner_texts() for row in page.locator("#pairs tr").all()]
    assert pairs[0][2:4] == pairs[0][5:7] == ["", ""]
    assert all(pairs[0][i] for i in (1, 4))


def test_the_admin_key_shows_all_agents(look: Look, service: Running, agent_key: str) -> None:
    service.make("another")
    page = look("/")
    typed(page, service.admin)
    names = page.locator("#list button").all_inner_texts()
    assert {"another", "shown"} <= set(names)
    page.click("#list button:has-text('shown')")
    page.wait_for_selector("#title:has-text('alert')")
    assert page.locator("#list tr[aria-current=true]").count() == 1


def test_a_wrong_key_is_told(browser: Any, service: Running) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(service.url)
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.fill("#key", "gf_wrong")
    page.click("button:has-text('Show')")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "key" in page.inner_text("#trouble")
    assert page.is_hidden("#agents")
    context.close()


def test_a_gain_above_the_largest_reward_is_not_called_certified(look: Look, service: Running) -> None:
    key = service.make("hopeful", bonus_scale=100.0)
    service.post("/agents/hopeful/act", {"state": 0}, key)
    found = service.ask("GET", "/agents/hopeful", key).json()
    assert found["gain"]["estimate"] > found["settings"]["reward_max"]
    page = look("/")
    typed(page, key)
    tiles = page.inner_text("#tiles")
    assert "above the largest reward: not informative yet" in tiles
    assert "certified" not in tiles


def test_the_details_of_another_agent_are_hidden_on_an_error(browser: Any, service: Running, agent_key: str) -> None:
    service.make("refusing")
    context = browser.new_context()
    page = context.new_page()
    body = '{"what": "it cannot be opened", "next": "wait"}'
    page.route(
        "**/agents/refusing*", lambda route: route.fulfill(status=503, content_type="application/json", body=body)
    )
    page.goto(service.url)
    typed(page, service.admin)
    page.click("#list button:has-text('shown')")
    page.wait_for_selector("#title:has-text('alert')")
    page.click("#list button:has-text('refusing')")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "it cannot be opened" in page.inner_text("#trouble")
    assert page.is_hidden("#agent")
    assert page.is_visible("#agents")
    page.click("#leave")
    page.fill("#key", "gf_wrong")
    page.click("button:has-text('Show')")
    page.wait_for_selector("#trouble:has-text('key')")
    assert page.is_hidden("#agents")
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (375, "dark"), (1400, "dark")])
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_it_fits_phones_and_the_dark(
    path: str, width: int, scheme: str, look: Look, service: Running, agent_key: str, tmp_path: Path
) -> None:
    page = look(path, width, scheme)
    if path == "/":
        typed(page, agent_key)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 5000


def test_the_documentation_shows_code_without_backticks(service: Running) -> None:
    text = service.ask("GET", "/docs", "").text
    assert "`" not in text
    assert "<code>Authorization: Bearer KEY</code>" in text


def test_the_pages_allow_no_script_but_their_own(service: Running) -> None:
    for path in ("/", "/docs"):
        answer = service.ask("GET", path, "")
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.text.count("<script") == (1 if path == "/" else 0)
