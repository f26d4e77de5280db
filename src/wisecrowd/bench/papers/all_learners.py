"""All learners, and aggregators without features, on every stored crowd with features."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.data import StoredDataset, compute_file_digest, require_features, require_truth
from wisecrowd.bench.entries import LearnerEntry, Portable, code_digest
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset, find_dataset_folders
from wisecrowd.io.features import read_features

#: Figures: accuracy of the classifier on tasks without votes, and of the posterior on tasks with votes.
TEST, TASKS = "test accuracy", "training tasks"
#: Calibration on the same tasks, and processor time, which other processes on the machine influence little.
TEST_NLL, TEST_ECE, TASKS_NLL, TASKS_ECE = "test NLL", "test ECE", "training NLL", "training ECE"
SECONDS = "seconds"
#: Figures of datasets with and without test tasks.
FIGURES = (TEST, TASKS, TEST_NLL, TEST_ECE, TASKS_NLL, TASKS_ECE, SECONDS)
TASK_FIGURES = (TASKS, TASKS_NLL, TASKS_ECE, SECONDS)
#: Number of tasks above which networks are trained for fewer epochs.
LARGE_CROWD = 20_000
#: Epochs of networks, and EM iterations with one epoch each, on large crowds.
LARGE_EPOCHS = 10


@dataclass(frozen=True)
class FeatureDataset(StoredDataset):
    """Stored dataset with the features of one of its files.

    Attributes
    ----------
    features_file : str or None
        Name of another file of features in the folder; None for that of the dataset.
    max_seeds : int
        Largest number of seeds.

    >>> FeatureDataset("labelme", "distinct", features_file="features_max.npz").max_seeds
    3
    """

    features_file: str | None = None
    max_seeds: int = 3

    def load(self, seed: int) -> Dataset:
        """Load the dataset with the features."""
        dataset = super().load(seed)
        if self.features_file is None:
            return dataset
        return replace(dataset, features=read_features(self._folder() / self.features_file).table)

    def identity(self) -> Any:
        """Return the identity of the dataset and the digests of its features."""
        names = [self.features_file] if self.features_file else ["features.npz", "features.parquet"]
        return [*super().identity(), [compute_file_digest(self._folder() / name) for name in names]]

    def _folder(self) -> Path:
        return Path(find_dataset_folders()[self.name])


@dataclass(frozen=True)
class FitLearner(LearnerEntry):
    """Entry that fits a learner and scores it on the test tasks and on the training tasks.

    >>> FitLearner("raykar").method
    'raykar'
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score it."""
        features, start = require_features(dataset), time.process_time()
        settings = {"random_state": seed, **self.settings, **self._find_budget(dataset)}
        model = self.kind(**settings).fit(features, dataset.crowd)
        seconds = time.process_time() - start
        figures = score_tasks(model, dataset) | {SECONDS: seconds}
        if dataset.splits is not None:
            test = dataset.splits.index[dataset.splits == "test"]
            predicted = pd.DataFrame(model.predict_proba(features.loc[test]), index=test, columns=model.classes_)
            summary = metrics.summary(require_truth(dataset).loc[test], predicted)
            figures |= {
                TEST: model.score(features.loc[test], require_truth(dataset).loc[test].to_numpy()),
                TEST_NLL: summary["log_loss"],
                TEST_ECE: summary["calibration_error"],
            }
        return figures

    def _find_budget(self, dataset: Dataset) -> dict[str, Any]:
        """Return the parameters that limit the time on a large crowd."""
        if dataset.crowd.n_tasks < LARGE_CROWD:
            return {}
        names = {field.name for field in parameter_fields(self.kind)}
        if "epochs" in names:
            return {"epochs": LARGE_EPOCHS}
        return {"max_iter": LARGE_EPOCHS} if "epochs_per_step" in names else {}

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(__name__), self.code()]


@dataclass(frozen=True)
class FitAggregator(Portable):
    """Entry that fits an aggregator without features and scores it on the training tasks.

    >>> FitAggregator("dawid-skene").method
    'dawid-skene'
    """

    method: str

    @property
    def is_random(self) -> bool:
        """True if the result may depend on the seed."""
        return any(field.name == "random_state" for field in parameter_fields(find(self.method)))

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the aggregator and score it."""
        start = time.process_time()
        model = find(self.method)(**({"random_state": seed} if self.is_random else {})).fit(dataset.crowd)
        return score_tasks(model, dataset) | {SECONDS: time.process_time() - start}

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = find(self.method)().get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(__name__), code_digest(find(self.method).__module__)]


def score_tasks(model: Learner | Aggregator, dataset: Dataset) -> dict[str, float]:
    """Return accuracy and calibration of the posterior on the tasks with votes.

    >>> from wisecrowd import MajorityVote, simulate_crowd
    >>> made = simulate_crowd(n_tasks=20, n_workers=5, random_state=0)
    >>> dataset = Dataset(name="simulated", crowd=made.crowd, truth=made.truth)
    >>> sorted(score_tasks(MajorityVote().fit(made.crowd), dataset))
    ['training ECE', 'training NLL', 'training tasks']
    """
    truth = require_truth(dataset)
    known = truth[truth.index.isin(dataset.crowd.tasks)]
    summary, is_right = metrics.summary(known, model), model.labels_.loc[known.index].to_numpy() == known.to_numpy()
    return {TASKS: float(is_right.mean()), TASKS_NLL: summary["log_loss"], TASKS_ECE: summary["calibration_error"]}


