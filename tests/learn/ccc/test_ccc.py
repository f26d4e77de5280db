"""Coupled Confusion Correction: what it reduces to, what it leaves behind, and that it is the same after a kill."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CCC, CrowdLayer
from wisecrowd.errors import UsageError
from wisecrowd.learn.ccc._correction import cluster_workers
from wisecrowd.nn.epoch_watchers import EpochSnapshot, watch_epochs
from wisecrowd.simulate import Simulation

QUICK = {"epochs": 12, "hidden": 16, "n_groups": 3}


@pytest.mark.parametrize("steps", ["own", "network"])
def test_without_a_correction_each_network_is_crowd_layer_to_the_bit(
    made: Simulation, X: pd.DataFrame, steps: Literal["own", "network"]
) -> None:
    ccc = CCC(gamma=0.0, worker_steps=steps, worker_l2=float(steps == "network"), **QUICK).fit(X, made.crowd)
    plain = CrowdLayer(epochs=12, hidden=16, worker_steps=steps, worker_l2=float(steps == "network")).fit(X, made.crowd)
    rows = X.to_numpy()
    assert np.array_equal(ccc._network_class_probs(ccc.network_, rows), plain.predict_proba(rows))
    assert np.array_equal(ccc.layer_["T"], plain.layer_["T"])
    assert not np.array_equal(ccc.layer_["T"], ccc.layer_["T of the second"])


def test_warm_up_is_crowd_layer_too_and_what_follows_is_not(made: Simulation, X: pd.DataFrame) -> None:
    plain = CrowdLayer(epochs=12, hidden=16).fit(X, made.crowd).layer_["T"]
    assert np.array_equal(CCC(warmup=12, **QUICK).fit(X, made.crowd).layer_["T"], plain)
    assert not np.array_equal(CCC(warmup=11, **QUICK).fit(X, made.crowd).layer_["T"], plain)


@pytest.mark.parametrize("kind", [CCC, CrowdLayer])
def test_matrices_that_take_the_networks_steps_may_decay_as_its_weights_do(
    made: Simulation, X: pd.DataFrame, kind: type[CrowdLayer]
) -> None:
    """One step from the identity: the decay is all that differs, and it reaches every worker."""
    settings = {"epochs": 1, "hidden": 16, "batch_size": len(X), "optimiser": "sgd", "learning_rate": 0.5}
    free, drawn = (
        kind(worker_l2=l2, worker_steps="network", precision="double", **settings).fit(X, made.crowd).layer_["T"]
        for l2 in (0.0, 20.0)
    )
    n_workers, n_classes, _ = free.shape
    shrunk = np.broadcast_to(0.5 * 20 / len(X) * np.eye(n_classes), (n_workers, n_classes, n_classes))
    np.testing.assert_allclose(free - drawn, shrunk, atol=1e-9)
    assert not np.array_equal(free, np.broadcast_to(np.eye(n_classes), free.shape))


@pytest.mark.parametrize("meta", ["head", "full"])
def test_the_networks_go_on_learning_after_the_warm_up(made: Simulation, X: pd.DataFrame, meta: str) -> None:
    weights: list[np.ndarray] = []
    with watch_epochs(lambda snapshot: weights.append(snapshot.networks[0].head.weight.detach().numpy().copy())):
        CCC(warmup=6, meta=meta, **QUICK).fit(X, made.crowd)
    moved = [np.abs(after - before).max() for before, after in itertools.pairwise(weights)]
    assert min(moved[6:]) > 0.1 * min(moved[:5])


def test_groups_and_corrections_can_be_read(made: Simulation, X: pd.DataFrame) -> None:
    model = CCC(**QUICK).fit(X, made.crowd)
    assert list(model.groups_.index) == list(made.crowd.workers)
    assert model.groups_.to_numpy().max() < 3
    assert model.correction_.shape == (2, 3, 3, 3)
    assert np.isfinite(model.correction_).all()
    assert np.abs(model.correction_).max() > 0
    assert np.abs(model.correction_).max() <= 0.5 * max(table.max() for table in model.layer_.values()) + 1e-6


def test_groups_are_those_that_were_corrected(made: Simulation, X: pd.DataFrame) -> None:
    """Matrices change in the last epoch, so that other groups could follow from those at its end."""
    tables: list[list[np.ndarray]] = []

    def copy_tables(snapshot: EpochSnapshot) -> None:
        tables.append([network.worker_table("T").detach().numpy().copy() for network in snapshot.networks])

    with watch_epochs(copy_tables):
        model = CCC(worker_learning_rate=0.5, **QUICK).fit(X, made.crowd)
    at_start, at_end = (np.stack([cluster_workers(table, 3, 0) for table in both]) for both in tables[-2:])
    assert not np.array_equal(at_start, at_end)
    np.testing.assert_array_equal(model.group_, at_start)


def test_predictions_are_the_mean_of_both_networks(made: Simulation, X: pd.DataFrame) -> None:
    model = CCC(**QUICK).fit(X, made.crowd)
    rows = X.to_numpy()
    mean = (model._network_class_probs(model.network_, rows) + model._network_class_probs(model.twin_, rows)) / 2
    assert np.array_equal(model.predict_proba(X), mean)
    answers = model.predict_worker_proba(X.iloc[:4], [*made.crowd.workers[:2], "nobody"])
    assert answers.shape == (4, 3, 3)
    assert np.allclose(answers.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("meta", ["head", "full"])
def test_it_learns_from_noisy_votes(featured: Callable[..., tuple[Simulation, pd.DataFrame]], meta: str) -> None:
    made, X = featured(n_tasks=300, seed=3)
    model = CCC(epochs=30, hidden=32, n_groups=4, meta=meta).fit(X, made.crowd)
    assert model.score(X, made.truth) > 0.8
    assert (model.labels_ == made.truth).mean() > 0.85


def test_a_correction_of_many_alike_workers_with_few_labels_does_no_harm() -> None:
    """Two hundred workers with six labels each, in four kinds: the classifier is as good as without correction."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers, n_classes = 400, 200, 4
    kinds = np.stack([np.roll(np.eye(n_classes), shift, axis=1) * 0.8 + 0.05 for shift in (0, 0, 1, 2)])
    kinds[0] = np.eye(n_classes) * 0.9 + 0.025
    truth = rng.integers(n_classes, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), 3)
    worker = np.concatenate([rng.choice(n_workers, 3, replace=False) for _ in range(n_tasks)])
    cumulated = kinds[worker % 4, truth[task]].cumsum(axis=1)
    label = (cumulated < rng.random(len(task))[:, None]).sum(axis=1).clip(max=n_classes - 1)
    X = 1.5 * np.eye(n_classes)[truth] + rng.normal(size=(n_tasks, n_classes))
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    settings = {"epochs": 80, "hidden": 32, "worker_learning_rate": 0.01}
    plain = CrowdLayer(**settings).fit(X, frame)
    coupled = CCC(n_groups=8, **settings).fit(X, frame)
    assert coupled.score(X, truth) >= plain.score(X, truth) - 0.01


