"""Reading Storm's explicit format (DRN) line by line; every failure names the file and the line."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np

from gainful.errors import InvalidMDPError
from gainful.machine import check_memory

LONGEST_LINE = 1 << 20
"""Bytes of a line above which a file is not read on."""
SHORTEST_STATE = 8
"""The bytes that a state takes in a file at least: "state 0" and a line break."""
STATE_BYTES, CHOICE_BYTES, ENTRY_BYTES = 300.0, 250.0, 60.0
"""What a state, a choice and a transition take in memory while a file is read and its model built (measured)."""
_CHECK_EVERY = 1 << 18  # transitions
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LABEL = re.compile(r'"([^"]+)"|([^\s"]+)')
_TYPES = ("MDP", "DTMC", "CTMC")


def open_drn(path: Path) -> IO[bytes]:
    """The file, unpacked if it is compressed: by its first bytes, not by its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(6)
        if magic[:2] == b"\x1f\x8b":
            return cast(IO[bytes], gzip.open(path, "rb"))
        if magic == b"\xfd7zXZ\x00":
            return cast(IO[bytes], lzma.open(path, "rb"))
        return path.open("rb")
    except FileNotFoundError as error:
        raise InvalidMDPError(f"{path}: no such file", name=str(path), hint="check the path") from error
    except OSError as error:
        raise InvalidMDPError(f"{path}: cannot be read: {error.strerror or error}", name=str(path)) from error


