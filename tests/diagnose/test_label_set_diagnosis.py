"""Diagnosis of label sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.diagnose.label_set_diagnosis import LabelSetDiagnosis, diagnose_label_sets
from wisecrowd.errors import UsageError


@pytest.fixture(scope="module")
def result() -> LabelSetDiagnosis:
    """Twenty ordinary workers, and one each who marks nothing, always the same, at random, and the opposite."""
    frame = wc.simulate_label_sets(n_tasks=120, random_state=1).crowd.to_frame()
    labels = sorted({label for part in frame["labels"] for label in part})
    rng = np.random.default_rng(0)
    tasks = frame["task"].unique()[:60]
    truth = frame.drop_duplicates("task").set_index("task")["labels"]
    spam = [
        *((task, "lazy", []) for task in tasks),
        *((task, "same", labels[:2]) for task in tasks),
        *((task, "random", [label for label in labels if rng.random() < 0.5]) for task in tasks),
        *((task, "opposite", [label for label in labels if label not in truth[task]]) for task in tasks),
    ]
    votes = pd.concat([frame, pd.DataFrame(spam, columns=["task", "worker", "labels"])])
    return diagnose_label_sets(wc.LabelSetCrowd.from_frame(votes), model="binary-relevance")


def test_bad_workers_are_flagged_and_others_are_not(result: LabelSetDiagnosis) -> None:
    flags = result.workers["flags"]
    assert flags[flags != ""].to_dict() == {
        "lazy": "empty", "opposite": "reversed", "random": "random", "same": "one-answer",
    }  # fmt: skip
    assert result.workers.loc["lazy", "labels_per_vote"] == 0
    assert result.workers.loc["opposite", "agreement"] < result.workers.query("flags == ''")["agreement"].min()


def test_labels_have_agreement_and_confidence(result: LabelSetDiagnosis) -> None:
    labels = result.labels
    assert labels["confidence"].between(0.5, 1).all()
    probs = result.model.label_probs_
    assert labels["chosen"].tolist() == pytest.approx((probs >= result.model.threshold_).mean(axis=0).tolist())
    assert (labels["uncertain"] <= len(probs)).all()


def test_tasks_are_sorted_by_confidence(result: LabelSetDiagnosis) -> None:
    assert result.tasks["confidence"].is_monotonic_increasing


def test_overview(result: LabelSetDiagnosis) -> None:
    figures = result.overview
    assert figures["alpha_masi_low"] < figures["alpha_masi"] < figures["alpha_masi_high"]
    assert figures["alpha_whole_sets"] < figures["alpha_masi"] < figures["alpha_jaccard"]
    assert figures["flagged_workers"] == 4
    assert "alpha (MASI)" in repr(result)
    assert "<table" in result._repr_html_()


def test_other_models_are_refused(result: LabelSetDiagnosis) -> None:
    with pytest.raises(UsageError, match="binary-relevance"):
        diagnose_label_sets(result.crowd, model=wc.MajorityVote())  # type: ignore[arg-type]  # that is the test


def test_votes_without_overlap_have_no_agreement() -> None:
    votes = {"task": [1, 2], "worker": ["a", "b"], "labels": ["x", "x|y"]}
    assert diagnose_label_sets(votes, model="binary-relevance").overview["alpha_masi"] is None
