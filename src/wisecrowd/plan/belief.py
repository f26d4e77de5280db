"""What may be believed of each task, with no more confidence than hidden votes bear out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.priors import blocks
from wisecrowd.evaluate import model_selection as choosing
from wisecrowd.kernels import reference as kernels

#: Parts of the votes that are hidden in turn.
FOLDS = 5
#: Fewer votes than this are too few to hide some of them.
ENOUGH = 4 * FOLDS
#: Nats by which a hidden vote must be foretold better for it to be a reason to be less sure.
FLAT = 5e-4

Numbers = NDArray[np.float64]


def belief_of(people: WorkerDiagnosis, random_state: int = 0, exponent: float | None = None) -> tuple[Numbers, float]:
    """The posterior of each task by matrices that are drawn toward the crowd's, to the power τ: (tasks, classes), and τ.

    With few votes on a task EM is far too sure of itself, for two reasons. Matrices were fitted to the votes that they weigh:
    here they come from `WorkerDiagnosis.confusion_of`, which judges a vote by the others. And workers err together: τ ≤ 1 is the
    exponent with which EM's posterior foretells votes that were hidden from it best, as in `wisecrowd.compare`. It takes both.
    On eight public crowds cut to 3, 5 and 8 votes for each task, the mean confidence exceeds the accuracy by .01, .03 and .05, and
    that of `uncertainty.calibrated`, whose τ comes from votes that the matrices were fitted to, by .23, .20 and .17; on eleven
    others as they are, by .01 and .13. Where workers err independently, as simulated ones do, it is too modest instead.
    A task without votes keeps the shares of the classes. Where the ``exponent`` is known, it is not sought.

    >>> from wisecrowd import simulate_crowd
    >>> belief, exponent = belief_of(WorkerDiagnosis(simulate_crowd(n_tasks=100, n_workers=8, votes_per_task=4).crowd))
    >>> belief.shape, 0 < exponent <= 1
    ((100, 4), True)
    """
    crowd = people.crowd
    exponent = _exponent(people.model, crowd, random_state) if exponent is None else exponent
    belief = _posterior(people)
    voted = crowd.votes_per_task > 0
    belief[voted] = belief[voted] ** exponent
    belief /= belief.sum(axis=1, keepdims=True)
    return belief, exponent


def _posterior(people: WorkerDiagnosis) -> Numbers:
    crowd, pairs = people.crowd, people.crowd.pairs
    prior = people.model.posterior_[crowd.votes_per_task > 0].mean(axis=0)
    said = np.empty((len(pairs), crowd.n_classes))
    for part in blocks(crowd.n_workers, crowd.n_classes**2):
        first, last = np.searchsorted(pairs.worker, [part.start, part.stop])
        confusion = people.confusion_of(np.arange(part.start, min(part.stop, crowd.n_workers)))
        said[first:last] = confusion[pairs.worker[first:last] - part.start, :, pairs.label[first:last]]
    return np.array(kernels.posterior(crowd.layout, prior, said), dtype=np.float64)


def _exponent(model: ConfusionEM, crowd: Crowd, random_state: int) -> float:
    if crowd.n_votes < ENOUGH or crowd.votes_per_task.max() < 2:
        return 1.0
    fold = choosing.dealt(crowd, FOLDS, random_state)
    foretold = choosing.foretold(model, crowd, None, fold, FOLDS)
    # A vote that is alone on its task says nothing of how sure the others make one.
    gained = foretold[crowd.votes_per_task[crowd.task] > 1].mean(axis=0)
    return float(choosing.EXPONENTS[np.flatnonzero(gained >= gained.max() - FLAT)[-1]])
