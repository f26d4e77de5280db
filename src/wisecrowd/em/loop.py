"""The EM loop, once: a step repeated until nothing is gained, and extrapolated where that leads further.

EM alternates between *statistics*, which add up over tasks, and the *parameters* that maximise the expected
log-joint given them. The loop works on statistics alone: they are non-negative, they live in a linear space, and any
of them leads to valid parameters, so extrapolating them (SQUAREM) needs no care for constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import Standing
from wisecrowd.utils import progress

#: Raise when an EM step lowers the objective, which exact EM never does. The tests switch it on.
assert_monotone = False


class Statistics(NamedTuple):
    """What adds up over tasks: posteriors by class, and by (worker, label) pair and class.

    >>> Statistics(np.ones(2), np.ones((3, 2))).tally.shape
    (3, 2)
    """

    classes: NDArray[np.float64]
    tally: NDArray[Any]


#: Told where an iteration stands: statistics and trace, from which it can go on.
Watch = Callable[[Statistics, list[float]], None]
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
    what: str = "EM", before: Sequence[float] = (), watch: Watch | None = None,
) -> Run:  # fmt: skip
    """Repeat an EM step until the objective rises by less than ``tol`` of its size.

    With ``accelerate``, every two plain steps are followed by one extrapolated step (SQUAREM, Varadhan and Roland 2008,
    scheme S3), which is taken back when it lowers the objective: the trace never falls. An iteration that was interrupted goes
    on to the same bits from what ``watch`` was last told: statistics as ``start``, and the trace as ``before``.

    >>> def halve(statistics):  # a step whose objective is highest at zero
    ...     return Statistics(statistics.classes / 2, statistics.tally), -float(statistics.classes.sum())
    >>> run = iterate(halve, Statistics(np.ones(2), np.zeros((1, 2))), max_iter=100, tol=1e-6)
    >>> run.converged, bool(run.trace[-1] > -1e-3)
    (True, True)
    """
    trace: list[float] = list(before)

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
        if watch is not None:
            watch(here, trace)
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


class Restart(NamedTuple):
    """How one of several starts ended.

    >>> Restart(-1.5, 7, True).n_iter
    7
    """

    objective: float
    n_iter: int
    converged: bool


def best_of(
    starts: Iterable[Statistics], go: Callable[[Statistics, Sequence[float], Watch], Run], *, tol: float,
    standing: Standing,
) -> tuple[Run, list[Restart]]:  # fmt: skip
    """Iterate from several starts and keep the best end; where it stands is kept, and gone on from.

    ``go`` iterates from statistics, given the trace before them and whom to tell. Of starts that ended on one top the
    first is kept, for which came nearest is chance.

    >>> def halve(statistics):
    ...     return Statistics(statistics.classes / 2, statistics.tally), -float(statistics.classes.sum())
    >>> def go(start, before, watch):
    ...     return iterate(halve, start, before=before, watch=watch, max_iter=9, tol=1e-6, accelerate=False)
    >>> starts = [Statistics(np.full(2, size), np.zeros((1, 2))) for size in (8.0, 1.0)]
    >>> run, restarts = best_of(starts, go, tol=1e-6, standing=Standing(None, {}))
    >>> run.trace[0], [restart.n_iter for restart in restarts]
    (-2.0, [9, 9])
    """
    best, restarts, here, before = _resumed(standing)

    def kept(run: Run | None, here: Statistics | None, trace: Sequence[float], *, last: bool = False) -> None:
        if not (last or standing.due()):
            return
        tables = {"best": None if run is None else run.statistics, "here": here}
        arrays = {f"{name}_{key}": table for name, found in tables.items() if found is not None
                  for key, table in found._asdict().items()}  # fmt: skip
        told = {"restarts": restarts, "trace": list(trace)}
        standing.write(told | ({} if run is None else {"best": [run.trace, run.converged]}), arrays)

    for first in islice(starts, len(restarts), None):
        run = go(first if here is None else here, before, lambda now, trace: kept(best, now, trace))  # noqa: B023
        here, before = None, []
        restarts.append(Restart(run.trace[-1], len(run.trace), run.converged))
        if best is None or run.trace[-1] - best.trace[-1] > 10 * tol * abs(best.trace[-1]):
            best = run
        kept(best, None, [], last=True)
    assert best is not None
    return best, restarts


def _resumed(standing: Standing) -> tuple[Run | None, list[Restart], Statistics | None, list[float]]:
    """The best end so far, how starts ended, and the statistics and trace of the one that was interrupted."""
    found = standing.read()
    if found is None:
        return None, [], None, []
    told, arrays = found
    best, here = (
        Statistics(arrays[f"{name}_classes"], arrays[f"{name}_tally"]) if f"{name}_tally" in arrays else None
        for name in ("best", "here")
    )
    run = None if best is None else Run(best, *told["best"])
    return run, [Restart(*restart) for restart in told["restarts"]], here, told["trace"]


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
