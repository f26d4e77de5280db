"""Sequence model: messages and probabilities of spans by enumeration, and tags of workers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from wisecrowd.aggregate.structured._sequence_model import (
    SequenceModel,
    SequencePrior,
    compute_span_probs,
    encode_tags,
    find_likely_spans,
)
from wisecrowd.data.documents import TokenTexts
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.simulate.marks import simulate_spans

PRIOR = SequencePrior(1.0, 10.0, 1.0, 1.0)


def make_crowd() -> SpanCrowd:
    rows = [
        ("d", "x", 0, 2, "A"),
        ("d", "y", 0, 1, "A"),
        ("d", "y", 2, 3, "B"),
        ("d", "z", 1, 3, "B"),
        ("e", "x", 1, 2, "B"),
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"])
    return SpanCrowd.from_frame(frame, assignments={"task": ["e", "e"], "worker": ["y", "z"]})


def test_tags_of_spans() -> None:
    tags, offset = encode_tags(make_crowd(), np.array([4, 3]))
    assert offset.tolist() == [0, 4, 8, 12, 15, 18, 21]
    assert tags[:12].tolist() == [1, 2, 0, 0, 1, 0, 3, 0, 0, 3, 4, 0]
    assert tags[12:15].tolist() == [0, 3, 0]


def test_of_overlapping_spans_the_later_is_left_out() -> None:
    frame = {"task": ["d"] * 4, "worker": ["x"] * 4, "start": [0, 2, 4, 6], "end": [3, 5, 7, 8]}
    tags, _ = encode_tags(SpanCrowd.from_frame(frame), np.array([9]))
    assert tags.tolist() == [1, 2, 2, 0, 1, 2, 2, 0, 0]


@pytest.mark.parametrize("worker_model", ["sequential", "accuracy"])
def test_posteriors_equal_enumeration(worker_model: str) -> None:
    crowd = make_crowd()
    texts = TokenTexts(
        np.array([4, 3]), np.array([True, False, False, True, True, False, False]), np.array([0, 1, 2, 0, 3, 2, 1]), 4
    )
    model = SequenceModel(crowd, texts, PRIOR, worker_model)  # type: ignore[arg-type]  # a parameter of the test
    fit = model.fit(max_iter=3, tol=0.0)
    n_tags = 5
    log_likelihood = np.log(fit.likelihood)
    with np.errstate(divide="ignore"):
        log_transition = np.log(fit.transition)

    def score(path: tuple[int, ...], first: int) -> float:
        total, previous = 0.0, 0
        for step, tag in enumerate(path):
            before = 0 if texts.begins_sentence[first + step] else previous
            total += log_transition[before, tag] + log_likelihood[first + step, tag]
            previous = tag
        return float(np.exp(total))

    offset = texts.offset
    for task, n_tokens in enumerate(texts.length):
        paths = list(itertools.product(range(n_tags), repeat=n_tokens))
        weights = np.array([score(path, offset[task]) for path in paths])
        weights /= weights.sum()
        expected = np.zeros((n_tokens, n_tags))
        for path, weight in zip(paths, weights, strict=True):
            expected[np.arange(n_tokens), path] += weight
        assert fit.tag_probs[offset[task] : offset[task + 1]] == pytest.approx(expected, abs=1e-9)
        for start, end, label in [(0, 2, 0), (0, 1, 0), (1, 2, 1), (1, 3, 1), (n_tokens - 1, n_tokens, 1), (0, 3, 0)]:
            tags = [1 + 2 * label] + [2 + 2 * label] * (end - start - 1)
            starts = texts.begins_sentence[offset[task] :]
            crosses = any(starts[position] for position in range(start + 1, end))

            def matches(path: tuple[int, ...], start: int = start, end: int = end, tags: list[int] = tags) -> bool:
                continues = end < len(path) and path[end] == tags[0] + 1 and not starts[end]  # noqa: B023
                return list(path[start:end]) == tags and not continues

            total = sum(weight for path, weight in zip(paths, weights, strict=True) if matches(path))
            span = [np.array([value]) for value in (task, start, end, label)]
            assert compute_span_probs(fit, texts, *span)[0] == pytest.approx(0 if crosses else total, abs=1e-9)


def test_likely_spans_are_runs_of_tags() -> None:
    simulation = simulate_spans(n_tasks=40, n_workers=8, boundary_error=0.02, false_alarms=0.1, random_state=1)
    texts = TokenTexts.from_marks(simulation.crowd)
    fit = SequenceModel(simulation.crowd, texts, PRIOR, "sequential").fit(max_iter=50, tol=1e-3)
    task, start, end, label = find_likely_spans(fit, texts)
    names = zip(simulation.crowd.tasks[task], start, end, simulation.crowd.classes[label], strict=True)
    truth = set(simulation.truth[["task", "start", "end", "label"]].itertuples(index=False, name=None))
    right = [span in truth for span in names]
    assert np.mean(right) > 0.95
    assert len(right) > 0.85 * len(truth)
    order = np.lexsort((start, task))
    same = task[order][1:] == task[order][:-1]
    assert (end[order][:-1] <= start[order][1:])[same].all()


def test_the_evidence_grows() -> None:
    crowd = simulate_spans(n_tasks=60, n_workers=8, random_state=2).crowd
    trace = SequenceModel(crowd, TokenTexts.from_marks(crowd), PRIOR, "sequential").fit(max_iter=30, tol=0.0).trace
    assert trace[-1] > trace[1]
