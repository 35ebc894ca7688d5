"""An MDP in one plain file: arrays and a JSON header (see `gainful.archive`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.archive import Format, read_archive, write_archive
from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.assembly import Ingredients
from gainful.mdp.units import Units

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

FORMAT = Format(
    "gainful-mdp",
    2,
    "MDP",
    "mdp.save",
    InvalidMDPError,
    otherwise="; for a table use MDP.from_table",
    checked_since=2,
)
_DTYPES = {
    "indptr": np.int64,
    "indices": np.uint32,
    "probabilities": np.float64,
    "pair_rewards": np.float64,
    "entry_rewards": np.float64,
    "start": np.float64,
}


def save(mdp: MDP, path: str | Path) -> None:
    """Write the MDP to exactly `path`; the file is complete or, if anything fails, as it was before."""
    write_archive(FORMAT, path, header_of(mdp), arrays_of(mdp))


def header_of(mdp: MDP) -> dict[str, Any]:
    """What a file has of an MDP besides its arrays."""
    return {
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "reward_law": mdp.reward_law,
        "name": mdp.name,
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
        "units": {
            "objective": mdp.units.objective,
            "offset": float(mdp.units.offset),
            "step_duration": float(mdp.units.step_duration),
            "continuous": mdp.units.continuous,
        },
    }


def arrays_of(mdp: MDP) -> dict[str, NDArray[Any]]:
    """The arrays of an MDP."""
    return {name: getattr(mdp, name) for name in _DTYPES if getattr(mdp, name) is not None}


def load(cls: type[Model], path: str | Path) -> Model:
    """The MDP in a file written by `save`, equal to the bit; checked like any other input."""
    return assembled(cls, FORMAT, path, *read_archive(FORMAT, path))


def assembled(
    cls: type[Model], kind: Format, path: str | Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> Model:
    """The MDP of a header and arrays that were read from a file of some kind."""
    try:
        S, A = int(header["n_states"]), int(header["n_actions"])
        units = Units(**header["units"])
        law, name = header["reward_law"], header["name"]
        state_labels, action_labels = header["state_labels"], header["action_labels"]
    except (KeyError, TypeError, ValueError) as error:
        raise kind.damaged(path, f"its header lacks or garbles {error}") from error
    expected = {"indptr": S * A + 1, "pair_rewards": S * A, "start": S}
    needed = set(_DTYPES) - (set() if law == "transition" else {"entry_rewards"})
    if set(arrays) != needed:
        raise kind.damaged(path, f"it holds the arrays {sorted(arrays)}, expected {sorted(needed)}")
    for key, array in arrays.items():
        if array.dtype != _DTYPES[key] or array.ndim != 1 or array.size != expected.get(key, arrays["indices"].size):
            raise kind.damaged(path, f"array '{key}' has shape {array.shape} and dtype {array.dtype}")
    try:
        mdp = cls._made_of(
            Ingredients(
                n_states=S,
                n_actions=A,
                indptr=arrays["indptr"],
                indices=arrays["indices"],
                probabilities=arrays["probabilities"],
                pair_rewards=arrays["pair_rewards"],
                entry_rewards=arrays.get("entry_rewards"),
                reward_law=law,
                start=arrays["start"],
                state_labels=state_labels,
                action_labels=action_labels,
                units=units,
                name=name,
                user_rewards=False,
            )
        )
    except (InvalidMDPError, InvalidArgumentError) as error:
        raise kind.damaged(path, str(error)) from error
    for key, array in arrays.items():  # keep the stored bits, which the checks may only have rounded again
        if not np.allclose(getattr(mdp, key), array, rtol=0.0, atol=1e-12 * max(1.0, float(np.abs(array).max()))):
            raise kind.damaged(path, f"array '{key}' does not agree with the others")
        array.flags.writeable = False
        object.__setattr__(mdp, key, array)
    return mdp
