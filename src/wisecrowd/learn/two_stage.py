"""Aggregate first, then train: the plain way, and the baseline of every learner."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_fields import ClassifierLearner, taught_by
from wisecrowd.errors import UsageError


@method_class
class TwoStage(ClassifierLearner):
    """An aggregator's answer as the target of a classifier.

    ``TwoStage(aggregator="majority-vote", hard=True)`` is what papers call DL-MV, ``TwoStage(aggregator="majority-vote")``
    DL-softMV and ``TwoStage(aggregator="dawid-skene")`` DL-DS. Soft targets tell the classifier how sure the crowd is, and
    are better almost always. The posterior of the training tasks is the aggregator's: the classifier does not correct it.
    `Raykar` and `Concord` let it.

    >>> from wisecrowd import TwoStage, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> bool(TwoStage(aggregator="dawid-skene").fit(X, made.crowd).score(X, made.truth) > 0.9)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)
    needs_workers: ClassVar[bool] = False

    aggregator: Any = parameter(default="dawid-skene", help="an aggregator, or its name")
    hard: bool = parameter(default=False, help="train on the most probable class alone")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        from sklearn.base import clone

        chosen = find(self.aggregator)() if isinstance(self.aggregator, str) else clone(self.aggregator)
        if not isinstance(chosen, Aggregator):
            raise UsageError(f"the first stage must be an aggregator; got {self.aggregator!r}")
        first: Aggregator = chosen
        known = None
        if gold is not None:
            gold_tasks = np.flatnonzero(gold >= 0)
            known = dict(zip(crowd.tasks[gold_tasks], self.classes_[gold[gold_tasks]], strict=True))
        first.fit(crowd, X if first.uses_features else None, truth=known)
        self.first_converged_ = bool(getattr(first, "converged_", True))
        taught = taught_by(crowd.layout, gold)
        targets = first.posterior_
        if self.hard:
            targets = np.eye(crowd.n_classes)[targets.argmax(axis=1)]
        self.classifier_ = self._new_classifier().fit(X[taught], targets[taught])
        self._set_fitted(crowd, first.posterior_, first.tally_)
