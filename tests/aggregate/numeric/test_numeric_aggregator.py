"""NumericVotes instead of classes: averages, errors, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd import CATD, PM, Crowd, DawidSkene, Mean, Median, WeightedMean, find
from wisecrowd.aggregate.numeric._numeric_aggregator import NoPosterior, NumericVotes, encode_numeric_truth
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics

NUMERIC = [Mean(), Median(), WeightedMean(), CATD(), PM()]
TINY = Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0), ("t1", "cy", 9.0), ("t2", "ann", 5.0)], numeric=True)


def numbers_of(seed: int, n_tasks: int = 7, n_workers: int = 5, repeats: bool = False) -> NumericVotes:
    """A random crowd; with ``repeats``, weights are whole numbers."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.7)
    task, worker = np.append(task, 0), np.append(worker, 0)  # one vote at least, perhaps repeated
    label = rng.normal(size=len(task)).round(1)
    weight = rng.integers(1, 4, len(task)).astype(float) if repeats else None
    return NumericVotes(Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=None,
                         weight=weight, duplicates="keep"))  # fmt: skip


@given(st.integers(0, 10_000))
def test_averages_are_numpys(seed: int) -> None:
    numbers = numbers_of(seed)
    crowd = numbers.crowd
    for task in np.flatnonzero(crowd.votes_per_task):
        mine = crowd.label[crowd.task == task]
        assert numbers.mean()[task] == pytest.approx(mine.mean(), abs=1e-12)
        assert numbers.median()[task] == pytest.approx(np.median(mine), abs=1e-12)
        assert numbers.spread[task] == pytest.approx(mine.std(), abs=1e-7)
        if len(mine) > 1:
            wanted = mine.std(ddof=1) / np.sqrt(len(mine))
            assert numbers.standard_error(numbers.mean())[task] == pytest.approx(wanted, abs=1e-12)
        else:
            assert np.isnan(numbers.standard_error(numbers.mean())[task])


@given(st.integers(0, 10_000))
def test_the_weighted_median_loses_least(seed: int) -> None:
    numbers = numbers_of(seed)
    crowd = numbers.crowd
    worth = np.random.default_rng(seed).exponential(size=crowd.n_workers)
    found = numbers.median(worth)
    for task in np.flatnonzero(crowd.votes_per_task):
        mine = crowd.task == task
        loss = lambda z, mine=mine: float((worth[crowd.worker[mine]] * np.abs(crowd.label[mine] - z)).sum())  # noqa: E731
        assert loss(found[task]) <= min(loss(z) for z in crowd.label[mine]) + 1e-6


@given(st.integers(0, 10_000))
def test_weights_of_votes_count_like_repetitions(seed: int) -> None:
    numbers = numbers_of(seed, repeats=True)
    crowd = numbers.crowd
    row = np.repeat(np.arange(crowd.n_votes), crowd.weight.astype(int))
    again = NumericVotes(Crowd.from_codes(crowd.task[row], crowd.worker[row], crowd.label[row], tasks=crowd.tasks,
                          workers=crowd.workers, classes=None, duplicates="keep"))  # fmt: skip
    worth = np.random.default_rng(seed).exponential(size=crowd.n_workers)
    for weight in (None, worth):
        np.testing.assert_allclose(numbers.mean(weight), again.mean(weight), atol=1e-12)
        np.testing.assert_allclose(numbers.median(weight), again.median(weight), atol=1e-12)
        errors = [one.standard_error(numbers.mean(weight), weight) for one in (numbers, again)]
        np.testing.assert_allclose(*errors, atol=1e-9)


def test_labels_far_from_zero_keep_their_digits() -> None:
    crowd = Crowd.from_triples([("t", w, 1e9 + x) for w, x in enumerate((0.001, 0.002, 0.006))], numeric=True)
    assert NumericVotes(crowd).mean()[0] - 1e9 == pytest.approx(0.003, abs=1e-6)


def test_where_no_worker_weighs_anything_all_count_the_same() -> None:
    weight = np.array([0.0, 0.0, 0.0])
    np.testing.assert_allclose(NumericVotes(TINY).mean(weight), [4, 5])
    np.testing.assert_allclose(NumericVotes(TINY).median(weight), [2, 5])


@pytest.mark.parametrize("method", NUMERIC, ids=lambda method: method.name)
def test_there_is_no_posterior_and_the_refusal_says_what_there_is(method: Mean) -> None:
    fitted = pickle.loads(pickle.dumps(method)).fit(TINY)
    for name in ("posterior_", "proba_", "confusion_", "tally_"):
        with pytest.raises(UsageError, match="labels_"):
            getattr(fitted, name)
        assert not hasattr(fitted, name)
    with pytest.raises(NoPosterior):
        fitted.confusion_of([0])
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fitted.nonsense
    assert fitted.labels_.dtype == np.float64
    assert list(fitted.labels_.index) == ["t1", "t2"]
    assert list(fitted.tasks_.columns) == ["estimate", "standard_error", "n_votes"]
    assert list(fitted.workers_.columns) == ["n_votes", "weight", "bias", "mae", "rmse"]
    assert fitted.workers_["n_votes"].tolist() == [2, 1, 1]
    assert metrics.mae({"t1": 0.0}, fitted) >= 0


