from __future__ import annotations

import json
import math
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.cli import console, learn_many, watched_run
from gainful.cli.main import run
from gainful.cli.sketch import sketch
from gainful.progress import live_line


def test_a_run_ends_in_a_table_and_a_sketch(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["learn", "riverswim", "--agent", "scal-plus", "--horizon", "2e4", "--agent-set", "bonus_scale=0.1"]) == 0
    )
    out = capsys.readouterr().out
    assert "scal-plus in riverswim, seed 0" in out
    assert "expected regret" in out
    assert "after 20,000 steps" in out
    assert "expected regret over steps, both axes logarithmic" in out
    assert "an oracle, taken from the model itself" in out
    assert "no guarantee: bonus_scale is 0.1" in out
    assert out.count("•") > 20


def test_json_is_the_run_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "5000", "--span", "7", "--seed", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = gf.simulate(gf.KLSCALPlus(6, 2, span=7.0, seed=3), gf.environments.riverswim(6), 5000, seed=3)
    for name in ("regret", "pseudo_regret", "expected_regret"):
        assert np.array_equal(found[name], getattr(expected, name))
    assert found["measure"] == "expected_regret"
    assert found["episodes"] == len(expected.episodes)
    assert found["span_is_oracle"] is False
    assert found["guarantee_holds"] is True


def test_an_agent_that_can_do_without_a_span_is_given_none(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["learn", "riverswim", "--agent", "kl-scal-plus", "--horizon", "2000", "--json"]
    found = []
    for more in ([], ["--span", "auto"], ["--span", "3"]):
        assert run([*words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [one["span_is_oracle"] for one in found] == [False, True, False]
    assert [one["settings"]["span"] for one in found] == [None, pytest.approx(6.3166, rel=1e-4, abs=0), 3.0]
    assert [one["guarantee_holds"] for one in found] == [True, False, False]
    assert found[2]["guarantee"] == "no guarantee: c = 3 is below the span of the optimal bias, 6.31"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "riverswim", "--agent", "ucrl-2"], "did you mean 'ucrl2'"),
        (["learn", "riverswim", "--agent", "regal"], "not implementable"),
        (["learn", "riverswim", "--horizon", "0"], "horizon"),
        (["learn", "riverswim", "--horizon", "many"], "--horizon"),
        (["learn", "riverswim", "--agent", "scal-plus", "--agent-set", "bonus_scales=1"], "did you mean 'bonus_scale'"),
        (["learn", "riverswim", "--agent", "ucrl2", "--span", "3"], "takes no span"),
        (["learn", "riverswim", "--agent-set", "bonus_scale=0.1"], "it is one of scal-plus (--agent scal-plus)"),
        (["learn", "lqg", "--agent-set", "bonus_scale=0.1"], "it is one of c-scal-plus (--agent c-scal-plus)"),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_agents_are_listed_with_the_one_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "agents"]) == 0
    captured = capsys.readouterr()
    assert "scal-plus" in captured.out
    assert "not implementable: regal" in captured.err
    assert "what each one lost: 'Which agent, which constants' (docs/which_agent.md)" in captured.err
    assert run(["list", "agents", "--json"]) == 0
    assert {"name", "states", "summary", "parameters"} == set(json.loads(capsys.readouterr().out)[0])


def test_a_straight_line_is_drawn_straight() -> None:
    assert sketch([1, 10, 100], [1.0, 10.0, 100.0], width=5, height=3) == [
        "      100 ┤    •",
        "          │  •",
        "        1 ┤•",
        "          └─────",
        "           1 100",
    ]


def test_a_curve_with_negative_values_is_drawn_on_both_sides_of_zero() -> None:
    assert sketch([1, 10, 100], [1.0, 0.0, -1.0], width=5, height=3) == [
        "        1 ┤•",
        "        0 ┤  •",
        "       -1 ┤    •",
        "          └─────",
        "           1 100",
    ]


def test_what_a_curve_leaves_out_is_said() -> None:
    *picture, zeros = sketch([1, 10, 100], [0.0, 1.0, 10.0], width=5, height=3)
    assert zeros == "(1 of 3 points is 0, which a logarithmic axis does not have)"
    assert sum(line.count("•") for line in picture) == 2
    *picture, unknown = sketch([1, 10, 100, 1000], [math.nan, math.nan, 1.0, 10.0], width=5, height=3)
    assert unknown == "(2 of 4 points are unknown, and not drawn)"
    assert sum(line.count("•") for line in picture) == 2


