"""Aggregate, then train."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import DawidSkene, MajorityVote, TwoStage
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation


def test_is_a_classifier_on_the_aggregators_answer(made: Simulation, X: pd.DataFrame) -> None:
    model = TwoStage(aggregator=DawidSkene(smoothing=0.5)).fit(X, made.crowd)
    first = DawidSkene(smoothing=0.5).fit(made.crowd)
    assert np.array_equal(model.posterior_, first.posterior_)
    rows = X.loc[made.crowd.tasks].to_numpy()
    assert np.allclose(model.predict_proba(rows), Logistic().fit(rows, first.posterior_).predict_proba(rows))


def test_hard_targets_are_the_most_probable_class(made: Simulation, X: pd.DataFrame) -> None:
    model = TwoStage(aggregator="majority-vote", hard=True).fit(X, made.crowd)
    rows = X.loc[made.crowd.tasks].to_numpy()
    targets = np.eye(3)[MajorityVote().fit(made.crowd).posterior_.argmax(axis=1)]
    assert np.allclose(model.predict_proba(rows), Logistic().fit(rows, targets).predict_proba(rows))


def test_gold_goes_to_the_first_stage(made: Simulation, X: pd.DataFrame) -> None:
    gold = made.truth.iloc[:30]
    assert (TwoStage().fit(X, made.crowd, truth=gold).labels_.loc[gold.index] == gold).all()


def test_works_without_worker_ids(made: Simulation, X: pd.DataFrame) -> None:
    anonymous = made.crowd.drop_workers()
    assert TwoStage(aggregator="majority-vote").fit(X, anonymous).score(X, made.truth) > 0.7


def test_first_stage_must_aggregate(made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="must be an aggregator"):
        TwoStage(aggregator="raykar").fit(X, made.crowd)
