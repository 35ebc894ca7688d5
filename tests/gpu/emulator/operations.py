"""What instructions compute: numbers of 64 bits in, one of 64 bits out, whatever their type."""

from __future__ import annotations

import math
from enum import IntEnum, auto
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

ALL_BITS = np.uint64(2**64 - 1)
compiled = njit(error_model="numpy")
"""Marks a function of the machine."""
inlined = njit(error_model="numpy", forceinline=True)
"""Marks a small one: a call that hands over groups of arrays counts references to each of them."""


class Op(IntEnum):
    """Operations of the machine; what follows `LOAD` is about more than one thread's registers."""

    MOV = 0
    ADD = auto()
    SUB = auto()
    MUL = auto()
    MAD = auto()
    MUL_HI_S = auto()
    MUL_HI_U = auto()
    MUL_WIDE_S = auto()
    MUL_WIDE_U = auto()
    DIV_S = auto()
    DIV_U = auto()
    REM_S = auto()
    REM_U = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    NOT = auto()
    NOT_PRED = auto()
    SHL = auto()
    SHR_S = auto()
    SHR_U = auto()
    MIN_S = auto()
    MIN_U = auto()
    MAX_S = auto()
    MAX_U = auto()
    ABS_S = auto()
    NEG = auto()
    BFI = auto()
    PACK = auto()
    SELP = auto()
    EXTEND_S = auto()
    EXTEND_U = auto()
    EQ = auto()
    NE = auto()
    LT_S = auto()
    LT_U = auto()
    LE_S = auto()
    LE_U = auto()
    GT_S = auto()
    GT_U = auto()
    GE_S = auto()
    GE_U = auto()
    ADD_F = auto()
    SUB_F = auto()
    MUL_F = auto()
    DIV_F = auto()
    FMA_F = auto()
    RCP_F = auto()
    RCP_APPROX_F = auto()
    SQRT_F = auto()
    ABS_F = auto()
    NEG_F = auto()
    MIN_F = auto()
    MAX_F = auto()
    FLOOR_F = auto()
    SATURATE_F = auto()
    FLOAT_OF_S = auto()
    FLOAT_OF_U = auto()
    S_OF_FLOAT = auto()
    EQ_F = auto()
    NE_F = auto()
    LT_F = auto()
    LE_F = auto()
    GT_F = auto()
    GE_F = auto()
    EQU_F = auto()
    NEU_F = auto()
    LTU_F = auto()
    LEU_F = auto()
    GTU_F = auto()
    GEU_F = auto()
    LOAD = auto()
    STORE = auto()
    ATOMIC_ADD = auto()
    BRANCH = auto()
    RETURN = auto()
    BARRIER = auto()
    BARRIER_AND = auto()
    BARRIER_OR = auto()
    BARRIER_COUNT = auto()
    WARP_BARRIER = auto()
    SHUFFLE_XOR = auto()
    SHUFFLE_INDEX = auto()
    VOTE_ANY = auto()


def _bit_cast(result: Any, source: Any, llvm: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], llvm)

    return result(source), build


@intrinsic
def real(typing: Any, x: Any) -> Any:
    """The float64 that these bits are."""
    return _bit_cast(types.float64, types.uint64, ir.DoubleType())


@intrinsic
def bits(typing: Any, x: Any) -> Any:
    """The bits of a float64."""
    return _bit_cast(types.uint64, types.float64, ir.IntType(64))


@intrinsic
def short_real(typing: Any, x: Any) -> Any:
    """The float32 that these bits are."""
    return _bit_cast(types.float32, types.uint32, ir.FloatType())


