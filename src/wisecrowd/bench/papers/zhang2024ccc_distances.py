"""Distances of the true confusion matrices of workers, after figure 3 of Zhang et al. (AAAI 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, require_truth
from wisecrowd.bench.entries import Portable
from wisecrowd.data.alignment import encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.io.datasets import Dataset

#: Figures: mean squared difference of two workers' matrices; its 10 % and 90 % quantiles; share of pairs that are nearer than
#: a tenth of all pairs are if workers differ by chance alone.
MEAN, LOW, HIGH, NEAR = "mean distance", "10 % quantile", "90 % quantile", "near pairs"
#: Number of workers, those with most votes.
MAX_WORKERS = 500
#: Fewest votes of a worker.
MIN_VOTES = 10


@dataclass(frozen=True)
class ConfusionDistances(Portable):
    """Entry that scores the distances of workers, or of as many workers who all have the matrix of the crowd.

    >>> ConfusionDistances(is_alike=True).is_random
    True
    """

    is_alike: bool

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Count labels by true class, draw them from one matrix if workers are alike, and compare all pairs."""
        crowd = dataset.crowd
        z = encode_truth(require_truth(dataset), crowd)
        counts = count_labels(crowd, z)
        chosen = np.argsort(-counts.sum(axis=(1, 2)), kind="stable")[:MAX_WORKERS]
        counts = counts[chosen][counts[chosen].sum(axis=(1, 2)) >= MIN_VOTES]
        alike = draw_alike(counts, np.random.default_rng(seed))
        distances = compute_distances(alike if self.is_alike else counts)
        limit = np.quantile(compute_distances(alike), 0.1)
        low, high = np.quantile(distances, [0.1, 0.9])
        near = float((distances <= limit).mean())
        return {MEAN: float(distances.mean()), LOW: float(low), HIGH: float(high), NEAR: near}

    def identity(self) -> Any:
        """Return whether workers are alike, and the digest of the code."""
        return [self.is_alike, code_digest(type(self))]


def count_labels(crowd: Crowd, z: NDArray[Any]) -> NDArray[np.int64]:
    """Count the labels of every worker by true class.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    z : ndarray of shape (n_tasks,)
        True class codes; −1 where unknown.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
    """
    counts = np.zeros((crowd.n_workers, crowd.n_classes, crowd.n_classes), dtype=np.int64)
    rows = np.flatnonzero(z[crowd.task] >= 0)
    np.add.at(counts, (crowd.worker_codes[rows], z[crowd.task[rows]], crowd.label[rows]), 1)
    return counts


def draw_alike(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw as many labels for every worker and class from the matrix of all workers.

    Parameters
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Labels by worker, true class and label.
    rng : Generator
        Random numbers.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
    """
    pooled = counts.sum(axis=0) + 1e-9
    return np.asarray(rng.multinomial(counts.sum(axis=2), pooled / pooled.sum(axis=1, keepdims=True)))


def compute_distances(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the mean squared difference of every two workers over the true classes that both have.

    >>> compute_distances(np.array([[[2, 0], [0, 2]], [[1, 1], [0, 0]]])).tolist()
    [0.25]
    """
    total = counts.sum(axis=2, keepdims=True)
    matrices = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    has_class = total[:, :, 0] > 0
    first, second = np.triu_indices(len(counts), 1)
    distances = np.empty(len(first))
    for start in range(0, len(first), 4096):  # bounds the memory of the differences
        part = slice(start, start + 4096)
        both = has_class[first[part]] & has_class[second[part]]
        square = ((matrices[first[part]] - matrices[second[part]]) ** 2).mean(axis=2)
        distances[part] = np.divide(
            (square * both).sum(axis=1), both.sum(axis=1), out=np.full(len(both), np.nan), where=both.any(axis=1)
        )
    return distances[np.isfinite(distances)]


def benchmark() -> Benchmark:
    """Return the benchmark of workers as they are and of workers who are alike, on three crowds.

    >>> list(benchmark().entries)
    ['workers', 'workers alike']
    """
    names = {"LabelMe": "labelme", "CIFAR-10N": "cifar10n", "Music": "music_genre"}
    return Benchmark(
        title="Zhang et al. 2024, figure 3: distances of the true confusion matrices of workers",
        references=("zhang2024coupled",),
        entries={"workers": ConfusionDistances(is_alike=False), "workers alike": ConfusionDistances(is_alike=True)},
        data={title: StoredDataset(name, "distinct", (MEAN, LOW, HIGH, NEAR)) for title, name in names.items()},
        notes={
            "workers alike": "As many labels of every worker on every class, drawn from the confusion matrix of all together: "
            "the distances that chance alone makes.",
            "CIFAR-10N": "The 500 workers with most votes. The ids of workers carry no signal there; see `zhang2024ccc`.",
        },
        rows="data",
        seeds=5,
        remarks=(
            "Mean squared difference of the confusion matrices, by the truth, of every two workers with ten votes or more, over "
            "the classes that both have labelled. *Near pairs* is the share of pairs that are nearer than nine tenths of all "
            "pairs are if workers differ by chance alone. The paper shows the distances as a map whose blue patches it takes for "
            "groups of similar workers.",
        ),
    )
