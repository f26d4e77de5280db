"""Spans from a sequence model: those that workers gave, each with its number of marks."""

from __future__ import annotations

from wisecrowd.aggregate.structured._sequence_model import SequencePrior
from wisecrowd.aggregate.structured._sequence_spans import infer_spans
from wisecrowd.simulate.marks import simulate_spans


def test_every_span_that_a_worker_gave_is_a_candidate_or_excluded() -> None:
    crowd = simulate_spans(n_tasks=30, n_workers=6, random_state=4).crowd
    inference = infer_spans(crowd, None, SequencePrior(1.0, 10.0, 1.0, 1.0), "sequential", max_iter=50, tol=1e-3)
    objects = inference.objects
    assert objects.n_marks.sum() >= 0.9 * crowd.n_marks
    assert (objects.class_probs.sum(axis=1) <= 1 + 1e-9).all()
    assert ((objects.class_probs > 0).sum(axis=1) <= 1).all()
