"""Learners as folders: what was trained comes back, and nothing in a folder is code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import DawidSkene, Raykar, TwoStage, load, simulate_crowd
from wisecrowd.base.learner import Learner
from wisecrowd.errors import UsageError

MADE = simulate_crowd(60, 8, 3, votes_per_task=3)
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    np.eye(3)[MADE.crowd.classes.get_indexer(MADE.truth)] + RNG.normal(size=(60, 3)), index=MADE.truth.index
)
NEW = RNG.normal(size=(5, 3))


def there_and_back(fitted: Learner, folder: Path) -> Learner:
    fitted.save(folder / "model")
    loaded = load(folder / "model")
    assert isinstance(loaded, type(fitted))
    return loaded


@pytest.mark.parametrize("method", [Raykar(l2=3), Raykar(cv=2, shrinkage=True), TwoStage(hard=True)], ids=repr)
def test_a_learner_answers_as_before(method: Learner, tmp_path: Path) -> None:
    fitted = method.fit(X, MADE.crowd)
    loaded = there_and_back(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
    np.testing.assert_array_equal(loaded.predict(NEW), fitted.predict(NEW))
    np.testing.assert_array_equal(
        loaded.predict_worker_proba(NEW, MADE.crowd.workers[:2]),
        fitted.predict_worker_proba(NEW, MADE.crowd.workers[:2]),
    )
    assert loaded.score(X, MADE.truth) == fitted.score(X, MADE.truth)
    assert loaded.feature_names_ == fitted.feature_names_
    pd.testing.assert_frame_equal(loaded.workers_, fitted.workers_)
    assert sorted(vars(loaded)) == sorted(vars(fitted))


def test_the_classifier_is_arrays_and_no_pickle(tmp_path: Path) -> None:
    Raykar().fit(X, MADE.crowd).save(tmp_path / "model")
    with np.load(tmp_path / "model" / "classifier_.npz", allow_pickle=False) as arrays:
        assert arrays["coefficients"].shape == (4, 3)
    state = json.loads((tmp_path / "model" / "method.json").read_text(encoding="utf-8"))
    assert sorted(state["parts"]) == ["classifier_", "feature_profile_"]


def test_a_method_within_a_method(tmp_path: Path) -> None:
    fitted = TwoStage(aggregator=DawidSkene(smoothing=0.3, prior=np.array([0.2, 0.3, 0.5]))).fit(X, MADE.crowd)
    loaded = there_and_back(fitted, tmp_path)
    assert isinstance(loaded, TwoStage)
    assert repr(loaded) == repr(fitted)
    assert loaded.aggregator.prior.tolist() == [0.2, 0.3, 0.5]
    np.testing.assert_array_equal(loaded.fit(X, MADE.crowd).posterior_, fitted.posterior_)


def test_an_unfitted_learner_keeps_its_parameters(tmp_path: Path) -> None:
    loaded = there_and_back(Raykar(l2=7.0), tmp_path)
    assert repr(loaded) == "Raykar(l2=7.0)"
    with pytest.raises(UsageError, match="not fitted"):
        loaded.predict(NEW)


def test_tuples_stay_tuples(tmp_path: Path) -> None:
    loaded = there_and_back(Raykar(classifier=(1, (2.5, "x"))), tmp_path)
    assert loaded.get_params()["classifier"] == (1, (2.5, "x"))


def test_what_is_code_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    estimator = LogisticRegression(max_iter=1000)
    with pytest.raises(
        UsageError, match=r"LogisticRegression cannot be saved as arrays; use the classifiers 'logistic'"
    ):
        Raykar(classifier=estimator, max_iter=5, tol=0).fit(X, MADE.crowd).save(tmp_path / "model")
    with pytest.raises(
        UsageError, match=r"classifier of Raykar is of the type LogisticRegression, which cannot be saved"
    ):
        Raykar(classifier=estimator).save(tmp_path / "model")
    with pytest.raises(UsageError, match="classifier of TwoStage is of the type there_and_back"):
        TwoStage(classifier=there_and_back).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_learner_that_cannot_be_saved_again_stays(tmp_path: Path) -> None:
    Raykar(l2=2.0).save(tmp_path / "model")
    with pytest.raises(UsageError, match="cannot be saved"):
        Raykar(classifier=object()).save(tmp_path / "model")
    assert repr(load(tmp_path / "model")) == "Raykar(l2=2.0)"
