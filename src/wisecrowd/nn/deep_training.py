"""Training of networks on votes: what every deep learner does between building its networks and using them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, NetworkBuilder
from wisecrowd.nn.epoch_watchers import EpochSnapshot, Predict, get_epoch_callback
from wisecrowd.nn.trainer import ParameterGroup, Trainer, TrainingSettings
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_loss import VoteLoss

if TYPE_CHECKING:
    from torch import Tensor

#: Default number of epochs: at least `MIN_EPOCHS`, more until there are `MIN_BATCHES` batches, at most `MAX_EPOCHS`.
MIN_EPOCHS, MIN_BATCHES, MAX_EPOCHS = 50, 1000, 200


class EpochSearch(NamedTuple):
    """Result of the search for the number of epochs.

    Attributes
    ----------
    epochs : int
        Number of epochs after which hidden votes are predicted best.
    curve : pandas.DataFrame
        Loss and mean log-probability of the hidden votes (column ``hidden``) by epoch.

    Examples
    --------
    >>> search = EpochSearch(12, pd.DataFrame({"hidden": [-0.7]}))
    >>> search.epochs
    12
    """

    epochs: int
    curve: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """Everything that determines the training of networks on votes.

    Attributes
    ----------
    builder : NetworkBuilder
        Builder of the networks.
    training_set : TrainingSet
        Tasks to train on.
    loss : VoteLoss
        Loss of a network.
    settings : TrainingSettings
        Settings of the training loop.
    make_groups : callable
        Function from a network and the number of tasks to parameter groups.
    predict : callable
        Function from networks and features to class probabilities, for validation.
    checkpoint : Path or None
        File of the checkpoint.
    loads_best : bool
        Whether to end with the weights of the epoch with the best validation score.
    title : str
        Title of the progress bar.
    search : EpochSearch or None
        Search that chose the number of epochs.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.nn.training_set import prepare_training
    >>> torch = import_torch()
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: batch.logits.square().mean())
    >>> job = TrainingJob(
    ...     builder=builder, training_set=training_set, loss=loss, settings=TrainingSettings(epochs=2, dtype="float64"),
    ...     make_groups=lambda network, n_tasks: network.make_parameter_groups(None, 0.0), predict=lambda networks, X: X,
    ... )
    >>> job.settings.epochs, len(job.training_set)
    (2, 2)
    """

    builder: NetworkBuilder
    training_set: TrainingSet
    loss: VoteLoss
    settings: TrainingSettings
    make_groups: Callable[[CrowdNetwork, int], list[ParameterGroup]]
    predict: Predict
    checkpoint: Path | None = None
    loads_best: bool = False
    title: str = "training"
    search: EpochSearch | None = None


@dataclass(frozen=True)
class TrainedNetworks:
    """Result of training.

    Attributes
    ----------
    networks : tuple of CrowdNetwork
        Trained networks.
    history : pandas.DataFrame
        Loss, validation score and seconds by epoch.
    attributes : mapping
        Further fitted attributes of the method, by name.
    buffers : mapping of Tensor
        Further state of the training at its end, by name.

    Examples
    --------
    >>> TrainedNetworks((), pd.DataFrame({"loss": [0.7, 0.6]}), {"doubt_": 0.1}).attributes
    {'doubt_': 0.1}
    """

    networks: tuple[CrowdNetwork, ...]
    history: pd.DataFrame
    attributes: Mapping[str, Any] = field(default_factory=dict)
    buffers: Mapping[str, Tensor] = field(default_factory=dict)


def choose_default_epochs(n_tasks: int, batch_size: int) -> int:
    """Return the number of epochs when the user gives none.

    Parameters
    ----------
    n_tasks : int
        Number of training tasks.
    batch_size : int
        Tasks per step.

    Returns
    -------
    int

    Examples
    --------
    >>> choose_default_epochs(100_000, 64), choose_default_epochs(1000, 64), choose_default_epochs(100, 64)
    (50, 63, 200)
    """
    n_batches = -(-n_tasks // batch_size)
    return min(MAX_EPOCHS, max(MIN_EPOCHS, -(-MIN_BATCHES // n_batches)))


def train_network(job: TrainingJob, network: CrowdNetwork) -> TrainedNetworks:
    """Train one network with the loss of a job.

    Parameters
    ----------
    job : TrainingJob
        Description of the training.
    network : CrowdNetwork
        Network, which is trained in place.

    Returns
    -------
    TrainedNetworks

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.nn.training_set import prepare_training
    >>> torch = import_torch()
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: batch.logits.square().mean())
    >>> job = TrainingJob(
    ...     builder=builder, training_set=training_set, loss=loss, settings=TrainingSettings(epochs=2, dtype="float64"),
    ...     make_groups=lambda network, n_tasks: network.make_parameter_groups(None, 0.0), predict=lambda networks, X: X,
    ... )
    >>> len(train_network(job, network).history)
    2
    """

    def loss(tasks: Tensor, trainer: Trainer) -> Tensor:
        return job.loss(network, job.training_set, tasks, len(trainer.history))

    return train_networks(job, (network,), loss)


def build_twin(job: TrainingJob, network: CrowdNetwork, random_state: int) -> CrowdNetwork:
    """Return a second network for the same inputs, with other initial weights.

    Parameters
    ----------
    job : TrainingJob
        Description of the training.
    network : CrowdNetwork
        First network, whose standardiser the second one shares.
    random_state : int
        Seed of the weights.

    Returns
    -------
    CrowdNetwork

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.nn.training_set import prepare_training
    >>> torch = import_torch()
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: batch.logits.square().mean())
    >>> job = TrainingJob(
    ...     builder=builder, training_set=training_set, loss=loss, settings=TrainingSettings(epochs=2, dtype="float64"),
    ...     make_groups=lambda network, n_tasks: network.make_parameter_groups(None, 0.0), predict=lambda networks, X: X,
    ... )
    >>> build_twin(job, network, random_state=1).standardiser is network.standardiser
    True
    """
    twin = job.builder.build(random_state)
    twin.standardiser = network.standardiser
    twin.module.to(job.training_set.inputs)
    return twin


def train_networks(
    job: TrainingJob,
    networks: Sequence[CrowdNetwork],
    loss: Callable[[Tensor, Trainer], Tensor],
    *,
    separable: bool | None = None,
    buffers: Mapping[str, Tensor] | None = None,
) -> TrainedNetworks:
    """Train one or several networks together.

    Parameters
    ----------
    job : TrainingJob
        Description of the training.
    networks : sequence of CrowdNetwork
        Networks, which are trained in place.
    loss : callable
        Function from task codes and the trainer to the sum of the mean losses of all networks.
    separable : bool, optional
        Whether the loss is the mean over tasks; by default that of ``job.loss``.
    buffers : mapping of Tensor, optional
        Further state of the training by name. It becomes part of ``trainer.model`` and of checkpoints.

    Returns
    -------
    TrainedNetworks

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.nn.training_set import prepare_training
    >>> torch = import_torch()
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: batch.logits.square().mean())
    >>> job = TrainingJob(
    ...     builder=builder, training_set=training_set, loss=loss, settings=TrainingSettings(epochs=2, dtype="float64"),
    ...     make_groups=lambda network, n_tasks: network.make_parameter_groups(None, 0.0), predict=lambda networks, X: X,
    ... )
    >>> twin = build_twin(job, network, random_state=1)
    >>> difference = lambda tasks, trainer: (network.head.weight - twin.head.weight).square().sum()
    >>> len(train_networks(job, (network, twin), difference).networks)
    2
    """
    n_tasks = len(job.training_set)
    modules = import_torch().nn.ModuleList([network.module for network in networks])
    for name, initial in (buffers or {}).items():
        modules.register_buffer(name, initial)
    groups = [group for network in networks for group in job.make_groups(network, n_tasks)]
    trainer = Trainer(modules, job.settings, groups=groups, checkpoint=job.checkpoint, title=job.title)
    trainer.run(
        lambda tasks: loss(tasks, trainer),
        n_tasks,
        validate=make_validation(job, networks),
        row_weights=job.training_set.task_weights,
        separable=job.loss.separable if separable is None else separable,
    )
    if job.loads_best:
        trainer.load_best()
    final_buffers = {name: getattr(trainer.model, name) for name in buffers or {}}
    return TrainedNetworks(tuple(networks), trainer.history.to_frame(), buffers=final_buffers)


def make_validation(job: TrainingJob, networks: Sequence[CrowdNetwork]) -> Callable[[], float] | None:
    """Return a function that scores an epoch by the share of held-out votes that agree with the prediction.

    Parameters
    ----------
    job : TrainingJob
        Description of the training.
    networks : sequence of CrowdNetwork
        Networks in training.

    Returns
    -------
    callable or None
        None if no votes are held out and nobody watches the epochs (see `watch_epochs`).

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.nn.training_set import prepare_training
    >>> torch = import_torch()
    >>> builder = NetworkBuilder(
    ...     classifier="linear", input_shape=(1,), n_workers=2, n_classes=2, hidden=1, dropout=0.0,
    ...     make_worker_parameters=lambda sizes: {},
    ... )
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t2", "bob", "dog")])
    >>> network, training_set = prepare_training(
    ...     builder, np.array([[-1.0], [1.0]]), crowd, None, validation=0.0, random_state=0, device="cpu", precision="double"
    ... )
    >>> loss = VoteLoss(lambda batch: batch.class_log_probs[batch.task], lambda batch: batch.logits.square().mean())
    >>> job = TrainingJob(
    ...     builder=builder, training_set=training_set, loss=loss, settings=TrainingSettings(epochs=2, dtype="float64"),
    ...     make_groups=lambda network, n_tasks: network.make_parameter_groups(None, 0.0), predict=lambda networks, X: X,
    ... )
    >>> make_validation(job, (network,)) is None  # no task is held out
    True
    """
    callback, heldout = get_epoch_callback(), job.training_set.heldout
    if heldout is None and callback is None:
        return None

    def validate() -> float:
        if callback is not None:
            callback(EpochSnapshot(networks, job.predict))
        if heldout is None:
            return float("nan")
        predicted = job.predict(networks, heldout.features).argmax(axis=1)
        agrees = predicted[heldout.votes.task] == heldout.votes.label
        return float(np.average(agrees, weights=heldout.votes.weight))

    return validate
