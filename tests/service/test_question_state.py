"""State of a question: changes, due jobs, answers and suggestions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sqlalchemy", reason="the extra serve is not installed")
from wisecrowd import Crowd, DawidSkene
from wisecrowd.em.live import FitConfidence, FitSnapshot
from wisecrowd.errors import InputError
from wisecrowd.evaluate.confidence import compute_calibrated_posterior, estimate_confidence
from wisecrowd.service import question_state
from wisecrowd.service.database import QuestionVocabulary
from wisecrowd.service.question_state import (
    ACCURACY_SECONDS,
    IDLE_FIT_SECONDS,
    PAUSE_FACTOR,
    RETRY_SECONDS,
    JobTimer,
    QuestionState,
)
from wisecrowd.service.refits import Calibration, Refit

#: Ratings of a worker without flags.
RATING = {
    "n_votes": 2, "accuracy": 0.8, "low": 0.5, "high": 0.9, "p_spammer": 0.0, "p_adversary": 0.0, "flags": "", "why": "",
}  # fmt: skip
NO_OUTCOMES = pd.DataFrame({"score": [], "label": [], "right": []})
ROWS = [("t0", "ann", "x"), ("t0", "bob", "x"), ("t1", "ann", "y"), ("t1", "bob", "x"), ("t2", "ann", "y")]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock: a list with the time."""
    clock = [1000.0]
    monkeypatch.setattr(question_state.time, "monotonic", lambda: clock[0])
    return clock


def make(rows: list[tuple[str, str, str]] | None = None) -> QuestionState:
    vocabulary = QuestionVocabulary(0, "mood")
    state = QuestionState.create(vocabulary, DawidSkene(), 0.95)
    votes: dict[int, dict[int, int]] = {}
    for task, worker, label in ROWS if rows is None else rows:
        code = vocabulary.tasks.add(task)
        votes.setdefault(code, {})[vocabulary.workers.add(worker)] = vocabulary.classes.add(label)
    state.update_sizes()
    state.update_votes(votes, {}, sum(map(len, votes.values())))
    return state


def fit(state: QuestionState) -> Refit:
    rows = [
        (task, worker, label) for task in range(state.n_tasks) for worker, label in state.live.votes_on(task).items()
    ]
    task, worker, label = np.array(rows).T
    crowd = Crowd.from_codes(
        task, worker, label, tasks=range(state.n_tasks), workers=range(state.n_workers), classes=range(state.n_classes)
    )
    fitted = DawidSkene().fit(crowd)
    estimate = estimate_confidence(fitted, crowd)
    assert estimate.counted_votes is not None
    confidence = FitConfidence(
        calibrated_posterior=compute_calibrated_posterior(estimate, fitted, crowd), confidence=estimate.confidence,
        score=estimate.score, counted_votes=estimate.counted_votes, calibration=estimate.calibration,
    )  # fmt: skip
    return Refit(
        snapshot=FitSnapshot.from_fit(fitted, crowd, confidence), seconds=0.5, n_votes=crowd.n_votes, n_iter=3,
        converged=True, crowd_calibration=estimate.calibration,
    )  # fmt: skip


class TestTimer:
    def test_a_pause_follows_a_run(self, now: list[float]) -> None:
        timer = JobTimer()
        timer.start(7)
        assert not timer.can_start(now[0] + 100)
        now[0] += 2.0
        timer.finish()
        assert timer.changes_covered == 7
        assert not timer.can_start(now[0] + 2 * PAUSE_FACTOR - 0.01)
        assert timer.can_start(now[0] + 2 * PAUSE_FACTOR)

    def test_a_failed_run_covers_nothing_and_waits(self, now: list[float]) -> None:
        timer = JobTimer()
        timer.start(7)
        timer.finish(succeeded=False)
        assert timer.changes_covered == 0
        assert not timer.can_start(now[0] + PAUSE_FACTOR * RETRY_SECONDS - 0.01)
        assert timer.can_start(now[0] + PAUSE_FACTOR * RETRY_SECONDS)


