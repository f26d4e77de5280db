"""Reports on masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wisecrowd import MaskCrowd, simulate_masks
from wisecrowd.errors import UsageError
from wisecrowd.report import build
from wisecrowd.report.masks import build_mask_content


@pytest.fixture(scope="module")
def crowd() -> MaskCrowd:
    options = {"sensitivity": 1.0, "specificity": 1.0, "height": 16, "width": 20}
    return simulate_masks(n_tasks=14, n_workers=5, votes_per_task=4, random_state=0, **options).crowd  # type: ignore[arg-type]


def test_the_page_has_overlaps_pictures_workers_tasks_and_methods(crowd: MaskCrowd) -> None:
    content = build_mask_content(crowd, command="wisecrowd report")
    tiles = {tile["name"]: tile["value"] for tile in content["tiles"]}
    assert all(0 < float(tiles[name]) <= 1 for name in ("Expected IoU", "Expected Dice", "Agreement", "Sensitivity"))
    assert [section["id"] for section in content["sections"]] == ["disputed", "workers", "tasks", "methods"]
    assert len(content["sections"][0]["pictures"]) == 12
    assert len(content["sections"][-1]["table"]["rows"]) == 4
    html = build(crowd, compare=False).html
    assert html.count('class="pic-card"') == 12
    assert "<path class=" in html
    assert "Disputed masks" in html


def test_names_are_escaped() -> None:
    crowd = MaskCrowd.from_arrays(["<b>t</b>"] * 2, ["<i>w0</i>", "<i>w1</i>"], [np.eye(3)] * 2)
    html = build(crowd, compare=False).html
    assert "<b>t" not in html
    assert "<i>w" not in html
    assert "&lt;i&gt;w0&lt;/i&gt;" in html


def test_images_are_embedded_in_the_size_of_the_masks(tmp_path: Path) -> None:
    crowd = MaskCrowd.from_arrays(["a", "a"], ["x", "y"], [np.eye(12, 16)] * 2)
    Image.new("RGB", (64, 48), "red").save(tmp_path / "a.png")
    html = build(crowd, compare=False, images=tmp_path).html
    assert 'viewBox="0.0 0.0 16.0 12.0"' in html
    assert 'href="data:image/png;base64,' in html


def test_texts_are_refused(crowd: MaskCrowd) -> None:
    with pytest.raises(UsageError, match="the report on masks takes no texts"):
        build(crowd, texts={"t0": "a"})
