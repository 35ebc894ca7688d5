"""One plain file per MDP: a NumPy .npz archive of arrays and a JSON header; nothing is ever unpickled."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.units import Units

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

FORMAT = "gainful-mdp"
VERSION = 1
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
    header = {
        "format": FORMAT, "version": VERSION, "n_states": mdp.n_states, "n_actions": mdp.n_actions,
        "reward_law": mdp.reward_law, "name": mdp.name,
        "state_labels": mdp.state_labels, "action_labels": mdp.action_labels,
        "units": {
            "objective": mdp.units.objective, "offset": float(mdp.units.offset),
            "step_duration": float(mdp.units.step_duration), "continuous": mdp.units.continuous,
        },
    }  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(json.dumps(header, ensure_ascii=False, allow_nan=False).encode(), dtype=np.uint8)
    }
    for name in _DTYPES:
        array = getattr(mdp, name)
        if array is not None:
            arrays[name] = array
    target = Path(os.path.realpath(path))  # through a link, the file behind it is replaced
    if not target.parent.is_dir():
        raise InvalidArgumentError(f"cannot save to {path}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InvalidArgumentError(f"cannot save to {path}: it is a folder; give the name of a file")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot save to {path}: {error.strerror or error}; check space and permissions"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def load(cls: type[Model], path: str | Path) -> Model:
    """The MDP in a file written by `save`, equal to the bit; checked like any other input."""
    arrays = _read(path)
    header = _header(path, arrays.pop("header", None))
    try:
        S, A = int(header["n_states"]), int(header["n_actions"])
        units = Units(**header["units"])
        law, name = header["reward_law"], header["name"]
        state_labels, action_labels = header["state_labels"], header["action_labels"]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its header lacks or garbles {error}") from error
    expected = {"indptr": S * A + 1, "pair_rewards": S * A, "start": S}
    needed = set(_DTYPES) - (set() if law == "transition" else {"entry_rewards"})
    if set(arrays) != needed:
        raise _damaged(path, f"it holds the arrays {sorted(arrays)}, expected {sorted(needed)}")
    for key, array in arrays.items():
        if array.dtype != _DTYPES[key] or array.ndim != 1 or array.size != expected.get(key, arrays["indices"].size):
            raise _damaged(path, f"array '{key}' has shape {array.shape} and dtype {array.dtype}")
    mdp = cls.__new__(cls)
    try:
        mdp._assemble(
            S, A, arrays["indptr"], arrays["indices"], arrays["probabilities"], arrays["pair_rewards"],
            arrays.get("entry_rewards"), reward_law=law, start=arrays["start"], allowed=None,
            state_labels=state_labels, action_labels=action_labels, units=units, name=name, user_rewards=False,
        )  # fmt: skip
    except (InvalidMDPError, InvalidArgumentError) as error:
        raise _damaged(path, str(error)) from error
    for key, array in arrays.items():  # keep the stored bits, which the checks may only have rounded again
        if not np.allclose(getattr(mdp, key), array, rtol=0.0, atol=1e-12 * max(1.0, float(np.abs(array).max()))):
            raise _damaged(path, f"array '{key}' does not agree with the others")
        array.flags.writeable = False
        setattr(mdp, key, array)
    return mdp


def _read(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays of the archive; the zip checksums find damage."""
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            if not magic:
                raise InvalidMDPError(f"{path}: the file is empty, expected an MDP written by mdp.save")
            if magic != b"PK\x03\x04":
                raise InvalidMDPError(f"{path}: not a saved MDP (no archive); for a table use MDP.from_table")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise InvalidMDPError(f"{path}: no such file; check the path") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, MemoryError, NotImplementedError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from error
    except OSError as error:
        raise InvalidMDPError(f"{path}: cannot be read: {error.strerror or error}; check the path") from error
    except ValueError as error:
        if isinstance(error, InvalidMDPError):
            raise
        raise _damaged(path, str(error).splitlines()[0]) from error


def _header(path: str | Path, raw: NDArray[Any] | None) -> dict[str, Any]:
    foreign = f"{path}: a NumPy archive, but not a saved MDP (no header of {FORMAT}); write it with mdp.save"
    if raw is None or raw.dtype != np.uint8:
        raise InvalidMDPError(foreign)
    try:
        header = json.loads(raw.tobytes().decode())
    except ValueError as error:
        raise _damaged(path, f"its header is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InvalidMDPError(foreign)
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(path, f"its version is {version!r}")
    if version > VERSION:
        raise InvalidMDPError(
            f"{path}: written in version {version} of the format, this gainful reads up to {VERSION}; upgrade gainful"
        )
    return header


def _damaged(path: str | Path, detail: str) -> InvalidMDPError:
    return InvalidMDPError(f"{path}: truncated or damaged: {detail}; restore a copy, or save the MDP again")


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where folders can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems refuse to sync a folder; the file itself is safe
        pass
    finally:
        os.close(handle)
