"""How often the deviations that KL-SCAL+ relies on are exceeded, and what smaller radii do: tables of docs/audit.md.

The first table is about Lemma 1 of docs/kl_scal_plus.md alone: 2,000 sequences of 3,000 draws, and the share of them in
which max_λ Σ ln(1 - λz_i) exceeds ln(1/δ') + ½ ln n + ln 2 at some n. The second is about the event E1 on runs of the
agent: a run fails if some r̃ < r, or klmax < p·h for h* or a hitting time, at the beginning of some episode. The third
has 100 runs of 10⁵ steps with ρ multiplied by `width_scale`. The fourth is about the bounds of a mean reward by the
mean and by the variance of the rewards seen (Lemmas 4 and 4a): how often each is ever too small, and how wide it is
beside that of Maurer & Pontil for all n.

    python benchmarks/kl_coverage.py [deviations] [events] [widths] [rewards] [--record]

--record keeps the tables in benchmarks/measured, from where `make tables` writes them into the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf
from gainful.audit import clopper_pearson
from gainful.audit.audit import audit
from gainful.theory import binary_kl, klup, klup_by_variance

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

RUNS, DRAWS = 2_000, 3_000
LAWS = {
    "coin, p = 0.5": ((0.0, 1.0), (0.5, 0.5)),
    "coin, p = 0.05": ((0.0, 1.0), (0.95, 0.05)),
    "coin, p = 0.95": ((0.0, 1.0), (0.05, 0.95)),
    "values 0, 1, 10": ((0.0, 1.0, 10.0), (0.45, 0.45, 0.1)),
}
REWARDS = {
    "coin, p = 0.5": ((0.0, 1.0), (0.5, 0.5)),
    "0.4 or 0.6": ((0.4, 0.6), (0.5, 0.5)),
    "0.45, 0.5 or, rarely, 1": ((0.45, 0.5, 1.0), (0.1, 0.89, 0.01)),
    "always 0.5": ((0.5,), (1.0,)),
}
"""Laws of mean 0.5."""
E1 = ("reward-domination", "bias-domination", "times-domination")


def largest_level(values: tuple[float, ...], law: tuple[float, ...], seed: int) -> float:
    """The largest over n of max_λ Σ ln(1 - λz_i) - ½ ln n - ln 2: more than ln(1/δ') is a failure at level δ'."""
    h, p = np.array(values), np.array(law)
    z = (h - p @ h) / (h.max() - p @ h)
    lam = np.concatenate([np.geomspace(1e-3, 0.9, 60), 1.0 - np.geomspace(0.08, 1e-6, 20)])
    drawn = np.random.default_rng([seed, 7]).choice(h.size, size=DRAWS, p=p)
    counts = np.cumsum(drawn[:, None] == np.arange(h.size), axis=0)
    logs = np.log(1.0 - lam[:, None] * z)  # (λ, values)
    n = np.arange(1, DRAWS + 1)
    wealth = np.maximum((counts @ logs.T).max(axis=1), 0.0)
    return float((wealth - 0.5 * np.log(n) - np.log(2.0)).max())


def maker(mdp: gf.MDP, **options: Any) -> Callable[[int], gf.KLSCALPlus]:
    """seed -> KL-SCAL+ for the MDP."""
    given: dict[str, Any] = {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max, "allowed": mdp.allowed}
    return lambda seed: gf.KLSCALPlus(mdp.n_states, mdp.n_actions, seed=seed, **given, **options)


def problems() -> dict[str, gf.MDP]:
    made = gf.environments
    return {
        "riverswim": made.riverswim(6),
        "garnet (5, 2, 3), Bernoulli rewards": made.garnet(5, 2, 3, reward_law="bernoulli"),
        "garnet (10, 3, 4)": made.garnet(10, 3, 4),
        "machine-replacement": made.machine_replacement(),
    }


def deviations() -> None:
    print(f"{RUNS:,} sequences of {DRAWS:,} draws\n")
    print("| law | exceeded at δ′ = 0.5 | at δ′ = 0.05 |\n| --- | ---: | ---: |")
    for name, (values, law) in LAWS.items():
        levels = np.array([largest_level(values, law, seed) for seed in range(RUNS)])
        print(f"| {name} | {np.mean(levels > np.log(2.0)):.4f} | {np.mean(levels > np.log(20.0)):.4f} |", flush=True)


def events() -> None:
    print(f"{RUNS:,} runs of 2,000 steps\n")
    print("| problem | δ | runs in which E1 failed | 95 % upper bound on the rate | optimism failed | span failed |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, mdp in list(problems().items())[:2]:
        for delta in (0.05, 0.9):
            found = audit(maker(mdp, delta=delta), mdp, 2_000, runs=RUNS)
            failed = sum(any(run.findings[event].failures for event in E1) for run in found.runs)
            rest = [found[name].failed_runs for name in ("optimism", "span-diameter")]
            high = clopper_pearson(failed, RUNS)[1]
            print(
                f"| {name if delta == 0.05 else ''} | {delta:g} | {failed} | {high:.4f} | {rest[0]} | {rest[1]} |",
                flush=True,
            )


def widths() -> None:
    print(
        "100 runs of 10⁵ steps\n\n| problem | width_scale | statements that failed (number of runs) | regret | bound |"
    )
    print("| --- | ---: | --- | ---: | ---: |")
    for name, mdp in problems().items():
        for scale in (1.0, 0.3, 0.1):
            found = audit(maker(mdp, width_scale=scale), mdp, 100_000, runs=100)
            failed = [f"{n} ({v.failed_runs})" for n, v in found.verdicts.items() if v.failed_runs]
            curves = found.regret_curves()
            bound = "" if curves["bound"] is None else f"{curves['bound'][-1]:,.0f}"
            print(
                f"| {name if scale == 1.0 else ''} | {scale:g} | {', '.join(failed) or 'none'} "
                f"| {curves['mean'][-1]:,.0f} | {bound} |",
                flush=True,
            )


def rewards() -> None:
    print(f"{RUNS:,} sequences of {DRAWS:,} rewards\n")
    print("| rewards | too small at δ′ = 0.5: by the mean | by the variance ", end="")
    print("| width at the end, δ′ = 0.05: by the mean | by the variance | Maurer & Pontil |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (values, law) in REWARDS.items():
        kept = [coverage(values, law, seed) for seed in range(RUNS)]
        failed = np.mean([failures for failures, _ in kept], axis=0)
        wide = np.mean([widths for _, widths in kept[:100]], axis=0)
        print(f"| {name} | {failed[0]:.4f} | {failed[1]:.4f} | " + " | ".join(f"{w:.4f}" for w in wide) + " |")


def coverage(values: tuple[float, ...], law: tuple[float, ...], seed: int) -> tuple[list[bool], list[float]]:
    """Whether the bounds by mean and by variance are ever below 0.5 at δ' = ½; three widths at the end, δ' = 0.05."""
    drawn = np.random.default_rng([seed, 8]).choice(values, size=DRAWS, p=law)
    n = np.arange(1, DRAWS + 1)
    mean = np.minimum(np.cumsum(drawn) / n, 1.0)
    variance = np.clip(np.cumsum(drawn**2) / n - mean**2, 0.0, mean * (1.0 - mean))
    level = np.log(2.0) + 0.5 * np.log(n) + np.log(2.0)
    few = mean < 0.5 - 1e-12
    x, spread, rho = mean[few], variance[few], level[few] / n[few]
    point = x - spread / (1.0 - x)
    by_mean = binary_kl(x, 0.5) > rho
    by_variance = binary_kl(np.maximum(x - point, 0.0) / (1.0 - point), (0.5 - point) / (1.0 - point)) > rho
    end, scatter, last = float(mean[-1]), float(variance[-1]), DRAWS
    radius = (np.log(20.0) + 0.5 * np.log(last) + np.log(2.0)) / last
    union = float(np.log(2.0 * last * (last + 1) * 20.0))
    bernstein = (2.0 * scatter * union / (last - 1)) ** 0.5 + 7.0 * union / (3.0 * (last - 1))
    wide = [float(klup(end, radius)) - end, float(klup_by_variance(end, scatter, radius)) - end, bernstein]
    return [bool(by_mean.any()), bool(by_variance.any())], wide


PARTS = {"deviations": deviations, "events": events, "widths": widths, "rewards": rewards}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; default all")
    add_record_options(parser)
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        with printed("kl_coverage", part, keep=given.record, timed=False):
            PARTS[part]()
        print()


if __name__ == "__main__":
    main()
