"""Pictures of disputed masks: outlines in the colours of workers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import MaskCrowd, MaskMajority
from wisecrowd.report.mask_pictures import MAX_RING_VERTICES, MAX_VERTICES, draw_masks


@pytest.fixture(scope="module")
def crowd() -> MaskCrowd:
    ring = np.zeros((20, 30))
    ring[4:9, 10:16] = 1
    ring[6, 12] = 0
    masks = [ring, np.roll(ring, 1, axis=1), np.zeros((20, 30))]
    return MaskCrowd.from_arrays(["i"] * 3 + ["j"], ["ann", "bob", "cy", "ann"], [*masks, ring])


def test_every_mask_is_a_path_in_the_colour_of_its_worker(crowd: MaskCrowd) -> None:
    picture = draw_masks(crowd, MaskMajority().fit(crowd), "i")
    assert [shape["style"] for shape in picture["shapes"]] == ["g1", "g2"]  # cy marked nothing
    assert [entry["count"] for entry in picture["legend"]] == [29, 29, 0]
    assert picture["shapes"][0]["d"].count("M") == 2  # the part, and its hole
    assert picture["shapes"][0]["d"].startswith("M10.5 4")
    assert picture["results"][0]["style"] == "pic-object"
    assert picture["legend"][0]["note"].startswith("IoU 0.")


def test_the_view_has_the_marked_pixels_or_the_image(crowd: MaskCrowd) -> None:
    model = MaskMajority().fit(crowd)
    x, y, width, height = map(float, draw_masks(crowd, model, "i")["view"].split())
    assert 8 < x < 10
    assert 2 < y < 4
    assert width < 12
    assert height < 8
    assert draw_masks(crowd, model, "i", "data:image/png;base64,")["view"] == "0.0 0.0 30.0 20.0"


def test_a_task_without_pixels_has_an_empty_frame() -> None:
    crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [np.zeros((4, 6))] * 2)
    picture = draw_masks(crowd, MaskMajority().fit(crowd), "i")
    assert picture["shapes"] == picture["results"] == []
    assert picture["frame"]["width"] >= 6


def test_scattered_and_long_outlines_are_shortened() -> None:
    rng = np.random.default_rng(0)
    noise = rng.random((120, 120)) < 0.5
    crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [noise, noise])
    path = draw_masks(crowd, MaskMajority().fit(crowd), "i")["shapes"][0]["d"]
    assert path.count("L") + path.count("M") <= MAX_VERTICES
    assert max(part.count("L") for part in path.split("Z")) < MAX_RING_VERTICES
