"""What is stored of an environment beside its runs: its gain, its span, and the units of its user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gainful.errors import GainfulError
from gainful.experiments.configuration import Configuration, canonical_environment_parameters, hash_of
from gainful.experiments.foreign_environments import is_gymnasium
from gainful.mdp.units import Units


def environment_key(configuration: Configuration) -> str:
    """The key that all runs in one environment share."""
    canonical = configuration.canonical()
    return hash_of({name: canonical[name] for name in ("environment", "environment_parameters")})


def facts_of(environment: Any) -> dict[str, Any]:
    """Gain per step, where it comes from, and span, None if they are unknown; and the units, unless they are plain.

    Gain and span are those of rewards to maximise, per step.
    """
    from gainful.experiments.agent_factory import own_span
    from gainful.mdp.model import MDP
    from gainful.simulation.continuous import known_gain
    from gainful.simulation.optimum import optimal_gain

    if isinstance(environment, MDP):
        found = {"gain": optimal_gain(environment), "gain_source": "solved", "span": own_span(environment)}
        return found | _units_to_store(environment.units)
    if is_gymnasium(environment):
        return {"gain": None, "gain_source": "unknown: a Gymnasium environment has no model", "span": None}
    gain, source = known_gain(environment, None)
    return {"gain": None if gain != gain else gain, "gain_source": source, "span": own_span(environment)}


def _units_to_store(units: Units) -> dict[str, Any]:
    if units.objective == "reward" and units.step_duration == 1.0 and not units.continuous:
        return {}
    kept = {
        "objective": units.objective,
        "step_duration": float(units.step_duration),
        "continuous": bool(units.continuous),
    }
    return {"units": kept}


def stored_units(facts: Mapping[str, Mapping[str, Any]], name: str, parameters: dict[str, Any]) -> Units:
    """The units of an environment by `Store.facts`: of rewards per step if the store does not know them.

    Stores of earlier versions do not. The offset is that of stored rewards, which is 0.
    """
    try:
        canonical = canonical_environment_parameters(name, parameters)
    except GainfulError:  # an environment that this version does not have
        return Units()
    kept = facts.get(hash_of({"environment": name, "environment_parameters": canonical}), {}).get("units")
    if not isinstance(kept, dict) or kept.get("objective") not in ("reward", "cost"):
        return Units()
    duration = kept.get("step_duration")
    if not isinstance(duration, (int, float)) or not 0.0 < duration < float("inf"):
        return Units()
    return Units(kept["objective"], step_duration=float(duration), continuous=kept.get("continuous") is True)
