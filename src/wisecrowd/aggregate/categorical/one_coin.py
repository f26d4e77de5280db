"""The one-coin model: a worker is right with one probability, whatever the class."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from wisecrowd.aggregate.categorical._spectral import SpectralStart
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Pairs


@method_class
class OneCoin(SpectralStart):
    """Every worker is right with one probability, and errs evenly over the other classes.

    Model: y_ir = z_i with probability a_r, otherwise any other class alike. With S = smoothing + diagonal pseudo-votes
    for right and (K − 1)·smoothing for wrong answers (a Beta prior):

        M:  a_r = (Σ_i q_i(y_ir) + S) / (n_r + S + (K − 1)·smoothing)

    Choose it when workers have few labels each or classes are many; take `DawidSkene` when workers confuse particular
    classes or lean to one of them. The class prior is uniform by default: an estimated one can run away with the answer
    (accuracy .19 against .48 on the relevance judgements of TREC 2010, where classes are unequal and workers biased).

    >>> from wisecrowd import Crowd, OneCoin
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> OneCoin().fit(crowd).workers_["accuracy"].round(2).to_dict()
    {'ann': 0.99, 'bad': 0.12, 'bob': 0.99}
    """

    references: ClassVar[tuple[str, ...]] = ("li2014error", "demartini2012zencrowd")
    spectral_model: ClassVar[Literal["confusion", "one-coin"]] = "one-coin"

    prior: Literal["estimate", "uniform"] | Any = parameter(
        default="uniform", help="class prior: 'estimate', 'uniform', or one number per class"
    )

    def _accuracy(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        right_before, total_before = self._pseudo_votes(tally.shape[1])
        right = pairs.by_worker(tally[np.arange(len(pairs)), pairs.label].astype(np.float64)) + right_before
        total = pairs.by_worker(tally.sum(axis=1, dtype=np.float64)) + total_before
        return np.divide(right, total, out=np.full_like(right, 1 / tally.shape[1]), where=total > 0)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        n_classes = tally.shape[1]
        accuracy = self._accuracy(tally, pairs)[pairs.worker].astype(tally.dtype)
        label_probs = np.repeat(((1 - accuracy) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
        label_probs[np.arange(len(pairs)), pairs.label] = accuracy
        return label_probs

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """log Beta density of the accuracies, up to a constant."""
        right, total = self._pseudo_votes(tally.shape[1])
        accuracy = self._accuracy(tally, pairs)
        return float((xlogy(right, accuracy) + xlog1py(total - right, -accuracy)).sum())
