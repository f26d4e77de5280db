"""Metrics, intervals, calibration and model selection, with and without ground truth; evaluation with judges.

>>> from wisecrowd import evaluate
>>> evaluate.rate.__module__
'wisecrowd.evaluate.judged_systems'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

#: Public name of this package -> the module that defines it; names load when they are first used.
_HOME = {
    "difference": "judged_systems",
    "plan_labels": "label_plan",
    "prediction_powered_mean": "prediction_powered",
    "rank": "judged_systems",
    "rate": "judged_systems",
}

__all__ = [*_HOME]

if TYPE_CHECKING:
    from wisecrowd.evaluate.judged_systems import difference as difference
    from wisecrowd.evaluate.judged_systems import rank as rank
    from wisecrowd.evaluate.judged_systems import rate as rate
    from wisecrowd.evaluate.label_plan import plan_labels as plan_labels
    from wisecrowd.evaluate.prediction_powered import prediction_powered_mean as prediction_powered_mean


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wisecrowd.evaluate' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"wisecrowd.evaluate.{_HOME[name]}"), name)
    globals()[name] = value
    return value
