"""Protocol of Zhang, Jiang and Li (2025): aggregators before and after completion, and statistical tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find
from wisecrowd.bench.cells import OK
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, require_truth
from wisecrowd.bench.entries import Portable
from wisecrowd.bench.papers._han import compute_once
from wisecrowd.data.alignment import encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset

ACCURACY = "accuracy"
#: Figures: accuracy if the filled votes of a task have together the weight of the real votes of an average task; share of cells
#: with a vote; mean absolute change of a worker's accuracy.
SHARED, DENSITY, SHIFT = "accuracy, shared weight", "density", "change of workers"
#: Figures: silhouette of the true classes in the embeddings of workers; accuracy of the class of the nearest other task.
SILHOUETTE, NEIGHBOUR = "silhouette", "nearest neighbour"
#: The paper's aggregators.
AGGREGATORS = {
    "MV": "majority-vote", "GTIC": "gtic", "DEWSMV": "dewsmv", "MNLDP": "mnldp", "AALI": "aali", "LAGNN": "lagnn",
}  # fmt: skip
WAYS = ("none", "WSLC", "TLLC")
#: Significance level of the tests.
LEVEL = 0.05

SPREAD = (
    "The categories of six of its ten attributes are one-hot encoded, 66 features in all. How the paper "
    "encodes categories is unknown."
)
NUMBERED = (
    "The same crowd with categories numbered in the order in which the Adult data declare them, as programs that read ARFF files "
    "do: ten features, as many as in the paper. WSLC has its formula for categories there."
)

#: Categories of the attributes of Income in the order of the UCI Adult data.
DECLARED = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
    "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic "
    "Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru "
    "Hong Holand-Netherlands",
}


@dataclass(frozen=True)
class EncodedFeatures(StoredDataset):
    """Stored crowd whose categorical features are one-hot encoded ("spread") or numbered as declared ("numbered").

    >>> EncodedFeatures("income", "distinct", categories="numbered").categories
    'numbered'
    """

    categories: Literal["spread", "numbered"] = "spread"

    def load(self, seed: int) -> Dataset:
        """Load the dataset and encode its features."""
        dataset = super().load(seed)
        if dataset.features is None:
            raise InputError(f"{self.name} has no features; these completers need them")
        if self.categories == "spread":
            return replace(dataset, features=one_hot_categories(dataset.features))
        is_nominal = [not pd.api.types.is_numeric_dtype(column) for _, column in dataset.features.items()]
        meta = {**dataset.meta, "nominal": tuple(np.flatnonzero(is_nominal).tolist())}
        return replace(dataset, features=number_categories(dataset.features), meta=meta)

    def identity(self) -> Any:
        """Return the identity of the dataset and the encoding."""
        return [super().identity(), self.categories, code_digest(type(self))]


@dataclass(frozen=True)
class WithAdversaries(EncodedFeatures):
    """Stored crowd with added workers who label many tasks and are mostly wrong, the limitation that the paper states.

    >>> WithAdversaries("income", "distinct", n_adversaries=5).size()
    6000
    """

    n_adversaries: int = 3
    share: float = 0.5
    """Share of the tasks that an adversary labels."""
    error: float = 0.8
    """Probability of a wrong label, drawn uniformly from the wrong classes."""

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Load the dataset and add the votes of the adversaries."""
        dataset = super().load(seed)
        crowd, rng = dataset.crowd, np.random.default_rng(seed)
        z = encode_truth(require_truth(dataset), crowd)
        task, adversary = np.nonzero(rng.random((crowd.n_tasks, self.n_adversaries)) < self.share)
        task, adversary = task[z[task] >= 0], adversary[z[task] >= 0]
        shift = np.where(rng.random(len(task)) < self.error, rng.integers(1, crowd.n_classes, size=len(task)), 0)
        label = (z[task] + shift) % crowd.n_classes
        votes = pd.DataFrame(
            {
                "task": crowd.tasks[task],
                "worker": [f"adversary {number}" for number in adversary],
                "label": as_index(crowd.classes)[label],
            }
        )
        joined = pd.concat([crowd.to_frame()[["task", "worker", "label"]].astype({"worker": str}), votes])
        return replace(dataset, crowd=Crowd.from_frame(joined))

    def identity(self) -> Any:
        """Return the identity of the dataset and the adversaries."""
        return [super().identity(), self.n_adversaries, self.share, self.error]


