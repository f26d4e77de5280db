"""Aggregators: methods that infer the truth of labelled tasks from the votes."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any, ClassVar, Self

import pandas as pd

from wisecrowd.base.fields import method_class
from wisecrowd.base.method import Method
from wisecrowd.errors import UsageError


@method_class
class Aggregator(Method):
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
    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        """Do the work and call `_set_fitted`. The crowd is a `Crowd`, or a `ShardedCrowd` too if the method streams."""

    def fit_predict(self, crowd: Any, X: Any = None, **options: Any) -> pd.Series:
        """Fit, and give the labels by task."""
        return self.fit(crowd, X, **options).labels_

    def fit_predict_proba(self, crowd: Any, X: Any = None, **options: Any) -> pd.DataFrame:
        """Fit, and give the posterior as a table of tasks x classes."""
        return self.fit(crowd, X, **options).proba_
