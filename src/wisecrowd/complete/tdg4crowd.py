"""TDG4Crowd: labels from random embeddings of workers and tasks (Fang et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.checkpoints import open_learner_checkpoint
from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, check_choice, preview
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes, NetworkBuilder
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.deep_training import TrainingJob, choose_default_epochs, train_network
from wisecrowd.nn.epoch_search import search_epochs
from wisecrowd.nn.modules import compute_input_shape
from wisecrowd.nn.process_group import DIFFERENT_DATA, current_process_group
from wisecrowd.nn.trainer import ParameterGroup, TrainingSettings
from wisecrowd.nn.training_set import prepare_training
from wisecrowd.nn.vote_loss import VoteLoss, compute_vote_nll
from wisecrowd.nn.vote_tensors import Batch, WorkerTable
from wisecrowd.utils import progress
from wisecrowd.utils.slices import slice_rows

if TYPE_CHECKING:
    from torch import Tensor

#: Dimensions of the embedding of a worker, of a task, and of the layer that combines both; the paper's.
WORKER_DIMS, TASK_DIMS, COMBINED_UNITS = 8, 50, 16
#: Initial log variance of all embeddings; with the variance of the standard normal prior, noise would hide the workers.
INITIAL_LOG_VARIANCE = -4.0


@method_class
class TDG4Crowd(Completer):
    """Random embeddings of workers and tasks, from which a small network computes labels.

        u_r ~ N(m_r, diag σ_r²)  in 8 dimensions,      m and σ trained for every worker
        v_i ~ N(m(x_i), diag σ(x_i)²)  in 50,          m and σ by a network of the task's features, two layers of ``hidden``
        P(r gives · on task i) = softmax(W₂ relu(W₁ [u_r, v_i] + b₁) + b₂),      58 → 16 → classes

    The loss is the −log P of the votes plus the terms of a variational autoencoder: ``kl`` times KL(N(m, σ²) ‖ N(0,
    1)), and ``rebuild`` times the mean squared error with which a second network reconstructs the standardised
    features from v_i. Predictions use the means m, or, with ``draws``, the mean over several draws of all embeddings.
    By default the number of epochs is chosen by hidden votes (``search_`` has the curve).

    The model predicts from features alone: other votes on the same task count only as far as the network has
    memorised them. Choose it where the features show what the workers see. `MMLC` combines workers and tasks in
    another way, and `DoctorNet` is a close relative. Benchmark: ``wisecrowd bench show all-completers``.

    The sizes 8, 50 and 16 are the paper's (for texts it has 32 instead of 16, and reads words in order). The program
    of the authors differs: its last layer has a ReLU, so that logits are never negative; it trains the autoencoders
    throughout, although it means to freeze them; it draws embeddings in every prediction; it sums the divergence over
    a batch, beside which the reconstruction error is negligible; and it looks up images by the number of the worker
    instead of the task, so that its results on LabelMe are of other images.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import TDG4Crowd, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + np.random.default_rng(0).normal(size=200)
    >>> visible, hidden = simulation.crowd.hide(0.2)
    >>> fitted = TDG4Crowd(epochs=20).fit(visible, pd.DataFrame({"x": x}))
    >>> bool(fitted.predict_vote_log_proba(hidden).mean() > np.log(1 / 2))  # better than a guess
    True
    """

    uses_features: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("fang2023tdg4crowd",)
    breaks: ClassVar[dict[str, str]] = DeepLearner.breaks | {
        "worker_names_do_not_matter": "embeddings are drawn vote by vote, and names decide on the order of votes on a task",
    }

    fill_mode: Literal["hard", "sample", "soft"] = parameter(
        default="sample",
        help="Labels to fill in: 'sample' draws one, 'hard' takes the most probable, 'soft' adds all of them with weights.",
    )
    kl: float = parameter(default=0.01, help="Weight of the divergence of embeddings from a standard normal.")
    rebuild: float = parameter(default=1.0, help="Weight of the reconstruction error of features.")
    draws: int = parameter(default=0, help="Number of draws of the embeddings for a prediction; 0 uses their means.")
    hidden: int = parameter(default=100, help="Width of the two layers that embed features.")
    epochs: int | Literal["auto"] = parameter(
        default="auto", help="Number of epochs; 'auto' chooses it by hidden votes."
    )
    batch_size: int = parameter(default=64, help="Number of tasks per step.")
    learning_rate: float = parameter(default=1e-3, help="Step size.")
    l2: float = parameter(default=0.0, help="Ridge penalty on the weights of the network of features.")
    precision: Literal["single", "double"] = parameter(
        default="single", help="Floating point precision of the network: 'single' or 'double'."
    )
    device: str = parameter(
        default="auto", help="Device of the network: 'cpu', 'cuda', or 'auto' for a GPU if available."
    )
    checkpoint: str | None = parameter(
        default=None, help="Folder for checkpoints, from which an interrupted fit resumes."
    )
    verbose: bool = parameter(default=False, help="Whether to show a progress bar.")

    epochs_: int = fitted(help="Number of epochs.")
    history_: pd.DataFrame = fitted(help="Loss and seconds of every epoch.")
    search_: pd.DataFrame = fitted(help="Learning curve of the epoch search; only with ``epochs='auto'``.")
    worker_means_: NDArray[np.float64] = fitted(
        help="Means of the workers' embeddings.", shape=("n_workers", "embedding"), finite=True
    )
    worker_units_: NDArray[np.float64] = fitted(
        help="Summands of the workers in the first layer.", shape=("draws", "n_workers", "n_units"), finite=True
    )
    task_units_: NDArray[np.float64] = fitted(
        help="Summands of the tasks in the first layer.", shape=("draws", "n_tasks", "n_units"), finite=True
    )
    last_weight_: NDArray[np.float64] = fitted(
        help="Weights of the last layer.", shape=("n_classes", "n_units"), finite=True
    )
    last_bias_: NDArray[np.float64] = fitted(help="Biases of the last layer.", shape=("n_classes",), finite=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not np.isfinite([self.kl, self.rebuild]).all() or min(self.kl, self.rebuild, self.draws) < 0:
            raise UsageError(
                f"kl, rebuild and draws must be finite and not negative; got {self.kl}, {self.rebuild} and {self.draws}"
            )
        if self.hidden < 1 or self.batch_size < 1 or not self.l2 >= 0:
            raise UsageError(
                "hidden must be 1 or more, batch_size must be 1 or more, and l2 not negative; "
                f"got {self.hidden}, {self.batch_size} and {self.l2}"
            )
        check_choice("precision", self.precision, ("single", "double"))
        epochs: Any = self.epochs
        if epochs != "auto" and not (isinstance(epochs, int | np.integer) and epochs >= 1):
            raise UsageError(f"epochs must be a whole number from 1, or 'auto'; got {epochs!r}")

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        if crowd.n_classes < 2:
            raise InputError(
                f"TDG4Crowd needs two classes or more, and these votes have only {preview(self.classes_)}; give all classes when "
                "reading the votes: classes=[...]"
            )
        votes = (crowd.task, crowd.worker, crowd.label, crowd.weight)
        current_process_group().check_equal(DIFFERENT_DATA, X, *votes)
        model = EmbeddingModel(self.kl, self.rebuild, self.hidden)
        with progress.show_if(self.verbose):
            job, network = self._prepare_job(model, X, crowd)
            trained = train_network(job, network)
        self.epochs_, self.history_ = job.settings.epochs, trained.history
        vars(self).pop("search_", None)  # of an earlier fit
        if job.search is not None:
            self.search_ = job.search.curve
        self._set_embeddings(model, network, X)

    def _prepare_job(
        self, model: EmbeddingModel, X: NDArray[np.float64], crowd: Crowd
    ) -> tuple[TrainingJob, CrowdNetwork]:
        """Return the description of the training, with the number of epochs chosen, and the untrained network."""
        builder = model.make_builder(X.shape[1:], crowd.n_workers, crowd.n_classes)
        network, training_set = prepare_training(
            builder, X, crowd, None, validation=0.0, random_state=self.random_state,
            device=self.device, precision=self.precision,
        )  # fmt: skip
        epochs = choose_default_epochs(len(training_set), self.batch_size) if self.epochs == "auto" else self.epochs
        settings = TrainingSettings(
            epochs=epochs, batch_size=self.batch_size, learning_rate=self.learning_rate,
            random_state=self.random_state, device=self.device,
            dtype="float32" if self.precision == "single" else "float64", n_threads=1 if network.is_small else None,
        )  # fmt: skip
        checkpoint = open_learner_checkpoint(self.checkpoint, self, str(network.module), X, crowd, None)
        job = TrainingJob(
            builder=builder, training_set=training_set, settings=settings, predict=_predict_nothing,
            loss=VoteLoss(model.label_log_probs, model.compute_loss), make_groups=self._make_parameter_groups,
            checkpoint=checkpoint.path, title=type(self).__name__,
        )  # fmt: skip
        if self.epochs == "auto":
            search = search_epochs(job)
            job = replace(job, settings=replace(settings, epochs=search.epochs), search=search)
        return job, network

    def _make_parameter_groups(self, network: CrowdNetwork, n_tasks: int) -> list[ParameterGroup]:
        """Return the parameters of the network in groups for the training loop."""
        return network.make_parameter_groups(None, self.l2 / n_tasks)

    def _set_embeddings(self, model: EmbeddingModel, network: CrowdNetwork, X: NDArray[np.float64]) -> None:
        """Set the arrays that predictions need. The first layer is linear, so that workers and tasks have summands of their own."""
        layers = network.worker_parameters
        tasks, workers = model.embed_tasks(network, X), model.embed_workers(network)
        first, rng = _to_array(layers.first.weight), np.random.default_rng(self.random_state)
        number = max(1, self.draws)
        self.worker_means_ = workers.mean
        self.last_weight_, self.last_bias_ = _to_array(layers.last.weight), _to_array(layers.last.bias)
        self.worker_units_ = np.stack([self._draw(workers, rng) @ first[:, :WORKER_DIMS].T for _ in range(number)])
        self.task_units_ = np.stack([self._draw(tasks, rng) @ first[:, WORKER_DIMS:].T for _ in range(number)])
        self.task_units_ += _to_array(layers.first.bias)

    def _draw(self, points: GaussianPoints, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return one draw of embeddings, or their means."""
        if self.draws == 0:
            return points.mean
        return points.mean + points.spread * rng.normal(size=points.mean.shape)

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        probs = np.zeros((len(tasks), len(workers), len(self.classes_)))
        for rows in slice_rows(len(tasks), len(workers) * COMBINED_UNITS):
            for task_units, worker_units in zip(self.task_units_, self.worker_units_, strict=True):
                units = np.maximum(task_units[tasks[rows], None] + worker_units[workers], 0)
                probs[rows] += softmax(units @ self.last_weight_.T + self.last_bias_, axis=2)
        return WorkerLabelProbs(probs / len(self.task_units_))


