"""Areas under the margin: labels and votes that contradict the features of their tasks.

A classifier learns early what the tasks of a class have in common, and late, if ever, labels that contradict it. The mean margin
of a label over the epochs therefore separates labels that fit the features from labels that are memorised (Pleiss et al. 2020).
Weighted by the trust in the workers, the margins of the votes identify ambiguous tasks (Lefort et al. 2024).

Votes on one task share its features, so training on all votes equals training on label counts by task, and the cost does not grow
with votes times features.

References
----------
G. Pleiss et al. (2020). Identifying mislabeled data using the area under the margin ranking. NeurIPS.
T. Lefort et al. (2024). Identify ambiguous tasks combining crowdsourced labels by weighting Areas Under the Margin. TMLR.
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
from wisecrowd.data.types import CrowdLike, FeaturesLike
from wisecrowd.data.vocabulary import as_index
from wisecrowd.diagnose.preparation import resolve_model
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, UsageError, check_choice
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils import progress
from wisecrowd.utils.parallel import use_one_blas_thread
from wisecrowd.utils.slices import slice_rows

#: Score that a label's score is compared with: the largest of the other labels ("pleiss"), or the second largest of all ("yang").
Margin: TypeAlias = Literal["pleiss", "yang"]
FloatArray = NDArray[np.float64]

#: Parameters of Adam, as in the paper of Kingma and Ba (2015).
ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-8
#: Smallest trust in a vote. A task whose workers all have trust 0 then gets the plain mean.
MIN_TRUST = 1e-12


@dataclass(frozen=True, kw_only=True)
class MarginTraining:
    """Settings of the classifier whose margins are averaged.

    The classifier is trained by Adam on standardised features with a Gaussian prior. Without hidden units it is logistic
    regression, which suits features from a pretrained network. With the prior, more epochs change little.

    Parameters
    ----------
    epochs : int, default=50
        Number of epochs.
    learning_rate : float, default=0.003
        Learning rate of Adam. Use a smaller one with hidden units.
    batch_size : int, default=None
        Tasks per step. Defaults to 64, or to more if an epoch would have more than 256 steps.
    hidden : int, default=0
        Number of units of the hidden layer; 0 for logistic regression.
    ridge : float, default=None
        Penalty λ in λ/2 ‖W‖², relative to the log-likelihood of all tasks. Defaults to a tenth of the number of inputs of a layer
        and at least 1, which corresponds to logits with a standard deviation near 3.

    Examples
    --------
    >>> MarginTraining(hidden=64, learning_rate=0.001).epochs
    50
    """

    epochs: int = 50
    learning_rate: float = 0.003
    batch_size: int | None = None
    hidden: int = 0
    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.hidden < 0 or (self.batch_size is not None and self.batch_size < 1):
            raise UsageError(
                "epochs and batch_size must be 1 or more, and hidden 0 or more; "
                f"got {self.epochs}, {self.batch_size} and {self.hidden}"
            )
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UsageError(f"learning_rate must be a positive number, such as 0.003; got {self.learning_rate}")
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise UsageError(f"ridge must be 0 or more; got {self.ridge}")


#: Default settings, for features from a pretrained network.
DEFAULT_TRAINING = MarginTraining()


def aum(
    crowd: CrowdLike,
    X: FeaturesLike,
    *,
    answers: Any = None,
    margin: Margin = "pleiss",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.Series:
    """Compute the area under the margin of each task's label: low values suggest a wrong label.

        AUM_i = 1/T Σ_t ( z_t(x_i)[y_i] − max_{k ≠ y_i} z_t(x_i)[k] )

    Here z_t are the logits in epoch t of a classifier that is trained on the labels y. The result is only as good as the features:
    check the accuracy of a classifier first.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    X : DataFrame or ndarray
        One row of features per task.
    answers : Series or mapping, default=None
        Labels by task, such as ``labels_`` of a fitted method. Defaults to those of Dawid–Skene.
    margin : {"pleiss", "yang"}, default="pleiss"
        Whether the largest other logit or the second largest logit is subtracted.
    training : MarginTraining, default=MarginTraining()
        Settings of the classifier.
    random_state : int, default=0
        Seed of the batches and of hidden layers.

    Returns
    -------
    Series
        Area by task; NaN for tasks without votes or label.

    Examples
    --------
    >>> import numpy as np
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, workers=["expert(1)"] * 9, n_classes=2, votes_per_task=3)
    >>> X = pd.DataFrame({"x": np.where(simulation.truth == "c0", -1.0, 1.0)}, index=simulation.truth.index)
    >>> X.iloc[:3] *= -1  # the features of three tasks contradict their labels
    >>> sorted(aum(simulation.crowd, X).nsmallest(3).index)
    ['t000', 't001', 't002']
    """
    votes, features = _validate_inputs(crowd, X, margin)
    codes = resolve_model(votes).posterior_.argmax(axis=1) if answers is None else encode_truth(answers, votes)
    labelled = np.flatnonzero((votes.votes_per_task > 0) & (codes >= 0))
    if not len(labelled):
        raise InputError("answers has no task of the crowd with votes; index answers by the task ids of the crowd")
    targets = np.eye(votes.n_classes)[codes[labelled]]
    area, _ = areas_under_margin(logits_by_epoch(features[labelled], targets, training, random_state), margin)
    scores = np.full(votes.n_tasks, np.nan)
    scores[labelled] = area[np.arange(len(labelled)), codes[labelled]]
    return pd.Series(scores, index=votes.tasks.rename("task"), name="aum")


def waum(
    crowd: CrowdLike,
    X: FeaturesLike,
    *,
    model: ConfusionEM | None = None,
    margin: Margin = "yang",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.Series:
    """Compute the weighted area under the margin of each task's votes: low values suggest an ambiguous task.

        WAUM_i = Σ_r s_ir AUM_ir / Σ_r s_ir,    AUM_ir = 1/T Σ_t ( f_t(x_i)[y_ir] − second largest of f_t(x_i) ),
        s_ir = Σ_k f_T(x_i)[k] π_r[k, k]

    Here f_t are the class probabilities in epoch t of a classifier that is trained on all votes, and π_r is the confusion matrix of
    worker r. Votes that contradict each other lower the value as well as votes that contradict the features. The paper drops the
    lowest hundredth of the tasks before training; see `prune_tasks`.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    X : DataFrame or ndarray
        One row of features per task.
    model : ConfusionEM, default=None
        Fitted method with confusion matrices. Defaults to Dawid–Skene.
    margin : {"pleiss", "yang"}, default="yang"
        Whether the largest other probability or the second largest probability is subtracted.
    training : MarginTraining, default=MarginTraining()
        Settings of the classifier.
    random_state : int, default=0
        Seed of the batches and of hidden layers.

    Returns
    -------
    Series
        Weighted area by task; NaN for tasks without votes.

    Examples
    --------
    >>> import numpy as np
    >>> from wisecrowd import simulate_crowd
    >>> hard = np.where(np.arange(200) < 4, 1.0, 0.0)  # the first four tasks are ambiguous
    >>> simulation = simulate_crowd(n_tasks=200, workers=["expert"] * 9, n_classes=2, votes_per_task=5, difficulty=hard)
    >>> X = pd.DataFrame({"x": np.where(hard, 0.0, np.where(simulation.truth == "c0", -1, 1))}, index=simulation.truth.index)
    >>> sorted(waum(simulation.crowd, X).nsmallest(4).index)
    ['t000', 't001', 't002', 't003']
    """
    votes, area, trust = _vote_statistics(crowd, X, model, margin, training, random_state)
    weight = votes.weight * np.maximum(trust, MIN_TRUST)
    total = np.bincount(votes.task, weight, minlength=votes.n_tasks)
    with np.errstate(invalid="ignore"):
        scores = np.bincount(votes.task, weight * area, minlength=votes.n_tasks) / total
    return pd.Series(scores, index=votes.tasks.rename("task"), name="waum")


def vote_margins(
    crowd: CrowdLike,
    X: FeaturesLike,
    *,
    model: ConfusionEM | None = None,
    margin: Margin = "yang",
    training: MarginTraining = DEFAULT_TRAINING,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compute the area under the margin and the trust of each vote, which `waum` averages.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    X : DataFrame or ndarray
        One row of features per task.
    model : ConfusionEM, default=None
        Fitted method with confusion matrices. Defaults to Dawid–Skene.
    margin : {"pleiss", "yang"}, default="yang"
        Whether the largest other probability or the second largest probability is subtracted.
    training : MarginTraining, default=MarginTraining()
        Settings of the classifier.
    random_state : int, default=0
        Seed of the batches and of hidden layers.

    Returns
    -------
    DataFrame
        Columns task, worker, label, margin (AUM_ir) and trust (s_ir).

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=50, n_workers=5, n_classes=2, votes_per_task=2)
    >>> X = pd.DataFrame({"x": range(50)}, index=simulation.truth.index)
    >>> vote_margins(simulation.crowd, X).columns.tolist()
    ['task', 'worker', 'label', 'margin', 'trust']
    """
    votes, area, trust = _vote_statistics(crowd, X, model, margin, training, random_state)
    return votes.to_frame().assign(margin=area, trust=trust)


