"""Draw LabelMe's workers as MMLC sees them: in the plane, with the oracle among them (figure 4 of Han et al. 2025).

python benchmarks/worker_map.py            # writes docs/worker-map.svg; needs the dataset and the extra 'learn'
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from wisecrowd import MMLC, load_dataset
from wisecrowd._files import write_text

PICTURE = Path(__file__).parents[1] / "docs" / "worker-map.svg"
#: Pixels: the map, its margin, and the radius of a worker with most labels.
WIDTH, HEIGHT, MARGIN, LARGEST = 560, 380, 40, 13
#: Colours of accuracies from the first to the last, in equal steps.
COLOURS = ("#b2182b", "#ef8a62", "#f5d76e", "#91cf60", "#1a9850")
LEAST, MOST = 0.5, 1.0


def table() -> pd.DataFrame:
    """Place, number of labels and true accuracy of every worker; the oracle's are NaN."""
    labelme = load_dataset("labelme", duplicates="distinct")
    assert labelme.truth is not None
    model = MMLC().fit(labelme.features, labelme.crowd)
    votes = labelme.crowd.to_frame()
    right = votes["label"] == votes["task"].map(labelme.truth)
    return model.worker_map().assign(accuracy=right.groupby(votes["worker"]).mean())


def colour(accuracy: float) -> str:
    place = (accuracy - LEAST) / (MOST - LEAST) * len(COLOURS)
    return COLOURS[int(np.clip(place, 0, len(COLOURS) - 1))]


def star(x: float, y: float, radius: float = 12) -> str:
    turn = np.pi * np.arange(10) / 5 - np.pi / 2
    reach = np.where(np.arange(10) % 2, 0.45 * radius, radius)
    return " ".join(f"{x + r * np.cos(t):.1f},{y + r * np.sin(t):.1f}" for r, t in zip(reach, turn, strict=True))


def draw(workers: pd.DataFrame) -> Iterator[str]:
    height = HEIGHT + 2 * MARGIN + 40
    width = WIDTH + 2 * MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="#333">\n<rect width="{width}" height="{height}" fill="#fff"/>'
    )
    n_workers = len(workers) - 1
    yield f'<text x="{MARGIN}" y="22" font-size="13" font-weight="bold">{n_workers} workers of LabelMe and the oracle</text>'
    low, high = workers[["x", "y"]].min(), workers[["x", "y"]].max()
    scale = min(WIDTH / (high["x"] - low["x"]), HEIGHT / (high["y"] - low["y"]))  # one for both: distances count
    across = MARGIN + WIDTH / 2 + scale * (workers["x"] - (low["x"] + high["x"]) / 2)
    down = MARGIN + HEIGHT / 2 - scale * (workers["y"] - (low["y"] + high["y"]) / 2)
    for name in workers["n_labels"].sort_values(ascending=False).index:  # small ones in front
        n_labels, accuracy = workers.loc[name, "n_labels"], workers.loc[name, "accuracy"]
        if np.isnan(n_labels):
            continue
        radius = max(2.0, LARGEST * np.sqrt(n_labels / workers["n_labels"].max()))
        yield (
            f'<circle cx="{across[name]:.1f}" cy="{down[name]:.1f}" r="{radius:.1f}" fill="{colour(accuracy)}" '
            f'fill-opacity="0.85" stroke="#333" stroke-width="0.5"><title>{escape(str(name))}: {n_labels:.0f} labels, '
            f"{accuracy:.0%} right</title></circle>"
        )
    yield f'<polygon points="{star(across["(oracle)"], down["(oracle)"])}" fill="#2166ac" stroke="#fff"/>'
    yield from legend(height - 22)


def legend(y: float) -> Iterator[str]:
    edges = np.linspace(LEAST, MOST, len(COLOURS) + 1)
    for place, fill in enumerate(COLOURS):
        x = MARGIN + 84 * place
        words = f"below {edges[1]:.0%}" if place == 0 else f"{edges[place]:.0%} – {edges[place + 1]:.0%}"
        yield f'<circle cx="{x}" cy="{y - 4}" r="6" fill="{fill}"/><text x="{x + 10}" y="{y}">{words}</text>'
    x = MARGIN + 84 * len(COLOURS)
    yield f'<polygon points="{star(x, y - 4, 8)}" fill="#2166ac"/><text x="{x + 12}" y="{y}">oracle</text></svg>\n'


def nearness(workers: pd.DataFrame, fewest: int = 20) -> float:
    """Rank correlation of accuracy with nearness to the oracle, among workers with so many labels."""
    away = np.hypot(*(workers[axis] - workers.loc["(oracle)", axis] for axis in "xy"))
    busy = workers["n_labels"] >= fewest
    return -float(away[busy].rank().corr(workers["accuracy"][busy].rank()))


if __name__ == "__main__":
    found = table()
    write_text(PICTURE, "\n".join(draw(found)))
    print(f"wrote {PICTURE}; accuracy and nearness to the oracle have a rank correlation of {nearness(found):.2f}")