class TestFits:
    def test_the_first_votes_are_fitted_when_it_is_quiet(self, now: list[float]) -> None:
        state = make()
        assert state.is_stale
        assert not state.fit_is_due(now[0])
        assert state.fit_is_due(now[0] + IDLE_FIT_SECONDS)
        empty = QuestionState.create(QuestionVocabulary(0, "mood"), DawidSkene(), 0.95)
        assert not empty.fit_is_due(now[0] + 100)

    def test_a_fit_covers_what_it_read(self, now: list[float]) -> None:
        state = make()
        result = fit(state)
        state.start_fit()
        state.update_votes({2: {0: 1, 1: 0}}, {}, 1)  # while the fit runs
        state.finish_fit(result)
        assert state.is_stale
        assert state.votes_by_name(2) == {"ann": "y", "bob": "x"}, "the later vote is not lost"
        state.start_fit()
        now[0] += 0.1
        state.finish_fit(fit(state))
        assert not state.is_stale
        assert state.describe()["is_current"]

    def test_a_failed_fit_is_shown_and_repeated(self, now: list[float]) -> None:
        state = make()
        state.start_fit()
        state.fail_fit("no memory")
        assert state.describe()["fit_error"] == "no memory"
        assert state.fit_is_due(now[0] + 100)
        state.start_fit()
        state.finish_fit(fit(state))
        assert state.describe()["fit_error"] is None

    def test_a_new_class_is_fitted_at_once(self, now: list[float]) -> None:
        state = make()
        state.start_fit()
        state.finish_fit(fit(state))
        state.vocabulary.classes.add("z")
        state.update_sizes()
        state.update_votes({2: {0: 2}}, {}, 1)
        assert state.fit_is_due(now[0])

    def test_the_share_of_changed_labels_leaves_out_tasks_with_later_votes(self) -> None:
        state = make()
        result = fit(state)
        state.start_fit()
        before = state.live.posterior.argmax(axis=1)
        changed = (before != result.snapshot.posterior.argmax(axis=1)).mean()
        state.finish_fit(result)
        assert state.changed_share == pytest.approx(changed)

    @pytest.mark.usefixtures("now")
    def test_few_votes_are_not_calibrated(self) -> None:
        state = make()
        state.start_fit()
        state.finish_fit(fit(state))
        assert not state.calibration_is_due(1e9)


class TestAnswers:
    def test_tasks_have_labels_or_none(self) -> None:
        state = make()
        state.vocabulary.tasks.add("t3")
        state.update_sizes()
        answers = {answer["task"]: answer for answer in state.describe_tasks(np.arange(4))}
        assert answers["t0"]["label"] == "x"
        assert answers["t3"]["label"] is None
        assert answers["t3"]["probability"] is None
        assert answers["t0"]["confidence"] is None, "there is no fit"
        assert [answers[f"t{n}"]["n_votes"] for n in range(4)] == [2, 2, 1, 0]

    def test_confidence_and_expected_accuracy_come_with_the_first_fit(self, now: list[float]) -> None:
        state = make()
        assert state.describe()["expected_accuracy"] is None
        state.start_fit()
        state.finish_fit(fit(state))
        assert state.live.confidence is not None
        assert state.describe_task(0)["confidence"] == pytest.approx(state.live.confidence[0], abs=1e-6)
        first = state.describe()["expected_accuracy"]
        assert (first["tasks"], first["gold_tasks"]) == (3, 0)
        assert state.fit is not None
        assert state.live.score is not None
        unbounded = state.fit.crowd_calibration.confidence(state.live.score)  # confidence is never below chance
        assert first["accuracy"] == pytest.approx(unbounded.mean(), abs=1e-3)
        np.testing.assert_allclose(state.live.confidence, np.maximum(unbounded, 0.5), atol=1e-6)
        assert 0 < first["low"] < first["accuracy"] < first["high"] <= 1
        state.update_votes({}, {1: 1, 2: 1}, 1)
        assert state.describe()["expected_accuracy"] == first, "as of a moment ago"
        now[0] += ACCURACY_SECONDS + 0.1
        later = state.describe()["expected_accuracy"]
        assert later["accuracy"] == pytest.approx((2 + unbounded[0]) / 3, abs=1e-3)

    def test_gold_is_certain_and_finished(self) -> None:
        state = make()
        state.update_votes({}, {2: 0}, 1)
        answer = state.describe_task(2)
        assert (answer["label"], answer["confidence"], answer["is_gold"], answer["is_finished"]) == ("x", 1, True, True)
        assert state.describe()["n_gold"] == 1
        state.update_votes({}, {2: None}, 1)
        assert not state.describe_task(2)["is_gold"]

    def test_probabilities_sum_to_one(self) -> None:
        probabilities = make().class_probabilities(1)
        assert set(probabilities) == {"x", "y"}
        assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)

    def test_names_are_looked_up(self) -> None:
        state = make()
        assert state.task_code("t1") == 1
        with pytest.raises(InputError, match="the question mood has no task of this name"):
            state.task_code("absent")
        assert state.worker_code("bob") == 1
        assert state.worker_code("nobody") is None
        state.vocabulary.tasks.add("not committed")
        with pytest.raises(InputError):
            state.task_code("not committed")

    def test_workers_are_listed_by_number_of_votes(self) -> None:
        state = make()
        ann, bob = state.describe_workers()
        assert (ann["worker"], ann["n_votes"]) == ("ann", 3)
        assert bob["p_spammer"] is None
        assert state.list_workers(1) == [0]
        assert state.flagged_workers() == {}


