from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gainful as gf
from gainful.agents import registry
from gainful.errors import InvalidArgumentError


def as_published(T: float, S: int, A: int, c: float, gamma: int, r_max: float, delta: float) -> float:
    """The bound in one expression, as docs/regret_bound.md ends."""
    pairs = S * A
    l2, l3 = math.log(2 * pairs * T / delta), math.log(3 * pairs * T / delta)
    m = pairs * math.log2(8 * T / pairs) if pairs <= T else 1 + pairs + pairs * math.log2(1 + T / pairs)
    return (
        (1 + math.sqrt(2))
        * math.sqrt(pairs * T)
        * ((c + 2 * r_max) * math.sqrt(7 * l2) + c * math.sqrt(7 * (gamma - 1) * l3) + r_max)
        + c * (14 * S * l3 + 2) * pairs * (1 + math.log2(1 + T / pairs))
        + (c + r_max) * math.sqrt(5 / 8 * T * math.log(11 * T / delta))
        + c * m
    )


@given(
    st.floats(1, 1e12),
    st.integers(1, 50),
    st.integers(1, 9),
    st.floats(0, 100),
    st.floats(0.1, 50),
    st.floats(1e-6, 0.5),
    st.data(),
)
def test_the_terms_add_up_to_the_bound(
    T: float, S: int, A: int, c: float, r_max: float, delta: float, data: Any
) -> None:
    gamma = data.draw(st.integers(1, S))
    terms = gf.theory.regret_terms(T, S, A, span=c, support=gamma, reward_max=r_max, delta=delta)
    assert terms.total == pytest.approx(as_published(T, S, A, c, gamma, r_max, delta), rel=1e-12, abs=0)
    assert min(terms.to_dict().values()) >= 0.0


def test_it_says_something_on_riverswim_from_about_forty_million_steps_on() -> None:
    gain = 7203 / 16805
    steps = np.logspace(6, 9, 301)
    bounds = np.array([gf.theory.regret_bound(T, 6, 2, span=7.0, support=3) for T in steps])
    first = steps[np.argmax(bounds < steps * gain)]
    assert 3e7 < first < 5e7


def slope(of: Any, low: float, high: float) -> float:
    return math.log(of(high) / of(low)) / math.log(high / low)


def test_it_grows_as_the_theorem_says() -> None:
    """Õ(c·sqrt(ΓSAT)): exponents of the leading term, up to logarithms, where it leads."""
    T = 1e20

    def bound(T: float = T, S: int = 200, A: int = 4, c: float = 10.0, gamma: int = 100) -> float:
        return gf.theory.regret_bound(T, S, A, span=c, support=gamma)

    assert slope(lambda T: bound(T=T), 1e20, 1e22) == pytest.approx(0.5, abs=0.02)
    assert slope(lambda S: bound(S=int(S)), 200, 2000) == pytest.approx(0.5, abs=0.03)
    assert slope(lambda A: bound(A=int(A)), 4, 400) == pytest.approx(0.5, abs=0.03)
    assert slope(lambda c: bound(c=c), 10.0, 1e4) == pytest.approx(1.0, abs=0.03)
    wide = [gf.theory.regret_bound(1e26, 10**4, 4, span=10.0, support=g) for g in (10**2, 10**4)]
    assert math.log(wide[1] / wide[0]) / math.log(100) == pytest.approx(0.5, abs=0.03)


def test_with_the_theorems_cells_it_grows_to_the_power_three_quarters() -> None:
    from gainful.optimism.c_scal_plus import bins_for_horizon, regret_exponent

    def bound(T: float) -> float:
        n = bins_for_horizon(T, 3, 2.0, 1.0)
        return gf.theory.regret_bound(T, n, 3, span=2.0, lipschitz=2.0, holder=1.0, bins=n)

    assert slope(bound, 1e24, 1e28) == pytest.approx(regret_exponent(1.0), abs=0.02)


def test_the_cells_cost_two_holder_terms_a_step() -> None:
    terms = gf.theory.regret_terms(1e6, 20, 3, span=2.0, lipschitz=1.5, holder=0.5, bins=20)
    assert terms.cells == pytest.approx(2 * 3.0 * 1.5 * 20**-0.5 * 1e6, rel=1e-14, abs=0)


