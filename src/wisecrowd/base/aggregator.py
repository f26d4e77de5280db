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
from wisecrowd.base.sharpness import safe_log
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.engines import Chunk, ChunkFunction, Engine
from wisecrowd.engines.base import tally_chunk
from wisecrowd.engines.retained import return_value
from wisecrowd.errors import InputError, UsageError, preview

#: Pseudo-votes in every cell of the crowd's confusion matrix, for classes without votes.
CROWD_PSEUDO_VOTES = 1e-3
#: Pseudo-votes of the crowd's confusion matrix in that of every worker, when a method without matrices is scored.
WORKER_PSEUDO_VOTES = 4.0


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
            looks_like_labels = np.ndim(X) == 1  # scikit-learn passes y in this place
            advice = (
                '. To choose parameters with scikit-learn, leave y and scoring out (scoring="accuracy" needs y), which scores by '
                "held-out votes, or score by known truth: scoring=lambda model, votes: (model.predict(votes) == "
                "truth[votes.tasks]).mean()"
            )
            raise UsageError(
                f"{type(self).__name__} does not use features; leave X out. Known truth is given as truth="
                f"{advice if looks_like_labels else ''}"
            )
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

    def score(self, crowd: CrowdLike) -> float:
        """Return the mean log-probability of votes on tasks that the fit has not seen.

        The votes y_ir of the workers r on a task i have the probability Σ_k p_k Π_r π_r[k, y_ir] by the class shares p and the
        confusion matrices π of the fit. The score is the sum of its logarithm over tasks, divided by the number of votes; higher
        is better. scikit-learn chooses parameters by it: ``GridSearchCV(DawidSkene(), {"smoothing": [0.1, 1]}).fit(crowd)``
        splits the crowd by task. New workers have the confusion matrix of the crowd. A method without confusion matrices of its
        own is scored by those that follow from its posterior.

        Parameters
        ----------
        crowd : Crowd, table, or list of (task, worker, label)
            Votes on other tasks than those of the fit, mostly by the same workers.

        Returns
        -------
        float
            Mean log-probability of a vote, at most 0.

        Raises
        ------
        UsageError
            If the votes are numbers.
        InputError
            If there are no votes, or votes for classes that the fit does not know.

        Examples
        --------
        >>> from wisecrowd import DawidSkene, simulate_crowd
        >>> crowd = simulate_crowd(300, n_workers=10, votes_per_task=5, random_state=0).crowd
        >>> bool(-1.4 < DawidSkene().fit(crowd[:200]).score(crowd[200:]) < -0.3)
        True
        """
        votes = self.validate_votes(crowd)
        if votes.is_numeric or votes.classes is None:
            raise UsageError(
                f"{type(self).__name__}.score needs class labels, but these are numbers; compare methods for numbers by the error "
                "on tasks with known truth"
            )
        self._check_fitted("tally_")
        if votes.n_votes == 0:
            raise InputError("there are no votes to score; give at least one")
        code = locate_ids(votes.classes, self.classes_)
        used = np.unique(votes.label)
        if (code[used] < 0).any():
            raise InputError(
                f"the votes have classes that the fit did not know: {preview(votes.classes[used[code[used] < 0]])}; its classes "
                f"are {preview(self.classes_, 8)}. List all classes when you read the first votes: classes=[...]"
            )
        if not votes.classes.equals(self.classes_):
            votes = votes.replace_fields(label=code[votes.label], classes=self.classes_)
        label_probs = self._predictive_label_probs(votes)
        log_joint = votes.layout.vote_matrix @ safe_log(label_probs) + safe_log(self._predictive_class_shares())
        peak = log_joint.max(axis=1)
        log_likelihood = peak + np.log(np.exp(log_joint - peak[:, None]).sum(axis=1))
        return float(log_likelihood[votes.votes_per_task > 0].sum() / votes.weight.sum())

    def _predictive_class_shares(self) -> NDArray[np.float64]:
        """Return the class shares by which new tasks are predicted."""
        return np.asarray(self.posterior_, dtype=np.float64).mean(axis=0)

    def _predictive_label_probs(self, votes: Crowd) -> NDArray[np.float64]:
        """Return P(label given class) for the pairs of other votes, (n_pairs, n_classes), from the tally.

        A worker's expected counts are shrunk toward the confusion matrix of the crowd.
        """
        n_classes, tally = len(self.classes_), np.asarray(self.tally_, dtype=np.float64)
        crowd_counts = np.full((n_classes, n_classes), CROWD_PSEUDO_VOTES)
        np.add.at(crowd_counts, self.pair_label_, tally)
        crowd_probs = crowd_counts / crowd_counts.sum(axis=0)
        n_workers = 1 if self.worker_index_ is None else len(self.worker_index_)
        totals = np.zeros((n_workers + 1, n_classes))  # the last row is that of new workers
        np.add.at(totals, self.pair_worker_, tally)
        worker = np.zeros(1, dtype=np.intp) if votes.workers is None else locate_ids(votes.workers, self.worker_index_)
        pair_worker, pair_label = worker[votes.pairs.worker], votes.pairs.label
        key = self.pair_worker_.astype(np.int64) * n_classes + self.pair_label_
        position = pd.Index(key).get_indexer(pd.Index(pair_worker * n_classes + pair_label))
        counts = np.where(((position >= 0) & (pair_worker >= 0))[:, None], tally[position], 0.0)
        prior = WORKER_PSEUDO_VOTES * crowd_probs[pair_label]
        return np.asarray((counts + prior) / (totals[pair_worker] + WORKER_PSEUDO_VOTES))

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
