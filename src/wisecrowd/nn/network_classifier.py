"""Networks as classifiers for soft targets."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.checkpoints import Arrays, Checkpoint, compute_fingerprint
from wisecrowd.classifiers.soft_classifier import Rows, SoftClassifier
from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.modules import (
    PREDICTION_BATCH_SIZE,
    build_module,
    check_weights,
    explain_shape_errors,
    prepare_inputs,
    without_memory,
)
from wisecrowd.nn.process_group import DIFFERENT_DATA, current_process_group
from wisecrowd.nn.schedules import ScheduleName
from wisecrowd.nn.seeding import fork_random_state, select_device
from wisecrowd.nn.trainer import OptimiserName, Trainer, TrainingSettings, select_prefix, split_by_decay

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

#: Smallest default numbers of epochs and of batches of a first fit.
MIN_EPOCHS, MIN_BATCHES = 20, 300


@dataclass
class NetworkClassifier(SoftClassifier):
    """Network that is trained on soft targets in minibatches.

    It minimises Σ_i w_i Σ_k q_ik log 1/f_k(x_i) + λ/2 ‖W‖², as `Logistic` does, over the weights of all layers.
    Features are standardised one by one, and images by channel, with the moments of the first fit.

    The first fit runs for ``epochs`` epochs. Every later fit continues from the weights and moments of the one
    before, with other targets, for ``epochs_per_fit`` epochs. Computation is in single precision; the same seed gives
    the same bits.

    A torch module defines an architecture: it is copied and its weights are drawn again, except for frozen ones
    (``requires_grad_(False)``). To start from trained weights, give a function that returns the module. A module
    takes rows in the shape of the features, images with channels first, and returns logits.

    Parameters
    ----------
    choice : {"linear", "mlp", "cnn"}, torch.nn.Module or callable, default "mlp"
        Architecture. A callable takes the input shape and the number of classes and returns a module.
    l2 : float, default 0
        Ridge penalty λ on the weights, as in `Logistic`; biases have none.
    random_state : int, default 0
        Seed of weights, batches and dropout.
    hidden : int, default 128
        Width of the hidden layer of "mlp" and of the dense layer of "cnn".
    dropout : float, default 0.5
        Share of hidden units that dropout sets to zero; half of it between convolutions.
    epochs : int, optional
        Epochs of the first fit; by default 20, or more for few rows until there are 300 batches.
    epochs_per_fit : int, default 1
        Epochs of every later fit.
    learning_rate, batch_size : float, int, default 1e-3 and 64
        Step size, and rows per step.
    weight_decay : float, default 0
        Ridge penalty that does not depend on the number of rows, added to λ / rows.
    optimiser, schedule : str, default "adam" and "constant"
        As in `TrainingSettings`. The schedule covers the first fit.
    standardise : bool, default True
        Whether to standardise features.
    device : str, default "auto"
        Device, as in `select_device`.
    checkpoint : str, optional
        Folder for checkpoints, from which an interrupted first fit resumes.

    Examples
    --------
    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> model = NetworkClassifier("linear", epochs=100, learning_rate=0.1).fit(X, targets)
    >>> model.predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    >>> NetworkClassifier(lambda shape, n_classes: None).fit(X, targets)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the classifier function must return a torch module; it returned None
    """

    choice: Any = "mlp"
    l2: float = 0.0
    random_state: int = 0
    hidden: int = 128
    dropout: float = 0.5
    epochs: int | None = None
    epochs_per_fit: int = 1
    learning_rate: float = 1e-3
    batch_size: int = 64
    weight_decay: float = 0.0
    optimiser: OptimiserName = "adam"
    schedule: ScheduleName = "constant"
    standardise: bool = True
    device: str = "auto"
    checkpoint: str | None = None

    standardiser: Standardiser = field(default_factory=Standardiser, init=False, repr=False)
    trainer: Trainer | None = field(default=None, init=False, repr=False)
    shape: tuple[int, ...] = field(default=(), init=False, repr=False)
    n_classes: int = field(default=0, init=False, repr=False)
    n_rows: int = field(default=0, init=False, repr=False)
    """Number of rows of the first fit."""

    def __post_init__(self) -> None:
        if self.hidden < 1 or not 0 <= self.dropout < 1 or self.l2 < 0 or self.epochs_per_fit < 0:
            raise UsageError(
                "hidden must be 1 or more, dropout from 0 to below 1, l2 and epochs_per_fit not negative; "
                f"got {self.hidden}, {self.dropout}, {self.l2} and {self.epochs_per_fit}"
            )

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """Fit the network, or continue the fit with other targets.

        Parameters
        ----------
        X : ndarray of shape (n_rows, ...)
            Features.
        targets : ndarray of shape (n_rows, n_classes)
            Soft targets.
        weight : ndarray of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        NetworkClassifier
            The classifier itself.
        """
        torch = import_torch()
        is_first = self.trainer is None
        rows = self.prepare_rows(X, fit=True)
        weighted_targets = targets if weight is None else targets * weight[:, None]
        if is_first:
            current_process_group().check_equal(DIFFERENT_DATA, rows, weighted_targets)
        trainer = self.trainer or self._start_trainer(rows, weighted_targets)
        inputs = self.to_tensor(rows)
        target_tensor = self.to_tensor(weighted_targets)

        def loss(batch: Tensor) -> Tensor:
            logits: Tensor = trainer.model(inputs[batch])
            return -(target_tensor[batch] * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()

        trainer.run(loss, len(rows), epochs=None if is_first else self.epochs_per_fit)
        trainer.checkpoint = Checkpoint(None, {})  # the file belongs to the first fit
        return self

    def _start_trainer(self, rows: Rows, targets: Rows) -> Trainer:
        """Set and return the trainer of a new network."""
        path = None
        if self.checkpoint is not None:
            path = Path(self.checkpoint) / f"network-{compute_fingerprint(rows, targets, self.describe())}.npz"
        self.trainer = self._make_trainer(rows.shape[1:], targets.shape[1], len(rows), path)
        try:
            self._check_output(rows[:1])
        except UsageError:
            self.trainer = None
            raise
        return self.trainer

    def _make_trainer(self, shape: tuple[int, ...], n_classes: int, n_rows: int, path: Path | None = None) -> Trainer:
        """Return the trainer of a new network and set the sizes of the data."""
        self.shape, self.n_classes, self.n_rows = shape, n_classes, n_rows
        with fork_random_state(select_device("cpu"), self.random_state):
            module = build_module(self.choice, shape, n_classes, self.hidden, self.dropout)
        is_small = isinstance(self.choice, str) and self.choice != "cnn"
        n_batches = -(-n_rows // self.batch_size)
        settings = TrainingSettings(
            epochs=max(MIN_EPOCHS, -(-MIN_BATCHES // n_batches)) if self.epochs is None else self.epochs,
            batch_size=self.batch_size, optimiser=self.optimiser, schedule=self.schedule,
            learning_rate=self.learning_rate, weight_decay=self.weight_decay + self.l2 / n_rows,
            random_state=self.random_state, device=self.device, n_threads=1 if is_small else None,
        )  # fmt: skip
        return Trainer(module, settings, groups=split_by_decay(module), checkpoint=path, title="network")

    def _check_output(self, row: Rows) -> None:
        """Raise if the network does not fit the rows or the classes."""
        expected = (1, self.n_classes)
        with explain_shape_errors(self.shape):
            shape = self._compute_logits(self.module, row).shape
        if shape != expected:
            raise UsageError(
                f"the network must return one logit per class, shape {expected}; it returned shape {shape}"
            )

    def prepare_rows(self, X: Rows, *, fit: bool = False) -> Rows:
        """Return features in the layout of the network, standardised.

        Parameters
        ----------
        X : ndarray of shape (n_rows, ...)
            Features.
        fit : bool, default False
            Whether to fit the standardiser to these features.

        Returns
        -------
        ndarray
        """
        rows: Rows = prepare_inputs(X, self.choice, self.standardiser if self.standardise else None, fit=fit)
        return rows

    def to_tensor(self, rows: Rows) -> Tensor:
        """Return rows as a tensor on the device of the network.

        Parameters
        ----------
        rows : ndarray
            Numbers.

        Returns
        -------
        Tensor
        """
        assert self.trainer is not None
        torch = import_torch()
        tensor: Tensor = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(self.trainer.device)
        return tensor

    # ------------------------------------------------------------------ prediction

    def predict_proba(self, X: Rows) -> Rows:
        """Return class probabilities, without dropout.

        Parameters
        ----------
        X : ndarray of shape (n_rows, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        module = self.module  # raises if the network is not fitted
        return softmax(self._compute_logits(module, self.prepare_rows(X)), axis=1)

    def _compute_logits(self, module: nn.Module, rows: Rows) -> Rows:
        """Return the logits of prepared rows."""
        module.eval()
        blocks = [rows[start : start + PREDICTION_BATCH_SIZE] for start in range(0, len(rows), PREDICTION_BATCH_SIZE)]
        with import_torch().no_grad():
            logits = [module(self.to_tensor(block)).cpu().double().numpy() for block in blocks]
        return np.concatenate(logits) if logits else np.empty((0, self.n_classes))

    @property
    def module(self) -> nn.Module:
        """Trained torch module."""
        if self.trainer is None:
            raise UsageError("this network is not fitted yet; call fit(X, targets) first")
        return self.trainer.model

    @property
    def history(self) -> pd.DataFrame:
        """Loss and duration of the epochs of all fits."""
        assert self.trainer is not None
        return self.trainer.history.to_frame()

    def describe(self) -> str:
        """Return all settings as one line, equal in every process; a function is described by its name alone.

        Returns
        -------
        str
        """
        settings = {
            setting.name: getattr(self, setting.name)
            for setting in fields(self)
            if setting.init and setting.name != "checkpoint"
        }
        return str(settings | {"choice": describe_classifier(self.choice)})

    def clone_unfitted(self) -> Self:
        """Return a classifier with the same settings that is not fitted.

        Returns
        -------
        NetworkClassifier
        """
        return replace(self)

    def log_prior(self) -> float:
        """Return −λ/2 ‖W‖², without biases.

        Returns
        -------
        float
        """
        if self.trainer is None or self.l2 == 0:
            return 0.0
        norm = sum(float((weight.detach() ** 2).sum()) for weight in self.module.parameters() if weight.ndim > 1)
        return -0.5 * self.l2 * norm

    # ------------------------------------------------------------------ state

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that prediction needs.

        Returns
        -------
        dict of ndarray
        """
        weights = {f"model.{name}": weight.cpu().numpy().copy() for name, weight in self.module.state_dict().items()}
        return self._size_arrays() | weights

    def state(self) -> Arrays:
        """Return everything that a further fit needs: weights, moments of the optimiser, random states, history.

        Returns
        -------
        dict of ndarray
        """
        assert self.trainer is not None
        return self._size_arrays() | self.trainer.arrays()

    def _size_arrays(self) -> Arrays:
        """Return the sizes of the data and the standardiser."""
        sizes: Arrays = {
            "shape": np.array(self.shape),
            "n_classes": np.array(self.n_classes),
            "n_rows": np.array(self.n_rows),
        }
        if self.standardiser.mean is not None and self.standardiser.scale is not None:
            sizes |= {"mean": self.standardiser.mean, "scale": self.standardiser.scale}
        return sizes

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a fitted classifier.

        Parameters
        ----------
        arrays : dict of ndarray
            Result of `arrays` or `state`.

        Returns
        -------
        NetworkClassifier
            The classifier itself.
        """
        torch = import_torch()
        if "mean" in arrays:
            self.standardiser = Standardiser(arrays["mean"], arrays["scale"])
        shape = tuple(int(size) for size in arrays["shape"])
        with fork_random_state(select_device("cpu"), self.random_state), without_memory():
            module = build_module(self.choice, shape, int(arrays["n_classes"]), self.hidden, self.dropout)
        check_weights(module, select_prefix(arrays, "model"))
        self.trainer = self._make_trainer(shape, int(arrays["n_classes"]), int(arrays["n_rows"]))
        if "history" in arrays:
            self.trainer.restore(arrays)
        else:
            weights = select_prefix(arrays, "model").items()
            self.module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights})
        return self


def describe_classifier(classifier: Any) -> str:
    """Return a text for a classifier, equal in every process; a function is described by its name alone.

    Parameters
    ----------
    classifier : str, torch.nn.Module or callable
        Classifier as in `build_module`.

    Returns
    -------
    str

    Examples
    --------
    >>> describe_classifier("mlp"), describe_classifier(describe_classifier)
    ('mlp', 'wisecrowd.nn.network_classifier.describe_classifier')
    """
    has_name = hasattr(classifier, "__qualname__")
    return f"{classifier.__module__}.{classifier.__qualname__}" if has_name else str(classifier)
