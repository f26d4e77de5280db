"""Validation of the fitted attributes of a method that was read from files.

Methods declare type, shape and range of their fitted attributes where they document them (`wisecrowd.base.fields.fitted`).
A method whose attributes agree with the declarations and with each other gives results or clear errors, never an invalid
index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.fields import fitted_fields, parameter_fields
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.vocabulary import as_vocabulary
from wisecrowd.errors import InputError, preview

#: Attributes of which every fitted method has one: what it infers.
INFERRED = ("classes_", "item_index_", "label_index_", "answer_texts_", "run_offset_")
#: Vocabularies: what their ids are called in messages, and the names of their sizes.
VOCABULARIES = {
    "classes_": ("class", "n_classes"), "task_index_": ("task", "n_tasks"), "worker_index_": ("worker", "n_workers"),
    "item_index_": ("item", "n_items"), "label_index_": ("label", "n_labels"), "task_id_index_": ("task", "n_task_ids"),
}  # fmt: skip
#: Largest number of features of a task: a row of zeros of this size is used to try a classifier.
MAX_FEATURES = 2**24
#: Largest number of dimensions of the features of a task.
MAX_DIMENSIONS = 8
#: Bytes of the widest number; wider ones differ between machines.
MAX_ITEM_BYTES = 8


def check_fitted_state(method: Any) -> None:
    """Check the fitted attributes of a method against their declarations and against each other.

    Parameters
    ----------
    method : Method
        Method, possibly not fitted.

    Raises
    ------
    ValueError
        If an attribute is missing, or has a wrong type, shape or range. `wisecrowd.base.persistence.load` turns it into an
        `InputError` that names the folder and says what to do.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")]))
    >>> check_fitted_state(fitted)
    >>> fitted.tally_ = fitted.tally_[:1]
    >>> check_fitted_state(fitted)
    Traceback (most recent call last):
        ...
    ValueError: tally_ must have the shape (n_pairs, n_classes) = (2, 2); got (1, 2)
    """
    fields = {field.name: field for field in fitted_fields(method)}
    values = {name: value for name, value in vars(method).items() if name.endswith("_")}
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise ValueError(f"{type(method).__name__} has no attribute {preview(unknown)}")
    if not values:  # a method that is not fitted
        return
    if not any(name in values for name in INFERRED if name in fields):
        raise ValueError(f"one of the attributes {preview(name for name in INFERRED if name in fields)} is missing")
    for name, value in values.items():
        _check_type(fields[name], value)
    for name, (kind, _) in VOCABULARIES.items():
        if values.get(name) is not None:
            try:
                as_vocabulary(values[name], kind)
            except InputError as error:  # the caller names the file
                raise ValueError(str(error)) from None
    sizes = _Sizes(method, values)
    for name, value in values.items():
        if isinstance(value, np.ndarray | pd.DataFrame):
            _check_shape(fields[name], value, sizes)
    for name, value in values.items():  # after all sizes are known
        if isinstance(value, np.ndarray):
            _check_range(fields[name], value, sizes)
    if "pair_worker_" in values and "pair_label_" in values and "classes_" in values:
        no_votes = np.empty(0, dtype=np.int32)
        pairs = Pairs(values["pair_worker_"], values["pair_label_"], no_votes, sizes.known["n_workers"])
        problem = pairs.find_problem(sizes.known["n_classes"])
        if problem is not None:
            raise ValueError(problem)
    method.check_restored()


def _check_type(field: Field[Any], value: Any) -> None:
    """Raise if a value does not have the type of its annotation."""
    kinds = str(field.type).split(" | ")
    if not any(_has_type(kind.strip(), value) for kind in kinds):
        shown = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise ValueError(f"{field.name} must be of the type {field.type}; got {shown}")
    if isinstance(value, list) and field.name == "feature_shape_":
        is_shape = 0 < len(value) <= MAX_DIMENSIONS and all(0 <= size <= MAX_FEATURES for size in value)
        if not is_shape or math.prod(value) > MAX_FEATURES:
            raise ValueError(
                f"feature_shape_ must be a shape of at most {MAX_FEATURES:,} features; got {preview([value])}"
            )


def _has_type(kind: str, value: Any) -> bool:
    """Return whether a value has the type that an annotation names."""
    if kind.startswith("NDArray") or kind.endswith("Array"):
        return (
            isinstance(value, np.ndarray)
            and value.dtype.kind in _array_kinds(kind)
            and value.itemsize <= MAX_ITEM_BYTES
        )
    if kind in _PLAIN_TYPES:
        accepted, refused = _PLAIN_TYPES[kind]
        return isinstance(value, accepted) and not isinstance(value, refused)
    if kind == "dict[str, float]":
        return isinstance(value, dict) and all(_has_type("float", part) for part in value.values())
    if kind.startswith("list["):
        return isinstance(value, list) and all(_has_type(kind[5:-1], part) for part in value)
    return not isinstance(value, _DATA_TYPES)


#: Types of values that JSON, arrays and tables give; parts such as classifiers have none of them.
_DATA_TYPES = (bool, int, float, str, list, dict, np.ndarray, pd.Index, pd.Series, pd.DataFrame, type(None))
#: Accepted and refused types by annotation.
_PLAIN_TYPES: dict[str, tuple[Any, Any]] = {
    "None": (type(None), ()),
    "bool": (bool, ()),
    "int": (int, bool),
    "float": ((int, float), bool),
    "str": (str, ()),
    "pd.Index": (pd.Index, ()),
    "pd.DataFrame": (pd.DataFrame, ()),
    "pd.Series": (pd.Series, ()),
}


def _array_kinds(annotation: str) -> str:
    """Return the kinds of numbers that an array may hold, as numpy's letters."""
    number = re.search(r"np\.(\w+)", annotation)
    if number is None:
        return "f" if annotation.endswith("Array") else "biuf"
    return {"f": "f", "i": "iu", "u": "iu", "b": "b"}[number[1][0]]


