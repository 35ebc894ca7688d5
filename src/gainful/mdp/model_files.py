"""A model in a file: a table of transitions or rates, or a saved MDP."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gainful.errors import InvalidArgumentError, InvalidMDPError

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

_TABLE_FILE = re.compile(r".+\.(csv|tsv|parquet|pq)(\.(gz|bz2|xz|zip))?", re.IGNORECASE)


def read_model_file(path: Path, *, rates: bool = False, reward_model: str | None = None) -> MDP:
    """The MDP in a file: a table (.csv, .tsv, .parquet) or Storm's format (.drn) by its name, else of `mdp.save`."""
    from gainful.mdp.drn import SUFFIXES
    from gainful.mdp.model import MDP

    if not path.exists():
        raise InvalidMDPError(f"{path}: no such file", name=str(path), hint="check the path")
    if path.is_dir():
        raise InvalidMDPError(
            f"{path} is a folder", name=str(path), expected="a table (.csv, .tsv, .parquet), a .drn file or a saved MDP"
        )
    if path.name.lower().endswith(SUFFIXES) and not rates:
        return MDP.from_drn(path, name=path.name, reward_model=reward_model)
    if reward_model is not None:
        raise no_reward_models(path)
    if _TABLE_FILE.fullmatch(path.name):
        return MDP.from_rates(path, name=path.name) if rates else MDP.from_table(path, name=path.name)
    if rates:
        raise rates_without_a_table(path)
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError as error:
        raise InvalidMDPError(
            f"{path} cannot be read: {error.strerror}", name=str(path), hint="check its permissions"
        ) from error
    if beginning and beginning != b"PK\x03\x04":
        raise InvalidMDPError(
            f"{path} is neither a table (named .csv, .tsv or .parquet), nor in Storm's format (.drn), nor an MDP "
            "written by mdp.save",
            name=str(path),
            hint="rename or convert it",
        )
    return MDP.load(path)


def no_reward_models(source: object) -> InvalidArgumentError:
    """The error about a reward model that is asked of something that has one."""
    return InvalidArgumentError(
        "--reward-model",
        str(source),
        "a .drn file",
        problem=f"--reward-model chooses among those of a .drn file, found '{source}'",
    )


def rates_without_a_table(source: object) -> InvalidArgumentError:
    """The error about rates that are asked of something that is no table."""
    return InvalidArgumentError(
        "--rates",
        str(source),
        "a .csv, .tsv or .parquet file",
        problem=f"--rates needs a table of rates, found '{source}'",
    )
