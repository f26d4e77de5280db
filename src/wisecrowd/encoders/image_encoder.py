"""Default encoder of images: small pixels, colours and edges."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.errors import InputError, MissingExtra, UsageError

#: Side in pixels of the square that every image is scaled to.
SIDE = 64
#: Side in pixels of the thumbnail whose pixels are features.
PIXEL_SIDE = 8
#: Cells per side, and orientations, of the histograms of edges.
CELLS, ORIENTATIONS = 4, 8
#: Levels of each of red, green and blue in the histogram of colours.
COLOUR_LEVELS = 4
#: Largest image that is decoded, in pixels. A small file can declare billions.
MAX_PIXELS = 64_000_000


@dataclass
class ImageEncoder(FeatureEncoder):
    """Encoder of images by a tiny thumbnail, a histogram of colours and histograms of edge directions [1]_.

    The values are standardised and reduced by principal components. It sees colours and coarse shapes, not things: a
    pretrained network is far better.

    Parameters
    ----------
    n_features : int, default=64
        Number of features; fewer if there are fewer images.
    random_state : int, default=0
        Seed of the decomposition.
    mean, scale : ndarray of shape (n_values,), optional
        Mean and standard deviation of the values; set by `fit`.
    components : ndarray of shape (n_features, n_values), optional
        Principal components.

    References
    ----------
    .. [1] N. Dalal and B. Triggs. Histograms of oriented gradients for human detection. CVPR 2005.

    Examples
    --------
    >>> ImageEncoder().accepts(["photos/cat.jpg"])
    True
    """

    kind: ClassVar[str] = "image"

    n_features: int = 64
    random_state: int = 0
    mean: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None
    components: NDArray[np.float64] | None = None

    def fit(self, images: Sequence[Any] | pd.Series) -> Self:
        """Compute the principal components of training images.

        Parameters
        ----------
        images : sequence of path-like or Series
            Paths of the training images.

        Returns
        -------
        ImageEncoder
            The encoder itself.
        """
        from sklearn.utils.extmath import randomized_svd

        if self.n_features < 1:
            raise UsageError(f"n_features must be 1 or more; got {self.n_features}")
        values = describe_images(images)
        self.mean, spread = values.mean(axis=0), values.std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        rows = (values - self.mean) / self.scale
        _, _, components = randomized_svd(rows, min(self.n_features, *rows.shape), random_state=self.random_state)
        self.components = np.ascontiguousarray(components)
        return self

    def accepts(self, X: Any) -> bool:
        """Return whether these are paths.

        Parameters
        ----------
        X : object
            Argument of ``predict``.

        Returns
        -------
        bool
        """
        return is_sequence_of_paths(X)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the features of images.

        Parameters
        ----------
        X : sequence of path-like or Series
            Paths of the images.

        Returns
        -------
        ndarray of shape (n_images, n_features)
        """
        if self.mean is None or self.scale is None or self.components is None:
            raise UsageError("this ImageEncoder is not fitted yet; call fit first")
        rows = (describe_images(X) - self.mean) / self.scale
        return np.asarray(rows @ self.components.T)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return mean, scale and components."""
        arrays = {"mean": self.mean, "scale": self.scale, "components": self.components}
        return {"kind": np.array(self.kind)} | {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def restore(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder of saved arrays.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Result of `arrays`.

        Returns
        -------
        ImageEncoder

        Raises
        ------
        ValueError
            If the arrays contradict each other.
        """
        mean, scale, components = arrays["mean"], arrays["scale"], arrays["components"]
        if mean.ndim != 1 or scale.shape != mean.shape or components.ndim != 2 or components.shape[1] != mean.size:
            raise ValueError("mean, scale and components of the encoder contradict each other")
        if not all(np.isfinite(array).all() for array in (mean, scale, components)) or not (scale > 0).all():
            raise ValueError("mean, scale or components of the encoder are invalid")
        return cls(n_features=len(components), mean=mean, scale=scale, components=components)


def is_sequence_of_paths(X: Any) -> bool:
    """Return whether an argument is a sequence of paths.

    Parameters
    ----------
    X : object
        Argument of ``predict``.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_sequence_of_paths([Path("cat.jpg")]), is_sequence_of_paths(np.zeros((1, 2)))
    (True, False)
    """
    if isinstance(X, str | Path | pd.DataFrame) or not hasattr(X, "__len__") or np.ndim(X) != 1:
        return False
    return len(X) > 0 and all(isinstance(value, str | os.PathLike) for value in X)


def describe_images(images: Sequence[Any] | pd.Series) -> NDArray[np.float64]:
    """Return pixels, colours and edges of images.

    Parameters
    ----------
    images : sequence of path-like or Series
        Paths.

    Returns
    -------
    ndarray of shape (n_images, n_values)

    Raises
    ------
    InputError
        If an image cannot be read.
    """
    rows = [_describe_pixels(np.asarray(open_image(path, SIDE), dtype=np.float64) / 255) for path in images]
    return np.stack(rows) if rows else np.empty((0, 0))


def open_image(path: Any, side: int) -> Any:
    """Return an image as a square of colours.

    Parameters
    ----------
    path : path-like
        File.
    side : int
        Side of the square in pixels.

    Returns
    -------
    PIL.Image.Image

    Raises
    ------
    InputError
        If the file is not an image, is damaged or is too large.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtra("report", "features of images") from None
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InputError(
                    f"{path} has {image.width:,} x {image.height:,} pixels; at most {MAX_PIXELS:,} are read. Scale it down"
                )
            return image.convert("RGB").resize((side, side))
    except FileNotFoundError:
        raise InputError(f"there is no image {path}; check the folder of images and the task ids") from None
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise InputError(
            f"{path} cannot be read as an image ({error}); convert it to PNG or JPEG, or remove it"
        ) from None


def _describe_pixels(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of one image, of shape (side, side, 3) and between 0 and 1."""
    step = SIDE // PIXEL_SIDE
    small = pixels.reshape(PIXEL_SIDE, step, PIXEL_SIDE, step, 3).mean(axis=(1, 3))
    levels = np.minimum((pixels * COLOUR_LEVELS).astype(np.int64), COLOUR_LEVELS - 1)
    colour = levels @ np.array([COLOUR_LEVELS**2, COLOUR_LEVELS, 1])
    colours = np.bincount(colour.ravel(), minlength=COLOUR_LEVELS**3) / colour.size
    vertical, horizontal = np.gradient(pixels.mean(axis=2))
    strength = np.hypot(vertical, horizontal)
    direction = np.arctan2(vertical, horizontal) % np.pi
    orientation = np.minimum((direction / np.pi * ORIENTATIONS).astype(np.int64), ORIENTATIONS - 1)
    cell = np.arange(SIDE) * CELLS // SIDE
    place = (cell[:, None] * CELLS + cell[None, :]) * ORIENTATIONS + orientation
    edges = np.bincount(place.ravel(), weights=strength.ravel(), minlength=CELLS**2 * ORIENTATIONS)
    return np.concatenate([small.ravel(), np.sqrt(colours), np.sqrt(edges / max(float(edges.sum()), 1e-12))])
