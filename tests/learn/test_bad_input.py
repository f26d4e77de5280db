"""Whatever a learner is given, it answers rightly or says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from wisecrowd import Crowd, Raykar, load, methods, simulate_crowd
from wisecrowd.base.learner import Learner
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError

MADE = simulate_crowd(30, 6, 2, votes_per_task=3, workers={"expert": 4, "noisy": 2})
CROWD, TRUTH = MADE.crowd, MADE.truth
SIGN = np.where(CROWD.classes.get_indexer(TRUTH) == 0, -2.0, 2.0)
NOISE = np.random.default_rng(0).normal(size=(30, 2))
X = pd.DataFrame({"size": SIGN + NOISE[:, 0], "weight": SIGN + NOISE[:, 1]}, index=TRUTH.index)
LOOSE = Crowd.from_frame(CROWD.to_frame())
"""The same votes, of a file that does not fix the order of tasks."""


@pytest.fixture(params=methods("learn"))
def learner(request: pytest.FixtureRequest, quick: Callable[[str], Learner]) -> Learner:
    return quick(request.param)


def spoilt(value: Any) -> pd.DataFrame:
    table = X.astype(object)
    table.iloc[3, 1] = value
    return table


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (X.assign(weight=np.inf), "features of 30 tasks are not finite"),
        (X.to_numpy() * [1, np.nan], "features of 30 tasks are not finite, for example 't00'.*; impute them first"),
        (spoilt("heavy"), "the column 'weight' has numbers, and 'heavy'; correct these values"),
        (X.iloc[:29], "no features for 1 task, for example 't29'"),
        (pd.concat([X, X.iloc[:1]]), "features repeat the tasks 't00'"),
        (X.to_numpy()[:29], "expected one row of features for each of 30 tasks; got 29 rows"),
        (SIGN, r"expected a row of features per task; got an array of shape \(30,\)"),
        (X[[]], r"got an array of shape \(30, 0\)"),
        (None, "expected a table or an array of features; got NoneType"),
    ],
    ids=["inf", "nan", "text", "row missing", "row twice", "short", "flat", "empty", "nothing"],
)
def test_features(learner: Learner, features: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        learner.fit(features, CROWD)


def test_sparse_features_are_used_or_refused_with_advice(learner: Learner) -> None:
    rows = sparse.csr_array(X.to_numpy())
    if learner.name in ("raykar", "two-stage", "crowd-lab"):
        fitted = learner.fit(rows, CROWD)
        np.testing.assert_allclose(fitted.predict_proba(rows), fitted.predict_proba(X.to_numpy()))
        with pytest.raises(InputError, match="some are not finite or too large"):
            learner.fit(rows * np.inf, CROWD)
    else:
        with pytest.raises(InputError, match=r"needs a dense array of features; got csr_array.*TruncatedSVD"):
            learner.fit(rows, CROWD)


def test_tables_of_users_are_encoded(learner: Learner, tmp_path: Path) -> None:
    table = spoilt(None).assign(colour=np.where(SIGN > 0, "red", "blue"), day="2026-11-18")
    try:
        fitted = learner.fit(table, CROWD)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert fitted.n_features_in_ == 4
    expected = fitted.predict_proba(table)
    fitted.save(tmp_path / "model")
    restored = load(tmp_path / "model")
    np.testing.assert_allclose(restored.predict_proba(table[table.columns[::-1]]), expected, rtol=1e-6)
    with pytest.raises(InputError, match="this table lacks 'colour'"):
        restored.predict(table.drop(columns="colour"))


def test_a_bare_array_needs_a_known_order(learner: Learner) -> None:
    with pytest.raises(InputError, match="cannot be matched to these tasks; index it by task"):
        learner.fit(X.to_numpy(), LOOSE)


def test_rows_are_aligned_by_id(learner: Learner) -> None:
    shuffled = pd.concat(
        [X.sample(frac=1, random_state=1), pd.DataFrame({"size": [9.0], "weight": [9.0]}, index=["zz"])]
    )
    try:
        plain = learner.fit(X, CROWD).posterior_
    except MissingExtra as missing:
        pytest.skip(str(missing))
    np.testing.assert_array_equal(learner.fit(shuffled, LOOSE).posterior_, plain)


def test_crowd_first(learner: Learner) -> None:
    with pytest.raises(UsageError, match=r"takes the features first: fit\(X, crowd\)"):
        learner.fit(CROWD, X)


def test_one_class_only(learner: Learner) -> None:
    same = Crowd.from_triples([(task, worker, "cat") for task in range(5) for worker in range(3)])
    with pytest.raises(
        InputError, match=r"these votes have one class, 'cat'; if there are others, name all .*classes=\[...\]"
    ):
        learner.fit(np.eye(5), same)


def test_numbers_or_no_votes(learner: Learner) -> None:
    with pytest.raises(InputError, match="labels are numbers"):
        learner.fit(np.eye(2), Crowd.from_triples([(0, "a", 1.5), (1, "a", 2.5)], numeric=True))
    with pytest.raises(InputError, match="needs votes, and this crowd has none"):
        learner.fit(X, CROWD.take([]))


def test_votes_that_are_no_votes(learner: Learner) -> None:
    with pytest.raises(UsageError, match="takes a Crowd of votes as its target and got an array"):
        learner.fit(X, TRUTH.to_numpy(dtype=str))


class TestPrediction:
    fitted = Raykar().fit(X, CROWD)

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (X.to_numpy()[:, :1], r"X must have rows of 2 features, as in training; got an array of shape \(30, 1\)"),
            (X.to_numpy()[0], r"got an array of shape \(2,\)"),
            (X[["size"]], "X must have the columns of training, in any order; this table lacks 'weight'"),
            (X.assign(colour=1.0), "in any order; this table has also 'colour'"),
            (X.rename(columns={"size": "length"}), "this table lacks 'size' and has also 'length'"),
            (X[["size", "weight", "size"]], "this table repeats columns"),
            (X.assign(size=np.nan), "features of 30 rows are not finite, for example row 0"),
            (X.assign(size="big"), "features must be numbers: could not convert string to float: 'big'"),
        ],
        ids=["columns", "one row", "column missing", "column more", "renamed", "column twice", "nan", "text"],
    )
    def test_features(self, features: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.fitted.predict(features)

    def test_columns_in_another_order_are_put_right(self) -> None:
        wild = X * [1, -3]  # so that the order matters
        fitted = Raykar().fit(wild, CROWD)
        np.testing.assert_array_equal(fitted.predict_proba(wild[["weight", "size"]]), fitted.predict_proba(wild))
        assert not np.allclose(fitted.predict_proba(wild[["weight", "size"]].to_numpy()), fitted.predict_proba(wild))

    def test_arrays_and_tables_without_names_go_by_position(self) -> None:
        wanted = self.fitted.predict_proba(X)
        np.testing.assert_array_equal(self.fitted.predict_proba(X.to_numpy()), wanted)
        np.testing.assert_array_equal(self.fitted.predict_proba(pd.DataFrame(X.to_numpy())), wanted)

    def test_tasks_unseen_in_training_are_what_it_is_for(self) -> None:
        assert self.fitted.predict(pd.DataFrame({"size": [-5.0], "weight": [-5.0]}, index=["new"])) == [
            CROWD.classes[0]
        ]
        assert self.fitted.predict_proba(X.iloc[:0]).shape == (0, 2)

    def test_a_worker_unseen_in_training_answers_as_the_crowd(self) -> None:
        known = CROWD.workers[0]
        found = self.fitted.predict_worker_proba(X, ["nobody", known])
        assert found.shape == (30, 2, 2)
        np.testing.assert_allclose(found.sum(axis=2), 1)
        by_hand = self.fitted.predict_proba(X) @ self.fitted.crowd_confusion_
        np.testing.assert_allclose(found[:, 0], by_hand)
        np.testing.assert_allclose(found[:, 1], self.fitted.predict_proba(X) @ self.fitted.confusion_[0])

    def test_before_fitting(self, learner: Learner) -> None:
        for ask in ("predict", "predict_proba"):
            with pytest.raises(UsageError, match="is not fitted yet; call fit first"):
                getattr(learner, ask)(X)


def test_named_columns_after_nameless_training_are_told_of() -> None:
    model = Raykar().fit(pd.DataFrame(X.to_numpy(), index=X.index), CROWD)
    with pytest.warns(DataWarning, match="matched by position"):
        model.predict(X)
