"""The EM loop, restarts from several starting points, and fixed-point iteration.

EM alternates between *statistics*, which add up over tasks, and the *parameters* that maximise the expected log-joint
given the statistics. The loop works on statistics only. They are non-negative, they live in a linear space, and any value of
them leads to valid parameters; so extrapolated statistics (SQUAREM) need no treatment of constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import Checkpoint, CheckpointState, check_trace
from wisecrowd.errors import preview
from wisecrowd.utils import progress

State = TypeVar("State")

#: Largest ratio of a count in a checkpoint to the sum of all counts of a start; both count the same votes.
MAX_GROWTH = 1e6
#: Raise an error when an EM step lowers the objective, which exact EM never does. The tests switch it on.
assert_monotone = False


class Statistics(NamedTuple):
    """Sufficient statistics of EM, which add up over tasks.

    Attributes
    ----------
    class_counts : ndarray of shape (n_classes,)
        Sum of the posteriors of all tasks.
    tally : ndarray of shape (n_pairs, n_classes)
        Sum of the posteriors by (worker, label) pair.

    Examples
    --------
    >>> Statistics(np.ones(2), np.ones((3, 2))).tally.shape
    (3, 2)
    """

    class_counts: NDArray[np.float64]
    tally: NDArray[Any]


#: Function from statistics to (statistics after the next E-step, objective of the parameters in between).
Step = Callable[[Statistics], tuple[Statistics, float]]
#: Function called before every EM step with the current statistics and the trace; an iteration can resume from these.
StateCallback = Callable[[Statistics, list[float]], None]


class EMResult(NamedTuple):
    """Result of an EM iteration.

    Attributes
    ----------
    statistics : Statistics
        Statistics after the last E-step.
    trace : list of float
        Objective of every iteration.
    converged : bool
        Whether the objective stopped rising before ``max_iter`` iterations.

    Examples
    --------
    >>> EMResult(Statistics(np.ones(1), np.ones((1, 1))), [-2.0, -1.5], True).trace[-1]
    -1.5
    """

    statistics: Statistics
    trace: list[float]
    converged: bool


def run_em(
    step: Step,
    start: Statistics,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = True,
    monotone: bool = True,
    title: str = "EM",
    trace: Sequence[float] = (),
    callback: StateCallback | None = None,
    has_settled: Callable[[], bool] | None = None,
) -> EMResult:
    """Repeat an EM step until the objective changes by less than a fraction ``tol``.

    With ``accelerate``, an extrapolated step follows every two plain steps (SQUAREM, Varadhan and Roland 2008, scheme S3). It
    is discarded if it lowers the objective, so the trace never falls.

    Parameters
    ----------
    step : callable
        M-step followed by E-step.
    start : Statistics
        Statistics to start from.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Relative change of the objective below which the iteration has converged.
    accelerate : bool, default True
        Extrapolate every third step.
    monotone : bool, default True
        Whether the step is exact EM, whose objective never falls. Checked in tests only.
    title : str, default "EM"
        Name in the progress bar.
    trace : sequence of float, default ()
        Trace of an interrupted iteration that resumes from ``start``; the result is the same to the last bit.
    callback : callable, optional
        Function called with statistics and trace before every step.
    has_settled : callable, optional
        Further condition that must be true for the iteration to have converged.

    Returns
    -------
    EMResult

    Examples
    --------
    >>> def halve(statistics):  # a step whose objective is highest at zero
    ...     return Statistics(statistics.class_counts / 2, statistics.tally), -float(statistics.class_counts.sum())
    >>> result = run_em(halve, Statistics(np.ones(2), np.zeros((1, 2))), max_iter=100, tol=1e-6)
    >>> result.converged, bool(result.trace[-1] > -1e-3)
    (True, True)
    """
    objectives: list[float] = list(trace)

    def has_converged(objective: float) -> bool:
        objectives.append(objective)
        progress.report(title, len(objectives), max_iter, f"log-likelihood {objective:,.2f}")
        if len(objectives) < 2:
            return False
        gain, slack = objectives[-1] - objectives[-2], 1e-8 * (1 + abs(objective))
        if assert_monotone and monotone and gain < -slack:
            raise AssertionError(f"an EM step of {title} lowered the objective by {-gain:.3g}")
        return abs(gain) <= tol * (abs(objective) + 1e-12) and (has_settled is None or has_settled())

    current = start
    while len(objectives) < max_iter:
        if callback is not None:
            callback(current, objectives)
        first, objective = step(current)
        if has_converged(objective):
            return EMResult(first, objectives, True)
        if not accelerate or len(objectives) + 2 > max_iter:
            current = first
            continue
        second, objective = step(first)
        if has_converged(objective):
            return EMResult(second, objectives, True)
        extrapolated = _extrapolate(current, first, second)
        current = second
        if extrapolated is not None:
            third, objective = step(extrapolated)
            if objective >= objectives[-1]:
                objectives.append(objective)
                current = third
    return EMResult(current, objectives, False)


class RestartSummary(NamedTuple):
    """Outcome of one of several EM iterations.

    Attributes
    ----------
    objective : float
        Objective of the last iteration.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the objective stopped rising before ``max_iter`` iterations.

    Examples
    --------
    >>> RestartSummary(-1.5, 7, True).n_iter
    7
    """

    objective: float
    n_iter: int
    converged: bool


def run_restarts(
    starts: Iterable[Statistics],
    run: Callable[[Statistics, Sequence[float], StateCallback], EMResult],
    *,
    tol: float,
    checkpoint: Checkpoint,
) -> tuple[EMResult, list[RestartSummary]]:
    """Run EM from several starting points and return the result with the highest objective.

    Of results whose objectives differ by no more than the tolerance, the first one is returned, since the difference between
    them is an accident of where the iterations stopped.

    Parameters
    ----------
    starts : iterable of Statistics
        Starting points.
    run : callable
        Function of a starting point, the trace before it, and a callback; returns the result of EM.
    tol : float
        Tolerance of the iteration.
    checkpoint : Checkpoint
        File that keeps the state; an interrupted run resumes from it.

    Returns
    -------
    best : EMResult
    restarts : list of RestartSummary
        One entry per starting point.

    Examples
    --------
    >>> def halve(statistics):
    ...     return Statistics(statistics.class_counts / 2, statistics.tally), -float(statistics.class_counts.sum())
    >>> def run(start, trace, callback):
    ...     return run_em(halve, start, trace=trace, callback=callback, max_iter=9, tol=1e-6, accelerate=False)
    >>> starts = [Statistics(np.full(2, size), np.zeros((1, 2))) for size in (8.0, 1.0)]
    >>> best, restarts = run_restarts(starts, run, tol=1e-6, checkpoint=Checkpoint(None, {}))
    >>> best.trace[0], [restart.n_iter for restart in restarts]
    (-2.0, [9, 9])
    """
    state = checkpoint.read()
    best: EMResult | None = None
    restarts: list[RestartSummary] = []
    current: Statistics | None = None
    trace: list[float] = []

    def make_state(best: EMResult | None, current: Statistics | None, trace: Sequence[float]) -> CheckpointState:
        tables = {"best": None if best is None else best.statistics, "current": current}
        arrays = {f"{name}_{key}": table for name, statistics in tables.items() if statistics is not None
                  for key, table in statistics._asdict().items()}  # fmt: skip
        values = {"restarts": restarts, "trace": list(trace)}
        return CheckpointState(arrays, values | ({} if best is None else {"best": [best.trace, best.converged]}))

    def save(statistics: Statistics, trace: list[float]) -> None:
        checkpoint.write_if_due(lambda: make_state(best, statistics, trace))

    for number, start in enumerate(starts):
        if number == 0 and state is not None:
            with checkpoint.refuse_damage():
                best, restarts, current, trace = _parse_state(state, start)
        if number < len(restarts):
            continue
        result = run(start if current is None else current, trace, save)
        current, trace = None, []
        restarts.append(RestartSummary(result.trace[-1], len(result.trace), result.converged))
        if best is None or result.trace[-1] - best.trace[-1] > 10 * tol * abs(best.trace[-1]):
            best = result
        checkpoint.write_if_due(lambda: make_state(best, None, []), final=True)  # noqa: B023  # called at once
    assert best is not None
    return best, restarts


def _parse_state(
    state: CheckpointState, start: Statistics
) -> tuple[EMResult | None, list[RestartSummary], Statistics | None, list[float]]:
    """Return the best result so far, all outcomes, and statistics and trace of the interrupted iteration."""
    tables: dict[str, Statistics] = {}
    for name in ("best", "current"):
        if f"{name}_tally" in state.arrays:
            parts = {
                key: state.read_numbers(f"{name}_{key}", part.shape, lowest=0) for key, part in start._asdict().items()
            }
            if any(part.max(initial=0) > MAX_GROWTH * max(1, getattr(start, key).sum()) for key, part in parts.items()):
                raise ValueError(f"the {name} statistics are larger than those of the votes")
            if not all(part.sum() > 0 or not part.size for part in parts.values()):
                raise ValueError(f"the {name} statistics count nothing")
            tables[name] = Statistics(**{key: part.astype(getattr(start, key).dtype) for key, part in parts.items()})
    restarts = [_parse_restart(restart) for restart in state.json_values["restarts"]]
    if bool(restarts) != ("best" in tables):
        raise ValueError("it has outcomes without statistics, or statistics without outcomes")
    best = None
    if "best" in tables:
        best_trace, converged = state.json_values["best"]
        best = EMResult(tables["best"], check_trace(best_trace), bool(converged))
        if not best.trace:
            raise ValueError("the best trace is empty")
    return best, restarts, tables.get("current"), state.read_trace()


def _parse_restart(values: Any) -> RestartSummary:
    """Return the outcome of a restart from its JSON form."""
    objective, n_iter, converged = values
    [objective] = check_trace([objective])
    if type(n_iter) is not int or type(converged) is not bool:
        raise ValueError(f"the outcome of a restart is {preview([values])}")
    return RestartSummary(objective, n_iter, converged)


def _extrapolate(zero: Statistics, one: Statistics, two: Statistics) -> Statistics | None:
    """Return the SQUAREM extrapolation of two steps, or None if it reaches no further than the second step."""
    change = [b - a for a, b in zip(zero, one, strict=True)]
    bend = [(c - b) - d for b, c, d in zip(one, two, change, strict=True)]
    length = np.sqrt(sum(map(_sum_squares, change)) / max(sum(map(_sum_squares, bend)), 1e-300))
    if length <= 1:
        return None
    return Statistics(*(
        np.maximum(a + 2 * length * d + length**2 * v, 0)
        for a, d, v in zip(zero, change, bend, strict=True)
    ))  # fmt: skip


def _sum_squares(table: NDArray[Any]) -> float:
    """Return the sum of squares without BLAS, whose threads cost more than they save here."""
    return float(np.einsum("i,i->", table.ravel(), table.ravel()))


class FixedPoint(NamedTuple, Generic[State]):
    """Result of a fixed-point iteration.

    Attributes
    ----------
    state : State
        Last state.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the last step changed the state by no more than the tolerance.

    Examples
    --------
    >>> FixedPoint(0.5, n_iter=3, converged=True).n_iter
    3
    """

    state: State
    n_iter: int
    converged: bool


def iterate_to_fixed_point(
    step: Callable[[State], tuple[State, float]],
    start: State,
    *,
    max_iter: int,
    tol: float,
    title: str | None = None,
    message: str = "change {:.2g}",
) -> FixedPoint[State]:
    """Repeat a step until it changes the state by no more than ``tol``.

    This is the loop of methods without a likelihood, such as weighted votes. Methods with an objective use `run_em`.

    Parameters
    ----------
    step : callable
        Function from a state to (next state, size of the change).
    start : object
        State to start from.
    max_iter : int
        Maximum number of steps.
    tol : float
        Largest change of a converged iteration.
    title : str, optional
        Name in the progress bar; None shows no progress.
    message : str, default "change {:.2g}"
        Format of the change in the progress bar.

    Returns
    -------
    FixedPoint

    Examples
    --------
    >>> result = iterate_to_fixed_point(lambda x: (x / 2, abs(x) / 2), 1.0, max_iter=100, tol=1e-3)
    >>> result.n_iter, result.converged
    (10, True)
    """
    state, n_iter, converged = start, 0, False
    while n_iter < max_iter and not converged:
        state, change = step(state)
        n_iter += 1
        converged = bool(change <= tol)
        if title is not None:
            progress.report(title, n_iter, max_iter, message.format(change))
    return FixedPoint(state, n_iter, converged)
