from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate import draw_labels_per_worker, simulate_patterns

SVG = "{http://www.w3.org/2000/svg}"


def crowd_of(numbers: list[int]) -> Crowd:
    """Workers who give so many labels each."""
    worker = np.repeat(np.arange(len(numbers)), numbers)
    task = np.concatenate([np.arange(number) for number in numbers])
    names = [f"w{place}" for place in range(len(numbers))]
    return Crowd(task, worker, task % 2, tasks=range(max(numbers)), workers=names, classes=["a", "b"])


def test_bars_count_workers() -> None:
    picture = draw_labels_per_worker({"three <by hand>": crowd_of([1, 1, 2, 10, 0])}, n_bars=5)
    root = ElementTree.fromstring(picture)
    told = [element.text or "" for element in root.iter(f"{SVG}title")]
    counts = [int(re.findall(r": (\d+) workers", text)[0]) for text in told]
    assert counts == [3, 0, 0, 0, 1]
    assert told[0].startswith("1 to 2 labels")
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "three <by hand>" in texts
    assert "0 of 4 workers give few labels" in texts  # a quarter of the mean is 0.875
    heights = [float(bar.get("height", 0)) for bar in root.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    assert heights[4] == pytest.approx(heights[0] / 3, abs=0.1)


def test_panels_do_not_overlap_and_fit() -> None:
    crowd = crowd_of([1, 2, 3])
    root = ElementTree.fromstring(draw_labels_per_worker({f"{n}": crowd for n in range(5)}, n_columns=2))
    places = {panel.get("transform") for panel in root.iter(f"{SVG}g")}
    assert len(places) == 5
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for place in places:
        x, y = map(float, re.findall(r"[\d.]+", place or ""))
        assert 0 < x < width - 250
        assert 0 < y < height - 150


def test_beta_propensities_make_workers_of_few_labels_and_equal_ones_do_not() -> None:
    def few(activity: str) -> int:
        crowd = simulate_patterns(n_tasks=5000, activity=activity).crowd
        return int(re.findall(r"([\d,]+) of [\d]+ workers give few", draw_labels_per_worker({"one": crowd}))[0])

    assert few("beta(1.5, 3)") > 15
    assert few("uniform") == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="a crowd at least"):
        draw_labels_per_worker({})
    with pytest.raises(UsageError, match="no labels"):
        draw_labels_per_worker({"empty": Crowd([], [], [], tasks=["t"], workers=["w"], classes=["a", "b"])})
