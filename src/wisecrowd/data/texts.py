"""Votes that are texts, such as transcriptions and translations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest, order_by_task
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.rows import as_codes
from wisecrowd.errors import InputError, check_choice, preview
from wisecrowd.utils.text import count_noun

#: Treatment of case and punctuation.
Normalisation: TypeAlias = Literal["words", "case", "none"]
#: Parts of texts that are compared.
TextUnit: TypeAlias = Literal["words", "characters"]


class TokenCodes(NamedTuple):
    """Texts as codes of their words or characters.

    Parameters
    ----------
    offset : ndarray of shape (n_texts + 1,)
        Text ``n`` has the codes ``code[offset[n]:offset[n + 1]]``.
    code : ndarray
        Positions in ``tokens``.
    tokens : Index
        Distinct words or characters.
    """

    offset: NDArray[np.int64]
    code: NDArray[np.int64]
    tokens: pd.Index

    @property
    def length(self) -> NDArray[np.int64]:
        """Number of tokens of each text."""
        return np.diff(self.offset)

    def pad(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return some texts as rows of a table that is filled up with -1.

        Parameters
        ----------
        rows : ndarray of int
            Positions of texts.

        Returns
        -------
        ndarray of shape (len(rows), n_columns)
            At least one column.
        """
        length = self.length[rows]
        table = np.full((len(rows), max(int(length.max(initial=0)), 1)), -1, dtype=np.int64)
        row = np.repeat(np.arange(len(rows)), length)
        column = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        table[row, column] = self.code[np.repeat(self.offset[rows], length) + column]
        return table


def tokenize(texts: Any, *, normalisation: Normalisation = "words", unit: TextUnit = "words") -> TokenCodes:
    """Split texts into words or characters.

    Parameters
    ----------
    texts : array-like of str
        Texts.
    normalisation : {"words", "case", "none"}, default="words"
        Remove punctuation and case ("words": letters, digits, marks, apostrophes and spaces stay), case only, or nothing.
    unit : {"words", "characters"}, default="words"
        Parts of a text.

    Returns
    -------
    TokenCodes

    Examples
    --------
    >>> tokens = tokenize(["The cat.", "the  Dog"])
    >>> tokens.tokens[tokens.code].tolist()
    ['the', 'cat', 'the', 'dog']
    """
    check_choice("normalisation", normalisation, ("words", "case", "none"))
    check_choice("unit", unit, ("words", "characters"))
    column = texts if isinstance(texts, pa.Array) else pa.array(np.asarray(texts, dtype=object), type=pa.large_string())
    column = column.cast(pa.large_string())
    if normalisation != "none":
        column = pc.utf8_lower(pc.utf8_normalize(column, form="NFC"))
    if normalisation == "words":
        column = pc.replace_substring(column, pattern="’", replacement="'")
        column = pc.replace_substring_regex(column, pattern=r"[^\p{L}\p{M}\p{N}' \t\n]+", replacement="")
    column = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, pattern=r"\s+", replacement=" "))
    if unit == "words":
        lists = pc.split_pattern(column, pattern=" ")
    else:
        lists = pc.split_pattern_regex(
            pc.replace_substring_regex(column, pattern=r"(?s)(.)", replacement="\\1\0"), pattern="\0"
        )
    flat = pc.list_flatten(lists)
    parent = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    is_token = pc.not_equal(flat, "").to_numpy(zero_copy_only=False)
    encoded = flat.filter(pa.array(is_token)).dictionary_encode()
    count = np.bincount(parent[is_token], minlength=len(column))
    offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return TokenCodes(offset, code, pd.Index(encoded.dictionary.to_pylist(), dtype=object))


