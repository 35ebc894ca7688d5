"""The reference pages say what is true: names exist, cards agree with the agents and environments they describe."""

from __future__ import annotations

import ast
import inspect
import math
import re
import shlex
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.agents import registry
from gainful.cli.main import run
from gainful.environments import continuous_names, gymnasium_id, make, make_continuous, names
from tests.test_site import module_of_docs

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "reference"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))}
AGENTS = [*registry.names(), *registry.continuous_names()]
imported = module_of_docs("api_pages").resolve  # what a dotted name stands for
LARGEST = 500  # states of an environment whose numbers are recomputed


def in_backticks(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def cards(page: str) -> dict[str, str]:
    """The text under each heading of the second and third level, by its words."""
    parts = re.split(r"^###? (.+)$", PAGES[page], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def fields(card: str) -> dict[str, str]:
    """The lines "- **Field:** text" of a card."""
    return dict(re.findall(r"^- \*\*([^:*]+):\*\* (.+)$", card, flags=re.MULTILINE))


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_the_package_exists(page: str) -> None:
    missing = []
    for name in sorted(in_backticks(PAGES[page])):
        whole = re.fullmatch(r"(?:gainful|gf)((?:\.\w+)+)(?:\(.*\))?", name)
        if whole:
            try:
                imported("gainful" + whole.group(1))
            except (AssertionError, AttributeError):
                missing.append(name)
    assert not missing


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_every_test_and_script_exists(page: str) -> None:
    for name in in_backticks(PAGES[page]):
        if name.startswith("tests/"):
            file, test = name.split("::")
            assert test.startswith("test_")
            assert test in functions_of(file), name
        if re.match(r"(python )?benchmarks/\S+\.py$", name):
            assert (ROOT / name.removeprefix("python ")).is_file(), name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        file, _, heading = target.partition("#")
        path = FOLDER / file if file else FOLDER / f"{page}.md"
        assert path.is_file(), target
        if heading:
            slugs = {
                re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
                for line in path.read_text(encoding="utf-8").splitlines()
                if line.startswith("#")
            }
            assert heading in slugs, target


def test_every_statement_of_the_paper_has_code_or_a_reason() -> None:
    text = PAGES["theory_map"].partition("## Where we differ")[0]
    entries = re.findall(r"^- (.+)\n  - code: (.+)\n(?:  - test: (.+)\n)?", text, flags=re.MULTILINE)
    assert len(entries) == text.count("  - code:") >= 70
    labels: list[str] = []
    for says, code, test in entries:
        labels += re.findall(r"`([A-Za-z]+:[\w.]+)`", says)
        assert any(word in code for word in ("`gainful.", "proof only", "not implemented", "as there", "the same")), (
            code
        )
        assert "`tests/" in test or test.startswith("none") or code.endswith("proof only"), says
    assert len(set(labels)) >= 60


def test_every_difference_from_the_paper_has_a_test() -> None:
    text = PAGES["theory_map"].partition("## Where we differ")[2]
    assert len(re.findall(r"^- \*\*", text, flags=re.MULTILINE)) == text.count("  - test: `tests/") >= 15


def test_every_page_is_in_the_index() -> None:
    for page in PAGES:
        if page != "index":
            assert f"({page}.md)" in PAGES["index"]
            assert re.search(rf"^{page}$", PAGES["index"], flags=re.MULTILINE)


# ---------------------------------------------------------------------- agents

THOUSANDS = r"\d{1,3}(?:[, ]\d{3})+"
NUMBER = rf"{THOUSANDS}|\d+(?:\.\d+)?"
SETTINGS: dict[str, Any] = {
    "span": 1.0,
    "horizon": 10**7,
    "discount": 0.99,
    "m": 10**6,
    "episode_length": 50,
    "lipschitz": 1.0,
    "holder": 1.0,
}


def built(name: str) -> Any:
    """The agent with its default constants, told what it must be told."""
    if name == "discretized":
        return gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=10), n_actions=2)
    points = name in registry.continuous_names()
    made: Any = registry.continuous_class(name) if points else registry.agent_class(name)
    needed = {p for p, default in registry.describe(name).parameters.items() if default == "required"}
    told = {key: value for key, value in SETTINGS.items() if key in needed or (points and key in inspected(made))}
    if points:
        told.pop("horizon", None)
        return made(partition=gf.Partition.uniform(bins=10), n_actions=2, **told)
    return made(6, 2, **told)


