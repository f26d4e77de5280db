"""Fixtures: parser of a page, so that tests check what people see."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report


@dataclass
class Cell:
    """Cell of a table: its text, its sort key and its class."""

    text: str = ""
    value: str | None = None
    kind: str = ""


@dataclass
class Page(HTMLParser):
    """Tables by id, the text of elements by id, every tag with its attributes, and the data of the script."""

    html: str
    tables: dict[str, list[list[Cell]]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._table, self._cell, self._caption = "", None, False
        self._open: list[tuple[str, str | None]] = []
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "table":
            self._table = attributes.get("id") or f"table {len(self.tables)}"
            self.tables[self._table], self.captions[self._table] = [], ""
        elif tag == "caption":
            self._caption = True
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self._cell = Cell(value=attributes.get("data-v"), kind=attributes.get("class") or "")
            self.tables[self._table][-1].append(self._cell)
        if tag not in ("meta", "input", "br", "img"):
            self._open.append((tag, attributes.get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))  # nothing is within it, and nothing ends with it

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = None
        elif tag == "caption":
            self._caption = False
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.text += data
        if self._caption:
            self.captions[self._table] += data
        for _, name in self._open:
            if name is not None:
                self.texts[name] = self.texts.get(name, "") + data

    def rows(self, table: str) -> list[dict[str, Cell]]:
        """Rows of a table by the names of its columns."""
        head, *rows = self.tables[table]
        names = [cell.text.strip() for cell in head]
        for row in rows:
            for cell in row:
                cell.text = " ".join(cell.text.split())
        return [dict(zip(names, row, strict=True)) for row in rows]

    @property
    def workers(self) -> list[str]:
        """Names in the table of workers, from top to bottom."""
        return [row["Worker"].text for row in self.rows("worker-table")]

    @property
    def tiles(self) -> dict[str, str]:
        """Values and notes of the key figures by name."""
        tiles = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong> <span>(.*?)</span>", self.html)
        return {what: value for what, value, _ in tiles} | {f"{what} more": more for what, _, more in tiles}

    def section_text(self, section: str) -> str:
        """Return the text of a section with single spaces and without direction marks."""
        return " ".join(self.texts[section].replace("\u2068", "").replace("\u2069", "").split())

    @property
    def data(self) -> Any:
        """JSON data of the script."""
        return json.loads(self.texts["data"])


@pytest.fixture(scope="session")
def simulated() -> Any:
    """Simulated crowd of good and bad workers."""
    kinds = ["expert"] * 5 + ["noisy(0.75)"] * 12 + ["spammer"] * 2 + ["adversary", "copier(1)"]
    return wc.simulate_crowd(n_tasks=240, workers=kinds, votes_per_task=5, n_classes=4, random_state=2)


@pytest.fixture(scope="session")
def page_of() -> Any:
    """Return the parser of a page."""
    return Page


@pytest.fixture(scope="session")
def votes(simulated: Any) -> pd.DataFrame:
    """Votes of the simulated crowd."""
    return simulated.crowd.to_frame()


@pytest.fixture(scope="session")
def truth(simulated: Any) -> pd.Series:
    """Gold labels of half of the tasks."""
    return simulated.truth.iloc[::2]


@pytest.fixture(scope="session")
def page(simulated: Any, truth: pd.Series, page_of: Any) -> Any:
    """Parsed report on the simulated crowd, with texts and gold labels."""
    texts = {task: f"Is this one {task}?" for task in simulated.crowd.tasks}
    built = report.build(simulated.crowd, truth=truth, texts=texts, title="A test", command="wisecrowd report x.csv")
    return page_of(built.html)


@pytest.fixture(scope="session")
def draw_image() -> Callable[..., bytes]:
    """Return a function that draws an image of one colour, or of noise that does not compress."""

    def draw(kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", *, noise: bool = False) -> bytes:
        images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        image = images.new(mode, size, "teal" if mode in ("RGB", "RGBA") else 128)
        if noise:
            image = images.fromarray(np.random.default_rng(0).integers(256, size=(size[1], size[0], 3), dtype=np.uint8))
        file = io.BytesIO()
        image.save(file, kind)
        return file.getvalue()

    return draw
