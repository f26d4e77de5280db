from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.prediction_powered import (
    Interval,
    limit_gain,
    prediction_powered_mean,
    share_interval,
    symmetric_interval,
)


def labels_and_predictions() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(7)
    n, n_other = 60, 500
    latent = rng.normal(size=n + n_other)
    label = (latent + rng.normal(0, 0.5, n + n_other) > 0).astype(float)
    prediction = 1 / (1 + np.exp(-1.5 * latent)) + rng.normal(0, 0.1, n + n_other)
    return label[:n], prediction[:n], prediction[n:]


# ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05) of ppi-python 0.2.3 on the data of `labels_and_predictions`, by the weight lam.
# To rerun: pip install ppi-python==0.2.3 in an environment of its own, and call both with these arrays.
PPI_PYTHON = {
    None: (0.48038503819289924, 0.3771368989113156, 0.5836331774744828),
    1.0: (0.4837402122510864, 0.38095411593195594, 0.5865263085702168),
    0.0: (0.45, 0.32411903386387886, 0.5758809661361212),
    0.4: (0.4634960849004346, 0.35132957515745156, 0.5756625946434176),
}


@pytest.mark.parametrize("weight", PPI_PYTHON)
def test_equals_ppi_python(weight: float | None) -> None:
    interval = prediction_powered_mean(*labels_and_predictions(), weight=weight, small_sample=False)
    assert (interval.estimate, interval.low, interval.high) == pytest.approx(PPI_PYTHON[weight], abs=1e-12)


def test_inverted_predictions_are_ignored_as_in_ppi_python() -> None:
    label, prediction, other = labels_and_predictions()
    assert prediction_powered_mean(label, -prediction, -other).estimate == pytest.approx(0.45, abs=1e-12)


def test_small_samples_have_wider_intervals() -> None:
    data = labels_and_predictions()
    assert prediction_powered_mean(*data).width > prediction_powered_mean(*data, small_sample=False).width


def test_constant_predictions_have_no_weight() -> None:
    label = np.array([0.0, 1.0, 1.0])
    assert prediction_powered_mean(label, np.ones(3), np.ones(10)).estimate == pytest.approx(2 / 3)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="3 and 2 values"):
        prediction_powered_mean([0, 1, 1], [0, 1], [1])
    with pytest.raises(InputError, match="two labels"):
        prediction_powered_mean([1], [1], [1])
    with pytest.raises(UsageError, match="level"):
        prediction_powered_mean([0, 1], [0, 1], [1], level=95)


@pytest.mark.parametrize(("count", "n"), [(0, 50), (3, 50), (25, 50), (50, 50)])
def test_share_interval_is_wilsons_for_a_simple_sample(count: int, n: int) -> None:
    from scipy.stats import binomtest

    p = count / n
    interval = share_interval(p, p * (1 - p) / n, 1e6, 0.95, most_labels=n)
    expected = binomtest(count, n).proportion_ci(0.95, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_share_interval_contains_an_estimate_outside_of_the_range() -> None:
    interval = share_interval(-0.02, 0.0004, 99, 0.95, most_labels=150)
    assert interval.low == 0 == interval.estimate < interval.high < 0.1


def test_gain_by_judges_needs_labels_of_both_kinds() -> None:
    assert limit_gain(100, 0, 0.2) == 100
    assert limit_gain(100, 50, 0.5) < 200
    assert limit_gain(100, 50, 1.5) == 100


def test_symmetric_interval_is_normal_for_many_degrees_of_freedom() -> None:
    interval = symmetric_interval(1.0, 4.0, 1e6, 0.9)
    assert interval.high - 1 == pytest.approx(2 * norm.ppf(0.95))
    assert Interval(**vars(interval)).to_dict()["standard_error"] == 2.0
