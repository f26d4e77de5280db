"""One pass over the votes, and one whole iteration, beside a textbook C kernel that is compiled here.

Run as a program it prints medians as JSON, seconds of the clock and of the processor. Every contender runs once before
the clocks start; then they take turns, so that other programs on the machine affect all of them equally.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import crowds
import numpy as np

from wisecrowd import kernels
from wisecrowd.aggregate.categorical.dawid_skene import DawidSkene
from wisecrowd.data.crowd import Crowd

SMOOTHING = 0.1


class Textbook:
    """Dawid–Skene in C: tables of workers x labels x classes, one fused pass, sums of logarithms."""

    def __init__(self, votes: crowds.Votes, n_classes: int) -> None:
        self.n_tasks, self.n_workers, self.n_classes = len(votes.truth), votes.n_workers, n_classes
        self.offset = np.searchsorted(votes.task, np.arange(self.n_tasks + 1)).astype(np.int64)
        self.code = (votes.worker * n_classes + votes.label).astype(np.int32)
        label_probs = np.full((self.n_workers, n_classes, n_classes), 0.4 / (n_classes - 1))
        label_probs[:, range(n_classes), range(n_classes)] = 0.6
        self.log_prior, self.log_label_probs = np.log(np.full(n_classes, 1 / n_classes)), np.log(label_probs)
        self.classes, self.tally = np.zeros(n_classes), np.zeros_like(label_probs)
        self.posterior = np.zeros(n_classes)
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "textbook.so"
            source = Path(__file__).with_name("textbook.c")
            command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
            subprocess.run(command, check=True)
            self.code_of_c = ctypes.CDLL(str(library))
        self.code_of_c.expect.restype = ctypes.c_double

    def expect(self) -> float:
        self.classes[:] = 0
        self.tally[:] = 0
        sizes = [ctypes.c_int64(self.n_tasks), ctypes.c_int64(self.n_classes)]
        arrays = [
            self.offset,
            self.code,
            self.log_prior,
            self.log_label_probs,
            self.classes,
            self.tally,
            self.posterior,
        ]
        return float(self.code_of_c.expect(*sizes, *map(_address, arrays)))

    def iterate(self) -> float:
        log_likelihood = self.expect()
        sizes = [ctypes.c_int64(self.n_workers), ctypes.c_int64(self.n_classes), ctypes.c_double(SMOOTHING)]
        self.code_of_c.maximise(
            *sizes, *map(_address, [self.classes, self.tally, self.log_prior, self.log_label_probs])
        )
        return log_likelihood


def _address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Time(NamedTuple):
    """Seconds of the clock and of the processor; the processor time counts all threads and no other programs."""

    wall: float
    cpu: float

    def minus(self, other: Time) -> Time:
        return Time(self.wall - other.wall, self.cpu - other.cpu)

    def over(self, count: int) -> Time:
        return Time(self.wall / count, self.cpu / count)


def now() -> Time:
    return Time(time.perf_counter(), time.process_time())


def timed(work: Callable[[], object]) -> Callable[[], Time]:
    def run() -> Time:
        started = now()
        work()
        return now().minus(started)

    return run


def iteration(crowd: Crowd, n_jobs: int, more: int) -> Callable[[], Time]:
    """Return a function that measures an iteration of `DawidSkene`: the cost of ``more`` iterations, divided by their number."""

    def fit(max_iter: int) -> Time:
        method = DawidSkene(max_iter=max_iter, tol=0, smoothing=SMOOTHING, accelerate=False, n_jobs=n_jobs)
        return timed(lambda: method.fit(crowd))()

    def run() -> Time:
        short = fit(2)
        return fit(2 + more).minus(short).over(more)

    return run


def measure(n_votes: int, n_workers: int, n_classes: int, repeats: int) -> dict[str, dict[str, float]]:
    votes = crowds.make(n_votes, n_workers, n_classes)
    textbook = Textbook(votes, n_classes)
    tasks, workers, classes = np.arange(len(votes.truth)), np.arange(n_workers), np.arange(n_classes)
    crowd = Crowd.from_codes(votes.task, votes.worker, votes.label, tasks=tasks, workers=workers, classes=classes)
    layout, pairs = crowd.layout, crowd.pairs
    prior, label_probs = np.exp(textbook.log_prior), np.exp(textbook.log_label_probs)[pairs.worker, pairs.label]

    log_likelihood = textbook.expect()
    for compiled in (False, True):
        expectation = kernels.expect(layout, prior, label_probs, compiled=compiled)
        np.testing.assert_allclose(expectation.log_likelihood, log_likelihood, rtol=1e-9)
        np.testing.assert_allclose(expectation.tally, textbook.tally[pairs.worker, pairs.label], rtol=1e-7)

    more = max(3, min(20, 20_000_000 // n_votes))
    contenders = {
        "textbook C, pass": timed(textbook.expect),
        "compiled, pass": timed(lambda: kernels.expect(layout, prior, label_probs, compiled=True)),
        "compiled, pass, 2 threads": timed(lambda: kernels.expect(layout, prior, label_probs, compiled=True, n_jobs=2)),
        "reference, pass": timed(lambda: kernels.expect(layout, prior, label_probs, compiled=False)),
        "textbook C, iteration": timed(textbook.iterate),
        "DawidSkene, iteration": iteration(crowd, 1, more),
        "DawidSkene, iteration, 2 threads": iteration(crowd, 2, more),
    }
    runs: dict[str, list[Time]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, contender in contenders.items():
            elapsed = contender()
            if turn:
                runs[name].append(elapsed)
    return {
        name: {clock: statistics.median(getattr(elapsed, clock) for elapsed in times) for clock in Time._fields}
        for name, times in runs.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("n_votes", "n_workers", "n_classes", "repeats"):
        parser.add_argument(name, type=int)
    print(json.dumps(measure(**vars(parser.parse_args()))))
