from __future__ import annotations

import subprocess
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from sklearn import metrics as sk

from wisecrowd.aggregate.categorical.majority_vote import MajorityVote
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.simulate import simulate_crowd


@st.composite
def answers(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Truth as codes, and a posterior with many ties."""
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 4))
    truth = np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    votes = np.array(draw(st.lists(st.lists(st.integers(0, 3), min_size=k, max_size=k), min_size=n, max_size=n)))
    votes[votes.sum(axis=1) == 0] = 1
    return truth, votes / votes.sum(axis=1, keepdims=True)


def made_up(n: int = 400, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Truth and a posterior that leans towards it, without ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    lean = np.ones((n, k)) + 2 * np.eye(k)[truth]
    return truth, np.stack([rng.dirichlet(row) for row in lean])


def by_name(truth: np.ndarray, posterior: np.ndarray) -> tuple[pd.Series, pd.DataFrame]:
    """The same with ids, truth in another order."""
    names = [f"class {code}" for code in range(posterior.shape[1])]
    tasks = [f"task {number}" for number in range(len(truth))]
    series = pd.Series([names[code] for code in truth], index=tasks)
    return series.iloc[::-1], pd.DataFrame(posterior, index=tasks, columns=names)


# ---------------------------------------------------------------------- against brute force


@given(answer=answers())
def test_ties_earn_what_a_fair_coin_would(answer: tuple[np.ndarray, np.ndarray]) -> None:
    truth, posterior = answer[0][:5], answer[1][:5]
    tied = [np.flatnonzero(row >= row.max() - 1e-12) for row in posterior]
    choices = list(product(*tied))
    expected = np.mean([np.mean(np.array(choice) == truth) for choice in choices])
    assert metrics.accuracy(truth, posterior) == pytest.approx(expected)
    tables = [sk.confusion_matrix(truth, choice, labels=range(posterior.shape[1])) for choice in choices]
    assert np.allclose(metrics.confusion_table(truth, posterior), np.mean(tables, axis=0))


@given(answer=answers(), n_bins=st.integers(1, 20), bins=st.sampled_from(["width", "mass"]))
def test_calibration_error_by_brute_force(answer: tuple[np.ndarray, np.ndarray], n_bins: int, bins: str) -> None:
    truth, posterior = answer
    confidence = posterior.max(axis=1)
    best = posterior >= confidence[:, None] - 1e-12
    credit = [row[z] / row.sum() for row, z in zip(best, truth, strict=True)]
    ordered = sorted(confidence)
    groups: dict[int, list[int]] = {}
    for i, value in enumerate(confidence):
        if bins == "width":
            key = max(b for b in range(n_bins) if b == 0 or value > b / n_bins)
        else:  # how many of the cuts between equal parts of the tasks lie below this confidence
            cuts = [ordered[int(np.ceil(b * len(ordered) / n_bins - 1e-9)) - 1] for b in range(1, n_bins)]
            key = sum(value > cut for cut in (max(cut, ordered[0]) for cut in cuts))
        groups.setdefault(key, []).append(i)
    gaps = [len(g) / len(truth) * abs(np.mean([credit[i] - confidence[i] for i in g])) for g in groups.values()]
    found = metrics.calibration_error(truth, posterior, n_bins=n_bins, bins=bins)  # type: ignore[arg-type]
    assert found == pytest.approx(sum(gaps), abs=1e-9)


@given(answer=answers())
def test_brier_by_brute_force(answer: tuple[np.ndarray, np.ndarray]) -> None:
    truth, posterior = answer
    distance = ((posterior - np.eye(posterior.shape[1])[truth]) ** 2).sum(axis=1)
    assert metrics.brier(truth, posterior) == pytest.approx(distance.mean())


@given(answer=answers(), order=st.randoms(use_true_random=False))
def test_order_of_rows_and_columns_is_irrelevant(answer: tuple[np.ndarray, np.ndarray], order: object) -> None:
    truth, table = by_name(*answer)
    rows, columns = list(table.index), list(table.columns)
    order.shuffle(rows)  # type: ignore[attr-defined]
    order.shuffle(columns)  # type: ignore[attr-defined]
    one, two = metrics.summary(truth, table), metrics.summary(truth, table.loc[rows, columns])
    assert one == pytest.approx(two)


def test_ids_and_positions_agree() -> None:
    truth, posterior = made_up()
    assert metrics.summary(*by_name(truth, posterior)) == pytest.approx(metrics.summary(truth, posterior))


# ---------------------------------------------------------------------- against scikit-learn and scipy


@pytest.mark.parametrize("k", [2, 3, 6])
def test_as_scikit_learn_says(k: int) -> None:
    truth, posterior = made_up(k=k)
    chosen = posterior.argmax(axis=1)
    assert metrics.accuracy(truth, posterior) == pytest.approx(sk.accuracy_score(truth, chosen))
    assert metrics.f1(truth, posterior) == pytest.approx(sk.f1_score(truth, chosen, average="macro"))
    assert metrics.log_loss(truth, posterior, clip=1e-15) == pytest.approx(sk.log_loss(truth, posterior))
    assert (metrics.confusion_table(truth, posterior).to_numpy() == sk.confusion_matrix(truth, chosen)).all()
    assert metrics.summary(truth, posterior)["balanced_accuracy"] == pytest.approx(
        sk.balanced_accuracy_score(truth, chosen)
    )
    precision, recall, f1, support = sk.precision_recall_fscore_support(truth, chosen)
    table = metrics.per_class(truth, posterior)
    assert np.allclose(
        table[["precision", "recall", "f1", "n_tasks"]], np.stack([precision, recall, f1, support], axis=1)
    )
    if k == 2:
        assert metrics.f1(truth, chosen, average="binary") == pytest.approx(sk.f1_score(truth, chosen))
        assert metrics.auc(truth, posterior) == pytest.approx(sk.roc_auc_score(truth, posterior[:, 1]))
        assert metrics.auc(truth, posterior, positive=0) == pytest.approx(sk.roc_auc_score(truth == 0, posterior[:, 0]))
        assert metrics.brier(truth, posterior) == pytest.approx(2 * sk.brier_score_loss(truth, posterior[:, 1]))
    else:
        assert metrics.auc(truth, posterior) == pytest.approx(sk.roc_auc_score(truth, posterior, multi_class="ovr"))
        assert metrics.f1(truth, chosen, average="binary", positive=2) == pytest.approx(
            sk.f1_score(truth == 2, chosen == 2)
        )


def test_numbers_as_scikit_learn_says() -> None:
    rng = np.random.default_rng(0)
    truth, said = rng.normal(size=50), rng.normal(size=50)
    assert metrics.mae(truth, said) == pytest.approx(sk.mean_absolute_error(truth, said))
    assert metrics.rmse(truth, said) == pytest.approx(sk.root_mean_squared_error(truth, said))


def test_divergence_as_scipy_says() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(5), size=(2, 7, 5))
    found = metrics.confusion_divergence(first, second)
    expected = [
        np.mean([jensenshannon(p, q, base=2) ** 2 for p, q in zip(a, b, strict=True)])
        for a, b in zip(first, second, strict=True)
    ]
    assert found.shape == (7,)
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    assert metrics.confusion_divergence(second, first) == pytest.approx(found)
    assert metrics.confusion_divergence(first, first) == pytest.approx(np.zeros(7))
    one_for_all = metrics.confusion_divergence(first, np.eye(5))
    assert one_for_all[3] == metrics.confusion_divergence(first[3], np.eye(5))


def test_divergence_of_opposites_is_one() -> None:
    assert metrics.confusion_divergence(np.eye(2), np.eye(2)[::-1]) == pytest.approx(1, abs=1e-5)
    with pytest.raises(InputError, match="matrices of one size"):
        metrics.confusion_divergence(np.eye(2), np.eye(3))


# ---------------------------------------------------------------------- by hand


def test_log_loss_clips() -> None:
    assert metrics.log_loss([0], [[0.0, 1.0]]) == pytest.approx(-np.log(1e-6))
    assert metrics.log_loss([0], [[0.0, 1.0]], clip=1e-3) == pytest.approx(-np.log(1e-3))
    with pytest.raises(UsageError, match="clip"):
        metrics.log_loss([0], [[0.0, 1.0]], clip=0)


def test_nearly_equal_is_a_tie() -> None:
    assert metrics.accuracy([0], [[0.5 - 1e-16, 0.5 + 1e-16]]) == 0.5
    assert metrics.accuracy([0], [[0.49999, 0.50001]]) == 0.0


def test_equal_confidences_share_a_bin_of_equal_mass() -> None:
    posterior = [[0.8, 0.2]] * 10
    truth = [0] * 8 + [1] * 2
    assert metrics.calibration_error(truth, posterior, n_bins=5, bins="mass") == pytest.approx(0, abs=1e-12)


def test_classes_without_tasks() -> None:
    truth, said = pd.Series({"t1": "a", "t2": "b"}), pd.DataFrame([[1, 0, 0.0], [0, 0, 1.0]], ["t1", "t2"], list("abc"))
    table = metrics.per_class(truth, said)
    assert table["n_tasks"].to_dict() == {"a": 1, "b": 1, "c": 0}
    assert np.isnan(table.loc["c", "recall"])
    assert np.isnan(table.loc["b", "precision"])
    assert metrics.f1(truth, said) == pytest.approx(1 / 3)
    assert metrics.summary(truth, said)["balanced_accuracy"] == 0.5
    assert np.isnan(metrics.confusion_table(truth, said, normalize=True).loc["c"]).all()


def test_a_true_class_that_the_prediction_does_not_know_is_never_right() -> None:
    truth, said = {"t1": "a", "t2": "z"}, pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, 0.5]}, index=["t1", "t2"])
    assert metrics.accuracy(truth, said) == 0.25
    assert metrics.log_loss(truth, said) == pytest.approx(-(np.log(0.5) + np.log(1e-6)) / 2)
    assert metrics.brier(truth, said) == pytest.approx((0.5 + 1.5) / 2)


def test_tasks_of_one_side_are_left_out_and_counted() -> None:
    truth = pd.Series({"t1": "a", "t2": None, "t9": "b"})
    said = pd.DataFrame({"a": [1.0, 1.0, 0.0], "b": [0.0, 0.0, 1.0]}, index=["t1", "t2", "t3"])
    figures = metrics.summary(truth, said)
    assert (figures["n_tasks"], figures["n_without_truth"], figures["n_without_prediction"]) == (1, 2, 1)
    assert figures["accuracy"] == 1


def test_numbers_and_their_texts_are_the_same_ids_and_classes() -> None:
    said = pd.DataFrame({"0": [0.9, 0.2], "1": [0.1, 0.8]}, index=["7", "8"])
    assert metrics.accuracy(pd.Series({7: 0, 8: 1}), said) == 1


def test_a_fitted_method_is_a_prediction() -> None:
    made = simulate_crowd(300, 20, 3, votes_per_task=4)
    fitted = MajorityVote().fit(made.crowd)
    figures = metrics.summary(made.truth, fitted)
    by_hand = (made.crowd.vote_counts == made.crowd.vote_counts.max(axis=1, keepdims=True)).astype(float)
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    assert figures["accuracy"] == pytest.approx(by_hand[np.arange(300), made.truth_codes].mean())
    assert figures == metrics.summary(made.truth, fitted.proba_)
    bare = SimpleNamespace(posterior_=fitted.posterior_, tasks_=made.crowd.tasks, classes_=made.crowd.classes)
    assert figures == metrics.summary(made.truth, bare)
    with pytest.raises(UsageError, match="not fitted"):
        metrics.accuracy(made.truth, MajorityVote())


def test_labels_have_no_figures_of_probability() -> None:
    truth, said = {"t1": "a", "t2": "b"}, pd.Series({"t1": "a", "t2": "a"})
    assert set(metrics.summary(truth, said)) == {
        "n_tasks", "n_without_truth", "n_without_prediction", "accuracy", "balanced_accuracy", "f1",
    }  # fmt: skip
    for figure in (metrics.brier, metrics.log_loss, metrics.calibration_error, metrics.auc):
        with pytest.raises(UsageError, match="consists of labels; pass a posterior"):
            figure(truth, said)


def test_numbers() -> None:
    truth, said = pd.Series({"t1": 1.0, "t2": 5.0, "t4": 0.0}), pd.Series({"t2": 3.0, "t1": 1.0, "t3": 9.0})
    assert metrics.summary(truth, said) == {
        "n_tasks": 2, "n_without_truth": 1, "n_without_prediction": 1, "mae": 1.0, "rmse": pytest.approx(2**0.5),
    }  # fmt: skip
    fitted = SimpleNamespace(numeric=True, labels_=said)
    assert metrics.mae(truth, fitted) == 1.0
    assert metrics.summary(truth, fitted)["mae"] == 1.0
    with pytest.raises(UsageError, match="use mae or rmse"):
        metrics.accuracy(truth, fitted)
    with pytest.raises(InputError, match="finite"):
        metrics.mae([1.0], [np.inf])
    with pytest.raises(InputError, match="of equal length"):
        metrics.mae([1.0], [1.0, 2.0])


# ---------------------------------------------------------------------- workers


def test_workers_meet_by_id() -> None:
    true = pd.Series({"ann": 0.9, "bob": 0.6, "cid": 0.3, "dan": 0.5})
    estimated = pd.Series({"cid": 0.4, "bob": 0.6, "ann": 0.8, "dan": np.nan, "eve": 1.0})
    assert metrics.worker_error(true, estimated) == pytest.approx(0.2 / 3)
    expected = np.corrcoef([0.9, 0.6, 0.3], [0.8, 0.6, 0.4])[0, 1]
    assert metrics.worker_correlation(true, estimated) == pytest.approx(expected)


def test_no_correlation_without_variation() -> None:
    assert np.isnan(metrics.worker_correlation(pd.Series({"a": 0.5, "b": 0.5}), pd.Series({"a": 0.1, "b": 0.9})))
    with pytest.raises(InputError, match="no worker in common"):
        metrics.worker_error(pd.Series({"a": 0.5}), pd.Series({"b": 0.5}))


def test_a_simulated_crowd_is_recovered_by_counting_against_truth() -> None:
    made = simulate_crowd(5000, 20, 3, votes_per_task=5)
    right = made.crowd.label == made.truth_codes[made.crowd.task]
    share = np.bincount(made.crowd.worker, weights=right) / made.crowd.votes_per_worker
    counted = pd.Series(share, index=made.crowd.workers)
    assert metrics.worker_error(made.accuracy, counted) < 0.02
    assert metrics.worker_correlation(made.accuracy, counted) > 0.99


# ---------------------------------------------------------------------- what does not match


POSTERIOR = pd.DataFrame({"a": [0.5, 1.0], "b": [0.5, 0.0]}, index=["t1", "t2"])


@pytest.mark.parametrize(
    ("truth", "said", "message"),
    [
        ({"x1": "a"}, POSTERIOR, "no task in common. The truth has 'x1', the prediction 't1', 't2'"),
        ({}, POSTERIOR, "no task in common. The truth has none"),
        ({"t1": "A"}, POSTERIOR, "no true class is a class of the posterior"),
        (pd.Series(["a", "b"], index=["t1", "t1"]), POSTERIOR, "truth has duplicate tasks: 't1'"),
        ({"t1": "a"}, POSTERIOR.loc[["t1", "t1"]], "prediction has duplicate tasks"),
        ({"t1": "a"}, POSTERIOR.set_axis(["a", "a"], axis=1), "class vocabulary repeats 'a'"),
        ({"t1": "a"}, POSTERIOR * 2, "sum to 1"),
        ({"t1": "a"}, POSTERIOR * np.nan, "sum to 1"),
        ({"t1": "a"}, pd.DataFrame({"a": [1.5], "b": [-0.5]}, index=["t1"]), "must be probabilities"),
        ({"t1": "a"}, POSTERIOR.to_numpy(), "the prediction has none; give the prediction an index"),
        (["a", "b"], POSTERIOR, "truth must carry task ids"),
        (["a", "b"], POSTERIOR.to_numpy(), "must hold class codes.*For class names"),
        ([0, 2], POSTERIOR.to_numpy(), "codes must lie between 0 and 1; got 0 to 2"),
        ([0, -1], POSTERIOR.to_numpy(), "codes must lie between 0 and 1"),
        ([0], POSTERIOR.to_numpy(), r"one prediction per task.*\(1,\).*\(2, 2\)"),
        ([], np.empty((0, 2)), "one prediction per task"),
        ([0, 1], [0, 1, 1], "one prediction per task"),
        ([0, 1], [0.5, 0.5], "must hold class codes"),
        ([0, 1], np.zeros((2, 2, 2)), "one prediction per task"),
        ([0, 1], ["a", "b"], "must hold class codes.*pass a Series"),
    ],
)
def test_misalignment_is_refused(truth: object, said: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        metrics.accuracy(truth, said)


def test_positive_class_must_exist_and_be_named_among_many() -> None:
    truth, posterior = made_up(k=3)
    with pytest.raises(UsageError, match="positive must be one of 0, 1, 2"):
        metrics.auc(truth, posterior, positive=7)
    with pytest.raises(UsageError, match="with 3 classes, the positive class must be named"):
        metrics.f1(truth, posterior, average="binary")
    with pytest.raises(InputError, match="all tasks have the same"):
        metrics.auc([0, 0], [[0.5, 0.5], [0.1, 0.9]])


def test_what_is_asked_must_exist() -> None:
    with pytest.raises(UsageError, match="average"):
        metrics.f1([0], [[1.0, 0.0]], average="micro")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="bins"):
        metrics.calibration_error([0], [[1.0, 0.0]], bins="equal")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="n_bins"):
        metrics.calibration_error([0], [[1.0, 0.0]], n_bins=0)


@pytest.mark.slow
def test_the_summary_needs_no_scikit_learn() -> None:
    code = (
        "import sys, numpy as np; from wisecrowd.evaluate import metrics;"
        "metrics.summary(np.array([0, 1]), np.array([[0.6, 0.4], [0.5, 0.5]]));"
        "assert 'sklearn' not in sys.modules and 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_inputs_are_untouched() -> None:
    truth, table = by_name(*made_up(20))
    before = truth.copy(), table.copy()
    metrics.summary(truth, table)
    metrics.confusion_table(truth, table, normalize=True)
    assert truth.equals(before[0])
    assert table.equals(before[1])


def test_methods_that_take_either_kind_are_summarised_by_what_they_were_given() -> None:
    from wisecrowd import CATD, Crowd

    numbers = Crowd.from_triples([(task, worker, task + 0.5) for task in range(4) for worker in range(3)], numeric=True)
    assert metrics.summary({0: 0.5, 1: 1.5}, CATD().fit(numbers))["mae"] == 0
    classes = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in range(3)])
    assert metrics.summary({0: 0, 1: 1}, CATD().fit(classes))["accuracy"] == 1
