"""The pictures docs/images/setting_*.png of the setting and the how-to pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import gainful as gf

IMAGES = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"
FONT = {"fontsize": 10}


def workshop() -> gf.MDP:
    """The old hall earns 1 a day; building takes 100 days on average; the new hall earns 1.8 and lasts 1000 days."""
    return gf.MDP.from_table(
        pd.DataFrame(
            [
                ("old", "stay", "old", 1.0, 1.0),
                ("old", "build", "building", 1.0, 0.0),
                ("building", "wait", "building", 0.99, 0.0),
                ("building", "wait", "new", 0.01, 0.0),
                ("new", "work", "new", 0.999, 1.8),
                ("new", "work", "old", 0.001, 1.8),
            ],
            columns=["state", "action", "next_state", "probability", "reward"],
        )
    )


def axes(figure: Figure, *place: Any, x: str, y: str) -> Any:
    """A plain panel."""
    ax = figure.add_subplot(*place)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel(x, **FONT)
    ax.set_ylabel(y, **FONT)
    ax.tick_params(labelsize=9)
    ax.grid(color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)
    return ax


def keep(figure: Figure, name: str) -> None:
    """Into docs/images."""
    figure.savefig(IMAGES / f"setting_{name}.png", dpi=150, facecolor="white", bbox_inches="tight", pad_inches=0.1)


def river() -> None:
    """RiverSwim with its optimal policy and bias."""
    mdp = gf.environments.riverswim(6)
    keep(gf.plot.mdp(mdp, gf.solve(mdp)), "river")


def bias() -> None:
    """Expected totals from two states run apart until they are parallel: slope the gain, gap the span."""
    mdp = gf.environments.riverswim(6)
    plan = gf.solve(mdp)
    P, R = mdp.to_dense()
    rows = np.arange(6)
    p, r = P[rows, plan.actions], R[rows, plan.actions]
    n = np.arange(61)
    total = np.zeros((61, 6))
    for i in n[1:]:
        total[i] = r + p @ total[i - 1]

    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    left = axes(figure, 1, 2, 1, x="steps n", y="expected total reward")
    for s, colour, name in ((5, ORANGE, "from the right bank"), (0, BLUE, "from the left bank")):
        left.plot(n, total[:, s], color=colour, linewidth=2, label=name)
    left.plot(n, plan.gain * n, color=GREY, linestyle=":", linewidth=1.5, label="slope: the gain, 0.4286")
    at = 45
    left.annotate("", (at, total[at, 0]), (at, total[at, 5]), arrowprops={"arrowstyle": "<->", "color": "black"})
    left.text(at + 1.5, total[at, 0] - 2.6, f"span {plan.span:.2f}", **FONT)
    left.legend(frameon=False, fontsize=9, loc="upper left")

    right = axes(figure, 1, 2, 2, x="steps n", y="total reward − n · gain")
    shown = [BLUE, "#3d8fc4", "#7fb5d6", "#e8b48d", "#df854a", ORANGE]
    names = ["left bank", "river 1", "river 2", "river 3", "river 4", "right bank"]
    for s in range(6):
        right.plot(n, total[:, s] - plan.gain * n, color=shown[s], linewidth=1.8)
        right.text(61, total[60, s] - plan.gain * 60, names[s], fontsize=9, va="center", color=shown[s])
    right.set_xlim(0, 60)
    keep(figure, "bias")


def discount() -> None:
    """What the policy of each discount earns per day in the long run."""
    mdp = workshop()
    best = gf.solve(mdp).gain
    horizons = np.geomspace(2, 5000, 200)
    gains = []
    for steps in horizons:
        found = gf.discounted_value_iteration(mdp, 1.0 - 1.0 / steps, precision=1e-6)
        gains.append(float(gf.evaluate(mdp, found.policy).gain[0]))
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    ax = axes(figure, 1, 1, 1, x="effective horizon 1/(1 − γ), days", y="earned per day, for ever")
    ax.axhline(best, color=GREEN, linewidth=1.5, linestyle="--")
    ax.text(2.1, best - 0.03, f"average reward: {best:.4f}", color=GREEN, va="top", **FONT)
    ax.plot(horizons, gains, color=BLUE, linewidth=2.2)
    for gamma in (0.9, 0.99, 0.999):
        x = 1.0 / (1.0 - gamma)
        y = float(np.interp(x, horizons, gains))
        ax.plot(x, y, "o", color=ORANGE, markersize=7)
        place = (-4, 9) if y < 1.5 else (0, -17)
        ax.annotate(f"γ = {gamma}", (x, y), xytext=place, textcoords="offset points", ha="center", **FONT)
    ax.set_xscale("log")
    ax.set_ylim(0.9, 1.75)
    keep(figure, "discount")


def regret() -> None:
    """Three ways to spend the same 10⁶ steps."""
    mdp = gf.environments.riverswim(6)
    seeds = range(8)
    kept = {
        "ε-greedy Q-learning": gf.simulate_many(lambda seed: gf.EpsilonGreedyQ(6, 2, seed=seed), mdp, 10**6, seeds),
        "SCAL+, the paper's bonus": gf.simulate_many(
            lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), mdp, 10**6, seeds
        ),
        "KL-SCAL+": gf.simulate_many(lambda seed: gf.KLSCALPlus(6, 2, seed=seed), mdp, 10**6, seeds),
    }
    keep(gf.plot.regret(kept, log=True), "regret")


def choosing_c() -> None:
    """SCAL+ in access control with a span that is too small, right, or too large."""
    mdp = gf.environments.access_control_queue()
    own = gf.solve(mdp).span

    def agent(factor: float) -> Any:
        return lambda seed: gf.SCALPlus(
            mdp.n_states, mdp.n_actions, span=factor * own, reward_max=mdp.reward_max, allowed=mdp.allowed,
            bonus_scale=0.1, seed=seed,
        )  # fmt: skip

    runs = {f"c = {f:g} × span": gf.simulate_many(agent(f), mdp, 10**7, range(8)) for f in (0.1, 0.5, 1.0, 4.0)}
    keep(gf.plot.regret(runs, per_step=True), "choosing_c")


def optimism() -> None:
    """The gain of every episode's plan comes down to the truth."""
    mdp = gf.environments.riverswim(6)
    run = gf.simulate(gf.SCALPlus(6, 2, span=7.0, seed=1), mdp, horizon=10**8, seed=1)
    keep(gf.plot.episodes(run), "optimism")


