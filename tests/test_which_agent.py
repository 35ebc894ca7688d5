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


@pytest.mark.parametrize(("name", "arguments", "theorem"), ANSWERS)
def test_an_answer_can_be_typed_and_has_the_theorem_that_the_page_says(name: str, arguments: str, theorem: str) -> None:
    agent = eval(f"gf.{name}({arguments})", {"gf": gf, "S": 3, "A": 2, "c": 1.5})
    assert agent.guarantee.holds == (theorem != "no")
