"""Boxes that workers draw around objects of an image."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd


class BoxCrowd(MarkCrowd):
    """Boxes of workers: x and y of the upper left corner, width and height, and a class.

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
    >>> frame = {"task": ["i1", "i1", "i2"], "worker": ["ann", "bob", "ann"], "x": [10, 12, None], "y": [5, 5, None],
    ...          "width": [20, 21, None], "height": [30, 28, None], "label": ["cat", "cat", None]}
    >>> BoxCrowd.from_frame(frame)
    BoxCrowd(2 boxes in 3 votes: 2 tasks x 2 workers, 1 class)
    """

    answer_type: ClassVar[AnswerType] = "boxes"
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "width", "height")
    noun: ClassVar[str] = "box"
    plural: ClassVar[str] = "boxes"

    @classmethod
    def _find_invalid(cls, coordinates: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        return np.asarray(~(coordinates[:, 2:] > 0).all(axis=1)), "a positive width and height"
