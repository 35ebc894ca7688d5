"""Named decision processes: functions that return an MDP, and the same by name (`names`, `make`, `describe`)."""

from gainful.environments.access_control_queue import access_control_queue
from gainful.environments.admission_control import admission_control
from gainful.environments.garnet import garnet
from gainful.environments.inventory_control import inventory_control
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.registry import Description, describe, make, names
from gainful.environments.riverswim import riverswim
from gainful.environments.riverswim_ergodic import riverswim_ergodic
from gainful.environments.riverswim_maillard import riverswim_maillard
from gainful.environments.six_arms import six_arms
from gainful.environments.toy3d import toy3d
from gainful.environments.two_state_toy import two_state_toy

__all__ = [
    "Description",
    "access_control_queue",
    "admission_control",
    "describe",
    "garnet",
    "inventory_control",
    "machine_replacement",
    "make",
    "names",
    "riverswim",
    "riverswim_ergodic",
    "riverswim_maillard",
    "six_arms",
    "toy3d",
    "two_state_toy",
]
