"""The gallery: its code runs, every plot is on it, and a picture stands below the code that drew it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from wisecrowd import plot

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gallery.md").read_text("utf-8")


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_plot_is_in_the_gallery() -> None:
    assert set(re.findall(r"plot\.(\w+)\(", PAGE)) >= set(plot.__all__) - {"save"}
    assert "`plot.save`" in PAGE


@pytest.mark.slow
def test_the_code_draws_a_picture_for_every_block_but_the_first(
    pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = pictures.run(PAGE)
    blocks = list(pictures.blocks(PAGE))
    assert list(drawn) == [block.name for block in blocks[1:]]
    for picture in drawn.values():
        assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert list(tmp_path.iterdir()) == []
    page = pictures.illustrated(PAGE, set(drawn))
    for block in blocks[1:]:
        code, link = page.index(block.code), page.index(f"(gallery/{block.name}-light.svg#only-light)")
        assert link - code == pytest.approx(len(block.code), abs=120), "the picture stands below its code"


def test_pages_are_read_by_block(pictures: ModuleType) -> None:
    page = (
        "# One\n\n```python\na = 1\n```\n\n## Two, or more?\n\n```console\n$ ls\n```\n\n"
        "```python\n# no heading\nb = 2\n```\n\n```python\nc = 3\n```\n"
    )
    found = [(block.name, block.code, block.line) for block in pictures.blocks(page)]
    assert found == [
        ("one", "a = 1\n", 4),
        ("two-or-more", "# no heading\nb = 2\n", 14),
        ("two-or-more-2", "c = 3\n", 19),
    ]
    assert pictures.illustrated(page, set()) == page


def test_an_error_names_the_line_of_the_page(pictures: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        pictures.run("# One\n\n```python\na = 1\n\nb = a / 0\n```\n")
    assert raised.traceback[-1].lineno == 5  # counted from 0
