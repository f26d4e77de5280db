"""Protocol of Han et al. (2025): accuracy on the labelled tasks, before and after votes are filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import LearnerEntry, Portable
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.epoch_watchers import watch_epochs

ACCURACY = "accuracy"
#: Figures: accuracy of labels from features and votes together; accuracy after minus before, in points; share of cells with a
#: vote; mean −log P of hidden votes; number of epochs that the hidden votes select.
WITH_VOTES, CHANGE, DENSITY, SURPRISE, EPOCHS = "with votes", "change", "density", "hidden-vote loss", "epochs"
#: Figures: largest standard deviation of an expert's share over the workers; rank correlation of the distance of workers from the
#: oracle with their accuracy, in the space of mixtures and on the map.
VECTOR_SPREAD, CORRELATION, ON_MAP = "spread of v", "rank correlation", "rank correlation on the map"
#: Number of epochs of the learning curves.
LONG = 150

#: Datasets by their names in the paper.
NAMES = {"LabelMe": "labelme", "Text": "crowdtruth_relations_13", "Music": "music_genre"}
#: The paper's aggregators that use only votes.
STATISTICAL = {"MV": "majority-vote", "DS": "dawid-skene", "FDS": "fast-ds", "HDS": "hds"}
#: The paper's learners.
DEEP = {"Max-MIG": "max-mig", "CoNAL": "conal", "CrowdAR": "crowd-ar"}

NOTES: dict[str | tuple[str, str], str] = {
    "LabelMe": "All 1,000 labelled images. The paper's figures are multiples of 1/977, so it scored 977 of them. Our "
    "features are 512 pooled units of VGG-16; the paper has 8,192.",
    "Text": "1,593 sentences with 384 features of a small sentence encoder; the paper has 768 of BERT. Majority vote "
    "is better here than in the paper.",
    "Music": "Features are standardised.",
}


def crowds(*figures: str) -> dict[str, StoredDataset]:
    """Return the three real crowds with the figures to show.

    >>> list(crowds())
    ['LabelMe', 'Text', 'Music']
    """
    return {title: StoredDataset(name, "distinct", figures=figures or (ACCURACY,)) for title, name in NAMES.items()}


# ---------------------------------------------------------------------- fits shared by several rows

_cache: dict[Any, Any] = {}
#: Maximum number of cached fits; each holds a crowd of some megabytes or a small network.
MAX_CACHED = 40


def compute_once(key: Any, make: Callable[[], Any]) -> Any:
    """Return the cached value of a key, or make and cache it.

    Several rows of a table score the same fit.

    Parameters
    ----------
    key : hashable
        Identity of the fit.
    make : callable
        Function without arguments that makes the value.

    Returns
    -------
    object

    Examples
    --------
    >>> compute_once("three", lambda: 3), compute_once("three", lambda: 4)
    (3, 3)
    """
    if key not in _cache:
        while len(_cache) >= MAX_CACHED:
            del _cache[next(iter(_cache))]
        _cache[key] = make()
    return _cache[key]


def get_features_and_truth(dataset: Dataset) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the features and the truth of the labelled tasks, in the order of the crowd."""
    if dataset.truth is None or dataset.features is None:
        raise InputError("the dataset has no truth or no features; this entry needs both")
    tasks = dataset.crowd.tasks
    return dataset.features.loc[tasks], dataset.truth.loc[tasks].to_numpy()


@dataclass(frozen=True)
class TrainingTaskScores(LearnerEntry):
    """Entry that fits a learner and scores its classifier and its posterior on the training tasks.

    >>> TrainingTaskScores("conal").method
    'conal'
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score it."""
        X, z = get_features_and_truth(dataset)
        model = self.fitted(dataset, seed)
        return {
            ACCURACY: float((model.predict(X) == z).mean()),
            WITH_VOTES: float((model.labels_.to_numpy() == z).mean()),
        }

    def fitted(self, dataset: Dataset, seed: int) -> Any:
        """Return the fitted learner, from the cache if another row has fitted it.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the learner.

        Returns
        -------
        object
        """
        key = (self.method, repr(dict(self.settings)), dataset.crowd.digest, seed)
        settings = {"random_state": seed, **self.settings}
        return compute_once(key, lambda: self.kind(**settings).fit(get_features_and_truth(dataset)[0], dataset.crowd))

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(type(self)), self.code()]


