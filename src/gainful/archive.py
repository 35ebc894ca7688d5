"""One plain file: a NumPy .npz archive of arrays with a JSON header; nothing is ever unpickled.

The file ends with the archive's comment, "gainful sha256 " and 64 hexadecimal digits: the checksum of every byte before
these digits. NumPy's own checksums cover the contents of the arrays alone. Files of formats from before
`Format.checked_since` have no such comment.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gainful.atomic_files import replace_file
from gainful.errors import GainfulError, InvalidArgumentError, MemoryLimitError
from gainful.machine import check_memory

CHECKSUM_WORDS = b"gainful sha256 "
CHECKSUM_DIGITS = 64
_COMMENT_SIZE = len(CHECKSUM_WORDS) + CHECKSUM_DIGITS


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
    checked_since: int = 1
    """The first version whose files end with a checksum."""
    damage: type[GainfulError] | None = None
    """The error for a damaged file, if it is not `error`."""

    @property
    def damage_error(self) -> type[GainfulError]:
        """The class of errors for files that are not as they were written."""
        return self.damage or self.error

    def damaged(self, path: str | Path, detail: str) -> GainfulError:
        """The error for a file that is not as it was written."""
        return self.damage_error(
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
            _add_checksum(file)
    except OSError as error:
        raise InvalidArgumentError(
            "path",
            str(path),
            hint="check space and permissions",
            problem=f"cannot save to {path}: {error.strerror or error}",
        ) from error


def _add_checksum(file: BinaryIO) -> None:
    """Add the comment with the checksum to an archive without a comment."""
    file.seek(-2, os.SEEK_END)
    file.write(_COMMENT_SIZE.to_bytes(2, "little") + CHECKSUM_WORDS)
    length = file.tell()
    file.write(_checksum(file, length))


def _checksum(file: BinaryIO, length: int) -> bytes:
    """The SHA-256 of the first `length` bytes, in hexadecimal digits; the file is then at their end."""
    file.seek(0)
    found = hashlib.sha256()
    while length > 0:
        some = file.read(min(length, 1 << 20))
        if not some:
            raise OSError("the file became shorter while it was read")
        found.update(some)
        length -= len(some)
    return found.hexdigest().encode()


def _has_checksum(kind: Format, path: str | Path, file: BinaryIO) -> bool:
    """Whether an open archive ends with a checksum; `kind`'s error if it is not that of its bytes."""
    size = file.seek(0, os.SEEK_END)
    if size < _COMMENT_SIZE:
        return False
    file.seek(-_COMMENT_SIZE, os.SEEK_END)
    comment = file.read(_COMMENT_SIZE)
    if not comment.startswith(CHECKSUM_WORDS):
        return False
    if _checksum(file, size - CHECKSUM_DIGITS) != comment[len(CHECKSUM_WORDS) :]:
        raise kind.damaged(path, "its checksum is wrong")
    return True


def check_archive(kind: Format, path: Path) -> None:
    """Raise `kind`'s error if a file is not as `write_archive` wrote it; by its checksum, without reading arrays."""
    try:
        with open(path, "rb") as file:
            checked = _has_checksum(kind, path, file)
    except OSError as error:
        raise kind.error(
            f"{path}: cannot be read: {error.strerror or error}", name=str(path), hint="check the path"
        ) from error
    if not checked:  # of an earlier version, or damaged at its end
        read_archive(kind, path)


def read_archive(kind: Format, path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file written by `write_archive`; `kind`'s error if a bit of it has changed."""
    if not isinstance(path, str | os.PathLike):
        raise kind.error(f"path is {path!r}", name="path", found=path, expected="the name of a file")
    arrays, checked = _read(kind, path)
    header = _header(kind, path, arrays.pop("header", None))
    if header["version"] >= kind.checked_since and not checked:
        raise kind.damaged(path, "the checksum at its end is missing")
    return header, arrays


def _read(kind: Format, path: str | Path) -> tuple[dict[str, NDArray[Any]], bool]:
    """The arrays of an archive, and whether a checksum covers all of it."""
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
            if not magic:
                raise kind.damage_error(
                    f"{path}: the file is empty",
                    name=str(path),
                    found=b"",
                    expected=f"an {kind.thing} written by {kind.written_by}",
                )
            if magic != b"PK\x03\x04":
                raise kind.damage_error(
                    f"{path}: not a saved {kind.thing} (it is not an archive){kind.otherwise}",
                    name=str(path),
                    found=magic,
                )
            checked = _has_checksum(kind, path, file)
            file.seek(0)
            return _arrays(kind, path, file), checked
    except GainfulError:
        raise
    except FileNotFoundError as error:
        raise kind.error(f"{path}: no such file", name=str(path), hint="check the path") from error
    except OSError as error:
        raise kind.error(
            f"{path}: cannot be read: {error.strerror or error}", name=str(path), hint="check the path"
        ) from error


def _arrays(kind: Format, path: str | Path, file: BinaryIO) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(file) as members:
            needed = sum(_array_size(members, member) for member in members.infolist())
        check_memory(str(path), needed, needed, f"{path}: what is in the file")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except MemoryLimitError:
        raise
    except Exception as error:  # a damaged archive makes zipfile, zlib and NumPy raise almost anything
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk
        lines = str(error).splitlines() or [""]
        raise kind.damaged(path, lines[0] or type(error).__name__) from error


def _array_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes of an array by its own description, which is read alone; a ValueError if the archive has fewer."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    size = math.prod(shape) * dtype.itemsize
    if size > member.file_size:
        raise ValueError(f"{member.filename} has shape {shape} and {member.file_size} bytes")
    return member.file_size


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
    except (ValueError, RecursionError) as error:
        raise kind.damaged(path, f"its header is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != kind.name:
        raise foreign
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise kind.damaged(path, f"its version is {version!r}")
    if version > kind.version:
        raise kind.error(
            f"{path}: written in version {version} of the format, this gainful reads up to {kind.version}",
            name=str(path),
            found=version,
            hint="upgrade gainful",
        )
    return header
