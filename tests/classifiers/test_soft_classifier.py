"""Shape of features, and defaults of the interface."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.soft_classifier import SoftClassifier, flatten_rows


@pytest.mark.parametrize(
    ("shape", "expected"), [((4, 2, 3), (4, 6)), ((4,), (4, 1)), ((0, 2, 3), (0, 6)), ((2, 0), (2, 0))]
)
def test_every_task_is_a_row(shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    X = np.arange(float(np.prod(shape))).reshape(shape)
    flat = flatten_rows(X)
    assert flat.shape == expected
    assert flat.ravel().tolist() == X.ravel().tolist()


def test_a_classifier_without_a_prior_has_log_density_zero() -> None:
    class Constant(SoftClassifier):
        fit = predict_proba = clone_unfitted = arrays = restore = lambda self, *_: self  # type: ignore[assignment]

    assert Constant().log_prior() == 0
    assert not Constant.exact
    assert Logistic.exact


def test_an_incomplete_classifier_cannot_be_made() -> None:
    class Incomplete(SoftClassifier):
        pass

    with pytest.raises(TypeError, match="arrays"):
        Incomplete()  # type: ignore[abstract]
