from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import (
    Crowd,
    DawidSkene,
    MajorityVote,
    Median,
    ModelAverage,
    Panel,
    Raykar,
    estimate_confidence,
    simulate_crowd,
)
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.confidence import ConfidenceStream, confidence_error, encode_known_truth
from wisecrowd.simulate import Simulation, simulate_panel


@pytest.fixture
def made() -> Simulation:
    return simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=4, random_state=3)


def test_every_method_with_a_posterior_has_confidence(made: Simulation) -> None:
    X = pd.DataFrame(np.eye(3)[np.arange(200) % 3], index=made.crowd.tasks)
    for fitted in (DawidSkene().fit(made.crowd), MajorityVote().fit(made.crowd), Raykar().fit(X, made.crowd)):
        estimate = estimate_confidence(fitted, made.crowd)
        assert estimate.table["label"].tolist() == fitted.labels_.tolist()
        assert ((estimate.confidence >= 1 / 3) & (estimate.confidence < 1)).all()
        unbounded = estimate.calibration.confidence(estimate.score)
        assert estimate.accuracy.accuracy == pytest.approx(unbounded.mean(), abs=2e-3)


def test_members_of_a_group_have_one_vote() -> None:
    """Ten prompts of one model that is often wrong must not make its labels certain."""
    made = simulate_panel(300, 10, 3, 3, strength=0.95, random_state=4)
    fitted = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    accuracy = estimate_confidence(fitted, made.crowd).accuracy
    assert accuracy.low < (fitted.labels_ == made.truth).mean() < accuracy.high


def test_labels_of_agreed_tasks_are_more_certain(made: Simulation) -> None:
    estimate = estimate_confidence(DawidSkene().fit(made.crowd), made.crowd)
    share = made.crowd.vote_counts.max(axis=1) / made.crowd.vote_counts.sum(axis=1)
    assert estimate.confidence[share == 1].mean() > estimate.confidence[share <= 0.5].mean() + 0.1


def test_gold_tasks_are_certain_and_narrow_the_interval(made: Simulation) -> None:
    gold = made.truth[:80]
    fitted = DawidSkene().fit(made.crowd, truth=gold)
    estimate = estimate_confidence(fitted, made.crowd, truth=gold)
    without = estimate_confidence(DawidSkene().fit(made.crowd), made.crowd)
    assert (estimate.table["confidence"][gold.index] == 1).all()
    assert estimate.accuracy.n_gold == 80
    assert estimate.accuracy.high - estimate.accuracy.low < 0.6 * (without.accuracy.high - without.accuracy.low)


def test_a_gold_task_is_no_evidence_about_itself(made: Simulation) -> None:
    """Gold that is drawn at random must lower the confidence, although the fit reproduces it."""
    random_classes = np.random.default_rng(0).choice(["c0", "c1", "c2"], 60)
    gold = pd.Series(random_classes, index=made.crowd.tasks[:60])
    fitted = DawidSkene().fit(made.crowd, truth=gold)
    assert (fitted.labels_[gold.index] == gold).all()
    estimate = estimate_confidence(fitted, made.crowd, truth=gold)
    assert estimate.outcomes["right"].mean() < 0.6
    assert estimate.confidence[60:].mean() < estimate_confidence(fitted, made.crowd).confidence[60:].mean() - 0.1


def test_learners_judge_gold_by_votes(made: Simulation) -> None:
    X = pd.DataFrame(np.eye(3)[np.arange(200) % 3], index=made.crowd.tasks)
    gold = made.truth[:50]
    estimate = estimate_confidence(Raykar().fit(X, made.crowd, truth=gold), made.crowd, truth=gold)
    assert estimate.accuracy.n_gold == 50
    assert 0 < estimate.outcomes["right"].mean() < 1


