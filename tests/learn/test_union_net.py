"""UnionNet: both variants against loops over all that anybody could say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from wisecrowd import UnionNet, simulate_crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate import Simulation

pytest.importorskip("torch")

Batch = Callable[..., Any]
QUICK: dict[str, Any] = {"epochs": 3, "hidden": 8, "batch_size": 16, "learning_rate": 0.05, "precision": "double"}


def of_everybody(model: UnionNet, f: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """P(r says l | x), (workers, labels), that sums to one over both."""
    table = model.network_.worker_table("A").detach().numpy()
    if model.variant == "A":
        scores = np.einsum("k,rkl->rl", f, table)
        return np.exp(scores) / np.exp(scores).sum()
    found = np.zeros(table.shape[::2])
    for k, share in enumerate(f):
        found += share * np.exp(table[:, k]) / np.exp(table[:, k]).sum()
    return found


@pytest.mark.parametrize("variant", ["A", "B"])
def test_all_labels_of_all_workers_are_one_choice(
    made: Simulation, X: pd.DataFrame, seen_by: Batch, variant: str
) -> None:
    model = UnionNet(variant=variant, **QUICK).fit(X, made.crowd)
    batch = seen_by(model, X, made.crowd, n_tasks=20)
    f = model.predict_proba(X)
    joint = np.stack([of_everybody(model, f[task]) for task in range(20)])
    assert np.allclose(joint.sum(axis=(1, 2)), 1)
    row, worker, label = batch.task.numpy(), batch.worker.numpy(), batch.label.numpy()
    assert np.isclose(model._loss(batch).item(), -np.log(joint[row, worker, label]).mean())
    given = joint[row, worker] / joint[row, worker].sum(axis=1, keepdims=True)
    assert np.allclose(model._label_log_probs(batch).exp().detach().numpy(), given)


@pytest.mark.parametrize("variant", ["A", "B"])
def test_what_workers_would_say_is_given_that_they_speak(made: Simulation, X: pd.DataFrame, variant: str) -> None:
    model = UnionNet(variant=variant, **QUICK).fit(X, made.crowd)
    answers = model.predict_worker_proba(X.iloc[:4], [*made.crowd.workers[:3], "stranger"])
    assert answers.shape == (4, 4, 3)
    assert np.allclose(answers.sum(axis=2), 1)
    joint = np.stack([of_everybody(model, f) for f in model.predict_proba(X.iloc[:4])])[:, :3]
    assert np.allclose(answers[:, :3], joint / joint.sum(axis=2, keepdims=True))


@pytest.mark.parametrize("variant", ["A", "B"])
def test_confusion_is_what_a_certain_network_would_mean(made: Simulation, X: pd.DataFrame, variant: str) -> None:
    model = UnionNet(variant=variant, **QUICK).fit(X, made.crowd)
    for k in range(3):
        joint = of_everybody(model, np.eye(3)[k])
        assert np.allclose(model.confusion_[:, k], joint / joint.sum(axis=1, keepdims=True))


def test_it_starts_from_the_soft_vote_or_near_the_identity(made: Simulation, X: pd.DataFrame, start_of: Any) -> None:
    voted = start_of(UnionNet(**QUICK), X, made.crowd).worker_table("A").detach().numpy()
    assert np.allclose(np.exp(voted).sum(axis=2), 1)
    right = np.diagonal(np.exp(voted).mean(axis=0))
    assert (right > 0.45).all()
    near = start_of(UnionNet(start="identity", **QUICK), X, made.crowd).worker_table("A").detach().numpy()
    assert np.allclose(softmax(near, axis=2), softmax(np.eye(3), axis=1))


@pytest.mark.parametrize("variant", ["A", "B"])
def test_who_votes_is_evidence_too(variant: str) -> None:
    """Half of the workers vote only where the class is one of two: the model learns how often each speaks of which class."""
    made = simulate_crowd(n_tasks=300, n_workers=8, n_classes=2, votes_per_task=4, random_state=0)
    crowd = made.crowd
    truth = crowd.classes.get_indexer(made.truth.reindex(crowd.tasks))
    crowd = crowd.take((crowd.worker < 4) | (truth[crowd.task] == 1))
    X = pd.DataFrame(4.0 * np.eye(2)[truth] + np.random.default_rng(0).normal(size=(300, 2)), index=crowd.tasks)
    model = UnionNet(variant=variant, epochs=60, hidden=16, learning_rate=0.02, dropout=0.0).fit(X, crowd)
    of_them = [of_everybody(model, np.eye(2)[k])[4:].sum() for k in (0, 1)]
    assert of_them[0] < 0.1
    assert 0.4 < of_them[1] < 0.6


@pytest.mark.parametrize("variant", ["A", "B"])
def test_it_learns_and_takes_gold(featured: Callable[..., tuple[Simulation, pd.DataFrame]], variant: str) -> None:
    made, X = featured(n_tasks=300, seed=3)
    gold = made.truth.iloc[:50]
    model = UnionNet(variant=variant, epochs=40, hidden=32, learning_rate=5e-3).fit(X, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert model.score(X, made.truth) > 0.8
    assert (model.labels_ == made.truth).mean() > 0.85


def test_options(made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="variant"):
        UnionNet(variant="C").fit(X, made.crowd)
