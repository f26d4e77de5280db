"""Fits to all votes of a question, without a background process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
from wisecrowd import Crowd, DawidSkene, ModelAverage, estimate_confidence
from wisecrowd.base import method as method_module
from wisecrowd.errors import InputError
from wisecrowd.service import refits
from wisecrowd.service.database import RecordColumns
from wisecrowd.service.events import RegisterTasks, Upsert, VoteRecord, build_source
from wisecrowd.service.refits import (
    build_crowd,
    build_report,
    calibrate_question,
    read_named_crowd,
    refit_question,
)
from wisecrowd.service.store import Store


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    refits._RECORDS_CACHE.clear()
    store = Store(database)
    yield store
    store.close()


def add(store: Store, rows: list[tuple[str, str | None, str]], question: str = "mood") -> None:
    records = [VoteRecord(question, task, worker, label) for task, worker, label in rows]
    store.apply([Upsert(build_source(record), (record,)) for record in records])


def rows_of(votes: list[dict[str, str]]) -> list[tuple[str, str | None, str]]:
    return [(vote["task"], vote["worker"], vote["label"]) for vote in votes]


def test_rare_classes_do_not_keep_a_service_from_starting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the beginning, a question may have many tasks, hardly any votes, and a vote per class."""
    monkeypatch.setattr(method_module, "MAX_CELLS_BY_VOTES_PER_CLASS", {5: 50})
    add(store, [(f"t{n // 2}", f"w{n % 2}", f"class {n}") for n in range(24)])
    store.apply([RegisterTasks("mood", tuple(f"later {n}" for n in range(100)))])
    with pytest.raises(InputError, match="fewer than 5 votes per class"):
        DawidSkene().fit(read_named_crowd(store.url, "mood")[0])
    fit = refit_question(store.url, 0, DawidSkene())
    assert fit is not None
    assert fit.n_votes == 24
    assert calibrate_question(store.url, 0, DawidSkene()) is not None


def test_the_last_vote_of_a_worker_counts() -> None:
    records = RecordColumns.from_rows([(0, 0, 0, None, 1), (0, 0, 1, None, 2), (1, None, 1, None, 3)])
    crowd = build_crowd(records, 3, 1, 2)
    assert (crowd.n_votes, crowd.n_tasks) == (1, 3)
    assert crowd.label.tolist() == [1]


