"""Pictures of tasks with disputed masks: outlines of every worker's mask over the frame of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.mask_aggregator import MaskAggregator
from wisecrowd.data.mask_runs import concatenate_masks
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.outlines import trace_rings
from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.evaluate.mask_metrics import score_masks
from wisecrowd.report.mark_pictures import MAX_NAME, MAX_WORKERS, find_extent, style_worker
from wisecrowd.utils.text import display_name, shorten

#: Vertices of a ring, and of all rings of a mask; further vertices and the smallest parts are left out.
MAX_RING_VERTICES, MAX_VERTICES = 400, 1500


def draw_masks(crowd: MaskCrowd, model: MaskAggregator, task: Any, image: str | None = None) -> dict[str, Any]:
    """Draw the masks of a task over the frame of its image.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    model : MaskAggregator
        Fitted method.
    task : object
        Task id.
    image : str, default=None
        Data URI of the image. Without it, the picture shows the part of the image with marked pixels.

    Returns
    -------
    dict
        Picture of the template. The legend has the overlap of every mask with the result.
    """
    code = int(crowd.tasks.get_indexer(pd.Index([task]))[0])
    votes = np.arange(crowd.task_offset[code], crowd.task_offset[code + 1])[:MAX_WORKERS]
    result = model.runs_.take([code])
    masks = concatenate_masks([crowd.masks.take(votes), result])
    iou = score_masks(masks.take(np.arange(len(votes))), result.take(np.zeros(len(votes), dtype=int)))["iou"]
    rings, ring_mask = trace_rings(masks)
    size = (float(crowd.width[code]), float(crowd.height[code]))
    places = rings.boxes if len(rings) else np.array([[0.0, 0.0, *size]])
    x, y, width, height = find_extent(places, None if image is None else size)
    shapes, legend = [], []
    for number, vote in enumerate(votes):
        name = shorten(display_name(crowd.workers[crowd.worker[vote]]), MAX_NAME)
        style, area = style_worker(number), int(crowd.masks.area[vote])
        note = f"IoU {iou[number]:.2f}"
        legend.append({"style": style, "text": name, "count": area, "note": note})
        if area:
            shapes.append(_make_path(rings, ring_mask == number, style, f"{name}: {area:,} pixels, {note}"))
    results = []
    if result.area[0]:
        title = f"Result: {int(result.area[0]):,} pixels"
        results.append(_make_path(rings, ring_mask == len(votes), "pic-object", title))
    frame = {"x": _round(x), "y": _round(y), "width": _round(width), "height": _round(height)}
    return {
        "kind": "frame",
        "is_mask": True,
        "view": " ".join(str(value) for value in frame.values()),
        "frame": frame,
        "image": image,
        "shapes": shapes,
        "results": results,
        "legend": legend,
        "objects": [],
    }


def _make_path(rings: PolygonRings, is_own: NDArray[np.bool_], style: str, title: str) -> dict[str, Any]:
    """Return the path around a mask, the largest parts and holes first."""
    own = rings.take(np.flatnonzero(is_own))
    n_vertices = 0
    parts: list[str] = []
    for number in np.argsort(-own.area, kind="stable"):
        points = own.points[own.offset[number] : own.offset[number + 1]]
        points = points[:: -(-len(points) // MAX_RING_VERTICES)]
        n_vertices += len(points)
        if parts and n_vertices > MAX_VERTICES:
            break
        parts.append("M" + "L".join(f"{_round(x):g} {_round(y):g}" for x, y in points) + "Z")
    return {"shape": "path", "style": style, "title": title, "d": "".join(parts)}


def _round(value: float) -> float:
    return float(f"{value:.6g}")
