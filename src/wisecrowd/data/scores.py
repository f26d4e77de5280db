"""Scores of judges, such as grades from 0 to 9, probabilities or logits, with votes of people beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest
from wisecrowd.data.arrow_tables import DataFrameLike, as_table, read_numbers
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import as_codes
from wisecrowd.errors import InputError, check_choice, preview
from wisecrowd.utils.text import count_noun


class ScoreCrowd(AnswersByTask):
    """Sparse, immutable scores of judges on tasks.

    Row ``n`` says that judge ``workers[worker[n]]`` gave task ``tasks[task[n]]`` the score ``score[n]``. Judges may use different
    scales; `wisecrowd.Panel` calibrates each of them. ``votes`` are labels of people on the same tasks. Rows are sorted by task
    and worker.

    Build scores with `from_frame` (one score per row) or `from_wide` (one column per judge).

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``. A judge may score a task repeatedly.
    score : array-like of shape (n_votes,)
        Finite numbers.
    tasks, workers : Index
        Vocabularies.
    votes : Crowd, optional
        Labels of people, over the same ``tasks``.

    Raises
    ------
    InputError
        If codes are invalid, columns differ in length, or a score is not finite.

    Examples
    --------
    >>> frame = {"task": ["t1", "t1", "t2"], "worker": ["gpt", "llama", "gpt"], "score": [7, 0.9, 2]}
    >>> scores = ScoreCrowd.from_frame(frame)
    >>> scores
    ScoreCrowd(3 scores: 2 tasks x 2 judges)
    >>> scores.to_frame()["score"].tolist()
    [7.0, 0.9, 2.0]
    """

    answer_type: ClassVar[AnswerType] = "scores"
    has_workers: ClassVar[bool] = True
    classes: ClassVar[None] = None

    def __init__(
        self,
        task: ArrayLike,
        worker: ArrayLike,
        score: ArrayLike,
        *,
        tasks: pd.Index,
        workers: pd.Index,
        votes: Crowd | None = None,
    ) -> None:
        self.tasks, self.workers = vocab.as_vocabulary(tasks, "task"), vocab.as_vocabulary(workers, "worker")
        task_codes, worker_codes = (
            as_codes(task, len(self.tasks), "task"),
            as_codes(worker, len(self.workers), "worker"),
        )
        values = np.asarray(score, dtype=np.float64)
        if not len(task_codes) == len(worker_codes) == len(values):
            raise InputError(
                f"task, worker and score need one value per row; got {len(task_codes):,}, {len(worker_codes):,} and {len(values):,}"
            )
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError(
                f"scores must be finite numbers; got {values[row]} of {preview([self.workers[worker_codes[row]]])} on task "
                f"{preview([self.tasks[task_codes[row]]])}. Drop the row, or read with missing='drop'"
            )
        if votes is not None and not votes.tasks.equals(self.tasks):
            raise InputError("votes of people must be over the tasks of the scores; build them with tasks=scores.tasks")
        order = np.lexsort((values, worker_codes, task_codes))
        self.task, self.worker, self.score = task_codes[order], worker_codes[order], values[order]
        self.votes = votes
        for array in (self.task, self.worker, self.score):
            array.setflags(write=False)

    # ------------------------------------------------------------------ construction

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        task: str = "task",
        worker: str = "worker",
        score: str = "score",
        label: str | None = None,
        classes: Sequence[Any] | pd.Index | None = None,
        tasks: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        duplicates: Literal["error", "first", "last", "keep"] = "error",
        missing: Literal["error", "drop"] = "error",
    ) -> ScoreCrowd:
        """Build scores from a table with one score, or one label of a person, per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        task, worker, score : str
            Names of the columns.
        label : str, optional
            Column of labels of people. A row has a score or a label, not both.
        classes : sequence or Index, optional
            Classes of the labels, in their order.
        tasks, workers : sequence or Index, optional
            Vocabularies in their order; ``workers`` are the judges.
        duplicates : {"error", "first", "last", "keep"}, default="error"
            Treatment of several scores of one judge on one task. Kept scores count as one answer together, and show how
            consistent the judge is.
        missing : {"error", "drop"}, default="error"
            Treatment of rows without a score (and without a label).

        Returns
        -------
        ScoreCrowd

        Raises
        ------
        InputError
            If a column is absent, a score is missing or no number, or rows repeat while ``duplicates="error"``.

        Examples
        --------
        >>> frame = {"task": ["t1", "t1"], "worker": ["gpt", "ann"], "score": [7.5, None], "label": [None, "toxic"]}
        >>> ScoreCrowd.from_frame(frame, label="label")
        ScoreCrowd(1 score: 1 task x 1 judge; 1 vote of 1 person)
        """
        check_choice("duplicates", duplicates, ("error", "first", "last", "keep"))
        check_choice("missing", missing, ("error", "drop"))
        names = [name for name in (task, worker, score, label) if name is not None]
        table = as_table(frame, names)
        absent = [name for name in names if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}. Name your columns, for example "
                'task="item", worker="judge", score="grade"'
            )
        has_score = ~vocab.find_missing(table[score])
        has_label = np.zeros(len(has_score), dtype=bool) if label is None else ~vocab.find_missing(table[label])
        _check_rows(has_score, has_label, table, task, worker, missing)
        chosen = table.filter(pa.array(has_score | has_label))
        has_score, has_label = has_score[has_score | has_label], has_label[has_score | has_label]
        task_codes, task_index = vocab.encode_ids(chosen[task], "task", tasks)
        rows = chosen.filter(pa.array(has_score))
        worker_codes, worker_index = vocab.encode_ids(rows[worker], "worker", workers)
        values = read_numbers(rows[score])
        rows_to_keep = _drop_repeated(task_codes[has_score], worker_codes, task_index, worker_index, duplicates)
        votes = None
        if label is not None and has_label.any():
            people = chosen.filter(pa.array(has_label)).select(list(dict.fromkeys([task, worker, label])))
            votes = Crowd.from_frame(
                people,
                task=task,
                worker=worker,
                label=label,
                tasks=task_index,
                classes=classes,
                duplicates="error" if duplicates == "keep" else duplicates,
            )
        return cls(
            task_codes[has_score][rows_to_keep], worker_codes[rows_to_keep], values[rows_to_keep],
            tasks=task_index, workers=worker_index, votes=votes,
        )  # fmt: skip

    @classmethod
    def from_wide(cls, frame: pd.DataFrame, *, votes: Crowd | None = None) -> ScoreCrowd:
        """Build scores from a table with a row per task and a column per judge.

        Parameters
        ----------
        frame : DataFrame
            Scores; the index has the task ids. Missing values are absent scores.
        votes : Crowd, optional
            Labels of people, over the tasks of the index.

        Returns
        -------
        ScoreCrowd

        Examples
        --------
        >>> ScoreCrowd.from_wide(pd.DataFrame({"gpt": [1, 9], "llama": [2, None]}, index=["t1", "t2"])).n_votes
        3
        """
        try:
            values = frame.to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"scores must be numbers: {str(error)[:200]}") from None
        task, worker = np.nonzero(~np.isnan(values))
        return cls(task, worker, values[task, worker], tasks=frame.index, workers=frame.columns, votes=votes)

    def with_votes(self, votes: Crowd | DataFrameLike) -> ScoreCrowd:
        """Return the same scores with votes of people.

        Parameters
        ----------
        votes : Crowd or table
            Labels of people. Tasks without scores are added.

        Returns
        -------
        ScoreCrowd

        Examples
        --------
        >>> scores = ScoreCrowd.from_frame({"task": ["t1"], "worker": ["gpt"], "score": [7]})
        >>> scores.with_votes(Crowd.from_triples([("t2", "ann", "toxic")])).n_tasks
        2
        """
        crowd = votes if isinstance(votes, Crowd) else Crowd.from_frame(votes)
        if crowd.workers is None or crowd.is_numeric:
            raise InputError("votes of people need worker ids and classes; read them without numeric=True")
        tasks, codes = vocab.unite_codes([(self.tasks, self.task), (crowd.tasks, crowd.task)])
        n = len(self.task)
        aligned = Crowd.from_codes(
            codes[n:], crowd.worker_codes, crowd.label,
            tasks=tasks, workers=crowd.workers, classes=crowd.classes, weight=crowd.weight, duplicates="keep",
            ordered=crowd.is_ordered,
        )  # fmt: skip
        return ScoreCrowd(codes[:n], self.worker, self.score, tasks=tasks, workers=self.workers, votes=aligned)

    # ------------------------------------------------------------------ sizes and derived quantities

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """Weight of each score: one, divided by the number of scores of the judge on the task."""
        key = self.task.astype(np.int64) * max(self.n_workers, 1) + self.worker
        _, group, size = np.unique(key, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / size[group])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal scores have equal digests."""
        votes = np.frombuffer(b"" if self.votes is None else self.votes.digest.encode(), dtype=np.uint8)
        return compute_answers_digest("scores", (self.tasks, self.workers), (self.task, self.worker, self.score, votes))

    # ------------------------------------------------------------------ selections

    def take(self, rows: ArrayLike) -> ScoreCrowd:
        """Select scores; vocabularies and votes of people stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the scores to keep.

        Returns
        -------
        ScoreCrowd

        Examples
        --------
        >>> scores = ScoreCrowd.from_frame({"task": ["t1", "t2"], "worker": ["gpt", "gpt"], "score": [7, 2]})
        >>> scores.take([True, False]).n_votes
        1
        """
        chosen = self._select_rows(rows)
        return ScoreCrowd(
            self.task[chosen], self.worker[chosen], self.score[chosen],
            tasks=self.tasks, workers=self.workers, votes=self.votes,
        )  # fmt: skip

    def select_workers(self, workers: Iterable[Any]) -> ScoreCrowd:
        """Select the scores of some judges, and drop the others from the vocabulary.

        Parameters
        ----------
        workers : iterable
            Ids of judges.

        Returns
        -------
        ScoreCrowd

        Raises
        ------
        InputError
            If a judge is unknown.

        Examples
        --------
        >>> scores = ScoreCrowd.from_frame({"task": ["t1", "t1"], "worker": ["gpt", "llama"], "score": [7, 2]})
        >>> scores.select_workers(["gpt"]).n_workers
        1
        """
        names = pd.Index(list(workers))
        position = self.workers.get_indexer(vocab.match_id_type(names, self.workers))
        if (position < 0).any():
            raise InputError(f"unknown judges: {preview(names[position < 0])}; the judges are {preview(self.workers)}")
        rank = np.full(self.n_workers, -1, dtype=np.int64)
        rank[position] = np.arange(len(position))
        rows = np.flatnonzero(rank[self.worker] >= 0)
        return ScoreCrowd(
            self.task[rows], rank[self.worker[rows]], self.score[rows],
            tasks=self.tasks, workers=self.workers[position], votes=self.votes,
        )  # fmt: skip

    # ------------------------------------------------------------------ output

    def to_frame(self) -> pd.DataFrame:
        """Convert the scores to a table with one row per score.

        Returns
        -------
        DataFrame
            Columns task, worker and score.
        """
        return pd.DataFrame(
            {"task": self.tasks.take(self.task), "worker": self.workers.take(self.worker), "score": self.score}
        )

    def __repr__(self) -> str:
        votes = ""
        if self.votes is not None:
            n_people = int((self.votes.votes_per_worker > 0).sum())
            people = f"{n_people:,} {'person' if n_people == 1 else 'people'}"
            votes = f"; {count_noun(self.votes.n_votes, 'vote')} of {people}"
        return (
            f"ScoreCrowd({count_noun(self.n_votes, 'score')}: {count_noun(self.n_tasks, 'task')} x "
            f"{count_noun(self.n_workers, 'judge')}{votes})"
        )


