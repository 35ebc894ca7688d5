"""Specs to tune: an experiment with one agent, and the table `tune` with what to search.

As a TOML file::

    title = "SCAL+ on RiverSwim"
    horizon = 1e5
    seeds = 5                          # the tuning seeds, on which trials are compared: 0, 1, 2, 3, 4

    [[environments]]
    name = "riverswim"

    [[agents]]                         # one agent; its parameters are what tuned ones are compared with
    name = "scal-plus"
    parameters = { span = 7.0 }

    [tune]
    trials = 30                        # sets of parameters to try (30)
    confirm = 20                       # fresh seeds for the best one (20: 5, 6, …, 24); or a list
    measure = "expected_regret"        # what is minimised at the horizon; "reward" is maximised
    batch = 5                          # trials chosen at a time (5)
    seed = 0                           # of the choice of trials

    [tune.search]
    bonus_scale = { low = 0.001, high = 1.0, log = true }   # a real number, tried evenly in its logarithm
    span = { low = 2, high = 20 }                           # whole numbers, because both ends are
    bonus = ["appendix", "sharp"]                           # one of these
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from gainful.errors import InvalidArgumentError, InvalidSpecError, suggestion
from gainful.experiments.parameters import parse_seed, toml_text
from gainful.experiments.spec import Spec, SpecProblem, read_spec, read_toml
from gainful.experiments.toml_positions import KeyPath, TomlPositions, path_text
from gainful.simulation.run import MEASURE_NAMES

MAX_TRIALS = 10_000
MAX_CHOICES = 1000
SIGNIFICANT_DIGITS = 4
"""Digits of a real number that is tried, so that parameters can be read and copied."""
GIVEN = "as given"
"""The label of the agent with the parameters of the spec."""
_KEYS = ("trials", "confirm", "measure", "batch", "seed", "search")
_AGENT_KEYS = ("name", "parameters", "horizon")


@dataclass(frozen=True)
class Range:
    """Numbers between two ends; whole ones if `whole`, evenly in the logarithm if `log`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def contains(self, value: Any) -> bool:
        """Whether the value may have been tried."""
        kinds = (int,) if self.whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high

    def rounded(self, value: float) -> float | int:
        """The value as it is tried: with few digits, inside the range."""
        if self.whole:
            return int(value)
        return float(min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high))


@dataclass(frozen=True)
class Choice:
    """One of several values: numbers, words, true or false."""

    values: tuple[Any, ...]

    def contains(self, value: Any) -> bool:
        """Whether the value is one of them."""
        return any(type(value) is type(one) and value == one for one in self.values)

    def rounded(self, value: Any) -> Any:
        """The value as it is."""
        return value


SearchSpace: TypeAlias = dict[str, Range | Choice]


