from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.evaluate.evaluation_items import EvaluationItems
from wisecrowd.evaluate.system_means import estimate_freedom, estimate_system_means

ONE = np.ones(1)


def make_items(
    n: int = 400, n_labelled: int = 80, noise: float = 0.5, seed: int = 0, **design: np.ndarray
) -> EvaluationItems:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(float)
    scores = truth[:, None] + rng.normal(0, noise, (n, 3))
    return EvaluationItems.from_arrays(scores, np.where(np.arange(n) < n_labelled, truth, np.nan), **design)


def test_people_alone_are_the_sample_mean() -> None:
    items = make_items()
    means = estimate_system_means(items, use_judges=False)
    labels = items.label[:80]
    variance, _ = means.describe_contrast(ONE)
    assert means.estimate[0] == pytest.approx(labels.mean())
    assert variance == pytest.approx(labels.var(ddof=1) / 80, rel=1e-6)


def test_all_items_labelled_is_the_mean_whatever_the_judges() -> None:
    items = make_items(100, 100)
    by_all = estimate_system_means(items)
    assert by_all.estimate[0] == pytest.approx(items.label.mean())
    assert by_all.describe_contrast(ONE)[0] == pytest.approx(items.label.var() / 100, rel=0.03)
    assert estimate_system_means(items, population="items").describe_contrast(ONE)[0] == 0


def test_finite_population_is_more_certain() -> None:
    items = make_items(200, 100)
    source, finite = (estimate_system_means(items, use_judges=False, population=name) for name in ("source", "items"))
    assert finite.describe_contrast(ONE)[0] == pytest.approx(0.5 * source.describe_contrast(ONE)[0])


def test_judges_reduce_the_variance() -> None:
    items = make_items()
    assert (
        estimate_system_means(items).describe_contrast(ONE)[0]
        < 0.5 * estimate_system_means(items, use_judges=False).describe_contrast(ONE)[0]
    )


@pytest.mark.parametrize("kind", ["useless", "constant", "inverted"])
def test_bad_judges_do_no_harm(kind: str) -> None:
    items = make_items(noise=100.0)
    if kind == "constant":
        items = dataclasses.replace(items, scores=np.ones_like(items.scores))
    if kind == "inverted":
        items = dataclasses.replace(make_items(), scores=-make_items().scores)
    by_all, alone = (estimate_system_means(items, use_judges=use) for use in (True, False))
    assert by_all.describe_contrast(ONE)[0] < 1.05 * alone.describe_contrast(ONE)[0]


def test_monotone_maps_of_names_do_not_matter() -> None:
    """Shifts and scales of a judge change nothing."""
    items = make_items()
    other = dataclasses.replace(items, scores=items.scores * [1, 10, 100] + [0, -5, 3])
    assert estimate_system_means(other).estimate == pytest.approx(estimate_system_means(items).estimate, abs=1e-9)


def test_strata_are_weighted_by_their_size() -> None:
    label = np.full(400, np.nan)
    label[:30] = np.tile([1.0, 1.0, 0.0], 10)  # 100 items, of which two thirds are positive
    label[100:130] = np.tile([1.0, 0.0, 0.0], 10)  # 300 items, of which one third is
    stratum = np.repeat([0, 1], [100, 300])
    items = EvaluationItems.from_arrays(np.zeros((400, 1)), label, stratum=stratum)
    means = estimate_system_means(items)
    assert means.estimate[0] == pytest.approx(0.25 * 2 / 3 + 0.75 / 3)
    within = 2 / 9 * 30 / 29 / 30
    between = np.var([2 / 3] * 100 + [1 / 3] * 300) / 400
    assert means.describe_contrast(ONE)[0] == pytest.approx((1 / 16 + 9 / 16) * within + between, rel=0.02)


