import itertools
import random
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gainful.errors import InvalidSpecError
from gainful.experiments.configuration import Configuration
from gainful.experiments.differences import Differences, differences
from gainful.experiments.spec import (
    Spec,
    read_spec,
    shipped,
    shipped_text,
)
from gainful.experiments.spec_resolution import Labels
from gainful.experiments.toml_positions import TomlPositions, path_text

HEAD = "horizon = 1e4\nseeds = 3\n"
RIVER = '[[environments]]\nname = "riverswim"\n'
LQG = '[[environments]]\nname = "lqg"\n'
SCAL_PLUS = '[[agents]]\nname = "scal-plus"\n'
SHORT = HEAD + RIVER + SCAL_PLUS
FOR = HEAD + RIVER + "[[agents]]\nname = "


def refused(text: str) -> str:
    with pytest.raises(InvalidSpecError) as caught:
        read_spec(text)
    return str(caught.value)


# ---------------------------------------------------------------------- what can be said


def test_the_smallest_spec() -> None:
    spec = read_spec(SHORT)
    assert len(spec) == 3
    assert spec.seeds == (0, 1, 2)
    first = spec.configurations()[0]
    assert (first.horizon, first.seed, first.checkpoints[-1]) == (10_000, 0, 10_000)
    assert len(first.checkpoints) > 50
    assert set(spec.labels) == {Labels("riverswim", "scal-plus")}


def test_the_example_of_the_module_is_a_spec() -> None:
    import gainful.experiments.spec as module

    doc = module.__doc__ or ""
    example = textwrap.dedent(doc[doc.index("    title =") : doc.index("Every agent runs")])
    spec = read_spec(example)
    # 2 rivers x (2 SCAL+ and 2 UCBVI) and one Toy3D x 2 SCAL+, 5 seeds
    assert len(spec) == len(spec.configurations()) == len(spec.labels) == 50
    assert spec.environment_labels == ["riverswim, n_states = 6", "riverswim, n_states = 12", "three states"]
    assert spec.agent_labels[:2] == ["SCAL+ (1)", "SCAL+ (0.1)"]
    assert spec.agent_labels[2] == "ucbvi, episode_length = 10, bonus_scale = 0.1"
    assert {
        one.horizon
        for one, (environment, _) in zip(spec.configurations(), spec.labels, strict=True)
        if environment == "three states"
    } == {100_000}


def test_runs_come_by_environment_agent_and_seed() -> None:
    spec = read_spec(
        HEAD
        + RIVER
        + "grid = { n_states = [6, 4] }\n"
        + SCAL_PLUS
        + "bonus_scales = [1.0, 0.1]\n"
        + LQG
        + "[[agents]]\n"
        'name = "psrl"\n'
    )
    found = [(*labels, one.seed) for one, labels in zip(spec.configurations(), spec.labels, strict=True)]
    assert found == list(itertools.product(spec.environment_labels, spec.agent_labels, spec.seeds))
    assert spec.environment_labels == ["riverswim, n_states = 6", "riverswim, n_states = 4", "lqg"]


def test_a_grid_is_every_combination_and_a_zip_side_by_side() -> None:
    agent = SCAL_PLUS + "grid = { delta = [0.1, 0.2], bonus_scale = [1, 2, 3] }\n"
    assert len(read_spec(HEAD + RIVER + agent)) == 18
    agent = (
        SCAL_PLUS + 'zip = { delta = [0.1, 0.2], bonus_scale = [1, 2] }\ngrid = { mixture = ["copy", "min-action"] }\n'
    )
    given = [c.agent_parameters for c in read_spec(HEAD + RIVER + agent).configurations() if c.seed == 0]
    assert [(one["mixture"], one["delta"], one["bonus_scale"]) for one in given] == [
        ("copy", 0.1, 1.0),
        ("copy", 0.2, 2.0),
        ("min-action", 0.1, 1.0),
        ("min-action", 0.2, 2.0),
    ]


