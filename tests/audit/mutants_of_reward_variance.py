"""Deliberate mistakes in the bound of mean rewards by their variance; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import KL, Mutant

_BOUND, _AGENT = "optimism/reward_variance.py", "agents/kl_scal_plus.py"
BY_VARIANCE = ("admission-control", *KL, "--agent-set", "reward_bound=variance")
"""Rewards depend on the next state, so that they vary."""

MUTANTS_OF_REWARD_VARIANCE = (
    Mutant(
        "half of the variance of rewards",
        _BOUND,
        (("max(0.0, min(second - mean * mean,", "max(0.0, min(0.5 * (second - mean * mean),"),),
        ("set-formula",),
        "",
        BY_VARIANCE,
    ),
    Mutant(
        "the mean square in place of the variance of rewards",
        _BOUND,
        (("min(second - mean * mean, mean * (1.0 - mean))", "min(second, mean * (1.0 - mean))"),),
        ("set-formula",),
        "",
        BY_VARIANCE,
    ),
    Mutant(
        "the bound by the variance stretched to [r̄, 1]",
        _BOUND,
        (("height = room + variance / room", "height = room"),),
        ("set-formula",),
        "",
        BY_VARIANCE,
    ),
    Mutant(
        "rewards bounded by the variance only at first visits",
        _AGENT,
        (("np.flatnonzero(visits != self._planned_visits)", "np.flatnonzero(self._planned_visits <= 0)"),),
        ("set-formula",),
        "",
        BY_VARIANCE,
    ),
)
