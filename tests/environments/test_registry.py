"""Environments by name."""

from __future__ import annotations

import pytest

import gainful as gf
from gainful.environments import describe, make, names
from gainful.errors import GainfulError, InvalidArgumentError, UnknownEnvironmentError


def test_names_are_kebab_case_and_sorted() -> None:
    assert names() == sorted(names())
    assert names() == [
        "access-control-queue",
        "admission-control",
        "four-rooms",
        "frozen-lake",
        "garnet",
        "hard-family",
        "inventory-control",
        "machine-replacement",
        "riverswim",
        "riverswim-bourel",
        "riverswim-ergodic",
        "riverswim-maillard",
        "server-routing",
        "six-arms",
        "taxi",
        "toy3d",
        "two-state-toy",
        "weakly-communicating-toy",
    ]


@pytest.mark.parametrize("name", names())
def test_every_name_is_a_function_of_the_module_and_described(name: str) -> None:
    factory = getattr(gf.environments, name.replace("-", "_"))
    assert factory() == make(name)
    about = describe(name)
    assert about.name == name
    assert about.summary.endswith(".")
    assert str(about).startswith(f"{name}(")
    assert make(name, **about.parameters) == make(name)


def test_parameters_reach_the_factory() -> None:
    assert make("riverswim", n_states=9).n_states == 9
    assert describe("toy3d").parameters == {"delta": 0.005}
    assert describe("six-arms").parameters == {}


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownEnvironmentError, match="'river-swim'; did you mean 'riverswim'"):
        make("river-swim")


def test_a_name_like_no_other_lists_them_all() -> None:
    with pytest.raises(UnknownEnvironmentError, match="known: access-control-queue, admission-control"):
        describe("zzz")


def test_an_unknown_parameter_names_those_that_exist() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"riverswim has no parameter 'n_stats'; did you mean 'n_states'.* it has n_states=6"
    ):
        make("riverswim", n_stats=3)


def test_a_parameter_of_an_environment_without_any() -> None:
    with pytest.raises(InvalidArgumentError, match="six-arms has no parameter 'n_states'; it has none"):
        make("six-arms", n_states=3)


def test_an_ill_typed_parameter_names_place_value_and_the_others() -> None:
    with pytest.raises(InvalidArgumentError, match=r"toy3d: delta is 'small', .*its parameters are delta=0.005"):
        make("toy3d", delta="small")


def test_errors_share_the_base() -> None:
    with pytest.raises(GainfulError):
        make("nothing-like-it", x=1)
