"""Truth that is known, in the crowd's own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index, same_kind
from wisecrowd.errors import InputError, some


@dataclass(frozen=True, eq=False)
class Known:
    """The truth of some tasks of a crowd."""

    series: pd.Series
    """By task, spelled as the crowd spells tasks and classes."""
    code: NDArray[np.intp]
    """The class of each task of the crowd: −1 where nothing is known, −2 where it is one that nobody ever chose."""

    @property
    def has(self) -> NDArray[np.bool_]:
        """Whether the truth of each task is known."""
        return self.code != -1

    def share_right(self, label: NDArray[Any]) -> tuple[int, int]:
        """Of labels by task (class codes), how many are right, and of how many the truth is known."""
        return int((label[self.has] == self.code[self.has]).sum()), int(self.has.sum())

    def of_workers(self, crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many votes of each worker are right, and on how many tasks of known truth they voted."""
        true = self.code[crowd.task]
        told = true != -1
        workers, n = crowd.worker_codes, crowd.n_workers
        right = np.bincount(workers[told & (true == crowd.label)], minlength=n)
        return right.astype(np.int64), np.bincount(workers[told], minlength=n).astype(np.int64)


def known_truth(truth: Any, crowd: Crowd) -> Known:
    """Match truth in any usual form to the tasks of a crowd."""
    assert crowd.classes is not None
    given = truth_series(truth, crowd)
    if not given.index.is_unique:
        raise InputError(
            f"the truth names some tasks twice: {some(given.index[given.index.duplicated()])}; keep one row each"
        )
    place = crowd.tasks.get_indexer(same_kind(given.index, crowd.tasks))
    here = place >= 0
    if not here.any():
        raise InputError(
            f"none of the {len(given):,} tasks with truth is in the crowd; the truth starts with {some(given.index)}, "
            f"the crowd with {some(crowd.tasks)}. Check that both use the same ids"
        )
    said = same_kind(as_index(given[here]), crowd.classes)
    label = crowd.classes.get_indexer(said)
    code = np.full(crowd.n_tasks, -1, dtype=np.intp)
    code[place[here]] = np.where(label >= 0, label, -2)
    return Known(pd.Series(said.to_numpy(), index=crowd.tasks[place[here]]), code)
