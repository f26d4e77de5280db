"""Figures of a page, drawn by the Python code on it and inserted below the code."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: Heading or block of Python.
_PART = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
#: The site contains the figures of both themes and hides those of the other one.
THEMES = ("light", "dark")


class Block(NamedTuple):
    """Code block of a page, its position, and the heading above it."""

    code: str
    end: int
    line: int
    heading: str
    name: str
    """File name: the heading, with a number after the first block."""


def blocks(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page in order."""
    heading, block_counts = "", dict[str, int]()
    for part in _PART.finditer(page):
        if part["heading"]:
            heading = part["heading"]
            continue
        slug = re.sub(r"\W+", "-", heading.lower()).strip("-")
        block_counts[slug] = block_counts.get(slug, 0) + 1
        name = slug if block_counts[slug] == 1 else f"{slug}-{block_counts[slug]}"
        yield Block(part["code"], part.end(), page[: part.start()].count("\n") + 2, heading, name)


def run(page: str, theme: str = "light") -> dict[str, str]:
    """Run the code of a page and return its figures as SVG by block name."""
    from matplotlib import pyplot

    from wisecrowd import plot

    namespace: dict[str, Any] = {}
    pictures = {}
    with tempfile.TemporaryDirectory() as folder, plot.style(theme), warnings.catch_warnings():
        warnings.simplefilter("error")  # code on a page must not warn
        for block in blocks(page):
            before = set(pyplot.get_fignums())
            # Tracebacks show the line numbers of the page.
            exec(compile("\n" * (block.line - 1) + block.code, "gallery.md", "exec"), namespace)
            if drawn := sorted(set(pyplot.get_fignums()) - before):
                path = plot.save(pyplot.figure(drawn[-1]), Path(folder) / "picture.svg")
                pictures[block.name] = path.read_text("utf-8")
            for number in drawn:
                pyplot.close(number)
    return pictures


def address(name: str, theme: str) -> str:
    """Return the path of a figure relative to the page."""
    return f"gallery/{name}-{theme}.svg"


def illustrated(page: str, names: set[str]) -> str:
    """Return the page with each figure below its code."""
    parts, begin = [], 0
    for block in blocks(page):
        parts.append(page[begin : block.end])
        begin = block.end
        if block.name in names:
            links = [f"![{block.heading}]({address(block.name, theme)}#only-{theme})" for theme in THEMES]
            parts.append("\n\n" + "\n".join(links))
    return "".join(parts) + page[begin:]
