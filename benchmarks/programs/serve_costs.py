"""Measure the processor time of everything in the service that can hold up votes: ``serve_costs.py N_VOTES``.

Processor time does not depend on what else the machine does. The program prints milliseconds as JSON.
"""

from __future__ import annotations

import gc
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from serve_client import make_vote

import wisecrowd as wc
from wisecrowd.service import coordinator as coordinator_module
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.events import Upsert, VoteRecord, build_source
from wisecrowd.service.question_state import QuestionState
from wisecrowd.service.refits import refit_question
from wisecrowd.service.server import GC_THRESHOLDS
from wisecrowd.service.store import Store

BATCH = 10  # votes of a transaction at a thousand votes per second
REPEATS = 20


def make_event(n: int) -> Upsert:
    vote = make_vote(n)
    record = VoteRecord("votes", vote["task"], vote["worker"], vote["label"])
    return Upsert(build_source(record, vote["id"]), (record,))


def measure(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the longest processor time of an action in milliseconds."""
    longest = 0.0
    for _ in range(repeats):
        started_at = time.thread_time()
        action()
        longest = max(longest, time.thread_time() - started_at)
    return 1e3 * longest


def main() -> None:
    n_votes = int(sys.argv[1])
    QuestionState.fit_is_due = QuestionState.calibration_is_due = lambda *_: False  # type: ignore[method-assign]
    coordinator_module.GC_SECONDS = 1e9
    with tempfile.TemporaryDirectory() as folder:
        url = str(Path(folder) / "votes.db")
        store = Store(url)
        for first in range(0, n_votes, 2_000):
            store.apply([make_event(n) for n in range(first, min(first + 2_000, n_votes))])
        coordinator = Coordinator(store, wc.ModelAverage())
        gc.collect()
        gc.freeze()  # as the service does
        gc.set_threshold(*GC_THRESHOLDS)
        question = coordinator.question()
        following = iter(range(n_votes, 10 * n_votes))

        def next_events() -> list[Upsert]:
            return [make_event(next(following)) for _ in range(BATCH)]

        batches = [next_events() for _ in range(2 * REPEATS)]
        figures = {"votes": n_votes}
        with coordinator.lock:
            changes = []
            figures["ms_transaction"] = measure(lambda: changes.append(store.apply(batches.pop())))
            figures["ms_update"] = measure(lambda: coordinator._update_questions(changes.pop()))
            question.start_fit()
            fit = refit_question(url, question.vocabulary.code, wc.ModelAverage(), None)
            content = pickle.dumps(fit)
            figures["MB_fit"] = len(content) / 1e6
            figures["ms_receive_fit"] = measure(lambda: pickle.loads(content), 5)

            def adopt() -> None:
                question.start_fit()
                question.changed_tasks = set(range(2_000))  # votes that arrived while the fit ran
                question.finish_fit(fit)

            figures["ms_adopt_fit"] = measure(adopt, 5)
            figures["ms_read_100_tasks"] = measure(lambda: question.describe_tasks(np.arange(100)))
        figures["ms_collect_garbage"] = measure(gc.collect, 5)
        gc.unfreeze()  # a service that started with an empty database has frozen nothing of this
        figures["ms_collect_everything"] = measure(gc.collect, 3)
        coordinator.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
