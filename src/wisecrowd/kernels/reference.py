"""The two sums of the Dawid-Skene family, in two equal forms.

Every model in which a worker answers with probabilities that depend on the true class alternates between two sums:
the *evidence* that a task's votes give for each class, and the *tally* of posteriors for each thing that was said.
Both run over (worker, label) pairs that occur in the data, so a table has as many rows as there are distinct pairs,
never workers x classes x classes.

`expect` takes both sums at once. The reference form below says what is computed, in products of a sparse matrix.
The compiled form (`_compiled.py`, by numba) gives the same numbers in one pass over the votes; it takes over when the
work is large enough to pay for getting it.

>>> layout = Layout(offset=np.array([0, 2, 3]), pair=np.array([0, 1, 1], dtype=np.int32), weight=None, n_pairs=2)
>>> label_probs = np.array([[0.9, 0.2], [0.8, 0.4]])  # how probable each pair is when class 0, class 1 is true
>>> expect(layout, np.array([0.5, 0.5]), label_probs, posterior=True).posterior.round(3)
array([[0.9 , 0.1 ],
       [0.667, 0.333]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.layout import Layout
from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.utils.parallel import threads

Result = TypeVar("Result")
Kernel = Callable[..., float]

COMPILED_FROM = 2_000_000
"""Votes x classes from which the compiled form is chosen: a second or two for the first use on a machine, a tenth of a
second in every process after that, are then soon made good."""

REGISTERS = 10
"""Up to so many classes, the compiled form is made for their very number."""

LEAST = np.finfo(np.float64).tiny
"""What a probability of zero counts as. A zero so vetoes a class against any evidence short of e**708, and a task
whose every class is vetoed has a posterior all the same: the class with the fewest vetoes leads."""

CHUNK = 1 << 22
"""Values in a temporary of the reference form: a table of many classes is worked on a few columns at a time."""


class Expectation(NamedTuple):
    """What one pass over the votes gives: all that adds up over tasks, and the posterior if it was asked for.

    >>> Expectation._fields
    ('log_likelihood', 'classes', 'tally', 'posterior')
    """

    log_likelihood: float
    """Sum over the tasks with votes of log sum_k prior_k prod_n said[pair_n, k]; of a clamped task, its class's term."""
    classes: NDArray[np.float64]
    """(n_classes,): sum of the posteriors of the tasks with votes."""
    tally: NDArray[Any]
    """(n_pairs, n_classes): sum over a pair's votes of weight x posterior of the task."""
    posterior: NDArray[Any] | None
    """(n_tasks, n_classes); a task without votes has the prior, or its clamped class."""


def expect(
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None = None,
    *,
    posterior: bool = False,
    compiled: bool | None = None,
    n_jobs: int = 1,
    into: Expectation | None = None,
) -> Expectation:
    """Take both sums: the evidence for every task's classes, and the tally of the posteriors that follow.

    ``prior`` (n_classes,) and ``label_probs`` (n_pairs, n_classes) are not negative and need not be normalised; a zero counts
    as `LEAST`. ``label_probs`` of float32 gives a tally and a posterior of float32. ``gold`` (n_tasks,) holds the class of
    tasks whose truth is known and -1 for the others. ``compiled`` chooses the form, None by the size of the work.
    ``n_jobs`` threads share the tasks in the compiled form; -1 means all cores. ``into`` holds the sums of other tasks,
    to which these are added, its tally in place.

    >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
    >>> sums = expect(layout, np.array([0.5, 0.5]), np.array([[0.9, 0.2], [0.8, 0.4]]))
    >>> sums.classes.round(3), sums.tally.round(3)
    (array([1.567, 0.433]), array([[0.9  , 0.1  ],
           [1.567, 0.433]]))
    """
    _check("prior", prior, (len(prior),))
    _check("said", label_probs, (layout.n_pairs, len(prior)))
    if gold is not None:
        _check("gold", gold, (layout.n_tasks,))
        if gold.max(initial=-1) >= len(prior):
            raise UsageError(f"gold must hold classes below {len(prior)}, or -1; got {gold.max()}")
    label_probs = _floating(label_probs)
    prior_sum, said_peak = np.maximum(prior, LEAST).sum(), label_probs.max(initial=1)
    prior = np.maximum(prior, LEAST) / prior_sum
    if said_peak > 1:
        label_probs = label_probs / said_peak
    kernel = _kernel("expect", layout, label_probs, gold, compiled)
    if kernel is None:
        found = _reference_expect(layout, prior, label_probs, gold, keep=posterior)
    else:
        tally = None if into is None or into.tally.dtype != label_probs.dtype else into.tally
        found = _compiled_expect(kernel, layout, prior, label_probs, gold, keep=posterior, n_jobs=n_jobs, tally=tally)
    scale = float(np.log(prior_sum) * np.count_nonzero(layout.voted) + np.log(said_peak) * layout.total)
    found = found._replace(log_likelihood=found.log_likelihood + scale)
    return found if into is None else _added(into, found)


