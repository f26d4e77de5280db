"""Pictures of tasks with disputed objects: marks of every worker over the frame of an image, or over a text."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.mark_aggregator import MarkAggregator
from wisecrowd.data.mark_matches import match_marks
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.utils.text import display_name, format_number, shorten

Array = NDArray[np.float64]

#: Colours of workers; further workers repeat them with dashed lines.
N_COLOURS = 8
#: Workers and objects shown in a picture.
MAX_WORKERS, MAX_OBJECTS = 16, 12
#: Margin around marks, as a share of their extent, if the size of the image is not known.
MARGIN = 0.06
#: Width of the badge of an object, as a share of the longer side of the picture.
BADGE = 0.026
#: Characters of a text shown around the disputed spans, and at most.
CONTEXT, MAX_TEXT = 120, 900
#: Length of names in a picture.
MAX_NAME = 40


class TaskMarks(NamedTuple):
    """Marks and candidates of one task.

    Parameters
    ----------
    task : object
        Task id.
    crowd : MarkCrowd
        Marks on this task.
    candidates : DataFrame
        Candidates of the task, the least certain first.
    workers : list of list
        Ids of the workers who marked each candidate.
    places : ndarray of shape (n_candidates, n_coordinates)
        Coordinates of the candidates.
    rings : PolygonRings or None
        Vertices of the candidates, for polygons.
    """

    task: Any
    crowd: MarkCrowd
    candidates: pd.DataFrame
    workers: list[list[Any]]
    places: Array
    rings: PolygonRings | None = None


def select_task_marks(
    crowd: MarkCrowd, model: MarkAggregator, task: Any, candidates: pd.DataFrame | None = None
) -> TaskMarks:
    """Return the marks and candidates of one task.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    model : MarkAggregator
        Fitted method.
    task : object
        Task id.
    candidates : DataFrame, default=None
        ``candidates_`` of the method, if several tasks are selected.

    Returns
    -------
    TaskMarks
    """
    code = int(crowd.tasks.get_indexer(pd.Index([task]))[0])
    part = crowd.take(np.arange(crowd.task_offset[code], crowd.task_offset[code + 1]))
    rows = np.flatnonzero(model.object_task_ == code)
    table = (model.candidates_ if candidates is None else candidates).iloc[rows].reset_index(drop=True)
    doubt = np.abs(table["confidence"].to_numpy() - model.threshold_)
    order = np.lexsort((np.arange(len(rows)), doubt))
    radius = float(getattr(model, "radius_", 1.0))
    places, rings = model.object_coordinates_[rows], model.rings_
    rings = None if rings is None else rings.take(rows)
    matches = match_marks(part, np.full(len(rows), code), places, radius=radius, object_rings=rings)
    workers: list[list[Any]] = [[] for _ in rows]
    for mark, target in zip(matches.mark, matches.target, strict=True):
        workers[target].append(part.workers[part.mark_worker[mark]])
    return TaskMarks(
        task,
        part,
        table.iloc[order].reset_index(drop=True),
        [workers[row] for row in order],
        places[order],
        None if rings is None else rings.take(order),
    )


def describe_objects(marks: TaskMarks, text: Any = None) -> list[dict[str, Any]]:
    """Return the list of objects below a picture, the least certain first.

    Parameters
    ----------
    marks : TaskMarks
        Marks and candidates.
    text : str or list of str, default=None
        Text of the task, or its tokens, for spans.

    Returns
    -------
    list of dict
        Number, label, confidence, whether the object is chosen, and who marked it.
    """
    rows = []
    shown: Any = marks.candidates.head(MAX_OBJECTS).itertuples()
    for number, (row, workers) in enumerate(zip(shown, marks.workers, strict=False), start=1):
        names = ", ".join(shorten(display_name(worker), MAX_NAME) for worker in workers[:MAX_WORKERS])
        rows.append(
            {
                "number": number,
                "label": shorten(display_name(row.label), MAX_NAME),
                "place": _describe_span(row, text) if isinstance(marks.crowd, SpanCrowd) else "",
                "confidence": format_number(row.confidence),
                "chosen": bool(row.chosen),
                "by": f"{row.n_marks} of {row.n_votes}" + (f": {names}" if names else ""),
            }
        )
    return rows


def draw_frame(marks: TaskMarks, size: tuple[float, float] | None = None, image: str | None = None) -> dict[str, Any]:
    """Draw boxes, points or polygons over the frame of their image.

    Parameters
    ----------
    marks : TaskMarks
        Marks and candidates.
    size : tuple of float, default=None
        Width and height of the image; by default the extent of the marks.
    image : str, default=None
        Data URI of the image.

    Returns
    -------
    dict
        Picture of the template.
    """
    crowd = marks.crowd
    objects, mark_rings = marks.places, _list_rings(crowd.get_rings(), crowd.n_marks)
    object_rings = _list_rings(marks.rings, len(objects))
    x, y, width, height = find_extent(np.vstack([crowd.coordinates, objects])[:, :4], size)
    radius = BADGE * max(width, height)
    shapes, legend = [], []
    for number, code in enumerate(crowd.worker[:MAX_WORKERS]):
        name = shorten(display_name(crowd.workers[code]), MAX_NAME)
        style = style_worker(number)
        own = np.flatnonzero(crowd.mark == number)
        legend.append({"style": style, "text": name, "count": len(own), "note": ""})
        for mark in own:
            label = display_name(crowd.classes[crowd.label[mark]])
            shapes.append(_make_shape(crowd.coordinates[mark], style, f"{name}: {label}", radius / 2, mark_rings[mark]))
    results = []
    rows: Any = marks.candidates.head(MAX_OBJECTS).itertuples()
    for number, row in enumerate(rows, start=1):
        place = objects[number - 1]
        style = "pic-object" if row.chosen else "pic-object pic-rejected"
        title = f"{number}: {display_name(row.label)}, confidence {row.confidence:.2f}"
        # Badges lie beside marks, so that they hide none.
        shift = (-0.8, -0.8) if crowd.has_size else (1.6, -1.6)
        badge = {"x": _round(place[0] + shift[0] * radius), "y": _round(place[1] + shift[1] * radius), "number": number}
        shape = _make_shape(place, style, title, 0.7 * radius, object_rings[number - 1])
        results.append(shape | {"badge": badge})
    return {
        "kind": "frame",
        "is_mask": False,
        "view": f"{_round(x)} {_round(y)} {_round(width)} {_round(height)}",
        "frame": {name: _round(value) for name, value in zip(("x", "y", "width", "height"), (x, y, width, height), strict=True)},
        "image": image,
        "shapes": shapes,
        "results": results,
        "legend": legend,
        "badge": _round(radius),
    }  # fmt: skip


def draw_text(marks: TaskMarks, text: Any = None) -> dict[str, Any]:
    """Draw spans over their text, one line per worker.

    Parameters
    ----------
    marks : TaskMarks
        Marks and candidates.
    text : str or list of str, default=None
        Text if offsets count characters, tokens if they count tokens. Without it, spans are bars over the offsets.

    Returns
    -------
    dict
        Picture of the template.
    """
    crowd = marks.crowd
    chosen = marks.candidates[marks.candidates["chosen"]]
    spans = chosen[["start", "end"]].to_numpy(dtype=np.int64)
    lines: list[dict[str, Any]] = [
        {"name": "Result", "style": "pic-result", "spans": spans, "labels": list(map(display_name, chosen["label"]))}
    ]
    for number, code in enumerate(crowd.worker[:MAX_WORKERS]):
        own = np.flatnonzero(crowd.mark == number)
        lines.append(
            {
                "name": shorten(display_name(crowd.workers[code]), MAX_NAME),
                "style": style_worker(number),
                "spans": crowd.coordinates[own].astype(np.int64),
                "labels": [display_name(crowd.classes[label]) for label in crowd.label[own]],
            }
        )
    if text is None:
        return _draw_tracks(lines)
    characters, starts = _join_text(text)
    low, high = _find_window(marks, starts, len(characters))
    parts = []
    for line in lines:
        places = [
            (starts[min(start, len(starts) - 1)], starts[min(end, len(starts) - 1)]) for start, end in line["spans"]
        ]
        if not isinstance(text, str):  # the end of a span of tokens is that of its last token, without the space
            places = [(start, max(end - 1, start + 1) if end < len(characters) else end) for start, end in places]
        parts.append(
            {
                "name": line["name"],
                "style": line["style"],
                "parts": _cut_text(characters, places, line["labels"], low, high),
            }
        )
    return {"kind": "text", "lines": parts, "has_more": low > 0 or high < len(characters)}


def _describe_span(row: Any, text: Any) -> str:
    """Return the words of a span, or its offsets if the text is not known."""
    if text is None:
        return f"{row.start}–{row.end}"
    part = text[row.start : row.end]
    return f"“{shorten(part if isinstance(part, str) else ' '.join(map(str, part)), MAX_NAME)}”"


def find_extent(places: Array, size: tuple[float, float] | None) -> tuple[float, float, float, float]:
    """Return x, y, width and height of a picture.

    Parameters
    ----------
    places : ndarray of shape (n, 2) or (n, 4)
        Points or boxes.
    size : tuple of float, default=None
        Width and height of the image. Without it, the picture has all places, with a margin.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> find_extent(np.array([[1.0, 2, 10, 10]]), (40, 30))
    (0.0, 0.0, 40.0, 30.0)
    """
    low, high = places[:, :2].min(axis=0), (places[:, :2] + (places[:, 2:] if places.shape[1] == 4 else 0)).max(axis=0)
    if size is not None:
        low, high = np.minimum(low, 0), np.maximum(high, size)
    else:
        margin = MARGIN * max(float((high - low).max()), 1.0)
        low, high = low - margin, high + margin
    return float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])


def style_worker(number: int) -> str:
    """Return the class of the colour of a worker in a picture.

    Parameters
    ----------
    number : int
        Position of the worker among those of the task.

    Returns
    -------
    str

    Examples
    --------
    >>> style_worker(0), style_worker(8)
    ('g1', 'g1 pic-dashed')
    """
    return f"g{number % N_COLOURS + 1}" + (" pic-dashed" if number >= N_COLOURS else "")


def _list_rings(rings: PolygonRings | None, count: int) -> list[Any]:
    """Return the vertices of every polygon; None for other marks."""
    return [None] * count if rings is None else rings.to_lists()


def _make_shape(place: Array, style: str, title: str, radius: float, ring: Any = None) -> dict[str, Any]:
    """Return a rectangle, a circle for a point, or a polygon."""
    if ring is not None:
        points = " ".join(f"{_round(x)},{_round(y)}" for x, y in ring)
        return {"shape": "polygon", "style": style, "title": title, "points": points}
    values = [_round(value) for value in place]
    if len(values) == 2:
        return {"shape": "circle", "style": style, "title": title, "x": values[0], "y": values[1], "r": _round(radius)}
    names = ("x", "y", "width", "height")
    return {"shape": "rect", "style": style, "title": title, **dict(zip(names, values, strict=True))}


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _draw_tracks(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return spans as bars over their offsets."""
    end = max((int(line["spans"][:, 1].max()) for line in lines if len(line["spans"])), default=1)
    tracks = []
    for line in lines:
        bars = [
            {
                "x": _round(1000 * start / end),
                "width": _round(max(1000 * (stop - start) / end, 2.0)),
                "title": f"{line['name']}: {start}–{stop} {label}",
            }
            for (start, stop), label in zip(line["spans"], line["labels"], strict=True)
        ]
        tracks.append({"name": line["name"], "style": line["style"], "bars": bars})
    return {"kind": "tracks", "tracks": tracks, "end": end}


