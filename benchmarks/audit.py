"""The cost of an audit: the same runs, plain and audited. Prints CPU times, the best of several, and their ratio.

    python benchmarks/audit.py [theorems] [others] [--record]

theorems  SCAL+ and KL-SCAL+, on states and on cells
others    PSRL, Opt-PSRL, MBIE-EB, UCBVI, Q-learners, fixed policies and UCCRL
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gainful as gf
from gainful.audit.run import audit_run, truth_of

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import printed

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
    print(f"| {agent} | {name} | {T:,} | {1e3 * plain:.2f} | {1e3 * audited:.2f} | {audited / plain:.1f} |", flush=True)


def others() -> None:
    """The agents without a theorem about the average reward, and UCCRL."""
    for name, mdp, T in (
        ("RiverSwim-6", gf.environments.riverswim(6), 10**5),
        ("Garnet(20, 3, 4)", gf.environments.garnet(20, 3, 4), 10**5),
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

    measure("UCCRL", "LQG, 12 cells", lqg, 10**5, uccrl, truth)
    measure("PSRL on cells", "LQG, 12 cells", lqg, 10**5, psrl_on_cells, truth)


def theorems() -> None:
    """SCAL+ and KL-SCAL+."""
    for name, mdp, T in (
        ("RiverSwim-6", gf.environments.riverswim(6), 10**5),
        ("RiverSwim-6", gf.environments.riverswim(6), 10**6),
        ("RiverSwim-6", gf.environments.riverswim(6), 10**7),
        ("Garnet(200, 4, 8)", gf.environments.garnet(200, 4, 8), 10**6),
    ):
        truth: Any = truth_of(mdp)
        given: dict[str, Any] = {"reward_max": mdp.reward_max}

        def scal_plus(seed: int, mdp: gf.MDP = mdp, given: Any = given, truth: Any = truth) -> gf.SCALPlus:
            return gf.SCALPlus(mdp.n_states, mdp.n_actions, span=1.001 * truth.span, seed=seed, **given)

        def kl_scal_plus(seed: int, mdp: gf.MDP = mdp, given: Any = given) -> gf.KLSCALPlus:
            return gf.KLSCALPlus(mdp.n_states, mdp.n_actions, seed=seed, **given)

        measure("SCAL+", name, mdp, T, scal_plus, truth)
        measure("KL-SCAL+", name, mdp, T, kl_scal_plus, truth)
    lqg = gf.environments.lqg()
    truth, part = truth_of(lqg), gf.Partition.uniform(bins=20)
    smooth: dict[str, Any] = {
        "span": 1.001 * truth.span,
        "lipschitz": truth.lipschitz_for(part, lqg.reward_max - lqg.reward_min),
        "holder": lqg.holder,
        "reward_min": lqg.reward_min,
        "reward_max": lqg.reward_max,
    }
    for agent, made in (("C-SCAL+", gf.CSCALPlus), ("C-KL-SCAL+", gf.CKLSCALPlus)):

        def on_cells(seed: int, made: Any = made) -> Any:
            return made(partition=part, n_actions=lqg.n_actions, seed=seed, **smooth)

        measure(agent, "LQG, 20 cells", lqg, 10**6, on_cells, truth)


PARTS = {"theorems": theorems, "others": others}


def main() -> None:
    parts = [word for word in sys.argv[1:] if not word.startswith("-")] or list(PARTS)
    for part in parts:
        if part not in PARTS:
            sys.exit(f"unknown part {part!r}; choose from {', '.join(PARTS)}")
        with printed("audit", part, keep="--record" in sys.argv):
            print("| agent | environment | steps | plain, ms | audited, ms | ratio |\n| --- | --- |" + 4 * " ---: |")
            PARTS[part]()
        print()


if __name__ == "__main__":
    main()