def prune_tasks(crowd: Crowd, scores: pd.Series, share: float = 0.01) -> Crowd:
    """Drop the votes on the tasks with the lowest scores.

    The tasks stay in the crowd without votes, so rows of features keep their positions.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    scores : Series
        Scores by task, from `aum` or `waum`.
    share : float, default=0.01
        Share of the scored tasks whose votes are dropped.

    Returns
    -------
    Crowd

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "cat")])
    >>> prune_tasks(crowd, pd.Series({"t1": 0.3, "t2": -0.1}), share=0.5)
    Crowd(1 vote: 2 tasks x 2 workers, 2 classes, 0.5 votes/task)
    """
    if not 0 <= share < 1:
        raise UsageError(f"share must be at least 0 and below 1; got {share}")
    finite_scores = scores.dropna()
    lowest = finite_scores.nsmallest(int(share * len(finite_scores))).index
    if len(lowest) and not lowest.isin(crowd.tasks).all():
        raise InputError("scores has tasks that are not in the crowd; pass the result of aum or waum for this crowd")
    return crowd.take(~crowd.tasks.isin(lowest)[crowd.task])


def areas_under_margin(scores: Iterable[FloatArray], margin: Margin = "pleiss") -> tuple[FloatArray, FloatArray]:
    """Compute the mean margin of every class of every task over the epochs.

    Parameters
    ----------
    scores : iterable of ndarray of shape (n_tasks, n_classes)
        Scores of any classifier, one array per epoch.
    margin : {"pleiss", "yang"}, default="pleiss"
        Whether the largest other score or the second largest score is subtracted.

    Returns
    -------
    area : ndarray of shape (n_tasks, n_classes)
        Mean margin.
    final_scores : ndarray of shape (n_tasks, n_classes)
        Scores of the last epoch.

    Examples
    --------
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
                f"scores must have shape (n_tasks, n_classes) with two or more classes; got shape {epoch_scores.shape}"
            )
        epochs += 1
        second, first = np.partition(epoch_scores, -2, axis=1)[:, -2:].T[:, :, None]
        # If two scores tie for the largest, the second equals the first.
        rival = second if margin == "yang" else np.where(epoch_scores == first, second, first)
        total = epoch_scores - rival if total is None else total + (epoch_scores - rival)
    if total is None:
        raise InputError("scores is empty; pass one array of shape (n_tasks, n_classes) per epoch")
    return total / epochs, epoch_scores


def logits_by_epoch(
    features: FloatArray, targets: FloatArray, training: MarginTraining, random_state: int = 0
) -> Iterator[FloatArray]:
    """Train a classifier and yield the logits of all tasks in each epoch.

    The logits of a task are those just before the step that trains on it.

    Parameters
    ----------
    features : ndarray of shape (n_tasks, n_features)
        Features of the tasks.
    targets : ndarray of shape (n_tasks, n_classes)
        Number of votes for each label.
    training : MarginTraining
        Settings of the classifier.
    random_state : int, default=0
        Seed of the batches and of hidden layers.

    Yields
    ------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> features, targets = np.array([[-1.0], [1.0]]), np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> for logits in logits_by_epoch(features, targets, MarginTraining(epochs=100)):
    ...     pass
    >>> logits.argmax(axis=1).tolist()
    [0, 1]
    """
    from scipy.special import softmax

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
        with use_one_blas_thread():
            for start in range(0, n_tasks, batch_size):
                batch = order[start : start + batch_size]
                logits[batch] = classifier.forward(inputs[batch])
                # An unbiased estimate of the mean over votes, as if every vote were a row.
                gradient = (softmax(logits[batch], axis=1) * n_votes[batch] - targets[batch]) / (
                    len(batch) * n_votes.mean()
                )
                classifier.step(gradient)
        yield logits


class _MarginClassifier:
    """Classifier with at most one hidden layer of rectified units, trained by Adam.

    It is written in NumPy, because diagnoses must work without PyTorch, which `wisecrowd.nn.trainer` needs.
    """

    def __init__(
        self, n_inputs: int, n_classes: int, n_tasks: int, training: MarginTraining, rng: np.random.Generator
    ) -> None:
        sizes = [n_inputs, *([training.hidden] if training.hidden else []), n_classes]
        # The last layer starts at zero, so that all classes are equally probable at first.
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
        """Return the logits, and keep the inputs of each layer for `step`."""
        self.layer_inputs = [inputs]
        for weight, intercept in zip(self.weights[:-1], self.intercepts[:-1], strict=True):
            self.layer_inputs.append(np.maximum(self.layer_inputs[-1] @ weight + intercept, 0))
        return np.asarray(self.layer_inputs[-1] @ self.weights[-1] + self.intercepts[-1])

    def step(self, gradient: FloatArray) -> None:
        """Take a step of Adam, given the gradient of the loss by the logits of the last `forward`."""
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


def _validate_inputs(crowd: CrowdLike, X: FeaturesLike, margin: str) -> tuple[Crowd, FloatArray]:
    """Return the observed votes, and the features as rows in the order of the tasks."""
    check_choice("margin", margin, ("pleiss", "yang"))
    votes = require_categorical_crowd(crowd, "computing margins")
    if votes.n_votes == 0:
        raise InputError("the crowd has no votes; give at least one")
    if votes.n_classes < 2:
        raise InputError("margins need two or more classes, but the crowd has one; name all of them: classes=[...]")
    features = align_feature_rows(X, votes)
    return votes, features.reshape(len(features), -1)


def _resolve_worker_model(crowd: Crowd, model: ConfusionEM | None) -> ConfusionEM:
    """Return a model with the workers and classes of the crowd."""
    fitted = resolve_model(crowd, model)
    if not (as_index(crowd.workers).equals(fitted.worker_index_) and as_index(crowd.classes).equals(fitted.classes_)):
        raise UsageError(
            "model has other workers or classes than the crowd; pass a model that was fitted to this crowd"
        )
    return fitted


def _vote_statistics(
    crowd: CrowdLike,
    X: FeaturesLike,
    model: ConfusionEM | None,
    margin: Margin,
    training: MarginTraining,
    random_state: int,
) -> tuple[Crowd, FloatArray, FloatArray]:
    """Return the votes, the area under the margin of each vote and the trust in its worker on its task."""
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
