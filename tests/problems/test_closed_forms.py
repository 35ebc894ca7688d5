"""Numbers of the worked problems against closed forms and published tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.environments import admission_control
from gainful.errors import InvalidArgumentError
from gainful.problems import CallCentre, Maintenance, Stockroom, TwoServers

# ---------------------------------------------------------------------- call centre


@pytest.mark.parametrize("n_agents", [1, 4])
@pytest.mark.parametrize("most", [0, 1, 5, 9])
def test_a_threshold_earns_what_the_birth_death_chain_says(n_agents: int, most: int) -> None:
    problem = CallCentre(n_agents=n_agents, n_lines=9)
    weight = [1.0]
    for k in range(1, most + 1):
        weight.append(weight[-1] * problem.calls_per_hour / (60 / problem.talk_minutes * min(k, n_agents)))
    share = np.array(weight) / sum(weight)
    taken = problem.calls_per_hour * (1.0 - share[-1])
    waiting = share @ np.maximum(np.arange(most + 1) - n_agents, 0)
    hourly = problem.value_per_call * taken - 60 * problem.waiting_cost * waiting
    exact = problem.money_per_day(problem.threshold(most))
    assert exact == pytest.approx(10 * hourly, rel=1e-10, abs=1e-9)


def test_one_agent_is_naors_queue() -> None:
    # there those being served cost too: C per hour and caller in the system = waiting callers, and C per busy hour
    problem = CallCentre(n_agents=1, n_lines=12, calls_per_hour=12.0, waiting_cost=0.25)
    naor = admission_control(
        12, arrival_rate=12.0, service_rate=15.0, reward=6.0 + 15.0 / 15.0, holding_cost=15.0
    )  # each admitted caller is served for 1/15 h, which costs 1 € and is paid back by 1 € more
    assert problem.best_money_per_day / 10 == pytest.approx(gf.solve(naor, precision=1e-9).gain, rel=0, abs=1e-6)


def test_the_optimum_is_a_threshold_below_the_selfish_one() -> None:
    # Naor 1969, Knudsen 1972: who counts his own wait alone joins too often
    problem = CallCentre()
    actions = problem.optimum.actions
    assert actions is not None
    assert np.all(np.diff(actions) <= 0)
    assert actions.sum() < problem.pays_for_its_wait
    assert problem.rules[-1].money_per_day == pytest.approx(problem.best_money_per_day, rel=0, abs=1e-6)


def test_thresholds_of_the_call_centre() -> None:
    problem = CallCentre()
    assert problem.waits_at_most(2.0) == 6
    assert problem.waits_at_most(0.0) == 4
    assert problem.pays_for_its_wait == 16  # 6 € pay for 12 minutes, in which 12 talks end
    assert CallCentre(waiting_cost=0.0).pays_for_its_wait == 20
    with pytest.raises(InvalidArgumentError, match="most"):
        problem.threshold(21)


# ---------------------------------------------------------------------- stockroom


@pytest.mark.parametrize(
    ("lead_days", "penalty", "published"), [(1, 4, 4.04), (2, 4, 4.40), (1, 9, 5.44), (2, 9, 6.09)]
)
def test_lost_sales_with_lead_time_as_published(lead_days: int, penalty: int, published: float) -> None:
    """Zipkin, Old and new methods for lost-sales inventory systems, Operations Research 56 (2008), Poisson demand of
    mean 5, holding cost 1: the optimal average cost. Here the margin is the penalty, and margin · demand less profit is
    the cost.
    """
    problem = Stockroom(
        mean_demand=5.0, lead_days=lead_days, case_size=1, capacity=24, margin=penalty, order_cost=0.0, holding_cost=1.0
    )
    assert penalty * 5.0 - problem.best_money_per_day == pytest.approx(published, rel=0, abs=0.00501)


def test_the_textbook_rule() -> None:
    # 3 days of demand: 6 ± 2.449; EOQ sqrt(2·2·30/7.5) = 4, 2 days; 30/(30+15) = 2/3, z = 0.4307: s = 7, S = 11
    assert Stockroom().textbook == (7, 11)
    assert Stockroom(holding_cost=0.0).textbook == (8, 12)


def test_the_best_rule_of_its_kind_is_better_than_the_textbook() -> None:
    problem = Stockroom()
    textbook, best, full = (rule.money_per_day for rule in problem.rules)
    assert full < textbook < best < problem.best_money_per_day
    s, level = problem.best_order_up_to
    for t, up_to in [(s - 1, level), (s + 1, level), (s, level - 1), (s, level + 1)]:
        assert problem.money_per_day(problem.order_up_to(t, up_to)) <= best


def test_an_order_never_exceeds_the_room() -> None:
    problem = Stockroom()
    for s in range(problem.capacity + 1):
        for level in (1, 6, problem.capacity):
            actions = problem.order_up_to(s, level)
            assert problem.model.allowed[np.arange(actions.size), actions].all()


# ---------------------------------------------------------------------- maintenance


@pytest.mark.parametrize("days", [1, 2, 17, 40])
def test_a_fixed_interval_by_renewal_and_by_evaluation(days: int) -> None:
    problem = Maintenance()
    assert problem.every(days) == pytest.approx(problem.every_by_evaluation(days), rel=1e-10, abs=1e-8)


def test_the_best_interval_is_the_best() -> None:
    problem = Maintenance()
    best = problem.best_interval
    assert all(problem.every(best) >= problem.every(days) for days in range(1, 400))
    assert problem.every(2000) == pytest.approx(problem.rules[1].money_per_day, rel=1e-9, abs=0)  # never


def test_a_control_limit_is_optimal() -> None:
    # Derman 1963: the hazard and the scrap grow with wear
    problem = Maintenance()
    actions = problem.optimum.actions
    assert actions is not None
    assert np.all(np.diff(actions) >= 0)
    limits = [problem.money_per_day(problem.control_limit(w)) for w in range(1, problem.n_levels + 1)]
    assert max(limits) == pytest.approx(problem.best_money_per_day, rel=0, abs=1e-6)


def test_a_machine_with_two_levels_in_closed_form() -> None:
    # it never breaks; run at level 0 brings 1000, at level 1 (reached with q = 1 - exp(-1/6) a day) 700; service 800
    problem = Maintenance(n_levels=2, breakdown_rate=0.0, scrap_cost=300.0)
    q = 1.0 - math.exp(-1.0 / 6.0)
    serviced = (1000.0 / q - 800.0) / (1.0 / q + 1.0)
    assert problem.best_money_per_day == pytest.approx(max(serviced, 700.0), rel=0, abs=1e-5)


# ---------------------------------------------------------------------- two servers


def test_the_shortest_queue_is_optimal_for_equal_servers() -> None:
    # Winston 1977
    problem = TwoServers(fast_per_hour=7.0, slow_per_hour=7.0, courier_cost=30.0)
    assert problem.rules[0].money_per_day == pytest.approx(problem.best_money_per_day, rel=0, abs=1e-5)
    assert problem.rules[1].money_per_day == pytest.approx(problem.best_money_per_day, rel=0, abs=1e-5)


def test_one_place_each_is_erlangs_loss() -> None:
    problem = TwoServers(fast_per_hour=5.0, slow_per_hour=5.0, orders_per_hour=8.0, shelf=1, courier_cost=40.0)
    x = 8.0 / 5.0
    loss = (x * x / 2) / (1 + x + x * x / 2)
    hourly = problem.waiting_cost * x * (1 - loss) + 40.0 * 8.0 * loss
    assert problem.best_money_per_day == pytest.approx(-10 * hourly, rel=0, abs=1e-5)


def test_all_to_the_fast_line_is_one_queue() -> None:
    problem = TwoServers()
    x, K = 10.0 / 12.0, problem.shelf
    share = x ** np.arange(K + 1) / (x ** np.arange(K + 1)).sum()
    hourly = problem.waiting_cost * float(share @ np.arange(K + 1)) + 12.0 * 10.0 * float(share[-1])
    assert problem.rules[2].money_per_day == pytest.approx(-10 * hourly, rel=1e-9, abs=0)


def test_the_timesheets_say_what_c_takes_from_them() -> None:
    problem = TwoServers()
    for policy in (problem.join_the_shortest, problem.optimum):
        fractions = gf.evaluate(problem.model, policy).stationary.reshape(problem.shelf + 1, problem.shelf + 1)
        assert fractions[0].sum() >= problem.idle_share  # the fast line has nothing to do
        assert fractions[:, 0].sum() >= problem.idle_share
