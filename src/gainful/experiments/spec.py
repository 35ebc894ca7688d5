"""Experiments as files: which agents run in which environments, how long and how often.

A spec is a TOML file::

    title = "SCAL+ on two rivers"
    notes = "What to look at, in plain words."
    horizon = 1e6                      # steps of every run
    seeds = 5                          # 0, 1, 2, 3, 4; or a list: [3, 14, 15]
    checkpoints = 20                   # regret is recorded so often per decade (the default); or a list of steps

    [[environments]]
    name = "riverswim"                 # `gainful list environments`
    grid = { n_states = [6, 12] }      # one environment for every combination

    [[environments]]
    name = "toy3d"
    label = "three states"             # shown instead of the name
    parameters = { delta = 0.01 }
    horizon = 1e5                      # of the runs in this environment

    [[agents]]
    name = "scal-plus"                 # `gainful list agents`
    label = "SCAL+ ({bonus_scale})"    # {parameter} stands for its value
    bonus_scales = [1.0, 0.1]          # short for grid = { bonus_scale = [1.0, 0.1] }

    [[agents]]
    name = "ucbvi"
    zip = { episode_length = [10, 100], bonus_scale = [0.1, 0.01] }   # side by side: two agents
    only = ["riverswim"]               # names or labels of environments; `except` is the opposite

Every agent runs in every environment with every seed. `parameters` are those of `gainful list`; `grid` and `zip` sweep
over lists of values (`zip` varies fastest). `bonus_scales` sweeps over width_scale for agents that have that instead.
An agent that needs a span gets "auto", the model's own (which only an oracle knows), unless the spec gives a number or
a factor as in "0.5*auto"; one that can do without a span gets none unless the spec gives one; one that needs a horizon
gets the run's. On continuous states, tabular agents are discretised; `bins` is the number of cells per axis, by default
the theorem's for the horizon.

A name is one of `gainful list`, also one that an installed package registers, or "my_module:MyAgent": a class or a
function of a module beside the spec, in the current folder, or installed. It is called with the parameters, and with
those of n_states, n_actions, allowed, reward_min, reward_max, seed, span and horizon that it names. Environments may be
"my_module:my_env" and Gymnasium ids ("FrozenLake-v1"), too; `table = "van.csv"` in place of a name is a table or a
saved MDP, relative to the spec (`rates = true` for a table of rates). Reading a spec imports the modules that it names,
after one line on stderr has said which.

The horizon of a run is that of its agent, else of its environment, else of the file. Steps in `checkpoints` beyond a
run's horizon are left out. Runs come in the order environment, agent, seed, as written.

Labels are made from the name and the swept parameters (and the parameters given, if two entries have the same name)
unless there is a `label`. Two different agents, or environments, with one label are an error. So are two entries that
are the same run, even if only one of them spells a default out. A spec of more than a million runs is an error.

Everything is checked when the file is read: names, parameters, and each environment and agent is made once (of sweeps
over more than 500 environments or 5,000 pairs an even choice; environments of more than 2·10⁷ entries not). An
`InvalidSpecError` lists all problems with their lines.
"""

from __future__ import annotations

import itertools
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from gainful.errors import InvalidArgumentError, InvalidSpecError, suggestion
from gainful.experiments.configuration import Configuration
from gainful.experiments.foreign_names import TABLE, agent_called, environment_called
from gainful.experiments.parameters import parse_seed, parse_steps, toml_text
from gainful.experiments.spec_resolution import MAX_RUNS, MAX_SHOWN_PROBLEMS, Labels, ResolvedSpec
from gainful.experiments.toml_positions import KeyPath, TomlPositions, path_text
from gainful.user_modules import folders_looked_in, look_in

MAX_PER_DECADE = 10_000
MAX_CHECKPOINTS = 1_000_000


class SpecProblem(NamedTuple):
    """What is wrong with one thing in a spec, and where."""

    path: KeyPath
    line: int | None
    message: str