class TestSuggestions:
    def test_a_worker_is_not_asked_twice(self) -> None:
        state = make()
        suggested, reason = state.suggest_tasks(state.worker_code("bob"), 5)
        assert [task["task"] for task in suggested] == ["t2"]
        assert reason == ""
        assert state.suggest_tasks(state.worker_code("ann"), 5) == (
            [],
            "this worker has voted on every unfinished task",
        )

    def test_a_new_worker_is_asked_about_the_most_informative_task(self) -> None:
        suggested, _ = make().suggest_tasks(None, 5)
        gains = [task["gain"] for task in suggested]
        assert gains == sorted(gains, reverse=True)
        assert len(suggested) == 3
        assert len(make().suggest_tasks(None, 1)[0]) == 1

    def test_finished_tasks_are_not_suggested(self) -> None:
        state = make()
        state.update_votes({}, {0: 0, 1: 0, 2: 0}, 1)
        assert state.suggest_tasks(None, 5) == ([], "every task is finished")

    def test_spammers_are_not_asked(self) -> None:
        state = make()
        ratings = pd.DataFrame([RATING, RATING | {"p_spammer": 1.0, "flags": "spammer", "why": "2 votes"}])
        state.finish_calibration(Calibration(outcomes=NO_OUTCOMES, workers=ratings, n_votes=5))
        tasks, reason = state.suggest_tasks(state.worker_code("bob"), 5)
        assert tasks == []
        assert "independent of the truth" in reason
        assert state.flagged_workers() == {"bob": "spammer"}
        assert state.describe()["flagged_workers"] == {"bob": "spammer"}
        assert state.list_workers(1) == [1]
        assert state.describe_workers([1])[0]["p_spammer"] == 1

    def test_of_many_tasks_the_least_certain_are_candidates(self, monkeypatch: pytest.MonkeyPatch, now: Any) -> None:
        monkeypatch.setattr(question_state, "MAX_CANDIDATES", 2)
        state = make()
        now[0] += 10
        suggested, _ = state.suggest_tasks(None, 5)
        certainty = state.live.calibrated_posterior.max(axis=1)
        assert {state.task_code(task["task"]) for task in suggested} == set(np.argsort(certainty)[:2].tolist())


def test_nothing_is_lost_if_a_calibration_fails() -> None:
    state = make()
    calibration = Calibration(outcomes=NO_OUTCOMES, workers=pd.DataFrame([RATING] * 2), n_votes=5)
    state.finish_calibration(calibration)
    state.finish_calibration(None)
    assert state.calibration is calibration