def test_bonus_scales_are_widths_where_there_is_no_bonus() -> None:
    spec = read_spec(FOR + '"ucrl2"\nbonus_scales = [1, 0.5]\n')
    assert [c.agent_parameters for c in spec.configurations()[::3]] == [{"width_scale": 1.0}, {"width_scale": 0.5}]


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ('only = ["riverswim"]', {"river", "riverswim, n_states = 4", "riverswim, n_states = 5"}),
        ('only = ["river"]', {"river"}),
        ('except = ["river", "lqg"]', {"riverswim, n_states = 4", "riverswim, n_states = 5"}),
        ('only = ["riverswim"]\nexcept = ["riverswim, n_states = 4"]', {"river", "riverswim, n_states = 5"}),
    ],
)
def test_only_and_except_take_names_and_labels(line: str, where: set[str]) -> None:
    text = HEAD + RIVER + 'label = "river"\n' + RIVER + "grid = { n_states = [4, 5] }\n" + LQG + SCAL_PLUS + line + "\n"
    assert {labels.environment for labels in read_spec(text).labels} == where


def test_a_horizon_of_an_agent_goes_before_one_of_an_environment() -> None:
    text = HEAD + RIVER + "horizon = 2e3\n" + '[[environments]]\nname = "toy3d"\n' + SCAL_PLUS
    text += '[[agents]]\nname = "psrl"\nhorizon = 500\n'
    spec = read_spec(text)
    found = {labels: one.horizon for one, labels in zip(spec.configurations(), spec.labels, strict=True)}
    assert found == {
        Labels("riverswim", "scal-plus"): 2000,
        Labels("toy3d", "scal-plus"): 10_000,
        Labels("riverswim", "psrl"): 500,
        Labels("toy3d", "psrl"): 500,
    }


def test_checkpoints_per_decade_and_as_steps() -> None:
    assert read_spec("checkpoints = 1\n" + SHORT).configurations()[0].checkpoints[:3] == (1, 10, 100)
    text = "checkpoints = [5, 1e4, 700]\n" + SHORT + '[[agents]]\nname = "psrl"\nhorizon = 600\n'
    found = {one.agent: one.checkpoints for one in read_spec(text).configurations()}
    assert found == {"scal-plus": (5, 700, 10_000), "psrl": (5, 600)}


def test_entries_of_one_name_are_told_apart_by_what_they_are_given() -> None:
    text = SHORT + SCAL_PLUS + 'parameters = { bonus_scale = 0.1, span = "2.0*auto" }\n'
    assert read_spec(text).agent_labels == ["scal-plus", "scal-plus, bonus_scale = 0.1, span = 2*auto"]


def test_labels_may_use_defaults_braces_and_any_script() -> None:
    text = (
        HEAD + RIVER + 'label = "река {n_states} {{x}}"\n' + SCAL_PLUS + 'label = "{name}, δ = {delta}, c = {span}"\n'
    )
    assert read_spec(text).labels[0] == Labels("река 6 {x}", "scal-plus, δ = 0.05, c = auto")


def test_tabular_agents_go_on_cells_and_a_span_may_be_given() -> None:
    text = (
        HEAD
        + '[[environments]]\nname = "ship-steering"\n[[agents]]\nname = "scal"\nparameters = { span = 3, bins = 5 }\n'
    )
    assert read_spec(text).configurations()[0].agent_parameters == {"span": 3.0, "bins": 5}


def test_a_configuration_holds_numbers_of_the_right_kind() -> None:
    text = HEAD + RIVER + "parameters = { n_states = 5.0 }\n" + SCAL_PLUS + "parameters.bonus_scale = 1\n"
    one = read_spec(text).configurations()[0]
    assert type(one.environment_parameters["n_states"]) is int
    assert type(one.agent_parameters["bonus_scale"]) is float


def test_the_order_of_keys_changes_no_identity() -> None:
    a = read_spec(SHORT + "parameters = { delta = 0.1, bonus_scale = 2 }\n")
    text = "seeds = [0, 1, 2]\nhorizon = 10000\n" + SCAL_PLUS + "[agents.parameters]\nbonus_scale = 2.0\ndelta = 1e-1\n"
    b = read_spec(text + RIVER + "label = 'x'\n")
    assert [c.run_id for c in a.configurations()] == [c.run_id for c in b.configurations()]


