"""The result of a simulation: regret at checkpoints, and a record of every episode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import finite
from gainful.cards import card, logarithmic_curve
from gainful.errors import InvalidArgumentError, describe
from gainful.progress import short_rate

if TYPE_CHECKING:
    import pandas as pd

REGRETS = ("expected_regret", "pseudo_regret", "regret")
"""The measures of regret, the preferred one first."""
MEASURE_NAMES = {
    "expected_regret": "expected regret",
    "pseudo_regret": "pseudo-regret",
    "regret": "realised regret",
    "reward": "total reward",
}
"""What to call them in tables and on axes."""
MAX_HORIZON = 10**18
"""The largest number of steps of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The rewards and the regret of one agent in one environment: the result of `simulate`.

    Arrays have one entry per checkpoint. Rewards are to be maximised: costs are negated.

    Attributes
    ----------
    steps : ndarray of int
        The checkpoints: numbers of steps, increasing; the last is the horizon.
    rewards : ndarray
        The total reward Σ r_t at each checkpoint.
    regret : ndarray
        The regret T·g* - Σ r_t; NaN if g* is unknown.
    pseudo_regret : ndarray
        Σ (g* - r(s_t,a_t)) with mean rewards; for runs outside MDPs see `ContinuousRun`.
    expected_regret : ndarray
        Σ gap(s_t,a_t), the optimality gaps of the pairs played (`gf.optimality_gaps`): never falls, and has no luck
        in it. NaN for runs outside MDPs, where the gain depends on the start, and at checkpoints that a version
        without it had passed.
    gain : float
        The optimal gain g* per step, in the units of the rewards.
    episodes : structured ndarray
        One record per episode of the agent, including those of earlier runs: see `agents.episodic.EPISODE_RECORD`.
    final_state : int
        The state in which the run ended.
    seed : int
        The seed of the environment's randomness.
    planning_seconds, acting_seconds : float
        CPU time of planning, and of acting and counting. Only these may differ between two runs with the same seed.
    vacuous : bool
        Whether the agent's bounds were still so wide at the end that its plan ignored the data.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.riverswim(6)
    >>> run = gf.simulate(gf.UCRL2(n_states=6, n_actions=2), mdp, horizon=100, seed=1, checkpoints=[10, 100])
    >>> run.steps.tolist(), bool(run.regret[-1] == 100 * run.gain - run.rewards[-1])
    ([10, 100], True)
    """

    steps: NDArray[np.int64]
    rewards: NDArray[np.float64]
    regret: NDArray[np.float64]
    pseudo_regret: NDArray[np.float64]
    gain: float
    episodes: NDArray[Any]
    final_state: int
    seed: int
    planning_seconds: float
    acting_seconds: float
    vacuous: bool = False
    expected_regret: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if self.expected_regret.size == 0:
            object.__setattr__(self, "expected_regret", np.full(len(self.steps), np.nan))

    @property
    def horizon(self) -> int:
        """The number of steps simulated."""
        return int(self.steps[-1])

    @property
    def measure(self) -> str:
        """Which regret to show: "expected_regret", or the first of "pseudo_regret" and "regret" that is known."""
        return next((name for name in REGRETS if np.isfinite(getattr(self, name)[-1])), "regret")

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the run, under the names that the columns of `gf.results` have.

        Returns
        -------
        pandas.DataFrame
            One row per checkpoint: seed, step, reward, regret, pseudo_regret, expected_regret; then, the same in every
            row, horizon, gain, episodes (their number), vacuous, planning_seconds and acting_seconds.

        Examples
        --------
        >>> import gainful as gf
        >>> run = gf.simulate(gf.UCRL2(6, 2), gf.environments.riverswim(6), 100, seed=1, checkpoints=[10, 100])
        >>> run.to_frame()[["seed", "step", "episodes"]].iloc[-1].tolist()[:2]
        [1, 100]
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "seed": self.seed,
                "step": self.steps,
                "reward": self.rewards,
                "regret": self.regret,
                "pseudo_regret": self.pseudo_regret,
                "expected_regret": self.expected_regret,
                "horizon": self.horizon,
                "gain": self.gain,
                "episodes": len(self.episodes),
                "vacuous": self.vacuous,
                "planning_seconds": self.planning_seconds,
                "acting_seconds": self.acting_seconds,
            }
        )

    def episodes_to_frame(self) -> pd.DataFrame:
        """Tabulate the episodes; `episodes` itself stays the structured array.

        Returns
        -------
        pandas.DataFrame
            One row per episode, numbered from 1: step (its first, from 1), length in steps (missing for the last one,
            which has not ended), gain, gain_low, gain_high, span, sweeps and planning_seconds.

        Examples
        --------
        >>> import gainful as gf
        >>> run = gf.simulate(gf.UCRL2(6, 2), gf.environments.riverswim(6), 100, seed=1)
        >>> episodes = run.episodes_to_frame()
        >>> len(episodes) == len(run.episodes), int(episodes["step"].iloc[0])
        (True, 1)
        """
        import pandas as pd

        found = pd.DataFrame({name: self.episodes[name] for name in self.episodes.dtype.names or ()})
        found.index = pd.RangeIndex(1, len(found) + 1, name="episode")
        found.insert(1, "length", (found["step"].shift(-1) - found["step"]).astype("Int64"))
        return found

    def __repr__(self) -> str:
        value = float(getattr(self, self.measure)[-1])
        lost = f"{MEASURE_NAMES[self.measure]} {value:.6g}" if np.isfinite(value) else "regret unknown"
        gain = f", gain {self.gain:.6g}" if np.isfinite(self.gain) else ""
        name = type(self).__name__
        return f"{name}({self.horizon:,} steps, {lost}{gain}, {len(self.episodes):,} episodes, seed {self.seed})"

    def _repr_html_(self) -> str:
        """For notebooks: the numbers of the run, and its regret against steps, both axes logarithmic."""
        curve = getattr(self, self.measure)
        last, seconds = float(curve[-1]), self.planning_seconds + self.acting_seconds
        known = np.isfinite(last)
        name = MEASURE_NAMES[self.measure] if known else "regret"
        facts = {
            "horizon": f"{self.horizon:,} steps",
            "optimal gain per step": f"{self.gain:.10g}" if np.isfinite(self.gain) else "unknown",
            "reward": f"{float(self.rewards[-1]):.8g}, {float(self.rewards[-1]) / self.horizon:.6g} per step",
            name: f"{last:.6g}, {last / self.horizon:.3g} per step" if known else "unknown",
            "episodes": f"{len(self.episodes):,}",
            "speed": f"{short_rate(self.horizon / seconds)} steps per second of CPU"
            if seconds > 0.0
            else "too fast to tell",
            "seed": f"{self.seed}",
        }
        return card("Run", facts, logarithmic_curve(self.steps, curve, name))


def log_checkpoints(horizon: int, per_decade: int = 20) -> NDArray[np.int64]:
    """About `per_decade` steps per factor of ten, from 1 to `horizon`, both included.

    >>> log_checkpoints(100, per_decade=2).tolist()
    [1, 3, 10, 32, 100]
    """
    n = max(2, round(per_decade * np.log10(max(horizon, 2))) + 1)
    return np.unique(np.append(np.rint(np.logspace(0, np.log10(horizon), n)), horizon).astype(np.int64))


def checked_horizon(horizon: float) -> int:
    """A number of steps, at least 1; 1e7 is accepted as an integer."""
    if not (finite(horizon) and 1 <= horizon <= MAX_HORIZON and int(horizon) == horizon):
        raise InvalidArgumentError("horizon", horizon, "a whole number of steps, from 1 to 1e18")
    return int(horizon)


def checked_checkpoints(checkpoints: Any, horizon: int) -> NDArray[np.int64]:
    """Increasing steps in 1 … horizon; the horizon itself is added."""
    if checkpoints is None:
        return log_checkpoints(horizon)
    given = np.asarray(checkpoints)
    if given.dtype.kind not in "iuf" or not np.all(np.abs(given) <= MAX_HORIZON) or np.any(given != np.rint(given)):
        raise InvalidArgumentError(
            "checkpoints",
            checkpoints,
            "whole numbers of steps",
            problem=f"checkpoints are {describe(checkpoints)}",
        )
    steps = np.unique(np.append(given.astype(np.int64), horizon))
    if steps[0] < 1 or steps[-1] > horizon:
        raise InvalidArgumentError(
            "checkpoints",
            checkpoints,
            f"steps in 1 … {horizon}",
            problem=f"checkpoints {steps[0]} … {steps[-1]}",
        )
    return steps