def test_a_flat_or_empty_curve_is_said_in_words() -> None:
    assert sketch([1, 10], [2.0, 2.0]) == ["(2 all along)"]
    assert sketch([1, 10], [0.0, 0.0]) == ["(0 all along)"]
    assert sketch([1, 10], [math.nan, math.nan]) == ["(nothing is known to draw)"]


def test_a_run_in_a_file_is_continued_and_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["learn", "riverswim", "--horizon", "5000", "--span", "7", "--json"]
    assert run(command) == 0
    plain = json.loads(capsys.readouterr().out)
    for _ in range(2):
        assert run([*command, "--checkpoint", str(tmp_path / "run")]) == 0
        assert json.loads(capsys.readouterr().out)["regret"] == plain["regret"]
    assert run([*command, "--seed", "4", "--checkpoint", str(tmp_path / "run")]) == 1
    assert "belongs to another run: its" in capsys.readouterr().err


def test_a_plan_that_ignores_the_data_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--agent", "ucrl2", "--horizon", "100"]) == 0
    assert "vacuous: still so wide that the plan ignores the data" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "exploring"),
    [
        (["--agent", "scal-plus", "--span", "7"], True),
        (["--agent", "ucrl2b", "--horizon", "1e5"], False),  # learned: its regret has flattened
        (["--agent", "fixed"], False),  # loses linearly, and does not learn
    ],
)
def test_a_regret_that_is_still_linear_leads_to_the_page_on_agents(
    arguments: list[str], exploring: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["learn", "riverswim", "--horizon", "1e4", *arguments]
    assert run(command) == 0
    told = "still exploring after 10,000 steps: the regret is linear so far; see 'Which agent, which constants'"
    assert (told in capsys.readouterr().out) == exploring
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["still_linear"] is exploring


def test_progress_is_told_in_plain_lines_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 4))
    monkeypatch.setattr("gainful.progress.time.monotonic", lambda: next(clock))
    with live_line(lambda done, total: f"{done} of {total}") as show:
        for i in range(10):
            show(i, 10)
    assert capsys.readouterr().err.splitlines() == ["2 of 10", "5 of 10", "8 of 10"]


def test_progress_stays_on_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    parts = ["3 of 1,000 steps", "2 s left", "optimal 0.4286"]
    assert console.one_line(parts) == "3 of 1,000 steps, 2 s left, optimal 0.4286"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert console.one_line(parts) == "3 of 1,000 steps, 2 s left"


