"""Draw docs/images/mixtures.png: what work pays in the two mixture environments, and where it is optimal."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import gainful as gf

INK, QUIET, WORK = "#222222", "#8a8a8a", "#0072b2"
OUT = Path(__file__).parent / "images" / "mixtures.png"


def main() -> None:
    """Draw both panels."""
    matplotlib.use("Agg")
    figure, (line, plane) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
    draw_line(line)
    draw_plane(figure, plane)
    figure.savefig(OUT, dpi=130)


def draw_line(ax: plt.Axes) -> None:
    """The rough wave, what rest pays, and the optimal threshold."""
    env = gf.environments.rough_mixture()
    assert env.mixture is not None
    solved = env.mixture.solution
    x = np.linspace(0.0, 1.0, 2001)
    pay = env.rewards(x, 1)
    least = solved.threshold**env.holder  # type: ignore[operator]
    ax.fill_between(x, 0.0, 1.05, where=pay > least, color=WORK, alpha=0.12, linewidth=0, label="work is optimal")
    ax.plot(x, pay, color=WORK, linewidth=1.8, label="work pays φ(x)")
    ax.axhline(0.4, color=QUIET, linewidth=1.2, label="rest pays 0.4")
    ax.axhline(least, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label=f"work above {least:.3f}")
    ax.set(xlim=(0, 1), ylim=(0, 1.3), xlabel="position x", ylabel="reward", title="rough-mixture, α = ½")
    ax.legend(loc="upper center", fontsize=9, frameon=False, ncols=2)


def draw_plane(figure: plt.Figure, ax: plt.Axes) -> None:
    """What work pays on the square, and the border of the optimal policy."""
    env = gf.environments.planar_mixture()
    assert env.mixture is not None
    solved = env.mixture.solution
    axis = (np.arange(400) + 0.5) / 400
    points = np.stack([g.reshape(-1) for g in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    pay = env.rewards(points, 1).reshape(400, 400).T
    shown = ax.imshow(pay, origin="lower", extent=(0, 1, 0, 1), cmap="Blues", vmin=0, vmax=1)
    ax.contour(axis, axis, pay, levels=[solved.threshold], colors=INK, linewidths=1.4)
    ax.contour(axis, axis, pay, levels=[0.5], colors=INK, linewidths=0.9, linestyles="dotted")
    ax.text(0.5, 0.5, "work", ha="center", va="center", color="white", fontsize=11)
    for x, y in ((0.09, 0.07), (0.91, 0.07), (0.09, 0.93), (0.91, 0.93)):
        ax.text(x, y, "rest", ha="center", va="center", color=INK, fontsize=10)
    ax.set(xlabel="x", ylabel="y", title="planar-mixture, d = 2")
    figure.colorbar(shown, ax=ax, label="work pays φ", shrink=0.9)


if __name__ == "__main__":
    main()
