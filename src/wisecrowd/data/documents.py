"""Texts of tasks as tokens, for methods that use words and sentences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data.arrow_tables import DataFrameLike, as_table
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import InputError, preview
from wisecrowd.utils.text import count_noun


class TokenTexts(NamedTuple):
    """Tokens of the tasks of a crowd, one task after the other.

    Parameters
    ----------
    length : ndarray of shape (n_tasks,)
        Number of tokens of each task.
    begins_sentence : ndarray of shape (n_tokens,)
        Whether a token is the first of a sentence. The first token of a task always is.
    word : ndarray of shape (n_tokens,) or None
        Codes of words; None if they are not known.
    n_words : int
        Number of different words.
    """

    length: NDArray[np.int64]
    begins_sentence: NDArray[np.bool_]
    word: NDArray[np.int64] | None
    n_words: int

    @property
    def offset(self) -> NDArray[np.int64]:
        """Task ``t`` has the tokens ``offset[t]:offset[t + 1]``."""
        return np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)

    @classmethod
    def from_marks(cls, crowd: SpanCrowd) -> TokenTexts:
        """Return texts that end one token after the last span, if no documents are given.

        Parameters
        ----------
        crowd : SpanCrowd
            Spans with offsets in tokens.

        Returns
        -------
        TokenTexts

        Examples
        --------
        >>> crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [1], "end": [3]})
        >>> TokenTexts.from_marks(crowd).length.tolist()
        [4]
        """
        length = np.ones(crowd.n_tasks, dtype=np.int64)
        np.maximum.at(length, crowd.mark_task, crowd.coordinates[:, 1].astype(np.int64) + 1)
        return cls(length, _mark_first_tokens(length), None, 0)

    @classmethod
    def from_frame(cls, documents: DataFrameLike, crowd: SpanCrowd) -> TokenTexts:
        """Read the tokens of all tasks of a crowd from a table of documents.

        Parameters
        ----------
        documents : DataFrame, Arrow table or dict of columns
            Columns task, tokens (lists of texts) and optionally sentences (lists with the first token of each sentence).
        crowd : SpanCrowd
            Spans with offsets in tokens.

        Returns
        -------
        TokenTexts

        Raises
        ------
        InputError
            If a document is missing or repeated, or a span ends after its document.

        Examples
        --------
        >>> crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [1], "end": [3]})
        >>> texts = TokenTexts.from_frame({"task": ["d"], "tokens": [["in", "New", "York", "in"]]}, crowd)
        >>> texts.length.tolist(), texts.n_words
        ([4], 3)
        """
        table = as_table(documents, ["task", "tokens", "sentences"])
        absent = [name for name in ("task", "tokens") if name not in table.column_names]
        if absent:
            raise InputError(f"documents have no column {preview(absent)}; expected task and tokens (lists of texts)")
        ids = vocab.as_id_index(vocab.as_exact_ids(table["task"], "task"), "task")
        if not ids.is_unique:
            raise InputError(f"documents repeat task {preview(ids[ids.duplicated()])}; list each document once")
        row = ids.get_indexer(crowd.tasks)
        if (row < 0).any():
            unknown = crowd.tasks[row < 0]
            raise InputError(
                f"{count_noun(len(unknown), 'task')} without a document ({preview(unknown)}); add them, or leave documents out"
            )
        tokens = _take_lists(table, "tokens", row)
        length = pc.list_value_length(tokens).to_numpy(zero_copy_only=False).astype(np.int64)
        is_beyond = crowd.coordinates[:, 1] > length[crowd.mark_task]
        if is_beyond.any():
            mark = int(np.flatnonzero(is_beyond)[0])
            task = crowd.mark_task[mark]
            raise InputError(
                f"{count_noun(int(is_beyond.sum()), 'span')} beyond the end of the document: task {preview([crowd.tasks[task]])} "
                f"has {count_noun(int(length[task]), 'token')}, and a span ends at {crowd.coordinates[mark, 1]:g}. Offsets "
                "must count tokens, not characters"
            )
        codes, words = pd.factorize(pc.list_flatten(tokens).to_numpy(zero_copy_only=False))
        begins = _mark_first_tokens(length)
        if "sentences" in table.column_names:
            sentences = _take_lists(table, "sentences", row)
            start = pc.list_flatten(sentences).to_numpy(zero_copy_only=False).astype(np.int64)
            parent = pc.list_parent_indices(sentences).to_numpy(zero_copy_only=False)
            is_inside = (start >= 0) & (start < length[parent])
            begins[(np.cumsum(length) - length)[parent[is_inside]] + start[is_inside]] = True
        return cls(length, begins, codes.astype(np.int64), len(words))


def _take_lists(table: pa.Table, name: str, row: NDArray[np.int64]) -> pa.Array:
    """Return the lists of a column in the order of rows."""
    column = table[name]
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise InputError(f"the column {name} of documents holds {column.type}; expected lists")
    lists = column.take(pa.array(row)).combine_chunks()
    if lists.null_count:
        raise InputError(f"{count_noun(lists.null_count, 'document')} without {name}; give a list for each")
    return lists


def _mark_first_tokens(length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the first token of every task that has tokens."""
    begins = np.zeros(int(length.sum()), dtype=bool)
    begins[(np.cumsum(length) - length)[length > 0]] = True
    return begins
