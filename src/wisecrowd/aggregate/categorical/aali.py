"""AALI: classifiers trained on tasks with clear votes, applied to all tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._feature_aggregator import FeatureAggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.neighbours import scale_to_range
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.utils import progress

#: Smallest variance of a feature within a class, relative to the largest variance of any feature. The votes of clear tasks
#: hardly vary, and without this floor naive Bayes gives every other vote a probability of zero.
MIN_RELATIVE_VARIANCE = 1e-2


@method_class
class AALI(FeatureAggregator):
    """Classifiers trained on tasks with clear votes (attribute augmentation-based label integration, approximate).

    1. Augment: x_i' = (x_i, s_i, H(s_i) / log K, margin of s_i), with s_i the vote shares and x_i scaled to the range 0 to 1.
    2. Filter: a task is reliable if the share of its most voted class is no less than the mean of that share over the tasks
       with the same most voted class. Tied tasks are not reliable.
    3. Learn: the reliable tasks, with their most voted class, are divided into ``folds``; each component classifier learns from
       all folds but one, and the posterior is the mean prediction of the components for x_i'.

    **This implementation follows an abstract.** *Published*: three stages, which augment the attributes, filter reliable
    instances with a multiple noisy label set of high quality, and predict all instances by component classifiers that cross-
    validation builds on reliable instances with their majority classes. *Guesses*: the attributes that are added (1), the
    measure of quality and its threshold (2), the classifier, the number of folds, and the mean over components (3).

    Gold tasks are reliable. For tasks without votes, classifiers of the features alone predict the class. Where the clear votes
    name fewer than two classes, the posterior is the vote shares.

    Choose it for comparisons. A class that never wins a vote clearly is never predicted, many features outweigh the
    votes, and ``classifier="tree"`` mostly uses the votes, which separate the reliable tasks perfectly. Posteriors are
    overconfident. It does not model workers; `Concord` and `Raykar` combine workers and features.

    Examples
    --------
    >>> import pandas as pd
    >>> from wisecrowd import AALI, Crowd
    >>> votes = [(task, worker, "cat" if task < 5 else "dog") for task in range(10) for worker in ("ann", "bob")]
    >>> votes += [(10, "ann", "cat"), (10, "bob", "dog")]  # tied
    >>> X = pd.DataFrame({"size": [1.0, 1.2, 1.1, 0.9, 1.3, 5.0, 5.2, 4.9, 5.1, 4.8, 5.05, 1.05]})
    >>> AALI().fit(Crowd.from_triples(votes, tasks=X.index), X).labels_[[10, 11]].to_dict()
    {10: 'dog', 11: 'cat'}
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2023attribute",)

    classifier: Any = parameter(
        default="naive-bayes", help="Classifier of the tasks: 'naive-bayes', 'tree', or a scikit-learn classifier."
    )
    folds: int = parameter(default=10, help="Number of component classifiers, each of which leaves out one fold.")
    random_state: int = parameter(default=0, help="Seed of the folds and of trees.")

    reliable_: NDArray[np.bool_] = fitted(help="Whether each task was used for training.", shape=("n_tasks",))

    def _infer(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        X: NDArray[np.float64],
        informed: NDArray[np.bool_],
        start: Any,
    ) -> NDArray[np.float64]:
        if start is not None:
            raise UsageError("AALI starts from the votes; leave start out")
        if self.folds < 2:
            raise UsageError(f"folds must be 2 or more; got {self.folds}")
        shares = compute_vote_shares(crowd)
        voted = crowd.vote_counts.sum(axis=1) > 0
        reliable, target = _find_reliable_tasks(shares, voted)
        if gold is not None:
            reliable, target = reliable | (gold >= 0), np.where(gold >= 0, gold, target)
        self.reliable_ = reliable
        features = scale_to_range(X, informed)
        # Folds follow the order of the features, so that the order of tasks or classes does not matter.
        training = np.lexsort(features.T)
        training = training[reliable[training]]
        voted_training = training[voted[training]]  # gold tasks without votes cannot be augmented
        posterior = shares.copy()
        if len(np.unique(target[voted_training])) > 1:
            augmented = np.column_stack([features, _compute_vote_features(shares)])
            posterior[voted] = self._predict_by_folds(augmented, voted_training, target, voted, crowd.n_classes)
        if len(training) and not voted.all():
            posterior[~voted] = self._predict_by_folds(features, training, target, ~voted, crowd.n_classes)
        return posterior

    def _make_classifier(self) -> Any:
        """Return an unfitted component classifier."""
        if not isinstance(self.classifier, str):
            if not (hasattr(self.classifier, "fit") and hasattr(self.classifier, "predict_proba")):
                raise UsageError(
                    "classifier must be 'naive-bayes', 'tree' or a scikit-learn classifier with predict_proba; "
                    f"got {self.classifier!r}"
                )
            return self.classifier
        check_choice("classifier", self.classifier, ("naive-bayes", "tree"))
        if self.classifier == "tree":
            from sklearn.tree import DecisionTreeClassifier

            return DecisionTreeClassifier(random_state=self.random_state)
        from sklearn.naive_bayes import GaussianNB

        return GaussianNB(var_smoothing=MIN_RELATIVE_VARIANCE)

    def _predict_by_folds(
        self,
        features: NDArray[np.float64],
        training: NDArray[np.intp],
        target: NDArray[np.intp],
        rows: NDArray[np.bool_],
        n_classes: int,
    ) -> NDArray[np.float64]:
        """Return the mean prediction, for some rows, of classifiers that each leave out one fold."""
        from sklearn.base import clone

        component = self._make_classifier()
        n_folds = min(self.folds, len(training))
        fold = np.random.default_rng(self.random_state).permutation(len(training)) % n_folds
        total = np.zeros((int(rows.sum()), n_classes))
        for number in range(n_folds):
            tasks = training[fold != number] if n_folds > 1 else training
            classes = np.unique(target[tasks])
            if len(classes) == 1:  # not every classifier accepts a single class
                total[:, classes] += 1
            else:
                model = clone(component).fit(features[tasks], target[tasks])
                total[:, model.classes_] += model.predict_proba(features[rows])
            progress.report("AALI", number + 1, n_folds, f"trained on {len(tasks):,} tasks")
        return total / total.sum(axis=1, keepdims=True)


def _find_reliable_tasks(
    shares: NDArray[np.float64], voted: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return whether the votes on each task are as clear as usual for its most voted class, and that class."""
    winner = shares.argmax(axis=1)
    share = shares.max(axis=1)
    is_untied = voted & ((shares == share[:, None]).sum(axis=1) == 1)
    n_classes = shares.shape[1]
    total = np.bincount(winner[is_untied], weights=share[is_untied], minlength=n_classes)
    mean = total / np.maximum(np.bincount(winner[is_untied], minlength=n_classes), 1)
    return is_untied & (share >= mean[winner] - 1e-9), winner  # the mean of equal shares may exceed them by rounding


def _compute_vote_features(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the features that describe the votes on a task: shares, relative entropy, and margin."""
    n_classes = shares.shape[1]
    entropy = -(shares * np.log(np.maximum(shares, np.finfo(float).tiny))).sum(axis=1) / np.log(max(n_classes, 2))
    best, second = np.sort(np.pad(shares, ((0, 0), (1, 0))), axis=1)[:, [-1, -2]].T
    return np.column_stack([shares, entropy, best - second])