def test_a_continuous_environment_is_learned_on_cells(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["learn", "lqg", "--agent", "c-scal-plus", "--bins", "8", "--agent-set", "bonus_scale=0.1"]
    command += ["--horizon", "3000", "--span", "2"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    env = gf.environments.lqg()
    agent = gf.CSCALPlus(
        partition=gf.Partition.uniform(bins=8),
        n_actions=5,
        span=2.0,
        lipschitz=env.lipschitz,
        holder=env.holder,
        reward_min=env.reward_min,
        reward_max=env.reward_max,
        bonus_scale=0.1,
    )
    assert found["agent"] == "c-scal-plus"
    assert np.array_equal(found["regret"], gf.simulate(agent, env, 3000).regret)
    assert run(command) == 0
    out = capsys.readouterr().out
    assert "8, 8 per axis" in out
    assert "expected regret" not in out
    assert "pseudo-regret over steps" in out
    assert "no guarantee: bonus_scale is 0.1" in out


def test_the_default_agents_need_no_span(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "1e4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["agent"], found["settings"]["span"]) == ("kl-scal-plus", None)
    assert found["guarantee_holds"] is True
    assert run(["learn", "lqg", "--bins", "8", "--horizon", "1e4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["agent"], found["settings"]["span"]) == ("c-kl-scal-plus", None)
    assert found["span_is_oracle"] is False


def test_a_guarantee_for_reachable_states_is_not_claimed_where_some_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["learn", "weakly-communicating-toy", "--horizon", "1e4"]
    assert run(command) == 0
    assert "but not here: some states cannot be reached from others" in capsys.readouterr().out
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee_holds"] is False
    assert run([*command, "--span", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee_holds"] is True


def test_a_tabular_agent_is_put_on_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "replacement", "--agent", "ucrl2b", "--bins", "5", "--horizon", "2000"]) == 0
    assert "no guarantee: UCRL2B is meant for finitely many states" in capsys.readouterr().out


def test_a_gymnasium_environment_without_a_table_is_lived_in(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "learn",
        "CartPole-v1",
        "--set",
        "sutton_barto_reward=true",
        "--agent-set",
        "reward_min=-1",
        "--span",
        "5",
        "--bins",
        "3",
        "--horizon",
        "500",
    ]
    assert run(command) == 0
    captured = capsys.readouterr()
    assert "axis 1 from" in captured.err  # its velocities have no bounds
    assert "unknown, because no model gives the optimal gain; pass --gain NUMBER" in captured.out
    assert "restarts" in captured.out
    assert "81, 3 per axis" in captured.out
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["gain"] is found["measure"] is None
    assert set(found["regret"]) == {None}
    assert run([*command, "--gain", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regret"][-1] == -found["rewards"][-1]


MACHINE = """state,action,next_state,probability,cost
new,run,new,0.9,1
new,run,worn,0.1,1
worn,run,worn,0.7,3
worn,run,broken,0.3,3
worn,service,new,1,6
broken,repair,new,1,40
"""


@pytest.fixture
def machine(tmp_path: Path) -> str:
    path = tmp_path / "machine.csv"
    path.write_text(MACHINE)
    return str(path)


def test_the_policy_learned_is_told_in_the_users_words_and_costs(
    machine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", machine, "--horizon", "2e4"]) == 0
    out = capsys.readouterr().out
    assert "average cost     1.4" in out
    assert "optimal          1.45455 per step" in out
    assert "learned policy   1.45455 per step if it is kept: optimal" in out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith(("new ", "worn ", "broken "))] == [
        ["new", "run"],
        ["worn", "service"],
        ["broken", "repair"],
    ]
    assert "the policy is settled" in out
    assert "-1.4" not in out


def test_json_and_the_saved_file_have_all_of_it(
    machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, agent = tmp_path / "learned.json", tmp_path / "machine.agent"
    words = ["learn", machine, "--horizon", "2e4", "--save", str(file), "--save-agent", str(agent), "--json"]
    assert run(words) == 0
    printed = capsys.readouterr()
    assert [line for line in printed.err.splitlines() if "written" in line] == [
        f"written: {file}, which gainful evaluate takes as --policy",
        f"written: {agent}, for gf.load_agent",
    ]
    found = json.loads(printed.out, parse_constant=pytest.fail)
    saved = json.loads(file.read_text())
    assert saved == found
    simulated = gf.simulate(
        gf.KLSCALPlus(3, 3, reward_min=-40.0, reward_max=-1.0, allowed=gf.MDP.from_table(machine).allowed),
        gf.MDP.from_table(machine),
        20_000,
        checkpoints=[18_000],
    )
    costs = -simulated.rewards
    assert found["objective"] == "cost"
    assert found["gain"] == pytest.approx(16 / 11, rel=1e-7, abs=0)
    assert found["average"] == pytest.approx(costs[-1] / 20_000, rel=1e-12, abs=0)
    assert found["average_at_the_end"] == pytest.approx((costs[-1] - costs[0]) / 2_000, rel=1e-12, abs=0)
    assert found["costs"][-1] == costs[-1]
    assert "rewards" not in found
    policy = {row["state"]: row for row in found["policy"]}
    assert {s: row["action"] for s, row in policy.items()} == {"new": "run", "worn": "service", "broken": "repair"}
    assert sum(row["visits"] for row in found["policy"]) == 20_000
    assert policy["worn"]["sure"] > 0.99
    assert policy["worn"]["lead"] > 0.0
    assert found["next"] == ["the policy is settled: gf.open_agent takes the saved agent live (docs/live.md)"]
    assert gf.load_agent(agent).t == 20_000
    assert gf.load_agent(agent).predict("worn") == "service"


def test_rates_are_learned_per_unit_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "queue.csv"
    path.write_text(
        "state,action,next_state,rate,cost_rate\nidle,slow,busy,1,0\nbusy,slow,idle,1.5,3\nbusy,fast,idle,4,4.5\n"
    )
    for command in ("solve", "learn"):
        assert run([command, str(path)]) == 1
        assert "a table of rates is read with --rates" in capsys.readouterr().err
    assert run(["learn", str(path), "--rates", "--horizon", "2e4"]) == 0
    out = capsys.readouterr().out
    assert "optimal          0.9 per unit of time" in out
    assert run(["learn", str(path), "--rates", "--horizon", "2e4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gain"] == pytest.approx(0.9, rel=1e-7, abs=0)
    assert found["average"] == pytest.approx(found["costs"][-1] / 20_000 / found["step_duration"], rel=1e-12, abs=0)


def test_many_states_are_the_most_visited_ones_and_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "2000", "--max-states-shown", "2"]) == 0
    out = capsys.readouterr().out
    assert "… and 4 more states" in out
    assert out.count("river ") + out.count(" bank ") == 2 + out.split("what next")[1].count("river ")


def test_a_checkpoint_of_a_run_begun_without_the_last_tenth_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run"
    mdp = gf.environments.riverswim(6)
    gf.simulate(gf.KLSCALPlus(6, 2), mdp, 5000, checkpoint_file=file)
    assert run(["learn", "riverswim", "--horizon", "5000", "--checkpoint", str(file)]) == 0
    assert "last 10.9%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "message"),
    [("no/such/folder/learned.json", "is no folder"), ("learned.csv", "do not fit into one table")],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    file: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["learn", "riverswim", "--save", str(tmp_path / file)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "CartPole-v1", "--agent", "c-scal-plus"], "span auto needs a model, and CartPole-v1 has none"),
        (["learn", "ship-steering", "--agent", "c-scal-plus"], "span auto needs a model"),
        (["learn", "Pendulum-v1", "--span", "3"], "expected a Discrete space"),
        (["learn", "riverswim", "--bins", "3"], "riverswim has finitely many states"),
        (["learn", "lqg", "--set", "n_action=3"], "did you mean 'n_actions'"),
        (["learn", "lqg", "--agent-set", "lipschitz=-1"], "lipschitz is -1"),
        (["learn", "lqg", "--agent", "fixed", "--agent-set", "polic=1"], "did you mean 'policy'"),
        (["learn", "NoSuch-v1"], "is not a Gymnasium environment"),
        (["solve", "lqg"], "make_continuous"),
    ],
)
def test_misuse_among_points_is_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_many_runs_end_in_the_distribution_of_their_regret(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["learn", "riverswim", "--horizon", "1000", "--span", "7", "--runs", "3", "--seed", "2"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    mdp = gf.environments.riverswim(6)
    runs = gf.simulate_many(lambda seed: gf.KLSCALPlus(6, 2, span=7.0, seed=seed), mdp, 1000, range(2, 5))
    last = [float(r.expected_regret[-1]) for r in runs]
    assert found["runs"] == 3
    assert found["expected_regret"][-1]["steps"] == 1000
    assert found["expected_regret"][-1]["mean"] == pytest.approx(np.mean(last), rel=1e-12, abs=0)
    assert found["expected_regret"][-1]["largest"] == max(last)
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "expected regret over 3 runs" in shown
    assert " median " in shown
    assert "99.9 %" not in shown  # of three runs


@contextmanager
def ctrl_c_at_500_steps(tell: Callable[[Any, Any], str]) -> Iterator[Callable[[Any, Any], None]]:
    """Stands for the progress line; one Ctrl-C, because a later one of a thread could reach the next command."""
    pressed = threading.Event()

    def show(done: int, total: int) -> None:
        assert tell(done, total)
        if done >= 500 and not pressed.is_set():
            pressed.set()
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield show
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_says_what_was_done_and_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "run")
    command = ["learn", "riverswim", "--horizon", "5000", "--span", "7"]
    monkeypatch.setattr(watched_run, "live_line", ctrl_c_at_500_steps)
    monkeypatch.setattr(learn_many, "live_line", ctrl_c_at_500_steps)
    assert run(command) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(r"interrupted after \d{3} of 5,000 steps; nothing is kept \(with --checkpoint FILE", captured.err)
    assert run([*command, "--runs", "2"]) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(r"interrupted after [\d,]+ of 10,000 steps of 2 runs; nothing is kept", captured.err)
    assert run([*command, "--checkpoint", file]) == 130
    captured = capsys.readouterr()
    assert re.search(rf"interrupted after \d{{3}} of 5,000 steps; {re.escape(file)} has the run, and", captured.err)
    monkeypatch.undo()
    assert run([*command, "--checkpoint", file, "--json"]) == 0
    continued = json.loads(capsys.readouterr().out)
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rewards"] == continued["rewards"]


def test_an_unknown_device_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "10", "--device", "tpu"]) == 2
    assert "device" in capsys.readouterr().err
