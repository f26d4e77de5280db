"""HDS: one accuracy per worker and class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from wisecrowd.base.fields import method_class
from wisecrowd.data.crowd import Pairs
from wisecrowd.em.confusion import ConfusionEM


@method_class
class HDS(ConfusionEM):
    """Every worker has one accuracy per class, and errs evenly over the other classes.

    Model: π_r[k, k] = a_rk and π_r[k, l] = (1 − a_rk) / (K − 1) for l ≠ k. With S = smoothing + diagonal pseudo-votes for
    right and (K − 1)·smoothing for wrong answers (a Beta prior per class):

        M:  a_rk = (n_r[k, k] + S) / (n_r[k, ·] + S + (K − 1)·smoothing)

    **Two models go by this name.** In print, the homogeneous Dawid-Skene model (Li and Yu 2014) has a single accuracy per
    worker; that is `OneCoin` here. The code behind tables with an "HDS" column in papers on label completion gives every
    worker an accuracy per class, and that is this class. On bluebirds the two are .722 (.583 with an estimated prior)
    and .898.

    Choose it when workers are good at some classes and poor at others, but have too few labels for the K² cells of
    `DawidSkene`. With two classes it is `DawidSkene`: a row of two has nothing left to tie.

    >>> from wisecrowd import HDS
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=4, votes_per_task=5, random_state=1)
    >>> fitted = HDS().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.8
    True
    >>> bool(np.ptp(fitted.confusion_[0, 0, 1:]) < 1e-9)  # errors are even
    True
    """

    references: ClassVar[tuple[str, ...]] = ("li2014error",)

    def _accuracy(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        """a_rk, (workers, classes)."""
        n_classes = tally.shape[1]
        right_before, total_before = self._pseudo_votes(n_classes)
        right = np.full((pairs.n_workers, n_classes), right_before)
        right[pairs.worker, pairs.label] += tally[np.arange(len(pairs)), pairs.label]
        total = pairs.by_worker(tally).astype(np.float64) + total_before
        # Without pseudo-votes nothing is known of a class that a worker never met: then any answer alike.
        return np.divide(right, total, out=np.full_like(right, 1 / n_classes), where=total > 0)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        accuracy = self._accuracy(tally, pairs).astype(tally.dtype)
        label_probs = ((1 - accuracy) / max(tally.shape[1] - 1, 1))[pairs.worker]
        label_probs[np.arange(len(pairs)), pairs.label] = accuracy[pairs.worker, pairs.label]
        return label_probs

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """log Beta density of all accuracies, up to a constant."""
        right, total = self._pseudo_votes(tally.shape[1])
        accuracy = self._accuracy(tally, pairs)
        return float((xlogy(right, accuracy) + xlog1py(total - right, -accuracy)).sum())
