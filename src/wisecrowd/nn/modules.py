"""Networks by name, small enough to read: from a row of features, or an image, to one logit per class."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.errors import InputError, UsageError
from wisecrowd.nn.backend import need_torch

if TYPE_CHECKING:
    from torch import nn

    from wisecrowd.classifiers.soft import Standardiser

#: Networks that have a name.
NAMES = ("linear", "mlp", "cnn")
#: How many channels an image has whose channels come last.
CHANNELS_LAST = (1, 3, 4)
#: Rows that go through a network at once when it predicts.
BLOCK = 4096


def build(choice: Any, shape: tuple[int, ...], n_classes: int, hidden: int, dropout: float) -> nn.Module:
    """An untrained network for rows of that shape; layers draw their weights from torch's global stream.

    >>> build("mlp", (4,), 3, hidden=8, dropout=0.5)(need_torch().zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    torch = need_torch()
    nn = torch.nn
    if isinstance(choice, nn.Module):
        module = copy.deepcopy(choice)
        for part in module.modules():
            frozen = any(not each.requires_grad for each in part.parameters(recurse=False))
            if not frozen and callable(reset := getattr(part, "reset_parameters", None)):
                reset()
    elif choice == "linear":
        module = nn.Linear(shape[0], n_classes)
        nn.init.zeros_(module.weight)  # no class is more likely than another before anything was batch
        nn.init.zeros_(module.bias)
    elif choice == "mlp":
        module = nn.Sequential(*_head(shape[0], n_classes, hidden, dropout))
    elif choice == "cnn":
        module = _cnn(shape, n_classes, hidden, dropout)
    elif callable(choice):
        module = copy.deepcopy(choice(shape, n_classes))  # who gives the same one every time means one of its own each
        if not isinstance(module, nn.Module):
            raise UsageError(f"the function that makes the network must give a torch module; it gave {module!r}")
    else:
        raise UsageError(
            f"a network is {', '.join(map(repr, NAMES))}, a torch module, or a function of (input shape, number of "
            f"classes) that makes one; got {choice!r}"
        )
    return module


def _head(n_inputs: int, n_classes: int, hidden: int, dropout: float) -> list[Any]:
    nn = need_torch().nn
    return [nn.Linear(n_inputs, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, n_classes)]


def _cnn(shape: tuple[int, ...], n_classes: int, hidden: int, dropout: float) -> nn.Module:
    """Pairs of convolutions with 32, 64 and 128 channels, each pair halving the image while it can be halved."""
    nn = need_torch().nn
    channels, size = shape[0], min(shape[1:])
    layers: list[Any] = []
    for width in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        if size >= 4:
            layers += [nn.MaxPool2d(2), nn.Dropout(dropout / 2)]
            size //= 2
    side = min(size, 4)  # however large the image, the first dense layer is not
    layers += [nn.AdaptiveAvgPool2d(side), nn.Flatten()]
    return nn.Sequential(*layers, *_head(channels * side * side, n_classes, hidden, dropout))


def laid_out(X: Any, choice: Any) -> Any:
    """Rows as the network takes them: flat for "linear" and "mlp", (rows, channels, height, width) for "cnn".

    >>> laid_out(np.zeros((5, 8, 9, 3)), "cnn").shape, laid_out(np.zeros((5, 8, 9)), "cnn").shape
    ((5, 3, 8, 9), (5, 1, 8, 9))
    >>> laid_out(np.zeros((5, 8, 9)), "mlp").shape
    (5, 72)
    """
    if choice in ("linear", "mlp"):
        return X.reshape(len(X), math.prod(X.shape[1:]))
    if choice != "cnn":
        return X
    if X.ndim == 3:
        return X[:, None]
    if X.ndim != 4:
        raise InputError(
            "the network 'cnn' looks at images: rows of height x width, of channels x height x width, or of height x "
            f"width x channels; got an array of shape {X.shape}. Use 'mlp' for other features"
        )
    last = X.shape[3] in CHANNELS_LAST and X.shape[1] not in CHANNELS_LAST
    return np.moveaxis(X, 3, 1) if last else X


def prepared_shape(shape: list[int], choice: Any) -> tuple[int, ...]:
    """The shape of a task's features as a network takes them.

    >>> prepared_shape([8, 9, 3], "cnn"), prepared_shape([8, 9], "mlp")
    ((3, 8, 9), (72,))
    """
    return tuple(laid_out(np.empty((1, *shape)), choice).shape[1:])


def prepared(X: Any, choice: Any, standardiser: Standardiser | None, learn: bool = False) -> Any:
    """Rows as the network takes them, each feature standardised, images by channel.

    >>> from wisecrowd.classifiers.soft import Standardiser
    >>> prepared(np.array([[1.0], [3.0]]), "mlp", Standardiser(), learn=True).tolist()
    [[-1.0], [1.0]]
    """
    rows = laid_out(np.asarray(X), choice)
    if standardiser is None:
        return rows
    by_channel = rows.ndim == 4
    last = np.moveaxis(rows, 1, -1) if by_channel else rows
    if learn:
        standardiser.fit(last.reshape(-1, last.shape[-1]) if by_channel else last)
    scaled = standardiser.apply(last)
    return np.moveaxis(scaled, -1, 1) if by_channel else scaled


@contextlib.contextmanager
def tried_on(shape: tuple[int, ...]) -> Iterator[None]:
    """A block that tries a network out: what torch says against rows of that shape is told as what it is.

    >>> with tried_on((3,)):
    ...     _ = need_torch().nn.Linear(4, 2)(need_torch().zeros(1, 3))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the network cannot take rows of shape (3,): mat1 and mat2 shapes cannot be multiplied...
    """
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise UsageError(f"the network cannot take rows of shape {shape}: {str(error).splitlines()[0]}") from error
