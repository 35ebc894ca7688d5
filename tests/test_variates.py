"""Normal, Gamma and Beta variables against their distribution functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

from gainful.variates import TAIL_FROM, beta, first_share, gamma_from_one, log_gamma, normal

KEY = np.uint64(12345)


@njit(error_model="numpy")  # not cached: an edit of what it calls would not be seen
def fill(kind: int, a: float, b: float, key: Any, out: Any) -> int:
    """Variables of one kind, one after another; the number of draws."""
    n = np.uint64(0)
    for i in range(out.size):
        if kind == 0:
            out[i], n = normal(key, n)
        elif kind == 1:
            out[i], n = gamma_from_one(a, key, n)
        elif kind == 2:
            out[i], n = log_gamma(a, key, n)
        elif kind == 3:
            out[i], n = beta(a, b, key, n)
        else:
            out[i], n = first_share(a, b, key, n)
    return int(n)


def filled(kind: int, size: int, a: float = 0.0, b: float = 0.0) -> Any:
    out = np.empty(size)
    fill(kind, a, b, KEY, out)
    return out


def test_normal_variables_from_each_part_of_the_ziggurat() -> None:
    """So many that a wrong rule in the wedges, a few thousandths of the mass, shows in the bins, or one in the tail."""
    x = filled(0, 16_000_000)
    bins = 1024
    found = np.bincount((stats.norm.cdf(x[: x.size // 2]) * bins).astype(np.int64), minlength=bins)
    assert stats.chisquare(found).pvalue > 1e-3
    tail = np.abs(x[np.abs(x) > TAIL_FROM])
    share = 2.0 * stats.norm.sf(TAIL_FROM)
    assert tail.size == pytest.approx(share * x.size, rel=0, abs=4 * np.sqrt(share * x.size))
    assert stats.kstest(2.0 * stats.norm.sf(tail) / share, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("shape", [1.0, 1.5, 30.0, 1e6])
def test_gamma_variables(shape: float) -> None:
    assert stats.kstest(filled(1, 200_000, shape), "gamma", args=(shape,)).pvalue > 1e-3


@pytest.mark.parametrize("shape", [0.01, 0.5, 3.0])
def test_logarithms_of_gamma_variables(shape: float) -> None:
    assert stats.kstest(filled(2, 200_000, shape), "loggamma", args=(shape,)).pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.2, 3.0), (40.0, 2.5)])
def test_beta_variables(a: float, b: float) -> None:
    assert stats.kstest(filled(3, 200_000, a, b), "beta", args=(a, b)).pvalue > 1e-3


@pytest.mark.parametrize(("a", "b"), [(0.01, 0.95), (0.2, 0.8), (0.5, 3.0)])
def test_first_shares(a: float, b: float) -> None:
    assert stats.kstest(filled(4, 200_000, a, b), "beta", args=(1 + a, b)).pvalue > 1e-3