def test_checked_tasks_recalibrate(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    right = fitted.labels_[:100]
    all_right = estimate_confidence(fitted, made.crowd, checked=right)
    none_right = estimate_confidence(fitted, made.crowd, checked=pd.Series("nobody said this", index=right.index))
    assert all_right.confidence.mean() > estimate_confidence(fitted, made.crowd).confidence.mean()
    assert none_right.confidence.mean() == pytest.approx(1 / 3)  # not below chance
    assert none_right.accuracy.accuracy < all_right.accuracy.accuracy - 0.4


def test_accuracy_by_class_follows_the_checks_of_the_class(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    labels = fitted.labels_
    checked = labels.where(labels != "c1", "c2")[:150]  # every label c1 is wrong
    table = estimate_confidence(fitted, made.crowd, checked=checked).accuracy_by_class
    assert table["n_tasks"].sum() == 200
    assert table["n_gold"].sum() == 150
    assert table.loc["c1", "accuracy"] < 0.2 < 0.8 < table.loc["c0", "accuracy"]
    assert ((table["low"] <= table["accuracy"]) & (table["accuracy"] <= table["high"])).all()


def test_tasks_without_votes_are_not_part_of_the_accuracy() -> None:
    crowd = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1), ("t2", "bob", 1)], tasks=["t1", "t2", "t3"])
    fitted = DawidSkene().fit(crowd)
    estimate = estimate_confidence(fitted, crowd)
    assert estimate.accuracy.n_tasks == 2
    assert estimate.confidence[2] == fitted.posterior_[2].max()


@pytest.mark.parametrize("kind", [DawidSkene, ModelAverage])
@pytest.mark.slow
def test_shards_give_the_same_confidence(kind: type[Aggregator], made: Simulation, tmp_path: Path) -> None:
    gold = made.truth[:40]
    sharded = made.crowd.to_shards(tmp_path / "shards", votes_per_shard=150)
    for truth in (None, gold):
        stream = ConfidenceStream(kind().fit(sharded, truth=truth))
        parts = list(stream)
        fitted = kind().fit(made.crowd, truth=truth)
        confidence = pd.concat([pd.Series(part.confidence, part.posterior.index) for part in parts])[made.crowd.tasks]
        assert stream.accuracy.n_tasks == 200
        if truth is None:
            expected = estimate_confidence(fitted, made.crowd)
            np.testing.assert_allclose(confidence, expected.confidence, atol=1e-6)
            assert stream.accuracy.accuracy == pytest.approx(expected.accuracy.accuracy, abs=1e-3)
            assert stream.accuracy.low == pytest.approx(expected.accuracy.low, abs=2e-3)
        else:
            assert (confidence[gold.index] == 1).all()
            assert stream.accuracy.n_gold == 40


def test_calibration_error_counts_unknown_classes_as_wrong(made: Simulation) -> None:
    estimate = estimate_confidence(DawidSkene().fit(made.crowd), made.crowd)
    nobody = pd.Series("none of them", index=made.crowd.tasks)
    assert estimate.calibration_error(nobody) == pytest.approx(estimate.confidence.mean())
    assert estimate.calibration_error(made.truth) < 0.3
    assert confidence_error(np.array([1.0, 1.0]), np.array([True, True])) == 0.0


def test_truth_is_matched_by_id_whatever_its_type() -> None:
    truth = pd.Series([1, 7], index=["1", "9"])
    assert encode_known_truth(truth, pd.Index([1, 2]), pd.Index(["0", "1"])).tolist() == [1, -1]


def test_unsuitable_input_is_refused(made: Simulation) -> None:
    fitted = DawidSkene().fit(made.crowd)
    with pytest.raises(UsageError, match="crowd differs"):
        estimate_confidence(fitted, made.crowd[:10])
    with pytest.raises(InputError, match="none of the 1 checked tasks"):
        estimate_confidence(fitted, made.crowd, checked={"nowhere": "c0"})
    with pytest.raises(InputError, match="twice"):
        estimate_confidence(fitted, made.crowd, checked=pd.concat([made.truth[:2], made.truth[:1]]))
    with pytest.raises(UsageError, match="not fitted to a crowd in shards"):
        ConfidenceStream(fitted)
    numbers = Crowd.from_triples([("t1", "ann", 1.5), ("t1", "bob", 2.0)], numeric=True)
    with pytest.raises(UsageError, match="no posterior"):
        estimate_confidence(Median().fit(numbers), numbers)
