"""CountBonus and MBIE-EB with exact counts, pseudo-counts and counts of the user's own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError, SteppedInPythonWarning
from gainful.experiments.configuration import Configuration

MDP = gf.environments.riverswim(6)


class OwnCounts:
    """Exact counts that see every step."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], int] = {}

    def update(self, state: int, action: int) -> None:
        self.seen[state, action] = self.seen.get((state, action), 0) + 1

    def count(self, state: int, action: int) -> float:
        return self.seen.get((state, action), 0)


class OwnTable:
    """Exact counts that are computed from the visits."""

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def table(self, visits: np.ndarray) -> Any:
        return visits if self.result is None else self.result


def made(counts: Any, kind: Any = gf.CountBonus, **more: Any) -> Any:
    needed = {"discount": 0.9, "m": 100, "bonus_scale": 0.1} if kind is gf.MBIEEB else {"beta": 2.0}
    return kind.for_mdp(MDP, counts=counts, **needed, **more)


def test_the_plan_is_the_best_policy_of_the_model_with_bonus() -> None:
    agent = made("modulo:buckets=2")
    gf.simulate(agent, MDP, 2_000, seed=3)
    views: list[Any] = []
    agent.on_episode = views.append
    agent.begin_episode()
    S, A, N = 6, 2, agent.statistics.visits
    P = np.zeros((S * A, S))
    P[:, 0] = 1.0
    for pair in range(S * A):
        to, count = agent.statistics.row(pair)
        P[pair, to] += count
    shared = N.reshape(3, 2, A).sum(axis=0)  # of even and of odd states
    rewards = (agent.statistics.reward_sum / np.maximum(1, N)).reshape(S, A) + 2.0 / np.sqrt(np.tile(shared, (3, 1)))
    best = gf.solve(gf.MDP((P / (N + 1)[:, None]).reshape(S, A, S), rewards), precision=1e-10)
    low, high = agent.current.gain_bounds
    assert low - 1e-9 <= best.gain <= high + 1e-9
    assert high - low <= 1.0 / math.sqrt(2_000)
    assert views[0].plan.details["rewards"].reshape(S, A) == pytest.approx(rewards, rel=1e-12, abs=0)


@pytest.mark.parametrize("kind", [gf.CountBonus, gf.MBIEEB])
def test_own_counts_that_are_exact_give_the_run_of_exact_counts(kind: Any) -> None:
    exact = gf.simulate(made("exact", kind), MDP, 1_000, seed=1)
    table = gf.simulate(made(OwnTable(), kind), MDP, 1_000, seed=1)
    with pytest.warns(SteppedInPythonWarning, match="counts of OwnCounts see every step.*table"):
        stepped = gf.simulate(made(OwnCounts(), kind), MDP, 1_000, seed=1)
    for run in (table, stepped):
        assert np.array_equal(run.rewards, exact.rewards)
        assert run.final_state == exact.final_state


def test_counts_change_the_run_of_both_agents() -> None:
    for kind in (gf.CountBonus, gf.MBIEEB):
        runs = [gf.simulate(made(counts, kind), MDP, 1_000, seed=1) for counts in ("exact", "modulo:buckets=2")]
        assert not np.array_equal(runs[0].rewards, runs[1].rewards)


@pytest.mark.parametrize("counts", [gf.HashedCounts([0, 0, 0, 1, 1, 1]), gf.DensityCounts(np.eye(6)), "density"])
def test_an_agent_with_counts_is_saved_with_them(counts: Any, tmp_path: Path) -> None:
    agent = made(counts)
    gf.simulate(agent, MDP, 500, seed=1)
    agent.save(tmp_path / "agent")
    again = gf.load_agent(tmp_path / "agent")
    assert np.array_equal(again.pseudo_counts(), agent.pseudo_counts())
    runs = [gf.simulate(each, MDP, 500, seed=2) for each in (agent, again)]
    assert np.array_equal(runs[0].rewards, runs[1].rewards)


@pytest.mark.parametrize("counts", [OwnCounts(), OwnTable()])
def test_an_agent_with_own_counts_is_not_saved(counts: Any, tmp_path: Path) -> None:
    agent = made(counts)
    with pytest.raises(InvalidArgumentError, match="cannot be saved") as caught:
        agent.save(tmp_path / "agent")
    assert "gf.HashedCounts" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="cannot be saved"):
        gf.open_agent(tmp_path / "live", agent)
    assert "OwnCounts" in repr(made(OwnCounts()))


@pytest.mark.filterwarnings("ignore::gainful.errors.SteppedInPythonWarning")
def test_a_run_with_counts_that_see_steps_has_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="does not know the state of OwnCounts"):
        gf.simulate(made(OwnCounts()), MDP, 100, checkpoint_file=tmp_path / "run")


@pytest.mark.parametrize("damaged", [{}, {"codes": [1, 2]}, {"codes": "x"}, {"features": 3}, {"codes": [1], "x": 2}])
def test_settings_that_are_none_are_refused(damaged: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        made(damaged)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (np.full((6, 2), np.nan), "counts nan visits of action 0 in state 0"),
        (-np.ones((6, 2)), "counts -1.0 visits"),
        (np.zeros(12), r"shape \(12,\)"),
        ("x", "table returned 'x'"),
    ],
)  # fmt: skip
def test_a_table_that_is_none_is_refused_when_the_agent_plans(result: Any, found: str) -> None:
    agent = made(OwnTable(result))
    with pytest.raises(InvalidArgumentError, match=found):
        agent.act(0)


@pytest.mark.parametrize("counts", [3, None, OwnCounts, "hash", [1, 2, 3], gf.HashedCounts([1, 2])])
def test_what_is_no_counts_is_refused(counts: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="counts"):
        made(counts)


def test_a_run_with_exact_counts_has_the_identity_that_it_had_without_them() -> None:
    def identity(**parameters: Any) -> str:
        given = {"discount": 0.9, "m": 100, **parameters}
        return Configuration("riverswim", {}, "mbie-eb", given, 100, (100,), 0).key

    assert identity(counts="exact") == identity()
    assert identity(counts="modulo:buckets=2") != identity()
    assert identity(counts="simhash:seed=1, bits=2") == identity(counts="simhash:bits=2,seed=1")


def test_nothing_is_promised() -> None:
    assert not made("exact").guarantee.holds
    with pytest.raises(InvalidArgumentError, match="beta is -1"):
        gf.CountBonus(2, 2, beta=-1.0)
