"""Where the data of a benchmark come from: a stored dataset, or a simulation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import InputError
from wisecrowd.evaluate import metrics
from wisecrowd.io.dataset_folder import ANNOTATIONS, TRUTH
from wisecrowd.io.datasets import Dataset, list_datasets, load_dataset
from wisecrowd.simulate import DifficultyCrowd, GroupedSimulation


@dataclass(frozen=True)
class Stored:
    """A dataset by name; ``duplicates`` is part of a paper's protocol, so it is always said.

    ``positive`` is the class whose F1 is the figure ``positive_f1``.

    >>> Stored("no_such_dataset", duplicates="keep").absence()
    "the dataset 'no_such_dataset' is not on this machine; WISECROWD_DATA names the folders to look in"
    """

    name: str
    duplicates: Duplicates
    figures: tuple[str, ...] = ("accuracy",)
    positive: str | None = None

    is_random: ClassVar[bool] = False

    def load(self, seed: int) -> Dataset:
        """The dataset; one without truth cannot be scored, and is refused."""
        dataset = load_dataset(self.name, duplicates=self.duplicates)
        if dataset.truth is None:
            raise InputError(f"{self.name} has no truth to score against")
        return dataset

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """The usual figures, and F1 of the positive class when there is one."""
        figures = metrics.summary(require_truth(dataset), prediction)
        if self.positive is not None:
            figures["positive_f1"] = metrics.f1(
                require_truth(dataset), prediction, average="binary", positive=self.positive
            )  # fmt: skip
        return figures

    def absence(self) -> str | None:
        """Says so when the dataset is not on this machine."""
        if self.name in _folders():
            return None
        return f"the dataset {self.name!r} is not on this machine; WISECROWD_DATA names the folders to look in"

    def identity(self) -> Any:
        """Name, protocol, and the digest of the files: new data under an old name are other data."""
        folder = Path(_folders()[self.name])
        return [self.name, self.duplicates, self.positive, [_sha256(folder / file) for file in (ANNOTATIONS, TRUTH)]]

    def size(self) -> int:
        """The number of labels, as the dataset tells it."""
        return int(list_datasets()["labels"].fillna(0)[self.name])


@dataclass(frozen=True)
class Simulated:
    """A crowd from `wisecrowd.simulate_crowd` with these settings; every seed makes another one.

    >>> Simulated({"n_tasks": 50, "n_workers": 5}).load(seed=1)
    Dataset('simulated', Crowd(150 votes: 50 tasks x 5 workers, 4 classes, 3.0 votes/task), truth of 50 tasks)
    """

    settings: Mapping[str, Any]
    figures: tuple[str, ...] = ("accuracy",)

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Simulate."""
        from wisecrowd.simulate import simulate_crowd

        simulation = simulate_crowd(**self.settings, random_state=seed)
        return Dataset(name="simulated", crowd=simulation.crowd, truth=simulation.truth)

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """The usual figures."""
        return metrics.summary(require_truth(dataset), prediction)

    def absence(self) -> str | None:
        """Never absent."""
        return None

    def identity(self) -> Any:
        """The settings."""
        return dict(self.settings)

    def size(self) -> int:
        """The number of labels, if each task gets the same."""
        per_task = self.settings.get("votes_per_task", 3)
        return int(self.settings.get("n_tasks", 1000)) * (per_task if isinstance(per_task, int) else 3)


def _folders() -> dict[str, str]:
    return dict(list_datasets()["where"].dropna())


@cache
def _sha256(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Parts(NamedTuple):
    """What a classifier is trained on and scored by.

    >>> Parts._fields
    ('features', 'truth', 'test')
    """

    features: pd.DataFrame
    truth: pd.Series[Any]
    test: pd.Index
    """Tasks without votes, to score on."""


def parts_of(dataset: Dataset) -> Parts:
    """Features, truth and test tasks of a dataset that has all of them; others are refused.

    >>> parts_of(Simulated({"n_tasks": 50, "n_workers": 5}).load(seed=1))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: a classifier is scored by truth, features and splits; the dataset simulated has no
    features, no splits
    """
    features, truth, splits = dataset.features, dataset.truth, dataset.splits
    if features is None or truth is None or splits is None:
        absent = [name for name in ("truth", "features", "splits") if getattr(dataset, name) is None]
        raise InputError(
            f"a classifier is scored by truth, features and splits; the dataset {dataset.name} has "
            + ", ".join(f"no {name}" for name in absent)
        )
    return Parts(features, truth, splits.index[splits == "test"])


def train_and_test(name: str, simulation: GroupedSimulation | DifficultyCrowd, **meta: Any) -> Dataset:
    """A simulated crowd as a dataset of tasks with votes to train on and tasks without to test on.

    >>> from wisecrowd.simulate import simulate_gaussian_groups
    >>> simulation = simulate_gaussian_groups(20, n_tasks=30)
    >>> len(train_and_test("groups", simulation).features) == len(simulation.truth) + len(simulation.test_truth)
    True
    """
    assert simulation.test_truth is not None
    truth = pd.concat([simulation.truth, simulation.test_truth])
    split = np.repeat(["train", "test"], [len(simulation.truth), len(simulation.test_truth)])
    return Dataset(
        name=name, crowd=simulation.crowd, truth=truth, features=pd.concat([simulation.features, simulation.test_features]),
        splits=pd.Series(split, index=truth.index), meta=meta,
    )  # fmt: skip


def require_features(dataset: Dataset) -> pd.DataFrame:
    """Return the features of a dataset, or raise an error if it has none."""
    if dataset.features is None:
        raise InputError(f"{dataset.name} has no features, which this entry needs")
    return dataset.features


def require_truth(dataset: Dataset) -> pd.Series[Any]:
    """Return the truth of a dataset, or raise an error if it has none."""
    if dataset.truth is None:
        raise InputError(f"{dataset.name} has no truth, which this benchmark scores against")
    return dataset.truth
