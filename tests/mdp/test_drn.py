"""Storm's explicit format: read, written, and compared with Storm itself where it is installed."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import gainful as gf
from gainful.errors import GainfulError, InvalidArgumentError, InvalidMDPError, MemoryLimitError
from tests.strategies import mdps

TWO = """// a comment
@type: MDP
@value_type: rational
@parameters

@placeholders
$half : 1/2
@reward_models
time energy
@nr_states
2
@nr_choices
3
@model
state 0 [1, 0] init idle "two words"
\taction wait [0.5, 2]
\t\t0 : $half
\t\t1 : 0.5
\taction go [0, 3]
\t\t1 : 1
state 1
//[a valuation]
\taction wait [4, 5e-1]
\t\t0 : 1
"""
RING = (
    "@type: {kind}\n@reward_models\nr\n@nr_states\n2\n@model\n"
    "state 0 {rate}[1]\n{a}\t\t1 : 2\nstate 1 {rate}[4]\n{a}\t\t0 : {back}\n"
)


def written(tmp_path: Path, text: str | bytes, name: str = "model.drn") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_states_actions_rewards_and_placeholders_are_read(tmp_path: Path) -> None:
    mdp = gf.MDP.from_drn(written(tmp_path, TWO), reward_model="time", name="two")
    assert (mdp.n_states, mdp.action_labels, mdp.state_labels, mdp.name) == (2, ("wait", "go"), None, "two")
    assert mdp.rewards.tolist() == [[1.5, 1.0], [4.0, 0.0]]
    assert mdp.allowed.tolist() == [[True, True], [True, False]]
    assert mdp.transition(0, "wait") == {0: 0.5, 1: 0.5}
    assert gf.MDP.from_drn(tmp_path / "model.drn", reward_model="energy").rewards.tolist() == [[2.0, 3.0], [0.5, 0.0]]


@pytest.mark.parametrize("name", ["model.drn.gz", "model.drn.xz", "model.drn"])
def test_compression_is_recognised_by_the_content(tmp_path: Path, name: str) -> None:
    plain = gf.MDP.from_drn(written(tmp_path, TWO), reward_model="time")
    packed = lzma.compress(TWO.encode()) if name.endswith("xz") else gzip.compress(TWO.encode())
    assert gf.MDP.from_drn(written(tmp_path, packed, name), reward_model="time") == plain
    plain.to_drn(tmp_path / f"again.{name}")
    assert np.array_equal(gf.MDP.from_drn(tmp_path / f"again.{name}").probabilities, plain.probabilities)


@given(mdps(disallowed=True, labels=True, costs=True, random_start=True, laws=("deterministic", "transition")))
@settings(max_examples=30)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, mdp: gf.MDP) -> None:
    path = tmp_path_factory.mktemp("drn") / "model.drn"
    mdp.to_drn(path)
    assert path.read_text() == mdp.to_drn()
    again = gf.MDP.from_drn(path)
    assert again.n_states == mdp.n_states
    assert again.units.objective == mdp.units.objective
    assert np.allclose(again.matrix().toarray(), mdp.matrix()[_pairs_kept(mdp, again)].toarray(), rtol=0, atol=1e-15)
    assert np.array_equal(again.start > 0, mdp.start > 0)
    assert np.allclose(again.rewards.reshape(-1), mdp.rewards.reshape(-1)[_pairs_kept(mdp, again)], rtol=0, atol=1e-15)


def _pairs_kept(mdp: gf.MDP, again: gf.MDP) -> list[int]:
    """Rows of `mdp` in the order of `again`, which lacks the actions that no state has."""
    used = [mdp.action_name(a) for a in range(mdp.n_actions) if mdp.allowed[:, a].any()]
    order = [again.action_name(a) for a in range(again.n_actions)]
    assert sorted(order) == sorted(used) or again.action_labels is None
    number = [mdp.action_index(name) for name in order] if again.action_labels else [int(name) for name in order]
    if again.action_labels is None and mdp.action_labels is None:
        number = [a for a in range(mdp.n_actions) if mdp.allowed[:, a].any()]
    return [s * mdp.n_actions + a for s in range(mdp.n_states) for a in number]


def test_labels_that_the_format_cannot_hold_are_left_out(tmp_path: Path) -> None:
    mdp = gf.MDP([[[0, 1]], [[1, 0]]], [[1.0], [0.0]], state_labels=["init", "b"], action_labels=["a b"])
    mdp.to_drn(tmp_path / "model.drn")
    again = gf.MDP.from_drn(tmp_path / "model.drn")
    assert again.state_labels is None
    assert again.action_labels == ("a_b",)


def test_chains_are_processes_with_one_action(tmp_path: Path) -> None:
    text = RING.format(kind="DTMC", rate="", a="", back="1").replace("1 : 2", "1 : 1")
    assert gf.solve(gf.MDP.from_drn(written(tmp_path, text))).gain == pytest.approx(2.5, rel=0, abs=1e-8)
    text = RING.format(kind="CTMC", rate="!2 ", a="\taction 0 [3]\n", back="6")
    chain = gf.MDP.from_drn(written(tmp_path, text))  # 3/4 of the time in state 0; 1.5 jumps each way
    assert gf.solve(chain).gain == pytest.approx(0.75 * 1 + 0.25 * 4 + 2 * 1.5 * 3, rel=0, abs=1e-7)


def test_actions_without_names_of_their_own_are_numbered(tmp_path: Path) -> None:
    mdp = gf.MDP.from_drn(written(tmp_path, TWO.replace("action go", "action wait")), reward_model="time")
    assert mdp.action_labels is None
    assert mdp.rewards.tolist() == [[1.5, 1.0], [4.0, 0.0]]


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("@nr_states\n2", "@nr_states\n1000000000", "declares 1,000,000,000 states"),
        ("@nr_choices\n3", "@nr_choices\n999999999999", "declares 2 states and 999,999,999,999"),
        ("@nr_states\n2", "@nr_states\n0", "declares 0 states"),
        ("@nr_states\n2", "@nr_states\n-2", "no number of states"),
        ("@nr_states\n2", "@nr_states\n" + "9" * 5000, "no number of states"),
        ("\taction go [0, 3]\n", "state 1\nstate 2\n", "more states than declared"),
        ("@nr_states\n2", "@nr_states\n3", "ends after 2 states"),
        ("@nr_choices\n3", "@nr_choices\n4", "3 choices, expected 4"),
        ("@type: MDP", "@type: POMDP", "type 'POMDP'"),
        ("@type: MDP", "@type: Markov Automaton", "type 'Markov Automaton'"),
        ("@value_type: rational", "@value_type: double-interval", "double-interval"),
        ("@parameters\n", "@parameters\np q\n", "parameters"),
        ("@type: MDP", "@type: MDP\n@type: MDP", "declared twice"),
        ("@model\n", "", "no section of the format"),
        ("$half :", "half :", "no placeholder"),
        ("0 : $half", "0 : $third", "no number"),
        ("1 : 0.5", "1 : nan", "no number"),
        ("1 : 0.5", "1 : 1e999", "finite"),
        ("1 : 0.5", "1 : 1/0", "finite"),
        ("1 : 0.5", "1 : 0.6", "sums to 1.1"),
        ("1 : 0.5", "1 : -0.5", "probability -0.5"),
        ("1 : 0.5", "7 : 0.5", "transition to state 7"),
        ("1 : 0.5", "99999999999999999999 : 0.5", "no transition"),
        ("[4, 5e-1]", "[4, 5e-1", "']' is missing"),
        ("state 1", "state 2", "expected state 1"),
        ("\t\t0 : 1\n", "", "has no action"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, old: str, new: str, match: str) -> None:
    assert old in TWO
    path = written(tmp_path, TWO.replace(old, new, 1))
    with pytest.raises(InvalidMDPError, match=match):
        gf.MDP.from_drn(path, reward_model="time")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "ends before @model"),
        (b"\xff\xfe@type", "not UTF-8"),
        (b"@type: MDP\n" + b"x" * (1 << 21), "more than 1,048,576 bytes"),
        (gzip.compress(TWO.encode())[:-20], "damaged"),
        (lzma.compress(TWO.encode())[:-20], "damaged"),
        (gzip.compress(TWO.replace("@nr_states\n2", "@nr_states\n1000000000000").encode()), "would take about 300 TB"),
        (gzip.compress(TWO.replace("@nr_states\n2", "@nr_states\n1000").encode()), "ends after 2 states"),
    ],
)
def test_files_that_are_damaged_or_something_else(tmp_path: Path, content: bytes, match: str) -> None:
    with pytest.raises((InvalidMDPError, MemoryLimitError), match=match):
        gf.MDP.from_drn(written(tmp_path, content), reward_model="time")


def test_which_reward_model_is_asked_for_and_suggested(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    with pytest.raises(InvalidMDPError, match="2 reward models: time, energy"):
        gf.MDP.from_drn(path)
    with pytest.raises(InvalidArgumentError, match="did you mean 'energy'"):
        gf.MDP.from_drn(path, reward_model="enegry")
    text = "\n".join(line.split(" [")[0] for line in TWO.splitlines() if "time" not in line) + "\n"
    with pytest.raises(InvalidMDPError, match="no rewards"):
        gf.MDP.from_drn(written(tmp_path, text.replace("@reward_models\n", ""), "none.drn"))
    with pytest.raises(GainfulError, match="no such file"):
        gf.MDP.from_drn(tmp_path / "nowhere.drn")


# ---------------------------------------------------------------------- Storm itself


def gain_by_storm(path: Path, direction: str, reward: str) -> float:
    stormpy = pytest.importorskip("stormpy", reason="stormpy is not installed: pip install 'gainful[benchmarks]'")
    model = stormpy.build_model_from_drn(str(path))
    formula = stormpy.parse_properties(f'R{{"{reward}"}}{direction}=? [LRA]')[0]
    return float(stormpy.model_checking(model, formula).get_value(model.initial_states[0]))


@pytest.mark.parametrize(
    "mdp",
    [
        gf.environments.riverswim(6),
        gf.environments.garnet(40, 3, 4),
        gf.environments.machine_replacement(),
        gf.environments.admission_control(capacity=6),
    ],
    ids=["riverswim", "garnet", "machine-replacement", "admission-control"],
)
def test_storm_finds_the_same_gain_in_what_gainful_writes(tmp_path: Path, mdp: gf.MDP) -> None:
    path = tmp_path / "model.drn"
    mdp.to_drn(path)
    direction = "max" if mdp.units.objective == "reward" else "min"
    gain = gf.solve(mdp).gain
    assert gain_by_storm(path, direction, mdp.units.objective) == pytest.approx(gain, rel=2e-6, abs=2e-6)


def test_gainful_reads_what_storm_writes(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy", reason="stormpy is not installed: pip install 'gainful[benchmarks]'")
    model = stormpy.build_model_from_drn(str(written(tmp_path, TWO)))
    stormpy.io.export_to_drn(model, str(tmp_path / "exported.drn"))
    for reward in ("time", "energy"):
        mdp = gf.MDP.from_drn(tmp_path / "exported.drn", reward_model=reward)
        assert gain_by_storm(tmp_path / "model.drn", "max", reward) == pytest.approx(
            gf.solve(mdp).gain, rel=2e-6, abs=2e-6
        )
