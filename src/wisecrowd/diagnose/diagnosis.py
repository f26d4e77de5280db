"""Diagnosis: whom to trust, which tasks are hard, how far the crowd agrees, and which method to believe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.agreement import fleiss_kappa, gwet_ac1, krippendorff_alpha
from wisecrowd.diagnose.groups import WorkerGroups, group_workers
from wisecrowd.diagnose.preparation import resolve_model
from wisecrowd.diagnose.tasks import TASK_KINDS, TaskDiagnosis
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError
from wisecrowd.evaluate.inputs import require_categorical_crowd


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the votes say about the crowd, its workers and its tasks; one model serves all.

    >>> from wisecrowd import simulate_crowd
    >>> found = diagnose_crowd(simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=5).crowd)
    >>> found.workers.shape[0], found.tasks.shape[0], found.confusion.shape
    (10, 200, (4, 4))
    """

    crowd: Crowd
    model: ConfusionEM
    level: float = 0.9
    X: Any = None

    def __repr__(self) -> str:
        figures = self.overview
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in figures["tasks_by_kind"].items() if n)
        flagged = self.workers["flags"][self.workers["flags"] != ""]
        alpha = figures["krippendorff_alpha"]
        return (
            f"Diagnosis of {self.crowd!r}\n"
            f"  agreement: {'cannot be told' if alpha is None else f'alpha {alpha:.2f}'}; tasks: {kinds}\n"
            f"  workers to look at: {', '.join(f'{name!r} ({flags})' for name, flags in flagged.head(8).items()) or 'none'}"
            f"{f' and {len(flagged) - 8:,} more' if len(flagged) > 8 else ''}\n"
            "  see: .workers, .tasks, .groups, .confusion, .overview"
        )

    @cached_property
    def worker_diagnosis(self) -> WorkerDiagnosis:
        """The workers, with matrices and copies; ``workers`` is its table."""
        return WorkerDiagnosis(self.crowd, self.model, self.level)

    @cached_property
    def task_diagnosis(self) -> TaskDiagnosis:
        """The tasks; ``tasks`` is its table."""
        return TaskDiagnosis(self.crowd, self.model, self.X)

    @cached_property
    def workers(self) -> pd.DataFrame:
        """A row for each worker: see `WorkerDiagnosis`."""
        return self.worker_diagnosis.table

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """A row for each task: see `TaskDiagnosis`."""
        return self.task_diagnosis.table

    @cached_property
    def groups(self) -> WorkerGroups:
        """Workers who err alike: see `group_workers`."""
        return group_workers(self.worker_diagnosis)

    def frequent_classes(self, max_classes: int = 20) -> NDArray[np.intp]:
        """Return the positions of the most frequent classes, in the order of the crowd's classes.

        Parameters
        ----------
        max_classes : int, default=20
            Largest number of classes to return.

        Returns
        -------
        ndarray of shape (n_frequent_classes,)
        """
        share = self.model.posterior_.mean(axis=0)
        return np.sort(np.argsort(-share, kind="stable")[:max_classes])

    @cached_property
    def confusion(self) -> pd.DataFrame:
        """What the crowd says when each class is true: true classes by row, labels by column."""
        classes = self.model.classes_
        return pd.DataFrame(
            self.worker_diagnosis.confusion,
            index=pd.Index(classes, name="true"),
            columns=pd.Index(classes, name="said"),
        )

    @cached_property
    def overview(self) -> dict[str, Any]:
        """A handful of figures about the whole crowd, ready for JSON."""
        crowd = self.crowd
        alpha = krippendorff_alpha(crowd, interval=0.95)
        per_worker = crowd.votes_per_worker[crowd.votes_per_worker > 0]
        figures: dict[str, Any] = {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "labels": crowd.n_votes,
            "votes_per_task": round(crowd.n_votes / max(int((crowd.votes_per_task > 0).sum()), 1), 4),
            "labels_per_worker_median": float(np.median(per_worker)),
            "workers_with_fewer_than_10_labels": int((per_worker < 10).sum()),
            "share_of_cells_filled": round(crowd.n_votes / max(crowd.n_tasks * crowd.n_workers, 1), 6),
            "krippendorff_alpha": alpha.value,
            "krippendorff_alpha_low": alpha.low,
            "krippendorff_alpha_high": alpha.high,
            "gwet_ac1": float(gwet_ac1(crowd)),
            "expected_accuracy": float(self.model.posterior_.max(axis=1).mean()),
            "tasks_by_kind": {kind: int((self.task_diagnosis.kind == kind).sum()) for kind in TASK_KINDS},
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }
        try:
            figures["fleiss_kappa"] = float(fleiss_kappa(crowd))
        except InputError:  # for crowds with as many votes on every task only
            figures["fleiss_kappa"] = None
        return {
            name: None if isinstance(value, float) and np.isnan(value) else value for name, value in figures.items()
        }


def diagnose_crowd(
    crowd: Any, X: Any = None, *, model: ConfusionEM | str | None = None, level: float = 0.9
) -> Diagnosis:
    """Look at a crowd: whom to trust, which tasks are hard, how far all agree.

    With features ``X``, a row for every task, tasks are also judged by whether their label goes with their features. ``model`` is
    a fitted method with confusion matrices, or the name of one; Dawid–Skene unless given. ``level`` is that of intervals.

    >>> from wisecrowd import diagnose_crowd, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["noisy(0.8)"] * 9 + ["spammer"], votes_per_task=5)
    >>> found = diagnose_crowd(made.crowd)
    >>> found.workers.query("flags != ''").index.tolist()
    ['w9']
    """
    votes = require_categorical_crowd(crowd, "crowds are diagnosed")
    return Diagnosis(votes, resolve_model(votes, model), level, X)
