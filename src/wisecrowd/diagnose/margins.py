"""Which tasks and votes do not go with what the tasks look like: areas under the margin, where there are features.

A classifier that is being trained learns early what the tasks of a class have in common, and late, if ever, what is said
against it. How far the score of a label stood above those of the others, on average over the epochs, therefore tells labels
that go with the features from labels that had to be learnt by heart (Pleiss et al. 2020); and the same of every vote, trusted
as far as its worker is, tells tasks that are ambiguous (Lefort et al. 2024).

Votes on one task share its features, so that training on every (features, vote) is training on how often each label was
given: nothing here grows with votes times features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.alignment import align_feature_rows, encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.diagnose.preparation import resolve_model
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError, check_choice
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils import progress
from wisecrowd.utils.slices import slice_rows

#: What a label is compared with: the best of the other labels, or the second best of all. They differ where another is best.
Margin: TypeAlias = Literal["pleiss", "yang"]
FloatArray = NDArray[np.float64]

#: Of Adam: how much of the past its mean and its square remember, and what keeps it from dividing by zero.
ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-8
#: Trust below this counts as this much, so that a task whose voters are all trusted in nothing has a plain mean.
MIN_TRUST = 1e-12


@dataclass(frozen=True, kw_only=True)
class MarginTraining:
    """How the classifier is trained whose scores are watched: by Adam, on standardised features, with a Gaussian prior.

    Without ``hidden`` units it is logistic regression, which does for features that a network made; give some where classes
    are no half-spaces, and then a smaller ``learning_rate``. With the prior, more ``epochs`` change little: what the features
    do not bear out stays unlearnt.

    >>> MarginTraining(hidden=64, learning_rate=0.001).epochs
    50
    """

    epochs: int = 50
    learning_rate: float = 0.003
    batch_size: int | None = None
    """Tasks that are learnt from in one step; unless given, 64, or as many more as make 256 steps an epoch."""
    hidden: int = 0
    """Units of the one hidden layer, if any."""
    ridge: float | None = None
    """λ of −λ/2 ‖W‖² beside the log-likelihood of all tasks; unless given, a tenth of the number of inputs of a layer, and at
    least one, which expects logits of a standard deviation near three."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.hidden < 0 or (self.batch_size is not None and self.batch_size < 1):
            raise UsageError(
                "epochs and batch_size must be 1 or more, and hidden 0 or more; "
                f"got {self.epochs}, {self.batch_size} and {self.hidden}"
            )
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UsageError(f"learning_rate must be a positive number, for example 0.003; got {self.learning_rate}")
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise UsageError(f"ridge must not be negative; got {self.ridge}")


#: The training that features of an embedding ask for.
DEFAULT_TRAINING = MarginTraining()


