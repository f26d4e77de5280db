"""Jensen-Shannon divergence of confusion matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from wisecrowd.em.divergence import confusion_divergence
from wisecrowd.errors import InputError


def draw_confusion(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).dirichlet(np.ones(shape[-1]), shape[:-1])


def test_divergence_is_the_mean_of_scipy_over_rows() -> None:
    first, second = draw_confusion(5, 3, 3), draw_confusion(4, 5, 3, 3)
    expected = (jensenshannon(np.broadcast_to(first, second.shape), second, axis=-1, base=2) ** 2).mean(axis=-1)
    np.testing.assert_allclose(confusion_divergence(first, second), expected, atol=1e-12)


def test_divergence_is_symmetric_zero_for_equal_matrices_and_at_most_one() -> None:
    first, second = draw_confusion(3, 3), draw_confusion(1, 3, 3)[0]
    assert confusion_divergence(first, second) == pytest.approx(float(confusion_divergence(second, first)))
    assert confusion_divergence(first, first) == 0
    assert confusion_divergence(np.eye(2), np.eye(2)[::-1]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("second", [np.eye(2), np.ones(3), np.ones((3, 2))])
def test_matrices_of_other_sizes_are_refused(second: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"compares matrices of one size; got shapes \(3, 3\) and"):
        confusion_divergence(np.eye(3), second)
