"""Figures that all views share, and warnings about labels that should not be used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import Crowd, DawidSkene, MajorityVote, ModelAverage, simulate_crowd
from wisecrowd.base import method as base_method
from wisecrowd.diagnose import assessment as module
from wisecrowd.diagnose.assessment import CrowdAssessment, assess_crowd, is_outvoted_by_another, sort_flagged_first
from wisecrowd.diagnose.workers import WorkerDiagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.confidence import estimate_confidence

KINDS = ["noisy(0.8)"] * 8 + ["spammer", "adversary"]
MADE = simulate_crowd(150, workers=KINDS, n_classes=3, votes_per_task=5, random_state=0)
CROWD = MADE.crowd


@pytest.fixture(scope="module")
def assessment() -> CrowdAssessment:
    return assess_crowd(CROWD)


class TestFigures:
    def test_labels_are_those_of_the_default_and_workers_those_of_dawid_skene(
        self, assessment: CrowdAssessment
    ) -> None:
        fitted = ModelAverage().fit(CROWD)
        expected = estimate_confidence(fitted, CROWD)
        np.testing.assert_array_equal(assessment.labels.confidence, expected.confidence)
        assert assessment.accuracy == expected.accuracy
        assert assessment.mean_confidence == pytest.approx(expected.confidence.mean())
        rated = WorkerDiagnosis(CROWD, DawidSkene().fit(CROWD)).table
        pd.testing.assert_frame_equal(assessment.worker_table, rated)

    def test_a_named_method_with_matrices_also_rates_workers(self) -> None:
        assert assess_crowd(CROWD, "one-coin").rating_model.name == "one-coin"
        assert assess_crowd(CROWD, "majority-vote").rating_model.name == "dawid-skene"
        assert assess_crowd(CROWD, "ebcc").rating_model.name == "dawid-skene"  # votes cannot be left out of subtypes

    def test_record(self, assessment: CrowdAssessment) -> None:
        record = assessment.to_dict()
        table = assessment.worker_table
        flagged = table[table["flags"] != ""].sort_values("n_votes", ascending=False)
        assert record["flagged_workers"] == flagged["flags"].to_dict()
        assert {"w8", "w9"} <= set(record["flagged_workers"])
        assert record["recommended_method"] == "model-average"
        assert record["warnings"] == []
        assert assessment.to_dict(with_workers=False)["flagged_workers"] is None
        assert assessment.describe_flags(1).startswith(f"{len(flagged)} of 10 workers: {flagged.index[0]} (")

    def test_gold_is_used_in_the_fit_and_calibrates(self) -> None:
        gold = MADE.truth[:60]
        with_gold = assess_crowd(CROWD, gold=gold)
        assert with_gold.accuracy.n_gold == 60
        assert with_gold.accuracy.high - with_gold.accuracy.low < 0.2
        assert (with_gold.labels.confidence[:60] == 1).all()
        np.testing.assert_array_equal(with_gold.rating_model.labels_[:60], gold)

    def test_votes_without_workers_have_no_flags(self) -> None:
        anonymous = CROWD.drop_workers()
        record = CrowdAssessment(anonymous, MajorityVote().fit(anonymous)).to_dict()
        assert record["flagged_workers"] == {}
        assert record["recommended_method"] == "model-average"

    def test_invalid_models(self) -> None:
        with pytest.raises(UsageError, match="not fitted"):
            assess_crowd(CROWD, ModelAverage())
        with pytest.raises(InputError, match="no votes"):
            assess_crowd(CROWD.take([]))


def make_crowd_that_collapses() -> Crowd:
    """Return votes on 150 classes of which a fifth are on one wrong class."""
    rng = np.random.default_rng(0)
    n_tasks, n_classes, n_votes = 300, 150, 3
    truth = rng.integers(1, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks), n_votes)
    worker = np.concatenate([rng.choice(40, n_votes, replace=False) for _ in range(n_tasks)])
    label = np.where(rng.random(len(task)) < 0.6, truth[task], rng.integers(1, n_classes, len(task)))
    label = np.where(rng.random(len(task)) < 0.2, 0, label)
    return Crowd.from_triples(list(zip(task.tolist(), worker.tolist(), label.tolist(), strict=True)))


class TestWarnings:
    def test_votes_by_chance(self) -> None:
        rng = np.random.default_rng(0)
        votes = [(task, worker, rng.integers(4)) for task in range(100) for worker in range(5)]
        (warning,) = assess_crowd(Crowd.from_triples(votes)).warnings
        assert warning.startswith("Workers agree hardly more often than by chance (Krippendorff's alpha ")
        assert "90 % interval" in warning

    def test_votes_against_each_other(self) -> None:
        votes = [(task, worker, (task + worker) % 2) for task in range(100) for worker in range(2)]
        assert assess_crowd(Crowd.from_triples(votes)).warnings[0].startswith("Workers agree less often than by chance")

    def test_a_rare_class_is_no_chance(self) -> None:
        """Alpha is near zero although 98 % of the votes agree."""
        votes = [(task, worker, int(task % 17 == worker)) for task in range(170) for worker in range(3)]
        crowd = Crowd.from_triples(votes)
        assert float(wc.krippendorff_alpha(crowd)) < 0.05
        assert assess_crowd(crowd).warnings == ()

    def test_few_tasks_give_no_warning(self) -> None:
        votes = [(task, worker, (task + worker) % 2) for task in range(5) for worker in range(2)]
        assert assess_crowd(Crowd.from_triples(votes)).warnings == ()

    @pytest.mark.slow
    def test_labels_that_collapse(self) -> None:
        """A fifth of the votes on many classes is one wrong class, and a model explains all tasks by it."""
        crowd = make_crowd_that_collapses()
        assert assess_crowd(crowd, "majority-vote").warnings == ()
        (warning,) = assess_crowd(crowd, "ibcc").warnings
        assert warning.startswith("Labels collapse into one class: ibcc puts ")
        assert "of the tasks into '0', although another label has more votes on " in warning

    @pytest.mark.slow
    def test_the_default_on_such_votes_is_rejected_by_held_out_votes(self) -> None:
        assessment = assess_crowd(make_crowd_that_collapses())
        assert assessment.recommended_method == "majority-vote"
        assert assessment.warnings[-1].startswith("Held-out votes reject model-average")

    def test_a_frequent_class_is_no_collapse(self) -> None:
        made = simulate_crowd(300, workers=["noisy(0.9)"] * 10, n_classes=2, prior=[0.95, 0.05], random_state=0)
        assert assess_crowd(made.crowd).warnings == ()

    def test_a_rejected_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from wisecrowd.evaluate.method_check import MethodCheck

        check = MethodCheck("model-average", "majority-vote", 0.5, 0.4, 100)
        monkeypatch.setattr(module, "check_default_method", lambda _: check)
        rejected = assess_crowd(CROWD)
        assert rejected.recommended_method == "majority-vote"
        assert rejected.warnings == (
            "Held-out votes reject model-average: it gives them 0.61 times the probability that majority-vote gives them. "
            "Use -m majority-vote.",
        )
        assert assess_crowd(CROWD, "dawid-skene").warnings == ()  # the user chose another method

    @pytest.mark.data
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["bluebirds", "product_matching", "crowdtruth_relations_13"])
    def test_real_crowds_give_no_false_alarm(self, dataset: object, name: str) -> None:
        """The crowds of WISECROWD_DATA with the lowest agreement, the most unequal classes and the worst held-out votes."""
        assert assess_crowd(dataset(name).crowd).warnings == ()  # type: ignore[operator]


def test_flagged_workers_come_first() -> None:
    table = pd.DataFrame({"n_votes": [9, 5, 7, 8], "flags": ["", "spammer", "", "copies"]}, index=list("abcd"))
    assert sort_flagged_first(table).index.tolist() == ["d", "b", "a", "c"]


def test_outvoted_labels_equal_a_recount() -> None:
    counts = CROWD.vote_counts
    labels = np.arange(CROWD.n_tasks) % CROWD.n_classes
    expected = counts.max(axis=1) > counts[np.arange(CROWD.n_tasks), labels]
    np.testing.assert_array_equal(is_outvoted_by_another(CROWD, labels), expected)


def test_workers_are_not_rated_with_too_many_rare_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd.from_triples([(task, worker, worker) for task in range(6) for worker in range(20)])
    assert assess_crowd(crowd).can_rate_workers
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {30: 6 * 20 * 20 - 1})
    assessment = assess_crowd(crowd)
    assert not assessment.can_rate_workers
    assert assessment.to_dict(with_workers=False)["flagged_workers"] is None
