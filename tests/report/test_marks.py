"""Reports on boxes, points, polygons and spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from wisecrowd import BoxCrowd, SpanCrowd, simulate_boxes, simulate_points, simulate_polygons, simulate_spans
from wisecrowd.errors import UsageError
from wisecrowd.report import build
from wisecrowd.report.marks import build_mark_content


@pytest.mark.parametrize("simulate", [simulate_boxes, simulate_points, simulate_polygons, simulate_spans])
def test_the_page_has_scores_pictures_workers_and_tasks(simulate: Any) -> None:
    crowd = simulate(n_tasks=20, n_workers=5, votes_per_task=4, n_classes=2, random_state=0).crowd
    content = build_mark_content(crowd, compare=False, command="wisecrowd report")
    tiles = {tile["name"]: tile["value"] for tile in content["tiles"]}
    assert all(0 < float(tiles[f"Expected {name}"]) <= 1 for name in ("F1", "precision", "recall"))
    assert [section["id"] for section in content["sections"]] == ["disputed", "workers", "tasks"]
    assert len(content["sections"][0]["pictures"]) == 12
    html = build(crowd, compare=False).html
    assert html.count('class="pic-card"') == 12
    assert "Disputed objects" in html


def test_methods_are_compared_on_request() -> None:
    crowd = simulate_boxes(n_tasks=15, n_workers=5, random_state=0).crowd
    sections = build_mark_content(crowd)["sections"]
    assert sections[-1]["id"] == "methods"
    assert len(sections[-1]["table"]["rows"]) == 2


def test_names_are_escaped() -> None:
    rows = [("<b>t</b>", f"<i>w{number}</i>", 0, 2, "<script>") for number in range(3)]
    crowd = SpanCrowd.from_frame(pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]))
    html = build(crowd, compare=False, texts={"<b>t</b>": "<u>text</u>"}).html
    for raw in ("<b>t", "<i>w", "<u>text", "<script>,"):
        assert raw not in html
    assert "&lt;i&gt;w0&lt;/i&gt;" in html


def test_images_are_embedded_in_their_size(tmp_path: Path) -> None:
    frame = {"task": ["a", "a"], "worker": ["x", "y"], "x": [1, 2], "y": [1, 1], "width": [9, 9], "height": [5, 5]}
    Image.new("RGB", (64, 48), "red").save(tmp_path / "a.png")
    page = build(BoxCrowd.from_frame(frame), compare=False, images=tmp_path)
    assert 'viewBox="0.0 0.0 64.0 48.0"' in page.html
    assert 'href="data:image/png;base64,' in page.html
    assert "img-src data:" in page.html
    assert "img-src" not in build(BoxCrowd.from_frame(frame), compare=False).html


def test_media_of_other_kinds_are_refused() -> None:
    boxes = simulate_boxes(n_tasks=3, n_workers=3, votes_per_task=2, random_state=0).crowd
    with pytest.raises(UsageError, match="the report on boxes takes no texts"):
        build(boxes, texts={"t0": "a"})
    with pytest.raises(UsageError, match="takes no truth"):
        build(boxes, truth={"t0": "a"})
