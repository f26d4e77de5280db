"""One thread writes, a process fits, and neither loses anything."""

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
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_fits_come_by_themselves(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_many_tell_at_once_is_all_there(database: str) -> None:
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


def test_one_that_fails_does_not_take_others_along(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(database)
    whole = store.apply

    def apply(told: Any) -> Any:
        if any(each.source == "id:13" for each in told):
            raise OSError("unlucky")
        return whole(told)

    monkeypatch.setattr(store, "apply", apply)
    monkeypatch.setattr(coordinator_module, "BATCH_SECONDS", 0.2)
    coordinator = Coordinator(store, wc.DawidSkene())
    coordinator.apply([put(0)]).result()
    told = {
        n: coordinator.apply([put(n)]) for n in range(10, 16)
    }  # while a beat lasts, so that they share a transaction
    with pytest.raises(WriteFailed, match="unlucky"):
        told.pop(13).result()
    assert [each.result().outcomes for each in told.values()] == [["new"]] * 5
    coordinator.close()


def test_too_much_at_once_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "MAX_WAITING_EVENTS", 10)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    with pytest.raises(ServiceBusy, match="send them again"):
        coordinator.apply([put(n) for n in range(11)])
    coordinator.apply([put(n) for n in range(10)]).result()
    coordinator.close()
    with pytest.raises(ServiceBusy, match="shutting down"):
        coordinator.apply([put(0)])


def test_a_fit_that_is_killed_is_made_again(database: str) -> None:
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


def test_a_fit_tells_how_many_labels_it_changed(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    made = wc.simulate_crowd(n_tasks=60, n_workers=8, n_classes=3, votes_per_task=4, random_state=2).crowd
    triples = list(zip(made.task.tolist(), made.worker.tolist(), made.label.tolist(), strict=True))
    told = [Upsert(f"id:{n}", (VoteRecord("q", *map(str, each)),)) for n, each in enumerate(triples)]
    coordinator.apply(told).result()
    question = coordinator.question()
    with coordinator.lock:
        before = question.live.posterior.argmax(axis=1)
        assert question.changed_share is None
    assert coordinator.refit(question)
    with coordinator.lock:
        assert question.changed_share == (before != question.live.posterior.argmax(axis=1)).mean()
        assert question.calibration is not None
        assert question.fit_calibration is question.calibration
        assert question.live.snapshot.tempering is not None
    coordinator.close()


def test_a_look_that_fails_costs_no_fit(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "calibrate_question", pow)  # which takes other arguments
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.apply([put(n) for n in range(60)]).result()
    question = coordinator.question()
    assert coordinator.refit(question)
    assert question.fit is not None
    assert question.fit.n_votes == 60
    assert question.calibration is None
    coordinator.close()


def test_gold_is_known_again(database: str) -> None:
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


def test_few_votes_are_looked_at_by_another_method(database: str) -> None:
    made = wc.simulate_crowd(n_tasks=100, n_workers=10, n_classes=3, votes_per_task=3, random_state=1).crowd
    rows = [made.offset[:-1] + turn for turn in range(3)]  # everybody's first votes come first
    coordinator = Coordinator(Store(database), wc.DawidSkene(), early=wc.OneCoin())
    for turn, (taken, name) in enumerate(zip(rows, ("one-coin", "dawid-skene", "dawid-skene"), strict=True)):
        triples = zip(made.task[taken], made.worker[taken], made.label[taken], strict=True)
        coordinator.apply(
            [Upsert(f"{turn}:{n}", (VoteRecord("q", *map(str, each)),)) for n, each in enumerate(triples)]
        ).result()
        question = coordinator.question()
        assert coordinator.refit(question)
        with coordinator.lock:
            assert question.describe()["method"] == name
            assert question.live.n_votes == 100 * (turn + 1)
            triples = {(task, who): said for task in range(100) for who, said in question.live.votes_on(task).items()}
            crowd = wc.Crowd.from_triples([(task, who, said) for (task, who), said in triples.items()])
            with ignore_fit_warnings():
                batch = wc.find(name)().fit(crowd)
            np.testing.assert_allclose(question.live.posterior, batch.posterior_, atol=1e-12)
    coordinator.close()


def test_how_sure_one_may_be_is_known_again(database: str) -> None:
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
