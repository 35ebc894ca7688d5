"""Tables of transitions: CSV and Parquet files and data frames, to an MDP and back.

A table has one line per transition, with the columns state, action, next_state, probability, and reward or cost.
"""

from __future__ import annotations

import difflib
import lzma
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import LONGEST, InvalidArgumentError, InvalidMDPError, MemoryLimitError, suggestion
from gainful.mdp.assembly import Ingredients, RewardLaw, Start
from gainful.mdp.labels import label_column
from gainful.mdp.rows import SUM_TOLERANCE
from gainful.mdp.table_size import check_parquet_size, check_text_size
from gainful.mdp.units import Units

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

LABEL_COLUMNS = ("state", "action", "next_state")
_NUMBER_COLUMNS = ("probability", "reward", "cost", "rate", "reward_rate", "cost_rate")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip")
_ATTRIBUTES = "gainful"  # the key in DataFrame.attrs of what the columns cannot hold


def from_table(
    cls: type[Model],
    table: Any,
    *,
    reward_law: RewardLaw | None = None,
    start: Start | None = None,
    name: str | None = None,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    step_duration: float | None = None,
) -> Model:
    """Build an MDP from a CSV (.csv, .tsv, also compressed) or Parquet file, or any data frame.

    States that are the integers 0 … S-1 are indices; any other names become labels, in order of first appearance in the
    column `state`; the same holds for actions. A pair without a row is an action that the state does not have. The
    same next state may be listed with several rewards.

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    table : path, data frame or dict of columns
        With the columns state, action, next_state, probability, and either `reward` (maximised) or `cost`
        (minimised); other columns are ignored. A frame from `to_table` also brings its law, start, actions and step
        duration in `frame.attrs`; arguments take precedence over them.
    reward_law : {"deterministic", "bernoulli", "transition"}, optional
        By default "deterministic" if the rewards of each pair are equal, otherwise "transition". With the first two,
        the mean of the pair is used.
    start : int, str or array_like, optional
        A state or a distribution; the first state by default.
    name : str, optional
        A name to show.
    state_labels, action_labels : sequence of str, optional
        All labels, in the order of their indices.
    step_duration : float, optional
        The length of a step in the user's time.

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError
        Naming the file, line (or row) and column of the first error.
    """
    source = read_table(table)
    _refuse_log(source)
    source.require(*LABEL_COLUMNS, "probability")
    values = source.one_of("reward", "cost")
    source.require(values)
    kept = source.attributes()
    probability = source.numbers("probability", low=0.0, expected="a number in [0, 1]")
    reward = source.numbers(values)
    pairs = label_pairs(source, state_labels, action_labels, kept)
    S, A, k = pairs.n_states, pairs.n_actions, pairs.pair
    _check_sums(source, pairs, probability)

    if np.all(k[1:] >= k[:-1]):
        target = pairs.next_state
    else:
        order = np.argsort(k, kind="stable")
        k, target, probability, reward = k[order], pairs.next_state[order], probability[order], reward[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(k, minlength=S * A))])
    possible = probability > 0.0
    pair_rewards = np.zeros(S * A)
    pair_rewards[k[possible]] = reward[possible]
    constant = bool(np.all(pair_rewards[k[possible]] == reward[possible]))

    law = reward_law or (kept.get("reward_law", "deterministic") if constant else "transition")
    if start is None:
        start = _kept_start(source, pairs, kept)
    duration = step_duration if step_duration is not None else float(kept.get("step_duration", 1.0))
    continuous = step_duration is not None or "step_duration" in kept
    if not (duration > 0.0 and np.isfinite(duration)):
        raise InvalidArgumentError("step_duration", duration, "a positive number")
    return cls._made_of(
        Ingredients(
            n_states=S,
            n_actions=A,
            indptr=indptr,
            indices=target,
            probabilities=probability,
            pair_rewards=pair_rewards,
            entry_rewards=reward if law == "transition" or not constant else None,
            reward_law=law,
            start=start,
            state_labels=pairs.state_labels,
            action_labels=pairs.action_labels,
            units=Units("cost" if values == "cost" else "reward", step_duration=duration, continuous=continuous),
            name=name if name is not None else kept.get("name"),
        )
    )


def _refuse_log(source: Source) -> None:
    """InvalidMDPError for a table of what happened, which has no probabilities."""
    have = set(source.columns())
    if "probability" in have or "rate" in have or not {"state", "action"} <= have or not have & {"reward", "cost"}:
        return
    if "next_state" not in have and not have & {"unit", "time"}:
        return
    if difflib.get_close_matches("probability", have, cutoff=0.5):  # misspelt: the missing column is named in a moment
        return
    raise InvalidMDPError(
        f"{source.title}: no column 'probability': this looks like a log of what happened",
        name="probability",
        found=source.columns(),
        hint=f"estimate a model from it: gainful fit {source.title} --save model.csv, or gf.fit(log).mdp in "
        "Python; the gain of a policy from it: gainful evaluate --log",
    )