def test_a_file_a_dict_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_bytes(b"\xef\xbb\xbf" + (SHORT).replace("\n", "\r\n").encode())
    runs = [c.run_id for c in read_spec(SHORT).configurations()]
    for source in (file, str(file), tomllib.loads(SHORT)):
        assert [c.run_id for c in read_spec(source).configurations()] == runs
    assert read_spec(file).source == "study.toml"


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SHORT + "[agents.parameters]\n# a comment\nbonus_scal = 1\n",
            "the spec, line 9: agents[0].parameters.bonus_scal: scal-plus has no such parameter; did you mean "
            "'bonus_scale'?",
        ),
        (FOR + '"scal_plus"\n', "line 6: agents[0].name: unknown agent 'scal_plus'; did you mean 'scal-plus'?"),
        (
            HEAD + '[[environments]]\nname = "rivrswim"\n' + SCAL_PLUS,
            "line 4: environments[0].name: unknown environment 'rivrswim'; did you mean 'riverswim'?",
        ),
        (
            HEAD + RIVER + "parameters = { n_state = 3 }\n" + SCAL_PLUS,
            "line 5: environments[0].parameters.n_state: riverswim has no such parameter; did you mean 'n_states'?",
        ),
        (HEAD + RIVER + "parameters = { n_states = 0 }\n" + SCAL_PLUS, "line 5: environments[0].parameters.n_states"),
        (SHORT + "bonus_scales = [\n  1.0,\n  -1.0,\n]\n", "line 9: agents[0].bonus_scales[1]"),
        (SHORT + "parameters.bonus_scale = nan\n", "bonus_scale is nan, expected a finite number"),
        (SHORT + "parameters.bonus_scale = -inf\n", "bonus_scale is -inf"),
        (SHORT + "parameters.delta = 1979-05-27\n", "delta is 1979-05-27"),
        (SHORT + 'parameters.bonus = "appendx"\n', "line 7: agents[0].parameters.bonus"),
        (SHORT + "parameters.span = 0\n", 'expected a positive number, "auto"'),
        (SHORT + "parameters.seed = 3\n", "write seeds"),
        (SHORT + "parameters.reward_max = 3\n", "it comes from the environment"),
        (SHORT + "parameters.bins = 3\n", "finitely many states"),
        (SHORT + "grid = { bonus_scale = 3 }\n", "line 7: agents[0].grid.bonus_scale: is 3, expected a list"),
        (SHORT + "grid = { bonus_scale = [] }\n", "is an empty list"),
        (SHORT + "bonus_scales = []\n", "is an empty list"),
        (SHORT + "zip = { bonus_scale = [1, 2], delta = [0.1] }\n", "bonus_scale has 2, delta has 1"),
        (SHORT + "zip = { delta = [0.1] }\ngrid = { delta = [0.1] }\n", "is swept twice"),
        (SHORT + "parameters = { delta = 0.1 }\ngrid = { delta = [0.1] }\n", "too; keep one"),
        (SHORT + "bonus_scales = [1]\ngrid = { bonus_scale = [1] }\n", "is swept in grid or zip too"),
        (FOR + '"psrl"\nbonus_scales = [1]\n', "neither bonus_scale nor width_scale"),
        (SHORT + 'only = [\n "toy3d",\n]\n', "line 8: agents[0].only[0]: no environment here is called 'toy3d'"),
        (
            SHORT + 'except = ["riverswin"]\n',
            "agents[0].except[0]: no environment here is called 'riverswin'; did you mean 'riverswim'?",
        ),
        (SHORT + 'except = ["riverswim"]\n', "runs in no environment"),
        (FOR + '"c-scal-plus"\n', "is for continuous states, and riverswim has finitely many"),
        (HEAD + LQG + '[[agents]]\nname = "uccrl"\nparameters.horizon = 3\n', "write bins"),
        (HEAD + '[[environments]]\nname = "ship-steering"\n[[agents]]\nname = "scal"\n', "needs a model"),
        (
            HEAD + '[[environments]]\nname = "mountain-car"\n[[agents]]\nname = "psrl"\nparameters.bins = 1e6\n',
            "1000000 bins per axis make 1e+12 cells, expected at most",
        ),
        (FOR + '"mbie-eb"\nparameters.m = 10\n', "agents[0].parameters.discount: is missing"),
        (FOR + '"fixed"\nparameters.policy = [0, 1]\n', "policy has 2 actions"),
        (FOR + '"regal"\n', "is not implementable"),
        (SHORT + 'label = "{bonus_scal}"\n', "did you mean 'bonus_scale'?"),
        (SHORT + 'label = "{bonus_scale:f}"\n', "write the name alone"),
        (SHORT + 'label = "{"\n', "write a literal brace twice"),
        (SHORT + 'label = " "\n', "is empty"),
        (
            SHORT + 'label = "x"\nbonus_scales = [1, 2]\n',
            "label 'x' stands for bonus_scale = 1 and for bonus_scale = 2; put {bonus_scale} into it",
        ),
        (
            SHORT + '[[agents]]\nname = "scal"\nlabel = "scal-plus"\n',
            "line 7: agents[1]: label 'scal-plus' is also the label of agents[0]",
        ),
        (SHORT + SCAL_PLUS + 'label = "x"\nparameters.delta = 0.05\n', "'x' is the same as agents[0]"),
        (HEAD + RIVER + RIVER + 'label = "x"\n' + SCAL_PLUS, "'x' is the same as environments[0]"),
        (HEAD + RIVER + RIVER + 'label = "x"\nhorizon = 1e4\n' + SCAL_PLUS, "is the same run as"),
        (SHORT + "bonus_scales = [1, 1.0]\n", "is the same as another value of the sweep"),
        (SHORT + "color = 3\n", "line 7: agents[0].color: there is no such key here"),
        (SHORT + "bonus_scale = [3]\n", "did you mean 'bonus_scales'?"),
        (HEAD + RIVER + "n_states = 9\n" + SCAL_PLUS, "go into parameters = { n_states = ... }"),
        (HEAD + RIVER + "[[agents]]\nlabel = 'x'\n", "line 5: agents[0]: name is missing"),
        (FOR + "3\n", "line 6: agents[0].name: is 3, expected a text in quotes"),
        (HEAD + RIVER, "the spec: agents is missing"),
        (
            HEAD + "[environments]\nname = 'riverswim'\n" + SCAL_PLUS,
            "line 3: environments: is a table, expected an array of tables; write [[environments]]",
        ),
        (HEAD + "environments = ['riverswim']\n" + SCAL_PLUS, "line 3: environments: is ['riverswim']"),
        ("seeds = 1\n" + RIVER + SCAL_PLUS, "horizon is missing; write horizon = 1e6"),
        ("horizon = 5\n" + RIVER + SCAL_PLUS, "seeds is missing"),
        ("sede = 1\n" + SHORT, "line 1: sede: there is no such key here; did you mean 'seeds'?"),
        ("title = 1\n" + SHORT, "line 1: title: is 1, expected a text"),
        ("checkpoints = 0\n" + SHORT, "line 1: checkpoints: is 0"),
        ("checkpoints = [0]\n" + SHORT, "a step is 0"),
        ("checkpoints = []\n" + SHORT, "has 0 steps"),
        ("checkpoints = [\n1,\n20000]\n" + SHORT, "line 3: checkpoints[1]: step 20,000 is beyond"),
        ("checkpoints = nan\n" + SHORT, "checkpoints: is nan"),
    ],
)
def test_every_mistake_is_named_with_its_line(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ("0", "is 0"),
        ("-3", "is -3"),
        ("2.5", "is 2.5"),
        ("nan", "is nan"),
        ("inf", "is inf"),
        ("true", "is true"),
        ('"5"', 'is "5"'),
        ("[]", "empty"),
        ("[-1]", "seed is -1"),
        ("[1, 2, 1]", "seed 1 occurs twice"),
        ("[0.5]", "seed is 0.5"),
        ("[9223372036854775808]", "2^63"),
        ("{ a = 1 }", "is {'a': 1}"),
        ("1000001", "1,000,001 seeds"),
        ("1e300", "seeds, expected at most 1,000,000"),
    ],
)
def test_bad_seeds(seeds: str, said: str) -> None:
    assert said in refused(f"horizon = 10\nseeds = {seeds}\n" + RIVER + SCAL_PLUS)


