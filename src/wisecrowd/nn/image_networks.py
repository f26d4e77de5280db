"""Networks of papers for images, for the parameter ``classifier`` of learners."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import InputError
from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    from torch import nn

#: Smallest side of an image that four convolutions without padding, each halved by pooling, leave with a pixel.
MIN_SIDE_WITHOUT_PADDING = 46


@dataclass(frozen=True)
class FourConvolutions:
    """Network of Xu et al. (2019), appendix A.2: four convolutions with pooling, batch norm and two dense layers.

    The widths are those of the authors' program (32, 32, 64 and 64 channels, 128 hidden units), and batch norm follows the fourth
    convolution as in the text; in the program it follows the first. Images of less than 46 pixels, for which the paper's network is
    too deep, are padded before each convolution.

    Parameters
    ----------
    channels : tuple of int, default=(32, 32, 64, 64)
        Numbers of channels of the convolutions.
    hidden : int, default=128
        Width of the dense layer.
    dropout : float, default=0.5
        Share of its units that dropout sets to zero.

    Examples
    --------
    >>> network = FourConvolutions()((3, 150, 150), 2)
    >>> network[-1].out_features
    2
    """

    channels: tuple[int, ...] = (32, 32, 64, 64)
    hidden: int = 128
    dropout: float = 0.5

    def __call__(self, shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """Return the module.

        Parameters
        ----------
        shape : tuple of int
            Shape of one image: (height, width), (channels, height, width), or (pixels,) of a square one.
        n_classes : int
            Number of classes.

        Returns
        -------
        torch.nn.Module

        Raises
        ------
        InputError
            If the features are no images.
        """
        torch = import_torch()
        nn = torch.nn
        arrange, n_channels, side = _arrange_image(shape)
        padding = 0 if side >= MIN_SIDE_WITHOUT_PADDING else 1
        layers: list[Any] = [arrange]
        for width in self.channels:
            layers += [nn.Conv2d(n_channels, width, 3, padding=padding), nn.ReLU()]
            side, n_channels = side - 2 + 2 * padding, width
            if side >= 2:
                layers.append(nn.MaxPool2d(2))
                side //= 2
        layers += [nn.BatchNorm2d(n_channels), nn.Flatten()]
        with torch.no_grad():
            n_inputs = nn.Sequential(*layers).eval()(torch.zeros(1, *shape)).shape[1]
        dense = [nn.Linear(n_inputs, self.hidden), nn.ReLU(), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, *dense, nn.Linear(self.hidden, n_classes))


def _arrange_image(shape: tuple[int, ...]) -> tuple[Any, int, int]:
    """Return a layer that puts channels first, the number of channels and the shorter side."""
    nn = import_torch().nn
    if len(shape) == 1 and math.isqrt(shape[0]) ** 2 == shape[0]:
        side = math.isqrt(shape[0])
        return nn.Unflatten(1, (1, side, side)), 1, side
    if len(shape) == 2:
        return nn.Unflatten(1, (1, shape[0])), 1, min(shape)
    if len(shape) == 3 and shape[0] in (1, 3, 4):
        return nn.Identity(), shape[0], min(shape[1:])
    raise InputError(
        f"the features have shape {shape}, which is no image; give (height, width), (channels, height, width) or the pixels of a "
        "square image"
    )
