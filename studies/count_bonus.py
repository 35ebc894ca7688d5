"""A bonus β/√N that does not know the span: good actions are given up after bad luck.

Bets that are decided at once and pay over 4, 16 or 64 steps: the span is the wait, and nothing else changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gainful.experiments.run_statistics import Interval
from gainful.plot.style import look
from studies.study import (
    Findings,
    StudyRuns,
    Verdict,
    chosen,
    decide,
    draw_points,
    growth,
    interval,
    mean_of,
    number,
    panels,
    shown,
    table,
)

WAITS, BETAS = (4.0, 16.0, 64.0), (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
TABLES, WIN, COIN_WINS = 14, 0.6, 0.5
KINDS = ("exact", "simhash:bits=6,shape=4x4", "modulo:buckets=4", "density:shape=4x4")
SWIMMING = ("exact", "simhash:bits=6", "modulo:buckets=4")
LITTLE = 0.05
"""A smaller share of the possible loss counts as little, and exploring costs that much."""
ISOLATED = 20_000
"""Tables that the prediction plays."""


# ---------------------------------------------------------------------- what is measured


def lost_for_good(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per run: the regret per step in the second half, as a share of what tossing coins everywhere loses."""
    rows = []
    for _, run in frame.groupby("run_id", observed=True):
        run = run.sort_values("step")
        last, half = run.iloc[-1], run.iloc[(run["step"] - run["step"].max() / 2).abs().argmin()]
        slope = (last["expected_regret"] - half["expected_regret"]) / (last["step"] - half["step"])
        everywhere = (WIN - COIN_WINS) * last["wait"] / (1.0 + last["wait"])
        rows.append({**last, "lost": slope / everywhere})
    return pd.DataFrame(rows)


def share_of(holds: Sequence[bool]) -> Interval:
    """A share with Wilson's 95 % interval.

    >>> share_of([True] * 10).low > 0.7
    True
    """
    n, p, z = len(holds), float(np.mean(holds)), 1.96
    centre, width = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(p, max(0.0, (centre - width) / (1 + z * z / n)), min(1.0, (centre + width) / (1 + z * z / n)))


def linear(runs: pd.DataFrame) -> Interval:
    """The share of runs that lose at least half of what one table can lose, step for step, to the end."""
    return share_of([bool(lost > 0.5 / TABLES) for lost in runs["lost"]])


def predicted(ratio: float, visits: int, seed: int = 0) -> float:
    """The share of coin tosses in the second half of the visits of one table, for β = `ratio`·span.

    At a table whose surroundings are known, the plan compares (w - n/2)/(n + 1) + (β/span)/√n of the coin and of the
    bet, w wins of n. Each is played until its number of visits has doubled, and then they are compared again.
    """
    rng, rows = np.random.default_rng(seed), np.arange(ISOLATED)
    n, w = np.zeros((ISOLATED, 2)), np.zeros((ISOLATED, 2))
    done, tossed = np.zeros(ISOLATED), np.zeros(ISOLATED)
    while (done < visits).any():
        index = (w - n / 2) / (n + 1) + ratio / np.sqrt(np.maximum(n, 1))
        arm = index.argmax(axis=1)
        plays = np.minimum(np.maximum(n[rows, arm], 1), visits - done).astype(int)
        wins = rng.binomial(plays, np.array([COIN_WINS, WIN])[arm])
        late = np.minimum(plays, np.maximum(done + plays - visits / 2, 0))
        tossed += np.where(arm == 0, late, 0)
        n[rows, arm] += plays
        w[rows, arm] += wins
        done += plays
    return float(tossed.mean() / (visits / 2))


def visits_of_a_table(wait: float, horizon: float) -> int:
    """How often a table is visited in a run."""
    return int(horizon / (TABLES * (1.0 + wait)))


# ---------------------------------------------------------------------- tables


def span_table(lost: pd.DataFrame, horizon: float) -> str:
    rows = []
    for wait in WAITS:
        for beta in BETAS:
            runs = chosen(lost, wait=wait, beta=beta)
            foreseen = predicted(beta / wait, visits_of_a_table(wait, horizon))
            rows.append([number(wait), number(beta), f"{beta / wait:.3g}", interval(runs["lost"]), number(foreseen),
                         linear(runs), mean_of(runs)])  # fmt: skip
    heads = ["span", "β", "β/span", "lost for good", "foreseen", "runs with linear regret", "regret"]
    return table(heads, rows, left=3)