@intrinsic
def fused(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """x·y + z, rounded once."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), build


@compiled
def masked(x: Any, width: Any) -> Any:
    """The low `width` bits of x."""
    return x if width == 64 else x & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))


@compiled
def signed(x: Any, width: Any) -> Any:
    """The low `width` bits of x as a signed number."""
    gone = np.uint64(64 - width)
    return np.int64(x << gone) >> np.int64(gone)


@compiled
def integer_result(op: int, width: int, x: Any, y: Any, z: Any) -> Any:
    """What an operation on integers of `width` bits computes; more than those bits may be set."""
    if op == Op.MOV:
        return x
    if op == Op.ADD:
        return x + y
    if op == Op.SUB:
        return x - y
    if op == Op.MUL:
        return x * y
    if op == Op.MAD:
        return x * y + z
    if op == Op.AND:
        return x & y
    if op == Op.OR:
        return x | y
    if op == Op.XOR:
        return x ^ y
    if op == Op.NOT:
        return ~x
    if op == Op.NOT_PRED:
        return x ^ np.uint64(1)
    if op == Op.NEG:
        return np.uint64(0) - x
    if op == Op.SHL:
        return np.uint64(0) if y >= np.uint64(width) else x << y
    if op == Op.SHR_U:
        return np.uint64(0) if y >= np.uint64(width) else x >> y
    if op == Op.SHR_S:
        return np.uint64(signed(x, width) >> np.int64(min(y, np.uint64(63))))
    if op == Op.MUL_WIDE_U:
        return x * y
    if op == Op.MUL_WIDE_S:
        return np.uint64(signed(x, width // 2) * signed(y, width // 2))
    if op == Op.MIN_U:
        return min(x, y)
    if op == Op.MAX_U:
        return max(x, y)
    if op == Op.MIN_S:
        return np.uint64(min(signed(x, width), signed(y, width)))
    if op == Op.MAX_S:
        return np.uint64(max(signed(x, width), signed(y, width)))
    if op == Op.ABS_S:
        return np.uint64(abs(signed(x, width)))
    if op == Op.SELP:
        return x if z != 0 else y
    if op == Op.PACK:
        return x | (y << np.uint64(32))
    if op == Op.BFI:  # z has the position, and the length from bit 8 on
        at, n = z & np.uint64(255), z >> np.uint64(8)
        hole = masked(ALL_BITS, np.int64(n)) << at
        return (y & ~hole) | ((x << at) & hole)
    if op == Op.MUL_HI_U or op == Op.MUL_HI_S:
        return high_half(op, width, x, y)
    return divided(op, width, x, y)


@compiled
def high_word(x: Any, y: Any) -> Any:
    """The high 64 bits of a product of 128."""
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    a, b, c, d = x >> half, x & low, y >> half, y & low
    middle = a * d + ((b * d) >> half)
    return a * c + (middle >> half) + ((b * c + (middle & low)) >> half)


@compiled
def high_half(op: int, width: int, x: Any, y: Any) -> Any:
    """The high half of a product."""
    if width < 64:
        half = np.uint64(width)
        return x * y >> half if op == Op.MUL_HI_U else np.uint64(signed(x, width) * signed(y, width)) >> half
    found = high_word(x, y)
    if op == Op.MUL_HI_S:
        found -= (y if signed(x, 64) < 0 else np.uint64(0)) + (x if signed(y, 64) < 0 else np.uint64(0))
    return found


@compiled
def divided(op: int, width: int, x: Any, y: Any) -> Any:
    """A quotient rounded towards 0, or what is left of x then; all bits if y is 0, as on a GPU."""
    if y == 0:
        return ALL_BITS
    if op == Op.DIV_U:
        return x // y
    if op == Op.REM_U:
        return x % y
    a, b = signed(x, width), signed(y, width)
    size = np.int64(np.uint64(abs(a)) // np.uint64(abs(b)))
    quotient = -size if (a < 0) != (b < 0) else size
    return np.uint64(quotient) if op == Op.DIV_S else np.uint64(a - quotient * b)


@compiled
def compared(op: int, width: int, x: Any, y: Any) -> Any:
    """Whether a comparison of integers holds."""
    if op == Op.EQ:
        return x == y
    if op == Op.NE:
        return x != y
    if op == Op.LT_U:
        return x < y
    if op == Op.LE_U:
        return x <= y
    if op == Op.GT_U:
        return x > y
    if op == Op.GE_U:
        return x >= y
    a, b = signed(x, width), signed(y, width)
    if op == Op.LT_S:
        return a < b
    if op == Op.LE_S:
        return a <= b
    return a > b if op == Op.GT_S else a >= b


@compiled
def real_of(x: Any, width: int) -> float:
    """The number that a register holds, a float64 or a float32."""
    return real(x) if width == 64 else float(short_real(np.uint32(x)))


@compiled
def reals_compared(op: int, width: int, x: Any, y: Any) -> Any:
    """Whether a comparison of real numbers holds; those that end in U also hold where one is not a number."""
    a, b = real_of(x, width), real_of(y, width)
    if op == Op.EQ_F:
        return a == b
    if op == Op.NE_F:
        return a < b or a > b
    if op == Op.LT_F:
        return a < b
    if op == Op.LE_F:
        return a <= b
    if op == Op.GT_F:
        return a > b
    if op == Op.GE_F:
        return a >= b
    if op == Op.EQU_F:
        return not (a < b or a > b)
    if op == Op.NEU_F:
        return a != b
    if op == Op.LTU_F:
        return not a >= b
    if op == Op.LEU_F:
        return not a > b
    return not a <= b if op == Op.GTU_F else not a < b


@compiled
def least_real(a: float, b: float) -> float:
    """The lesser number, the other one if one is not a number, and -0 of two zeros."""
    if a != a or b != b:
        return b if a != a else a
    if a == b:
        return a if math.copysign(1.0, a) < 0.0 else b
    return a if a < b else b


@compiled
def real_result(op: int, width: int, x: Any, y: Any, z: Any) -> Any:
    """The bits of what an operation on real numbers computes; signs alone change for float32 too."""
    if op == Op.ABS_F:
        return masked(x, width - 1)
    if op == Op.NEG_F:
        return x ^ (np.uint64(1) << np.uint64(width - 1))
    a, b = real(x), real(y)
    if op == Op.ADD_F:
        return bits(a + b)
    if op == Op.SUB_F:
        return bits(a - b)
    if op == Op.MUL_F:
        return bits(a * b)
    if op == Op.FMA_F:
        return bits(fused(a, b, real(z)))
    if op == Op.DIV_F:
        return bits(a / b)
    if op == Op.RCP_F:
        return bits(1.0 / a)
    if op == Op.RCP_APPROX_F:  # a GPU gives the high word alone
        return bits(1.0 / a) & ~np.uint64(2**32 - 1)
    if op == Op.SQRT_F:
        return bits(math.sqrt(a))
    if op == Op.MIN_F:
        return bits(least_real(a, b))
    if op == Op.MAX_F:
        return bits(-least_real(-a, -b))
    if op == Op.FLOOR_F:
        return bits(np.floor(a))
    if op == Op.SATURATE_F:
        return bits(0.0 if not a > 0.0 else min(a, 1.0))
    if op == Op.FLOAT_OF_S:
        return bits(float(signed(x, width)))
    return bits(float(x))


@compiled
def integer_of_real(x: Any) -> Any:
    """A float64 rounded towards 0, the nearest int64 if it is beyond all, 0 if it is not a number."""
    a = real(x)
    if a != a:
        return np.uint64(0)
    if a >= 2.0**63:
        return np.uint64(2**63 - 1)
    return np.uint64(2**63) if a <= -(2.0**63) else np.uint64(np.int64(a))


@compiled
def result(op: int, width: int, x: Any, y: Any, z: Any) -> Any:
    """What an operation computes that concerns one thread alone."""
    if op < Op.EXTEND_S:
        return masked(integer_result(op, width, x, y, z), width)
    if op == Op.EXTEND_S:  # z has the width of x
        return masked(np.uint64(signed(x, np.int64(z))), width)
    if op == Op.EXTEND_U:
        return masked(masked(x, np.int64(z)), width)
    if op < Op.ADD_F:
        return np.uint64(compared(op, width, x, y))
    if op == Op.S_OF_FLOAT:
        return integer_of_real(x)
    if op < Op.EQ_F:
        return real_result(op, width, x, y, z)
    return np.uint64(reals_compared(op, width, x, y))
