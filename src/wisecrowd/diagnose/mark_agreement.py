"""Agreement of workers on marks: pairwise F1 scores, intersection over union, and alpha for unitizing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.mark_matches import find_mark_pairs
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs
from wisecrowd.data.spans import SpanCrowd

Array = NDArray[np.float64]

#: Dice coefficient from which marks of two workers overlap enough to agree, and the one of an intersection over union of 1/2.
OVERLAP, HALF_IOU = 0.5, 2 / 3
#: Coordinates are compared with this tolerance.
TOLERANCE = 1e-9


class MarkAgreement(NamedTuple):
    """Matches between the marks of every two workers on the same tasks.

    Parameters
    ----------
    matched, total : ndarray of shape (n_workers,)
        Matched marks, and all marks, of each worker against every other worker and the other way round.
    mean_iou : float
        Mean intersection over union of matched marks; NaN for points and without matches.
    """

    matched: Array
    total: Array
    mean_iou: float

    @property
    def f1(self) -> float:
        """F1 score of two workers: matched marks over all marks; NaN if no task was seen by two workers."""
        return float(self.matched.sum() / self.total.sum()) if self.total.sum() else float("nan")

    @property
    def worker_f1(self) -> Array:
        """F1 score of each worker with the others."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.matched / self.total)


def compute_pairwise_agreement(
    crowd: MarkCrowd, *, min_similarity: float = OVERLAP, radius: float = 1.0, pairs: SimilarPairs | None = None
) -> MarkAgreement:
    """Compute the agreement of every two workers on the tasks that both have seen.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    min_similarity : float, default=0.5
        Dice coefficient from which two marks match if they have the same class. 1 demands equal marks, 2/3 an intersection over
        union of 1/2.
    radius : float, default=1.0
        Distance of points at which their similarity is 1/2.
    pairs : SimilarPairs, default=None
        Pairs of marks that overlap, if they are known; computed otherwise.

    Returns
    -------
    MarkAgreement

    Examples
    --------
    >>> frame = {"task": ["d"] * 3, "worker": ["ann", "bob", "bob"], "start": [0, 0, 5], "end": [3, 2, 6]}
    >>> crowd = SpanCrowd.from_frame(frame)
    >>> [round(compute_pairwise_agreement(crowd, min_similarity=value).f1, 2) for value in (0.5, 1.0)]
    [0.67, 0.0]
    """
    if pairs is None:
        pairs = find_mark_pairs(crowd.answer_type, crowd.mark_task, crowd.coordinates, radius, crowd.get_rings())
    worker, n_workers = crowd.mark_worker, crowd.n_workers
    is_match = (pairs.similarity >= min_similarity - TOLERANCE) & (worker[pairs.first] != worker[pairs.second])
    is_match &= crowd.label[pairs.first] == crowd.label[pairs.second]
    first, second, similarity = pairs.first[is_match], pairs.second[is_match], pairs.similarity[is_match]
    mark = np.concatenate([first, second])
    other = worker[np.concatenate([second, first])].astype(np.int64)
    # A mark matches another worker at most once.
    key = np.unique(mark * np.int64(max(n_workers, 1)) + other)
    mark, other = np.divmod(key, max(n_workers, 1))
    matched = np.bincount(worker[mark], minlength=n_workers) + np.bincount(other, minlength=n_workers)
    n_marks = np.diff(crowd.offset)
    in_task = np.bincount(crowd.task, n_marks, crowd.n_tasks)
    n_others = crowd.votes_per_task[crowd.task] - 1
    total = np.bincount(crowd.worker, n_marks * n_others + in_task[crowd.task] - n_marks, n_workers)
    has_iou = crowd.answer_type != "points" and len(similarity) > 0
    mean_iou = float((similarity / (2 - similarity)).mean()) if has_iou else float("nan")
    return MarkAgreement(matched.astype(np.float64), total.astype(np.float64), mean_iou)