# ---------------------------------------------------------------------- the file's shape


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple):
        seeds = tuple(parse_seed(seed) for seed in value)
        if not seeds:
            raise InvalidArgumentError("seeds", value, "at least one seed", problem="is an empty list")
        twice = [seed for seed, group in itertools.groupby(sorted(seeds)) if len(list(group)) > 1]
        if twice:
            raise InvalidArgumentError(
                "seeds", value, hint="each seed is one run", problem=f"seed {twice[0]} occurs twice"
            )
        return seeds
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or number != math.floor(number) or number < 1:
        expected = "the number of seeds (5 for 0 … 4) or a list of whole numbers"
        raise InvalidArgumentError("seeds", value, expected, problem=f"is {toml_text(value)}")
    if value > MAX_RUNS:
        raise InvalidArgumentError(
            "seeds",
            value,
            f"at most {MAX_RUNS:,}, the runs of the largest sweep",
            problem=f"asks for {int(value):,} seeds",
        )
    return tuple(range(int(value)))


def _checkpoints(value: Any) -> int | tuple[int, ...]:
    if isinstance(value, list | tuple):
        steps = tuple(parse_steps(step, "a step") for step in value)
        if not 1 <= len(steps) <= MAX_CHECKPOINTS:
            raise InvalidArgumentError(
                "checkpoints", value, f"1 to {MAX_CHECKPOINTS:,} of them", problem=f"has {len(steps)} steps"
            )
        return steps
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (1 <= number <= MAX_PER_DECADE and number == math.floor(number)):
        expected = f"a whole number per decade (1 to {MAX_PER_DECADE:,}) or a list of steps"
        raise InvalidArgumentError("checkpoints", value, expected, problem=f"is {toml_text(value)}")
    return int(number)


def _horizon(value: Any) -> Any:
    return None if value is None else parse_steps(value)


Horizon = Annotated[int, BeforeValidator(_horizon)]
Sweep = dict[str, list[Any]]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Entry(_Table):
    """What [[environments]] and [[agents]] have in common."""

    name: str
    label: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    grid: Sweep = Field(default_factory=dict)
    zip: Sweep = Field(default_factory=dict)
    horizon: Annotated[int | None, BeforeValidator(_horizon)] = None

    @property
    def title(self) -> str:
        """The name as labels show it."""
        return self.name


class EnvironmentEntry(Entry):
    """One [[environments]] table: with a name, or with the path of a table."""

    name: Annotated[str, AfterValidator(environment_called)]
    table: str | None = None
    rates: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_of_table(cls, raw: Any) -> Any:
        """A table has the name "table=PATH" in configurations."""
        if not isinstance(raw, dict):
            return raw
        if "table" not in raw:
            if "rates" in raw:
                raise InvalidArgumentError(
                    "rates", raw["rates"], problem='rates is for a table; write table = "..." too'
                )
            return raw
        if not isinstance(raw["table"], str) or not raw["table"]:
            problem = f"table is {toml_text(raw['table'])}"
            raise InvalidArgumentError("table", raw["table"], "a path in quotes", problem=problem)
        name = TABLE + raw["table"]
        if raw.get("name", name) != name:
            raise InvalidArgumentError("name", raw["name"], problem="has a name and a table; keep one of the two")
        if raw.get("parameters") or raw.get("grid") or raw.get("zip"):
            raise InvalidArgumentError("parameters", problem="a table has no parameters; leave them out")
        return {**raw, "name": name}

    @property
    def title(self) -> str:
        """The path of the table, or the name."""
        return self.table or self.name


class AgentEntry(Entry):
    """One [[agents]] table."""

    name: Annotated[str, AfterValidator(agent_called)]
    bonus_scales: list[Any] | None = None
    only: list[str] | None = None
    except_: list[str] | None = Field(default=None, alias="except")


class Header(_Table):
    """The keys of a spec that stand outside tables."""

    title: str = ""
    notes: str = ""
    horizon: Horizon
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)]
    checkpoints: Annotated[int | tuple[int, ...], BeforeValidator(_checkpoints)] = 20


