"""Uniform partitions of a box into right-closed cells: from points to the states of a tabular agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import inlined, kernel
from gainful.errors import InvalidArgumentError, describe
from gainful.machine import check_memory

if TYPE_CHECKING:
    import gymnasium

Outside = Literal["error", "clip"]

MAX_CELLS = 2**31 - 1
MAX_AXES = 10_000
"""The most axes that a box may have."""


@inlined
def edge(k: int, n: int, low: float, high: float) -> float:
    """Inner edge k = 1 … n-1 of n intervals of [low, high]: one division, so k/n itself on [0, 1]."""
    value: float = (low * (n - k) + high * k) / n
    return value


@inlined
def axis_cell(x: float, n: int, low: float, high: float) -> int:
    """The interval of x among n of [low, high]: a guess by multiplication, put right by comparing with the edges.

    Zero-based; interval 0 is [low, e₁], interval k is (e_k, e_{k+1}]. What lies beyond the ends counts to the end
    intervals, NaN to interval 0: who must not accept that asks `outside_axis` first. The guess, and the edges measured
    on its scale, are off by less than 8·2⁻⁵³·n·max(|low|, |high|)/(high - low) < 1e-6 under the conditions tested, so a
    guess further than that from an edge between two intervals needs no comparison, and no division by n.
    """
    guess, width = x - low, high - low
    guess = (guess if width == 1.0 else guess / width) * n
    if guess >= n:
        k = n - 1
    elif guess > 0.0:
        k = int(guess)
    else:
        k = 0
    sure = (guess - k > 1e-6 or k == 0) and (guess - k < 1.0 - 1e-6 or k == n - 1)
    if sure and n < 1 << 20 and max(-low, high) < 1024.0 * width:
        return k
    while k > 0 and x <= edge(k, n, low, high):
        k -= 1
    while k < n - 1 and x > edge(k + 1, n, low, high):
        k += 1
    return k


@inlined
def cell_of(points: Any, offset: int, bins: Any, low: Any, high: Any) -> int:
    """The cell of the point points[offset : offset + d] (`points` is flat): row-major, the last axis fastest."""
    cell = 0
    for i in range(bins.size):
        cell = cell * bins[i] + axis_cell(points[offset + i], bins[i], low[i], high[i])
    return cell


@inlined
def outside_axis(points: Any, offset: int, low: Any, high: Any) -> int:
    """The first axis on which the point is NaN or outside [low, high]; -1 if there is none."""
    for i in range(low.size):
        if not (low[i] <= points[offset + i] <= high[i]):
            return i
    return -1


@kernel
def locate(points: Any, table: Any, cells: Any) -> int:
    """The cell of every point in the flat array `points`; the first point outside what is accepted, or -1.

    The rows of `table` are bins, low, high, and the least and greatest value accepted, one column per axis.
    """
    d = table.shape[1]
    low, high, least, greatest = table[1], table[2], table[3], table[4]
    bins = table[0].astype(np.int64)
    for i in range(cells.size):
        if outside_axis(points, i * d, least, greatest) >= 0:
            return i
        cells[i] = cell_of(points, i * d, bins, low, high)
    return -1


@kernel
def locate_one(point: Any, table: Any) -> int:
    """The cell of one point, or -1: `locate` without arrays to fill."""
    cell = 0
    for i in range(table.shape[1]):
        if not (table[3, i] <= point[i] <= table[4, i]):
            return -1
        n = int(table[0, i])
        cell = cell * n + axis_cell(point[i], n, table[1, i], table[2, i])
    return cell


@dataclass(frozen=True)
class Partition:
    """A box cut into equal cells: the states that a tabular agent has on a continuous state space.

    On [0, 1] the cells of one axis are I_1 = [0, 1/n], I_k = ((k-1)/n, k/n]: right-closed, the edges being the doubles
    nearest to k/n. On [low, high] the edges are (low·(n-k) + high·k)/n. In d dimensions a cell is a product of such
    intervals. Cells are numbered from 0, row-major (the last axis fastest). A partition is immutable; `uniform` and
    `from_box` make one.

    Parameters
    ----------
    bins : tuple of int
        The number of intervals on each axis.
    low, high : tuple of float
        The ends of the box, one number per axis.
    outside : {"error", "clip"}
        What becomes of points outside the box: an error, or the cell nearest to them. NaN is always an error.

    Raises
    ------
    InvalidArgumentError
        If the lengths differ, an axis has no extent or is too narrow for its cells in floating point, or there are
        more than 2³¹ - 1 cells.

    Examples
    --------
    >>> import gainful as gf
    >>> part = gf.Partition.uniform(bins=100)
    >>> part.index(0.07), part.index(0.070001), part.n_cells
    (6, 7, 100)
    """

    bins: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    outside: Outside = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", _bins(self.bins))
        object.__setattr__(self, "low", _numbers("low", self.low))
        object.__setattr__(self, "high", _numbers("high", self.high))
        if self.outside not in get_args(Outside):
            raise InvalidArgumentError("outside", self.outside, "'error' or 'clip'")
        if not (len(self.bins) == len(self.low) == len(self.high) >= 1):
            raise _uneven(self.bins, self.low, self.high, "", "one each per axis")
        if math.prod(self.bins) > MAX_CELLS:
            raise InvalidArgumentError(
                "bins",
                self.bins,
                f"at most {MAX_CELLS}",
                "take fewer bins",
                problem=f"bins {_short(self.bins)} make {_rounded(math.prod(self.bins))} cells",
            )
        for i in range(self.dim):
            self._check_axis(i)

    # ------------------------------------------------------------------ builders

    @classmethod
    def uniform(
        cls,
        bins: int | Sequence[int] = 20,
        dim: int | None = None,
        low: float | ArrayLike | None = None,
        high: float | ArrayLike | None = None,
        outside: Outside = "error",
    ) -> Self:
        """Cut a box into equal cells.

        Parameters
        ----------
        bins : int or sequence of int
            Intervals on every axis, or on each.
        dim : int, optional
            The number of axes d; by default as many as `bins`, `low` and `high` have entries.
        low, high : float or array_like, optional
            The ends of the box, for every axis or for each; by default [0, 1].
        outside : {"error", "clip"}
            What becomes of points outside the box.

        Returns
        -------
        Partition

        Examples
        --------
        >>> Partition.uniform(bins=3, dim=2).centers[1].tolist() == [1 / 6, 1 / 2]
        True
        """
        counts = _bins(bins)
        below = _numbers("low", 0.0 if low is None else low)
        above = _numbers("high", 1.0 if high is None else high)
        lengths = {len(counts), len(below), len(above)} - {1}
        d = max(lengths, default=1) if dim is None else dim
        if isinstance(d, bool) or not isinstance(d, Integral) or not 1 <= d <= MAX_AXES:
            raise InvalidArgumentError("dim", dim, f"an integer from 1 to {MAX_AXES:,}")
        if len(counts) == 1 and counts[0] > 1 and d * math.log2(counts[0]) > 64:
            problem = f"{counts[0]:,} bins on each of {d:,} axes make too many cells"
            raise InvalidArgumentError("bins", bins, f"at most {MAX_CELLS} cells", "take fewer bins", problem=problem)
        if lengths - {d}:
            raise _uneven(counts, below, above, f" for dim {d}", "one or one per axis")
        return cls(_spread(counts, d), _spread(below, d), _spread(above, d), outside)

    @classmethod
    def from_box(
        cls,
        box: gymnasium.spaces.Box,
        bins: int | Sequence[int] = 20,
        low: ArrayLike | Sequence[float | None] | None = None,
        high: ArrayLike | Sequence[float | None] | None = None,
        outside: Outside | None = None,
    ) -> Self:
        """Cut a Gymnasium Box into equal cells, so that every observation has one.

        Parameters
        ----------
        box : gymnasium.spaces.Box
            A space of shape (d,) or ().
        bins : int or sequence of int
            Intervals on every axis, or on each.
        low, high : float or array_like, optional
            Other ends, for every axis or for each; None keeps the box's own. An axis without bounds needs them.
        outside : {"error", "clip"}, optional
            What becomes of points outside the ends. By default "clip" where `low` or `high` is tighter than the box,
            so that observations beyond them fall into the end cells, and "error" otherwise.

        Returns
        -------
        Partition

        Raises
        ------
        InvalidArgumentError
            If the space is not such a Box, or an axis has no bounds.

        Examples
        --------
        >>> from gymnasium import spaces
        >>> Partition.from_box(spaces.Box(-1.0, 1.0, (2,)), bins=4, high=0.5).outside
        'clip'
        """
        from gymnasium import spaces

        if not isinstance(box, spaces.Box):
            hint = "a Discrete space needs no partition" if isinstance(box, spaces.Discrete) else ""
            raise InvalidArgumentError("box", box, "a gymnasium.spaces.Box", hint, problem=f"the space is {box}")
        if len(box.shape) > 1:
            raise InvalidArgumentError(
                "box",
                box.shape,
                "(d,) or ()",
                "choose a few features of the observation first",
                problem=f"the box has shape {box.shape}",
            )
        d = math.prod(box.shape)
        ends = []
        for name, own, given in (("low", box.low, low), ("high", box.high, high)):
            values = np.asarray(own, dtype=np.float64).reshape(-1).copy()  # exact for every dtype of a box
            if given is not None:
                wanted = np.array(_spread(_numbers(name, given, nan=True), d, name))
                values = np.where(np.isnan(wanted), values, wanted)
            ends.append(values)
        below, above = ends
        # float16, float32 and float64 observations stop at the largest finite number: no bound to cut into cells
        unbounded = [i for i in range(d) if not (below[i] > -1e30 and above[i] < 1e30)]
        if unbounded:
            axes = f"ax{'is' if len(unbounded) == 1 else 'es'} {', '.join(map(str, unbounded))}"
            raise InvalidArgumentError(
                "box",
                box,
                hint="give low= and high=; the end cells extend beyond them",
                problem=f"the box has no bounds on {axes} (low {np.asarray(box.low).reshape(-1)}, high "
                f"{np.asarray(box.high).reshape(-1)})",
            )
        if outside is None:
            tighter = np.any(below > np.asarray(box.low, dtype=np.float64).reshape(-1)) or np.any(
                above < np.asarray(box.high, dtype=np.float64).reshape(-1)
            )
            outside = "clip" if tighter else "error"
        return cls(_spread(_bins(bins), d, "bins"), tuple(below.tolist()), tuple(above.tolist()), outside)

    def with_bins(self, bins: int | Sequence[int]) -> Self:
        """Cut the same box into other cells.

        Parameters
        ----------
        bins : int or sequence of int
            Intervals on every axis, or on each.

        Returns
        -------
        Partition

        Examples
        --------
        >>> Partition.uniform(bins=3).with_bins(5).n_cells
        5
        """
        return type(self)(_spread(_bins(bins), self.dim, "bins"), self.low, self.high, self.outside)

    # ------------------------------------------------------------------ what it is

    @property
    def dim(self) -> int:
        """d, the number of axes."""
        return len(self.bins)

    @property
    def n_cells(self) -> int:
        """The number of cells: the product of `bins`."""
        return math.prod(self.bins)

    @property
    def side(self) -> float:
        """The longest side of a cell, 1/n, with the box scaled to [0, 1]^d: the diameter of a cell in the sup-norm."""
        return 1.0 / min(self.bins)

    def edges(self, axis: int = 0) -> NDArray[np.float64]:
        """Edges of the intervals of one axis.

        Parameters
        ----------
        axis : int
            The axis, from 0.

        Returns
        -------
        ndarray of shape (n + 1,)
            Edge k ≥ 1 belongs to interval k - 1.

        Examples
        --------
        >>> Partition.uniform(bins=2).edges()
        array([0. , 0.5, 1. ])
        """
        if not 0 <= axis < self.dim:
            raise InvalidArgumentError("axis", axis, f"0 … {self.dim - 1}")
        return _edges(self.bins[axis], self.low[axis], self.high[axis])

    @cached_property
    def centers(self) -> NDArray[np.float64]:
        """(n_cells, d) midpoints of the cells, in the order of `index`."""
        check_memory("bins", self.bins, 24.0 * self.n_cells * self.dim, f"the centres of {self.n_cells:,} cells")
        axes = []
        for n, a, b in zip(self.bins, self.low, self.high, strict=True):
            k = 2 * np.arange(n) + 1
            axes.append((a * (2 * n - k) + b * k) / (2 * n))
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim)
        grid.flags.writeable = False
        return grid

    @cached_property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """(bins, low, high) as read-only arrays: the arguments of `cell_of`."""
        found = np.array(self.bins, dtype=np.int64), np.array(self.low), np.array(self.high)
        for array in found:
            array.flags.writeable = False
        return found

    # ------------------------------------------------------------------ points

    def index(self, point: ArrayLike) -> int:
        """Find the cell of a point.

        Parameters
        ----------
        point : array_like
            d numbers; a plain number if d = 1.

        Returns
        -------
        int
            The number of its cell, from 0.

        Raises
        ------
        InvalidArgumentError
            If the point has another shape, is NaN, or lies outside the box where `outside` is "error".

        Examples
        --------
        >>> Partition.uniform(bins=10, dim=2).index([0.05, 0.95])
        9
        """
        array = _array(point)
        if array.shape != (self.dim,) and not (array.ndim == 0 and self.dim == 1):
            expected = f"({self.dim},)" + (" or a number" if self.dim == 1 else "")
            raise InvalidArgumentError("point", point, expected, problem=f"the point has shape {array.shape}")
        flat = self._flat(array)
        cell = locate_one(flat, self._table(array.dtype))
        if cell < 0:
            raise self._refusal(flat, None, array.dtype)
        return int(cell)

    def index_many(self, points: ArrayLike) -> NDArray[np.int64]:
        """Find the cells of many points at once.

        Parameters
        ----------
        points : array_like of shape (N, d)
            The points; (N,) if d = 1.

        Returns
        -------
        ndarray of int64, shape (N,)
            The numbers of their cells.

        Raises
        ------
        InvalidArgumentError
            As for `index`; the message says which point is meant.

        Examples
        --------
        >>> Partition.uniform(bins=10).index_many([0.05, 0.95])
        array([0, 9])
        """
        array = _array(points)
        if array.shape != (len(array) if array.ndim else -1, self.dim) and not (array.ndim == 1 and self.dim == 1):
            expected = f"(N, {self.dim})" + (" or (N,)" if self.dim == 1 else "")
            raise InvalidArgumentError("points", points, expected, problem=f"the points have shape {array.shape}")
        flat = self._flat(array)
        cells = np.empty(len(array), dtype=np.int64)
        first = locate(flat, self._table(array.dtype), cells)
        if first >= 0:
            raise self._refusal(flat[first * self.dim : (first + 1) * self.dim], first, array.dtype)
        return cells

    def _flat(self, array: NDArray[Any]) -> NDArray[np.float64]:
        if array.dtype.kind not in "fiub":
            raise InvalidArgumentError("the point", array.tolist(), f"{self.dim} finite number(s)")
        return array.astype(np.float64).reshape(-1)

    def _table(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        """What `locate` needs. The bounds accepted are those that observations of this dtype can know.

        float32(0.1) is above 0.1, and yet inside [0, 0.1].
        """
        tables: dict[np.dtype[Any], NDArray[np.float64]] = self._tables
        if dtype not in tables:
            bins, low, high = self.arrays
            least, greatest = low, high
            if self.outside == "clip":
                least, greatest = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
            elif dtype.kind == "f" and dtype.itemsize < 8:
                least = np.minimum(low, low.astype(dtype).astype(np.float64))
                greatest = np.maximum(high, high.astype(dtype).astype(np.float64))
            tables[dtype] = np.stack([bins.astype(np.float64), low, high, least, greatest])
        return tables[dtype]

    @cached_property
    def _tables(self) -> dict[np.dtype[Any], NDArray[np.float64]]:
        return {}

    def _refusal(self, point: NDArray[np.float64], number: int | None, dtype: np.dtype[Any]) -> InvalidArgumentError:
        _, _, _, least, greatest = self._table(dtype)
        i = next(i for i in range(self.dim) if not least[i] <= point[i] <= greatest[i])
        where = f"axis {i}" if number is None else f"axis {i} of point {number}"
        value = float(point[i])
        if math.isnan(value):
            accepted = f"a number in [{self.low[i]:g}, {self.high[i]:g}]"
            return InvalidArgumentError(where, value, accepted, problem=f"{where} is NaN")
        return InvalidArgumentError(
            where,
            value,
            hint='widen low and high, or say outside="clip" to count it to the nearest cell',
            problem=f"{where} is {value!r}, outside [{self.low[i]!r}, {self.high[i]!r}]",
        )

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """Describe the partition as a dictionary for JSON, which `from_settings` reads.

        Returns
        -------
        dict
            With the keys bins, low, high and outside.

        Examples
        --------
        >>> Partition.uniform(bins=2).settings()
        {'bins': [2], 'low': [0.0], 'high': [1.0], 'outside': 'error'}
        """
        return {
            "bins": list(self.bins),
            "low": list(self.low),
            "high": list(self.high),
            "outside": self.outside,
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make the partition that `settings` described.

        Parameters
        ----------
        settings : dict
            What `settings` returned.

        Returns
        -------
        Partition

        Raises
        ------
        InvalidArgumentError
            If the keys or their values are not those of a partition.

        Examples
        --------
        >>> part = Partition.uniform(bins=2)
        >>> Partition.from_settings(part.settings()) == part
        True
        """
        wanted = {"bins", "low", "high", "outside"}
        if not isinstance(settings, dict) or set(settings) != wanted:  # type: ignore[redundant-expr]
            raise InvalidArgumentError(
                "settings",
                settings,
                f"the keys {sorted(wanted)}",
                problem=f"settings of a partition are {describe(settings)}",
            )
        return cls(**settings)

    def _check_axis(self, i: int) -> None:
        n, low, high = self.bins[i], self.low[i], self.high[i]
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise InvalidArgumentError(f"bins of axis {i}", n, "an integer of at least 1")
        if not (
            math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite((abs(low) + abs(high)) * n)
        ):
            raise InvalidArgumentError(
                f"axis {i}",
                (low, high),
                "finite numbers with low < high",
                problem=f"axis {i} is [{low:g}, {high:g}]",
            )
        if (high - low) / n <= 8 * 2.0**-53 * max(-low, high):  # an edge is off by 3 roundings at most
            raise InvalidArgumentError(
                f"axis {i}",
                (low, high),
                hint="take fewer bins",
                problem=f"axis {i}, [{low!r}, {high!r}], is too narrow for {n} cells in floating point",
            )


