"""The family of aggregators of marks, such as boxes and spans.

A task has a list of objects instead of a posterior over classes; every object has a place and the probability of each class.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.label_set_aggregator import find_f1_threshold
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.data.types import FeaturesLike
from wisecrowd.errors import InputError, NoPosterior, UsageError, check_choice
from wisecrowd.utils.text import count_noun

Array = NDArray[np.float64]

#: Candidates from which confidences are reliable. On simulated crowds of four votes per task, the expected calibration error and
#: the error of the mean confidence of a run fall below 0.03 at about this number for boxes, points and spans.
MIN_RELIABLE_CANDIDATES = 100


class InferredObjects(NamedTuple):
    """Objects that a method found, real or not.

    Parameters
    ----------
    task : ndarray of shape (n_objects,)
        Task codes.
    coordinates : ndarray of shape (n_objects, n_coordinates)
        Places.
    class_probs : ndarray of shape (n_objects, n_classes)
        Probability that an object is real and of a class.
    boundary_confidence : ndarray of shape (n_objects,)
        Probability that the place is right, given that the object is real.
    n_marks : ndarray of shape (n_objects,)
        Number of workers who marked an object.
    rings : PolygonRings or None
        Outlines of objects that are polygons; the last coordinate is the position in it.
    """

    task: NDArray[np.int64]
    coordinates: Array
    class_probs: Array
    boundary_confidence: Array
    n_marks: NDArray[np.int64]
    rings: PolygonRings | None = None


class WorkerQuality(NamedTuple):
    """Quality of workers, one number per worker.

    Parameters
    ----------
    detection_rate : ndarray of shape (n_workers,)
        Share of real objects that a worker marks.
    false_alarms : ndarray of shape (n_workers,)
        Expected number of false marks per task.
    accuracy : ndarray of shape (n_workers,)
        Share of detected objects to which a worker gives the right class.
    boundary_error : ndarray of shape (n_workers,)
        Standard deviation of boundaries relative to the size of objects; for spans, the probability of a wrong boundary.
    size_ratio : ndarray of shape (n_workers,)
        Typical size of a worker's mark relative to the object.
    """

    detection_rate: Array
    false_alarms: Array
    accuracy: Array
    boundary_error: Array
    size_ratio: Array


class MarkInference(NamedTuple):
    """Objects of a crowd and the quality of its workers.

    Parameters
    ----------
    objects : InferredObjects
        Objects.
    workers : WorkerQuality
        Quality of workers.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the iteration converged.
    trace : ndarray of shape (n_iter,)
        Log-likelihood before every iteration.
    """

    objects: InferredObjects
    workers: WorkerQuality
    n_iter: int
    converged: bool
    trace: Array


@method_class
class MarkAggregator(Aggregator):
    """Base class of aggregators that infer the objects of a task from the marks of workers.

    A subclass names its class of votes (``crowd_class``) and implements `_infer_objects`.
    """

    #: Class of the votes.
    crowd_class: ClassVar[type[MarkCrowd]]
    #: Whether ``fit`` takes the texts of tasks.
    uses_documents: ClassVar[bool] = False

    object_task_: NDArray[np.int64] = fitted(help="Task of each object.", shape=("n_objects",), codes="n_tasks")
    object_coordinates_: Array = fitted(help="Place of each object.", shape=("n_objects", "n_coordinates"), finite=True)
    object_probs_: Array = fitted(
        help="Probability that an object is real and of each class.", shape=("n_objects", "n_classes"), finite=True
    )
    boundary_confidence_: Array = fitted(
        help="Probability that the place of a real object is right.", shape=("n_objects",), finite=True
    )
    object_marks_: NDArray[np.int64] = fitted(help="Number of workers who marked each object.", shape=("n_objects",))
    threshold_: float = fitted(help="Confidence from which an object is chosen.")
    n_votes_: int = fitted(help="Number of assignments.")
    votes_per_task_: NDArray[np.int64] = fitted(help="Number of workers who saw each task.", shape=("n_tasks",))
    votes_per_worker_: NDArray[np.int64] = fitted(help="Number of tasks that each worker saw.", shape=("n_workers",))
    marks_per_worker_: NDArray[np.int64] = fitted(help="Number of marks of each worker.", shape=("n_workers",))

    detection_rate_: Array = fitted(
        help="Share of real objects that a worker marks, over all real objects that somebody marked.",
        shape=("n_workers",),
    )
    false_alarms_: Array = fitted(help="Expected number of false marks of a worker per task.", shape=("n_workers",))
    accuracy_: Array = fitted(
        help="Share of detected objects to which a worker gives the right class.", shape=("n_workers",)
    )
    boundary_error_: Array = fitted(
        help="Standard deviation of a worker's boundaries relative to the size of objects; for spans, the probability of a wrong "
        "start or end.",
        shape=("n_workers",),
    )
    size_ratio_: Array = fitted(help="Typical size of a worker's marks relative to the objects.", shape=("n_workers",))
    trace_: Array = fitted(help="Log-likelihood before every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    threshold: Literal["f1", "half"] = parameter(
        default="f1",
        help="Choose objects that maximise the expected F1 score over all tasks ('f1'), or that are more likely than not ('half').",
    )

    def fit(  # type: ignore[override]  # marks instead of votes on classes
        self,
        crowd: MarkCrowd | DataFrameLike,
        X: FeaturesLike | None = None,
        *,
        truth: Any = None,
        start: Any = None,
    ) -> Self:
        """Infer the objects of every task.

        Parameters
        ----------
        crowd : MarkCrowd or table
            Votes.
        X : table, default=None
            Texts of the tasks, for methods that use them: columns task, tokens (lists) and optionally sentences (lists with
            the first token of each sentence).
        truth : None
            Not used.
        start : None
            Not used.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        check_choice("threshold", self.threshold, ("f1", "half"))
        if truth is not None or start is not None or (X is not None and not self.uses_documents):
            inputs, refused = ("votes and documents", "") if self.uses_documents else ("votes", "X, ")
            raise UsageError(f"{type(self).__name__} takes {inputs} only; leave {refused}truth and start out")
        votes = self._convert_votes(crowd)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.task_index_, self.worker_index_, self.classes_ = votes.tasks, votes.workers, votes.classes
        self.n_votes_, self.votes_per_task_ = votes.n_votes, votes.votes_per_task
        self.votes_per_worker_, self.marks_per_worker_ = votes.votes_per_worker, votes.marks_per_worker
        inference = self._infer_objects(votes, X)
        objects = inference.objects
        # Objects in the same place are ordered by their probability, because names of classes must not matter.
        order = np.lexsort((-objects.class_probs.max(axis=1), *objects.coordinates.T[::-1], objects.task))
        self.object_task_, self.object_coordinates_ = objects.task[order], objects.coordinates[order]
        self.object_probs_, self.boundary_confidence_ = objects.class_probs[order], objects.boundary_confidence[order]
        self.object_marks_ = objects.n_marks[order]
        self.threshold_ = find_f1_threshold(self._confidence) if self.threshold == "f1" else 0.5
        self.detection_rate_, self.false_alarms_, self.accuracy_, self.boundary_error_, self.size_ratio_ = (
            inference.workers
        )
        self.trace_ = inference.trace
        self.n_iter_, self.converged_ = inference.n_iter, inference.converged
        self._finish_fit(start_time)
        return self

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        raise UsageError(f"{type(self).__name__} is fitted with fit(marks)")

    @abstractmethod
    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        """Return the objects of all tasks with their probabilities, and the quality of workers."""

    def _convert_votes(self, votes: MarkCrowd | DataFrameLike) -> MarkCrowd:
        """Return votes as a crowd of the class that the method takes."""
        expected = self.crowd_class
        if isinstance(votes, expected):
            crowd: MarkCrowd = votes
        elif hasattr(votes, "answer_type") or isinstance(votes, str | list | tuple):
            raise InputError(
                f"{type(self).__name__} takes {expected.plural}; got {type(votes).__name__}. Build them with "
                f"{expected.__name__}.from_frame(df)"
            )
        else:
            crowd = expected.from_frame(votes)
        if crowd.n_marks == 0:
            raise InputError(
                f"there are no {expected.plural}; expected a row per {expected.noun} with "
                f"{', '.join(expected.place_columns or expected.coordinate_names)}"
            )
        return crowd

    # ------------------------------------------------------------------ results

    @property
    def _confidence(self) -> Array:
        """Probability that an object is real, of its most probable class, and in the right place."""
        return np.asarray(self._check_fitted("object_probs_").max(axis=1) * self.boundary_confidence_)

    @property
    def candidates_(self) -> pd.DataFrame:
        """Table of all objects that somebody marked: place, label, confidence, marks, votes, and whether it is chosen."""
        confidence = self._confidence
        columns: dict[str, Any] = {"task": self.task_index_.take(self.object_task_)}
        columns |= self._place_columns()
        columns |= {
            "label": self.classes_[self.object_probs_.argmax(axis=1)],
            "confidence": confidence,
            "n_marks": self.object_marks_,
            "n_votes": self.votes_per_task_[self.object_task_],
            "chosen": confidence >= self.threshold_,
        }
        return pd.DataFrame(columns)

    @property
    def rings_(self) -> PolygonRings | None:
        """Vertices of polygons in the order of ``candidates_``; None for other objects."""
        self._check_fitted("object_probs_")
        return None

    def _place_columns(self) -> dict[str, Any]:
        """Return the columns with the places of objects."""
        places = self.crowd_class.format_coordinates(self.object_coordinates_)
        return dict(zip(self.crowd_class.coordinate_names, places, strict=True))

    @property
    def objects_(self) -> pd.DataFrame:
        """Table of the chosen objects: task, place, label, confidence, and numbers of marks and votes."""
        table = self.candidates_
        return table[table["chosen"]].drop(columns="chosen").reset_index(drop=True)

    @property
    def tasks_(self) -> pd.DataFrame:
        """Number of chosen objects, expected F1 score of the choice, numbers of candidates and votes of every task."""
        confidence, n_tasks = self._confidence, len(self.task_index_)
        chosen = confidence >= self.threshold_

        def add(values: NDArray[Any]) -> Array:
            return np.bincount(self.object_task_, values, n_tasks).astype(np.float64)

        size = add(chosen) + add(confidence)
        expected_f1 = np.divide(2 * add(np.where(chosen, confidence, 0)), size, out=np.ones(n_tasks), where=size > 0)
        columns = {
            "n_objects": add(chosen).astype(np.int64),
            "expected_f1": expected_f1,
            "n_candidates": np.bincount(self.object_task_, minlength=n_tasks),
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: votes, marks, detection rate, false alarms, and errors of boundaries and classes."""
        self._check_fitted("object_probs_")
        assert self.worker_index_ is not None
        return pd.DataFrame(self._worker_columns(), index=self.worker_index_.rename("worker"))

    @property
    def warnings_(self) -> tuple[str, ...]:
        """Reasons not to trust the confidences, for the top of every view."""
        n_candidates = len(self._check_fitted("object_probs_"))
        # The share of workers who marked an object is a count and no estimate.
        if n_candidates >= MIN_RELIABLE_CANDIDATES or getattr(self, "model", None) == "majority":
            return ()
        candidates, tasks = count_noun(n_candidates, "candidate object"), count_noun(len(self.task_index_), "task")
        verb = "is" if n_candidates == 1 else "are"
        return (
            f"There {verb} only {candidates} on {tasks}, too few to estimate how often workers miss objects and mark false ones "
            f"(expected: {MIN_RELIABLE_CANDIDATES} or more). Confidences are not reliable, also those near 1: compare n_marks "
            "with n_votes, or collect marks on more tasks.",
        )

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        columns = {
            "n_votes": self.votes_per_worker_,
            "n_marks": self.marks_per_worker_,
            "detection_rate": self.detection_rate_,
            "false_alarms": self.false_alarms_,
            "boundary_error": self.boundary_error_,
            "size_ratio": self.size_ratio_,
            "accuracy": self.accuracy_,
        }
        # With one class, all marks have the right one; points have no size.
        constant = {"accuracy"} if len(self.classes_) == 1 else set()
        constant |= set() if self.crowd_class.has_size else {"size_ratio"}
        return {name: column for name, column in columns.items() if name not in constant}

    def _repr_html_(self) -> str:
        from wisecrowd.utils.notebook import render_html

        return render_html(repr(self), self.objects_ if "object_probs_" in vars(self) else None)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "object_probs_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} inferred objects, so there is no posterior over classes; use objects_, candidates_ and tasks_"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "confusion_", "tally_") and "object_probs_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)
