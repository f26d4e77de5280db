"""Distributions of training features."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data.feature_distribution import MIN_ROWS, FeatureDistribution
from wisecrowd.data.feature_profile import FeatureProfile

MEANS, SPREADS = np.array([170.0, 70.0, 0.5, 30.0]), np.array([10.0, 9.0, 0.2, 12.0])
NAMES = ["height", "weight", "share", "age"]


def draw(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(MEANS, SPREADS, size=(n, 4))


def describe(new: np.ndarray, names: list[str] | None = NAMES, seed: int = 0) -> str:
    return FeatureProfile.of(draw(150, seed)).describe_problem(new, names)


@pytest.mark.parametrize("n_new", [30, 100, 400])
def test_exchanged_columns_are_named(n_new: int) -> None:
    for seed in range(10):
        text = describe(draw(n_new, 100 + seed)[:, [0, 3, 2, 1]], seed=seed)
        assert text.startswith(
            "2 of 4 features have values like other features in training: 'weight' like 'age', 'age' like 'weight'. Their order"
        )


def test_columns_without_names_have_numbers() -> None:
    assert "column 0 like column 1, column 1 like column 2" in describe(draw(60, 1)[:, [1, 2, 3, 0]], None)


def test_columns_of_one_distribution_may_be_exchanged_unnoticed() -> None:
    rng = np.random.default_rng(0)
    distribution = FeatureDistribution.of(rng.normal(size=(200, 5)))
    assert distribution.describe_order(rng.normal(size=(200, 5))[:, ::-1]) == ""


@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_a_shift_is_no_permutation(shift: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=12)
        training, new = rng.normal(size=(200, 12)) + means, rng.normal(size=(80, 12)) + means
        new[:, : rng.integers(1, 12)] += shift
        assert FeatureDistribution.of(training).describe_order(new) == ""


def test_standardised_rows_and_raw_training() -> None:
    raw = draw(100, 1)
    standardised = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    text = describe(standardised)
    assert text.startswith(
        "the features have mean 0 and standard deviation 1, and in training they had not; 4 of 4 features differ"
    )
    assert "'height' mean 0, spread 1 (training: 1" in text
    training = draw(150, 0)
    reverse = FeatureProfile.of((training - training.mean(axis=0)) / training.std(axis=0)).describe_problem(raw, NAMES)
    assert reverse.startswith("the features of training had mean 0 and standard deviation 1, and these have not")
    assert "Standardise them with the means and standard deviations of training" in reverse


def test_a_column_in_inches_is_named_with_its_means_spreads_and_factor() -> None:
    training = np.random.default_rng(0).normal([100, 70], [60, 9], size=(150, 2))
    new = np.random.default_rng(1).normal([100, 70], [60, 9], size=(150, 2))
    new[:, 0] /= 2.54
    text = FeatureProfile.of(training).describe_problem(new, ["length", "weight"])
    assert text.startswith("1 of 2 features differs from training: 'length' mean 3")
    assert "a factor of 0.39). If these are the same kind of tasks, check units and preparation" in text
    assert "weight" not in text


def test_other_tasks_get_a_mild_wording() -> None:
    new = draw(100, 1)
    new[:, 3] += 10
    text = describe(new)
    assert text.startswith("1 of 4 features differs from training: 'age' mean 39.3, spread 10.7 (training: 31.1, 12.4)")
    assert "factor" not in text
    assert text.endswith("for others, predictions are less certain")


def test_differences_without_relevance_are_not_named() -> None:
    new = draw(1000, 1)
    new[:, 3] += 0.3 * SPREADS[3]
    assert FeatureProfile.of(draw(1000, 0)).describe_problem(new, NAMES) == ""


def test_few_rows_say_nothing() -> None:
    few = draw(MIN_ROWS - 1, 1)[:, ::-1]
    distribution = FeatureDistribution.of(draw(150, 0))
    assert distribution.describe_order(few) == distribution.describe_shift(few) == ""
    assert distribution.describe_standardisation(few) == ""
    assert FeatureDistribution.of_training(draw(MIN_ROWS - 1, 0)) is None
    assert describe(few[:0]) == ""


@pytest.mark.parametrize("kind", ["binary", "rare", "counts", "heavy tails", "single precision", "zero-inflated"])
@pytest.mark.parametrize("n_new", [30, 300])
def test_new_rows_of_the_same_kind_do_not_differ(kind: str, n_new: int) -> None:
    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        if kind in ("binary", "rare"):
            return (rng.random((n, 6)) < (0.5 if kind == "binary" else 0.03)).astype(float)
        if kind == "counts":
            return rng.poisson(0.4, size=(n, 6)).astype(float)
        if kind == "heavy tails":
            return rng.standard_cauchy(size=(n, 6))
        if kind == "single precision":
            return rng.integers(0, 5, size=(n, 6)) / 10
        return np.where(rng.random((n, 6)) < 0.7, 0.0, rng.normal(500, 10, size=(n, 6)))

    for seed in range(20):
        rng = np.random.default_rng(seed)
        profile = FeatureProfile.of(sample(120, rng))
        new = sample(n_new, rng)
        assert (
            profile.describe_problem(new.astype(np.float32).astype(float) if kind == "single precision" else new) == ""
        )


def test_arrays_restore_the_distribution_and_earlier_versions_have_none() -> None:
    profile = FeatureProfile.of(draw(200, 0))
    arrays = profile.arrays()
    restored = FeatureProfile.restore(arrays)
    new = draw(60, 1)[:, ::-1]
    assert restored.describe_problem(new) == profile.describe_problem(new) != ""
    earlier = {name: arrays[name] for name in ("lowest", "highest", "spread", "digests")}
    assert FeatureProfile.restore(earlier).distribution is None
    older = np.add(draw(200, 1), [0, 0, 0, 12])
    assert "differs" in restored.describe_problem(older)
    assert FeatureProfile.restore(earlier).describe_problem(older) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", np.zeros(3)),
        ("deviation", np.full(4, -1.0)),
        ("quantiles", np.tile(np.arange(19.0)[::-1, None], 4)),
        ("quantiles", np.full((19, 4), np.nan)),
        ("n_sampled", np.array(0)),
        ("n_sampled", np.array([1.5])),
    ],
)
def test_invalid_arrays_are_refused(name: str, value: np.ndarray) -> None:
    arrays = FeatureProfile.of(draw(60, 0)).arrays()
    with pytest.raises(ValueError, match="distributions"):
        FeatureProfile.restore(arrays | {name: value})
