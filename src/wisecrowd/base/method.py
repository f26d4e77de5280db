"""What every method is: a dataclass that can say what it is, be copied, saved and cited."""

from __future__ import annotations

import inspect
import os
import re
import time
import warnings
from abc import ABC
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter_fields
from wisecrowd.base.posterior_stream import Answers, write_answers
from wisecrowd.data.alignment import encode_truth
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.engines import gold_by_shard
from wisecrowd.engines.base import Engine, Work
from wisecrowd.errors import InputError, NotConverged, UsageError, did_you_mean
from wisecrowd.kernels import reference as kernels

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: A dense workers x classes x classes array is made on request only up to this many cells (2 GB).
DENSE_CELLS = 2**28


@method_class
class Method(ABC):  # noqa: B024  # what it does is for each kind of method to say
    """A method is a dataclass: its fields are its parameters, and what it learns ends in an underscore.

    It is a scikit-learn estimator (``get_params``, ``set_params``, ``clone``), without importing scikit-learn,
    which would triple the time a command line takes to start.

    >>> from wisecrowd import MajorityVote
    >>> MajorityVote(ties="first").get_params()["ties"]
    'first'
    >>> MajorityVote.name
    'majority-vote'
    """

    #: The method to use where nobody knows who cast which vote.
    without_workers: ClassVar[str] = "majority-vote"
    #: What to call it on the command line; from the class's file, so that a name exists once.
    name: ClassVar[str] = ""
    #: Keys into ``references.bib``.
    references: ClassVar[tuple[str, ...]] = ()
    #: Whether it must know who cast each vote.
    needs_workers: ClassVar[bool] = True
    #: Whether it wants numbers instead of classes; None takes either.
    numeric: ClassVar[bool | None] = False
    #: Laws of `wisecrowd.base.laws` that this method breaks, each with the reason.
    breaks: ClassVar[dict[str, str]] = {}
    #: Advice when a fit ended at its iteration limit.
    if_unsettled: ClassVar[str] = "raise max_iter, or tol if this is good enough"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__module__.rsplit(".", 1)[-1].replace("_", "-")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, those of nested methods too, as ``outer__inner``."""
        params: dict[str, Any] = {}
        for field in parameter_fields(self):
            value = params[field.name] = getattr(self, field.name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{field.name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; a misspelt one is an error."""
        known = {field.name for field in parameter_fields(self)}
        for key, value in params.items():
            outer, _, inner = key.partition("__")
            if outer not in known:
                raise UsageError(f"{type(self).__name__} has no parameter {key!r}; it has {', '.join(sorted(known))}."
                                 f"{did_you_mean(outer, known)}")  # fmt: skip
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self

    def unfitted(self) -> Self:
        """A method with the same parameters that has learnt nothing: whose it is may not want it fitted.

        >>> from wisecrowd import MajorityVote
        >>> MajorityVote(ties="first").unfitted()
        MajorityVote(ties='first')
        """
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in parameter_fields(self)
            if not _same(getattr(self, field.name), field.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)

    def __sklearn_is_fitted__(self) -> bool:
        return any(key.endswith("_") and not key.startswith("_") for key in vars(self))

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the method's page.

        >>> from wisecrowd import MajorityVote
        >>> MajorityVote.summary()
        'The class that most workers chose.'
        """
        text = inspect.getdoc(cls) or ""
        return re.sub(r"\s+", " ", text.split("\n\n")[0]).strip()

    def save(self, folder: str | Path) -> None:
        """Write parameters and everything learnt to a folder of arrays and JSON; :func:`wisecrowd.load` reads it back."""
        from wisecrowd.base.persistence import save

        save(self, folder)

    def _revive(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """A part with a life of its own (a classifier), made anew from the parameters and the arrays that were saved."""
        raise NotImplementedError(f"{type(self).__name__} has no part {name}")

    def _as_crowd(self, crowd: Any) -> Crowd:
        if isinstance(crowd, Crowd):
            return crowd
        if isinstance(crowd, ShardedCrowd):
            raise UsageError(
                f"{type(self).__name__} wants the votes in memory here, and this crowd is in shards; load them if they fit "
                "(crowd.load()), or fit a method that streams: dawid-skene, one-coin, …"
            )
        build = Crowd.from_triples if isinstance(crowd, list | tuple) else Crowd.from_frame
        return build(crowd, numeric=bool(self.numeric))

    def _check_types(self) -> None:
        """Refuse a text where a number belongs: it would fail far from here, and not say why."""
        number = int | float | np.number
        wanted = {
            "int": (int | np.integer, "a whole number"),
            "float": (number, "a number"),
            "float | None": (number | None, "a number or None"),
        }
        for field in parameter_fields(self):
            value = getattr(self, field.name)
            kinds, words = wanted.get(str(field.type), (object, ""))
            if not isinstance(value, kinds) or (field.name == "tol" and value != value):  # NaN differs from itself
                raise UsageError(f"{field.name} of {type(self).__name__} must be {words}; got {value!r}")

    def _admit(self, crowd: Any, *, shards: bool = False) -> Any:
        """Let a crowd in, or say at the door why not; one in shards only where it is welcome."""
        votes = crowd if shards and isinstance(crowd, ShardedCrowd) else self._as_crowd(crowd)
        title = type(self).__name__
        if votes.is_numeric and self.numeric is False:
            raise InputError(
                f"{title} chooses between classes, but these labels are numbers; use a numeric method "
                "(mean, median), or turn the numbers into names if they are codes of classes"
            )
        if self.numeric is True and not votes.is_numeric:
            raise InputError(f"{title} averages numbers, but these labels are classes; read them with numeric=True")
        if self.needs_workers and not votes.has_workers:
            raise InputError(
                f"{title} must know who cast each vote, and this crowd has no worker ids; use {self.without_workers}"
            )
        if votes.n_votes == 0:
            raise InputError(f"{title} needs votes, and this crowd has none")
        return votes

    # ------------------------------------------------------------------ fitting

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
        return encode_truth(truth, crowd) if isinstance(crowd, Crowd) else gold_by_shard(truth, crowd)

    def _set_fitted(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        """Keep what was inferred; the tally of posteriors by (worker, label) follows from it unless given."""
        if posterior is not None:
            self.posterior_ = posterior
        self.n_votes_ = crowd.n_votes
        pairs = crowd.pairs
        self.pair_worker_, self.pair_label_ = pairs.worker, pairs.label
        self.tally_ = kernels.tally(crowd.layout, posterior) if tally is None else tally

    def _set_fitted_from_engine(self, engine: Engine, tally: NDArray[Any], answer: Work, *shared: Any) -> None:
        """Keep what was inferred, of a crowd in shards without the posterior; ``answer`` gives that of a chunk."""
        if isinstance(engine.crowd, ShardedCrowd):
            self._unread = Answers(engine.crowd, engine.gold, answer, shared)
            self._set_fitted(engine.crowd, None, tally)
            return
        parts = list(engine.each(answer, *shared))
        self._set_fitted(engine.crowd, parts[0] if len(parts) == 1 else np.concatenate(parts), tally)

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

    def posterior_tables(self) -> Iterator[pd.DataFrame]:
        """The posterior as tables of tasks x classes, one for each shard of the crowd; of a crowd in memory, one.

        >>> from wisecrowd import Crowd, MajorityVote
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")])
        >>> [len(table) for table in MajorityVote().fit(crowd).posterior_tables()]
        [2]
        """
        self._check_fitted("tally_")
        if "_unread" not in vars(self):
            self._check_fitted("posterior_")
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
        write_answers(self.posterior_tables(), path, proba=proba)

    # ------------------------------------------------------------------ what was learnt, for people

    @property
    def labels_(self) -> pd.Series:
        """The most probable class of every task."""
        best = self._check_fitted("posterior_").argmax(axis=1)
        return pd.Series(self.classes_[best], index=self.task_index_.rename("task"), name="label")

    @property
    def proba_(self) -> pd.DataFrame:
        """The posterior, tasks x classes."""
        columns = self.classes_.rename("class")
        return pd.DataFrame(self._check_fitted("posterior_"), index=self.task_index_.rename("task"), columns=columns)

    @property
    def workers_(self) -> pd.DataFrame:
        """What was learnt of each worker: number of labels, accuracy, and what the method adds."""
        self._check_fitted("n_votes_")
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
            return {"n_votes": np.round(total, 6), "accuracy": (right + right_before) / (total + total_before)}

    def _pseudo_votes(self, n_classes: int) -> tuple[float, float]:
        """Pseudo-votes of a worker for being right, and in all, when their accuracy is estimated."""
        return 0.0, 0.0

    @property
    def confusion_(self) -> NDArray[np.float64]:
        """What each worker says when each class is true: (workers, true, said), rows sum to one."""
        return self.confusion_of(range(self._n_workers))

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Confusion matrices of some workers, by position: (chosen workers, true, said)."""
        n_classes = self._check_fitted("tally_").shape[1]
        chosen = self._chosen(workers)
        place = np.full(self._n_workers, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        mine = np.flatnonzero(place[self.pair_worker_] >= 0)
        # All pairs of the chosen workers, seen or not: the method's own formula then fills the whole matrix.
        row = place[self.pair_worker_[mine]].astype(np.int64) * n_classes + self.pair_label_[mine]
        tally = np.zeros((len(chosen) * n_classes, n_classes))
        tally[row] = self.tally_[mine]
        worker, label = np.divmod(np.arange(len(tally), dtype=np.int32), np.int32(n_classes))
        label_probs = self._reported_label_probs(tally, Pairs(worker, label, np.empty(0, dtype=np.int32), len(chosen)))
        return np.ascontiguousarray(label_probs.reshape(len(chosen), n_classes, n_classes).transpose(0, 2, 1))

    def _chosen(self, workers: Any) -> NDArray[np.int32]:
        """Positions of some workers, of whom there must not be more than matrices have room for."""
        chosen, n_classes = np.asarray(list(workers), dtype=np.int32), len(self.classes_)
        if len(chosen) * n_classes**2 > DENSE_CELLS:
            raise UsageError(
                f"{len(chosen):,} confusion matrices of {n_classes:,} x {n_classes:,} would not fit in memory; "
                "ask for some of the workers: confusion_of([0, 1, 2])"
            )
        return chosen

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
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

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if not hasattr(self, attribute):
            if "tally_" in vars(self):
                raise UsageError(
                    "the answers about a crowd in shards are not saved with a method; fit it again, or write them after the "
                    "fit: fitted.write_labels('labels.parquet'). What it knows of workers is here: workers_, predict"
                )
            raise UsageError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return getattr(self, attribute)


def _same(value: object, default: object) -> bool:
    try:
        return bool(value is default or value == default)
    except ValueError:  # arrays compare by element
        return False
