"""The EM machine against brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.aggregate.categorical.dawid_skene import DawidSkene
from wisecrowd.aggregate.categorical.majority_vote import MajorityVote
from wisecrowd.aggregate.categorical.one_coin import OneCoin
from wisecrowd.data.crowd import Crowd
from wisecrowd.em import confusion as em
from wisecrowd.em import loop
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import DataWarning, InputError, NotConverged, UsageError
from wisecrowd.simulate import simulate_crowd


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "assert_monotone", True)


def make(seed: int, n_tasks: int = 40, n_workers: int = 8, n_classes: int = 3, density: float = 0.5) -> Crowd:
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    truth = rng.integers(n_classes, size=n_tasks)
    label = np.where(rng.random(len(task)) < 0.7, truth[task], rng.integers(n_classes, size=len(task)))
    return Crowd.from_codes(
        task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes)
    )


def brute_log_likelihood(crowd: Crowd, prior: Any, confusion: Any) -> float:
    """Sum over all joint truths of the probability of truth and votes: exponential, and beyond doubt."""
    total = 0.0
    for truths in itertools.product(range(crowd.n_classes), repeat=crowd.n_tasks):
        probability = math.prod(prior[z] for z in truths)
        for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
            probability *= confusion[worker, truths[task], label]
        total += probability
    return math.log(total)


@pytest.mark.parametrize(
    "method", [DawidSkene(smoothing=0, diagonal=0), OneCoin(smoothing=0, diagonal=0, prior="estimate")]
)
@given(seed=st.integers(0, 30))
def test_the_objective_is_the_brute_force_likelihood(method: Any, seed: int) -> None:
    crowd = make(seed, n_tasks=5, n_workers=3, n_classes=2, density=0.8)
    assert (crowd.votes_per_task > 0).any()
    voted = crowd[np.flatnonzero(crowd.votes_per_task)]
    # One pass from the votes: the trace holds the objective of the parameters that the soft vote gives.
    method.set_params(max_iter=1, tol=0, accelerate=False).fit(voted)
    shares = compute_vote_shares(voted)
    tally = voted.layout.vote_matrix.T @ shares
    label_probs = method._label_probs(tally, voted.pairs)
    confusion = np.full((voted.n_workers, 2, 2), np.nan)
    confusion[voted.pairs.worker, :, voted.pairs.label] = label_probs
    wanted = brute_log_likelihood(voted, shares.mean(axis=0), confusion)
    assert method.trace_[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("method", [DawidSkene(), OneCoin(), DawidSkene(smoothing=0, diagonal=0)])
def test_the_posterior_is_bayes_rule_on_the_learnt_parameters(method: Any) -> None:
    crowd = make(1)
    fitted = method.fit(crowd)
    logit = np.tile(np.log(np.maximum(fitted.prior_, 1e-300)), (crowd.n_tasks, 1))
    confusion = np.maximum(fitted.confusion_, 1e-300)
    np.add.at(logit, crowd.task, np.log(confusion[crowd.worker, :, crowd.label]))
    wanted = np.exp(logit - logit.max(axis=1, keepdims=True))
    np.testing.assert_allclose(fitted.posterior_, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-8)


@pytest.mark.parametrize("method", [DawidSkene, OneCoin])
@pytest.mark.parametrize("accelerate", [True, False])
@given(seed=st.integers(0, 50), smoothing=st.sampled_from([0.0, 0.01, 0.3]), diagonal=st.sampled_from([0.0, 1.0]))
def test_the_penalised_objective_never_falls(
    method: Any, accelerate: bool, seed: int, smoothing: float, diagonal: float
) -> None:
    trace = method(smoothing=smoothing, diagonal=diagonal, accelerate=accelerate, max_iter=2000).fit(make(seed)).trace_
    assert (np.diff(trace) >= -1e-8 * np.abs(trace[1:])).all()


def test_acceleration_reaches_the_same_optimum_in_fewer_passes() -> None:
    crowd = make(3, n_tasks=400, n_workers=30, n_classes=4, density=0.1)
    plain = DawidSkene(accelerate=False, tol=1e-11, max_iter=5000).fit(crowd)
    fast = DawidSkene(tol=1e-11, max_iter=5000).fit(crowd)
    assert fast.trace_[-1] == pytest.approx(plain.trace_[-1], rel=1e-6)
    assert fast.n_iter_ < plain.n_iter_
    assert (fast.labels_ == plain.labels_).mean() > 0.99


def test_gold_teaches_what_workers_are_worth() -> None:
    # Two adversaries outvote one honest worker; gold on half of the tasks turns the answer on the others.
    truth = np.arange(40) % 2
    label_probs = {"ann": truth, "eve": 1 - truth, "ed": 1 - truth}
    crowd = Crowd.from_triples(
        [(task, name, int(votes[task])) for name, votes in label_probs.items() for task in range(40)]
    )
    assert (DawidSkene().fit(crowd).labels_ == truth).mean() == 0
    gold = {task: int(truth[task]) for task in range(20)}
    assert (DawidSkene().fit(crowd, truth=gold).labels_ == truth).all()


def test_warm_start_from_a_posterior_and_from_another_fit() -> None:
    crowd = make(4, n_tasks=200)
    cold = DawidSkene(tol=1e-10).fit(crowd)
    again = DawidSkene(tol=1e-10).fit(crowd, start=cold.proba_)
    assert again.n_iter_ <= 4
    np.testing.assert_allclose(again.posterior_, cold.posterior_, atol=1e-4)
    # Knowledge of workers carries over to tasks that have not been seen, strangers included.
    old, new = crowd[:150], crowd[150:]
    carried = DawidSkene(max_iter=1, tol=0).fit(new, start=DawidSkene().fit(old))
    assert (carried.labels_ == cold.labels_[150:]).mean() > 0.9


def test_restarts_are_reported_and_the_best_is_kept() -> None:
    fitted = DawidSkene(n_init=5, random_state=1).fit(make(5))
    assert len(fitted.restarts_) == 5
    # The first of those that ended on the same top, so that chance does not choose between them.
    assert fitted.trace_[-1] == pytest.approx(fitted.restarts_["objective"].max(), rel=10 * fitted.tol)
    assert fitted.trace_[-1] == fitted.restarts_["objective"][0]
    assert fitted.restarts_["objective"].nunique() > 1, "restarts must really differ"


def test_priors_can_be_estimated_uniform_or_given() -> None:
    crowd = make(6)
    assert DawidSkene(prior="uniform").fit(crowd).prior_.tolist() == pytest.approx([1 / 3] * 3)
    assert DawidSkene(prior=[1, 2, 1]).fit(crowd).prior_.tolist() == [0.25, 0.5, 0.25]
    assert DawidSkene(prior={0: 1, 1: 2, 2: 1}).fit(crowd).prior_.tolist() == [0.25, 0.5, 0.25]
    with pytest.raises(UsageError, match="3 non-negative numbers"):
        DawidSkene(prior=[1, 2]).fit(crowd)
    with pytest.raises(UsageError, match="'estimate', 'uniform'"):
        DawidSkene(prior="uniformly").fit(crowd)


def test_large_tables_in_single_precision_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = make(7, n_tasks=100)
    wanted = DawidSkene(accelerate=False).fit(crowd)
    monkeypatch.setattr(em, "LARGE_TABLE_CELLS", 0)
    monkeypatch.setattr(loop, "assert_monotone", False)
    found = DawidSkene().fit(crowd)
    assert found.tally_.dtype == np.float32
    np.testing.assert_allclose(found.posterior_, wanted.posterior_, atol=1e-3)


def test_stopping_early_warns_with_advice() -> None:
    with pytest.warns(NotConverged, match="raise max_iter"):
        DawidSkene(max_iter=2).fit(make(8))
    DawidSkene(max_iter=2, tol=0).fit(make(8))  # asked for exactly two passes: nothing to warn of


def test_a_crowd_of_single_votes_is_warned_of() -> None:
    crowd = Crowd.from_triples([(task, task % 3, task % 2) for task in range(12)])
    with pytest.warns(DataWarning, match="no task has two votes"):
        DawidSkene().fit(crowd)
    DawidSkene().fit(crowd, truth={0: 0, 1: 1})  # gold tells them apart


def test_classes_that_nobody_voted_for_are_warned_of() -> None:
    made = simulate_crowd(n_tasks=300, n_workers=60, n_classes=6, votes_per_task=2, random_state=0)
    few = made.crowd.take(np.random.default_rng(0).random(made.crowd.n_votes) < 0.55)
    with pytest.warns(
        DataWarning, match="gives 61% of the tasks to the class 'c5', which has .* votes per task are too few"
    ):
        fitted = DawidSkene().fit(few)
    voted = few.tasks[few.votes_per_task > 0]
    right = [(labels[voted] == made.truth[voted]).mean() for labels in (fitted.labels_, OneCoin().fit(few).labels_)]
    assert right[0] < right[1] - 0.2
    DawidSkene().fit(made.crowd)


def test_bad_calls_get_advice() -> None:
    crowd = make(9)
    with pytest.raises(UsageError, match="max_iter"):
        DawidSkene(max_iter=0).fit(crowd)
    with pytest.raises(UsageError, match="max_iter of DawidSkene must be an integer; got 'three'"):
        DawidSkene(max_iter="three").fit(crowd)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="tol of DawidSkene must be a number; got nan"):
        DawidSkene(tol=float("nan")).fit(crowd)
    with pytest.raises(UsageError, match="negative"):
        DawidSkene(smoothing=-1).fit(crowd)
    with pytest.raises(InputError, match="posterior of 40 tasks x 3 classes"):
        DawidSkene().fit(crowd, start=np.ones((2, 2)))
    with pytest.raises(UsageError, match="does not use features"):
        DawidSkene().fit(crowd, np.ones((40, 2)))
    with pytest.raises(InputError, match="no worker ids"):
        DawidSkene().fit(crowd.drop_workers())
    with pytest.raises(InputError, match="this crowd has none"):
        DawidSkene().fit(crowd.take([]))
    with pytest.raises(UsageError, match="not fitted"):
        _ = DawidSkene().labels_


def test_any_frame_can_be_fitted_and_numbers_are_refused() -> None:
    frame = make(10).to_frame()
    assert DawidSkene().fit(frame).labels_.equals(DawidSkene().fit(Crowd.from_frame(frame)).labels_)
    numeric = Crowd.from_frame({"task": [1], "worker": [1], "label": [0.5]}, numeric=True)
    with pytest.raises(InputError, match="these labels are numbers"):
        MajorityVote().fit(numeric)


def test_confusion_of_many_workers_is_refused_whole_and_given_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = DawidSkene().fit(make(11))
    whole = fitted.confusion_
    monkeypatch.setattr("wisecrowd.base.method.MAX_DENSE_CELLS", 20)
    with pytest.raises(UsageError, match=r"confusion_of\(\[0, 1, 2\]\)"):
        _ = fitted.confusion_
    np.testing.assert_array_equal(fitted.confusion_of([2, 0]), whole[[2, 0]])


def test_progress_is_reported() -> None:
    from wisecrowd.utils import progress

    heard: list[tuple[Any, ...]] = []
    with progress.listen(lambda *news: heard.append(news)):
        fitted = DawidSkene(accelerate=False).fit(make(12))
    assert len(heard) == fitted.n_iter_
    assert heard[0][0] == "DawidSkene"
    assert isinstance(fitted.restarts_, pd.DataFrame)
