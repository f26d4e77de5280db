"""Networks as classifiers that learn from soft targets."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.classifiers.soft import Rows, SoftClassifier, Standardiser
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.checkpoint import Arrays, fingerprint
from wisecrowd.nn.modules import BLOCK, build, prepared, tried_on
from wisecrowd.nn.process_group import OTHER_DATA, my_team
from wisecrowd.nn.seeding import chosen_device, own_chance
from wisecrowd.nn.trainer import OptimiserName, ScheduleName, Trainer, Training, part_of, weights_and_biases

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

#: Epochs and batches that a first fit has at least.
EPOCHS, BATCHES = 20, 300


@dataclass
class Network(SoftClassifier):
    """A network trained on soft targets by minibatches.

    minimises Σ_i w_i Σ_k q_ik log 1/f_k(x_i) + λ/2 ‖W‖², as `Logistic` does, over the weights of all layers.

    Features are standardised one by one, images by channel, by what was seen first. The first fit goes through all rows
    ``epochs`` times; a later one, with other targets, goes on from the weights and the moments of the optimiser that
    the one before left, ``epochs_per_fit`` times. In single precision; same seed, same bits.

    A torch module is taken as an architecture: copied, and its layers drawn anew, but for those that are frozen
    (``requires_grad_(False)``), which stay as they are. To start from trained weights, give a function that returns the
    module. A module of your own takes rows in the shape that they are given in (images
    with channels first) and gives logits.

    >>> X, targets = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]])
    >>> model = Network("linear", epochs=100, learning_rate=0.1).fit(X, targets)
    >>> model.predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    >>> Network(lambda shape, n_classes: None).fit(X, targets)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the function that makes the network must give a torch module; it gave None
    """

    choice: Any = "mlp"
    """"linear", "mlp", "cnn", a torch module, or a function of (input shape, number of classes) that makes one."""
    l2: float = 0.0
    """λ: a ridge as in `Logistic`, so that what suits that suits "linear"; biases are free."""
    random_state: int = 0
    hidden: int = 128
    """Width of the hidden layer of "mlp", and of the dense one of "cnn"."""
    dropout: float = 0.5
    """Of the hidden layer; between convolutions, half of it."""
    epochs: int | None = None
    """Of the first fit; unless told, 20, or as many more as few rows need for 300 batches."""
    epochs_per_fit: int = 1
    """Epochs of every fit after the first."""
    learning_rate: float = 1e-3
    batch_size: int = 64
    weight_decay: float = 0.0
    """A ridge that does not thin out with the number of rows, added to λ / rows."""
    optimiser: OptimiserName = "adam"
    schedule: ScheduleName = "constant"
    """Over the first fit; later ones keep the rate that it ended with."""
    standardise: bool = True
    device: str = "auto"
    checkpoint: str | None = None
    """A folder; a first fit that is killed goes on where it was when the same fit is asked for again."""

    standardiser: Standardiser = field(default_factory=Standardiser, init=False, repr=False)
    trainer: Trainer | None = field(default=None, init=False, repr=False)
    shape: tuple[int, ...] = field(default=(), init=False, repr=False)
    n_classes: int = field(default=0, init=False, repr=False)
    n_rows: int = field(default=0, init=False, repr=False)
    """Of the first fit."""

    def __post_init__(self) -> None:
        if self.hidden < 1 or not 0 <= self.dropout < 1 or self.l2 < 0 or self.epochs_per_fit < 0:
            raise UsageError(
                "hidden must be 1 or more, dropout from 0 to below 1, l2 and epochs_per_fit not negative; "
                f"got {self.hidden}, {self.dropout}, {self.l2} and {self.epochs_per_fit}"
            )

    # ------------------------------------------------------------------ learning

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """As `SoftClassifier.fit`."""
        torch = need_torch()
        first = self.trainer is None
        rows = self.rows(X, learn=True)
        wanted = targets if weight is None else targets * weight[:, None]
        if first:
            my_team().same(OTHER_DATA, rows, wanted)
        trainer = self.trainer or self._begin(rows, wanted)
        inputs = self.tensor(rows)
        taught = self.tensor(wanted)

        def loss(batch: Tensor) -> Tensor:
            logits: Tensor = trainer.model(inputs[batch])
            return -(taught[batch] * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()

        trainer.run(loss, len(rows), epochs=None if first else self.epochs_per_fit)
        trainer.checkpoint = None  # the file is of the first fit
        return self

    def _begin(self, rows: Rows, wanted: Rows) -> Trainer:
        """The network and its trainer, for rows and classes such as these."""
        place = None
        if self.checkpoint is not None:
            place = Path(self.checkpoint) / f"network-{fingerprint(rows, wanted, self.describe())}.safetensors"
        self.trainer = self._new_trainer(rows.shape[1:], wanted.shape[1], len(rows), place)
        try:
            self._try_out(rows[:1])
        except UsageError:
            self.trainer = None
            raise
        return self.trainer

    def _new_trainer(self, shape: tuple[int, ...], n_classes: int, n_rows: int, place: Path | None = None) -> Trainer:
        self.shape, self.n_classes, self.n_rows = shape, n_classes, n_rows
        with own_chance(chosen_device("cpu"), self.random_state):
            module = build(self.choice, shape, n_classes, self.hidden, self.dropout)
        settings = Training(
            epochs=self._planned(n_rows), batch_size=self.batch_size, optimiser=self.optimiser, schedule=self.schedule,
            learning_rate=self.learning_rate, weight_decay=self.weight_decay + self.l2 / n_rows,
            random_state=self.random_state, device=self.device, threads=1 if self._is_small else None,
        )  # fmt: skip
        return Trainer(module, settings, groups=weights_and_biases(module), checkpoint=place, what="network")

    @property
    def _is_small(self) -> bool:
        return isinstance(self.choice, str) and self.choice != "cnn"

    def _planned(self, n_rows: int) -> int:
        return max(EPOCHS, -(-BATCHES // -(-n_rows // self.batch_size))) if self.epochs is None else self.epochs

    def _try_out(self, row: Rows) -> None:
        """Refuse a network that does not fit the rows before it trains on them."""
        wanted = (1, self.n_classes)
        with tried_on(self.shape):
            found = self._logits(self.module, row).shape
        if found != wanted:
            raise UsageError(
                f"the network must give one logit per class, here {wanted}; it gave an array of shape {found}"
            )

    def rows(self, X: Rows, learn: bool = False) -> Rows:
        """Features as the network takes them, standardised."""
        return prepared(X, self.choice, self.standardiser if self.standardise else None, learn)

    def tensor(self, rows: Rows) -> Tensor:
        """Rows on the device."""
        assert self.trainer is not None
        torch = need_torch()
        found: Tensor = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).to(self.trainer.device)
        return found

    # ------------------------------------------------------------------ predicting

    def predict_proba(self, X: Rows) -> Rows:
        """As `SoftClassifier.predict_proba`, with dropout switched off."""
        network = self.module  # or the word that it is not fitted
        return softmax(self._logits(network, self.rows(X)), axis=1)

    def _logits(self, network: nn.Module, rows: Rows) -> Rows:
        network.eval()
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        with need_torch().no_grad():
            found = [network(self.tensor(block)).double().cpu().numpy() for block in blocks]
        return np.concatenate(found) if found else np.empty((0, self.n_classes))

    @property
    def module(self) -> nn.Module:
        """The torch module that was trained."""
        if self.trainer is None:
            raise UsageError("this network is not fitted yet; call fit(X, targets) first")
        return self.trainer.model

    @property
    def history(self) -> pd.DataFrame:
        """Loss and time by epoch, over all fits."""
        assert self.trainer is not None
        return self.trainer.history.table()

    def describe(self) -> str:
        """All settings in a line, the same in every process; what a function does is known by its name alone."""
        shown = {
            each.name: getattr(self, each.name) for each in fields(self) if each.init and each.name != "checkpoint"
        }
        shown["choice"] = described(self.choice)
        return str(shown)

    def fresh(self) -> Self:
        """As `SoftClassifier.fresh`."""
        return replace(self)

    def log_prior(self) -> float:
        """−λ/2 ‖W‖², biases aside."""
        if self.trainer is None or self.l2 == 0:
            return 0.0
        return (
            -0.5
            * self.l2
            * sum(float((each.detach() ** 2).sum()) for each in self.module.parameters() if each.ndim > 1)
        )

    # ------------------------------------------------------------------ keeping

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As `SoftClassifier.arrays`: enough to predict."""
        weights = {f"model.{name}": each.cpu().numpy().copy() for name, each in self.module.state_dict().items()}
        return self._measures() | weights

    def state(self) -> Arrays:
        """What was learnt and all that training goes on from: moments of the optimiser, random streams, history."""
        assert self.trainer is not None
        return self._measures() | self.trainer.arrays()

    def _measures(self) -> Arrays:
        found: Arrays = {
            "shape": np.array(self.shape),
            "n_classes": np.array(self.n_classes),
            "n_rows": np.array(self.n_rows),
        }
        if self.standardiser.mean is not None and self.standardiser.scale is not None:
            found |= {"mean": self.standardiser.mean, "scale": self.standardiser.scale}
        return found

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """As `SoftClassifier.restore`, of `arrays` or of `state`."""
        torch = need_torch()
        if "mean" in arrays:
            self.standardiser = Standardiser(arrays["mean"], arrays["scale"])
        shape = tuple(int(size) for size in arrays["shape"])
        self.trainer = self._new_trainer(shape, int(arrays["n_classes"]), int(arrays["n_rows"]))
        if "history" in arrays:
            self.trainer.restore(arrays)
        else:
            weights = part_of(arrays, "model").items()
            self.module.load_state_dict({name: torch.from_numpy(np.array(each)) for name, each in weights})
        return self


def described(choice: Any) -> str:
    """A network by name, the same in every process; what a function does is known by its name alone.

    >>> described("mlp"), described(described)
    ('mlp', 'wisecrowd.nn.network_classifier.described')
    """
    return f"{choice.__module__}.{choice.__qualname__}" if hasattr(choice, "__qualname__") else str(choice)
