"""Cost of the parts of a pass over a sharded crowd: ``scale_costs.py FOLDER REPEATS``.

Prints the median seconds of each part as JSON, of the clock and of the processor. Work on shards is summed over all shards.
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
label_probs = estimate_smoothed_probs(tally, pairs, 0.1, 1.0)


def now() -> NDArray[np.float64]:
    """Return the time of the clock and the processor time of this process."""
    return np.array([time.perf_counter(), time.process_time()])


def kernel() -> NDArray[np.float64]:
    """Measure the kernel alone, on votes in the memory of this process."""
    elapsed, figures = np.zeros(2), Expectation(0.0, np.zeros(n_classes), np.zeros_like(label_probs), None)
    for shard in crowd.shards:
        shard_pairs = pairs.with_votes(np.array(shard.pairs.vote_pairs))
        copy = CrowdSlice(
            PairVotesInMemory(crowd.workers, crowd.classes, shard_pairs, shard.offset, None, lambda: crowd.tasks)
        )
        layout, started = copy.layout, now()
        figures = expect(layout, prior, label_probs, compiled=True, accumulate_into=figures)
        elapsed += now() - started
    return elapsed


def open_shards() -> None:
    """Map the files and make the offsets of tasks, without touching a vote."""
    for shard in crowd.shards:
        _ = shard.layout


def time_calls(work: Callable[..., Any], *arguments: Any) -> Callable[[], NDArray[np.float64]]:
    def measure() -> NDArray[np.float64]:
        started = now()
        work(*arguments)
        return now() - started

    return measure


one, two = StreamEngine(crowd, n_jobs=1, compiled=True), StreamEngine(crowd, n_jobs=2, compiled=True)
statistics_ = Statistics(np.ones(n_classes), tally)
shifted = Statistics(np.ones(n_classes), tally + label_probs)
parts: dict[str, Callable[[], NDArray[np.float64]]] = {
    "all of the E-step, one thread": time_calls(one.expect, prior, label_probs),
    "all of the E-step, two threads": time_calls(two.expect, prior, label_probs),
    "the kernel, one thread, votes in memory": kernel,
    "files mapped, offsets made": time_calls(open_shards),
    "start from the votes, one thread": time_calls(one.sum, DawidSkene()._sum_initial_posterior, None, np.float64, 0),
    "an empty tally": time_calls(lambda: np.zeros_like(label_probs).fill(0)),
    "the tallies of two threads added": time_calls(lambda: add_results(tally, label_probs)),
    "M-step": time_calls(estimate_smoothed_probs, tally, pairs, 0.1, 1.0),
    "prior density": time_calls(compute_smoothing_log_prior, tally, pairs, 0.1, 1.0),
    "extrapolation, every third pass": time_calls(_extrapolate, statistics_, shifted, statistics_),
}
for name in ("all of the E-step, one thread", "M-step", "prior density"):
    parts[name]()  # code is loaded, pages are warm
rounds = [{name: work() for name, work in parts.items()} for _ in range(repeats)]
print(json.dumps({name: np.median([figures[name] for figures in rounds], axis=0).tolist() for name in parts}))
