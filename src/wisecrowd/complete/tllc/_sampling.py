"""Chance that depends on what tasks, workers and classes are, and on none of their names or places.

A number is drawn for a task by its features, for a worker or a class by the tasks of their votes. So whoever is renamed,
or stands elsewhere, or is trained beside others, draws the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.utils.hashing import Keys, mixed, within_one


def keys_of_rows(X: NDArray[np.float64]) -> Keys:
    """A number for each row of features: the same for the same features.

    >>> first, second, third = keys_of_rows(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)  # the two zeros are one
    columns = mixed(np.arange(X.shape[1], dtype=np.uint64)) | np.uint64(1)
    with np.errstate(over="ignore"):
        return mixed((mixed(bits) * columns).sum(axis=1, dtype=np.uint64))


def keys_of_voters(crowd: Crowd, tasks: Keys) -> tuple[Keys, Keys]:
    """A number for each worker and for each class, by the tasks that they labelled and that were called so.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "cat"), ("t1", "cy", "dog")])
    >>> workers, classes = keys_of_voters(crowd, np.array([3, 5], dtype=np.uint64))
    >>> bool(workers[0] == workers[2]), len(classes)
    (True, 2)
    """
    found = []
    for codes, number in ((crowd.worker_codes, crowd.n_workers), (crowd.label, crowd.n_classes)):
        total = np.zeros(number, dtype=np.uint64)
        with np.errstate(over="ignore"):
            np.add.at(total, codes, tasks[crowd.task])  # a sum, which no order changes
        found.append(mixed(total))
    return found[0], found[1]


def uniform(seed: int, *keys: Any) -> NDArray[np.float64]:
    """A number in [0, 1) for each combination of keys.

    >>> drawn = uniform(0, np.arange(1000, dtype=np.uint64))
    >>> bool(abs(drawn.mean() - 0.5) < 0.05)
    True
    """
    state = mixed(np.asarray(seed % 2**64, dtype=np.uint64))
    for key in keys:
        state = mixed(state ^ mixed(np.asarray(key, dtype=np.uint64)))
    return within_one(state)
