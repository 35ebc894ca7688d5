"""Which parameter of a sweep matters: the share of the variance between configurations that it alone explains.

The main effects of a functional analysis of variance (Hutter, Hoos and Leyton-Brown 2014, An Efficient Approach for
Assessing Hyperparameter Importance), computed from the configurations themselves, without a model between them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.experiments.run_values import Floats

MOST_SHOWN_VALUES = 6
"""A parameter with more values than this is put into `BINS` ranges with equally many configurations each."""
BINS = 4


@dataclass(frozen=True)
class ParameterEffect:
    """One parameter: its levels, the mean regret at each, and the share of the variance that it explains."""

    name: str
    share: float
    levels: tuple[str, ...]
    means: tuple[float, ...]
    """The geometric mean of the regrets of the configurations at each level."""
    configurations: tuple[int, ...]


def parameter_effects(
    configurations: Sequence[Mapping[str, Any]], regrets: Sequence[float]
) -> tuple[ParameterEffect, ...]:
    r"""The parameters that vary between configurations, the most important one first.

    Parameters
    ----------
    configurations : sequence of mappings
        The parameters of each configuration.
    regrets : sequence of float
        The mean regret of each; configurations whose regret is not above 0 are left out.

    Returns
    -------
    tuple of ParameterEffect
        Empty unless at least two parameters vary over at least four configurations with different regrets.

    Notes
    -----
    With y = log regret, the share of a parameter is Σ_l n_l (ȳ_l - ȳ)² / Σ_i (y_i - ȳ)² over its levels l. In a full
    grid the shares add up to at most 1, and what is missing is due to combinations; elsewhere they may overlap.

    Examples
    --------
    >>> grid = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2)]
    >>> [(e.name, round(e.share, 3)) for e in parameter_effects(grid, [1.0, 1.0, 100.0, 200.0])]
    [('a', 0.99), ('b', 0.005)]
    """
    kept = [(c, math.log(r)) for c, r in zip(configurations, regrets, strict=True) if math.isfinite(r) and r > 0.0]
    if len(kept) < 4:
        return ()
    y = np.array([value for _, value in kept])
    total = float(((y - y.mean()) ** 2).sum())
    names = sorted({name for c, _ in kept for name in c})
    values = {name: [c.get(name) for c, _ in kept] for name in names}
    varied = [name for name in names if len({_text(v) for v in values[name]}) > 1]
    if len(varied) < 2 or total <= 1e-18 * y.size:
        return ()
    found = [_effect(name, values[name], y, total) for name in varied]
    return tuple(sorted(found, key=lambda effect: -effect.share))


def _effect(name: str, values: list[Any], y: Floats, total: float) -> ParameterEffect:
    labels, level = _levels(values)
    counts = np.bincount(level, minlength=len(labels))
    means = np.bincount(level, weights=y, minlength=len(labels)) / counts
    share = float((counts * (means - y.mean()) ** 2).sum()) / total
    return ParameterEffect(name, min(1.0, share), labels, tuple(np.exp(means).tolist()), tuple(counts.tolist()))


def _levels(values: list[Any]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The labels of the levels in their order, and the level of each value."""
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numeric and len(set(values)) > MOST_SHOWN_VALUES:
        x = np.array(values, dtype=np.float64)
        edges = np.unique(np.quantile(x, np.linspace(0.0, 1.0, BINS + 1)))
        level = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, edges.size - 2)
        used, level = np.unique(level, return_inverse=True)
        return tuple(f"{edges[i]:.3g} … {edges[i + 1]:.3g}" for i in used), level
    ordered: list[Any] = (
        sorted(set(values)) if numeric else list(dict.fromkeys(map(_text, values)))
    )  # words as they come
    keys: list[Any] = list(values) if numeric else [_text(v) for v in values]
    place = {value: i for i, value in enumerate(ordered)}
    return tuple(f"{v:g}" if numeric else str(v) for v in ordered), np.array([place[k] for k in keys], dtype=np.intp)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
