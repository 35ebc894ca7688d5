"""An MDP as a picture: one arrow per transition, one node per state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful import plot

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

E = gf.environments
SMALL = [
    E.riverswim(6),
    E.frozen_lake(),
    E.toy3d(),
    E.two_state_toy(),
    E.machine_replacement(),
    E.garnet(12, 2, 3),
    E.admission_control(),
    E.six_arms(),
    E.hard_family(),
    gf.MDP([[[1.0]]], [[0.5]]),
]


def parts(figure: Any) -> tuple[list[Any], list[Any]]:
    patches = figure.axes[0].patches
    return [p for p in patches if isinstance(p, FancyArrowPatch)], [p for p in patches if isinstance(p, Circle)]


def said(figure: Any) -> str:
    return " ".join(t.get_text().replace("\n", " ") for t in figure.axes[0].texts)


def count(mdp: gf.MDP, policy: Any) -> int:
    """Different next states of every pair that the policy takes."""
    pairs = [(s, a) for s in range(mdp.n_states) for a in range(mdp.n_actions) if mdp.allowed[s, a]]
    return sum(len(mdp.transition(s, a)) for s, a in pairs if policy is None or policy[s, a] > 0.0)


@pytest.mark.parametrize("mdp", SMALL, ids=lambda m: m.name or "one state")
def test_an_arrow_per_transition_and_a_node_per_state(mdp: gf.MDP) -> None:
    plan = gf.solve(mdp)
    arrows, nodes = parts(plot.mdp(mdp, plan))
    assert (len(arrows), len(nodes)) == (count(mdp, plan.policy), mdp.n_states)
    arrows, nodes = parts(plot.mdp(mdp))
    assert (len(arrows), len(nodes)) == (count(mdp, None), mdp.n_states)
    only = np.zeros((mdp.n_states, mdp.n_actions))
    only[:, 0] = 1.0
    arrows, _ = parts(plot.mdp(mdp, plan, action=0))
    assert len(arrows) == count(mdp, only)


@pytest.mark.parametrize("mdp", SMALL, ids=lambda m: m.name or "one state")
def test_nothing_is_clipped_by_the_axes(mdp: gf.MDP) -> None:
    figure = plot.mdp(mdp, gf.solve(mdp))
    figure.canvas.draw()
    ax = figure.axes[0]
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    arrows, nodes = parts(figure)
    for node in nodes:
        (x, y), r = node.center, node.radius
        assert x0 <= x - r < x + r <= x1
        assert y0 <= y - r < y + r <= y1
    box = ax.get_window_extent()
    for arrow in arrows:
        drawn = arrow.get_window_extent()
        assert box.x0 <= drawn.x0 + 1 <= drawn.x1 - 1 <= box.x1
        assert box.y0 <= drawn.y0 + 1 <= drawn.y1 - 1 <= box.y1


def test_widths_are_probabilities_and_a_mixture_has_all_its_actions() -> None:
    mdp = E.riverswim(6)
    plan = gf.scopt(mdp, span=3.0)
    assert plan.actions is None
    arrows, _ = parts(plot.mdp(mdp, plan))
    assert len(arrows) == count(mdp, plan.policy)
    sure, _ = parts(plot.mdp(E.two_state_toy()))
    assert {a.get_linewidth() for a in sure} == {2.5}
    thin = sorted(a.get_linewidth() for a in arrows)
    assert thin[0] < thin[-1]


def test_nodes_are_coloured_by_bias_and_sized_by_visits() -> None:
    mdp = E.riverswim(6)
    plan = gf.solve(mdp)
    visits = np.array([[8, 8], [0, 4], [1, 0], [2, 2], [9, 7], [1, 15]])
    figures = [plot.mdp(mdp, plan, visits=v) for v in (visits, visits.sum(axis=1), visits.reshape(-1))]
    radii = [[n.radius for n in parts(f)[1]] for f in figures]
    assert radii[0] == radii[1] == radii[2]
    areas = np.array(radii[0]) ** 2
    assert areas[3] / areas[0] == pytest.approx(4 / 16, rel=1e-9)
    assert len({n.get_facecolor() for n in parts(figures[0])[1]}) == 6
    assert figures[0].axes[1].get_ylabel() == "bias"
    assert len(plot.mdp(mdp).axes) == 1


def centres(figure: Any) -> Any:
    return np.array([n.center for n in parts(figure)[1]])


def test_layouts() -> None:
    chain = centres(plot.mdp(E.riverswim(6)))
    assert (chain[:, 1] == 0.0).all()
    assert (np.diff(chain[:, 0]) > 0.0).all()
    assert (centres(plot.mdp(E.machine_replacement()))[:, 1] == 0.0).all()  # jumps to one state only
    ring = centres(plot.mdp(E.garnet(12, 2, 3)))
    assert np.ptp(np.hypot(*ring.T)) == pytest.approx(0.0, abs=1e-9)
    lake = E.frozen_lake()
    at = centres(plot.mdp(lake))
    assert lake.state_labels is not None
    for label, (x, y) in zip(lake.state_labels, at / 1.25, strict=True):
        assert label == f"row {-round(y)}, column {round(x)}"
    assert np.ptp(np.hypot(*centres(plot.mdp(E.riverswim(6), layout="circle")).T)) == pytest.approx(0.0, abs=1e-9)


def test_four_rooms_is_a_map_of_its_cells() -> None:
    mdp = E.four_rooms()
    plan = gf.solve(mdp)
    figure = plot.mdp(mdp, plan)
    assert not parts(figure)[0]
    image = figure.axes[0].images[0].get_array()
    assert image is not None
    assert image.shape == (11, 11)
    assert np.ma.count(image) == 104
    assert image[10, 10] == plan.bias[103]
    assert sum(t.get_text() in "↑→↓←" for t in figure.axes[0].texts) == 104
    assert "104 states are too many for a graph" in said(figure)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("column", "row")


def test_a_large_mdp_is_a_map_of_pairs_and_says_so() -> None:
    mdp = E.taxi()
    plan = gf.solve(mdp)
    figure = plot.mdp(mdp, plan)
    loss = figure.axes[0].images[0].get_array()
    assert loss is not None
    assert loss.shape == (6, 400)
    assert np.ma.min(loss) == 0.0
    taken = loss[plan.actions, np.arange(400)]
    assert np.abs(taken).max() <= 1e-6  # the plan's own actions lose nothing, to the solver's precision
    assert "400 states are too many for a graph: loss of the action" in said(figure)
    rewards: Any = plot.mdp(mdp).axes[0].images[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(rewards, 0.0), mdp.rewards.T)
    stock = E.inventory_control()
    crowded = plot.mdp(stock)
    assert "3,311 transitions are too many for a graph: mean cost" in said(crowded)
    costs: Any = crowded.axes[0].images[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(costs), ~stock.allowed.T)
    np.testing.assert_array_equal(costs.T[stock.allowed], stock.costs[stock.allowed])


@pytest.mark.parametrize(("kind", "n"), [("pdf", 3), ("png", 3), ("svg", 3), ("png", 60)])
def test_hostile_labels_are_text(kind: str, n: int, tmp_path: Path) -> None:
    P = np.full((n, 2, n), 1.0 / n)
    states = ["$x_{", "_a\\b", "<b>\x00"] + [f"$ {i} {'é' * (i % 9)}" for i in range(n - 3)]
    mdp = gf.MDP(P, np.zeros((n, 2)), state_labels=states, action_labels=["$\\bad{", "_<"], name="$\\frac{")
    for i, plan in enumerate((None, gf.solve(mdp))):
        plot.mdp(mdp, plan, layout="circle" if n == 3 else "auto").savefig(tmp_path / f"{i}.{kind}")


@pytest.mark.parametrize("mdp", [E.riverswim(6), E.frozen_lake(), E.four_rooms(), E.taxi()], ids=lambda m: m.name)
def test_a_given_ax_is_drawn_on(mdp: gf.MDP) -> None:
    figure = Figure(figsize=(8, 4))
    axes = figure.subplots(1, 2)
    assert plot.mdp(mdp, gf.solve(mdp), ax=axes[0]) is figure
    assert axes[0].patches or axes[0].images
    assert not axes[1].patches
    assert not axes[1].images
    figure.savefig("/dev/null", format="png")


def test_labels_can_be_left_out() -> None:
    names = {"left\nbank", "river\n1"}
    assert names <= {t.get_text() for t in plot.mdp(E.riverswim(6)).axes[0].texts}
    assert not names & {t.get_text() for t in plot.mdp(E.riverswim(6), labels=False).axes[0].texts}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "tree"}, "layout is 'tree', expected one of auto, chain, circle, grid"),
        ({"layout": "grid"}, "do not hold two whole numbers each"),
        ({"action": "swim"}, "there is no action 'swim'"),
        ({"visits": [1, 2]}, r"visits have shape \(2,\), expected \(6,\), \(6, 2\) or \(12,\)"),
        ({"visits": [-1] * 6}, "none negative"),
        ({"plan": "best"}, "plan is not one of this MDP"),
        ({"ax": "here"}, "ax is str, expected matplotlib Axes"),
    ],
)
def test_what_cannot_be_drawn_is_said(options: Any, message: str) -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match=message):
        plot.mdp(E.riverswim(6), **options)


def test_other_things_than_an_mdp_are_refused() -> None:
    plan = gf.solve(E.toy3d())
    with pytest.raises(gf.errors.InvalidArgumentError, match=r"expected an MDP; it is in plan\.mdp"):
        plot.mdp(plan)  # type: ignore[arg-type]
    with pytest.raises(gf.errors.InvalidArgumentError, match="plan is not one of this MDP"):
        plot.mdp(E.riverswim(6), plan)
    with pytest.raises(gf.errors.InvalidArgumentError, match="a circle of 400 states cannot be read"):
        plot.mdp(E.taxi(), layout="circle")
