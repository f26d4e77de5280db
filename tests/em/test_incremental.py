"""New votes: predictions for new tasks, partial fits, and their convergence to the batch fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import DawidSkene, ModelAverage, OneCoin, Panel, simulate_crowd
from wisecrowd.base.persistence import load
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import DataWarning, InputError, UsageError

FAMILY = [method for method in methods("aggregate").values() if issubclass(method, ConfusionEM)]
#: Settings under which slow methods are quick.
QUICK: dict[str, dict[str, Any]] = {"ebcc": {"n_init": 2}}
MADE = simulate_crowd(n_tasks=300, n_workers=15, n_classes=3, votes_per_task=5, random_state=2)
ORDERED_CROWD = Crowd.from_frame(MADE.crowd.to_frame(), classes=MADE.crowd.classes, ordered=True)


def crowd_for(method: type[ConfusionEM]) -> Crowd:
    """Return votes that the method takes."""
    return MADE.crowd if "categorical" in method.answer_types else ORDERED_CROWD


def by_worker_and_task(crowd: Crowd, n_batches: int) -> list[Crowd]:
    """Batches that bring new votes on old tasks, new tasks and new workers."""
    batch = np.random.default_rng(0).integers(n_batches, size=crowd.n_votes)
    batch[crowd.worker == 0] = n_batches - 1  # somebody who comes late
    batch[crowd.task < 20] = n_batches - 1
    frames = [crowd.take(batch == n).to_frame() for n in range(n_batches)]
    return [Crowd.from_frame(frame, classes=crowd.classes, ordered=crowd.answer_type == "ordinal") for frame in frames]


@pytest.mark.parametrize("method", [DawidSkene, OneCoin])
def test_partial_fits_and_convergence_equal_the_batch_fit(method: type[ConfusionEM]) -> None:
    batch = method(tol=1e-13, max_iter=5000).fit(MADE.crowd)
    parts = method(tol=1e-13, max_iter=5000)
    for votes in by_worker_and_task(MADE.crowd, 4):
        parts.partial_fit(votes)
    assert parts.posterior_.shape == batch.posterior_.shape
    assert (parts.labels_ == batch.labels_).mean() > 0.93, "already close before convergence"
    parts.converge()
    np.testing.assert_allclose(parts.posterior_, batch.posterior_, atol=1e-4)
    assert parts.trace_[-1] == pytest.approx(batch.trace_[-1], abs=1e-6)


@pytest.mark.parametrize("method", FAMILY, ids=lambda method: method.name)
def test_the_whole_family_takes_new_votes(method: type[ConfusionEM]) -> None:
    first, second = by_worker_and_task(crowd_for(method), 2)
    fitted = method(**QUICK.get(method.name, {})).partial_fit(first).partial_fit(second)
    assert len(fitted.labels_) == 300
    assert np.isfinite(fitted.posterior_).all()
    assert float((fitted.labels_ == MADE.truth).mean()) > 0.7
    assert len(fitted.converge().workers_) == 15


@pytest.mark.parametrize("method", FAMILY, ids=lambda method: method.name)
def test_predicting_the_fitted_tasks_gives_their_posterior(method: type[ConfusionEM]) -> None:
    fitted = method(**QUICK.get(method.name, {})).fit(crowd_for(method))
    np.testing.assert_allclose(fitted.predict_proba(crowd_for(method)), fitted.posterior_, atol=1e-6)


def test_new_tasks_profit_from_what_is_known_of_workers() -> None:
    fitted = DawidSkene().fit(MADE.crowd[:200])
    new = MADE.crowd[200:]
    alone = (DawidSkene().fit(new).labels_ == MADE.truth[200:]).mean()
    helped = (fitted.predict(new) == MADE.truth[200:]).mean()
    assert helped >= alone


def test_strangers_count_as_the_average_worker() -> None:
    fitted = DawidSkene().fit(MADE.crowd)
    new = Crowd.from_triples([("n", "stranger", MADE.crowd.classes[0])], classes=MADE.crowd.classes)
    share = fitted.predict_proba(new).loc["n"].to_numpy()
    assert share.argmax() == 0
    assert share[0] < 0.95


def test_gold_stays_clamped_through_partial_fits() -> None:
    first, second = by_worker_and_task(MADE.crowd, 2)
    wrong = {first.tasks[0]: MADE.crowd.classes[2]}
    fitted = DawidSkene().partial_fit(first, truth=wrong).partial_fit(second)
    assert fitted.labels_[first.tasks[0]] == MADE.crowd.classes[2]
    assert fitted.converge().labels_[first.tasks[0]] == MADE.crowd.classes[2]


def test_what_cannot_be_done_is_said(tmp_path: object) -> None:
    fitted = DawidSkene().fit(MADE.crowd)
    with pytest.raises(UsageError, match="begin with partial_fit"):
        fitted.partial_fit(MADE.crowd)
    with pytest.raises(InputError, match="classes that the fit did not know: 'new class'"):
        fitted.predict(Crowd.from_triples([("a", "b", "new class")]))
    fitted.save(f"{tmp_path}/model")
    with pytest.raises(UsageError, match="a saved model contains no votes"):
        load(f"{tmp_path}/model").partial_fit(MADE.crowd)  # type: ignore[attr-defined]
    assert load(f"{tmp_path}/model").predict(MADE.crowd).equals(fitted.predict(MADE.crowd))  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", [DawidSkene, ModelAverage, OneCoin, Panel])
def test_ids_in_new_votes_may_be_text_where_the_fit_had_numbers(method: Any) -> None:
    fitted = method().fit(Crowd.from_triples([(t, 28 + w, (t + (w == 3)) % 2) for t in range(20) for w in range(4)]))
    new = [(100, 28, 1), (100, 29, 1), (100, 31, 0)]
    expected = fitted.predict_proba(Crowd.from_triples(new))
    for as_text in (lambda vote: (str(vote[0]), str(vote[1]), vote[2]), lambda vote: tuple(map(str, vote))):
        given = fitted.predict_proba(Crowd.from_triples([as_text(vote) for vote in new]))
        np.testing.assert_array_equal(given, expected)
    strangers = fitted.predict_proba(Crowd.from_triples([(t, w + 1000, y) for t, w, y in new]))
    assert np.abs(strangers.to_numpy() - expected.to_numpy()).max() > 0.01


def test_workers_in_another_spelling_are_strangers_with_a_warning() -> None:
    fitted = DawidSkene().fit(Crowd.from_triples([(t, w, t % 2) for t in range(8) for w in ("28", "bob")]))
    new = Crowd.from_triples([("n", "28.0", 1), ("n", "Bob ", 1), ("n", "cy", 0)])
    with pytest.warns(DataWarning, match="2 workers of the new votes count as new.*'28.0' and '28'"):
        fitted.predict(new)


def test_partial_fits_unite_numbers_and_texts() -> None:
    old = Crowd.from_triples([(t, 28 + w, t % 2) for t in range(8) for w in range(2)])
    method = DawidSkene().partial_fit(old).partial_fit(Crowd.from_triples([("3", "30", 1), ("9", "28", 1)]))
    assert method.worker_index_.tolist() == [28, 29, 30]
    assert method.task_index_.tolist() == [*range(8), 9]


def test_a_start_carries_over_between_numbers_and_texts() -> None:
    votes = [(t, 28 + w, (t * (w + 3)) % 3) for t in range(30) for w in range(4)]
    numbers, texts = Crowd.from_triples(votes), Crowd.from_triples([(str(t), str(w), str(y)) for t, w, y in votes])
    start = DawidSkene().fit(numbers)
    assert DawidSkene().fit(texts, start=start).n_iter_ == DawidSkene().fit(numbers, start=start).n_iter_
