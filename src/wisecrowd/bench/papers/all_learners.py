"""All learners with their defaults on LabelMe and Music, the crowds with features that most papers use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, get_classification_data
from wisecrowd.bench.entries import LearnerEntry
from wisecrowd.io.datasets import Dataset

#: Figures: accuracy of the classifier on tasks without votes, and of the posterior on tasks with votes.
TEST, TASKS = "test accuracy", "training tasks"
FIGURES = (TEST, TASKS)


@dataclass(frozen=True)
class FitLearner(LearnerEntry):
    """Entry that fits a learner and scores it on the test tasks and on the training tasks.

    >>> FitLearner("raykar").method
    'raykar'
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score it."""
        features, truth, test = get_classification_data(dataset)
        model = self.kind(**{"random_state": seed, **self.settings}).fit(features, dataset.crowd)
        right = model.labels_.to_numpy() == truth.loc[dataset.crowd.tasks].to_numpy()
        return {
            TEST: model.score(features.loc[test], truth.loc[test].to_numpy()),
            TASKS: float(right.mean()),
        }

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(type(self)), self.code()]


#: Learners whose worker model is part of a network.
NETWORKS = (
    "crowd-layer", "ccc", "doctor-net", "max-mig", "conal", "union-net", "crowd-ar", "trace-reg", "ccem", "geo-crowd-net",
    "madl", "annot-mix", "coupled-view", "mmlc",
)  # fmt: skip

ENTRIES: dict[str, Entry] = {
    "concord": FitLearner("concord"),
    "raykar": FitLearner("raykar"),
    "dlem": FitLearner("dlem"),
    "cmm": FitLearner("cmm"),
    "crowd-lab": FitLearner("crowd-lab"),
    "adaptive-difficulty": FitLearner("adaptive-difficulty"),
    "fixed-difficulty": FitLearner("fixed-difficulty"),
    "two-stage": FitLearner("two-stage"),
    "two-stage, soft vote": FitLearner("two-stage", {"aggregator": "majority-vote"}),
    "two-stage, network": FitLearner("two-stage", {"classifier": "mlp"}),
    **{name: FitLearner(name) for name in NETWORKS},
}


def benchmark() -> Benchmark:
    """Return the benchmark of all learners on LabelMe and Music.

    >>> "concord" in benchmark().entries
    True
    """
    return Benchmark(
        title="Every learner on crowds with features",
        entries=ENTRIES,
        data={
            "LabelMe": StoredDataset("labelme", "distinct", figures=FIGURES),
            "Music": StoredDataset("music_genre", "distinct", figures=FIGURES),
        },
        notes={
            "concord": "Its classifier uses square roots of the features. These roots, the candidate ridges and the "
            "number of iterations were chosen on these two datasets. In use it needs no truth.",
            "Music": "The test split has 300 tasks, so one standard error is about .027.",
        },
        seeds=3,
        remarks=(
            "Every learner with its default parameters, except where the title says otherwise. Nothing is "
            "chosen by the truth, and the last iteration is scored. *Test accuracy* is that of the classifier "
            "on tasks without votes; *training tasks* is that of the posterior on tasks with votes. Mean and "
            "standard deviation over three seeds (folds, networks).",
        ),
        time_limit=600,
    )
