"""Dawid–Skene with unimodal rows."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd, DawidSkene, OrdinalDawidSkene
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.heldout_votes import assign_vote_folds, heldout_log_probs
from wisecrowd.simulate.ratings import simulate_ratings

MADE = simulate_ratings(n_tasks=300, n_workers=15, n_classes=4, votes_per_task=5, random_state=0)


@pytest.mark.slow
def test_it_equals_dawid_skene_where_rows_are_unimodal_anyway() -> None:
    # Many votes per worker, and errors that fall with the distance: the constraint is not active.
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 2000)
    confusion = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    votes = [
        (task, worker, int(rng.choice(3, p=confusion[label])))
        for task, label in enumerate(truth)
        for worker in range(3)
    ]
    crowd = Crowd.from_triples(votes, ordered=True)
    plain = DawidSkene().fit(crowd)
    ordinal = OrdinalDawidSkene(decay=0.0).fit(crowd)
    assert np.allclose(ordinal.posterior_, plain.posterior_, atol=1e-3)


def test_two_classes_are_better_than_chance_in_every_row() -> None:
    rng = np.random.default_rng(1)
    crowd = Crowd.from_triples(
        [(task, worker, int(rng.integers(2))) for task in range(100) for worker in range(4)], ordered=True
    )
    confusion = OrdinalDawidSkene(smoothing=0, diagonal=0).fit(crowd).confusion_
    assert (np.diagonal(confusion, axis1=1, axis2=2) >= 0.5 - 1e-12).all()


def test_it_predicts_held_out_ratings_better_than_dawid_skene() -> None:
    fold = assign_vote_folds(MADE.crowd, 5, 0)
    ordinal, plain = (
        heldout_log_probs(method, MADE.crowd, None, fold, 5).mean(axis=0).max()
        for method in (OrdinalDawidSkene(), DawidSkene())
    )
    assert ordinal > plain + 0.01


def test_workers_have_signed_errors() -> None:
    workers = OrdinalDawidSkene().fit(MADE.crowd).workers_
    assert workers["bias"].corr(-MADE.workers["severity"]) > 0.9
    assert (workers["mae"] >= workers["bias"].abs() - 1e-12).all()


def test_classes_without_order_are_refused_with_advice() -> None:
    crowd = Crowd.from_triples([("t", "w", "happy"), ("t", "v", "sad")])
    with pytest.raises(InputError, match="--ordered --classes low,middle,high"):
        OrdinalDawidSkene().fit(crowd)


def test_a_decay_above_one_is_refused() -> None:
    with pytest.raises(UsageError, match="decay must be between 0 and 1"):
        OrdinalDawidSkene(decay=2.0).fit(MADE.crowd)
