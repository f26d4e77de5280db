"""Entries and data of the benchmark of all learners.

They have a module of their own, so that a change of the table's text does not invalidate stored results.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, compute_file_digest, require_features, require_truth
from wisecrowd.bench.entries import LearnerEntry, Portable
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
        """Return the identity of the dataset and the digest of the other file of features."""
        identity = super().identity()
        return (
            identity
            if self.features_file is None
            else [*identity, compute_file_digest(self._folder() / self.features_file)]
        )

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
        return [self.method, shown, code_digest(type(self)), self.code()]


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
        kind: Any = find(self.method)
        model = kind(**({"random_state": seed} if self.is_random else {})).fit(dataset.crowd)
        return score_tasks(model, dataset) | {SECONDS: time.process_time() - start}

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = find(self.method)().get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(type(self), find(self.method))]


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
