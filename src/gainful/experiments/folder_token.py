"""The token in the folder of an experiment, by which a worker on another machine knows that it sees the same folder."""

from __future__ import annotations

import contextlib
import re
import secrets
from pathlib import Path
from zlib import crc32

from gainful.atomic_files import make_folder, write_file

CHECKPOINT_FOLDER, TOKEN_FILE = "checkpoints", "token"


def new_token() -> str:
    """A random text with a checksum."""
    text = secrets.token_hex(16)
    return f"{text} {crc32(text.encode()):08x}"


def is_token(text: str) -> bool:
    """Whether `new_token` made this text; earlier versions left out the checksum.

    >>> is_token(new_token()), is_token("0" * 32), is_token("0" * 32 + " 12345678")
    (True, True, False)
    """
    found = re.fullmatch(r"([0-9a-f]{32})( [0-9a-f]{8})?", text)
    return found is not None and found[2] in (None, f" {crc32(found[1].encode()):08x}")


def token_of(folder: Path) -> tuple[str, str]:
    """The token of an experiment, and a notice if it was damaged; it is written if it is missing or damaged.

    Nothing depends on it between two calls of `run_experiment`, so that nothing is lost with it.
    """
    file = folder / CHECKPOINT_FOLDER / TOKEN_FILE
    with contextlib.suppress(FileExistsError):
        make_folder(file.parent)
    notice = ""
    try:
        found = file.read_bytes().decode("utf-8", "replace")
        if is_token(found):
            return found, ""
        notice = f"{file}: damaged; it was written anew, and nothing is lost"
    except FileNotFoundError:
        pass
    made = new_token()
    write_file(file, made.encode())
    return made, notice
