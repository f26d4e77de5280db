"""A learner is a scikit-learn classifier whose y is a crowd: what scikit-learn does with classifiers works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from wisecrowd import Crowd, DawidSkene, Raykar, TwoStage, methods, read, read_features, simulate_crowd, write
from wisecrowd.base.learner import Learner
from wisecrowd.errors import InputError, UsageError

MADE = simulate_crowd(90, 10, 3, votes_per_task=3, workers={"expert": 5, "noisy": 5})
CROWD, TRUTH = MADE.crowd, MADE.truth
SHIFT = 4 * np.eye(3)[CROWD.classes.get_indexer(TRUTH)]
X = pd.DataFrame(SHIFT + np.random.default_rng(0).normal(size=(90, 3)), index=TRUTH.index, columns=["a", "b", "c"])


@pytest.mark.parametrize("name", methods("learn"))
def test_every_learner_is_a_classifier_that_can_be_cloned(name: str) -> None:
    learner = methods("learn")[name]()
    assert is_classifier(learner)
    assert repr(clone(learner)) == repr(learner)
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(learner)


def test_cross_validation_scores_votes_that_were_not_seen() -> None:
    scores = cross_val_score(Raykar(), X, CROWD, cv=3)
    assert len(scores) == 3
    by_hand = []
    for train, test in KFold(3).split(X):  # votes have no strata
        fitted = Raykar().fit(X.iloc[train], CROWD[train])
        by_hand.append(fitted.score(X.iloc[test], CROWD[test]))
    np.testing.assert_array_equal(scores, by_hand)
    # Nearly all truths are found, so the score is about the share of votes that are right.
    share = (CROWD.classes[CROWD.label] == TRUTH[CROWD.tasks[CROWD.task]].to_numpy()).mean()
    assert scores.mean() == pytest.approx(share, abs=0.06)


def test_one_label_per_task_is_not_mistaken_for_several_targets() -> None:
    single = CROWD.take(np.unique(CROWD.task, return_index=True)[1])
    assert single.n_votes == 90
    assert len(cross_val_score(TwoStage(aggregator="majority-vote"), X, single, cv=3, error_score="raise")) == 3


def test_tables_in_another_order_do_not_pass_silently() -> None:
    with pytest.raises(InputError, match="no features for"):
        cross_val_score(Raykar(), X.sample(frac=1, random_state=0), CROWD, cv=3, error_score="raise")


def test_cross_val_predict() -> None:
    predicted = cross_val_predict(Raykar(), X, CROWD, cv=3)
    assert (predicted == TRUTH).mean() > 0.9
    # It turns y into an array for probabilities, and an array of votes is no crowd.
    with pytest.raises(UsageError, match="unless its method is 'predict'"):
        cross_val_predict(Raykar(), X, CROWD, cv=3, method="predict_proba")


def test_cross_validate_with_a_scorer_of_one_s_make_worker_parameters() -> None:
    def against_truth(model: Learner, rows: pd.DataFrame, crowd: Crowd) -> float:
        assert isinstance(crowd, Crowd)
        return model.score(rows, TRUTH)

    found = cross_validate(Raykar(), X, CROWD, cv=3, scoring=against_truth, return_estimator=True)
    assert found["test_score"].min() > 0.85
    assert all(isinstance(model, Raykar) for model in found["estimator"])


def test_pipeline() -> None:
    model = make_pipeline(StandardScaler(), Raykar()).fit(X * [1, 100, 1e4], CROWD)
    assert model.score(X * [1, 100, 1e4], TRUTH) > 0.9
    assert model.predict_proba(X * [1, 100, 1e4]).shape == (90, 3)
    assert model.classes_.tolist() == CROWD.classes.tolist()
    assert is_classifier(model)
    assert cross_val_score(model, X, CROWD, cv=3, error_score="raise").min() > 0.5


def test_a_pipeline_that_drops_the_ids_is_refused_where_they_are_needed() -> None:
    shuffled = Crowd.from_triples([("b", "ann", 1), ("b", "bob", 1), ("a", "ann", 0), ("a", "bob", 0)])
    table = pd.DataFrame({"x": [1.0, 2.0]}, index=["b", "a"])
    model = make_pipeline(StandardScaler(), Raykar())
    with pytest.raises(InputError, match="index it by task"):
        model.fit(table, shuffled)
    model.set_output(transform="pandas").fit(table, shuffled)
    assert model[-1].labels_.to_dict() == {"a": 0, "b": 1}


def test_grid_search_also_within_methods() -> None:
    search = GridSearchCV(Raykar(), {"l2": [0.1, 1e6]}, cv=3, error_score="raise").fit(X, CROWD)
    assert search.best_params_ == {"l2": 0.1}  # the other one forbids to look at the features
    assert search.best_estimator_.score(X, TRUTH) > 0.9
    nested = make_pipeline(StandardScaler(), TwoStage(aggregator=DawidSkene()))
    search = GridSearchCV(nested, {"twostage__aggregator__smoothing": [0.1, 0.5]}, cv=3, error_score="raise")
    assert set(search.fit(X, CROWD).best_params_) == {"twostage__aggregator__smoothing"}


def test_train_test_split_and_learning_curve() -> None:
    train_X, test_X, train, test = train_test_split(X, CROWD, random_state=0)
    assert isinstance(train, Crowd)
    assert train_X.index.equals(train.tasks)
    assert Raykar().fit(train_X, train).score(test_X, test) > 0.5
    _, _, scores = learning_curve(Raykar(), X, CROWD, cv=3, train_sizes=[0.5, 1.0], error_score="raise")
    assert scores.shape == (2, 3)


class TestScore:
    fitted = Raykar().fit(X, CROWD)

    def test_against_truth(self) -> None:
        right = (self.fitted.predict(X) == TRUTH.to_numpy()).mean()
        assert self.fitted.score(X, TRUTH) == self.fitted.score(X, TRUTH.to_numpy()) == right

    def test_against_votes(self) -> None:
        said = CROWD.classes[CROWD.label] == self.fitted.predict(X)[CROWD.task]
        assert self.fitted.score(X, CROWD) == pytest.approx(said.mean())
        weight = np.random.default_rng(1).random(CROWD.n_votes)
        weighted = Crowd.from_codes(CROWD.task, CROWD.worker, CROWD.label, tasks=CROWD.tasks, workers=CROWD.workers,
                         classes=CROWD.classes, weight=weight)  # fmt: skip
        assert self.fitted.score(X, weighted) == pytest.approx(np.average(said, weights=weight))

    def test_rows_in_any_order(self) -> None:
        backwards = X.iloc[::-1]
        assert self.fitted.score(backwards, CROWD) == self.fitted.score(X, CROWD)
        assert self.fitted.score(backwards, TRUTH) == self.fitted.score(X, TRUTH)
        assert self.fitted.score(backwards.iloc[:30], TRUTH) == self.fitted.score(X.iloc[60:], TRUTH.iloc[60:])

    def test_classes_of_a_crowd_in_another_order_or_unknown(self) -> None:
        frame = CROWD.to_frame()
        other = Crowd.from_frame(frame, tasks=CROWD.tasks, classes=["new", *CROWD.classes[::-1]])
        assert self.fitted.score(X, other) == self.fitted.score(X, CROWD)

    def test_truth_of_the_wrong_length(self) -> None:
        with pytest.raises(InputError, match="y must have one class per row"):
            self.fitted.score(X, TRUTH.to_numpy()[:7])


@pytest.fixture
def read_crowd(tmp_path: Path) -> Crowd:
    """The crowd as it is read from a file: its tasks have no order of their own."""
    write(CROWD, tmp_path / "votes.csv")
    return read(tmp_path / "votes.csv")


def test_pipelines_take_crowds_that_were_read(read_crowd: Crowd, tmp_path: Path) -> None:
    shuffled = X.sample(frac=1, random_state=1)
    pipeline = make_pipeline(StandardScaler(), Raykar())
    with pytest.raises(InputError, match=r"crowd\.order_tasks\(X\), or keep it: pipeline\.set_output"):
        pipeline.fit(shuffled, read_crowd)
    in_order = pipeline.fit(shuffled, read_crowd.order_tasks(shuffled)).score(shuffled, TRUTH[shuffled.index])
    assert in_order > 0.9
    kept = make_pipeline(StandardScaler(), Raykar()).set_output(transform="pandas").fit(shuffled, read_crowd)
    assert kept.score(shuffled, TRUTH[shuffled.index]) == in_order
    shuffled.rename_axis("task").to_csv(tmp_path / "X.csv")
    table, crowd = read_features(tmp_path / "X.csv").align(read_crowd)
    assert make_pipeline(StandardScaler(), Raykar()).fit(table, crowd).score(table, TRUTH[table.index]) == in_order


def test_searches_take_crowds_that_were_read(read_crowd: Crowd) -> None:
    shuffled = X.sample(frac=1, random_state=1)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Raykar()), {"raykar__l2": [0.3, 30.0]}, cv=3, error_score="raise"
    )
    assert search.fit(shuffled, read_crowd.order_tasks(shuffled)).best_score_ > 0.6


def test_metrics_by_name_explain_what_to_do() -> None:
    with pytest.raises(UsageError, match="leave scoring out to score by held-out votes"):
        cross_val_score(Raykar(), X, CROWD, cv=3, scoring="accuracy", error_score="raise")
    by_truth = cross_val_score(
        Raykar(), X, CROWD, cv=3, scoring=lambda model, rows, _: model.score(rows, TRUTH[rows.index])
    )
    assert by_truth.min() > 0.85
