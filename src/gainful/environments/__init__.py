"""Named decision processes: functions that return an MDP, and the same by name (`names`, `make`, `describe`).

Importing this module makes them Gymnasium environments too (see `gainful.environments.gymnasium_ids`).
"""

from gainful.environments.access_control_queue import access_control_queue
from gainful.environments.admission_control import admission_control
from gainful.environments.four_rooms import four_rooms
from gainful.environments.frozen_lake import frozen_lake
from gainful.environments.garnet import garnet
from gainful.environments.gymnasium_ids import gymnasium_id, register_all, register_with_gymnasium
from gainful.environments.hard_family import hard_family
from gainful.environments.inventory_control import inventory_control
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.registry import Description, describe, make, names
from gainful.environments.riverswim import riverswim
from gainful.environments.riverswim_ergodic import riverswim_ergodic
from gainful.environments.riverswim_maillard import riverswim_maillard
from gainful.environments.server_routing import server_routing
from gainful.environments.six_arms import six_arms
from gainful.environments.taxi import taxi
from gainful.environments.toy3d import toy3d
from gainful.environments.two_state_toy import two_state_toy
from gainful.environments.weakly_communicating_toy import weakly_communicating_toy

__all__ = [
    "Description",
    "access_control_queue",
    "admission_control",
    "describe",
    "four_rooms",
    "frozen_lake",
    "garnet",
    "gymnasium_id",
    "hard_family",
    "inventory_control",
    "machine_replacement",
    "make",
    "names",
    "register_all",
    "riverswim",
    "riverswim_ergodic",
    "riverswim_maillard",
    "server_routing",
    "six_arms",
    "taxi",
    "toy3d",
    "two_state_toy",
    "weakly_communicating_toy",
]

register_with_gymnasium()
