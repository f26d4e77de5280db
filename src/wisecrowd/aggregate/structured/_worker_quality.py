"""Quality of workers by comparison of their marks with inferred objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.mark_aggregator import InferredObjects, WorkerQuality
from wisecrowd.data.overlaps import find_span_pairs
from wisecrowd.data.spans import SpanCrowd

Array = NDArray[np.float64]

#: Similarity from which a mark is a mark of an object.
MIN_SIMILARITY = 0.5
#: Pseudo-objects that draw the rates of a worker to those of the crowd.
SHRINKAGE = 5.0
#: Probability from which an object counts.
MIN_PROB = 0.5


def assess_span_workers(crowd: SpanCrowd, objects: InferredObjects) -> WorkerQuality:
    """Compare the spans of workers with the probable objects of their tasks.

    Parameters
    ----------
    crowd : SpanCrowd
        Spans.
    objects : InferredObjects
        Objects with probabilities.

    Returns
    -------
    WorkerQuality
    """
    n_marks, n_workers = crowd.n_marks, crowd.n_workers
    probs = objects.class_probs.max(axis=1)
    is_probable = probs >= MIN_PROB
    probs, object_task = probs[is_probable], objects.task[is_probable]
    places, label = objects.coordinates[is_probable], objects.class_probs[is_probable].argmax(axis=1)
    pairs = find_span_pairs(
        np.concatenate([crowd.mark_task.astype(np.int64), object_task]), np.vstack([crowd.coordinates, places])
    )
    is_match = (pairs.similarity >= MIN_SIMILARITY) & (pairs.first < n_marks) & (pairs.second >= n_marks)
    mark, target, similarity = pairs.first[is_match], pairs.second[is_match] - n_marks, pairs.similarity[is_match]
    # The most similar object of every mark, then the most similar mark of every worker for each object.
    order = np.lexsort((target, -similarity, mark))
    mark, target = mark[order], target[order]
    is_first = np.append(True, np.diff(mark) != 0) if len(mark) else np.empty(0, bool)
    mark, target = mark[is_first], target[is_first]
    _, one_each = np.unique(target * np.int64(max(n_workers, 1)) + crowd.mark_worker[mark], return_index=True)
    mark, target = mark[one_each], target[one_each]
    worker = crowd.mark_worker[mark]
    hits = np.bincount(worker, probs[target], n_workers)
    expected = np.bincount(object_task, probs, crowd.n_tasks)
    chances = np.bincount(crowd.worker, expected[crowd.task], n_workers)
    n_hits = np.bincount(worker, minlength=n_workers).astype(np.float64)
    is_exact = (crowd.coordinates[mark] == places[target]).all(axis=1)
    ratio = (crowd.coordinates[mark, 1] - crowd.coordinates[mark, 0]) / (places[target, 1] - places[target, 0])
    log_ratio = np.bincount(worker, np.log(ratio), n_workers) / np.maximum(n_hits, 1)
    return WorkerQuality(
        _shrink(hits, chances),
        (crowd.marks_per_worker - hits) / np.maximum(crowd.votes_per_worker, 1),
        _shrink(np.bincount(worker, crowd.label[mark] == label[target], n_workers), n_hits),
        1 - _shrink(np.bincount(worker, is_exact, n_workers), n_hits),
        np.exp(log_ratio),
    )


def _shrink(hits: NDArray[Any], chances: NDArray[Any]) -> Array:
    """Return rates that are drawn to the pooled rate."""
    pooled = hits.sum() / max(chances.sum(), 1e-12)
    return np.asarray((hits + SHRINKAGE * pooled) / (chances + SHRINKAGE))
