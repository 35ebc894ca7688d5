"""Each deliberate mistake of `mutants` is noticed by the audit, at the statement that names what is wrong."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.audit.mutants import MUTANTS, Mutant, audited


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_audit_notices(mutant: Mutant, tmp_path: Path) -> None:
    found = audited(mutant, tmp_path, runs=2, horizon="3000")
    violated = {v["statement"] for v in found["verdicts"] if v["verdict"] == "violated" and v["promised"]}
    assert violated.issuperset(mutant.noticed), violated
    assert found["exit_code"] == 1
    assert not found["ok"]


def test_without_a_mistake_nothing_is_violated(tmp_path: Path) -> None:
    found = audited(None, tmp_path, runs=2, horizon="3000")
    assert [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated"] == []
    assert found["exit_code"] == 0


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_test_that_notices_too_exists(mutant: Mutant) -> None:
    file, name = mutant.test.split("::")
    assert hasattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
