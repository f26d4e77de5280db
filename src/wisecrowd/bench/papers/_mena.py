"""Protocol of Mena and Ñanculef (2019): crowds, network and scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.learner import Learner
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import (
    StoredDataset,
    get_classification_data,
    make_train_test_dataset,
    require_features,
    require_truth,
)
from wisecrowd.bench.entries import LearnerEntry
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.simulate import assign_worker_per_vote, simulate_gaussian_groups

TEST, TRAIN, I_JS, G_JS, ITERATIONS = "test accuracy", "train accuracy", "I-JS", "G-JS", "iterations"

#: Parameters of the networks of the paper, which have one hidden layer, and ridges of logistic regression, by dataset.
NETWORKS: dict[str, dict[str, Any]] = {
    "gaussians": {"hidden": 16, "dropout": 0.2},
    "labelme": {"hidden": 128, "dropout": 0.5},
}
RIDGES = {"gaussians": 1.0, "labelme": 100.0}


@dataclass(frozen=True)
class GaussianGroups:
    """Simulated crowd of set-up (1), a different one for every seed.

    >>> GaussianGroups(100, n_tasks=60).load(seed=0).splits.value_counts().to_dict()
    {'train': 60, 'test': 20}
    """

    n_workers: int
    n_tasks: int = 2457
    figures: tuple[str, ...] = (TEST,)
    is_random: bool = True

    def load(self, seed: int) -> Dataset:
        """Simulate training tasks with votes and test tasks without votes."""
        simulation = simulate_gaussian_groups(self.n_workers, n_tasks=self.n_tasks, random_state=seed)
        return make_train_test_dataset("gaussians", simulation)

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Compute the standard figures of a prediction, such as its accuracy.

        It is called for entries (methods in the benchmark) that return a prediction and not figures of their own.

        Parameters
        ----------
        dataset : Dataset
            Dataset with truth.
        prediction : object
            Labels or probabilities that the entry predicts.

        Returns
        -------
        dict of str to float
            Figures by name.
        """
        return metrics.summary(require_truth(dataset), prediction)

    def absence(self) -> str | None:
        """Return None: a simulation is always available."""
        return None

    def identity(self) -> Any:
        """Return the settings and the digest of the code."""
        return [self.n_workers, self.n_tasks, code_digest(type(self))]

    def size(self) -> int:
        """Return the number of votes, five per task."""
        return 5 * self.n_tasks


@dataclass(frozen=True)
class LabelMe(StoredDataset):
    """LabelMe; in the global setting every vote gets a worker of its own.

    >>> LabelMe("labelme", "distinct", setting="global").figures
    ('accuracy',)
    """

    setting: Literal["individual", "global"] = "individual"

    def load(self, seed: int) -> Dataset:
        """Load the dataset."""
        dataset = super().load(seed)
        crowd = assign_worker_per_vote(dataset.crowd) if self.setting == "global" else dataset.crowd
        return Dataset(
            name="labelme", crowd=crowd, truth=dataset.truth, features=dataset.features, splits=dataset.splits
        )  # fmt: skip

    def identity(self) -> Any:
        """Return the identity of the dataset and the setting."""
        return [super().identity(), self.setting]


@dataclass(frozen=True)
class MenaLearner(LearnerEntry):
    """Entry that fits a learner with the network of the paper or with logistic regression.

    >>> dataset = GaussianGroups(50, n_tasks=200).load(seed=0)
    >>> sorted(MenaLearner("cmm", network=False)(dataset, 0))
    ['G-JS', 'I-JS', 'iterations', 'test accuracy', 'train accuracy']
    """

    network: bool = True
    epochs: int = 1
    """Number of epochs of the first fit of the network; every EM iteration adds one epoch."""
    authors_network: bool = False
    """Whether the network starts from Glorot's weights and sees the features of LabelMe as they are."""
    matrices: Literal["mixture", "workers", "vote shares", "majority"] = "mixture"
    """Confusion matrices that are compared with the true ones: those of a mixture, of single workers, or of the votes against
    the vote shares or the majority, the same for all workers."""

    is_random: ClassVar[bool] = True

    def fitted(self, dataset: Dataset, seed: int, **settings: Any) -> Learner:
        """Return the learner, fitted to the votes.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the learner.

        Returns
        -------
        Learner
        """
        classifier = {"classifier": self._classifier(dataset, seed)} if self.network else {"l2": RIDGES[dataset.name]}
        chosen = {"random_state": seed, **classifier, **self.settings}
        return self.kind(**chosen | settings).fit(require_features(dataset), dataset.crowd)

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score it."""
        model = self.fitted(dataset, seed)
        scores = score_classifier(dataset, model.predict)
        if hasattr(model, "restarts_"):
            scores[ITERATIONS] = float(model.restarts_["n_iter"].mean())
        elif hasattr(model, "n_iter_"):
            scores[ITERATIONS] = float(model.n_iter_)
        estimated, pooled = self._estimated_matrices(dataset.crowd, model)
        return scores | compute_divergences(dataset, estimated, pooled)

    def _estimated_matrices(self, crowd: Crowd, model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the matrix of every worker and of the crowd.

        As in the paper, the crowd matrix is the unweighted mean over workers if the learner has a matrix for each, and the
        matrix of all votes stands for that of every worker if it has none.
        """
        if self.matrices == "mixture":
            return model.confusion_, model.crowd_confusion_
        if self.matrices == "workers":
            return model.confusion_, model.confusion_.mean(axis=0)
        share = crowd.vote_counts / crowd.vote_counts.sum(axis=1, keepdims=True)
        if self.matrices == "majority":
            share = np.eye(crowd.n_classes)[share.argmax(axis=1)]
        pooled = _normalize_rows(share.T @ crowd.vote_counts)
        return np.broadcast_to(pooled, (crowd.n_workers, *pooled.shape)), pooled

    def identity(self) -> Any:
        """Return the method, the settings and the digest of the code."""
        parts = [
            self.method,
            repr(dict(self.settings)),
            self.network,
            self.epochs,
            self.authors_network,
            self.matrices,
        ]
        return [*parts, code_digest(type(self)), self.code()]

    def _classifier(self, dataset: Dataset, seed: int) -> Any:
        settings = NETWORKS[dataset.name]
        if self.authors_network:
            network = GlorotNetwork(**settings)
            standardise = dataset.name != "labelme"
            return make_classifier(network, l2=0.0, epochs=self.epochs, random_state=seed, standardise=standardise)
        return make_classifier("mlp", epochs=self.epochs, random_state=seed, **settings)