def posterior(
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None = None,
    *,
    compiled: bool | None = None,
    n_jobs: int = 1,
) -> NDArray[Any]:
    """Posterior of every task, (n_tasks, n_classes), with the arguments of `expect`.

    >>> layout = Layout(np.array([0, 1, 1]), np.array([0], dtype=np.int32), None, 1)
    >>> posterior(layout, np.array([0.5, 0.5]), np.array([[0.75, 0.25]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    found = expect(layout, prior, label_probs, gold, posterior=True, compiled=compiled, n_jobs=n_jobs).posterior
    assert found is not None
    return found


def tally(
    layout: Layout, posterior: NDArray[Any], *, compiled: bool | None = None, n_jobs: int = 1,
    into: NDArray[Any] | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Sum of weight x posterior over every pair's votes, (n_pairs, n_classes): the second of the two sums alone.

    ``into`` holds the sum of other tasks, to which these are added in place.

    >>> layout = Layout(np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), None, 2)
    >>> tally(layout, np.array([[1.0, 0.0], [0.25, 0.75]]))
    array([[1.  , 0.  ],
           [1.25, 0.75]])
    """
    _check("posterior", posterior, (layout.n_tasks, *posterior.shape[1:2]))
    posterior = _floating(posterior)
    kernel = _kernel("count", layout, posterior, None, compiled)
    if kernel is None:
        found = _reference_tally(layout, posterior)
    elif into is not None and into.dtype == posterior.dtype and threads(n_jobs) == 1:
        return _compiled_tally(kernel, layout, posterior, n_jobs, into)
    else:
        found = _compiled_tally(kernel, layout, posterior, n_jobs)
    return found if into is None else _add([into, found])


def _reference_expect(
    layout: Layout, prior: NDArray[np.float64], label_probs: NDArray[Any], gold: NDArray[np.int32] | None, *, keep: bool
) -> Expectation:
    # Sums by einsum: faster than numpy's reductions on short rows, and without the threads of a matrix product.
    joint = np.empty((layout.n_tasks, len(prior)), dtype=label_probs.dtype)
    for some in _chunks(layout, len(prior)):
        joint[:, some] = layout.matrix @ _log(label_probs[:, some])
    joint += _log(prior).astype(label_probs.dtype)

    peak = _peak(joint)
    clamped = np.flatnonzero(gold >= 0) if gold is not None else np.empty(0, dtype=np.intp)
    known = gold[clamped] if gold is not None else clamped
    known_joint = joint[clamped, known]

    share = np.exp(np.subtract(joint, peak[:, None], out=joint), out=joint)
    total = np.einsum("ik->i", share)
    share /= total[:, None]
    share[clamped] = 0
    share[clamped, known] = 1

    evidence = peak.astype(np.float64) + np.log(total)
    evidence[clamped] = known_joint
    return Expectation(
        log_likelihood=float(evidence[layout.voted].sum()),
        classes=np.einsum("i,ik->k", layout.voted, share, dtype=np.float64),
        tally=_reference_tally(layout, share),
        posterior=share if keep else None,
    )


def _peak(joint: NDArray[Any]) -> NDArray[Any]:
    """Maximum of every row; column by column when rows are short, which numpy reduces slowly."""
    return joint.max(axis=1) if joint.shape[1] > 32 else reduce(np.maximum, joint.T[1:], joint[:, 0].copy())


def _reference_tally(layout: Layout, posterior: NDArray[Any]) -> NDArray[Any]:
    n_classes = posterior.shape[1]
    result = np.empty((layout.n_pairs, n_classes), dtype=posterior.dtype)
    for some in _chunks(layout, n_classes):
        result[:, some] = layout.matrix.T @ posterior[:, some]
    return result


