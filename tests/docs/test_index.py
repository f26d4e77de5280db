"""The index lists every page, and all pages install in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
#: The commands that install wisecrowd, and torch without CUDA.
COMMANDS = {
    'pip install ".[fast,report]"',
    'pip install ".[all]"',
    "pip install torch --index-url https://download.pytorch.org/whl/cpu",
}


def test_the_index_links_every_page() -> None:
    links = set(re.findall(r"\]\(([\w/.-]+\.md)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert sorted(links - {"api/wisecrowd.md"}) == [page for page in PAGES if page != "index.md"]


@pytest.mark.parametrize("path", [ROOT / "README.md", *(DOCS / page for page in PAGES)], ids=lambda path: path.name)
def test_pages_install_in_one_way(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = {command.strip() for command in re.findall(r"pip install [^`#\n]+", text)}
    assert commands <= COMMANDS
    if path.name in ("README.md", "getting-started.md"):
        assert commands == COMMANDS
    elif commands:
        assert "](getting-started.md#install)" in text, "link the page that explains torch without CUDA"