def pseudo_table(lost: pd.DataFrame) -> str:
    rows = []
    for kind in KINDS:
        for beta in (4.0, 16.0, 64.0):
            runs = chosen(lost, counts=kind, beta=beta)
            rows.append([f"`{kind}`", number(beta), interval(runs["lost"]), linear(runs), mean_of(runs)])
    return table(["counts", "β", "lost for good", "runs with linear regret", "regret"], rows, left=2)


def others_table(curves: pd.DataFrame, lost: pd.DataFrame) -> str:
    rows = []
    for agent in ("SCAL+ (sharp)", "KL-SCAL+"):
        for wait in WAITS:
            runs, every = chosen(lost, agent=agent, wait=wait), chosen(curves, agent=agent, wait=wait)
            rows.append([agent, number(wait), interval(runs["lost"]), mean_of(runs), growth(every)])
    return table(["agent", "span", "lost for good", "regret", "growth exponent, last decade"], rows, left=2)


def swimming_table(curves: pd.DataFrame, final: pd.DataFrame) -> str:
    rows = []
    for kind in SWIMMING:
        for beta in (0.1, 1.0, 10.0):
            runs, every = chosen(final, counts=kind, beta=beta), chosen(curves, counts=kind, beta=beta)
            rows.append([f"`{kind}`", number(beta), mean_of(runs), slopes(every)])
    return table(["counts", "β", "regret", "runs with linear regret"], rows, left=2)


def slopes(curves: pd.DataFrame) -> Interval:
    """The share of runs whose regret grows by at least 0.04, a tenth of the gain, per step in the second half."""
    found = []
    for _, run in curves.groupby("run_id", observed=True):
        run = run.sort_values("step")
        last, half = run.iloc[-1], run.iloc[(run["step"] - run["step"].max() / 2).abs().argmin()]
        found.append(bool(last["expected_regret"] - half["expected_regret"] > 0.04 * (last["step"] - half["step"])))
    return share_of(found)


# ---------------------------------------------------------------------- the study


def findings(runs: StudyRuns) -> Findings:
    """What is lost against β, the span and the kind of counts."""
    span, pseudo, others = runs.part("span"), runs.part("pseudo"), runs.part("others")
    lost, familiar, learned = lost_for_good(span), lost_for_good(pseudo), lost_for_good(others)
    horizon = float(span["step"].max())
    tables = [
        "Exact counts:",
        span_table(lost, horizon),
        "Pseudo-counts, span 16:",
        pseudo_table(familiar),
        "Agents that know the span, or need not:",
        others_table(others, learned),
        "RiverSwim with 12 states:",
        swimming_table(runs.part("riverswim"), runs.finals("riverswim")),
    ]
    figure, axes = panels(
        ["β fixed: lost for good as the span grows", "the same over β/span", "pseudo-counts, span 16", "span 64"],
        height=3.1,
        below=["", "and what one table alone foresees", "shares of the possible loss", "means over runs"],
        columns=2,
    )
    draw_shares(axes[0], lost, by_ratio=False, horizon=horizon)
    draw_shares(axes[1], lost, by_ratio=True, horizon=horizon)
    draw_pseudo(axes[2], familiar)
    draw_regret(axes[3], span, others)
    return Findings(verdicts(lost, familiar, others), "\n\n".join(tables), figure)


