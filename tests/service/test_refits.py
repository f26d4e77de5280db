"""Fits to all votes of a question, without a background process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
from wisecrowd import Crowd, DawidSkene
from wisecrowd.service import refits
from wisecrowd.service.database import RecordColumns
from wisecrowd.service.events import Upsert, VoteRecord, build_source
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
        assert fit.snapshot.tempering is None

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

    def test_a_calibration_tempers_the_posterior(self, store: Store, database: str, votes: Any) -> None:
        add(store, rows_of(votes))
        methods = DawidSkene()
        calibration = calibrate_question(database, 0, methods)
        assert calibration is not None
        assert calibration.n_votes == len(votes)
        assert 0 < calibration.exponent <= 1
        np.testing.assert_allclose(calibration.worker_kinds.sum(axis=1), 1)
        fit = refit_question(database, 0, methods, calibration)
        assert fit is not None
        assert fit.snapshot.tempering is not None
        assert fit.snapshot.tempering.exponent == pytest.approx(calibration.exponent)


@pytest.mark.parametrize(
    "rows",
    [
        [("t1", "ann", "x"), ("t1", "bob", "y")],
        [(f"t{n}", "ann", "xy"[n % 2]) for n in range(300)],
        [(f"t{n}", worker, "x") for n in range(150) for worker in ("ann", "bob")],
    ],
    ids=["few votes", "one vote per task", "one class"],
)
def test_what_cannot_be_calibrated(store: Store, database: str, rows: list[tuple[str, str, str]]) -> None:
    add(store, rows)  # type: ignore[arg-type]
    assert calibrate_question(database, 0, DawidSkene()) is None


def test_names_and_gold_of_a_question(store: Store, database: str) -> None:
    add(store, [("t1", "ann", "x"), ("t2", None, "y"), ("t1", "bob", "y")])
    add(store, [("other", "zoe", "z")], question="another")
    crowd, gold = read_named_crowd(database, "mood")
    assert crowd == Crowd.from_triples([("t1", "ann", "x"), ("t1", "bob", "y")])
    assert gold == {"t2": "y"}


def test_a_report_is_a_page_on_the_question(store: Store, database: str, votes: Any) -> None:
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    add(store, rows_of(votes[:40]))
    page = build_report(database, "mood", "How are they?", "dawid-skene")
    assert page.startswith("<!doctype html>")
    assert "How are they?" in page
