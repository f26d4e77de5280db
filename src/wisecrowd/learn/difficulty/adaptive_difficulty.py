"""Adaptive Difficulty EM: difficulty by the uncertainty of the classifier."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.learn.difficulty._easiness_em import EasinessEM
from wisecrowd.learn.difficulty._full_m_step import fit_full
from wisecrowd.learn.difficulty._responses import Array, Responses, compute_easiness


@method_class
class AdaptiveDifficulty(EasinessEM):
    """Classifier, difficulty of every task and abilities of every worker, fitted jointly by EM.

    Tasks on which the classifier is uncertain are hard for workers too (Xu et al. 2019): the farther its prediction f(x_i) is
    from uniform, the easier the task, and the closer a worker comes to the accuracy that the ability allows.

        s_i = K/(K−1) Σ_k (f_k(x_i) − 1/K)²                      easiness, from 0 to 1
        P(label k given k) = e^(a s) / (e^(a s) + K − 1)         a = a_rk ≥ 0, any wrong class 1 / (e^(a s) + K − 1)
        E:  q_i(k) ∝ f_k(x_i) Π_r P(y_ir | k)
        M:  a_rk by Newton's method;  f improves Σ_i Σ_k q_i(k) [log f_k(x_i) + Σ_r log P(y_ir | k)]

    With two classes this is the model of the paper, with λ = 4a. The paper updates the classifier as if s did not depend on it
    (``m_step="plugin"``), which can lower the likelihood. The full gradient (``m_step="full"``) never does when the step is
    exact, and is the default for logistic regression. Networks, whose steps are noisy, can collapse to one class with it, and
    use the plug-in step by default. The program of the authors measures difficulty by the posterior
    (``difficulty_source="posterior"``), which is not EM and need not converge.

    With ``worker_model="matrix"``, every wrong label has a probability of its own: P(label l given k) = softmax_l(s θ[k, l]) with
    logits θ of the worker, so that difficulty flattens the rows of a confusion matrix. It is worth its K times more parameters
    where workers confuse certain classes. With two classes both are the same model.

    A Gaussian prior with precision ``precision`` keeps workers with few votes near the abilities of the vote shares;
    ``ability_update="ml"`` is the maximum likelihood of the paper. A worker who is worse than guessing counts as guessing,
    unless ``allow_adversarial``.

    Use it when features separate the classes and workers err near the class boundaries. In `Raykar` workers are equally
    accurate on all tasks; with ``difficulty_source="constant"`` and two classes this method equals `Raykar`. A very flexible
    classifier echoes the votes and makes tasks look easy and workers able; raise ``precision`` then. ``confusion_`` refers
    to the easiest task. Benchmark: ``wisecrowd bench show xu2019``.

    Examples
    --------
    >>> from wisecrowd import AdaptiveDifficulty
    >>> from wisecrowd.simulate import simulate_gaussian_difficulty
    >>> simulation = simulate_gaussian_difficulty(1000, votes_per_task=4)
    >>> model = AdaptiveDifficulty().fit(simulation.features, simulation.crowd)
    >>> bool(model.score(simulation.test_features, simulation.test_truth) > 0.9)
    True
    >>> list(model.tasks_), list(model.workers_)[2:]
    (['difficulty', 'easiness', 'n_votes'], ['ability_0', 'ability_1', 'sensitivity', 'specificity'])
    """

    references: ClassVar[tuple[str, ...]] = ("xu2019difficulty",)

    precision: float = parameter(
        default=1.0, help="Precision of the prior of abilities around those of the vote shares, with 'map'."
    )
    difficulty_source: Literal["classifier", "posterior", "constant"] = parameter(
        default="classifier",
        help="Distribution whose uncertainty makes a task hard: that of the classifier or the posterior; 'constant' makes "
        "all tasks equally easy.",
    )
    m_step: Literal["auto", "full", "plugin"] = parameter(
        default="auto",
        help="M-step of the classifier: 'full' includes the likelihood of the votes, 'plugin' fits the posterior only, "
        "'auto' is 'full' for exact classifiers.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("difficulty_source", self.difficulty_source, ("classifier", "posterior", "constant"))
        check_choice("m_step", self.m_step, ("auto", "full", "plugin"))
        if self.precision < 0:
            raise UsageError(f"precision must not be negative; got {self.precision}")

    def _prior_precision(self, crowd: Crowd) -> Array:
        return np.full(crowd.n_workers, self.precision)

    def _uses_full_step(self, classifier: SoftClassifier) -> bool:
        """Return whether the M-step of the classifier includes the likelihood of the votes."""
        is_full = self.m_step == "full" or (self.m_step == "auto" and classifier.exact)
        return is_full and self.difficulty_source == "classifier"

    def _estimate_easiness(self, class_probs: Array, posterior: Array, crowd: Crowd) -> Array:
        if self.difficulty_source == "constant":
            return np.ones(len(class_probs))
        return compute_easiness(class_probs if self.difficulty_source == "classifier" else posterior)

    def _predict_easiness(self, class_probs: Array) -> Array:
        return np.ones(len(class_probs)) if self.difficulty_source == "constant" else compute_easiness(class_probs)

    def _fit_classifier(
        self, classifier: SoftClassifier, X: Array, posterior: Array, ability: Array, responses: Responses
    ) -> None:
        if self._uses_full_step(classifier):
            fit_full(classifier, X, posterior, ability, responses)
        else:
            super()._fit_classifier(classifier, X, posterior, ability, responses)

    def _is_exact(self, classifier: SoftClassifier) -> bool:
        return classifier.exact and (self._uses_full_step(classifier) or self.difficulty_source == "constant")
