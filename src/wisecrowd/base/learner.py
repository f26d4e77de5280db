"""Learners: classifiers that are trained on votes."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class
from wisecrowd.base.method import Method
from wisecrowd.data.alignment import as_numbers, feature_rows, in_task_order
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import DataWarning, InputError, UsageError, some

if TYPE_CHECKING:
    from sklearn.utils import Tags


@method_class
class Learner(Method):
    """Trains a classifier on the votes: a scikit-learn classifier whose ``y`` is a `Crowd`.

    ``fit(X, crowd)`` learns to tell the classes apart by features, and infers the truth of the training tasks as an
    aggregator does. ``predict`` and ``predict_proba`` then answer for tasks that nobody labelled.

    >>> from wisecrowd import Raykar
    >>> issubclass(Raykar, Learner)
    True
    """

    without_workers: ClassVar[str] = "cmm"

    def fit(self, X: Any, crowd: Any, *, truth: Any = None) -> Self:
        """Learn from features and votes.

        ``X`` holds a row of features for every task: a table indexed by task, or an array when the order of tasks is
        beyond doubt. ``crowd`` is a `Crowd` or a dataframe with task, worker and label. ``truth`` holds the known truth
        of some tasks (gold questions), as for an aggregator.
        """
        begun = time.perf_counter()
        self._check_types()
        if isinstance(X, Crowd):
            raise UsageError(f"{type(self).__name__}.fit takes the features first: fit(X, crowd)")
        if isinstance(crowd, np.ndarray):
            raise UsageError(
                f"{type(self).__name__}.fit takes the votes of workers as its target, a Crowd, and got an array; to train on "
                "one label per task, any scikit-learn classifier will do. (cross_val_predict makes an array of a Crowd "
                "unless its method is 'predict'.)"
            )
        votes = self._admit(crowd)
        if votes.n_classes < 2:
            only = some([] if votes.classes is None else votes.classes)
            raise InputError(
                f"{type(self).__name__} learns to tell classes apart, and these votes name only {only}; "
                "name all classes when reading if nobody chose the others: classes=[...]"
            )
        rows = feature_rows(X, votes)
        self._begin(votes)
        self.feature_shape_ = list(rows.shape[1:])
        self.feature_names_ = _names(X)
        self._fit(rows, votes, None if truth is None else self._known(truth, votes))
        self._end(begun)
        return self

    @abstractmethod
    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """Do the work and call `_set_fitted`."""

    @abstractmethod
    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The class probabilities of rows of features that were checked."""

    @property
    def n_features_in_(self) -> int:
        """How many features a task has."""
        self._check_fitted("posterior_")
        return int(np.prod(self.feature_shape_))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable each class is (columns as ``classes_``) for tasks of which only features are known."""
        self._check_fitted("posterior_")
        rows = self._rows(X)
        return self._predict_proba(rows) if len(rows) else np.empty((0, len(self.classes_)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of tasks of which only features are known."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_worker_proba(self, X: Any, workers: Any) -> NDArray[np.float64]:
        """What each of some workers (by id) would say of tasks: (tasks, workers, classes).

        P(r says l | x) = Σ_k f_k(x) π_r[k, l]; a worker who was not seen in training answers as the crowd does.
        """
        return np.einsum("nk,rkl->nrl", self.predict_proba(X), self._confusion_by_id(workers))

    def _places_of(self, workers: Any) -> NDArray[np.intp]:
        """Positions of some workers (by id), −1 of those who were not seen in training."""
        if isinstance(workers, str):
            raise UsageError(f"a list of worker ids was wanted; got {workers!r}. For one worker: [{workers!r}]")
        wanted = pd.Index(workers)
        return np.full(len(wanted), -1) if self.worker_index_ is None else self.worker_index_.get_indexer(wanted)

    def _confusion_by_id(self, workers: Any) -> NDArray[np.float64]:
        known = self._places_of(workers)
        matrices = np.empty((len(known), len(self.classes_), len(self.classes_)))
        matrices[known >= 0] = self.confusion_of(known[known >= 0])
        matrices[known < 0] = self.crowd_confusion_
        return matrices

    @property
    def crowd_confusion_(self) -> NDArray[np.float64]:
        """What the crowd as a whole says when each class is true: (true, said), rows sum to one."""
        n_classes = self._check_fitted("tally_").shape[1]
        label_probs = np.zeros((n_classes, n_classes))
        np.add.at(label_probs, self.pair_label_, self.tally_)
        label_probs += 1e-3  # a class that never was true says nothing, uniformly
        return label_probs.T / label_probs.sum(axis=0)[:, None]

    def score(self, X: Any, y: Any) -> float:
        """How often `predict` is right; against a `Crowd`, the share of its votes that say what is predicted.

        A table of features meets the tasks of a crowd by id, as in `fit`, and so it meets truth that is a Series where
        that has all its ids.
        """
        if isinstance(y, Crowd):
            place = self.classes_.get_indexer(pd.Index(self.predict(in_task_order(X, y))))
            names = pd.Index([]) if y.classes is None else y.classes
            right = self.classes_.get_indexer(names)[y.label] == place[y.task]
            return float(np.average(right, weights=y.weight)) if y.n_votes else float("nan")
        if (
            isinstance(y, pd.Series)
            and isinstance(X, pd.DataFrame)
            and y.index.is_unique
            and X.index.isin(y.index).all()
        ):
            y = y.reindex(X.index)
        predicted, truth = self.predict(X), np.asarray(y)
        if truth.shape != predicted.shape:
            raise InputError(f"one true class per row was wanted, {len(predicted):,} in all; got shape {truth.shape}")
        return float((truth == predicted).mean())

    def _rows(self, X: Any) -> NDArray[np.float64]:
        """Features of new tasks, checked."""
        names = _names(X)
        if names is not None and self.feature_names_ is not None and names != self.feature_names_:
            if sorted(names) != sorted(self.feature_names_):
                absent = [name for name in self.feature_names_ if name not in names]
                further = [name for name in names if name not in self.feature_names_]
                told = [f"{what} {some(which)}" for what, which in (("without", absent), ("with", further)) if which]
                raise InputError(
                    f"the columns of training were wanted, in any order; got a table {' and '.join(told) or 'with repeats'}"
                )
            X = X.iloc[:, [names.index(name) for name in self.feature_names_]]
        if names is not None and self.feature_names_ is None:
            warnings.warn(
                "the features of training had no names, so that these columns are matched by their order; see that it "
                "is the same, or train on a table with names",
                DataWarning,
                stacklevel=4,
            )
        rows = as_numbers(X)
        wanted = tuple(self.feature_shape_)
        if rows.shape[1:] != wanted or rows.ndim < 2:
            raise InputError(
                f"rows of {' x '.join(map(str, wanted))} features were wanted, as in training; got an array of shape {rows.shape}"
            )
        bad = ~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
        if bad.any():
            raise InputError(
                f"features of {bad.sum():,} rows are not finite, for example row {some(np.flatnonzero(bad))}; impute them first"
            )
        return rows

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        return tags


def _names(X: Any) -> list[str] | None:
    """The names of the features, if they have any beside their numbers."""
    if not isinstance(X, pd.DataFrame) or X.columns.equals(pd.RangeIndex(X.shape[1])):
        return None
    return [str(name) for name in X.columns]