@pytest.mark.parametrize("horizon", ["0", "-5", "1.5", "nan", "inf", "true", '"1e6"', "1e19", "[5]", "1" + 400 * "0"])
def test_bad_horizons(horizon: str) -> None:
    assert "line 1: horizon: horizon is" in refused(f"horizon = {horizon}\nseeds = 1\n" + RIVER + SCAL_PLUS)


def test_all_problems_are_reported_together_by_line() -> None:
    text = "titel = 'x'\nhorizon = -1\nseeds = 2\n" + '[[environments]]\nname = "riverswin"\n' + SCAL_PLUS
    text += "parameters = { bonus_scal = 1, delta = 'x' }\n" + '[[agents]]\nname = "psrl"\nonly = ["river"]\n'
    with pytest.raises(InvalidSpecError) as caught:
        read_spec(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the spec has 6 problems:"
    assert [line[:2] for line in lines[1:]] == ["1.", "2.", "3.", "4.", "5.", "6."]
    assert [problem.line for problem in caught.value.problems] == [1, 2, 5, 8, 8, 11]


def test_a_failing_environment_causes_no_further_complaint() -> None:
    text = HEAD + RIVER + '[[environments]]\nname = "toy3dd"\n' + SCAL_PLUS + 'only = ["toy3dd"]\n'
    assert refused(text).startswith("the spec, line 6: environments[1].name")


def test_too_many_problems_are_counted() -> None:
    values = ", ".join(f"-{n}.0" for n in range(1, 61))
    said = refused(SHORT + f"bonus_scales = [{values}]\n")
    assert said.splitlines()[0] == "the spec has 60 problems:"
    assert said.splitlines()[-1] == "and 35 more"


def test_syntax_errors_have_line_and_column() -> None:
    assert (
        refused("horizon = 1e4\nseeds 3\n")
        == "the spec is not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 7)"
    )
    assert "at end of document" in refused("x = [1,\n")
    assert "line 2, column" in refused("a = 1\na = 2\n")


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 5000, "x = " + "1" * 5000, "x = 1\x00\n", "\x00=", "=\n", "a.b.c = 3\n"]
)
def test_hostile_texts_are_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("value", [[], [3], {"environments": 3}, {"agents": [None]}, {"horizon": None, "seeds": {}}])
def test_hostile_dicts_are_refused(value: Any) -> None:
    with pytest.raises(InvalidSpecError):
        read_spec(value if isinstance(value, dict) else {"environments": value, "agents": value})