def _chunks(layout: Layout, n_classes: int) -> list[slice]:
    width = max(1, CHUNK // max(1, layout.n_pairs, layout.n_tasks))
    return [slice(start, start + width) for start in range(0, n_classes, width)]


def _check(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse what does not fit: machine code would read beyond its end."""
    if array.shape != shape:
        raise UsageError(f"{name} must be of shape {shape}; got {array.shape}")


def _floating(table: NDArray[Any]) -> NDArray[Any]:
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)


def _log(table: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return np.maximum(logs, float(np.log(LEAST)), out=logs)


def _kernel(
    name: str, layout: Layout, table: NDArray[Any], gold: NDArray[np.int32] | None, compiled: bool | None
) -> Kernel | None:
    """The compiled kernel if it is wanted and can be had, else None for the reference."""
    n_classes, weighted = table.shape[1], layout.weight is not None
    if compiled is False or (compiled is None and layout.n_votes * n_classes < COMPILED_FROM):
        return None
    in_registers = name == "expect" and not weighted and n_classes <= REGISTERS
    try:
        from wisecrowd.kernels.object_cache import Variant, load

        return load(
            Variant(name, table.dtype.name, n_classes if in_registers else 0, weighted, clamped=gold is not None)
        )
    except ImportError as error:
        if compiled:
            raise MissingExtra("fast", "the compiled kernels") from error
        return None


def _compiled_expect(
    kernel: Kernel,
    layout: Layout,
    prior: NDArray[np.float64],
    label_probs: NDArray[Any],
    gold: NDArray[np.int32] | None,
    *,
    keep: bool,
    n_jobs: int,
    tally: NDArray[Any] | None,
) -> Expectation:
    n_classes, table = len(prior), np.ascontiguousarray(label_probs)
    if layout.weight is not None:
        prior, table = _log(prior), _log(table)
    known = None if gold is None else np.ascontiguousarray(gold, dtype=np.int32)
    posterior = np.empty((layout.n_tasks if keep else 0, n_classes), dtype=label_probs.dtype)
    votes, alone = _votes(layout), threads(n_jobs) == 1

    def work(tasks: slice) -> tuple[float, NDArray[np.float64], NDArray[Any]]:
        classes, scratch = _apart(n_classes), _apart(n_classes)
        # A table over all workers costs as much to make as many votes to count.
        sums = tally if tally is not None and alone else np.zeros_like(table)
        mine = None if known is None else known[tasks]
        log_likelihood = kernel(
            tasks.stop - tasks.start, n_classes, votes.offset[tasks.start :], votes.pair, votes.weight,
            prior, table, mine, classes, sums, posterior[tasks], int(keep), scratch,
        )  # fmt: skip
        return log_likelihood, classes, sums

    values, classes, tallies = zip(*_in_threads(work, layout, n_jobs), strict=True)
    return Expectation(sum(values), _add(classes), _add(tallies), posterior if keep else None)


def _compiled_tally(
    kernel: Kernel, layout: Layout, posterior: NDArray[Any], n_jobs: int, into: NDArray[Any] | None = None
) -> NDArray[Any]:
    n_classes, shares, votes = posterior.shape[1], np.ascontiguousarray(posterior), _votes(layout)

    def work(tasks: slice) -> NDArray[Any]:
        tally = np.zeros((layout.n_pairs, n_classes), dtype=shares.dtype) if into is None else into
        offset = votes.offset[tasks.start :]
        kernel(tasks.stop - tasks.start, n_classes, offset, votes.pair, votes.weight, shares[tasks], tally)
        return tally

    return _add(_in_threads(work, layout, n_jobs))


def _votes(layout: Layout) -> Layout:
    """The layout with arrays of exactly the types that machine code expects."""
    weight = None if layout.weight is None else np.ascontiguousarray(layout.weight, dtype=np.float64)
    offset = np.ascontiguousarray(layout.offset, dtype=np.int64)
    return Layout(offset, np.ascontiguousarray(layout.pair, dtype=np.int32), weight, layout.n_pairs)


def _in_threads(work: Callable[[slice], Result], layout: Layout, n_jobs: int) -> list[Result]:
    """Give every thread consecutive tasks with as many votes as the others have; results in the order of tasks."""
    n_jobs = threads(n_jobs)
    if n_jobs == 1:
        return [work(slice(0, layout.n_tasks))]
    ends = np.linspace(layout.offset[0], layout.offset[-1], n_jobs + 1)[1:-1]
    cuts = [0, *np.searchsorted(layout.offset, ends).tolist(), layout.n_tasks]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(work, map(slice, cuts[:-1], cuts[1:])))


def _apart(n: int) -> NDArray[np.float64]:
    """Zeros that share no cache line with anything: threads that write to one line in turns wait for each other."""
    margin = 16  # numbers in two lines, which some processors fetch together
    return np.zeros(n + 2 * margin)[margin : margin + n]


def _added(into: Expectation, found: Expectation) -> Expectation:
    """Both sums; a tally that was added to already is the same one."""
    tally = found.tally if found.tally is into.tally else _add([into.tally, found.tally])
    return Expectation(into.log_likelihood + found.log_likelihood, into.classes + found.classes, tally, found.posterior)


def _add(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    first, *others = parts
    for other in others:
        first += other
    return first
