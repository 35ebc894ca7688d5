"""The claims of the paper as studies: `python -m studies` makes the runs, the pictures and the pages of docs/claims.

A study NAME is the module `studies/NAME.py`, the specs `studies/specs/NAME/*.toml` and the page `docs/claims/NAME.md`.
The specs are ordinary ones: `gainful run studies/specs/NAME/PART.toml`. The first line of the module's docstring is
the title, and its function `findings` turns the stored runs into tables, verdicts and one picture
(`studies.study.Findings`). The text of the page is written by hand; everything measured stands between marks.
"""

STUDIES = (
    "growth",
    "wide_span",
    "unreachable",
    "over_exploration",
    "planning",
    "horizon",
    "count_bonus",
    "continuous",
    "smooth_laws",
)
"""In the order of docs/claims/index.md."""
