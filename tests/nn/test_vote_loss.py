"""The mean loss over votes and gold classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CrowdLayer
from wisecrowd.nn.vote_loss import VoteLoss, compute_vote_nll
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"epochs": 2, "hidden": 8, "dropout": 0.0, "precision": "double", "device": "cpu"}


@pytest.mark.parametrize("with_gold", [False, True])
def test_a_gold_class_counts_like_one_vote(with_gold: bool, made: Simulation, X: pd.DataFrame) -> None:
    gold = np.where(np.arange(150) < 3, 2, -1).astype(np.int32) if with_gold else None
    model = CrowdLayer(**QUICK)
    job, network = model._prepare_job(X.to_numpy(), made.crowd, gold)
    tasks = torch.arange(10)
    batch = job.training_set.make_batch(network, tasks)
    nll = compute_vote_nll(batch, model._label_log_probs(batch)).detach().numpy()
    total, count = nll.sum(), len(nll)
    if with_gold:
        log_probs = torch.log_softmax(batch.logits, dim=1).detach().numpy()
        total, count = total - log_probs[:3, 2].sum(), count + 3
    assert float(job.loss(network, job.training_set, tasks, 0).detach()) == pytest.approx(total / count)


def test_votes_may_have_weights_of_their_own(made: Simulation, X: pd.DataFrame) -> None:
    model = CrowdLayer(**QUICK)
    job, network = model._prepare_job(X.to_numpy(), made.crowd, None)
    tasks = torch.arange(10)
    batch = job.training_set.make_batch(network, tasks)
    nll = compute_vote_nll(batch, model._label_log_probs(batch)).detach().numpy()
    weights = np.linspace(1, 2, len(nll))
    loss = VoteLoss(model._label_log_probs, model._loss, vote_weights=lambda _: torch.from_numpy(weights))
    assert float(loss(network, job.training_set, tasks, 0).detach()) == pytest.approx(np.average(nll, weights=weights))


def test_the_likelihood_of_other_votes_is_their_mean(
    made: Simulation, X: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CrowdLayer(**QUICK)
    job, network = model._prepare_job(X.to_numpy(), made.crowd, None)
    network.module.eval()
    batch = job.training_set.make_batch(network, torch.arange(150))
    nll = compute_vote_nll(batch, model._label_log_probs(batch)).detach().numpy()
    assert job.loss.mean_vote_nll(network, job.training_set) == pytest.approx(nll.mean())
    monkeypatch.setattr("wisecrowd.nn.vote_loss.PREDICTION_BATCH_SIZE", 7)
    assert job.loss.mean_vote_nll(network, job.training_set) == pytest.approx(nll.mean())
