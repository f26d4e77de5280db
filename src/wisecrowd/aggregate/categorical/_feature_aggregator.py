"""The family of aggregators that use task features, and the posteriors that they start from."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class
from wisecrowd.base.method import Method
from wisecrowd.base.registry import find
from wisecrowd.data.alignment import align_feature_rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import align_posterior, apply_gold
from wisecrowd.errors import InputError, UsageError


@method_class
class FeatureAggregator(Aggregator):
    """Base class of aggregators with one row of features per task.

    A subclass implements `_infer`.
    """

    uses_features: ClassVar[bool] = True
    needs_workers: ClassVar[bool] = False

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if X is None:
            raise UsageError(
                f"{type(self).__name__} uses the features of tasks as well as votes; call fit(crowd, X) with X a table "
                "indexed by task"
            )
        rows = align_feature_rows(X, crowd)
        informed = crowd.vote_counts.sum(axis=1) > 0
        if gold is not None:
            informed |= gold >= 0
        posterior = self._infer(crowd, gold, rows.reshape(len(rows), -1), informed, start)
        self._set_fitted(crowd, apply_gold(posterior, gold))

    @abstractmethod
    def _infer(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        X: NDArray[np.float64],
        informed: NDArray[np.bool_],
        start: Any,
    ) -> NDArray[np.float64]:
        """Return the posterior; ``informed`` marks tasks with votes or gold."""


def infer_initial_posterior(
    aggregator: Any, crowd: Crowd, gold: NDArray[np.int32] | None, X: NDArray[np.float64], start: Any
) -> NDArray[np.float64]:
    """Return the posterior that a method spreads over similar tasks.

    Parameters
    ----------
    aggregator : Aggregator or str
        Aggregator, or its name, that infers the posterior.
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where the truth is unknown.
    X : ndarray of shape (n_tasks, n_features)
        Features, for aggregators that use them.
    start : Method, DataFrame, ndarray or None
        Fitted method or posterior that takes precedence over ``aggregator``.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Raises
    ------
    UsageError
        If ``aggregator`` is not an aggregator for categorical labels.
    InputError
        If it needs worker ids and the crowd has none.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> infer_initial_posterior("majority-vote", crowd, np.array([1]), np.zeros((1, 1)), None).tolist()
    [[0.0, 1.0]]
    """
    if start is not None:
        return apply_gold(align_posterior(start.proba_ if isinstance(start, Method) else start, crowd), gold)
    method = find(aggregator)() if isinstance(aggregator, str) else aggregator
    if not isinstance(method, Aggregator) or "categorical" not in method.answer_types:
        raise UsageError(
            f"{aggregator!r} is not an aggregator for categorical labels; set the parameter aggregator to one, such as "
            "'dawid-skene' (`wisecrowd methods` lists all)"
        )
    if method.needs_workers and not crowd.has_workers:
        raise InputError(
            f"the parameter aggregator is {method.name}, which needs worker ids, and this crowd has none; pass "
            "aggregator='majority-vote', which needs none"
        )
    truth = None
    if gold is not None and crowd.classes is not None:
        tasks = np.flatnonzero(gold >= 0)
        truth = pd.Series(crowd.classes[gold[tasks]], index=crowd.tasks[tasks])
    features = pd.DataFrame(X, index=crowd.tasks) if method.uses_features else None
    return np.array(method.clone_unfitted().fit(crowd, features, truth=truth).posterior_, dtype=np.float64)