class TestRefit:
    def test_a_fit_equals_a_fit_to_the_same_votes(
        self, store: Store, database: str, votes: Any, simulated: Any
    ) -> None:
        add(store, rows_of(votes))
        fit = refit_question(database, 0, DawidSkene())
        assert fit is not None
        assert (fit.n_votes, fit.converged) == (len(votes), True)
        crowd, _ = read_named_crowd(database, "mood")
        assert crowd == simulated.crowd
        words = store.vocabularies["mood"]
        expected = DawidSkene().fit(crowd).proba_.loc[words.tasks.names, words.classes.names]
        np.testing.assert_allclose(fit.snapshot.posterior, expected, atol=1e-6)
        estimate = estimate_confidence(DawidSkene().fit(crowd), crowd)
        confidence = pd.Series(estimate.confidence, index=crowd.tasks)[words.tasks.names]
        assert fit.snapshot.confidence is not None
        np.testing.assert_allclose(fit.snapshot.confidence.confidence, confidence, atol=1e-6)
        assert fit.crowd_calibration.n_gold == 0

    def test_a_second_fit_reads_what_is_new(self, store: Store, database: str, votes: Any) -> None:
        add(store, rows_of(votes[:100]))
        first = refit_question(database, 0, DawidSkene())
        add(store, rows_of(votes[100:150]))
        second = refit_question(database, 0, DawidSkene())
        assert first is not None
        assert second is not None
        assert (first.n_votes, second.n_votes) == (100, 150)

    def test_gold_is_certain(self, store: Store, database: str, votes: Any) -> None:
        add(store, [*rows_of(votes), (votes[0]["task"], None, votes[0]["label"])])
        fit = refit_question(database, 0, DawidSkene())
        assert fit is not None
        words = store.vocabularies["mood"]
        row = fit.snapshot.posterior[words.tasks.codes[votes[0]["task"]]]
        assert row[words.classes.codes[votes[0]["label"]]] == 1

    def test_no_votes_are_no_fit(self, store: Store, database: str) -> None:
        add(store, [("t1", None, "x")])
        assert refit_question(database, 0, DawidSkene()) is None

    def test_after_a_calibration_confidence_and_accuracy_are_those_of_aggregate(
        self, store: Store, database: str, votes: Any, simulated: Any
    ) -> None:
        gold = {str(task): str(label) for task, label in simulated.truth[:12].items()}
        add(store, [*rows_of(votes), *((task, None, label) for task, label in gold.items())])
        calibration = calibrate_question(database, 0, ModelAverage())
        assert calibration is not None
        assert (calibration.n_votes, len(calibration.outcomes)) == (len(votes), 12)
        assert calibration.workers[["p_spammer", "p_adversary"]].to_numpy().max() <= 1
        assert calibration.recommended_method == "model-average"
        fit = refit_question(database, 0, ModelAverage(), calibration)
        without = refit_question(database, 0, ModelAverage())
        assert fit is not None
        assert without is not None
        assert fit.snapshot.confidence is not None
        assert without.snapshot.confidence is not None
        crowd, read_gold = read_named_crowd(database, "mood")
        assert read_gold == gold
        fitted = ModelAverage().fit(crowd, truth=gold)
        estimate = estimate_confidence(fitted, crowd, truth=gold)
        order = crowd.tasks.get_indexer(store.vocabularies["mood"].tasks.names)
        np.testing.assert_allclose(fit.snapshot.confidence.confidence, estimate.confidence[order], atol=1e-6)
        np.testing.assert_allclose(fit.crowd_calibration.weights, estimate.calibration.weights, atol=1e-6)
        assert np.abs(without.snapshot.confidence.confidence - estimate.confidence[order]).max() > 0.001


@pytest.mark.parametrize(
    "rows",
    [
        [("t1", "ann", "x"), ("t1", "bob", "y")],
        [(f"t{n}", "ann", "xy"[n % 2]) for n in range(300)],
        [(f"t{n}", worker, "x") for n in range(150) for worker in ("ann", "bob")],
    ],
    ids=["few votes", "one vote per task", "one class"],
)
def test_workers_whose_votes_cannot_be_compared_have_no_kind(
    store: Store, database: str, rows: list[tuple[str, str, str]]
) -> None:
    add(store, rows)  # type: ignore[arg-type]
    calibration = calibrate_question(database, 0, DawidSkene())
    assert calibration is not None
    assert len(calibration.workers) == 0
    fit = refit_question(database, 0, DawidSkene(), calibration)
    assert fit is not None
    assert fit.snapshot.confidence is not None
    assert np.isfinite(fit.snapshot.confidence.calibrated_posterior).all()


def test_no_votes_are_no_calibration(store: Store, database: str) -> None:
    add(store, [("t1", None, "x")])
    assert calibrate_question(database, 0, DawidSkene()) is None


def test_names_and_gold_of_a_question(store: Store, database: str) -> None:
    add(store, [("t1", "ann", "x"), ("t2", None, "y"), ("t1", "bob", "y")])
    add(store, [("other", "zoe", "z")], question="another")
    crowd, gold = read_named_crowd(database, "mood")
    assert crowd == Crowd.from_triples([("t1", "ann", "x"), ("t1", "bob", "y")])
    assert gold == {"t2": "y"}


@pytest.mark.slow
def test_a_report_is_a_page_on_the_question(store: Store, database: str, votes: Any) -> None:
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    add(store, rows_of(votes[:40]))
    page = build_report(database, "mood", "How are they?", "dawid-skene")
    assert page.startswith("<!doctype html>")
    assert "How are they?" in page
