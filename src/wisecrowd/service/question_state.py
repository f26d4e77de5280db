"""What is known of a question at this moment: answers, workers, what to ask, and what may stop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.diagnose.workers import SURE, SUSPECT
from wisecrowd.em.live import Live
from wisecrowd.errors import InputError
from wisecrowd.plan.acquisition import settled
from wisecrowd.plan.belief import ENOUGH
from wisecrowd.plan.greedy import gains
from wisecrowd.service.database_schema import QuestionVocabulary
from wisecrowd.service.refit_schedule import FIRST, SHARE, RefitSchedule
from wisecrowd.service.refitting import LOOKED_INTO, Calibration, Models, Refit

#: Kinds of workers, as columns of what a fit says of them.
SPAMMER, ADVERSARY = 1, 2
#: Tasks that are weighed against each other when somebody asks what to ask; which they are is found afresh after some seconds.
WEIGHED, AFRESH = 2_000, 2.0
#: How many times the votes of when it was last looked how sure one may be, and who is a spammer, before it is looked again.
MORE = 1.1
#: Labels that a fit changes, as a share of them, from which on they are not settled; of a handful of votes nobody expects it.
UNSETTLED, HANDFUL = 0.01, 200
#: A fit is begun no sooner than this many times its own duration after the last, and a look likewise.
REST = 2.0
#: Seconds in which nothing came, after which there is a fit, and a look, to all that did.
IDLE, LULL = 2.0, 30.0


@dataclass
class JobTimer:
    """Something that takes a while and is done again and again: when it was begun and ended, and what it knew then."""

    running: bool = False
    begun: float = 0.0
    ended: float = 0.0
    #: Changes that had been taken in when it last began to read, and when one that came to an end did.
    reads: int = 0
    knows: int = 0

    def begin(self, taken: int) -> None:
        """It begins to read."""
        self.running, self.begun, self.reads = True, time.monotonic(), taken

    def end(self, *, well: bool = True) -> None:
        """It is done; what was not done well is tried again after a second at least."""
        self.running, self.ended = False, time.monotonic()
        if well:
            self.knows = self.reads
        else:
            self.begun = min(self.begun, self.ended - 1.0)

    def may_begin(self, now: float) -> bool:
        """Whether it rested enough."""
        return not self.running and now >= self.ended + REST * (self.ended - self.begun)


@dataclass
class QuestionState:
    """A question: its names, its votes as they come, and the last fit to all of them."""

    words: QuestionVocabulary
    live: Live
    target: float
    fit: Refit | None = None
    #: How sure one may be, and who is a spammer, as of the last look; and the look that the last fit went by.
    look: Calibration | None = None
    went_by: Calibration | None = None
    #: New votes of which the last fit knew that knew of any; and of all labels, the share that it changed.
    n_new: int = 0
    changed: float | None = None
    pace: RefitSchedule = field(default_factory=RefitSchedule)
    fitting: JobTimer = field(default_factory=JobTimer)
    looking: JobTimer = field(default_factory=JobTimer)
    #: Changes that were taken in, of votes and of gold, and the tasks that changed since the last fit began to read.
    taken: int = 0
    since: set[int] = field(default_factory=set)
    touched: float = 0.0
    failed: str = ""
    #: Tasks, workers and classes that are known; their names may be more, while a batch is being written.
    n_tasks: int = 0
    n_workers: int = 0
    n_classes: int = 0
    _doubted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _weighed: float = 0.0

    @classmethod
    def new(cls, words: QuestionVocabulary, models: Models, target: float) -> QuestionState:
        """A question that nothing is known of."""
        return cls(words, Live(models.of(np.empty(0)), n_classes=max(len(words.classes), 1)), target)

    # ------------------------------------------------------------------ what changes

    def see(self) -> None:
        """Names that were written are known from here on."""
        self.n_tasks, self.n_workers, self.n_classes = map(len, self.words.kinds)
        self.live.widen(self.n_classes)
        self.live.expect(self.n_tasks)

    def take(self, votes: Mapping[int, Mapping[int, int]], gold: Mapping[int, int | None], n_new: int) -> None:
        """Votes as they stand on some tasks, and what is known of some."""
        self.live.change(votes)
        if gold:
            self.live.know(gold)
        self.since.update(votes, gold)
        self.taken += max(n_new, 1)
        self.touched = time.monotonic()

    @property
    def stale(self) -> bool:
        """Whether there is something that the last fit does not know."""
        return self.fitting.knows < self.taken or self.look is not self.went_by

    @property
    def unsettled(self) -> bool:
        """Whether few new votes still change many labels."""
        if self.fit is None or self.changed is None or self.fit.n_votes < HANDFUL:
            return False
        return self.changed > UNSETTLED and self.n_new <= max(FIRST, SHARE * self.fit.n_votes)

    def fit_is_due(self, now: float) -> bool:
        """Whether it is time for a fit to all votes."""
        if not self.stale or not self.fitting.may_begin(now):
            return False
        is_wider = self.fit is not None and self.live.n_classes > self.fit.known.posterior.shape[1]
        is_other = self.look is not self.went_by
        return self.taken - self.fitting.reads >= self.pace.votes or is_wider or is_other or now >= self.touched + IDLE

    def look_is_due(self, now: float) -> bool:
        """Whether it is time to find out anew how sure one may be, which takes longer than a fit and changes less."""
        if self.fit is None or self.looking.knows >= self.taken or not self.looking.may_begin(now):
            return False
        # Of other crowds a look would read all votes and find nothing.
        if not ENOUGH <= self.live.n_votes <= LOOKED_INTO or self.live.votes_per_task.max() < 2:
            return False
        before = 0 if self.look is None else self.look.n_votes
        return self.live.n_votes > MORE * before or now >= self.touched + LULL

    def begin_fit(self) -> Calibration | None:
        """A fit begins to read, and goes by the last look; what changes from here on, it may not know."""
        self.since = set()
        self.went_by = self.look
        self.fitting.begin(self.taken)
        return self.look

    def end_fit(self, found: Refit | None) -> None:
        """Take over what a fit found, with the votes that came in the meantime."""
        if found is not None:
            since = {task: self.live.votes_on(task) for task in self.since}
            if (n_new := self.fitting.reads - self.fitting.knows) > 0:
                self.n_new, self.changed = n_new, self._changed_by(found)
                self.pace.learn(n_new, self.changed, found.n_votes)
            self.fit, self.failed = found, ""
            self.live.hold(found.known, since)
            self.live.widen(self.n_classes)
            self.live.expect(self.n_tasks)
        self.fitting.end()

    def give_up_fit(self, why: str) -> None:
        """A fit failed; the votes stay, and the next one is made after a rest."""
        self.failed = why
        self.fitting.end(well=False)

    def end_look(self, found: Calibration | None) -> None:
        """Take over what a look found."""
        self.look = found or self.look
        self.looking.end()

    def _changed_by(self, found: Refit) -> float:
        """The share of labels that a fit finds other than they were taken to be, but for those with votes that it does not know."""
        voted = np.diff(found.known.offset) > 0
        voted[[task for task in self.since if task < len(voted)]] = False
        other = self.live.posterior[: len(voted)].argmax(axis=1) != found.known.posterior.argmax(axis=1)
        return float(other[voted].mean()) if voted.any() else 0.0

    # ------------------------------------------------------------------ what is known

    def task(self, name: str) -> int:
        """The number of a task."""
        code = self.words.tasks.codes.get(name)
        if code is None or code >= self.n_tasks:
            raise InputError(f"the question {self.words.name} knows no such task")
        return code

    def worker(self, name: str) -> int | None:
        """The number of a worker; None of one who was never seen."""
        code = self.words.workers.codes.get(name)
        return code if code is not None and code < self.n_workers else None

    def answer(self, task: int) -> dict[str, Any]:
        """What is true of a task, how sure that is, and whether it may stop."""
        return self.answers(np.array([task]))[0]

    def answers(self, tasks: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The same for several tasks; tasks without votes have no label, and before a look there is no belief."""
        posterior, belief, n_votes = (
            each[tasks] for each in (self.live.posterior, self.live.belief, self.live.votes_per_task)
        )
        best = posterior.argmax(axis=1)
        place = np.arange(len(tasks))
        done = self._done(tasks)
        names, classes = self.words.tasks.names, self.words.classes.names
        gold, is_sure = self.live.gold, self.live.known.doubt is not None
        return [
            {
                "task": names[task],
                "label": classes[best[n]] if n_votes[n] or task in gold else None,
                "confidence": round(float(posterior[n, best[n]]), 6) if n_votes[n] or task in gold else None,
                "belief": round(float(belief[n, best[n]]), 6) if (n_votes[n] and is_sure) or task in gold else None,
                "votes": int(n_votes[n]),
                "gold": task in gold,
                "may_stop": bool(done[n]),
            }
            for n, task in zip(place.tolist(), tasks.tolist(), strict=True)
        ]

    def probabilities(self, task: int) -> dict[str, float]:
        """The posterior of a task, by class."""
        row = self.live.posterior[task]
        return {
            name: round(float(row[code]), 6) for code, name in enumerate(self.words.classes.names[: self.n_classes])
        }

    def workers(self, chosen: Iterable[int] | None = None) -> list[dict[str, Any]]:
        """Some workers, or all: votes, accuracy, and whether answers have to do with the truth, or with its opposite."""
        counted, right = self.live.workers()
        return [
            {
                "worker": self.words.workers.names[code],
                "votes": round(counted[code]) if code < len(counted) else 0,
                "accuracy": round(float(right[code]), 4) if code < len(counted) and counted[code] > 0 else None,
                "p_spammer": self._chance(code, SPAMMER),
                "p_adversary": self._chance(code, ADVERSARY),
            }
            for code in (range(self.n_workers) if chosen is None else chosen)
        ]

    def busiest(self, n: int) -> list[int]:
        """Workers with most votes."""
        counted = self.live.workers()[0]
        return np.argsort(-counted, kind="stable")[: min(n, self.n_workers)].tolist()

    def flagged(self) -> int:
        """How many workers should be looked at, as `wisecrowd.diagnose` has it."""
        kinds = None if self.look is None else self.look.kinds
        return 0 if kinds is None else int(((kinds[:, SPAMMER] > SUSPECT) | (kinds[:, ADVERSARY] > SURE)).sum())

    def next(self, worker: int | None, n: int) -> tuple[list[dict[str, Any]], str]:
        """What to ask somebody, or anybody, the most telling first; and why it is nothing, where it is."""
        if worker is not None and self._is_spammer(worker):
            return [], "the answers of this worker have nothing to do with the truth, by their votes so far"
        tasks = self._open()
        if not len(tasks):
            return [], "every task may stop"
        who = self._stranger() if worker is None else self.live.confusion_of(worker)
        gain = gains(self.live.belief[tasks], who[None])[:, 0]
        # Of tasks that tell as much, those with fewer votes come first; else whoever asks gets the same as the last.
        order = np.lexsort((tasks, self.live.votes_per_task[tasks], -gain.round(9)))
        found = []
        for place in order.tolist():
            task = int(tasks[place])
            if worker is None or worker not in self.live.votes_on(task):
                found.append({**self.answer(task), "gain": round(float(gain[place]), 6)})
            if len(found) == n:
                break
        return found, "" if found else "this worker has voted on every task that is open"

    def overview(self) -> dict[str, Any]:
        """Figures about the question."""
        live, fit = self.live, self.fit
        voted = live.votes_per_task > 0
        return {
            "question": self.words.name,
            "method": live.method.name,
            "votes": live.n_votes,
            "tasks": self.n_tasks,
            "workers": self.n_workers,
            "classes": self.words.classes.names[: self.n_classes],
            "gold": len(live.gold),
            "may_stop": int(self._done(np.arange(len(live.posterior))).sum()),
            "expected_accuracy": None if live.known.doubt is None or not voted.any()
            else round(float(live.belief[voted].max(axis=1).mean()), 4),
            "fit": None if fit is None else {
                "votes": fit.n_votes, "seconds": round(fit.seconds, 3), "iterations": fit.n_iter,
                "converged": fit.converged, "seconds_ago": round(time.monotonic() - self.fitting.ended, 1),
                "changed": None if self.changed is None else round(self.changed, 6),
            },
            "is_current": not (self.stale or self.fitting.running),
            "failed": self.failed or None,
        }  # fmt: skip

    # ------------------------------------------------------------------ inside

    def _open(self) -> NDArray[np.int64]:
        """Tasks that may be asked about: of very many, those that are doubted most, as of a moment ago."""
        now = time.monotonic()
        if self.n_tasks <= WEIGHED or now > self._weighed + AFRESH or self._weighed < self.fitting.ended:
            tasks = np.flatnonzero(~self._done(np.arange(self.n_tasks)))
            if len(tasks) > WEIGHED:
                doubt = 1 - self.live.belief[tasks].max(axis=1)
                tasks = tasks[np.argpartition(-doubt, WEIGHED)[:WEIGHED]]
            self._doubted, self._weighed = tasks, now
        return self._doubted[~self._done(self._doubted)]

    def _done(self, tasks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """As `wisecrowd.diagnose.may_stop`; before anything is known of the workers, nothing is done."""
        if self.live.known.doubt is None:
            return np.isin(tasks, list(self.live.gold))
        done = settled(self.live.votes_per_task[tasks], self.live.belief[tasks], self.target)
        return np.asarray(done | np.isin(tasks, list(self.live.gold)))

    def _is_spammer(self, worker: int) -> bool:
        return (self._chance(worker, SPAMMER) or 0.0) > SURE

    def _chance(self, worker: int, kind: int) -> float | None:
        """Probability that a worker is of a kind, as the last fit knows it."""
        kinds = None if self.look is None else self.look.kinds
        return round(float(kinds[worker, kind]), 4) if kinds is not None and worker < len(kinds) else None

    def _stranger(self) -> NDArray[np.float64]:
        """The matrix of a worker who was never seen."""
        return self.live.confusion_of(self.n_workers)
