"""A table that was read: its columns as numbers and names, with messages that name file, line and column."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import LONGEST, InvalidMDPError

LABEL_COLUMNS = ("state", "action", "next_state")
FRAME_ATTRIBUTES = "gainful"
"""The key in DataFrame.attrs of what columns cannot hold."""


@dataclass(frozen=True)
class Source:
    """A table that was read, and how to refer to its cells in messages."""

    frame: pd.DataFrame
    title: str  # the file, or "the table"
    is_text: bool  # read from CSV: every label is text, places are line numbers
    row_numbers: NDArray[np.int64]  # line (CSV) or zero-based row of each row of `frame`

    def place(self, row: int) -> str:
        """`mdp.csv, line 7` or `the table, row 5`."""
        return f"{self.title}, {'line' if self.is_text else 'row'} {self.row_numbers[row]}"

    def fail(self, row: int, column: str, found: str, expected: str, count: int = 1) -> NoReturn:
        """Raise the error for one cell; `count` is the number of cells like it."""
        more = f"{count} of {len(self.frame)} {'lines' if self.is_text else 'rows'}; " if count > 1 else ""
        raise InvalidMDPError(
            f"{self.place(row)}, column '{column}': found {found}",
            name=column,
            found=found,
            expected=expected,
            hint=f"{more}correct the cell{'s' if count > 1 else ''}",
        )

    def shown(self, value: Any) -> str:
        """A cell as a message shows it."""
        if value is None or value is pd.NA or (isinstance(value, str) and value.strip() == ""):
            return "a blank cell"
        if isinstance(value, float) and np.isnan(value):
            return "a blank cell" if self.is_text else "NaN"
        text = f"{value}" if len(f"{value}") <= LONGEST else f"{value}"[:LONGEST] + " …"
        return f"'{text}'" if isinstance(value, str) else text

    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(c) for c in self.frame.columns]

    def require(self, *names: str, hint: str = "") -> None:
        """InvalidMDPError if a column is missing or occurs twice; `hint` says how to name one that has another name."""
        have = self.columns()
        missing = [n for n in names if n not in have]
        if missing:
            listed = ", ".join(f"'{n}'" for n in missing)
            found = ", ".join(f"'{c}'" for c in have) if have else "none"
            free = [c for c in have if c not in names]
            near = [f"for '{n}' rename '{c}'" for n in missing if (c := _nearest(n, free))]
            hint = hint or ("; ".join(near) if near else "rename or add the column" + ("s" if len(missing) > 1 else ""))
            if "probability" in missing and not near:
                hint += "; if each row is something that happened, it is a log: use 'gainful fit', in Python gf.fit"
            if len(have) == 1 and ";" in have[0]:
                hint = "the columns seem to be separated by ';': write the file with commas"
            if missing == ["probability"] and "rate" in have:
                hint = "a table of rates is read with --rates, in Python with MDP.from_rates"
            raise InvalidMDPError(
                f"{self.title}: column{'s' if len(missing) > 1 else ''} {listed} missing; found {found}",
                name=missing[0],
                found=have,
                hint=hint,
            )
        twice = [n for n in names if have.count(n) > 1]
        if twice:
            raise InvalidMDPError(
                f"{self.title}: column '{twice[0]}' occurs {have.count(twice[0])} times",
                name=twice[0],
                found=have.count(twice[0]),
                expected="once",
            )

    def one_of(self, first: str, second: str, hint: str = "") -> str:
        """Whichever of two columns exists; InvalidMDPError if both or neither do, with a `hint` for the latter."""
        have = self.columns()
        if first in have and second in have:
            raise InvalidMDPError(
                f"{self.title}: found both columns '{first}' and '{second}'",
                name=first,
                found=have,
                expected="exactly one",
                hint="drop the other (a cost is minimised, a reward maximised)",
            )
        if first not in have and second not in have:
            found = ", ".join(f"'{c}'" for c in have)
            free = [c for c in have if c not in (*LABEL_COLUMNS, "probability", "rate")]
            near = [f"for '{n}' rename '{c}'" for n in (first, second) if (c := _nearest(n, free))]
            hint = hint or (near[0] if near else "add one of them")
            raise InvalidMDPError(
                f"{self.title}: no column '{first}' or '{second}'; found {found}", name=first, found=have, hint=hint
            )
        return first if first in have else second

    def numbers(self, column: str, low: float = -np.inf, expected: str = "a finite number") -> NDArray[np.float64]:
        """A column as float64: finite, at least `low`."""
        series = self.frame[column]
        if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series.dtype):
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.array([_number(x) for x in series.to_numpy(dtype=object)], dtype=np.float64)
        bad = ~np.isfinite(values) | (values < low)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            self.fail(at, column, self.shown(series.iloc[at]), expected, int(bad.sum()))
        return values

    def labels(self, column: str) -> NDArray[Any]:
        """A column of names: int64 if all are integers, otherwise str objects."""
        series = self.frame[column]
        raw = series.to_numpy(dtype=object)
        blank = series.isna().to_numpy()
        if self.is_text or not pd.api.types.is_numeric_dtype(series.dtype):
            blank = blank | (raw == "")
        if blank.any():
            at = int(np.flatnonzero(blank)[0])
            self.fail(at, column, self.shown(raw[at]), "a name or a number", int(blank.sum()))
        if pd.api.types.is_bool_dtype(series.dtype):
            return np.array([str(x) for x in raw], dtype=object)
        if pd.api.types.is_numeric_dtype(series.dtype):
            values = series.to_numpy()
            if values.dtype.kind == "i" or (values.dtype.kind == "u" and values.max() < 2**63):
                return values.astype(np.int64)
            if values.dtype.kind == "u":
                return np.array([str(x) for x in values], dtype=object)
            numbers = series.to_numpy(dtype=np.float64)
            if np.all(numbers == np.floor(numbers)) and np.all(np.abs(numbers) < 2**53):
                return numbers.astype(np.int64)
        kind = pd.api.types.infer_dtype(raw, skipna=False)
        if kind == "string":
            return raw
        return raw.astype(np.int64) if kind == "integer" else np.array([str(x) for x in raw], dtype=object)

    def attributes(self) -> dict[str, Any]:
        """What `to_table` stored in the attrs of the frame."""
        kept = self.frame.attrs.get(FRAME_ATTRIBUTES, {})
        return dict(kept) if isinstance(kept, Mapping) else {}


def _number(cell: Any) -> float:
    """A cell as a number; NaN if it is none, or not one that a float holds."""
    if isinstance(cell, str):
        cell = cell.strip()
        if "_" in cell:  # Python reads 1_000, tables do not
            return np.nan
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The column that the user probably meant by `name`."""
    lower = {c.lower().replace(" ", "_"): c for c in candidates}
    for c, original in lower.items():
        if len(c) > 2 and (c in name or name in c):
            return original
    near = difflib.get_close_matches(name, lower, n=1, cutoff=0.75)  # 'date' is not meant to be 'state'
    return lower[near[0]] if near else None
