"""Raykar: a classifier and one confusion matrix per worker, fitted jointly."""

from __future__ import annotations

from typing import ClassVar

from wisecrowd.base.fields import method_class
from wisecrowd.learn._classifier_em import ClassifierEM


@method_class
class Raykar(ClassifierEM):
    """Classifier and one confusion matrix per worker, fitted jointly by EM.

    For two classes this is the two-coin model of Raykar et al. with sensitivity π_r[1, 1] and specificity π_r[0, 0]. For K
    classes it is the Dawid–Skene model with a classifier in place of the class prior.

        E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
        M:  f maximises Σ_i Σ_k q_i(k) log f_k(x_i) − λ/2 ‖W‖²;  π_r follows from the tally of q, with pseudo-votes

    Workers are scored against the posterior q, not against the classifier. With a constant feature the method equals
    `DawidSkene`. Any scikit-learn classifier or pipeline with ``predict_proba`` can replace logistic regression.

    Two options improve it more than another classifier: ``cv=5`` keeps the votes of a task out of its own prior, and
    ``shrinkage=True`` shrinks workers with few votes toward the matrix of the crowd. `Concord` uses both by default.

    Examples
    --------
    >>> from wisecrowd import Raykar, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = Raykar().fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)

    def _accepts_sparse(self) -> bool:
        return self._make_classifier(self.l2).accepts_sparse