def _check_rows(
    has_score: NDArray[np.bool_], has_label: NDArray[np.bool_], table: pa.Table, task: str, worker: str, missing: str
) -> None:
    """Raise an error for rows with a score and a label, or with neither."""
    both, neither = np.flatnonzero(has_score & has_label), np.flatnonzero(~has_score & ~has_label)
    if both.size:
        row = table.slice(int(both[0]), 1).to_pylist()[0]
        raise InputError(
            f"{count_noun(both.size, 'row')} with a score and a label, such as {preview([row[worker]])} on task "
            f"{preview([row[task]])}; judges have scores and people have labels, so leave one of them empty"
        )
    if neither.size and missing == "error":
        row = table.slice(int(neither[0]), 1).to_pylist()[0]
        raise InputError(
            f"{count_noun(neither.size, 'row')} without a score, such as {preview([row[worker]])} on task "
            f"{preview([row[task]])}; drop them, or read with missing='drop' (--missing drop)"
        )


def _drop_repeated(
    task: NDArray[Any], worker: NDArray[Any], tasks: pd.Index, workers: pd.Index, duplicates: str
) -> NDArray[np.int64]:
    """Return the rows to keep."""
    key = task.astype(np.int64) * max(len(workers), 1) + worker
    distinct, first = np.unique(key, return_index=True)
    if duplicates == "keep" or len(distinct) == len(key):
        return np.arange(len(key))
    if duplicates == "error":
        row = int(np.flatnonzero(~np.isin(np.arange(len(key)), first))[0])
        raise InputError(
            f"{count_noun(len(key) - len(distinct), 'repeated row')}; for example judge {preview([workers[worker[row]]])} "
            f"scored task {preview([tasks[task[row]]])} twice. Choose duplicates='keep' (the scores count as one answer), "
            "'first' or 'last' (--duplicates)"
        )
    if duplicates == "last":
        _, from_end = np.unique(key[::-1], return_index=True)
        first = len(key) - 1 - from_end
    return np.sort(first)
