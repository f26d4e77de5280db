"""Calls of the compiled kernels: arguments in the types that machine code expects, and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.layout import Layout
from wisecrowd.kernels.expectation import Expectation, log_table
from wisecrowd.utils.parallel import thread_count

Result = TypeVar("Result")
#: A compiled kernel: a function of integers, arrays and None that returns one number.
NativeKernel = Callable[..., float]

#: Numbers between arrays of different threads: two cache lines of 64 bytes, which some processors fetch together.
CACHE_MARGIN = 16


def expect(
    kernel: NativeKernel,
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None,
    *,
    return_posterior: bool,
    n_jobs: int,
    tally: NDArray[Any] | None,
) -> Expectation:
    """Compute evidence, posteriors and their sums with a compiled kernel.

    Parameters
    ----------
    kernel : callable
        The "expect" kernel for these types, from `object_cache.load`.
    layout : Layout
        Votes in the order of tasks.
    prior : ndarray of shape (n_classes,)
        Class probabilities; they sum to one.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class), float32 or float64, at most 1.
    gold : ndarray of shape (n_tasks,) or None
        Class codes of gold tasks, -1 where the truth is unknown.
    return_posterior : bool
        Include the posterior of every task in the result.
    n_jobs : int
        Number of threads; -1 uses all cores.
    tally : ndarray of shape (n_pairs, n_classes) or None
        Table to which a single thread adds in place.

    Returns
    -------
    Expectation

    Examples
    --------
    >>> from wisecrowd.kernels.object_cache import KernelVariant, load
    >>> layout = Layout(np.array([0, 1]), np.array([0], dtype=np.int32), None, 1)
    >>> kernel = load(KernelVariant("expect", "float64"))
    >>> prior, label_probs = np.array([0.5, 0.5]), np.array([[0.75, 0.25]])
    >>> options = {"return_posterior": True, "n_jobs": 1, "tally": None}
    >>> expect(kernel, layout, prior, label_probs, None, **options).posterior.tolist()
    [[0.75, 0.25]]
    """
    n_classes, table = len(prior), np.ascontiguousarray(label_probs)
    if layout.weight is not None:
        prior, table = log_table(prior), log_table(table)
    gold_codes = None if gold is None else np.ascontiguousarray(gold, dtype=np.int32)
    posterior = np.empty((layout.n_tasks if return_posterior else 0, n_classes), dtype=label_probs.dtype)
    votes, single_thread = _convert_layout(layout), thread_count(n_jobs) == 1

    def run(tasks: slice) -> tuple[float, NDArray[np.float64], NDArray[Any]]:
        class_counts, scratch = _padded_zeros(n_classes), _padded_zeros(n_classes)
        # Creating a table over all workers costs as much as counting many votes.
        sums = tally if tally is not None and single_thread else np.zeros_like(table)
        log_likelihood = kernel(
            tasks.stop - tasks.start, n_classes, votes.offset[tasks.start :], votes.pair, votes.weight,
            prior, table, None if gold_codes is None else gold_codes[tasks], class_counts, sums, posterior[tasks],
            int(return_posterior), scratch,
        )  # fmt: skip
        return log_likelihood, class_counts, sums

    log_likelihoods, class_counts, tallies = zip(*_run_in_threads(run, layout, n_jobs), strict=True)
    return Expectation(
        sum(log_likelihoods), add_in_place(class_counts), add_in_place(tallies), posterior if return_posterior else None
    )


def tally(
    kernel: NativeKernel,
    layout: Layout,
    posterior: NDArray[Any],
    n_jobs: int,
    accumulate_into: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Sum weight x posterior over the votes of every (worker, label) pair with a compiled kernel.

    Parameters
    ----------
    kernel : callable
        The "count" kernel for these types, from `object_cache.load`.
    layout : Layout
        Votes in the order of tasks.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of every task, float32 or float64.
    n_jobs : int
        Number of threads; -1 uses all cores.
    accumulate_into : ndarray of shape (n_pairs, n_classes), optional
        Table to which a single thread adds in place.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> from wisecrowd.kernels.object_cache import KernelVariant, load
    >>> layout = Layout(np.array([0, 2]), np.array([0, 1], dtype=np.int32), None, 2)
    >>> tally(load(KernelVariant("count", "float64")), layout, np.array([[0.75, 0.25]]), 1).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    n_classes, shares, votes = posterior.shape[1], np.ascontiguousarray(posterior), _convert_layout(layout)

    def run(tasks: slice) -> NDArray[Any]:
        sums = accumulate_into
        if sums is None:
            sums = np.zeros((layout.n_pairs, n_classes), dtype=shares.dtype)
        offset = votes.offset[tasks.start :]
        kernel(tasks.stop - tasks.start, n_classes, offset, votes.pair, votes.weight, shares[tasks], sums)
        return sums

    return add_in_place(_run_in_threads(run, layout, n_jobs))


def add_in_place(tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Add all tables to the first one and return it.

    Parameters
    ----------
    tables : sequence of ndarray
        Tables of one shape.

    Returns
    -------
    ndarray
        The first table.

    Examples
    --------
    >>> add_in_place([np.ones(2), np.ones(2)]).tolist()
    [2.0, 2.0]
    """
    first, *others = tables
    for other in others:
        first += other
    return first


def _convert_layout(layout: Layout) -> Layout:
    """Return the layout, checked, with arrays of exactly the types that machine code expects."""
    layout.check()
    weight = None if layout.weight is None else np.ascontiguousarray(layout.weight, dtype=np.float64)
    offset = np.ascontiguousarray(layout.offset, dtype=np.int64)
    pair = np.ascontiguousarray(layout.pair, dtype=np.int32)
    return Layout(offset, pair, weight, layout.n_pairs, is_checked=True)


def _run_in_threads(run: Callable[[slice], Result], layout: Layout, n_jobs: int) -> list[Result]:
    """Split the tasks into one block of consecutive tasks per thread with equal votes; return results in task order."""
    n_jobs = thread_count(n_jobs)
    if n_jobs == 1:
        return [run(slice(0, layout.n_tasks))]
    ends = np.linspace(layout.offset[0], layout.offset[-1], n_jobs + 1)[1:-1]
    cuts = [0, *np.searchsorted(layout.offset, ends).tolist(), layout.n_tasks]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(run, map(slice, cuts[:-1], cuts[1:])))


def _padded_zeros(n: int) -> NDArray[np.float64]:
    """Return zeros that share no cache line with other arrays, so that threads do not wait for each other."""
    return np.zeros(n + 2 * CACHE_MARGIN)[CACHE_MARGIN : CACHE_MARGIN + n]