def to_table(mdp: MDP) -> pd.DataFrame:
    """Write an MDP as a data frame with one row per transition, with rewards (or costs) in the user's units.

    `from_table` restores the same MDP: what the columns cannot hold (start, reward law, actions that no state has,
    name, step duration) is in `frame.attrs`, which pandas and Parquet preserve; with a CSV file, pass it as arguments.
    The offset of `normalised()` is lost, because rewards are the user's.

    Parameters
    ----------
    mdp : MDP
        The decision process.

    Returns
    -------
    pandas.DataFrame
        With the columns state, action, next_state, probability, and reward or cost.
    """
    pair = np.repeat(np.arange(mdp.n_states * mdp.n_actions), np.diff(mdp.indptr))
    state, action = np.divmod(pair, mdp.n_actions)
    rewards = mdp.pair_rewards[pair] if mdp.entry_rewards is None else mdp.entry_rewards

    states = label_column(mdp.state_labels, mdp.n_states)
    frame = pd.DataFrame(
        {
            "state": states[state],
            "action": label_column(mdp.action_labels, mdp.n_actions)[action],
            "next_state": states[mdp.indices],
            "probability": mdp.probabilities,
            mdp.units.objective: mdp.units.reward(rewards),
        }
    )
    begin = np.flatnonzero(mdp.start)
    frame.attrs[_ATTRIBUTES] = {
        "reward_law": mdp.reward_law,
        "start": [[int(s) if mdp.state_labels is None else mdp.state_labels[s], float(mdp.start[s])] for s in begin],
        "actions": mdp.n_actions if mdp.action_labels is None else list(mdp.action_labels),
        "name": mdp.name,
    }
    if mdp.units.continuous:
        frame.attrs[_ATTRIBUTES]["step_duration"] = mdp.units.step_duration
    return frame


# ---------------------------------------------------------------------- reading


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
            hint=f"{more}correct the cell",
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

    def require(self, *names: str) -> None:
        """InvalidMDPError if a column is missing or occurs twice."""
        have = self.columns()
        missing = [n for n in names if n not in have]
        if missing:
            listed = ", ".join(f"'{n}'" for n in missing)
            found = ", ".join(f"'{c}'" for c in have) if have else "none"
            free = [c for c in have if c not in names]
            near = [f"for '{n}' rename '{c}'" for n in missing if (c := _nearest(n, free))]
            hint = "; ".join(near) if near else "rename or add the column" + ("s" if len(missing) > 1 else "")
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

    def one_of(self, first: str, second: str) -> str:
        """Whichever of two columns exists; InvalidMDPError if both or neither do."""
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
            hint = near[0] if near else "add one of them"
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
        kept = self.frame.attrs.get(_ATTRIBUTES, {})
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
            hint="give each column a name, or quote the separator",
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


def _nearest(name: str, candidates: Sequence[str]) -> str | None:
    """The column that the user probably meant by `name`."""
    lower = {c.lower().replace(" ", "_"): c for c in candidates}
    for c, original in lower.items():
        if len(c) > 2 and (c in name or name in c):
            return original
    near = difflib.get_close_matches(name, lower, n=1)
    return lower[near[0]] if near else None


# ---------------------------------------------------------------------- names to indices


@dataclass(frozen=True)
class Pairs:
    """Indices of each row's pair and next state, and the names behind them."""

    n_states: int
    n_actions: int
    pair: NDArray[np.int64]  # s*A + a of each row
    next_state: NDArray[np.int64]
    state_labels: list[str] | None
    action_labels: list[str] | None

    def title(self, k: int) -> str:
        """`state 'up', action 'go'`."""
        s, a = divmod(int(k), self.n_actions)
        state = s if self.state_labels is None else f"'{self.state_labels[s]}'"
        action = a if self.action_labels is None else f"'{self.action_labels[a]}'"
        return f"state {state}, action {action}"


