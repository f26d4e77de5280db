"""Weighted means of the vectors of a task's texts, and reliabilities of workers by their distance from them (RASA, HRRASA)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wisecrowd.aggregate.text._text_distances import Array, TextPairs, pair_texts
from wisecrowd.data.text_vectors import TextVectors
from wisecrowd.data.texts import TextCrowd

#: Smallest sum of squared distances of a worker, as in crowd-kit.
MIN_SUM = 1e-5
#: Smallest local reliability of a text, by which distances are divided.
MIN_LOCAL = 1e-6
#: Numbers of vectors that are compared at once; they fit into the cache of a processor.
NUMBERS_PER_CHUNK = 1 << 16


class VectorDistances(NamedTuple):
    """Distances between the vectors of the texts of each task.

    Means of vectors need no vectors: with weights w that sum to 1, the squared distance of vector r from the weighted mean is
    Σ_s w_s d²_rs - ½ Σ_st w_s w_t d²_st.

    Parameters
    ----------
    squared : TextPairs
        Squared Euclidean distances.
    squared_norm : ndarray of shape (n_texts,)
        Squared lengths of the vectors.
    """

    squared: TextPairs
    squared_norm: Array

    def compute_angles(self) -> TextPairs:
        """Return the pairs with their cosine distance (1 - cos) / 2, between 0 and 1.

        Returns
        -------
        TextPairs
            A vector of zeros has the distance 0.5 to others.
        """
        first, second, squared = self.squared
        norms = np.sqrt(self.squared_norm[first] * self.squared_norm[second])
        product = (self.squared_norm[first] + self.squared_norm[second] - squared) / 2
        cosine = np.divide(product, norms, out=np.zeros_like(norms), where=norms > 0)
        distance = np.where(squared == 0, 0.0, np.clip((1 - cosine) / 2, 0, 1))
        return TextPairs(first, second, distance)

    def measure_from_mean(self, crowd: TextCrowd, weight: Array) -> tuple[Array, Array]:
        """Return the distances of every vector from the weighted mean of its task.

        Parameters
        ----------
        crowd : TextCrowd
            Texts.
        weight : ndarray of shape (n_texts,)
            Positive weights of the texts.

        Returns
        -------
        squared : ndarray of shape (n_texts,)
            Squared Euclidean distance.
        cosine : ndarray of shape (n_texts,)
            1 minus the cosine; 2 for a vector of zeros, which has no direction.
        """
        task, n_tasks = crowd.task, crowd.n_tasks
        share = weight / np.bincount(task, weight, n_tasks)[task]
        total = self.squared.sum_distances(share)
        spread = np.bincount(task, share * total, n_tasks) / 2
        squared = np.maximum(total - spread[task], 0.0)
        squared_mean = np.maximum(np.bincount(task, share * self.squared_norm, n_tasks) - spread, 0.0)[task]
        norms = np.sqrt(self.squared_norm * squared_mean)
        product = (self.squared_norm + squared_mean - squared) / 2
        cosine = np.divide(product, norms, out=np.full(len(norms), -1.0), where=norms > 0)
        return squared, 1 - cosine


def compare_vectors(crowd: TextCrowd, vectors: TextVectors) -> VectorDistances:
    """Return the distances between the vectors of all texts of each task.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    vectors : TextVectors
        Their vectors.

    Returns
    -------
    VectorDistances
    """
    first, second = pair_texts(crowd)
    squared = np.empty(len(first))
    size = max(NUMBERS_PER_CHUNK // vectors.vectors.shape[1], 1)
    for begin in range(0, len(first), size):
        part = slice(begin, begin + size)
        difference = vectors.vectors[vectors.code[first[part]]] - vectors.vectors[vectors.code[second[part]]]
        squared[part] = np.einsum("nd,nd->n", difference, difference)
    norm = np.einsum("nd,nd->n", vectors.vectors, vectors.vectors)
    return VectorDistances(TextPairs(first, second, squared), norm[vectors.code])


def compute_local_reliability(
    crowd: TextCrowd, distances: VectorDistances, gleu: Array, embedding_share: float
) -> Array:
    """Return the local reliability of every text, which is its mean similarity to the others of its task (HRRASA).

    The similarity of two vectors is exp(-d² / (‖e‖² ‖e'‖²)), that of two texts their GLEU score.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    distances : VectorDistances
        Distances between their vectors.
    gleu : ndarray of shape (n_pairs,)
        GLEU scores of the pairs.
    embedding_share : float
        Weight of the similarity of vectors; texts have the rest.

    Returns
    -------
    ndarray of shape (n_texts,)
        1 for a text without others.
    """
    first, second, squared = distances.squared
    norms = distances.squared_norm[first] * distances.squared_norm[second]
    # A vector of zeros is similar to none but its equals.
    exponent = np.divide(squared, norms, out=np.where(squared > 0, np.inf, 0.0), where=norms > 0)
    similarity = embedding_share * np.exp(-exponent) + (1 - embedding_share) * gleu
    n_others = crowd.votes_per_task[crowd.task] - 1
    total = TextPairs(first, second, similarity).sum_distances(np.ones(crowd.n_votes))
    return np.where(n_others > 0, np.maximum(total / np.maximum(n_others, 1), MIN_LOCAL), 1.0)


def update_reliability(
    crowd: TextCrowd, squared: Array, local: Array, has_others: NDArray[np.bool_], quantile: float
) -> Array:
    """Return the reliability of every worker: a quantile of chi-squared over the sum of squared distances from the means.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    squared : ndarray of shape (n_texts,)
        Squared distances from the means.
    local : ndarray of shape (n_texts,)
        Local reliabilities, by which squared distances are divided.
    has_others : ndarray of bool, shape (n_texts,)
        Texts that are not alone on their task; the others tell nothing about a worker and are left out.
    quantile : float
        Quantile of the chi-squared distribution with one degree of freedom per text.

    Returns
    -------
    ndarray of shape (n_workers,)
        Reliabilities with the mean 1; workers who are always alone have 1.
    """
    worker = crowd.worker[has_others]
    count = np.bincount(worker, minlength=crowd.n_workers)
    total = np.bincount(worker, (squared / local)[has_others], crowd.n_workers)
    is_shared = count > 0
    reliability = np.ones(crowd.n_workers)
    reliability[is_shared] = 2 * special.gammaincinv(count[is_shared] / 2, quantile)
    reliability[is_shared] /= np.maximum(total[is_shared], MIN_SUM)
    reliability[is_shared] /= reliability[is_shared].mean() if is_shared.any() else 1.0
    return reliability
