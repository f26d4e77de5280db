"""Types of answers that workers give."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: One of several classes; one of several ordered classes; a number; the better of two items; a set of labels; marks in an
#: image or a text; pixels of an image; a score of a judge; a text.
AnswerType: TypeAlias = Literal[
    "categorical",
    "ordinal",
    "numeric",
    "pairwise",
    "multilabel",
    "boxes",
    "points",
    "polygons",
    "spans",
    "masks",
    "scores",
    "texts",
]