def test_the_sums_of_the_proof_are_bounded_as_it_says() -> None:
    """Σ ν/√N⁺ ≤ (1+√2)√N and Σ ν/N⁺ ≤ 1 + log₂ N for all ways of making episodes with ν ≤ max{1, N}."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        N, roots, parts = 0, 0.0, 0.0
        for _ in range(rng.integers(1, 40)):
            limit = max(1, N)
            nu = limit if rng.random() < 0.5 else int(rng.integers(1, limit + 1))
            roots += nu / math.sqrt(limit)
            parts += nu / limit
            N += nu
            assert roots <= (1 + math.sqrt(2)) * math.sqrt(N) + 1e-9
            assert parts <= 1 + math.log2(N) + 1e-9


def test_no_more_episodes_than_the_rule_allows() -> None:
    assert gf.theory.episodes_bound(12, 6, 2) == 12 * 3
    assert gf.theory.episodes_bound(6, 6, 2) == pytest.approx(13 + 12 * math.log2(1.5))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"horizon": 0.5}, "horizon is 0.5"),
        ({"horizon": math.nan}, "horizon is nan"),
        ({"span": -1.0}, "span is -1"),
        ({"support": 7}, "support is 7, expected an integer from 1 to 6"),
        ({"delta": 0.0}, "delta is 0"),
        ({"mixture": "none"}, "mixture is 'none'"),
        ({"lipschitz": 1.0}, "lipschitz, holder and bins belong together"),
        ({"lipschitz": 1.0, "holder": 1.0, "bins": 6, "support": 3}, "for cells the proof takes their number"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, Any], words: str) -> None:
    given = {"horizon": 1e6, "n_states": 6, "n_actions": 2, "span": 7.0, **arguments}
    with pytest.raises(InvalidArgumentError, match=words):
        gf.theory.regret_bound(**given)


def test_the_min_action_mixture_costs_more() -> None:
    plain = gf.theory.regret_terms(1e6, 6, 2, span=7.0)
    mixed = gf.theory.regret_terms(1e6, 6, 2, span=7.0, mixture="min-action")
    m = gf.theory.episodes_bound(1e6, 6, 2)
    more = (21 + 2) * math.sqrt(5 / 8 * (1e6 + m) * math.log(11 * (1e6 + m) / 0.05)) + 24 * m
    assert mixed.total - plain.total == pytest.approx(more, rel=1e-12, abs=0)


def test_the_bound_of_kl_scal_plus_is_the_inequality_as_published() -> None:
    T, S, A, gamma, D, delta = 1e7, 6, 2, 3, 14.7, 0.05
    H, pairs = 2 * D + 1, S * A
    log, Q = math.log(6 * S**2 * A * math.sqrt(T) / delta), 2 * pairs * math.log(T)
    m = pairs * math.log2(4 * T / pairs)
    both = (2 + math.sqrt(2 * gamma)) * math.sqrt(log * Q) + 3 * math.sqrt(log)
    Y = 2 * H * T + 4 * H * pairs + 8 * H * math.sqrt(T) + H**2 * (m + log + 2 * pairs + 8.4 * gamma * log * Q)
    expected = (
        both * math.sqrt(Y)
        + 2 * H * both**2
        + 4.2 * gamma * H * log * Q
        + H * (log + m + pairs)
        + 3 * pairs
        + 4 * math.sqrt(pairs * T * log)
        + 4 * math.sqrt(T)
    )
    given: dict[str, Any] = {"agent": "kl-scal-plus", "support": gamma, "delta": delta}
    assert gf.theory.regret_bound(T, S, A, diameter=D, **given) == pytest.approx(expected, rel=1e-12, abs=0)
    # c and D: the smaller counts; in other units of reward everything is that many times as large
    assert gf.theory.regret_bound(T, S, A, diameter=D, span=1e9, **given) == pytest.approx(expected, rel=1e-12, abs=0)
    assert gf.theory.regret_bound(T, S, A, diameter=D, span=5.0, **given) < 0.6 * expected
    scaled = gf.theory.regret_bound(T, S, A, span=700.0, reward_max=100.0, **given)
    assert scaled == pytest.approx(100 * gf.theory.regret_bound(T, S, A, span=7.0, **given), rel=1e-12, abs=0)


@pytest.mark.parametrize("episodes", ["doubling", "vanishing", "vanishing-sqrt"])
def test_the_bound_of_kl_scal_plus_grows_as_its_theorem_says(episodes: str) -> None:
    def bound(T: float = 1e30, S: int = 4, A: int = 2, gamma: int = 1, H: float = 10.0) -> float:
        given: dict[str, Any] = {"support": gamma, "agent": "kl-scal-plus", "span": H, "episodes": episodes}
        return gf.theory.regret_bound(T, S, A, **given) / math.log(S * T)  # about sqrt(Λ·ln T), and ln T of J

    for name, low, high in (("A", 4, 4000), ("H", 10.0, 1e4)):
        grown = slope(lambda x, name=name: bound(**{name: x}), low, high)
        if episodes == "vanishing-sqrt":
            assert 0.8 < grown < 1.0  # H·SA·√T is not of the theorem's order
        else:
            assert grown == pytest.approx(0.5, rel=0, abs=0.12)
    assert slope(lambda T: bound(T=T), 1e24, 1e34) == pytest.approx(0.5, rel=0, abs=0.02)
    assert bound(gamma=4) > bound()


def test_the_bound_of_c_kl_scal_plus_is_theorem_13() -> None:
    T, K, A, c, L, alpha, delta = 1e6, 20, 3, 2.0, 1.5, 0.5, 0.05
    pairs, log = K * A, math.log(6 * K**2 * A * math.sqrt(T) / delta)
    expected = (
        (c + 2) * L * K**-alpha * T
        + 2
        * math.sqrt(2 * pairs * T)
        * (c * math.sqrt(K * math.log(2) + log) + c * math.sqrt(log / 2) + 1.71 * math.sqrt(log))
        + c * math.sqrt(T * log)
        + 4 * math.sqrt(T)
        + c * pairs * (4 * log * math.log(T) + math.log2(4 * T / pairs) + 1)
        + 3 * pairs
    )
    given: dict[str, Any] = {"agent": "c-kl-scal-plus", "lipschitz": L, "holder": alpha, "bins": K}
    assert gf.theory.regret_bound(T, K, A, span=c, **given) == pytest.approx(expected, rel=1e-12, abs=0)
    double = gf.theory.regret_bound(T, K, A, span=2 * c, reward_max=2.0, **given)
    assert double == pytest.approx(2 * expected, rel=1e-12, abs=0)
    more = gf.theory.regret_bound(T, K, A, span=c, episodes="vanishing-sqrt", **given)
    assert more > expected


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"agent": "kl-scal-plus"}, "diameter"),
        ({"agent": "kl-scal-plus", "span": 1.0, "episodes": "none"}, "episodes"),
        ({"agent": "c-kl-scal-plus"}, "span"),
        ({"agent": "c-kl-scal-plus", "span": 1.0}, "lipschitz"),
        ({"agent": "ucrl2", "span": 1.0}, "agent"),
        ({}, "span"),
    ],
)
def test_what_the_bounds_of_other_agents_need_is_named(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        gf.theory.regret_bound(1e6, 6, 2, **options)
    assert caught.value.name == name


@pytest.mark.parametrize("agent", [*registry.names(), *registry.continuous_names()])
def test_every_agent_has_a_bound_or_a_reason_and_a_place_to_look(agent: str) -> None:
    given = {"span": 2.0, "diameter": 9.0, "lipschitz": 1.0, "holder": 1.0, "bins": 6}
    needs = ("lipschitz", "holder", "bins", "span") if agent.startswith("c-") else ("span", "diameter")
    told: Any = {name: given[name] for name in needs}
    why = gf.theory.why_no_bound(agent)
    if not why:
        assert math.isfinite(gf.theory.regret_bound(1e6, 6, 2, agent=agent, **told))
        return
    with pytest.raises(InvalidArgumentError) as caught:
        gf.theory.regret_bound(1e6, 6, 2, agent=agent, **told)
    assert caught.value.name == "agent"
    assert agent in caught.value.problem
    assert caught.value.hint.removeprefix("see ") in why


def test_the_bounds_of_agents_that_share_a_proof() -> None:
    bound = gf.theory.regret_bound
    told: Any = {"span": 3.0, "support": 3, "delta": 0.1}
    assert bound(1e7, 6, 2, agent="pmevi-dt", **told) == bound(1e7, 6, 2, agent="kl-scal-plus", **told)
    smooth: Any = {"span": 3.0, "lipschitz": 1.0, "holder": 0.5, "bins": 6}
    assert bound(1e7, 6, 2, agent="c-scal-plus", **smooth) == bound(1e7, 6, 2, **smooth)
    ucrl2 = bound(1e7, 6, 2, agent="ucrl2", diameter=14.72, reward_max=2.0)
    assert ucrl2 == pytest.approx(34 * 2 * 14.72 * 6 * math.sqrt(2e7 * math.log(1e7 / 0.05)), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"agent": "pmevi-dt"}, "span"),
        ({"agent": "pmevi-dt", "span": 1.0, "base": "ucrl2b"}, "base"),
        ({"agent": "c-scal-plus", "span": 1.0}, "lipschitz"),
        ({"agent": "ucrl2", "diameter": 9.0, "episodes": "vanishing"}, "episodes"),
        ({"agent": "ucrl4", "span": 1.0}, "agent"),
    ],
)
def test_a_bound_names_what_it_lacks(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        gf.theory.regret_bound(1e6, 6, 2, **options)
    assert caught.value.name == name
