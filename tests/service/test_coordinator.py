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
from wisecrowd.errors import InputError, unwarned
from wisecrowd.service import coordinator as keeping
from wisecrowd.service.coordinator import Busy, Coordinator, Unwritten
from wisecrowd.service.events import Entry, Upsert
from wisecrowd.service.refit_schedule import CHANGED, RefitSchedule
from wisecrowd.service.store import Store


def put(n: int, label: str = "good") -> Upsert:
    return Upsert(f"id:{n}", (Entry("mood", f"t{n // 3}", f"w{n % 3}", label),))


def wait_for(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_fits_come_by_themselves(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.service.question_state.IDLE", 0.1)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.tell([put(n) for n in range(90)]).result()
    topic = coordinator.topic()
    wait_for(lambda: topic.fit is not None and not topic.stale)
    assert topic.fit is not None
    assert topic.fit.n_votes == 90
    coordinator.tell([put(n, "bad") for n in range(90, 99)]).result()
    wait_for(lambda: topic.fit is not None and topic.fit.n_votes == 99)
    coordinator.close()


def test_what_many_tell_at_once_is_all_there(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())

    def tell(first: int) -> None:
        for n in range(first, 200, 8):
            assert coordinator.tell([put(n)]).result().outcomes == ["new"]

    threads = [threading.Thread(target=tell, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with coordinator.lock:
        assert coordinator.topic().live.n_votes == 200
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    with again.lock:
        topic = again.topic("mood")
        assert topic.live.n_votes == 200
        assert topic.fit is not None
        assert topic.fit.n_votes == 200
    again.close()


def test_one_that_fails_does_not_take_others_along(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(database)
    whole = store.tell

    def tell(told: Any) -> Any:
        if any(each.source == "id:13" for each in told):
            raise OSError("unlucky")
        return whole(told)

    monkeypatch.setattr(store, "tell", tell)
    monkeypatch.setattr(keeping, "BEAT", 0.2)
    coordinator = Coordinator(store, wc.DawidSkene())
    coordinator.tell([put(0)]).result()
    told = {
        n: coordinator.tell([put(n)]) for n in range(10, 16)
    }  # while a beat lasts, so that they share a transaction
    with pytest.raises(Unwritten, match="unlucky"):
        told.pop(13).result()
    assert [each.result().outcomes for each in told.values()] == [["new"]] * 5
    coordinator.close()


def test_too_much_at_once_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "WAITING", 10)
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    with pytest.raises(Busy, match="send them again"):
        coordinator.tell([put(n) for n in range(11)])
    coordinator.tell([put(n) for n in range(10)]).result()
    coordinator.close()
    with pytest.raises(Busy, match="stopped"):
        coordinator.tell([put(0)])


def test_a_fit_that_is_killed_is_made_again(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.tell([put(n) for n in range(60)]).result()
    topic = coordinator.topic()
    assert coordinator.refit(topic)
    for process in coordinator._fits.processes + coordinator._looks.processes:
        os.kill(process.pid, signal.SIGKILL)
    coordinator.tell([put(n) for n in range(60, 90)]).result()
    wait_for(lambda: coordinator.refit(topic) and topic.fit is not None and topic.fit.n_votes == 90)
    assert topic.failed == ""
    coordinator.close()


def test_fits_come_sooner_where_they_change_more() -> None:
    pace = RefitSchedule()
    for _ in range(8):
        pace.learn(pace.votes, changed=4 * CHANGED, n_votes=10_000)
    assert pace.votes == 1
    for _ in range(12):
        pace.learn(pace.votes, changed=0.0, n_votes=10_000)
    assert pace.votes == 100  # a hundredth, however steady they are
    pace.learn(100, changed=CHANGED, n_votes=10_000)
    assert pace.votes == 100


def test_a_fit_tells_how_many_labels_it_changed(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    made = wc.simulate_crowd(n_tasks=60, n_workers=8, n_classes=3, votes_per_task=4, random_state=2).crowd
    triples = list(zip(made.task.tolist(), made.worker.tolist(), made.label.tolist(), strict=True))
    told = [Upsert(f"id:{n}", (Entry("q", *map(str, each)),)) for n, each in enumerate(triples)]
    coordinator.tell(told).result()
    topic = coordinator.topic()
    with coordinator.lock:
        before = topic.live.posterior.argmax(axis=1)
        assert topic.changed is None
    assert coordinator.refit(topic)
    with coordinator.lock:
        assert topic.changed == (before != topic.live.posterior.argmax(axis=1)).mean()
        assert topic.look is not None
        assert topic.went_by is topic.look
        assert topic.live.known.doubt is not None
    coordinator.close()


def test_a_look_that_fails_costs_no_fit(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "look_into", pow)  # which takes other arguments
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.tell([put(n) for n in range(60)]).result()
    topic = coordinator.topic()
    assert coordinator.refit(topic)
    assert topic.fit is not None
    assert topic.fit.n_votes == 60
    assert topic.look is None
    coordinator.close()


def test_gold_is_known_again(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.tell([put(n) for n in range(60)]).result()
    coordinator.tell([Upsert("gold", (Entry("mood", "t0", None, "bad"), Entry("other", "t9", None, "x")))]).result()
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    with again.lock:
        topic = again.topic("mood")
        assert topic.answer(0)["label"] == "bad"
        np.testing.assert_allclose(topic.live.posterior.sum(axis=1), 1)
        assert again.topic("other").answer(0)["label"] == "x"
        with pytest.raises(InputError, match="say which question: mood, other"):
            again.topic()
    again.close()


def test_few_votes_are_looked_at_by_another_method(database: str) -> None:
    made = wc.simulate_crowd(n_tasks=100, n_workers=10, n_classes=3, votes_per_task=3, random_state=1).crowd
    rows = [made.offset[:-1] + turn for turn in range(3)]  # everybody's first votes come first
    coordinator = Coordinator(Store(database), wc.DawidSkene(), early=wc.OneCoin())
    for turn, (taken, name) in enumerate(zip(rows, ("one-coin", "dawid-skene", "dawid-skene"), strict=True)):
        triples = zip(made.task[taken], made.worker[taken], made.label[taken], strict=True)
        coordinator.tell(
            [Upsert(f"{turn}:{n}", (Entry("q", *map(str, each)),)) for n, each in enumerate(triples)]
        ).result()
        topic = coordinator.topic()
        assert coordinator.refit(topic)
        with coordinator.lock:
            assert topic.overview()["method"] == name
            assert topic.live.n_votes == 100 * (turn + 1)
            triples = {(task, who): said for task in range(100) for who, said in topic.live.votes_on(task).items()}
            crowd = wc.Crowd.from_triples([(task, who, said) for (task, who), said in triples.items()])
            with unwarned():
                batch = wc.find(name)().fit(crowd)
            np.testing.assert_allclose(topic.live.posterior, batch.posterior_, atol=1e-12)
    coordinator.close()


def test_how_sure_one_may_be_is_known_again(database: str) -> None:
    coordinator = Coordinator(Store(database), wc.DawidSkene())
    coordinator.tell([put(n, "good" if n % 7 else "bad") for n in range(90)]).result()
    assert coordinator.refit(coordinator.topic())
    with coordinator.lock:
        before = coordinator.topic().overview()
    coordinator.close()
    again = Coordinator(Store(database), wc.DawidSkene())
    topic = again.topic()
    wait_for(lambda: topic.look is not None and topic.overview()["is_current"])
    with again.lock:
        after = again.topic().overview()
    assert before["expected_accuracy"] is not None
    assert (after["expected_accuracy"], after["may_stop"]) == (before["expected_accuracy"], before["may_stop"])
    again.close()
