"""How many labels each worker gave, drawn: is a simulated crowd like a real one?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from wisecrowd.crowd import Crowd
from wisecrowd.errors import UsageError

#: Pixels: of a panel, and of the margins around its bars.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 250, 150, 40, 46, 40, 24
#: Who gives less than this share of the mean number of labels gives few.
FEW = 0.25


def draw_labels_per_worker(crowds: Mapping[str, Crowd], *, n_bars: int = 20, n_columns: int = 2) -> str:
    """Histograms of labels per worker as an SVG picture, one panel for each crowd, workers without labels left out.

    Behind the bars, the patch on the left is where workers give few labels: less than a quarter of the mean.

    >>> from wisecrowd import simulate_crowd
    >>> uneven = simulate_crowd(n_workers=100, activity="beta(1.5, 3)").crowd
    >>> picture = draw_labels_per_worker({"simulated": uneven})
    >>> picture[:4], "workers give few labels" in picture
    ('<svg', True)
    """
    if not crowds or n_bars < 1 or n_columns < 1:
        raise UsageError("give a crowd at least, by title, and 1 or more bars and columns")
    columns = min(n_columns, len(crowds))
    rows = -(-len(crowds) // columns)
    across, down = LEFT + WIDTH + GAP, TOP + HEIGHT + BOTTOM
    parts = []
    for place, (title, crowd) in enumerate(crowds.items()):
        number = crowd.labels_per_worker
        if not number.any():
            raise UsageError(f"{title} has no labels by workers to count")
        row, column = divmod(place, columns)
        inner = "\n".join(_panel(title, number[number > 0], n_bars))
        parts.append(f'<g transform="translate({column * across + LEFT}, {row * down + TOP})">\n{inner}\n</g>')
    width, height = columns * across + GAP, rows * down
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="#333">\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _panel(title: str, number: NDArray[np.int64], n_bars: int) -> Iterator[str]:
    # Whole numbers of labels to a bar, so that no bar can hold more different numbers than its neighbours.
    step = max(1, -(-int(number.max()) // n_bars))
    end = step * n_bars
    counts, _ = np.histogram(number, bins=np.arange(n_bars + 1) * step + 0.5)
    most, wide = int(counts.max()), WIDTH / n_bars
    few = FEW * number.mean()
    note = f"{int((number < few).sum()):,} of {len(number):,} workers give few labels"
    yield f'<text y="-26" font-size="13" font-weight="bold">{escape(title)}</text>'
    yield f'<text y="-10">{note}</text>'
    yield f'<rect width="{min(few / end, 1) * WIDTH:.1f}" height="{HEIGHT}" fill="#bfe3c4"/>'
    for place, count in enumerate(counts):
        tall = HEIGHT * count / most
        yield (
            f'<rect x="{place * wide + 0.5:.1f}" y="{HEIGHT - tall:.1f}" width="{wide - 1:.1f}" height="{tall:.1f}" '
            f'fill="#00796b"><title>{place * step + 1:,} to {(place + 1) * step:,} labels: {count:,} workers</title></rect>'
        )
    yield f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="#333"/>'
    for share in (0, 0.5, 1):
        yield f'<text x="{share * WIDTH:.0f}" y="{HEIGHT + 14}" text-anchor="middle">{round(share * end):,}</text>'
    yield f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT + 30}" text-anchor="middle">labels of a worker</text>'
    yield f'<text x="-4" y="9" text-anchor="end">{most:,}</text>'
    yield f'<text transform="translate(-10, {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">workers</text>'
