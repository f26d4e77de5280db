"""Protocol of Xu et al. (2019): Gaussian points, images of shirts in place of dogs and cats, and scores."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import make_train_test_dataset, require_truth
from wisecrowd.bench.entries import LearnerEntry
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.simulate import (
    XU2019_ACCURACIES,
    DifficultyCrowd,
    compute_easiness,
    simulate_by_difficulty,
    simulate_gaussian_difficulty,
    simulate_unstructured,
    simulate_xu2019,
)

TEST, AUC, LABELS, EXPERTISE = "test accuracy", "AUC", "label accuracy", "expertise error"
FIGURES = (TEST, AUC, LABELS, EXPERTISE)

#: False positive rates at which the ROC curve is stored, as figures "TPR at …".
FALSE_POSITIVES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True)
class XuData:
    """Base of the data sources of this benchmark."""

    figures: tuple[str, ...] = FIGURES

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

    def absence(self) -> str | None:
        """Return None: the data are available."""
        return None


@dataclass(frozen=True)
class XuPoints(XuData):
    """Points around two centres: the published ones, or new ones for every seed.

    >>> XuPoints().load(seed=0).splits.value_counts().to_dict()
    {'train': 1000, 'test': 1000}
    """

    is_random: bool = False

    def load(self, seed: int) -> Dataset:
        """Load training points with votes and test points without votes."""
        simulation = simulate_gaussian_difficulty(random_state=seed) if self.is_random else simulate_xu2019()
        return _dataset("points", simulation)

    def identity(self) -> Any:
        """Return the kind of points and the digest of the code."""
        return ["points", self.is_random, code_digest(type(self))]

    def size(self) -> int:
        """Return the number of votes of five workers on 1,000 points."""
        return 5000


@dataclass(frozen=True)
class Shirts(XuData):
    """Shirts and T-shirts of Fashion-MNIST with simulated votes of five workers, new ones for every seed.

    With ``labels="structural"``, workers err on images about which a network trained on other images is uncertain.
    Otherwise ``labels`` is the number of levels of unstructured votes.

    >>> Shirts(6).size()
    15000
    """

    labels: Literal["structural"] | int = "structural"
    n_tasks: int = 3000

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Load the images as rows of 784 grey values from 0 to 1, and simulate votes."""
        X, z, test_X, test_z, easiness = _shirts(self._file, self.n_tasks)
        if self.labels == "structural":
            crowd = simulate_by_difficulty(z, easiness, XU2019_ACCURACIES, random_state=seed)
        else:
            crowd = simulate_unstructured(z, len(XU2019_ACCURACIES), levels=int(self.labels), random_state=seed)
        accuracy = pd.DataFrame(XU2019_ACCURACIES, index=crowd.workers, columns=crowd.classes)
        if self.labels != "structural":
            accuracy[:] = np.nan  # unstructured votes have no accuracy per worker
        test = pd.Index([f"test{n}" for n in range(len(test_z))])
        simulation = DifficultyCrowd(
            crowd=crowd,
            features=pd.DataFrame(X, index=crowd.tasks),
            truth=pd.Series(z, index=crowd.tasks),
            easiness=pd.Series(easiness, index=crowd.tasks),
            accuracy=accuracy,
            test_features=pd.DataFrame(test_X, index=test),
            test_truth=pd.Series(test_z, index=test),
        )
        return _dataset("shirts", simulation)

    @property
    def _file(self) -> Path:
        roots = [Path(part) for part in os.environ.get("WISECROWD_DATA", "").split(os.pathsep) if part]
        files = [root / "fashion_mnist" / "images.npz" for root in roots]
        return next((file for file in files if file.is_file()), Path("fashion_mnist/images.npz"))

    def absence(self) -> str | None:
        """Return a message if the images are not on this machine."""
        if self._file.is_file():
            return None
        return (
            "the images fashion_mnist/images.npz are not on this machine; WISECROWD_DATA names the folders to look in"
        )

    def identity(self) -> Any:
        """Return the digest of the images, the settings and the digest of the code."""
        with self._file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return [digest, self.labels, self.n_tasks, code_digest(type(self))]

    def size(self) -> int:
        """Return the number of votes of five workers."""
        return 5 * self.n_tasks


Array = NDArray[np.float64]


