from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.reference import DenseUCRL3
from gainful.theory import ucrl3_bounds, ucrl3_reward_width
from tests.agents.extended_runs import planned
from tests.reference.test_reference import PROBLEMS, assert_same_run


def test_what_is_proven_and_what_is_not() -> None:
    agent = gf.UCRL3(6, 2)
    assert agent.guarantee.holds
    assert "with probability 0.8," in agent.guarantee.bound
    assert agent.level == pytest.approx(0.05 / (21 * 12), rel=1e-15, abs=0)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tails": "printed"}, "miss probabilities above ½"),
        ({"published_code": True}, "no inequality covers"),
        ({"width_scale": 0.5}, "width_scale is 0.5"),
        ({"delta": 0.3}, "4·delta"),
    ]
    for options, reason in cases:
        other = gf.UCRL3(6, 2, **options)
        assert reason in other.guarantee.reason_void
        assert gf.UCRL3(**other.settings()).settings() == other.settings()


@pytest.mark.parametrize(("name", "value"), [("tails", "heavy"), ("published_code", "maybe")])
def test_other_values_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        gf.UCRL3(2, 2, **{name: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tails": "printed"},
        {"published_code": True},
        {"width_scale": 0.2},
        {"tails": "printed", "published_code": True, "width_scale": 3.0},
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_the_plan_uses_the_bounds_of_the_equations(options: dict[str, Any]) -> None:
    agent = gf.UCRL3(3, 2, reward_max=2.0, **options)
    first = planned(agent).details
    assert np.all(first["confidence"].unseen == 1.0)
    assert np.all(first["rewards"] == 2.0)
    assert agent.vacuous
    for i in range(200):
        agent.observe(1, 0, float(i % 2), 2 if i % 4 == 0 else 1)
        agent.observe(0, 1, 2.0, 0)
    agent.begin_episode()
    used = planned(agent).details
    sets, scale = used["confidence"], options.get("width_scale", 1.0)
    given: dict[str, Any] = {"scale": scale, "tails": options.get("tails", "proven")}
    lower, upper = ucrl3_bounds([0.75, 0.25, 0.0, 1.0], 200, agent.level, **given)
    if options.get("published_code"):
        lower[3] = max(lower[3], 0.5 ** (1 / 200))
    rows = used["rows"]
    at, always = rows.indptr[2], rows.indptr[1]  # the pairs (1,0) and (0,1)
    assert sets.lower[at : at + 2] == pytest.approx(lower[:2], rel=0, abs=1e-14)
    assert sets.upper[at : at + 2] == pytest.approx(upper[:2], rel=0, abs=1e-14)
    assert sets.unseen[1, 0] == sets.unseen[0, 1] == pytest.approx(upper[2], rel=0, abs=1e-14)
    assert (sets.lower[always], sets.upper[always]) == pytest.approx((lower[3], 1.0), rel=0, abs=1e-14)
    width = ucrl3_reward_width(200, 0.25, agent.level, 2.0, scale)
    assert used["rewards"][1, 0] == pytest.approx(min(2.0, 0.5 + width), rel=1e-14, abs=0)
    assert sets.tolerance[1, 0] == pytest.approx(10 * 2 / 200 ** (2 / 3), rel=1e-14, abs=0)
    assert sets.tolerance[2, 0] == 0.0
    assert not agent.vacuous


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_it_makes_the_same_run_as_the_dense_one(problem: str) -> None:
    mdp = PROBLEMS[problem]()
    low, high, S, A = mdp.reward_min, mdp.reward_max, mdp.n_states, mdp.n_actions
    fast = gf.UCRL3(S, A, reward_min=low, reward_max=high, allowed=mdp.allowed)
    assert_same_run(fast, DenseUCRL3(S, A, high - low, 0.05, mdp.allowed), mdp, 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "loss", "error"),
    [({"tails": "printed"}, 1839.0, 42.0), ({"tails": "printed", "published_code": True}, 714.0, 25.0)],
    ids=["printed", "code"],
)
def test_the_loss_is_that_of_an_independent_prototype(options: dict[str, Any], loss: float, error: float) -> None:
    mdp = gf.environments.riverswim(6)
    found = [
        gf.simulate(gf.UCRL3(6, 2, seed=seed, **options), mdp, 100_000, seed=seed).expected_regret[-1]
        for seed in range(10)
    ]
    own = float(np.std(found, ddof=1)) / len(found) ** 0.5
    assert np.mean(found) == pytest.approx(loss, rel=0, abs=3.5 * float(np.hypot(own, error)))


@pytest.mark.slow
def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.UCRL3(6, 2, seed=2, published_code=True)
    gf.simulate(agent, mdp, 3000, seed=2)
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    assert again.settings() == agent.settings()
    one, two = (gf.simulate(a, mdp, 3000, seed=5) for a in (agent, again))
    assert np.array_equal(one.rewards, two.rewards)
    assert np.array_equal(agent.episodes["gain_high"], again.episodes["gain_high"])
