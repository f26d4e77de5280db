"""Gold labels, matched to the tasks and classes of a crowd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import as_index, match_id_type
from wisecrowd.errors import InputError, preview

#: Codes of tasks without a gold label, and of gold labels that no worker ever gave.
UNKNOWN, UNUSED_CLASS = -1, -2


@dataclass(frozen=True, eq=False)
class GoldLabels:
    """Gold labels of some tasks of a crowd.

    Attributes
    ----------
    series : Series
        Gold label by task, with ids and classes as the crowd has them.
    codes : ndarray of shape (n_tasks,)
        Class code of each task of the crowd, `UNKNOWN` or `UNUSED_CLASS`.
    is_fitted : bool
        Whether the labels were fitted with them, so that they cannot score the labels.
    """

    series: pd.Series
    codes: NDArray[np.intp]
    is_fitted: bool = False

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mask of the tasks of the crowd with a gold label."""
        return self.codes != UNKNOWN

    def count_correct(self, labels: NDArray[Any]) -> tuple[int, int]:
        """Count the correct labels.

        Parameters
        ----------
        labels : ndarray of shape (n_tasks,)
            Class codes of inferred labels.

        Returns
        -------
        n_correct : int
            Number of correct labels.
        n_gold : int
            Number of gold tasks.
        """
        is_known = self.is_known
        return int((labels[is_known] == self.codes[is_known]).sum()), int(is_known.sum())

    def count_correct_votes(self, crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the correct votes of each worker.

        Parameters
        ----------
        crowd : Crowd
            Votes.

        Returns
        -------
        n_correct : ndarray of shape (n_workers,)
            Number of correct votes.
        n_gold : ndarray of shape (n_workers,)
            Number of votes on gold tasks.
        """
        true = self.codes[crowd.task]
        is_known = true != UNKNOWN
        workers, n_workers = crowd.worker_codes, crowd.n_workers
        n_correct = np.bincount(workers[is_known & (true == crowd.label)], minlength=n_workers)
        n_gold = np.bincount(workers[is_known], minlength=n_workers)
        return n_correct.astype(np.int64), n_gold.astype(np.int64)


def match_gold(truth: TruthLike, crowd: Crowd) -> GoldLabels:
    """Match gold labels to the tasks of a crowd.

    Parameters
    ----------
    truth : mapping or Series
        True class by task.
    crowd : Crowd
        Votes.

    Returns
    -------
    GoldLabels
        Gold labels with the ids and classes of the crowd.

    Raises
    ------
    InputError
        If a task occurs twice, or no task is in the crowd.
    """
    assert crowd.classes is not None
    series = as_truth_series(truth, crowd)
    if not series.index.is_unique:
        duplicates = series.index[series.index.duplicated()]
        raise InputError(f"the truth has several rows for {preview(duplicates)}; keep one row per task")
    positions = crowd.tasks.get_indexer(match_id_type(series.index, crowd.tasks))
    is_in_crowd = positions >= 0
    if not is_in_crowd.any():
        raise InputError(
            f"none of the {len(series):,} tasks with truth is in the crowd; the truth starts with {preview(series.index)}, "
            f"the crowd with {preview(crowd.tasks)}. Check that both use the same ids"
        )
    labels = match_id_type(as_index(series[is_in_crowd]), crowd.classes)
    label_codes = crowd.classes.get_indexer(labels)
    codes = np.full(crowd.n_tasks, UNKNOWN, dtype=np.intp)
    codes[positions[is_in_crowd]] = np.where(label_codes >= 0, label_codes, UNUSED_CLASS)
    return GoldLabels(pd.Series(labels.to_numpy(), index=crowd.tasks[positions[is_in_crowd]]), codes)
