"""Randomness that is addressed, not advanced: draw number n of stream `key` is a function of (key, n).

A run that is stepped, compiled, interleaved with others or resumed reads the same numbers, because nothing has a state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

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
    z = key + n * GAMMA
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
