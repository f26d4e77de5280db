"""Posterior of tasks from the class probabilities of a network and the votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.classifier_prior import PROBABILITY_FLOOR, e_step
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.priors import CrowdPrior, estimate_crowd_prior, shrink_to_crowd

#: Number of EM passes over confusion matrices and posterior, after which both have settled; the network stays fixed.
EM_PASSES = 5

#: Function of (pairs, tally, prior) that returns P(label of the pair given class), (n_pairs, n_classes).
PairLabelProbs = Callable[[Pairs, NDArray[np.float64], CrowdPrior], NDArray[Any]]


class DeepPosterior(NamedTuple):
    """Posterior of the tasks, and the strength of the prior on confusion matrices.

    Attributes
    ----------
    probs : ndarray of shape (n_tasks, n_classes)
        Posterior.
    strength : float
        Number of votes that the confusion matrix of the crowd is worth.

    Examples
    --------
    >>> DeepPosterior(np.array([[0.9, 0.1]]), strength=2.0).strength
    2.0
    """

    probs: NDArray[np.float64]
    strength: float


def shrink_pair_label_probs(pairs: Pairs, tally: NDArray[np.float64], prior: CrowdPrior) -> NDArray[Any]:
    """Return label probabilities from expected counts, shrunk toward the confusion matrix of the crowd.

    Parameters
    ----------
    pairs : Pairs
        Worker and label of every row.
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    prior : CrowdPrior
        Confusion matrix of the crowd and its strength.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0]), np.array([0]), np.empty(0, dtype=np.int32), 1)
    >>> prior = CrowdPrior(np.array([[0.5, 0.5], [0.5, 0.5]]), 2.0)
    >>> shrink_pair_label_probs(pairs, np.array([[2.0, 0.0]]), prior).tolist()
    [[0.75, 0.5]]
    """
    return shrink_to_crowd(tally, pairs, *prior)


def compute_deep_posterior(
    class_probs: NDArray[np.float64],
    crowd: Crowd,
    gold: NDArray[np.int32] | None,
    pair_label_probs: PairLabelProbs = shrink_pair_label_probs,
) -> DeepPosterior:
    """Combine the class probabilities of a network with the votes.

    The posterior is q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]. The confusion matrices π are estimated by a few EM passes
    with f fixed.

    Parameters
    ----------
    class_probs : ndarray of shape (n_tasks, n_classes)
        Class probabilities f_k(x_i).
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,) or None
        Known classes, −1 where unknown.
    pair_label_probs : callable, optional
        Function of (pairs, tally, prior) that returns the label probabilities of the pairs; by default
        `shrink_pair_label_probs`.

    Returns
    -------
    DeepPosterior

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(4) for worker in range(3)])
    >>> compute_deep_posterior(np.full((4, 2), 0.5), crowd, np.array([0, 1, -1, -1])).probs.argmax(axis=1).tolist()
    [0, 1, 0, 1]
    """
    prior_probs = np.maximum(class_probs, PROBABILITY_FLOOR)
    prior_probs /= prior_probs.sum(axis=1, keepdims=True)
    posterior = apply_gold(prior_probs, gold)
    for _ in range(EM_PASSES):
        tally = kernels.tally(crowd.layout, posterior)
        prior = estimate_crowd_prior(tally, crowd.pairs)
        label_probs = pair_label_probs(crowd.pairs, tally, prior)
        posterior, _ = e_step(crowd.layout, prior_probs, label_probs, gold)
    return DeepPosterior(posterior, prior.strength)
