"""The EM loop, once: a step repeated until nothing is gained, and extrapolated where that leads further.

EM alternates between *statistics*, which add up over tasks, and the *parameters* that maximise the expected
log-joint given them. The loop works on statistics alone: they are non-negative, they live in a linear space, and any
of them leads to valid parameters, so extrapolating them (SQUAREM) needs no care for constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import progress

#: Raise when an EM step lowers the objective, which exact EM never does. The tests switch it on.
assert_monotone = False


class Statistics(NamedTuple):
    """What adds up over tasks: posteriors by class, and by (worker, label) pair and class.

    >>> Statistics(np.ones(2), np.ones((3, 2))).tally.shape
    (3, 2)
    """

    classes: NDArray[np.float64]
    tally: NDArray[Any]


#: From statistics to (the statistics of the next E-step, the objective of the parameters in between).
Step = Callable[[Statistics], tuple[Statistics, float]]


class Run(NamedTuple):
    """How an iteration went: where it ended, the objective at every pass, and whether it settled.

    >>> Run(Statistics(np.ones(1), np.ones((1, 1))), [-2.0, -1.5], True).trace[-1]
    -1.5
    """

    statistics: Statistics
    trace: list[float]
    converged: bool


def iterate(
    step: Step, start: Statistics, *, max_iter: int, tol: float, accelerate: bool = True, monotone: bool = True,
    what: str = "EM",
) -> Run:  # fmt: skip
    """Repeat an EM step until the objective rises by less than ``tol`` of its size.

    With ``accelerate``, every two plain steps are followed by one extrapolated step (SQUAREM, Varadhan and Roland 2008,
    scheme S3), which is taken back when it lowers the objective: the trace never falls.

    >>> def halve(statistics):  # a step whose objective is highest at zero
    ...     return Statistics(statistics.classes / 2, statistics.tally), -float(statistics.classes.sum())
    >>> run = iterate(halve, Statistics(np.ones(2), np.zeros((1, 2))), max_iter=100, tol=1e-6)
    >>> run.converged, bool(run.trace[-1] > -1e-3)
    (True, True)
    """
    trace: list[float] = []

    def settled(objective: float) -> bool:
        trace.append(objective)
        progress.report(what, len(trace), max_iter, f"log-likelihood {objective:,.2f}")
        if len(trace) < 2:
            return False
        gain, slack = trace[-1] - trace[-2], 1e-8 * (1 + abs(objective))
        if assert_monotone and monotone and gain < -slack:
            raise AssertionError(f"an EM step of {what} lowered the objective by {-gain:.3g}")
        return abs(gain) <= tol * (abs(objective) + 1e-12)

    here = start
    while len(trace) < max_iter:
        first, objective = step(here)
        if settled(objective):
            return Run(first, trace, True)
        if not accelerate or len(trace) + 2 > max_iter:
            here = first
            continue
        second, objective = step(first)
        if settled(objective):
            return Run(second, trace, True)
        jump = _extrapolate(here, first, second)
        here = second
        if jump is not None:
            landed, objective = step(jump)
            if objective >= trace[-1]:
                trace.append(objective)
                here = landed
    return Run(here, trace, False)


def _extrapolate(zero: Statistics, one: Statistics, two: Statistics) -> Statistics | None:
    """Where two steps seem to lead, or None when they lead no further than the second step."""
    change = [b - a for a, b in zip(zero, one, strict=True)]
    bend = [(c - b) - d for b, c, d in zip(one, two, change, strict=True)]
    length = np.sqrt(sum(map(_square, change)) / max(sum(map(_square, bend)), 1e-300))
    if length <= 1:
        return None
    return Statistics(*(
        np.maximum(a + 2 * length * d + length**2 * v, 0)
        for a, d, v in zip(zero, change, bend, strict=True)
    ))  # fmt: skip


def _square(table: NDArray[Any]) -> float:  # not by BLAS, whose threads cost more than they save here
    return float(np.einsum("i,i->", table.ravel(), table.ravel()))
