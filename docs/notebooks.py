"""Execute the notebooks of the docs and keep their outputs: `make notebooks`, or `python docs/notebooks.py FILE ...`.

Notebooks are committed with their outputs, so that the site is built without executing anything and readers see the
pictures wherever the files are shown. The tests execute them again and compare the text.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOT_SOURCES = {"_build", "jupyter_execute", ".ipynb_checkpoints"}
KEPT = {"tags", "jupyter", "mystnb"}
"""What is kept of a cell's metadata: times of execution, for instance, are not."""


def notebooks() -> list[Path]:
    """Every notebook of the docs."""
    return sorted(file for file in HERE.rglob("*.ipynb") if not NOT_SOURCES & set(file.parts))


def read(file: Path) -> Any:
    """The notebook as it is stored."""
    return nbformat.read(file, as_version=4)


def execute(file: Path) -> Any:
    """The notebook, executed from its beginning by a new kernel in its own folder, and tidy."""
    notebook = read(file)
    where = {"metadata": {"path": file.parent}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    return tidy(notebook)


def tidy(notebook: Any) -> Any:
    """Leave out what differs from one execution to the next."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number:02d}"
        cell.metadata = {name: value for name, value in cell.metadata.items() if name in KEPT}
    return notebook


def texts(notebook: Any) -> list[str]:
    """What each cell prints and shows as text; a picture counts as its kind, not by its pixels."""
    found = []
    for cell in notebook.cells:
        parts = []
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            pictures = [kind for kind in data if kind.startswith("image/")]
            parts.append(str(pictures) if pictures else output.get("text", data.get("text/plain", "")))
        found.append("".join(parts))
    return found


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or notebooks():
        nbformat.write(execute(path), path)
        print(path)
