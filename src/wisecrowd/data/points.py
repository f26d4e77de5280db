"""Points that workers set on objects of an image."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd


class PointCrowd(MarkCrowd):
    """Points of workers: x, y and a class.

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
    >>> PointCrowd.from_frame({"task": ["i1", "i1"], "worker": ["ann", "bob"], "x": [10, 11], "y": [5, 5]})
    PointCrowd(2 points in 2 votes: 1 task x 2 workers, 1 class)
    """

    answer_type: ClassVar[AnswerType] = "points"
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y")
    noun: ClassVar[str] = "point"
    plural: ClassVar[str] = "points"
    has_size: ClassVar[bool] = False

    @classmethod
    def _find_invalid(cls, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        return np.zeros(len(coordinates), dtype=bool), "numbers"
