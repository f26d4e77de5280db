"""Protocol of Zhang et al. (2024): simulated crowds on Fashion-MNIST, real crowds, and accuracy by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, get_classification_data, require_features, require_truth
from wisecrowd.bench.entries import LearnerEntry, Portable
from wisecrowd.bench.papers._fashion import (
    FILE,
    N_TRAIN,
    Filters,
    PixelComponents,
    compute_features_digest,
    find_images,
    load_fashion,
)
from wisecrowd.bench.papers.annotmix2024 import SETTING
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.nn.epoch_watchers import watch_epochs
from wisecrowd.nn.network_classifier import describe_classifier
from wisecrowd.simulate import simulate_patterns

#: Figures: test accuracy of the last epoch, of the best epoch on the test set, and of the best epoch on held-out votes.
LAST, BEST, SELECTED = "last", "best", "selected"
FIGURES = (LAST, BEST, SELECTED)
#: Figures: adjusted Rand index between true patterns and the groups of the method, and as many K-means groups as patterns.
GROUPS, AS_MANY = "ARI, groups", "ARI, as many groups as patterns"

#: Default number of labelled images; two cores run all crowds and methods on them in an hour.
FEW = 6000
#: Share of the tasks that selects the epoch; on images it is the split of the paper.
ASIDE = 0.1


def two_layers(shape: tuple[int, ...], n_classes: int) -> Any:
    """Build a network of 512 and 256 hidden units with batch norm and no dropout, which can memorise noise.

    Parameters
    ----------
    shape : tuple
        Shape of the features of one task.
    n_classes : int
        Number of classes.

    Returns
    -------
    object

    Examples
    --------
    >>> two_layers((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    first = nn.Linear(math.prod(shape), 512), nn.BatchNorm1d(512), nn.ReLU()
    return nn.Sequential(*first, nn.Linear(512, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, n_classes))


def normed_layer(shape: tuple[int, ...], n_classes: int) -> Any:
    """Build the network of the paper for Music, 128 hidden units with batch norm, with dropout added.

    Parameters
    ----------
    shape : tuple
        Shape of the features of one task.
    n_classes : int
        Number of classes.

    Returns
    -------
    object

    Examples
    --------
    >>> normed_layer((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    first = nn.Linear(math.prod(shape), 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5)
    return nn.Sequential(*first, nn.Linear(128, n_classes))


_IMAGES = {"epochs": 40, "batch_size": 128, "learning_rate": 1e-3, "classifier": two_layers, "l2": 0.0}
#: Optimiser of the paper: SGD with momentum, a weight decay of .0005 (times 5,400 tasks), and a tenth of the rate after two
#: thirds of 60 epochs. The rate is ten times that of the paper for a tenth of its images, so that rate times steps is equal.
_DECAYED = _IMAGES | {
    "epochs": 60, "optimiser": "sgd", "learning_rate": 0.1, "schedule": "step", "l2": 2.7, "worker_learning_rate": 2e-4,
}  # fmt: skip
#: The same optimiser for worker matrices, as in the paper; in the authors' program they have weight decay as well.
_SAME_STEPS = _DECAYED | {"worker_learning_rate": None, "worker_steps": "network"}
_PROGRAM = _SAME_STEPS | {"worker_l2": 2.7}
#: The same for 7,200 training tasks: rate times steps, and weight decay by task, are those of the paper.
_MEMORISING = _SAME_STEPS | {"learning_rate": 0.075, "l2": 3.6}


def masked_layer(shape: tuple[int, ...], n_classes: int) -> Any:
    """Build the network of the paper for LabelMe, 128 hidden units, with dropout of 0.3 on the features.

    Parameters
    ----------
    shape : tuple
        Shape of the features of one task.
    n_classes : int
        Number of classes.

    Returns
    -------
    object

    Examples
    --------
    >>> masked_layer((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    return nn.Sequential(
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(math.prod(shape), 128), nn.ReLU(), nn.Linear(128, n_classes)
    )


#: Training settings of all methods by dataset, after table 3 of the paper.
TRAINING: dict[str, dict[str, Any]] = {
    "fashion": _IMAGES,
    "fashion decayed": _DECAYED,
    "fashion same steps": _SAME_STEPS,
    "fashion program": _PROGRAM,
    "fashion memorising": _MEMORISING,
    "cifar10n": _IMAGES,
    "labelme": {"epochs": 200, "batch_size": 128},
    "labelme masked": {"epochs": 200, "batch_size": 128, "classifier": masked_layer},
    "music_genre": {"epochs": 200, "batch_size": 128, "learning_rate": 1e-3, "classifier": normed_layer},
    "music two layers": SETTING | {"epochs": 200},
}

# ---------------------------------------------------------------------- data


@dataclass(frozen=True)
class FashionCrowd:
    """Fashion-MNIST with a simulated crowd of Zhang et al. (2024), a different one for every seed.

    A tenth of the ``n_tasks`` tasks selects the epoch. All seeds and crowds have the same tasks.

    >>> FashionCrowd("COR-II", votes_per_task=5).size()
    30000
    """

    patterns: str = "IND-I"
    votes_per_task: int = 3
    n_tasks: int = FEW
    figures: tuple[str, ...] = FIGURES
    epochs: int | None = None
    """Number of epochs, instead of that in `TRAINING`."""
    filters: Filters | PixelComponents = field(default_factory=Filters)
    trained_as: str = "fashion"
    """Key of the settings in `TRAINING` and of the methods."""
    workers_per_pattern: int = 50

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Load training tasks with simulated votes and test tasks without votes."""
        X, y = load_fashion(self.filters, self._file)
        chosen = np.sort(np.random.default_rng(0).permutation(N_TRAIN)[: self.n_tasks])
        rows = np.concatenate([chosen, np.arange(N_TRAIN, len(y))])
        simulation = simulate_patterns(
            self.patterns,
            truth=y[chosen],
            n_classes=10,
            votes_per_task=self.votes_per_task,
            workers_per_pattern=self.workers_per_pattern,
            random_state=seed,
        )
        tasks = simulation.crowd.tasks.append(pd.Index([f"test{row}" for row in range(N_TRAIN, len(y))]))
        split = np.repeat(["train", "test"], [len(chosen), len(rows) - len(chosen)])
        return Dataset(
            name=self.trained_as,
            crowd=simulation.crowd,
            truth=pd.Series(as_index(simulation.crowd.classes)[y[rows]], index=tasks),
            features=pd.DataFrame(X[rows], index=tasks),
            splits=pd.Series(split, index=tasks),
            meta={"aside": ASIDE, "pattern": simulation.pattern, "epochs": self.epochs},
        )

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Compute the standard figures, for an entry that does not score itself.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        prediction : object
            Answer of an entry.

        Returns
        -------
        dict
        """
        return metrics.summary(require_truth(dataset), prediction)

    @property
    def _file(self) -> Path:
        images = find_images()
        if images is None:
            raise InputError(self.absence() or "")
        return images

    def absence(self) -> str | None:
        """Return a message if the images are not on this machine."""
        if find_images() is not None:
            return None
        return f"the images {FILE.as_posix()} are not on this machine; WISECROWD_DATA names the folders to look in"

    def identity(self) -> Any:
        """Return the digest of the features, the settings and the digest of the code."""
        features = compute_features_digest(self.filters, self._file)
        code = code_digest(type(self), without=("TRAINING",))
        training = _plain(TRAINING[self.trained_as])
        settings = [self.patterns, self.votes_per_task, self.workers_per_pattern, self.n_tasks, self.epochs]
        return [features, *settings, code, self.trained_as, training]

    def size(self) -> int:
        """Return the number of votes."""
        return self.votes_per_task * self.n_tasks


@dataclass(frozen=True)
class RealCrowd(StoredDataset):
    """Stored crowd; the share ``aside`` of its tasks selects the epoch.

    If it is 0, all tasks are used for training, and a second fit without a tenth of the tasks selects the epoch.

    >>> RealCrowd("labelme", "distinct", FIGURES).aside
    0.0
    """

    aside: float = 0.0
    epochs: int | None = None
    """Number of epochs, instead of that in `TRAINING`."""
    n_tasks: int | None = None
    """Number of training tasks, the same ones for every seed; all by default."""
    trained_as: str | None = None
    """Key of the settings in `TRAINING` and of the methods; the name of the dataset by default."""

    def load(self, seed: int) -> Dataset:
        """Load the dataset."""
        dataset = super().load(seed)
        crowd = dataset.crowd
        if self.n_tasks is not None and self.n_tasks < crowd.n_tasks:
            crowd = crowd[np.sort(np.random.default_rng(0).permutation(crowd.n_tasks)[: self.n_tasks])]
        name = self.name if self.trained_as is None else self.trained_as
        return replace(dataset, name=name, crowd=crowd, meta={"aside": self.aside, "epochs": self.epochs})

    def identity(self) -> Any:
        """Return the identity of the dataset and the settings."""
        trained_as = self.name if self.trained_as is None else self.trained_as
        training = _plain(TRAINING[trained_as])
        return [super().identity(), self.aside, self.epochs, self.n_tasks, trained_as, training]


# ---------------------------------------------------------------------- entries


@dataclass(frozen=True)
class EpochLearner(LearnerEntry):
    """Entry that trains a learner and scores it on the test tasks after every epoch.

    >>> EpochLearner("ccc", on={"fashion": {"gamma": 1.0}}).identity()[2]
    {'fashion': {'gamma': 1.0}}
    """

    on: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """Settings by dataset that differ from ``settings``."""

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner, a second time if no tasks are held out, and score it."""
        aside = float(dataset.meta["aside"])
        curve, model = self.curve(dataset, seed, aside)
        figures = {LAST: curve[-1], BEST: max(curve)}
        chosen, judge = (curve, model) if aside else self.curve(dataset, seed, ASIDE)
        validation = judge.history_["validation"].to_numpy()
        assert len(validation) == len(chosen)  # a learner that trains in stages must report all of them
        figures[SELECTED] = chosen[int(validation.argmax())]
        if "pattern" in dataset.meta and hasattr(model, "groups_"):
            figures |= score_groups(model, dataset.crowd, dataset.meta["pattern"])
        return figures

    def curve(self, dataset: Dataset, seed: int, validation: float) -> tuple[list[float], Any]:
        """Return the test accuracy by epoch and the fitted learner.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the learner.
        validation : float
            Share of the tasks that are held out.

        Returns
        -------
        tuple
        """
        rows, z = _test(dataset)
        accuracies: list[float] = []
        settings = _training(dataset) | dict(self.settings) | dict(self.on.get(dataset.name, {}))
        model = self.kind(**settings | {"validation": validation, "random_state": seed})
        with watch_epochs(lambda learner: accuracies.append(_accuracy(learner.classify(rows), z))):
            model.fit(require_features(dataset), dataset.crowd)
        return accuracies, model

    def identity(self) -> Any:
        """Return the method, its settings and the digest of the code; `TRAINING` is in the identity of the data."""
        on = {name: _plain(settings) for name, settings in self.on.items()}
        code = code_digest(type(self), without=("TRAINING",))
        return [self.method, _plain(self.settings), on, code, self.code()]


@dataclass(frozen=True)
class TargetClassifier(Portable):
    """Entry that trains the network on one class per task: the majority class (ties at random) or the truth.

    >>> TargetClassifier("truth").source
    'truth'
    """

    source: Literal["votes", "truth"]

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Train the network and score it as `EpochLearner` does."""
        aside = float(dataset.meta["aside"])
        curve, heldout_accuracy = self.curve(dataset, seed, aside)
        chosen, judged = (curve, heldout_accuracy) if aside else self.curve(dataset, seed, ASIDE)
        return {LAST: curve[-1], BEST: max(curve), SELECTED: chosen[int(np.argmax(judged))]}

    def curve(self, dataset: Dataset, seed: int, aside: float) -> tuple[list[float], list[float]]:
        """Return the accuracy by epoch on the test tasks, and on the targets of the held-out tasks.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the learner.
        aside : float
            Share of the tasks that are held out.

        Returns
        -------
        tuple
        """
        (rows, z), crowd = _test(dataset), dataset.crowd
        rng = np.random.default_rng(seed)
        target = _winners(crowd, rng) if self.source == "votes" else _codes(dataset, crowd.tasks)
        X = get_classification_data(dataset).features.loc[crowd.tasks].to_numpy(dtype=np.float64)
        order = rng.permutation(crowd.n_tasks)
        heldout, training = np.split(order, [round(aside * crowd.n_tasks)])
        settings = _training(dataset)
        epochs = settings.pop("epochs")
        choice = settings.pop("classifier", "mlp")
        network = make_classifier(choice, epochs=1, epochs_per_fit=1, random_state=seed, **settings)
        targets = np.eye(crowd.n_classes)[target[training]]
        test_accuracy, heldout_accuracy = [], []
        for _ in range(epochs):  # each fit continues the one before
            network.fit(X[training], targets)
            test_accuracy.append(_accuracy(network.predict_proba(rows), z))
            heldout_accuracy.append(
                _accuracy(network.predict_proba(X[heldout]), target[heldout]) if aside else float("nan")
            )
        return test_accuracy, heldout_accuracy

    def identity(self) -> Any:
        """Return the source of the classes and the digest of the code; `TRAINING` is in the identity of the data."""
        return [self.source, code_digest(type(self), without=("TRAINING",))]


def score_groups(model: Any, crowd: Crowd, pattern: pd.Series) -> dict[str, float]:
    """Return the adjusted Rand indices between worker groups and true patterns, averaged over networks.

    Parameters
    ----------
    model : object
        Fitted learner with groups.
    crowd : Crowd
        Votes.
    pattern : Series
        True pattern by worker.

    Returns
    -------
    dict

    Examples
    --------
    >>> class Fitted:
    ...     groups_ = pd.DataFrame({"first": [0, 0, 1], "second": [0, 0, 1]}, index=["ann", "bob", "eve"])
    ...     layer_ = {"T": np.array([[[1.0]], [[1.1]], [[5.0]]])}
    >>> crowd = Crowd.from_triples([("t", "ann", "a"), ("t", "bob", "b"), ("t", "eve", "b")])
    >>> score_groups(Fitted(), crowd, pd.Series({"ann": "pair", "bob": "pair", "eve": "dummy"}))
    {'ARI, groups': 1.0, 'ARI, as many groups as patterns': 1.0}
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    busy = crowd.votes_per_worker > 0
    workers = as_index(crowd.workers)[busy]
    true, groups = pattern.loc[workers].to_numpy(), model.groups_.loc[workers]
    clusters = KMeans(pattern.nunique(), n_init=10, random_state=0)
    tables = [table[busy].reshape(busy.sum(), -1) for table in model.layer_.values()]
    return {
        GROUPS: float(np.mean([adjusted_rand_score(true, groups[name]) for name in groups])),
        AS_MANY: float(np.mean([adjusted_rand_score(true, clusters.fit_predict(table)) for table in tables])),
    }


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the classifier replaced by its description and the digest of its code."""
    plain = dict(settings)
    if "classifier" in plain:
        classifier = plain["classifier"]
        builder = classifier if callable(classifier) and hasattr(classifier, "__qualname__") else type(classifier)
        plain["classifier"] = f"{describe_classifier(classifier)} {code_digest(builder)}"
    return plain


def _training(dataset: Dataset) -> dict[str, Any]:
    """Return the training settings of a dataset."""
    epochs = dataset.meta.get("epochs")
    return TRAINING[dataset.name] | ({} if epochs is None else {"epochs": epochs})


def _test(dataset: Dataset) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the features and the class codes of the test tasks."""
    features, _, tasks = get_classification_data(dataset)
    return features.loc[tasks].to_numpy(dtype=np.float64), _codes(dataset, tasks)


def _codes(dataset: Dataset, tasks: pd.Index) -> NDArray[np.intp]:
    """Return the true class codes of tasks."""
    return as_index(dataset.crowd.classes).get_indexer(pd.Index(get_classification_data(dataset).truth.loc[tasks]))


def _winners(crowd: Crowd, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the majority class of every task, with ties broken at random."""
    votes = np.asarray(crowd.vote_counts, dtype=np.float64)
    return np.asarray((votes + 0.5 * rng.random(votes.shape)).argmax(axis=1))


def _accuracy(proba: NDArray[np.float64], z: NDArray[Any]) -> float:
    return float((proba.argmax(axis=1) == z).mean())