class TextCrowd(AnswersByTask):
    """Immutable texts of workers, one per task and worker, sorted by task and worker.

    Text ``n`` is by worker ``workers[worker[n]]`` on task ``tasks[task[n]]``. Build a crowd with `from_frame`.

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    text : array-like of str
        Texts; an empty text is an answer, too.
    tasks, workers : Index
        Vocabularies.

    Raises
    ------
    InputError
        If codes are invalid, or a worker has two texts on a task.

    Examples
    --------
    >>> TextCrowd.from_frame({"task": ["t1", "t1"], "worker": ["ann", "bob"], "text": ["a cat", "the cat"]})
    TextCrowd(2 texts: 1 task x 2 workers, 6.0 characters/text)
    """

    answer_type: ClassVar[AnswerType] = "texts"

    def __init__(
        self, task: ArrayLike, worker: ArrayLike, text: ArrayLike, *, tasks: pd.Index, workers: pd.Index
    ) -> None:
        self.tasks, self.workers = vocab.as_vocabulary(tasks, "task"), vocab.as_vocabulary(workers, "worker")
        task_codes = as_codes(task, len(self.tasks), "task")
        worker_codes = as_codes(worker, len(self.workers), "worker")
        texts = np.asarray(text, dtype=object)
        if not len(task_codes) == len(worker_codes) == len(texts):
            raise InputError("task, worker and text need one value per answer")
        advice = "Keep one row each, or choose duplicates='first' or 'last'"
        order = order_by_task(task_codes, worker_codes, self.tasks, self.workers, advice=advice)
        self.task, self.worker, self.text = task_codes[order], worker_codes[order], texts[order]
        for array in (self.task, self.worker, self.text):
            array.setflags(write=False)

    @classmethod
    def from_frame(
        cls,
        frame: DataFrameLike,
        *,
        task: str = "task",
        worker: str = "worker",
        text: str = "text",
        tasks: Sequence[Any] | pd.Index | None = None,
        workers: Sequence[Any] | pd.Index | None = None,
        duplicates: Literal["error", "first", "last"] = "error",
    ) -> TextCrowd:
        """Build a crowd from a table with one text per row.

        Parameters
        ----------
        frame : DataFrame, Arrow table or dict of columns
            Table of pandas, polars, pyarrow, duckdb, or any other library that exports Arrow streams.
        task, worker, text : str
            Names of the columns.
        tasks, workers : sequence or Index, default=None
            Vocabularies in their order.
        duplicates : {"error", "first", "last"}, default="error"
            Treatment of several texts of one worker on one task.

        Returns
        -------
        TextCrowd

        Raises
        ------
        InputError
            If a column is absent, a value is missing, or texts are no texts.
        """
        check_choice("duplicates", duplicates, ("error", "first", "last"))
        table = as_table(frame, [task, worker, text])
        absent = [name for name in (task, worker, text) if name not in table.column_names]
        if absent:
            raise InputError(
                f"no column {preview(absent)} among {preview(table.column_names, 12)}. Name your columns, for example "
                'task="recording", worker="rater", text="transcription"'
            )
        column = table[text]
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise InputError(f"the column {text} holds {column.type}; expected texts")
        vocab.check_no_missing(column, "text")
        task_codes, task_index = vocab.encode_ids(table[task], "task", tasks)
        worker_codes, worker_index = vocab.encode_ids(table[worker], "worker", workers)
        texts = np.asarray(column.to_pylist(), dtype=object)
        rows = np.arange(len(texts))
        if duplicates != "error" and len(rows):
            key = task_codes.astype(np.int64) * len(worker_index) + worker_codes
            _, rows = np.unique(key if duplicates == "first" else key[::-1], return_index=True)
            rows = np.sort(rows if duplicates == "first" else len(key) - 1 - rows)
        return cls(task_codes[rows], worker_codes[rows], texts[rows], tasks=task_index, workers=worker_index)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents; equal crowds have equal digests."""
        return compute_answers_digest("texts", (self.tasks, self.workers, self.text), (self.task, self.worker))

    def take(self, rows: ArrayLike) -> TextCrowd:
        """Select texts; the vocabularies stay the same.

        Parameters
        ----------
        rows : array-like
            Mask, or positions, of the texts to keep.

        Returns
        -------
        TextCrowd
        """
        selected = self._select_rows(rows)
        return TextCrowd(
            self.task[selected], self.worker[selected], self.text[selected], tasks=self.tasks, workers=self.workers
        )

    def to_frame(self) -> pd.DataFrame:
        """Convert the votes to a table.

        Returns
        -------
        DataFrame
            Columns task, worker and text.
        """
        columns = {"task": self.tasks.take(self.task), "worker": self.workers.take(self.worker), "text": self.text}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        mean_length = float(np.mean([len(text) for text in self.text])) if self.n_votes else 0.0
        return (
            f"TextCrowd({count_noun(self.n_votes, 'text')}: {count_noun(self.n_tasks, 'task')} x "
            f"{count_noun(self.n_workers, 'worker')}, {mean_length:.1f} characters/text)"
        )