def label_pairs(
    source: Source,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    kept: Mapping[str, Any] | None = None,
) -> Pairs:
    """The label columns as indices. A next state that is never a state has no action: an error that names it."""
    states, targets = source.labels("state"), source.labels("next_state")
    if states.dtype != targets.dtype:
        states, targets = (np.array([str(x) for x in column], dtype=object) for column in (states, targets))
    codes, unique = pd.factorize(states)
    order, names = _order(source, "state", unique, codes, state_labels)
    known = pd.Index(unique)
    target_codes = known.get_indexer(pd.Index(targets, dtype=known.dtype))
    lost = np.flatnonzero(target_codes < 0)
    if lost.size:
        at = int(lost[0])
        n = len(pd.unique(targets[lost]))
        raise InvalidMDPError(
            f"{source.place(at)}, column 'next_state': state '{targets[at]}' has no action: it is never in column "
            f"'state'{f' ({n} such states)' if n > 1 else ''}",
            name="next_state",
            found=targets[at],
            hint="correct the name, or add its lines (a state that ends the process can loop on itself or restart)",
        )
    actions = source.labels("action")
    action_codes, action_unique = pd.factorize(actions)
    stored = (kept or {}).get("actions")
    least = 0
    if action_labels is None and isinstance(stored, list) and {str(x) for x in action_unique} <= set(stored):
        action_labels = stored
    elif isinstance(stored, int):
        least = stored
    action_order, action_names = _order(source, "action", action_unique, action_codes, action_labels, least)
    S = len(names) if names is not None else len(unique)
    A = len(action_names) if action_names is not None else max(len(action_unique), least)
    pair = order[codes] * A + action_order[action_codes]
    return Pairs(S, A, pair, order[target_codes], names, action_names)


def _order(
    source: Source,
    column: str,
    unique: Any,
    codes: NDArray[np.intp],
    labels: Sequence[str] | None,
    least: int = 0,
) -> tuple[NDArray[np.int64], list[str] | None]:
    """The index of each distinct name, and the labels (None for the integers 0 … n-1).

    `labels` fixes the order; `least` is a number of integers known to exist, whether all are in the table or not.
    """
    numbers = integer_names(unique, source.is_text)
    if labels is not None:
        fixed = [str(x) for x in labels]
        where = pd.Index(fixed).get_indexer(pd.Index([str(x) for x in unique]))
        if np.all(where >= 0):
            return where.astype(np.int64), fixed
        if numbers is not None and numbers.min() >= 0 and numbers.max() < len(fixed):
            return numbers, fixed
        first = int(np.flatnonzero(where < 0)[0])
        row = int(np.flatnonzero(codes == first)[0])
        raise InvalidMDPError(
            f"{source.place(row)}, column '{column}': '{unique[first]}' is not in {column}_labels",
            name=column,
            found=unique[first],
            hint=suggestion(str(unique[first]), fixed),
        )
    if numbers is not None and numbers.min() >= 0 and numbers.max() < max(len(numbers), least):
        return numbers, None
    return np.arange(len(unique)), [str(x) for x in unique]


def integer_names(unique: Any, is_text: bool) -> NDArray[np.int64] | None:
    """The distinct names as integers, if that is what they are; text only counts as written canonically (no 007)."""
    values = np.asarray(unique)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if is_text and all(re.fullmatch(r"0|[1-9][0-9]{0,17}", x) for x in unique):
        return np.array([int(x) for x in unique], dtype=np.int64)
    return None


def _check_sums(source: Source, pairs: Pairs, probability: NDArray[np.float64]) -> None:
    n = pairs.n_states * pairs.n_actions
    sums = np.bincount(pairs.pair, weights=probability, minlength=n)
    there = np.zeros(n, dtype=bool)
    there[pairs.pair] = True
    wrong = there & (np.abs(sums - 1.0) > SUM_TOLERANCE)
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong[pairs.pair])
    k = int(pairs.pair[rows[0]])
    own = source.row_numbers[np.flatnonzero(pairs.pair == k)]
    listed = ", ".join(str(x) for x in own[:8]) + (", …" if own.size > 8 else "")
    word = ("line" if source.is_text else "row") + ("s" if own.size > 1 else "")
    count = int(wrong.sum())
    raise InvalidMDPError(
        f"{source.place(int(rows[0]))}, column 'probability': the probabilities of {pairs.title(k)} "
        f"sum to {sums[k]:.10g}",
        name="probability",
        found=float(sums[k]),
        expected=f"1 (tolerance {SUM_TOLERANCE:g})",
        hint=f"{count} of {int(there.sum())} pairs fail{'s' if count == 1 else ''}; "
        f"correct {word} {listed}, or add what is missing",
    )


def _kept_start(source: Source, pairs: Pairs, kept: Mapping[str, Any]) -> Start:
    """The start distribution that `to_table` stored, or None for the first state."""
    entries = kept.get("start")
    if not entries:
        return None
    p = np.zeros(pairs.n_states)
    number = None if pairs.state_labels is None else {label: s for s, label in enumerate(pairs.state_labels)}
    for state, mass in entries:
        s = int(state) if number is None and isinstance(state, int) else (number or {}).get(str(state), -1)
        if not 0 <= s < pairs.n_states:
            raise InvalidMDPError(
                f"{source.title}: the start state '{state}' in its attrs has no row",
                name="start",
                found=state,
                hint="pass start=",
            )
        p[s] += mass
    return p
