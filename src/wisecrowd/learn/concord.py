"""Concord: votes and features, each weighed by what they say about held-out votes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.kernel_ridge import RIDGES, WEIGHT_RIDGE, Component, KernelMachine, KernelRidge
from wisecrowd.classifiers.score_weights import fit_score_weights
from wisecrowd.classifiers.soft_classifier import SoftClassifier, flatten_rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import find_training_tasks
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.errors import UsageError
from wisecrowd.learn._classifier_em import ClassifierEM
from wisecrowd.learn._worker_average import (
    VoteEvidence,
    WorkerAverage,
    count_votes,
    infer_by_votes,
    start_worker_average,
)
from wisecrowd.utils import progress

Rows = NDArray[np.float64]

#: Number of tasks on which views and penalties are chosen, which bounds the cost of the choice.
MAX_CHOICE_TASKS = 1000
#: Candidates for the discount of votes, the largest first: it wins if all are equal, as with one vote per task.
DISCOUNTS = (1.0, 0.9, 0.8)
#: Number of iterations after which the discount stays as it is.
DISCOUNT_ITERATIONS = 4


@method_class
class Concord(ClassifierEM):
    """Kernel regression on features and two models of workers, each weighed by what it says about held-out votes.

    The classifier is an average of kernel ridge regressions on eight views of the features: four widths of a Gaussian kernel,
    on features with bounded outliers and on normalised square roots. One eigendecomposition per view gives all *leave-one-out*
    predictions for all penalties, so no task's own votes echo in what the features say about it. With scores s_i of
    the features, and the models m of workers of `ModelAverage` that know or guess the class, or have a confusion matrix:

        E:  q_i(k) = mean_m q_i^(m)(k),   q_i^(m)(k) ∝ ρ_k^(m) exp(w s_ik) [Π_r π_r^(m)[k, y_ir]]^β
        M:  s from the regression of q on the features;  π_r from the tally of q, for every vote without that vote

    Everything that depends on the dataset follows from the probability of votes that were not used for the prediction:

    - *views and penalties* are chosen with the shares of votes, in which the features have no part yet;
      If none makes the votes more probable than chance does, the features are ignored, and the result is that of `ModelAverage`;
    - *w*, the weight of the features, makes the votes most probable in every iteration;
    - *β*, the discount of votes, which are less independent than the model assumes, is that of 1, 0.9 and 0.8 with which the
      other votes on a task predict a vote best.

    ``feature_gain_`` and ``describe_features()`` state how much the features add by held-out votes. Probabilities of new tasks are
    calibrated by the same votes, without a second fit.

    No truth of a dataset is used in its fit. The form of the method (views, models, relative scores, discounts and number of
    iterations) was chosen on the public crowds LabelMe, Music, Leaves, Income, RTE and Text, so expect slightly lower accuracy
    elsewhere; the page on learners has figures for which each of these crowds was left out of the choice. Benchmark:
    ``wisecrowd bench show all-learners``.

    The iteration is not exact EM, since every part has an objective of its own: the trace may fall slightly. Up to a
    thousand tasks nothing is random; more tasks are represented by a thousand random landmarks.

    With another ``classifier``, the model is that of `Raykar` with cross-fitting, shrinkage and calibration.

    Examples
    --------
    >>> from wisecrowd import Concord, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = Concord().fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.85), bool(model.feature_gain_ > 0)
    (True, True)
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning", "perronnin2010improving")

    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "landmarks and folds are drawn by the order of tasks",
        "a_double_weight_is_a_repeated_row": "a worker is judged without the vote in question, which of two equal votes is one",
        "the_objective_never_falls": "leave-one-out predictions, evidence and calibration have objectives of their own",
    }

    classifier: Any = parameter(
        default="kernels",
        help="Classifier: 'kernels' for kernel regressions that are weighed by held-out votes, or one for cross-fitting: "
        "'logistic', 'linear', 'mlp', 'cnn', a torch module, or a scikit-learn classifier.",
    )
    l2: float | None = parameter(
        default=None,
        help="Ridge penalty. For kernels, None chooses one per view by held-out votes, and a number is relative to the variance "
        "of the kernel; 0.3 is moderate. For another classifier, None is 1.",
    )
    shrinkage: bool | float = parameter(
        default=True,
        help="Shrink the matrices of workers toward the matrix of the crowd: True estimates the strength by marginal "
        "likelihood, a number sets it in pseudo-votes. False does not shrink, with another classifier than kernels.",
    )
    cv: int = parameter(default=5, help="Number of folds of cross-fitting, with another classifier than kernels.")
    calibrate: bool = parameter(
        default=True,
        help="Calibrate the class probabilities by the likelihood of the votes, with another classifier than kernels, which "
        "always are.",
    )
    calibration: float = parameter(
        default=0.0,
        help="Share of tasks whose votes are held out in a second fit to calibrate ``predict_proba``, with another classifier "
        "than kernels; 0 does not calibrate. Kernels need no second fit.",
    )
    max_iter: int = parameter(default=25, help="Maximum number of EM iterations.")
    tol: float = parameter(default=0.0, help="Relative change of the objective at which the iteration stops.")

    choice_: pd.DataFrame = fitted(
        help="Views and ridge penalties that were tried, the mean log-likelihood of the votes on a task with each, and its weight."
    )
    l2_: float = fitted(help="Ridge penalty of the view with the largest weight.")
    discount_: float = fitted(help="Exponent β of the likelihood of votes; 1 for votes that are independent.")
    feature_gain_: float | None = fitted(
        help="Share of held-out votes that equal the most probable class with the features, minus that without them; None with "
        "another classifier than kernels."
    )
    heldout_accuracy_: float | None = fitted(
        help="Share of held-out votes that equal the most probable class by the other votes and the features; None with another "
        "classifier than kernels."
    )

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters(crowd)
        with progress.show_if(self.verbose):
            if self._has_kernels:
                self._fit_kernels(flatten_rows(X), crowd, gold)
                return
            self._run(X, crowd, gold, self._fixed_ridge)
        self.choice_ = pd.DataFrame(
            {
                "view": ["features"],
                "width": [np.nan],
                "l2": [self._fixed_ridge],
                "log_likelihood": [np.nan],
                "weight": [1.0],
            }
        )
        self.l2_, self.discount_ = self._fixed_ridge, 1.0
        self.feature_gain_ = self.heldout_accuracy_ = None

    @property
    def _has_kernels(self) -> bool:
        return isinstance(self.classifier, str) and self.classifier == "kernels"

    @property
    def _fixed_ridge(self) -> float:
        return 1.0 if self.l2 is None else self.l2

    def _check_parameters(self, crowd: Crowd) -> None:
        if not self._has_kernels:
            super()._check_parameters(crowd)
            return
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        if min(self.smoothing, self.diagonal, self.l2 or 0, float(self.shrinkage)) < 0:
            raise UsageError("smoothing, diagonal, l2 and shrinkage must not be negative")

    def _fit_kernels(self, X: Rows, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """Choose views, iterate, and set the fitted attributes."""
        strength = float(self.shrinkage) if self.shrinkage is not True else None
        workers, posterior = start_worker_average(crowd, gold, self.smoothing, self.diagonal, strength)
        training = find_training_tasks(crowd.layout, gold)
        machine = KernelMachine(X[training], self.random_state)
        evidence = workers.weigh_votes(count_votes(crowd, posterior), posterior)
        tried = self._choose_components(machine, X, workers, evidence, posterior, training)
        components = [component for component in tried if component.weight]
        run = _KernelRun(workers, machine, components, training)
        if components:
            result = run_em(
                run.step,
                Statistics(posterior, count_votes(crowd, posterior)),
                max_iter=self.max_iter,
                tol=self.tol,
                accelerate=False,
                monotone=False,
                title=type(self).__name__,
            )
            (posterior, tally), trace, converged = result.statistics, np.asarray(result.trace), result.converged
        else:
            posterior, trace, converged = infer_by_votes(crowd, gold)
            tally = count_votes(crowd, posterior)
            run.strength = workers.weigh_votes(tally, posterior).strength
        self.heldout_accuracy_, self.feature_gain_ = run.measure_gain(tally, posterior)
        classifier = run.make_classifier(posterior)
        if not training.all():
            posterior = posterior.copy()
            posterior[~training] = classifier.predict_proba(X[~training])
        self.choice_ = pd.DataFrame(
            [(*component.view, component.ridge, component.log_likelihood, component.weight) for component in tried],
            columns=["view", "width", "l2", "log_likelihood", "weight"],
        )
        self.l2_ = max(tried, key=lambda component: component.weight).ridge
        self.discount_, self.strength_, self.sharpness_ = run.discount, run.strength, 1.0
        self.trace_, self.n_iter_, self.converged_ = trace, len(trace), converged
        self.task_prior_ = run.predict_training_tasks(posterior)
        self.classifier_ = classifier
        self._set_fitted(crowd, posterior, tally)

    def _choose_components(
        self,
        machine: KernelMachine,
        X: Rows,
        workers: WorkerAverage,
        evidence: VoteEvidence,
        posterior: Rows,
        training: NDArray[np.bool_],
    ) -> list[Component]:
        """Choose views and penalties by the votes on a sample of tasks, while the posterior does not depend on the features."""
        ridges = RIDGES if self.l2 is None else (self.l2,)
        tasks = np.flatnonzero(training)
        chooser = machine
        if len(tasks) > MAX_CHOICE_TASKS:
            rng = np.random.default_rng(self.random_state)
            tasks = np.sort(rng.choice(tasks, MAX_CHOICE_TASKS, replace=False))
            chooser = KernelMachine(X[tasks], self.random_state)
        by_task = [part[tasks] for part in evidence.by_task]
        return chooser.choose(posterior[tasks], workers.log_priors, by_task, ridges, machine.max_views)

    def describe_features(self) -> str:
        """State in words how much the features add.

        Returns
        -------
        str

        Examples
        --------
        >>> from wisecrowd import simulate_crowd
        >>> simulation = simulate_crowd(n_tasks=60, n_workers=8, n_classes=2, votes_per_task=3)
        >>> Concord().fit(np.zeros((60, 1)), simulation.crowd.order_tasks(simulation.crowd.tasks)).describe_features()
        'the features add nothing by held-out votes: ...'
        """
        self._check_fitted("posterior_")
        if self.feature_gain_ is None or self.heldout_accuracy_ is None:
            return "how much the features add is known only with classifier='kernels'"
        points, with_features = 100 * self.feature_gain_, 100 * self.heldout_accuracy_
        amount = f"add {points:.1f} points" if points >= 0.05 else "add nothing"
        return (
            f"the features {amount} by held-out votes: {with_features:.1f} % of the votes equal the most probable class by the "
            f"other votes and the features, {with_features - points:.1f} % without the features"
        )

    def _calibrate_predictions(self, X: Rows, crowd: Crowd, gold: NDArray[np.int32] | None) -> float:
        if self._has_kernels:  # leave-one-out predictions are calibrated by the votes in every iteration
            return 1.0
        return super()._calibrate_predictions(X, crowd, gold)

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
        unfitted = KernelRidge() if self._has_kernels else self._make_classifier(self.l2_)
        return unfitted.restore(arrays)


class _KernelRun:
    """EM over the scores of the features and two models of workers."""

    def __init__(
        self, workers: WorkerAverage, machine: KernelMachine, components: list[Component], training: NDArray[np.bool_]
    ) -> None:
        self.workers, self.machine, self.components, self.training = workers, machine, components, training
        self.weight, self.discount, self.strength = np.ones(1), 1.0, 0.0
        self.prediction_weight = 0.0
        self.n_steps = 0

    def step(self, statistics: Statistics) -> tuple[Statistics, float]:
        """Renew scores, models of workers and weights, and infer the posterior."""
        posterior, tally = statistics
        evidence = self.workers.weigh_votes(tally, posterior)
        scores = self.machine.combine(posterior[self.training], self.components)
        if self.n_steps < DISCOUNT_ITERATIONS:
            self.discount = max(DISCOUNTS, key=lambda discount: self._score_discount(evidence, scores, discount))
        self.weight = self._fit_weight(evidence, scores, self.discount)
        self.prediction_weight = float(self._fit_weight(evidence, scores, 1.0)[0])
        self.strength, self.n_steps = evidence.strength, self.n_steps + 1
        by_features = _spread(self.weight[0] * scores, self.training)
        posterior, log_likelihood = self.workers.infer(evidence, by_features, self.discount)
        return Statistics(posterior, count_votes(self.workers.crowd, posterior)), log_likelihood

    def _fit_weight(self, evidence: VoteEvidence, scores: Rows, discount: float) -> Rows:
        """Return the weight of the features under which the votes are most probable."""
        by_task = [discount * part[self.training] for part in evidence.by_task]
        start = np.maximum(self.weight, 0.1)
        # The same penalty as in the choice of views: votes that the features explain without exception would ask for certainty.
        ridge = WEIGHT_RIDGE * sum(component.weight**2 for component in self.components)
        return fit_score_weights(scores[None], self.workers.log_priors, by_task, start=start, ridge=ridge).weights

    def _score_discount(self, evidence: VoteEvidence, scores: Rows, discount: float) -> float:
        """Return the log-likelihood of votes that are predicted from the others with a discount."""
        weight = self._fit_weight(evidence, scores, discount)
        by_features = _spread(weight[0] * scores, self.training)
        return self.workers.predict_votes(evidence, by_features, discount).log_likelihood

    def measure_gain(self, tally: NDArray[Any], posterior: Rows) -> tuple[float, float]:
        """Return the share of held-out votes that equal the most probable class, and how much of it the features add."""
        evidence = self.workers.weigh_votes(tally, posterior)
        scores = self.machine.combine(posterior[self.training], self.components)
        by_features = _spread(self.weight[0] * scores, self.training)
        with_features, without = (
            self.workers.predict_votes(evidence, part, self.discount).accuracy for part in (by_features, 0.0)
        )
        return with_features, with_features - without

    def make_classifier(self, posterior: Rows) -> KernelRidge:
        """Return the classifier of new tasks."""
        weighted = [item._replace(weight=self.prediction_weight * item.weight) for item in self.components]
        return self.machine.make_classifier(posterior[self.training], weighted, self.workers.log_priors)

    def predict_training_tasks(self, posterior: Rows) -> Rows:
        """Return class probabilities of all tasks by their features, for training tasks without themselves."""
        scores = self.prediction_weight * self.machine.combine(posterior[self.training], self.components)
        priors = np.exp(self.workers.log_priors[:, None] + _spread(scores, self.training))
        probs = np.mean(priors / priors.sum(axis=2, keepdims=True), axis=0)
        probs[~self.training] = posterior[~self.training]
        return np.asarray(probs)


def _spread(scores: Rows, training: NDArray[np.bool_]) -> Rows:
    """Return scores of all tasks from those of the training tasks; zero elsewhere."""
    if training.all():
        return scores
    everywhere = np.zeros((len(training), scores.shape[1]))
    everywhere[training] = scores
    return everywhere
