"""`gainful solve`: what it says about problems it can solve."""

from __future__ import annotations

from pathlib import Path

import pytest

import gainful as gf
from tests.cli.conftest import Gainful, WriteTable


def test_the_json_of_an_environment_agrees_with_the_library(gainful: Gainful) -> None:
    result = gainful("solve", "riverswim", "--set", "n_states=5", "--json")
    assert result.code == 0
    assert result.error == ""
    mdp = gf.environments.riverswim(5)
    plan = gf.solve(mdp)
    data = result.data
    assert data["name"] == "riverswim"
    assert (data["n_states"], data["n_actions"], data["n_transitions"], data["max_support"]) == (5, 2, 18, 3)
    assert data["objective"] == "reward"
    assert data["gain"] == plan.gain
    assert data["gain_bounds"] == list(plan.gain_bounds)
    assert data["span"] == plan.span
    assert data["diameter"] == pytest.approx(gf.diameter(mdp), rel=1e-9)
    assert data["diameter_bounds"][0] <= data["diameter"] <= data["diameter_bounds"][1]
    assert data["structure"] == "communicating"
    assert data["unichain"] is True
    assert data["method"] == plan.method
    assert data["sweeps"] == plan.sweeps
    assert data["seconds"] >= 0.0
    assert "constraint" not in data
    assert [entry["state"] for entry in data["policy"]] == list(mdp.state_labels or ())
    assert [entry["action"] for entry in data["policy"]] == [plan.action(s) for s in range(5)]
    assert [entry["bias"] for entry in data["policy"]] == plan.bias.tolist()


def test_the_page_for_people(gainful: Gainful) -> None:
    result = gainful("solve", "riverswim")
    assert result.code == 0
    assert result.error == ""
    lines = result.out.splitlines()
    assert lines[0] == "riverswim: 6 states, 2 actions, 22 transitions, Γ = 3"
    assert "gain       0.4286224338  average reward per step, the largest possible" in lines
    assert "           certified: between 0.4286224337 and 0.4286224339" in lines
    assert "span       6.31032  of the bias" in lines
    assert "diameter   14.7223 steps  between the states farthest apart" in lines
    assert "structure  communicating and unichain" in lines
    assert any(line.startswith("solved by  ") for line in lines)
    assert "right bank   right    6.31032" in lines
    assert lines[-1] == "bias: the total reward above that of starting in 'left bank'"
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    assert "\x1b" not in result.out


def test_a_rate_process_answers_per_unit_of_time(gainful: Gainful) -> None:
    result = gainful("solve", "admission-control", "--set", "capacity=5")
    assert result.code == 0
    assert "average reward per unit of time" in result.out
    assert "units of time" in next(line for line in result.out.splitlines() if line.startswith("diameter"))


