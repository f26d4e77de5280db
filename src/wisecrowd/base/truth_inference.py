"""The contract: what every method takes and gives."""

from __future__ import annotations

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.method import AnyCrowd as AnyCrowd
from wisecrowd.base.method import Method as Method
from wisecrowd.base.posterior_stream import Answers, write_answers
from wisecrowd.data.alignment import as_numbers, encode_truth, feature_rows, in_task_order
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines import clamp_by_shard
from wisecrowd.engines.base import Engine, Work
from wisecrowd.errors import DataWarning, InputError, NotConverged, UsageError, some
from wisecrowd.kernels import reference as kernels

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: A dense workers x classes x classes array is made on request only up to this many cells (2 GB).
DENSE_CELLS = 2**28


@dataclass(kw_only=True, eq=False, repr=False)
class Inference(Method):
    """A method that infers the truth of the tasks that were labelled, with or without features.

    After ``fit``: ``posterior_`` (tasks x classes), ``labels_`` (Series by task), ``proba_`` (the posterior as a table),
    ``workers_`` (table by worker), ``confusion_`` (workers x true x said), ``trace_``, ``n_iter_``, ``converged_``.
    What was inferred of a crowd in shards is not kept but inferred again where it is asked for: ``answers()`` gives it
    shard by shard, whatever the size.

    >>> from wisecrowd import MajorityVote
    >>> issubclass(MajorityVote, Inference)
    True
    """

    #: Laws of `wisecrowd.base.laws` that this method breaks, each with the reason.
    breaks: ClassVar[dict[str, str]] = {}
    #: Advice for whoever's fit ended at its iteration limit.
    if_unsettled: ClassVar[str] = "raise max_iter, or tol if this is good enough"

    def _begin(self, votes: AnyCrowd) -> None:
        """Keep the vocabularies, over which everything that is learnt is indexed."""
        self.classes_ = pd.Index([]) if votes.classes is None else votes.classes
        self.worker_index_ = votes.workers
        for name in ("_unread", "task_index_", "posterior_"):  # of a fit before this one
            vars(self).pop(name, None)
        if isinstance(votes, Crowd):
            self.task_index_ = votes.tasks

    def _end(self, begun: float) -> None:
        """Note the time, and warn of an iteration that was cut short."""
        self.fit_seconds_ = time.perf_counter() - begun
        if not getattr(self, "converged_", True) and getattr(self, "tol", 1) > 0:  # tol=0 asks for a number of passes
            warnings.warn(
                f"{type(self).__name__} stopped after {getattr(self, 'n_iter_', 0)} iterations before its answers "
                f"settled; {self.if_unsettled}",
                NotConverged,
                stacklevel=3,
            )

    def _known(self, truth: Any, crowd: AnyCrowd) -> Any:
        """What is known of each task's truth, in the form that `_fit` wants."""
        return encode_truth(truth, crowd) if isinstance(crowd, Crowd) else clamp_by_shard(truth, crowd)

    def _learn(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        """Keep what was inferred; the tally of posteriors by (worker, label) follows from it unless given."""
        if posterior is not None:
            self.posterior_ = posterior
        self.n_labels_ = crowd.n_labels
        pairs = crowd.pairs
        self.pair_worker_, self.pair_label_ = pairs.worker, pairs.label
        self.tally_ = kernels.tally(crowd.layout, posterior) if tally is None else tally

    def _learn_from(self, engine: Engine, tally: NDArray[Any], answer: Work, *shared: Any) -> None:
        """Keep what was inferred, of a crowd in shards without the posterior; ``answer`` gives that of a piece."""
        if isinstance(engine.crowd, ShardedCrowd):
            self._unread = Answers(engine.crowd, engine.clamp, answer, shared)
            self._learn(engine.crowd, None, tally)
            return
        parts = list(engine.each(answer, *shared))
        self._learn(engine.crowd, parts[0] if len(parts) == 1 else np.concatenate(parts), tally)

    if not TYPE_CHECKING:  # which would take any name for known

        def __getattr__(self, name: str) -> Any:
            # Only what is not there comes here: of a crowd in shards, what would fill memory.
            if name in ("posterior_", "task_index_") and "_unread" in vars(self):
                return self._unread.posterior() if name == "posterior_" else self._unread.crowd.tasks
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _class_shares(self) -> NDArray[np.float64]:
        """The mean of the posterior over all tasks."""
        if "_unread" not in vars(self):
            return self.posterior_.mean(axis=0)
        return sum(part.sum(axis=0) for _, part in self._unread) / self._unread.crowd.n_tasks

    def answers(self) -> Iterator[pd.DataFrame]:
        """The posterior as tables of tasks x classes, one for each shard of the crowd; of a crowd in memory, one.

        >>> from wisecrowd import Crowd, MajorityVote
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")])
        >>> [len(table) for table in MajorityVote().fit(crowd).answers()]
        [2]
        """
        self._learnt("tally_")
        if "_unread" not in vars(self):
            self._learnt("posterior_")
            yield self.proba_
            return
        for tasks, posterior in self._unread:
            yield pd.DataFrame(posterior, index=tasks.rename("task"), columns=self.classes_.rename("class"))

    def write_labels(self, path: str | os.PathLike[str], *, proba: bool = False) -> None:
        """Write task, label and confidence to a Parquet file, shard by shard; with ``proba``, every class's probability.

        >>> import tempfile
        >>> from wisecrowd import Crowd, MajorityVote
        >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]))
        >>> place = tempfile.mkdtemp() + "/labels.parquet"
        >>> fitted.write_labels(place)
        >>> pd.read_parquet(place).to_dict("records")[0]
        {'task': 't1', 'label': 'cat', 'confidence': 1.0}
        """
        write_answers(self.answers(), path, proba=proba)

    # ------------------------------------------------------------------ what was learnt, for people

    @property
    def labels_(self) -> pd.Series:
        """The most probable class of every task."""
        best = self._learnt("posterior_").argmax(axis=1)
        return pd.Series(self.classes_[best], index=self.task_index_.rename("task"), name="label")

    @property
    def proba_(self) -> pd.DataFrame:
        """The posterior, tasks x classes."""
        columns = self.classes_.rename("class")
        return pd.DataFrame(self._learnt("posterior_"), index=self.task_index_.rename("task"), columns=columns)

    @property
    def workers_(self) -> pd.DataFrame:
        """What was learnt of each worker: number of labels, accuracy, and what the method adds."""
        self._learnt("n_labels_")
        if self.worker_index_ is None:
            raise UsageError("this crowd had no worker ids, so nothing is known of single workers")
        index = self.worker_index_.rename("worker")
        return pd.DataFrame(self._worker_columns(), index=index)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of `workers_`; a method that knows more of its workers adds to them."""
        pairs = self._pairs
        right = pairs.by_worker(self.tally_[np.arange(len(pairs)), pairs.label].astype(np.float64))
        total = pairs.by_worker(self.tally_.sum(axis=1, dtype=np.float64))
        right_before, total_before = self._pseudo_votes(self.tally_.shape[1])
        with np.errstate(invalid="ignore"):
            # A worker without a vote has no accuracy to speak of unless the model has a prior: NaN is the honest entry.
            return {"n_labels": np.round(total, 6), "accuracy": (right + right_before) / (total + total_before)}

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Pseudo-votes of a worker for being right, and in all, when their accuracy is estimated."""
        return 0.0, 0.0

    @property
    def confusion_(self) -> NDArray[np.float64]:
        """What each worker says when each class is true: (workers, true, said), rows sum to one."""
        return self.confusion_of(range(self._n_workers))

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Confusion matrices of some workers, by position: (chosen workers, true, said)."""
        n_classes = self._learnt("tally_").shape[1]
        chosen = self._chosen(workers)
        place = np.full(self._n_workers, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        mine = np.flatnonzero(place[self.pair_worker_] >= 0)
        # All pairs of the chosen workers, seen or not: the method's own formula then fills the whole matrix.
        row = place[self.pair_worker_[mine]].astype(np.int64) * n_classes + self.pair_label_[mine]
        tally = np.zeros((len(chosen) * n_classes, n_classes))
        tally[row] = self.tally_[mine]
        worker, label = np.divmod(np.arange(len(tally), dtype=np.int32), np.int32(n_classes))
        said = self._matrix(tally, Pairs(worker, label, np.empty(0, dtype=np.int32), len(chosen)))
        return np.ascontiguousarray(said.reshape(len(chosen), n_classes, n_classes).transpose(0, 2, 1))

    def _chosen(self, workers: Any) -> NDArray[np.int32]:
        """Positions of some workers, of whom there must not be more than matrices have room for."""
        chosen, n_classes = np.asarray(list(workers), dtype=np.int32), len(self.classes_)
        if len(chosen) * n_classes**2 > DENSE_CELLS:
            raise UsageError(
                f"{len(chosen):,} confusion matrices of {n_classes:,} x {n_classes:,} would not fit in memory; "
                "ask for some of the workers: confusion_of([0, 1, 2])"
            )
        return chosen

    def _matrix(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """P(worker of the pair says its label | true class), from the tally; plain frequencies unless a model says more."""
        total = pairs.by_worker(tally)[pairs.worker]
        n_classes = tally.shape[1]
        return np.divide(tally, total, out=np.full_like(tally, 1 / n_classes), where=total > 0)

    @property
    def _pairs(self) -> Pairs:
        return Pairs(self.pair_worker_, self.pair_label_, np.empty(0, dtype=np.int32), self._n_workers)

    @property
    def _n_workers(self) -> int:
        return 1 if self.worker_index_ is None else len(self.worker_index_)

    def _learnt(self, attribute: str) -> NDArray[Any]:
        if not hasattr(self, attribute):
            if "tally_" in vars(self):
                raise UsageError(
                    "the answers about a crowd in shards are not saved with a method; fit it again, or write them after the "
                    "fit: fitted.write_labels('labels.parquet'). What it knows of workers is here: workers_, predict"
                )
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return getattr(self, attribute)


@dataclass(kw_only=True, eq=False, repr=False)
class Aggregator(Inference):
    """Infers the truth of the tasks that were labelled, from the votes alone.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "bob", "dog")])
    >>> MajorityVote().fit(crowd).labels_.to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """

    #: Whether ``fit`` takes task features.
    uses_features: ClassVar[bool] = False
    #: Whether it takes a crowd in shards: all it wants of the votes adds up over tasks.
    streams: ClassVar[bool] = False

    def fit(self, crowd: Any, X: Any = None, *, truth: Any = None, start: Any = None) -> Self:
        """Infer the truth of every task.

        ``crowd`` is a `Crowd` or a dataframe with task, worker and label. ``truth`` holds the known truth of some tasks
        (gold questions): they keep it, and teach what their workers are worth. ``start`` is a posterior to start from
        (tasks x classes), or a fitted method of the same kind, whose knowledge of workers is carried over by id.
        """
        begun = time.perf_counter()
        self._check_types()
        votes = self._admit(crowd, shards=self.streams)
        if X is not None and not self.uses_features:
            raise UsageError(f"{type(self).__name__} does not look at features; leave X out")
        self._begin(votes)
        self._fit(votes, None if truth is None else self._known(truth, votes), X=X, start=start)
        self._end(begun)
        return self

    @abstractmethod
    def _fit(self, crowd: Any, clamp: Any, *, X: Any, start: Any) -> None:
        """Do the work and call `_learn`. The crowd is a `Crowd`, or a `ShardedCrowd` too if the method streams."""

    def fit_predict(self, crowd: Any, X: Any = None, **options: Any) -> pd.Series:
        """Fit, and give the labels by task."""
        return self.fit(crowd, X, **options).labels_

    def fit_predict_proba(self, crowd: Any, X: Any = None, **options: Any) -> pd.DataFrame:
        """Fit, and give the posterior as a table of tasks x classes."""
        return self.fit(crowd, X, **options).proba_


@dataclass(kw_only=True, eq=False, repr=False)
class Learner(Inference):
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
    def _fit(self, X: NDArray[np.float64], crowd: Crowd, clamp: NDArray[np.int32] | None) -> None:
        """Do the work and call `_learn`."""

    @abstractmethod
    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The class probabilities of rows of features that were checked."""

    @property
    def n_features_in_(self) -> int:
        """How many features a task has."""
        self._learnt("posterior_")
        return int(np.prod(self.feature_shape_))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable each class is (columns as ``classes_``) for tasks of which only features are known."""
        self._learnt("posterior_")
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
        n_classes = self._learnt("tally_").shape[1]
        said = np.zeros((n_classes, n_classes))
        np.add.at(said, self.pair_label_, self.tally_)
        said += 1e-3  # a class that never was true says nothing, uniformly
        return said.T / said.sum(axis=0)[:, None]

    def score(self, X: Any, y: Any) -> float:
        """How often `predict` is right; against a `Crowd`, the share of its votes that say what is predicted.

        A table of features meets the tasks of a crowd by id, as in `fit`, and so it meets truth that is a Series where
        that has all its ids.
        """
        if isinstance(y, Crowd):
            place = self.classes_.get_indexer(pd.Index(self.predict(in_task_order(X, y))))
            names = pd.Index([]) if y.classes is None else y.classes
            right = self.classes_.get_indexer(names)[y.label] == place[y.task]
            return float(np.average(right, weights=y.weight)) if y.n_labels else float("nan")
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