@dataclass
class DrnReader:
    """What a file says, collected line by line; memory is taken for what is there, not for what a header declares."""

    path: Path
    line_number: int = 0
    kind: str = ""
    declared_states: int = 0
    declared_choices: int = 0
    reward_names: list[str] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    """Numbers by their text, and placeholders by their name with the dollar sign."""

    initial: list[int] = field(default_factory=list)
    state_labels: list[str] | None = field(default_factory=list)
    """The one label of each state; None as soon as some state has none or several."""
    state_rewards: list[tuple[float, ...]] = field(default_factory=list)
    exit_rates: array[float] = field(default_factory=lambda: array("d"))
    first_choice: array[int] = field(default_factory=lambda: array("q"))
    action_numbers: dict[str, int] = field(default_factory=dict)
    choice_action: array[int] = field(default_factory=lambda: array("q"))
    choice_rewards: list[tuple[float, ...]] = field(default_factory=list)
    first_transition: array[int] = field(default_factory=lambda: array("q"))
    targets: array[int] = field(default_factory=lambda: array("q"))
    probabilities: array[float] = field(default_factory=lambda: array("d"))
    _opened_choice: bool = False

    def fail(self, problem: str, found: Any, expected: str = "", hint: str = "") -> NoReturn:
        """Raise the error for the present line."""
        raise InvalidMDPError(
            f"{self.path}, line {self.line_number}: {problem}",
            name=str(self.path),
            found=found,
            expected=expected,
            hint=hint,
        )

    def read(self, file: IO[bytes]) -> None:
        """Read a whole file."""
        try:
            lines = self._lines(file)
            self._read_header(lines)
            for line in lines:
                if line.startswith("state "):
                    self._read_state(line)
                elif line.startswith("action "):
                    self._read_action(line)
                else:
                    self._read_transition(line)
            self._check_counts()
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise InvalidMDPError(
                f"{self.path}: damaged: {error}", name=str(self.path), hint="restore a copy of the file"
            ) from error

    def _lines(self, file: IO[bytes]) -> Iterator[str]:
        """Lines without blanks at their ends; empty ones and comments are left out."""
        while True:
            raw = file.readline(LONGEST_LINE + 1)
            if not raw:
                return
            self.line_number += 1
            if len(raw) > LONGEST_LINE:
                self.fail(f"the line has more than {LONGEST_LINE:,} bytes", len(raw), hint="this is no DRN file")
            try:
                line = raw.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                self.fail(f"not UTF-8 text ({error.reason})", raw[:20], hint="save it as UTF-8")
            if line and not line.startswith("//"):
                yield line

    # ------------------------------------------------------------------ header

    def _read_header(self, lines: Iterator[str]) -> None:
        """Sections up to @model. A section's content is its next line; @parameters and @reward_models may have none."""
        pending = next(lines, None)
        seen: set[str] = set()
        while pending is not None:
            section = pending.split(":")[0].strip()
            if section in seen:
                self.fail(f"{section} is declared twice", section)
            seen.add(section)
            if section == "@model":
                self._check_header()
                return
            pending = self._read_section(section, pending, lines)
        self.fail("the file ends before @model", None, hint="this is no DRN file, or a part of one")

    def _read_section(self, section: str, line: str, lines: Iterator[str]) -> str | None:
        """Read one section and return the line after it."""
        if section == "@type":
            self.kind = line.partition(":")[2].strip()
        elif section == "@value_type":
            kind = line.partition(":")[2].strip()
            if kind not in ("double", "rational"):
                self.fail(
                    f"values of type '{kind}'", kind, "double or rational", "instantiate the model in Storm first"
                )
        elif section in ("@nr_states", "@nr_choices"):
            number = self._count(next(lines, ""))
            if section == "@nr_states":
                self.declared_states = number
            else:
                self.declared_choices = number
        elif section in ("@parameters", "@reward_models", "@placeholders"):
            return self._read_list(section, lines)
        else:
            self.fail(f"'{line[:80]}' is no section of the format", line[:80], "@type, @nr_states, … or @model")
        return next(lines, None)

    def _read_list(self, section: str, lines: Iterator[str]) -> str | None:
        """Read the lines of a section that may be empty, up to the next section."""
        for line in lines:
            if line.startswith("@"):
                return line
            if section == "@parameters":
                self.fail("the model has parameters", line[:80], "none", "instantiate it in Storm first")
            elif section == "@reward_models":
                self.reward_names += line.split()
            else:
                place, colon, value = line.partition(":")
                if not colon or not place.strip().startswith("$"):
                    self.fail(f"'{line[:80]}' is no placeholder", line[:80], "$name : value")
                self.values[place.strip()] = self._value(value)
        return None

    def _check_header(self) -> None:
        if self.kind not in _TYPES:
            hint = "gainful reads what it can solve: MDPs, and chains as MDPs with one action"
            self.fail(f"the model is of type '{self.kind}'", self.kind, f"one of {', '.join(_TYPES)}", hint)
        size = self.path.stat().st_size
        compressed = self._is_compressed()
        most = max(self.declared_states, self.declared_choices)
        if self.declared_states < 1 or (not compressed and most * SHORTEST_STATE > size):
            self.fail(
                f"the header declares {self.declared_states:,} states and {self.declared_choices:,} choices, and the "
                f"file has {size:,} bytes",
                most,
                "at least one state, and no more than fit into the file",
            )
        self._check_memory()

    def _check_memory(self) -> None:
        """MemoryLimitError if what the header declares and what was read take more than one model may."""
        states, choices, entries = self.declared_states, self.declared_choices, len(self.targets)
        needed = STATE_BYTES * states + CHOICE_BYTES * choices + ENTRY_BYTES * entries
        thing = f"{self.path}: a model with {states:,} states"
        check_memory(str(self.path), states, needed, thing)

    def _is_compressed(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(2) in (b"\x1f\x8b", b"\xfd7")

    def _count(self, text: str) -> int:
        if not text.isdecimal() or len(text) > 15:
            self.fail(f"'{text[:40]}' is no number of states or choices", text[:40], "a whole number")
        return int(text)

    # ------------------------------------------------------------------ states, actions, transitions

    def _read_state(self, line: str) -> None:
        words = line[6:].lstrip()
        number, _, rest = words.partition(" ")
        if not number.isdecimal() or len(number) > 15 or int(number) != len(self.first_choice):
            self.fail(f"state {number[:40]}", number[:40], f"state {len(self.first_choice)}: states are in order")
        if len(self.first_choice) >= self.declared_states:
            self.fail("more states than declared", number, f"{self.declared_states} (@nr_states)")
        s = len(self.first_choice)
        self.first_choice.append(len(self.choice_action))
        self._opened_choice = False
        rest = rest.strip()
        rate = 0.0
        rewards: tuple[float, ...] = ()
        while rest[:1] in ("!", "[", "{"):
            if rest[0] == "!":
                word, _, rest = rest[1:].partition(" ")
                rate = self._value(word)
            else:
                inside, rest = self._bracket(rest)
                rewards = rewards if inside is None else inside
            rest = rest.strip()
        self.exit_rates.append(rate)
        self.state_rewards.append(rewards)
        self._read_labels(s, rest)

    def _bracket(self, text: str) -> tuple[tuple[float, ...] | None, str]:
        """The rewards in [ ] at the beginning of `text` (None for an observation in { }), and what follows."""
        closing = "]" if text[0] == "[" else "}"
        inside, found, rest = text[1:].partition(closing)
        if not found:
            self.fail(f"'{closing}' is missing", text[:80])
        if closing == "}":
            return None, rest
        return tuple(self._value(word) for word in inside.split(",") if word.strip()), rest

    def _read_labels(self, s: int, text: str) -> None:
        own = []
        for match in _LABEL.finditer(text):
            label = match.group(1) or match.group(2)
            if label == "init":
                self.initial.append(s)
            elif label != "deadlock":
                own.append(label)
        if self.state_labels is not None:
            if len(own) == 1:
                self.state_labels.append(own[0])
            else:
                self.state_labels = None

    def _read_action(self, line: str) -> None:
        if not self.first_choice:
            self.fail("an action before the first state", line[:80])
        name, _, rest = line[7:].strip().partition(" ")
        self._new_choice(name, self._bracket(rest.strip())[0] if rest.strip().startswith("[") else ())

    def _new_choice(self, name: str, rewards: tuple[float, ...] | None) -> None:
        self.choice_action.append(self.action_numbers.setdefault(name, len(self.action_numbers)))
        self.choice_rewards.append(rewards or ())
        self.first_transition.append(len(self.targets))
        self._opened_choice = True

    def _read_transition(self, line: str) -> None:
        target, colon, value = line.partition(":")
        target = target.strip()
        if not colon or not target.isdecimal() or len(target) > 15:
            self.fail(f"'{line[:80]}' is no transition", line[:80], "next state : probability")
        if not self.first_choice:
            self.fail("a transition before the first state", line[:80])
        if not self._opened_choice:  # a chain may leave its only action out
            self._new_choice("0", ())
        state = int(target)
        if state >= self.declared_states:
            self.fail(f"a transition to state {state}", state, f"0 … {self.declared_states - 1}")
        self.targets.append(state)
        if len(self.targets) % _CHECK_EVERY == 0:
            self._check_memory()
        self.probabilities.append(self._value(value))

    def _value(self, text: str) -> float:
        """A number, a fraction or a placeholder."""
        text = text.strip()
        if text[:1].isdigit() and "_" not in text:  # most are plain numbers; Python also reads 1_000
            with contextlib.suppress(ValueError):
                plain = float(text)
                if math.isfinite(plain):
                    return plain
        known = self.values.get(text)
        if known is not None:
            return known
        above, slash, below = text.partition("/")
        if not _NUMBER.fullmatch(above.strip()) or (slash and not _NUMBER.fullmatch(below.strip())):
            self.fail(
                f"'{text[:40]}' is no number", text[:40], "a number, a fraction or a placeholder that is declared"
            )
        divisor = float(below) if slash else 1.0
        value = float(above) / divisor if divisor != 0.0 else np.inf
        if not np.isfinite(value):
            self.fail(f"the number {text[:40]}", text[:40], "a finite number")
        if len(self.values) < 1 << 16:
            self.values[text] = value
        return value

    def _check_counts(self) -> None:
        if len(self.first_choice) != self.declared_states:
            found = len(self.first_choice)
            self.fail(f"the file ends after {found} states", found, f"{self.declared_states} (@nr_states)")
        if self.declared_choices and len(self.choice_action) != self.declared_choices:
            found = len(self.choice_action)
            self.fail(f"the file has {found} choices", found, f"{self.declared_choices} (@nr_choices)")
