"""Concord: cross-fitted, shrunk and calibrated logistic EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.classifiers.square_root_features import SquareRootFeatures
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.learn._classifier_em import ClassifierEM, ClassifierEMResult, WorkerModel
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.utils import progress

#: Candidates for the ridge penalty. With the largest, the features have no influence.
RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0, 10_000.0)
#: Ridge penalty at which the search starts.
FIRST_RIDGE = 3.0
#: Number of random splits into visible and hidden votes over which the scores are averaged.
N_SPLITS = 3
#: Share of votes hidden in every split.
HIDDEN_SHARE = 0.2
#: Maximum number of tasks in the search, which bounds its cost.
MAX_SEARCH_TASKS = 2000
#: Maximum number of EM iterations per candidate; later ones change the score little.
SEARCH_ITERATIONS = 5
#: Number of L-BFGS steps in an M-step, which starts from the result of the one before.
LBFGS_STEPS = 15


@method_class
class Concord(ClassifierEM):
    """Logistic regression and confusion matrices by EM: cross-fitted, shrunk, calibrated and self-tuning.

    The model is that of `Raykar`. Four additions keep the classifier from echoing the votes of a task:

    - **Cross-fitting** (``cv=5``): the prior of a task comes from folds without it, so it adds information beyond the votes
      of that task.
    - **Shrinkage**: the matrices of workers are shrunk toward the matrix of the crowd. The Dirichlet-multinomial marginal
      likelihood sets the strength.
    - **Calibration**: one exponent sharpens or softens the class probabilities, also by the likelihood of the votes.
    - **Selection on hidden votes**: the ridge penalty is the largest one that predicts hidden votes as well as the best,
      within one standard error. No ground truth is used.

    The classifier is logistic regression on the signed square roots of the features, which suits counts and activations. This
    choice, the candidate penalties and the number of iterations were made on the datasets LabelMe and Music, so expect slightly
    lower accuracy elsewhere. Benchmark: ``wisecrowd bench show all-learners``.

    The iteration is not exact EM, because folds, marginal likelihood and calibration have objectives of their own: the trace
    may fall slightly. It stops after eight iterations, since the classifier and the worker estimates would reinforce each
    other over many.

    Use it for features on which a linear classifier makes sense: embeddings, counts, measurements.

    Examples
    --------
    >>> from wisecrowd import Concord, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = Concord().fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.85), model.choice_.columns.tolist()
    (True, ['l2', 'log_likelihood', 'chosen'])
    """

    references: ClassVar[tuple[str, ...]] = ("raykar2010learning", "perronnin2010improving")

    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "folds are drawn by the order of tasks",
        "worker_names_do_not_matter": "hidden votes are drawn by the order of votes, which is by worker",
        "a_double_weight_is_a_repeated_row": "of two equal votes, one can be hidden and the other visible",
        "the_objective_never_falls": "cross-fitting, evidence and calibration have objectives of their own",
    }

    l2: float | None = parameter(default=None, help="Ridge penalty; None selects it on hidden votes.")
    shrinkage: bool | float = parameter(
        default=True,
        help="Shrink the matrices of workers toward the matrix of the crowd: True estimates the strength by marginal "
        "likelihood, a number sets it in pseudo-votes.",
    )
    cv: int = parameter(default=5, help="Number of folds of cross-fitting.")
    calibrate: bool = parameter(
        default=True, help="Calibrate the class probabilities of the classifier by the likelihood of the votes."
    )
    calibration: float = parameter(
        default=0.2,
        help="Share of tasks whose votes are held out in a second fit to calibrate ``predict_proba``; 0 does not calibrate. "
        "Crowds of fewer than 50 tasks are not calibrated.",
    )
    max_iter: int = parameter(default=8, help="Maximum number of EM iterations.")
    tol: float = parameter(default=0.0, help="Relative change of the objective at which the iteration stops.")

    choice_: pd.DataFrame = fitted(
        help="Ridge penalties that were tried, the mean log-likelihood of hidden votes with each, and the chosen one."
    )
    l2_: float = fitted(help="Ridge penalty in use.")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters(crowd)
        choice = self._select_ridge(X, crowd, gold)
        l2 = float(choice.loc[choice["chosen"], "l2"].iloc[0])
        with progress.show_if(self.verbose):
            self._run(X, crowd, gold, l2)
        self.choice_, self.l2_ = choice, l2

    def _calibration_parameters(self) -> dict[str, Any]:
        return {**super()._calibration_parameters(), "l2": self.l2_}  # the search need not be repeated

    def _select_ridge(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> pd.DataFrame:
        """Return the ridge penalties that were tried, their scores, and the chosen one."""
        if self.l2 is not None or self.classifier != "logistic":
            l2 = 1.0 if self.l2 is None else self.l2
            return pd.DataFrame({"l2": [l2], "log_likelihood": [np.nan], "chosen": [True]})
        voted = np.flatnonzero(crowd.layout.has_votes)
        sample = np.sort(np.random.default_rng(self.random_state).permutation(voted)[:MAX_SEARCH_TASKS])
        X, crowd, gold = X[sample], crowd[sample], None if gold is None else gold[sample]
        seeds = range(self.random_state, self.random_state + N_SPLITS)
        splits = [crowd.hide(HIDDEN_SHARE, random_state=seed) for seed in seeds]
        runner = replace(self._runner(), max_iter=min(SEARCH_ITERATIONS, self.max_iter))

        def score_ridge(l2: float) -> NDArray[np.float64]:
            """Return the log-likelihood of hidden votes in every split."""
            scores = []
            for visible, hidden in splits:
                result = runner.run(X, visible, gold, lambda: self._make_classifier(l2))
                scores.append(_score_hidden_votes(result, runner.workers, visible, hidden, crowd.pairs))
            return np.array(scores)

        return _search_ridges(score_ridge)

    def _make_classifier(self, l2: float | None) -> SoftClassifier:
        if self.classifier != "logistic":
            return make_classifier(self.classifier, l2=l2, random_state=self.random_state)
        return SquareRootFeatures(Logistic(l2=l2, max_iter=LBFGS_STEPS))

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
        return self._make_classifier(self.l2_).restore(arrays)


def _search_ridges(score_ridge: Callable[[float], NDArray[np.float64]]) -> pd.DataFrame:
    """Climb from `FIRST_RIDGE` over neighbouring candidates until none scores higher, and choose among those tried.

    The largest penalty is chosen that is not worse than the best by more than one standard error over the splits.
    """
    scores: dict[float, NDArray[np.float64]] = {}

    def mean_score(position: int) -> float:
        if not 0 <= position < len(RIDGES):
            return -np.inf
        l2 = RIDGES[position]
        if l2 not in scores:
            progress.report("choosing on hidden votes", len(scores) + 1, len(RIDGES), f"l2 {l2:g}")
            scores[l2] = score_ridge(l2)
        return float(scores[l2].mean())

    position = RIDGES.index(FIRST_RIDGE)
    while (best := max((position, position + 1, position - 1), key=mean_score)) != position:
        position = best
    highest = max(scores.values(), key=np.mean)
    gaps = {l2: highest - values for l2, values in scores.items()}
    chosen = max(l2 for l2, gap in gaps.items() if gap.mean() <= gap.std(ddof=1) / np.sqrt(len(gap)))
    rows = [(l2, float(values.mean()), l2 == chosen) for l2, values in sorted(scores.items())]
    return pd.DataFrame(rows, columns=["l2", "log_likelihood", "chosen"])


def _score_hidden_votes(
    result: ClassifierEMResult, workers: WorkerModel, visible: Crowd, hidden: Crowd, all_pairs: Pairs
) -> float:
    """Return the mean log-likelihood of hidden votes under a fit to the visible ones."""
    n_classes = visible.n_classes
    tally = np.zeros((len(all_pairs), n_classes))
    tally[_find_pairs(visible.pairs, all_pairs, n_classes)] = result.tally
    label_probs = workers.label_probs(tally, all_pairs, result.tally, visible.pairs, result.strength)
    hidden_probs = label_probs[_find_pairs(hidden.pairs, all_pairs, n_classes)]
    likelihood = np.einsum("nk,nk->n", result.posterior[hidden.task], hidden_probs[hidden.pairs.vote_pairs])
    return float(np.average(np.log(np.maximum(likelihood, 1e-300)), weights=hidden.weight))


def _find_pairs(pairs: Pairs, all_pairs: Pairs, n_classes: int) -> NDArray[np.int64]:
    """Return the positions of (worker, label) pairs among all pairs, which are sorted."""
    keys, all_keys = (part.worker.astype(np.int64) * n_classes + part.label for part in (pairs, all_pairs))
    return np.searchsorted(all_keys, keys)
