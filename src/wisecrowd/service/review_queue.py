"""Tasks that a person reviews: their order, texts, images and votes with the quality of the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import io
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.diagnose.assessment import CrowdAssessment
from wisecrowd.errors import InputError, preview
from wisecrowd.evaluate.confidence import LabelConfidence
from wisecrowd.io.problems import MissingColumn, prefix_errors
from wisecrowd.report.images import PATH_COLUMNS, read_images
from wisecrowd.report.task_media import align_with_tasks
from wisecrowd.report.texts import TEXT_COLUMNS
from wisecrowd.utils.text import display_name, shorten

#: File with the tasks to check in a folder that ``wisecrowd audit`` wrote.
AUDIT_FILE = "checks.csv"
#: Columns of an audit that the table of decisions keeps, so that the checks can be evaluated.
AUDIT_COLUMNS = ("stratum", "weight", "draw")
#: Longest text of a task on the page, in characters.
MAX_TEXT_CHARACTERS = 20_000
#: Largest number of votes for which workers are diagnosed before the page opens.
MAX_DIAGNOSED_VOTES = 200_000
#: Largest number of votes of a task on the page.
MAX_VOTES = 200


@dataclass(frozen=True)
class TaskTable:
    """Table of the tasks to review.

    Attributes
    ----------
    tasks : Index
        Task ids in the order of the table.
    texts, images : Series or None
        Texts and paths of images by task, if the table has them.
    truth : Series
        True classes by task, of the rows that are filled in already.
    columns : dict of str to Series
        Columns of an audit by name.
    """

    tasks: pd.Index
    texts: pd.Series | None
    images: pd.Series | None
    truth: pd.Series
    columns: dict[str, pd.Series]

    @property
    def is_audit(self) -> bool:
        """True if ``wisecrowd audit`` drew the tasks."""
        return "weight" in self.columns


def read_task_table(path: Path, *, task: str | None = None) -> TaskTable:
    """Read the tasks to review.

    Parameters
    ----------
    path : pathlib.Path
        Table with a column of task ids, and optionally texts, paths of images, and the columns of an audit; or a folder that
        ``wisecrowd audit`` wrote.
    task : str, default=None
        Name of the column with task ids.

    Returns
    -------
    TaskTable
        Tasks with what the table has about them.

    Raises
    ------
    InputError
        If the table has no tasks, or a task occurs twice.

    Examples
    --------
    >>> _ = Path("audit.csv").write_text("task,truth,stratum,weight,text\\nt7,,0,2.5,Is it a cat?\\nt3,cat,0,2.5,And this?\\n")
    >>> table = read_task_table(Path("audit.csv"))
    >>> table.tasks.tolist(), table.texts["t7"], table.truth.to_dict(), table.is_audit
    (['t7', 't3'], 'Is it a cat?', {'t3': 'cat'}, True)
    """
    if path.is_dir():
        if not (path / AUDIT_FILE).is_file():
            raise InputError(
                f"{path}: the folder has no {AUDIT_FILE}, as wisecrowd audit writes it; name a table of tasks"
            )
        path = path / AUDIT_FILE
    tasks, task = _read_tasks(path, task)
    if not len(tasks):
        raise InputError(f"{path} has no tasks; expected one row per task to review")
    columns: dict[str, pd.Series] = {}
    for name in ("truth", *AUDIT_COLUMNS, *TEXT_COLUMNS, *PATH_COLUMNS):
        try:
            columns[name] = io.read_truth(path, task=task, truth=name)
        except MissingColumn:
            continue
    truth = columns.pop("truth", pd.Series(dtype=object)).dropna().astype(str)
    texts = next((columns[name] for name in TEXT_COLUMNS if name in columns), None)
    has_images = any(name in columns for name in PATH_COLUMNS)
    return TaskTable(
        tasks,
        None if texts is None else texts.dropna(),
        read_images(path, task=task) if has_images else None,
        truth[truth.str.strip() != ""],
        {name: columns[name] for name in AUDIT_COLUMNS if name in columns},
    )


def _read_tasks(path: Path, task: str | None) -> tuple[pd.Index, str | None]:
    """Return the ids of a table, also of rows in which nothing else is filled in, and the name of their column.

    The column of the votes may have another name.
    """
    from wisecrowd.io.tables.columns import find_column
    from wisecrowd.io.tools.export_files import iter_rows

    if not path.exists():
        raise InputError(f"{path} does not exist; name a table of tasks, or a folder that wisecrowd audit wrote")
    if path.suffix not in (".csv", ".tsv"):
        raise InputError(f"{path}: expected a CSV or TSV table with a column of tasks; name one with --tasks")
    rows = [row for _, row in iter_rows(path, "\t" if path.suffix == ".tsv" else ",")]
    if not rows:
        return pd.Index([]), task
    with prefix_errors(path):
        column = task if task in rows[0] else find_column(list(rows[0]), "task")
    return pd.Index(list(dict.fromkeys(row[column] for row in rows)), name="task"), column


def find_disputed_tasks(crowd: Crowd, estimate: LabelConfidence, limit: int) -> pd.Index:
    """Return the tasks on which workers disagree, the least certain first.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    estimate : LabelConfidence
        Labels with confidence.
    limit : int
        Maximum number of tasks.

    Returns
    -------
    Index
        Task ids.

    Raises
    ------
    InputError
        If workers agree on all tasks that are not gold.

    Examples
    --------
    >>> from wisecrowd import MajorityVote
    >>> from wisecrowd.evaluate.confidence import estimate_confidence
    >>> crowd = Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "a"), ("t2", "ann", "a"), ("t2", "bob", "b")])
    >>> find_disputed_tasks(crowd, estimate_confidence(MajorityVote().fit(crowd), crowd), 10).tolist()
    ['t2']
    """
    lowest, highest = (
        np.full(crowd.n_tasks, crowd.n_classes, dtype=np.int64),
        np.full(crowd.n_tasks, -1, dtype=np.int64),
    )
    np.minimum.at(lowest, crowd.task, crowd.label)
    np.maximum.at(highest, crowd.task, crowd.label)
    disputed = np.flatnonzero((highest > lowest) & (estimate.truth < 0))
    if not len(disputed):
        raise InputError(
            "the workers agree on every task that is not gold, so nothing is disputed; name the tasks to review with --tasks, "
            "for example those that wisecrowd audit draws"
        )
    order = np.argsort(estimate.confidence[disputed], kind="stable")
    return crowd.tasks[disputed[order[:limit]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReviewQueue:
    """Tasks in the order of the review.

    Attributes
    ----------
    crowd : Crowd
        Votes.
    assessment : CrowdAssessment
        Labels with confidence, workers and warnings, as in all other views of the votes.
    tasks : Index
        Task ids in the order of the review, as the votes have them.
    texts, images : Series or None
        Texts, and images as paths, by task.

    Examples
    --------
    >>> from wisecrowd.diagnose.assessment import assess_crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "b"), ("t2", "ann", "a"), ("t2", "bob", "a")])
    >>> queue = ReviewQueue(assessment=assess_crowd(crowd), tasks=crowd.tasks[:1])
    >>> [(vote["worker"], vote["label"]) for vote in queue.describe_votes(0)]
    [('ann', 'a'), ('bob', 'b')]
    """

    assessment: CrowdAssessment
    tasks: pd.Index
    texts: pd.Series | None = None
    images: pd.Series | None = None
    _codes: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        tasks = match_id_type(self.tasks, self.crowd.tasks)
        codes = self.crowd.tasks.get_indexer(tasks)
        if (codes < 0).any():
            raise InputError(
                f"{int((codes < 0).sum()):,} of {len(codes):,} tasks to review have no votes: {preview(tasks[codes < 0])}; the "
                f"tasks of the votes are {preview(self.crowd.tasks)}. Check that both use the same ids"
            )
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "_codes", codes)

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def crowd(self) -> Crowd:
        """Votes."""
        return self.assessment.crowd

    @property
    def estimate(self) -> LabelConfidence:
        """Labels with confidence."""
        return self.assessment.labels

    @cached_property
    def names(self) -> list[str]:
        """Task ids as text."""
        return [str(task) for task in self.tasks]

    @cached_property
    def classes(self) -> list[str]:
        """Classes as text."""
        return [str(name) for name in self.estimate.classes]

    @cached_property
    def aligned_texts(self) -> Sequence[Any]:
        """Text of each task; None where it has none."""
        if self.texts is None:
            return [None] * len(self)
        return align_with_tasks(self.texts, self.tasks, "text")

    @cached_property
    def aligned_images(self) -> Sequence[Any]:
        """Image of each task; None where it has none."""
        if self.images is None:
            return [None] * len(self)
        return align_with_tasks(self.images, self.tasks, "image")

    def describe_task(self, number: int) -> dict[str, Any]:
        """Return what a reviewer sees of a task before any vote.

        Parameters
        ----------
        number : int
            Position in the queue.

        Returns
        -------
        dict
            Name, text, and whether there is an image.
        """
        text = self.aligned_texts[number]
        return {
            "name": display_name(self.names[number]),
            "text": None if text is None else shorten(text, MAX_TEXT_CHARACTERS, lines=True),
            "has_image": self.aligned_images[number] is not None,
        }

    def describe_label(self, number: int) -> dict[str, Any]:
        """Return the inferred label of a task with its confidence.

        Parameters
        ----------
        number : int
            Position in the queue.

        Returns
        -------
        dict
            Label and confidence.
        """
        code = self._codes[number]
        return {
            "label": display_name(self.classes[self.estimate.label[code]]),
            "confidence": round(float(self.estimate.confidence[code]), 3),
        }

    def describe_votes(self, number: int) -> list[dict[str, Any]]:
        """Return the votes on a task with the quality of the workers, those of the best workers first.

        Parameters
        ----------
        number : int
            Position in the queue.

        Returns
        -------
        list of dict
            Worker, label, accuracy, number of votes and flags of the worker; None for what is unknown.
        """
        crowd = self.crowd
        first, last = np.searchsorted(crowd.task, [self._codes[number], self._codes[number] + 1])
        votes = []
        for row in range(first, min(last, first + MAX_VOTES)):
            vote: dict[str, Any] = {"worker": None, "accuracy": None, "n_votes": None, "flags": ""}
            if crowd.workers is not None and crowd.worker is not None:
                code = crowd.worker[row]
                vote = {"worker": display_name(crowd.workers[code]), **self._describe_worker(code)}
            votes.append(vote | {"label": display_name(self.classes[crowd.label[row]])})
        return sorted(votes, key=lambda vote: -1.0 if vote["accuracy"] is None else -vote["accuracy"])

    def _describe_worker(self, code: int) -> dict[str, Any]:
        accuracy = None if self._accuracies is None else float(self._accuracies[code])
        if accuracy is not None and not np.isfinite(accuracy):
            accuracy = None
        return {
            "accuracy": None if accuracy is None else round(accuracy, 3),
            "n_votes": int(self._votes_per_worker[code]),
            "flags": "" if self._flags is None else str(self._flags[code]),
        }

    @cached_property
    def _rated_workers(self) -> pd.DataFrame | None:
        """Workers as in all other views; None without workers, or with too many votes or classes to wait for a diagnosis."""
        if self.crowd.workers is None or self.crowd.n_votes > MAX_DIAGNOSED_VOTES:
            return None
        return self.assessment.worker_table if self.assessment.can_rate_workers else None

    @cached_property
    def _accuracies(self) -> NDArray[Any] | None:
        """Accuracies of the workers; where they are not rated, those of the method."""
        if self.crowd.workers is None:
            return None
        workers = self._rated_workers if self._rated_workers is not None else self.assessment.model.workers_
        if "accuracy" not in workers:
            return None
        return workers["accuracy"].reindex(self.crowd.workers).to_numpy(dtype=np.float64)

    @cached_property
    def _flags(self) -> NDArray[Any] | None:
        """Flags of the workers; None where they are not rated."""
        if self._rated_workers is None:
            return None
        return self._rated_workers["flags"].reindex(self.crowd.workers).fillna("").to_numpy()

    @cached_property
    def _votes_per_worker(self) -> NDArray[np.int64]:
        assert self.crowd.worker is not None
        return np.bincount(self.crowd.worker, minlength=self.crowd.n_workers or 0)
