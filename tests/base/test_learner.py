"""Learners without a network: alignment of features, predictions for workers, and scores.

`tests/learn` tries the same with every learner.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import Crowd
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import CROWD_PSEUDO_VOTES, Learner
from wisecrowd.base.sharpness import sharpen
from wisecrowd.data.feature_profile import FeatureProfile
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.errors import DataWarning, InputError, UsageError

CROWD = Crowd.from_triples(
    [("t1", "ann", "a"), ("t1", "bob", "a"), ("t2", "ann", "b"), ("t2", "bob", "a"), ("t3", "ann", "b")]
)
X = pd.DataFrame({"u": [0.0, 1.0, 1.0], "v": [5.0, 6.0, 7.0]}, index=["t1", "t2", "t3"])


@method_class
class Threshold(Learner):
    """Predicts the second class with the probability that the first feature names."""

    rows_: NDArray[np.float64] = fitted(help="Features of training.")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.rows_ = X
        posterior = apply_gold(compute_vote_shares(crowd), gold)
        self._set_fitted(crowd, posterior, crowd.layout.vote_matrix.T @ posterior)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        second = np.clip(X.reshape(len(X), -1)[:, 0], 0, 1)
        return np.stack([1 - second, second], axis=1)


@pytest.fixture
def learner() -> Threshold:
    return Threshold().fit(X, CROWD)


class TestFit:
    def test_features_are_aligned_by_task(self) -> None:
        fitted = Threshold().fit(X.iloc[[2, 0, 1]], CROWD)
        assert fitted.rows_.tolist() == X.to_numpy().tolist()
        assert fitted.feature_names_ == ["u", "v"]
        assert fitted.feature_shape_ == [2]
        assert fitted.n_features_in_ == 2

    def test_features_of_any_shape(self) -> None:
        images = pd.Series(list(np.zeros((3, 2, 4))), index=CROWD.tasks)
        fitted = Threshold().fit(
            np.stack(images.to_list()), Crowd.from_triples([(t, "ann", "ab"[t % 2]) for t in range(3)])
        )
        assert fitted.feature_shape_ == [2, 4]
        assert fitted.n_features_in_ == 8
        assert fitted.feature_names_ is None

    def test_gold_reaches_the_method(self) -> None:
        assert Threshold().fit(X, CROWD, truth={"t2": "a"}).proba_.loc["t2"].tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((CROWD, X), UsageError, "takes the features first"),
            ((X, np.zeros(3)), UsageError, "takes a Crowd of votes as its target and got an array"),
            (
                (X, Crowd.from_triples([("t1", "ann", "a")])),
                InputError,
                "needs two classes or more, and these votes have one class, 'a'",
            ),
        ],
    )
    def test_other_arguments_are_refused(self, arguments: Any, error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            Threshold().fit(*arguments)


class TestPrediction:
    def test_columns_are_matched_by_name(self, learner: Threshold) -> None:
        assert learner.predict(X[["v", "u"]]).tolist() == ["a", "b", "b"]
        assert learner.predict(X.to_numpy()).tolist() == ["a", "b", "b"]

    def test_no_rows_give_no_predictions(self, learner: Threshold) -> None:
        assert learner.predict_proba(X.iloc[:0]).shape == (0, 2)
        assert learner.predict(X.iloc[:0]).tolist() == []

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (X.rename(columns={"v": "w"}), "this table lacks 'v' and has also 'w'"),
            (X.assign(w=1.0), "this table has also 'w'"),
            (np.ones((2, 3)), r"rows of 2 features, as in training; got an array of shape \(2, 3\)"),
            (np.ones(2), "rows of 2 features"),
            (np.array([[0, 1], [np.nan, 1]]), "the features of 1 row are not finite, for example row 1"),
        ],
    )
    def test_other_features_are_refused(self, learner: Threshold, features: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            learner.predict_proba(features)

    def test_names_after_training_without_names_are_warned_of(self) -> None:
        fitted = Threshold().fit(X.set_axis(range(2), axis=1), CROWD)
        with pytest.warns(DataWarning, match="matched by position"):
            fitted.predict(X)


class TestWorkers:
    def test_known_workers_have_their_matrix_and_others_that_of_the_crowd(self, learner: Threshold) -> None:
        probs = learner.predict_worker_proba(X, ["new", "bob", "ann"])
        assert probs.shape == (3, 3, 2)
        classes = learner.predict_proba(X)
        for column, matrix in enumerate([learner.crowd_confusion_, learner.confusion_[1], learner.confusion_[0]]):
            np.testing.assert_allclose(probs[:, column], classes @ matrix)

    def test_the_matrix_of_the_crowd_counts_all_votes(self, learner: Threshold) -> None:
        counts = np.full((2, 2), CROWD_PSEUDO_VOTES)
        posterior = compute_vote_shares(CROWD)
        for task, label in zip(CROWD.task, CROWD.label, strict=True):
            counts[:, label] += posterior[task]
        np.testing.assert_allclose(learner.crowd_confusion_, counts / counts.sum(axis=1, keepdims=True))

    def test_one_name_is_no_list_of_names(self, learner: Threshold) -> None:
        with pytest.raises(UsageError, match=r"must be a list of worker ids; got 'ann'. For one worker: \['ann'\]"):
            learner.predict_worker_proba(X, "ann")


class TestScore:
    def test_against_truth_in_any_order(self, learner: Threshold) -> None:
        truth = pd.Series({"t3": "b", "t1": "b", "t2": "b", "t9": "a"})
        assert learner.score(X, truth) == pytest.approx(2 / 3)
        assert learner.score(X, ["b", "b", "b"]) == pytest.approx(2 / 3)

    def test_against_votes_by_weight(self, learner: Threshold) -> None:
        assert learner.score(X.iloc[::-1], CROWD) == pytest.approx(4 / 5)
        heavy = Crowd.from_frame(CROWD.to_frame().assign(weight=[1.0, 1.0, 1.0, 6.0, 1.0]), weight="weight")
        assert learner.score(X, heavy) == pytest.approx(4 / 10)
        assert np.isnan(learner.score(X, CROWD.take([])))

    def test_a_class_that_training_did_not_have_is_never_right(self, learner: Threshold) -> None:
        assert learner.score(
            X, Crowd.from_triples([("t1", "ann", "z"), ("t2", "ann", "b"), ("t3", "ann", "z")])
        ) == pytest.approx(1 / 3)

    def test_the_number_of_classes_must_fit(self, learner: Threshold) -> None:
        with pytest.raises(InputError, match=r"one class per row of X, shape \(3,\); got shape \(2,\)"):
            learner.score(X, ["a", "b"])


def test_before_a_fit_nothing_is_known() -> None:
    with pytest.raises(UsageError, match="not fitted"):
        Threshold().predict(X)
    with pytest.raises(UsageError, match="call fit first"):
        _ = Threshold().n_features_in_


def test_scikit_learn_takes_it_for_a_classifier() -> None:
    from sklearn.base import is_classifier

    assert is_classifier(Threshold())


@method_class
class Overconfident(Learner):
    """Knows the class probabilities, which are its first features, and raises them to a power."""

    needs_workers: ClassVar[bool] = False

    power: float = parameter(default=1.0, help="Power.")
    random_state: int = parameter(default=0, help="Seed.")
    n_tasks_: int = fitted(help="Number of training tasks.")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self.n_tasks_ = len(X)
        truth = apply_gold(np.eye(crowd.n_classes)[X[:, -1].astype(int)], gold)
        self._set_fitted(crowd, truth, crowd.layout.vote_matrix.T @ truth)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return sharpen(X[:, :-1], self.power)


@pytest.fixture(scope="module")
def noisy_votes() -> tuple[NDArray[np.float64], Crowd, NDArray[np.intp]]:
    """Return probabilities of three classes with the truth, and two votes of noisy workers on each task."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.7), size=4000)
    truth = (rng.random((4000, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    is_right = rng.random((4000, 2)) < 0.7
    label = np.where(is_right, truth[:, None], (truth[:, None] + rng.integers(1, 3, size=(4000, 2))) % 3)
    task, worker = np.repeat(np.arange(4000), 2), rng.integers(10, size=(4000, 2))
    worker[:, 1] += 10
    crowd = Crowd.from_codes(
        task, worker.ravel(), label.ravel(), tasks=range(4000), workers=range(20), classes=range(3)
    )
    return np.column_stack([probs, truth]), crowd, truth


class TestCalibration:
    @pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
    def test_the_exponent_is_recovered_without_truth(self, noisy_votes: Any, power: float) -> None:
        rows, crowd, truth = noisy_votes
        learner = Overconfident(power=power, calibration=0.5).fit(rows, crowd)
        assert learner.prediction_sharpness_ == pytest.approx(1 / power, rel=0.15)
        assert learner.n_tasks_ == 4000, "the second fit changes nothing else"
        raw, calibrated = Overconfident(power=power).fit(rows, crowd).predict_proba(rows), learner.predict_proba(rows)
        losses = [-np.log(probs[np.arange(4000), truth]).mean() for probs in (raw, calibrated)]
        assert losses[1] < losses[0] + 0.002
        assert power == 1.0 or losses[1] < losses[0] - 0.02
        np.testing.assert_array_equal(raw.argmax(axis=1), calibrated.argmax(axis=1))

    def test_it_is_off_by_default_and_for_few_tasks(self, noisy_votes: Any) -> None:
        rows, crowd, _ = noisy_votes
        assert Overconfident(power=3.0).fit(rows, crowd).prediction_sharpness_ == 1.0
        few = Overconfident(power=3.0, calibration=0.2).fit(rows[:49], crowd[:49])
        assert few.prediction_sharpness_ == 1.0

    def test_gold_of_held_out_tasks_counts(self, noisy_votes: Any) -> None:
        rows, crowd, truth = noisy_votes
        learner = Overconfident(power=3.0, calibration=0.2).fit(rows, crowd, truth=truth)
        assert learner.prediction_sharpness_ == pytest.approx(1 / 3, rel=0.1)

    def test_workers_need_no_ids(self, noisy_votes: Any) -> None:
        rows, crowd, _ = noisy_votes
        without_ids = crowd.replace_fields(worker=None, workers=None)
        learner = Overconfident(power=3.0, calibration=0.5).fit(rows, without_ids)
        assert learner.prediction_sharpness_ == pytest.approx(1 / 3, rel=0.2)

    def test_wrong_shares_are_refused(self) -> None:
        with pytest.raises(UsageError, match="calibration must be a share of tasks"):
            Threshold(calibration=1.0).fit(X, CROWD)


class TestProfile:
    def test_features_in_another_unit_give_a_warning(self) -> None:
        crowd = Crowd.from_triples([(task, "ann", "ab"[task % 2]) for task in range(20)])
        fitted = Threshold().fit(np.linspace(0, 1, 20)[:, None], crowd)
        fitted.predict(np.linspace(0, 1.2, 20)[:, None])
        with pytest.warns(
            DataWarning, match=r"1 of 1 features lie far outside their range in training: column 0 from 0 to 255"
        ):
            fitted.predict(np.linspace(0, 255, 20)[:, None])

    def test_training_rows_have_positions(self, learner: Threshold) -> None:
        assert learner.find_training_rows(X.iloc[[2, 0]].assign(v=[7.0, 9.0])).tolist() == [2, -1]

    def test_a_profile_of_other_features_is_refused(self, learner: Threshold) -> None:
        learner.feature_profile_ = FeatureProfile.of(np.zeros((3, 5)))
        with pytest.raises(ValueError, match="feature_profile_ must have ranges of features of the shape"):
            learner.check_restored()
