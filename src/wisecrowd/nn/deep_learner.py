"""Deep learners: a network and worker parameters that are trained together on votes by gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import open_learner_checkpoint
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd, FeaturesLike
from wisecrowd.em.priors import CrowdPrior
from wisecrowd.em.shrinkage import count_shrinkage_votes, shrink_label_probs
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes, NetworkBuilder
from wisecrowd.nn.deep_posterior import compute_deep_posterior, shrink_pair_label_probs
from wisecrowd.nn.deep_training import TrainedNetworks, TrainingJob, choose_default_epochs, train_network
from wisecrowd.nn.epoch_search import search_epochs
from wisecrowd.nn.modules import compute_input_shape
from wisecrowd.nn.network_classifier import describe_classifier
from wisecrowd.nn.process_group import DIFFERENT_DATA, current_process_group
from wisecrowd.nn.schedules import ScheduleName
from wisecrowd.nn.trainer import OptimiserName, ParameterGroup, TrainingSettings
from wisecrowd.nn.training_set import prepare_training
from wisecrowd.nn.vote_loss import VoteLoss, compute_gold_cross_entropy, compute_vote_nll
from wisecrowd.nn.vote_tensors import Batch, cross_tasks_and_workers
from wisecrowd.utils import progress

if TYPE_CHECKING:
    from torch import Tensor

#: Votes per batch when the labels of workers are predicted, to bound memory.
MAX_PREDICTED_VOTES = 2**16


@method_class
class DeepLearner(Learner):
    """Base class of learners that train a network f together with worker parameters.

    A batch contains some tasks with the votes on them. Its loss is the mean over those votes of −log P(r gives y |
    x), so that a step costs time in proportion to the votes, not to tasks x workers. A gold task has its known class,
    and trains the network like a vote that is certainly right.

    Three components do the work: a `NetworkBuilder` builds the network, a `VoteLoss` computes the loss of a batch,
    and `compute_deep_posterior` combines class probabilities and votes, q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]. The
    confusion matrices π of the posterior are estimated with f fixed and shrunk toward that of the crowd. The
    posterior of a training task is overconfident, since the network was trained on its votes.

    With ``validation``, the votes on some tasks are held out, and ``history_`` reports how many of them agree with the
    prediction after every epoch.

    A method implements `_make_worker_parameters` and `_label_log_probs`, and overrides other hooks where its model
    differs.

    Examples
    --------
    >>> from wisecrowd import CrowdLayer
    >>> crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(8) for worker in range(3)])
    >>> X = np.array([[float(task % 2)] for task in range(8)])
    >>> CrowdLayer(epochs=20, learning_rate=0.01).fit(X, crowd).predict([[0.0], [1.0]]).tolist()
    ['a', 'b']
    """

    #: Whether the model gives the probability of single votes, by which ``epochs="auto"`` compares epochs.
    predicts_votes: ClassVar[bool] = True
    #: Whether the loss is a mean over tasks (see `VoteLoss`).
    separable: ClassVar[bool] = False
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "batches are drawn by position, and names decide on the order of tasks",
        "class_names_do_not_matter": "initial weights are drawn by position, and names decide on the order of classes",
    }

    classifier: Any = parameter(
        default="mlp", help="Network: 'mlp', 'cnn', 'linear', a torch module, or a function that returns one."
    )
    hidden: int = parameter(default=128, help="Width of the hidden layer.")
    dropout: float = parameter(default=0.5, help="Share of hidden units that dropout sets to zero.")
    l2: float = parameter(
        default=1.0, help="Ridge penalty on the weights of the network, relative to the loss summed over all tasks."
    )
    epochs: int | Literal["auto"] | None = parameter(
        default=None,
        help="Number of epochs; 'auto' chooses it by hidden votes; None is 50, or more for few tasks (at most 200).",
    )
    batch_size: int = parameter(default=64, help="Number of tasks per step.")
    optimiser: OptimiserName = parameter(
        default="adam", help="Optimiser of the network: 'adam', 'adamw', 'radam' or 'sgd'."
    )
    learning_rate: float = parameter(default=1e-3, help="Step size.")
    worker_learning_rate: float | None = parameter(
        default=None, help="Step size of the worker parameters; None for that of the network."
    )
    schedule: ScheduleName = parameter(
        default="constant", help="Schedule of the step size: 'constant', 'cosine', 'onecycle' or 'step'."
    )
    validation: float = parameter(default=0.0, help="Share of tasks whose votes are held out to compare epochs.")
    keep: Literal["last", "selected"] = parameter(
        default="last", help="Weights to keep: those of the 'last' epoch, or of the one 'selected' by held-out votes."
    )
    precision: Literal["single", "double"] = parameter(
        default="single", help="Floating point precision of the network: 'single' or 'double'."
    )
    device: str = parameter(
        default="auto", help="Device of the network: 'cpu', 'cuda', or 'auto' for a GPU if available."
    )
    checkpoint: str | None = parameter(
        default=None, help="Folder for checkpoints, from which an interrupted fit resumes."
    )
    random_state: int = parameter(default=0, help="Seed of weights, batches, dropout and held-out votes.")
    verbose: bool = parameter(default=False, help="Whether to show a progress bar.")

    network_: CrowdNetwork = fitted(help="Trained network with the worker parameters.")
    history_: pd.DataFrame = fitted(help="Loss, validation score and seconds of every epoch.")
    epochs_: int = fitted(help="Number of epochs planned for the fit.")
    n_iter_: int = fitted(help="Number of completed epochs.")
    search_: pd.DataFrame = fitted(help="Learning curve of the epoch search; only with ``epochs='auto'``.")
    strength_: float = fitted(help="Number of votes that the crowd's confusion matrix is worth as a prior.")

    # ------------------------------------------------------------------ the model of a method

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        """Return the worker parameters by name: tensors, layers and `WorkerTable` objects."""
        raise NotImplementedError

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        """Set the worker parameters from the training votes, in place; by default they stay unchanged."""

    def _label_log_probs(self, batch: Batch) -> Tensor:
        """Return log P(label given task and worker) for every vote, (n_votes, n_classes)."""
        raise NotImplementedError

    def _loss(self, batch: Batch) -> Tensor:
        """Return the mean loss of the votes in a batch."""
        return batch.weighted_mean(compute_vote_nll(batch, self._label_log_probs(batch)))

    def _gold_loss(self, batch: Batch, is_gold: Tensor, gold: Tensor) -> Tensor:
        """Return the sum of the losses of gold tasks."""
        return compute_gold_cross_entropy(batch, is_gold, gold)

    def _class_probs(self, network: CrowdNetwork, hidden: Tensor, logits: Tensor) -> Tensor:
        """Return class probabilities, (n_tasks, n_classes), from hidden units and logits."""
        probs: Tensor = import_torch().softmax(logits, dim=1)
        return probs

    def _make_parameter_groups(self, network: CrowdNetwork, n_tasks: int) -> list[ParameterGroup]:
        """Return the parameters of the network in groups for the training loop."""
        return network.make_parameter_groups(self.worker_learning_rate, self.l2 / n_tasks)

    def _make_builder(self, feature_shape: Sequence[int], n_workers: int, n_classes: int) -> NetworkBuilder:
        """Return the builder of the network."""
        return NetworkBuilder(
            classifier=self.classifier, input_shape=compute_input_shape(list(feature_shape), self.classifier),
            n_workers=n_workers, n_classes=n_classes, hidden=self.hidden, dropout=self.dropout,
            make_worker_parameters=self._make_worker_parameters, initialize=self._initialize_parameters,
        )  # fmt: skip

    def _make_vote_loss(self) -> VoteLoss:
        """Return the loss of a network on votes."""
        return VoteLoss(self._label_log_probs, self._loss, self._gold_loss, separable=self.separable)

    def _train(self, job: TrainingJob, network: CrowdNetwork) -> TrainedNetworks:
        """Train the network, or several, and return them."""
        return train_network(job, network)

    def _set_method_attributes(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        """Set fitted attributes of the method, after those of the network and before the posterior."""

    def _pair_label_probs(
        self, network: CrowdNetwork, pairs: Pairs, tally: NDArray[np.float64], prior: CrowdPrior
    ) -> NDArray[Any]:
        """Return P(label of the pair given class) for the posterior, (n_pairs, n_classes)."""
        return shrink_pair_label_probs(pairs, tally, prior)

    # ------------------------------------------------------------------ fitting

    def _count_matrices(self, votes: AnyCrowd) -> int:
        """Return the number of confusion matrices: one per worker, or one per vote of a batch."""
        return max(votes.n_workers, self.batch_size * votes.n_votes // max(votes.n_tasks, 1))

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters(crowd)
        current_process_group().check_equal(
            DIFFERENT_DATA, X, crowd.task, crowd.worker, crowd.label, crowd.weight, gold
        )
        with progress.show_if(self.verbose):
            job, network = self._prepare_job(X, crowd, gold)
            trained = self._train(job, network)
        self._set_results(trained, job, X, crowd, gold)

    def _prepare_job(
        self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> tuple[TrainingJob, CrowdNetwork]:
        """Return the description of the training, with the number of epochs chosen, and the untrained network."""
        builder = self._make_builder(X.shape[1:], crowd.n_workers, crowd.n_classes)
        network, training_set = prepare_training(
            builder, X, crowd, gold, validation=self.validation, random_state=self.random_state,
            device=self.device, precision=self.precision,
        )  # fmt: skip
        epochs = (
            choose_default_epochs(len(training_set), self.batch_size) if self.epochs in (None, "auto") else self.epochs
        )
        settings = TrainingSettings(
            epochs=epochs, batch_size=self.batch_size, optimiser=self.optimiser,  # type: ignore[arg-type]  # a number by now
            learning_rate=self.learning_rate, schedule=self.schedule, random_state=self.random_state, device=self.device,
            dtype="float32" if self.precision == "single" else "float64", n_threads=1 if network.is_small else None,
        )  # fmt: skip
        job = TrainingJob(
            builder=builder, training_set=training_set, loss=self._make_vote_loss(), settings=settings,
            make_groups=self._make_parameter_groups, predict=self._predict_with,
            checkpoint=self._find_checkpoint(network, X, crowd, gold), loads_best=self.keep == "selected",
            title=type(self).__name__,
        )  # fmt: skip
        if self.epochs == "auto":
            search = search_epochs(job)
            job = replace(job, settings=replace(settings, epochs=search.epochs), search=search)
        return job, network

    def _find_checkpoint(
        self, network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> Path | None:
        """Return the checkpoint file of this fit."""
        # Two functions may share a name, so the description of a classifier includes the module that it made.
        description = f"{describe_classifier(self.classifier)} {network.module}"
        return open_learner_checkpoint(self.checkpoint, self, description, X, crowd, gold).path

    def _set_results(
        self,
        trained: TrainedNetworks,
        job: TrainingJob,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> None:
        """Set all fitted attributes."""
        self._set_networks(trained.networks)
        self.history_, self.n_iter_, self.epochs_ = trained.history, len(trained.history), job.settings.epochs
        vars(self).pop("search_", None)  # of an earlier fit
        if job.search is not None:
            self.search_ = job.search.curve
        for name, value in trained.attributes.items():
            setattr(self, name, value)
        self._set_method_attributes(trained, job, X, crowd, gold)
        posterior = compute_deep_posterior(
            self._predict_proba(X),
            crowd,
            gold,
            lambda pairs, tally, prior: self._pair_label_probs(self.network_, pairs, tally, prior),
        )
        self.strength_ = posterior.strength
        self._set_fitted(crowd, posterior.probs)

    def _calibration_parameters(self) -> dict[str, Any]:
        return {**super()._calibration_parameters(), "epochs": self.epochs_}  # a search need not be repeated

    def _set_networks(self, networks: Sequence[CrowdNetwork]) -> None:
        """Set the fitted networks."""
        (self.network_,) = networks

    def _check_parameters(self, crowd: Crowd) -> None:
        """Raise if a parameter is invalid."""
        check_choice("keep", self.keep, ("last", "selected"))
        check_choice("precision", self.precision, ("single", "double"))
        check_choice("optimiser", self.optimiser, ("adam", "adamw", "radam", "sgd"))
        if not 0 <= self.validation < 1:
            raise UsageError(f"validation must be a share, from 0 to below 1; got {self.validation}")
        if self.keep == "selected" and self.validation == 0:
            raise UsageError("keep='selected' compares epochs by held-out votes; hold out some, such as validation=0.1")
        if self.hidden < 1 or not 0 <= self.dropout < 1 or not self.l2 >= 0:
            raise UsageError(
                "hidden must be 1 or more, dropout from 0 to below 1, and l2 0 or more; "
                f"got hidden={self.hidden}, dropout={self.dropout}, l2={self.l2}"
            )
        if self.batch_size < 1 or not self.learning_rate > 0:
            raise UsageError(
                f"batch_size must be 1 or more and learning_rate positive; got {self.batch_size} and {self.learning_rate}"
            )
        if self.epochs == "auto" and not self.predicts_votes:
            raise UsageError(
                f"epochs='auto' compares epochs by the probability of hidden votes, which {type(self).__name__} does not "
                "model; give the number of epochs, such as epochs=50"
            )
        if self.epochs == "auto" and self.schedule != "constant":
            raise UsageError(
                f"epochs='auto' needs step sizes that do not depend on the number of epochs; got schedule={self.schedule!r}, use "
                "schedule='constant'"
            )
        if self.epochs not in (None, "auto") and not (isinstance(self.epochs, int | np.integer) and self.epochs >= 1):
            raise UsageError(f"epochs must be a whole number from 1, or 'auto'; got {self.epochs!r}")

    # ------------------------------------------------------------------ prediction

    @property
    def _networks(self) -> tuple[CrowdNetwork, ...]:
        """Fitted networks, whose predictions are averaged."""
        return (self.network_,)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._predict_with(self._networks, X)

    def _predict_with(self, networks: Sequence[CrowdNetwork], X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of the class probabilities of several networks."""
        return _average([self._network_class_probs(network, X) for network in networks])

    def _network_class_probs(self, network: CrowdNetwork, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the class probabilities of one network, (n_tasks, n_classes)."""
        batches = [
            self._class_probs(network, hidden, logits).cpu().double().numpy()
            for _, hidden, logits in network.iterate_batches(X)
        ]
        return np.concatenate(batches) if batches else np.empty((0, network.n_classes))

    def predict_worker_proba(self, X: FeaturesLike, workers: Sequence[Any] | pd.Index) -> NDArray[np.float64]:
        """Return label probabilities of workers on tasks, as the model has them.

        A worker without training votes is treated as an average worker.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.
        workers : sequence
            Worker ids.

        Returns
        -------
        ndarray of shape (n_tasks, n_workers, n_classes)
        """
        rows, positions = self._validate_features(X), self._worker_positions(workers)
        probs = np.repeat(self._average_worker_probs(self.predict_proba(rows))[:, None], len(positions), axis=1)
        trained = np.flatnonzero(positions >= 0)
        if len(trained) and len(rows):
            probs[:, trained] = self._worker_label_probs(rows, positions[trained])
        return probs

    def _average_worker_probs(self, class_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return label probabilities of a worker without training votes, (n_tasks, n_classes)."""
        return class_probs @ self.crowd_confusion_

    def _worker_label_probs(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return label probabilities of workers by position, (n_tasks, n_workers, n_classes)."""
        return _average([self._network_label_probs(network, X, workers) for network in self._networks])

    def _network_label_probs(
        self, network: CrowdNetwork, X: NDArray[np.float64], workers: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return label probabilities of workers by one network, (n_tasks, n_workers, n_classes)."""
        return predict_label_probs(network, self._label_log_probs, X, workers)

    # ------------------------------------------------------------------ results

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair | true class) as reported in confusion matrices.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of each row.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
            Frequencies, shrunk toward the confusion matrix of the crowd.
        """
        return shrink_label_probs(tally, pairs, self.tally_, self._pairs, self.strength_)

    def accuracy_pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Return the prior of a worker's accuracy as pseudo-votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        correct, total : float
            Number of correct pseudo-votes, and of all pseudo-votes.
        """
        return count_shrinkage_votes(self.posterior_, self.crowd_confusion_, self.strength_)

    def save(self, folder: str | Path) -> None:
        """Write parameters and fitted attributes to a folder of arrays, tables and JSON.

        Of several processes that trained together, the first one writes.

        Parameters
        ----------
        folder : path-like
            Folder to create; :func:`wisecrowd.load` reads it.
        """
        if progress.is_main_process():
            super().save(folder)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> CrowdNetwork:
        """Return a network, built from its saved arrays.

        Parameters
        ----------
        name : str
            Name of the fitted attribute.
        arrays : dict of ndarray
            Saved arrays.

        Returns
        -------
        CrowdNetwork
        """
        builder = self._make_builder(self.feature_shape_, self._n_workers, len(self.classes_))
        return builder.restore(arrays)


def predict_label_probs(
    network: CrowdNetwork,
    label_log_probs: Callable[[Batch], Tensor],
    X: NDArray[np.float64],
    workers: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the label probabilities of workers on tasks by one network.

    Parameters
    ----------
    network : CrowdNetwork
        Trained network.
    label_log_probs : callable
        Function from a `Batch` to log P(label) of every vote.
    X : ndarray of shape (n_tasks, ...)
        Features.
    workers : ndarray of int
        Worker codes.

    Returns
    -------
    ndarray of shape (n_tasks, n_workers, n_classes)

    Examples
    --------
    >>> network = CrowdNetwork("linear", (1,), n_classes=2, hidden=1, dropout=0.0)
    >>> _ = network.prepare_inputs(np.array([[-1.0], [1.0]]), fit=True)
    >>> predict_label_probs(network, lambda batch: batch.class_log_probs[batch.task], np.array([[1.0]]), np.array([0])).tolist()
    [[[0.5, 0.5]]]
    """
    torch = import_torch()
    batches: list[NDArray[np.float64]] = []
    for inputs, hidden, logits in network.iterate_batches(X, size=max(1, MAX_PREDICTED_VOTES // len(workers))):
        codes = cross_tasks_and_workers(len(inputs), workers)
        task, worker = (torch.from_numpy(code).to(inputs.device) for code in codes)
        ones = torch.ones_like(task)
        batch = Batch(network, inputs, hidden, logits, task, worker, label=0 * ones, weight=ones)
        probs = label_log_probs(batch).exp().cpu().double().numpy()
        batches.append(probs.reshape(len(inputs), len(workers), -1))
    return np.concatenate(batches)


def _average(arrays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean of arrays."""
    first, *others = arrays
    return sum(others, start=first) / len(arrays)
