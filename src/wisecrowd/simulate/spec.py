"""Choices with numbers in one short text, ``zipf(1.5)``: the same in Python and on the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wisecrowd.errors import UsageError, check_choice

T = TypeVar("T")


def parse_spec(text: str, what: str) -> tuple[str, tuple[float, ...]]:
    """Split ``name(number, …)`` into the name and its numbers.

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
        raise UsageError(f"{what} must read like 'name' or 'name(0.7)'; got {text!r}") from None


def call_spec(choices: Mapping[str, Callable[..., T]], what: str, text: str, *given: Any) -> T:
    """Call the function that a text names, with what is given first and the text's numbers after it.

    >>> call_spec({"plus": lambda x, by=1.0: x + by}, "step", "plus(2)", 40)
    42.0
    """
    name, numbers = parse_spec(text, what)
    check_choice(what, name, choices)
    function = choices[name]
    parameters = inspect.signature(function).parameters
    taken = list(parameters)[len(given) :]
    any_number = any(one.kind is one.VAR_POSITIONAL for one in parameters.values())
    if len(numbers) > len(taken) and not any_number:
        wanted = f"at most {len(taken)} ({', '.join(taken)})" if taken else "none"
        raise UsageError(f"{what} {text!r} gives {len(numbers)} numbers, but {name!r} takes {wanted}")
    return function(*given, *numbers)


def check_fraction(name: str, value: float) -> float:
    """A number that must be a share or a probability.

    >>> check_fraction("accuracy", 70)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: accuracy must lie between 0 and 1; got 70
    """
    if not 0 <= value <= 1:
        raise UsageError(f"{name} must lie between 0 and 1; got {value}")
    return value


def broadcast_fractions(name: str, values: float | ArrayLike, n: int, what: str) -> NDArray[np.float64]:
    """One share for each of ``n`` tasks or workers; a single number is meant for all.

    >>> broadcast_fractions("difficulty", 0.5, 3, "task").tolist()
    [0.5, 0.5, 0.5]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (n,)):
        raise UsageError(f"{name} must be one number, or one for each of the {n:,} {what}s; got shape {array.shape}")
    if not ((array >= 0) & (array <= 1)).all():
        raise UsageError(f"{name} must lie between 0 and 1; got {array.min()} to {array.max()}")
    return np.broadcast_to(array, n)


def check_distributions(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """An array of a shape (None: any length) whose last axis holds probabilities that sum to one.

    >>> check_distributions([0.25, 0.75], "prior", (2,)).tolist()
    [0.25, 0.75]
    """
    array = np.array(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise UsageError(f"{name} must have the shape ({wanted}); got {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all() and np.allclose(array.sum(axis=-1), 1, atol=1e-6)):
        raise UsageError(
            f"{name} must hold probabilities that sum to one along its last axis; divide by that sum first"
        )
    array /= array.sum(axis=-1, keepdims=True)
    return array
