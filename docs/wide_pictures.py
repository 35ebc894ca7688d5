"""A picture that was drawn wider than a page of paper scrolls on a phone, where its labels would be too small.

Pictures of notebooks have no description of their own; they are described as what the code above them draws.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image

WIDE = 8.0
"""In inches; most figures with several panels are wider."""


def mark_wide_pictures(app: Any, document: nodes.document) -> None:
    """Called for every page when it has been read: gainful.css does the rest."""
    for image in document.findall(nodes.image):
        image.setdefault("alt", "Figure drawn by the code above")
        file = Path(app.srcdir) / image["uri"]
        if file.suffix == ".png" and file.is_file() and inches(file) > WIDE:
            image["classes"].append("wide-picture")


def inches(file: Path) -> float:
    """The width at which a picture was drawn, 0 if its file does not say."""
    with Image.open(file) as picture:
        dots_per_inch = picture.info.get("dpi")
        return picture.width / dots_per_inch[0] if dots_per_inch else 0.0


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", mark_wide_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
