"""MNLDP: tasks that look alike lend each other their votes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._spreading import FeatureAggregator, first_answers
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.neighbours import propagate, range_scaled, reconstruction_weights
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@method_class
class MNLDP(FeatureAggregator):
    """Every task keeps half of its votes' say and takes the other half from the tasks that are most like it.

    Label distributions travel along a graph of neighbours (multiple noisy label distribution propagation):

        p_i⁰ = share of each class in the votes of task i
        w_i  = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  j among the k nearest neighbours of i
        p_i ← λ p_i⁰ + (1 − λ) Σ_j w_ij p_j,   ``max_iter`` times

    with features on the range 0 to 1, Euclidean distances, and λ = ``keep``. With ``tol`` above 0 (and ``max_iter`` large)
    it goes on to the limit, λ (I − (1 − λ) W)⁻¹ P⁰, from which five passes are not far.

    A task that nobody labelled gets the answer of its neighbours among those with votes, and changes nobody else's. A
    task of known truth keeps it, and passes it on. ``aggregator`` spreads the answers of another method instead of votes.

    Choose it when tasks have few labels each and features that put tasks of one class together: music genres .704 to .777
    (31 features), scenes .766 to .822 (512 features), leaves .643 to .648. Where features say little of classes, it blurs:
    textual entailment .897 to .836 by an embedding of the sentences. It knows nothing of workers; `LabelPropagation` starts
    from what `DawidSkene` infers, and a learner such as `Concord` weighs workers and features together. Posteriors are
    blends of votes, and less sure than they are right. Which of several tasks at the same distance are neighbours is
    arbitrary.

    The equations are the paper's. Its program was not at hand: that k is 5, λ is 0.5 and that there are 5 passes is as the
    same authors set them in later work, and a small ridge makes the weights unique.

    >>> import pandas as pd
    >>> from wisecrowd import MNLDP, Crowd
    >>> votes = [("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t3", "bob", "dog"), ("t4", "bob", "dog"), ("t5", "ann", "dog")]
    >>> X = pd.DataFrame({"size": [1.0, 1.1, 5.0, 5.2, 1.05, 5.1]}, index=["t1", "t2", "t3", "t4", "t5", "t6"])
    >>> crowd = Crowd.from_triples(votes, tasks=X.index)
    >>> found = MNLDP(k=2).fit(crowd, X)
    >>> found.labels_["t6"], found.proba_.loc["t5"].round(2).to_dict()
    ('dog', {'cat': 0.34, 'dog': 0.66})
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2019multiple",)

    k: int = parameter(default=5, help="neighbours of a task")
    keep: float = parameter(default=0.5, help="share of its own votes in a task's answer, above 0 up to 1")
    max_iter: int = parameter(default=5, help="how often answers are passed on at most")
    tol: float = parameter(default=0.0, help="stop when no answer changes by more; 0 passes on max_iter times")
    aggregator: Any = parameter(default="majority-vote", help="an aggregator, or its name, whose answers are passed on")

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
        first = first_answers(self.aggregator, crowd, gold, X, start)
        graph = reconstruction_weights(range_scaled(X, informed), self.k, informed)
        own = np.where(informed, self.keep, 0.0)
        if gold is not None:
            own[gold >= 0] = 1
        posterior, self.n_iter_, self.converged_ = propagate(
            graph, first, own, max_iter=self.max_iter, tol=self.tol, title="MNLDP"
        )
        return posterior / posterior.sum(axis=1, keepdims=True)  # what rounding left
