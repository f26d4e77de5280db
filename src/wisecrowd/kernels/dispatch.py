"""Public kernels: argument checks and the choice between the reference and the compiled implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.layout import Layout
from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.kernels import native, reference
from wisecrowd.kernels.expectation import MIN_PROB, Expectation
from wisecrowd.utils.parallel import thread_count

#: Votes x classes from which the compiled implementation is chosen. Compilation takes one or two seconds once per machine
#: and loading a tenth of a second per process, which a crowd of this size saves in a few passes.
COMPILED_MIN_CELLS = 2_000_000

#: Up to this number of classes, machine code is compiled for the exact number, so that a posterior fits in registers.
MAX_REGISTER_CLASSES = 10


def expect(
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None = None,
    *,
    posterior: bool = False,
    compiled: bool | None = None,
    n_jobs: int = 1,
    accumulate_into: Expectation | None = None,
) -> Expectation:
    """Compute the posteriors of all tasks and their sums: an E-step.

    Parameters
    ----------
    layout : Layout
        Votes in the order of tasks.
    prior : ndarray of shape (n_classes,)
        Class probabilities, not negative; they need not sum to one. A zero counts as `MIN_PROB`.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class), not negative; need not be normalised. float32 gives a tally and a posterior of
        float32.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, -1 where the truth is unknown.
    posterior : bool, default False
        Include the posterior of every task in the result.
    compiled : bool, optional
        Use the compiled kernels. By default they are used for large crowds.
    n_jobs : int, default 1
        Number of threads of the compiled kernels; -1 uses all cores.
    accumulate_into : Expectation, optional
        Sums over other tasks, to which these are added; its tally in place.

    Returns
    -------
    Expectation

    Raises
    ------
    UsageError
        If shapes do not match the layout.
    MissingExtra
        If ``compiled`` is True and numba is not installed.

    Examples
    --------
    >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
    >>> sums = expect(layout, np.array([0.5, 0.5]), np.array([[0.9, 0.2], [0.8, 0.4]]))
    >>> sums.class_counts.round(3), sums.tally.round(3)
    (array([1.567, 0.433]), array([[0.9  , 0.1  ],
           [1.567, 0.433]]))
    """
    layout.check()
    _check_shape("prior", prior, (len(prior),))
    _check_shape("label_probs", label_probs, (layout.n_pairs, len(prior)))
    if gold is not None:
        _check_shape("gold", gold, (layout.n_tasks,))
        if gold.max(initial=-1) >= len(prior):
            raise UsageError(f"gold must hold class codes below {len(prior)}, or -1; got {gold.max()}")
    if accumulate_into is not None:
        _check_shape("tally of accumulate_into", accumulate_into.tally, label_probs.shape)
    label_probs = _as_floating(label_probs)
    prior_sum, label_peak = np.maximum(prior, MIN_PROB).sum(), label_probs.max(initial=1)
    prior = np.maximum(prior, MIN_PROB) / prior_sum
    if label_peak > 1:
        label_probs = label_probs / label_peak
    kernel = _load_kernel("expect", layout, label_probs, gold, compiled)
    if kernel is None:
        sums = reference.expect(layout, prior, label_probs, gold, return_posterior=posterior)
    else:
        in_place = accumulate_into is not None and _is_writable_table(accumulate_into.tally, label_probs.dtype)
        table = accumulate_into.tally if accumulate_into is not None and in_place else None
        sums = native.expect(
            kernel, layout, prior, label_probs, gold, return_posterior=posterior, n_jobs=n_jobs, tally=table
        )
    scale = float(np.log(prior_sum) * np.count_nonzero(layout.has_votes) + np.log(label_peak) * layout.total_weight)
    sums = sums._replace(log_likelihood=sums.log_likelihood + scale)
    return sums if accumulate_into is None else _add_expectations(accumulate_into, sums)


def posterior(
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None = None,
    *,
    compiled: bool | None = None,
    n_jobs: int = 1,
) -> NDArray[Any]:
    """Return the class probabilities of every task given its votes.

    Parameters
    ----------
    layout : Layout
        Votes in the order of tasks.
    prior : ndarray of shape (n_classes,)
        Class probabilities, not negative; they need not sum to one. A zero counts as `MIN_PROB`.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair | class), not negative; need not be normalised. float32 gives a posterior of float32.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, -1 where the truth is unknown.
    compiled : bool, optional
        Use the compiled kernels. By default they are used for large crowds.
    n_jobs : int, default 1
        Number of threads of the compiled kernels; -1 uses all cores.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        Probabilities, which sum to one: 1 for the class of a gold task, the prior for a task without votes.

    Examples
    --------
    >>> first_vote, pair_of_vote = np.array([0, 1, 1]), np.array([0], dtype=np.int32)  # one vote on the first of two tasks
    >>> layout = Layout(first_vote, pair_of_vote, None, 1)
    >>> posterior(layout, np.array([0.5, 0.5]), np.array([[0.75, 0.25]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    sums = expect(layout, prior, label_probs, gold, posterior=True, compiled=compiled, n_jobs=n_jobs)
    assert sums.posterior is not None
    return sums.posterior


def tally(
    layout: Layout,
    posterior: NDArray[Any],
    *,
    compiled: bool | None = None,
    n_jobs: int = 1,
    accumulate_into: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Sum weight x posterior over the votes of every (worker, label) pair.

    Parameters
    ----------
    layout : Layout
        Votes in the order of tasks.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of every task.
    compiled : bool, optional
        Use the compiled kernels. By default they are used for large crowds.
    n_jobs : int, default 1
        Number of threads of the compiled kernels; -1 uses all cores.
    accumulate_into : ndarray of shape (n_pairs, n_classes), optional
        Tally of other tasks, to which this one is added in place.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
    >>> tally(layout, np.array([[1.0, 0.0], [0.25, 0.75]]))
    array([[1.  , 0.  ],
           [1.25, 0.75]])
    """
    layout.check()
    n_classes = posterior.shape[-1] if posterior.ndim == 2 else 0
    _check_shape("posterior", posterior, (layout.n_tasks, n_classes))
    if accumulate_into is not None:
        _check_shape("accumulate_into", accumulate_into, (layout.n_pairs, n_classes))
    posterior = _as_floating(posterior)
    kernel = _load_kernel("count", layout, posterior, None, compiled)
    if kernel is None:
        sums = reference.tally(layout, posterior)
    elif (
        accumulate_into is not None
        and _is_writable_table(accumulate_into, posterior.dtype)
        and thread_count(n_jobs) == 1
    ):
        return native.tally(kernel, layout, posterior, n_jobs, accumulate_into)
    else:
        sums = native.tally(kernel, layout, posterior, n_jobs)
    return sums if accumulate_into is None else native.add_in_place([accumulate_into, sums])


def _load_kernel(
    name: str, layout: Layout, table: NDArray[Any], gold: NDArray[np.int32] | None, compiled: bool | None
) -> native.NativeKernel | None:
    """Return the compiled kernel if it is wanted and available, else None for the reference implementation."""
    n_classes, weighted = table.shape[1], layout.weight is not None
    if compiled is False or (compiled is None and layout.n_votes * n_classes < COMPILED_MIN_CELLS):
        return None
    in_registers = name == "expect" and not weighted and n_classes <= MAX_REGISTER_CLASSES
    try:
        from wisecrowd.kernels.object_cache import KernelVariant, load

        return load(
            KernelVariant(name, table.dtype.name, n_classes if in_registers else 0, weighted, has_gold=gold is not None)
        )
    except ImportError as error:
        if compiled:
            raise MissingExtra("fast", "the compiled kernels") from error
        return None


def _add_expectations(total: Expectation, sums: Expectation) -> Expectation:
    """Add two sums; a tally that was accumulated in place is already the total."""
    table = sums.tally if sums.tally is total.tally else native.add_in_place([total.tally, sums.tally])
    return Expectation(
        total.log_likelihood + sums.log_likelihood, total.class_counts + sums.class_counts, table, sums.posterior
    )


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse arrays of a wrong shape: machine code would read beyond their end."""
    if array.shape != shape:
        raise UsageError(f"{name} must be of shape {shape}; got {array.shape}")


def _is_writable_table(table: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether machine code can add to a table in place."""
    return table.dtype == dtype and table.flags.c_contiguous and table.flags.writeable


def _as_floating(table: NDArray[Any]) -> NDArray[Any]:
    """Return the table as float32 or float64."""
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)
