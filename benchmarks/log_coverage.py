"""How often the intervals of `gf.fit` hold the true optimal gain: logs of uniformly random actions in known models.

python benchmarks/log_coverage.py [--quick]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import gainful as gf
from gainful.errors import GainfulError

VAN = gf.MDP.from_table(
    {
        "state": ["fine", "fine", "rattling", "rattling", "rattling", "broken", "broken"],
        "action": ["drive", "drive", "drive", "drive", "service", "repair", "repair"],
        "next_state": ["fine", "rattling", "rattling", "broken", "fine", "fine", "broken"],
        "probability": [0.95, 0.05, 0.8, 0.2, 1.0, 0.5, 0.5],
        "cost": [10.0, 10.0, 30.0, 30.0, 120.0, 200.0, 200.0],
    },
    name="van",
)
MODELS = (VAN, gf.environments.riverswim(4), gf.environments.garnet(10, 3, 3))
LOGS = ((500, 1), (500, 25), (4000, 1))  # rows and units


def walk(mdp: gf.MDP, rows: int, units: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Rows of units that begin in the first state and choose their actions uniformly."""
    value = mdp.units.objective
    log: dict[str, list[Any]] = {name: [] for name in ("unit", "time", "state", "action", value)}
    for unit in range(units):
        state = 0
        for time in range(rows // units + 1):
            action = int(rng.choice(np.flatnonzero(mdp.allowed[state])))
            moves = mdp.transition(state, action)
            reward = mdp.units.sign * float(mdp.rewards[state, action])
            for name, cell in zip(log, (unit, time, state, action, reward), strict=True):
                log[name].append(cell)
            state = int(rng.choice(list(moves), p=list(moves.values())))
    return log


def covered(mdp: gf.MDP, rows: int, units: int, logs: int) -> tuple[int, int]:
    """In how many logs the interval holds the optimal gain, and how many have no estimate."""
    truth = gf.solve(mdp).gain
    hits = failures = 0
    for seed in range(logs):
        log = walk(mdp, rows, units, np.random.default_rng(seed))
        try:
            interval = gf.fit(log, states=range(mdp.n_states), ends="drop", replicates=100).gain_interval
        except GainfulError:
            interval = None
        failures += interval is None
        hits += interval is not None and interval[0] <= truth <= interval[1]
    return hits, failures


def main(quick: bool) -> None:
    logs = 10 if quick else 60
    print(f"optimal gains inside intervals of 95 %, in {logs} logs each")
    for mdp in MODELS:
        for rows, units in LOGS:
            hits, failures = covered(mdp, rows, units, logs)
            lost = f", {failures} without an estimate" if failures else ""
            print(f"  {mdp.name:<10} {rows:>5} rows in {units:>2} units: {hits:>3} ({100 * hits / logs:.0f} %){lost}")


if __name__ == "__main__":
    main("--quick" in sys.argv)