def one_hot_categories(features: pd.DataFrame) -> pd.DataFrame:
    """One-hot encode categorical features.

    >>> one_hot_categories(pd.DataFrame({"size": [1.5, 2.0], "colour": ["red", "blue"]})).to_numpy().tolist()
    [[1.5, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    return pd.get_dummies(features, dtype=np.float64)


def number_categories(features: pd.DataFrame) -> pd.DataFrame:
    """Replace categories by their positions in `DECLARED`, or in alphabetical order if the feature is not there.

    >>> number_categories(pd.DataFrame({"age": [1.5, 2.0], "race": ["Other", "White"]})).to_numpy().tolist()
    [[1.5, 3.0], [2.0, 0.0]]
    """
    columns = {}
    for name, column in features.items():
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.to_numpy()
        else:
            declared = DECLARED[str(name)].split() if name in DECLARED else sorted(column.unique())
            columns[name] = pd.Index(declared).get_indexer(pd.Index(column))
    return pd.DataFrame(columns, index=features.index).astype(np.float64)


def crowds(*figures: str, twice: bool = True) -> dict[str, StoredDataset]:
    """Return the three crowds of the paper, and the first one again with numbered categories.

    >>> list(crowds())
    ['Income', 'Leaves', 'Music_genre', 'Income, numbered']
    """
    shown = figures or (ACCURACY,)
    names = {"Income": "income", "Leaves": "leaves", "Music_genre": "music_genre_ceka"}
    datasets: dict[str, StoredDataset] = {
        title: EncodedFeatures(name, "distinct", shown) for title, name in names.items()
    }
    return datasets | (
        {"Income, numbered": EncodedFeatures("income", "distinct", shown, categories="numbered")} if twice else {}
    )


# ---------------------------------------------------------------------- entries


@dataclass(frozen=True)
class CompleterEntry(Portable):
    """Base of entries that complete votes with a completer of the registry, or with none.

    >>> CompleterEntry("tllc", {"epochs": 2}).settings["epochs"]
    2
    """

    completer: str | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def filled(self, dataset: Dataset, seed: int, weight: float | str) -> Crowd:
        """Return the completed crowd, from one fit for all aggregators and weights.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the completer.
        weight : float or str
            Weight of a filled vote, or "shared".

        Returns
        -------
        Crowd
        """
        if dataset.truth is None or dataset.features is None:
            raise InputError("the dataset has no truth or no features; this entry needs both")
        if self.completer is None:
            return dataset.crowd
        kind: Any = self._kind
        settings = dict(self.settings)
        if self.completer == "wslc" and "nominal" in dataset.meta:
            settings["nominal"] = dataset.meta["nominal"]
        key = (self.completer, repr(settings), dataset.crowd.digest, tuple(dataset.features.columns), seed)
        fitted = compute_once(key, lambda: kind(random_state=seed, **settings).fit(dataset.crowd, dataset.features))
        completed: Crowd = compute_once((*key, weight), lambda: fitted.set_params(fill_weight=weight).fill())
        return completed

    @property
    def _kind(self) -> type[Completer]:
        kind = find(self.completer or "")
        if not issubclass(kind, Completer):
            raise UsageError(f"{self.completer} is not a completer; wisecrowd methods lists the completers")
        return kind

    def identity(self) -> Any:
        """Return the completer, its parameters and the digest of its code."""
        if self.completer is None:
            return [None, code_digest(type(self))]
        shown = {name: repr(value) for name, value in sorted(self._kind(**self.settings).get_params().items())}
        return [self.completer, shown, code_digest(type(self), self._kind)]


@dataclass(frozen=True)
class AggregatorAfterCompleter(CompleterEntry):
    """Entry that scores an aggregator on completed votes; filled votes have weight 1 in the paper.

    >>> AggregatorAfterCompleter("tllc", aggregator="mnldp").is_random
    True
    """

    aggregator: str = "majority-vote"
    weight: float | str = 1.0

    @property
    def is_random(self) -> bool:
        """True if the completer or the aggregator depends on the seed."""
        return self.completer == "tllc" or self._is_seeded

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Complete the votes, aggregate them and score the labels; ties count with the share of the true class."""
        kind: Any = find(self.aggregator)
        assert issubclass(kind, Aggregator)
        method = kind(**{"random_state": seed} if self._is_seeded else {})
        votes = self.filled(dataset, seed, self.weight)
        fitted = method.fit(votes, dataset.features if kind.uses_features else None)
        return {ACCURACY: metrics.accuracy(require_truth(dataset), fitted)}

    @property
    def _is_seeded(self) -> bool:
        return self.aggregator in ("dewsmv", "lagnn")

    def identity(self) -> Any:
        """Return the identities of the completer and the aggregator."""
        return [super().identity(), self.aggregator, self.weight, code_digest(find(self.aggregator))]


