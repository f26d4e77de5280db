"""The heart of the service: what is told is kept in batches, taken in, and fitted to again and again.

Whoever tells something waits until it is on the disk. All that waits is written in one transaction, so that a disk which
takes a while makes batches larger, and not the line longer.
"""

from __future__ import annotations

import gc
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import InputError, WisecrowdError
from wisecrowd.service.events import Told
from wisecrowd.service.question_state import JobTimer, QuestionState
from wisecrowd.service.refitting import Models, look_into, refit, report_of
from wisecrowd.service.store import Change, Store
from wisecrowd.service.worker_process import Helper

#: What is written at once, at most, and what may wait.
BATCH, WAITING = 2_000, 50_000
#: Seconds from one batch to the next at least: what comes in between shares a transaction, and a lone vote waits for nobody.
BEAT = 0.01
#: Seconds after which it is looked whether a fit is due, though nothing came.
TICK = 0.2
#: Seconds after which garbage is looked for, when nothing comes.
SWEEP = 60.0

#: What is told, and who is told what came of it, from the thread that writes.
Waiting: TypeAlias = tuple[Sequence[Told], Callable[[Change | None, Exception | None], object]]

#: What is done when something has ended, well or not.
Then: TypeAlias = Callable[[], None] | None

_log = logging.getLogger(__name__)


class Busy(WisecrowdError):
    """More is told than can be written; whoever tells it should wait and tell it again.

    >>> issubclass(Busy, WisecrowdError)
    True
    """


class Unwritten(WisecrowdError):
    """The database did not take it; nothing of it was kept.

    >>> issubclass(Unwritten, WisecrowdError)
    True
    """


