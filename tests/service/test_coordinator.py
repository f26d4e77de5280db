"""Batched writes, incremental updates and repeated fits."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, ignore_fit_warnings
from wisecrowd.service import coordinator as coordinator_module
from wisecrowd.service.coordinator import Coordinator, ServiceBusy, WriteFailed
from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.store import Store


def put(n: int, label: str = "good") -> Upsert:
    return Upsert(f"id:{n}", (VoteRecord("mood", f"t{n // 3}", f"w{n % 3}", label),))


def wait_for(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.05)


def test_fits_start_without_a_request(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.service.question_state.IDLE_FIT_SECONDS", 0.1)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(90)]).result()
    question = coordinator.question()
    wait_for(lambda: question.fit is not None and not question.is_stale)
    assert question.fit is not None
    assert question.fit.n_votes == 90
    coordinator.apply([put(n, "bad") for n in range(90, 99)]).result()
    wait_for(lambda: question.fit is not None and question.fit.n_votes == 99)
    coordinator.close()


def test_concurrent_writes_are_all_stored(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())

    def tell(first: int) -> None:
        for n in range(first, 200, 8):
            assert coordinator.apply([put(n)]).result().outcomes == ["new"]

    threads = [threading.Thread(target=tell, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with coordinator.lock:
        assert coordinator.question().live.n_votes == 200
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    with again.lock:
        question = again.question("mood")
        assert question.live.n_votes == 200
        assert question.fit is not None
        assert question.fit.n_votes == 200
    again.close()


def test_failed_write_does_not_fail_others(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(database)
    whole = store.apply

    def apply(events: Any) -> Any:
        if any(each.source == "id:13" for each in events):
            raise OSError("unlucky")
        return whole(events)

    monkeypatch.setattr(store, "apply", apply)
    monkeypatch.setattr(coordinator_module, "BATCH_SECONDS", 0.2)
    coordinator = Coordinator(store, wc.DawidSkene())
    coordinator.apply([put(0)]).result()
    futures = {
        n: coordinator.apply([put(n)]) for n in range(10, 16)
    }  # while a beat lasts, so that they share a transaction
    with pytest.raises(WriteFailed, match="unlucky"):
        futures.pop(13).result()
    assert [each.result().outcomes for each in futures.values()] == [["new"]] * 5
    coordinator.close()


def test_full_queue_refuses_events(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "MAX_WAITING_EVENTS", 10)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    with pytest.raises(ServiceBusy, match="send them again"):
        coordinator.apply([put(n) for n in range(11)])
    coordinator.apply([put(n) for n in range(10)]).result()
    coordinator.close()
    with pytest.raises(ServiceBusy, match="shutting down"):
        coordinator.apply([put(0)])


@pytest.mark.slow
def test_killed_fit_is_repeated(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(60)]).result()
    question = coordinator.question()
    assert coordinator.refit(question)
    for process in [process for background in coordinator.processes for process in background.processes]:
        os.kill(process.pid, signal.SIGKILL)
    coordinator.apply([put(n) for n in range(60, 90)]).result()
    wait_for(lambda: coordinator.refit(question) and question.fit is not None and question.fit.n_votes == 90)
    assert question.fit_error == ""
    coordinator.close()


def test_changed_share_of_a_fit(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    source_crowd = wc.simulate_crowd(n_tasks=60, n_workers=8, n_classes=3, votes_per_task=4, random_state=2).crowd
    triples = list(
        zip(source_crowd.task.tolist(), source_crowd.worker.tolist(), source_crowd.label.tolist(), strict=True)
    )
    events = [Upsert(f"id:{n}", (VoteRecord("q", *map(str, each)),)) for n, each in enumerate(triples)]
    coordinator.apply(events).result()
    question = coordinator.question()
    with coordinator.lock:
        before = question.live.posterior.argmax(axis=1)
        assert question.changed_share is None
    assert coordinator.refit(question)
    with coordinator.lock:
        assert question.changed_share == (before != question.live.posterior.argmax(axis=1)).mean()
        assert question.calibration is not None
        assert question.fit_calibration is question.calibration
        assert question.live.confidence is not None
    coordinator.close()


def test_failed_calibration_does_not_prevent_a_fit(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "calibrate_question", pow)  # which takes other arguments
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(60)]).result()
    question = coordinator.question()
    assert coordinator.refit(question)
    assert question.fit is not None
    assert question.fit.n_votes == 60
    assert question.calibration is None
    coordinator.close()


def test_gold_is_restored_after_a_restart(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(60)]).result()
    coordinator.apply(
        [Upsert("gold", (VoteRecord("mood", "t0", None, "bad"), VoteRecord("other", "t9", None, "x")))]
    ).result()
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    with again.lock:
        question = again.question("mood")
        assert question.describe_task(0)["label"] == "bad"
        np.testing.assert_allclose(question.live.posterior.sum(axis=1), 1)
        assert again.question("other").describe_task(0)["label"] == "x"
        with pytest.raises(InputError, match="name a question: mood, other"):
            again.question()
    again.close()


def test_one_method_serves_from_the_first_vote(database: str) -> None:
    source_crowd = wc.simulate_crowd(n_tasks=100, n_workers=10, n_classes=3, votes_per_task=3, random_state=1).crowd
    rows = [source_crowd.offset[:-1] + turn for turn in range(3)]  # everybody's first votes come first
    coordinator = Coordinator(Store(database), wc.ModelAverage())
    for turn, rows_of_turn in enumerate(rows):
        triples = zip(
            source_crowd.task[rows_of_turn],
            source_crowd.worker[rows_of_turn],
            source_crowd.label[rows_of_turn],
            strict=True,
        )
        coordinator.apply(
            [Upsert(f"{turn}:{n}", (VoteRecord("q", *map(str, each)),)) for n, each in enumerate(triples)]
        ).result()
        question = coordinator.question()
        assert coordinator.refit(question)
        with coordinator.lock:
            assert question.describe()["method"] == "model-average"
            assert question.live.n_votes == 100 * (turn + 1)
            triples = {
                (task, who): vote_label
                for task in range(100)
                for who, vote_label in question.live.votes_on(task).items()
            }
            crowd = wc.Crowd.from_triples([(task, who, vote_label) for (task, who), vote_label in triples.items()])
            with ignore_fit_warnings():
                batch = wc.ModelAverage().fit(crowd)
            np.testing.assert_allclose(question.live.posterior, batch.posterior_, atol=1e-12)
    coordinator.close()


def test_calibration_is_restored_after_a_restart(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n, "good" if n % 7 else "bad") for n in range(90)]).result()
    assert coordinator.refit(coordinator.question())
    with coordinator.lock:
        before = coordinator.question().describe()
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    question = again.question()
    wait_for(lambda: question.calibration is not None and question.describe()["is_current"])
    with again.lock:
        after = again.question().describe()
    assert before["expected_accuracy"] is not None
    assert (after["expected_accuracy"], after["n_finished"]) == (before["expected_accuracy"], before["n_finished"])
    again.close()
