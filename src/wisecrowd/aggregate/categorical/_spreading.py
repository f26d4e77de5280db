"""What aggregators that look at features share: the features, and the answers that they start from."""

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
from wisecrowd.data.alignment import feature_rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, given_posterior
from wisecrowd.errors import InputError, UsageError


@method_class
class FeatureAggregator(Aggregator):
    """An aggregator that is given a row of features for every task.

    >>> from wisecrowd import MNLDP
    >>> issubclass(MNLDP, FeatureAggregator)
    True
    """

    uses_features: ClassVar[bool] = True
    needs_workers: ClassVar[bool] = False

    def _fit(self, crowd: Crowd, gold: NDArray[np.int32] | None, *, X: Any, start: Any) -> None:
        if X is None:
            raise UsageError(
                f"{type(self).__name__} looks at the features of tasks as well as at votes; give it both, "
                "fit(crowd, X), with X a table indexed by task"
            )
        rows = feature_rows(X, crowd)
        informed = crowd.votes.sum(axis=1) > 0
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
        """The posterior; ``informed`` marks the tasks of which votes or known truth say something."""


def first_answers(
    aggregator: Any, crowd: Crowd, gold: NDArray[np.int32] | None, X: NDArray[np.float64], start: Any
) -> NDArray[np.float64]:
    """The answers to spread: those of ``start``, a posterior or a fitted method, or else of an aggregator or its name.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> first_answers("majority-vote", crowd, np.array([1]), np.zeros((1, 1)), None).tolist()
    [[0.0, 1.0]]
    """
    if start is not None:
        return apply_gold(given_posterior(start.proba_ if isinstance(start, Method) else start, crowd), gold)
    method = find(aggregator)() if isinstance(aggregator, str) else aggregator
    if not isinstance(method, Aggregator) or method.numeric:
        raise UsageError(f"aggregator must be one that chooses between classes, or its name; got {aggregator!r}")
    if method.needs_workers and not crowd.has_workers:
        raise InputError(
            f"{method.name} must know who cast each vote, and this crowd has no worker ids; "
            "start from votes instead: aggregator='majority-vote'"
        )
    known = None
    if gold is not None and crowd.classes is not None:
        gold_tasks = np.flatnonzero(gold >= 0)
        known = pd.Series(crowd.classes[gold[gold_tasks]], index=crowd.tasks[gold_tasks])
    given = pd.DataFrame(X, index=crowd.tasks) if method.uses_features else None
    return np.array(method.unfitted().fit(crowd, given, truth=known).posterior_, dtype=np.float64)
