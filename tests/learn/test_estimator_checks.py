"""scikit-learn's own checks of estimators, on learners that get one vote per task.

The checks pass ``y`` as an array. A learner takes a crowd, so each is wrapped to make votes of one worker from the array. Whatever
a learner does otherwise than scikit-learn's classifiers is listed in `DEVIATIONS` with the reason.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y

from wisecrowd import Crowd, Raykar, TwoStage
from wisecrowd.base.learner import Learner

#: Checks that a learner does not pass, by reason.
DEVIATIONS = {
    "check_estimators_unfitted": "the error is wisecrowd's NotFitted, a ValueError and AttributeError as scikit-learn's; importing "
    "scikit-learn's would double the start-up time of the command line",
    "check_n_features_in_after_fitting": "the error about the number of features has other words, for images as well as for rows",
}


class _OneVotePerTask:
    """Mixin that makes votes of one worker from an array of labels."""

    def fit(self, X: Any, y: Any) -> Any:
        _, labels = check_X_y(X, y)
        check_classification_targets(labels)
        votes = pd.DataFrame({"task": np.arange(len(labels)), "worker": "w", "label": labels})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a single vote per task says little about the worker
            return super().fit(X, Crowd.from_frame(votes))  # type: ignore[misc]


class RaykarOnLabels(_OneVotePerTask, Raykar):
    """Raykar with one vote per task."""


class TwoStageOnLabels(_OneVotePerTask, TwoStage):
    """TwoStage with one vote per task."""


LEARNERS: list[Learner] = [RaykarOnLabels(), TwoStageOnLabels(aggregator="majority-vote")]
with warnings.catch_warnings():
    # Methods follow the protocol of BaseEstimator without inheriting from it, to start without scikit-learn.
    warnings.filterwarnings("ignore", "Estimator .* does not inherit from")
    with_checks = parametrize_with_checks(LEARNERS, expected_failed_checks=lambda _: DEVIATIONS)


@with_checks
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    state = np.random.get_state()  # noqa: NPY002  # some checks of scikit-learn draw from it
    try:
        check(estimator)
    finally:
        np.random.set_state(state)  # noqa: NPY002