def inspected(made: Any) -> set[str]:
    return set(inspect.signature(made).parameters)


def test_every_agent_has_a_card() -> None:
    assert set(AGENTS) | {"Which one?", "REGAL"} == set(cards("agents"))
    assert "ot implementable" in cards("agents")["REGAL"]
    assert "regal" in registry.NOT_IMPLEMENTABLE


@pytest.mark.parametrize("name", AGENTS)
def test_a_card_agrees_with_its_agent(name: str) -> None:
    card, agent = fields(cards("agents")[name]), built(name)
    assert list(card) == [
        "Class",
        "Assumes",
        "Bound",
        "Source",
        "Needs",
        "Planning",
        "Memory",
        "Use it when",
        "Void when",
        "Constants",
        "Measured",
        "Run",
    ]
    assert imported(card["Class"].strip("`")) is type(agent)
    guarantee = agent.guarantee
    if name != "discretized":  # whose source is that of the agent inside
        for word in re.findall(r"[A-Z][\w-]+|\d{4}", guarantee.source):
            assert word in card["Source"], word
        formula = re.split(r" with probability|, S =|, n =| at T =|, in expectation", guarantee.bound)[0]
        assert card["Bound"].startswith("none") if formula == "none" else formula in card["Bound"]
    assert f"Default constants: {'yes' if guarantee.holds else 'no'}" in card["Bound"]
    for parameter, default in registry.describe(name).parameters.items():
        if default == "required":
            assert f"`{parameter}`" in card["Needs"], parameter


