"""Estimated dependence between judges: calibration, copies, one good judge, gold, people, saving."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import check_grad

from wisecrowd import Crowd, DawidSkene, Panel, ScoreCrowd, load, simulate_scores
from wisecrowd.aggregate.categorical.panel._coded_answers import Levels, encode_answers
from wisecrowd.aggregate.categorical.panel._judge_model import JudgeModel, fit_regression
from wisecrowd.aggregate.categorical.panel._latent_classes import measure_error_correlation
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import simulate_panel


@pytest.fixture(scope="module")
def made():
    return simulate_scores(n_tasks=500, n_judges=6, n_people=3, people_density=0.5, random_state=4)


def accuracy(panel: Panel, truth: pd.Series) -> float:
    return float((panel.labels_ == truth).mean())


def best_single(wide: pd.DataFrame, truth: pd.Series, gold: pd.Series) -> float:
    """Accuracy of the judge and threshold that are best on gold."""
    is_gold = truth.index.isin(gold.index)
    values, labels = wide.to_numpy(), truth.to_numpy()
    thresholds = np.quantile(values, np.linspace(0.02, 0.98, 49), axis=0)
    predicted = values > thresholds[:, None, :]
    right = predicted == labels[:, None]
    best = np.unravel_index(right[:, is_gold].mean(axis=1).argmax(), thresholds.shape)
    return float(right[best[0], ~is_gold, best[1]].mean())


def test_scores_without_gold_are_two_classes(made) -> None:
    scores = ScoreCrowd(
        made.scores.task, made.scores.worker, made.scores.score, tasks=made.scores.tasks, workers=made.scores.workers
    )
    panel = Panel().fit(scores)
    assert panel.classes_.tolist() == [0, 1]
    assert accuracy(panel, made.truth) > 0.7
    assert "no gold and no vote of a person" in panel.verdict_[-1]
    named = Panel(classes=("fine", "toxic")).fit(scores)
    assert set(named.labels_) == {"fine", "toxic"}
    assert np.array_equal(named.posterior_, panel.posterior_)


@pytest.mark.slow
def test_people_and_gold_help(made) -> None:
    gold = made.truth.iloc[:100]
    alone = ScoreCrowd(
        made.scores.task, made.scores.worker, made.scores.score, tasks=made.scores.tasks, workers=made.scores.workers
    )
    with_gold, with_people = Panel().fit(alone, truth=gold), Panel().fit(made.scores)
    rest = made.truth.index[100:]
    assert (with_gold.labels_[rest] == made.truth[rest]).mean() > 0.72
    people = DawidSkene().fit(made.scores.votes)
    has_votes = np.flatnonzero(made.scores.votes.votes_per_task > 0)
    assert accuracy(with_people, made.truth) > 0.82
    assert (with_people.labels_ == made.truth).iloc[has_votes].mean() > (people.labels_ == made.truth).iloc[
        has_votes
    ].mean() + 0.01
    assert (with_gold.labels_[gold.index] == gold).all()
    assert with_people.is_person_.sum() == 3
    assert set(with_people.judges_.index) == set(made.scores.workers)
    assert (with_people.judges_["worth"] <= with_people.judges_["alone"] + 1e-12).all()


@pytest.mark.slow
def test_the_order_of_rows_and_the_scale_of_a_judge_do_not_matter(made) -> None:
    gold = made.truth.iloc[:60]
    frame = made.scores.to_frame()
    panel = Panel().fit(frame, truth=gold)
    frame.loc[frame["worker"] == "judge1", "score"] = np.exp(frame.loc[frame["worker"] == "judge1", "score"])
    other = Panel().fit(frame.sample(frac=1, random_state=0), truth=gold)
    assert np.allclose(other.posterior_, panel.posterior_, atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_a_panel_with_gold_is_no_worse_than_its_best_judge(seed: int) -> None:
    """One judge knows the truth rather well, the others are noise or copies of one bad judge."""
    rng = np.random.default_rng(seed)
    truth = pd.Series(rng.integers(2, size=600), index=[f"t{n:03d}" for n in range(600)])
    good = truth + rng.normal(0, 0.35, 600)
    bad = rng.normal(0, 1, (600, 1)) + 0.05 * rng.normal(0, 1, (600, 6))
    wide = pd.DataFrame(
        np.column_stack([good, bad, rng.normal(0, 1, (600, 3))]), index=truth.index, columns=list("abcdefghij")
    )
    gold = truth.iloc[:100]
    scores = ScoreCrowd.from_wide(wide)
    panel = Panel().fit(scores, truth=gold)
    rest = truth.index[100:]
    assert (panel.labels_[rest] == truth[rest]).mean() > best_single(wide, truth, gold) - 0.02
    assert panel.n_effective_ < 2.5
    assert not panel.verdict_[-1].startswith("The panel is better")


def test_copies_are_one_vote() -> None:
    made = simulate_scores(n_tasks=600, n_judges=1, separation=2.0, random_state=2)
    frame = made.scores.to_frame()
    copies = pd.concat([frame.assign(worker=f"judge{n}") for n in range(5)])
    panel = Panel().fit(copies, truth=made.truth.iloc[:200])
    assert panel.n_effective_ == pytest.approx(1.0, abs=0.05)
    assert "only one vote" in panel.verdict_[0]


@pytest.mark.slow
def test_independent_judges_are_many_votes() -> None:
    made = simulate_scores(
        n_tasks=1500, n_judges=5, separation=1.5, correlation=0.0, family_correlation=0.0, random_state=2
    )
    panel = Panel().fit(made.scores, truth=made.truth.iloc[:300])
    assert panel.n_effective_ > 3.5
    assert panel.verdict_[-1].startswith("The panel is better")


def test_error_correlations_are_recovered() -> None:
    made = simulate_scores(n_tasks=3000, n_judges=4, correlation=0.5, family_correlation=0.2, random_state=1)
    scores = made.scores
    answers = encode_answers(scores.task, scores.worker, scores.score, n_tasks=3000, n_judges=4, is_ordered=True)
    found = measure_error_correlation(answers, np.eye(2)[made.truth])
    assert np.allclose(found.correlation, made.error_correlation, atol=0.12)  # grades are coarser than opinions


@pytest.mark.slow
def test_probabilities_are_calibrated() -> None:
    made = simulate_scores(n_tasks=3000, n_judges=6, random_state=7)
    panel = Panel().fit(made.scores, truth=made.truth.iloc[:300])
    rest = made.truth.index[300:]
    confidence = panel.proba_.loc[rest].max(axis=1)
    right = panel.labels_[rest] == made.truth[rest]
    assert confidence.mean() == pytest.approx(right.mean(), abs=0.04)
    assert panel.heldout_accuracy_.mean() == pytest.approx(right.mean(), abs=0.07)


@pytest.mark.parametrize("strength", [0.6, 1.0])
@pytest.mark.slow
def test_labels_need_no_groups(strength: float) -> None:
    made = simulate_panel(n_tasks=600, n_judges=8, n_people=3, n_classes=3, strength=strength, random_state=1)
    estimated, named = (
        Panel(kinds=made.kinds).fit(made.crowd),
        Panel(kinds=made.kinds, groups=made.groups).fit(made.crowd),
    )
    assert accuracy(estimated, made.truth) > accuracy(named, made.truth) - 0.02
    assert estimated.notes_ == []
    if strength == 1.0:
        assert estimated.n_effective_ < 1.2


def test_more_classes_follow_from_gold() -> None:
    rng = np.random.default_rng(0)
    truth = pd.Series(rng.integers(3, size=600), index=[f"t{n:03d}" for n in range(600)])
    wide = pd.DataFrame(
        truth.to_numpy()[:, None] + rng.normal(0, 0.7, (600, 4)), index=truth.index, columns=list("abcd")
    )
    panel = Panel().fit(ScoreCrowd.from_wide(wide), truth=truth.iloc[:150])
    assert panel.classes_.tolist() == [0, 1, 2]
    assert accuracy(panel, truth) > 0.8


def test_a_saved_panel_predicts_the_same(made, tmp_path: Path) -> None:
    panel = Panel().fit(made.scores, truth=made.truth.iloc[:50])
    panel.save(tmp_path / "model")
    restored = load(tmp_path / "model")
    assert isinstance(restored, Panel)
    rest = made.truth.index[50:]
    predicted = restored.predict_proba(made.scores)
    assert np.allclose(predicted.loc[rest], panel.proba_.loc[rest], atol=0.03)
    assert restored.verdict_ == panel.verdict_
    new = (
        made.scores.to_frame()
        .query("task in ['t001', 't002']")
        .assign(worker=lambda table: table["worker"].replace("judge0", "new"))
    )
    assert restored.predict_proba(new).shape == (2, 2)
    with pytest.raises(InputError, match="fitted to scores"):
        restored.predict_proba(Crowd.from_triples([("t1", "judge0", 0)]))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.array([0.5])},
        {"low": np.array([-np.inf])},
        {"judge": np.array([1, 0])},
        {"intercepts": np.full((1, 2), np.nan)},
        {"level_logits": np.zeros((1, 3, 2))},
    ],
)
def test_damaged_models_are_refused(change: dict[str, np.ndarray]) -> None:
    levels = Levels(np.array([0, 0]), np.array([-np.inf, 5.0]), True)
    arrays = JudgeModel(levels, np.ones(1), np.zeros((1, 2)), np.zeros((1, 2, 2))).arrays()
    assert JudgeModel.from_arrays(arrays).weights.tolist() == [1.0]
    with pytest.raises(ValueError, match="must"):
        JudgeModel.from_arrays(arrays | change)


def test_the_regression_is_at_its_optimum() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(50), rng.normal(size=(50, 3))])
    evidence, offset, precision = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)), np.array([1.0, 2.0, 2.0, 2.0])

    def loss(flat: np.ndarray) -> float:
        logits = offset + features @ flat.reshape(4, 3)
        likelihood = np.log(np.exp(logits + evidence).sum(axis=1)) - np.log(np.exp(logits).sum(axis=1))
        return float(0.5 * (precision[:, None] * flat.reshape(4, 3) ** 2).sum() - likelihood.sum())

    weights = fit_regression(features, evidence, precision, offset=offset).ravel()
    assert check_grad(loss, lambda flat: np.zeros(12), weights) < 5e-3


def test_misuse_is_explained(made) -> None:
    with pytest.raises(UsageError, match="leave X, start and groups out"):
        Panel(groups={"judge0": "g", "judge1": "g"}).fit(made.scores)
    with pytest.raises(InputError, match="the class 1 only"):
        Panel().fit(made.scores.to_frame(), truth={"t001": 1})
    with pytest.raises(InputError, match="two classes only"):
        Panel(classes=(0, 1, 2)).fit(made.scores.to_frame())
    with pytest.raises(InputError, match="not named: 5"):
        Panel(classes=(0, 1)).fit(made.scores.to_frame(), truth={"t001": 5})
    with pytest.raises(UsageError, match="dependence='groups'"):
        Panel(kinds={"a": "machine"}).partial_fit(Crowd.from_triples([("t1", "a", 0)]))
    both = made.scores.to_frame().replace({"worker": {"judge0": "person0"}})
    with pytest.raises(InputError, match="workers with scores and labels: 'person0'"):
        Panel().fit(ScoreCrowd.from_frame(both).with_votes(made.scores.votes))


def test_levels_of_continuous_scores_are_few() -> None:
    rng = np.random.default_rng(0)
    score = np.append(rng.normal(size=1000), np.zeros(200))
    answers = encode_answers(
        np.arange(1200), np.zeros(1200, dtype=int), score, n_tasks=1200, n_judges=1, is_ordered=True
    )
    assert 10 <= len(answers.levels.low) <= 17
    assert isinstance(answers.table, sparse.csr_array)
    assert (np.diff(answers.levels.low[1:]) > 0).all()
    assert answers.counts.min() > 0
