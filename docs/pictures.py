"""Pictures of a page, made from the code on it: every block of Python is run, and what it draws is put below it."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: A heading, or a block of Python.
_PART = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
#: The site has both; the other one's pictures are hidden.
THEMES = ("light", "dark")


class Block(NamedTuple):
    """Some code of a page, where it ends, and the heading that it stands under."""

    code: str
    end: int
    line: int
    heading: str
    name: str
    """For a file: the heading, and a number for all but its first block."""


def blocks(page: str) -> Iterator[Block]:
    """The code of a page, in order."""
    heading, seen = "", dict[str, int]()
    for part in _PART.finditer(page):
        if part["heading"]:
            heading = part["heading"]
            continue
        slug = re.sub(r"\W+", "-", heading.lower()).strip("-")
        seen[slug] = seen.get(slug, 0) + 1
        name = slug if seen[slug] == 1 else f"{slug}-{seen[slug]}"
        yield Block(part["code"], part.end(), page[: part.start()].count("\n") + 2, heading, name)


def run(page: str, theme: str = "light") -> dict[str, str]:
    """Run the code of a page, and give the pictures that it draws as SVG, by the names of their blocks."""
    from matplotlib import pyplot

    from wisecrowd import plot

    namespace: dict[str, Any] = {}
    pictures = {}
    with tempfile.TemporaryDirectory() as folder, plot.style(theme), warnings.catch_warnings():
        warnings.simplefilter("error")  # a page shows no code that warns
        for block in blocks(page):
            before = set(pyplot.get_fignums())
            # Line numbers of the page, for whoever reads an error.
            exec(compile("\n" * (block.line - 1) + block.code, "gallery.md", "exec"), namespace)
            if drawn := sorted(set(pyplot.get_fignums()) - before):
                path = plot.save(pyplot.figure(drawn[-1]), Path(folder) / "picture.svg")
                pictures[block.name] = path.read_text("utf-8")
            for number in drawn:
                pyplot.close(number)
    return pictures


def address(name: str, theme: str) -> str:
    """Where a picture lies, beside the page."""
    return f"gallery/{name}-{theme}.svg"


def illustrated(page: str, names: set[str]) -> str:
    """The page, with each picture below the code that drew it."""
    parts, begin = [], 0
    for block in blocks(page):
        parts.append(page[begin : block.end])
        begin = block.end
        if block.name in names:
            links = [f"![{block.heading}]({address(block.name, theme)}#only-{theme})" for theme in THEMES]
            parts.append("\n\n" + "\n".join(links))
    return "".join(parts) + page[begin:]
