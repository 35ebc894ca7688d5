"""The decision process: model, builders, validation, chain structure, storage."""

from gainful.mdp.model import MDP
from gainful.mdp.units import Units

__all__ = ["MDP", "Units"]
