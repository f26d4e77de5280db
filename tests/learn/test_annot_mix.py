from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import AnnotMix, Crowd
from wisecrowd.base import checkpoints
from wisecrowd.errors import UsageError
from wisecrowd.learn import annot_mix
from wisecrowd.learn.annot_mix import MixupLoss
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")

SHARE, OTHER = np.array([0.2, 0.9, 0.5, 1.0]), np.array([2, 0, 1, 3])


@pytest.fixture
def crowd() -> Crowd:
    """Four votes, of which the third has the weight of two."""
    return Crowd.from_codes([0, 0, 1, 2], [0, 1, 1, 0], [0, 2, 1, 1], weight=[1.0, 1.0, 2.0, 1.0], tasks=[0, 1, 2],
                 workers=["ann", "bob"], classes=[0, 1, 2])  # fmt: skip


def lesson_of(model: AnnotMix, X: np.ndarray[Any, Any], crowd: Crowd, gold: Any = None) -> tuple[Any, Any]:
    job, network = model._prepare_job(X, crowd, gold)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for each in network.worker_parameters.parameters():
            each += 0.3 * torch.randn(each.shape)
    network.module.eval()
    return network, job.training_set


def fixed(n_rows: int, alpha: float, like: Any) -> Any:  # noqa: ARG001
    """Mixing that is known: of votes as above, of two truths half and half."""
    share, other = (SHARE, OTHER) if n_rows == 4 else (np.full(n_rows, 0.5), np.arange(n_rows)[::-1].copy())

    def mix(values: Any) -> Any:
        part = torch.from_numpy(share).reshape(-1, *[1] * (values.ndim - 1))
        return part * values + (1 - part) * values[torch.from_numpy(other)]

    return mix


@pytest.mark.parametrize("gold", [False, True])
def test_the_loss_is_that_of_mixed_triples(gold: bool, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annot_mix, "draw_mixup", fixed)
    X = np.random.default_rng(0).normal(size=(3, 4))
    model = AnnotMix(embedding=3, hidden=5, precision="double", device="cpu")
    known = np.array([-1, 2, 0], dtype=np.int32) if gold else None
    network, training_set = lesson_of(model, X, crowd, known)
    found = float(model._make_vote_loss()(network, training_set, torch.arange(3), 0).detach())

    own = {name: each.detach().numpy() for name, each in network.worker_parameters.state_dict().items()}
    inputs = training_set.inputs.numpy()

    def f(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        hidden, logits = network(torch.from_numpy(x)[None])
        odds = np.exp(logits.detach().numpy()[0])
        return hidden.detach().numpy()[0], odds / odds.sum()

    assert crowd.worker is not None
    total = weight = 0.0
    for n in range(4):
        pair = ((SHARE[n], n), (1 - SHARE[n], OTHER[n]))
        x = sum(share * inputs[crowd.task[m]] for share, m in pair)
        a = sum(share * (own["worker"][crowd.worker[m]] + own["everybody"]) for share, m in pair)
        y = sum(share * crowd.weight[m] * np.eye(3)[crowd.label[m]] for share, m in pair)
        hidden, p = f(np.asarray(x))
        t = own["task.weight"] @ hidden + own["task.bias"]
        h = own["combining.1.weight"] @ np.concatenate([t, np.asarray(a)]) + own["combining.1.bias"]
        h = h / np.sqrt(own["combining.2.running_var"] + 1e-5) * own["combining.2.weight"] + own["combining.2.bias"]
        rows = (own["matrix.weight"] @ np.maximum(h, 0) + own["matrix.bias"]).reshape(3, 3)
        pi = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
        total -= (np.asarray(y) * np.log(p @ pi)).sum()
        weight += np.asarray(y).sum()
    if gold:
        p = f((inputs[1] + inputs[2]) / 2)[1]
        total -= np.log(p[2]) + np.log(p[0])  # twice, half of each
        weight += 2
    assert found == pytest.approx(total / weight)


def test_no_gradient_of_the_matrices_goes_back_into_the_network(crowd: Crowd) -> None:
    X = np.random.default_rng(0).normal(size=(3, 4))
    model = AnnotMix(embedding=16, hidden=5, precision="double", device="cpu", alpha=0.0)
    network, training_set = lesson_of(model, X, crowd)
    hidden, _ = network(training_set.inputs)
    who = model._confusion.embed_workers(network, torch.tensor([0, 1, 1]))
    model._confusion.log_matrices(network, who, hidden)[:, 0, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert network.module.trunk[0].weight.grad is None
    assert network.worker_parameters.task.weight.grad.abs().sum() > 0
    assert network.worker_parameters.worker.grad.is_sparse


def test_it_solves_a_crowd_and_learns_less_by_heart_than_without_mixing(X: pd.DataFrame, made: Simulation) -> None:
    fast: dict[str, Any] = {"epochs": 40, "optimiser": "adam", "learning_rate": 3e-3, "schedule": "constant"}
    mixed = AnnotMix(**fast).fit(X, made.crowd)
    plain = AnnotMix(**fast, alpha=0.0).fit(X, made.crowd)
    assert made.crowd.classes is not None
    place = made.crowd.classes.get_indexer(pd.Index(made.truth))
    right = np.average(made.crowd.label == place[made.crowd.task])
    assert mixed.score(X, made.truth) > right + 0.1
    assert mixed.predict_proba(X).max(axis=1).mean() < plain.predict_proba(X).max(axis=1).mean() - 0.02


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(
    X: pd.DataFrame, made: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "TIME_SHARE", 1e9)  # keep every epoch
    settings: dict[str, Any] = {"epochs": 4, "hidden": 8, "embedding": 4}
    whole = AnnotMix(**settings).fit(X, made.crowd)
    model = AnnotMix(**settings, checkpoint=str(tmp_path))
    loss, calls = MixupLoss.__call__, []

    def killed(self: MixupLoss, *rest: Any) -> Any:
        calls.append(0)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return loss(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(MixupLoss, "__call__", killed)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, made.crowd)
    assert list(tmp_path.iterdir())
    assert (
        AnnotMix(**settings, checkpoint=str(tmp_path)).fit(X, made.crowd).posterior_.tobytes()
        == whole.posterior_.tobytes()
    )


def test_alpha_is_checked(X: pd.DataFrame, made: Simulation) -> None:
    with pytest.raises(UsageError, match="alpha must be positive"):
        AnnotMix(alpha=-1.0).fit(X, made.crowd)
