from __future__ import annotations

import numpy as np
import pytest

from gainful.errors import InvalidArgumentError
from gainful.rng import Role, draws, planning_generator, stream_key

MASK = 2**64 - 1


def reference(key: int, n: int) -> int:
    """SplitMix64's output function on key + n·γ, in plain integers."""
    z = (key + n * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def drawn(key: int, first: int, n: int) -> np.ndarray:
    out = np.empty(n, dtype=np.uint64)
    draws(np.uint64(key), np.uint64(first), out)
    return out


def test_draws_are_those_of_splitmix64() -> None:
    assert int(drawn(0, 1, 1)[0]) == 0xE220A8397B1DCDAF  # the published first output for seed 0
    key = int(stream_key(7, Role.ENVIRONMENT))
    assert [int(x) for x in drawn(key, 10**12, 50)] == [reference(key, 10**12 + i) for i in range(50)]


def test_draws_are_addressed_not_advanced() -> None:
    key = int(stream_key(3, Role.ACTIONS))
    assert np.array_equal(drawn(key, 0, 100)[40:60], drawn(key, 40, 20))


def test_streams_of_one_seed_differ_by_role_and_repeat_by_seed() -> None:
    keys = {int(stream_key(seed, role)) for seed in range(50) for role in Role}
    assert len(keys) == 50 * len(Role)
    assert stream_key(5, Role.ACTIONS) == stream_key(5, Role.ACTIONS)
    assert planning_generator(1, 2).random() == planning_generator(1, 2).random()
    assert planning_generator(1, 2).random() != planning_generator(1, 3).random()


def test_the_bits_look_random() -> None:
    # 64 sample means of 10^5 fair bits: each has standard deviation 0.5/sqrt(10^5) = 0.00158; 5 of those is 0.0079
    bits = drawn(int(stream_key(0, Role.ENVIRONMENT)), 0, 100_000)
    for i in range(64):
        assert abs(float(((bits >> np.uint64(i)) & np.uint64(1)).mean()) - 0.5) < 0.0079


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(InvalidArgumentError, match="seed is"):
        stream_key(seed, Role.ACTIONS)  # type: ignore[arg-type]