def test_a_killed_fit_goes_on_to_the_same_bits(made: Simulation, X: pd.DataFrame, tmp_path: Path) -> None:
    whole = CCC(**QUICK).fit(X, made.crowd)

    class Killed(Exception):
        pass

    def kill(_: CCC) -> None:
        batch.append(1)
        if len(batch) == 9:
            raise Killed

    batch: list[int] = []
    with watch_epochs(kill), pytest.raises(Killed):
        CCC(checkpoint=str(tmp_path), **QUICK).fit(X, made.crowd)
    again = CCC(checkpoint=str(tmp_path), **QUICK)
    resumed: list[int] = []
    with watch_epochs(lambda _: resumed.append(1)):
        again.fit(X, made.crowd)
    assert len(resumed) < 12
    assert np.array_equal(again.posterior_, whole.posterior_)
    assert np.array_equal(again.correction_, whole.correction_)
    assert again.groups_.equals(whole.groups_)
    finished = CCC(checkpoint=str(tmp_path), **QUICK).fit(X, made.crowd)  # no step is left
    assert np.array_equal(finished.correction_, whole.correction_)
    assert finished.groups_.equals(whole.groups_)


def test_selected_weights_are_those_of_the_best_epoch_by_held_out_votes(made: Simulation, X: pd.DataFrame) -> None:
    curve: list[np.ndarray] = []
    with watch_epochs(lambda model: curve.append(model.classify(X.to_numpy()))):
        model = CCC(validation=0.2, keep="selected", **QUICK).fit(X, made.crowd)
    best = int(model.history_["validation"].to_numpy().argmax())
    assert np.array_equal(model.predict_proba(X), curve[best])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": -1.0}, "gamma"),
        ({"n_groups": 0}, "n_groups"),
        ({"trusted": 0}, "trusted"),
        ({"warmup": -1}, "warmup"),
        ({"meta": "half"}, "meta"),
        ({"worker_steps": "none"}, "worker_steps"),
        ({"worker_l2": 1.0}, "worker_steps='network'"),
        ({"worker_l2": -1.0, "worker_steps": "network"}, "worker_l2 must not be negative"),
    ],
)
def test_settings_are_checked(made: Simulation, X: pd.DataFrame, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CCC(**settings).fit(X, made.crowd)  # type: ignore[arg-type]  # wrong on purpose