@dataclass(frozen=True)
class CompletionEffects(CompleterEntry):
    """Entry that scores the majority vote of completed votes, their density and the change of worker accuracy.

    >>> CompletionEffects("wslc").is_random
    False
    """

    cells_of: str | None = None
    """Completer whose cells alone are filled, so that both change workers at the same density."""

    @property
    def is_random(self) -> bool:
        """True if the completer depends on the seed."""
        return "tllc" in (self.completer, self.cells_of)

    def filled(self, dataset: Dataset, seed: int, weight: float | str) -> Crowd:
        """Return the completed crowd, in the cells of another completer if there is one.

        Parameters
        ----------
        dataset : Dataset
            Dataset.
        seed : int
            Seed of the completers.
        weight : float or str
            Weight of a filled vote, or "shared".

        Returns
        -------
        Crowd
        """
        votes = super().filled(dataset, seed, weight)
        if self.cells_of is None:
            return votes
        others = CompleterEntry(self.cells_of).filled(dataset, seed, weight)
        return votes.take(np.flatnonzero(np.isin(_cell_codes(votes), _cell_codes(others))))

    def identity(self) -> Any:
        """Return the identities of the completers."""
        others = [] if self.cells_of is None else [CompleterEntry(self.cells_of).identity()]
        return [super().identity(), *others]

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Complete the votes and score them."""
        mv: Any = find("majority-vote")
        crowd = dataset.crowd
        as_votes, shared = (self.filled(dataset, seed, weight) for weight in (1.0, "shared"))
        assert dataset.truth is not None  # checked when votes are filled in
        z = encode_truth(dataset.truth, crowd)
        before, after = (_worker_accuracy(votes, z) for votes in (crowd, as_votes))
        has_votes = crowd.votes_per_worker > 0
        return {
            ACCURACY: metrics.accuracy(dataset.truth, mv().fit(as_votes)),
            SHARED: metrics.accuracy(dataset.truth, mv().fit(shared)),
            DENSITY: as_votes.n_votes / math.prod(crowd.shape),
            SHIFT: float(np.abs(after - before)[has_votes].mean()),
        }


@dataclass(frozen=True)
class FilteredTasks(Portable):
    """Entry that scores the majority class on all tasks, or on the tasks that the filter of TLLC keeps.

    >>> FilteredTasks(is_kept=True).is_kept
    True
    """

    is_kept: bool

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Filter the tasks and score the majority class, in total and by class; ties are drawn by the seed."""
        crowd = dataset.crowd
        kind: Any = find("tllc")
        completer = kind(
            filtering=self.is_kept, epochs=0, pretrain_epochs=0, hidden=1, random_state=seed
        )  # the filter needs no training
        completer.fit(crowd, dataset.features)
        assert dataset.truth is not None  # checked when votes are filled in
        z = encode_truth(dataset.truth, crowd)
        has_truth = completer.confident_ & (z >= 0)
        figures = {ACCURACY: float((completer.majority_ == z)[has_truth].mean()), "tasks": float(has_truth.sum())}
        for code in range(crowd.n_classes):
            in_class = has_truth & (completer.majority_ == code)
            figures[class_figure(code)] = float((z[in_class] == code).mean()) if in_class.any() else math.nan
        return figures

    def identity(self) -> Any:
        """Return the filter setting and the identity of TLLC."""
        return [self.is_kept, CompleterEntry("tllc").identity()]


@dataclass(frozen=True)
class EmbeddingSeparation(Portable):
    """Entry that scores how the networks of workers separate the true classes, as figure (2) of the paper's slides shows.

    >>> EmbeddingSeparation({"pretrain_epochs": 0}).settings
    {'pretrain_epochs': 0}
    """

    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    is_shared: bool = False
    """Whether the shared network is scored, and not those of the workers."""

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the mean over workers of the silhouette of the true classes, and of the accuracy of the nearest neighbour."""
        from sklearn.metrics import silhouette_score
        from sklearn.neighbors import NearestNeighbors

        assert dataset.features is not None
        kind: Any = find("tllc")
        completer = kind(random_state=seed, **self.settings).fit(dataset.crowd, dataset.features)
        z = encode_truth(require_truth(dataset), dataset.crowd)
        tuned = np.flatnonzero(completer.network_index_)
        workers = [None] if self.is_shared else list(as_index(dataset.crowd.workers)[tuned])
        scores = []
        for worker in workers:
            points = completer.embed(worker).to_numpy()[z >= 0]
            neighbour = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
            true = z[z >= 0]
            scores.append((silhouette_score(points, true), (true[neighbour] == true).mean()))
        silhouette, right = np.mean(scores, axis=0)
        return {SILHOUETTE: float(silhouette), NEIGHBOUR: float(right)}

    def identity(self) -> Any:
        """Return the settings and the digest of the code."""
        return [repr(dict(self.settings)), self.is_shared, code_digest(type(self), find("tllc"))]


def class_figure(code: int) -> str:
    """Return the name of the figure with the accuracy of a class.

    >>> class_figure(0)
    'class 1'
    """
    return f"class {code + 1}"


def _cell_codes(votes: Crowd) -> NDArray[np.int64]:
    """Return a number for the task and the worker of every vote."""
    return np.asarray(votes.task, dtype=np.int64) * votes.n_workers + votes.worker_codes


def _worker_accuracy(votes: Crowd, z: NDArray[Any]) -> NDArray[np.float64]:
    """Return the accuracy of every worker's votes."""
    has_truth = z[votes.task] >= 0
    worker = votes.worker_codes[has_truth]
    right = (votes.label == z[votes.task])[has_truth]
    count = np.bincount(worker, minlength=votes.n_workers)
    return np.bincount(worker, right, minlength=votes.n_workers) / np.maximum(count, 1)


