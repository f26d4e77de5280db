"""The protocol of Zhang et al. (2024): their crowds on Fashion-MNIST, real crowds, and accuracy by epoch."""

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

from wisecrowd.bench.data import Stored, parts_of, require_features, require_truth
from wisecrowd.bench.entries import OfLearner, Portable, code_digest
from wisecrowd.bench.papers._fashion import FILE, N_TRAIN, Filters, fashion, features_digest, images_file
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

#: Test accuracy of the last epoch, of the best by the test set itself, and of the best by votes that are held out.
LAST, BEST, SELECTED = "last", "best", "selected"
FIGURES = (LAST, BEST, SELECTED)
#: Adjusted Rand index between true patterns and groups of workers: those of the method, and as many as there are patterns.
GROUPS, AS_MANY = "ARI, groups", "ARI, as many groups as patterns"

#: Images that are labelled, unless it is said: as many as two cores can do in an hour with all crowds and methods.
FEW = 6000
#: The share of votes by which an epoch is selected; on images the paper's own split sets it aside.
ASIDE = 0.1


def two_layers(shape: tuple[int, ...], n_classes: int) -> Any:
    """512 and 256 hidden units with norms of batches and no dropout: enough to learn noise by heart, as ResNets do.

    >>> two_layers((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    first = nn.Linear(math.prod(shape), 512), nn.BatchNorm1d(512), nn.ReLU()
    return nn.Sequential(*first, nn.Linear(512, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, n_classes))


def normed_layer(shape: tuple[int, ...], n_classes: int) -> Any:
    """The paper's network for Music: 128 hidden units with a norm of batches; and dropout, as others have it.

    >>> normed_layer((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    first = nn.Linear(math.prod(shape), 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5)
    return nn.Sequential(*first, nn.Linear(128, n_classes))


_IMAGES = {"epochs": 40, "batch_size": 128, "learning_rate": 1e-3, "classifier": two_layers, "l2": 0.0}
#: The paper's own steps: SGD with momentum, a weight decay of .0005 (times 5,400 tasks), a tenth of the rate after two thirds
#: of 60 epochs. Ten times the paper's rate for a tenth of its images, so that rate times steps is the paper's.
_DECAYED = _IMAGES | {
    "epochs": 60, "optimiser": "sgd", "learning_rate": 0.1, "schedule": "step", "l2": 2.7, "worker_learning_rate": 2e-4,
}  # fmt: skip
#: Worker matrices take these steps too, as the paper's do; and in the authors' program they also decay as weights do.
_SAME_STEPS = _DECAYED | {"worker_learning_rate": None, "worker_steps": "network"}
_PROGRAM = _SAME_STEPS | {"worker_l2": 2.7}


def masked_layer(shape: tuple[int, ...], n_classes: int) -> Any:
    """128 hidden units without dropout, as the paper's for LabelMe; in each step three in ten features are hidden.

    >>> masked_layer((4,), 3)[-1].out_features
    3
    """
    nn = import_torch().nn
    return nn.Sequential(
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(math.prod(shape), 128), nn.ReLU(), nn.Linear(128, n_classes)
    )


#: By dataset, of all methods: table 3 of the paper, as far as it suits small networks on fixed features.
TRAINING: dict[str, dict[str, Any]] = {
    "fashion": _IMAGES,
    "fashion decayed": _DECAYED,
    "fashion same steps": _SAME_STEPS,
    "fashion program": _PROGRAM,
    "cifar10n": _IMAGES,
    "labelme": {"epochs": 200, "batch_size": 128},
    "labelme masked": {"epochs": 200, "batch_size": 128, "classifier": masked_layer},
    "music_genre": {"epochs": 200, "batch_size": 128, "learning_rate": 1e-3, "classifier": normed_layer},
    "music two layers": SETTING | {"epochs": 200},
}

# ---------------------------------------------------------------------- data


@dataclass(frozen=True)
class Fashion:
    """Fashion-MNIST labelled by a crowd of Zhang et al. (2024); every seed draws another one.

    A tenth of the ``n_tasks`` is to select epochs by. Fewer than all tasks are the same ones for every seed and crowd.

    >>> Fashion("COR-II", votes_per_task=5).size()
    30000
    """

    patterns: str = "IND-I"
    votes_per_task: int = 3
    n_tasks: int = FEW
    figures: tuple[str, ...] = FIGURES
    epochs: int | None = None
    """Instead of those in `TRAINING`."""
    filters: Filters = field(default_factory=Filters)
    trained_as: str = "fashion"
    """Whose settings of `TRAINING` and of methods."""

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Features by `Filters`; the test tasks have features and truth, and no votes."""
        X, y = fashion(self.filters, self._file)
        chosen = np.sort(np.random.default_rng(0).permutation(N_TRAIN)[: self.n_tasks])
        rows = np.concatenate([chosen, np.arange(N_TRAIN, len(y))])
        simulation = simulate_patterns(
            self.patterns, truth=y[chosen], n_classes=10, votes_per_task=self.votes_per_task, random_state=seed
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
        """The usual figures, of an entry that does not score itself."""
        return metrics.summary(require_truth(dataset), prediction)

    @property
    def _file(self) -> Path:
        images = images_file()
        if images is None:
            raise InputError(self.absence() or "")
        return images

    def absence(self) -> str | None:
        """Says so when the images are not on this machine."""
        if images_file() is not None:
            return None
        return f"the images {FILE.as_posix()} are not on this machine; WISECROWD_DATA names the folders to look in"

    def identity(self) -> Any:
        """The features, the crowd, and the code that makes it."""
        code = code_digest(__name__)
        features = features_digest(self.filters, self._file)
        rest = [] if self.trained_as == "fashion" else [self.trained_as]
        return [features, self.patterns, self.votes_per_task, self.n_tasks, self.epochs, code, *rest]

    def size(self) -> int:
        """As many labels for each task."""
        return self.votes_per_task * self.n_tasks


@dataclass(frozen=True)
class Real(Stored):
    """A real crowd; ``aside`` is the share of its votes that select epochs in the same fit that is scored.

    Where it is 0, tasks are too few to do without some, and epochs are selected in a fit of their own.

    >>> Real("labelme", "distinct", FIGURES).aside
    0.0
    """

    aside: float = 0.0
    epochs: int | None = None
    """Instead of those in `TRAINING`."""
    n_tasks: int | None = None
    """To learn from so many tasks, the same ones for every seed; all unless given."""
    trained_as: str | None = None
    """Whose settings of `TRAINING` and of methods; its own unless given."""

    def load(self, seed: int) -> Dataset:
        """The dataset."""
        dataset = super().load(seed)
        crowd = dataset.crowd
        if self.n_tasks is not None and self.n_tasks < crowd.n_tasks:
            crowd = crowd[np.sort(np.random.default_rng(0).permutation(crowd.n_tasks)[: self.n_tasks])]
        name = self.name if self.trained_as is None else self.trained_as
        return replace(dataset, name=name, crowd=crowd, meta={"aside": self.aside, "epochs": self.epochs})

    def identity(self) -> Any:
        """As of any dataset, and what else matters."""
        rest = [] if self.trained_as is None else [self.trained_as]
        return [super().identity(), self.aside, self.epochs, self.n_tasks, *rest]


# ---------------------------------------------------------------------- entries


@dataclass(frozen=True)
class Trained(OfLearner):
    """A learner of the registry that trains by epochs; it is scored on the test tasks after each of them.

    >>> Trained("crowd-layer").identity()[1]["fashion"]["classifier"]
    'wisecrowd.bench.papers._zhang.two_layers'
    """

    on: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """Settings that differ by dataset."""

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit, perhaps twice, and score."""
        aside = float(dataset.meta["aside"])
        curve, model = self.curve(dataset, seed, aside)
        figures = {LAST: curve[-1], BEST: max(curve)}
        chosen, judge = (curve, model) if aside else self.curve(dataset, seed, ASIDE)
        validation = judge.history_["validation"].to_numpy()
        assert len(validation) == len(chosen)  # whoever trains in stages must tell of all of them
        figures[SELECTED] = chosen[int(validation.argmax())]
        if "pattern" in dataset.meta and hasattr(model, "groups_"):
            figures |= groups_found(model, dataset.crowd, dataset.meta["pattern"])
        return figures

    def curve(self, dataset: Dataset, seed: int, validation: float) -> tuple[list[float], Any]:
        """Test accuracy by epoch, and the fitted learner."""
        rows, z = _test(dataset)
        accuracies: list[float] = []
        settings = _training(dataset) | dict(self.settings) | dict(self.on.get(dataset.name, {}))
        model = self.kind(**settings | {"validation": validation, "random_state": seed})
        with watch_epochs(lambda learner: accuracies.append(_accuracy(learner.classify(rows), z))):
            model.fit(require_features(dataset), dataset.crowd)
        return accuracies, model

    def identity(self) -> Any:
        """Method, settings by dataset, and the code that is its own."""
        common = dict(self.settings)
        settings = {
            name: _plain(training | common | dict(self.on.get(name, {}))) for name, training in TRAINING.items()
        }
        return [self.method, settings, code_digest(__name__), self.code()]


@dataclass(frozen=True)
class Taught(Portable):
    """The same network on one class per task: that of most votes (drawn among equals), or the true one.

    >>> Taught("truth").source
    'truth'
    """

    source: Literal["votes", "truth"]

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Train and score as `Trained` does; with true classes, those of the tasks aside select as well."""
        aside = float(dataset.meta["aside"])
        curve, heldout_accuracy = self.curve(dataset, seed, aside)
        chosen, judged = (curve, heldout_accuracy) if aside else self.curve(dataset, seed, ASIDE)
        return {LAST: curve[-1], BEST: max(curve), SELECTED: chosen[int(np.argmax(judged))]}

    def curve(self, dataset: Dataset, seed: int, aside: float) -> tuple[list[float], list[float]]:
        """Accuracy by epoch on the test tasks, and on what the tasks aside are taken for."""
        (rows, z), crowd = _test(dataset), dataset.crowd
        rng = np.random.default_rng(seed)
        target = _winners(crowd, rng) if self.source == "votes" else _codes(dataset, crowd.tasks)
        X = parts_of(dataset).features.loc[crowd.tasks].to_numpy(dtype=np.float64)
        order = rng.permutation(crowd.n_tasks)
        out, taught = np.split(order, [round(aside * crowd.n_tasks)])
        settings = _training(dataset)
        epochs = settings.pop("epochs")
        choice = settings.pop("classifier", "mlp")
        network = make_classifier(choice, epochs=1, epochs_per_fit=1, random_state=seed, **settings)
        targets = np.eye(crowd.n_classes)[target[taught]]
        on_test, on_held = [], []
        for _ in range(epochs):  # each fit goes on where the one before ended
            network.fit(X[taught], targets)
            on_test.append(_accuracy(network.predict_proba(rows), z))
            on_held.append(_accuracy(network.predict_proba(X[out]), target[out]) if aside else float("nan"))
        return on_test, on_held

    def identity(self) -> Any:
        """Settings and code."""
        settings = {name: _plain(training) for name, training in TRAINING.items()}
        return [self.source, settings, code_digest(__name__)]


def groups_found(model: Any, crowd: Crowd, pattern: pd.Series) -> dict[str, float]:
    """How well groups of workers with votes match their true patterns; a mean over networks where there are several.

    >>> class Fitted:
    ...     groups_ = pd.DataFrame({"first": [0, 0, 1], "second": [0, 0, 1]}, index=["ann", "bob", "eve"])
    ...     layer_ = {"T": np.array([[[1.0]], [[1.1]], [[5.0]]])}
    >>> crowd = Crowd.from_triples([("t", "ann", "a"), ("t", "bob", "b"), ("t", "eve", "b")])
    >>> groups_found(Fitted(), crowd, pd.Series({"ann": "pair", "bob": "pair", "eve": "dummy"}))
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
    return {name: describe_classifier(value) if name == "classifier" else value for name, value in settings.items()}


def _training(dataset: Dataset) -> dict[str, Any]:
    epochs = dataset.meta.get("epochs")
    return TRAINING[dataset.name] | ({} if epochs is None else {"epochs": epochs})


def _test(dataset: Dataset) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Features and classes of the test tasks."""
    features, _, tasks = parts_of(dataset)
    return features.loc[tasks].to_numpy(dtype=np.float64), _codes(dataset, tasks)


def _codes(dataset: Dataset, tasks: pd.Index) -> NDArray[np.intp]:
    return as_index(dataset.crowd.classes).get_indexer(pd.Index(parts_of(dataset).truth.loc[tasks]))


def _winners(crowd: Crowd, rng: np.random.Generator) -> NDArray[np.intp]:
    """The class of most votes of each task, drawn among equals."""
    votes = np.asarray(crowd.vote_counts, dtype=np.float64)
    return np.asarray((votes + 0.5 * rng.random(votes.shape)).argmax(axis=1))


def _accuracy(proba: NDArray[np.float64], z: NDArray[Any]) -> float:
    return float((proba.argmax(axis=1) == z).mean())
