"""Checks of arrays that come from a file, before an agent takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_saved(
    arrays: dict[str, NDArray[Any]],
    name: str,
    like: NDArray[Any],
    *,
    low: Any = None,
    high: Any = None,
    allowed: NDArray[np.bool_] | None = None,
) -> None:
    """Raise a ValueError unless an array has shape and dtype of `like`, is finite, and lies in low … high.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The arrays of a file.
    name : str
        The one to check.
    like : ndarray
        An array of the right shape and dtype.
    low, high : float or ndarray, optional
        The least and the largest value, both allowed.
    allowed : ndarray of bool, optional
        The pairs that exist; at others -inf may stand in place of a number.

    Raises
    ------
    ValueError
        If the array does not fit.
    KeyError
        If there is no such array.

    Examples
    --------
    >>> check_saved({"block": np.array([7])}, "block", np.zeros(1, dtype=np.int64), low=0, high=5)
    Traceback (most recent call last):
    ValueError: array 'block' holds 7, which is out of range
    """
    found = arrays[name]
    if found.shape != like.shape or found.dtype != like.dtype:
        raise ValueError(f"array '{name}' has shape {found.shape} and dtype {found.dtype}")
    if allowed is not None:
        found = np.where(~allowed.reshape(found.shape) & np.isneginf(found), 0.0, found)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"array '{name}' holds a number that is not finite")
    for wrong in (low is not None and found < low, high is not None and found > high):
        if np.any(wrong):
            raise ValueError(f"array '{name}' holds {found[wrong].ravel()[0]}, which is out of range")
