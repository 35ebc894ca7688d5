"""`gf.fit`: counts, intervals, what was never tried, and the gain of the estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import bdtr

import gainful as gf
from gainful.errors import GainfulError, InvalidArgumentError, InvalidMDPError, MemoryLimitError
from gainful.estimation.intervals import clopper_pearson

FEW = 10  # resampled models, where their number does not matter

WORN: dict[str, list[Any]] = {
    "state": ["new", "new", "worn", "new", "worn"] * 30,
    "action": ["run", "run", "run", "run", "fix"] * 30,
    "reward": [2.0, 2.0, 1.0, 2.0, -1.0] * 30,
    "next_state": ["new", "worn", "new", "worn", "new"] * 30,
}


def walk(mdp: gf.MDP, steps: int, seed: int, units: int = 1) -> dict[str, list[Any]]:
    """Rows of units that choose their actions uniformly."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {name: [] for name in ("unit", "time", "state", "action", "reward")}
    for unit in range(units):
        state = 0
        for time in range(steps + 1):
            action = int(rng.choice(np.flatnonzero(mdp.allowed[state])))
            moves = mdp.transition(state, action)
            for name, value in zip(rows, (unit, time, state, action, float(mdp.rewards[state, action])), strict=True):
                rows[name].append(value)
            state = int(rng.choice(list(moves), p=list(moves.values())))
    return rows


def test_frequencies_means_and_what_was_never_tried() -> None:
    fitted = gf.fit(WORN, replicates=FEW)
    mdp = fitted.mdp
    assert mdp.state_labels == ("new", "worn")
    assert mdp.transition("new", "run") == {0: pytest.approx(1 / 3), 1: pytest.approx(2 / 3)}
    assert fitted.visits.tolist() == [[90, 0], [30, 30]]
    assert mdp.rewards.tolist() == [[2.0, 0.0], [1.0, -1.0]]
    assert fitted.never_tried == [("new", "fix")]
    assert fitted.n_transitions == 150
    assert fitted.plan is not None
    assert fitted.plan.action("worn") == "run"
    assert fitted.gain == pytest.approx(1.6, rel=0, abs=1e-8)
    low, high = fitted.gain_interval or (np.nan, np.nan)
    assert low < 1.6 < high
    assert fitted.agreement.tolist() == [1.0, 1.0]
    assert "gain=1.6 in [" in repr(fitted)


def test_the_rows_of_units_give_the_same_model_as_their_transitions() -> None:
    rows = pd.DataFrame(walk(gf.environments.riverswim(3), 200, seed=1, units=3))
    shuffled = rows.sample(frac=1.0, random_state=2)
    following = rows.groupby("unit")["state"].shift(-1)
    transitions = rows.assign(next_state=following)[following.notna()].drop(columns=["unit", "time"])
    one, other, last = (gf.fit(log, replicates=0) for log in (rows, shuffled, transitions))
    assert one.mdp == other.mdp
    assert np.array_equal(one.mdp.probabilities, last.mdp.probabilities)
    assert (one.n_units, one.n_transitions) == (3, 600)
    assert one.notes == ("3 last rows of units left out: their next state is not known",)
    assert one.gain_interval is None


def test_dates_order_rows_and_unequal_steps_are_noted() -> None:
    rows = {
        "unit": ["a"] * 5, "time": ["2025-01-03", "2025-01-01", "2025-01-02", "2025-01-05", "2025-01-09"],
        "state": [2, 0, 1, 0, 1], "action": [0] * 5, "cost": [1.0] * 5,
    }  # fmt: skip
    fitted = gf.fit(rows, replicates=0)
    assert fitted.mdp.units.objective == "cost"
    assert [fitted.mdp.transition(s, 0) for s in range(3)] == [{1: 1.0}, {2: 1.0}, {0: 1.0}]
    assert any("differ" in note for note in fitted.notes)


def test_the_last_row_of_a_unit_may_lack_action_and_reward() -> None:
    rows = {"unit": [1, 1, 1], "time": [1, 2, 3], "state": ["a", "b", "a"], "action": ["x", "x", None],
            "reward": [1.0, 3.0, None]}  # fmt: skip
    assert gf.fit(rows, replicates=0).gain == pytest.approx(2.0, rel=0, abs=1e-8)


def test_every_way_to_hand_over_a_log_gives_the_same_model(tmp_path: Path) -> None:
    frame = pd.DataFrame(WORN)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    renamed = frame.rename(columns={"state": "condition", "reward": "profit"})
    models = [gf.fit(log, replicates=0).mdp for log in (WORN, frame, tmp_path / "log.csv", tmp_path / "log.parquet")]
    models.append(gf.fit(renamed, columns={"state": "condition", "reward": "profit"}, replicates=0).mdp)
    models.append(gf.fit(tuple(np.array(column) for column in WORN.values()), replicates=0).mdp)
    assert all(model == models[0] for model in models)


