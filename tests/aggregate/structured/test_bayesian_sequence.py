"""Bayesian sequence combination: figures on real spans, words of documents, and calibrated confidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BayesianSequence, SpanCrowd, simulate_spans
from wisecrowd.data.overlaps import find_span_pairs
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.object_metrics import score_objects

FALSE_WORKERS = ["w0001", "w0002", "w0003", "w0004"]


@pytest.mark.data
@pytest.mark.parametrize(("without", "least"), [([], 0.79), (FALSE_WORKERS, 0.765)])
def test_real_spans_with_their_documents(answer_types_folder: Path, without: list[str], least: float) -> None:
    folder = answer_types_folder / "ner_mturk_spans"
    names = ("spans", "assignments", "truth_spans", "documents")
    spans, assignments, truth, documents = (pd.read_parquet(folder / f"{name}.parquet") for name in names)
    spans, assignments = (table[~table["worker"].isin(without)] for table in (spans, assignments))
    crowd = SpanCrowd.from_frame(spans, assignments=assignments)
    assert score_objects(BayesianSequence().fit(crowd, documents).objects_, truth, kind="spans").f1 >= least


@pytest.mark.slow
def test_confidence_is_calibrated_and_spans_do_not_overlap() -> None:
    simulation = simulate_spans(n_tasks=300, random_state=1)
    fitted = BayesianSequence().fit(simulation.crowd)
    candidates = fitted.candidates_
    is_match = score_objects(candidates, simulation.truth, kind="spans").is_match
    confidence = candidates["confidence"].to_numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    assert np.abs(np.bincount(bins, confidence - is_match)).sum() / len(bins) <= 0.05
    assert score_objects(fitted.objects_, simulation.truth, kind="spans").f1 > 0.9
    objects = fitted.objects_
    places = objects[["start", "end"]].to_numpy(dtype=float)
    assert not len(find_span_pairs(pd.factorize(objects["task"])[0], places).first)
    assert np.corrcoef(fitted.workers_["detection_rate"], simulation.workers["detection_rate"])[0, 1] > 0.7


def test_words_support_each_other_across_documents() -> None:
    """In 30 texts all mark "Rome"; in the last text one of three does, and only the word tells that it is right."""
    tasks = [f"d{number:02d}" for number in range(31)]
    rows = [(task, worker, 1, 2, "LOC") for task in tasks[:-1] for worker in "abc"]
    rows += [(tasks[-1], "a", 1, 2, "LOC"), (tasks[-1], "b", 3, 4, "LOC")]
    crowd = SpanCrowd.from_frame(
        pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]),
        assignments={"task": [tasks[-1]], "worker": ["c"]},
    )
    documents = {"task": tasks, "tokens": [["in", "Rome", "we", "eat", "bread"]] * 31}
    last = BayesianSequence().fit(crowd, documents).candidates_.query("task == 'd30'").set_index("start")["confidence"]
    plain = BayesianSequence().fit(crowd).candidates_.query("task == 'd30'").set_index("start")["confidence"]
    assert last[1] > 0.9 > plain[1]
    assert last[3] < 0.1


def test_priors_are_positive() -> None:
    with pytest.raises(UsageError, match="priors must be positive"):
        BayesianSequence(word_prior=0.0).fit(simulate_spans(n_tasks=5).crowd)
    with pytest.raises(UsageError, match="takes votes and documents only"):
        BayesianSequence().fit(simulate_spans(n_tasks=5).crowd, truth={"t0": 1})