# ---------------------------------------------------------------------- tests


def title(aggregator: str, way: str) -> str:
    """Return the title of an entry.

    Parameters
    ----------
    aggregator : str
        Title of the aggregator.
    way : str
        Title of the completer; "none" for none.

    Returns
    -------
    str

    Examples
    --------
    >>> title("MV", "none"), title("MV", "TLLC")
    ('MV', 'MV + TLLC')
    """
    return aggregator if way == "none" else f"{aggregator} + {way}"


def run_friedman_test(scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], float]:
    """Return the p-value of Friedman's test, the mean ranks (1 is best) and Nemenyi's critical difference.

    Rows of ``scores`` are experiments, columns are the compared ways.

    >>> scores = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.0, 0.1, 0.4], [0.1, 0.3, 0.6]])
    >>> p, ranks, least = run_friedman_test(scores)
    >>> round(p, 4), ranks.tolist(), round(least, 3)
    (0.0183, [3.0, 2.0, 1.0], 1.657)
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    n, k = scores.shape
    ranks = rankdata(-scores.round(9), axis=1).mean(axis=0)
    if np.ptp(scores, axis=1).max() == 0:
        return 1.0, ranks, math.inf
    p = float(friedmanchisquare(*scores.round(9).T).pvalue)
    q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)
    return p, ranks, q * math.sqrt(k * (k + 1) / (6 * n))


def findings(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the tests of the paper: over the seeds of every aggregator and crowd, and over their means.

    >>> findings([])
    ()
    """
    scores = _by_seed(rows)
    if not scores:
        return ()
    wins = {pair: [0, 0] for pair in itertools.combinations(reversed(WAYS), 2)}
    tested = 0
    for cells in scores.values():
        if len(cells) < 2:
            continue
        tested += 1
        p, ranks, least = run_friedman_test(cells)
        for one, other in wins:
            gap = ranks[WAYS.index(other)] - ranks[WAYS.index(one)]
            if p < LEVEL and abs(gap) > least:
                wins[one, other][0 if gap > 0 else 1] += 1
    paragraphs = []
    if tested:
        figures = "; ".join(
            f"{one} above {other} in {up}, below it in {down}" for (one, other), (up, down) in wins.items()
        )
        paragraphs.append(
            f"Friedman test over seeds with Nemenyi's after it, as in the paper, for each of {tested} pairs of aggregator and "
            f"crowd (level {LEVEL}): {figures}. Where nothing is drawn, the same answer stands for every seed, and seeds are no "
            "new data: such tests speak of the method's chance, not of other crowds."
        )
    means = np.array([cells.mean(axis=0) for cells in scores.values()])
    if len(means) > 1:
        p, ranks, least = run_friedman_test(means)
        shown = ", ".join(f"{way} {rank:.2f}" for way, rank in zip(WAYS, ranks, strict=True))
        paragraphs.append(
            f"Over the means of these {len(means)} pairs: mean ranks {shown}; Friedman p = {p:.2g}, and ranks differ by chance "
            f"up to {least:.2f} (Nemenyi)."
        )
    return tuple(paragraphs)


def _by_seed(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Return accuracies (seeds, ways) by (aggregator, data); results without a seed are repeated."""
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["status"] == OK and row["figures"].get(ACCURACY) is not None:
            values.setdefault((row["entry"], row["data"]), {})[row["seed"]] = row["figures"][ACCURACY]
    ranks = {}
    for aggregator, data in itertools.product(AGGREGATORS, dict.fromkeys(data for _, data in values)):
        parts: Sequence[dict[int, float]] = [values.get((title(aggregator, way), data), {}) for way in WAYS]
        if all(parts):
            seeds = sorted(set.intersection(*(set(part) for part in parts if len(part) > 1)) or {0})
            ranks[aggregator, data] = np.array([[part.get(seed, part.get(0, 0.0)) for part in parts] for seed in seeds])
    return ranks
