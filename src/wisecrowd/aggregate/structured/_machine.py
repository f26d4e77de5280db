"""Match, decide, merge: objects from the marks of a crowd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.structured._detection import DetectionModel
from wisecrowd.aggregate.structured._geometry import Geometry
from wisecrowd.aggregate.structured._matching import group_marks
from wisecrowd.base.mark_aggregator import InferredObjects, MarkInference, WorkerQuality
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.overlaps import SimilarPairs
from wisecrowd.errors import UsageError, check_choice

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

MIN_SIMILARITY_HELP = (
    "Mean similarity from which groups of marks are one object. Similarity is the Dice coefficient: shared size over mean "
    "size."
)
N_ROUNDS_HELP = "Rounds of matching, at most. After the first, marks of workers with precise boundaries count more."
SHRINKAGE_HELP = "Pseudo-objects that draw a worker's rates to those of the crowd."
MAX_ITER_HELP = "Maximum number of EM iterations."
TOL_HELP = "Largest change of a probability at convergence."
MODEL_HELP = (
    "Detection rates, false alarms and confusion of every worker ('detection'), or the share of workers who marked an object "
    "('majority')."
)
#: Bounds of the weight of a worker's marks in matching, so that no worker owns a group.
WEIGHT_BOUNDS = (0.25, 4.0)


#: Relative loss of similarity of marks with different classes. The class is decided later, so it decides only between equals.
CLASS_PENALTY = 1e-6
#: Logarithms of sizes of marks relative to their objects are clipped here, so that a wrong match does not decide a mean.
MAX_LOG_RATIO = 2.0


class ConsensusSettings(NamedTuple):
    """Settings of the machine, with the meaning of the parameters of the same names.

    Parameters
    ----------
    model : {"detection", "majority"}
        Model of the decision.
    min_similarity : float
        Similarity from which groups of marks are one object.
    n_rounds : int
        Rounds of matching.
    shrinkage : float
        Pseudo-objects.
    max_iter : int
        Maximum number of EM iterations.
    tol : float
        Tolerance.
    """

    model: str
    min_similarity: float
    n_rounds: int
    shrinkage: float
    max_iter: int
    tol: float

    def check(self) -> None:
        """Raise if a setting is invalid.

        Raises
        ------
        UsageError
            If a setting is outside its range.
        """
        check_choice("model", self.model, ("detection", "majority"))
        if not 0 < self.min_similarity <= 1:
            raise UsageError(f"min_similarity must be above 0 and at most 1; got {self.min_similarity}")
        if self.n_rounds < 1:
            raise UsageError(f"n_rounds must be 1 or more; got {self.n_rounds}")
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")


class _ObjectDecision(NamedTuple):
    """Probabilities of objects, and rates of workers."""

    class_probs: Array
    detection_rate: Array
    false_marks: Array
    accuracy: Array
    n_iter: int
    converged: bool
    trace: Array


def find_consensus(crowd: MarkCrowd, geometry: Geometry, settings: ConsensusSettings) -> MarkInference:
    """Match marks, decide which objects are real, and merge their places.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    geometry : Geometry
        Similarity and merging of marks.
    settings : ConsensusSettings
        Settings.

    Returns
    -------
    MarkInference
    """
    settings.check()
    # Ties are decided by the contents of marks, so that names of workers do not matter.
    order = np.lexsort((crowd.label, *crowd.coordinates.T[::-1], crowd.mark_task))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    pairs = geometry.find_pairs(crowd)
    one, other = rank[pairs.first], rank[pairs.second]
    differ = crowd.label[pairs.first] != crowd.label[pairs.second]
    similarity = pairs.similarity * np.where(differ, 1 - CLASS_PENALTY, 1.0)
    pairs = SimilarPairs(np.minimum(one, other), np.maximum(one, other), similarity)
    worker_weight = np.ones(crowd.n_workers)
    mark_object = np.empty(0, dtype=np.int64)
    for number in range(settings.n_rounds):
        weight = worker_weight[crowd.mark_worker]
        grouping = group_marks(pairs, crowd.mark_worker[order], weight[order], settings.min_similarity)[rank]
        if number and np.array_equal(grouping, mark_object):
            break
        mark_object = grouping
        task = np.zeros(int(mark_object.max(initial=-1)) + 1, dtype=np.int64)
        task[mark_object] = crowd.mark_task
        decision = _decide(crowd, mark_object, task, settings)
        boundaries = geometry.merge(crowd, mark_object, decision.class_probs.sum(axis=1))
        worker_weight = np.clip(boundaries.worker_precision, *WEIGHT_BOUNDS)
    objects = InferredObjects(
        task,
        boundaries.coordinates,
        decision.class_probs,
        boundaries.confidence,
        np.bincount(mark_object, minlength=len(task)),
        boundaries.rings,
    )
    workers = WorkerQuality(
        decision.detection_rate,
        decision.false_marks / np.maximum(crowd.votes_per_worker, 1),
        decision.accuracy,
        boundaries.worker_error,
        _estimate_size_ratio(crowd, geometry, mark_object, objects),
    )
    return MarkInference(objects, workers, decision.n_iter, decision.converged, decision.trace)


def _decide(crowd: MarkCrowd, mark_object: Codes, task: Codes, settings: ConsensusSettings) -> _ObjectDecision:
    """Return the probabilities of objects and the rates of workers."""
    model = DetectionModel(crowd, mark_object, task, settings.shrinkage)
    if settings.model == "detection":
        fit = model.fit(max_iter=settings.max_iter, tol=settings.tol)
        return _ObjectDecision(
            fit.class_probs, fit.detection_rate(), fit.false_marks, fit.class_accuracy(),
            fit.n_iter, fit.converged, fit.trace,
        )  # fmt: skip
    n_objects, n_workers, n_classes = len(task), crowd.n_workers, crowd.n_classes
    cell = mark_object * n_classes + crowd.label
    counts = np.bincount(cell, minlength=n_objects * n_classes).reshape(n_objects, n_classes)
    class_probs = counts / crowd.votes_per_task[task][:, None]
    real = class_probs.sum(axis=1)
    hits = np.bincount(crowd.mark_worker, real[mark_object], n_workers)
    chances = model.assignments_by_worker @ (model.objects @ real)
    agreement = class_probs[mark_object, crowd.label] / real[mark_object]
    n_marks = np.maximum(crowd.marks_per_worker, 1)
    return _ObjectDecision(
        class_probs,
        np.divide(hits, chances, out=np.full(n_workers, np.nan), where=chances > 0),
        np.asarray(crowd.marks_per_worker - hits, dtype=np.float64),
        np.bincount(crowd.mark_worker, agreement, n_workers) / n_marks,
        0,
        True,
        np.empty(0),
    )


def _estimate_size_ratio(crowd: MarkCrowd, geometry: Geometry, mark_object: Codes, objects: InferredObjects) -> Array:
    """Return the geometric mean of the size of each worker's marks relative to objects that others marked, too."""
    ratio = geometry.measure(crowd.coordinates) / geometry.measure(objects.coordinates)[mark_object]
    logs = np.clip(np.log(ratio), -MAX_LOG_RATIO, MAX_LOG_RATIO)
    weight = np.where(objects.n_marks > 1, objects.class_probs.sum(axis=1), 0.0)[mark_object]
    total = np.bincount(crowd.mark_worker, weight, crowd.n_workers)
    mean = np.bincount(crowd.mark_worker, weight * logs, crowd.n_workers)
    return np.asarray(np.exp(np.divide(mean, total, out=np.zeros(crowd.n_workers), where=total > 0)))