@pytest.mark.slow
def test_a_mistyped_spec_is_read_or_refused_and_its_lines_are_found() -> None:
    rng = random.Random(1)
    texts = [SHORT + "bonus_scales = [1, 0.5]\n", shipped_text("quickstart"), shipped_text("continuous")]
    pieces = [*'[]{}#=,.é\\\n"', "'''", "1e9", "-1", "nan", "true", "1979-05-27", "[[agents]]\n", "horizon = 1\n"]
    pieces += ["[agents.parameters]\n", "zip = {}\n", "parameters.policy = [{a = 1}]\n"]
    for _ in range(1500):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(text))
            text = text[:i] + rng.choice(pieces) + text[i + rng.choice([0, 0, 1, 5]) :]
        with suppress(InvalidSpecError):
            read_spec(text)
        with suppress(tomllib.TOMLDecodeError):
            assert set(_paths(tomllib.loads(text))) == set(TomlPositions(text).paths())


def test_a_spec_made_in_python_is_checked_when_it_is_resolved() -> None:
    data = {"horizon": 100, "seeds": [1], "environments": [{"name": "toy3d"}], "agents": [{"name": "psrl"}]}
    assert len(Spec.model_validate(data).configurations()) == 1
    spec = Spec.model_validate({**data, "agents": [{"name": "psrll"}]})
    with pytest.raises(InvalidSpecError, match="did you mean 'psrl'"):
        spec.configurations()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    for source, said in (
        (tmp_path / "no.toml", "no such file"),
        (tmp_path, "cannot be read"),
        (tmp_path / "latin.toml", "byte 9 is not UTF-8"),
        ("quickstar", "did you mean 'quickstart'?"),
        ("quickstart.toml", "did you mean 'quickstart'?"),
        ("zzz", "known: continuous"),
    ):
        with pytest.raises(InvalidSpecError, match=said.replace("?", r"\?")):
            read_spec(source)


def test_huge_sweeps_are_refused_with_their_number() -> None:
    many = "[" + ", ".join(str(n) for n in range(1, 1001)) + "]"
    agent = SCAL_PLUS + f"grid = {{ bonus_scale = {many}, delta = {many}, span = {many} }}\n"
    assert "agents: 3,000,000,000 runs (1,000,000,000 agents with 3 seeds), more than 1,000,000" in refused(
        HEAD + RIVER + agent
    )
    text = HEAD + RIVER + f"grid = {{ n_states = {many} }}\n" + SCAL_PLUS + f"bonus_scales = {many}\n"
    assert "3,000,000 runs" in refused(text.replace("[1, 2,", "[2,", 1).replace("n_states = [2", "n_states = [1001, 2"))