class GaussianPoints(NamedTuple):
    """Gaussian distributions of embeddings.

    Attributes
    ----------
    mean, spread : ndarray of shape (n_points, n_dimensions)
        Mean and standard deviation of every coordinate.

    Examples
    --------
    >>> GaussianPoints(np.zeros((3, 8)), np.ones((3, 8))).mean.shape
    (3, 8)
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


@dataclass(frozen=True)
class EmbeddingModel:
    """Network that embeds workers and tasks and computes labels from both.

    Attributes
    ----------
    kl, rebuild : float
        Weights of the divergence and of the reconstruction error.
    hidden : int
        Width of the layers of encoder and decoder.

    Examples
    --------
    >>> builder = EmbeddingModel(kl=0.01, rebuild=1.0, hidden=4).make_builder([3], n_workers=5, n_classes=2)
    >>> tuple(builder.build(random_state=0).worker_table("points").shape)
    (5, 16)
    """

    kl: float
    rebuild: float
    hidden: int

    def make_builder(self, feature_shape: Sequence[int], n_workers: int, n_classes: int) -> NetworkBuilder:
        """Return the builder of the network.

        Parameters
        ----------
        feature_shape : sequence of int
            Shape of the features of one task.
        n_workers, n_classes : int
            Numbers of workers and classes.

        Returns
        -------
        NetworkBuilder
        """
        return NetworkBuilder(
            classifier=_EncoderLayers(self.hidden), input_shape=compute_input_shape(list(feature_shape), "mlp"),
            n_workers=n_workers, n_classes=n_classes, hidden=self.hidden, dropout=0.0,
            make_worker_parameters=self.make_parameters, has_head=False,
        )  # fmt: skip

    def make_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        """Return the table of worker embeddings and the layers for labels and reconstruction.

        Parameters
        ----------
        sizes : ModelSizes
            Sizes of the model.

        Returns
        -------
        dict
        """
        torch = import_torch()
        nn = torch.nn
        parameters = {
            # Mean and log variance, relative to the initial one; all workers start equal.
            "points": WorkerTable(torch.zeros(sizes.n_workers, 2 * WORKER_DIMS)),
            "first": nn.Linear(WORKER_DIMS + TASK_DIMS, COMBINED_UNITS),
            "last": nn.Linear(COMBINED_UNITS, sizes.n_classes),
        }
        if self.rebuild > 0:
            n_inputs = int(np.prod(sizes.input_shape))
            parameters["decoder"] = nn.Sequential(
                nn.Linear(TASK_DIMS, self.hidden), nn.ReLU(), nn.Linear(self.hidden, n_inputs)
            )
        return parameters

    def draw_embeddings(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Draw embeddings in training, or return their means in evaluation mode.

        Parameters
        ----------
        batch : Batch
            Tasks and votes.

        Returns
        -------
        worker : Tensor of shape (n_votes, 8)
            Embedding of the worker of each vote.
        task : Tensor of shape (n_tasks, 50)
            Embedding of each task.
        divergence : Tensor of shape (n_votes,)
            Divergence of both from the prior.
        """
        torch = import_torch()
        points, divergence = [], torch.zeros_like(batch.weight)
        for numbers, task in ((batch.worker_rows("points"), None), (batch.hidden, batch.task)):
            mean, log_variance = numbers.chunk(2, dim=1)
            log_variance = log_variance + INITIAL_LOG_VARIANCE
            noise = torch.randn_like(mean) if batch.network.module.training else torch.zeros_like(mean)
            points.append(mean + (log_variance / 2).exp() * noise)
            kl = (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1) / 2
            divergence = divergence + (kl if task is None else kl[task])
        return points[0], points[1], divergence

    def label_log_probs(self, batch: Batch) -> Tensor:
        """Return the log-probability of every class as the label of each vote in a batch.

        Parameters
        ----------
        batch : Batch
            Tasks and votes.

        Returns
        -------
        Tensor of shape (n_votes, n_classes)
        """
        worker, task, _ = self.draw_embeddings(batch)
        return _compute_label_log_probs(batch, worker, task)

    def compute_loss(self, batch: Batch) -> Tensor:
        """Return the mean loss of the votes in a batch.

        Parameters
        ----------
        batch : Batch
            Tasks and votes.

        Returns
        -------
        Tensor
            A scalar.
        """
        worker, task, divergence = self.draw_embeddings(batch)
        nll = compute_vote_nll(batch, _compute_label_log_probs(batch, worker, task))
        loss = batch.weighted_mean(self.kl * divergence + nll)
        if self.rebuild > 0:
            error = batch.shared("decoder")(task) - batch.inputs.flatten(1)
            loss = loss + self.rebuild * (error**2).mean()
        return loss

    def embed_tasks(self, network: CrowdNetwork, X: NDArray[np.float64]) -> GaussianPoints:
        """Return the embeddings of tasks.

        Parameters
        ----------
        network : CrowdNetwork
            Trained network.
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        GaussianPoints
        """
        hidden = [units.double().cpu().numpy() for _, units, _ in network.iterate_batches(X)]
        return _as_points(np.concatenate(hidden))

    def embed_workers(self, network: CrowdNetwork) -> GaussianPoints:
        """Return the embeddings of all workers.

        Parameters
        ----------
        network : CrowdNetwork
            Trained network.

        Returns
        -------
        GaussianPoints
        """
        return _as_points(_to_array(network.worker_table("points")))


