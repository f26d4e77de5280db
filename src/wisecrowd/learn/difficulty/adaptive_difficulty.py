"""Adaptive Difficulty EM: what the classifier is unsure of is hard for the workers too."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, one_of
from wisecrowd.learn.difficulty._family import DifficultyEM
from wisecrowd.learn.difficulty._full_step import teach
from wisecrowd.learn.difficulty._responses import Array, Responses


@method_class
class AdaptiveDifficulty(DifficultyEM):
    """A classifier, the difficulty of every task and the abilities of every worker, learnt together by EM.

    What the classifier is unsure of is hard for workers too (Xu et al. 2019): the further its answer f(x_i) is from
    uniform, the easier the task, and the closer a worker comes to the best that their ability allows.

        s_i = K/(K−1) Σ_k (f_k(x_i) − 1/K)²                      easiness, from 0 to 1
        P(r says k | k) = e^(a s) / (e^(a s) + K − 1)            a = a_rk ≥ 0, any wrong class 1 / (e^(a s) + K − 1)
        E:  q_i(k) ∝ f_k(x_i) Π_r P(y_ir | k)
        M:  a_rk by Newton's method;  f climbs Σ_i Σ_k q_i(k) [log f_k(x_i) + Σ_r log P(y_ir | k)]

    With two classes it is the paper's model, λ = 4a. The paper updates the classifier as if s did not depend on it
    (``m_step="plugin"``), which can lower the likelihood; the whole gradient (``m_step="full"``) never does when it is
    climbed exactly, and is the default with logistic regression. Networks, trained in noisy steps, can end by it where
    one class takes all tasks, and have the plug-in step unless told otherwise.
    Its program measures difficulty by the posterior (``difficulty_source="posterior"``), which is not EM and need not
    settle. Workers with few labels are kept near what the soft vote says of them by a Gaussian prior of some
    ``precision``; ``ability_update="ml"`` is the paper's maximum likelihood.

    Choose it when features say something about the classes and workers fail where classes meet. `Raykar` has workers
    who are as good on every task; with ``difficulty_source="constant"`` and two classes this is `Raykar`. A worker who
    is worse than guessing counts as guessing, unless ``allow_adversarial``.

    After ``fit``, ``tasks_`` has the difficulty of every task, ``workers_`` the abilities, and ``confusion_`` what
    workers say on the easiest task. A classifier flexible enough to echo the votes makes tasks look easy and workers
    able; a higher ``precision`` then helps. On the paper's Gaussian data the posterior's area under the ROC curve is 0.973
    (published 0.975; `Raykar` 0.952, published 0.951), and the test accuracy 94.1 (published 93.9).

    >>> from wisecrowd import AdaptiveDifficulty
    >>> from wisecrowd.simulate import gaussian_difficulty
    >>> made = gaussian_difficulty(1000, votes_per_task=4)
    >>> model = AdaptiveDifficulty().fit(made.features, made.crowd)
    >>> bool(model.score(made.test_features, made.test_truth) > 0.9)
    True
    >>> list(model.tasks_), list(model.workers_)[2:]
    (['difficulty', 'easiness', 'n_votes'], ['ability_0', 'ability_1', 'sensitivity', 'specificity'])
    """

    references: ClassVar[tuple[str, ...]] = ("xu2019difficulty",)

    precision: float = parameter(default=1.0, help="how near 'map' keeps abilities to those of the soft vote")
    difficulty_source: Literal["classifier", "posterior", "constant"] = parameter(
        default="classifier", help="whose doubt makes a task hard; 'constant': all tasks are alike"
    )
    m_step: Literal["auto", "full", "plugin"] = parameter(
        default="auto",
        help="the classifier also explains the votes ('full'), fits the posterior ('plugin'), or as suits it",
    )

    def _check(self) -> None:
        super()._check()
        one_of("difficulty_source", self.difficulty_source, ("classifier", "posterior", "constant"))
        one_of("m_step", self.m_step, ("auto", "full", "plugin"))
        if self.precision < 0:
            raise UsageError(f"precision must not be negative; got {self.precision}")

    def _precision(self, crowd: Crowd) -> Array:
        return np.full(crowd.n_workers, self.precision)

    def _full(self, model: SoftClassifier) -> bool:
        """Steps that are not exact cannot keep the likelihood from falling, and are better off without its slopes."""
        wanted = self.m_step == "full" or (self.m_step == "auto" and model.exact)
        return wanted and self.difficulty_source == "classifier"

    def _belief(self, expected: Array, posterior: Array) -> Array | None:
        return {"classifier": expected, "posterior": posterior, "constant": None}[self.difficulty_source]

    def _teach(self, model: SoftClassifier, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
        if self._full(model):
            teach(model, X, posterior, ability, responses)
        else:
            super()._teach(model, X, posterior, ability, responses)

    def _exact(self, model: SoftClassifier) -> bool:
        return model.exact and (self._full(model) or self.difficulty_source == "constant")
