"""Specs that name what does not come with gainful: modules, tables, Gymnasium ids, registered names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.errors import ExperimentError, InvalidSpecError
from gainful.experiments.configuration import Configuration
from gainful.experiments.execution import Task, execute
from gainful.experiments.spec import Spec, read_spec
from gainful.experiments.store import Store
from gainful.experiments.wire_format import RunResult
from gainful.user_modules import is_reference, source_digest
from tests.experiments.user_code import TABLE, forget, write_module


def spec_in(folder: Path, environments: list[str], agents: list[str]) -> Spec:
    """A spec with these entries, in a file."""
    lines = ["horizon = 200", "seeds = 1", "checkpoints = [200]"]
    for kind, entries in (("environments", environments), ("agents", agents)):
        for entry in entries:
            lines += [f"[[{kind}]]", entry]
    file = folder / "study.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return read_spec(file)


def made(spec: Spec, c: Configuration) -> RunResult:
    """The run as a worker makes it."""
    import json

    task = Task(c.run_id, json.loads(c.to_json()), 0.4, "given", 2.0, folders=spec.folders)
    return RunResult.from_bytes(execute(task))


def test_classes_factories_and_environments_of_a_module_beside_the_spec(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(tmp_path, "mine_a")
    spec = spec_in(
        tmp_path,
        ['name = "mine_a:river"\nparameters = { n = 4 }', 'name = "mine_a:small"'],
        [
            'name = "mine_a:Uniform"\nparameters = { b = 2 }',
            'name = "mine_a:Plain"',
            'name = "mine_a:make"\ngrid = { epsilon = [0.1, 0.3] }',
            'name = "SCAL+"',
        ],
    )
    said = capsys.readouterr().err
    assert said.count("importing mine_a from") == 1
    assert str(tmp_path / "mine_a.py") in said
    assert spec.environment_labels == ["mine_a:river", "mine_a:small"]
    assert spec.agent_labels == [
        "mine_a:Uniform", "mine_a:Plain", "mine_a:make, epsilon = 0.1", "mine_a:make, epsilon = 0.3", "scal-plus"
    ]  # fmt: skip
    runs = spec.configurations()
    assert len({c.run_id for c in runs}) == 10
    assert runs[0].environment_parameters["n"] == 4
    assert runs[0].agent_parameters["b"] == 2.0
    uniform = made(spec, runs[0])
    assert uniform.values["n_states"] == 4
    assert uniform.values["guarantee_holds"] is False
    with pytest.warns(gf.errors.SteppedInPythonWarning):
        plain = made(spec, runs[1])
    assert plain.arrays["visits"][:, 1].sum() == 0


def test_a_stored_run_is_identified_without_an_import(tmp_path: Path) -> None:
    write_module(tmp_path, "mine_b")
    (tmp_path / "van.csv").write_text(TABLE, encoding="utf-8")
    spec = spec_in(tmp_path, ['name = "mine_b:river"', 'table = "van.csv"'], ['name = "mine_b:Uniform"'])
    expected = [c.run_id for c in spec.configurations()]
    with Store.open(tmp_path) as store:
        store.plan(spec.text, "", [(c, "e", "a") for c in spec.configurations()])
    forget("mine_b")
    (tmp_path / "mine_b.py").write_text("raise SystemExit", encoding="utf-8")
    (tmp_path / "van.csv").unlink()
    with Store.read(tmp_path) as store:
        assert [c.run_id for c in store.planned()] == expected
    assert "mine_b" not in sys.modules


def test_a_changed_module_or_helper_is_another_run_and_a_comment_is_not(tmp_path: Path) -> None:
    write_module(tmp_path, "mine_c")
    entries = ['name = "riverswim"'], ['name = "mine_c:Uniform"']
    before = spec_in(tmp_path, *entries).configurations()[0]
    source = (tmp_path / "mine_c.py").read_text(encoding="utf-8")

    def again() -> Configuration:
        forget("mine_c")
        return spec_in(tmp_path, *entries).configurations()[0]

    (tmp_path / "mine_c.py").write_text(f"# a comment\n\n{source}", encoding="utf-8")
    assert again().run_id == before.run_id
    (tmp_path / "mine_c_helper.py").write_text("FIRST = 1\n", encoding="utf-8")
    changed = again()
    assert changed.run_id != before.run_id
    out = tmp_path / "out"
    out.mkdir()
    with Store.open(out) as store:
        store.plan("", "", [(before, "e", "a")])
    with pytest.raises(ExperimentError, match=r"agent 'mine_c:Uniform': module source \w+ -> \w+"):
        gf.run_experiment(tmp_path / "study.toml", out)


def test_a_worker_refuses_other_code_than_was_planned(tmp_path: Path) -> None:
    write_module(tmp_path, "mine_d")
    spec = spec_in(tmp_path, ['name = "riverswim"'], ['name = "mine_d:Uniform"'])
    run = spec.configurations()[0]
    forget("mine_d")
    (tmp_path / "mine_d_helper.py").write_text("FIRST = 1\n", encoding="utf-8")
    with pytest.raises(gf.errors.InvalidArgumentError, match="the code of mine_d is not the one"):
        made(spec, run)


def test_a_table_is_identified_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    table = tmp_path / "data" / "van.csv"
    table.write_text(TABLE, encoding="utf-8")
    entries = ['table = "data/van.csv"'], ['name = "fixed"']
    spec = spec_in(tmp_path, *entries)
    assert spec.environment_labels == ["data/van.csv"]
    run = spec.configurations()[0]
    table.write_text(TABLE.replace("-0.5", "-0.6"), encoding="utf-8")
    assert spec_in(tmp_path, *entries).configurations()[0].run_id != run.run_id
    with pytest.raises(gf.errors.InvalidMDPError, match="another content than when its runs were planned"):
        made(spec, run)


@pytest.mark.slow
def test_a_saved_mdp_and_rates_are_tables_too(tmp_path: Path) -> None:
    gf.environments.riverswim(3).save(tmp_path / "river.mdp")
    rates = "state,action,next_state,rate,reward\na,x,b,1.0,1.0\nb,x,a,2.0,0.0\n"
    (tmp_path / "rates.csv").write_text(rates, encoding="utf-8")
    spec = spec_in(tmp_path, ['table = "river.mdp"', 'table = "rates.csv"\nrates = true'], ['name = "fixed"'])
    assert [made(spec, c).values["n_states"] for c in spec.configurations()] == [3, 2]


def test_gymnasium_ids_are_environments(tmp_path: Path) -> None:
    spec = spec_in(
        tmp_path,
        [
            'name = "FrozenLake-v1"',
            'name = "CartPole-v1"\nparameters = { sutton_barto_reward = true, reward_min = -1 }',
        ],
        ['name = "fixed"\nparameters = {}'],
    )
    lake, pole = spec.configurations()
    assert made(spec, lake).values["n_states"] == 11  # those that can be reached
    assert made(spec, pole).arrays["rewards"][-1] < 0.0


def test_gainfuls_own_ids_are_its_models(tmp_path: Path) -> None:
    spec = spec_in(tmp_path, ['name = "gainful/RiverSwim-v0"'], ['name = "fixed"'])
    assert made(spec, spec.configurations()[0]).arrays["expected_regret"][-1] > 0.0


@pytest.mark.parametrize(
    ("environment", "agent", "problem"),
    [
        ('name = "mine_e:river"', 'name = "mine_e:Nothing"', ": module 'mine_e' .* has no 'Nothing'"),
        ('name = "mine_e:river"', 'name = "no_such:Agent"', ": there is no module 'no_such'"),
        ('name = "mine_e:river"', 'name = "mine_e:an_agent"', "every run needs a new one"),
        ('name = "mine_e:river"', 'name = "mine_e:Broken"', "cannot be made: RuntimeError: no luck"),
        ('name = "mine_e:river"', 'name = "mine_e:Uniform"\nparameters = { c = 1 }', "no such parameter"),
        (
            'name = "mine_e:river"',
            'name = "mine_e:Uniform"\nparameters = { b = "x" }',
            "b is .*expected a finite number",
        ),
        ('name = "mine_e:river"', 'name = "mine_e:Uniform"\nparameters = { seed = 1 }', "each run has its own seed"),
        ('name = "mine_e:river"\nparameters = { m = 1 }', 'name = "fixed"', "has no such parameter; known: n"),
        ('name = "mine_e:Uniform"', 'name = "fixed"', "is missing, and mine_e:Uniform needs it"),
        ('name = "mine_e:FIRST"', 'name = "fixed"', "mine_e:FIRST is 0, expected an MDP"),
        ('table = "no.csv"', 'name = "fixed"', "no.csv: no such file; a path is relative to the spec"),
        ('table = "van.csv"\nname = "x"', 'name = "fixed"', "has a name and a table"),
        ('table = "van.csv"\nparameters = { n = 1 }', 'name = "fixed"', "a table has no parameters"),
        ('name = "riverswim"\nrates = true', 'name = "fixed"', "rates is for a table"),
        ("table = 3", 'name = "fixed"', "a path in quotes"),
        ('name = "Nothing-v7"', 'name = "fixed"', "is not a Gymnasium environment"),
        ('name = "__main__:x"', 'name = "fixed"', "__main__ cannot be imported"),
    ],
)
def test_what_is_wrong_with_a_name_is_said_with_its_line(
    tmp_path: Path, environment: str, agent: str, problem: str
) -> None:
    write_module(tmp_path, "mine_e")
    forget("mine_e")
    with pytest.raises(InvalidSpecError, match=problem) as caught:
        spec_in(tmp_path, [environment], [agent])
    assert "line" in str(caught.value)


def test_a_module_that_fails_says_where(tmp_path: Path) -> None:
    (tmp_path / "mine_f.py").write_text("x = 1\nraise KeyError('y')\n", encoding="utf-8")
    with pytest.raises(InvalidSpecError, match=r"mine_f cannot be imported: KeyError: 'y' \(mine_f.py, line 2\)"):
        spec_in(tmp_path, ['name = "riverswim"'], ['name = "mine_f:Agent"'])


def test_a_file_beside_the_spec_does_not_hide_an_installed_module(tmp_path: Path) -> None:
    (tmp_path / "fractions.py").write_text("Agent = 1\n", encoding="utf-8")
    with pytest.raises(InvalidSpecError, match=r"which hides .*fractions.py; give the file another name"):
        spec_in(tmp_path, ['name = "riverswim"'], ['name = "fractions:Agent"'])


class _Point:
    def __init__(self, name: str, value: str) -> None:
        self.name, self.value = name, value

    def load(self) -> Any:
        raise AssertionError("nothing is loaded to list a name")


def test_registered_names_stand_for_their_objects_and_built_in_names_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path, "mine_g")
    points = {
        "gainful.agents": [_Point("evenly", "mine_g:Uniform"), _Point("ucrl2", "mine_g:Broken")],
        "gainful.environments": [_Point("brook", "mine_g:river")],
    }
    monkeypatch.setattr("gainful.user_modules.entry_points", lambda group: points[group])
    spec = spec_in(tmp_path, ['name = "brook"'], ['name = "evenly"', 'name = "ucrl2"'])
    assert [(c.environment, c.agent) for c in spec.configurations()] == [
        ("mine_g:river", "mine_g:Uniform"),
        ("mine_g:river", "ucrl2"),
    ]


def test_the_digest_covers_what_a_package_imports_from_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mine_h"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "agents.py").write_text("def f():\n    from . import rules\n", encoding="utf-8")
    (package / "rules.py").write_text("STEP = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    from gainful.user_modules import load_object

    load_object("mine_h.agents:f")
    before = source_digest("mine_h.agents:f")
    for name in ("mine_h", "mine_h.agents", "mine_h.rules"):
        sys.modules.pop(name, None)
    (package / "rules.py").write_text("STEP = 2\n", encoding="utf-8")
    load_object("mine_h.agents:f")
    assert source_digest("mine_h.agents:f") != before


@pytest.mark.parametrize("name", ["a:b", "a.b:c.d", "ä:b"])
def test_references(name: str) -> None:
    assert is_reference(name)


@pytest.mark.parametrize(
    "name", ["a", "a:", ":b", "a:b-v0", "a b:c", "a/b:c", "a:b:c", "a:b\n", "1a:b", "../a:b", "a:b()"]
)
def test_what_is_no_reference(name: str) -> None:
    assert not is_reference(name)


@pytest.mark.slow  # compiles continuous environments
def test_the_doubling_mode_of_c_scal_plus(tmp_path: Path) -> None:
    entry = 'name = "c-scal-plus"\nparameters = { bins = "doubling", span = 1.0 }'
    spec = spec_in(tmp_path, ['name = "continuous-riverswim"\nhorizon = 4000'], [entry])
    run = made(spec, spec.configurations()[0])
    fixed = spec_in(
        tmp_path, ['name = "continuous-riverswim"\nhorizon = 4000'], [entry.replace('bins = "doubling", ', "")]
    )
    assert run.values["n_states"] != made(fixed, fixed.configurations()[0]).values["n_states"]
    with pytest.raises(InvalidSpecError, match='bins = "doubling" is for c-scal-plus, not ucrl2'):
        spec_in(tmp_path, ['name = "continuous-riverswim"'], ['name = "ucrl2"\nparameters = { bins = "doubling" }'])
