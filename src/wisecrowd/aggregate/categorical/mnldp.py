"""MNLDP: vote shares propagated between similar tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._feature_aggregator import FeatureAggregator, infer_initial_posterior
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.neighbours import compute_reconstruction_weights, propagate_labels, scale_to_range
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@method_class
class MNLDP(FeatureAggregator):
    """Vote shares averaged with those of similar tasks (multiple noisy label distribution propagation).

        p_i⁰ = share of each class in the votes of task i
        w_i  = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  j among the k nearest neighbours of i
        p_i ← λ p_i⁰ + (1 − λ) Σ_j w_ij p_j,   ``max_iter`` times

    with features scaled to the range 0 to 1, Euclidean distances, and λ = ``keep``. With ``tol`` above 0 and a large
    ``max_iter`` the iteration continues to the limit, λ (I − (1 − λ) W)⁻¹ P⁰, which differs little from the result of five
    iterations.

    A task without votes has the label of its neighbours with votes, and influences no other task. A gold task keeps its
    truth and passes it on. ``aggregator`` propagates the posterior of another method instead of vote shares.

    Choose it when tasks have few labels each and features put tasks of one class together. Where features say little about
    classes, it blurs the labels. It does not model workers; `LabelPropagation` starts from the posterior of `DawidSkene`, and a
    learner such as `Concord` combines workers and features. Posteriors are averages of votes and not calibrated. The choice
    between neighbours at equal distances is arbitrary.

    The equations are the paper's. k = 5, λ = 0.5 and 5 iterations are the settings of later work by the same authors; a small
    ridge makes the weights unique.

    Examples
    --------
    >>> import pandas as pd
    >>> from wisecrowd import MNLDP, Crowd
    >>> votes = [("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t3", "bob", "dog"), ("t4", "bob", "dog"), ("t5", "ann", "dog")]
    >>> X = pd.DataFrame({"size": [1.0, 1.1, 5.0, 5.2, 1.05, 5.1]}, index=["t1", "t2", "t3", "t4", "t5", "t6"])
    >>> crowd = Crowd.from_triples(votes, tasks=X.index)
    >>> fitted = MNLDP(k=2).fit(crowd, X)
    >>> fitted.labels_["t6"], fitted.proba_.loc["t5"].round(2).to_dict()
    ('dog', {'cat': 0.34, 'dog': 0.66})
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2019multiple",)

    k: int = parameter(default=5, help="Number of neighbours of a task.")
    keep: float = parameter(default=0.5, help="Share λ of its own votes in a task's posterior, above 0 and at most 1.")
    max_iter: int = parameter(default=5, help="Maximum number of iterations.")
    tol: float = parameter(
        default=0.0, help="Largest change of a probability in a converged fit; 0 makes max_iter iterations."
    )
    aggregator: Any = parameter(default="majority-vote", help="Aggregator, or its name, whose posterior is propagated.")

    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the posterior converged.")

    def _infer(
        self,
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        X: NDArray[np.float64],
        informed: NDArray[np.bool_],
        start: Any,
    ) -> NDArray[np.float64]:
        if not 0 < self.keep <= 1:
            raise UsageError(f"keep must be a share above 0 and at most 1; got {self.keep}")
        first = infer_initial_posterior(self.aggregator, crowd, gold, X, start)
        graph = compute_reconstruction_weights(scale_to_range(X, informed), self.k, informed)
        own_share = np.where(informed, self.keep, 0.0)
        if gold is not None:
            own_share[gold >= 0] = 1
        result = propagate_labels(graph, first, own_share, max_iter=self.max_iter, tol=self.tol, title="MNLDP")
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        return result.state / result.state.sum(axis=1, keepdims=True)  # rows sum to one up to rounding
