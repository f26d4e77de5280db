"""GLAD."""

from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar
import numpy as np
from wisecrowd.aggregate._difficulty import Array, DifficultyEM, Line


@dataclass(kw_only=True, eq=False, repr=False)
class GLAD(DifficultyEM):
    """GLAD."""

    difficulty_mean: float = field(default=-1.0, metadata={"help": "what to think of a task before any vote"})

    def _line(self, tasks: Array) -> Line:
        easiness = np.exp(-np.clip(tasks[0], -20, 20))
        return Line(easiness, np.zeros_like(easiness), -easiness[None], np.zeros_like(tasks))
