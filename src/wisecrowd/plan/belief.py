"""Class probabilities for planning, tempered by held-out votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.diagnose.preparation import has_worker_groups
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.heldout_votes import EXPONENTS, assign_vote_folds, heldout_log_probs
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils.slices import slice_rows

#: Number of folds for choosing the exponent.
FOLDS = 5
#: Smallest number of votes for which the exponent is chosen by cross-validation.
MIN_VOTES_TO_TEMPER = 4 * FOLDS
#: Gain in mean log-probability of a held-out vote (nats) that justifies a smaller exponent.
LOG_PROB_TOLERANCE = 5e-4

FloatArray = NDArray[np.float64]


def compute_belief(
    workers: WorkerDiagnosis, random_state: int = 0, exponent: float | None = None
) -> tuple[FloatArray, float]:
    """Compute the class probabilities of each task by shrunk confusion matrices, tempered by an exponent τ.

    With few votes per task EM is overconfident for two reasons. Its confusion matrices are fitted to the votes that they weigh; the
    matrices used here compare each vote with the other votes on its task. And workers err together; the exponent τ ≤ 1 is the one
    with which the posterior predicts held-out votes best, as in `compare_methods`. Tasks without votes get the class shares. If
    workers err independently, as simulated workers do, the result is underconfident.

    Parameters
    ----------
    workers : WorkerDiagnosis
        Workers of the crowd and the model behind them.
    random_state : int, default=0
        Seed of the folds.
    exponent : float, default=None
        Exponent τ. Chosen by cross-validation if None.

    Returns
    -------
    belief : ndarray of shape (n_tasks, n_classes)
        Class probabilities.
    exponent : float
        Exponent τ.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> belief, exponent = compute_belief(WorkerDiagnosis(simulate_crowd(n_tasks=100, n_workers=8, votes_per_task=4).crowd))
    >>> belief.shape, 0 < exponent <= 1
    ((100, 4), True)
    """
    crowd = workers.crowd
    exponent = _choose_exponent(workers.model, crowd, random_state) if exponent is None else exponent
    belief = _shrunk_posterior(workers)
    has_votes = crowd.votes_per_task > 0
    belief[has_votes] = belief[has_votes] ** exponent
    belief /= belief.sum(axis=1, keepdims=True)
    return belief, exponent


def _shrunk_posterior(workers: WorkerDiagnosis) -> FloatArray:
    """Compute the posterior by the shrunk confusion matrices of the workers."""
    crowd, pairs = workers.crowd, workers.crowd.pairs
    prior = workers.model.posterior_[crowd.votes_per_task > 0].mean(axis=0)
    label_probs = np.empty((len(pairs), crowd.n_classes))
    for part in slice_rows(crowd.n_workers, crowd.n_classes**2):
        first, last = np.searchsorted(pairs.worker, [part.start, part.stop])
        confusion = workers.confusion_of(np.arange(part.start, min(part.stop, crowd.n_workers)))
        label_probs[first:last] = confusion[pairs.worker[first:last] - part.start, :, pairs.label[first:last]]
    return np.array(kernels.posterior(crowd.layout, prior, label_probs), dtype=np.float64)


def _choose_exponent(model: ConfusionEM, crowd: Crowd, random_state: int) -> float:
    """Choose the largest exponent that predicts held-out votes about as well as the best."""
    if crowd.n_votes < MIN_VOTES_TO_TEMPER or crowd.votes_per_task.max() < 2:
        return 1.0
    fold = assign_vote_folds(crowd, FOLDS, random_state)
    log_probs = heldout_log_probs(model, crowd, None, fold, FOLDS)
    # The only vote on a task is predicted by the class shares alone, whatever the exponent.
    mean_log_probs = log_probs[crowd.votes_per_task[crowd.task] > 1].mean(axis=0)
    return float(EXPONENTS[np.flatnonzero(mean_log_probs >= mean_log_probs.max() - LOG_PROB_TOLERANCE)[-1]])


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


def assess_crowd(
    votes: Crowd, model: ConfusionEM | str | None, random_state: int = 0
) -> tuple[WorkerDiagnosis | GroupedWorkers, NDArray[np.float64]]:
    """Fit a model of the workers and compute the class probabilities of each task.

    Parameters
    ----------
    votes : Crowd
        Votes from `require_votes`.
    model : ConfusionEM, str or None
        Fitted model, or the name of a method. Defaults to Dawid–Skene.
    random_state : int, default=0
        Seed of the folds that choose the exponent.

    Returns
    -------
    workers : WorkerDiagnosis or GroupedWorkers
        Model of the workers.
    belief : ndarray of shape (n_tasks, n_classes)
        Class probabilities; the posterior as it is for a model with groups.
    """
    if has_worker_groups(model):
        grouped = GroupedWorkers(votes, model)
        return grouped, np.asarray(grouped.model.posterior_)
    workers = WorkerDiagnosis(votes, model)
    return workers, compute_belief(workers, random_state)[0]


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
    >>> made = simulate_panel(n_tasks=60)
    >>> GroupedWorkers(made.crowd, Panel(groups=made.groups).fit(made.crowd)).confusion_of([0, 12]).shape
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
