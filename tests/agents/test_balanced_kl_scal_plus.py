"""KL-SCAL+ with every power of two as the bound on the span: whose turn it is, and which bounds are refuted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.files import agent_state, take_state
from gainful.agents.span_balancing import SpanLedger


def a_ledger(steps: list[int], rewards: list[float], segments: list[int], claims: list[float]) -> SpanLedger:
    ledger = SpanLedger(n_pairs=1, delta=0.05)
    ledger.extend(2 ** (len(steps) - 1))
    ledger.steps[:], ledger.rewards[:], ledger.segments[:], ledger.claims[:] = steps, rewards, segments, claims
    return ledger


def test_bases_come_into_use_when_their_bound_can_say_something() -> None:
    ledger = SpanLedger(n_pairs=12, delta=0.05)
    found = []
    for t in (1, 23, 24, 47, 48, 10**6):
        ledger.extend(t)
        found.append(ledger.n_bases)
    assert found == [1, 1, 2, 2, 3, 17]  # base i from step 12·2^i on


def test_the_base_with_the_least_play_times_span_plays_until_it_has_four_times_the_next() -> None:
    ledger = a_ledger([100, 40, 30], [0.0] * 3, [1] * 3, [1.0] * 3)
    assert ledger.choose() == 1  # 100, 80, 120
    assert ledger.longest(1) == 4 * 100 // 2 - 40
    ledger.refuted[0] = True
    assert ledger.longest(1) == 4 * 120 // 2 - 40
    ledger.refuted[2] = True
    assert ledger.longest(1) is None
    assert a_ledger([5, 0, 0], [0.0] * 3, [1, 0, 0], [1.0] * 3).choose() == 1  # ties go to the smaller bound


def test_the_proven_gain_is_the_equation() -> None:
    ledger = a_ledger([5_000, 20_000], [2_000.0, 9_000.0], [3, 7], [1.0, 1.0])
    for i, c in enumerate((1.0, 2.0)):
        sides = []
        for j, (n, x, m) in enumerate(((5_000, 2_000.0, 3), (20_000, 9_000.0, 7))):
            level = math.log(n * (n + 1) * (j + 1) * (j + 2) / 0.05)
            sides.append((x - c * m - (1.0 + c) * math.sqrt(n / 2 * level)) / n)
        assert ledger.proven_gain(i) == pytest.approx(max(sides), rel=1e-12, abs=0)
    ledger.claims[:] = ledger.proven_gain(0) - 1e-9, ledger.proven_gain(1) + 1e-9
    ledger.refute()
    assert ledger.refuted.tolist() == [True, False]
    ledger.claims[1] = 0.0
    ledger.refute()
    assert ledger.refuted.tolist() == [True, False]  # the last one is kept


def test_play_is_credited_to_the_base_that_played() -> None:
    ledger = SpanLedger(n_pairs=1, delta=0.05)
    ledger.extend(2)
    ledger.settle(10, 4.0)  # before the first plan: nobody's
    for base, steps, reward in ((0, 15, 5.0), (0, 18, 7.0), (1, 20, 7.5), (0, 30, 9.0)):
        ledger.begin(base)
        ledger.settle(steps, reward)
    assert ledger.steps.tolist() == [18, 2]
    assert ledger.rewards.tolist() == [4.5, 0.5]
    assert ledger.segments.tolist() == [2, 1]


def test_small_bounds_are_refuted_and_large_enough_ones_are_kept() -> None:
    mdp = gf.environments.riverswim(6)  # sp(h*) = 6.31
    agent = gf.BalancedKLSCALPlus.for_mdp(mdp)
    run = gf.simulate(agent, mdp, 100_000, seed=1)
    ledger = agent.ledger
    assert ledger.refuted[:2].all()  # c = 1 and 2 cannot explain what the others earn
    assert not ledger.refuted[3:].any()
    assert int(ledger.steps.sum()) < agent.t  # the present episode is not settled yet
    assert run.expected_regret[-1] < 2_000
    assert not agent.guarantee.holds
    assert "no bound on the regret" in str(agent.guarantee)


def test_unreachable_states_do_not_hold_it_up() -> None:
    mdp = gf.environments.weakly_communicating_toy()
    run = gf.simulate(gf.BalancedKLSCALPlus.for_mdp(mdp), mdp, 30_000, seed=2)
    assert run.expected_regret[-1] < 0.1 * 30_000 * run.gain


def broken_path(agent: gf.BalancedKLSCALPlus, rounds: int) -> None:
    """Outcomes of a cycle of two states, rewards 1 and 0: three of the first for each of the second."""
    for _ in range(rounds):
        for state in (0, 0, 0, 1):
            agent.observe(state, agent.act(state), 1.0 - state, 1 - state)


def test_a_path_that_is_broken_refutes_no_bound_that_is_large_enough() -> None:
    """Of the cycle g* is 0.5 and sp(h*) 0.5, so that c = 1 is right, and the average of what is observed is 0.75."""
    agent = gf.BalancedKLSCALPlus(2, 1)
    broken_path(agent, 2_500)
    ledger = agent.ledger
    assert not ledger.refuted.any()
    j = int(ledger.steps.argmax())
    assert ledger.pieces(j) == pytest.approx(ledger.steps[j] / 2, rel=0.01, abs=0)  # half of all steps lead nowhere
    without = SpanLedger(2, 0.05, 2)
    without.restore({**ledger.arrays(), "surplus": np.zeros_like(ledger.surplus)}, agent.t)
    assert without.is_refuted(0)


def test_a_path_that_is_not_broken_has_no_more_pieces_than_stretches() -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.BalancedKLSCALPlus.for_mdp(mdp)
    gf.simulate(agent, mdp, 3_000, seed=4)
    assert [agent.ledger.pieces(j) for j in range(agent.ledger.n_bases)] == agent.ledger.segments.tolist()


def test_a_file_without_breaks_of_the_path_is_read() -> None:
    agent = gf.BalancedKLSCALPlus(2, 1)
    broken_path(agent, 5)
    header, arrays = agent_state(agent)
    older = {name: array for name, array in arrays.items() if "surplus" not in name}
    again = gf.BalancedKLSCALPlus(2, 1)
    take_state(again, header, older)
    assert again.ledger.surplus.tolist() == [[0, 0]] * agent.ledger.n_bases
    broken_path(again, 5)


def test_an_agent_that_is_saved_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.BalancedKLSCALPlus.for_mdp(mdp)
    gf.simulate(agent, mdp, 3_000, seed=4)
    agent.save(tmp_path / "agent")
    again = gf.load_agent(tmp_path / "agent")
    runs = [gf.simulate(one, mdp, 4_000, seed=5) for one in (agent, again)]
    assert np.array_equal(runs[0].rewards, runs[1].rewards)
    for name, array in agent.own_arrays().items():
        assert np.array_equal(array, again.own_arrays()[name]), name


def damaged(arrays: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    changed = {key: np.array(array) for key, array in arrays.items()}
    changed[f"own_{name}"].flat[-1] = value
    return changed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 10**9),
        ("segments", -1),
        ("rewards", math.nan),
        ("claims", math.nan),
        ("seen", 99),
        ("seen_reward", math.inf),
    ],
)
def test_a_damaged_ledger_is_refused(name: str, value: Any) -> None:
    agent = gf.BalancedKLSCALPlus(2, 2)
    for t in range(40):
        agent.observe(t % 2, agent.act(t % 2), 0.5, (t + 1) % 2)
    header, arrays = agent_state(agent)
    take_state(gf.BalancedKLSCALPlus(2, 2), header, arrays)
    with pytest.raises(ValueError, match=r"\w"):
        take_state(gf.BalancedKLSCALPlus(2, 2), header, damaged(arrays, name, value))
    fewer = {**arrays, "own_base_values": arrays["own_base_values"][:-1]}
    with pytest.raises(ValueError, match="bases"):
        take_state(gf.BalancedKLSCALPlus(2, 2), header, fewer)
