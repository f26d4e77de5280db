from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, MaDL
from wisecrowd.errors import UsageError
from wisecrowd.learn.madl import BANDWIDTH_RATE, BANDWIDTH_SHAPE, compute_uniqueness_weights
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")


def lesson_of(model: MaDL, X: pd.DataFrame, crowd: Crowd) -> tuple[Any, Any]:
    """A network that was not trained yet, with parameters that are not what they start as."""
    job, network = model._prepare_job(X.to_numpy(), crowd, None)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for each in network.worker_parameters.parameters():
            each += 0.3 * torch.randn(each.shape)
    return network, job.training_set


def brute_said(
    network: Any, hidden: np.ndarray[Any, Any], logits: np.ndarray[Any, Any], worker: int
) -> np.ndarray[Any, Any]:
    """P(the worker says each label | x), by numpy; norms as in evaluation."""
    own = {name: each.detach().numpy() for name, each in network.worker_parameters.state_dict().items()}
    a = own["worker"][worker] + own["everybody"]
    t = own["task.weight"] @ hidden + own["task.bias"]
    both = a + t
    product = np.array([both @ form @ both for form in own["product.weight"]])
    x = own["combining.0.weight"] @ np.concatenate([a, t, product]) + own["combining.0.bias"]
    x = np.maximum(norm(own, "combining.1", x), 0)
    x = norm(own, "combining.4", own["combining.3.weight"] @ x + own["combining.3.bias"])
    n_classes = len(logits)
    rows = (own["matrix.weight"] @ np.maximum(a + x, 0) + own["matrix.bias"]).reshape(n_classes, n_classes)
    pi = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    f = np.exp(logits) / np.exp(logits).sum()
    return f @ pi


def norm(own: dict[str, np.ndarray[Any, Any]], name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    scaled = (x - own[f"{name}.running_mean"]) / np.sqrt(own[f"{name}.running_var"] + 1e-5)
    return scaled * own[f"{name}.weight"] + own[f"{name}.bias"]


@pytest.mark.parametrize("weigh", ["batch", "all", "none"])
def test_the_loss_is_that_of_the_paper(weigh: Any, X: pd.DataFrame, made: Simulation) -> None:
    model, crowd = MaDL(weigh=weigh, embedding=3, hidden=5, precision="double", device="cpu"), made.crowd
    network, training_set = lesson_of(model, X, crowd)
    network.module.eval()
    tasks = torch.arange(4)
    batch = training_set.make_batch(network, tasks)
    assert crowd.worker is not None
    votes = [n for n in range(crowd.n_votes) if crowd.task[n] < 4]
    a = network.worker_table("worker").detach().numpy()
    gamma = float(torch.exp(network.worker_parameters.log_bandwidth.detach()))
    among = sorted({int(crowd.worker[n]) for n in votes}) if weigh == "batch" else range(crowd.n_workers)
    inverse = {r: 1 / sum(np.exp(-gamma * ((a[r] - a[s]) ** 2).sum()) for s in among) for r in among}
    mean = np.mean(list(inverse.values()))
    total = 0.0
    for n in votes:
        task, worker, label = crowd.task[n], int(crowd.worker[n]), crowd.label[n]
        hidden, logits = batch.hidden[task].detach().numpy(), batch.logits[task].detach().numpy()
        weight = 1.0 if weigh == "none" else inverse[worker] / mean
        total -= weight * np.log(brute_said(network, hidden, logits, worker)[label])
    wanted = total / len(votes)
    if weigh != "none":
        wanted -= (BANDWIDTH_SHAPE - 1) * np.log(gamma) - BANDWIDTH_RATE * gamma
    assert float(model._loss(batch).detach()) == pytest.approx(wanted)


def test_a_step_touches_who_voted_and_the_bandwidth_but_no_embedding_through_its_weight(
    X: pd.DataFrame, made: Simulation
) -> None:
    model = MaDL(embedding=3, hidden=5, precision="double", device="cpu")
    network, training_set = lesson_of(model, X, made.crowd)
    batch = training_set.make_batch(network, torch.arange(2))
    model._loss(batch).backward()  # type: ignore[no-untyped-call]
    gradient = network.worker_parameters.worker.grad
    assert gradient.is_sparse
    assert set(gradient.coalesce().indices()[0].tolist()) == set(batch.worker.tolist())
    assert float(network.worker_parameters.log_bandwidth.grad) != 0
    assert network.module.trunk[0].weight.grad.abs().sum() > 0  # tasks are embedded by layers that learn from it


def test_workers_who_are_alike_share_the_weight_of_one() -> None:
    embedding = torch.tensor([[0.0, 0.0]] * 3 + [[50.0, 0.0]])
    found = compute_uniqueness_weights(embedding, torch.tensor(1.0)).numpy()
    assert found.mean() == pytest.approx(1)
    assert found[3] == pytest.approx(3 * found[0])
    assert compute_uniqueness_weights(embedding, torch.tensor(0.0)).numpy() == pytest.approx(1)


def test_it_is_better_than_its_workers_and_says_what_it_knows_of_them(X: pd.DataFrame, made: Simulation) -> None:
    model = MaDL(epochs=40).fit(X, made.crowd)
    assert made.crowd.classes is not None
    place = made.crowd.classes.get_indexer(pd.Index(made.truth))
    right = np.average(made.crowd.label == place[made.crowd.task])
    assert model.score(X, made.truth) > right + 0.1
    assert model.embedding_.shape == (12, 16)
    assert model.bandwidth_ > 0


def test_weigh_is_checked(X: pd.DataFrame, made: Simulation) -> None:
    with pytest.raises(UsageError, match="weigh"):
        MaDL(weigh="some").fit(X, made.crowd)  # type: ignore[arg-type]
