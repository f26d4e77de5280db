"""Profiles of training features."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.feature_profile import FeatureProfile, digest_rows


def draw(n: int, kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.normal(100, 15, size=(n, 8))
    if kind == "uniform":
        return rng.uniform(size=(n, 8))
    if kind == "heavy tails":
        return rng.standard_t(2, size=(n, 8))
    if kind == "sparse counts":
        return rng.poisson(0.1, size=(n, 8)).astype(float)
    return (rng.random((n, 8)) < 0.5).astype(float)


@pytest.mark.parametrize("kind", ["normal", "uniform", "heavy tails", "sparse counts", "binary"])
@pytest.mark.parametrize("n_new", [1, 5, 200])
def test_ordinary_new_rows_are_no_difference(kind: str, n_new: int) -> None:
    for seed in range(30):
        profile = FeatureProfile.of(draw(60, kind, seed))
        assert profile.describe_difference(draw(n_new, kind, 1000 + seed)) == ""


@pytest.mark.parametrize("kind", ["normal", "uniform", "sparse counts", "binary"])
@pytest.mark.parametrize("factor", [255.0, 1 / 255])
def test_other_units(kind: str, factor: float) -> None:
    profile = FeatureProfile.of(draw(60, kind, 0))
    text = profile.describe_difference(factor * draw(200, kind, 1))
    collapses = factor < 1 and kind != "normal"  # normal values are far from zero
    if factor < 1 and kind == "sparse counts":  # hardly ever anything but zero, in both
        return
    assert ("hardly any spread" if collapses else "lie far outside their range in training: column") in text


def test_standardised_rows_are_not_like_raw_ones() -> None:
    raw = draw(60, "normal", 0)
    assert "8 of 8 features" in FeatureProfile.of(raw).describe_difference((raw - raw.mean(axis=0)) / raw.std(axis=0))


def test_the_column_in_another_unit_is_named_with_both_ranges() -> None:
    profile = FeatureProfile.of(np.column_stack([np.linspace(1, 2, 50), np.linspace(0, 1, 50)]))
    new = np.column_stack([np.linspace(100, 200, 20), np.linspace(0, 1, 20)])
    text = profile.describe_difference(new, ["height", "share"])
    assert (
        text == "1 of 2 features lie far outside their range in training: 'height' from 100 to 200 (training: 1 to 2)"
    )


def test_constant_columns_are_not_compared() -> None:
    assert FeatureProfile.of(np.zeros((20, 3))).describe_difference(np.ones((20, 3))) == ""


def test_training_rows_are_recognised_after_rounding_to_single_precision() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4))
    profile = FeatureProfile.of(rows)
    new = np.vstack([rows[[7, 3]].astype(np.float32), np.zeros((1, 4)), rows[[7]][:, ::-1]])
    assert profile.find_training_rows(new).tolist() == [7, 3, -1, -1]


def test_rows_that_repeat_each_other_are_not_recognised() -> None:
    rows = np.arange(50.0).reshape(50, 1) % 10
    assert FeatureProfile.of(rows).find_training_rows(rows[:2]).tolist() == [-1, -1]


def test_digests_do_not_change_between_versions() -> None:
    assert (
        digest_rows(np.array([[0.5, -0.0]])).tolist()
        == digest_rows(np.array([[0.5, 0.0]])).tolist()
        == [5866976303379322351]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lowest", np.array([1.0])),
        ("lowest", np.array([9.0, 9.0])),
        ("spread", np.array([np.nan, 1.0])),
        ("digests", np.zeros(3)),
    ],
)
def test_invalid_arrays_are_refused(name: str, value: np.ndarray) -> None:
    arrays = FeatureProfile.of(np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])).arrays()
    FeatureProfile.restore(arrays)
    with pytest.raises(ValueError, match=r"features|digests"):
        FeatureProfile.restore(arrays | {name: value})
