"""R."""

from __future__ import annotations
from dataclasses import dataclass, field
import numpy as np
from wisecrowd.aggregate._difficulty import Array, DifficultyEM, Line


@dataclass(kw_only=True, eq=False, repr=False)
class TwoPL(DifficultyEM):
    """R."""
    discrimination_sd: float = 0.5
    def _task_priors(self):
        return [*super()._task_priors(), (0.0, self.discrimination_sd)]

    def _line(self, tasks: Array) -> Line:
        difficulty, log_slope = tasks
        slope = np.exp(np.clip(log_slope, -20, 20))
        shift = slope * difficulty
        return Line(slope, shift, np.stack([np.zeros_like(slope), slope]), np.stack([slope, shift]))