def test_a_large_environment_is_not_made_to_be_checked() -> None:
    text = HEAD + '[[environments]]\nname = "garnet"\nparameters = { n_states = 2e9 }\n' + SCAL_PLUS
    assert len(read_spec(text)) == 3
    assert "bonus_scale is -1.0" in refused(text + "parameters.bonus_scale = -1\n")


def test_a_wide_sweep_is_read_in_little_time() -> None:
    values = ", ".join(str(n / 1000) for n in range(1, 20_001))
    spec = read_spec(SHORT + f"bonus_scales = [{values}]\n")
    assert len(spec.configurations()) == 60_000


# ---------------------------------------------------------------------- lines

ADVERSARIAL = '''
# agents = [[agents]]
title = """
[[agents]]
name = "not this one" # nor this
"""   # the end
'quoted "key"' = 'a # b'
"dotted.key"."é\\u00e9" = 1
notes = """quotes "" inside, and at the end: """""
literal = \'\'\'
[parameters]
\\\'\'\'
a . b . "c" = { d = [ 1, {e = "}"}, # ] comment
  [ 2,
    3 ] ], f = """
x""" , g=1979-05-27 07:32:00 }

[[ agents ]]   # zero
name = "x\\\\"
grid.delta = [
   0.1, # one ]
   0.2
]
[agents.parameters]
bonus = 1
[[agents.inner]]
k = 1
[[agents.inner]]
k = 2
[[agents]]
parameters.bonus = 3
[agents.parameters.deep]
x = true
[agents.zip]
'''


def test_lines_of_an_adversarial_text() -> None:
    text = ADVERSARIAL.replace("\\'''", "'''")
    data = tomllib.loads(text)
    assert data["agents"][1]["parameters"] == {"bonus": 3, "deep": {"x": True}}
    lines = TomlPositions(text)
    expected = {
        ("title",): "title =",
        ('quoted "key"',): "'quoted",
        ("dotted.key", "éé"): '"dotted',
        ("notes",): "notes",
        ("literal",): "literal",
        ("a", "b", "c"): "a . b",
        ("a", "b", "c", "d", 1, "e"): "a . b",
        ("a", "b", "c", "d", 2): "  [ 2",
        ("a", "b", "c", "d", 2, 1): "    3 ]",
        ("a", "b", "c", "f"): "    3 ]",
        ("a", "b", "c", "g"): 'x"""',
        ("agents",): "[[ agents",
        ("agents", 0): "[[ agents",
        ("agents", 0, "name"): "name = ",
        ("agents", 0, "grid", "delta"): "grid.delta",
        ("agents", 0, "grid", "delta", 0): "   0.1",
        ("agents", 0, "grid", "delta", 1): "   0.2",
        ("agents", 0, "parameters"): "[agents.par",
        ("agents", 0, "parameters", "bonus"): "bonus = 1",
        ("agents", 0, "parameters", "missing"): "[agents.par",
        ("agents", 0, "inner", 0, "k"): "k = 1",
        ("agents", 0, "inner", 1, "k"): "k = 2",
        ("agents", 1): "[[agents]]",
        ("agents", 1, "parameters", "bonus"): "parameters.bonus",
        ("agents", 1, "parameters", "deep", "x"): "x = true",
        ("agents", 1, "zip"): "[agents.zip",
        ("agents", 1, "name"): "[[agents]]",
    }
    rows = text.split("\n")
    for path, start in expected.items():
        assert rows[lines.line_of(path) - 1].startswith(start), path
    assert lines.line_of(("nowhere",)) == 1
    # every path that the text has is found, and nothing else
    assert set(lines.paths()) == set(_paths(data))


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from _paths(inner, (*at, key))


@pytest.mark.parametrize("name", [name for name, _ in shipped()])
def test_lines_find_every_path_of_shipped_specs(name: str) -> None:
    for text in (shipped_text(name), shipped_text(name).replace("\n", "\r\n")):
        assert set(TomlPositions(text).paths()) == set(_paths(tomllib.loads(text)))


@pytest.mark.parametrize("text", ["", "[", "[[", "a", "a =", 'a = "', "a = [", "a = {b", "a = '''", "]", '"'])
def test_lines_of_a_broken_text_raise_nothing(text: str) -> None:
    assert TomlPositions(text).line_of(("a", 0)) == 1


