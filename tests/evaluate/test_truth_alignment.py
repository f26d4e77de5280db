"""Truth and predictions meet by task id or by position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, MajorityVote, Mean
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.truth_alignment import align_numbers, align_prediction, is_numeric

POSTERIOR = pd.DataFrame({"b": [0.2, 0.5, 1.0], "a": [0.8, 0.5, 0.0]}, index=["t1", "t2", "t3"])


class TestById:
    def test_rows_are_those_of_tasks_with_both(self) -> None:
        aligned = align_prediction({"t9": "a", "t3": "a", "t1": "b"}, POSTERIOR)
        assert aligned.classes.tolist() == ["b", "a"]
        assert aligned.truth.tolist() == [1, 0]
        assert aligned.posterior.tolist() == [[1, 0], [0.2, 0.8]]
        assert (aligned.n_without_truth, aligned.n_without_prediction) == (1, 1)
        assert aligned.true_class_posterior.tolist() == [0, 0.2]

    def test_tied_classes_share_the_credit(self) -> None:
        tied = pd.DataFrame({"b": [0.5 + 1e-14], "a": [0.5 - 1e-14]}, index=["t2"])
        assert align_prediction({"t2": "a"}, tied).credit.tolist() == [0.5]
        assert align_prediction({"t1": "a"}, POSTERIOR).credit.tolist() == [1]

    def test_a_true_class_without_a_column_has_posterior_zero(self) -> None:
        aligned = align_prediction({"t1": "z", "t2": "a"}, POSTERIOR)
        assert aligned.classes.tolist() == ["a", "b", "z"], "sorted, because the order of the posterior lacks a class"
        assert aligned.true_class_posterior.tolist() == [0, 0.5]
        assert aligned.credit.tolist() == [0, 0.5]

    def test_labels_become_one_hot_rows_of_sorted_classes(self) -> None:
        aligned = align_prediction({"t1": "b", "t2": "c"}, pd.Series({"t2": "a", "t1": "b", "t3": None}))
        assert aligned.is_labels_only
        assert aligned.classes.tolist() == ["a", "b", "c"]
        assert aligned.posterior.tolist() == [[0, 1, 0], [1, 0, 0]]

    def test_ids_of_files_and_of_code_are_the_same(self) -> None:
        aligned = align_prediction({"1": "x"}, pd.DataFrame({"x": [1.0]}, index=[1]))
        assert aligned.credit.tolist() == [1]

    def test_a_fitted_method_gives_its_posterior(self) -> None:
        fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "b"), ("t2", "ann", "a")]))
        assert align_prediction({"t1": "a", "t2": "a"}, fitted).credit.tolist() == [0.5, 1]


class TestByPosition:
    def test_codes_and_rows(self) -> None:
        aligned = align_prediction([1, 0], np.array([[0.3, 0.7], [0.4, 0.6]]))
        assert aligned.credit.tolist() == [1, 0]
        assert align_prediction([1, 0, 2], np.array([1, 1, 0])).credit.tolist() == [1, 0, 0]

    @pytest.mark.parametrize(
        ("truth", "prediction", "message"),
        [
            ([0], np.array([[0.5, 0.5], [1, 0]]), "one prediction per task"),
            ([], np.empty((0, 2)), "one prediction per task"),
            ([[0]], np.array([[1.0, 0.0]]), "one prediction per task"),
            ([2], np.array([[0.5, 0.5]]), "must lie between 0 and 1; got 2 to 2"),
            ([-1], np.array([0]), "must lie between 0 and 0; got -1 to 0"),
            (["a"], np.array([[0.5, 0.5]]), "must hold class codes"),
            ({"t1": 0}, np.array([[0.5, 0.5]]), "the truth has task ids but the prediction has none"),
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, truth: Any, prediction: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            align_prediction(truth, prediction)


@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        ({"x": "a"}, POSTERIOR, "no task in common"),
        ({"t1": "y"}, POSTERIOR, "no true class is a class of the posterior"),
        (pd.Series(["a", "b"], index=["t1", "t1"]), POSTERIOR, "the truth has duplicate tasks: 't1'"),
        ({"t1": "a"}, POSTERIOR.loc[["t1", "t1"]], "the prediction has duplicate tasks"),
        ({"t1": "a"}, POSTERIOR * 2, "sum"),
        ({"t1": "a"}, POSTERIOR * np.nan, "sum"),
        ({"t1": "a"}, POSTERIOR.assign(a=2.0, b=-1.0), "sum"),
    ],
)
def test_predictions_that_do_not_fit_are_refused(truth: Any, prediction: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        align_prediction(truth, prediction)


def test_probabilities_are_wanted() -> None:
    with pytest.raises(UsageError, match="needs probabilities, but the prediction consists of labels"):
        align_prediction({"t1": "a"}, pd.Series({"t1": "a"}), probabilities=True)


class TestNumbers:
    def test_by_id_and_by_position(self) -> None:
        crowd = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t2", "ann", 4.0)], numeric=True)
        aligned = align_numbers({"t2": 5, "t9": 0, "t1": 1}, Mean().fit(crowd))
        assert aligned.truth.tolist() == [5, 1]
        assert aligned.prediction.tolist() == [4, 1.5]
        assert (aligned.n_without_truth, aligned.n_without_prediction) == (0, 1)
        assert align_numbers([1, 2], [3, 4]).prediction.tolist() == [3, 4]

    def test_numbers_that_do_not_fit_are_refused(self) -> None:
        with pytest.raises(InputError, match="of equal length"):
            align_numbers([1, 2], [1, 2, 3])
        with pytest.raises(InputError, match="must be finite"):
            align_numbers({"t1": 1}, pd.Series({"t1": np.inf}))
        with pytest.raises(InputError, match="the truth has task ids"):
            align_numbers({"t1": 1}, [1])

    def test_methods_that_predict_numbers_are_told_apart(self) -> None:
        crowd = Crowd.from_triples([("t1", "ann", 1.0)], numeric=True)
        fitted = Mean().fit(crowd)
        assert is_numeric(fitted)
        with pytest.raises(UsageError, match="use mae or rmse"):
            align_prediction({"t1": "a"}, fitted)
        assert not is_numeric(pd.Series([1, 2]))
