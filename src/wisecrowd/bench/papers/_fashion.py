"""Fashion-MNIST as a table: every image through filters that are learnt without labels, once, and kept.

Patches of the images, with their contrast evened out and whitened, are clustered by K-means; an image then says where
it has how much of each centre and of its opposite (Coates, Ng and Lee 2011), and principal components keep what varies.
No class is looked at, so that a small network on top of it sees of the truth only what a crowd says.
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

from wisecrowd.bench.entries import code_digest
from wisecrowd.io.datasets import get_cache_folder
from wisecrowd.utils.files import atomic_path

Rows = NDArray[np.float32]

#: The first images are to learn from, the others to test on.
N_TRAIN = 60_000
FILE = Path("fashion_mnist") / "images.npz"


def images_file() -> Path | None:
    """The images, in the first of the folders of ``WISECROWD_DATA`` that has them.

    >>> file = images_file()
    >>> file is None or file.name == "images.npz"
    True
    """
    roots = [Path(part) for part in os.environ.get("WISECROWD_DATA", "").split(os.pathsep) if part]
    return next((root / FILE for root in roots if (root / FILE).is_file()), None)


@dataclass(frozen=True)
class Filters:
    """A map from images to numbers.

    >>> Filters().n_components
    256
    """

    n_filters: int = 128
    side: int = 7
    """Of a patch."""
    margin: int = 2
    """Black pixels around an image, so that its edges are in the middle of patches too."""
    n_cells: int = 4
    """Answers are summed over that many by that many parts of the image."""
    threshold: float = 0.5
    """Of an answer that counts."""
    n_components: int = 256
    n_patches: int = 100_000

    def apply(self, images: NDArray[np.uint8], n_train: int = N_TRAIN) -> Rows:
        """Rows for images, (images, n_components); what is learnt is learnt from the first ``n_train``.

        >>> noise = np.random.default_rng(0).integers(256, size=(40, 8, 8), dtype=np.uint8)
        >>> Filters(n_filters=4, side=3, n_components=5, n_patches=200).apply(noise, n_train=30).shape
        (40, 5)
        """
        padded = np.pad(images, ((0, 0), (self.margin,) * 2, (self.margin,) * 2))
        weights, shift = self._learnt(padded[:n_train])
        answers = np.concatenate(list(self._answers(padded, weights, shift)))
        return _components(answers, n_train, self.n_components)

    def _learnt(self, images: NDArray[np.uint8]) -> tuple[Rows, Rows]:
        """Linear maps from a patch to how much it is like each centre, and what to subtract from that."""
        from sklearn.cluster import MiniBatchKMeans

        rng = np.random.default_rng(0)
        image = rng.integers(len(images), size=self.n_patches)
        row, column = rng.integers(images.shape[1] - self.side + 1, size=(2, self.n_patches))
        windows = np.lib.stride_tricks.sliding_window_view(images, (self.side, self.side), axis=(1, 2))
        patches = windows[image, row, column].reshape(self.n_patches, -1).astype(np.float32) / 255
        patches = _even(patches[patches.std(axis=1) > 0.02])  # most of an image is black
        mean = patches.mean(axis=0)
        spread, axes = np.linalg.eigh(np.cov(patches.T))
        whiten = (axes / np.sqrt(np.maximum(spread, 0) + 0.05)) @ axes.T
        means = MiniBatchKMeans(self.n_filters, random_state=0, n_init=1, max_iter=20, batch_size=4096)
        centres = means.fit((patches - mean) @ whiten).cluster_centers_
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
        weights = whiten @ centres.T
        return weights.astype(np.float32), (mean @ weights).astype(np.float32)

    def _answers(self, images: NDArray[np.uint8], weights: Rows, shift: Rows) -> Iterator[Rows]:
        """Square roots of the mean answers of each filter, and of its opposite, in each part of the image."""
        places = images.shape[1] - self.side + 1
        edges = np.linspace(0, places, self.n_cells + 1).round().astype(np.int64)[:-1]
        size = 20  # so that answers are still in the processor's cache when they are summed
        for start in range(0, len(images), size):
            part = (images[start : start + size] / 255).astype(np.float32)
            windows = np.lib.stride_tricks.sliding_window_view(part, (self.side, self.side), axis=(1, 2))
            alike = _even(windows.reshape(-1, self.side**2)) @ weights - shift
            responses = np.concatenate([alike - self.threshold, -alike - self.threshold], axis=1)
            np.maximum(responses, 0, out=responses)
            responses = responses.reshape(len(part), places, places, -1)
            responses = np.add.reduceat(np.add.reduceat(responses, edges, axis=1), edges, axis=2)
            yield np.sqrt(responses.reshape(len(part), -1) * (self.n_cells / places) ** 2)


def _even(patches: Rows) -> Rows:
    """Without their brightness, and with the same contrast, unless they have next to none."""
    patches = patches - patches.mean(axis=1, keepdims=True)
    patches /= np.sqrt(np.square(patches).mean(axis=1, keepdims=True) + np.float32(0.01))
    return patches


def _components(rows: Rows, n_train: int, number: int) -> Rows:
    mean = rows[:n_train].mean(axis=0)
    centred = rows - mean
    _, axes = np.linalg.eigh(centred[:n_train].T @ centred[:n_train])  # the largest last
    chosen = axes[:, ::-1][:, :number]
    chosen = chosen * np.where(chosen.sum(axis=0) < 0, -1, 1)  # the sign of an axis is nobody's choice
    return np.asarray(centred @ chosen, dtype=np.float32)


def fashion(filters: Filters, file: Path) -> tuple[Rows, NDArray[np.int64]]:
    """Features and classes of all images; what was computed once is in the cache (see `wisecrowd.io.datasets`)."""
    cache_file = get_cache_folder() / "features" / f"fashion_mnist-{features_digest(filters, file)}.npz"
    if not cache_file.is_file():
        with np.load(file) as images:
            X, y = filters.apply(images["X"]), images["y"].astype(np.int64)
        with atomic_path(cache_file) as partial:
            np.savez(partial, X=X, y=y)
    with np.load(cache_file) as arrays:
        return arrays["X"], arrays["y"]


@cache
def features_digest(filters: Filters, file: Path) -> str:
    """What tells these features from others: the images, the settings and the code."""
    with file.open("rb") as stream:
        images = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashlib.sha256(repr((images, astuple(filters), code_digest(__name__))).encode()).hexdigest()[:16]