@dataclass(frozen=True)
class Oracle(TrainingTaskScores):
    """Entry that scores MMLC with one of its centres; "truth" is the centre that fits the truth best.

    >>> Oracle("mmlc", centre="median").centre
    'median'
    """

    centre: str = "kde"
    weights: str = "none"

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Score the predictions of the oracle on the labelled tasks."""
        X, z = get_features_and_truth(dataset)
        model = self.fitted(dataset, seed)
        v = model.oracle_for(X, z) if self.centre == "truth" else model.oracle_by(self.centre, self.weights)
        best = model.classes_[model.answer_as(X, v)[:, 0].argmax(axis=1)]
        figures = {ACCURACY: float((best == z).mean()), EPOCHS: float(model.epochs_)}
        figures[VECTOR_SPREAD] = float(model.vector_spread_.max())
        if (self.centre, self.weights) == (model.centre, model.weights):
            figures[WITH_VOTES] = float((model.labels_.to_numpy() == z).mean())
        return figures

    def identity(self) -> Any:
        """Return the identity of the learner and the centre."""
        return [super().identity(), self.centre, self.weights, code_digest(find("mmlc"))]


@dataclass(frozen=True)
class PaperSizes(Oracle):
    """Entry that scores MMLC with the sizes that the paper has for the dataset.

    >>> PaperSizes("mmlc").sizes["labelme"]
    'labelme'
    """

    sizes: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"labelme": "labelme", "crowdtruth_relations_13": "text", "music_genre": "music"}
    )

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Score the predictions of the oracle on the labelled tasks."""
        chosen = Oracle(self.method, {**self.settings, "classifier": self.sizes[dataset.name]})
        return chosen(dataset, seed)


@dataclass(frozen=True)
class HeadRetrained(TrainingTaskScores):
    """Entry that scores MMLC after the layers behind the mixture were retrained with the truth, as in the authors' program.

    >>> HeadRetrained("mmlc").method
    'mmlc'
    """

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Score the retrained predictions on the tasks whose truth they learned from."""
        X, z = get_features_and_truth(dataset)
        model = self.fitted(dataset, seed)
        best = model.classes_[model.retrain_output(X, z).argmax(axis=1)]
        return {ACCURACY: float((best == z).mean()), EPOCHS: float(model.epochs_)}


@dataclass(frozen=True)
class WorkerDistances(TrainingTaskScores):
    """Entry that correlates the distances of workers from the oracle with their accuracies, as figure 4 shows.

    >>> WorkerDistances("mmlc").min_votes
    10
    """

    min_votes: int = 10
    """Fewest votes of a worker whose accuracy counts."""

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the rank correlation over the workers, in the space of v and in the plane of the map."""
        from scipy.stats import spearmanr

        _, z = get_features_and_truth(dataset)
        model, crowd = self.fitted(dataset, seed), dataset.crowd
        right = as_index(crowd.classes)[crowd.label] == z[crowd.task]
        n_votes = np.bincount(crowd.worker_codes, minlength=crowd.n_workers)
        accuracy = np.bincount(crowd.worker_codes, right, minlength=crowd.n_workers) / np.maximum(n_votes, 1)
        chosen = n_votes >= self.min_votes
        distance = np.linalg.norm(model.worker_vectors_.to_numpy() - model.oracle_, axis=1)
        plane = model.worker_map()[["x", "y"]].to_numpy()
        on_map = np.linalg.norm(plane[:-1] - plane[-1], axis=1)
        return {
            CORRELATION: float(spearmanr(distance[chosen], accuracy[chosen]).statistic),
            ON_MAP: float(spearmanr(on_map[chosen], accuracy[chosen]).statistic),
            "workers": float(chosen.sum()),
            VECTOR_SPREAD: float(model.vector_spread_.max()),
        }

    def identity(self) -> Any:
        """Return the identity of the learner and the limit."""
        return [super().identity(), self.min_votes]


