"""The cost of an audit: the same runs, plain and audited. Prints the ratio of CPU times, best of several."""

from __future__ import annotations

import time
from collections.abc import Callable

import gainful as gf
from gainful.audit.run import audit_run
from gainful.audit.truth import Truth


def best_of(tries: int, job: Callable[[int], object]) -> float:
    """CPU seconds of the quickest; both jobs get the same seeds."""
    times = []
    for seed in range(tries):
        began = time.process_time()
        job(seed)
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    print(f"{'environment':24} {'steps':>12} {'plain, ms':>10} {'audited, ms':>12} {'ratio':>6}")
    for name, mdp, T in (
        ("riverswim-6", gf.environments.riverswim(6), 10**5),
        ("riverswim-6", gf.environments.riverswim(6), 10**6),
        ("riverswim-6", gf.environments.riverswim(6), 10**7),
        ("garnet(200,4,8)", gf.environments.garnet(200, 4, 8), 10**6),
    ):
        truth = Truth.of(mdp)
        c = 1.001 * truth.span

        def agent(seed: int, mdp: gf.MDP = mdp, c: float = c) -> gf.SCALPlus:
            return gf.SCALPlus(mdp.n_states, mdp.n_actions, span=c, reward_max=mdp.reward_max, seed=seed)

        def plain_run(seed: int, mdp: gf.MDP = mdp, T: int = T, truth: Truth = truth) -> object:
            return gf.simulate(agent(seed), mdp, T, seed=seed, gain=truth.gain)

        def audited_run(seed: int, mdp: gf.MDP = mdp, T: int = T, truth: Truth = truth) -> object:
            return audit_run(agent(seed), mdp, T, seed, truth=truth)

        plain_run(0)  # compiles
        audited_run(0)
        plain, audited = best_of(9, plain_run), best_of(9, audited_run)
        print(f"{name:24} {T:12,} {1e3 * plain:10.2f} {1e3 * audited:12.2f} {audited / plain:6.2f}")


if __name__ == "__main__":
    main()