@pytest.mark.slow
def test_unequal_probabilities_are_unbiased() -> None:
    rng = np.random.default_rng(0)
    truth = (np.arange(600) < 200).astype(float)
    inclusion = np.where(truth > 0, 0.3, 0.1)  # positives are labelled three times as often
    estimates, plain = [], []
    for seed in range(60):
        drawn = np.random.default_rng(seed).random(600) < inclusion
        label = np.where(drawn, truth, np.nan)
        scores = (truth + rng.normal(0, 1, 600))[:, None]
        known = EvaluationItems.from_arrays(scores, label, inclusion=inclusion)
        estimates.append(estimate_system_means(known).estimate[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            plain.append(
                estimate_system_means(EvaluationItems.from_arrays(scores, label), use_judges=False).estimate[0]
            )
    assert np.mean(estimates) == pytest.approx(1 / 3, abs=0.012)
    assert np.mean(plain) == pytest.approx(0.6, abs=0.02)


def test_samples_that_are_not_random_are_reported() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(400)
    label = np.where(np.argsort(np.argsort(-score)) < 60, (rng.random(400) < score).astype(float), np.nan)
    with pytest.warns(DataWarning, match="not a random sample"):
        estimate_system_means(EvaluationItems.from_arrays(score[:, None], label))


def test_clusters_of_equal_outputs_count_once() -> None:
    """Ten copies of every item give the interval of the items themselves."""
    items = make_items(100, 40, noise=1.0)
    copies = EvaluationItems.from_arrays(
        np.repeat(items.scores, 10, axis=0), np.repeat(items.label, 10), cluster=np.repeat(np.arange(100), 10)
    )
    single, repeated = (
        estimate_system_means(each, use_judges=False).describe_contrast(ONE)[0] for each in (items, copies)
    )
    assert repeated == pytest.approx(single, rel=1e-6)
    ignored = dataclasses.replace(copies, cluster=np.arange(1000))
    assert estimate_system_means(ignored, use_judges=False).describe_contrast(ONE)[0] < 0.2 * single


def test_severe_raters_are_uncertainty_unless_they_are_the_target() -> None:
    rng = np.random.default_rng(0)
    severity = np.array([0.1, 0.9, 0.5, 0.3])
    rater = np.tile([0, 1, 2, 3], 100)
    labels = pd.DataFrame({
        "task": np.repeat(np.arange(100), 4), "rater": rater, "label": (rng.random(400) < severity[rater]).astype(int)
    })  # fmt: skip
    scores = {"task": np.arange(500), "judge": ["j"] * 500, "score": rng.random(500)}
    items = EvaluationItems.from_tables(scores, labels)
    like_them, panel = (estimate_system_means(items, raters=name) for name in ("population", "panel"))
    assert like_them.estimate == pytest.approx(panel.estimate)
    (wide, freedom), (narrow, _) = like_them.describe_contrast(ONE), panel.describe_contrast(ONE)
    assert wide - narrow == pytest.approx(severity.var(ddof=1) / 4, rel=0.3)
    assert freedom < 4
    assert narrow < 0.05 * wide


def test_raters_who_label_one_item_each_are_in_the_variance_already() -> None:
    items = make_items()
    fresh = dataclasses.replace(
        items, rating_rater=np.arange(80), raters=pd.Index([f"r{number}" for number in range(80)])
    )
    assert estimate_system_means(fresh).describe_contrast(ONE) == estimate_system_means(items).describe_contrast(ONE)


def test_degrees_of_freedom_follow_the_kurtosis() -> None:
    assert estimate_freedom(np.tile([1.0, -1.0], 50)) == 20 * 99  # errors of one size: the variance is certain
    assert estimate_freedom(np.r_[np.zeros(99), 1.0]) < 3
    assert estimate_freedom(np.zeros(10)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": np.r_[1.0, np.full(399, np.nan)]}, "1 labelled items"),
        ({"stratum": (np.arange(400) > 79).astype(int)}, "a stratum of the system"),
        ({"cluster": np.arange(400) // 100}, "belong to one cluster"),
        ({"inclusion": np.zeros(400)}, "inclusion probability"),
        ({"inclusion": np.full(400, np.nan)}, "Keep the column inclusion"),
    ],
)
def test_bad_designs_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_system_means(dataclasses.replace(make_items(), **change))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(UsageError, match="population"):
        estimate_system_means(make_items(), population="all")  # type: ignore[arg-type]


def test_few_labels_are_reported() -> None:
    with pytest.warns(DataWarning, match="only 12 labelled"):
        estimate_system_means(make_items(n_labelled=12))
    with pytest.warns(DataWarning, match="only 8 clusters with labels"):
        estimate_system_means(dataclasses.replace(make_items(), cluster=np.arange(400) // 10))
