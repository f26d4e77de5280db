"""Votes and workers that a plan starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, TruthLike
from wisecrowd.diagnose.assessment import CrowdAssessment
from wisecrowd.diagnose.preparation import has_worker_groups, resolve_model
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.inputs import require_categorical_crowd


def require_votes(crowd: CrowdLike) -> Crowd:
    """Return the observed votes of a crowd that can be planned for.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.

    Returns
    -------
    Crowd

    Raises
    ------
    InputError
        If there are no votes.
    """
    votes = require_categorical_crowd(crowd, "planning votes")
    if votes.n_votes == 0:
        raise InputError("the crowd has no votes to plan from; collect two votes per task first")
    return votes


def assess_votes(
    votes: Crowd, model: ConfusionEM | str | None = None, gold: TruthLike | None = None
) -> CrowdAssessment:
    """Assess the votes that a plan starts from.

    Parameters
    ----------
    votes : Crowd
        Votes from `require_votes`.
    model : ConfusionEM or str, default=None
        Fitted model, or the name of a method, of workers and labels. By default workers are rated by Dawid–Skene, and the labels
        and their confidence are those of ``wisecrowd aggregate``.
    gold : Series, mapping or table, default=None
        Known truth of some tasks. A method that is given by name is fitted with it; a fitted one must have been.

    Returns
    -------
    CrowdAssessment

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> assessment = assess_votes(simulate_crowd(n_tasks=100, n_workers=8, votes_per_task=4).crowd)
    >>> assessment.posterior.shape, assessment.labels.confidence.shape
    ((100, 4), (100,))
    """
    return CrowdAssessment(votes, resolve_model(votes, DEFAULT_METHOD if model is None else model, gold), gold)


def get_planned_workers(assessment: CrowdAssessment) -> WorkerDiagnosis | GroupedWorkers:
    """Return the workers that a plan can ask, with their confusion matrices.

    Parameters
    ----------
    assessment : CrowdAssessment
        Assessment of the votes.

    Returns
    -------
    WorkerDiagnosis or GroupedWorkers
        `GroupedWorkers` if the model has groups of workers who err together.
    """
    if has_worker_groups(assessment.model):
        return GroupedWorkers(assessment.crowd, assessment.model)
    return assessment.workers


@dataclass(frozen=True, eq=False)
class GroupedWorkers:
    """Workers of a model in which members of a group err together, such as `Panel`.

    The class offers the attributes of `WorkerDiagnosis` that planning needs. Confusion matrices are those of the model. No worker
    counts as a spammer, because the expected information of a spammer's vote is about zero anyway.

    Parameters
    ----------
    crowd : Crowd
        Votes that the model was fitted to.
    model : Panel
        Fitted model.

    Examples
    --------
    >>> from wisecrowd import Panel
    >>> from wisecrowd.simulate import simulate_panel
    >>> simulation = simulate_panel(n_tasks=60)
    >>> GroupedWorkers(simulation.crowd, Panel(groups=simulation.groups).fit(simulation.crowd)).confusion_of([0, 12]).shape
    (2, 3, 3)
    """

    crowd: Crowd
    model: Any

    def __post_init__(self) -> None:
        if not self.crowd.tasks.equals(self.model.task_index_) or self.crowd.n_votes != self.model.n_votes_:
            raise UsageError(
                "crowd differs from the crowd that the model was fitted to; pass that crowd, or refit the model"
            )

    @property
    def type_probs(self) -> NDArray[np.float64]:
        """Probability of each worker to be helpful, a spammer or an adversary: always helpful."""
        return np.tile([1.0, 0.0, 0.0], (self.crowd.n_workers, 1))

    @property
    def confusion(self) -> NDArray[np.float64]:
        """Mean confusion matrix of all workers, by true class and label."""
        return np.asarray(self.model.confusion_.mean(axis=0))

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Return the confusion matrices of workers.

        Parameters
        ----------
        workers : sequence of int
            Positions of the workers.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        return np.asarray(self.model.confusion_of(workers))
