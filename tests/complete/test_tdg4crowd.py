"""TDG4Crowd: what it answers follows from its arrays, and it learns what features and workers tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd import Crowd, TDG4Crowd, load
from wisecrowd.complete.tdg4crowd import EmbeddingModel
from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.deep_learner import predict_label_probs
from wisecrowd.nn.vote_tensors import Batch, cross_tasks_and_workers

try:
    import_torch()
except MissingExtra as missing:
    pytest.skip(str(missing), allow_module_level=True)

SMALL: dict[str, Any] = {"epochs": 3, "batch_size": 16, "hidden": 8, "precision": "double"}


def crowd_of(n_tasks: int = 60, n_workers: int = 6) -> tuple[Crowd, NDArray[np.float64], NDArray[np.intp]]:
    """Two classes by the sign of the first feature; the first worker says the opposite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_tasks, 2))
    truth = (X[:, 0] > 0).astype(np.intp)
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < 0.5)
    label = np.where(worker == 0, 1 - truth[task], truth[task])
    crowd = Crowd.from_codes(task, worker, label, tasks=range(n_tasks), workers=range(n_workers), classes=["no", "yes"])
    return crowd, X, truth


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The networks that are trained."""
    trained: list[Any] = []
    set_embeddings = TDG4Crowd._set_embeddings

    def note(self: TDG4Crowd, model: EmbeddingModel, network: CrowdNetwork, X: Any) -> None:
        trained.append((model, network))
        set_embeddings(self, model, network, X)

    monkeypatch.setattr(TDG4Crowd, "_set_embeddings", note)
    return trained


def test_what_it_answers_is_what_the_network_says_of_means(spied: list[Any]) -> None:
    crowd, X, _ = crowd_of()
    fitted = TDG4Crowd(**SMALL).fit(crowd, X)
    model, network = spied[0]
    wanted = predict_label_probs(network, model.label_log_probs, X, np.arange(6))  # through torch, cell by cell
    assert np.allclose(fitted.predict_worker_proba(), wanted, atol=1e-8)


def test_the_divergence_is_that_of_normal_distributions(spied: list[Any]) -> None:
    torch = import_torch()
    crowd, X, _ = crowd_of()
    TDG4Crowd(**SMALL).fit(crowd, X)
    model, network = spied[0]
    ((inputs, hidden, logits),) = network.iterate_batches(X)
    row, worker = (torch.from_numpy(side) for side in cross_tasks_and_workers(len(X), np.arange(6)))
    ones = torch.ones(len(row), dtype=torch.float64)
    with torch.no_grad():
        *_, found = model.draw_embeddings(Batch(network, inputs, hidden, logits, row, worker, 0 * row, ones))
    normal, kl = torch.distributions.Normal, torch.distributions.kl_divergence
    tasks, workers = (
        kl(normal(torch.from_numpy(points.mean), torch.from_numpy(points.spread)), normal(0.0, 1.0)).sum(dim=1)
        for points in (model.embed_tasks(network, X), model.embed_workers(network))
    )
    assert np.allclose(found, (tasks[:, None] + workers).flatten())


def test_it_learns_who_says_what_of_which_tasks() -> None:
    crowd, X, truth = crowd_of(n_tasks=150)
    fitted = TDG4Crowd(epochs=20, batch_size=16, learning_rate=0.02, fill_mode="hard").fit(crowd, X)
    filled = fitted.fill()
    new = ~filled.observed
    first = filled.worker[new] == 0  # type: ignore[index]  # has workers
    right = filled.label[new] == truth[filled.task[new]]
    assert right[~first].mean() > 0.9
    assert right[first].mean() < 0.1  # it imitates her, and does not correct her


def test_hidden_votes_choose_the_epochs() -> None:
    crowd, X, _ = crowd_of()
    fitted = TDG4Crowd(batch_size=64, learning_rate=0.03, hidden=8).fit(crowd, X)
    assert fitted.epochs_ == fitted.search_["hidden"].idxmax()
    assert len(fitted.history_) == fitted.epochs_
    assert not hasattr(fitted.set_params(epochs=2).fit(crowd, X), "search_")


def test_draws_move_answers_and_many_of_them_less() -> None:
    crowd, X, _ = crowd_of()
    by_means = TDG4Crowd(**SMALL).fit(crowd, X).predict_worker_proba()
    one = TDG4Crowd(**SMALL, draws=1).fit(crowd, X)
    assert np.abs(one.predict_worker_proba() - by_means).max() > 1e-4
    assert np.allclose(one.predict_worker_proba([5], [2]), one.predict_worker_proba()[5:6, 2:3], atol=1e-12)
    many = TDG4Crowd(**SMALL, draws=500).fit(crowd, X).predict_worker_proba()
    assert np.abs(many - by_means).max() < np.abs(one.predict_worker_proba() - by_means).max()


def test_features_are_found_again_when_that_counts(spied: list[Any]) -> None:
    torch = import_torch()
    crowd, X, _ = crowd_of()
    errors = []
    for rebuild in (1e-9, 10.0):
        TDG4Crowd(**SMALL | {"epochs": 30, "learning_rate": 0.02}, rebuild=rebuild).fit(crowd, X)
        model, network = spied[-1]
        with torch.no_grad():
            back = network.worker_parameters.decoder(torch.from_numpy(model.embed_tasks(network, X).mean)).numpy()
        errors.append(float(((back - network.prepare_inputs(X)) ** 2).mean()))
    assert errors[1] < 0.2 < 0.5 < errors[0]


def test_a_heavy_divergence_leaves_nothing_to_tell_workers_by() -> None:
    crowd, X, _ = crowd_of()
    said = [TDG4Crowd(**SMALL | {"epochs": 20, "learning_rate": 0.02}, kl=kl).fit(crowd, X).predict_worker_proba()
            for kl in (1e-3, 10.0)]  # fmt: skip
    differ = [np.ptp(each, axis=1).mean() for each in said]
    assert differ[1] < 0.1 * differ[0]


def test_it_is_kept_without_the_network(tmp_path: Path) -> None:
    crowd, X, _ = crowd_of()
    fitted = TDG4Crowd(**SMALL, draws=2).fit(crowd, X)
    fitted.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_worker_proba(), fitted.predict_worker_proba())  # type: ignore[attr-defined]  # a completer


def test_a_fit_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd, X, _ = crowd_of()
    options = SMALL | {"epochs": 6}
    whole = TDG4Crowd(**options).fit(crowd, X).predict_worker_proba()
    from wisecrowd.nn.trainer import Trainer

    epoch: Callable[..., float] = Trainer._run_epoch
    done: list[int] = []

    def dies(self: Trainer, *parts: Any) -> float:
        done.append(1)
        if len(done) == 4:
            raise KeyboardInterrupt
        return epoch(self, *parts)

    monkeypatch.setattr(Trainer, "_run_epoch", dies)
    kept = {**options, "checkpoint": str(tmp_path)}
    with pytest.raises(KeyboardInterrupt):
        TDG4Crowd(**kept).fit(crowd, X)
    assert np.array_equal(TDG4Crowd(**kept).fit(crowd, X).predict_worker_proba(), whole)
    assert len(done) < 4 + 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kl": -1.0}, "kl, rebuild and draws must be finite and not negative; got -1.0"),
        ({"rebuild": float("nan")}, "kl, rebuild and draws must be"),
        ({"draws": -1}, "kl, rebuild and draws must be"),
        ({"epochs": 0}, "epochs must be a whole number from 1, or 'auto'; got 0"),
        ({"epochs": None}, "epochs must be a whole number from 1"),
        ({"precision": "half"}, "precision must be"),
        ({"batch_size": 0}, "batch_size must be 1 or more"),
        ({"hidden": 0}, "hidden must be 1 or more"),
        ({"device": "abacus"}, "torch cannot use the device 'abacus'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    crowd, X, _ = crowd_of()
    with pytest.raises(UsageError, match=message):
        TDG4Crowd(**SMALL | wrong).fit(crowd, X)


def test_one_class_is_nothing_to_learn() -> None:
    crowd = Crowd.from_triples([(0, "ann", "a"), (1, "bob", "a")])
    with pytest.raises(InputError, match="these votes have only 'a'; give all classes"):
        TDG4Crowd().fit(crowd, np.ones((2, 1)))
