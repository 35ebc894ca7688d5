"""What a state is described by: one row of numbers for each state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.arguments import number_of
from gainful.errors import InvalidArgumentError


def checked_features(features: ArrayLike) -> NDArray[np.float64]:
    """(S,d) finite numbers; a one-dimensional array is one feature of each state."""
    try:
        table = np.array(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError("features", features, "an array of numbers, one row for each state") from error
    table = table[:, np.newaxis] if table.ndim == 1 else table
    if table.ndim != 2 or not table.size:
        raise InvalidArgumentError(
            "features",
            features,
            "one row of numbers for each state",
            "flatten images and other arrays: features.reshape(n_states, -1)",
            problem=f"features have shape {table.shape}",
        )
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        s, i = map(int, bad[0])
        problem = f"feature {i} of state {s} is {table[s, i]}"
        raise InvalidArgumentError("features", features, "finite numbers", problem=problem)
    return table


def grid_features(shape: Sequence[int], n_states: int) -> NDArray[np.float64]:
    """(S,d) the coordinates of states that are numbered row by row in a grid of this shape.

    >>> grid_features((2, 2), 4).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    sides = tuple(number_of("states", "shape", side) for side in shape)
    if int(np.prod([float(side) for side in sides])) != n_states:
        text = "x".join(map(str, sides))
        problem = f"shape={text} has {int(np.prod([float(side) for side in sides]))} states, and the agent {n_states}"
        raise InvalidArgumentError("counts", text, f"sides whose product is {n_states}", problem=problem)
    return np.stack(np.unravel_index(np.arange(n_states), sides), axis=1).astype(np.float64)
