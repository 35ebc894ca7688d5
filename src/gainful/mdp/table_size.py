"""How large the table in a file is, before it is read."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gainful.machine import check_memory, memory_limit

BYTES_PER_CHARACTER = 10.0
"""What a table takes in memory for each byte of its text (measured on short labels and numbers)."""
BYTES_PER_CELL = 60.0
"""What a cell of a Parquet file takes at least if it is text."""
COUNTED_AT_ONCE = 1 << 20
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def check_text_size(path: Path) -> None:
    """Raise a MemoryLimitError if the text of a file, decompressed, is too large for a table.

    Parameters
    ----------
    path : Path
        A text file, or one compressed by gzip, bzip2, xz or ZIP.

    Raises
    ------
    MemoryLimitError
        If the table would not fit.
    OSError, EOFError
        If the file cannot be read or decompressed.
    """
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    elif suffix in _OPENERS:
        size = _inflated_size(path, _OPENERS[suffix], int(memory_limit() / BYTES_PER_CHARACTER) + 1)
    else:
        size = path.stat().st_size
    check_memory(str(path), size, BYTES_PER_CHARACTER * size, f"{path}: the table")


def _inflated_size(path: Path, opener: Callable[..., Any], enough: int) -> int:
    """The number of bytes in a compressed file, counted up to `enough`, without keeping them."""
    if path.stat().st_size * COUNTED_AT_ONCE < enough:  # no compression is that good
        return path.stat().st_size
    size = 0
    with opener(path, "rb") as stream:
        while size < enough and (some := stream.read(COUNTED_AT_ONCE)):
            size += len(some)
    return size


def check_parquet_size(path: Path) -> None:
    """Raise a MemoryLimitError if a Parquet file is too large for a table.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    MemoryLimitError
        If the table would not fit.
    ImportError
        If pyarrow is missing.
    OSError, ValueError
        If it is not a Parquet file.
    """
    if not path.is_file():
        return
    parquet = importlib.import_module("pyarrow.parquet")  # an optional dependency without types
    found = parquet.read_metadata(path)
    groups = [found.row_group(i) for i in range(found.num_row_groups)]
    packed = sum(group.total_byte_size for group in groups)
    needed = max(2.0 * packed, BYTES_PER_CELL * found.num_rows * found.num_columns)
    check_memory(str(path), found.num_rows, needed, f"{path}: the table of {found.num_rows:,} rows")
