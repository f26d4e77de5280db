"""Base class of all methods: parameters, fitting and results."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import time
import warnings
from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.base.fields import fitted, fitted_fields, method_class, parameter_fields
from wisecrowd.base.posterior_stream import PosteriorStream, write_labels
from wisecrowd.data.alignment import encode_truth
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd, CrowdLike, TruthLike
from wisecrowd.engines import encode_gold_by_shard
from wisecrowd.errors import InputError, NotConverged, NotFitted, UsageError, suggest_name
from wisecrowd.utils.notebook import render_html

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: Cells of the largest dense array of confusion matrices, workers x classes x classes. With gradients and
#: moments, a network needs 16 bytes for each.
MAX_DENSE_CELLS = 2**26
#: Cells of a table of tasks or pairs by classes, by the mean number of votes of a class below which the limit holds. With fewer
#: than 5 votes, the labels are probably no classes but texts or numbers. A fit holds up to a dozen such tables.
MAX_CELLS_BY_VOTES_PER_CLASS = {5: 2**22, 30: 2**25}
_allows_rare_classes: ContextVar[bool] = ContextVar("allows_rare_classes", default=False)

#: Accepted types of a parameter by its annotation, and their description in an error message.
_PARAMETER_TYPES: dict[str, tuple[Any, str]] = {
    "int": (int | np.integer, "an integer"),
    "float": (int | float | np.number, "a number"),
    "float | None": (int | float | np.number | None, "a number or None"),
}
#: Types of parameters that were read from files, by annotation. JSON has only these.
_RESTORED_TYPES: dict[str, Any] = {
    "int": int, "int | None": int | None, "float": int | float, "float | None": int | float | None, "bool": int, "str": str,
    "str | None": str | None,
}  # fmt: skip


def check_matrices(n_matrices: int, n_classes: int, title: str) -> None:
    """Raise an error if dense matrices of classes x classes are too large.

    Parameters
    ----------
    n_matrices : int
        Number of matrices.
    n_classes : int
        Number of classes.
    title : str
        Name of the method that needs them.

    Raises
    ------
    InputError
        If they have more than `MAX_DENSE_CELLS` cells.

    Examples
    --------
    >>> check_matrices(5, 100_000, "TLLC")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: TLLC needs 5 matrices of 100,000 x 100,000 classes, which do not fit in memory; ...
    """
    if n_matrices * n_classes**2 > MAX_DENSE_CELLS:
        raise InputError(
            f"{title} needs {n_matrices:,} {'matrix' if n_matrices == 1 else 'matrices'} of {n_classes:,} x {n_classes:,} classes, "
            "which do not fit in memory; merge rare classes, or use a method without such matrices, such as dawid-skene"
        )


@contextlib.contextmanager
def allow_rare_classes() -> Iterator[None]:
    """Fit votes of any number of rare classes, for callers that limit the number of classes themselves.

    Examples
    --------
    >>> with allow_rare_classes():
    ...     pass
    """
    token = _allows_rare_classes.set(True)
    try:
        yield
    finally:
        _allows_rare_classes.reset(token)


def check_class_count(votes: AnyCrowd, *, has_vote_tables: bool = False) -> None:
    """Raise an error if most classes have hardly any votes and the tables by class would be large.

    A small file can make tables of tasks or pairs by classes as large as the square of its votes.

    Parameters
    ----------
    votes : Crowd or ShardedCrowd
        Votes with classes.
    has_vote_tables : bool, default=False
        Whether tables of all votes by classes and of classes by classes are needed as well, as in diagnoses and comparisons.

    Raises
    ------
    InputError
        If tables by class have too many cells.

    Examples
    --------
    >>> check_class_count(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    """
    n_classes = votes.n_classes
    if votes.n_votes >= max(MAX_CELLS_BY_VOTES_PER_CLASS) * n_classes or _allows_rare_classes.get():
        return
    n_rows = max(votes.n_tasks, len(votes.pairs), max(votes.n_votes, n_classes) * has_vote_tables)
    for votes_per_class, max_cells in MAX_CELLS_BY_VOTES_PER_CLASS.items():
        if votes.n_votes < votes_per_class * n_classes and n_rows * n_classes > max_cells:
            raise InputError(
                f"there are {n_classes:,} classes for {votes.n_votes:,} votes, fewer than {votes_per_class} votes per class, and "
                f"tables of {n_rows:,} rows by class would fill the memory. If the labels are numbers, read them with "
                "numeric=True (--numeric); if they are free text, code them first; otherwise merge rare classes"
            )


@method_class
class Method(ABC):  # noqa: B024  # each kind of method declares its own abstract methods
    """Base class of aggregators, learners and completers.

    A method is a dataclass whose fields are its parameters; attributes that ``fit`` sets end in an underscore. It follows
    the conventions of scikit-learn (``get_params``, ``set_params``, ``clone``) without importing scikit-learn, which would
    triple the start-up time of the command line.

    Examples
    --------
    >>> from wisecrowd import MajorityVote
    >>> MajorityVote(ties="first").get_params()["ties"]
    'first'
    >>> MajorityVote.name
    'majority-vote'
    """

    #: Name on the command line, derived from the name of the class's file.
    name: ClassVar[str] = ""
    #: Keys into ``references.bib``.
    references: ClassVar[tuple[str, ...]] = ()
    #: Whether the method needs the worker of each vote.
    needs_workers: ClassVar[bool] = True
    #: Method to recommend for votes without worker ids.
    without_workers: ClassVar[str] = "majority-vote"
    #: Answer types that the method takes. Votes that are no `Crowd` yet are read as the first of them.
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("categorical", "ordinal")
    #: Laws of `wisecrowd.base.laws` that the method breaks, each with the reason.
    breaks: ClassVar[dict[str, str]] = {}
    #: Advice in the warning that a fit stopped at its iteration limit.
    convergence_advice: ClassVar[str] = "raise max_iter, or tol if this is good enough"

    classes_: pd.Index = fitted(help="Class names, in the order of the class codes.")
    task_index_: pd.Index = fitted(help="Task ids, in the order of the tasks.")
    worker_index_: pd.Index | None = fitted(help="Worker ids, or None if votes have no worker ids.")
    fit_seconds_: float = fitted(help="Duration of the fit in seconds.")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__module__.rsplit(".", 1)[-1].replace("_", "-")

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Include the parameters of nested methods, as ``outer__inner``.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = {}
        for field in parameter_fields(self):
            value = params[field.name] = getattr(self, field.name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{field.name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : object
            Values by name; ``outer__inner`` sets a parameter of a nested method.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If the method has no such parameter.
        """
        names = {field.name for field in parameter_fields(self)}
        for key, value in params.items():
            outer, _, inner = key.partition("__")
            if outer not in names:
                raise UsageError(
                    f"{type(self).__name__} has no parameter {key!r}; it has {', '.join(sorted(names))}."
                    f"{suggest_name(outer, names)}"
                )
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def clone_unfitted(self) -> Self:
        """Return a new method with the same parameters.

        Returns
        -------
        Method
            A method that is not fitted.

        Examples
        --------
        >>> from wisecrowd import MajorityVote
        >>> MajorityVote(ties="first").clone_unfitted()
        MajorityVote(ties='first')
        """
        return type(self)(**self.get_params(deep=False))

    def _check_parameter_types(self) -> None:
        """Raise an error for a parameter of the wrong type, which would fail later with an obscure message."""
        for field in parameter_fields(self):
            value = getattr(self, field.name)
            accepted_type, description = _PARAMETER_TYPES.get(str(field.type), (object, ""))
            if not isinstance(value, accepted_type) or (
                field.name == "tol" and value != value
            ):  # NaN differs from itself
                raise UsageError(f"{field.name} of {type(self).__name__} must be {description}; got {value!r}")

    def _repr_html_(self) -> str:
        """Return the parameters and, after a fit, the first labels, for notebooks."""
        if "posterior_" not in vars(self):
            return render_html(repr(self))
        posterior = pd.Series(self.posterior_.max(axis=1), index=self.labels_.index, name="posterior")
        return render_html(repr(self), pd.concat([self.labels_, posterior], axis=1))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in parameter_fields(self)
            if not _equals(getattr(self, field.name), field.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def __sklearn_is_fitted__(self) -> bool:
        return any(key.endswith("_") and not key.startswith("_") for key in vars(self))

    @classmethod
    def summary(cls) -> str:
        """Return the first sentence of the method's documentation.

        Returns
        -------
        str

        Examples
        --------
        >>> from wisecrowd import MajorityVote
        >>> MajorityVote.summary()
        'The class that most workers chose.'
        """
        text = inspect.getdoc(cls) or ""
        return re.sub(r"\s+", " ", text.split("\n\n")[0]).strip()

    # ------------------------------------------------------------------ fitting

    def as_crowd(self, crowd: CrowdLike) -> Crowd:
        """Convert votes to a crowd in memory.

        Parameters
        ----------
        crowd : Crowd, table, or list of (task, worker, label)
            Votes.

        Returns
        -------
        Crowd

        Raises
        ------
        UsageError
            If the votes are in shards.
        """
        if isinstance(crowd, ShardedCrowd):
            raise UsageError(
                f"{type(self).__name__} needs the votes in memory, and this crowd is in shards; load it if it fits in memory "
                "(crowd.load()), or use a method that streams: model-average, dawid-skene, …"
            )
        return as_crowd(crowd, self.answer_types[0])

    @overload
    def validate_votes(self, crowd: CrowdLike) -> Crowd: ...
    @overload
    def validate_votes(self, crowd: CrowdLike, *, allow_shards: Literal[False]) -> Crowd: ...
    @overload
    def validate_votes(self, crowd: CrowdLike, *, allow_shards: bool) -> AnyCrowd: ...

    def validate_votes(self, crowd: CrowdLike, *, allow_shards: bool = False) -> AnyCrowd:
        """Convert votes to a crowd and check that the method can use them.

        Parameters
        ----------
        crowd : Crowd, ShardedCrowd, table, or list of (task, worker, label)
            Votes.
        allow_shards : bool, default False
            Accept a crowd in shards.

        Returns
        -------
        Crowd or ShardedCrowd

        Raises
        ------
        InputError
            If the method does not take votes of this answer type, if worker ids are missing, if there are no votes, or if there
            are too many classes for its tables.
        UsageError
            If the votes are in shards and ``allow_shards`` is False.
        """
        votes = crowd if allow_shards and isinstance(crowd, ShardedCrowd) else self.as_crowd(crowd)
        title = type(self).__name__
        if votes.answer_type not in self.answer_types:
            raise InputError(_explain_answer_type(title, self.answer_types, votes.answer_type))
        if self.needs_workers and not votes.has_workers:
            raise InputError(
                f"{title} needs the worker of each vote, and these votes have no worker ids; use {self.without_workers}"
            )
        if votes.n_votes == 0:
            raise InputError(f"{title} needs votes, and this crowd has none")
        if votes.classes is not None:
            check_class_count(votes)
            check_matrices(self._count_matrices(votes), votes.n_classes, title)
        return votes

    def _count_matrices(self, votes: AnyCrowd) -> int:
        """Return the number of dense matrices of classes x classes that a fit needs at the same time."""
        return 0

    def _start_fit(self, votes: AnyCrowd) -> None:
        """Store the vocabularies, and delete results of a previous fit that are computed on access."""
        self.classes_ = pd.Index([]) if votes.classes is None else votes.classes
        self.worker_index_ = votes.workers
        for name in ("_posterior_stream", "task_index_", "posterior_"):
            vars(self).pop(name, None)
        if isinstance(votes, Crowd):
            self.task_index_ = votes.tasks

    def _finish_fit(self, start_time: float) -> None:
        """Store the duration of the fit, and warn if it did not converge."""
        self.fit_seconds_ = time.perf_counter() - start_time
        if not getattr(self, "converged_", True) and getattr(self, "tol", 1) > 0:  # tol=0 requests max_iter iterations
            warnings.warn(
                f"{type(self).__name__} stopped after {getattr(self, 'n_iter_', 0)} iterations before it converged; "
                f"{self.convergence_advice}",
                NotConverged,
                stacklevel=3,
            )

    def _encode_gold(self, truth: TruthLike, crowd: AnyCrowd) -> Any:
        """Return the truth of gold tasks in the form that `_fit` takes."""
        return encode_truth(truth, crowd) if isinstance(crowd, Crowd) else encode_gold_by_shard(truth, crowd)

    def _set_fitted(self, crowd: AnyCrowd, posterior: NDArray[Any] | None, tally: NDArray[Any] | None = None) -> None:
        """Store the posterior and its tally; the tally is computed from the posterior if it is None."""
        if posterior is not None:
            self.posterior_ = posterior
        self.n_votes_ = crowd.n_votes
        pairs = crowd.pairs
        self.pair_worker_, self.pair_label_ = pairs.worker, pairs.label
        if tally is None:
            assert isinstance(crowd, Crowd)
            assert posterior is not None
            tally = kernels.tally(crowd.layout, posterior)
        self.tally_ = tally

    # ------------------------------------------------------------------ results

    @property
    def labels_(self) -> pd.Series:
        """Most probable class of every task, as a Series indexed by task."""
        best = self._check_fitted("posterior_").argmax(axis=1)
        return pd.Series(self.classes_[best], index=self.task_index_.rename("task"), name="label")

    @property
    def proba_(self) -> pd.DataFrame:
        """Posterior as a table with tasks as rows and classes as columns."""
        columns = self.classes_.rename("class")
        return pd.DataFrame(self._check_fitted("posterior_"), index=self.task_index_.rename("task"), columns=columns)

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of votes, accuracy, and further columns of the method."""
        self._check_fitted("n_votes_")
        if self.worker_index_ is None:
            raise UsageError("these votes have no worker ids, so there are no results by worker")
        return pd.DataFrame(self._worker_columns(), index=self.worker_index_.rename("worker"))

    @property
    def confusion_(self) -> NDArray[np.float64]:
        """Confusion matrices, shape (n_workers, n_classes, n_classes): P(given label | true class); rows sum to one."""
        return self.confusion_of(range(self._n_workers))

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the confusion matrices of some workers.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
            P(given label | true class), indexed by worker, true class and given label.

        Raises
        ------
        UsageError
            If the result would not fit in memory.
        """
        n_classes = self._check_fitted("tally_").shape[1]
        positions = self._check_positions(workers)
        rank = np.full(self._n_workers, -1, dtype=np.int32)
        rank[positions] = np.arange(len(positions), dtype=np.int32)
        selected = np.flatnonzero(rank[self.pair_worker_] >= 0)
        # All pairs of the workers, with and without votes, so that the method's own formula fills whole matrices.
        row = rank[self.pair_worker_[selected]].astype(np.int64) * n_classes + self.pair_label_[selected]
        tally = np.zeros((len(positions) * n_classes, n_classes))
        tally[row] = self.tally_[selected]
        worker, label = np.divmod(np.arange(len(tally), dtype=np.int32), np.int32(n_classes))
        all_pairs = Pairs(worker, label, np.empty(0, dtype=np.int32), len(positions))
        label_probs = self.reported_label_probs(tally, all_pairs)
        return np.ascontiguousarray(label_probs.reshape(len(positions), n_classes, n_classes).transpose(0, 2, 1))

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair | true class) as reported in confusion matrices.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of each row.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
            Relative frequencies, unless the model of the method says otherwise.
        """
        total = pairs.sum_by_worker(tally)[pairs.worker]
        n_classes = tally.shape[1]
        return np.divide(tally, total, out=np.full_like(tally, 1 / n_classes), where=total > 0)

    def accuracy_pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Return the prior of a worker's accuracy as pseudo-votes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        correct, total : float
            Number of correct pseudo-votes, and of all pseudo-votes.
        """
        return 0.0, 0.0

    def posterior_tables(self) -> Iterator[pd.DataFrame]:
        """Yield the posterior as tables of tasks and classes: one per shard, or one for a crowd in memory.

        For a crowd in shards, each table is computed when it is requested, by an engine of the same kind as in the fit.

        Yields
        ------
        DataFrame

        Examples
        --------
        >>> from wisecrowd import Crowd, MajorityVote
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")])
        >>> [len(table) for table in MajorityVote().fit(crowd).posterior_tables()]
        [2]
        """
        self._check_fitted("tally_")
        stream = self.posterior_stream
        if stream is None:
            self._check_fitted("posterior_")
            yield self.proba_
            return
        for tasks, posterior in stream:
            yield pd.DataFrame(posterior, index=tasks.rename("task"), columns=self.classes_.rename("class"))

    def write_labels(self, path: str | os.PathLike[str], *, proba: bool = False) -> None:
        """Write task, label and its posterior to a Parquet file, shard by shard.

        Parameters
        ----------
        path : path-like
            File that ends in ".parquet" or ".pq".
        proba : bool, default False
            Write the probability of every class as well.

        Examples
        --------
        >>> import tempfile
        >>> from wisecrowd import Crowd, MajorityVote
        >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]))
        >>> path = tempfile.mkdtemp() + "/labels.parquet"
        >>> fitted.write_labels(path)
        >>> pd.read_parquet(path).to_dict("records")[0]
        {'task': 't1', 'label': 'cat', 'posterior': 1.0}
        """
        parts = ((table, table.to_numpy().max(axis=1)) for table in self.posterior_tables())
        write_labels(parts, path, proba=proba, column="posterior")

    def save(self, folder: str | Path) -> None:
        """Write parameters and fitted attributes to a folder of arrays, tables and JSON.

        Parameters
        ----------
        folder : path-like
            Folder to create; :func:`wisecrowd.load` reads it.
        """
        from wisecrowd.base.persistence import save

        save(self, folder)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """Return a fitted part that is neither array nor table, such as a classifier, from its saved arrays.

        Parameters
        ----------
        name : str
            Name of the attribute.
        arrays : dict of str to ndarray
            Result of the part's method ``arrays``.

        Returns
        -------
        object
        """
        raise NotImplementedError(f"{type(self).__name__} has no part {name}")

    def restore_attribute(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """Return a fitted part of the method or of its kind from its saved arrays.

        Parameters
        ----------
        name : str
            Name of the attribute.
        arrays : dict of str to ndarray
            Result of the part's method ``arrays``.

        Returns
        -------
        object
        """
        return self.restore_part(name, arrays)

    def check_restored(self) -> None:
        """Raise ValueError if parameters and fitted attributes that were read from files contradict each other.

        Types, shapes and ranges of fitted attributes follow the declarations and are checked before; a method overrides
        this for anything else.
        """
        for field in parameter_fields(self):
            accepted = _RESTORED_TYPES.get(str(field.type))
            if accepted is not None and not isinstance(getattr(self, field.name), accepted):
                raise ValueError(f"the parameter {field.name} must be of the type {field.type}")

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            # Called for attributes that are not set; of a crowd in shards, these two would fill the memory.
            if name in ("posterior_", "task_index_") and (stream := self.posterior_stream) is not None:
                return stream.concatenate() if name == "posterior_" else stream.crowd.tasks
            # A property of the class gets here if it needs an attribute that is not set.
            if hasattr(type(self), name) or any(field.name == name for field in fitted_fields(self)):
                raise NotFitted(
                    f"this {type(self).__name__} has no {name}; call fit first, or load the result of a complete fit"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def posterior_stream(self) -> PosteriorStream | None:
        """Posteriors of a crowd in shards, computed shard by shard; None for a crowd in memory."""
        return vars(self).get("_posterior_stream")

    def _mean_posterior(self) -> NDArray[np.float64]:
        """Return the mean of the posterior over all tasks."""
        stream = self.posterior_stream
        if stream is None:
            return cast("NDArray[np.float64]", self.posterior_.mean(axis=0))
        return cast("NDArray[np.float64]", sum(posterior.sum(axis=0) for _, posterior in stream) / stream.crowd.n_tasks)

    def require_fitted(self, attribute: str = "tally_") -> None:
        """Raise an error if the method lacks a fitted attribute.

        Parameters
        ----------
        attribute : str, default="tally_"
            Fitted attribute that the caller needs.

        Raises
        ------
        UsageError
            If the method is not fitted, or was fitted to shards and does not keep the attribute.
        """
        self._check_fitted(attribute)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of `workers_`; methods add their own."""
        pairs = self._pairs
        correct = pairs.sum_by_worker(self.tally_[np.arange(len(pairs)), pairs.label].astype(np.float64))
        total = pairs.sum_by_worker(self.tally_.sum(axis=1, dtype=np.float64))
        prior_correct, prior_total = self.accuracy_pseudo_votes(self.tally_.shape[1])
        with np.errstate(invalid="ignore"):  # without votes and prior, the accuracy of a worker is undefined: NaN
            return {"n_votes": np.round(total, 6), "accuracy": (correct + prior_correct) / (total + prior_total)}

    def _check_positions(self, workers: Iterable[int]) -> NDArray[np.int32]:
        """Return positions of workers as an array, or raise an error if their confusion matrices do not fit in memory."""
        positions, n_classes = np.asarray(list(workers), dtype=np.int32), len(self.classes_)
        if len(positions) * n_classes**2 > MAX_DENSE_CELLS:
            raise UsageError(
                f"{len(positions):,} confusion matrices of {n_classes:,} x {n_classes:,} do not fit in memory; select some "
                "workers: confusion_of([0, 1, 2])"
            )
        return positions

    @property
    def _pairs(self) -> Pairs:
        """Distinct (worker, label) pairs, without votes."""
        return Pairs(self.pair_worker_, self.pair_label_, np.empty(0, dtype=np.int32), self._n_workers)

    @property
    def _n_workers(self) -> int:
        """Number of workers; one if votes have no worker ids."""
        return 1 if self.worker_index_ is None else len(self.worker_index_)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        """Return a fitted attribute, or raise an error that explains its absence."""
        if not hasattr(self, attribute):
            if "tally_" in vars(self):
                raise UsageError(
                    "the posterior of a crowd in shards is not saved with a method; fit again, or write the labels after "
                    "the fit: fitted.write_labels('labels.parquet'). Results by worker are available: workers_, predict"
                )
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return cast("NDArray[Any]", getattr(self, attribute))


def _explain_answer_type(title: str, expected: Sequence[AnswerType], got: AnswerType) -> str:
    """Return the message for votes of an answer type that a method does not take."""
    declare_order = (
        "if they do, name them in order and read them with ordered=True (--ordered --classes low,middle,high)"
    )
    if got == "numeric" and "categorical" not in expected:
        return (
            f"{title} takes ordered classes, and these labels are numbers; read them with ordered=True (--ordered) if they are "
            "grades such as 1 to 5, or use a method for numbers: rater-mean, mean, median"
        )
    if got == "numeric":
        return (
            f"{title} takes categorical votes, and these labels are numbers; use a numeric method (mean, median), or "
            "convert the numbers to strings if they are class codes"
        )
    if "numeric" in expected and "ordinal" in expected:
        return (
            f"{title} takes numbers or ordered classes, and these classes have no order; {declare_order}, or read numbers "
            "with numeric=True (--numeric). Otherwise use a method for classes: dawid-skene"
        )
    if "numeric" in expected:
        advice = ", or use rater-mean" if got == "ordinal" else ""
        return f"{title} takes numeric votes, and these labels are classes; read them with numeric=True (--numeric){advice}"
    return (
        f"{title} takes ordered classes, and these classes have no order; {declare_order}. Otherwise use a method for "
        "classes: dawid-skene"
    )


def _equals(value: object, default: object) -> bool:
    """Return whether a parameter has its default value."""
    try:
        return bool(value is default or value == default)
    except ValueError:  # arrays compare elementwise
        return False
