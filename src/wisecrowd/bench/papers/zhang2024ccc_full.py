"""The benchmark zhang2024ccc with all images of Fashion-MNIST and CIFAR-10N; it takes a night on two cores."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers import zhang2024ccc
from wisecrowd.bench.papers._fashion import N_TRAIN


def benchmark() -> Benchmark:
    """Return the benchmark of seven methods on eight simulated and three real crowds at full size.

    >>> benchmark().data["IND-I"].size()
    180000
    """
    return zhang2024ccc.benchmark(n_tasks=N_TRAIN)
