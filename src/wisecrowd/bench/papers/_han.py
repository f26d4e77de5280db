"""The protocol of Han et al. (2025): accuracy on the tasks that were labelled, before and after votes are filled in."""

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
from wisecrowd.bench.data import Stored
from wisecrowd.bench.entries import OfLearner, Portable, code_digest
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.epoch_watchers import watch_epochs

ACCURACY = "accuracy"
#: Of labels that follow from features and votes together; accuracy after less that before, in points; filled cells of all;
#: −log P of hidden votes; and how many epochs they chose.
WITH_VOTES, CHANGE, DENSITY, SURPRISE, EPOCHS = "with votes", "change", "density", "hidden-vote loss", "epochs"
#: Of the curves of accuracy by epoch.
LONG = 150

#: The paper's crowds by their names there.
NAMES = {"LabelMe": "labelme", "Text": "crowdtruth_relations_13", "Music": "music_genre"}
#: The paper's aggregators that look at votes only.
STATISTICAL = {"MV": "majority-vote", "DS": "dawid-skene", "FDS": "fast-ds", "HDS": "hds"}

NOTES: dict[str | tuple[str, str], str] = {
    "LabelMe": "All 1,000 labelled images; the paper's figures are multiples of 1/977, so that it scored 977 of them. Our features "
    "are 512 pooled units of VGG-16, where the paper has 8,192.",
    "Text": "1,593 sentences, each with 384 features of a small sentence encoder, where the paper has 768 of BERT. The vote "
    "is better here than in the paper.",
    "Music": "Features are standardised.",
}


def crowds(*figures: str) -> dict[str, Stored]:
    """The three real crowds, with the figures to show.

    >>> list(crowds())
    ['LabelMe', 'Text', 'Music']
    """
    return {title: Stored(name, "distinct", figures=figures or (ACCURACY,)) for title, name in NAMES.items()}


# ---------------------------------------------------------------------- fits that several rows share

_cache: dict[Any, Any] = {}
#: Crowds of some megabytes, and small networks.
MOST_KEPT = 40


def compute_once(key: Any, make: Callable[[], Any]) -> Any:
    """What ``make`` gives, and gave before for an equal key: rows that differ in what is made of a fit need one fit.

    >>> compute_once("three", lambda: 3), compute_once("three", lambda: 4)
    (3, 3)
    """
    if key not in _cache:
        while len(_cache) >= MOST_KEPT:
            del _cache[next(iter(_cache))]
        _cache[key] = make()
    return _cache[key]


def features_and_truth(dataset: Dataset) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Of the tasks that were labelled, in the order of the crowd."""
    if dataset.truth is None or dataset.features is None:
        raise InputError("learners on labelled tasks are scored by truth and features, and this dataset has not both")
    tasks = dataset.crowd.tasks
    return dataset.features.loc[tasks], dataset.truth.loc[tasks].to_numpy()


@dataclass(frozen=True)
class OnTasks(OfLearner):
    """A learner, scored on the tasks that it learnt from: what its classifier says, and what that and the votes say.

    >>> OnTasks("conal").method
    'conal'
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit and score."""
        X, z = features_and_truth(dataset)
        model = self.fitted(dataset, seed)
        return {
            ACCURACY: float((model.predict(X) == z).mean()),
            WITH_VOTES: float((model.labels_.to_numpy() == z).mean()),
        }

    def fitted(self, dataset: Dataset, seed: int) -> Any:
        """The learner, perhaps as another row fitted it."""
        key = (self.method, repr(dict(self.settings)), dataset.crowd.digest, seed)
        settings = {"random_state": seed, **self.settings}
        return compute_once(key, lambda: self.kind(**settings).fit(features_and_truth(dataset)[0], dataset.crowd))

    def identity(self) -> Any:
        """Method, parameters and the code that is its own."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(__name__), self.code()]


@dataclass(frozen=True)
class Oracle(OnTasks):
    """MMLC with one of its centres; those of a seed are centres of one fit. "truth" is the centre that the truth chooses.

    >>> Oracle("mmlc", centre="median").centre
    'median'
    """

    centre: str = "kde"
    weights: str = "none"

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """What the oracle says of the labelled tasks."""
        X, z = features_and_truth(dataset)
        model = self.fitted(dataset, seed)
        v = model.oracle_for(X, z) if self.centre == "truth" else model.oracle_by(self.centre, self.weights)
        best = model.classes_[model.answer_as(X, v)[:, 0].argmax(axis=1)]
        return {ACCURACY: float((best == z).mean()), EPOCHS: float(model.epochs_)}

    def identity(self) -> Any:
        """As of any learner, and the centre."""
        return [super().identity(), self.centre, self.weights, code_digest(find("mmlc").__module__)]


