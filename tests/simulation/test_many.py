from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError


def factory(mdp: gf.MDP, scale: float = 0.3) -> Callable[[int], gf.SCALPlus]:
    def make(seed: int) -> gf.SCALPlus:
        return gf.SCALPlus(
            mdp.n_states, mdp.n_actions, span=3.0, reward_min=mdp.reward_min, reward_max=mdp.reward_max,
            allowed=mdp.allowed, bonus_scale=scale, seed=seed,
        )  # fmt: skip

    return make


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["riverswim", "garnet", "machine-replacement"])
def test_each_seed_equals_its_single_run(name: str, threads: int) -> None:
    mdp = gf.environments.garnet(10, 3, 4) if name == "garnet" else gf.environments.registry.make(name)
    make = factory(mdp)
    seeds = [5, 0, 11, 3, 2, 8, 1, 9, 30, 31, 32]
    runs = gf.simulate_many(make, mdp, 700, seeds, threads=threads)
    for seed, run in zip(seeds, runs, strict=True):
        single = gf.simulate(make(seed), mdp, 700, seed=seed)
        assert run.seed == seed
        assert run.final_state == single.final_state
        assert np.array_equal(run.rewards, single.rewards)
        assert np.array_equal(run.pseudo_regret, single.pseudo_regret)
        assert np.array_equal(run.episodes["step"], single.episodes["step"])
        assert np.array_equal(run.episodes["gain"], single.episodes["gain"])


def test_no_seeds_are_no_runs() -> None:
    mdp = gf.environments.riverswim(4)
    assert gf.simulate_many(factory(mdp), mdp, 10, []) == []


def test_a_seed_twice_is_refused() -> None:
    mdp = gf.environments.riverswim(4)
    with pytest.raises(InvalidArgumentError, match="a seed occurs twice"):
        gf.simulate_many(factory(mdp), mdp, 10, [1, 1])


def test_progress_counts_the_steps_of_all_runs() -> None:
    mdp = gf.environments.riverswim(4)
    calls: list[tuple[int, int]] = []
    gf.simulate_many(factory(mdp), mdp, 100, range(3), threads=1, progress=lambda a, b: calls.append((a, b)))
    assert calls[-1] == (300, 300)
