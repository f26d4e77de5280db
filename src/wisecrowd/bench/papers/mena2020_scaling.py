"""Time and memory of the Crowd Mixture Model and of Raykar's model by number of workers, after figure 3 of Mena and Ñanculef."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.bench.benchmark import Benchmark, DataSource
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.papers._mena import TEST, GaussianGroups, MenaLearner, score_classifier
from wisecrowd.bench.papers.mena2020 import WORKERS, title
from wisecrowd.io.datasets import Dataset

PASS, MEMORY, SECONDS = "ms per pass", "MB", "seconds"

#: Number of iterations for the time, and for the memory, whose measurement is slow.
TIMED, WATCHED = 10, 2
#: Maximum number of measurements, of which the least counts, and seconds after which no further one starts.
REPEATS, MAX_SECONDS = 5, 10.0
MANY = "a million workers"
FIGURES = (PASS, MEMORY)
_SMALL = GaussianGroups(10, n_tasks=50)


@dataclass(frozen=True)
class Scaling:
    """Entry that measures an EM iteration of a learner, and the complete fit if ``whole`` is true.

    >>> dataset = GaussianGroups(50, n_tasks=200).load(seed=0)
    >>> sorted(Scaling(MenaLearner("cmm", network=False))(dataset, 0))
    ['MB', 'ms per pass']
    """

    learn: MenaLearner
    whole: bool = False

    is_random: ClassVar[bool] = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return time and memory of an iteration."""
        figures: dict[str, float] = {}
        self.learn.fitted(_SMALL.load(seed), seed)  # the first fit of a process also imports and compiles
        costs: list[float] = []
        while len(costs) < REPEATS and sum(costs) < MAX_SECONDS:
            few, many = (self._seconds(dataset, seed, number) for number in (1, 1 + TIMED))
            costs.append(many - few)  # the costs before and after the iterations cancel
        figures[PASS] = 1000 * min(costs) / TIMED
        tracemalloc.start()
        try:
            self.learn.fitted(dataset, seed, max_iter=WATCHED, tol=0.0)
            figures[MEMORY] = tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()
        if self.whole:
            started = time.perf_counter()
            model = self.learn.fitted(dataset, seed)
            figures[SECONDS] = time.perf_counter() - started
            figures[TEST] = score_classifier(dataset, model.predict)[TEST]
        return figures

    def _seconds(self, dataset: Dataset, seed: int, passes: int) -> float:
        """Return the processor time of a fit, which does not depend on other processes."""
        started = time.process_time()
        self.learn.fitted(dataset, seed, max_iter=passes, tol=0.0)
        return time.process_time() - started

    def identity(self) -> Any:
        """Return the identity of the learner and the digest of the code."""
        return [code_digest(type(self)), self.whole, self.learn.identity()]


def benchmark() -> Benchmark:
    """Return the benchmark from a hundred workers to a million.

    >>> list(benchmark().data)[0], list(benchmark().data)[-1]
    ('T = 100', 'a million workers')
    """
    data: dict[str, DataSource] = {title(number): GaussianGroups(number, figures=FIGURES) for number in WORKERS}
    data[MANY] = GaussianGroups(1_000_000, n_tasks=1_000_000, figures=(*FIGURES, SECONDS, TEST), is_random=False)
    return Benchmark(
        title="Mena and Ñanculef 2019, figure 3: time and memory against the number of workers",
        references=("mena2019revisiting",),
        entries={
            "CMM": Scaling(MenaLearner("cmm", network=False), whole=True),
            "Raykar": Scaling(MenaLearner("raykar", network=False)),
        },
        data=data,
        rows="data",
        seeds=5,
        remarks=(
            "Set-up (1): 2,457 tasks with five labels each by T workers; and a million tasks with five "
            "million labels by a million workers. Shown are the processor time of an iteration in "
            "milliseconds (mean over 10 iterations, smallest of 5 measurements), the peak memory of a fit in "
            "megabytes beyond the data, both with logistic regression, and for the million workers the whole "
            "fit of CMM with its accuracy. The figure in the paper has no numbers. There, every worker has a "
            "dense matrix, and memory ran out in set-up (2) from 6,000 workers on; ours stores only pairs of "
            "worker and label that occur, so memory grows with the labels. Processor time is shown because "
            "the machine was shared: by the clock, a first run had 14 ms at T = 100 and 25 ms at T = 10,000 "
            "for CMM, and 14 and 28 ms for Raykar.",
        ),
    )
