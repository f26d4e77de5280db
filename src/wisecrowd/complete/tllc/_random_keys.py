"""Random numbers that depend on the data, and not on names or positions.

The numbers of a task follow from its features, those of a worker or class from the tasks of their votes. Renaming, reordering,
or training beside other workers does not change them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.utils.hashing import Keys, mix_bits, to_unit_interval


def compute_task_keys(X: NDArray[np.float64]) -> Keys:
    """Compute a key for every row of features.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, n_features)
        Features.

    Returns
    -------
    ndarray of uint64, shape (n_tasks,)
        Equal for equal features.

    Examples
    --------
    >>> first, second, third = compute_task_keys(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # adding zero turns −0 into 0
    columns = mix_bits(np.arange(X.shape[1], dtype=np.uint64)) | np.uint64(1)
    with np.errstate(over="ignore"):
        return mix_bits((mix_bits(bits) * columns).sum(axis=1, dtype=np.uint64))


def compute_voter_keys(crowd: Crowd, task_keys: Keys) -> tuple[Keys, Keys]:
    """Compute a key for every worker and every class from the tasks of their votes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    task_keys : ndarray of uint64, shape (n_tasks,)
        Keys of the tasks.

    Returns
    -------
    worker_keys : ndarray of uint64, shape (n_workers,)
    class_keys : ndarray of uint64, shape (n_classes,)

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "cat"), ("t1", "cy", "dog")])
    >>> workers, classes = compute_voter_keys(crowd, np.array([3, 5], dtype=np.uint64))
    >>> bool(workers[0] == workers[2]), len(classes)
    (True, 2)
    """
    keys = []
    for codes, number in ((crowd.worker_codes, crowd.n_workers), (crowd.label, crowd.n_classes)):
        total = np.zeros(number, dtype=np.uint64)
        with np.errstate(over="ignore"):
            np.add.at(total, codes, task_keys[crowd.task])  # a sum does not depend on the order
        keys.append(mix_bits(total))
    return keys[0], keys[1]


def draw_uniform(seed: int, *keys: Any) -> NDArray[np.float64]:
    """Return a number in [0, 1) for every combination of keys.

    Parameters
    ----------
    seed : int
        Seed.
    *keys : ndarray of uint64 or int
        Keys, which broadcast against each other.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> numbers = draw_uniform(0, np.arange(1000, dtype=np.uint64))
    >>> bool(abs(numbers.mean() - 0.5) < 0.05)
    True
    """
    state = mix_bits(np.asarray(seed % 2**64, dtype=np.uint64))
    for key in keys:
        state = mix_bits(state ^ mix_bits(np.asarray(key, dtype=np.uint64)))
    return to_unit_interval(state)
