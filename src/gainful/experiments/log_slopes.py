"""How fast regret still grows over ln T, beside the slope that no consistent learner stays below in the end."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.environments import registry
from gainful.errors import GainfulError
from gainful.experiments.aggregates import curves
from gainful.experiments.foreign_names import is_foreign_environment, on_points
from gainful.experiments.growth import last_decades_window
from gainful.theory.asymptotic import Unknown, asymptotic_slope

if TYPE_CHECKING:
    import pandas as pd

MOST_PAIRS = 500
"""States times actions up to which the constant is computed: a few seconds."""
SLOPE_COLUMNS = ("log_slope", "asymptotic_slope", "slope_ratio", "slope_class")
"""Regret per unit of ln T over the last decade, the constant C, the first over the second, and which C it is."""
ANY_JOINT_LAW = frozenset(
    (
        *("scal-plus", "kl-scal-plus", "balanced-kl-scal-plus", "scal", "tucrl", "kl-ucrl", "ucrl2", "ucrl2b", "ucrl3"),
        *("pmevi-dt", "imed-rl", "optimistic-q", "mbie-eb", "ucbvi", "count-bonus"),
    )
)
"""Agents that do not take rewards and next states for independent: intervals, bonuses or an index for any joint law."""

WHOSE_CONSTANT = {
    "joint": "for agents that allow any joint law of reward and next state",
    "product": "for agents that take reward and next state for independent, and all others",
}
"""Whose C it is, by `slope_class`."""


def model_class(agent: str) -> Unknown:
    """What an agent takes for unknown, which says what the least slope of its regret is.

    "joint": reward and next state of a pair may depend on each other. An agent that is consistent in all such models
    has to rule out more of them, and its C is larger. "product": a posterior of rewards and one of next states, as in
    PSRL; also for agents about which nothing is known, because this C is the smaller one.

    Parameters
    ----------
    agent : str
        The name of the agent.

    Returns
    -------
    {"joint", "product"}

    Examples
    --------
    >>> model_class("imed-rl"), model_class("psrl"), model_class("my_module:Agent")
    ('joint', 'product', 'product')
    """
    return "joint" if agent in ANY_JOINT_LAW else "product"


def log_slope(steps: ArrayLike, regret: ArrayLike) -> float:
    """The least-squares slope of regret against ln(steps) over the last decade of checkpoints.

    Parameters
    ----------
    steps : array_like
        The checkpoints, increasing.
    regret : array_like
        The expected regret at each, on average over runs.

    Returns
    -------
    float
        NaN if fewer than two checkpoints are in the last decade, or the regret is unknown there.

    Examples
    --------
    >>> t = np.array([1.0, 10.0, 100.0, 1000.0])
    >>> round(log_slope(t, 5.0 + 3.0 * np.log(t)), 12)
    3.0
    """
    t, y = np.asarray(steps, dtype=np.float64), np.asarray(regret, dtype=np.float64)
    inside = last_decades_window(t, 1.0) if t.size else np.zeros(0, dtype=bool)
    if inside.sum() < 2 or np.isnan(y[inside]).any():
        return math.nan
    x = np.log(t[inside])
    x -= x.mean()
    return float(x @ y[inside] / (x @ x))


def constant_of(name: str, parameters: dict[str, Any], unknown: Unknown = "product") -> float | None:
    """The constant of Burnetas and Katehakis of an environment of gainful's own, by name.

    Parameters
    ----------
    name : str
        The name of the environment.
    parameters : dict
        Its parameters.
    unknown : {"transitions", "product", "joint"}
        What the learner does not know, as for `gf.theory.asymptotic_slope`. Where the reward depends on the next state,
        "product" is "joint".

    Returns
    -------
    float or None
        `gf.theory.asymptotic_slope`.
        None if the process is not ergodic, has states that are points, has more than 500 pairs, does not come with
        gainful, or all actions are optimal.

    Examples
    --------
    >>> constant_of("riverswim", {}) is None, round(constant_of("riverswim-ergodic", {"n_states": 3}), 2)
    (True, 5.37)
    """
    if is_foreign_environment(name) or on_points(name, parameters):
        return None
    return _constant(name, json.dumps(parameters, sort_keys=True), unknown)


@functools.lru_cache(maxsize=64)
def _constant(name: str, parameters: str, unknown: Unknown) -> float | None:
    try:
        mdp = registry.make(name, **json.loads(parameters))
        if mdp.n_states * mdp.n_actions > MOST_PAIRS:
            return None
        alike = unknown == "product" and mdp.entry_rewards is not None
        found = asymptotic_slope(mdp, unknown="joint" if alike else unknown).slope
    except (GainfulError, ImportError, TypeError):
        return None  # not ergodic, or it cannot be made or solved
    return found if found > 0.0 else None


def slope_columns(
    steps: ArrayLike, regret: ArrayLike, constant: float | None, unknown: Unknown = "product"
) -> dict[str, Any]:
    """Give the numbers of one curve.

    Parameters
    ----------
    steps, regret : array_like
        As for `log_slope`.
    constant : float or None
        C; None if it is unknown.
    unknown : {"transitions", "product", "joint"}
        Which C it is.

    Returns
    -------
    dict
        log_slope, asymptotic_slope and slope_ratio, NaN if unknown; and slope_class, which C it is, "" if unknown.

    Examples
    --------
    >>> slope_columns([10, 100], [1.0, 1.0 + np.log(10.0)], 2.0)["slope_ratio"]
    0.5
    """
    slope, C = log_slope(steps, regret), math.nan if constant is None else constant
    known = "" if constant is None else unknown
    return {"log_slope": slope, "asymptotic_slope": C, "slope_ratio": slope / C, "slope_class": known}


def constants_in_words(rows: Iterable[Mapping[Any, Any]]) -> list[str]:
    """Say which C the slopes of one environment are divided by.

    Parameters
    ----------
    rows : iterable of mappings
        With slope_class and asymptotic_slope, as `slope_columns` gives them.

    Returns
    -------
    list of str
        One phrase for each C; none if it is unknown.

    Examples
    --------
    >>> constants_in_words([slope_columns([1, 10, 100], [0.0, 4.6, 9.2], 4.0, "joint")])
    ['4 for agents that allow any joint law of reward and next state']
    """
    known = {row["slope_class"]: row["asymptotic_slope"] for row in rows}
    return [f"{known[which]:.4g} {words}" for which, words in WHOSE_CONSTANT.items() if which in known]


def with_log_slopes(table: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Add the columns log_slope, asymptotic_slope, slope_ratio and slope_class to a summary of stored runs.

    Parameters
    ----------
    table : pandas.DataFrame
        What `gainful.experiments.aggregates.summary` made of `frame`.
    frame : pandas.DataFrame
        The tidy table of `gainful.results`.

    Returns
    -------
    pandas.DataFrame
        The same rows.
    """
    by_group = dict(tuple(curves(frame, "expected_regret").groupby(["environment", "agent"], observed=True)))
    made = frame.drop_duplicates(["environment", "agent"]).set_index(["environment", "agent"])["parameters"]
    rows = []
    for key in zip(table["environment"], table["agent"], strict=True):
        stored = json.loads(made[key])
        unknown = model_class(stored["names"][1])
        curve = by_group.get(key)
        steps: Any = () if curve is None else curve["step"]
        mean: Any = () if curve is None else curve["mean"]
        constant = constant_of(stored["names"][0], stored["environment"], unknown)
        rows.append(slope_columns(steps, mean, constant, unknown))
    return table.assign(**{name: [row[name] for row in rows] for name in SLOPE_COLUMNS})
