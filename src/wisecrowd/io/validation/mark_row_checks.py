"""Checks of tables of boxes, points, polygons and spans: rows that make no valid mark, and marks outside of images and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.marks import MAX_COORDINATE, MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings, parse_ring
from wisecrowd.errors import InputError, preview
from wisecrowd.io.validation.findings import Finding
from wisecrowd.utils.text import count_noun

Mask = NDArray[np.bool_]
#: Name, rows, noun and advice of a problem.
Problem = tuple[str, Mask, str, str]

#: Rows named in a finding.
SHOWN_ROWS = 3
#: Share of the size of an image, or pixels, by which a mark may exceed it: tools round.
EDGE_TOLERANCE = 1.0
#: Names of the columns of sizes of images, in order of preference.
WIDTH_NAMES, HEIGHT_NAMES = ("width", "image_width", "original_width"), ("height", "image_height", "original_height")


def check_mark_rows(kind: type[MarkCrowd], table: pa.Table, columns: Mapping[str, str]) -> tuple[list[Finding], Mask]:
    """Check the rows of a table of marks.

    Parameters
    ----------
    kind : type
        Class of the marks.
    table : pyarrow.Table
        Rows.
    columns : mapping of str to str
        Column by role.

    Returns
    -------
    findings : list of Finding
        Problems, each with the number of rows and examples.
    is_sound : ndarray of shape (n_rows,)
        Rows without an error, from which a crowd can be built.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> rows = pa.table({"task": ["d", "d"], "worker": ["ann", None], "start": [4, 0], "end": [1, 2]})
    >>> findings, is_sound = check_mark_rows(SpanCrowd, rows, {name: name for name in rows.column_names})
    >>> [finding.name for finding in findings], is_sound.tolist()
    (['missing-ids', 'reversed-spans'], [False, False])
    """
    lacks_id = np.zeros(table.num_rows, dtype=bool)
    for role in ("task", "worker"):
        lacks_id |= vocab.find_missing(table[columns[role]])
    places = _check_polygons(table, columns) if kind.answer_type == "polygons" else _check_numbers(kind, table, columns)
    is_given, place_problems = places
    problems: list[Problem] = [
        ("missing-ids", lacks_id, "row without a task or a worker", "Add the ids, or remove the rows."),
        *place_problems,
    ]
    findings = [_make_finding(name, rows, noun, fix) for name, rows, noun, fix in problems if rows.any()]
    is_sound = ~np.logical_or.reduce([rows for _, rows, _, _ in problems])
    label = columns.get("label")
    if label is not None and label in table.column_names:
        lacks_label = vocab.find_missing(table[label]) & is_given & is_sound
        if lacks_label.any():
            findings.append(_make_finding("missing-labels", lacks_label, "mark without a label", "Add the labels."))
            is_sound &= ~lacks_label
    findings += _find_repeated(kind, table, columns, is_given & is_sound)
    return findings, is_sound


def check_images(crowd: MarkCrowd, images: DataFrameLike) -> Iterator[Finding]:
    """Check that boxes, points or polygons lie inside of their images.

    Parameters
    ----------
    crowd : MarkCrowd
        Boxes, points or polygons, in pixels.
    images : DataFrame, Arrow table or dict of columns
        Columns task, width and height (or image_width and image_height).

    Yields
    ------
    Finding
        Marks outside of images, and images without a size.

    Raises
    ------
    InputError
        If a column is absent.

    Examples
    --------
    >>> from wisecrowd.data.points import PointCrowd
    >>> points = PointCrowd.from_frame({"task": ["i"], "worker": ["ann"], "x": [90], "y": [10]})
    >>> [finding.name for finding in check_images(points, {"task": ["i"], "width": [80], "height": [60]})]
    ['outside-image']
    """
    table = as_table(images)
    names = [
        next((name for name in group if name in table.column_names), None)
        for group in (("task",), WIDTH_NAMES, HEIGHT_NAMES)
    ]
    if None in names:
        raise InputError(
            f"the sizes of images have the columns {preview(table.column_names, 12)}; expected task, width and height"
        )
    task_name, width_name, height_name = (str(name) for name in names)
    row = _align_tasks(table[task_name], crowd.tasks)
    yield from _report_unknown(crowd, row, "unknown-images", "image without a size")
    size = np.column_stack([table[name].cast(pa.float64()).to_numpy() for name in (width_name, height_name)])
    limit = np.where((row >= 0)[:, None], size[np.maximum(row, 0)] if len(size) else np.inf, np.inf)[crowd.mark_task]
    low = crowd.coordinates[:, :2]
    high = low + crowd.coordinates[:, 2:4] if crowd.coordinates.shape[1] >= 4 else low
    is_outside = (low > limit).any(axis=1) | (high < 0).any(axis=1)
    is_protruding = ((low < -EDGE_TOLERANCE) | (high > limit + EDGE_TOLERANCE)).any(axis=1) & ~is_outside
    if is_outside.any():
        yield _make_mark_finding(
            crowd, is_outside, "outside-image", "error", "outside of the image",
            "Are coordinates in pixels of this image, from its upper left corner? Correct or remove them.",
        )  # fmt: skip
    if is_protruding.any():
        yield _make_mark_finding(
            crowd, is_protruding, "beyond-image-edge", "warning", "partly outside of the image", "Clip them to the image.",
        )  # fmt: skip


def check_documents(crowd: MarkCrowd, documents: DataFrameLike) -> Iterator[Finding]:
    """Check that spans end inside of their documents.

    Parameters
    ----------
    crowd : MarkCrowd
        Spans.
    documents : DataFrame, Arrow table or dict of columns
        Columns task, and tokens (lists, if offsets count tokens) or text (if they count characters).

    Yields
    ------
    Finding
        Spans beyond the end, and tasks without a document.

    Raises
    ------
    InputError
        If a column is absent.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> spans = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [3], "end": [9]})
    >>> [finding.name for finding in check_documents(spans, {"task": ["d"], "text": ["a cat"]})]
    ['beyond-document']
    """
    table = as_table(documents)
    name = next((name for name in ("tokens", "text") if name in table.column_names), None)
    if name is None or "task" not in table.column_names:
        raise InputError(
            f"the documents have the columns {preview(table.column_names, 12)}; expected task, and tokens (lists) or text"
        )
    row = _align_tasks(table["task"], crowd.tasks)
    yield from _report_unknown(crowd, row, "unknown-documents", "task without a document")
    is_list = pa.types.is_list(table[name].type) or pa.types.is_large_list(table[name].type)
    count = pc.list_value_length(table[name]) if is_list else pc.utf8_length(table[name].cast(pa.large_string()))
    length = count.cast(pa.float64()).to_numpy()
    limit = np.where(row >= 0, length[np.maximum(row, 0)] if len(length) else np.inf, np.inf)[crowd.mark_task]
    is_beyond = crowd.coordinates[:, 1] > limit
    if is_beyond.any():
        unit = "tokens" if is_list else "characters"
        yield _make_mark_finding(
            crowd, is_beyond, "beyond-document", "error", f"beyond the last of the {unit} of the document",
            "Do offsets count tokens or characters? Documents with tokens need offsets in tokens.",
        )  # fmt: skip


def _check_numbers(kind: type[MarkCrowd], table: pa.Table, columns: Mapping[str, str]) -> tuple[Mask, list[Problem]]:
    """Return the rows with complete coordinates, and the problems of coordinates in columns of numbers."""
    names = [columns[role] for role in kind.coordinate_names]
    values, is_text = _read_numbers(table, names)
    is_missing = np.isnan(values) & ~is_text
    has_text: Mask = np.asarray(is_text.any(axis=1))
    lacks_some: Mask = np.asarray(is_missing.any(axis=1))
    is_partial: Mask = lacks_some & ~is_missing.all(axis=1) & ~has_text
    is_given: Mask = ~lacks_some & ~has_text
    with np.errstate(invalid="ignore"):
        is_wild: Mask = is_given & ~(np.abs(values) <= MAX_COORDINATE).all(axis=1)
    listed = ", ".join(names)
    problems: list[Problem] = [
        ("no-numbers", has_text, f"row with a text in {listed}", "Write numbers with a decimal point."),
        (
            "partial-coordinates",
            is_partial,
            f"row with some of {listed} missing",
            "Give all of them, or none for a worker who marked nothing.",
        ),
        _describe_extreme(is_wild),
    ]
    return is_given, problems + _find_impossible(kind, values, is_given & ~is_wild)


def _check_polygons(table: pa.Table, columns: Mapping[str, str]) -> tuple[Mask, list[Problem]]:
    """Return the rows with polygons, and the problems of their vertices."""
    cells = table[columns["polygon"]].to_pylist()
    is_given = np.array([cell is not None and cell not in ("", []) for cell in cells], dtype=bool)
    rings = {row: parse_ring(cells[row]) for row in np.flatnonzero(is_given).tolist()}
    valid = {row: ring for row, ring in rings.items() if ring is not None}
    is_invalid, is_wild, is_flat = (np.zeros(len(cells), dtype=bool) for _ in range(3))
    is_invalid[[row for row, ring in rings.items() if ring is None]] = True
    is_wild[[row for row, ring in valid.items() if not (np.abs(ring) <= MAX_COORDINATE).all()]] = True
    rows = [row for row in valid if not is_wild[row]]
    is_flat[rows] = ~PolygonRings.from_lists([valid[row] for row in rows]).has_area
    name = columns["polygon"]
    return is_given, [
        ("no-polygons", is_invalid, f"row without a polygon in {name}", "Write three or more points: [[x, y], [x, y], ...]."),
        _describe_extreme(is_wild),
        ("flat-polygons", is_flat, "polygon without an area", "Remove the rows, or draw them again."),
    ]  # fmt: skip


def _describe_extreme(rows: Mask) -> Problem:
    return "extreme-coordinates", rows, f"row beyond {MAX_COORDINATE:g} or not finite", "Correct or remove the rows."


def _read_numbers(table: pa.Table, names: list[str]) -> tuple[NDArray[np.float64], Mask]:
    """Return the cells of columns as numbers, and which are texts that hold no number; missing cells are NaN."""
    values = np.full((table.num_rows, len(names)), np.nan)
    is_text = np.zeros(values.shape, dtype=bool)
    for position, name in enumerate(names):
        cells = table[name].to_pandas()
        if cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype):
            stripped = cells.astype("string").str.strip()
            is_missing = (stripped.isna() | (stripped == "")).to_numpy(dtype=bool, na_value=True)
            numbers = pd.to_numeric(stripped, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            is_text[:, position] = np.isnan(numbers) & ~is_missing
            values[:, position] = numbers
        else:
            values[:, position] = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return values, is_text


def _find_impossible(kind: type[MarkCrowd], values: NDArray[np.float64], is_given: Mask) -> list[Problem]:
    """Return the problems of complete places: name, rows, noun and advice."""
    if kind.answer_type == "boxes":
        is_flat = is_given & (values[:, 2:] <= 0).any(axis=1)
        advice = "Are the columns a second corner? Then subtract x and y. Else remove the rows."
        return [("negative-sizes", is_flat, "box with a width or height of 0 or less", advice)]
    if kind.answer_type == "spans":
        start, end = values.T
        is_negative = is_given & (start < 0)
        is_reversed = is_given & (end <= start) & ~is_negative
        is_fraction = is_given & ((start != np.floor(start)) | (end != np.floor(end))) & ~is_negative & ~is_reversed
        return [
            ("reversed-spans", is_reversed, "span that ends at or before its start", "Exchange both; the end is exclusive."),
            ("negative-offsets", is_negative, "span with a negative start", "Count from 0."),
            ("fractional-offsets", is_fraction, "span with an offset that is no whole number", "Are these times?"),
        ]  # fmt: skip
    return []


def _find_repeated(kind: type[MarkCrowd], table: pa.Table, columns: Mapping[str, str], is_given: Mask) -> list[Finding]:
    """Return a note about marks that a worker made twice."""
    places = kind.place_columns or kind.coordinate_names
    names = [columns[role] for role in ("task", "worker", *places, "label") if role in columns]
    rows = table.select([name for name in names if name in table.column_names]).filter(pa.array(is_given)).to_pandas()
    if kind.place_columns:  # cells may hold lists
        rows = rows.astype({columns[role]: str for role in places})
    n_repeated = int(rows.duplicated().sum())
    if not n_repeated:
        return []
    message = f"{count_noun(n_repeated, 'repeated row')} of a worker; equal marks count once"
    return [Finding(name="repeated-marks", severity="note", count=n_repeated, message=message)]


def _make_finding(name: str, rows: Mask, noun: str, fix: str) -> Finding:
    positions = np.flatnonzero(rows)
    shown = ", ".join(map(str, positions[:SHOWN_ROWS].tolist()))
    head, _, rest = noun.partition(" ")
    message = f"{count_noun(len(positions), head)} {rest} (row {shown}{', …' * (len(positions) > SHOWN_ROWS)})"
    examples = tuple(positions[:SHOWN_ROWS].tolist())
    return Finding(name=name, severity="error", count=len(positions), examples=examples, message=message, fix=fix)


def _make_mark_finding(crowd: MarkCrowd, marks: Mask, name: str, severity: Any, place: str, fix: str) -> Finding:
    """Return a finding about marks, with the task and worker of the first."""
    first = int(np.flatnonzero(marks)[0])
    values = ", ".join(
        f"{label}={value:g}"
        for label, value in zip(crowd.coordinate_names[:4], crowd.coordinates[first, :4], strict=True)
    )
    task, worker = crowd.tasks[crowd.mark_task[first]], crowd.workers[crowd.mark_worker[first]]
    return Finding(
        name=name,
        severity=severity,
        count=int(marks.sum()),
        examples=(task,),
        message=f"{count_noun(int(marks.sum()), crowd.noun)} {place}, for example {values} of worker {preview([worker])} on task "
        f"{preview([task])}",
        fix=fix,
    )


def _report_unknown(crowd: MarkCrowd, row: NDArray[np.intp], name: str, noun: str) -> Iterator[Finding]:
    """Yield a finding about tasks that a table lacks."""
    unknown = crowd.tasks[row < 0]
    if len(unknown):
        head, _, rest = noun.partition(" ")
        yield Finding(
            name=name,
            severity="error",
            count=len(unknown),
            examples=tuple(unknown[:SHOWN_ROWS]),
            message=f"{count_noun(len(unknown), head)} {rest} ({preview(unknown)})",
            fix="Add them, or check that both tables use the same ids.",
        )


def _align_tasks(ids: pa.ChunkedArray, tasks: pd.Index) -> NDArray[np.intp]:
    """Return the row of every task in a table; -1 if it has none. Of repeated ids the first counts."""
    index = vocab.match_id_type(vocab.as_id_index(vocab.as_exact_ids(ids, "task"), "task"), tasks)
    first = ~index.duplicated()
    rows = np.flatnonzero(first)
    position = index[first].get_indexer(tasks)
    return np.where(position >= 0, rows[np.maximum(position, 0)] if len(rows) else -1, -1)
