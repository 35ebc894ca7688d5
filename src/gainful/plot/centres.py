"""Which band goes with which centre of many runs, for the figures and the report page. Needs no matplotlib.

A median or an interquartile mean is drawn with the quartiles, which show how much runs differ. A mean is drawn with
its confidence interval, which shows how well the mean is known.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Statistic: TypeAlias = Literal["median", "mean", "iqm"]


class Centre(NamedTuple):
    """A centre of many runs and its band, as columns of `gainful.experiments.aggregates.curves`."""

    name: str
    band: str
    low: str
    high: str
    caption: str


CENTRES: dict[Statistic, Centre] = {
    "median": Centre(
        "median", "quartiles", "low", "high", "Median over runs; the band lies between the lower and upper quartiles."
    ),
    "mean": Centre(
        "mean",
        "95 % interval",
        "mean_low",
        "mean_high",
        "Mean over runs; the band is the 95 % confidence interval of the mean.",
    ),
    "iqm": Centre(
        "interquartile mean",
        "quartiles",
        "low",
        "high",
        "Interquartile mean over runs; the band lies between the lower and upper quartiles.",
    ),
}
DEFAULT_CENTRE: Statistic = "mean"
CURVE_COLUMNS = ("mean", "median", "iqm", "low", "high", "mean_low", "mean_high")
"""All columns that a centre or a band needs."""
