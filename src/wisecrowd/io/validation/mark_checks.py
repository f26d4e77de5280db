"""Checks of boxes, points, polygons and spans. The time of every check is proportional to the number of marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wisecrowd.data.mark_matches import find_mark_pairs
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.errors import preview
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.crowd_checks import MIN_VOTES
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun

#: Similarity from which two marks of a worker are probably the same object, marked twice.
SAME_OBJECT = 0.9
#: Size of a mark relative to the median, from which on it may be in another unit.
EXTREME_SIZE = 1e4


def check_marks(crowd: MarkCrowd) -> Iterator[Finding]:
    """Check boxes, points, polygons or spans.

    Parameters
    ----------
    crowd : MarkCrowd
        Votes.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> votes = {"task": ["t1", "t1", "t2"], "worker": ["ann", "bob", "bob"], "start": [0, 0, 3], "end": [2, 2, 4]}
    >>> [finding.name for finding in check_marks(SpanCrowd.from_frame(votes))]
    ['one-vote-workers', 'one-vote-tasks', 'no-empty-votes']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no votes")
        return
    yield from check_votes_per_worker(crowd.workers, crowd.votes_per_worker)
    yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task)
    if crowd.n_marks == 0:
        yield Finding(
            name="no-marks",
            severity="warning",
            count=1,
            message=f"nobody marked a {crowd.noun}, so there is nothing to decide",
        )
        return
    yield from _check_empty_votes(crowd)
    yield from _check_repeated_objects(crowd)
    yield from _check_places(crowd)
    yield from check_ids({"label": [crowd.classes], "id": [crowd.tasks, crowd.workers]})


def _check_empty_votes(crowd: MarkCrowd) -> Iterator[Finding]:
    is_empty = np.diff(crowd.offset) == 0
    if not is_empty.any():
        yield Finding(
            name="no-empty-votes",
            severity="warning",
            count=1,
            message=f"no worker saw a task without marking a {crowd.noun}. If such workers are only missing from the table, "
            "objects seem more certain, and workers better, than they are",
            fix="Add a row with empty coordinates for each, or a table of assignments (assignments= in from_frame, or "
            "assignments.parquet in the folder).",
        )
    silent = crowd.workers[(crowd.marks_per_worker == 0) & (crowd.votes_per_worker >= MIN_VOTES)]
    if len(silent):
        yield Finding(
            name="silent-workers",
            severity="warning",
            count=len(silent),
            examples=tuple(silent[:3]),
            message=f"{count_noun(len(silent), 'worker')} never marked anything ({preview(silent)})",
            fix="Inspect them; a consensus gives their silence little weight.",
        )


def _check_repeated_objects(crowd: MarkCrowd) -> Iterator[Finding]:
    if not crowd.has_size:
        return
    # Marks of one assignment only: the same object, marked twice by one worker.
    pairs = find_mark_pairs(crowd.answer_type, crowd.mark, crowd.coordinates, rings=crowd.get_rings())
    is_same = (pairs.similarity >= SAME_OBJECT) & (crowd.label[pairs.first] == crowd.label[pairs.second])
    if is_same.any():
        mark = int(pairs.first[is_same][0])
        example = f"{preview([crowd.workers[crowd.mark_worker[mark]]])} on task {preview([crowd.tasks[crowd.mark_task[mark]]])}"
        yield Finding(
            name="objects-marked-twice",
            severity="note",
            count=int(is_same.sum()),
            message=f"{count_noun(int(is_same.sum()), 'pair')} of nearly equal {crowd.plural} by one worker on one task (worker "
            f"{example}); one of each becomes an object of its own, which nobody confirms",
        )


def _check_places(crowd: MarkCrowd) -> Iterator[Finding]:
    if crowd.answer_type == "spans":
        return
    is_outside = (crowd.coordinates[:, :2] < 0).any(axis=1)
    if is_outside.any():
        yield Finding(
            name="negative-coordinates",
            severity="warning",
            count=int(is_outside.sum()),
            message=f"{count_noun(int(is_outside.sum()), crowd.noun)} with a negative x or y, outside of an image that begins at 0",
            fix="Clip them to the image, if coordinates begin at its upper left corner.",
        )
    if crowd.answer_type in ("boxes", "polygons"):
        area = crowd.coordinates[:, 2] * crowd.coordinates[:, 3]
        is_extreme = (area > EXTREME_SIZE * np.median(area)) | (area * EXTREME_SIZE < np.median(area))
        if is_extreme.any():
            yield Finding(
                name="extreme-sizes",
                severity="warning",
                count=int(is_extreme.sum()),
                message=f"{count_noun(int(is_extreme.sum()), crowd.noun)} with an area that differs from the median by a factor of "
                f"more than {EXTREME_SIZE:,.0f}; are some coordinates in pixels and others in shares of the image?",
                fix="Convert all coordinates to one unit.",
            )
