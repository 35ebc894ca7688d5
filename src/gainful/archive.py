"""One plain file: a NumPy .npz archive of arrays with a JSON header; nothing is ever unpickled."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.atomic_files import replace_file
from gainful.errors import GainfulError, InvalidArgumentError


@dataclass(frozen=True)
class Format:
    """A kind of file: its name in the header, the version written, and how messages speak of it."""

    name: str
    version: int
    thing: str
    """What is in it: "MDP", "agent"."""
    written_by: str
    error: type[GainfulError]
    otherwise: str = ""
    """What to do with a file that is not an archive at all."""

    def damaged(self, path: str | Path, detail: str) -> GainfulError:
        """The error for a file that is not as it was written."""
        return self.error(
            f"{path}: truncated or damaged: {detail}",
            name=str(path),
            hint=f"restore a copy, or save the {self.thing} again",
        )


def write_archive(kind: Format, path: str | Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write to exactly `path`; the file is complete or, if anything fails, as it was before."""
    text = json.dumps({"format": kind.name, "version": kind.version, **header}, ensure_ascii=False, allow_nan=False)
    content = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgumentError("path", path, "the name of a file", problem=f"cannot save to {path!r}")
    target = Path(os.path.realpath(path))  # through a link, the file behind it is replaced
    if not target.parent.is_dir():
        raise InvalidArgumentError(
            "path",
            str(path),
            hint="create it first",
            problem=f"cannot save to {path}: the folder {target.parent} does not exist",
        )
    if target.is_dir():
        raise InvalidArgumentError(
            "path", str(path), hint="give the name of a file", problem=f"cannot save to {path}: it is a folder"
        )
    try:
        with replace_file(target) as file:
            np.savez(file, **content)  # type: ignore[arg-type]
    except OSError as error:
        raise InvalidArgumentError(
            "path",
            str(path),
            hint="check space and permissions",
            problem=f"cannot save to {path}: {error.strerror or error}",
        ) from error


def read_archive(kind: Format, path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file written by `write_archive`; the archive's checksums find damage."""
    if not isinstance(path, str | os.PathLike):
        raise kind.error(f"path is {path!r}", name="path", found=path, expected="the name of a file")
    arrays = _read(kind, path)
    return _header(kind, path, arrays.pop("header", None)), arrays


def _read(kind: Format, path: str | Path) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            if not magic:
                raise kind.error(
                    f"{path}: the file is empty",
                    name=str(path),
                    found=b"",
                    expected=f"an {kind.thing} written by {kind.written_by}",
                )
            if magic != b"PK\x03\x04":
                raise kind.error(
                    f"{path}: not a saved {kind.thing} (it is not an archive){kind.otherwise}",
                    name=str(path),
                    found=magic,
                )
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except GainfulError:
        raise
    except FileNotFoundError as error:
        raise kind.error(f"{path}: no such file", name=str(path), hint="check the path") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, MemoryError, NotImplementedError) as error:
        raise kind.damaged(path, str(error) or type(error).__name__) from error
    except OSError as error:
        raise kind.error(
            f"{path}: cannot be read: {error.strerror or error}", name=str(path), hint="check the path"
        ) from error
    except ValueError as error:
        raise kind.damaged(path, str(error).splitlines()[0]) from error


def _header(kind: Format, path: str | Path, raw: NDArray[Any] | None) -> dict[str, Any]:
    foreign = kind.error(
        f"{path}: a NumPy archive, but not a saved {kind.thing} (it has no header of {kind.name})",
        name=str(path),
        hint=f"write it with {kind.written_by}",
    )
    if raw is None or raw.dtype != np.uint8:
        raise foreign
    try:
        header = json.loads(raw.tobytes().decode())
    except ValueError as error:
        raise kind.damaged(path, f"its header is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != kind.name:
        raise foreign
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise kind.damaged(path, f"its version is {version!r}")
    if version > kind.version:
        raise kind.error(
            f"{path}: written in version {version} of the format, this gainful reads up to {kind.version}",
            name=str(path),
            found=version,
            hint="upgrade gainful",
        )
    return header