def test_labels_given_fix_the_order_and_show_actions_never_seen() -> None:
    fitted = gf.fit(WORN, states=["worn", "new"], actions=["run", "fix", "scrap"], replicates=0)
    assert fitted.mdp.state_labels == ("worn", "new")
    assert ("worn", "scrap") in fitted.never_tried
    with pytest.raises(InvalidMDPError, match="'worn' is not in states="):
        gf.fit(WORN, states=["new"])


def test_intervals_are_those_of_clopper_and_pearson_and_of_student() -> None:
    fitted = gf.fit({**WORN, "reward": [1.0, 2.0, 3.0, 4.0, 5.5] * 30}, replicates=0)
    move, pair = fitted.transitions.iloc[0], fitted.pairs.iloc[0]
    assert (move["state"], move["action"], move["next_state"]) == ("new", "run", "new")
    low, high = clopper_pearson(30, 90, 0.95)
    assert (move["low"], move["high"]) == (low, high)
    rewards = np.tile([1.0, 2.0, 4.0], 30)
    half = 1.98698 * rewards.std(ddof=1) / np.sqrt(90)  # t(89) at 0.975
    assert pair["low"] == pytest.approx(rewards.mean() - half, rel=0, abs=1e-4)
    assert pair["unseen_high"] == pytest.approx(1 - 0.025 ** (1 / 90), rel=1e-9, abs=0)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (3, 7), (500, 1000)])
def test_clopper_pearson_leaves_half_of_the_rest_on_each_side(k: int, n: int) -> None:
    low, high = (float(x) for x in clopper_pearson(k, n, 0.9))
    at_least_k = 1.0 - bdtr(k - 1, n, low) if k else 1.0
    assert at_least_k == pytest.approx(0.05 if k else 1.0, rel=0, abs=1e-9)
    assert bdtr(k, n, high) == pytest.approx(0.05 if k < n else 1.0, rel=0, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards", "law"),
    [([2.0, 2.0, 1.0, 2.0, -1.0], "deterministic"), ([1.0, 2.0, 3.0, 2.0, 0.0], "transition")],
)
def test_the_law_of_rewards_follows_from_the_log(rewards: list[float], law: str) -> None:
    assert gf.fit({**WORN, "reward": rewards * 30}, replicates=0).mdp.reward_law == law


def test_zeros_and_ones_are_bernoulli_rewards_with_an_exact_interval() -> None:
    fitted = gf.fit({**WORN, "reward": [0.0, 1.0] * 75}, replicates=FEW)
    assert fitted.mdp.reward_law == "bernoulli"
    pair = fitted.pairs.iloc[1]
    assert 0.0 <= pair["low"] < pair["reward"] < pair["high"] <= 1.0


# ---------------------------------------------------------------------- ends


EPISODES = {"state": ["a", "b"] * 4, "action": ["go"] * 8, "reward": [0.0, 1.0] * 4, "next_state": ["b", "end"] * 4}


def test_states_never_left_are_refused_unless_the_user_says_what_follows() -> None:
    with pytest.raises(InvalidMDPError, match="'end'") as caught:
        gf.fit(EPISODES)
    assert "restart" in caught.value.hint
    restarted = gf.fit(EPISODES, ends="restart", replicates=0)
    assert restarted.mdp.transition("b", "go") == {0: 1.0}
    assert restarted.gain == pytest.approx(0.5, rel=0, abs=1e-8)
    with pytest.raises(InvalidMDPError, match="every trajectory ends"):
        gf.fit(EPISODES, ends="drop")


def test_where_a_log_just_stops_its_last_transition_is_left_out_and_noted() -> None:
    log = {
        name: [*column, last] for (name, column), last in zip(WORN.items(), ("new", "run", 2.0, "gone"), strict=True)
    }
    fitted = gf.fit(log, replicates=0)
    assert fitted.mdp == gf.fit(WORN, replicates=0).mdp
    assert "'gone'" in fitted.notes[-1]


def test_an_estimate_in_several_parts_has_no_gain_and_says_why() -> None:
    log = ([0, 1, 0, 1], [0, 0, 0, 0], [1.0, 0.0, 1.0, 0.0], [0, 1, 0, 1])
    fitted = gf.fit(log)
    assert fitted.plan is None
    assert np.isnan(fitted.gain)
    assert "depends on the start" in repr(fitted)