#: Learners whose worker model is part of a network.
NETWORKS = (
    "crowd-layer", "ccc", "doctor-net", "max-mig", "conal", "union-net", "crowd-ar", "trace-reg", "ccem", "geo-crowd-net",
    "madl", "annot-mix", "coupled-view", "mmlc",
)  # fmt: skip
#: Aggregators without features; the second one is the default.
AGGREGATORS = ("majority-vote", "model-average", "dawid-skene", "fast-ds")

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
    **{f"{name} (no features)": FitAggregator(name) for name in AGGREGATORS},
}


def compute_mean_ranks(rows: Sequence[Mapping[str, Any]], figures: Sequence[str]) -> pd.Series:
    """Return the mean rank of every entry by the mean over seeds, over all data that all these entries have.

    An entry without one of the figures, such as an aggregator without test accuracy, is left out.

    >>> rows = [
    ...     {"entry": name, "data": "Music", "seed": 0, "figures": {TASKS: value}} for name, value in [("a", 0.8), ("b", 0.7)]
    ... ]
    >>> compute_mean_ranks(rows, [TASKS]).to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    columns = pd.DataFrame(
        [
            {"entry": row["entry"], "column": (row["data"], figure), "value": row["figures"].get(figure)}
            for row in rows
            if row.get("figures")
            for figure in figures
            if row["figures"].get(figure) is not None
        ],
        columns=["entry", "column", "value"],
    )
    table = columns.groupby(["entry", "column"])["value"].mean().unstack()
    names = {str(name[1]) for name in table.columns}
    has_all = pd.Series(
        {entry: {name[1] for name in table.columns[table.loc[entry].notna()]} == names for entry in table.index}
    )
    complete = table[has_all.to_numpy(dtype=bool)].dropna(axis=1) if len(table) else table
    ascending = any(figure in (TEST_NLL, TEST_ECE, TASKS_NLL, TASKS_ECE) for figure in figures)
    ranks: pd.Series = complete.round(9).rank(ascending=ascending).mean(axis=1).sort_values()
    ranks.attrs["columns"] = complete.shape[1]
    return ranks


def describe_ranks(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the mean ranks by accuracy, and by the log-loss.

    >>> figures = {TEST: 0.8, TASKS: 0.9, TEST_NLL: 0.5, TASKS_NLL: 0.4}
    >>> describe_ranks([{"entry": "raykar", "data": "Music", "seed": 0, "figures": figures}])[0]
    'Mean rank by accuracy on training tasks, 1 entry on 1 column: raykar 1.0.'
    """
    views = {
        "accuracy on training tasks": (TASKS,),
        "accuracy on test tasks": (TEST,),
        "accuracy on test and training tasks": (TEST, TASKS),
        "NLL on training tasks": (TASKS_NLL,),
        "NLL on test tasks": (TEST_NLL,),
    }
    sentences = []
    for view, figures in views.items():
        ranks = compute_mean_ranks(rows, figures)
        if not len(ranks):
            continue
        n_columns = int(ranks.attrs["columns"])
        counts = (
            f"{len(ranks)} {'entry' if len(ranks) == 1 else 'entries'} on {n_columns} column{'s' * (n_columns != 1)}"
        )
        places = ", ".join(f"{entry} {rank:.1f}" for entry, rank in ranks.items() if np.isfinite(rank))
        sentences.append(f"Mean rank by {view}, {counts}: {places}.")
    return tuple(sentences)


def benchmark() -> Benchmark:
    """Return the benchmark of all learners on all crowds with features.

    >>> "concord" in benchmark().entries
    True
    """
    return Benchmark(
        title="Every learner on crowds with features",
        entries=ENTRIES,
        data={
            "LabelMe": FeatureDataset("labelme", "distinct", figures=FIGURES),
            "LabelMe, max": FeatureDataset("labelme", "distinct", figures=FIGURES, features_file="features_max.npz"),
            "Music": FeatureDataset("music_genre", "distinct", figures=FIGURES),
            "Text": FeatureDataset("crowdtruth_relations_13", "distinct", figures=TASK_FIGURES),
            "Income": FeatureDataset("income", "distinct", figures=TASK_FIGURES),
            "Leaves": FeatureDataset("leaves", "distinct", figures=TASK_FIGURES),
            "RTE": FeatureDataset("rte", "distinct", figures=TASK_FIGURES),
            "CIFAR-10N": FeatureDataset("cifar10n", "distinct", figures=FIGURES, max_seeds=1),
        },
        notes={
            "LabelMe": "Mean of the last layer of VGG-16 over the image; *LabelMe, max* is its maximum.",
            "Music": "The test split has 300 tasks, so one standard error is about .027.",
            "Income": "The table has strings, which the default encoder of tables turns into numbers.",
            "CIFAR-10N": f"One seed; networks are trained for {LARGE_EPOCHS} epochs, dlem for {LARGE_EPOCHS} iterations. The "
            "worker ids of the release are those of batches, not of persons.",
        },
        seeds=3,
        findings=describe_ranks,
        remarks=(
            "Every learner with its default parameters, except where the title says otherwise. Nothing is "
            "chosen by the truth, and the last iteration is scored. *Test* is the classifier "
            "on tasks without votes; *training tasks* is the posterior on tasks with votes. NLL is the mean negative "
            "log-probability of the true class, ECE the expected calibration error; learners are not calibrated unless "
            "they do so by themselves. Seconds are those of the processor. Mean and standard deviation over three seeds "
            "(folds, networks).",
            "Movie reviews are left out: their votes are numbers, and learners need classes.",
        ),
        time_limit=900,
    )