def test_costs_are_minimised_and_named(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table("a,x,b,1,1", "b,y,a,1,7", "b,z,b,1,2", header="state,action,next_state,probability,cost")
    result = gainful("solve", table)
    assert result.code == 0
    assert result.out.startswith("table.csv: 2 states, 3 actions, 3 transitions, Γ = 1\n")
    assert "2.0000000000  average cost per step, the smallest possible" in result.out
    assert "diameter   1 step  between" in result.out
    assert "bias: the total cost above that of starting in 'a'" in result.out
    assert gainful("solve", table, "--json").data["objective"] == "cost"


def test_a_table_of_rates(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table(
        "idle,accept,busy,0.5,10",
        "busy,serve,idle,2,0",
        "idle,refuse,idle,0.5,0",
        header="state,action,next_state,rate,reward",
    )
    data = gainful("solve", table, "--rates", "--json").data
    assert data["gain_is"] == "average reward per unit of time"
    assert data["gain"] == pytest.approx(10 / (1 / 0.5 + 1 / 2), abs=1e-8)


def test_tsv_parquet_and_saved_files(gainful: Gainful, tmp_path: Path) -> None:
    mdp = gf.environments.toy3d()
    gain = gf.solve(mdp).gain
    mdp.to_table().to_csv(tmp_path / "a.tsv", sep="\t", index=False)
    mdp.to_table().to_parquet(tmp_path / "b.parquet")
    mdp.save(tmp_path / "c.mdp")
    for name in ("a.tsv", "b.parquet", "c.mdp"):
        result = gainful("solve", str(tmp_path / name), "--json")
        assert result.code == 0, result.err
        assert result.data["gain"] == pytest.approx(gain, abs=1e-8)


def test_an_environment_goes_before_a_file_of_the_same_name(
    gainful: Gainful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gf.environments.two_state_toy().save(tmp_path / "riverswim")
    gf.environments.two_state_toy().save(tmp_path / "mine")
    assert gainful("solve", "riverswim", "--json").data["n_states"] == 6
    assert gainful("solve", "./riverswim", "--json").data["n_states"] == 2
    assert gainful("solve", "mine", "--json").data["n_states"] == 2


def test_gymnasium_ids(gainful: Gainful) -> None:
    data = gainful("solve", "FrozenLake-v1", "--set", "is_slippery=false", "--json").data
    assert data["n_states"] == 11  # holes and goal restart at once
    assert data["gain"] == pytest.approx(1 / 6, abs=1e-8)
    assert gainful("solve", "FrozenLake-v1", "--gymnasium", "--no-diameter").code == 0


def test_large_problems_are_cut_and_say_how_to_see_the_rest(gainful: Gainful) -> None:
    garnet = ("solve", "garnet", "--set", "n_states=301")
    result = gainful(*garnet)
    assert result.code == 0
    assert "diameter   not computed for more than 300 states; --diameter does" in result.out
    assert "… and 281 more states: --max-states-shown 301, or --json" in result.out
    short = gainful(*garnet, "--max-states-shown", "0")
    assert "state" not in short.out.splitlines()[-1]
    assert len(gainful(*garnet, "--max-states-shown", "301").out.splitlines()) > 301
    data = gainful(*garnet, "--json").data
    assert data["diameter"] is None
    assert data["diameter_bounds"] is None
    assert len(data["policy"]) == 301
    assert gainful(*garnet, "--diameter", "--json").data["diameter"] > 1.0


def test_an_infinite_diameter_is_explained_and_valid_json(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table("a,x,b,1,0", "b,y,b,1,1")
    assert "diameter   infinite: some state cannot be reached from some other" in gainful("solve", table).out
    data = gainful("solve", table, "--json").data
    assert data["diameter"] == "inf"
    assert data["diameter_bounds"] == ["inf", "inf"]
    assert data["structure"] == "unichain"
    assert gainful("solve", table, "--no-diameter", "--json").data["diameter"] is None


def test_a_diameter_beyond_float64_does_not_spoil_the_answer(gainful: Gainful) -> None:
    queue = ("solve", "admission-control", "--set", "capacity=50", "--set", "arrival_rate=0.1")  # about 10^50 steps
    result = gainful(*queue)
    assert result.code == 0
    assert "diameter   not computed, because float64 cannot certify three digits of so large a diameter" in result.out
    asked = gainful(*queue, "--diameter")
    assert asked.code == 1
    assert asked.error.startswith("PrecisionError: hitting times")


def test_several_classes_of_the_same_gain_are_solved_and_named(gainful: Gainful, write_table: WriteTable) -> None:
    result = gainful("solve", write_table("a,x,a,1,1", "b,y,b,1,1"))
    assert result.code == 0
    assert "structure  multichain: 2 classes that happen to have the same gain" in result.out


def test_a_span_constraint(gainful: Gainful) -> None:
    mdp = gf.environments.riverswim()
    plan = gf.scopt(mdp, 1.0)
    result = gainful("solve", "riverswim", "--span", "1")
    assert result.code == 0
    assert "with a bias of span at most 1" in result.out
    assert "unbounded  0.4286224338  the bound costs 0.360698; span 6.31032" in result.out
    assert "truncated  1 of 6 states, marked *" in result.out
    assert "right bank *   left 0.7409, right 0.2591   1.00000" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())
    data = gainful("solve", "riverswim", "--span", "1", "--json").data
    assert data["gain"] == plan.gain
    assert data["constraint"]["span_bound"] == 1.0
    assert data["constraint"]["truncated"] == ["right bank"]
    assert data["constraint"]["policy_unichain"] is True
    assert data["constraint"]["unconstrained_gain"] == gf.solve(mdp).gain
    mixed = data["policy"][-1]
    assert "action" not in mixed
    assert sum(mixed["probabilities"].values()) == pytest.approx(1.0)


def test_a_span_constraint_that_costs_nothing(gainful: Gainful) -> None:
    result = gainful("solve", "riverswim", "--span", "50")
    assert "the same, so the bound costs nothing" in result.out
    assert "truncated  0 of 6 states\n" in result.out


def test_precision_is_respected_and_sets_the_digits(gainful: Gainful) -> None:
    coarse = gainful("solve", "garnet", "--precision", "1e-3", "--json").data["gain_bounds"]
    fine = gainful("solve", "garnet", "--precision", "1e-10", "--json").data["gain_bounds"]
    assert coarse[1] - coarse[0] <= 1e-3
    assert fine[1] - fine[0] <= 1e-10
    assert coarse[0] <= fine[1]
    assert fine[0] <= coarse[1]
    gain = next(x for x in gainful("solve", "garnet", "--precision", "1e-3").out.splitlines() if x.startswith("gain"))
    assert len(gain.split()[1]) == len("0.12345")


def test_labels_cannot_style_or_break_the_terminal(gainful: Gainful, write_table: WriteTable) -> None:
    result = gainful("solve", write_table("[red]a,:smile:,\x1b[31mb,1,0", "\x1b[31mb,y,[red]a,1,1"))
    assert "\n[red]a      :smile:   " in result.out
    assert "\\x1b[31mb" in result.out
    assert "\x1b" not in result.out


def test_long_labels_stay_on_one_line_outside_a_terminal(gainful: Gainful, write_table: WriteTable) -> None:
    long = "a" * 150
    result = gainful("solve", write_table(f"{long},x,{long},1,1"))
    assert any(line.startswith(long + "   x") for line in result.out.splitlines())


def test_a_model_of_storm(gainful: Gainful, tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(5)
    mdp.to_drn(tmp_path / "river.drn")
    result = gainful("solve", str(tmp_path / "river.drn"), "--no-diameter", "--json")
    assert result.data["gain"] == gf.solve(mdp).gain
    assert gainful("solve", str(tmp_path / "river.drn"), "--reward-model", "rewrad").code == 2
    assert "found 'riverswim'" in gainful("solve", "riverswim", "--reward-model", "x").error


def test_what_if_names_the_nearest_change_of_policy(gainful: Gainful) -> None:
    found = gainful("solve", "riverswim", "--what-if", "--json").data["what_if"]
    assert found["solved_again"]["state"] == "left bank"
    assert (found["solved_again"]["before"], found["solved_again"]["beyond"]) == ("right", "left")
    assert len(found["rewards"]) == 12
    page = gainful("solve", "riverswim", "--what-if").out
    assert "what if a reward changes" in page
    assert "solved again: with +0.423622" in page


def test_hardness_is_shown_and_in_the_json(gainful: Gainful) -> None:
    text = gainful("solve", "riverswim-ergodic", "--hardness").out
    assert "how hard it is to learn" in text
    assert "26.3585  of regret over ln T" in text
    told = gainful("solve", "riverswim", "--hardness", "--json").data["hardness"]
    assert (told["ergodic"], told["slope"]) == (False, None)
    assert told["diameter"] == pytest.approx(14.722338, rel=0, abs=1e-6)


def test_a_device_is_passed_on(gainful: Gainful) -> None:
    small, wrong = (
        gainful("solve", "riverswim", "--device", "auto", "--json"),
        gainful("solve", "riverswim", "--device", "tpu"),
    )
    assert small.code == 0
    assert small.data["gain"] == gf.solve(gf.environments.riverswim(6)).gain
    assert wrong.code == 2
    assert "device is 'tpu'" in wrong.error
