"""AALI: a classifier learns from the clear tasks, and answers for all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._spreading import FeatureAggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.neighbours import range_scaled
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import vote_shares
from wisecrowd.errors import UsageError, one_of
from wisecrowd.utils import progress

#: The least variance of a feature within a class, as a share of the largest variance of any. The votes of clear tasks hardly
#: vary, and without it naive Bayes takes every other vote for impossible.
LEAST_VARIANCE = 1e-2


@method_class
class AALI(FeatureAggregator):
    """Approximate: classifiers learn from the tasks with clear votes, and answer for all.

    Attribute augmentation-based label integration, in three stages:

    1. Augment: x_i' = (x_i, s_i, H(s_i) / log K, margin of s_i), with s_i the shares of votes and x_i on the range 0 to 1.
    2. Filter: a task is reliable if its most voted class has a share no less than the mean of that share over the tasks
       with the same most voted class. Tied tasks are not.
    3. Learn: the reliable tasks, with their most voted class, are dealt into ``folds``; each component classifier learns
       from all folds but one, and the posterior is the mean of what the components say of x_i'.

    **This is a reading of an abstract.** The paper's abstract names the stages, majority voting on the reliable tasks and
    component classifiers built by cross-validation; the formulas of 1 and 2 and the kind of classifier are ours.

    A task of known truth is reliable, and teaches that. A task without votes has nothing to augment with: classifiers of
    the features alone answer for it. Where the clear votes name fewer than two classes, votes stand as they are.

    Choose it to compare with. Of six public crowds with features it beats majority vote on four (leaves .73 to .64, scenes
    .81 to .77, CIFAR-10 .93 to .91, music genres .72 to .70) and loses on two (relations in sentences .69 to .72). What it
    cannot do: a class that never wins a vote clearly is never answered, and votes are features like any other, so that
    many features drown them, while a ``classifier="tree"`` mostly sees the votes, which split the reliable tasks perfectly.
    Posteriors are far too sure (.97 and more on average, where .71 to .89 are right), since naive Bayes takes every
    feature for new evidence. It knows nothing of workers; `Concord` and `Raykar` weigh workers and features together.

    >>> import pandas as pd
    >>> from wisecrowd import AALI, Crowd
    >>> votes = [(task, worker, "cat" if task < 5 else "dog") for task in range(10) for worker in ("ann", "bob")]
    >>> votes += [(10, "ann", "cat"), (10, "bob", "dog")]  # tied
    >>> X = pd.DataFrame({"size": [1.0, 1.2, 1.1, 0.9, 1.3, 5.0, 5.2, 4.9, 5.1, 4.8, 5.05, 1.05]})
    >>> AALI().fit(Crowd.from_triples(votes, tasks=X.index), X).labels_[[10, 11]].to_dict()
    {10: 'dog', 11: 'cat'}
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2023attribute",)

    classifier: Any = parameter(default="naive-bayes", help="'naive-bayes', 'tree', or a scikit-learn classifier")
    folds: int = parameter(default=10, help="component classifiers, each of which leaves one fold out")
    random_state: int = parameter(default=0, help="seed of the folds, and of trees")

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
        shares = vote_shares(crowd)
        voted = crowd.votes.sum(axis=1) > 0
        clear, target = _clear(shares, voted)
        if gold is not None:
            clear, target = clear | (gold >= 0), np.where(gold >= 0, gold, target)
        self.reliable_ = clear
        plain = range_scaled(X, informed)
        # Teachers are dealt into folds by what they look like, so that no order of tasks or classes decides.
        teachers = np.lexsort(plain.T)
        teachers = teachers[clear[teachers]]
        voters = teachers[voted[teachers]]  # the others know their truth, but not how votes look
        posterior = shares.copy()
        if len(np.unique(target[voters])) > 1:
            seen = np.column_stack([plain, _augmentation(shares)])
            posterior[voted] = self._label_probs(seen, voters, target, voted, crowd.n_classes)
        if len(teachers) and not voted.all():
            posterior[~voted] = self._label_probs(plain, teachers, target, ~voted, crowd.n_classes)
        return posterior

    def _component(self) -> Any:
        """A classifier that has not learnt anything yet."""
        if not isinstance(self.classifier, str):
            if not (hasattr(self.classifier, "fit") and hasattr(self.classifier, "predict_proba")):
                raise UsageError(
                    "classifier must be 'naive-bayes', 'tree' or a scikit-learn classifier with predict_proba; "
                    f"got {self.classifier!r}"
                )
            return self.classifier
        one_of("classifier", self.classifier, ("naive-bayes", "tree"))
        if self.classifier == "tree":
            from sklearn.tree import DecisionTreeClassifier

            return DecisionTreeClassifier(random_state=self.random_state)
        from sklearn.naive_bayes import GaussianNB

        return GaussianNB(var_smoothing=LEAST_VARIANCE)

    def _label_probs(
        self,
        seen: NDArray[np.float64],
        teachers: NDArray[np.intp],
        target: NDArray[np.intp],
        rows: NDArray[np.bool_],
        n_classes: int,
    ) -> NDArray[np.float64]:
        """What classifiers that learn from all teachers but a fold say of some rows, on average."""
        from sklearn.base import clone

        component = self._component()
        folds = min(self.folds, len(teachers))
        fold = np.random.default_rng(self.random_state).permutation(len(teachers)) % folds
        total = np.zeros((int(rows.sum()), n_classes))
        for left_out in range(folds):
            mine = teachers[fold != left_out] if folds > 1 else teachers
            names = np.unique(target[mine])
            if len(names) == 1:  # not every classifier learns from one class
                total[:, names] += 1
            else:
                learnt = clone(component).fit(seen[mine], target[mine])
                total[:, learnt.classes_] += learnt.predict_proba(seen[rows])
            progress.report("AALI", left_out + 1, folds, f"learnt from {len(mine):,} tasks")
        return total / total.sum(axis=1, keepdims=True)


def _clear(shares: NDArray[np.float64], voted: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which tasks have votes as clear as is usual for their most voted class, and which class that is."""
    winner = shares.argmax(axis=1)
    share = shares.max(axis=1)
    wins = voted & ((shares == share[:, None]).sum(axis=1) == 1)
    n_classes = shares.shape[1]
    total = np.bincount(winner[wins], weights=share[wins], minlength=n_classes)
    usual = total / np.maximum(np.bincount(winner[wins], minlength=n_classes), 1)
    return wins & (share >= usual[winner] - 1e-9), winner  # a sum of equal shares may exceed them by rounding


def _augmentation(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """What votes add to the features of a task: shares, entropy relative to its largest value, and margin."""
    n_classes = shares.shape[1]
    entropy = -(shares * np.log(np.maximum(shares, np.finfo(float).tiny))).sum(axis=1) / np.log(max(n_classes, 2))
    best, second = np.sort(np.pad(shares, ((0, 0), (1, 0))), axis=1)[:, [-1, -2]].T
    return np.column_stack([shares, entropy, best - second])