@cache
def _shirts(file: Path, n_tasks: int) -> tuple[Array, NDArray[np.int64], Array, NDArray[np.int64], Array]:
    """Return training images, truth, test images, truth, and the easiness of the training images to another network."""
    from sklearn.neural_network import MLPClassifier

    t_shirt, shirt, first_test = 0, 6, 60_000
    with np.load(file) as images:
        chosen = np.flatnonzero(np.isin(images["y"], (t_shirt, shirt)))
        X, z = images["X"][chosen].reshape(len(chosen), -1) / 255.0, (images["y"][chosen] == shirt).astype(np.int64)
    train, test = np.flatnonzero(chosen < first_test), np.flatnonzero(chosen >= first_test)
    train = np.random.default_rng(0).permutation(train)
    tasks, others = train[:n_tasks], train[n_tasks : 2 * n_tasks]
    judge = MLPClassifier((64,), alpha=1.0, early_stopping=True, random_state=0).fit(X[others], z[others])
    return X[tasks], z[tasks], X[test], z[test], compute_easiness(judge.predict_proba(X[tasks]))


def _dataset(name: str, simulation: DifficultyCrowd) -> Dataset:
    """Return the simulated crowd as a dataset with the true accuracies in its metadata."""
    return make_train_test_dataset(name, simulation, accuracy=simulation.accuracy.to_numpy())


@dataclass(frozen=True)
class XuLearner(LearnerEntry):
    """Entry that fits a learner, with logistic regression on points and a network on images.

    >>> figures = XuLearner("raykar")(XuPoints().load(0), 0)
    >>> round(figures["AUC"], 2), sorted(figures)[:2]
    (0.95, ['AUC', 'TPR at 0.01'])
    """

    hard: bool = False
    """True to round the posterior to one class, as for the majority vote in the paper."""
    classifier: Any = "mlp"
    """Network on images."""

    #: Only the data are random.
    is_random: ClassVar[bool] = False
    #: Number of EM iterations with a network, which has no fixed point; each iteration is one epoch.
    network: ClassVar[Mapping[str, Any]] = MappingProxyType({"l2": 1.0})
    passes: ClassVar[int] = 20

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score its labels, its classifier and its worker accuracies."""
        kind, settings = self.kind, dict(self.settings)
        if dataset.name != "points":
            settings |= {**self.network, "classifier": self.classifier, "random_state": seed}
            settings |= {"max_iter": self.passes, "tol": 0.0} if "max_iter" in kind().get_params() else {}
        assert dataset.truth is not None
        assert dataset.features is not None
        train, test = dataset.crowd.tasks, dataset.truth.index.difference(dataset.crowd.tasks, sort=False)
        model = kind(**settings).fit(dataset.features.loc[train], dataset.crowd)
        score = model.posterior_[:, 1] if not self.hard else (model.posterior_[:, 1] > 0.5).astype(np.float64)
        true = dataset.truth.loc[train].to_numpy()
        right = np.diagonal(model.confusion_, axis1=1, axis2=2)
        return {
            TEST: model.score(dataset.features.loc[test], dataset.truth.loc[test]),
            LABELS: float(((score > 0.5) == true).mean()),
            EXPERTISE: float(np.abs(right - dataset.meta["accuracy"]).mean()),
            **compute_roc(true, score),
        }

    def identity(self) -> Any:
        """Return the method, the settings and the digest of the code."""
        settings = [repr(dict(part)) for part in (self.settings, self.network)]
        parts = [self.method, *settings, self.hard, repr(self.classifier), self.passes]
        return [*parts, code_digest(type(self)), self.code()]


def compute_roc(true: NDArray[Any], score: Array) -> dict[str, float]:
    """Return the area under the ROC curve, and points of the curve.

    Parameters
    ----------
    true : ndarray
        True classes, 0 or 1.
    score : Array
        Score of class 1.

    Returns
    -------
    dict

    Examples
    --------
    >>> compute_roc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))["AUC"]
    0.75
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    false_positives, true_positives, _ = roc_curve(true, score)
    points = np.interp(FALSE_POSITIVES, false_positives, true_positives)
    rates = {f"TPR at {at:g}": float(value) for at, value in zip(FALSE_POSITIVES, points, strict=True)}
    return {AUC: float(roc_auc_score(true, score))} | rates
