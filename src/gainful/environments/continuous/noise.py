"""Random numbers from addressed draws, as pieces of kernels: one draw each, by the inverse distribution function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gainful._compiled import inlined

_UNIT = 2.0**-52
# numerators and denominators, lowest power first
_A = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
_B = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
_C = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
_D = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
_E = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
_F = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)


@inlined
def inner_uniform(bits: Any) -> float:
    """A number strictly between 0 and 1, symmetric about ½: (k + ½)·2⁻⁵² with k the high 52 bits.

    With 53 bits the greatest k + ½ would round up, and the number to 1.
    """
    value: float = (np.float64(bits >> np.uint64(12)) + 0.5) * _UNIT
    return value


@inlined
def _ratio(p: Any, q: Any, x: float) -> float:
    top = ((((((p[7] * x + p[6]) * x + p[5]) * x + p[4]) * x + p[3]) * x + p[2]) * x + p[1]) * x + p[0]
    below = ((((((q[7] * x + q[6]) * x + q[5]) * x + q[4]) * x + q[3]) * x + q[2]) * x + q[1]) * x + q[0]
    value: float = top / below
    return value


@inlined
def normal_quantile(u: float) -> float:
    """The standard normal quantile of u in (0, 1), to about 16 digits: Wichura's AS 241 (Applied Statistics 37, 1988).

    In the middle 85 % it is a quotient of polynomials; only the tails take a logarithm and a root.
    """
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(_A, _B, 0.180625 - q * q)
    tail = min(u, 1.0 - u)
    r = math.sqrt(-math.log(tail))
    if r <= 5.0:
        z = _ratio(_C, _D, r - 1.6)
    else:
        z = _ratio(_E, _F, r - 5.0)
    return -z if q < 0.0 else z


@inlined
def normal(bits: Any) -> float:
    """A standard normal number from one draw."""
    return normal_quantile(inner_uniform(bits))


@inlined
def exponential(bits: Any) -> float:
    """An exponential number of mean 1 from one draw."""
    return -math.log(inner_uniform(bits))


@inlined
def clip_unit(x: float) -> float:
    """The number of [0, 1] nearest to x."""
    return min(max(x, 0.0), 1.0)
