"""Looking at a fit after every epoch of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wisecrowd.nn.deep_learner import DeepLearner

_watcher: ContextVar[Callable[[DeepLearner], None] | None] = ContextVar("wisecrowd_epochs", default=None)


@contextlib.contextmanager
def each_epoch(call: Callable[[DeepLearner], None]) -> Iterator[None]:
    """After every epoch of a fit inside the block, ``call(learner)``; its ``classify(X)`` answers as of that epoch.

    For curves, and for papers that report their best epoch: a fit itself never looks.

    >>> from wisecrowd import CrowdLayer, simulate_crowd
    >>> import numpy as np
    >>> made = simulate_crowd(n_tasks=50, n_workers=5, n_classes=2)
    >>> X, shapes = np.ones((50, 2)), []
    >>> with each_epoch(lambda learner: shapes.append(learner.classify(X).shape)):
    ...     _ = CrowdLayer(epochs=2).fit(X, made.crowd)
    >>> shapes
    [(50, 2), (50, 2)]
    """
    token = _watcher.set(call)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Callable[[DeepLearner], None] | None:
    """Who is to be called after every epoch of a fit that begins here.

    >>> with each_epoch(print):
    ...     watcher() is print
    True
    """
    return _watcher.get()
