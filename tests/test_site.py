"""The documentation builds as a site, without a warning."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import gainful as gf
from tests.browser import chromium

DOCS = Path(__file__).parent.parent / "docs"
MODULES = {"audit", "environments", "errors", "live", "planning", "plot", "problems", "theory", "__version__"}


def module_of_docs(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def api() -> Any:
    return module_of_docs("api_pages")


def test_every_public_name_has_a_page(api: Any) -> None:
    listed = {entry.name for group in api.groups() for entry in group.entries}
    missing = {f"gainful.{name}" for name in set(gf.__all__) - MODULES} - listed
    assert not missing, "list them in docs/reference/api.md"


def test_pages_differ_in_more_than_their_case_and_have_a_summary(api: Any) -> None:
    entries = [entry for group in api.groups() for entry in group.entries]
    assert len({entry.page.lower() for entry in entries}) == len(entries)
    assert all(entry.summary for entry in entries)


def test_members_of_a_base_without_a_page_are_on_the_page_of_its_heir(api: Any) -> None:
    directives = {entry.name: entry.directive for group in api.groups() for entry in group.entries}
    assert ":inherited-members:" in directives["gainful.MDP"]
    assert ":inherited-members:" not in directives["gainful.errors.InvalidMDPError"]


def test_parameters_become_a_table(api: Any) -> None:
    lines = [
        "Do it.",
        "",
        "Parameters",
        "----------",
        "n, m : int",
        "    How many.",
        "rate : float, optional",
        "    How",
        "    fast.",
    ]
    lines += ["", "Returns", "-------", "int", "    The number."]

    def target(n: int, m: int, rate: float = 0.5) -> None: ...

    api.tabulate_parameters(None, "function", "target", target, None, lines)
    text = "\n".join(lines)
    assert "* - ``n``, ``m``" in text
    assert re.search(r"\* - ``rate``\n +- float\n +- ``0.5``\n +- How\n +fast\.", text)
    assert lines[-4:] == ["Returns", "-------", "int", "    The number."]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(folder / "site")]
    done = subprocess.run([*command, "-d", str(folder / "doctrees")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(site: Path) -> None:
    pages = ["index", "tutorial", "course/3_scal_plus", "setting", "howto/choosing_c", "reference/theory_map"]
    for page in [*pages, "reference/api", "reference/api/SCALPlus", "reference/api/group_planning"]:
        assert (site / f"{page}.html").stat().st_size > 5000
    scal_plus = (site / "reference" / "api" / "SCALPlus.html").read_text(encoding="utf-8")
    assert re.search(r'<table class="[^"]*parameters', scal_plus)
    proof = (site / "kl_scal_plus.html").read_text(encoding="utf-8")
    assert "<mn>12</mn>" not in proof  # \frac12 is a half
    assert broken_links(site) == []


@pytest.mark.slow
def test_code_has_copy_buttons_and_no_script_fails(site: Path) -> None:
    errors: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        assert page.locator("button.copybtn").count() > 0
    assert errors == []


WIDTHS = (390, 820, 1400)  # a phone, a tablet, a desk
LOOK = """() => {
  const page = document.documentElement, article = document.querySelector('article'), found = [];
  const edge = article.getBoundingClientRect().right;
  const scrolls = part => {
    for (let e = part; e && e !== article; e = e.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true;
    return false;
  };
  if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} wide`);
  for (const part of article.querySelectorAll('img, table, pre, p, li, dt, h1, h2, h3'))
    if (part.getBoundingClientRect().right > edge + 12 && !scrolls(part))
      found.push(`does not fit: ${part.tagName} ${(part.textContent || part.src).trim().slice(0, 60)}`);
  for (const picture of article.querySelectorAll('img'))
    if (!picture.alt || picture.alt.endsWith('.png')) found.push(`has no description: ${picture.src}`);
  return found;
}"""


def misfits(pages: list[Path], site: Path) -> list[str]:
    """What is wider than its place or has no description, as a browser lays the pages out."""
    found = []
    with chromium() as browser:
        page = browser.new_page(java_script_enabled=False)
        for file in pages:
            page.goto(file.as_uri())
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                found += [f"{file.relative_to(site)} at {width}: {what}" for what in page.evaluate(LOOK)]
    return found


@pytest.mark.slow
def test_pages_fit_a_phone_a_tablet_and_a_desk(site: Path) -> None:
    """All pages, but of those of the API, which one template makes, only the longest."""
    pages = [file for file in sorted(site.rglob("*.html")) if not {"_modules", "_static"} & set(file.parts)]
    of_objects = [file for file in pages if file.parent.name == "api"]
    longest = sorted(of_objects, key=lambda file: file.stat().st_size)[-20:]
    assert len(longest) == 20
    assert misfits([*(file for file in pages if file not in of_objects), *longest], site) == []


@pytest.mark.slow
def test_what_does_not_fit_is_found(tmp_path: Path) -> None:
    wide = '<article style="width: 50vw"><p style="width: 2000px">wide</p><img src="a.png"></article>'
    (tmp_path / "a.html").write_text(wide, encoding="utf-8")
    found = misfits([tmp_path / "a.html"], tmp_path)
    assert [text.split(": ")[0] for text in found if " at 390" in text] == ["a.html at 390"] * 3


ADDRESS = re.compile(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]+)"')


def broken_links(site: Path) -> list[str]:
    """The links inside the site that lead to no file, or to no place in it."""
    texts = {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    places = {file: {unescape(name) for name in PLACE.findall(text)} for file, text in texts.items()}
    broken = []
    for file, text in texts.items():
        for address in {unescape(found) for found in ADDRESS.findall(text)}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(file.parent / unquote(parts.path))) if parts.path else file
            lost = target in places and parts.fragment and unquote(parts.fragment) not in places[target]
            if lost or not target.exists():
                broken.append(f"{file.relative_to(site)}: {address}")
    return sorted(broken)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#x">b</a> <a href="#top">a</a>', encoding="utf-8"
    )
    (tmp_path / "b.html").write_text(
        '<a href="a.html#y"> <img src="c.png"> <a href="https://x.example/">', encoding="utf-8"
    )
    assert broken_links(tmp_path) == ["a.html: b.html#x", "b.html: a.html#y", "b.html: c.png"]


@pytest.mark.parametrize(
    ("prose", "shown"),
    [
        ("2r_max·n^(−α) and T^{(α+2)/(2α+2)}", "2r<sub>max</sub>·n<sup>−α</sup> and T<sup>(α+2)/(2α+2)</sup>"),
        (
            "[0,1]^d, λ_iV, Lv_k, 7ℓ_n, T^0.75.",
            "[0,1]<sup>d</sup>, λ<sub>i</sub>V, Lv<sub>k</sub>, 7ℓ<sub>n</sub>, T<sup>0.75</sup>.",
        ),
        ("`t_k^2`, $t_k^2$, [a](b_c.md)", "`t_k^2`, $t_k^2$, [a](b_c.md)"),
        ("## t_k\n\n```python\na_b = x^y\n```\nbonus_scale", "## t_k\n\n```python\na_b = x^y\n```\nbonus_scale"),
    ],
)
def test_exponents_and_indices_of_the_prose_are_raised_and_lowered(prose: str, shown: str) -> None:
    assert module_of_docs("exponents").raised(prose) == shown
