"""Raykar et al.: logistic regression and the workers' confusion matrices, learnt together."""

from __future__ import annotations

from typing import ClassVar

from wisecrowd.base.fields import method_class
from wisecrowd.em.classifier import ClassifierEM


@method_class
class Raykar(ClassifierEM):
    """A classifier and every worker's confusion matrix, learnt together by EM from the votes.

    The two-coin model of Raykar et al. for two classes (sensitivity π_r[1, 1], specificity π_r[0, 0]) and its
    extension to K classes: Dawid and Skene's workers, with a classifier in the place of the class prior.

        E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
        M:  f maximises Σ_i Σ_k q_i(k) log f_k(x_i) − λ/2 ‖W‖²;  π_r follows from the tally of q, with pseudo-votes

    Workers are scored against the posterior q, not against the classifier. With a constant feature it is `DawidSkene`.
    Any scikit-learn classifier that has ``predict_proba`` and takes ``sample_weight`` can stand in for logistic
    regression. Two options are worth more than another classifier: ``cv=5`` keeps a task's own votes out of what the
    classifier expects of it, and ``shrinkage=True`` draws workers with few labels toward the crowd's matrix;
    `Concord` has both by default.

    >>> from wisecrowd import Raykar, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = Raykar().fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning",)
