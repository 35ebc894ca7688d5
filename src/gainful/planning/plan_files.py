"""Plans as dictionaries, JSON and files: an archive with the plan and the MDP that it is for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.archive import Format, read_archive, write_archive
from gainful.errors import InvalidPlanError
from gainful.mdp.model import MDP
from gainful.mdp.storage import arrays_of, assembled, header_of

if TYPE_CHECKING:
    from gainful.planning.plan import Plan

PLAN_FILE = Format("gainful-plan", 1, "plan", "plan.save", InvalidPlanError)
_OWN = {"bias": np.float64, "actions": np.int64, "stochastic": np.float64, "augmented": np.float64}
_MODEL = "mdp_"
"""Arrays of the MDP have names that begin with this."""


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as what JSON can hold: numbers, lists, and one object per state."""
    mdp = plan.mdp
    return {
        "name": mdp.name,
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "objective": mdp.units.objective,
        "gain_is": mdp.units.gain_name,
        "gain": plan.gain + 0.0,
        "gain_bounds": list(plan.gain_bounds),
        "span": plan.span,
        "method": plan.method,
        "sweeps": plan.sweeps,
        "details": {key: _plain(value) for key, value in plan.details.items()},
        "policy": [_state(plan, s) for s in range(mdp.n_states)],
    }


def _state(plan: Plan, s: int) -> dict[str, Any]:
    mdp = plan.mdp
    entry: dict[str, Any] = {"state": s if mdp.state_labels is None else mdp.state_labels[s]}
    if plan.actions is not None:
        a = int(plan.actions[s])
        entry["action"] = a if mdp.action_labels is None else mdp.action_labels[a]
    else:
        row = plan.policy[s]
        entry["probabilities"] = {mdp.action_name(int(a)): float(row[a]) for a in np.flatnonzero(row)}
    entry["bias"] = float(plan.bias[s])
    return entry


def _plain(value: Any) -> Any:
    """A value as JSON has it; numbers that it cannot hold become text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(x) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write the plan and its MDP to exactly `path`."""
    header = {
        "gain": plan.gain,
        "gain_bounds": list(plan.gain_bounds),
        "sweeps": plan.sweeps,
        "method": plan.method,
        "details": {key: _plain(value) for key, value in plan.details.items()},
        "mdp": header_of(plan.mdp),
    }
    arrays = {name: getattr(plan, name) for name in _OWN if getattr(plan, name) is not None}
    model = {f"{_MODEL}{name}": array for name, array in arrays_of(plan.mdp).items()}
    write_archive(PLAN_FILE, path, header, {**arrays, **model})


def load_plan(cls: type[Plan], path: str | Path) -> Plan:
    """The plan in a file written by `save_plan`; its MDP is checked like any other input."""
    header, arrays = read_archive(PLAN_FILE, path)
    model = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
    own = {name: array for name, array in arrays.items() if not name.startswith(_MODEL)}
    try:
        mdp = assembled(MDP, PLAN_FILE, path, header["mdp"], model)
        low, high = (float(x) for x in header["gain_bounds"])
        gain, sweeps, method = float(header["gain"]), int(header["sweeps"]), str(header["method"])
        details = dict(header["details"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidPlanError):
            raise
        raise PLAN_FILE.damaged(path, f"its header lacks or garbles {error}") from error
    if not low <= gain <= high or not set(own) <= set(_OWN) or ("actions" in own) == ("stochastic" in own):
        raise PLAN_FILE.damaged(path, "its gain, bounds and arrays do not agree")
    _check_arrays(path, mdp, own)
    for array in own.values():
        array.flags.writeable = False
    return cls(
        gain=gain,
        gain_bounds=(low, high),
        bias=own["bias"],
        actions=own.get("actions"),
        sweeps=sweeps,
        method=method,
        mdp=mdp,
        stochastic=own.get("stochastic"),
        augmented=own.get("augmented"),
        details=details,
    )


def _check_arrays(path: str | Path, mdp: MDP, own: dict[str, NDArray[Any]]) -> None:
    S, A = mdp.n_states, mdp.n_actions
    shapes = {"bias": (S,), "actions": (S,), "stochastic": (S, A), "augmented": (S, 2 * A)}
    for name in ("bias", *own):
        array = own.get(name)
        if array is None or array.dtype != _OWN[name] or array.shape != shapes[name]:
            raise PLAN_FILE.damaged(path, f"array '{name}' is missing or of another shape or type")
        if not np.isfinite(array).all():
            raise PLAN_FILE.damaged(path, f"array '{name}' has numbers that are not finite")
    actions = own.get("actions")
    if actions is not None and (
        actions.min() < 0 or actions.max() >= A or not mdp.allowed[np.arange(S), actions].all()
    ):
        raise PLAN_FILE.damaged(path, "its policy plays actions that the MDP does not have")