class Spec(Header):
    """An experiment: every agent in every environment with every seed. `read_spec` reads and checks one."""

    environments: tuple[EnvironmentEntry, ...]
    agents: tuple[AgentEntry, ...]

    _resolved: ResolvedSpec | None = PrivateAttr(default=None)
    _source: str = PrivateAttr(default="the spec")
    _text: str = PrivateAttr(default="")
    _folders: tuple[str, ...] = PrivateAttr(default=())

    @property
    def source(self) -> str:
        """The name of its file in messages."""
        return self._source

    @property
    def name(self) -> str:
        """The file's name without its suffix, which names the folder of results."""
        return "experiment" if self._source == "the spec" else self._source.removesuffix(".toml")

    @property
    def text(self) -> str:
        """The TOML text, or JSON if the spec was made in Python."""
        return self._text or self.model_dump_json(by_alias=True, exclude_defaults=True, indent=2)

    @property
    def folders(self) -> tuple[str, ...]:
        """Where its modules and tables are looked for: beside it, and in the folder that was current then."""
        return self._folders or tuple(folders_looked_in())

    def configurations(self) -> list[Configuration]:
        """Every run: by environment, then agent, then seed, each as written."""
        return self._runs().configurations()

    @property
    def labels(self) -> list[Labels]:
        """The labels of each run, in the order of `configurations`."""
        return [labels for labels, _, _ in self._runs().runs() for _ in self.seeds]

    @property
    def environment_labels(self) -> list[str]:
        """The label of each environment, in order."""
        return [point.label for point in self._runs().environments]

    @property
    def agent_labels(self) -> list[str]:
        """The label of each agent, in order."""
        return [point.label for point in self._runs().agents]

    def __len__(self) -> int:
        return len(self._runs().pairs) * len(self.seeds)

    def _runs(self) -> ResolvedSpec:
        if self._resolved is None:
            sweep = ResolvedSpec(self, dict(enumerate(self.environments)), dict(enumerate(self.agents)))
            _raise(self._source, sweep.problems, None)
            self._resolved = sweep
        return self._resolved


# ---------------------------------------------------------------------- reading


def read_spec(source: str | Path | Mapping[str, Any]) -> Spec:
    """Read and check a spec.

    Parameters
    ----------
    source : str, Path or Mapping
        A TOML file, the name of a spec that comes with gainful, a TOML text, or a dict of the same shape.

    Returns
    -------
    Spec
        The experiment: its runs are `configurations()`.

    Raises
    ------
    InvalidSpecError
        With every problem of the spec, each with its line.

    Examples
    --------
    >>> spec = read_spec("quickstart")
    >>> spec.environment_labels, len(spec)
    (['RiverSwim', 'four rooms'], 50)
    """
    if isinstance(source, Mapping):
        return _checked(dict(source), "the spec", None)
    name, text, data = read_toml(source)
    spec = _checked(data, name, TomlPositions(text))
    spec._text = text
    return spec


def read_toml(source: str | Path) -> tuple[str, str, dict[str, Any]]:
    """The name of a spec in messages, its text, and what tomllib makes of it; the spec itself is not checked."""
    name, text, folder = _text_of(source)
    if folder is not None:
        look_in([folder])
    try:
        return name, text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpecError(f"{name} is not valid TOML: {error}", name=name) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets in brackets in ...
        what = "is nested too deeply" if isinstance(error, RecursionError) else "has a number with too many digits"
        raise InvalidSpecError(f"{name} {what}", name=name) from error


def shipped() -> list[tuple[str, str]]:
    """The names and titles of the specs that come with gainful."""
    return [(name, tomllib.loads(shipped_text(name)).get("title", "")) for name in _shipped_names()]


