"""Mixed-effects mean of ratings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, Mean, RaterMean
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate.ratings import simulate_ratings

MADE = simulate_ratings(n_tasks=300, n_workers=20, n_classes=None, votes_per_task=4, random_state=0)
GRADES = simulate_ratings(n_tasks=300, n_workers=20, n_classes=5, votes_per_task=4, random_state=0)


@pytest.fixture(scope="module")
def fitted() -> RaterMean:
    return RaterMean().fit(MADE.crowd)


def test_offsets_and_scales_are_recovered(fitted: RaterMean) -> None:
    workers = fitted.workers_
    assert workers["offset"].corr(-MADE.workers["severity"]) > 0.95
    assert workers["scale"].corr(1 / MADE.workers["spread"]) > 0.6


def test_estimates_are_nearer_to_the_scores_than_means(fitted: RaterMean) -> None:
    plain, corrected = (
        float(np.abs(estimate - MADE.scores).mean()) for estimate in (Mean().fit(MADE.crowd).labels_, fitted.labels_)
    )
    assert corrected < 0.85 * plain


def test_intervals_cover() -> None:
    covered = []
    for seed in range(5):
        made = simulate_ratings(
            n_tasks=200, n_workers=15, n_classes=None, votes_per_task=4, spread_sd=0, random_state=seed
        )
        tasks = RaterMean(scale=False).fit(made.crowd).tasks_
        # A common shift of all raters cannot be seen.
        scores = made.scores - made.scores.mean() + tasks["estimate"].mean()
        covered.append(((tasks["lower"] <= scores) & (scores <= tasks["upper"])).mean())
    assert 0.85 < np.mean(covered) < 0.95


def test_unbiased_estimates_spread_more(fitted: RaterMean) -> None:
    unbiased = RaterMean(shrink=False).fit(MADE.crowd)
    assert unbiased.labels_.std() > fitted.labels_.std()
    assert (unbiased.tasks_["standard_error"] > fitted.tasks_["standard_error"]).all()


def test_equal_raters_give_the_mean_up_to_shrinkage() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=60)
    votes = [(task, worker, score[task] + rng.normal()) for task in range(60) for worker in range(6)]
    crowd = Crowd.from_triples(votes, numeric=True)
    estimate = RaterMean(scale=False, smoothing=np.inf, shrink=False).fit(crowd).labels_
    assert np.allclose(estimate, Mean().fit(crowd).labels_, atol=0.02)


def test_balanced_variances_equal_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(1)
    task, rater = rng.normal(0, 2, 200), rng.normal(0, 1, 12)
    value = task[:, None] + rater + rng.normal(0, 1.5, (200, 12))
    votes = [(t, r, value[t, r]) for t in range(200) for r in range(12)]
    fitted = RaterMean(scale=False, smoothing=np.inf).fit(Crowd.from_triples(votes, numeric=True))
    residual = value - value.mean(axis=1, keepdims=True) - value.mean(axis=0) + value.mean()
    assert fitted.noise_[0] ** 2 == pytest.approx((residual**2).sum() / (199 * 11), rel=0.02)
    assert np.allclose(fitted.offset_, value.mean(axis=0) - value.mean(), atol=0.02)


def test_a_constant_shift_of_a_rater_leaves_the_order() -> None:
    rows = MADE.crowd.to_frame()
    rows.loc[rows["worker"] == "w1", "label"] += 3.0
    shifted = RaterMean().fit(Crowd.from_frame(rows, numeric=True))
    plain = RaterMean().fit(MADE.crowd)
    assert shifted.labels_.corr(plain.labels_, method="spearman") > 0.99
    assert shifted.workers_["offset"].idxmax() == "w1"


def test_a_rater_who_never_varies_does_not_compress_the_scale() -> None:
    rng = np.random.default_rng(2)
    score = rng.normal(0, 2, 150)
    votes = [(t, f"r{r}", score[t] + 0.7 * rng.normal()) for t in range(150) for r in range(4)]
    votes += [(t, f"lazy{r}", 0.1 * rng.normal()) for t in range(150) for r in range(4)]
    crowd = Crowd.from_triples(votes, numeric=True)
    slopes = [np.polyfit(score, method.fit(crowd).labels_, 1)[0] for method in (Mean(), RaterMean())]
    assert slopes[0] < 0.6
    assert slopes[1] > 0.9


def test_ordered_classes_have_labels_probabilities_and_values() -> None:
    fitted = RaterMean().fit(GRADES.crowd)
    assert fitted.proba_.columns.tolist() == [1, 2, 3, 4, 5]
    assert (fitted.labels_ - fitted.tasks_["estimate"]).abs().median() < 0.5
    assert fitted.tasks_["estimate"].corr(GRADES.scores) > 0.8
    assert "accuracy" in fitted.workers_


def test_named_classes_have_positions() -> None:
    names = {1: "poor", 2: "fair", 3: "good", 4: "very good", 5: "excellent"}
    rows = GRADES.crowd.to_frame()
    crowd = Crowd.from_frame(rows.assign(label=rows["label"].map(names)), ordered=True, classes=list(names.values()))
    named, plain = (RaterMean().fit(votes) for votes in (crowd, GRADES.crowd))
    assert np.allclose(named.tasks_["estimate"].sort_index() + 1, plain.tasks_["estimate"].sort_index(), atol=1e-6)


def test_gold_defines_the_scale() -> None:
    gold = 2 * MADE.scores.iloc[:150] + 5
    fitted = RaterMean().fit(MADE.crowd, truth=gold)
    assert (fitted.labels_[gold.index] == gold).all()
    rest = fitted.labels_.iloc[150:]
    assert np.polyfit(MADE.scores.iloc[150:], rest, 1)[0] > 1.2
    assert rest.mean() > 3


def test_classes_without_order_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match="--ordered --classes low,middle,high"):
        RaterMean().fit(Crowd.from_triples([("t", "w", "happy"), ("t", "v", "sad")]))


@pytest.mark.parametrize("options", [{"smoothing": -1.0}, {"level": 0.0}, {"max_iter": 0}])
def test_parameters_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="max_iter must be 1 or more"):
        RaterMean(**options).fit(MADE.crowd)  # type: ignore[arg-type]


@pytest.mark.data
def test_valence5(answer_types_folder: Path) -> None:
    folder = answer_types_folder / "valence5"
    crowd = Crowd.from_frame(pd.read_parquet(folder / "annotations.parquet"), ordered=True)
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")["label"].reindex(crowd.tasks)
    offset_mean = RaterMean(scale=False, smoothing=np.inf, shrink=False).fit(crowd)
    fitted = RaterMean().fit(crowd)
    assert (offset_mean.labels_ == truth).mean() == pytest.approx(0.49)
    assert (fitted.labels_ == truth).mean() == pytest.approx(0.50)
    assert (fitted.tasks_["estimate"] - truth).abs().mean() == pytest.approx(0.567, abs=0.001)


@pytest.mark.data
@pytest.mark.parametrize("per_task", [3, 5, 10])
def test_left_out_raters_of_asset_are_nearer_than_by_the_mean(answer_types_folder: Path, per_task: int) -> None:
    votes = pd.read_parquet(answer_types_folder / "asset_ratings" / "annotations.parquet")
    raters, gaps = np.sort(votes["worker"].unique()), []
    for seed in range(8):
        left_out = np.random.default_rng(seed).choice(raters, 5, replace=False)
        reference = votes[votes["worker"].isin(left_out)].groupby("task")["label"].mean()
        others = votes[~votes["worker"].isin(left_out)].sample(frac=1, random_state=seed)
        crowd = Crowd.from_frame(others[others.groupby("task").cumcount() < per_task], numeric=True)
        corrected, plain = (
            (method.fit(crowd).labels_.reindex(reference.index) - reference).abs().mean()
            for method in (RaterMean(), Mean())
        )
        gaps.append(corrected - plain)
    assert np.mean(gaps) < 0
