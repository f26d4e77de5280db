"""Views of the features: transformed features and Gaussian kernels between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

import numpy as np

from wisecrowd.classifiers.soft_classifier import Rows
from wisecrowd.classifiers.standardiser import Standardiser

Transform = Literal["clipped", "roots"]

#: Number of standard deviations to which the clipped view bounds a feature.
CLIP = 3.0
#: Number of rows from which the median distance is computed.
MAX_MEDIAN_ROWS = 1000


class KernelView(NamedTuple):
    """Transform of the features and width of a Gaussian kernel.

    Attributes
    ----------
    transform : {"clipped", "roots"}
        "clipped" bounds standardised features smoothly to three standard deviations, so that outliers do not determine the
        distances. "roots" takes standardised signed square roots and scales every row to length one, which suits counts
        and activations.
    width : float
        Factor c in the kernel exp(−c ‖x − x'‖² / median), with the median squared distance of the training tasks.

    Examples
    --------
    >>> KernelView("clipped", 0.3).width
    0.3
    """

    transform: Transform
    width: float


@dataclass
class FeatureTransform:
    """Transform of one view, whose shift and scale are those of the training tasks.

    Parameters
    ----------
    name : {"clipped", "roots"}
        Transform, see `KernelView`.
    standardiser : Standardiser
        Shift and scale, set by `fit`.

    Examples
    --------
    >>> transform = FeatureTransform("clipped").fit(np.array([[0.0], [2.0]]))
    >>> transform.apply(np.array([[1.0], [1000.0]])).tolist()
    [[0.0], [3.0]]
    """

    name: Transform
    standardiser: Standardiser = field(default_factory=Standardiser)

    def fit(self, X: Rows) -> Self:
        """Compute shift and scale.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, n_features)
            Features.

        Returns
        -------
        FeatureTransform
            The transform itself.
        """
        self.standardiser.fit(_signed_root(X) if self.name == "roots" else X)
        return self

    def apply(self, X: Rows) -> Rows:
        """Return transformed features.

        Parameters
        ----------
        X : ndarray of shape (n_tasks, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_features)
        """
        if self.name == "clipped":
            return CLIP * np.tanh(self.standardiser.apply(X) / CLIP)
        rows = self.standardiser.apply(_signed_root(X))
        length = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        return rows / np.where(length > 0, length, 1.0)[:, None]


def compute_squared_distances(first: Rows, second: Rows) -> Rows:
    """Compute the squared Euclidean distances between the rows of two matrices.

    Parameters
    ----------
    first : ndarray of shape (n_first, n_features)
        Rows.
    second : ndarray of shape (n_second, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_first, n_second)

    Examples
    --------
    >>> compute_squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    distances = -2 * (first @ second.T)
    distances += np.einsum("nd,nd->n", first, first)[:, None]
    distances += np.einsum("nd,nd->n", second, second)
    return np.maximum(distances, 0, out=distances)


def compute_median_distance(rows: Rows) -> float:
    """Compute the median squared distance between different rows; 1 if it is zero.

    Parameters
    ----------
    rows : ndarray of shape (n_tasks, n_features)
        Rows; of many, every n-th is used.

    Returns
    -------
    float

    Examples
    --------
    >>> compute_median_distance(np.array([[0.0], [1.0], [3.0]]))
    4.0
    """
    sample = rows[:: -(-len(rows) // MAX_MEDIAN_ROWS)] if len(rows) else rows
    if len(sample) < 2:
        return 1.0
    distances = compute_squared_distances(sample, sample)[np.triu_indices(len(sample), 1)]
    return float(np.median(distances)) or 1.0


def _signed_root(X: Rows) -> Rows:
    return np.sign(X) * np.sqrt(np.abs(X))