@dataclass(frozen=True)
class TuneSpec:
    """What to tune, on which seeds, and what to try; `read_tune_spec` reads and checks one."""

    source: str
    experiment: dict[str, Any]
    """The spec without the table `tune`."""
    search: SearchSpace
    trials: int
    seeds: tuple[int, ...]
    confirmation_seeds: tuple[int, ...]
    measure: str | None
    batch: int
    seed: int

    @property
    def name(self) -> str:
        """The file's name without its suffix, which names the folder of results."""
        return "tuning" if self.source == "the spec" else self.source.removesuffix(".toml")

    @property
    def agent(self) -> dict[str, Any]:
        """The agent as it is written."""
        return dict(self.experiment["agents"][0])

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are given, with which tuned ones are compared."""
        return dict(self.agent.get("parameters", {}))

    def spec(self, agents: Mapping[str, Mapping[str, Any]], seeds: Sequence[int], title: str = "") -> Spec:
        """The experiment with these agents (parameters by label) and seeds."""
        entries = [{**self.agent, "label": label, "parameters": dict(p)} for label, p in agents.items()]
        named = {"title": title} if title else {}
        return read_spec({**self.experiment, "agents": entries, "seeds": list(seeds), **named})

    def identity(self) -> dict[str, Any]:
        """Everything that the choice of trials depends on, except their number."""
        return {
            "experiment": {key: v for key, v in self.experiment.items() if key not in ("title", "notes")},
            "search": {name: repr(space) for name, space in sorted(self.search.items())},
            "measure": self.measure,
            "batch": self.batch,
            "seed": self.seed,
        }


def read_tune_spec(source: str | Path | Mapping[str, Any]) -> TuneSpec:
    """Read and check a spec to tune.

    Parameters
    ----------
    source : str, Path or Mapping
        A TOML file, a TOML text, or a dict of the same shape.

    Returns
    -------
    TuneSpec

    Raises
    ------
    InvalidSpecError
        With every problem, each with its line.

    Examples
    --------
    >>> river = {"horizon": 1000, "seeds": 2, "environments": [{"name": "riverswim"}]}
    >>> scal = {"agents": [{"name": "scal-plus"}], "tune": {"search": {"bonus_scale": {"low": 0.1, "high": 1.0}}}}
    >>> spec = read_tune_spec({**river, **scal})
    >>> spec.trials, spec.seeds, spec.confirmation_seeds[:2]
    (30, (0, 1), (2, 3))
    """
    if isinstance(source, Mapping):
        name, data, positions = "the spec", dict(source), None
    else:
        name, text, data = read_toml(source)
        positions = TomlPositions(text)
    problems: list[tuple[KeyPath, str]] = []
    table = data.pop("tune", None)
    if not isinstance(table, Mapping):
        problems.append(((), "there is no table [tune]; write [tune.search] with what to search"))
        table = {"search": {"": []}}
    settings = _TuneTable(table, problems)
    _check_agent_entry(data.get("agents"), problems)
    spec = _experiment(data, problems)
    if spec is not None and not problems:
        settings.check_seeds(spec.seeds)
        problems += _search_problems(data, settings.search)
    _raise_all(name, problems, positions)
    assert spec is not None
    return TuneSpec(
        name,
        data,
        settings.search,
        settings.trials,
        spec.seeds,
        settings.confirmation_seeds(spec.seeds),
        settings.measure,
        settings.batch,
        settings.seed,
    )


class _TuneTable:
    """The table `tune`, checked; problems are added to a list."""

    def __init__(self, table: Mapping[str, Any], problems: list[tuple[KeyPath, str]]) -> None:
        self._problems = problems
        for key in table:
            if key not in _KEYS:
                problems.append((("tune", key), f"there is no such key here; {suggestion(str(key), _KEYS)}"))
        self.trials = self._whole(table, "trials", 30, 1, MAX_TRIALS)
        self.batch = self._whole(table, "batch", 5, 1, 1000)
        self.seed = self._whole(table, "seed", 0, 0, 2**31 - 1)
        self.measure = table.get("measure")
        if self.measure is not None and self.measure not in MEASURE_NAMES:
            words = ", ".join(toml_text(word) for word in MEASURE_NAMES)
            problems.append((("tune", "measure"), f"is {toml_text(self.measure)}, expected one of {words}"))
        self._confirm = self._seeds(table.get("confirm", 20))
        self.search = self._spaces(table.get("search"))

    def _whole(self, table: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
        value = table.get(key, default)
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not (low <= number <= high and number == math.floor(number)):
            expected = f"a whole number from {low:,} to {high:,}"
            self._problems.append((("tune", key), f"is {toml_text(value)}, expected {expected}"))
            return default
        return int(number)

    def _seeds(self, value: Any) -> int | tuple[int, ...]:
        if not isinstance(value, list | tuple):
            return self._whole({"confirm": value}, "confirm", 20, 1, MAX_TRIALS)
        try:
            seeds = tuple(parse_seed(seed) for seed in value)
        except InvalidArgumentError as error:
            self._problems.append((("tune", "confirm"), str(error)))
            return 1
        if not seeds or len(set(seeds)) < len(seeds):
            self._problems.append((("tune", "confirm"), "expected at least one seed, and each once"))
        return seeds

    def confirmation_seeds(self, tuning_seeds: Sequence[int]) -> tuple[int, ...]:
        """The seeds for the best trial: those given, or the next ones after the tuning seeds."""
        if isinstance(self._confirm, tuple):
            return self._confirm
        first = max(tuning_seeds) + 1
        return tuple(range(first, first + self._confirm))

    def check_seeds(self, tuning_seeds: Sequence[int]) -> None:
        """A seed on which trials were chosen proves nothing about the choice."""
        both = sorted(set(tuning_seeds) & set(self.confirmation_seeds(tuning_seeds)))
        if both:
            self._problems.append(
                (("tune", "confirm"), f"seed {both[0]} is a tuning seed too; confirmation needs fresh ones")
            )

    def _spaces(self, search: Any) -> SearchSpace:
        if not isinstance(search, Mapping) or not search:
            self._problems.append((("tune",), "search is missing; write [tune.search] with parameters of the agent"))
            return {}
        found: SearchSpace = {}
        for name, value in search.items():
            if not name:
                continue
            try:
                found[name] = _choice(value) if isinstance(value, list | tuple) else _range(value)
            except InvalidArgumentError as error:
                self._problems.append((("tune", "search", name), str(error)))
        return found


def _choice(values: Sequence[Any]) -> Choice:
    plain = all(isinstance(v, str | bool | int | float) and not (v != v or v in (math.inf, -math.inf)) for v in values)
    if not plain or not 2 <= len(values) <= MAX_CHOICES or len({repr(v) for v in values}) < len(values):
        expected = "a list of at least two different numbers, words or true and false"
        raise InvalidArgumentError("search", list(values), expected, problem=f"is {toml_text(list(values))}")
    return Choice(tuple(values))


def _range(value: Any) -> Range:
    expected = "a list of values, or { low = 0.01, high = 1.0 } with log = true if wanted"
    refusal = InvalidArgumentError("search", value, expected, problem=f"is {toml_text(value)}")
    if not isinstance(value, Mapping) or not {"low", "high"} <= set(value) <= {"low", "high", "log"}:
        raise refusal
    low, high, log = value["low"], value["high"], value.get("log", False)
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in (low, high))
    if not numbers or not isinstance(log, bool):
        raise refusal
    if not low < high or max(abs(low), abs(high)) > 2**53:
        raise InvalidArgumentError("search", value, "low < high", problem=f"goes from {low} to {high}")
    if log and low <= 0:
        raise InvalidArgumentError("low", low, "a number above 0, because of log = true", problem=f"low is {low}")
    return Range(low, high, log, whole=isinstance(low, int) and isinstance(high, int))


def _check_agent_entry(agents: Any, problems: list[tuple[KeyPath, str]]) -> None:
    """One agent, without sweeps of its own."""
    if not isinstance(agents, list | tuple) or not all(isinstance(entry, Mapping) for entry in agents):
        return  # the experiment says so
    if len(agents) != 1:
        problems.append((("agents",), f"there are {len(agents)} agents; one is tuned at a time"))
    for i, entry in enumerate(agents):
        for key in entry:
            if key not in _AGENT_KEYS:
                problems.append((("agents", i, key), f"cannot be used here; an agent has {', '.join(_AGENT_KEYS)}"))


def _experiment(data: dict[str, Any], problems: list[tuple[KeyPath, str]]) -> Spec | None:
    """The experiment with the parameters that are given; None after problems, which are added."""
    try:
        return read_spec(data)
    except InvalidSpecError as error:
        found = [(problem.path, problem.message) for problem in error.problems]
        problems += found or [((), str(error))]
        return None


def _search_problems(data: dict[str, Any], search: SearchSpace) -> list[tuple[KeyPath, str]]:
    """What the agent says to the ends of the ranges and to the choices, at the parameter concerned."""
    found: dict[tuple[KeyPath, str], None] = {}
    entry = data["agents"][0]
    for name, space in search.items():
        for value in space.values if isinstance(space, Choice) else (space.low, space.high):
            tried = {**entry, "parameters": {**entry.get("parameters", {}), name: value}}
            try:
                read_spec({**data, "agents": [tried]})
            except InvalidSpecError as error:
                for problem in error.problems:
                    if problem.path[:4] == ("agents", 0, "parameters", name):
                        found[("tune", "search", name), problem.message] = None
    return list(found)


def _raise_all(name: str, found: Sequence[tuple[KeyPath, str]], positions: TomlPositions | None) -> None:
    """Raise one error with every problem, sorted by line, if there are any."""
    problems = [SpecProblem(path, positions.line_of(path) if positions else None, text) for path, text in found]
    if not problems:
        return
    problems.sort(key=lambda one: one.line or 0)
    said = []
    for path, line, message in problems:
        place = f"{name}, line {line}" if line is not None and path else name
        said.append(f"{place}: {path_text(path)}: {message}" if path else f"{place}: {message}")
    if len(said) > 1:
        said = [f"{name} has {len(said)} problems:", *(f"{i}. {one}" for i, one in enumerate(said, 1))]
    raise InvalidSpecError("\n".join(said), problems)
