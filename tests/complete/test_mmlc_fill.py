"""MMLCFill: cells are filled with predictions of any learner, and experts are evaluated once per task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import MMLC, Crowd, CrowdLayer, MajorityVote, MMLCFill, Raykar, simulate_crowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 8, "n_experts": 3, "hidden": 8, "gate_hidden": 5}


@pytest.fixture(scope="module")
def made() -> Simulation:
    return simulate_crowd(n_tasks=120, n_workers=9, n_classes=3, votes_per_task=3, random_state=2)


@pytest.fixture(scope="module", name="X")
def features(made: Simulation) -> pd.DataFrame:
    place = made.crowd.classes.get_indexer(pd.Index(made.truth))  # type: ignore[union-attr]
    values = 2.5 * np.eye(3, 4)[place] + np.random.default_rng(3).normal(size=(120, 4))
    return pd.DataFrame(values, index=made.truth.index)


@pytest.fixture(scope="module")
def fitted(made: Simulation, X: pd.DataFrame) -> MMLCFill:
    return MMLCFill(learner=MMLC(**QUICK)).fit(made.crowd, X)


def test_a_missing_vote_is_what_the_learner_finds_likeliest_and_the_others_stay(
    made: Simulation, X: pd.DataFrame, fitted: MMLCFill
) -> None:
    learner = MMLC(**QUICK).fit(X, made.crowd)
    said = learner.predict_worker_proba(X.loc[made.crowd.tasks], made.crowd.workers)
    filled = fitted.fill()
    assert filled.n_votes == 120 * 9  # density one
    new = filled.take(~filled.observed)
    np.testing.assert_array_equal(new.label, said.argmax(axis=2)[new.task, new.worker_codes])
    assert filled.select_observed() == made.crowd
    assert fitted.fill() == filled  # nothing is drawn


def test_answers_are_found_by_position(made: Simulation, X: pd.DataFrame, fitted: MMLCFill) -> None:
    tasks, workers = made.crowd.tasks[[5, 0, 77]], made.crowd.workers[[8, 2]]  # type: ignore[index]
    np.testing.assert_allclose(
        fitted.predict_worker_proba(tasks, workers),
        fitted.learner_.predict_worker_proba(X.loc[tasks], workers),
        atol=1e-6,
    )


@pytest.mark.parametrize("size", ["auto", "labelme", "music"])
def test_the_quick_way_to_all_answers_is_the_general_one(made: Simulation, X: pd.DataFrame, size: Any) -> None:
    learner = MMLC(epochs=2, n_experts=3, gate_hidden=5, classifier=size, precision="double").fit(X, made.crowd)
    rows, workers = X.to_numpy()[:50], np.array([4, 0, 8])
    quick = learner._network_label_probs(learner.network_, rows, workers)
    plain = DeepLearner._network_label_probs(learner, learner.network_, rows, workers)
    np.testing.assert_allclose(quick, plain, atol=1e-12)


def test_experts_are_asked_once_for_a_task_however_many_workers_answer(made: Simulation, fitted: MMLCFill) -> None:
    trunk, asked = fitted.learner_.network_.trunk, []  # type: ignore[attr-defined]
    hook = trunk.register_forward_hook(lambda _, inputs, __: asked.append(len(inputs[0])))
    fitted.fill()
    hook.remove()
    assert sum(asked) <= 2 * made.crowd.n_tasks  # once for the workers, and once for who was not seen


def test_features_bring_in_what_votes_do_not_know(made: Simulation, X: pd.DataFrame) -> None:
    few = made.crowd.limit_votes_per_task(1)
    filled = MMLCFill(learner=MMLC(**QUICK | {"epochs": 30, "learning_rate": 1e-2}), fill_weight=1.0).complete(few, X)
    before, after = ((MajorityVote().fit(votes).labels_ == made.truth).mean() for votes in (few, filled))
    assert after > before + 0.05


@pytest.mark.parametrize("learner", [CrowdLayer(epochs=5, hidden=8), Raykar()])
def test_any_learner_fills(made: Simulation, X: pd.DataFrame, learner: Any) -> None:
    filled = MMLCFill(learner=learner).fit(made.crowd, X)
    assert filled.fill().n_votes == 120 * 9
    assert type(filled.learner_) is type(learner)
    assert not hasattr(learner, "posterior_")  # the one that was given is not fitted itself


def test_by_default_it_is_mmlc_with_this_seed(made: Simulation, X: pd.DataFrame, monkeypatch: Any) -> None:
    monkeypatch.setattr("wisecrowd.nn.epoch_search.MAX_SEARCH_EPOCHS", 3)
    learner = MMLCFill(random_state=7).fit(made.crowd, X).learner_
    assert (type(learner).__name__, learner.random_state) == ("MMLC", 7)  # type: ignore[attr-defined]


def test_tasks_may_be_pictures(made: Simulation, X: pd.DataFrame) -> None:
    frame = made.crowd.to_frame()
    crowd = Crowd.from_frame(frame, tasks=made.crowd.tasks)
    pictures = X.loc[made.crowd.tasks].to_numpy().reshape(120, 2, 2)
    assert MMLCFill(learner=MMLC(**QUICK)).complete(crowd, pictures).n_votes == 120 * 9


def test_what_cannot_be_is_refused(made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="learner must be"):
        MMLCFill(learner=MajorityVote()).fit(made.crowd, X)
    with pytest.raises(UsageError, match="learner must be"):
        MMLCFill(learner="mmlc").fit(made.crowd, X)
    with pytest.raises(UsageError, match="features"):
        MMLCFill().fit(made.crowd)
    with pytest.raises(InputError, match="classes"):
        MMLCFill(learner=MMLC(**QUICK)).complete(
            [("a", "ann", "x"), ("b", "bob", "x")], X.iloc[:2].set_axis(["a", "b"])
        )