def verdicts(lost: pd.DataFrame, familiar: pd.DataFrame, others: pd.DataFrame) -> list[Verdict]:
    """The claim of the paper, and what follows from its derivation."""
    short, long = (chosen(lost, wait=wait, beta=4.0)["lost"].to_numpy() for wait in (4.0, 64.0))
    more = interval(long - short)
    scaled = pd.concat([chosen(lost, wait=wait, beta=wait) for wait in WAITS])
    enough = interval(scaled["lost"])
    off = pd.concat([
        runs["lost"] - predicted(0.25, visits_of_a_table(wait, float(runs["step"].max())))
        for wait in WAITS if len(runs := chosen(lost, wait=wait, beta=wait / 4))
    ])  # fmt: skip
    unlike = interval(off)
    blind = pd.concat([chosen(familiar, counts=kind, beta=64.0) for kind in KINDS[1:]])
    unseen = interval(blind["lost"])
    told = [growth(chosen(others, agent="SCAL+ (sharp)", wait=wait)) for wait in WAITS]
    untold = [growth(chosen(others, agent="KL-SCAL+", wait=wait)) for wait in WAITS]
    return [
        decide("Count-based bonuses are not sufficient for optimism: with β fixed, more is lost as the span grows",
               more, (0.1, 1.0),
               f"β = 4 loses {shown(interval(short))} of the possible at span 4 and {shown(interval(long))} at span "
               f"64, where {shown(linear(chosen(lost, wait=64.0, beta=4.0)))} of the runs have linear regret."),
        decide("The bonus has to be scaled by the span, and that is enough here", enough, (0.0, LITTLE),
               f"With β = span, {shown(enough)} is lost for good over all three spans."),
        decide("What is lost depends on β/span alone, as one table foresees", unlike, (-0.1, 0.1),
               f"At β/span = 1/4 seen and foreseen differ by {shown(unlike)} over all three spans."),
        decide("With pseudo-counts no β is enough", unseen, (LITTLE, 1.0),
               f"β = 64, four times the span, loses {shown(unseen)} with hashed and density counts, "
               f"{shown(interval(chosen(familiar, counts='exact', beta=64.0)['lost']))} with exact ones."),
        decide("SCAL+, told the span, learns", max(told, key=lambda one: one.high), (-1.0, 0.8),
               f"The exponents of its growth are {', '.join(map(shown, told))} at span 4, 16 and 64."),
        decide("KL-SCAL+ learns without being told", max(untold, key=lambda one: one.high), (-1.0, 0.8),
               f"Its exponents are {', '.join(map(shown, untold))}."),
    ]  # fmt: skip


# ---------------------------------------------------------------------- the picture


def draw_shares(ax: Axes, lost: pd.DataFrame, *, by_ratio: bool, horizon: float) -> None:
    for i, wait in enumerate(WAITS):
        x = [beta / wait if by_ratio else beta for beta in BETAS]
        found = [interval(chosen(lost, wait=wait, beta=beta)["lost"]) for beta in BETAS]
        draw_points(ax, x, found, i, f"span {wait:g}")
    if by_ratio:
        ratios = np.geomspace(1 / 64, 16, 25)
        foreseen = [predicted(ratio, visits_of_a_table(16.0, horizon)) for ratio in ratios]
        ax.plot(ratios, foreseen, color="#666666", linestyle=(0, (4, 3)), linewidth=1.2, label="foreseen")
    ax.set(xscale="log", xlabel="β/span" if by_ratio else "β", ylabel="lost for good", ylim=(-0.02, 0.6))
    ax.legend(frameon=False, fontsize=8)


def draw_pseudo(ax: Axes, familiar: pd.DataFrame) -> None:
    betas = (4.0, 16.0, 64.0)
    for i, kind in enumerate(KINDS):
        found = [interval(chosen(familiar, counts=kind, beta=beta)["lost"]) for beta in betas]
        draw_points(ax, [beta * 1.05 ** (i - 1.5) for beta in betas], found, i, kind.split(":")[0])
    ax.set(xscale="log", xlabel="β", ylabel="lost for good", ylim=(-0.02, 0.6))
    ax.set_xticks(betas, ["4", "16", "64"])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)


def draw_regret(ax: Axes, span: pd.DataFrame, others: pd.DataFrame) -> None:
    series = [(f"β = {beta:g}", chosen(span, wait=64.0, beta=beta)) for beta in (1.0, 16.0, 64.0)]
    series += [(agent, chosen(others, wait=64.0, agent=agent)) for agent in ("SCAL+ (sharp)", "KL-SCAL+")]
    for i, (label, rows) in enumerate(series):
        curve = rows.groupby("step", observed=True)["expected_regret"].mean()
        colour, dashes = look(i)
        ax.plot(curve.index, curve, color=colour, linestyle=dashes, linewidth=1.8, label=label)
    ax.set(xscale="log", yscale="log", xlabel="steps", ylabel="expected regret", xlim=(1000, None), ylim=(100, None))
    ax.legend(frameon=False, fontsize=8)
