import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import gainful as gf
from gainful.agents import registry as agents
from gainful.agents.ucrl2 import UCRL2
from gainful.arguments import AddedLater, DefaultWas
from gainful.environments import registry as environments
from gainful.errors import InvalidArgumentError, UnknownAgentError, UnknownEnvironmentError
from gainful.experiments.agent_factory import AgentFactory
from gainful.experiments.configuration import RESULTS_VERSION, Configuration, checkpoint_steps, hash_of
from gainful.experiments.parameters import (
    NOT_SETTABLE,
    PLAIN_VALUE,
    agent_parameters,
    parse_bins,
    parse_horizon,
    parse_span,
    parse_steps,
)
from gainful.experiments.spec import read_spec
from tests import bits

ONE = Configuration(
    "riverswim", {"n_states": 6}, "scal-plus", {"bonus_scale": 0.1, "span": "auto"}, 1000, (10, 100, 1000), 3
)


def changed(**fields: Any) -> Configuration:
    return dataclasses.replace(ONE, **fields)


def test_the_identity_of_one_configuration_is_pinned() -> None:
    # changes only where a default changes, or a parameter is added without AddedLater: every stored sweep notices
    assert ONE.canonical() == {
        "environment": "riverswim",
        "environment_parameters": {"n_states": 6, "reward_law": "deterministic"},
        "agent": "scal-plus",
        "agent_parameters": {
            "span": "auto",
            "delta": 0.05,
            "bonus": "appendix",
            "bonus_scale": 0.1,
            "mixture": "copy",
            "replanning": None,
        },
        "horizon": 1000,
        "checkpoints": [10, 100, 1000],
        "seed": 3,
    }
    assert (ONE.key, ONE.run_id) == ("f9827bc5662e1b2ebe4f", "31b729b463a7cd3f859e")


REQUIRED: dict[str, dict[str, Any]] = {
    "mbie-eb": {"discount": 0.9, "m": 100},
    "ucbvi": {"episode_length": 10},
    "tucrl": {"bounds": "ucrl2b"},  # what it was before it had bounds
    "psrl": {"transition_prior": 1, "sampler": "numpy"},  # its defaults in version 1
}


@pytest.mark.parametrize(
    ("environment", "agent", "run_id"),
    [
        ("garnet", "psrl", "5ab1b86989d3737f4f41"),
        ("access-control-queue", "psrl", "1d8e05cd40b0527e815e"),
        ("frozen-lake", "psrl", "2e75aa9ba953392039e0"),
        ("lqg", "psrl", "e74a69aaeb686a38f65d"),
        ("mountain-car", "psrl", "47ae121da37f32e820fb"),
        ("riverswim", "scal-plus", "ec61c4f750e88e5dd7e8"),
        ("riverswim", "optimistic-q", "d3178986a0d77f88ea7b"),
        ("riverswim", "epsilon-greedy-q", "8d822b891017fed98ca7"),
        ("riverswim", "fixed", "6bb9209e60a2fb7214e0"),
        ("riverswim", "mbie-eb", "f69b1491a5730464da32"),
        ("riverswim", "opt-psrl", "22a48c14581e5e997140"),
        ("riverswim", "psrl", "1f51b24722a9133fe68a"),
        ("riverswim", "ucbvi", "98ce0af9f7e9214a1e54"),
        ("riverswim", "kl-ucrl", "9e362068b3de1e0e3163"),
        ("riverswim", "scal", "d09ea099bc9f4e994414"),
        ("riverswim", "tucrl", "b3fff3fda6cad6cacd2d"),
        ("riverswim", "ucrl2", "10a14023027556b9e979"),
        ("riverswim", "ucrl2b", "a16da39e8cd91a56d7f7"),
        ("lqg", "scal-plus", "89c9f21f1e173da7d6f8"),
        ("lqg", "c-scal-plus", "34bb19d3461c1b946360"),
        ("lqg", "uccrl", "ab46ab02428e6fe8dc75"),
    ],
)
def test_runs_stored_by_version_1_keep_their_ids(environment: str, agent: str, run_id: str) -> None:
    parameters = REQUIRED.get(agent, {})
    assert Configuration(environment, {}, agent, parameters, 1000, (10, 100, 1000), 0).run_id == run_id


def test_the_runs_of_a_spec_of_version_1_keep_their_ids() -> None:
    asked = read_spec(bits.V1 / bits.QUICKSTART).configurations()
    first, last = asked[0], asked[-1].earlier_meanings()[0]  # of PSRL, whose defaults have changed
    assert (len(asked), first.run_id, last.run_id) == (50, "7c48abf88e2a11966c10", "0126603ba76328c9788f")
    assert asked[-1].run_id != last.run_id


