"""The page that says which agent to use: its code runs, and what it says about theorems is what the agents say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gainful as gf

PAGE = (Path(__file__).parent.parent / "docs" / "which_agent.md").read_text(encoding="utf-8")
ANSWERS = re.findall(r"^\| .+? \| `(\w+)\((.*?)\)` \| (.+?) \|", PAGE, flags=re.MULTILINE)


def test_the_page_has_answers() -> None:
    assert len(ANSWERS) >= 6
    assert ANSWERS[0][:2] == ("KLSCALPlus", "S, A")


def test_the_constants_on_the_page_exist() -> None:
    lines = [line for line in re.split(r"\n- ", PAGE) if line.startswith(("**`bonus`", "**`episodes`"))]
    bonuses, episodes = (re.findall(r'`"(.+?)"`', line) for line in lines)
    assert all(gf.SCALPlus(3, 2, span=1.0, bonus=bonus).guarantee.holds for bonus in bonuses)
    assert all(gf.KLSCALPlus(3, 2, episodes=rule).guarantee.holds for rule in episodes)
    assert (len(bonuses), len(episodes)) == (4, 2)


@pytest.mark.parametrize(("name", "arguments", "theorem"), ANSWERS)
def test_an_answer_can_be_typed_and_has_the_theorem_that_the_page_says(name: str, arguments: str, theorem: str) -> None:
    agent = eval(f"gf.{name}({arguments})", {"gf": gf, "S": 3, "A": 2, "c": 1.5})
    assert agent.guarantee.holds == (theorem != "no")
