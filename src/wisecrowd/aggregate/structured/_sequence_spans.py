"""Spans from the tags of a sequence model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.structured._sequence_model import (
    SequenceModel,
    SequencePrior,
    WorkerModel,
    compute_span_probs,
    find_likely_spans,
)
from wisecrowd.aggregate.structured._worker_quality import assess_span_workers
from wisecrowd.base.mark_aggregator import InferredObjects, MarkInference
from wisecrowd.data.documents import TokenTexts
from wisecrowd.data.overlaps import find_span_pairs
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import UsageError

CONFUSION_HELP = "Pseudo-votes of a worker for each tag."
CORRECT_HELP = "Additional pseudo-votes for the right tag."
TRANSITION_HELP = "Pseudo-counts of each transition between true tags."
WORD_HELP = "Pseudo-counts of each word under each tag, if documents are given."
#: Two spans that overlap exclude each other, so at most one has a probability above this.
EXCLUSIVE_PROB = 0.4


def infer_spans(
    crowd: SpanCrowd, documents: Any, prior: SequencePrior, worker_model: WorkerModel, *, max_iter: int, tol: float
) -> MarkInference:
    """Fit a sequence model and return the spans that workers gave, or that the model finds likely, with probabilities.

    Parameters
    ----------
    crowd : SpanCrowd
        Spans with offsets in tokens.
    documents : table or None
        Texts of the tasks.
    prior : SequencePrior
        Priors.
    worker_model : {"sequential", "accuracy"}
        Model of workers.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Tolerance.

    Returns
    -------
    MarkInference

    Raises
    ------
    UsageError
        If a prior is not positive.
    """
    if not min(prior) > 0:
        raise UsageError(f"priors must be positive; got {', '.join(f'{value:g}' for value in prior)}")
    texts = TokenTexts.from_marks(crowd) if documents is None else TokenTexts.from_frame(documents, crowd)
    fit = SequenceModel(crowd, texts, prior, worker_model).fit(max_iter=max_iter, tol=tol)
    marked = np.column_stack([crowd.mark_task, crowd.coordinates, crowd.label]).astype(np.int64)
    likely = np.column_stack(find_likely_spans(fit, texts))
    spans, inverse = np.unique(np.vstack([marked, likely]), axis=0, return_inverse=True)
    n_marks = np.bincount(inverse.ravel()[: len(marked)], minlength=len(spans))
    task, start, end, label = spans.T
    probs = compute_span_probs(fit, texts, task, start, end, label)
    selected = ~_find_excluded(task, spans[:, 1:3].astype(np.float64), probs)
    spans, probs, n_marks = spans[selected], probs[selected], n_marks[selected]
    class_probs = np.zeros((len(spans), crowd.n_classes))
    class_probs[np.arange(len(spans)), spans[:, 3]] = probs
    objects = InferredObjects(spans[:, 0], spans[:, 1:3].astype(np.float64), class_probs, np.ones(len(spans)), n_marks)
    workers = assess_span_workers(crowd, objects)
    return MarkInference(objects, workers, fit.n_iter, fit.converged, fit.trace)


def _find_excluded(
    task: NDArray[np.int64], places: NDArray[np.float64], probs: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the probable spans that overlap with a more probable one."""
    rows = np.flatnonzero(probs > EXCLUSIVE_PROB)
    pairs = find_span_pairs(task[rows], places[rows])
    first, second = rows[pairs.first], rows[pairs.second]
    is_excluded = np.zeros(len(probs), dtype=bool)
    is_excluded[np.where(probs[first] >= probs[second], second, first)] = True
    return is_excluded