@pytest.mark.parametrize("name", AGENTS)
def test_numbers_seen_are_those_of_the_tables(name: str) -> None:
    pages = ("learning_table", "continuous", "planning_cost", "learning", "which_agent")
    tables = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    card = re.sub(r"^\|.*$", "", cards("agents")[name].replace("10,000 pairs", ""), flags=re.MULTILINE)  # no own tables
    card, tables = (text.replace("\u00a0", " ") for text in (card, tables))  # which keeps a number on one line
    for quoted in re.findall(rf"−?(?:{NUMBER}) ± (?:{NUMBER})|{THOUSANDS}|[\d.]+ %", card):
        assert quoted in tables, quoted


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_the_command_of_a_card_works(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = fields(cards("agents")[name])["Run"].strip("`")
    words = shlex.split(command)
    assert words[:2] == ["gainful", "learn"]
    assert words[words.index("--agent") + 1] == ("ucrl2b" if name == "discretized" else name)
    words[words.index("--horizon") + 1] = "200"  # the same, shorter
    if name in registry.continuous_names():
        words += ["--span", "2"] if name != "discretized" else []
        words += ["--gain", "0.9"]  # in place of the oracle's
    code = run(words[1:])
    assert code == 0, capsys.readouterr().err


# ---------------------------------------------------------------------- environments


def number(text: str) -> tuple[float, float]:
    """The number at the beginning of `text` (the decimal one after a fraction), and half a unit of its last digit."""
    token = re.match(r"(?:about )?(?:-?\d+/\d+ = )?(-?\d+(?:\.\d+)?|inf)", text)
    assert token, text
    digits = token.group(1).partition(".")[2]
    return float(token.group(1)), 0.5 * 10.0 ** -len(digits)


def check(shown: str, true: float, slack: float = 1e-7) -> None:
    """`shown` begins with the number `true`, rounded; a fraction before it is exact."""
    value, half = number(shown)
    assert value == pytest.approx(true, rel=0, abs=half + slack * max(1.0, abs(true))), shown
    exact = re.match(r"(-?\d+/\d+) = ", shown)
    if exact:
        assert float(Fraction(exact.group(1))) == pytest.approx(true, rel=0, abs=slack), shown


def test_every_environment_has_a_card() -> None:
    sections = {"Finitely many states", "Continuous states"}
    assert set(names()) | set(continuous_names()) | sections == set(cards("environments"))


@pytest.mark.parametrize("name", names())
def test_the_numbers_of_an_environment(name: str) -> None:
    card, mdp = fields(cards("environments")[name]), make(name)
    assert list(card) == [
        "States",
        "Actions",
        "Rewards",
        "Gain",
        "Span",
        "Diameter",
        "Structure",
        "Hardness",
        "For",
        "Gymnasium",
    ]
    assert int(number(card["States"])[0]) == mdp.n_states <= LARGEST
    assert int(number(card["Actions"])[0]) == mdp.n_actions
    pairs = re.search(r"\((\d+) pairs\)", card["Actions"])
    assert (int(pairs.group(1)) if pairs else mdp.n_states * mdp.n_actions) == mdp.allowed.sum()
    low, high = mdp.reward_min, mdp.reward_max
    if mdp.units.objective == "cost":
        assert "cost" in card["Rewards"]
        low, high = -high, -low
    assert ("Per unit of time" in card["Rewards"]) == mdp.units.continuous
    check(card["Rewards"], low, 1e-9)
    check(card["Rewards"].split(" to ")[1], high, 1e-9)
    plan = gf.solve(mdp, precision=1e-8 if high > 1000 else 1e-10)
    check(card["Gain"], plan.gain)
    check(card["Span"], plan.span)
    diameter = gf.diameter(mdp)
    if math.isinf(diameter):
        assert card["Diameter"].startswith("inf")
    else:
        check(card["Diameter"], diameter)
    assert card["Structure"] == str(gf.structure(mdp))
    assert card["Gymnasium"] == f"`{gymnasium_id(name)}`"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_how_hard_an_environment_is(name: str) -> None:
    shown = fields(cards("environments")[name])["Hardness"]
    found = gf.hardness(make(name))
    assert shown.startswith("ergodic, " if found.ergodic else "not ergodic, ")
    numbers: dict[str, float | None] = {
        "least gap": found.least_gap,
        "Σ 1/gap": found.inverse_gaps,
        "variance of h*": found.variance,
        "effective support": found.support,
        "local diameter": found.local_diameter,
        "relaxation": found.relaxation,
        "slope over ln T": found.slope,
    }
    for what, value in numbers.items():
        token = re.search(rf"{re.escape(what)} (infinite|[\d.e+-]+)", shown)
        assert (token is None) == (value is None), what
        if token is not None:
            told = math.inf if token.group(1) == "infinite" else float(token.group(1))
            assert told == pytest.approx(value, rel=1e-3, abs=1e-12), what


@pytest.mark.slow
@pytest.mark.parametrize("name", continuous_names())
def test_the_numbers_of_an_environment_among_points(name: str) -> None:
    card, env = fields(cards("environments")[name]), make_continuous(name)
    assert list(card) == ["States", "Actions", "Rewards", "Smoothness", "Gain", "Span", "For", "Gymnasium"]
    assert f"d = {env.dim}" in card["States"]
    box = re.findall(r"\[(-?[\d.]+), (-?[\d.]+)\]", card["States"])
    for (low, high), true_low, true_high in zip(box, env.low, env.high, strict=True):
        check(low, true_low)
        check(high, true_high)
    assert int(number(card["Actions"])[0]) == env.n_actions
    check(card["Rewards"], env.reward_min)
    check(card["Rewards"].split(" to ")[1], env.reward_max)
    assert card["Gymnasium"] == f"`{gymnasium_id(name)}`"
    if env.lipschitz is None:
        assert card["Smoothness"].startswith("none")
        return  # mountain-car's estimate takes twelve seconds, ship-steering has none
    check(card["Smoothness"].removeprefix("L = "), env.lipschitz)
    assert f"α = {env.holder:g}" in card["Smoothness"]
    found = gf.environments.oracle_gain(env)
    assert found.bounds is not None
    check(card["Gain"], found.gain, 1e-9)
    ends = re.search(r"in \[([\d.]+), ([\d.]+)\]", card["Gain"])
    assert ends
    unit = 2 * number(ends.group(1))[1]
    assert found.bounds[0] - unit <= float(ends.group(1)) <= found.bounds[0]  # rounded outwards
    assert found.bounds[1] <= float(ends.group(2)) <= found.bounds[1] + unit
    check(card["Span"], found.span, 1e-3)
    closed = re.search(r"exactly .* = ([\d.]+)", card["Gain"])
    if closed:
        assert found.bounds[0] <= float(closed.group(1)) <= found.bounds[1]
