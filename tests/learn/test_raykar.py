"""Raykar's model against brute force, Dawid and Skene, and its own options."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from wisecrowd import Crowd, DawidSkene, Raykar
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation


def test_a_constant_feature_makes_it_dawid_and_skene(made: Simulation) -> None:
    constant = pd.DataFrame({"x": 1.0}, index=made.crowd.tasks)
    ours = Raykar(tol=1e-10, max_iter=500).fit(constant, made.crowd)
    theirs = DawidSkene(tol=1e-10, max_iter=500, accelerate=False).fit(made.crowd)
    assert np.allclose(ours.posterior_, theirs.posterior_, atol=1e-4)
    assert np.allclose(ours.confusion_, theirs.confusion_, atol=1e-4)


def test_objective_never_falls(made: Simulation, X: pd.DataFrame) -> None:
    trace = Raykar().fit(X, made.crowd).trace_
    assert (np.diff(trace) >= -1e-8 * np.abs(trace[1:])).all()


def test_features_help(made: Simulation, X: pd.DataFrame) -> None:
    votes_alone = (DawidSkene().fit(made.crowd).labels_ == made.truth).mean()
    assert (Raykar().fit(X, made.crowd).labels_ == made.truth).mean() >= votes_alone + 0.02


def test_gold_is_kept_and_teaches(made: Simulation, X: pd.DataFrame) -> None:
    gold = made.truth.iloc[:40]
    model = Raykar().fit(X, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()


def test_a_task_without_votes_gets_what_its_features_say(made: Simulation, X: pd.DataFrame) -> None:
    crowd = Crowd.from_frame(made.crowd.to_frame(), tasks=[*made.crowd.tasks, "unseen"])
    rows = pd.concat([X, pd.DataFrame([X.iloc[0].to_numpy()], index=["unseen"], columns=X.columns)])
    model = Raykar().fit(rows, crowd)
    assert np.allclose(model.proba_.loc["unseen"], model.predict_proba(rows.loc[["unseen"]])[0], atol=1e-6)


def test_any_scikit_learn_classifier_can_stand_in(made: Simulation, X: pd.DataFrame) -> None:
    trees = Raykar(classifier=HistGradientBoostingClassifier(max_iter=20, random_state=0), max_iter=4, tol=0.0)
    assert trees.fit(X, made.crowd).score(X, made.truth) > 0.7


def test_shrinkage_draws_workers_with_few_labels_to_the_crowd(made: Simulation, X: pd.DataFrame) -> None:
    free, drawn = (Raykar(shrinkage=strength).fit(X, made.crowd) for strength in (0.5, 500.0))
    away = [np.abs(model.confusion_ - model.crowd_confusion_).mean() for model in (free, drawn)]
    assert away[1] < 0.25 * away[0]
    assert Raykar(shrinkage=True).fit(X, made.crowd).strength_ > 0


def test_cross_fitting_lets_no_task_hear_its_own_votes(made: Simulation) -> None:
    # Features that identify every task: without cross-fitting the classifier repeats the votes, with it it cannot know.
    identity = pd.DataFrame(np.eye(made.crowd.n_tasks) * 10, index=made.crowd.tasks)
    own = Raykar(l2=0.01, max_iter=3, tol=0.0).fit(identity, made.crowd).task_prior_
    others = Raykar(l2=0.01, max_iter=3, tol=0.0, cv=5).fit(identity, made.crowd).task_prior_
    assert own.max(axis=1).mean() > 0.8
    assert others.max(axis=1).mean() < 0.7


def test_unseen_worker_answers_as_the_crowd(made: Simulation, X: pd.DataFrame) -> None:
    model = Raykar().fit(X, made.crowd)
    known, unknown = model.predict_worker_proba(X, [made.crowd.workers[0], "nobody"]).transpose(1, 0, 2)
    assert np.allclose(known, model.predict_proba(X) @ model.confusion_[0])
    assert np.allclose(unknown, model.predict_proba(X) @ model.crowd_confusion_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"cv": 1}, "cv must be 0"), ({"max_iter": 0}, "max_iter must be 1"), ({"l2": -1.0}, "must not be negative"),
     ({"calibrate": True}, "calibrate needs cross-fitting")],
)  # fmt: skip
def test_senseless_settings_are_refused(
    settings: dict[str, float], message: str, made: Simulation, X: pd.DataFrame
) -> None:
    with pytest.raises(UsageError, match=message):
        Raykar(**settings).fit(X, made.crowd)
