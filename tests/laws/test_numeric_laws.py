"""The laws of `wisecrowd.base.laws` for methods that estimate numbers, on several crowds."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from wisecrowd import load
from wisecrowd.aggregate.numeric._numeric_aggregator import NumericAggregator
from wisecrowd.base.law_inputs import make_extreme_crowds
from wisecrowd.base.registry import find, methods
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import NotConverged, WisecrowdError

#: Methods that correct the offsets of raters, so that an estimate may lie outside the labels of its task.
CORRECTING = {"rater-mean"}
NAMES = [name for name, method in methods("aggregate").items() if "numeric" in method.answer_types]


def crowd_of(seed: int, n_tasks: int, n_workers: int, density: float, scale: float = 1.0) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    truth, error = rng.normal(size=n_tasks), rng.uniform(0.1, 1.5, n_workers)
    label = scale * (truth[task] + error[worker] * rng.normal(size=len(task)))
    return Crowd.from_codes(task, worker, label, tasks=[f"t{i:03d}" for i in range(n_tasks)],
                 workers=[f"w{i:02d}" for i in range(n_workers)], classes=None)  # fmt: skip


CROWDS = {
    "sparse": crowd_of(0, 60, 20, 0.2),
    "dense": crowd_of(1, 30, 8, 0.95),
    "large numbers": crowd_of(2, 50, 15, 0.4, scale=1e6),
}


#: Settings under which slow methods are quick; most laws hold wherever an iteration stops.
QUICK = {"rater-mean": {"max_iter": 150}}


@pytest.fixture(params=NAMES)
def method(request: pytest.FixtureRequest) -> NumericAggregator:
    aggregator = find(request.param)(**QUICK.get(request.param, {}))
    assert isinstance(aggregator, NumericAggregator)
    return aggregator


# The fast tier tries the first crowd only.
@pytest.fixture(
    params=[
        pytest.param(crowd, id=name, marks=[pytest.mark.slow] if number else [])
        for number, (name, crowd) in enumerate(CROWDS.items())
    ]
)
def crowd(request: pytest.FixtureRequest) -> Crowd:
    return request.param


def fit(method: NumericAggregator, crowd: Crowd, **options: Any) -> NumericAggregator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # laws hold wherever an iteration stops
        return copy.deepcopy(method).fit(crowd, **options)


def assert_close(found: Any, wanted: Any, crowd: Crowd) -> None:
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(crowd.label).max())


def rebuild_crowd(crowd: Crowd, change: Callable[[pd.DataFrame], pd.DataFrame], **vocabularies: Any) -> Crowd:
    given = {"tasks": crowd.tasks, "workers": crowd.workers} | vocabularies
    return Crowd.from_frame(change(crowd.to_frame()), numeric=True, **given)


def other(crowd: Crowd, *, label: Any = None, weight: Any = None, tasks: Any = None) -> Crowd:
    return Crowd.from_codes(crowd.task, crowd.worker, crowd.label if label is None else label, classes=None, weight=weight,
                 tasks=crowd.tasks if tasks is None else tasks, workers=crowd.workers)  # fmt: skip


def test_row_order_is_irrelevant(method: NumericAggregator, crowd: Crowd) -> None:
    shuffled = rebuild_crowd(crowd, lambda frame: frame.sample(frac=1, random_state=1))
    assert np.array_equal(fit(method, shuffled).estimates_, fit(method, crowd).estimates_)


def test_names_do_not_matter(method: NumericAggregator, crowd: Crowd) -> None:
    rng = np.random.default_rng(3)
    tasks = dict(zip(crowd.tasks, rng.permutation(crowd.n_tasks).tolist(), strict=True))
    workers = dict(zip(crowd.workers, rng.permutation(crowd.n_workers).tolist(), strict=True))  # type: ignore[arg-type]
    renamed = rebuild_crowd(crowd, lambda f: f.assign(task=f["task"].map(tasks), worker=f["worker"].map(workers)),
                      tasks=range(crowd.n_tasks), workers=range(crowd.n_workers))  # fmt: skip
    plain, found = fit(method, crowd), fit(method, renamed)
    assert_close(found.labels_[[tasks[task] for task in crowd.tasks]], plain.labels_, crowd)
    weight = found.workers_["weight"][[workers[worker] for worker in crowd.workers]]  # type: ignore[union-attr]
    np.testing.assert_allclose(weight, plain.workers_["weight"], rtol=1e-4, atol=1e-6)


def test_estimates_are_finite_and_lie_among_the_labels(method: NumericAggregator, crowd: Crowd) -> None:
    fitted = fit(method, crowd)
    assert fitted.estimates_.shape == (crowd.n_tasks,)
    assert fitted.labels_.index.equals(crowd.tasks)
    assert list(fitted.workers_.index) == list(crowd.workers)  # type: ignore[arg-type]
    slack = 1e-9 * np.abs(crowd.label).max()
    for task in np.flatnonzero(crowd.votes_per_task) if method.name not in CORRECTING else ():
        mine = crowd.label[crowd.task == task]
        assert mine.min() - slack <= fitted.estimates_[task] <= mine.max() + slack
    error = fitted.tasks_["standard_error"].to_numpy()[crowd.votes_per_task > 1]
    assert not (error < 0).any()
    if method.answer_types == ("numeric",):  # the others may let a single label decide, which says nothing of its error
        assert np.isfinite(error).all()


def test_unanimity_wins(method: NumericAggregator, crowd: Crowd) -> None:
    truth = np.arange(crowd.n_tasks) - 7.5
    fitted = fit(method, other(crowd, label=truth[crowd.task]))
    voted = crowd.votes_per_task > 0
    np.testing.assert_allclose(fitted.estimates_[voted], truth[voted], atol=1e-9)


def test_the_unit_does_not_matter(method: NumericAggregator, crowd: Crowd) -> None:
    plain, found = fit(method, crowd), fit(method, other(crowd, label=1000 * crowd.label + 5000))
    assert_close((found.estimates_ - 5000) / 1000, plain.estimates_, crowd)
    assert_close(found.standard_error_ / 1000, plain.standard_error_, crowd)


def test_an_unlabelled_task_changes_nothing(method: NumericAggregator, crowd: Crowd) -> None:
    fitted = fit(method, other(crowd, tasks=[*crowd.tasks, "~nobody saw this"]))
    plain = fit(method, crowd).estimates_
    assert_close(fitted.estimates_[:-1], plain, crowd)
    assert_close(fitted.estimates_[-1], plain[crowd.votes_per_task > 0].mean(), crowd)


def test_a_double_weight_is_a_repeated_row(method: NumericAggregator, crowd: Crowd) -> None:
    heavy = fit(method, other(crowd, weight=crowd.weight * 2))
    twice = fit(method, Crowd.concat([crowd, crowd], duplicates="keep"))
    assert_close(twice.estimates_, heavy.estimates_, crowd)
    assert_close(twice.standard_error_, heavy.standard_error_, crowd)
    pd.testing.assert_frame_equal(twice.workers_, heavy.workers_, rtol=1e-4)


def test_extreme_weights_give_finite_results(method: NumericAggregator, crowd: Crowd) -> None:
    for votes in make_extreme_crowds(crowd).values():
        fitted = fit(method, votes)
        assert np.isfinite(fitted.estimates_[votes.votes_per_task > 0]).all()


def test_input_is_unchanged(method: NumericAggregator, crowd: Crowd) -> None:
    before, parameters = copy.deepcopy(crowd), str(method.get_params())
    states = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index,union-attr]  # noqa: NPY002
    assert str(fit(method, crowd).get_params()) == parameters
    assert crowd == before
    assert random.getstate() == states[0]
    assert np.array_equal(np.random.get_state()[1], states[1])  # type: ignore[index]  # noqa: NPY002


def test_same_seed_same_bits(method: NumericAggregator, crowd: Crowd) -> None:
    once = fit(method, crowd)
    for again in (fit(method, crowd), fit(once, crowd)):
        assert np.array_equal(once.estimates_, again.estimates_)


def test_copies_are_equal(method: NumericAggregator, crowd: Crowd, tmp_path: Path) -> None:
    fitted = fit(method, crowd)
    assert str(clone(method).get_params()) == str(method.get_params())
    fitted.save(tmp_path / "model")
    for same in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), load(tmp_path / "model")):
        assert isinstance(same, type(fitted))
        assert str(same.get_params()) == str(fitted.get_params())
        pd.testing.assert_series_equal(same.labels_, fitted.labels_)
        pd.testing.assert_frame_equal(same.workers_, fitted.workers_)
        pd.testing.assert_frame_equal(same.tasks_, fitted.tasks_)


def test_gold_is_kept(method: NumericAggregator, crowd: Crowd) -> None:
    known = {crowd.tasks[0]: 123.0, crowd.tasks[-1]: -4.5}
    assert fit(method, crowd, truth=known).labels_[list(known)].to_dict() == known


def test_the_objective_never_falls(method: NumericAggregator, crowd: Crowd) -> None:
    trace = getattr(fit(method, crowd), "trace_", None)
    if trace is not None:
        assert (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all()


ODD = {
    "one label": [("t", "w", 1.0)],
    "one worker": [(task, "w", float(task)) for task in range(5)],
    "one label per task": [(task, task, float(task)) for task in range(5)],
    "all the same": [(task, worker, 2.0) for task in range(4) for worker in range(3)],
    "all zero": [(task, worker, 0.0) for task in range(4) for worker in range(3)],
    "a constant worker": [(task, worker, 1.0 if worker else float(task)) for task in range(5) for worker in range(3)],
    "one task": [(0, worker, float(worker % 7)) for worker in range(400)],
    "very large": [(task, worker, 1e100 * (task + worker)) for task in range(4) for worker in range(3)],
    "very small": [(task, worker, 1e-100 * (task + worker)) for task in range(4) for worker in range(3)],
    "infinite": [("t", "w", np.inf), ("t", "v", 1.0)],
}


@pytest.mark.parametrize("odd", ODD)
def test_degenerate_crowds_are_handled(method: NumericAggregator, odd: str) -> None:
    crowd = Crowd.from_triples(ODD[odd], numeric=True)
    wide = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=[*crowd.tasks, "idle task"],
                 workers=[*crowd.workers, "idle worker"], classes=None)  # fmt: skip
    for votes in (crowd, wide):
        try:
            fitted = fit(method, votes)
        except WisecrowdError as refusal:
            assert len(str(refusal)) > 20, "a refusal must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(fitted.estimates_).all()
            assert np.isfinite(fitted.workers_["mae"][: crowd.n_workers]).all()
