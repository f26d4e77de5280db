"""Spans that workers mark in texts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd


class SpanCrowd(MarkCrowd):
    """Spans of workers: start and end (exclusive) in characters or tokens, and a class. Spans may overlap and nest.

    See `MarkCrowd` for attributes and construction.

    Parameters
    ----------
    task, worker : array-like of shape (n_votes,)
        Positions in ``tasks`` and ``workers``.
    assignment, label : array-like of shape (n_marks,)
        Position of the assignment of a mark, and position of its class in ``classes``.
    coordinates : array-like of shape (n_marks, n_coordinates)
        Place of every mark.
    tasks, workers, classes : Index
        Vocabularies.

    Examples
    --------
    >>> frame = {"task": ["d1", "d1"], "worker": ["ann", "bob"], "start": [0, 0], "end": [2, 3], "label": ["PER", "PER"]}
    >>> SpanCrowd.from_frame(frame)
    SpanCrowd(2 spans in 2 votes: 1 task x 2 workers, 1 class)
    """

    answer_type: ClassVar[AnswerType] = "spans"
    coordinate_names: ClassVar[tuple[str, ...]] = ("start", "end")
    noun: ClassVar[str] = "span"
    plural: ClassVar[str] = "spans"

    @classmethod
    def _find_invalid(cls, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        start, end = coordinates.T
        is_valid = (start >= 0) & (end > start) & (start == np.floor(start)) & (end == np.floor(end))
        return ~is_valid, "whole numbers with 0 ≤ start < end (end is exclusive)"

    @classmethod
    def format_coordinates(cls, coordinates: NDArray[np.float64]) -> list[Any]:
        """Return offsets as columns of whole numbers.

        Parameters
        ----------
        coordinates : ndarray of shape (n, 2)
            Offsets; NaN where nothing was marked.

        Returns
        -------
        list of array
        """
        if np.isnan(coordinates).any():
            return [pd.array(column).astype("Int64") for column in coordinates.T]
        return [column.astype(np.int64) for column in coordinates.T]