def _join_text(text: Any) -> tuple[str, list[int]]:
    """Return the characters of a text, and the position of every character or token."""
    if isinstance(text, str):
        return text, list(range(len(text) + 1))
    tokens = [str(token) for token in text]
    starts = np.concatenate([[0], np.cumsum([len(token) + 1 for token in tokens])]).astype(int).tolist()
    joined = " ".join(tokens)
    starts[-1] = len(joined)
    return joined, starts


def _find_window(marks: TaskMarks, starts: list[int], length: int) -> tuple[int, int]:
    """Return the part of a text around the disputed spans."""
    if length <= MAX_TEXT:
        return 0, length
    first = marks.candidates.head(1)[["start", "end"]].to_numpy(dtype=np.int64)
    begin = starts[min(int(first[0, 0]), len(starts) - 1)] if len(first) else 0
    low = max(begin - CONTEXT, 0)
    return low, min(low + MAX_TEXT, length)


def _cut_text(
    characters: str, places: list[tuple[int, int]], labels: list[str], low: int, high: int
) -> list[dict[str, Any]]:
    """Return a text as parts, cut at the ends of spans; a part has the labels of the spans that cover it."""
    cuts = sorted({low, high, *(cut for place in places for cut in place if low < cut < high)})
    parts = []
    for begin, end in itertools.pairwise(cuts):
        covering = [
            label for (start, stop), label in zip(places, labels, strict=True) if start <= begin and end <= stop
        ]
        is_last = any(stop == end for start, stop in places if start <= begin)
        names = ", ".join(dict.fromkeys(covering))
        parts.append({"text": characters[begin:end], "label": names, "shows_label": bool(names) and is_last})
    return parts
