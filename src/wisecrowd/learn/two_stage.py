"""TwoStage: aggregate the votes, then train a classifier on the result."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import find_training_tasks
from wisecrowd.errors import UsageError
from wisecrowd.nn.classifier_choice import CLASSIFIER_HELP, CLASSIFIER_L2_HELP, make_classifier


@method_class
class TwoStage(Learner):
    """Classifier trained on the posterior of an aggregator.

    This is the baseline of every learner. ``TwoStage(aggregator="majority-vote", hard=True)`` is called DL-MV in papers,
    ``TwoStage(aggregator="majority-vote")`` DL-softMV and ``TwoStage(aggregator="dawid-skene")`` DL-DS. Soft targets carry the
    uncertainty of the crowd and are almost always better than hard ones.

    The posterior of the training tasks is that of the aggregator: the classifier does not correct it. In `Raykar` and
    `Concord` it does.

    Examples
    --------
    >>> from wisecrowd import TwoStage, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> bool(TwoStage(aggregator="dawid-skene").fit(X, simulation.crowd).score(X, simulation.truth) > 0.9)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)
    needs_workers: ClassVar[bool] = False

    classifier: Any = parameter(default="logistic", help=CLASSIFIER_HELP)
    l2: float | None = parameter(default=None, help=CLASSIFIER_L2_HELP)
    random_state: int = parameter(default=0, help="Seed of the initial weights of networks.")
    aggregator: Any = parameter(default="dawid-skene", help="Aggregator of the first stage, or its name.")
    hard: bool = parameter(default=False, help="Train on the most probable class only, instead of on the posterior.")

    classifier_: SoftClassifier = fitted(help="Classifier fitted to the posterior of the aggregator.")
    first_converged_: bool = fitted(help="Whether the aggregator converged.")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        from sklearn.base import clone

        aggregator: Any = find(self.aggregator)() if isinstance(self.aggregator, str) else clone(self.aggregator)
        if not isinstance(aggregator, Aggregator):
            raise UsageError(
                f"aggregator must be an aggregator or its name, such as 'dawid-skene'; got {self.aggregator!r}"
            )
        truth = None
        if gold is not None:
            gold_tasks = np.flatnonzero(gold >= 0)
            truth = dict(zip(crowd.tasks[gold_tasks], self.classes_[gold[gold_tasks]], strict=True))
        aggregator.fit(crowd, X if aggregator.uses_features else None, truth=truth)
        self.first_converged_ = bool(getattr(aggregator, "converged_", True))
        training = find_training_tasks(crowd.layout, gold)
        targets = aggregator.posterior_
        if self.hard:
            targets = np.eye(crowd.n_classes)[targets.argmax(axis=1)]
        self.classifier_ = self._make_classifier().fit(X[training], targets[training])
        self._set_fitted(crowd, aggregator.posterior_, aggregator.tally_)

    def _make_classifier(self) -> SoftClassifier:
        return make_classifier(self.classifier, l2=self.l2, random_state=self.random_state)

    def _accepts_sparse(self) -> bool:
        return self._make_classifier().accepts_sparse

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.classifier_.predict_proba(X)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> SoftClassifier:
        """Return the saved classifier.

        Parameters
        ----------
        name : str
            Name of the attribute, ``classifier_``.
        arrays : dict of str to ndarray
            Fitted parameters of the classifier.

        Returns
        -------
        SoftClassifier
        """
        return self._make_classifier().restore(arrays)
