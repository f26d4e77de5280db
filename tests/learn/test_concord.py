"""Concord: what it chooses, and that choosing looks at no truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd import Concord, Crowd, Raykar, load
from wisecrowd.simulate import Simulation


def test_the_chosen_ridge_predicts_hidden_votes_as_well_as_any(made: Simulation, X: pd.DataFrame) -> None:
    model = Concord().fit(X, made.crowd)
    table = model.choice_.set_index("l2")
    assert len(table) >= 3
    assert model.l2_ == table.index[table["chosen"]][0] >= table["log_likelihood"].idxmax()
    assert table.loc[model.l2_, "log_likelihood"] >= table["log_likelihood"].max() - 0.05


def test_a_given_ridge_is_not_searched(made: Simulation, X: pd.DataFrame) -> None:
    model = Concord(l2=3.0).fit(X, made.crowd)
    assert model.choice_["l2"].tolist() == [3.0]
    roots = np.sign(X) * np.sqrt(np.abs(X))
    twin = Raykar(l2=3.0, shrinkage=True, cv=5, calibrate=True, max_iter=8, tol=0.0).fit(roots, made.crowd)
    assert np.allclose(model.posterior_, twin.posterior_, atol=5e-3)


def test_saved_and_loaded_it_answers_the_same(made: Simulation, X: pd.DataFrame, tmp_path: Path) -> None:
    model = Concord(l2=3.0).fit(X, made.crowd)
    model.save(tmp_path / "model")
    assert np.allclose(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


def test_one_vote_per_task_is_enough_when_features_agree(featured: Callable[..., Any]) -> None:
    made, X = featured(n_tasks=600)
    once = made.crowd.to_frame().drop_duplicates("task")
    crowd = Crowd.from_frame(once, workers=made.crowd.workers, classes=made.crowd.classes)
    right = (once["label"].to_numpy() == made.truth.loc[once["task"]].to_numpy()).mean()
    assert Concord(l2=3.0).fit(X, crowd).score(X, made.truth) > right + 0.05


def test_predictions_are_calibrated_by_default_without_truth(featured: Callable[..., Any]) -> None:
    made, X = featured(n_tasks=600)
    train, test = made.crowd.tasks[:300], made.crowd.tasks[300:]
    plain, calibrated = (Concord(calibration=share).fit(X, made.crowd[:300]) for share in (0.0, 0.2))
    default = Concord().fit(X, made.crowd[:300])
    assert plain.prediction_sharpness_ == 1.0
    assert default.prediction_sharpness_ == calibrated.prediction_sharpness_ != 1.0
    np.testing.assert_array_equal(plain.posterior_, calibrated.posterior_)
    np.testing.assert_array_equal(plain.predict(X), calibrated.predict(X))
    assert calibrated.choice_.equals(plain.choice_), "the second fit leaves no trace"
    assert len(train) == len(test)
    true_class = plain.classes_.get_indexer(pd.Index(made.truth[test]))
    losses = [
        -np.log(model.predict_proba(X.loc[test])[np.arange(300), true_class]).mean() for model in (plain, calibrated)
    ]
    assert losses[1] < losses[0] + 0.01
