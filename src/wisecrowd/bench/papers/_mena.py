"""The protocol of Mena and Ñanculef: their crowds, their network, their way of scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.learner import Learner
from wisecrowd.bench.data import Stored, parts_of, require_features, require_truth, train_and_test
from wisecrowd.bench.entries import OfLearner, code_digest
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.simulate import assign_worker_per_vote, simulate_gaussian_groups

TEST, TRAIN, I_JS, G_JS = "test accuracy", "train accuracy", "I-JS", "G-JS"

#: Their networks have one hidden layer; so many features and tasks ask logistic regression for so strong a ridge.
NETWORKS: dict[str, dict[str, Any]] = {
    "gaussians": {"hidden": 16, "dropout": 0.2},
    "labelme": {"hidden": 128, "dropout": 0.5},
}
RIDGES = {"gaussians": 1.0, "labelme": 100.0}


@dataclass(frozen=True)
class GaussianGroups:
    """Set-up (1) with so many workers; every seed makes other data.

    >>> GaussianGroups(100, n_tasks=60).load(seed=0).splits.value_counts().to_dict()
    {'train': 60, 'test': 20}
    """

    n_workers: int
    n_tasks: int = 2457
    figures: tuple[str, ...] = (TEST,)
    is_random: bool = True

    def load(self, seed: int) -> Dataset:
        """Simulate; the test tasks have features and truth, and no votes."""
        simulation = simulate_gaussian_groups(self.n_workers, n_tasks=self.n_tasks, random_state=seed)
        return train_and_test("gaussians", simulation)

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """The usual figures, of an entry that does not score itself."""
        return metrics.summary(require_truth(dataset), prediction)

    def absence(self) -> str | None:
        """Never absent."""
        return None

    def identity(self) -> Any:
        """The settings, and the code that simulates."""
        return [self.n_workers, self.n_tasks, code_digest(__name__)]

    def size(self) -> int:
        """Five labels for each task."""
        return 5 * self.n_tasks


@dataclass(frozen=True)
class LabelMe(Stored):
    """LabelMe, with its workers known or, in the global setting, with a worker of its own for every label.

    >>> LabelMe("labelme", "distinct", setting="global").figures
    ('accuracy',)
    """

    setting: Literal["individual", "global"] = "individual"

    def load(self, seed: int) -> Dataset:
        """The dataset."""
        dataset = super().load(seed)
        crowd = assign_worker_per_vote(dataset.crowd) if self.setting == "global" else dataset.crowd
        return Dataset(
            name="labelme", crowd=crowd, truth=dataset.truth, features=dataset.features, splits=dataset.splits
        )  # fmt: skip

    def identity(self) -> Any:
        """As of any dataset, and the setting."""
        return [super().identity(), self.setting]


@dataclass(frozen=True)
class Learn(OfLearner):
    """A learner of the registry with their network or with logistic regression; it scores itself as they do.

    >>> made = GaussianGroups(50, n_tasks=200).load(seed=0)
    >>> sorted(Learn("cmm", network=False)(made, 0))
    ['G-JS', 'I-JS', 'test accuracy', 'train accuracy']
    """

    network: bool = True
    epochs: int = 1
    """Of the first fit of the network; an EM method goes on by one in each pass."""
    on_labelme: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Settings that differ there."""
    per_worker: bool = False
    """Whether each worker has a matrix of his own."""

    is_random: ClassVar[bool] = True

    def fitted(self, dataset: Dataset, seed: int, **settings: Any) -> Learner:
        """The learner, fitted to the votes."""
        chosen = {"random_state": seed, **self.settings, **(self.on_labelme if dataset.name == "labelme" else {})}
        chosen |= {"classifier": self._classifier(dataset, seed)} if self.network else {"l2": RIDGES[dataset.name]}
        return self.kind(**chosen | settings).fit(require_features(dataset), dataset.crowd)

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit and score."""
        model = self.fitted(dataset, seed)
        scores = classified(dataset, model.predict)
        return scores | divergences(dataset, model, self.per_worker)

    def identity(self) -> Any:
        """Method, settings, and the code that is its own."""
        parts = [
            self.method,
            repr(dict(self.settings)),
            repr(dict(self.on_labelme)),
            self.network,
            self.epochs,
            self.per_worker,
        ]
        return [*parts, code_digest(__name__), self.code()]

    def _classifier(self, dataset: Dataset, seed: int) -> Any:
        return make_classifier("mlp", epochs=self.epochs, random_state=seed, **NETWORKS[dataset.name])


@dataclass(frozen=True)
class Ideal:
    """Their network, trained on the truth.

    >>> Ideal().epochs
    20
    """

    epochs: int = 20

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Train and score."""
        classes, (features, truth, _) = as_index(dataset.crowd.classes), parts_of(dataset)
        one_hot_truth = np.eye(len(classes))[classes.get_indexer(pd.Index(truth.loc[dataset.crowd.tasks]))]
        rows = features.loc[dataset.crowd.tasks].to_numpy(dtype=np.float64)
        settings = NETWORKS[dataset.name]
        model = make_classifier("mlp", epochs=self.epochs, random_state=seed, **settings).fit(rows, one_hot_truth)
        return classified(dataset, lambda X: classes[model.predict_proba(X.to_numpy(dtype=np.float64)).argmax(axis=1)])


def classified(dataset: Dataset, predict: Any) -> dict[str, float]:
    """How often the classifier is right about the tasks that have votes, and about the test tasks.

    >>> made = GaussianGroups(20, n_tasks=30).load(seed=0)
    >>> classified(made, lambda X: made.truth.loc[X.index])
    {'train accuracy': 1.0, 'test accuracy': 1.0}
    """
    features, truth, test = parts_of(dataset)
    figures = {}
    for name, tasks in ((TRAIN, dataset.crowd.tasks), (TEST, test)):
        right = np.asarray(predict(features.loc[tasks])) == truth.loc[tasks].to_numpy()
        figures[name] = float(right.mean())
    return figures


def divergences(dataset: Dataset, model: Learner, per_worker: bool) -> dict[str, float]:
    """I-JS and G-JS: how far estimated matrices are from those that the truth gives, of single workers and of all.

    As they do it, the estimate for all is the plain mean over workers where a method has a matrix for each
    (``per_worker``), and workers count alike however few labels they have. Rows of which a worker has no label are uniform.
    """
    single, everybody = true_confusion(dataset.crowd, dataset.truth)
    estimated = model.confusion_
    pooled = estimated.mean(axis=0) if per_worker else model.crowd_confusion_
    return {
        I_JS: float(metrics.confusion_divergence(single, estimated).mean()),
        G_JS: float(metrics.confusion_divergence(everybody, pooled)),
    }


def true_confusion(crowd: Crowd, truth: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What workers said of each true class, (workers, true, said), and what all of them did, (true, said).

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t1", "bob", "dog")])
    >>> single, everybody = true_confusion(crowd, pd.Series({"t1": "cat", "t2": "dog"}))
    >>> single[1].tolist(), everybody.tolist()
    ([[0.0, 1.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]])
    """
    assert crowd.worker is not None
    assert crowd.classes is not None
    z = crowd.classes.get_indexer(pd.Index(truth.loc[crowd.tasks]))
    counts = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes))
    np.add.at(counts, (crowd.worker, z[crowd.task], crowd.label), crowd.weight)
    return _rows(counts), _rows(counts.sum(axis=0))


def _rows(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, 1 / counts.shape[-1]), where=total > 0)
