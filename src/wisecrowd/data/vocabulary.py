"""Columns of ids become integer codes over a sorted vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data.distinct_ids import Codes, factorize_ids, is_strictly_ascending
from wisecrowd.errors import InputError, preview


def as_column(values: Any, what: str) -> pa.ChunkedArray:
    """Turn any sequence of ids into an Arrow column, refusing what has no one type.

    >>> as_column(["a", "b"], "task").type
    DataType(string)
    """
    try:
        with check_encodable():
            column = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise InputError(
            f"the {what} column mixes types ({error}); make it one type first, for example "
            f"df[{what!r}] = df[{what!r}].astype(str)"
        ) from None
    return pa.chunked_array([column]) if isinstance(column, pa.Array) else column


@contextlib.contextmanager
def check_encodable() -> Iterator[None]:
    """Say what is wrong with text that cannot be encoded: half of a pair that stands for one character (a surrogate).

    >>> with check_encodable():
    ...     _ = "half \\ud800".encode()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 'half \\ud800' holds half a character, which no file in UTF-8 can hold; repair it first
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError(
            f"{preview([error.object])} holds half a character, which no file in UTF-8 can hold; repair it first"
        ) from None


def find_missing(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Tell which entries are null or NaN.

    >>> find_missing(as_column([1.0, None, float("nan")], "label")).tolist()
    [False, True, True]
    """
    mask = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return np.asarray(mask.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)


def check_no_missing(
    column: pa.ChunkedArray, what: str, where: Callable[[Sequence[int]], str] = lambda rows: f"row {preview(rows)}"
) -> None:
    """Raise when a column has a hole, and say in which rows, or in which lines of the file if ``where`` can tell.

    >>> check_no_missing(as_column(["a", None], "worker"), "worker")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 1 of 2 rows has no worker (row 1); drop such rows first: missing="drop", or --missing drop
    """
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return
    rows = np.flatnonzero(find_missing(column))
    if rows.size:
        verb = "has" if rows.size == 1 else "have"
        raise InputError(
            f"{rows.size:,} of {len(column):,} rows {verb} no {what} ({where(rows.tolist())}); "
            f'drop such rows first: missing="drop", or --missing drop'
        )


def encode_ids(
    column: pa.ChunkedArray, what: str, vocabulary: Sequence[Any] | pd.Index | NDArray[Any] | None = None
) -> tuple[Codes, pd.Index]:
    """Give each id its place in the vocabulary; without one, in the sorted list of the ids that occur.

    Sorting makes the codes independent of the order of rows, so that no method can depend on it.

    >>> codes, index = encode_ids(as_column(["b", "a", "b"], "worker"), "worker")
    >>> codes.tolist(), index.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    check_no_missing(column, what)
    codes, ids = factorize_ids(_whole_floats_as_integers(column), what)
    found = as_index(ids)
    if vocabulary is None:
        return codes, found
    index = as_vocabulary(vocabulary, what)
    place = index.get_indexer(match_id_type(found, index))
    unknown = found[place < 0]
    if len(unknown):
        raise InputError(
            f"{len(unknown):,} {what} ids are not in the given vocabulary of {len(index):,}: {preview(unknown)}; "
            f"the vocabulary starts with {preview(index)}. Extend it, or drop those rows"
        )
    return np.take(place.astype(np.int32), codes), index


def as_index(values: Any) -> pd.Index:
    """Ids as a pandas Index, whatever they came as.

    >>> as_index(pa.array(["x", "y"])).tolist()
    ['x', 'y']
    """
    if isinstance(values, pd.Index):
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return pd.Index(values.to_pandas())
    return pd.Index(list(values) if not hasattr(values, "__len__") else values)


def as_vocabulary(values: Iterable[Any], what: str) -> pd.Index:
    """A vocabulary given by the caller: its order is kept, repeats and holes are refused.

    >>> as_vocabulary(["yes", "no"], "class").tolist()
    ['yes', 'no']
    """
    with check_encodable():
        index = as_index(values)
        if index.dtype == object:  # it may hold any text, while that of other kinds was encoded already
            "".join(value for value in index if isinstance(value, str)).encode()
    if index.hasnans:
        raise InputError(f"the given {what} vocabulary holds a missing value; remove it")
    if not (_is_sorted(index) or index.is_unique):
        raise InputError(
            f"the given {what} vocabulary repeats {preview(index[index.duplicated()].unique())}; list each id once"
        )
    return index


def unite_vocabularies(indexes: Sequence[pd.Index]) -> pd.Index:
    """All ids of several vocabularies: the first one's order where they agree, sorted where they do not.

    >>> unite_vocabularies([pd.Index(["b", "a"]), pd.Index(["b", "a"])]).tolist()
    ['b', 'a']
    >>> unite_vocabularies([pd.Index(["b"]), pd.Index(["a"])]).tolist()
    ['a', 'b']
    """
    first = indexes[0]
    if all(other.isin(first).all() for other in indexes[1:]):
        return first
    merged = first
    for other in indexes[1:]:
        merged = merged.append(other)
    merged = merged.unique()
    return merged.sort_values() if merged.inferred_type not in ("mixed", "mixed-integer") else merged


def _whole_floats_as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # pandas turns integer ids into floats as soon as one is missing; 1.0 and 1 must be the same id.
    if not pa.types.is_floating(column.type):
        return column
    try:
        return pc.cast(column, pa.int64(), safe=True)
    except pa.ArrowInvalid:
        return column


def _is_sorted(index: pd.Index) -> bool:
    # Vocabularies mostly are, and that is far cheaper to see than a hash table of all ids is to build.
    plain = index.dtype.kind in "iu" or isinstance(index.dtype, pd.StringDtype)
    return plain and is_strictly_ascending(pa.array(index))


def match_id_type(found: pd.Index, vocabulary: pd.Index) -> pd.Index:
    """Ids ready to be looked up: a file's "7" and a vocabulary's 7 are the same id when only one side is text.

    >>> match_id_type(pd.Index(["7", "x"]), pd.Index([7, 8])).tolist()
    [7, 'x']
    """
    if pd.api.types.is_string_dtype(found) == pd.api.types.is_string_dtype(vocabulary):
        return found
    by_text = dict(zip(vocabulary.astype(str), vocabulary, strict=True))
    return pd.Index([by_text.get(text, text) for text in found.astype(str)], dtype=object)


def check_no_fractions(classes: pd.Index) -> None:
    """Raise when classes are fractional numbers.

    Parameters
    ----------
    classes : Index
        Distinct labels.

    Raises
    ------
    InputError
        If the classes are floating-point numbers.

    Examples
    --------
    >>> check_no_fractions(pd.Index([1, 2]))
    """
    if classes.dtype.kind == "f":
        raise InputError(
            f"the labels are fractional numbers ({preview(classes)}), which cannot be classes. Read them as numbers with "
            "numeric=True (--numeric), or convert them to text if they are names"
        )
