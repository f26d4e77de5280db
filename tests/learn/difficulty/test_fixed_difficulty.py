"""Fixed Difficulty EM: anchored, it reproduces the paper; unanchored, it fails as it must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import wisecrowd
from wisecrowd import Crowd, FixedDifficulty, Raykar
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.simulate import DifficultyCrowd, simulate_gaussian_difficulty

pytestmark = pytest.mark.usefixtures("never_falls")


def right(model: FixedDifficulty | Raykar) -> np.ndarray:
    return np.diagonal(model.confusion_, axis1=1, axis2=2)


def test_gaussian_benchmark(published: DifficultyCrowd) -> None:
    ours = FixedDifficulty().fit(published.features, published.crowd)
    theirs = Raykar().fit(published.features, published.crowd)
    assert metrics.auc(published.truth, ours) == pytest.approx(0.970, abs=0.006)
    assert metrics.auc(published.truth, ours) >= max(0.97, metrics.auc(published.truth, theirs) + 0.01)
    assert metrics.accuracy(published.truth, ours) == pytest.approx(0.908, abs=0.01)
    assert ours.score(published.test_features, published.test_truth) == pytest.approx(0.94, abs=0.005)
    true = published.accuracy.to_numpy()
    assert np.abs(right(ours) - true).mean() < 0.05 < np.abs(right(theirs) - true).mean()


def test_maximum_likelihood_makes_everybody_perfect(published: DifficultyCrowd) -> None:
    """The known failure, and that the anchor guards against it."""
    free, held, frozen = (
        FixedDifficulty(ability_update=how).fit(published.features, published.crowd) for how in ("ml", "map", "frozen")
    )
    true = published.accuracy.to_numpy()
    assert right(free).mean() > 0.95
    assert metrics.auc(published.truth, free) < 0.9
    assert np.abs(right(held) - true).max() < 0.13
    assert np.abs(right(held) - true).mean() < 0.1
    assert metrics.auc(published.truth, frozen) >= 0.97


def test_the_anchor_holds_however_much_data_there_are() -> None:
    errors = []
    for n_tasks in (1000, 8000):
        made = simulate_gaussian_difficulty(n_tasks, 10, random_state=4)
        model = FixedDifficulty().fit(made.features, made.crowd)
        errors.append(np.abs(right(model) - made.accuracy.to_numpy()).mean())
    assert max(errors) < 0.06


def test_vote_shares_as_the_prior_are_no_better_than_votes(published: DifficultyCrowd) -> None:
    """Algorithm 3 as printed: the classifier never enters the posterior."""
    model = FixedDifficulty(prior="votes", kappa=0.0).fit(published.features, published.crowd)
    assert metrics.auc(published.truth, model) < 0.75


def test_easiness_follows_from_the_votes_alone(small: DifficultyCrowd) -> None:
    model = FixedDifficulty(kappa=0.0).fit(small.features, small.crowd)
    share = small.crowd.vote_counts[:, 1] / 3
    np.testing.assert_allclose(model.tasks_["easiness"], 4 * (share - 0.5) ** 2)
    shrunk = FixedDifficulty(kappa=1.0).fit(small.features, small.crowd).tasks_["easiness"]
    share = (small.crowd.vote_counts[:, 1] + 0.5) / 4
    np.testing.assert_allclose(shrunk, 4 * (share - 0.5) ** 2)


def test_a_single_vote_does_not_make_a_task_easiest(small: DifficultyCrowd) -> None:
    single = small.crowd.take(np.unique(small.crowd.task, return_index=True)[1])
    model = FixedDifficulty().fit(small.features, single)
    np.testing.assert_allclose(model.tasks_["easiness"], 0.25)


def test_a_task_that_nobody_labelled_is_what_the_classifier_expects(small: DifficultyCrowd) -> None:
    crowd = small.crowd.take(np.flatnonzero(small.crowd.task >= 10))
    for kappa in (0.0, 1.0):
        model = FixedDifficulty(kappa=kappa).fit(small.features, crowd)
        np.testing.assert_allclose(model.posterior_[:10], model.predict_proba(small.features.iloc[:10]), atol=1e-9)
        np.testing.assert_allclose(model.tasks_["easiness"].iloc[:10], 0, atol=1e-12)


@pytest.mark.parametrize("update", ["map", "ml", "frozen"])
def test_the_objective_never_falls(small: DifficultyCrowd, update: str) -> None:
    accuracy = np.random.default_rng(1).uniform(0.6, 0.95, size=(8, 3))
    three = simulate_gaussian_difficulty(300, 10, accuracy=accuracy, sharpness=1.0, votes_per_task=4)
    for made in (small, three):
        model = FixedDifficulty(ability_update=update).fit(made.features, made.crowd)
        assert np.diff(model.trace_).min() > -1e-7


def test_flipping_the_classes_flips_the_answer(small: DifficultyCrowd) -> None:
    crowd = small.crowd
    flipped = Crowd.from_codes(
        crowd.task, crowd.worker, 1 - crowd.label, tasks=crowd.tasks, workers=crowd.workers, classes=[0, 1]
    )
    one, two = (FixedDifficulty(tol=1e-10).fit(small.features, votes) for votes in (crowd, flipped))
    np.testing.assert_allclose(one.posterior_, two.posterior_[:, ::-1], atol=1e-4)
    np.testing.assert_allclose(one.workers_["sensitivity"], two.workers_["specificity"], atol=1e-4)


def test_half_of_the_labels_change_the_answer_a_little(published: DifficultyCrowd) -> None:
    rows = np.sort(np.random.default_rng(0).choice(5000, size=2500, replace=False))
    whole, less = (FixedDifficulty().fit(published.features, c) for c in (published.crowd, published.crowd.take(rows)))
    assert np.abs(right(whole) - right(less)).mean() < 0.1
    assert metrics.auc(published.truth, less) > 0.93


def test_a_network_in_the_place_of_logistic_regression(published: DifficultyCrowd) -> None:
    pytest.importorskip("torch")
    from wisecrowd.nn.network_classifier import NetworkClassifier

    model = FixedDifficulty(classifier=NetworkClassifier("mlp", epochs=20), max_iter=15, tol=0.0)
    model.fit(published.features, published.crowd)
    assert metrics.auc(published.truth, model) > 0.96
    assert model.score(published.test_features, published.test_truth) > 0.92


def test_new_tasks_are_as_easy_as_the_old_ones_were(small: DifficultyCrowd) -> None:
    model = FixedDifficulty().fit(small.features, small.crowd)
    said = model.predict_worker_proba(pd.DataFrame({"x1": [40.0], "x2": [40.0]}), small.crowd.workers)
    wanted = 1 / (1 + np.exp(-model.ability_[:, 1] * model.tasks_["easiness"].mean()))
    np.testing.assert_allclose(said[0, :, 1], wanted, atol=1e-6)


def test_it_is_an_estimator_and_survives_the_disk(small: DifficultyCrowd, tmp_path: Path) -> None:
    model = clone(FixedDifficulty(anchor=0.2)).fit(small.features, small.crowd)
    model.save(tmp_path / "model")
    again = wisecrowd.load(tmp_path / "model")
    assert isinstance(again, FixedDifficulty)
    np.testing.assert_array_equal(again.predict_proba(small.test_features), model.predict_proba(small.test_features))
    pd.testing.assert_frame_equal(again.tasks_, model.tasks_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"kappa": -1.0}, "kappa"), ({"anchor": -1.0}, "anchor"), ({"prior": "uniform"}, "prior")],
)
def test_bad_settings_are_refused(small: DifficultyCrowd, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FixedDifficulty(**settings).fit(small.features, small.crowd)
