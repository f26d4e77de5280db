"""Data sources of benchmarks: stored datasets and simulated crowds."""

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
from wisecrowd.io.datasets import Dataset, count_rows, find_dataset_folders, load_dataset
from wisecrowd.simulate import DifficultyCrowd, GroupedSimulation


@dataclass(frozen=True)
class StoredDataset:
    """Stored dataset, by its name.

    Attributes
    ----------
    name : str
        Name of the dataset; see `wisecrowd.list_datasets`.
    duplicates : str
        Treatment of repeated votes of a worker; see `wisecrowd.load_dataset`. It is part of a paper's protocol and has no
        default.
    figures : tuple of str
        Figures to show.
    positive : str or None
        Class whose F1 score is the figure ``positive_f1``.

    Examples
    --------
    >>> StoredDataset("no_such_dataset", duplicates="keep").absence()
    "the dataset 'no_such_dataset' is not on this machine; WISECROWD_DATA names the folders to look in"
    """

    name: str
    duplicates: Duplicates
    figures: tuple[str, ...] = ("accuracy",)
    positive: str | None = None

    is_random: ClassVar[bool] = False

    def load(self, seed: int) -> Dataset:
        """Load the dataset; raise `InputError` if it has no truth.

        Parameters
        ----------
        seed : int
            Ignored: a stored dataset is the same for every seed.

        Returns
        -------
        Dataset
        """
        dataset = load_dataset(self.name, duplicates=self.duplicates)
        if dataset.truth is None:
            raise InputError(f"{self.name} has no truth to score against")
        return dataset

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Compute the standard figures, and F1 of the positive class if there is one.

        Parameters
        ----------
        dataset : Dataset
            Dataset that `load` returned.
        prediction : object
            Prediction of an entry.

        Returns
        -------
        dict of str to float
            Figures by name.
        """
        figures = metrics.summary(require_truth(dataset), prediction)
        if self.positive is not None:
            figures["positive_f1"] = metrics.f1(
                require_truth(dataset), prediction, average="binary", positive=self.positive
            )  # fmt: skip
        return figures

    def absence(self) -> str | None:
        """Return a message if the dataset is not on this machine."""
        if self.name in find_dataset_folders():
            return None
        return f"the dataset {self.name!r} is not on this machine; WISECROWD_DATA names the folders to look in"

    def identity(self) -> Any:
        """Return the name, the protocol and the digests of the files."""
        folder = find_dataset_folders()[self.name]
        features = [compute_file_digest(file) for file in sorted(folder.glob("features.*"))]
        files = [compute_file_digest(folder / file) for file in (ANNOTATIONS, TRUTH)]
        return [self.name, self.duplicates, self.positive, [*files, *features]]

    def size(self) -> int:
        """Return the number of votes in the dataset."""
        return count_rows(find_dataset_folders()[self.name] / ANNOTATIONS) or 0


@dataclass(frozen=True)
class SimulatedDataset:
    """Crowd simulated by `wisecrowd.simulate_crowd`, a different one for every seed.

    Attributes
    ----------
    settings : mapping of str to object
        Arguments of `wisecrowd.simulate_crowd`.
    figures : tuple of str
        Figures to show.

    Examples
    --------
    >>> SimulatedDataset({"n_tasks": 50, "n_workers": 5}).load(seed=1)
    Dataset('simulated', Crowd(150 votes: 50 tasks x 5 workers, 4 classes, 3.0 votes/task), truth of 50 tasks)
    """

    settings: Mapping[str, Any]
    figures: tuple[str, ...] = ("accuracy",)

    is_random: ClassVar[bool] = True

    def load(self, seed: int) -> Dataset:
        """Simulate the crowd.

        Parameters
        ----------
        seed : int
            Seed of the simulation.

        Returns
        -------
        Dataset
        """
        from wisecrowd.simulate import simulate_crowd

        simulation = simulate_crowd(**self.settings, random_state=seed)
        return Dataset(name="simulated", crowd=simulation.crowd, truth=simulation.truth)

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Compute the standard figures.

        Parameters
        ----------
        dataset : Dataset
            Dataset that `load` returned.
        prediction : object
            Prediction of an entry.

        Returns
        -------
        dict of str to float
            Figures by name.
        """
        return metrics.summary(require_truth(dataset), prediction)

    def absence(self) -> str | None:
        """Return None: a simulation is always available."""
        return None

    def identity(self) -> Any:
        """Return the settings."""
        return dict(self.settings)

    def size(self) -> int:
        """Return the number of votes, or an estimate if it varies between tasks."""
        per_task = self.settings.get("votes_per_task", 3)
        return int(self.settings.get("n_tasks", 1000)) * (per_task if isinstance(per_task, int) else 3)


@cache
def compute_file_digest(file: Path) -> str | None:
    """Return the SHA-256 of a file, or None if it does not exist.

    Parameters
    ----------
    file : Path
        File.

    Returns
    -------
    str or None

    Examples
    --------
    >>> compute_file_digest(Path("no such file")) is None
    True
    """
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ClassificationData(NamedTuple):
    """Data that a classifier is trained on and scored by.

    Attributes
    ----------
    features : DataFrame
        Features by task.
    truth : Series
        Truth by task.
    test : Index
        Tasks without votes, to score on.

    Examples
    --------
    >>> ClassificationData._fields
    ('features', 'truth', 'test')
    """

    features: pd.DataFrame
    truth: pd.Series[Any]
    test: pd.Index


def get_classification_data(dataset: Dataset) -> ClassificationData:
    """Return the features, the truth and the test tasks of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Dataset with features, truth and splits.

    Returns
    -------
    ClassificationData

    Raises
    ------
    InputError
        If features, truth or splits are missing.

    Examples
    --------
    >>> get_classification_data(SimulatedDataset({"n_tasks": 50, "n_workers": 5}).load(seed=1))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the dataset simulated has no features, no splits; a classifier is scored with truth,
    features and splits
    """
    features, truth, splits = dataset.features, dataset.truth, dataset.splits
    if features is None or truth is None or splits is None:
        absent = [name for name in ("truth", "features", "splits") if getattr(dataset, name) is None]
        raise InputError(
            f"the dataset {dataset.name} has {', '.join(f'no {name}' for name in absent)}; "
            "a classifier is scored with truth, features and splits"
        )
    return ClassificationData(features, truth, splits.index[splits == "test"])


def make_train_test_dataset(name: str, simulation: GroupedSimulation | DifficultyCrowd, **meta: Any) -> Dataset:
    """Make a dataset of training tasks with votes and test tasks without votes.

    Parameters
    ----------
    name : str
        Name of the dataset.
    simulation : GroupedSimulation or DifficultyCrowd
        Simulated crowd with test tasks.
    **meta
        Metadata of the dataset.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from wisecrowd.simulate import simulate_gaussian_groups
    >>> simulation = simulate_gaussian_groups(20, n_tasks=30)
    >>> len(make_train_test_dataset("groups", simulation).features) == len(simulation.truth) + len(simulation.test_truth)
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
    """Return the features of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Dataset of the cell.

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        If the dataset has no features.
    """
    if dataset.features is None:
        raise InputError(f"{dataset.name} has no features, which this entry needs")
    return dataset.features


def require_truth(dataset: Dataset) -> pd.Series[Any]:
    """Return the truth of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Dataset of the cell.

    Returns
    -------
    Series

    Raises
    ------
    InputError
        If the dataset has no truth.
    """
    if dataset.truth is None:
        raise InputError(f"{dataset.name} has no truth, which this benchmark scores against")
    return dataset.truth