class _Sizes:
    """Sizes of the vocabularies, and other sizes that attributes have in common."""

    def __init__(self, method: Any, values: Mapping[str, Any]) -> None:
        self.known = {"n_workers": 1}  # without worker ids, all votes are those of one worker
        for name, (_, size) in VOCABULARIES.items():
            if values.get(name) is not None:
                self.known[size] = len(values[name])
        if "pair_worker_" in values:
            self.known["n_pairs"] = values["pair_worker_"].size
        self.parameters = {
            field.name: value
            for field in parameter_fields(method)
            if isinstance(value := getattr(method, field.name), int) and not isinstance(value, bool)
        }

    def resolve(self, dimension: int | str) -> int | None:
        """Return the size that a dimension of a declaration means, or None if it is not known yet."""
        if isinstance(dimension, int):
            return dimension
        if " * " in dimension:
            factors = [self.known.get(part, self.parameters.get(part)) for part in dimension.split(" * ")]
            return None if None in factors else math.prod(factors)  # type: ignore[arg-type]  # no None
        name, _, addend = dimension.partition(" + ")
        size = self.known.get(name)
        return None if size is None else size + int(addend or 0)

    def match(self, shape: tuple[int | str, ...], actual: tuple[int, ...]) -> bool:
        """Return whether an array has a declared shape; sizes that were not known become known.

        Parameters
        ----------
        shape : tuple of int or str
            Declared shape: numbers and names of sizes; a final "..." stands for any further dimensions.
        actual : tuple of int
            Shape of the array.

        Returns
        -------
        bool
            True if all sizes agree.
        """
        if shape[-1:] == ("...",):
            shape, actual = shape[:-1], actual[: len(shape) - 1]
        if len(shape) != len(actual):
            return False
        for dimension, size in zip(shape, actual, strict=True):
            if isinstance(dimension, str) and self.resolve(dimension) is None and dimension.isidentifier():
                self.known[dimension] = size
        return all(self.resolve(dimension) == size for dimension, size in zip(shape, actual, strict=True))


def _check_shape(field: Field[Any], value: Any, sizes: _Sizes) -> None:
    """Raise if an array or a table does not have its declared shape."""
    shape = field.metadata.get("shape")
    if shape is not None and not sizes.match(shape, value.shape):
        in_symbols = _format_shape(shape)
        in_numbers = _format_shape([name if name == "..." else sizes.resolve(name) for name in shape])
        raise ValueError(f"{field.name} must have the shape {in_symbols} = {in_numbers}; got {value.shape}")


def _format_shape(dimensions: Sequence[Any]) -> str:
    """Return a shape as Python writes it, without quotation marks."""
    return f"({', '.join(map(str, dimensions))}{',' if len(dimensions) == 1 else ''})"


def _check_range(field: Field[Any], value: Any, sizes: _Sizes) -> None:
    """Raise if codes are outside their vocabulary, or numbers are not finite."""
    codes, lowest = field.metadata.get("codes"), field.metadata.get("lowest", 0)
    if codes is not None and value.size:
        n = sizes.resolve(codes) or 0
        if not (int(value.min()) >= lowest and int(value.max()) < n):
            raise ValueError(f"{field.name} must hold codes in {lowest}…{n - 1}; got {value.min()}…{value.max()}")
    if field.metadata.get("finite") and value.dtype.kind == "f" and not np.isfinite(value).all():
        raise ValueError(f"{field.name} must hold finite numbers; some are NaN or infinite")
