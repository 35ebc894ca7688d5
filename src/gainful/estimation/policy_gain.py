"""The gain of one policy in many models that have the same transitions with other probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP
from gainful.mdp.structure import recurrent_classes
from gainful.planning.evaluation import chain_of, evaluate_chain

DENSE_CLASS = 300
"""States of a class up to which its gain is found by one dense system."""


class PolicyGain:
    """A function from a model to the gain of a checked policy in it, from the start, in the user's units.

    All models have the transitions of the first one, so its classes are theirs. If there is one small class, its gain
    is the first unknown of (I - P) h + g = r with h = 0 in its first state.
    """

    def __init__(self, mdp: MDP, policy: NDArray[np.int64] | NDArray[np.float64]) -> None:
        self.policy = policy
        classes, _ = recurrent_classes(chain_of(mdp, policy)[0])
        self.only = classes[0] if len(classes) == 1 and classes[0].size <= DENSE_CLASS else None

    def __call__(self, mdp: MDP) -> float:
        """The gain in one model."""
        P, r = chain_of(mdp, self.policy)
        if self.only is None:
            return mdp.units.gain(float(mdp.start @ evaluate_chain(P, r, stationary=False).gain))
        inside = P[self.only].toarray()[:, self.only]
        system = np.eye(self.only.size) - inside
        system[:, 0] = 1.0
        return mdp.units.gain(float(np.linalg.solve(system, r[self.only])[0]))
