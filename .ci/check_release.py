"""Say whether a tag, the version, the changelog and the citation agree: `python .ci/check_release.py v1.2.3`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems_of(tag: str, root: Path) -> list[str]:
    """What does not agree with the tag, one line each."""
    wanted = tag.removeprefix("v")
    found = re.search(r'^__version__ = "(.+)"', (root / "src/gainful/__init__.py").read_text("utf-8"), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    changes = re.search(rf"^## {re.escape(wanted)}\b", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    problems = []
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        problems.append(f"the tag is {tag}, expected v1.2.3 or v1.2.3rc1")
    if found is None or found[1] != wanted:
        problems.append(f"src/gainful/__init__.py says {found and found[1]}, expected {wanted}: set __version__")
    if cited is None or cited[1] != wanted:
        problems.append(f"CITATION.cff says {cited and cited[1]}, expected {wanted}: set version")
    if changes is None:
        problems.append(f"CHANGELOG.md has no section {wanted}: rename Unreleased to it, with the date")
    return problems


def main() -> None:
    """Print the problems; exit with 1 if there are any."""
    if len(sys.argv) != 2:
        sys.exit("usage: python .ci/check_release.py v1.2.3")
    problems = problems_of(sys.argv[1], ROOT)
    print("\n".join(problems) or f"{sys.argv[1]}: version, changelog and citation agree")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
