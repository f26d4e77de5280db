"""How the step size changes while a network trains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

ScheduleName = Literal["constant", "cosine", "onecycle", "step"]


def _cosine(begin: float, end: float, share: float) -> float:
    return end + (begin - end) * (1 + math.cos(math.pi * share)) / 2


def _one_cycle(done: float) -> float:
    if done < 0.3:
        return _cosine(1 / 25, 1.0, done / 0.3)
    return _cosine(1.0, 1 / 250_000, (done - 0.3) / 0.7)


#: Share of training that is done -> factor of the learning rate. A schedule without a state has nothing to lose.
SCHEDULES: dict[ScheduleName, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "cosine": lambda done: _cosine(1.0, 0.0, done),
    "onecycle": _one_cycle,
    "step": lambda done: 1.0 if done < 2 / 3 else 0.1,
}


def rectified(step: int, beta: float = 0.999) -> float:
    """By how much RAdam shortens a step of Adam while its second moments are of few gradients (Liu et al. 2020).

    >>> [round(rectified(step), 2) for step in (1, 100, 1000, 10_000)]
    [0.0, 0.22, 0.65, 1.0]
    """
    longest, decay = 2 / (1 - beta) - 1, beta**step
    length = longest - 2 * step * decay / (1 - decay)
    if length <= 5:
        return 0.0
    return math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