@dataclass(frozen=True)
class AtEpoch(TrainingTaskScores):
    """Entry that scores MMLC after a number of epochs, or after the "best" epoch by the truth.

    The best epoch is one of the first ``until`` epochs; by default, of twice as many as the hidden votes select.

    >>> AtEpoch("mmlc", at=20).at
    20
    """

    at: int | str = "best"
    until: int | None = None

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the accuracy and the loss on hidden votes at that epoch."""
        chosen = self.fitted(dataset, seed)
        curve = self.curve(dataset, seed, 2 * chosen.epochs_ if self.until is None else self.until)
        epoch = {"best": int(np.argmax(curve)) + 1, "chosen": chosen.epochs_}.get(str(self.at), self.at)
        if not epoch <= len(curve):
            raise UsageError(f"epoch {epoch} is beyond the {len(curve)} epochs of the curve; increase until")
        searched = chosen.search_["hidden"]
        hidden = -float(searched[epoch]) if epoch in searched.index else float("nan")
        return {ACCURACY: curve[epoch - 1], SURPRISE: hidden, EPOCHS: float(epoch)}

    def curve(self, dataset: Dataset, seed: int, epochs: int) -> list[float]:
        """Return the accuracy on the labelled tasks after every epoch of one fit.

        Parameters
        ----------
        dataset : Dataset
            Dataset of the cell.
        seed : int
            Seed of the fit.
        epochs : int
            Number of epochs.

        Returns
        -------
        list of float
        """
        X, z = get_features_and_truth(dataset)
        rows = X.to_numpy(dtype=np.float64)

        def fit_watched() -> list[float]:
            accuracies: list[float] = []
            classes = as_index(dataset.crowd.classes)
            settings = {"random_state": seed, **self.settings, "epochs": epochs}
            model = self.kind(**settings)
            with watch_epochs(
                lambda snapshot: accuracies.append(float((classes[snapshot.classify(rows).argmax(axis=1)] == z).mean()))
            ):
                model.fit(X, dataset.crowd)
            return accuracies

        key = ("curve", self.method, repr(dict(self.settings)), dataset.crowd.digest, seed, epochs)
        accuracies_by_epoch: list[float] = compute_once(key, fit_watched)
        return accuracies_by_epoch

    def identity(self) -> Any:
        """Return the identity of the learner and the epoch."""
        return [super().identity(), self.at, self.until]


# ---------------------------------------------------------------------- completion


@dataclass(frozen=True)
class AfterFilling(Portable):
    """Entry that scores an aggregator on completed votes, where a filled vote has the weight of a real one.

    Without a completer, the aggregator gets the real votes. ``min_votes`` in the metadata of the dataset limits the
    completion to busy workers.

    >>> AfterFilling("majority-vote", "gmv").completer
    'gmv'
    """

    aggregator: str
    completer: str | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters of the completer."""

    @property
    def is_random(self) -> bool:
        """True if the result depends on the seed."""
        return self.completer is not None

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Complete the votes, aggregate them and score the labels."""
        truth = dataset.truth
        if truth is None:
            raise InputError("the dataset has no truth; this entry needs it for scoring")

        def accuracy(crowd: Crowd) -> float:
            kind = find(self.aggregator)
            assert issubclass(kind, Aggregator)
            return metrics.accuracy(truth, kind().fit(crowd))  # ties count with the share of the true class

        votes = dataset.crowd if self.completer is None else self.filled(dataset, seed)
        after, before = accuracy(votes), accuracy(dataset.crowd)
        return {ACCURACY: after, CHANGE: 100 * (after - before), DENSITY: votes.n_votes / np.prod(votes.shape)}

    def filled(self, dataset: Dataset, seed: int) -> Crowd:
        """Return the completed crowd, from one fit for all aggregators and thresholds.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the completer.

        Returns
        -------
        Crowd
        """
        kind: Any = self._kind

        def fitted() -> Completer:
            completer_ = kind(**{"random_state": seed, "fill_weight": 1.0, **self.settings})
            return completer_.fit(dataset.crowd, get_features_and_truth(dataset)[0] if kind.uses_features else None)

        key = (self.completer, repr(dict(self.settings)), dataset.crowd.digest, seed)
        completer = compute_once(key, fitted)
        fewest = int(dataset.meta.get("min_votes", 0))
        completed: Crowd = compute_once((*key, fewest), lambda: completer.set_params(min_votes=fewest).fill())
        return completed

    @property
    def _kind(self) -> type[Completer]:
        kind = find(self.completer or "")
        if not issubclass(kind, Completer):
            raise UsageError(f"{self.completer} is not a completer; wisecrowd methods lists the completers")
        return kind

    def identity(self) -> Any:
        """Return the aggregator, the completer, its parameters and the digests of their code."""
        parts: list[Any] = [self.aggregator, code_digest(find(self.aggregator)), code_digest(type(self))]
        if self.completer is None:
            return parts
        parameters = self._kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [*parts, self.completer, shown, code_digest(self._kind)]


@dataclass(frozen=True)
class LearnerAfterFilling(AfterFilling):
    """Entry that scores a learner on the labelled tasks after votes were filled in; ``aggregator`` is its name.

    >>> LearnerAfterFilling("conal", "gmv").is_random
    True
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Complete the votes, fit the learner to them and to the real votes, and score its classifier."""
        X, z = get_features_and_truth(dataset)
        kind: Any = find(self.aggregator)

        def accuracy(crowd: Crowd) -> float:
            return float((kind(random_state=seed).fit(X, crowd).predict(X) == z).mean())

        votes = dataset.crowd if self.completer is None else self.filled(dataset, seed)
        key = ("unfilled", self.aggregator, dataset.crowd.digest, seed)
        before = compute_once(key, lambda: accuracy(dataset.crowd))
        after = before if self.completer is None else accuracy(votes)
        return {ACCURACY: after, CHANGE: 100 * (after - before), DENSITY: votes.n_votes / np.prod(votes.shape)}


# ---------------------------------------------------------------------- subsets of votes and workers


@dataclass(frozen=True)
class LimitedVotes(StoredDataset):
    """Stored crowd with a random sample of at most ``most`` votes per task.

    >>> LimitedVotes("labelme", "distinct", most=2).most
    2
    """

    most: int = 1

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Load the dataset and sample its votes."""
        dataset = super().load(seed)
        return replace(dataset, crowd=dataset.crowd.limit_votes_per_task(self.most, random_state=seed))

    def identity(self) -> Any:
        """Return the identity of the dataset and the limit."""
        return [super().identity(), self.most]


@dataclass(frozen=True)
class BusyWorkersOnly(StoredDataset):
    """Stored crowd whose completion is limited to workers with more than ``min_votes`` votes.

    >>> BusyWorkersOnly("labelme", "distinct", min_votes=50).min_votes
    50
    """

    min_votes: int = 0

    def load(self, seed: int) -> Dataset:
        """Load the dataset with the limit in its metadata."""
        dataset = super().load(seed)
        return replace(dataset, meta={**dataset.meta, "min_votes": self.min_votes})

    def identity(self) -> Any:
        """Return the identity of the dataset and the limit."""
        return [super().identity(), self.min_votes]
