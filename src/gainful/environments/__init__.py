"""Named decision processes: functions that return an MDP, also available by name (`names`, `make`, `describe`).

Those with continuous states return a ContinuousEnvironment (`continuous_names`, `make_continuous`); `oracle_gain`
computes the optimal gain of one. All of them are Gymnasium ids too (see `gainful.gymnasium_ids`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from gainful.environments.access_control_queue import access_control_queue
from gainful.environments.admission_control import admission_control
from gainful.environments.four_rooms import four_rooms
from gainful.environments.frozen_lake import frozen_lake
from gainful.environments.garnet import garnet
from gainful.environments.hard_family import hard_family
from gainful.environments.inventory_control import inventory_control
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.registry import (
    EnvironmentDescription,
    continuous_names,
    describe,
    make,
    make_continuous,
    names,
)
from gainful.environments.riverswim import riverswim
from gainful.environments.riverswim_bourel import riverswim_bourel
from gainful.environments.riverswim_ergodic import riverswim_ergodic
from gainful.environments.riverswim_maillard import riverswim_maillard
from gainful.environments.server_routing import server_routing
from gainful.environments.six_arms import six_arms
from gainful.environments.taxi import taxi
from gainful.environments.toy3d import toy3d
from gainful.environments.two_state_toy import two_state_toy
from gainful.environments.weakly_communicating_toy import weakly_communicating_toy
from gainful.gymnasium_ids import gymnasium_id, register_all

if TYPE_CHECKING:
    from gainful.environments.continuous.continuous_inventory import continuous_inventory
    from gainful.environments.continuous.continuous_riverswim import continuous_riverswim
    from gainful.environments.continuous.environment import ContinuousEnvironment
    from gainful.environments.continuous.lqg import lqg
    from gainful.environments.continuous.mountain_car import mountain_car
    from gainful.environments.continuous.oracle import OracleGain, oracle_gain
    from gainful.environments.continuous.planar_mixture import planar_mixture
    from gainful.environments.continuous.replacement import replacement
    from gainful.environments.continuous.rough_mixture import rough_mixture
    from gainful.environments.continuous.ship_steering import ship_steering

# name -> module of the package `continuous`, loaded on first use because they need compiled code
_HOME = {
    "ContinuousEnvironment": "environment",
    "OracleGain": "oracle",
    "continuous_inventory": "continuous_inventory",
    "continuous_riverswim": "continuous_riverswim",
    "lqg": "lqg",
    "mountain_car": "mountain_car",
    "oracle_gain": "oracle",
    "planar_mixture": "planar_mixture",
    "replacement": "replacement",
    "rough_mixture": "rough_mixture",
    "ship_steering": "ship_steering",
}

__all__ = [
    "ContinuousEnvironment",
    "EnvironmentDescription",
    "OracleGain",
    "access_control_queue",
    "admission_control",
    "continuous_inventory",
    "continuous_names",
    "continuous_riverswim",
    "describe",
    "four_rooms",
    "frozen_lake",
    "garnet",
    "gymnasium_id",
    "hard_family",
    "inventory_control",
    "lqg",
    "machine_replacement",
    "make",
    "make_continuous",
    "mountain_car",
    "names",
    "oracle_gain",
    "planar_mixture",
    "register_all",
    "replacement",
    "riverswim",
    "riverswim_bourel",
    "riverswim_ergodic",
    "riverswim_maillard",
    "rough_mixture",
    "server_routing",
    "ship_steering",
    "six_arms",
    "taxi",
    "toy3d",
    "two_state_toy",
    "weakly_communicating_toy",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gainful.environments' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gainful.environments.continuous.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
