"""Commands and programs of the tutorials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(path.name for path in TUTORIALS.glob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_outputs_match(page: str, follow: Any, request: pytest.FixtureRequest) -> None:
    if "WISECROWD_ANSWER_TYPES" in (TUTORIALS / page).read_text(encoding="utf-8"):
        request.getfixturevalue("answer_types_folder")  # skips the page where its data are missing
    steps = follow(f"tutorials/{page}")
    assert sum(step.kind == "command" for step in steps) >= 5
    assert not any(">>>" in step.code for step in steps), "doctests are run without the commands before them"


def test_site_lists_tutorials() -> None:
    site = (TUTORIALS.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    assert PAGES
    assert [page for page in PAGES if f"tutorials/{page}" not in site] == []
