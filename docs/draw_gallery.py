"""The pictures docs/images/gallery_*.png: executes docs/gallery.md, and keeps the figure that each example ends with.

python docs/draw_gallery.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parent / "gallery.md"
EXAMPLE = re.compile(r"^!\[[^\]]+\]\(images/(gallery_\w+\.png)\)\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """The file of a picture, the code under it, and the line of the page at which the code begins."""

    file: str
    code: str
    line: int


def examples() -> list[Example]:
    """The examples of the page, in order."""
    text = PAGE.read_text(encoding="utf-8")
    return [Example(m[1], m[2], text.count("\n", 0, m.start(2))) for m in EXAMPLE.finditer(text)]


def draw(folder: Path) -> list[Path]:
    """Execute all examples in one namespace and write their pictures to the folder; the files."""
    names: dict[str, Any] = {"__name__": "__main__"}
    files = []
    for example in examples():
        names.pop("figure", None)
        exec(
            compile("\n" * example.line + example.code, str(PAGE), "exec"), names
        )  # line numbers are those of the page
        figure = names["figure"]
        dpi = 72 if figure.get_size_inches()[0] > 10 else 130  # a slide is large
        figure.savefig(folder / example.file, dpi=dpi, facecolor="white", bbox_inches="tight", pad_inches=0.08)
        files.append(folder / example.file)
    return files


if __name__ == "__main__":
    for file in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent / "images"):
        print(file)
