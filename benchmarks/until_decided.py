"""How often `gainful run --until-decided` is wrong about equal agents, and how many seeds it needs for others.

    python benchmarks/until_decided.py [calibration] [--studies N] [--record]

Each study compares synthetic agents with 10 seeds per look and at most 5 looks at an error of 5 %. A study is wrong if
it decides any pair of equal agents. For comparison: tests of the pairs of three equal agents at 5 % each, at every
look, without a correction.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed
from gainful.experiments.sequential_comparison import compare_sequentially
from gainful.experiments.sequential_test import SequentialDesign

SEEDS, LOOKS, ERROR = 10, 5, 0.05
Study = dict[str, dict[str, NDArray[np.float64]]]


def four_equal(rng: np.random.Generator) -> Study:
    return {"e": {name: rng.normal(size=SEEDS * LOOKS) for name in "abcd"}}


def heavy_tails(rng: np.random.Generator) -> Study:
    return {"e": {name: np.exp(2.0 * rng.normal(size=SEEDS * LOOKS)) for name in "abcd"}}


def shared_luck(rng: np.random.Generator) -> Study:
    luck = rng.normal(size=SEEDS * LOOKS)
    return {"e": {name: 0.9 * luck + 0.44 * rng.normal(size=luck.size) for name in "abcd"}}


def three_environments(rng: np.random.Generator) -> Study:
    return {where: four_equal(rng)["e"] for where in ("e", "f", "g")}


def one_differs(by: float) -> Callable[[np.random.Generator], Study]:
    def study(rng: np.random.Generator) -> Study:
        found = four_equal(rng)
        found["e"]["d"] += by
        return found

    return study


STUDIES: dict[str, tuple[Callable[[np.random.Generator], Study], str]] = {
    "4 equal agents, normal values": (four_equal, ""),
    "4 equal agents, log-normal values (σ = 2)": (heavy_tails, ""),
    "4 equal agents whose values have a correlation of 0.8 on a seed": (shared_luck, ""),
    "3 environments with 4 equal agents each": (three_environments, ""),
    "3 equal agents, and one that is worse by 0.5 standard deviations": (one_differs(0.5), "d"),
    "3 equal agents, and one that is worse by 1 standard deviation": (one_differs(1.0), "d"),
    "3 equal agents, and one that is worse by 2 standard deviations": (one_differs(2.0), "d"),
}


def uncorrected(study: Study, rng: np.random.Generator) -> bool:
    """Whether some pair among a, b and c is significant at 5 % by itself at some look."""
    signs = rng.choice([-1.0, 1.0], (1_000, SEEDS * LOOKS))
    signs[0] = 1.0
    for agents in study.values():
        for pair in (("a", "b"), ("a", "c"), ("b", "c")):
            sums = np.abs(np.cumsum(signs * (agents[pair[0]] - agents[pair[1]]), axis=1)[:, SEEDS - 1 :: SEEDS])
            if ((sums >= sums[0] * (1 - 1e-12)).mean(axis=0) <= ERROR).any():
                return True
    return False


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def calibration(studies: int) -> None:
    print(f"{studies:,} studies of each kind, at most {SEEDS * LOOKS} seeds, error {100 * ERROR:g} %\n")
    print(
        "| agents | wrong studies | 95 % upper bound | uncorrected tests: wrong | differences found | seeds for these |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (make, different) in STUDIES.items():
        wrong, loose, found, seeds = 0, 0, 0, []
        for i in range(studies):
            rng = np.random.default_rng([i, 7])
            study = make(rng)
            result = compare_sequentially(study, SequentialDesign(ERROR, SEEDS, LOOKS, seed=i))
            decided = [pair for pair in result.pairs if pair.decided]
            right = [pair for pair in decided if different and different == pair.worse]
            wrong += len(right) < len(decided)
            found += len(right)
            seeds += [pair.seeds for pair in right]
            loose += uncorrected(study, rng)
        high = stats.beta.ppf(0.95, wrong + 1, studies - wrong)
        power = percent(found / (3 * studies)) if different else "–"
        mean = f"{np.mean(seeds):.0f}" if seeds else "–"
        shares = (percent(wrong / studies), percent(high), percent(loose / studies, 0))
        print(f"| {' | '.join((name, *shares, power, mean))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["calibration"], default="calibration", help="what to measure")
    parser.add_argument("--studies", type=int, default=1_500, help="of each kind (default 1,500)")
    add_record_options(parser)
    given = parser.parse_args()
    with printed("until_decided", "calibration", keep=given.record, timed=False):
        calibration(given.studies)


if __name__ == "__main__":
    main()
