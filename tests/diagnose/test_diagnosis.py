"""Diagnosis of a whole crowd: figures, texts and inputs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, DawidSkene, diagnose_crowd, simulate_crowd, simulate_ratings
from wisecrowd.diagnose.agreement import krippendorff_alpha
from wisecrowd.diagnose.diagnosis import Diagnosis
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import UsageError

KINDS = ["noisy(0.8)"] * 8 + ["spammer", "adversary"]
CROWD = simulate_crowd(120, workers=KINDS, n_classes=3, votes_per_task=5, random_state=0).crowd


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return diagnose_crowd(CROWD)


def test_figures_equal_a_recount(diagnosis: Diagnosis) -> None:
    figures = diagnosis.overview
    votes = CROWD.to_frame()
    assert (figures["tasks"], figures["workers"], figures["votes"]) == (120, 10, 600)
    assert figures["votes_per_task"] == 5
    assert figures["votes_per_worker_median"] == votes["worker"].value_counts().median()
    assert figures["density"] == 0.5
    assert figures["krippendorff_alpha"] == pytest.approx(float(krippendorff_alpha(CROWD)))
    assert figures["krippendorff_alpha_low"] < figures["krippendorff_alpha"] < figures["krippendorff_alpha_high"]
    assert sum(figures["tasks_by_kind"].values()) == 120
    assert figures["flagged_workers"] == (diagnosis.workers["flags"] != "").sum()
    assert figures["fleiss_kappa"] is not None


def test_figures_are_ready_for_json() -> None:
    """Some are undefined here: one vote per task, and unequal numbers of votes."""
    single = Crowd.from_triples([(task, task % 3, task % 2) for task in range(12)])
    result = diagnose_crowd(single)
    assert "warning: No task has two votes" in repr(result)
    figures = result.overview
    assert figures["krippendorff_alpha"] is None
    assert "NaN" not in json.dumps(figures)
    unequal = CROWD.take(np.arange(CROWD.n_votes - 1))
    assert diagnose_crowd(unequal).overview["fleiss_kappa"] is None


def test_tables_are_those_of_workers_and_tasks(diagnosis: Diagnosis) -> None:
    assert diagnosis.workers.index.tolist() == CROWD.workers.tolist()
    assert diagnosis.tasks.index.tolist() == CROWD.tasks.tolist()
    expected = WorkerDiagnosis(CROWD, DawidSkene().fit(CROWD)).table
    pd.testing.assert_frame_equal(diagnosis.workers, expected)


def test_the_confusion_matrix_of_the_crowd_has_true_classes_by_row(diagnosis: Diagnosis) -> None:
    table = diagnosis.confusion
    assert (table.index.name, table.columns.name) == ("true", "said")
    np.testing.assert_allclose(table.sum(axis=1), 1)
    assert (np.diag(table) > 0.5).all()


def test_frequent_classes_keep_the_order_of_classes(diagnosis: Diagnosis) -> None:
    share = diagnosis.model.posterior_.mean(axis=0)
    assert diagnosis.frequent_classes(2).tolist() == sorted(np.argsort(-share)[:2].tolist())
    assert diagnosis.frequent_classes().tolist() == [0, 1, 2]


def test_text_names_flagged_workers(diagnosis: Diagnosis) -> None:
    text = repr(diagnosis)
    assert "Diagnosis of Crowd(600 votes: 120 tasks x 10 workers" in text
    assert f"alpha {diagnosis.overview['krippendorff_alpha']:.2f}" in text
    flagged = diagnosis.workers.index[diagnosis.workers["flags"] != ""]
    assert len(flagged)
    assert all(repr(name) in text for name in flagged)


def test_many_flagged_workers_are_counted() -> None:
    many = simulate_crowd(
        150, workers=["expert"] * 6 + ["spammer"] * 12, n_classes=3, votes_per_task=9, random_state=1
    ).crowd
    text = repr(diagnose_crowd(many))
    assert " and " in text
    assert " more\n" in text


def test_html_lists_flagged_workers_first(diagnosis: Diagnosis) -> None:
    html = diagnosis._repr_html_()
    flagged = diagnosis.workers.index[diagnosis.workers["flags"] != ""]
    others = diagnosis.workers.index.difference(flagged)
    assert max(html.index(f">{name}<") for name in flagged) < min(html.index(f">{name}<") for name in others)


def test_numbers_and_votes_without_workers_are_refused() -> None:
    with pytest.raises(UsageError, match="diagnosing a crowd needs worker ids"):
        diagnose_crowd(CROWD.drop_workers())


def test_ordered_classes_add_severities_and_ordinal_agreement(diagnosis: Diagnosis) -> None:
    assert diagnosis.raters is None
    assert "ordinal_alpha" not in diagnosis.overview
    crowd = simulate_ratings(n_tasks=100, n_workers=8, votes_per_task=4, random_state=0).crowd
    ordinal = diagnose_crowd(crowd)
    assert ordinal.raters is not None
    figures = ordinal.overview
    assert figures["ordinal_alpha"] == pytest.approx(float(krippendorff_alpha(crowd, "ordinal")))
    assert 0 < figures["icc"] < 1
    json.dumps(figures, allow_nan=False)
