"""The line of every key in a TOML text, which tomllib does not tell."""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from contextlib import suppress

KeyPath = tuple[str | int, ...]
"""Keys and, in arrays, indices from 0: ("agents", 1, "parameters", "bonus_scale")."""

_BARE_KEY_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class TomlPositions:
    r"""The line of every key, table and array element of a TOML text that tomllib accepts.

    One pass over the text skips strings and comments whatever they contain. A path that is not in the text (a missing
    key) has the line of the nearest table or array around it.

    >>> TomlPositions('title = "x"\n[[agents]]\nname = "scal"\n').line_of(("agents", 0, "name"))
    3
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [i for i, character in enumerate(text) if character == "\n"]
        self._at: dict[KeyPath, int] = {}
        self._tables: dict[KeyPath, int] = {}  # arrays of tables: the index of their last one
        self._i = 0
        # where tomllib refuses the text, its error has a line; what was found so far stays
        with suppress(IndexError, ValueError, RecursionError):
            self._document()

    def line_of(self, path: KeyPath) -> int:
        """The line, from 1, of this path or of the nearest path above it."""
        for n in range(len(path), 0, -1):
            if path[:n] in self._at:
                return self._at[path[:n]]
        return 1

    def paths(self) -> list[KeyPath]:
        """Every path of the text, in the order of their lines."""
        return list(self._at)

    # ------------------------------------------------------------------ the text

    def _document(self) -> None:
        table: KeyPath = ()
        while True:
            self._blank()
            if self._i >= len(self._text):
                return
            start = self._i
            if self._text.startswith("[", self._i):
                is_array = self._text.startswith("[[", self._i)
                self._i += 1 + is_array
                keys = self._keys()
                self._expect("]" * (1 + is_array))
                table = self._header(keys, is_array, start)
            else:
                self._pair(table)

    def _header(self, keys: list[str], is_array: bool, start: int) -> KeyPath:
        path: KeyPath = ()
        for depth, key in enumerate(keys):
            path = (*path, key)
            if is_array and depth == len(keys) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            self._note(path, start)
            if path in self._tables:
                path = (*path, self._tables[path])
                self._note(path, start)
        return path

    def _pair(self, table: KeyPath) -> None:
        start, path = self._i, table
        for key in self._keys():
            path = (*path, key)
            self._note(path, start)
        self._expect("=")
        self._space()
        self._value(path)

    def _keys(self) -> list[str]:
        """Read a dotted key, and the space after it."""
        keys: list[str] = []
        while True:
            self._space()
            start = self._i
            if self._text[start] in "\"'":
                self._string()
                keys.append(tomllib.loads("key = " + self._text[start : self._i])["key"])
            else:
                while self._text[self._i] in _BARE_KEY_CHARACTERS:
                    self._i += 1
                if self._i == start:
                    raise ValueError("no key")
                keys.append(self._text[start : self._i])
            self._space()
            if self._text[self._i] != ".":
                return keys
            self._i += 1

    def _value(self, path: KeyPath) -> None:
        first = self._text[self._i]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            while self._i < len(self._text) and self._text[self._i] not in ",]}#\n":
                self._i += 1

    def _array(self, path: KeyPath) -> None:
        self._i += 1
        n = 0
        while True:
            self._blank()
            if self._text[self._i] == "]":
                self._i += 1
                return
            if self._text[self._i] == ",":
                self._i += 1
                continue
            self._note((*path, n), self._i)
            self._value((*path, n))
            n += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._i += 1
        while True:
            self._blank()
            if self._text[self._i] == "}":
                self._i += 1
                return
            if self._text[self._i] == ",":
                self._i += 1
                continue
            self._pair(path)

    def _string(self) -> None:
        quote = self._text[self._i]
        long = self._text.startswith(quote * 3, self._i)
        end = quote * (3 if long else 1)
        self._i += len(end)
        while not self._text.startswith(end, self._i):
            if self._i >= len(self._text):
                raise ValueError("a string without end")
            self._i += 2 if quote == '"' and self._text[self._i] == "\\" else 1
        self._i += len(end)
        if long:  # up to two quotes more belong to the string
            for _ in range(2):
                self._i += self._text.startswith(quote, self._i)

    # ------------------------------------------------------------------ small steps

    def _note(self, path: KeyPath, position: int) -> None:
        self._at.setdefault(path, bisect_right(self._breaks, position - 1) + 1)

    def _space(self) -> None:
        while self._i < len(self._text) and self._text[self._i] in " \t":
            self._i += 1

    def _blank(self) -> None:
        """Skip spaces, line ends and comments."""
        while self._i < len(self._text):
            if self._text[self._i] in " \t\r\n":
                self._i += 1
            elif self._text[self._i] == "#":
                end = self._text.find("\n", self._i)
                self._i = len(self._text) if end < 0 else end
            else:
                return

    def _expect(self, token: str) -> None:
        if not self._text.startswith(token, self._i):
            raise ValueError(f"no {token}")
        self._i += len(token)


def path_text(path: KeyPath) -> str:
    """The path as it is written in TOML and Python.

    >>> path_text(("agents", 1, "parameters", "bonus_scale"))
    'agents[1].parameters.bonus_scale'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = bool(part) and set(part) <= _BARE_KEY_CHARACTERS
            text += ("." if text else "") + (part if plain else f'"{part}"')
    return text
