"""What surrounds the code: checks before a commit, workflows, citation, release, and the version with its commit."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import gainful as gf
from gainful import about

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", "-C", folder, *name, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commands_of(target: str) -> list[str]:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    return [line.strip().removeprefix("@") for line in recipe[1].splitlines()]


def test_pre_commit_runs_the_checks_of_make_lint() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].replace(".venv/bin/", "$(BIN)/") for hook in repository["hooks"]]
    assert hooks == commands_of("lint")


def test_the_public_workflow_runs_what_has_to_pass_before_a_change_lands() -> None:
    job = read_yaml(".github/workflows/tests.yml")["jobs"]["tests"]
    assert job["steps"][-1] == {"run": ".ci/run"}
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", line)]
    assert job["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("name", ["docs", "release"])
def test_a_workflow_only_names_targets_that_exist(name: str) -> None:
    text = (ROOT / f".github/workflows/{name}.yml").read_text("utf-8")
    targets = re.findall(r"run: make (\w+)", text)
    assert targets
    assert all(commands_of(target) for target in targets)


def test_the_citation_names_the_version() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == gf.__version__
    assert [author["family-names"] for author in citation["preferred-citation"]["authors"]] == [
        "Qian", "Fruit", "Pirotta", "Lazaric"
    ]  # fmt: skip


def test_no_address_is_given_while_none_is_known() -> None:
    assert ("repository-code" in read_yaml("CITATION.cff")) == bool(about.REPOSITORY)
    assert "urls" not in PROJECT  # hatch_build.py adds them from the constant


def test_the_extra_all_has_every_extra_of_a_user_but_the_gpus() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(everything.removeprefix("gainful[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "cuda", "cuda-compiler", "docs", "benchmarks", "dev"}


def test_the_commit_of_a_checkout_and_whether_it_was_changed(tmp_path: Path) -> None:
    assert about.commit_of_checkout(tmp_path) == ""
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    head = git(tmp_path, "rev-parse", "--short=12", "HEAD")
    assert about.commit_of_checkout(tmp_path) == head
    (tmp_path / "new").write_text("not tracked")
    assert about.commit_of_checkout(tmp_path) == head
    (tmp_path / "file").write_text("two")
    assert about.commit_of_checkout(tmp_path) == f"{head}+changes"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    (tmp_path / "src/gainful").mkdir(parents=True)
    (tmp_path / "src/gainful/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.3, 2030-01-01\n")
    return tmp_path


def problems_of(tag: str, root: Path) -> list[str]:
    found = importlib.util.spec_from_file_location("check_release", ROOT / ".ci" / "check_release.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    problems: list[str] = module.problems_of(tag, root)
    return problems


def test_a_release_that_agrees_has_no_problems(release: Path) -> None:
    assert problems_of("v1.2.3", release) == []


def test_a_release_says_what_does_not_agree_with_its_tag(release: Path) -> None:
    assert len(problems_of("v1.2.4", release)) == 3
    assert problems_of("1.2.3", release) == ["the tag is 1.2.3, expected v1.2.3 or v1.2.3rc1"]
    (release / "CHANGELOG.md").write_text("## Unreleased\n")
    assert problems_of("v1.2.3", release) == [
        "CHANGELOG.md has no section 1.2.3: rename Unreleased to it, with the date"
    ]
