"""Callbacks after every epoch of a fit, for learning curves and benchmarks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.nn.crowd_network import CrowdNetwork

#: Function from networks and features to class probabilities.
Predict = Callable[[Sequence[CrowdNetwork], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class EpochSnapshot:
    """State of a fit after an epoch.

    Attributes
    ----------
    networks : sequence of CrowdNetwork
        Networks with the weights of this epoch.
    predict : callable
        Function from networks and features to class probabilities.

    Examples
    --------
    >>> EpochSnapshot([], lambda networks, X: X / 2).classify([[1.0, 1.0]]).tolist()
    [[0.5, 0.5]]
    """

    networks: Sequence[CrowdNetwork]
    predict: Predict

    def classify(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class probabilities with the weights of this epoch.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        return self.predict(self.networks, np.asarray(X, dtype=np.float64))


EpochCallback = Callable[[EpochSnapshot], None]

_callback: ContextVar[EpochCallback | None] = ContextVar("wisecrowd_epoch_callback", default=None)


@contextlib.contextmanager
def watch_epochs(callback: EpochCallback) -> Iterator[None]:
    """Call a function after every epoch of the fits inside a block.

    Parameters
    ----------
    callback : callable
        Function of an `EpochSnapshot`.

    Yields
    ------
    None

    Examples
    --------
    >>> from wisecrowd import CrowdLayer, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=50, n_workers=5, n_classes=2)
    >>> X, shapes = np.ones((50, 2)), []
    >>> with watch_epochs(lambda snapshot: shapes.append(snapshot.classify(X).shape)):
    ...     _ = CrowdLayer(epochs=2).fit(X, simulation.crowd)
    >>> shapes
    [(50, 2), (50, 2)]
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def get_epoch_callback() -> EpochCallback | None:
    """Return the callback of the enclosing `watch_epochs` block, if any.

    Returns
    -------
    callable or None

    Examples
    --------
    >>> with watch_epochs(print):
    ...     get_epoch_callback() is print
    True
    """
    return _callback.get()
