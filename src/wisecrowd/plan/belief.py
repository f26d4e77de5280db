"""What may be believed of each task, with no more confidence than hidden votes bear out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import has_worker_groups
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.heldout_votes import EXPONENTS, assign_vote_folds, heldout_log_probs
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils.slices import slice_rows

#: Parts of the votes that are hidden in turn.
FOLDS = 5
#: Fewer votes than this are too few to hide some of them.
MIN_VOTES_TO_TEMPER = 4 * FOLDS
#: Nats by which a hidden vote must be foretold better for it to be a reason to be less sure.
LOG_PROB_TOLERANCE = 5e-4

FloatArray = NDArray[np.float64]


def compute_belief(
    workers: WorkerDiagnosis, random_state: int = 0, exponent: float | None = None
) -> tuple[FloatArray, float]:
    """The posterior of each task by matrices that are drawn toward the crowd's, to the power τ: (tasks, classes), and τ.

    With few votes on a task EM is far too sure of itself, for two reasons. Matrices were fitted to the votes that they weigh:
    here they come from `WorkerDiagnosis.confusion_of`, which judges a vote by the others. And workers err together: τ ≤ 1 is the
    exponent with which EM's posterior foretells votes that were hidden from it best, as in `wisecrowd.compare`. It takes both.
    On eight public crowds cut to 3, 5 and 8 votes for each task, the mean confidence exceeds the accuracy by .01, .03 and .05, and
    that of `calibrate_posterior`, whose τ comes from votes that the matrices were fitted to, by .23, .20 and .17; on eleven
    others as they are, by .01 and .13. Where workers err independently, as simulated ones do, it is too modest instead.
    A task without votes keeps the shares of the classes. Where the ``exponent`` is known, it is not sought.

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
    crowd, pairs = workers.crowd, workers.crowd.pairs
    prior = workers.model.posterior_[crowd.votes_per_task > 0].mean(axis=0)
    label_probs = np.empty((len(pairs), crowd.n_classes))
    for part in slice_rows(crowd.n_workers, crowd.n_classes**2):
        first, last = np.searchsorted(pairs.worker, [part.start, part.stop])
        confusion = workers.confusion_of(np.arange(part.start, min(part.stop, crowd.n_workers)))
        label_probs[first:last] = confusion[pairs.worker[first:last] - part.start, :, pairs.label[first:last]]
    return np.array(kernels.posterior(crowd.layout, prior, label_probs), dtype=np.float64)


def _choose_exponent(model: ConfusionEM, crowd: Crowd, random_state: int) -> float:
    if crowd.n_votes < MIN_VOTES_TO_TEMPER or crowd.votes_per_task.max() < 2:
        return 1.0
    fold = assign_vote_folds(crowd, FOLDS, random_state)
    log_probs = heldout_log_probs(model, crowd, None, fold, FOLDS)
    # A vote that is alone on its task says nothing of how sure the others make one.
    mean_log_probs = log_probs[crowd.votes_per_task[crowd.task] > 1].mean(axis=0)
    return float(EXPONENTS[np.flatnonzero(mean_log_probs >= mean_log_probs.max() - LOG_PROB_TOLERANCE)[-1]])


def require_votes(crowd: Any) -> Crowd:
    votes = require_categorical_crowd(crowd, "votes are planned")
    if votes.n_votes == 0:
        raise InputError("there are no votes yet, so that nothing is known of anybody; begin with two on each task")
    return votes


def assess_crowd(
    votes: Crowd, model: ConfusionEM | str | None, random_state: int = 0
) -> tuple[WorkerDiagnosis | GroupedWorkers, NDArray[np.float64]]:
    """The workers, and what may be believed of each task."""
    if has_worker_groups(model):
        grouped = GroupedWorkers(votes, model)
        return grouped, np.asarray(grouped.model.posterior_)
    workers = WorkerDiagnosis(votes, model)
    return workers, compute_belief(workers, random_state)[0]


@dataclass(frozen=True, eq=False)
class GroupedWorkers:
    """What a plan wants of `WorkerDiagnosis`, of a model whose workers do not err independently.

    Matrices are the model's own. Nobody is left out for a spammer: what they would say is expected to tell nothing.

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
            raise UsageError("give the crowd that the model was fitted on, or fit the model to these votes")

    @property
    def type_probs(self) -> NDArray[np.float64]:
        """Nobody is known to be a spammer."""
        return np.tile([1.0, 0.0, 0.0], (self.crowd.n_workers, 1))

    @property
    def confusion(self) -> NDArray[np.float64]:
        """What the crowd as a whole says when each class is true, (true, said)."""
        return np.asarray(self.model.confusion_.mean(axis=0))

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Matrices of some workers, by position."""
        return np.asarray(self.model.confusion_of(workers))
