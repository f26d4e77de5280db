"""HDS: one accuracy per worker and class."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from wisecrowd.base.fields import method_class
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.priors import (
    compute_beta_log_density,
    estimate_class_accuracy,
    estimate_class_accuracy_probs,
)


@method_class
class HDS(ConfusionEM):
    """Homogeneous Dawid–Skene model: one accuracy per worker and class, errors uniform over the other classes.

    Model: π_r[k, k] = a_rk and π_r[k, l] = (1 − a_rk) / (K − 1) for l ≠ k. With S = smoothing + diagonal pseudo-votes for
    right and
    (K − 1)·smoothing for wrong labels (a Beta prior per class):

        M:  a_rk = (n_r[k, k] + S) / (n_r[k, ·] + S + (K − 1)·smoothing)

    **Two models have this name.** In print, the homogeneous Dawid–Skene model (Li and Yu 2014) has a single accuracy per
    worker, which is `OneCoin` here. The code behind tables with an "HDS" column in papers on label completion has an
    accuracy per worker and class, as this class does.

    Choose it when workers are good at some classes and poor at others, but have too few labels for the K² cells of
    `DawidSkene`. With two classes it equals `DawidSkene`.

    Examples
    --------
    >>> import numpy as np
    >>> from wisecrowd import HDS
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=4, votes_per_task=5, random_state=1)
    >>> fitted = HDS().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.8
    True
    >>> bool(np.ptp(fitted.confusion_[0, 0, 1:]) < 1e-9)  # errors are uniform
    True
    """

    references: ClassVar[tuple[str, ...]] = ("li2014error",)
    unused_labels_are_equal: ClassVar[bool] = True

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return estimate_class_accuracy_probs(tally, pairs, *self.accuracy_pseudo_votes(tally.shape[1]))

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        pseudo_votes = self.accuracy_pseudo_votes(tally.shape[1])
        return compute_beta_log_density(estimate_class_accuracy(tally, pairs, *pseudo_votes), *pseudo_votes)
