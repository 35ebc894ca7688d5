"""Reading tables: CSV and Parquet files, also compressed, data frames of any library, and columns in a dictionary."""

from __future__ import annotations

import lzma
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import InvalidMDPError, MemoryLimitError
from gainful.mdp.table_size import check_parquet_size, check_text_size
from gainful.mdp.table_source import LABEL_COLUMNS, Source

_NUMBER_COLUMNS = ("probability", "reward", "cost", "rate", "reward_rate", "cost_rate")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip")


def read_table(table: Any) -> Source:
    """A file or data frame as a `Source`; every failure is an InvalidMDPError that names the file."""
    if isinstance(table, (str, Path)):
        return _read_file(Path(table))
    frame = _as_frame(table)
    if len(frame.columns) == 0 or len(frame) == 0:
        raise InvalidMDPError(
            f"the table has {len(frame)} rows and {len(frame.columns)} columns",
            name="table",
            found=frame.shape,
            expected="one row per transition",
        )
    return Source(frame, "the table", False, np.arange(len(frame)))


def _read_file(path: Path) -> Source:
    title = str(path)
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if kind not in _SEPARATORS and kind not in (".parquet", ".pq"):
        raise InvalidMDPError(
            f"{title}: files of type '{path.suffix}' are not supported",
            name=title,
            found=path.suffix,
            expected=".csv, .tsv or .parquet",
            hint="rename the file, or pass a data frame",
        )
    if not path.exists():
        raise InvalidMDPError(f"{title}: no such file", name=title, hint="check the path")
    if path.is_dir() and kind in _SEPARATORS:
        raise InvalidMDPError(f"{title}: is a folder", name=title, expected="a file")
    if path.is_file() and path.stat().st_size == 0:
        raise InvalidMDPError(
            f"{title}: the file is empty", name=title, expected="a header and one line per transition"
        )
    source = _read_text(path, title, _SEPARATORS[kind]) if kind in _SEPARATORS else _read_parquet(path, title)
    if len(source.frame) == 0:
        raise InvalidMDPError(
            f"{title}: the file has columns ({', '.join(source.columns())}) but no lines",
            name=title,
            expected="one line per transition",
        )
    return source


def _read_text(path: Path, title: str, separator: str) -> Source:
    try:
        check_text_size(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                sep=separator,
                encoding="utf-8-sig",
                index_col=False,
                skipinitialspace=True,
                skip_blank_lines=False,
                keep_default_na=False,
                low_memory=False,
                **_exact_numbers(),
                dtype=dict.fromkeys((*LABEL_COLUMNS, "unit"), str),
                na_values={c: [""] for c in _NUMBER_COLUMNS},
            )
    except pd.errors.EmptyDataError as error:
        raise InvalidMDPError(
            f"{title}: the file is empty", name=title, expected="a header and one line per transition"
        ) from error
    except pd.errors.ParserWarning as error:
        raise InvalidMDPError(
            f"{title}: the lines have more fields than the header",
            name=title,
            hint="give each column a name, or quote the separator; a file with ';' between its columns and decimal "
            "commas must be written with ',' and decimal points",
        ) from error
    except pd.errors.ParserError as error:
        raise InvalidMDPError(
            f"{title}: not a table: {str(error).strip()}", name=title, hint="correct the line, or quote the separator"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidMDPError(
            f"{title}: not UTF-8 text ({error.reason} at byte {error.start})", name=title, hint="save it as UTF-8"
        ) from error
    except MemoryLimitError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise InvalidMDPError(
            f"{title}: cannot be read: {error}", name=title, hint="check the file and its permissions"
        ) from error
    frame.columns = [str(c).strip() for c in frame.columns]
    lines = np.arange(2, len(frame) + 2)
    have = [c for c in LABEL_COLUMNS if c in frame.columns]
    if have and bool((frame[have[0]] == "").any()):  # blank lines, such as one at the end, are not transitions
        empty: NDArray[np.bool_] = (frame.isna() | (frame.astype(object) == "")).to_numpy(dtype=bool)
        filled = np.flatnonzero(~np.all(empty, axis=1))
        frame, lines = frame.iloc[filled], lines[filled]
    return Source(frame, title, True, lines)


def _exact_numbers() -> dict[str, Any]:
    """Decimals to the last bit: what pandas does by default from 3.1 on, and on request before."""
    major, minor = (int(x) for x in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _read_parquet(path: Path, title: str) -> Source:
    try:
        check_parquet_size(path)
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise InvalidMDPError(
            f"{title}: reading Parquet needs pyarrow",
            name=title,
            hint="install it with: pip install 'gainful[parquet]'",
        ) from error
    except MemoryLimitError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidMDPError(
            f"{title}: not a readable Parquet file: {detail}", name=title, hint="write the file again"
        ) from error
    return Source(frame, title, False, np.arange(len(frame)))


def _as_frame(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    try:
        if isinstance(table, Mapping):
            return pd.DataFrame(dict(table))
        if hasattr(table, "to_pandas"):
            frame = table.to_pandas()
        elif hasattr(table, "__dataframe__"):
            frame = pd.api.interchange.from_dataframe(table)
        else:
            raise InvalidMDPError(
                f"a table of type {type(table).__name__} is not supported",
                name="table",
                found=table,
                hint="pass a path, a data frame or a dictionary of columns",
            )
    except (ImportError, TypeError, ValueError) as error:
        if isinstance(error, InvalidMDPError):
            raise
        raise InvalidMDPError(
            f"the {type(table).__name__} cannot be converted to a data frame: {error}", name="table", found=table
        ) from error
    if not isinstance(frame, pd.DataFrame):
        raise InvalidMDPError(
            f"the {type(table).__name__} converts to {type(frame).__name__}",
            name="table",
            found=table,
            expected="a data frame",
        )
    return frame
