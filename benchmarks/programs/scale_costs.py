"""Cost of the parts of a pass over a sharded crowd: ``scale_costs.py FOLDER REPEATS``.

Prints the median seconds of each as JSON, of the clock and of the processor, those that shards share added up over all of them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import Crowd, DawidSkene
from wisecrowd.data.crowd_slice import CrowdSlice, PairVotesInMemory
from wisecrowd.em.loop import Statistics, _extrapolate
from wisecrowd.em.priors import compute_smoothing_log_prior, estimate_smoothed_probs
from wisecrowd.engines import StreamEngine
from wisecrowd.engines.base import add_results
from wisecrowd.kernels import Expectation, expect

folder, repeats = sys.argv[1], int(sys.argv[2])
crowd = Crowd.open(folder)
pairs, n_classes = crowd.pairs, crowd.n_classes
prior, tally = np.full(n_classes, 1 / n_classes), 10.0 * np.eye(n_classes)[pairs.label]
said = estimate_smoothed_probs(tally, pairs, 0.1, 1.0)


def now() -> NDArray[np.float64]:
    """The clock, and what this process has had of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def kernel() -> NDArray[np.float64]:
    """The kernel alone, on votes that are in this process's memory."""
    took, found = np.zeros(2), Expectation(0.0, np.zeros(n_classes), np.zeros_like(said), None)
    for shard in crowd.shards:
        known = pairs.with_votes(np.array(shard.pairs.vote_pairs))
        copied = CrowdSlice(
            PairVotesInMemory(crowd.workers, crowd.classes, known, shard.offset, None, lambda: crowd.tasks)
        )
        layout, begun = copied.layout, now()
        found = expect(layout, prior, said, compiled=True, accumulate_into=found)
        took += now() - begun
    return took


def opened() -> None:
    """Map the files and make the offsets of tasks, without touching a vote."""
    for shard in crowd.shards:
        _ = shard.layout


def timed(work: Callable[..., Any], *arguments: Any) -> Callable[[], NDArray[np.float64]]:
    def measured() -> NDArray[np.float64]:
        begun = now()
        work(*arguments)
        return now() - begun

    return measured


one, two = StreamEngine(crowd, n_jobs=1, compiled=True), StreamEngine(crowd, n_jobs=2, compiled=True)
statistics_ = Statistics(np.ones(n_classes), tally)
bent = Statistics(np.ones(n_classes), tally + said)
parts: dict[str, Callable[[], NDArray[np.float64]]] = {
    "all of the E-step, one thread": timed(one.expect, prior, said),
    "all of the E-step, two threads": timed(two.expect, prior, said),
    "the kernel, one thread, votes in memory": kernel,
    "files mapped, offsets made": timed(opened),
    "start from the votes, one thread": timed(one.sum, DawidSkene()._sum_initial_posterior, None, np.float64, 0),
    "an empty tally": timed(lambda: np.zeros_like(said).fill(0)),
    "the tallies of two threads added": timed(lambda: add_results(tally, said)),
    "M-step": timed(estimate_smoothed_probs, tally, pairs, 0.1, 1.0),
    "prior density": timed(compute_smoothing_log_prior, tally, pairs, 0.1, 1.0),
    "extrapolation, every third pass": timed(_extrapolate, statistics_, bent, statistics_),
}
for name in ("all of the E-step, one thread", "M-step", "prior density"):
    parts[name]()  # code is loaded, pages are warm
rounds = [{name: work() for name, work in parts.items()} for _ in range(repeats)]
print(json.dumps({name: np.median([found[name] for found in rounds], axis=0).tolist() for name in parts}))