class Patient(UCRL2):
    """An agent whose second version has three parameters more than its first, and another default of the fourth."""

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Annotated[Literal["doubling", "fixed"], AddedLater("doubling")] = "doubling",
        lengths: Annotated[Sequence[float], AddedLater((1.0, 2.0))] = (1.0, 2.0),
        sets: Annotated[str, AddedLater("old")] = "new",
        prior: Annotated[float | None, DefaultWas(1.0)] = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        self.told = episodes, lengths, sets, prior


FIRST_VERSION = {"delta": 0.05, "prior": 1.0}
"""The canonical parameters of that agent before it had the others."""
AS_BEFORE: dict[str, Any] = {"sets": "old", "prior": 1}
"""What a spec must write for the runs of the first version."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Configuration]:
    monkeypatch.setitem(agents.AGENTS, "patient", (__name__, "Patient"))
    return lambda **parameters: changed(agent="patient", agent_parameters=parameters)


@pytest.mark.parametrize("given", [{}, {"episodes": "doubling"}, {"lengths": [1, 2]}, {"lengths": [1.0, 2.0]}])
def test_a_parameter_added_later_at_its_old_value_keeps_the_run_id(
    patient: Callable[..., Configuration], given: dict[str, Any]
) -> None:
    stored = {**patient().canonical(), "agent_parameters": FIRST_VERSION}
    asked = patient(**given, **AS_BEFORE)
    assert asked.canonical() == stored
    assert asked.key == hash_of(stored)
    assert asked.run_id == hash_of({**stored, "results_version": RESULTS_VERSION})


@pytest.mark.parametrize("given", [{"episodes": "fixed"}, {"lengths": [1, 3]}])
def test_a_parameter_added_later_at_another_value_is_another_run(
    patient: Callable[..., Configuration], given: dict[str, Any]
) -> None:
    asked = patient(**given, **AS_BEFORE)
    assert asked.run_id != patient(**AS_BEFORE).run_id
    assert asked.canonical()["agent_parameters"] == {**FIRST_VERSION, **given}


def test_a_default_that_is_not_the_old_value_is_another_run_whose_earlier_meanings_are_known(
    patient: Callable[..., Configuration],
) -> None:
    assert patient().canonical()["agent_parameters"] == {"delta": 0.05, "sets": "new", "prior": None}
    meanings = patient().earlier_meanings()
    given = [one.agent_parameters for one in meanings]
    assert given == [{"sets": "old", "prior": 1.0}, {"sets": "old"}, {"prior": 1.0}]
    assert meanings[0].canonical()["agent_parameters"] == FIRST_VERSION
    assert [one.agent_parameters for one in patient(prior=2).earlier_meanings()] == [{"prior": 2, "sets": "old"}]
    assert patient(**AS_BEFORE).earlier_meanings() == []


def test_a_spec_may_write_a_parameter_added_later(patient: Callable[..., Configuration]) -> None:
    text = "horizon = 1000\nseeds = [3]\ncheckpoints = [10, 100]\n[[environments]]\nname = 'riverswim'\n"
    agent = "[[agents]]\nname = 'patient'\ngrid.episodes = ['doubling', 'fixed']\n"
    spec = read_spec(text + agent)
    assert [one.run_id for one in spec.configurations()] == [patient().run_id, patient(episodes="fixed").run_id]
    assert spec.agent_labels == ["patient, episodes = doubling", "patient, episodes = fixed"]
    river = gf.environments.riverswim()
    given = [one.agent_parameters for one in spec.configurations()]
    made = [AgentFactory.from_parameters("patient", river, parameters, 0, 9, None).make() for parameters in given]
    assert [agent.told[0] for agent in made] == ["doubling", "fixed"]


@pytest.mark.parametrize(
    "fields",
    [
        {"environment_parameters": {}},
        {"environment_parameters": {"n_states": 6.0}},
        {"environment_parameters": {"reward_law": "deterministic", "n_states": 6}},
        {"agent_parameters": {"bonus_scale": 0.1}},
        {"agent_parameters": {"span": "1.0 * auto", "bonus_scale": 1e-1}},
        {"agent_parameters": {"span": "auto", "bonus_scale": 0.1, "delta": 0.05, "replanning": None}},
    ],
)
def test_another_spelling_is_the_same_run(fields: dict[str, Any]) -> None:
    assert changed(**fields).run_id == ONE.run_id
    assert changed(**fields).canonical() == ONE.canonical()


@pytest.mark.parametrize(
    "fields",
    [
        {"environment": "riverswim-maillard"},
        {"environment_parameters": {"n_states": 7}},
        {"environment_parameters": {"reward_law": "bernoulli"}},
        {"agent": "optimistic-q"},
        {"agent_parameters": {"bonus_scale": 0.1, "span": 6.0}},
        {"agent_parameters": {"bonus_scale": 0.1, "span": "0.5*auto"}},
        {"agent_parameters": {"bonus_scale": 0.1 + 1e-17 + 2e-17}},
        {"agent_parameters": {"bonus_scale": 0.1, "delta": 0.1}},
        {"horizon": 1001, "checkpoints": (10, 100, 1001)},
        {"checkpoints": (10, 1000)},
        {"seed": 4},
    ],
)
def test_anything_else_is_another_run(fields: dict[str, Any]) -> None:
    other = changed(**fields)
    assert other.key != ONE.key
    assert other.run_id != ONE.run_id


def test_another_version_is_another_run_of_the_same_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gainful.experiments.configuration.RESULTS_VERSION", 2)
    assert changed().key == ONE.key
    assert changed().run_id != ONE.run_id


def test_a_whole_number_written_as_a_float_is_the_same_and_minus_zero_is_zero() -> None:
    def garnet(**parameters: Any) -> str:
        return changed(environment="garnet", environment_parameters=parameters).key

    assert garnet(n_states=5.0, branching=2) == garnet(branching=2.0, n_states=5)
    assert garnet(reset_probability=-0.0) == garnet(reset_probability=0) == garnet()


def test_lists_of_numbers_compare_as_numbers() -> None:
    def queue(values: list[float]) -> str:
        return changed(environment="access-control-queue", environment_parameters={"priorities": values}).key

    assert queue([1, 2, 4, 8]) == queue([1.0, 2.0, 4.0, 8.0])
    assert queue([1, 2, 4, 8]) == changed(environment="access-control-queue", environment_parameters={}).key
    assert queue([1, 2, 4, 9]) != queue([1, 2, 4, 8])


def test_what_is_left_to_a_continuous_environment_is_absent() -> None:
    def lqg(agent: str, **parameters: Any) -> Configuration:
        return changed(environment="lqg", environment_parameters={}, agent=agent, agent_parameters=parameters)

    assert "bins" not in lqg("c-scal-plus").canonical()["agent_parameters"]
    assert lqg("c-scal-plus", bins="auto", lipschitz="auto").key == lqg("c-scal-plus").key
    assert lqg("c-scal-plus", bins=20.0).canonical()["agent_parameters"]["bins"] == 20
    assert lqg("ucrl2b", bins=20).key != lqg("ucrl2b").key
    assert lqg("c-scal-plus", lipschitz=2).key != lqg("c-scal-plus").key


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_two_floats_are_one_run_exactly_if_they_are_equal(a: float, b: float) -> None:
    keys = [changed(agent_parameters={"bonus_scale": x}).key for x in (a, b)]
    assert (keys[0] == keys[1]) == (a == b)


def test_json_there_and_back() -> None:
    again = Configuration.from_json(ONE.to_json())
    assert again == ONE
    assert hash(again) == hash(ONE)
    assert Configuration.from_json(ONE.canonical()).run_id == ONE.run_id
    assert Configuration.from_json(json.dumps(dict(reversed(json.loads(ONE.to_json()).items())))).key == ONE.key


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"environment": 1}', ONE.to_json().replace('"seed":3', '"seed":true')]
)
def test_a_damaged_configuration_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Configuration.from_json(text)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**63}, "2\\^63 - 1"),
        ({"horizon": 0}, "horizon is 0"),
        ({"checkpoints": ()}, "expected increasing steps"),
        ({"checkpoints": (10, 10, 1000)}, "expected increasing steps"),
        ({"checkpoints": (10, 100)}, "end at 1000"),
        ({"environment_parameters": {"n_state": 6}}, "did you mean 'n_states'"),
        ({"environment_parameters": {"n_states": 6.5}}, "whole number"),
        ({"environment_parameters": {"n_states": True}}, "n_states is true"),
        ({"agent_parameters": {"bonus_scale": "big"}}, 'bonus_scale is "big"'),
        ({"agent_parameters": {"bonus_scale": float("nan")}}, "not plain JSON"),
        ({"agent_parameters": {"bonus_scale": object()}}, "not plain JSON"),
        ({"agent_parameters": {"bonus": 3}}, 'bonus is 3, expected one of "appendix", "main text"'),
        ({"agent_parameters": {"bonus": "x"}}, 'bonus is "x", expected one of "appendix", "main text"'),
        ({"agent_parameters": {"bins": 3}}, "finitely many states"),
        ({"agent": "c-scal-plus", "agent_parameters": {}}, "is for points"),
        ({"agent": "mbie-eb", "agent_parameters": {"discount": 0.9}}, "m: is missing"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], said: str) -> None:
    configuration = changed(**fields)
    with pytest.raises(InvalidArgumentError, match=said):
        configuration.canonical()


@pytest.mark.parametrize("name", ["n_states", "n_actions", "reward_min", "reward_max", "allowed", "partition", "seed"])
def test_what_the_run_decides_cannot_be_given(name: str) -> None:
    configuration = changed(agent_parameters={name: 1})
    with pytest.raises(InvalidArgumentError, match=f"cannot be given {name}"):
        configuration.canonical()


def test_unknown_names_suggest_the_nearest() -> None:
    agent, environment = changed(agent="scal-pluss"), changed(environment="river-swim")
    with pytest.raises(UnknownAgentError, match="did you mean 'scal-plus'"):
        agent.canonical()
    with pytest.raises(UnknownEnvironmentError, match="did you mean 'riverswim'"):
        environment.canonical()
    for name, said in (("regal", "not implementable"), ("discretized", "tabular agent's")):
        configuration = changed(agent=name)
        with pytest.raises(UnknownAgentError, match=said):
            configuration.canonical()


def test_an_agent_that_can_do_without_a_span_has_none_unless_it_is_given_one() -> None:
    mdp = gf.environments.riverswim(6)
    for agent, told, span, oracle in (
        ("kl-scal-plus", {}, None, False),
        ("kl-scal-plus", {"span": "auto"}, 5.005, True),
        ("kl-scal-plus", {"span": 2.0}, 2.0, False),
        ("scal-plus", {}, 5.005, True),
    ):
        parameters = changed(agent=agent, agent_parameters=told).canonical()["agent_parameters"]
        assert parameters["span"] == told.get("span", None if agent == "kl-scal-plus" else "auto")
        factory = AgentFactory.from_parameters(agent, mdp, parameters, 0, 100, own_span=5.0)
        made = factory.make()
        assert made.span == (None if span is None else pytest.approx(span, rel=1e-12, abs=0))
        assert factory.span_is_oracle is oracle


@pytest.mark.parametrize("agent", [*agents.names(), "c-scal-plus", "c-kl-scal-plus", "uccrl"])
def test_every_agent_has_a_canonical_form(agent: str) -> None:
    needs = REQUIRED.get(agent, {})
    found = changed(environment="lqg", environment_parameters={}, agent=agent, agent_parameters=needs).canonical()
    assert json.loads(json.dumps(found)) == found
    assert not set(found["agent_parameters"]) & set(NOT_SETTABLE)
    for name, parameter in agent_parameters(agent, True).items():
        assert parameter.expected != PLAIN_VALUE.expected or name == "policy", f"{agent} {name}: its type is not known"


@pytest.mark.parametrize("environment", [*environments.names(), *environments.continuous_names()])
def test_every_environment_has_a_canonical_form_that_makes_it(environment: str) -> None:
    found = changed(environment=environment, environment_parameters={}, agent="psrl", agent_parameters={}).canonical()
    parameters = json.loads(json.dumps(found))["environment_parameters"]
    make = environments.make if environment in environments.names() else environments.make_continuous
    assert make(environment, **parameters).name


@pytest.mark.parametrize("value", ["", "2.5", "*auto", "auto*2", "-1*auto", "0*auto", "nan*auto", "inf*auto", 0, -1.0])
def test_no_span(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="span is"):
        parse_span(value)


@pytest.mark.parametrize("value", [True, None, [1], float("nan"), float("inf"), 10**400])
def test_no_number_at_all(value: Any) -> None:
    for parse in (parse_span, parse_steps, parse_bins, lambda v: parse_horizon(v, 5)):
        with pytest.raises(InvalidArgumentError):
            parse(value)


def test_single_values() -> None:
    assert parse_span(" 0.5 * auto").resolve(lambda: 4.0) == 2.0
    assert parse_span(3).resolve(lambda: 1 / 0) == 3.0
    assert parse_span("auto").is_oracle
    assert not parse_span(3).is_oracle
    assert parse_horizon("auto", 5) == 5
    assert parse_horizon(1e3, 5) == 1000
    assert parse_steps(1e18) == 10**18
    assert parse_bins("auto") is None
    assert checkpoint_steps([5, 2, 2], 10) == (2, 5, 10)
    assert checkpoint_steps(1, 1000) == (1, 10, 100, 1000)
