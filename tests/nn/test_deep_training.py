"""Training of one and of several networks on votes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.nn.crowd_network import CrowdNetwork, NetworkBuilder
from wisecrowd.nn.deep_training import (
    MAX_EPOCHS,
    MIN_EPOCHS,
    TrainingJob,
    build_twin,
    choose_default_epochs,
    make_validation,
    train_network,
    train_networks,
)
from wisecrowd.nn.epoch_watchers import watch_epochs
from wisecrowd.nn.trainer import TrainingSettings
from wisecrowd.nn.training_set import prepare_training
from wisecrowd.nn.vote_loss import VoteLoss, compute_vote_nll

torch = pytest.importorskip("torch")

CROWD = Crowd.from_triples([(task, worker, int(task >= 10)) for task in range(20) for worker in ("ann", "bob")])
X = np.linspace(-1, 1, 20)[:, None]


def get_label_log_probs(batch: Any) -> Any:
    """Return the class probabilities of the tasks: every worker is right."""
    return batch.class_log_probs[batch.task]


def make_job(validation: float = 0.0, **more: Any) -> tuple[TrainingJob, CrowdNetwork]:
    builder = NetworkBuilder(
        classifier="mlp", input_shape=(1,), n_workers=2, n_classes=2, hidden=4, dropout=0.0, make_worker_parameters=lambda _: {}
    )  # fmt: skip
    network, training_set = prepare_training(
        builder, X, CROWD, None, validation=validation, random_state=0, device="cpu", precision="double"
    )
    settings = TrainingSettings(epochs=30, batch_size=4, learning_rate=0.05, dtype="float64")
    job = TrainingJob(
        builder=builder,
        training_set=training_set,
        loss=VoteLoss(
            get_label_log_probs, lambda batch: batch.weighted_mean(compute_vote_nll(batch, get_label_log_probs(batch)))
        ),
        settings=settings,
        make_groups=lambda network, _: network.make_parameter_groups(None, 0.0),
        predict=predict,
    )
    return replace(job, **more), network


def predict(networks: Any, rows: Any) -> Any:
    """Return the mean class probabilities of some networks."""
    mean = 0.0
    for network in networks:
        mean += np.concatenate([torch.softmax(logits, 1).numpy() for _, _, logits in network.iterate_batches(rows)])
    return mean / len(networks)


@pytest.mark.parametrize(("n_tasks", "expected"), [(10**6, MIN_EPOCHS), (1000, 63), (1, MAX_EPOCHS), (64, MAX_EPOCHS)])
def test_small_data_are_seen_more_often(n_tasks: int, expected: int) -> None:
    assert choose_default_epochs(n_tasks, 64) == expected


def test_a_network_learns_the_votes() -> None:
    job, network = make_job()
    trained = train_network(job, network)
    assert trained.networks == (network,)
    assert len(trained.history) == 30
    assert trained.history["loss"].iloc[-1] < 0.5 * trained.history["loss"].iloc[0]
    assert (predict([network], X).argmax(axis=1) == (np.arange(20) >= 10)).mean() > 0.9


def test_twins_share_the_scale_and_differ_in_their_weights() -> None:
    job, network = make_job()
    twin = build_twin(job, network, random_state=7)
    assert twin.standardiser is network.standardiser
    first, second = (next(one.module.parameters()) for one in (network, twin))
    assert first.dtype == second.dtype == torch.float64
    assert not torch.equal(first, second)
    assert torch.equal(second, next(build_twin(job, network, random_state=7).module.parameters()))


def test_several_networks_are_trained_together_and_buffers_survive_a_checkpoint(tmp_path: Path) -> None:
    job, network = make_job(checkpoint=tmp_path / "checkpoint")

    def train() -> tuple[Any, int, list[int]]:
        networks = [build_twin(job, network, random_state) for random_state in (1, 2)]
        totals, calls = [], []

        def loss(tasks: Any, trainer: Any) -> Any:
            calls.append(len(tasks))
            trainer.model.seen += len(tasks)
            totals.append(trainer.model.seen)
            return sum(job.loss(one, job.training_set, tasks, len(trainer.history)) for one in networks)

        trained = train_networks(job, networks, loss, buffers={"seen": torch.zeros(1, dtype=torch.int64)})
        return trained, int(totals[-1]) if totals else 0, calls

    first, seen, _ = train()
    assert seen == 30 * 20
    assert all((predict([one], X).argmax(axis=1) == (np.arange(20) >= 10)).mean() > 0.9 for one in first.networks)
    again, _, calls = train()
    assert calls == [], "all epochs are in the checkpoint"
    for one, other in zip(first.networks, again.networks, strict=True):
        assert predict([one], X).tolist() == predict([other], X).tolist()


class TestValidation:
    def test_without_held_out_votes_nothing_is_scored(self) -> None:
        job, network = make_job()
        assert make_validation(job, (network,)) is None

    def test_the_score_is_the_share_of_held_out_votes(self) -> None:
        job, network = make_job(validation=0.3)
        validate = make_validation(job, (network,))
        assert validate is not None
        heldout = job.training_set.heldout
        assert heldout is not None
        predicted = predict([network], heldout.features).argmax(axis=1)
        expected = np.mean([predicted[t] == y for t, y in zip(heldout.votes.task, heldout.votes.label, strict=True)])
        assert validate() == pytest.approx(expected)

    def test_the_best_epoch_can_be_loaded(self) -> None:
        job, network = make_job(validation=0.3, loads_best=True)
        trained = train_network(job, network)
        scores = trained.history["validation"]
        validate = make_validation(job, (network,))
        assert validate is not None
        assert validate() == pytest.approx(scores.max())

    def test_epochs_can_be_watched_without_held_out_votes(self) -> None:
        job, network = make_job()
        snapshots: list[Any] = []
        with watch_epochs(snapshots.append):
            train_network(job, network)
        assert len(snapshots) == 30
        assert snapshots[0].networks == (network,)
