"""Features of the Fashion-MNIST images, computed without labels and cached.

K-means clusters contrast-normalised, whitened patches of the images. The features of an image are the responses of the
cluster centres and of their negatives, pooled over the parts of the image (Coates, Ng and Lee 2011) and reduced by
principal components. No class is used, so a network on these features learns the truth only from the votes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wisecrowd.bench.code_digest import code_digest
from wisecrowd.io.datasets import get_cache_folder
from wisecrowd.utils.files import atomic_path

Rows = NDArray[np.float32]

#: Number of training images; the images after them are test images.
N_TRAIN = 60_000
FILE = Path("fashion_mnist") / "images.npz"


def find_images() -> Path | None:
    """Return the file with the images from the first folder of ``WISECROWD_DATA`` that has it.

    >>> file = find_images()
    >>> file is None or file.name == "images.npz"
    True
    """
    roots = [Path(part) for part in os.environ.get("WISECROWD_DATA", "").split(os.pathsep) if part]
    return next((root / FILE for root in roots if (root / FILE).is_file()), None)


@dataclass(frozen=True)
class Filters:
    """Unsupervised feature extractor for images.

    >>> Filters().n_components
    256
    """

    n_filters: int = 128
    side: int = 7
    """Side of a patch in pixels."""
    margin: int = 2
    """Number of black pixels around an image, so that patches cover its edges."""
    n_cells: int = 4
    """Number of pooling cells along each side of the image."""
    threshold: float = 0.5
    """Threshold of a response."""
    n_components: int = 256
    n_patches: int = 100_000

    def apply(self, images: NDArray[np.uint8], n_train: int = N_TRAIN) -> Rows:
        """Compute the features of images.

        Parameters
        ----------
        images : ndarray of shape (n_images, height, width)
            Grey values.
        n_train : int, default=60000
            Number of images from which the filters and the components are learned.

        Returns
        -------
        ndarray of shape (n_images, n_components)

        Examples
        --------
        >>> noise = np.random.default_rng(0).integers(256, size=(40, 8, 8), dtype=np.uint8)
        >>> Filters(n_filters=4, side=3, n_components=5, n_patches=200).apply(noise, n_train=30).shape
        (40, 5)
        """
        padded = np.pad(images, ((0, 0), (self.margin,) * 2, (self.margin,) * 2))
        weights, shift = self._learn_filters(padded[:n_train])
        responses = np.concatenate(list(self._compute_responses(padded, weights, shift)))
        return _project_to_components(responses, n_train, self.n_components)

    def _learn_filters(self, images: NDArray[np.uint8]) -> tuple[Rows, Rows]:
        """Return the linear map from a patch to its responses, and the offset to subtract."""
        from sklearn.cluster import MiniBatchKMeans

        rng = np.random.default_rng(0)
        image = rng.integers(len(images), size=self.n_patches)
        row, column = rng.integers(images.shape[1] - self.side + 1, size=(2, self.n_patches))
        windows = np.lib.stride_tricks.sliding_window_view(images, (self.side, self.side), axis=(1, 2))
        patches = windows[image, row, column].reshape(self.n_patches, -1).astype(np.float32) / 255
        patches = _normalize_contrast(patches[patches.std(axis=1) > 0.02])  # without the black background
        mean = patches.mean(axis=0)
        spread, axes = np.linalg.eigh(np.cov(patches.T))
        whiten = (axes / np.sqrt(np.maximum(spread, 0) + 0.05)) @ axes.T
        means = MiniBatchKMeans(self.n_filters, random_state=0, n_init=1, max_iter=20, batch_size=4096)
        centres = means.fit((patches - mean) @ whiten).cluster_centers_
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        weights = whiten @ centres.T
        return weights.astype(np.float32), (mean @ weights).astype(np.float32)

    def _compute_responses(self, images: NDArray[np.uint8], weights: Rows, shift: Rows) -> Iterator[Rows]:
        """Yield square roots of the mean responses of each filter and its negative in each pooling cell."""
        n_positions = images.shape[1] - self.side + 1
        edges = np.linspace(0, n_positions, self.n_cells + 1).round().astype(np.int64)[:-1]
        size = 20  # images at a time, so that the responses stay in the processor cache
        for start in range(0, len(images), size):
            part = (images[start : start + size] / 255).astype(np.float32)
            windows = np.lib.stride_tricks.sliding_window_view(part, (self.side, self.side), axis=(1, 2))
            similarity = _normalize_contrast(windows.reshape(-1, self.side**2)) @ weights - shift
            responses = np.concatenate([similarity - self.threshold, -similarity - self.threshold], axis=1)
            np.maximum(responses, 0, out=responses)
            responses = responses.reshape(len(part), n_positions, n_positions, -1)
            responses = np.add.reduceat(np.add.reduceat(responses, edges, axis=1), edges, axis=2)
            yield np.sqrt(responses.reshape(len(part), -1) * (self.n_cells / n_positions) ** 2)


def _normalize_contrast(patches: Rows) -> Rows:
    """Subtract the mean brightness and divide by the contrast of every patch."""
    patches = patches - patches.mean(axis=1, keepdims=True)
    patches /= np.sqrt(np.square(patches).mean(axis=1, keepdims=True) + np.float32(0.01))
    return patches


def _project_to_components(rows: Rows, n_train: int, n_components: int) -> Rows:
    """Project rows to the principal components of the training rows."""
    mean = rows[:n_train].mean(axis=0)
    centred = rows - mean
    _, axes = np.linalg.eigh(centred[:n_train].T @ centred[:n_train])  # in ascending order
    chosen = axes[:, ::-1][:, :n_components]
    chosen = chosen * np.where(chosen.sum(axis=0) < 0, -1, 1)  # the sign of an eigenvector is arbitrary
    return np.asarray(centred @ chosen, dtype=np.float32)


@dataclass(frozen=True)
class PixelComponents:
    """Principal components of the pixels, in place of filters.

    >>> PixelComponents().n_components
    256
    """

    n_components: int = 256

    def apply(self, images: NDArray[np.uint8], n_train: int = N_TRAIN) -> Rows:
        """Compute the features of images.

        Parameters
        ----------
        images : ndarray of shape (n_images, height, width)
            Grey values.
        n_train : int, default=60000
            Number of images from which the components are learned.

        Returns
        -------
        ndarray of shape (n_images, n_components)

        Examples
        --------
        >>> noise = np.random.default_rng(0).integers(256, size=(40, 8, 8), dtype=np.uint8)
        >>> PixelComponents(5).apply(noise, n_train=30).shape
        (40, 5)
        """
        rows = (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32)
        return _project_to_components(rows, n_train, self.n_components)


def load_fashion(filters: Filters | PixelComponents, file: Path) -> tuple[Rows, NDArray[np.int64]]:
    """Return the features and the classes of all images, from the cache if it has them.

    Parameters
    ----------
    filters : Filters or PixelComponents
        Feature extractor.
    file : Path
        File with the images.

    Returns
    -------
    X : ndarray of shape (n_images, n_components)
        Features.
    y : ndarray of shape (n_images,)
        Classes.
    """
    cache_file = get_cache_folder() / "features" / f"fashion_mnist-{compute_features_digest(filters, file)}.npz"
    if not cache_file.is_file():
        with np.load(file) as images:
            X, y = filters.apply(images["X"]), images["y"].astype(np.int64)
        with atomic_path(cache_file) as partial:
            np.savez(partial, X=X, y=y)
    with np.load(cache_file) as arrays:
        return arrays["X"], arrays["y"]


@cache
def compute_features_digest(filters: Filters | PixelComponents, file: Path) -> str:
    """Return a digest of the images, the settings and the code.

    Parameters
    ----------
    filters : Filters or PixelComponents
        Feature extractor.
    file : Path
        File with the images.

    Returns
    -------
    str
    """
    with file.open("rb") as stream:
        images = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashlib.sha256(repr((images, astuple(filters), code_digest(type(filters)))).encode()).hexdigest()[:16]