class Coordinator:
    """Keeps a store and what is known of its questions. One thread writes; any thread may ask, under `lock`.

    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.service.events import Entry, Upsert
    >>> from wisecrowd.service.store import Store
    >>> coordinator = Coordinator(Store("kept.db"), DawidSkene())
    >>> coordinator.tell([Upsert("id:1", (Entry("mood", "t1", "ann", "good"),))]).result().outcomes
    ['new']
    >>> with coordinator.lock:
    ...     coordinator.topic("mood").answer(0)["label"]
    'good'
    >>> coordinator.close()
    """

    def __init__(
        self, store: Store, method: ConfusionEM, target: float = 0.95, *, early: ConfusionEM | None = None
    ) -> None:
        self.store, self.models, self.target = store, Models(method, early), target
        self.lock = threading.RLock()
        self.started = time.time()
        self.told = 0
        self._topics: dict[int, QuestionState] = {}
        self._waiting: queue.SimpleQueue[Waiting | Callable[[], None] | None] = queue.SimpleQueue()
        self._until_later: list[Callable[[], None]] = []
        self._counting, self._in_line = threading.Lock(), 0
        self._closing = False
        self._swept = time.monotonic()
        # Fits are quick and many; looks and reports take longer, and no fit waits for them.
        self._fits, self._looks = Helper(), Helper()
        self._load()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ from any thread

    def tell(self, told: Sequence[Told]) -> Future[Change]:
        """Have something written; the future is done when it is on the disk, and whoever asks from then on knows it."""
        done: Future[Change] = Future()

        def settle(change: Change | None, error: Exception | None) -> None:
            if error is not None:
                done.set_exception(error)
            elif change is not None:
                done.set_result(change)

        self.submit(told, settle)
        return done

    def submit(self, told: Sequence[Told], settle: Callable[[Change | None, Exception | None], object]) -> None:
        """The same for whoever has a way of waiting of their own: ``settle`` is called by the thread that writes."""
        if self._closing:
            raise Busy("the service is being stopped; try again in a moment")
        with self._counting:
            if self._in_line + len(told) > WAITING:
                raise Busy("more votes come than can be written; wait a second, and send them again")
            self._in_line += len(told)
        self._waiting.put((told, settle))

    def topic(self, name: str | None = None) -> QuestionState:
        """A question; the only one needs no name. What was acknowledged is known by then."""
        with self.lock:
            return self._topic(name)

    def _topic(self, name: str | None) -> QuestionState:
        known = self.store.words
        if name is None:
            if len(known) == 1:
                return self._topics[next(iter(known.values())).code]
            raise InputError(f"say which question: {_some(known)}" if known else "there are no votes yet")
        if name not in known:
            raise InputError(f"there is no question of that name; there are: {_some(known) or 'none yet'}")
        return self._topics[known[name].code]

    def topics(self) -> list[QuestionState]:
        """All questions, in the order in which they came."""
        with self.lock:
            return list(self._topics.values())

    def refit(self, topic: QuestionState, timeout: float = 300.0) -> bool:
        """Wait for a look, and a fit that goes by it, which know all that was told before; whether they came in time."""
        done = threading.Event()

        def look() -> None:
            if topic.looking.knows < topic.taken:
                self._begin_look(topic, then=lambda: self._in_turn(topic.fitting, fit))
            else:
                self._in_turn(topic.fitting, fit)

        def fit() -> None:
            if topic.stale or topic.fit is None:
                self._begin_fit(topic, then=done.set)
            else:
                done.set()

        self._waiting.put(lambda: self._in_turn(topic.looking, look))
        return done.wait(timeout)

    def report(self, name: str) -> Future[str]:
        """The whole report on a question, made beside the service."""
        method = self.topic(name).live.method.name
        return self._looks.submit(report_of, self.store.url, name, f"What the crowd says: {name}", method)

    def close(self) -> None:
        """Write what waits, and end."""
        if self._closing:
            return
        self._closing = True
        self._waiting.put(None)
        self._thread.join(timeout=60)
        for helper in (self._fits, self._looks):
            helper.end()
        self.store.close()

    # ------------------------------------------------------------------ the thread that writes

    def _run(self) -> None:
        last = 0.0
        while True:
            batch, jobs, is_last = self._gather(last + BEAT)
            if batch:
                last = time.monotonic()
                self._write(batch)
            elif not jobs and time.monotonic() > self._swept + SWEEP:
                gc.collect()
                self._swept = time.monotonic()
            for job in jobs:
                job()
            if is_last:
                return
            self._look()

    def _gather(self, soonest: float) -> tuple[list[Waiting], list[Callable[[], None]], bool]:
        """All that waits at a moment, or comes before it, up to a batch; when nothing comes, nothing after a while."""
        batch: list[Waiting] = []
        jobs: list[Callable[[], None]] = []
        size, wait = 0, TICK
        try:
            while size < BATCH:
                item = self._waiting.get(timeout=wait) if wait > 0 else self._waiting.get_nowait()
                if item is None:
                    return batch, jobs, True
                if callable(item):
                    jobs.append(item)
                else:
                    batch.append(item)
                    size += len(item[0])
                wait = soonest - time.monotonic()
        except queue.Empty:
            pass
        return batch, jobs, False

    def _write(self, batch: list[Waiting]) -> None:
        # Who was acknowledged need not wait until it is taken in; whoever asks from then on does, at the lock.
        with self.lock:
            try:
                change = self.store.tell([each for told, _ in batch for each in told])
            except Exception as error:
                self._refuse(batch, error)
                return
            place = 0
            for told, settle in batch:
                outcomes = change.outcomes[place : place + len(told)]
                place += len(told)
                self._out_of_line(len(told))
                self.told += len(told)
                settle(Change(outcomes), None)
            try:
                self._take_in(change)
            except Exception:  # what is on the disk is safe, and the next fit knows it
                _log.exception("votes could not be taken in one by one; a fit to all of them follows")
                for topic in self._topics.values():
                    topic.taken += 1

    def _refuse(self, batch: list[Waiting], error: Exception) -> None:
        if len(batch) > 1:  # somebody's trouble is not everybody's
            for one in batch:
                self._write([one])
            return
        _log.error("could not be written: %s", _first_line(error))
        told, settle = batch[0]
        self._out_of_line(len(told))
        settle(None, Unwritten(f"the database did not take it, nothing of it was kept: {_first_line(error)}"))

    def _out_of_line(self, n: int) -> None:
        with self._counting:
            self._in_line -= n

    def _take_in(self, change: Change) -> None:
        altered: dict[int, set[int]] = {}
        for question, task in change.altered:
            altered.setdefault(question, set()).add(task)
        added: dict[int, list[tuple[int, int, int]]] = {}
        for question, task, worker, label in change.added:
            added.setdefault(question, []).append((task, worker, label))
        # Tasks that were altered are read again, since an earlier vote of a worker may count anew.
        anew = {question: self.store.votes_on(question, tasks) for question, tasks in altered.items()}
        gold = {question: self.store.gold_of(question, tasks) for question, tasks in altered.items()}
        with self.lock:
            for words in self.store.words.values():
                topic = self._topics.get(words.code)
                if topic is None:
                    topic = self._topics[words.code] = QuestionState.new(words, self.models, self.target)
                votes = {task: dict(topic.live.votes_on(task)) for task, _, _ in added.get(words.code, ())}
                for task, worker, label in added.get(words.code, ()):
                    votes[task][worker] = label
                votes.update(anew.get(words.code, {}))
                known = {
                    task: label
                    for task, label in gold.get(words.code, {}).items()
                    if topic.live.gold.get(task) != label
                }
                topic.see()
                if votes or known:
                    topic.take(votes, known, len(added.get(words.code, ())) + len(anew.get(words.code, ())))

    # ------------------------------------------------------------------ fits

    def _look(self) -> None:
        """Begin what is due."""
        now = time.monotonic()
        for topic in self._topics.values():
            if topic.fit_is_due(now):
                self._begin_fit(topic)
            if topic.look_is_due(now):
                self._begin_look(topic)

    def _begin_fit(self, topic: QuestionState, then: Then = None) -> None:
        look = topic.begin_fit()
        job = self._fits.submit(refit, self.store.url, topic.words.code, self.models, look)
        self._when_done(job, topic.end_fit, topic.give_up_fit, then)

    def _begin_look(self, topic: QuestionState, then: Then = None) -> None:
        topic.looking.begin(topic.taken)
        job = self._looks.submit(look_into, self.store.url, topic.words.code, self.models)
        self._when_done(job, topic.end_look, lambda _: topic.looking.end(well=False), then)

    def _in_turn(self, turn: JobTimer, go: Callable[[], None]) -> None:
        """Do something now, or when what is running has ended."""
        if turn.running:
            self._until_later.append(lambda: self._in_turn(turn, go))
        else:
            go()

    def _when_done(
        self, job: Future[Any], take: Callable[[Any], None], give_up: Callable[[str], None], then: Then
    ) -> None:
        """Have this thread take over what a job found, or that it failed."""

        def ended() -> None:
            with self.lock:
                try:
                    take(job.result())
                except Exception as error:  # whatever it is, votes go on being written, and fits being made
                    _log.error("a fit or a look failed: %s", _first_line(error))
                    give_up(_first_line(error))
            if then is not None:
                then()
            waiting, self._until_later = self._until_later, []
            for again in waiting:
                again()

        job.add_done_callback(lambda _: self._waiting.put(ended))

    def _load(self) -> None:
        """What stands in the database, by a fit to it."""
        for words in self.store.words.values():
            topic = self._topics[words.code] = QuestionState.new(words, self.models, self.target)
            topic.taken += 1  # whatever it is, there has been no look at it
            topic.begin_fit()
            topic.see()
            topic.end_fit(self._fits.submit(refit, self.store.url, words.code, self.models).result())
            topic.live.know(self.store.gold(words.code))


def _some(names: Collection[str]) -> str:
    return ", ".join([*list(names)[:8], *(["…"] if len(names) > 8 else [])])


def _first_line(error: BaseException) -> str:
    """A message that fits a line, whatever database it is of."""
    lines = str(getattr(error, "orig", None) or str(error)).splitlines()
    return lines[0][:300] if lines else type(error).__name__