def shipped_text(name: str) -> str:
    """The TOML text of a spec that comes with gainful."""
    names = _shipped_names()
    if name not in names:
        raise InvalidSpecError(
            f"'{name}' is not a spec that comes with gainful", name="spec", found=name, hint=suggestion(name, names)
        )
    return str((_shipped_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _shipped_folder() -> Any:
    return resources.files("gainful.experiments") / "specs"


def _shipped_names() -> list[str]:
    return sorted(
        file.name.removesuffix(".toml") for file in _shipped_folder().iterdir() if file.name.endswith(".toml")
    )


def _text_of(source: str | Path) -> tuple[str, str, Path | None]:
    """The name of the spec in messages, its text, and the folder of its file."""
    if isinstance(source, str):
        is_file = os.path.isfile(source)
        if "\n" in source or ("=" in source and not is_file):
            return "the spec", source, None
        if source in _shipped_names() and not is_file:
            return f"{source}.toml", shipped_text(source), None
    file = Path(source)
    try:
        return file.name, file.read_bytes().decode("utf-8-sig"), file.resolve().parent
    except UnicodeDecodeError as error:
        raise InvalidSpecError(
            f"{file}: byte {error.start} is not UTF-8", name=str(file), expected="a TOML file in UTF-8"
        ) from error
    except FileNotFoundError as error:
        raise InvalidSpecError(
            f"{file}: no such file, and no spec of that name comes with gainful",
            name=str(file),
            hint=suggestion(file.name.removesuffix(".toml"), _shipped_names()),
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidSpecError(f"{file} cannot be read: {reason}", name=str(file), expected="a TOML file") from error


def _checked(data: dict[str, Any], name: str, positions: TomlPositions | None) -> Spec:
    problems: list[tuple[KeyPath, str]] = []
    head = {key: value for key, value in data.items() if key not in ("environments", "agents", "tune")}
    if "tune" in data:
        problems.append((("tune",), "this spec has something to tune; run it with gainful tune"))
    header = _validated(Header, head, (), problems, [*Spec.model_fields])
    entries: dict[str, dict[int, Any]] = {}
    mentioned: list[str] = []
    for key, model in (("environments", EnvironmentEntry), ("agents", AgentEntry)):
        entries[key] = {}
        raw = data.get(key)
        if raw is None or raw == []:
            problems.append(((key,) if key in data else (), f"{key} is missing; write [[{key}]] with a name below it"))
        elif not isinstance(raw, list | tuple) or not all(isinstance(one, Mapping | Entry) for one in raw):
            problems.append(((key,), f"is {_kind(raw)}, expected an array of tables; write [[{key}]]"))
        else:
            for i, one in enumerate(raw):
                found = one if isinstance(one, Entry) else _validated(model, one, (key, i), problems, None)
                if found is not None:
                    entries[key][i] = found
                elif key == "environments":
                    mentioned += [one[k] for k in ("name", "table", "label") if isinstance(one.get(k), str)]
    sweep = ResolvedSpec(header, entries["environments"], entries["agents"], mentioned)
    _raise(name, [*problems, *sweep.problems], positions)
    assert header is not None
    spec = Spec.model_construct(
        **{key: getattr(header, key) for key in Header.model_fields},
        environments=tuple(entries["environments"].values()),
        agents=tuple(entries["agents"].values()),
    )
    spec._resolved, spec._source, spec._folders = sweep, name, tuple(folders_looked_in())
    return spec


def _validated(
    model: type[BaseModel],
    raw: Mapping[str, Any],
    at: KeyPath,
    problems: list[tuple[KeyPath, str]],
    known: list[str] | None,
) -> Any:
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        for found in error.errors(include_url=False):
            path, kind, value = (*at, *found["loc"]), found["type"], found["input"]
            if kind == "extra_forbidden":
                keys = known or [f.alias or key for key, f in model.model_fields.items()]
                message = f"there is no such key here; {suggestion(str(path[-1]), keys)}"
                if "parameters" in keys:
                    then = " Parameters" if message.endswith("?") else "; parameters"
                    message += f"{then} go into parameters = {{ {path[-1]} = ... }}"
            elif kind == "missing":
                message = _HOW_TO_WRITE[str(path[-1])]
                path = path[:-1]
            elif kind == "value_error":
                message = str(found["ctx"]["error"])
            else:
                message = f"is {_kind(value)}, expected {_TYPES_IN_WORDS.get(kind, found['msg'])}"
            problems.append((path, message))
        return None


_HOW_TO_WRITE = {
    "name": 'name is missing; write name = "..."',
    "horizon": "horizon is missing; write horizon = 1e6",
    "seeds": "seeds is missing; write seeds = 5",
}
_TYPES_IN_WORDS = {
    "string_type": "a text in quotes",
    "list_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
}


def _kind(value: Any) -> str:
    return "a table" if isinstance(value, Mapping) else toml_text(value)


def _raise(name: str, found: Iterable[tuple[KeyPath, str]], positions: TomlPositions | None) -> None:
    """Raise one error with every problem, sorted by line, if there are any."""
    unique = dict.fromkeys(found)
    problems = [SpecProblem(path, positions.line_of(path) if positions else None, message) for path, message in unique]
    if not problems:
        return
    problems.sort(key=lambda one: one.line or 0)
    said = []
    for path, line, message in problems:
        place = name if line is None else f"{name}, line {line}"
        said.append(
            f"{place}: {path_text(path)}: {message}" if path else f"{place if positions is None else name}: {message}"
        )
    if len(said) == 1:
        raise InvalidSpecError(said[0], problems)
    more = [f"and {len(said) - MAX_SHOWN_PROBLEMS:,} more"] if len(said) > MAX_SHOWN_PROBLEMS else []
    numbered = [f"{i}. {one}" for i, one in enumerate(said[:MAX_SHOWN_PROBLEMS], 1)]
    raise InvalidSpecError("\n".join([f"{name} has {len(said):,} problems:", *numbered, *more]), problems)