# ---------------------------------------------------------------------- hostile logs


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"reward": [np.nan] * 150}, "column 'reward': found NaN"),
        ({"reward": [1e300] * 150}, "between ±1e\\+150"),
        ({"reward": ["much"] * 150}, "column 'reward': found 'much'"),
        ({"reward": [1j] * 150}, "column 'reward': found 1j"),
        ({"reward": [10**400] * 150}, "column 'reward': found 1000"),
        ({"reward": ["1_000"] * 150}, "column 'reward': found '1_000'"),
        ({"state": [None] * 150}, "column 'state': found a blank"),
        ({"next_state": []}, "cannot be converted|arrays must|same length"),
    ],
)
def test_cells_that_cannot_be(change: dict[str, Any], match: str) -> None:
    with pytest.raises((GainfulError, ValueError), match=match):
        gf.fit({**WORN, **change})


@pytest.mark.parametrize(
    ("log", "match"),
    [
        ({"state": [0], "action": [0]}, "no column 'reward' or 'cost'"),
        ({"state": [0], "action": [0], "reward": [0.0]}, "no column 'next_state'"),
        ({"action": [0], "reward": [0.0], "next_state": [0]}, "column 'state' missing"),
        ({"unit": [0, 1], "time": [0, 0], "state": [0, 0], "action": [0, 0], "reward": [0, 0]}, "one row only"),
        ({"unit": [0, 0], "time": [0, 0], "state": [0, 0], "action": [0, 0], "reward": [0, 0]}, "twice"),
        ({"unit": [0, 0], "time": ["x", "y"], "state": [0, 0], "action": [0, 0], "reward": [0, 0]}, "or a date"),
        (([0], [0], [0.0]), "length 3"),
        (([0], [0], [0.0], [0, 1]), "shapes"),
        (7, "type int"),
    ],
)  # fmt: skip
def test_logs_that_are_none(log: Any, match: str) -> None:
    with pytest.raises(GainfulError, match=match):
        gf.fit(log)


def test_numbers_beyond_64_bits_are_names() -> None:
    states = np.array([2**63 + 5, 2**63 + 6] * 5, dtype=np.uint64)
    log = (states, np.zeros(10, dtype=int), np.zeros(10), np.roll(states, 1))
    assert gf.fit(log, replicates=0).mdp.state_labels == (str(2**63 + 5), str(2**63 + 6))


TIMES: list[Any] = [
    pd.date_range("2025-03-30", periods=4, freq="h", tz="Europe/Berlin"),  # an hour is missing that night
    pd.to_timedelta([0, 1, 2, 3], unit="h"),
    ["0001-01-01", "1066-10-14", "2025-01-01", "9999-12-31"],
    ["1", "2", "10", "11"],
]


@pytest.mark.parametrize("times", TIMES, ids=["zone", "durations", "far dates", "numbers as text"])
def test_times_of_any_kind_order_the_rows(times: Any) -> None:
    rows = pd.DataFrame({"time": times, "state": [0, 1, 2, 0], "action": 0, "reward": 1.0})
    moves = gf.fit(rows.iloc[[3, 1, 0, 2]], replicates=0).mdp
    assert [moves.transition(s, 0) for s in range(3)] == [{1: 1.0}, {2: 1.0}, {0: 1.0}]


def test_more_pairs_than_memory_should_hold_are_refused_before_they_are_made() -> None:
    n = 200_000
    log = (np.arange(n), np.arange(n), np.zeros(n), np.roll(np.arange(n), -1))
    with pytest.raises(MemoryLimitError, match="200,000 states and 200,000 actions would take about 3 TB"):
        gf.fit(log)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00state", b"", b"state,action\n1,2,3,4\n", b"PAR1garbage"])
@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_files_that_are_no_log(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidMDPError, match=name):
        gf.fit(tmp_path / name)


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"replicates": -1}, {"ends": "stop"}, {"columns": {"x": "y"}}]
)
def test_arguments_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        gf.fit(WORN, **options)


@pytest.mark.slow
def test_the_interval_covers_the_optimal_gain_about_as_often_as_it_says() -> None:
    river = gf.environments.riverswim(3)
    truth = gf.solve(river).gain
    logs = [walk(river, 2000, seed) for seed in range(40)]
    hits = 0
    for log in logs:
        low, high = gf.fit(log, replicates=100).gain_interval or (np.nan, np.nan)
        hits += low <= truth <= high
    assert hits >= 33  # 0.95 of 40 is 38; 33 or fewer happen with probability 0.003
