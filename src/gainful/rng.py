"""Randomness that is addressed, not advanced: draw number n of stream `key` is a function of (key, n).

A run that is stepped, compiled, interleaved with others or resumed reads the same numbers, because nothing has a state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.errors import InvalidArgumentError

Key: TypeAlias = Any  # np.uint64

GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""The odd constant between two inputs of the mixer: 2⁶⁴ over the golden ratio."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


class Role(IntEnum):
    """What a stream is for; streams of one seed with different roles are independent."""

    ENVIRONMENT = 0
    ACTIONS = 1
    PLANNING = 2
    START = 3


def stream_key(seed: int, role: Role) -> np.uint64:
    """The key of the stream that `seed` gives to `role`.

    >>> int(stream_key(1, Role.ENVIRONMENT)) == int(stream_key(1, Role.ACTIONS))
    False
    """
    if not isinstance(seed, (int, np.integer)) or seed < 0:  # type: ignore[redundant-expr]
        raise InvalidArgumentError("seed", seed, "an integer of at least 0")
    return np.uint64(np.random.SeedSequence(int(seed), spawn_key=(int(role),)).generate_state(1, np.uint64)[0])


_POOL, _MULT_A, _MULT_B, _INIT_A, _INIT_B = 4, 0x931E8875, 0x58F38DED, 0x43B0D7E5, 0x8B51F9DD
_MIX_LEFT, _MIX_RIGHT, _WORD = 0xCA01F9DD, 0x4973F715, 0xFFFFFFFF


def stream_keys(seeds: NDArray[np.uint64], role: Role) -> NDArray[np.uint64]:
    """The keys of the streams that many seeds give to one role: `stream_key` of each, at once.

    The hash of NumPy's SeedSequence (O'Neill 2015, seed_seq_fe128), column by column.

    >>> keys = stream_keys(np.arange(3, dtype=np.uint64), Role.START)
    >>> [int(k) for k in keys] == [int(stream_key(seed, Role.START)) for seed in range(3)]
    True
    """
    words = [seeds & np.uint64(_WORD), seeds >> np.uint64(32), np.zeros_like(seeds), np.zeros_like(seeds)]
    entropy = [word.astype(np.uint32) for word in (*words, np.full_like(seeds, int(role)))]
    multiplier = _INIT_A

    def hashed(value: NDArray[np.uint32]) -> NDArray[np.uint32]:
        nonlocal multiplier
        value = value ^ np.uint32(multiplier)
        multiplier = multiplier * _MULT_A & _WORD
        value = value * np.uint32(multiplier)
        return value ^ (value >> np.uint32(16))

    def mixed(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> NDArray[np.uint32]:
        value: NDArray[np.uint32] = a * np.uint32(_MIX_LEFT) - b * np.uint32(_MIX_RIGHT)
        return value ^ (value >> np.uint32(16))

    pool = [hashed(word) for word in entropy[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for extra in entropy[_POOL:]:
        for target in range(_POOL):
            pool[target] = mixed(pool[target], hashed(extra))
    multiplier, halves = _INIT_B, []
    for word in pool[:2]:
        value = word ^ np.uint32(multiplier)
        multiplier = multiplier * _MULT_B & _WORD
        value = value * np.uint32(multiplier)
        halves.append((value ^ (value >> np.uint32(16))).astype(np.uint64))
    return np.asarray(halves[0] | halves[1] << np.uint64(32))


def planning_generator(seed: int, episode: int) -> np.random.Generator:
    """The generator that plans episode `episode`, for agents that sample models."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(Role.PLANNING, episode))))


def mixed_key(key: np.uint64, number: int) -> np.uint64:
    """The key of stream `number` of those that `key` stands for: its draw of that number.

    >>> int(mixed_key(np.uint64(1), 0)) == int(mixed_key(np.uint64(1), 1))
    False
    """
    found = np.empty(1, dtype=np.uint64)
    draws(key, np.uint64(number), found)
    return np.uint64(found[0])


@inlined
def draw(key: Key, n: Key) -> Key:
    """64 random bits: Stafford's mix 13 of key + n·γ, as in SplittableRandom (Steele, Lea & Flood 2014)."""
    return mix(key + n * GAMMA)


@inlined
def mix(z: Key) -> Key:
    """Stafford's mix 13 of 64 bits; a loop over consecutive draws adds γ to z instead of multiplying."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(bits: Key) -> float:
    """A number in [0, 1) from the high 53 bits of a draw."""
    value: float = np.float64(bits >> np.uint64(11)) * _UNIT
    return value


@kernel
def draws(key: Key, first: Key, out: Any) -> None:
    """out[i] = draw(key, first + i)."""
    for i in range(out.size):
        out[i] = draw(key, first + np.uint64(i))