def span() -> None:
    """The two-state toy: its graph, and what a span constraint costs."""
    toy = gf.environments.two_state_toy()
    c = np.linspace(0.0, 1.5, 61)
    plans = [gf.scopt(toy, span=float(x), precision=1e-7) for x in c]
    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    left = axes(figure, 1, 2, 1, x="span constraint c", y="best gain")
    left.plot(c, np.clip(c, 0.5, 1.0), color=GREY, linewidth=5, alpha=0.35, label="clip(c, ½, 1)")
    left.plot(c, [plan.gain for plan in plans], color=BLUE, linewidth=1.8, label="gf.scopt(toy, span=c)")
    left.set_ylim(0.0, 1.1)
    left.legend(frameon=False, fontsize=9, loc="lower right")
    right = axes(figure, 1, 2, 2, x="span constraint c", y="probability")
    right.plot(c, [plan.policy[1, 0] for plan in plans], color=ORANGE, linewidth=2, label="of leaving s1")
    right.plot(c, [plan.policy[0, 0] for plan in plans], color=BLUE, linewidth=2, linestyle="--", label="of leaving s0")
    right.set_ylim(-0.03, 1.1)
    right.legend(frameon=False, fontsize=9, loc="center right")
    keep(figure, "span")


def bonus() -> None:
    """The bonus of a pair against its visits, and what SCAL+ does with it."""
    S, A, t, delta, c, r_max = 6, 2, 10**6, 0.05, 7.0, 1.0
    N = np.geomspace(1, 10**6, 400)
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    ax = axes(figure, 1, 1, 1, x="visits N of the pair", y="bonus")
    for scale, colour in ((1.0, BLUE), (0.1, ORANGE)):
        beta = scale * np.sqrt(7 * np.log(2 * S * A * t / delta) / N)
        b = c * np.minimum(beta + 1 / (N + 1), 2.0) + r_max * np.minimum(beta, 1.0)
        ax.plot(N, b, color=colour, linewidth=2, label=f"bonus_scale = {scale:g}")
    ax.axhline(r_max, color=GREY, linestyle=":", linewidth=1.5)
    ax.text(1.1, r_max * 1.1, "r_max", color=GREY, **FONT)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.legend(frameon=False, fontsize=9)
    keep(figure, "bonus")


if __name__ == "__main__":
    for draw in (river, bias, discount, regret, choosing_c, optimism, span, bonus):
        draw()
