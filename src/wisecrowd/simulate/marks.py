"""Simulated boxes, points and spans with known objects and known workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.points import PointCrowd
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.errors import UsageError

Array = NDArray[np.float64]
Marks = TypeVar("Marks", bound=MarkCrowd)

#: Side of simulated images.
IMAGE_SIZE = 1000.0
#: Smallest and largest side of simulated objects.
SIDES = (20.0, 200.0)
#: Number of tokens per object of a simulated text, which leaves room between objects.
TOKENS_PER_OBJECT = 12
#: Largest number of tokens of an object.
MAX_SPAN = 4


@dataclass(frozen=True)
class SimulatedMarks(Generic[Marks]):
    """Marks with the objects that they were drawn from.

    Parameters
    ----------
    crowd : MarkCrowd
        Votes.
    truth : DataFrame
        Objects: task, coordinates, label, and whether the object is difficult.
    workers : DataFrame
        True detection rate, false alarms per task, accuracy of classes and error of boundaries of every worker.
    """

    crowd: Marks
    truth: pd.DataFrame
    workers: pd.DataFrame


@dataclass(frozen=True)
class _Drawing:
    """Marks before they have a place: who marks which object, and who makes how many false marks."""

    object_task: NDArray[np.int64]
    object_class: NDArray[np.int64]
    is_difficult: NDArray[np.bool_]
    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    hit_object: NDArray[np.int64]
    hit_assignment: NDArray[np.int64]
    false_assignment: NDArray[np.int64]
    label: NDArray[np.int64]
    boundary_error: Array
    workers: pd.DataFrame


def simulate_boxes(
    *,
    n_tasks: int = 200,
    n_workers: int = 20,
    votes_per_task: int = 5,
    objects_per_task: float = 4.0,
    n_classes: int = 1,
    detection_rate: float = 0.8,
    difficult_share: float = 0.0,
    false_alarms: float = 0.3,
    accuracy: float = 0.9,
    boundary_error: float = 0.05,
    worker_spread: float = 0.5,
    random_state: int = 0,
) -> SimulatedMarks[BoxCrowd]:
    """Simulate workers who draw boxes around the objects of images.

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task : int
        Numbers of tasks and workers, and of workers who see each task.
    objects_per_task : float, default=4.0
        Mean number of objects of a task.
    n_classes : int, default=1
        Number of classes.
    detection_rate : float, default=0.8
        Probability that an average worker marks an object.
    difficult_share : float, default=0.0
        Share of objects that workers detect less often, by 2 logits.
    false_alarms : float, default=0.3
        Mean number of false marks of a worker on a task.
    accuracy : float, default=0.9
        Probability that an average worker gives a detected object its class.
    boundary_error : float, default=0.05
        Standard deviation of edges relative to the size of an object.
    worker_spread : float, default=0.5
        Standard deviation of the workers' rates, in logits or logarithms.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedMarks

    Raises
    ------
    UsageError
        If a size or a rate is outside its range.

    Examples
    --------
    >>> simulation = simulate_boxes(n_tasks=10, n_workers=5, votes_per_task=2)
    >>> simulation.crowd.n_votes
    20
    """
    rng = np.random.default_rng(random_state)
    drawing = _draw_marks(
        rng, n_tasks, n_workers, votes_per_task, objects_per_task, n_classes, detection_rate, difficult_share,
        false_alarms, accuracy, boundary_error, worker_spread,
    )  # fmt: skip
    boxes = _draw_boxes(rng, len(drawing.object_task))
    edges = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])[drawing.hit_object]
    scale = np.tile(boxes[:, 2:], 2)[drawing.hit_object] * _errors_of_hits(drawing)
    edges = edges + scale * rng.standard_normal(edges.shape)
    begin, end = np.minimum(edges[:, :2], edges[:, 2:]), np.maximum(edges[:, :2], edges[:, 2:])
    hits = np.hstack([begin, np.maximum(end - begin, 1.0)])
    places = np.vstack([hits, _draw_boxes(rng, len(drawing.false_assignment))])
    return _finish(BoxCrowd, drawing, boxes, places, n_tasks, n_classes)


def simulate_points(
    *,
    n_tasks: int = 200,
    n_workers: int = 20,
    votes_per_task: int = 5,
    objects_per_task: float = 4.0,
    n_classes: int = 1,
    detection_rate: float = 0.8,
    difficult_share: float = 0.0,
    false_alarms: float = 0.3,
    accuracy: float = 0.9,
    boundary_error: float = 4.0,
    worker_spread: float = 0.5,
    random_state: int = 0,
) -> SimulatedMarks[PointCrowd]:
    """Simulate workers who set points on the objects of images of 1000 by 1000 pixels.

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task, objects_per_task, n_classes : int
        Sizes; see `simulate_boxes`.
    detection_rate, difficult_share, false_alarms, accuracy, worker_spread : float
        Rates; see `simulate_boxes`.
    boundary_error : float, default=4.0
        Standard deviation of points in pixels.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedMarks

    Examples
    --------
    >>> simulate_points(n_tasks=10, n_workers=5, votes_per_task=2).crowd.n_votes
    20
    """
    rng = np.random.default_rng(random_state)
    drawing = _draw_marks(
        rng, n_tasks, n_workers, votes_per_task, objects_per_task, n_classes, detection_rate, difficult_share,
        false_alarms, accuracy, boundary_error, worker_spread,
    )  # fmt: skip
    points = rng.uniform(0, IMAGE_SIZE, (len(drawing.object_task), 2))
    hits = points[drawing.hit_object]
    hits = hits + _errors_of_hits(drawing) * rng.standard_normal(hits.shape)
    places = np.vstack([hits, rng.uniform(0, IMAGE_SIZE, (len(drawing.false_assignment), 2))])
    return _finish(PointCrowd, drawing, points, places, n_tasks, n_classes)


def simulate_spans(
    *,
    n_tasks: int = 200,
    n_workers: int = 20,
    votes_per_task: int = 5,
    objects_per_task: float = 4.0,
    n_classes: int = 3,
    detection_rate: float = 0.8,
    difficult_share: float = 0.0,
    false_alarms: float = 0.3,
    accuracy: float = 0.9,
    boundary_error: float = 0.1,
    worker_spread: float = 0.5,
    random_state: int = 0,
) -> SimulatedMarks[SpanCrowd]:
    """Simulate workers who mark the spans of texts, in tokens.

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task, objects_per_task, n_classes : int
        Sizes; see `simulate_boxes`.
    detection_rate, difficult_share, false_alarms, accuracy, worker_spread : float
        Rates; see `simulate_boxes`.
    boundary_error : float, default=0.1
        Probability that an average worker sets a wrong start or end.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedMarks

    Examples
    --------
    >>> simulate_spans(n_tasks=10, n_workers=5, votes_per_task=2).truth.columns.tolist()
    ['task', 'start', 'end', 'label', 'is_difficult']
    """
    rng = np.random.default_rng(random_state)
    drawing = _draw_marks(
        rng, n_tasks, n_workers, votes_per_task, objects_per_task, n_classes, detection_rate, difficult_share,
        false_alarms, accuracy, boundary_error, worker_spread,
    )  # fmt: skip
    # Every object has a stretch of its own; the objects of a task are numbered from 0.
    task = drawing.object_task
    count = np.bincount(task, minlength=n_tasks)
    number = np.arange(len(task)) - (np.cumsum(count) - count)[task]
    length = rng.integers(1, MAX_SPAN + 1, len(task))
    start = number * TOKENS_PER_OBJECT + 2 + rng.integers(0, TOKENS_PER_OBJECT - MAX_SPAN - 4, len(task))
    spans = np.column_stack([start, start + length]).astype(np.float64)
    hits = spans[drawing.hit_object]
    is_wrong = rng.random(len(hits)) < _errors_of_hits(drawing)[:, 0]
    # A wrong boundary leaves out or adds one token at one end; a span of one token can only grow.
    at_end = rng.random(len(hits)) < 0.5
    grows = (rng.random(len(hits)) < 0.5) | (hits[:, 1] - hits[:, 0] == 1)
    step = np.where(grows, 1.0, -1.0) * is_wrong
    hits = hits + np.column_stack([-step * ~at_end, step * at_end])
    text_length = (np.maximum(count, 1) * TOKENS_PER_OBJECT)[drawing.task[drawing.false_assignment]]
    false_length = rng.integers(1, MAX_SPAN + 1, len(text_length))
    false_start = np.floor(rng.random(len(text_length)) * (text_length - false_length))
    places = np.vstack([hits, np.column_stack([false_start, false_start + false_length])])
    return _finish(SpanCrowd, drawing, spans, places, n_tasks, n_classes)


def _draw_marks(
    rng: np.random.Generator,
    n_tasks: int,
    n_workers: int,
    votes_per_task: int,
    objects_per_task: float,
    n_classes: int,
    detection_rate: float,
    difficult_share: float,
    false_alarms: float,
    accuracy: float,
    boundary_error: float,
    worker_spread: float,
) -> _Drawing:
    """Draw objects, workers, assignments, hits and the numbers of false marks."""
    if votes_per_task > n_workers or min(n_tasks, n_workers, votes_per_task, n_classes) < 1:
        raise UsageError(
            f"a task needs between 1 and {n_workers} different workers, and all sizes must be positive; got "
            f"votes_per_task={votes_per_task}"
        )
    if not (0 < detection_rate < 1 and 0 < accuracy < 1 and 0 <= difficult_share <= 1):
        raise UsageError("detection_rate and accuracy must be between 0 and 1, and difficult_share from 0 to 1")
    if not (objects_per_task >= 0 and false_alarms >= 0 and boundary_error >= 0):
        raise UsageError("objects_per_task, false_alarms and boundary_error must be 0 or more")

    def spread() -> Array:
        return worker_spread * rng.standard_normal(n_workers)

    detection_logit = np.log(detection_rate / (1 - detection_rate)) + spread()
    accuracy_logit = np.log(accuracy / (1 - accuracy)) + spread()
    alarms, errors = false_alarms * np.exp(spread()), boundary_error * np.exp(spread())
    object_task = np.repeat(np.arange(n_tasks), rng.poisson(objects_per_task, n_tasks))
    n_objects = len(object_task)
    object_class = rng.integers(0, n_classes, n_objects)
    is_difficult = rng.random(n_objects) < difficult_share
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :votes_per_task].ravel()
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    # Every object meets the workers of its task.
    chance_object = np.repeat(np.arange(n_objects), votes_per_task)
    chance = object_task[chance_object] * votes_per_task + np.tile(np.arange(votes_per_task), n_objects)
    logits = detection_logit[worker[chance]] - 2 * is_difficult[chance_object]
    is_hit = rng.random(len(chance)) < 1 / (1 + np.exp(-logits))
    hit_object, hit_assignment = chance_object[is_hit], chance[is_hit]
    is_right = rng.random(len(hit_object)) < 1 / (1 + np.exp(-accuracy_logit[worker[hit_assignment]]))
    other = (object_class[hit_object] + rng.integers(1, max(n_classes, 2), len(hit_object))) % n_classes
    false_assignment = np.repeat(np.arange(len(task)), rng.poisson(alarms[worker]))
    labels = np.concatenate(
        [np.where(is_right, object_class[hit_object], other), rng.integers(0, n_classes, len(false_assignment))]
    )
    rates = 1 / (1 + np.exp(-np.stack([detection_logit, detection_logit - 2])))
    share = difficult_share
    workers = pd.DataFrame(
        {
            "detection_rate": (1 - share) * rates[0] + share * rates[1],
            "false_alarms": alarms,
            "accuracy": 1 / (1 + np.exp(-accuracy_logit)),
            "boundary_error": errors,
        },
        index=pd.Index([f"w{number}" for number in range(n_workers)], name="worker"),
    )
    return _Drawing(
        object_task, object_class, is_difficult, task, worker, hit_object, hit_assignment, false_assignment, labels, errors,
        workers,
    )  # fmt: skip


def _errors_of_hits(drawing: _Drawing) -> Array:
    """Return the error of the worker of every hit, as a column."""
    return np.asarray(drawing.boundary_error[drawing.worker[drawing.hit_assignment]][:, None])


def _draw_boxes(rng: np.random.Generator, n: int) -> Array:
    """Return boxes inside an image, small ones more often than large ones."""
    sides = np.exp(rng.uniform(np.log(SIDES[0]), np.log(SIDES[1]), (n, 2)))
    return np.hstack([rng.random((n, 2)) * (IMAGE_SIZE - sides), sides])


def _finish(
    kind: type[Marks], drawing: _Drawing, objects: Array, places: Array, n_tasks: int, n_classes: int
) -> SimulatedMarks[Marks]:
    """Return the crowd with its truth."""
    tasks = pd.Index([f"t{number}" for number in range(n_tasks)])
    classes = pd.Index([kind.noun] if n_classes == 1 else [f"c{number}" for number in range(n_classes)])
    assignment = np.concatenate([drawing.hit_assignment, drawing.false_assignment])
    crowd = kind(
        drawing.task, drawing.worker, assignment, drawing.label, places,
        tasks=tasks, workers=drawing.workers.index, classes=classes,
    )  # fmt: skip
    columns: dict[str, Any] = {"task": tasks[drawing.object_task]}
    columns |= dict(zip(kind.coordinate_names, kind.format_coordinates(objects), strict=True))
    columns |= {"label": classes[drawing.object_class], "is_difficult": drawing.is_difficult}
    return SimulatedMarks(crowd, pd.DataFrame(columns), drawing.workers)
