"""Choices with numbers in one short text, such as ``zipf(1.5)``, and validation of simulation parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError, check_choice

T = TypeVar("T")

#: Seed of a random generator, or the generator itself.
RandomState: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None


def parse_spec(text: str, kind: str) -> tuple[str, tuple[float, ...]]:
    """Split ``name(number, …)`` into the name and its numbers.

    Parameters
    ----------
    text : str
        Name, optionally with numbers in brackets.
    kind : str
        Meaning of the text, for messages.

    Returns
    -------
    name : str
        The name.
    numbers : tuple of float
        The numbers.

    Raises
    ------
    UsageError
        If the text has another form.

    Examples
    --------
    >>> parse_spec("beta(1.5, 3)", "activity"), parse_spec("uniform", "activity")
    (('beta', (1.5, 3.0)), ('uniform', ()))
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    try:
        if match is None:
            raise ValueError
        inside = (match[2] or "").strip()
        return match[1], tuple(float(number) for number in inside.split(",")) if inside else ()
    except ValueError:
        raise UsageError(f"{kind} must read like 'name' or 'name(0.7)'; got {text!r}") from None


def call_spec(choices: Mapping[str, Callable[..., T]], kind: str, text: str, *arguments: Any) -> T:
    """Call the function that a text names, with the numbers of the text as last arguments.

    Parameters
    ----------
    choices : mapping of str to callable
        Functions by name.
    kind : str
        Meaning of the text, for messages.
    text : str
        Name of a function, optionally with numbers in brackets.
    *arguments
        First arguments of the function.

    Returns
    -------
    object
        Result of the function.

    Raises
    ------
    UsageError
        If the name is unknown, or there are more numbers than the function takes.

    Examples
    --------
    >>> call_spec({"plus": lambda x, by=1.0: x + by}, "step", "plus(2)", 40)
    42.0
    """
    name, numbers = parse_spec(text, kind)
    check_choice(kind, name, choices)
    function = choices[name]
    parameters = inspect.signature(function).parameters
    optional = list(parameters)[len(arguments) :]
    is_variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    if len(numbers) > len(optional) and not is_variadic:
        limit = f"at most {len(optional)} ({', '.join(optional)})" if optional else "none"
        raise UsageError(f"{kind} {text!r} has {len(numbers)} numbers, but {name!r} takes {limit}")
    return function(*arguments, *numbers)


def check_fraction(name: str, value: float) -> float:
    """Raise unless a number lies between 0 and 1.

    Parameters
    ----------
    name : str
        Name of the number, for messages.
    value : float
        Fraction or probability.

    Returns
    -------
    float
        The number.

    Examples
    --------
    >>> check_fraction("accuracy", 70)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: accuracy must lie between 0 and 1; got 70
    """
    if not 0 <= value <= 1:
        raise UsageError(f"{name} must lie between 0 and 1; got {value}")
    return value


def broadcast_fractions(name: str, values: float | ArrayLike, n: int, kind: str) -> NDArray[np.float64]:
    """Broadcast fractions to one per task or worker.

    Parameters
    ----------
    name : str
        Name of the fractions, for messages.
    values : float or array-like of shape (n,)
        One number for all, or one each.
    n : int
        Number of tasks or workers.
    kind : str
        "task" or "worker", for messages.

    Returns
    -------
    ndarray of shape (n,)
        The fractions.

    Examples
    --------
    >>> broadcast_fractions("difficulty", 0.5, 3, "task").tolist()
    [0.5, 0.5, 0.5]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (n,)):
        raise UsageError(f"{name} must be one number, or one for each of the {n:,} {kind}s; got shape {array.shape}")
    if not ((array >= 0) & (array <= 1)).all():
        raise UsageError(f"{name} must lie between 0 and 1; got {array.min()} to {array.max()}")
    return np.broadcast_to(array, n)


def check_distributions(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Validate and copy probabilities that sum to one along the last axis.

    Parameters
    ----------
    values : array-like
        Probabilities.
    name : str
        Name of the array, for messages.
    shape : tuple of int or None
        Expected shape; None for any length.

    Returns
    -------
    ndarray
        Copy, normalised exactly.

    Raises
    ------
    UsageError
        If the shape differs, or the values are no distributions.

    Examples
    --------
    >>> check_distributions([0.25, 0.75], "prior", (2,)).tolist()
    [0.25, 0.75]
    """
    array = np.array(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits:
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        raise UsageError(f"{name} must have the shape ({expected}); got {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and np.allclose(array.sum(axis=-1), 1, atol=1e-6)):
        raise UsageError(
            f"{name} must hold probabilities that sum to one along its last axis; divide by that sum first"
        )
    array /= array.sum(axis=-1, keepdims=True)
    return array
