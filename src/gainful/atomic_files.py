"""Atomic, durable files: after a crash or a full disk a file is either complete or as it was before."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pandas as pd

TABLE_SUFFIXES = (".parquet", ".csv", ".csv.gz")
CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What a file system answers that cannot sync folders; any other error means that a sync failed."""


@contextlib.contextmanager
def replace_file(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the place of `path` when the block ends without an exception.

    The content is on the disk before the file gets its name, and the name is on the disk before the block is left.
    If anything fails, the temporary file is removed and `path` stays as it was; if only the last sync fails, `path` is
    the new file, and a power cut may bring back the old one.

    Parameters
    ----------
    path : Path
        The file to write. Its folder must exist.
    mode : int
        Permissions of the new file, reduced by the process's umask.

    Yields
    ------
    BinaryIO
        The temporary file, `.NAME.<12 hexadecimal digits>.tmp` in the same folder; it can be read, too.

    Raises
    ------
    OSError
        If the file cannot be written or made durable.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(str(temporary), "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write `data` to `path` as a whole, with the guarantees of `replace_file`."""
    with replace_file(path, mode=mode) as file:
        file.write(data)


def table_suffix(file: str | Path) -> str:
    """The suffix by which `write_table` writes a file, or an InvalidArgumentError."""
    name = Path(file).name.lower()
    suffix = next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        raise InvalidArgumentError(
            "file", str(file), "a name that ends in .csv, .csv.gz or .parquet", problem=f"cannot export to {file}"
        )
    return suffix


def write_table(frame: pd.DataFrame, file: str | Path) -> int:
    """Write a table in the format of the file's suffix, with the guarantees of `replace_file`; the number of rows."""
    suffix = table_suffix(file)
    with replace_file(Path(file)) as out:
        if suffix == ".parquet":
            try:
                frame.to_parquet(out, index=False)
            except ImportError as error:
                raise InvalidArgumentError(
                    "file", str(file), hint="pip install 'gainful[parquet]'", problem="Parquet needs pyarrow"
                ) from error
        else:
            frame.to_csv(out, mode="wb", index=False, compression="gzip" if suffix == ".csv.gz" else None)
    return len(frame)


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make a new folder, and those above it that are missing; on return their names are durable.

    Parameters
    ----------
    path : Path
        The folder to make.
    mode : int
        Permissions of the folder itself, reduced by the process's umask.

    Raises
    ------
    FileExistsError
        If there is a file or folder of this name.
    OSError
        If a folder cannot be made or made durable.
    """
    try:
        path.mkdir(mode=mode)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another process makes it too
            make_folder(path.parent)
        path.mkdir(mode=mode)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the creation, renaming and deletion of files in `folder` durable, where the file system can do that.

    Raises
    ------
    OSError
        If it fails. A file system that does not sync folders is no failure: it has another way, or none.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
    finally:
        os.close(handle)
