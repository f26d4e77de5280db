"""Types of answers that workers give."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: What a label is: one of several classes, one of several ordered classes, or a number.
AnswerType: TypeAlias = Literal["categorical", "ordinal", "numeric"]
