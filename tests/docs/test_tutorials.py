"""The tutorials: every command and every program on them is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(path.name for path in TUTORIALS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_true(page: str, follow: Any) -> None:
    steps = follow(f"tutorials/{page}")
    assert sum(step.kind == "command" for step in steps) >= 5
    assert not any(">>>" in step.code for step in steps), "an example is run by itself, without the commands before it"


def test_there_are_tutorials_and_the_site_has_them() -> None:
    site = (TUTORIALS.parents[1] / "mkdocs.yml").read_text(encoding="utf-8")
    assert PAGES
    assert [page for page in PAGES if f"tutorials/{page}" not in site] == []
