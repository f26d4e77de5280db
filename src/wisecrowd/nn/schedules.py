"""Learning rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

ScheduleName = Literal["constant", "cosine", "onecycle", "step"]

#: Share of a one-cycle schedule in which the rate rises, and its first and last factor; the defaults of torch's OneCycleLR.
RISING_SHARE, FIRST_FACTOR, LAST_FACTOR = 0.3, 1 / 25, 1 / 250_000


def _interpolate_cosine(start: float, end: float, share: float) -> float:
    """Return a value between ``start`` and ``end`` on half a period of a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _one_cycle(progress: float) -> float:
    """Return the factor of a one-cycle schedule."""
    if progress < RISING_SHARE:
        return _interpolate_cosine(FIRST_FACTOR, 1.0, progress / RISING_SHARE)
    return _interpolate_cosine(1.0, LAST_FACTOR, (progress - RISING_SHARE) / 0.7)


#: Functions from the completed share of training to a factor of the learning rate. They have no state that a checkpoint would hold.
SCHEDULES: dict[ScheduleName, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "cosine": lambda progress: _interpolate_cosine(1.0, 0.0, progress),
    "onecycle": _one_cycle,
    "step": lambda progress: 1.0 if progress < 2 / 3 else 0.1,
}


def compute_rectification(step: int, beta: float = 0.999) -> float:
    """Return the factor by which RAdam shortens a step of Adam while its second moments rest on few gradients.

    Parameters
    ----------
    step : int
        Number of the step, from 1.
    beta : float, default 0.999
        Decay rate of the second moments.

    Returns
    -------
    float
        Factor from 0 to 1 (Liu et al., 2020).

    Examples
    --------
    >>> [round(compute_rectification(step), 2) for step in (1, 100, 1000, 10_000)]
    [0.0, 0.22, 0.65, 1.0]
    """
    longest, decay = 2 / (1 - beta) - 1, beta**step
    length = longest - 2 * step * decay / (1 - decay)
    if length <= 5:
        return 0.0
    return math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
