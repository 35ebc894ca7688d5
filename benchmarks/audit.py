"""The cost of an audit: the same runs, plain and audited. Prints the ratio of CPU times, best of several.

`python benchmarks/audit.py` measures SCAL+ and KL-SCAL+, on states and on cells; `python benchmarks/audit.py others`
PSRL, Opt-PSRL, MBIE-EB, UCBVI, Q-learners, fixed policies and UCCRL.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import gainful as gf
from gainful.audit.run import audit_run, truth_of

TRIES = 5


def best_of(tries: int, job: Callable[[int], object]) -> float:
    """CPU seconds of the quickest; both jobs get the same seeds."""
    times = []
    for seed in range(tries):
        began = time.process_time()
        job(seed)
        times.append(time.process_time() - began)
    return min(times)


def measure(agent: str, name: str, environment: Any, T: int, make: Callable[[int], Any], truth: Any) -> None:
    def plain_run(seed: int) -> object:
        return gf.simulate(make(seed), environment, T, seed=seed, gain=truth.gain)

    def audited_run(seed: int) -> object:
        return audit_run(make(seed), environment, T, seed, truth=truth)

    plain_run(0)  # compiles
    audited_run(0)
    plain, audited = best_of(TRIES, plain_run), best_of(TRIES, audited_run)
    print(f"{agent:14} {name:18} {T:12,} {1e3 * plain:10.2f} {1e3 * audited:12.2f} {audited / plain:6.2f}", flush=True)


def others() -> None:
    """The agents without a theorem about the average reward, and UCCRL."""
    for name, mdp, T in (
        ("riverswim-6", gf.environments.riverswim(6), 10**5),
        ("garnet(20,3,4)", gf.environments.garnet(20, 3, 4), 10**5),
    ):
        truth: Any = truth_of(mdp)
        S, A = mdp.n_states, mdp.n_actions
        given: dict[str, dict[str, Any]] = {
            "PSRL": {},
            "OptPSRL": {"horizon": T, "samples": 20},
            "MBIEEB": {"discount": 0.95, "m": T},
            "UCBVI": {"episode_length": 20, "horizon": T, "bonus_scale": 0.01},
            "OptimisticQ": {"span": 1.001 * truth.span, "horizon": T},
            "EpsilonGreedyQ": {},
            "Fixed": {},
        }
        for agent, own in given.items():

            def made(seed: int, agent: str = agent, own: Any = own, S: int = S, A: int = A, mdp: gf.MDP = mdp) -> Any:
                return getattr(gf, agent)(S, A, seed=seed, reward_max=mdp.reward_max, **own)

            measure(agent, name, mdp, T, made, truth)
    lqg = gf.environments.lqg()
    truth, part = truth_of(lqg), gf.Partition.uniform(bins=12)
    smooth: dict[str, Any] = {
        "span": 1.001 * truth.span,
        "lipschitz": truth.lipschitz_for(part, lqg.reward_max - lqg.reward_min),
        "holder": lqg.holder,
    }
    ends: dict[str, Any] = {"reward_min": lqg.reward_min, "reward_max": lqg.reward_max}

    def uccrl(seed: int) -> Any:
        return gf.UCCRL(partition=part, n_actions=lqg.n_actions, seed=seed, width_scale=0.02, **smooth, **ends)

    def psrl_on_cells(seed: int) -> Any:
        return gf.Discretized("psrl", part, n_actions=lqg.n_actions, seed=seed, **ends)

    measure("UCCRL", "lqg, 12 cells", lqg, 10**5, uccrl, truth)
    measure("PSRL on cells", "lqg, 12 cells", lqg, 10**5, psrl_on_cells, truth)


def main() -> None:
    print(f"{'agent':14} {'environment':18} {'steps':>12} {'plain, ms':>10} {'audited, ms':>12} {'ratio':>6}")
    if "others" in sys.argv[1:]:
        others()
        return
    for name, mdp, T in (
        ("riverswim-6", gf.environments.riverswim(6), 10**5),
        ("riverswim-6", gf.environments.riverswim(6), 10**6),
        ("riverswim-6", gf.environments.riverswim(6), 10**7),
        ("garnet(200,4,8)", gf.environments.garnet(200, 4, 8), 10**6),
    ):
        truth: Any = truth_of(mdp)
        given: dict[str, Any] = {"reward_max": mdp.reward_max}

        def scal_plus(seed: int, mdp: gf.MDP = mdp, given: Any = given, truth: Any = truth) -> gf.SCALPlus:
            return gf.SCALPlus(mdp.n_states, mdp.n_actions, span=1.001 * truth.span, seed=seed, **given)

        def kl_scal_plus(seed: int, mdp: gf.MDP = mdp, given: Any = given) -> gf.KLSCALPlus:
            return gf.KLSCALPlus(mdp.n_states, mdp.n_actions, seed=seed, **given)

        measure("scal-plus", name, mdp, T, scal_plus, truth)
        measure("kl-scal-plus", name, mdp, T, kl_scal_plus, truth)
    lqg = gf.environments.lqg()
    truth, part = truth_of(lqg), gf.Partition.uniform(bins=20)
    smooth: dict[str, Any] = {
        "span": 1.001 * truth.span,
        "lipschitz": truth.lipschitz_for(part, lqg.reward_max - lqg.reward_min),
        "holder": lqg.holder,
        "reward_min": lqg.reward_min,
        "reward_max": lqg.reward_max,
    }
    for agent, made in (("c-scal-plus", gf.CSCALPlus), ("c-kl-scal-plus", gf.CKLSCALPlus)):

        def on_cells(seed: int, made: Any = made) -> Any:
            return made(partition=part, n_actions=lqg.n_actions, seed=seed, **smooth)

        measure(agent, "lqg, 20 cells", lqg, 10**6, on_cells, truth)


if __name__ == "__main__":
    main()
