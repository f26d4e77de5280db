"""Fixed Difficulty EM: difficulty by the disagreement of workers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.learn.difficulty._easiness_em import EasinessEM
from wisecrowd.learn.difficulty._responses import Array, compute_easiness


@method_class
class FixedDifficulty(EasinessEM):
    """Classifier and abilities of every worker, fitted jointly by EM, with difficulties from the votes.

    The model is that of `AdaptiveDifficulty`, except that the easiness of a task follows from its votes before the fit
    (Xu et al. 2019):

        c_ik = (votes for k + κ/K) / (votes + κ),   s_i = K/(K−1) Σ_k (c_ik − 1/K)²

    κ keeps a single vote from making a task easiest. The paper, whose workers label every task, has κ = 0.

    Maximum likelihood (``ability_update="ml"``) fails here: unanimous tasks are easy *because* all votes agree, so all workers
    appear perfect on easy tasks. The program of the authors avoids this by learning abilities so slowly that they stay at those
    of the vote shares (``ability_update="frozen"``). The default is a Gaussian prior around these, with precision ``anchor``
    for every vote of a worker on a class: the problem grows with the data, and so must the prior. Algorithm 3 of the paper
    also takes the vote shares as the prior of a task (``prior="votes"``), so that the classifier never corrects a vote; the
    program of the authors takes the classifier.

    Use `AdaptiveDifficulty` unless difficulty is unrelated to the features. The defaults of ``anchor`` and κ were chosen on
    simulated crowds. Benchmark: ``wisecrowd bench show xu2019``.

    Examples
    --------
    >>> from wisecrowd import FixedDifficulty
    >>> from wisecrowd.simulate import simulate_gaussian_difficulty
    >>> simulation = simulate_gaussian_difficulty(1000, votes_per_task=4)
    >>> model = FixedDifficulty().fit(simulation.features, simulation.crowd)
    >>> bool(model.score(simulation.test_features, simulation.test_truth) > 0.9)
    True
    >>> int(model.tasks_["easiness"].round(6).nunique())  # 4 : 0, 3 : 1 and 2 : 2 votes
    3
    """

    references: ClassVar[tuple[str, ...]] = ("xu2019difficulty",)

    anchor: float = parameter(
        default=0.1,
        help="Precision per vote of the prior of abilities around those of the vote shares, with 'map'.",
    )
    kappa: float = parameter(
        default=1.0, help="Number of pseudo-votes, spread evenly over the classes, in the vote shares of a task."
    )
    prior: Literal["classifier", "votes"] = parameter(
        default="classifier", help="Class prior of a task in the E-step: the classifier, or the vote shares."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("prior", self.prior, ("classifier", "votes"))
        if min(self.kappa, self.anchor) < 0:
            raise UsageError(f"kappa and anchor must not be negative; got {self.kappa} and {self.anchor}")

    def _smooth_vote_shares(self, crowd: Crowd) -> Array:
        """Return the vote shares c of every task."""
        total = crowd.vote_counts.sum(axis=1, keepdims=True) + self.kappa
        uniform = np.full(crowd.vote_counts.shape, 1 / crowd.n_classes)
        return np.divide(crowd.vote_counts + self.kappa * uniform, total, out=uniform.copy(), where=total > 0)

    def _estimate_easiness(self, class_probs: Array, posterior: Array, crowd: Crowd) -> Array:
        return compute_easiness(self._smooth_vote_shares(crowd))

    def _predict_easiness(self, class_probs: Array) -> Array:
        # Without votes, the mean easiness of the training tasks is the best guess.
        return np.full(len(class_probs), self.easiness_.mean())

    def _prior_precision(self, crowd: Crowd) -> Array:
        votes_by_worker = crowd.pairs.sum_by_worker(np.asarray(crowd.layout.vote_matrix.sum(axis=0)))
        return self.anchor * votes_by_worker / crowd.n_classes

    def _class_prior(self, class_probs: Array, crowd: Crowd) -> Array:
        if self.prior == "classifier":
            return class_probs
        return np.maximum(self._smooth_vote_shares(crowd), PROBABILITY_FLOOR)

    def _is_exact(self, classifier: SoftClassifier) -> bool:
        # With the votes as prior, the penalised likelihood does not contain the classifier.
        return classifier.exact and self.prior == "classifier"