@dataclass(frozen=True)
class AtEpoch(OnTasks):
    """MMLC after some epochs, or after the "best" by the truth, which nobody could choose; one run for all of them.

    The best is sought among twice as many epochs as hidden votes chose, or among ``until``.

    >>> AtEpoch("mmlc", at=20).at
    20
    """

    at: int | str = "best"
    until: int | None = None

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Accuracy as of that epoch, and how well hidden votes were foretold by then."""
        chosen = self.fitted(dataset, seed)
        curve = self.curve(dataset, seed, 2 * chosen.epochs_ if self.until is None else self.until)
        epoch = {"best": int(np.argmax(curve)) + 1, "chosen": chosen.epochs_}.get(str(self.at), self.at)
        if not epoch <= len(curve):
            raise UsageError(f"{epoch} epochs were chosen, beyond the {len(curve)} of the curve")
        searched = chosen.search_["hidden"]
        hidden = -float(searched[epoch]) if epoch in searched.index else float("nan")
        return {ACCURACY: curve[epoch - 1], SURPRISE: hidden, EPOCHS: float(epoch)}

    def curve(self, dataset: Dataset, seed: int, epochs: int) -> list[float]:
        """Accuracy on the labelled tasks by epoch: a fit to so many epochs passes all the shorter ones."""
        X, z = features_and_truth(dataset)
        rows = X.to_numpy(dtype=np.float64)

        def watched() -> list[float]:
            accuracies: list[float] = []
            classes = as_index(dataset.crowd.classes)
            settings = {"random_state": seed, **self.settings, "epochs": epochs}
            model = self.kind(**settings)
            with watch_epochs(
                lambda snapshot: accuracies.append(
                    float((classes[snapshot.classify(rows).argmax(axis=1)] == z).mean())
                )
            ):
                model.fit(X, dataset.crowd)
            return accuracies

        key = ("curve", self.method, repr(dict(self.settings)), dataset.crowd.digest, seed, epochs)
        losses: list[float] = compute_once(key, watched)
        return losses

    def identity(self) -> Any:
        """As of any learner, and the epoch."""
        return [super().identity(), self.at, self.until]


# ---------------------------------------------------------------------- filling in


@dataclass(frozen=True)
class AfterFilling(Portable):
    """An aggregator after a completer, every filled vote counting as a real one: accuracy, and its change in points.

    Without a completer, the aggregator on the votes as they are. The dataset may say from how many labels on workers are
    filled in for.

    >>> AfterFilling("majority-vote", "gmv").completer
    'gmv'
    """

    aggregator: str
    completer: str | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Of the completer."""

    @property
    def is_random(self) -> bool:
        """Whether the answer depends on the seed."""
        return self.completer is not None

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fill in, aggregate and score."""
        truth = dataset.truth
        if truth is None:
            raise InputError("a completed crowd is scored by truth, and this dataset has none")

        def accuracy(crowd: Crowd) -> float:
            kind = find(self.aggregator)
            assert issubclass(kind, Aggregator)
            return metrics.accuracy(truth, kind().fit(crowd))  # of classes that tie, each counts its share

        votes = dataset.crowd if self.completer is None else self.filled(dataset, seed)
        after, before = accuracy(votes), accuracy(dataset.crowd)
        return {ACCURACY: after, CHANGE: 100 * (after - before), DENSITY: votes.n_votes / np.prod(votes.shape)}

    def filled(self, dataset: Dataset, seed: int) -> Crowd:
        """The completed crowd; one fit of a completer is enough for all aggregators and thresholds."""
        kind: Any = self._kind

        def fitted() -> Completer:
            completer_ = kind(**{"random_state": seed, "fill_weight": 1.0, **self.settings})
            return completer_.fit(dataset.crowd, features_and_truth(dataset)[0] if kind.uses_features else None)

        key = (self.completer, repr(dict(self.settings)), dataset.crowd.digest, seed)
        completer = compute_once(key, fitted)
        fewest = int(dataset.meta.get("min_votes", 0))
        completed: Crowd = compute_once((*key, fewest), lambda: completer.set_params(min_votes=fewest).fill())
        return completed

    @property
    def _kind(self) -> type[Completer]:
        kind = find(self.completer or "")
        if not issubclass(kind, Completer):
            raise UsageError(f"{self.completer} does not fill in votes")
        return kind

    def identity(self) -> Any:
        """What both do, and how."""
        parts: list[Any] = [self.aggregator, code_digest(find(self.aggregator).__module__), code_digest(__name__)]
        if self.completer is None:
            return parts
        parameters = self._kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [*parts, self.completer, shown, code_digest(self._kind.__module__)]


# ---------------------------------------------------------------------- fewer labels, and fewer who are filled in for


@dataclass(frozen=True)
class AtMost(Stored):
    """No more than so many labels on each task, drawn anew by every seed.

    >>> AtMost("labelme", "distinct", most=2).most
    2
    """

    most: int = 1

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """The dataset with fewer labels."""
        dataset = super().load(seed)
        return replace(dataset, crowd=dataset.crowd.limit_votes_per_task(self.most, random_state=seed))

    def identity(self) -> Any:
        """As of any dataset, and the number."""
        return [super().identity(), self.most]


@dataclass(frozen=True)
class Beyond(Stored):
    """Workers with more labels than this are filled in for, the others stay as they are.

    >>> Beyond("labelme", "distinct", min_votes=50).min_votes
    50
    """

    min_votes: int = 0

    def load(self, seed: int) -> Dataset:
        """The dataset, which says so."""
        dataset = super().load(seed)
        return replace(dataset, meta={**dataset.meta, "min_votes": self.min_votes})

    def identity(self) -> Any:
        """As of any dataset, and the number."""
        return [super().identity(), self.min_votes]
