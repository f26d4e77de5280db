"""Fixed Difficulty EM: what the workers disagree about is hard."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier import CLIP
from wisecrowd.errors import UsageError, one_of
from wisecrowd.learn.difficulty._family import DifficultyEM
from wisecrowd.learn.difficulty._responses import Array


@method_class
class FixedDifficulty(DifficultyEM):
    """A classifier and the abilities of every worker, learnt together by EM; what workers disagree about is hard.

    The model of `AdaptiveDifficulty`, but for the easiness of a task, which is read off its votes once and for all
    (Xu et al. 2019):

        c_ik = (votes for k + κ/K) / (votes + κ),   s_i = K/(K−1) Σ_k (c_ik − 1/K)²

    κ keeps a single vote from making a task look easiest; the paper, whose workers label everything, has κ = 0.

    Maximum likelihood fails here (``ability_update="ml"``): unanimous tasks look easy *because* everybody said the same,
    so that everybody seems perfect on easy tasks. The paper's program hides it by learning abilities so slowly that
    they stay where the soft vote put them (``ability_update="frozen"``). The default holds them by a Gaussian prior around
    that start, whose precision is ``anchor`` for every label that a worker gave of a class: the trouble does not
    go away with more data, and neither may the anchor. The paper's Algorithm 3 also takes the vote shares for the prior
    of a task (``prior="votes"``), with which the classifier never corrects a vote; its program takes the classifier.

    Choose `AdaptiveDifficulty` unless difficulty has nothing to do with the features. On the paper's Gaussian data the
    posterior's area under the ROC curve is 0.973 (published 0.970) and the test accuracy 93.8; the published 94.4 is
    the best of all epochs by the test set itself, above the 94.1 of Bayes' rule, and is not reached. Frozen abilities
    have 0.975 and 93.5. The defaults of ``anchor`` and κ were chosen on simulated crowds, these data among them.

    >>> from wisecrowd import FixedDifficulty
    >>> from wisecrowd.simulate import gaussian_difficulty
    >>> made = gaussian_difficulty(1000, votes_per_task=4)
    >>> model = FixedDifficulty().fit(made.features, made.crowd)
    >>> bool(model.score(made.test_features, made.test_truth) > 0.9)
    True
    >>> int(model.tasks_["easiness"].round(6).nunique())  # 4 : 0, 3 : 1 and 2 : 2 votes
    3
    """

    references: ClassVar[tuple[str, ...]] = ("xu2019difficulty",)

    anchor: float = parameter(
        default=0.1, help="precision per label with which 'map' keeps abilities near those of the soft vote"
    )
    kappa: float = parameter(default=1.0, help="pseudo-votes, spread over the classes, in a task's vote shares")
    prior: Literal["classifier", "votes"] = parameter(
        default="classifier", help="what the E-step starts from: the classifier, or the vote shares again"
    )

    def _check(self) -> None:
        super()._check()
        one_of("prior", self.prior, ("classifier", "votes"))
        if min(self.kappa, self.anchor) < 0:
            raise UsageError(f"kappa and anchor must not be negative; got {self.kappa} and {self.anchor}")

    def _prepare(self, crowd: Crowd) -> None:
        total = crowd.votes.sum(axis=1, keepdims=True) + self.kappa
        even = np.full(crowd.votes.shape, 1 / crowd.n_classes)
        self.shares_ = np.divide(crowd.votes + self.kappa * even, total, out=even.copy(), where=total > 0)

    def _belief(self, expected: Array, posterior: Array) -> Array | None:
        return self.shares_

    def _precision(self, crowd: Crowd) -> Array:
        return self.anchor * crowd.pairs.by_worker(np.asarray(crowd.layout.matrix.sum(axis=0))) / crowd.n_classes

    def _prior(self, expected: Array) -> Array:
        return expected if self.prior == "classifier" else np.maximum(self.shares_, CLIP)

    def _exact(self, model: SoftClassifier) -> bool:
        # With votes for the prior, the classifier is no part of the likelihood that its ridge is added to.
        return model.exact and self.prior == "classifier"

    def _easiness_ahead(self, expected: Array) -> Array:
        """Without votes nobody knows: as easy as the tasks were on the average."""
        return np.full(len(expected), self.easiness_.mean())