def _uneven(bins: Any, low: Any, high: Any, where: str, expected: str) -> InvalidArgumentError:
    """The error for sequences of different lengths."""
    lengths = len(bins), len(low), len(high)
    problem = f"bins, low and high have {lengths[0]}, {lengths[1]} and {lengths[2]} entries{where}"
    return InvalidArgumentError("bins, low and high", lengths, expected, problem=problem)


def _edges(n: int, low: float, high: float) -> NDArray[np.float64]:
    k = np.arange(n + 1)
    edges = (low * (n - k) + high * k) / n
    edges[0], edges[n] = low, high
    return edges


def _array(points: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(points)
    except ValueError as error:
        raise InvalidArgumentError("the point", points, "numbers in one row") from error


def _short(bins: tuple[int, ...]) -> str:
    text = str(bins) if max(bins) < 10**18 else "so large"
    return text if len(text) < 80 else f"{text[:60]} …"


def _rounded(count: int) -> str:
    return f"{count:.3g}" if count < 10**300 else "too many"


def _bins(bins: Any) -> tuple[int, ...]:
    counts = (bins,) if np.ndim(bins) == 0 else tuple(bins)
    for n in counts:
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise InvalidArgumentError("bins", bins, "an integer of at least 1, or one per axis")
    if not counts:
        raise InvalidArgumentError("bins", bins, "an integer of at least 1, or one per axis", problem="bins is empty")
    return tuple(int(n) for n in counts)


def _numbers(name: str, values: Any, *, nan: bool = False) -> tuple[float, ...]:
    entries = (values,) if np.ndim(values) == 0 else tuple(values)
    numbers = []
    for x in entries:
        if x is None and nan:
            x = math.nan
        if isinstance(x, (bool, np.bool_)) or not isinstance(x, Real):
            raise InvalidArgumentError(name, values, "a number, or one per axis")
        numbers.append(float(x))
    if not numbers:
        raise InvalidArgumentError(name, values, "a number, or one per axis", problem=f"{name} is empty")
    return tuple(numbers)


def _spread(values: tuple[Any, ...], d: int, name: str = "low, high or bins") -> tuple[Any, ...]:
    if len(values) == d:
        return values
    if len(values) == 1:
        return values * d
    problem = f"{name} has {len(values)} entries"
    raise InvalidArgumentError(name, values, f"one or {d}, one per axis", problem=problem)
