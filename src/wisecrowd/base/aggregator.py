"""Aggregators: methods that infer the truth of tasks from their votes."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import (
    N_VOTES_HELP,
    PAIR_LABEL_HELP,
    PAIR_WORKER_HELP,
    POSTERIOR_HELP,
    TALLY_HELP,
    fitted,
    method_class,
)
from wisecrowd.base.method import Method
from wisecrowd.base.posterior_stream import PosteriorStream
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.engines import Chunk, ChunkFunction, Engine
from wisecrowd.engines.base import tally_chunk
from wisecrowd.engines.retained import return_value
from wisecrowd.errors import UsageError


@method_class
class Aggregator(Method):
    """Base class of methods that infer the truth of tasks from their votes.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "bob", "dog")])
    >>> MajorityVote().fit(crowd).labels_.to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """

    #: Whether ``fit`` takes task features.
    uses_features: ClassVar[bool] = False
    #: Whether ``fit`` takes a crowd in shards; such a method has the parameters ``engine`` and ``n_jobs``.
    streams: ClassVar[bool] = False

    n_votes_: int = fitted(help=N_VOTES_HELP)
    posterior_: NDArray[Any] = fitted(
        help=f"{POSTERIOR_HELP} Computed on access for a crowd in shards.", shape=("n_tasks", "n_classes"), finite=True
    )
    pair_worker_: NDArray[np.int32] = fitted(help=PAIR_WORKER_HELP, shape=("n_pairs",), codes="n_workers")
    pair_label_: NDArray[np.int32] = fitted(help=PAIR_LABEL_HELP, shape=("n_pairs",), codes="n_classes")
    tally_: NDArray[Any] = fitted(help=TALLY_HELP, shape=("n_pairs", "n_classes"), finite=True)

    def fit(
        self,
        crowd: CrowdLike,
        X: FeaturesLike | None = None,
        *,
        truth: TruthLike | None = None,
        start: Aggregator | pd.DataFrame | NDArray[Any] | None = None,
    ) -> Self:
        """Infer the truth of every task.

        Parameters
        ----------
        crowd : Crowd, ShardedCrowd, table, or list of (task, worker, label)
            Votes.
        X : DataFrame or array of shape (n_tasks, n_features), optional
            Features of the tasks, for methods that use them.
        truth : Series, mapping, DataFrame or array, optional
            Truth of gold tasks by task id. Gold tasks keep their class, and workers are judged by them.
        start : Aggregator, DataFrame or array of shape (n_tasks, n_classes), optional
            Posterior to start from, or a fitted method of the same kind whose parameters of workers are carried over by
            worker id.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        votes = self.validate_votes(crowd, allow_shards=self.streams)
        if X is not None and not self.uses_features:
            raise UsageError(f"{type(self).__name__} does not use features; leave X out")
        self._start_fit(votes)
        self._fit(votes, None if truth is None else self._encode_gold(truth, votes), X=X, start=start)
        self._finish_fit(start_time)
        return self

    @abstractmethod
    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        """Estimate the model and call `_set_fitted`; ``crowd`` may be a `ShardedCrowd` if the method streams."""

    def fit_predict(self, crowd: CrowdLike, X: FeaturesLike | None = None, **options: Any) -> pd.Series:
        """Fit and return the labels.

        Parameters
        ----------
        crowd : Crowd, ShardedCrowd, table, or list of (task, worker, label)
            Votes.
        X : DataFrame or array of shape (n_tasks, n_features), optional
            Features of the tasks, for methods that use them.
        **options
            Further arguments of `fit`.

        Returns
        -------
        Series
            Most probable class by task.
        """
        return self.fit(crowd, X, **options).labels_

    def fit_predict_proba(self, crowd: CrowdLike, X: FeaturesLike | None = None, **options: Any) -> pd.DataFrame:
        """Fit and return the posterior.

        Parameters
        ----------
        crowd : Crowd, ShardedCrowd, table, or list of (task, worker, label)
            Votes.
        X : DataFrame or array of shape (n_tasks, n_features), optional
            Features of the tasks, for methods that use them.
        **options
            Further arguments of `fit`.

        Returns
        -------
        DataFrame
            Posterior probabilities with tasks as rows and classes as columns.
        """
        return self.fit(crowd, X, **options).proba_

    def _set_fitted_from_engine(
        self, engine: Engine, posterior_function: ChunkFunction, *shared: Any, tally: NDArray[Any] | None = None
    ) -> None:
        """Store the results of a fit on an engine.

        ``posterior_function(chunk, *shared)`` returns the posterior of a chunk's tasks. For a crowd in shards, the posterior
        is not stored but computed on request, by an engine of the kind that the parameters ``engine`` and ``n_jobs`` name.
        The tally is computed on the engine unless it is given.
        """
        if isinstance(engine.crowd, ShardedCrowd):
            if tally is None:
                tally = engine.sum(_tally_posterior, posterior_function, *shared)
            self._posterior_stream = PosteriorStream(
                engine.crowd,
                engine.gold,
                posterior_function,
                shared,
                engine=getattr(self, "engine", "local"),
                n_jobs=getattr(self, "n_jobs", 1),
            )
            self._set_fitted(engine.crowd, None, tally)
            return
        if tally is None:
            state = engine.retain(posterior_function, *shared)
            tally, parts = engine.sum(tally_chunk, state), list(engine.map(return_value, state))
        else:
            parts = list(engine.map(posterior_function, *shared))
        self._set_fitted(engine.crowd, parts[0] if len(parts) == 1 else np.concatenate(parts), tally)


def _tally_posterior(chunk: Chunk, posterior_function: ChunkFunction, *shared: Any) -> NDArray[Any]:
    """Chunk function: return the tally of the posterior that another chunk function computes."""
    return tally_chunk(chunk, posterior_function(chunk, *shared))