@dataclass(frozen=True)
class GlorotNetwork:
    """Builder of a network with one hidden layer and the initial weights of Keras, which the authors used.

    >>> sum(weight.numel() for weight in GlorotNetwork(hidden=16, dropout=0.2)((2,), 3).parameters())
    99
    """

    hidden: int
    dropout: float

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> Any:
        """Return the module.

        Parameters
        ----------
        shape : tuple of int
            Shape of the features.
        n_classes : int
            Number of classes.

        Returns
        -------
        torch.nn.Module
        """
        nn = import_torch().nn
        layers = [nn.Linear(math.prod(shape), self.hidden), nn.Linear(self.hidden, n_classes)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        return nn.Sequential(nn.Flatten(), layers[0], nn.ReLU(), nn.Dropout(self.dropout), layers[1])


@dataclass(frozen=True)
class Ideal:
    """Entry that trains the network of the paper on the truth.

    >>> Ideal().epochs
    20
    """

    epochs: int = 20

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Train the network and score it."""
        classes, (features, truth, _) = as_index(dataset.crowd.classes), get_classification_data(dataset)
        one_hot_truth = np.eye(len(classes))[classes.get_indexer(pd.Index(truth.loc[dataset.crowd.tasks]))]
        rows = features.loc[dataset.crowd.tasks].to_numpy(dtype=np.float64)
        settings = NETWORKS[dataset.name]
        model = make_classifier("mlp", epochs=self.epochs, random_state=seed, **settings).fit(rows, one_hot_truth)
        return score_classifier(
            dataset, lambda X: classes[model.predict_proba(X.to_numpy(dtype=np.float64)).argmax(axis=1)]
        )


def score_classifier(dataset: Dataset, predict: Any) -> dict[str, float]:
    """Return the accuracy of a classifier on the training tasks and on the test tasks.

    Parameters
    ----------
    dataset : Dataset
        Dataset.
    predict : object
        Function from features to classes.

    Returns
    -------
    dict

    Examples
    --------
    >>> dataset = GaussianGroups(20, n_tasks=30).load(seed=0)
    >>> score_classifier(dataset, lambda X: dataset.truth.loc[X.index])
    {'train accuracy': 1.0, 'test accuracy': 1.0}
    """
    features, truth, test = get_classification_data(dataset)
    figures = {}
    for name, tasks in ((TRAIN, dataset.crowd.tasks), (TEST, test)):
        right = np.asarray(predict(features.loc[tasks])) == truth.loc[tasks].to_numpy()
        figures[name] = float(right.mean())
    return figures


def compute_divergences(
    dataset: Dataset, estimated: NDArray[np.float64], pooled: NDArray[np.float64]
) -> dict[str, float]:
    """Return I-JS and G-JS, the divergences of estimated from true confusion matrices.

    I-JS is the mean over workers, and G-JS is that of the crowd. True rows without votes are uniform.

    Parameters
    ----------
    dataset : Dataset
        Dataset.
    estimated : ndarray of shape (n_workers, n_classes, n_classes)
        Estimated matrix of every worker.
    pooled : ndarray of shape (n_classes, n_classes)
        Estimated matrix of the crowd.

    Returns
    -------
    dict
    """
    single, everybody = compute_true_confusion(dataset.crowd, dataset.truth)
    return {
        I_JS: float(metrics.confusion_divergence(single, estimated).mean()),
        G_JS: float(metrics.confusion_divergence(everybody, pooled)),
    }


def compute_true_confusion(crowd: Crowd, truth: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the true confusion matrices, (workers, true, given), and that of the crowd, (true, given).

    Parameters
    ----------
    crowd : Crowd
        Votes.
    truth : object
        True class by task.

    Returns
    -------
    confusion, crowd_confusion : ndarray

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t1", "bob", "dog")])
    >>> single, everybody = compute_true_confusion(crowd, pd.Series({"t1": "cat", "t2": "dog"}))
    >>> single[1].tolist(), everybody.tolist()
    ([[0.0, 1.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]])
    """
    assert crowd.worker is not None
    assert crowd.classes is not None
    z = crowd.classes.get_indexer(pd.Index(truth.loc[crowd.tasks]))
    counts = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes))
    np.add.at(counts, (crowd.worker, z[crowd.task], crowd.label), crowd.weight)
    return _normalize_rows(counts), _normalize_rows(counts.sum(axis=0))


def _normalize_rows(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide rows by their sums; rows without counts become uniform."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, 1 / counts.shape[-1]), where=total > 0)
