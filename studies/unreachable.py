"""Some states cannot be reached: who stops looking for them.

Two problems: the toy with clouds, in which nothing is random, and random problems with one unreachable state.
"""

from __future__ import annotations

from studies.study import Findings, StudyRuns, chosen, decide, draw_curves, growth, mean_of, panels, shown, table

AGENTS = ("UCRL2B", "SCAL+", "TUCRL", "SCAL")
SUBLINEAR = 0.8
"""An exponent below it counts as sublinear, one above 0.95 as linear."""
LINEAR = 0.95


def findings(runs: StudyRuns) -> Findings:
    """Regret and growth of each agent in both problems."""
    toy, garnet = runs.part("toy"), runs.part("garnet")
    toy = chosen(toy, n_transient=1)
    grown = {agent: growth(chosen(garnet, agent=agent)) for agent in AGENTS}
    last = {agent: mean_of(runs.finals("garnet"), agent=agent) for agent in AGENTS}
    lost = {agent: mean_of(chosen(runs.finals("toy"), n_transient=1), agent=agent) for agent in AGENTS}
    rows = [[agent, shown(lost[agent], brackets=False), last[agent], grown[agent]] for agent in AGENTS]
    heads = ["agent", "toy: regret", "random problems: regret", "growth exponent, last decade"]
    figure, (left, right) = panels(
        ["the toy: two states and a cloud", "ten random problems and one state above"],
        below=["nothing is random: all runs are the same", "mean and range of 20 runs"],
    )
    for ax, frame in ((left, toy), (right, garnet)):
        draw_curves(ax, frame, AGENTS)
        ax.set(xscale="log", yscale="log", xlabel="steps", ylabel="expected regret", xlim=(100, None), ylim=(10, None))
    left.legend(frameon=False, fontsize=9)
    verdicts = [
        decide("UCRL2B's regret is linear if some state cannot be reached", grown["UCRL2B"], (LINEAR, 1.2),
               f"It grows like steps to the power {shown(grown['UCRL2B'])}."),
        decide("SCAL+ learns in weakly communicating problems", grown["SCAL+"], (-1.0, SUBLINEAR),
               f"Told c, it has the exponent {shown(grown['SCAL+'])} and loses {shown(last['SCAL+'])}, "
               f"UCRL2B {shown(last['UCRL2B'])}."),
        decide("TUCRL learns there without c", grown["TUCRL"], (-1.0, SUBLINEAR),
               f"It has the exponent {shown(grown['TUCRL'])} and loses {shown(last['TUCRL'])}."),
    ]  # fmt: skip
    return Findings(verdicts, table(heads, rows), figure)
