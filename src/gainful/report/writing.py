"""What every page needs: text made safe for HTML, and a file that is complete or as it was before."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from gainful.atomic_files import write_file
from gainful.errors import InvalidArgumentError, StoreError

REPORT_FILE = "report.html"


def escaped(text: str) -> str:
    """Text for HTML elements and quoted attributes, with control characters escaped."""
    plain = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return html.escape(plain, quote=True)


def asset(name: str) -> str:
    """A file that is shipped for pages."""
    return (resources.files("gainful.report") / "assets" / name).read_text(encoding="utf-8")


def plotly_bundle() -> str:
    """The script of plotly.js for charts on two axes, as shipped; it cannot end a script element."""
    script = (resources.files("gainful") / "_vendor" / "plotly" / "plotly-cartesian.min.js").read_text(encoding="utf-8")
    return script.replace("</script", "<\\/script")


def page_policy(scripts: Sequence[str], live: object = None) -> str:
    """A content security policy that names the scripts by their hashes; only a `live` page may ask its own server."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'" for script in scripts
    )
    asks = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; {asks}img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def head(title: str, policy: str) -> str:
    """The beginning of a page, up to its body; `policy` is its content security policy."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="gainful">
<title>{escaped(title)}</title>
<style>
{asset("page.css")}</style>
</head>
"""


def write_page(content: str, file: str | Path) -> Path:
    """Write a page and return its file; if anything fails, the file stays as it was."""
    target = Path(file)
    if target.is_dir():
        raise InvalidArgumentError(
            "file", str(file), f"the name of a file such as {REPORT_FILE}", problem=f"{file} is a folder"
        )
    try:
        write_file(target, content.encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}",
            name=str(file),
            hint="check space and permissions, or choose another file with --html",
        ) from error
    return target