def aum(
    crowd: Any,
    X: Any,
    *,
    answers: Any = None,
    margin: Margin = "pleiss",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.Series:
    """For each task, how well its inferred label goes with its features: low where it is wrong, if features can tell.

        AUM_i = 1/T Σ_t ( z_t(x_i)[y_i] − max_{k ≠ y_i} z_t(x_i)[k] )

    with z_t the logits in epoch t of a classifier that is trained on the labels y (Pleiss et al. 2020). ``answers`` are the
    labels, by task, for example ``labels_`` of a fitted method; Dawid–Skene's unless given. ``X`` has a row of features for
    every task. With ``margin="yang"`` the second largest logit is subtracted. Tasks without votes or answer have NaN.

    It knows what the votes do not, and nothing but what the features do. Of Dawid–Skene's labels on LabelMe (VGG-16 features)
    it tells wrong ones from right ones with an area under the ROC curve of .89, where the entropy of the votes has .69 and the
    posterior's confidence .68, and on music genres .81, .62 and .76. On leaves, whose features tell less than ten votes do, it
    is .74, .85 and .87, and where features say nothing about the classes (embeddings of sentence pairs for entailment, RTE)
    .50, .74 and .86: look at a classifier's accuracy first.

    >>> import numpy as np
    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, workers=["expert(1)"] * 9, n_classes=2, votes_per_task=3)
    >>> X = pd.DataFrame({"x": np.where(made.truth == "c0", -1.0, 1.0)}, index=made.truth.index)
    >>> X.iloc[:3] *= -1  # three tasks look like what they are not
    >>> sorted(aum(made.crowd, X).nsmallest(3).index)
    ['t000', 't001', 't002']
    """
    votes, features = _validate_inputs(crowd, X, margin)
    codes = resolve_model(votes).posterior_.argmax(axis=1) if answers is None else encode_truth(answers, votes)
    labelled = np.flatnonzero((votes.votes_per_task > 0) & (codes >= 0))
    if not len(labelled):
        raise InputError("none of the answers is of a task with votes; give answers by the ids of the crowd's tasks")
    targets = np.eye(votes.n_classes)[codes[labelled]]
    area, _ = areas_under_margin(logits_by_epoch(features[labelled], targets, training, random_state), margin)
    scores = np.full(votes.n_tasks, np.nan)
    scores[labelled] = area[np.arange(len(labelled)), codes[labelled]]
    return pd.Series(scores, index=votes.tasks.rename("task"), name="aum")


def waum(
    crowd: Any,
    X: Any,
    *,
    model: ConfusionEM | None = None,
    margin: Margin = "yang",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.Series:
    """For each task, how well its votes go with its features, votes weighing what their workers are trusted: low if ambiguous.

        WAUM_i = Σ_r s_ir AUM_ir / Σ_r s_ir,    AUM_ir = 1/T Σ_t ( f_t(x_i)[y_ir] − second largest of f_t(x_i) ),
        s_ir = Σ_k f_T(x_i)[k] π_r[k, k]

    with f_t the class probabilities in epoch t of a classifier that is trained on all votes, and π_r the confusion matrix of
    worker r by ``model``, a fitted method with such matrices; Dawid–Skene unless given (Lefort et al. 2024). With
    ``margin="pleiss"`` the largest of the other probabilities is subtracted. Tasks without votes have NaN. The paper leaves the
    lowest hundredth out before it trains on the rest: see `prune_tasks`.

    Of forty tasks that were put half-way between two of three clouds, among 600 with five votes of workers who are right three
    times in four, it tells which they are with an area under the ROC curve of .91 to .94 over three draws; with Pleiss' margin it
    is .84 to .88, and by the entropy of the votes .63 to .66. Votes that contradict each other make it low as well as features
    that contradict all of them: whether Dawid–Skene's label is wrong, it tells with .83 on LabelMe, .77 on music genres, .81 on
    leaves and .57 on RTE, less well than `aum` where features are good, and than the votes where they are not.

    >>> import numpy as np
    >>> from wisecrowd import simulate_crowd
    >>> hard = np.where(np.arange(200) < 4, 1.0, 0.0)  # nobody sees what the first four are
    >>> made = simulate_crowd(n_tasks=200, workers=["expert"] * 9, n_classes=2, votes_per_task=5, difficulty=hard)
    >>> X = pd.DataFrame({"x": np.where(hard, 0.0, np.where(made.truth == "c0", -1, 1))}, index=made.truth.index)
    >>> sorted(waum(made.crowd, X).nsmallest(4).index)
    ['t000', 't001', 't002', 't003']
    """
    votes, area, trust = _vote_statistics(crowd, X, model, margin, training, random_state)
    weight = votes.weight * np.maximum(trust, MIN_TRUST)
    total = np.bincount(votes.task, weight, minlength=votes.n_tasks)
    with np.errstate(invalid="ignore"):
        scores = np.bincount(votes.task, weight * area, minlength=votes.n_tasks) / total
    return pd.Series(scores, index=votes.tasks.rename("task"), name="waum")


def vote_margins(
    crowd: Any,
    X: Any,
    *,
    model: ConfusionEM | None = None,
    margin: Margin = "yang",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.DataFrame:
    """What `waum` averages, by vote: task, worker, label, ``margin`` (AUM_ir) and ``trust`` (s_ir).

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=50, n_workers=5, n_classes=2, votes_per_task=2)
    >>> X = pd.DataFrame({"x": range(50)}, index=made.truth.index)
    >>> vote_margins(made.crowd, X).columns.tolist()
    ['task', 'worker', 'label', 'margin', 'trust']
    """
    votes, area, trust = _vote_statistics(crowd, X, model, margin, training, random_state)
    return votes.to_frame().assign(margin=area, trust=trust)


def prune_tasks(crowd: Crowd, scores: pd.Series, share: float = 0.01) -> Crowd:
    """The crowd without its votes on the ``share`` of the scored tasks whose scores are lowest.

    The tasks stay, without votes, so that rows of features stay where they are. It need not help: logistic regression on
    Dawid–Skene's posterior of what is left is right on .816 of LabelMe's 1,188 test tasks when nothing is left out, and on .819,
    .822 and .834 without the lowest 1, 5 and 10 % by `aum`; on the 300 of music genres it is .667, and then .663, .640 and .647.

    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "cat")])
    >>> prune_tasks(crowd, pd.Series({"t1": 0.3, "t2": -0.1}), share=0.5)
    Crowd(1 votes: 2 tasks x 2 workers, 2 classes, 0.5 votes/task)
    """
    if not 0 <= share < 1:
        raise UsageError(f"share is the part of the tasks to leave out, from 0 to below 1; got {share}")
    finite_scores = scores.dropna()
    lowest = finite_scores.nsmallest(int(share * len(finite_scores))).index
    if len(lowest) and not lowest.isin(crowd.tasks).all():
        raise InputError("the scores are of tasks that the crowd does not have; give what aum or waum gave for it")
    return crowd.take(~crowd.tasks.isin(lowest)[crowd.task])


def areas_under_margin(scores: Iterable[FloatArray], margin: Margin = "pleiss") -> tuple[FloatArray, FloatArray]:
    """The mean margin of every class of every task over the epochs, (tasks, classes), and the last of the scores.

    ``scores`` are (tasks, classes), once for each epoch; they may be those of a network of one's own.

    >>> area, _ = areas_under_margin([np.array([[3.0, 1.0, 0.0]]), np.array([[1.0, 2.0, 4.0]])])
    >>> area.tolist()  # 3 − 1 and 1 − 4; 1 − 3 and 2 − 4; 0 − 3 and 4 − 2
    [[-0.5, -2.0, -0.5]]
    """
    check_choice("margin", margin, ("pleiss", "yang"))
    total: FloatArray | None = None
    epoch_scores = np.empty((0, 0))
    epochs = 0
    for epoch_scores in scores:
        if epoch_scores.ndim != 2 or epoch_scores.shape[1] < 2:
            raise InputError(
                f"scores of tasks and of two classes or more were wanted; got an array of shape {epoch_scores.shape}"
            )
        epochs += 1
        second, first = np.partition(epoch_scores, -2, axis=1)[:, -2:].T[:, :, None]
        # Where two are the largest, the second is as large as the first.
        rival = second if margin == "yang" else np.where(epoch_scores == first, second, first)
        total = epoch_scores - rival if total is None else total + (epoch_scores - rival)
    if total is None:
        raise InputError("there are no scores; one array of tasks x classes is wanted for each epoch")
    return total / epochs, epoch_scores


def logits_by_epoch(
    features: FloatArray, targets: FloatArray, training: MarginTraining, random_state: int = 0
) -> Iterator[FloatArray]:
    """Logits (tasks, classes) in each epoch of training: of every task as they were just before it was learnt from.

    ``targets`` are (tasks, classes), how often each label was given.

    >>> features, targets = np.array([[-1.0], [1.0]]), np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> for logits in logits_by_epoch(features, targets, MarginTraining(epochs=100)):
    ...     pass
    >>> logits.argmax(axis=1).tolist()
    [0, 1]
    """
    from scipy.special import softmax
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(random_state)
    mean, scale = features.mean(axis=0), features.std(axis=0)
    varies = scale > 1e-12 * np.maximum(1, np.abs(mean))
    inputs = (features - mean) / np.where(varies, scale, 1.0)
    n_tasks, n_classes = targets.shape
    n_votes = targets.sum(axis=1, keepdims=True)
    classifier = _MarginClassifier(inputs.shape[1], n_classes, n_tasks, training, rng)
    batch_size = max(64, -(-n_tasks // 256)) if training.batch_size is None else training.batch_size
    for epoch in range(training.epochs):
        progress.report("areas under the margin", epoch, training.epochs)
        order = rng.permutation(n_tasks)
        logits = np.empty((n_tasks, n_classes))
        with threadpool_limits(limits=1, user_api="blas"):  # small products, which threads make slower
            for start in range(0, n_tasks, batch_size):
                batch = order[start : start + batch_size]
                logits[batch] = classifier.forward(inputs[batch])
                # The mean over votes, as if every vote were a row of its own; in expectation, whichever tasks were drawn.
                gradient = (softmax(logits[batch], axis=1) * n_votes[batch] - targets[batch]) / (
                    len(batch) * n_votes.mean()
                )
                classifier.step(gradient)
        yield logits


# ---------------------------------------------------------------------- inside


class _MarginClassifier:
    """One layer, or two with rectified units between them, and Adam."""

    def __init__(
        self, n_inputs: int, n_classes: int, n_tasks: int, training: MarginTraining, rng: np.random.Generator
    ) -> None:
        sizes = [n_inputs, *([training.hidden] if training.hidden else []), n_classes]
        # The last layer begins at zero: every class is as probable, whatever the seed.
        last = [np.zeros((sizes[-2], n_classes))]
        first = [rng.normal(scale=np.sqrt(2 / n_inputs), size=(n_inputs, training.hidden))] if training.hidden else []
        self.weights = [*first, *last]
        self.intercepts = [np.zeros(size) for size in sizes[1:]]
        ridges = [max(1.0, size / 10) if training.ridge is None else training.ridge for size in sizes[:-1]]
        self.ridges = [ridge / n_tasks for ridge in ridges]
        self.learning_rate = training.learning_rate
        self.n_steps = 0
        self.moments = [(np.zeros_like(part), np.zeros_like(part)) for part in (*self.weights, *self.intercepts)]
        self.layer_inputs: list[FloatArray] = []

    def forward(self, inputs: FloatArray) -> FloatArray:
        """Logits; what each layer was given is kept for `step`."""
        self.layer_inputs = [inputs]
        for weight, intercept in zip(self.weights[:-1], self.intercepts[:-1], strict=True):
            self.layer_inputs.append(np.maximum(self.layer_inputs[-1] @ weight + intercept, 0))
        return np.asarray(self.layer_inputs[-1] @ self.weights[-1] + self.intercepts[-1])

    def step(self, gradient: FloatArray) -> None:
        """A step down the slope of the loss by the logits that `forward` gave last."""
        weight_gradients: list[FloatArray] = []
        intercept_gradients: list[FloatArray] = []
        for layer in reversed(range(len(self.weights))):
            weight_gradients.insert(0, self.layer_inputs[layer].T @ gradient + self.ridges[layer] * self.weights[layer])
            intercept_gradients.insert(0, gradient.sum(axis=0))
            if layer:
                gradient = (gradient @ self.weights[layer].T) * (self.layer_inputs[layer] > 0)
        self.n_steps += 1
        learning_rate = self.learning_rate * np.sqrt(1 - ADAM_BETA2**self.n_steps) / (1 - ADAM_BETA1**self.n_steps)
        parts, gradients = (*self.weights, *self.intercepts), (*weight_gradients, *intercept_gradients)
        for part, gradient, (mean, square) in zip(parts, gradients, self.moments, strict=True):
            mean += (1 - ADAM_BETA1) * (gradient - mean)
            square += (1 - ADAM_BETA2) * (gradient**2 - square)
            part -= learning_rate * mean / (np.sqrt(square) + ADAM_EPSILON)


def _validate_inputs(crowd: Any, X: Any, margin: str) -> tuple[Crowd, FloatArray]:
    """Votes that were cast, and flat rows of features in the order of their tasks."""
    check_choice("margin", margin, ("pleiss", "yang"))
    votes = require_categorical_crowd(crowd, "margins are computed")
    if votes.n_votes == 0:
        raise InputError("there are no votes to look at")
    if votes.n_classes < 2:
        raise InputError("a margin lies between two classes, and these votes name only one; name all: classes=[...]")
    features = align_feature_rows(X, votes)
    return votes, features.reshape(len(features), -1)


def _resolve_worker_model(crowd: Crowd, model: ConfusionEM | None) -> ConfusionEM:
    """A model of the crowd's workers."""
    fitted = resolve_model(crowd, model)
    if not (as_index(crowd.workers).equals(fitted.worker_index_) and as_index(crowd.classes).equals(fitted.classes_)):
        raise UsageError("the model knows other workers or classes than this crowd; give one that was fitted on it")
    return fitted


def _vote_statistics(
    crowd: Any, X: Any, model: ConfusionEM | None, margin: Margin, training: MarginTraining, random_state: int
) -> tuple[Crowd, FloatArray, FloatArray]:
    """The votes; of each, the area under its margin and the trust in its worker on its task."""
    from scipy.special import softmax

    votes, features = _validate_inputs(crowd, X, margin)
    fitted = _resolve_worker_model(votes, model)
    labelled = np.flatnonzero(votes.votes_per_task)
    position = np.cumsum(votes.votes_per_task > 0) - 1
    logits = logits_by_epoch(features[labelled], votes.vote_counts[labelled], training, random_state)
    area, final_probs = areas_under_margin((softmax(epoch_logits, axis=1) for epoch_logits in logits), margin)
    row = position[votes.task]
    all_workers = np.arange(votes.n_workers)
    accuracy = np.concatenate([
        np.diagonal(fitted.confusion_of(all_workers[part]), axis1=1, axis2=2)
        for part in slice_rows(votes.n_workers, votes.n_classes**2)
    ])  # fmt: skip
    trust = np.empty(votes.n_votes)
    for part in slice_rows(votes.n_votes, votes.n_classes):
        trust[part] = np.einsum("nk,nk->n", final_probs[row[part]], accuracy[votes.worker_codes[part]])
    return votes, area[row, votes.label], trust
