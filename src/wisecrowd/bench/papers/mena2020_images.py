"""Crowd Mixture Model on features of CIFAR-10 images, after set-up (2) of table 2 of Mena and Ñanculef (CIARP 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wisecrowd.bench.benchmark import Benchmark, DataSource, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, require_features, require_truth
from wisecrowd.bench.papers._mena import TEST, MenaLearner
from wisecrowd.bench.papers.mena2020 import AUTHORS, LAPLACE, PLAIN, WORKERS, title
from wisecrowd.data.vocabulary import as_index
from wisecrowd.io.datasets import Dataset
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.simulate import simulate_image_groups

#: Number of training images. The paper has 50,000 and as many times more workers, so that workers have as many labels each.
N_TASKS = 10_000
N_IMAGES = 50_000

#: Table 2, set-up (2).
PUBLISHED = {
    "softMV": (63.35, 65.90, 63.59, 60.07, 63.21, 64.20),
    "hardMV": (71.09, 69.50, 68.48, 69.09, 70.08, 66.01),
    "DL-DS": (71.33, 68.49, 68.08, 66.86),
    "DL-EM": (81.38, 80.42, 77.81, 69.81),
    "CMM": (78.83, 78.36, 79.35, 77.92, 78.45, 78.96),
}


@dataclass(frozen=True)
class ImageGroups(StoredDataset):
    """Features of CIFAR-10 images with simulated votes of four groups of workers, other ones for every seed.

    >>> ImageGroups("cifar10n", "distinct", (TEST,), n_workers=20).size()
    30000
    """

    n_workers: int = 100
    n_tasks: int = N_TASKS

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Load the features, and simulate votes on a random part of the training images, the same for every seed."""
        dataset = super().load(seed)
        features, truth = require_features(dataset), require_truth(dataset)
        assert dataset.splits is not None
        train, test = (dataset.splits.index[dataset.splits == name] for name in ("train", "test"))
        train = train[np.sort(np.random.default_rng(0).permutation(len(train))[: self.n_tasks])]
        classes = pd.Index(sorted(truth.unique()))
        codes = classes.get_indexer(pd.Index(truth.loc[train]))
        simulation = simulate_image_groups(self.n_workers, truth=codes, random_state=seed)
        tasks = as_index(simulation.crowd.tasks).append(test)
        names = as_index(simulation.crowd.classes)
        rows = features.loc[train.append(test)].to_numpy(dtype=np.float64)
        return Dataset(
            name="images",
            crowd=simulation.crowd,
            truth=pd.Series(names[classes.get_indexer(pd.Index(truth.loc[train.append(test)]))], index=tasks),
            features=pd.DataFrame(rows, index=tasks),
            splits=pd.Series(np.repeat(["train", "test"], [len(train), len(test)]), index=tasks),
        )

    def identity(self) -> Any:
        """Return the identity of the images and the settings."""
        return [super().identity(), self.n_workers, self.n_tasks, code_digest(type(self))]

    def size(self) -> int:
        """Return the number of votes, three per task."""
        return 3 * self.n_tasks


class ImageLearner(MenaLearner):
    """Entry with the dense part of the paper's network, 128 hidden units, on fixed features.

    >>> ImageLearner("cmm").network
    True
    """

    def fitted(self, dataset: Dataset, seed: int, **settings: Any) -> Any:
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
        network = make_classifier(
            "mlp", epochs=self.epochs, random_state=seed, hidden=128, dropout=0.25, batch_size=128
        )
        classifier = {"classifier": network} if self.network else {}
        chosen = {"random_state": seed, **classifier, **self.settings}
        return self.kind(**chosen | settings).fit(require_features(dataset), dataset.crowd)


ENTRIES: dict[str, Entry] = {
    "softMV": ImageLearner("two-stage", {"aggregator": "majority-vote"}, epochs=10, matrices="vote shares"),
    "hardMV": ImageLearner("two-stage", {"aggregator": "majority-vote", "hard": True}, epochs=10, matrices="majority"),
    "DL-DS": ImageLearner("two-stage", {"aggregator": PLAIN}, epochs=10, matrices="workers"),
    "DL-EM": ImageLearner("raykar", LAPLACE | {"max_iter": 50, "tol": 1e-3}, matrices="workers"),
    "CMM": ImageLearner("cmm", AUTHORS | {"n_init": 5, "n_groups": 4}),
}


def benchmark() -> Benchmark:
    """Return the benchmark of five methods by the number of workers.

    >>> benchmark().published["CMM", "T = 10,000", "test accuracy"]
    0.7896
    """
    share = N_IMAGES // N_TASKS
    data: dict[str, DataSource] = {
        title(number): ImageGroups("cifar10n", "distinct", (TEST,), n_workers=number // share) for number in WORKERS
    }
    return Benchmark(
        title="Mena and Ñanculef 2019, table 2, set-up (2): four groups of workers on images",
        references=("mena2019revisiting",),
        entries=ENTRIES,
        data=data,
        published={
            (entry, title(number), TEST): round(value / 100, 4)
            for entry, values in PUBLISHED.items()
            for number, value in zip(WORKERS, values, strict=False)
        },
        incomparable=frozenset(data),
        notes={
            "CMM": "As in `mena2020`, but the best of five starts and four groups.",
            "DL-EM": "One start; the paper has no figures from T = 6,000 on, where its memory ran out.",
            "DL-DS": "As in `mena2020`. The paper has no figures from T = 6,000 on.",
        },
        rows="data",
        seeds=3,
        remarks=(
            "Workers have the published confusion matrices of four groups, with mean accuracies of .74, .36, .33 and .17, and the "
            "weights of the authors' program (.70, .15, .10, .05). Three labels per image. In place of 50,000 images there are "
            "10,000, and a fifth of the T workers, so that a worker has as many labels as in the paper. A network of 128 hidden "
            "units learns from 128 fixed features instead of pixels, so that only the shape of the rows compares with the paper: "
            "the mixture is the same for all T, and methods with a matrix for each worker fall.",
        ),
        time_limit=1200,
    )