def compute_alpha_u(crowd: SpanCrowd, lengths: NDArray[Any] | None = None) -> float:
    """Compute Krippendorff's alpha for unitizing of spans, over the positions of texts.

    For each class, workers say of every token or character whether it is in a span of the class. Alpha is that of these yes/no
    questions, weighted by length (u-alpha of Krippendorff et al. 2016, which compares the intersections of units and gaps). It is
    computed on stretches between the ends of spans, so its cost is proportional to the spans.

    Parameters
    ----------
    crowd : SpanCrowd
        Spans.
    lengths : ndarray of shape (n_tasks,), default=None
        Lengths of the texts in the unit of the offsets. By default, a text ends with its last span; then alpha is too low.

    Returns
    -------
    float
        1 for equal spans, 0 for chance; NaN if no task with spans was seen by two workers.

    References
    ----------
    Krippendorff, Mathet, Bouvry, Widlöcher (2016). On the reliability of unitizing textual continua: further developments.
    Quality & Quantity 50, 2347–2364.

    Examples
    --------
    >>> frame = {"task": ["d", "d"], "worker": ["ann", "bob"], "start": [0, 0], "end": [2, 4]}
    >>> round(compute_alpha_u(SpanCrowd.from_frame(frame), np.array([10])), 3)
    0.548
    """
    end = np.zeros(crowd.n_tasks)
    np.maximum.at(end, crowd.mark_task, crowd.coordinates[:, 1])
    length = end if lengths is None else np.maximum(end, np.asarray(lengths, dtype=np.float64))
    n_workers = crowd.votes_per_task.astype(np.float64)
    is_compared = n_workers > 1
    starts, ends, task, label = _unite_spans(crowd)
    # Between two ends of spans, the number of workers who mark the class does not change.
    place = np.concatenate([starts, ends])
    step = np.repeat([1.0, -1.0], len(starts))
    group = np.tile(task * np.int64(max(crowd.n_classes, 1)) + label, 2)
    order = np.lexsort((place, group))
    place, step, group = place[order], step[order], group[order]
    n_marking = np.cumsum(step)[:-1]
    stretch = np.where(np.diff(group) == 0, np.diff(place), 0.0)
    of_task, of_class = np.divmod(group[:-1], max(crowd.n_classes, 1))
    votes = n_workers[of_task]
    is_used = is_compared[of_task]
    disagreement = np.where(is_used, stretch * n_marking * (votes - n_marking) / np.maximum(votes - 1, 1), 0.0)
    marked = np.where(is_used, stretch * n_marking, 0.0)
    observed = np.bincount(of_class, disagreement, crowd.n_classes)
    yes = np.bincount(of_class, marked, crowd.n_classes)
    total = float((length * n_workers)[is_compared].sum())
    expected = yes * (total - yes) / max(total - 1, 1)
    return float(1 - observed.sum() / expected.sum()) if expected.sum() > 0 else float("nan")


def _unite_spans(crowd: SpanCrowd) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]:
    """Return starts, ends, tasks and classes of spans, after overlapping spans of a worker and class were united."""
    start, end = crowd.coordinates.T
    group = crowd.mark * np.int64(max(crowd.n_classes, 1)) + crowd.label
    order = np.lexsort((start, group))
    start, end, group = start[order], end[order], group[order]
    # The highest end so far, within a group: groups are moved apart by more than any offset.
    apart = (group - group[0] if len(group) else group).astype(np.float64) * (float(end.max(initial=0)) + 1)
    reached = np.maximum.accumulate(end + apart) - apart
    is_new = np.append(True, (np.diff(group) != 0) | (start[1:] > reached[:-1])) if len(start) else np.empty(0, bool)
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(start)) - 1 if len(first) else first
    assignment, label = np.divmod(group[first], max(crowd.n_classes, 1))
    return start[first], reached[last] if len(last) else end, crowd.task[assignment].astype(np.int64), label
