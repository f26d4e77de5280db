"""Torch modules by name, and the preparation of features for them."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    from torch import nn

    from wisecrowd.classifiers.standardiser import Standardiser

#: Names of the modules that `build_module` knows.
MODULE_NAMES = ("linear", "mlp", "cnn")
#: Numbers of channels by which an image with channels last is recognised.
CHANNEL_COUNTS = (1, 3, 4)
#: Channels of the three pairs of convolutions of "cnn".
CNN_CHANNELS = (32, 64, 128)
#: Largest height and width of the image before the dense layers of "cnn", which limits their size.
CNN_MAX_SIDE = 4
#: Largest size of a saved weight. Training does not get there, and sums of products of larger ones overflow.
MAX_WEIGHT_SIZE = 1e10
#: Rows per forward pass in prediction, to bound memory.
PREDICTION_BATCH_SIZE = 4096


def build_module(classifier: Any, shape: tuple[int, ...], n_classes: int, hidden: int, dropout: float) -> nn.Module:
    """Return an untrained module from features to one logit per class.

    Layers draw their weights from the global random stream of torch (see `fork_random_state`).

    Parameters
    ----------
    classifier : {"linear", "mlp", "cnn"}, torch.nn.Module or callable
        A module is copied and its weights are drawn again, except for frozen ones. A callable takes the shape of the
        features and the number of classes and returns a module.
    shape : tuple of int
        Shape of the features of one task.
    n_classes : int
        Number of classes.
    hidden : int
        Width of the hidden layer of "mlp" and "cnn".
    dropout : float
        Share of hidden units that dropout sets to zero.

    Returns
    -------
    torch.nn.Module

    Raises
    ------
    UsageError
        If no module can be made from ``classifier``.

    Examples
    --------
    >>> build_module("mlp", (4,), 3, hidden=8, dropout=0.5)(import_torch().zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    nn = import_torch().nn
    if isinstance(classifier, nn.Module):
        module = copy.deepcopy(classifier)
        for part in module.modules():
            is_frozen = any(not parameter.requires_grad for parameter in part.parameters(recurse=False))
            if not is_frozen and callable(reset := getattr(part, "reset_parameters", None)):
                reset()
    elif classifier == "linear":
        module = nn.Linear(shape[0], n_classes)
        nn.init.zeros_(module.weight)  # all classes are equally likely before training
        nn.init.zeros_(module.bias)
    elif classifier == "mlp":
        module = nn.Sequential(*_make_dense_layers(shape[0], n_classes, hidden, dropout))
    elif classifier == "cnn":
        module = _build_cnn(shape, n_classes, hidden, dropout)
    elif callable(classifier):
        module = copy.deepcopy(classifier(shape, n_classes))  # the function may return the same module in every call
        if not isinstance(module, nn.Module):
            raise UsageError(f"the classifier function must return a torch module; it returned {module!r}")
    else:
        raise UsageError(
            f"unknown network {classifier!r}; use {', '.join(map(repr, MODULE_NAMES))}, a torch module, or a function of "
            "(input shape, number of classes) that returns one"
        )
    return module


def _make_dense_layers(n_inputs: int, n_classes: int, hidden: int, dropout: float) -> list[Any]:
    """Return the layers of a perceptron with one hidden layer."""
    nn = import_torch().nn
    return [nn.Linear(n_inputs, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, n_classes)]


def _build_cnn(shape: tuple[int, ...], n_classes: int, hidden: int, dropout: float) -> nn.Module:
    """Return pairs of convolutions, each of which halves the image as long as it is large enough, and dense layers."""
    nn = import_torch().nn
    channels, size = shape[0], min(shape[1:])
    layers: list[Any] = []
    for width in CNN_CHANNELS:
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        if size >= 4:
            layers += [nn.MaxPool2d(2), nn.Dropout(dropout / 2)]
            size //= 2
    side = min(size, CNN_MAX_SIDE)
    layers += [nn.AdaptiveAvgPool2d(side), nn.Flatten()]
    return nn.Sequential(*layers, *_make_dense_layers(channels * side * side, n_classes, hidden, dropout))


def arrange_inputs(X: Any, classifier: Any) -> Any:
    """Return features in the layout of a module.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features.
    classifier : str or object
        Classifier as in `build_module`.

    Returns
    -------
    ndarray
        Flat rows for "linear" and "mlp", (n_tasks, channels, height, width) for "cnn", otherwise ``X``.

    Raises
    ------
    InputError
        If the features are no images and the classifier is "cnn".

    Examples
    --------
    >>> arrange_inputs(np.zeros((5, 8, 9, 3)), "cnn").shape, arrange_inputs(np.zeros((5, 8, 9)), "cnn").shape
    ((5, 3, 8, 9), (5, 1, 8, 9))
    >>> arrange_inputs(np.zeros((5, 8, 9)), "mlp").shape
    (5, 72)
    """
    if classifier in ("linear", "mlp"):
        return X.reshape(len(X), math.prod(X.shape[1:]))
    if classifier != "cnn":
        return X
    if X.ndim == 3:
        return X[:, None]
    if X.ndim != 4:
        raise InputError(
            f"the classifier 'cnn' needs images, but the features have shape {X.shape}; give rows of height x width, channels x "
            "height x width or height x width x channels, or use 'mlp'"
        )
    has_channels_last = X.shape[3] in CHANNEL_COUNTS and X.shape[1] not in CHANNEL_COUNTS
    return np.moveaxis(X, 3, 1) if has_channels_last else X


def compute_input_shape(shape: list[int], classifier: Any) -> tuple[int, ...]:
    """Return the shape of one task's features in the layout of a module.

    Parameters
    ----------
    shape : list of int
        Shape of one task's features.
    classifier : str or object
        Classifier as in `build_module`.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> compute_input_shape([8, 9, 3], "cnn"), compute_input_shape([8, 9], "mlp")
    ((3, 8, 9), (72,))
    """
    return tuple(arrange_inputs(np.empty((1, *shape)), classifier).shape[1:])


def prepare_inputs(X: Any, classifier: Any, standardiser: Standardiser | None, *, fit: bool = False) -> Any:
    """Return features in the layout of a module, standardised.

    Parameters
    ----------
    X : ndarray of shape (n_tasks, ...)
        Features.
    classifier : str or object
        Classifier as in `build_module`.
    standardiser : Standardiser or None
        Standardiser of the features, or of the channels of images; None leaves them unchanged.
    fit : bool, default False
        Whether to fit the standardiser to these features.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> from wisecrowd.classifiers.standardiser import Standardiser
    >>> prepare_inputs(np.array([[1.0], [3.0]]), "mlp", Standardiser(), fit=True).tolist()
    [[-1.0], [1.0]]
    """
    rows = arrange_inputs(np.asarray(X), classifier)
    if standardiser is None:
        return rows
    is_image = rows.ndim == 4
    channels_last = np.moveaxis(rows, 1, -1) if is_image else rows
    if fit:
        standardiser.fit(channels_last.reshape(-1, channels_last.shape[-1]) if is_image else channels_last)
    scaled = standardiser.apply(channels_last)
    return np.moveaxis(scaled, -1, 1) if is_image else scaled


def without_memory() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which tensors have shapes but no values, to check sizes before memory is allocated.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with without_memory():
    ...     module = build_module("mlp", (10**6,), 3, hidden=10**6, dropout=0.0)
    >>> tuple(module[0].weight.shape)
    (1000000, 1000000)
    """
    return import_torch().device("meta")


def check_weights(module: nn.Module, weights: Mapping[str, NDArray[Any]]) -> None:
    """Check that saved weights are those of a module, and finite.

    Parameters
    ----------
    module : torch.nn.Module
        Module, possibly made in `without_memory`.
    weights : mapping of str to ndarray
        Weights by name.

    Raises
    ------
    ValueError
        If a weight is missing, unknown, of another shape, or not finite.

    Examples
    --------
    >>> check_weights(build_module("linear", (2,), 3, hidden=1, dropout=0.0), {"bias": np.zeros(3)})
    Traceback (most recent call last):
        ...
    ValueError: the weights of the network are 'bias', 'weight'; got 'bias'
    """
    expected = module.state_dict()
    if set(weights) != set(expected):
        raise ValueError(f"the weights of the network are {preview(sorted(expected))}; got {preview(sorted(weights))}")
    for name, weight in expected.items():
        if weights[name].shape != tuple(weight.shape):
            raise ValueError(f"the weight {name} has the shape {tuple(weight.shape)}; got {weights[name].shape}")
        if weights[name].dtype.kind == "f" and not (np.abs(weights[name]) <= MAX_WEIGHT_SIZE).all():
            raise ValueError(f"the weight {name} holds NaN, infinite or huge numbers")


@contextlib.contextmanager
def explain_shape_errors(shape: tuple[int, ...]) -> Iterator[None]:
    """Raise errors of a module on rows of a shape as `UsageError`.

    Parameters
    ----------
    shape : tuple of int
        Shape of one row, for the error message.

    Yields
    ------
    None

    Raises
    ------
    UsageError
        If the block raises an error of torch.

    Examples
    --------
    >>> with explain_shape_errors((3,)):
    ...     _ = import_torch().nn.Linear(4, 2)(import_torch().zeros(1, 3))
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: the network cannot process rows of shape (3,): mat1 and mat2 shapes cannot be
    multiplied...
    """
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise UsageError(f"the network cannot process rows of shape {shape}: {str(error).splitlines()[0]}") from error
