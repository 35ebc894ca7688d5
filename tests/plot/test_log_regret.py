"""Regret over ln T: the dashed lines have the asymptotic slope and end where the curves end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from tests.plot.test_curves import frame_of as made_up

pytest.importorskip("matplotlib")

RIVER = gf.environments.riverswim_ergodic(3)


def frame_of(environments: tuple[str, ...], agents: int = 3) -> pd.DataFrame:
    frame = made_up(environments, agents)
    return frame.assign(expected_regret=frame["pseudo_regret"])


def test_each_curve_ends_in_a_dashed_line_of_the_slope() -> None:
    frame = frame_of(("river",), agents=2)
    ax = gf.plot.log_regret(frame, RIVER, width="column").axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    curves = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    dashed = [line for line in ax.lines if line.get_label() == "_asymptotic slope"]
    assert len(curves) == len(dashed) == 2
    for curve, line in zip(curves, dashed, strict=True):
        (first, last), (low, high) = (np.asarray(x, dtype=float).tolist() for x in line.get_data())
        assert [last, high] == [float(np.asarray(x, dtype=float)[-1]) for x in curve.get_data()]
        C = gf.theory.asymptotic_slope(RIVER).slope
        assert (high - low) / np.log(last / first) == pytest.approx(C, rel=1e-12, abs=0)


def test_nothing_is_drawn_for_a_process_that_is_not_ergodic_or_for_several() -> None:
    with pytest.raises(InvalidArgumentError, match="may never visit"):
        gf.plot.log_regret(frame_of(("river",)), gf.environments.riverswim(3))
    with pytest.raises(InvalidArgumentError, match="2 environments"):
        gf.plot.log_regret(frame_of(("one", "two")), RIVER)