def test_paths_as_written() -> None:
    assert path_text(("agents", 1, "grid", "δ", 0)) == 'agents[1].grid."δ"[0]'


# ---------------------------------------------------------------------- shipped specs


@pytest.mark.parametrize("name", [name for name, _ in shipped()])
def test_shipped_specs_resolve(name: str) -> None:
    spec = read_spec(name)
    assert spec.title
    assert len(spec.notes) > 200
    assert spec.source == f"{name}.toml"
    configurations = spec.configurations()
    assert len({one.run_id for one in configurations}) == len(configurations) == len(spec)
    assert max(len(line) for line in shipped_text(name).splitlines()) <= 120


def test_what_is_shipped() -> None:
    names = [name for name, _ in shipped()]
    assert names == sorted(names)
    assert {
        "quickstart",
        "tight-optimism",
        "span-matters",
        "horizon-matters",
        "theorem-constants",
        "continuous",
    } <= set(names)
    with pytest.raises(InvalidSpecError, match="did you mean 'continuous'"):
        shipped_text("continous")


# ---------------------------------------------------------------------- a changed spec

BASE = SHORT + '[[agents]]\nname = "psrl"\n'


def compared(old: str, new: str) -> Differences:
    stored = [one.canonical() for one in read_spec(old).configurations()]
    return differences(stored, read_spec(new).configurations())


def test_the_same_spec_or_more_of_it_is_a_superset() -> None:
    assert compared(BASE, BASE).added == ()
    more = compared(BASE, BASE.replace("seeds = 3", "seeds = 5") + '[[agents]]\nname = "ucrl2"\n')
    assert more.is_superset
    assert more.lines == ()
    assert len(more.added) == 2 * 2 + 5
    assert all(isinstance(one, Configuration) for one in more.added)


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (BASE.replace("1e4", "1e5"), ("horizon 10,000 -> 100,000 for all 6 runs",)),
        (BASE.replace("seeds = 3", "seeds = 1"), ("seeds 1 … 2 gone (4 runs)",)),
        (BASE.replace("psrl", "ucrl2"), ("agent 'psrl' is gone (3 runs)",)),
        (BASE.replace("riverswim", "toy3d"), ("environment 'riverswim' is gone (all 6 runs)",)),
        ("checkpoints = [5]\n" + BASE, ("checkpoints 70 -> 2 steps for all 6 runs",)),
        (
            BASE.replace(RIVER, RIVER + "parameters.n_states = 8\n"),
            ("environment 'riverswim': n_states 6 -> 8 for all 6 runs",),
        ),
        (
            BASE.replace(SCAL_PLUS, SCAL_PLUS + "parameters = { bonus_scale = 0.5, span = 3 }\n"),
            ("agent 'scal-plus': bonus_scale 1 -> 0.5 for 3 runs", "agent 'scal-plus': span auto -> 3 for 3 runs"),
        ),
        (
            BASE.replace("psrl", "ucrl2").replace("1e4", "1e5"),
            ("horizon 10,000 -> 100,000 for 3 runs", "agent 'psrl' is gone (3 runs)"),
        ),
    ],
)
def test_what_changed_is_said_in_few_words(new: str, lines: tuple[str, ...]) -> None:
    found = compared(BASE, new)
    assert found.lines == lines
    assert not found.is_superset


def test_a_shorter_sweep_says_which_part_is_gone() -> None:
    old = SHORT + "bonus_scales = [1, 2]\n"
    found = compared(old, SHORT + "bonus_scales = [1]\n")
    assert found.lines == ("agent 'scal-plus' in 'riverswim' is gone, or some of its parameters (3 runs)",)


def test_a_grid_that_moved_pairs_old_values_with_new_ones_in_few_lines() -> None:
    def text(values: list[int]) -> str:
        return SHORT + f"bonus_scales = {values}\n"

    found = compared(text([1, 2]), text([3, 4]))
    assert found.lines == (
        "agent 'scal-plus': bonus_scale 1 -> 3 for 3 runs",
        "agent 'scal-plus': bonus_scale 2 -> 4 for 3 runs",
    )
    found = compared(text(list(range(1, 31))), text(list(range(31, 61))))
    assert len(found.lines) == 13
    assert found.lines[-1] == "and 18 more differences"
