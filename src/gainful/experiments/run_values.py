"""The values of runs as arrays, the arguments of intervals over them, and how their numbers are written."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError
from gainful.number_text import four_digits

Floats = NDArray[np.float64]


def as_runs(values: Any, name: str = "runs") -> Floats:
    """The values as float64, runs on axis 0: at least one, and none infinite."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" and array.size:
        raise InvalidArgumentError(
            name, values, "(n, ...)", problem=f"{name} are {type(values).__name__} of unequal lengths or not numbers"
        )
    if array.ndim == 0 or len(array) == 0:
        raise InvalidArgumentError(
            name, array.shape, "(n, ...) with at least one run", problem=f"{name} have shape {array.shape}"
        )
    array = array.astype(np.float64, copy=False)
    if np.isinf(array).any():
        raise InvalidArgumentError(name, values, "finite numbers or NaN", problem=f"{name} have infinite values")
    return array


def check_confidence(confidence: float) -> None:
    """Raise InvalidArgumentError unless 0 < confidence < 1."""
    if not (isinstance(confidence, Real) and 0.0 < confidence < 1.0):
        raise InvalidArgumentError("confidence", confidence, "a number between 0 and 1")


def check_interval(confidence: float, resamples: int, seed: int) -> None:
    """Raise InvalidArgumentError unless these can make an interval."""
    check_confidence(confidence)
    for name, number, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
            raise InvalidArgumentError(name, number, f"an integer of at least {least}")


def format_number(x: float) -> str:
    """A number with four digits, or with thousands separators if it is large."""
    return "unknown" if math.isnan(x) else four_digits(x)


def format_level(confidence: float) -> str:
    """A confidence in percent."""
    return f"{100 * confidence:.4g} %"


def format_ends(low: float, high: float) -> str:
    """The ends of an interval in brackets."""
    return "[no interval]" if math.isnan(low) or math.isnan(high) else f"[{format_number(low)}, {format_number(high)}]"
