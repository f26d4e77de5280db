"""What learners have in common that train a network and what they know of workers together, by gradients.

A method says what it knows of workers (`_own`), and with what probability a worker would say each label (`_label_log_probs`); the
rest is here: batches of tasks with the votes on them, the training loop, held-out votes, and the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.em import priors as matrices
from wisecrowd.em.classifier import CLIP, e_step
from wisecrowd.em.classifier_fields import taught_by
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.pooling import PoolingLearner
from wisecrowd.errors import UsageError, one_of
from wisecrowd.kernels import reference as kernels
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.epoch_search import search_epochs
from wisecrowd.nn.epoch_watchers import watcher
from wisecrowd.nn.modules import prepared_shape
from wisecrowd.nn.network_classifier import described
from wisecrowd.nn.process_group import OTHER_DATA, my_team
from wisecrowd.nn.resumption import own_place
from wisecrowd.nn.seeding import chosen_device, own_chance
from wisecrowd.nn.trainer import Group, OptimiserName, ScheduleName, Trainer, Training
from wisecrowd.nn.training_set import TrainingSet
from wisecrowd.nn.vote_tensors import Batch, VoteTensors, grid
from wisecrowd.utils import progress

if TYPE_CHECKING:
    from torch import Tensor

#: Unless a fit is told how many epochs: at least so many, more until there were so many batches, but never more than these.
EPOCHS, BATCHES, MOST_EPOCHS = 50, 1000, 200
#: Passes in which the workers' matrices and the posterior settle, the network being what it is.
PASSES = 5
#: Votes that are answered at once when workers' answers are predicted.
ANSWERS = 2**16


@method_class
class DeepLearner(PoolingLearner):
    """A network f, and workers who see its classes through parameters of their own, trained together on the votes.

    A batch is some tasks with the votes on them; its loss is the mean over those votes of −log P(r says y | x), so that
    a step costs what was said and not tasks x workers. A task whose truth is given has that class for its workers, and
    teaches the network as a vote does that cannot be wrong.

    With ``validation``, the votes on some tasks are held out, and every epoch is scored by how many of them say what the
    network predicts: ``history_`` has the curve. ``keep="selected"`` takes the weights of the best epoch instead of the last.

    ``posterior_`` is what features and votes say together, q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir], with confusion matrices π that
    are estimated in a few passes of EM, f being what it is, and drawn toward the crowd's: models that have matrices of their
    own make them sharper than they are, and then labels_ would be worse than what the network says. The network has batch
    the votes of the tasks that it was trained on, so that this is surer than it should be.

    >>> from wisecrowd import CrowdLayer
    >>> issubclass(CrowdLayer, DeepLearner)
    True
    """

    #: Whether hidden votes can tell epochs apart (``epochs="auto"``): the fit says what single workers would say.
    foretells: ClassVar[bool] = True
    #: Whether the loss of a batch is the mean of what its tasks lose, by votes and known truths, but for terms of
    #: parameters alone: then processes that train together divide all of it, otherwise the network alone.
    separable: ClassVar[bool] = False
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "batches are drawn by position, and names decide on the order of tasks",
        "class_names_do_not_matter": "first weights are drawn by position, and names decide on the order of classes",
    }

    classifier: Any = parameter(
        default="mlp", help="'mlp', 'cnn', 'linear', a torch module, or a function that makes one"
    )
    hidden: int = parameter(default=128, help="width of the hidden layer")
    dropout: float = parameter(default=0.5, help="share of hidden units that a step leaves out")
    l2: float = parameter(default=1.0, help="ridge on the network's weights, against the sum over all tasks")
    epochs: int | Literal["auto"] | None = parameter(
        default=None,
        help="times through all tasks: a number; 'auto', by hidden votes; or 50, and more where tasks are few",
    )
    batch_size: int = parameter(default=64, help="tasks per step")
    optimiser: OptimiserName = parameter(default="adam", help="of the network: 'adam', 'adamw', 'radam' or 'sgd'")
    learning_rate: float = parameter(default=1e-3, help="step size")
    worker_learning_rate: float | None = parameter(
        default=None, help="step size of what is known of workers; unless given, as learning_rate"
    )
    schedule: ScheduleName = parameter(
        default="constant", help="of the step size: 'constant', 'cosine', 'onecycle' or 'step'"
    )
    validation: float = parameter(default=0.0, help="share of tasks whose votes are held out to compare epochs by")
    keep: Literal["last", "selected"] = parameter(
        default="last", help="weights of the last epoch, or of the one that held-out votes agree with most"
    )
    precision: Literal["single", "double"] = parameter(
        default="single", help="of the numbers that the network computes with"
    )
    device: str = parameter(default="auto", help="'cpu', 'cuda', or the fastest there is")
    checkpoint: str | None = parameter(default=None, help="folder in which a fit that is killed is kept")
    random_state: int = parameter(default=0, help="seed of weights, batches, dropout and what is held out")
    verbose: bool = parameter(default=False, help="draw a progress bar")

    if TYPE_CHECKING:  # left by _fit

        @property
        def network_(self) -> CrowdNetwork: ...

        @network_.setter
        def network_(self, fitted: CrowdNetwork) -> None: ...

    # ------------------------------------------------------------------ what a method says

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        """The method's parameters by name: tensors, torch layers, and `PerWorker` tables."""
        raise NotImplementedError

    def _prepare(self, network: CrowdNetwork, crowd: Crowd) -> None:
        """Start the method's parameters from the votes, in place; by default they stay as `_own` made them."""

    def _label_log_probs(self, batch: Batch) -> Tensor:
        """log P(the worker of a vote says each label | x), (votes, classes)."""
        raise NotImplementedError

    def _loss(self, batch: Batch) -> Tensor:
        """The mean loss of the votes in a batch."""
        said = self._label_log_probs(batch)
        return batch.mean(-said.gather(1, batch.label[:, None])[:, 0])

    def _proba(self, network: CrowdNetwork, hidden: Tensor, logits: Tensor) -> Tensor:
        """Class probabilities, (tasks, classes)."""
        found: Tensor = need_torch().softmax(logits, dim=1)
        return found

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check(crowd)
        my_team().same(OTHER_DATA, X, crowd.task, crowd.worker, crowd.label, crowd.weight, gold)
        self.n_workers_ = crowd.n_workers
        with progress.shown(self.verbose):
            network, training_set = self._begin_lesson(X, crowd, gold)
            place = self._place(network, X, crowd, gold)
            self.epochs_ = self._chosen_epochs(training_set, place)
            self._train(network, training_set, place)
        self._conclude(X, crowd, gold)

    def _check(self, crowd: Crowd) -> None:
        one_of("keep", self.keep, ("last", "selected"))
        one_of("precision", self.precision, ("single", "double"))
        if not 0 <= self.validation < 1:
            raise UsageError(f"validation must be a share, from 0 to below 1; got {self.validation}")
        if self.keep == "selected" and self.validation == 0:
            raise UsageError(
                "keep='selected' compares epochs by votes that were held out; say how many: validation=0.1"
            )
        if self.hidden < 1 or not 0 <= self.dropout < 1 or not self.l2 >= 0:
            raise UsageError(
                "hidden must be 1 or more, dropout from 0 to below 1, and l2 not negative; "
                f"got {self.hidden}, {self.dropout} and {self.l2}"
            )
        if self.batch_size < 1 or not self.learning_rate > 0:
            raise UsageError(
                f"batch_size must be 1 or more and learning_rate positive; got {self.batch_size} and {self.learning_rate}"
            )
        one_of("optimiser", self.optimiser, ("adam", "adamw", "radam", "sgd"))
        if self.epochs == "auto" and not self.foretells:
            raise UsageError(
                f"epochs='auto' hides votes and sees how well they are foretold, which the training of {type(self).__name__} does "
                "not tell; say how many epochs: epochs=50"
            )
        if self.epochs == "auto" and self.schedule != "constant":
            raise UsageError(
                "epochs='auto' finds out when to stop, for which step sizes must not depend on it: schedule='constant'"
            )
        if self.epochs not in (None, "auto") and not (isinstance(self.epochs, int | np.integer) and self.epochs >= 1):
            raise UsageError(f"epochs must be a whole number from 1, or 'auto'; got {self.epochs!r}")

    def _begin_lesson(
        self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> tuple[CrowdNetwork, TrainingSet]:
        """A network, and the tasks that teach it."""
        torch = need_torch()
        teaches = taught_by(crowd.layout, gold)
        held = self._held_out(crowd, gold)
        tasks = np.flatnonzero(teaches & ~held)
        taught = crowd[tasks]
        network = self._new_network(self.random_state)
        rows = network.rows(X[tasks], learn=True)
        self._prepare(network, taught)
        device, dtype = chosen_device(self.device), torch.float32 if self.precision == "single" else torch.float64
        network.module.to(device, dtype)
        inputs = network.tensor(rows)
        known = None
        if gold is not None and (gold[tasks] >= 0).any():
            known = torch.from_numpy(gold[tasks].astype(np.int64)).to(device)
        out = (X[held], crowd[np.flatnonzero(held)]) if held.any() else None
        return network, TrainingSet(inputs, VoteTensors.of(crowd, tasks, inputs), known, out, taught)

    def _held_out(self, crowd: Crowd, gold: NDArray[np.int32] | None) -> NDArray[np.bool_]:
        """Tasks by whose votes epochs are compared: of those with votes, without a known truth."""
        found = np.zeros(crowd.n_tasks, dtype=bool)
        if self.validation == 0:
            return found
        unknown = crowd.layout.voted if gold is None else crowd.layout.voted & (gold < 0)
        tasks = np.flatnonzero(unknown)
        number = round(self.validation * len(tasks))
        if not 0 < number < len(tasks):
            raise UsageError(
                f"validation={self.validation} of {len(tasks):,} tasks with votes leaves none to hold out, or none to learn "
                "from; choose another share, or 0"
            )
        found[np.random.default_rng(self.random_state).choice(tasks, size=number, replace=False)] = True
        return found

    def _new_network(self, seed: int) -> CrowdNetwork:
        """An untrained network for features and a crowd such as those of this fit."""
        with own_chance(chosen_device("cpu"), seed):
            shape = prepared_shape(self.feature_shape_, self.classifier)
            n_classes = len(self.classes_)
            network = CrowdNetwork(self.classifier, shape, n_classes, self.hidden, self.dropout)
            return network.add(self._own(Sizes(self.n_workers_, n_classes, network.n_hidden)))

    def _new_trainer(
        self, network: CrowdNetwork, n_rows: int, seed: int, place: Path | None = None, patience: int = 0
    ) -> Trainer:
        settings = self._settings(seed, is_small=network.is_small, patience=patience)
        groups = self._groups(network, n_rows)
        return Trainer(network.module, settings, groups=groups, checkpoint=place, what=type(self).__name__)

    def _groups(self, network: CrowdNetwork, n_rows: int) -> list[Group]:
        """Parameters by how they learn."""
        return network.groups(self.worker_learning_rate, self.l2 / n_rows)

    def _settings(self, seed: int, *, is_small: bool, patience: int = 0) -> Training:
        return Training(
            epochs=self.epochs_, patience=patience, batch_size=self.batch_size, optimiser=self.optimiser,
            learning_rate=self.learning_rate, schedule=self.schedule, random_state=seed, device=self.device,
            dtype="float32" if self.precision == "single" else "float64", threads=1 if is_small else None,
        )  # fmt: skip

    def _chosen_epochs(self, training_set: TrainingSet, place: Path | None) -> int:
        """How many epochs to train: as said, by rule, or so many that hidden votes are foretold best."""
        if self.epochs is None:
            return min(MOST_EPOCHS, max(EPOCHS, -(-BATCHES // -(-len(training_set) // self.batch_size))))
        if self.epochs != "auto":
            return self.epochs
        best, self.search_ = search_epochs(self, training_set, place)
        return best

    def _place(
        self, network: CrowdNetwork, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> Path | None:
        """The file of this fit in the checkpoint folder."""
        if self.checkpoint is None:
            return None
        # A function is known by its name alone, which two of them may share: what it makes belongs to the name.
        shown = f"{described(self.classifier)} {network.module}"
        return own_place(self, self.checkpoint, shown, X, crowd, gold).path

    def _train(self, network: CrowdNetwork, training_set: TrainingSet, place: Path | None) -> None:
        """Train, and leave ``network_`` and ``history_``."""
        trainer = self._new_trainer(network, len(training_set), self.random_state, place)
        self.network_ = network
        self._run(trainer, network, training_set, self._validate(training_set))
        self._note(trainer)
        if self.keep == "selected" and trainer.best is not None:
            network.take(trainer.best)

    def _run(
        self, trainer: Trainer, network: CrowdNetwork, training_set: TrainingSet, validate: Callable[[], float] | None
    ) -> None:
        def loss(tasks: Tensor) -> Tensor:
            return self._lesson_loss(network, training_set, tasks, len(trainer.history))

        trainer.run(loss, len(training_set), validate=validate, weigh=training_set.weigh, separable=self.separable)

    def _note(self, trainer: Trainer) -> None:
        self.history_: pd.DataFrame = trainer.history.table()
        self.n_iter_ = len(trainer.history)

    def _lesson_loss(self, network: CrowdNetwork, training_set: TrainingSet, tasks: Tensor, epoch: int) -> Tensor:
        """The loss of some tasks: of the votes on them, and of the truth that is known."""
        batch = training_set.see(network, tasks, epoch)
        return self._with_truth(self._loss(batch), batch)

    def _with_truth(self, loss: Tensor, batch: Batch) -> Tensor:
        """A known truth counts in the mean like a vote that cannot be wrong."""
        if batch.known is None or not bool((batch.known >= 0).any()):
            return loss
        given = batch.known >= 0
        against = self._against_truth(batch, given, batch.known[given])
        votes = batch.weight.sum()
        return (votes * loss + against) / (votes + given.sum())

    def _against_truth(self, batch: Batch, given: Tensor, truth: Tensor) -> Tensor:
        """The sum of −log P(truth | x) over the tasks of a batch whose truth is ``given`` (a mask)."""
        found: Tensor = need_torch().nn.functional.cross_entropy(batch.logits[given], truth, reduction="sum")
        return found

    def _validate(self, training_set: TrainingSet) -> Callable[[], float] | None:
        """For the trainer: how often the votes that are held out say what is predicted, having told who watches."""
        watches = watcher()
        if training_set.held is None and watches is None:
            return None

        def validate() -> float:
            if watches is not None:
                watches(self)
            if training_set.held is None:
                return float("nan")
            features, votes = training_set.held
            best = self._predict_proba(features).argmax(axis=1)
            return float(np.average(best[votes.task] == votes.label, weights=votes.weight))

        return validate

    # ------------------------------------------------------------------ what was learnt

    def _conclude(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """The posterior of tasks with votes."""
        expected = np.maximum(self._predict_proba(X), CLIP)
        expected /= expected.sum(axis=1, keepdims=True)
        posterior = apply_gold(expected, gold)
        for _ in range(PASSES):  # EM over the matrices, with what the network expects as the prior of each task
            tally = kernels.tally(crowd.layout, posterior)
            prior = self._prior(tally, crowd.pairs)
            posterior, _ = e_step(crowd.layout, expected, self._pair_label_probs(crowd.pairs, tally, prior), gold)
        self.strength_ = prior.strength
        self._set_fitted(crowd, posterior)

    def _pair_label_probs(self, pairs: Pairs, tally: NDArray[np.float64], prior: matrices.Prior) -> NDArray[np.float64]:
        """P(the worker of a pair says its label | true class), (pairs, classes); from the tally of what is expected."""
        return matrices.shrunk(tally, pairs, *prior)

    def classify(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """`predict_proba` of an array, also while the fit goes on (see `each_epoch`)."""
        return self._predict_proba(np.asarray(X, dtype=np.float64))

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._proba_by(self.network_, X)

    def _proba_by(self, network: CrowdNetwork, X: NDArray[np.float64]) -> NDArray[np.float64]:
        found = [self._proba(network, hidden, logits).double().cpu().numpy() for _, hidden, logits in network.blocks(X)]
        return np.concatenate(found) if found else np.empty((0, len(self.classes_)))

    def predict_worker_proba(self, X: Any, workers: Any) -> NDArray[np.float64]:
        """What each of some workers (by id) would say of tasks, as the model has it: (tasks, workers, classes).

        A worker who was not seen in training answers as the crowd does.
        """
        rows, place = self._rows(X), self._places_of(workers)
        found = np.repeat(self._strangers(self.predict_proba(rows))[:, None], len(place), axis=1)
        batch = np.flatnonzero(place >= 0)
        if len(batch) and len(rows):
            found[:, batch] = self._answers(rows, place[batch])
        return found

    def _strangers(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a worker who was not seen in training says of tasks with such class probabilities: (tasks, classes)."""
        return proba @ self.crowd_confusion_

    def _answers(self, X: NDArray[np.float64], workers: NDArray[np.intp]) -> NDArray[np.float64]:
        """What workers, by position, say of rows of features: (tasks, workers, classes)."""
        return self._answers_by(self.network_, X, workers)

    def _answers_by(
        self, network: CrowdNetwork, X: NDArray[np.float64], workers: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        torch = need_torch()
        found: list[NDArray[np.float64]] = []
        for inputs, hidden, logits in network.blocks(X, size=max(1, ANSWERS // len(workers))):
            row, worker = (torch.from_numpy(side).to(inputs.device) for side in grid(len(inputs), workers))
            one = torch.ones_like(row)
            said = self._label_log_probs(Batch(network, inputs, hidden, logits, row, worker, label=0 * one, weight=one))
            found.append(said.exp().double().cpu().numpy().reshape(len(inputs), len(workers), -1))
        return np.concatenate(found)

    def _revive(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        return self._new_network(self.random_state).restore(arrays)