@pytest.mark.parametrize("method", NUMERIC, ids=lambda method: method.name)
def test_an_unfitted_method_says_so(method: Mean) -> None:
    fresh = find(method.name)()
    for name in ("labels_", "workers_", "tasks_"):
        with pytest.raises(UsageError, match="not fitted yet"):
            getattr(fresh, name)


def test_errors_of_workers_are_those_against_the_estimates() -> None:
    table = Mean().fit(TINY).workers_
    assert table["bias"].to_dict() == pytest.approx({"ann": -1.5, "bob": -2.0, "cy": 5.0})
    assert table["mae"].to_dict() == pytest.approx({"ann": 1.5, "bob": 2.0, "cy": 5.0})
    assert table["rmse"].to_dict() == pytest.approx({"ann": np.sqrt(4.5), "bob": 2.0, "cy": 5.0})


@pytest.mark.parametrize("method", NUMERIC, ids=lambda method: method.name)
def test_known_values_are_kept_and_certain(method: Mean) -> None:
    fitted = find(method.name)().fit(TINY, truth={"t1": 7.5, "elsewhere": 1})
    assert fitted.labels_["t1"] == 7.5
    assert fitted.tasks_.loc["t1", "standard_error"] == 0
    assert fitted.labels_["t2"] == 5


@pytest.mark.parametrize("method", [WeightedMean(), CATD(), PM(), PM(loss="squared")], ids=repr)
def test_known_values_teach_whom_to_trust(method: WeightedMean) -> None:
    # Two workers share an error of 10; without gold, they are the precise ones.
    votes = [(task, worker, task + 10.0 * (worker != "right") + 0.01 * worker.count("i") * (-1) ** task)
             for task in range(20) for worker in ("right", "off", "off too")]  # fmt: skip
    crowd = Crowd.from_triples(votes, numeric=True)
    assert abs(method.fit(crowd).labels_[19] - 29) < 1
    assert abs(method.fit(crowd, truth={task: float(task) for task in range(15)}).labels_[19] - 19) < 1


def test_a_task_nobody_labelled_gets_the_mean_of_the_other_estimates() -> None:
    crowd = Crowd.from_triples([("a", 0, 1.0), ("a", 1, 2.0), ("b", 0, 6.0)], numeric=True, tasks=["a", "b", "c"])
    fitted = Mean().fit(crowd)
    assert fitted.labels_["c"] == pytest.approx((1.5 + 6) / 2)
    assert np.isnan(fitted.tasks_.loc["c", "standard_error"])


def test_truth_is_checked() -> None:
    with pytest.raises(InputError, match="twice"):
        encode_numeric_truth(pd.Series([1.0, 2.0], index=["t1", "t1"]), TINY)
    with pytest.raises(InputError, match="same ids"):
        encode_numeric_truth({"zzz": 1.0}, TINY)
    with pytest.raises(InputError, match="must be numbers"):
        encode_numeric_truth({"t1": "cat"}, TINY)
    with pytest.raises(InputError, match="finite"):
        encode_numeric_truth({"t1": np.inf}, TINY)


def test_what_cannot_be_averaged_is_refused() -> None:
    wild = Crowd.from_triples([("t1", "ann", 1e200)], numeric=True)
    with pytest.raises(InputError, match="1e\\+150"):
        Mean().fit(wild)
    with pytest.raises(InputError, match="numeric=True"):
        Mean().fit(Crowd.from_triples([("t1", "ann", "cat")]))
    with pytest.raises(InputError, match="numbers"):
        DawidSkene().fit(TINY)
    with pytest.raises(UsageError, match="leave start out"):
        CATD().fit(TINY, start=np.zeros(2))


@pytest.mark.parametrize("name", ["mean", "median"])
def test_no_worker_ids_are_needed_for_plain_averages(name: str) -> None:
    anonymous = Crowd.from_frame({"task": ["a", "a", "b"], "label": [1.0, 2.0, 4.0]}, worker=None, numeric=True)
    fitted = find(name)().fit(anonymous)
    assert fitted.labels_.to_dict() == {"a": 1.5, "b": 4.0}
    with pytest.raises(UsageError, match="worker ids"):
        _ = fitted.workers_


@pytest.mark.parametrize("method", [CATD(), PM()], ids=lambda method: method.name)
def test_methods_of_both_kinds_keep_nothing_of_the_other_kind(method: CATD) -> None:
    classes = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in range(3)])
    method.fit(classes)
    assert method.posterior_.shape == (4, 2)
    assert "weight" in method.workers_
    method.fit(TINY)
    assert not hasattr(method, "posterior_")
    method.fit(classes)
    assert not hasattr(method, "estimates_")
    assert method.labels_.tolist() == [0, 1, 0, 1]
