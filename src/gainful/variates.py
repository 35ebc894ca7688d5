"""Normal, Gamma and Beta variables inside kernels, from draws that are addressed and not advanced (`gainful.rng`).

Every function takes the key of a stream and the number of its next draw, and returns a variable and the number of the
draw after its last one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.rng import Key, draw

LAYERS = 256
"""The layers of equal area into which the normal density is cut."""
TAIL_FROM = 3.6541528853610088
"""Where the lowest layer's tail begins."""
LAYER_AREA = 0.00492867323399
"""The area of each layer under exp(-x²/2)."""


def _layer_edges() -> Any:
    """(LAYERS + 1,) the right ends of the layers, from the lowest up."""
    edges = np.empty(LAYERS + 1)
    edges[0], edges[1], edges[LAYERS] = LAYER_AREA * math.exp(0.5 * TAIL_FROM**2), TAIL_FROM, 0.0
    for i in range(2, LAYERS):
        edges[i] = math.sqrt(-2.0 * math.log(LAYER_AREA / edges[i - 1] + math.exp(-0.5 * edges[i - 1] ** 2)))
    return edges


EDGES = _layer_edges()
INNER = EDGES[1:] / EDGES[:-1]
"""The part of each layer that lies wholly under the density."""


@inlined
def open_uniform(bits: Key) -> float:
    """A number in (0, 1) from the high 53 bits of a draw."""
    value: float = (np.float64(bits >> np.uint64(11)) + 0.5) * 2.0**-53
    return value


@inlined
def normal(key: Key, n: Key) -> tuple[float, Key]:
    """A standard normal variable by the ziggurat (Marsaglia & Tsang 2000, in the form of Doornik 2005)."""
    while True:
        bits = draw(key, n)
        n += np.uint64(1)
        i = np.int64(bits & np.uint64(LAYERS - 1))  # the low bits, which the uniform number does not use
        u = 2.0 * open_uniform(bits) - 1.0
        x = u * EDGES[i]
        if abs(u) < INNER[i]:
            return x, n
        if i == 0:
            while True:
                beyond = math.log(open_uniform(draw(key, n))) / TAIL_FROM
                height = math.log(open_uniform(draw(key, n + np.uint64(1))))
                n += np.uint64(2)
                if -2.0 * height >= beyond * beyond:
                    return (TAIL_FROM - beyond if u > 0.0 else beyond - TAIL_FROM), n
        low = math.exp(-0.5 * (EDGES[i] * EDGES[i] - x * x))
        high = math.exp(-0.5 * (EDGES[i + 1] * EDGES[i + 1] - x * x))
        if high + open_uniform(draw(key, n)) * (low - high) < 1.0:
            return x, n + np.uint64(1)
        n += np.uint64(1)


@inlined
def gamma_from_one(shape: float, key: Key, n: Key) -> tuple[float, Key]:
    """A Gamma(shape) variable for shape ≥ 1 (Marsaglia & Tsang 2000, A simple method for generating them)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, n = normal(key, n)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = open_uniform(draw(key, n))
        n += np.uint64(1)
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return d * v, n


@inlined
def log_gamma(shape: float, key: Key, n: Key) -> tuple[float, Key]:
    """The logarithm of a Gamma(shape) variable: that of Gamma(shape + 1), plus ln U/shape, if shape < 1."""
    if shape >= 1.0:
        g, n = gamma_from_one(shape, key, n)
        return math.log(g), n
    g, n = gamma_from_one(shape + 1.0, key, n)
    return math.log(g) + math.log(open_uniform(draw(key, n))) / shape, n + np.uint64(1)


@inlined
def beta(a: float, b: float, key: Key, n: Key) -> tuple[float, Key]:
    """A Beta(a, b) variable: G_a/(G_a + G_b), by logarithms if a or b is below 1."""
    if a >= 1.0 and b >= 1.0:
        x, n = gamma_from_one(a, key, n)
        y, n = gamma_from_one(b, key, n)
        return x / (x + y), n
    x, n = log_gamma(a, key, n)
    y, n = log_gamma(b, key, n)
    return 1.0 / (1.0 + math.exp(y - x)), n


@inlined
def first_share(a: float, b: float, key: Key, n: Key) -> tuple[float, Key]:
    """A Beta(1 + a, b) variable for small a: 1 - U^{1/b}, which is Beta(1, b), accepted with probability x^a."""
    while True:
        x = 1.0 - open_uniform(draw(key, n)) ** (1.0 / b)
        u = open_uniform(draw(key, n + np.uint64(1)))
        n += np.uint64(2)
        if u <= 1.0 - a * (1.0 / x - 1.0) or u <= x**a:  # the first is a lower bound of x^a
            return x, n