class _EncoderLayers:
    """Builder of the encoder, from features to mean and log variance of an embedding."""

    is_small = True

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> Any:
        nn = import_torch().nn
        return nn.Sequential(
            nn.Flatten(), nn.Linear(int(np.prod(shape)), self.hidden), nn.ReLU(),
            nn.Linear(self.hidden, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 2 * TASK_DIMS),
        )  # fmt: skip


def _compute_label_log_probs(batch: Batch, worker: Tensor, task: Tensor) -> Tensor:
    """Return log P(label) of every vote from embeddings of workers and tasks."""
    torch = import_torch()
    units = torch.relu(batch.shared("first")(torch.cat([worker, task[batch.task]], dim=1)))
    log_probs: Tensor = torch.log_softmax(batch.shared("last")(units), dim=1)
    return log_probs


def _predict_nothing(networks: Sequence[CrowdNetwork], X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise, since the model has no classes to validate."""
    raise NotImplementedError("TDG4Crowd predicts labels of workers, not classes")


def _as_points(numbers: NDArray[np.float64]) -> GaussianPoints:
    """Return means and standard deviations from means and log variances."""
    mean, log_variance = np.split(numbers, 2, axis=1)
    return GaussianPoints(mean, np.exp((log_variance + INITIAL_LOG_VARIANCE) / 2))


def _to_array(tensor: Tensor) -> NDArray[np.float64]:
    """Return a tensor as an array in double precision."""
    return np.asarray(tensor.detach().double().cpu().numpy())
