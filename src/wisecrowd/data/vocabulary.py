"""Vocabularies: columns of ids as integer codes over sorted or given ids."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data.distinct_ids import Codes, check_id_type, factorize_ids, is_strictly_ascending
from wisecrowd.errors import InputError, preview

#: Floats from here on do not represent every whole number, so different ids may have become equal.
MIN_INEXACT_FLOAT = 2.0**53
#: Advice for columns without any value. Without these rows, nothing would be left.
EMPTY_COLUMN_ADVICE = {
    "task": 'say which column holds the task ids: task="NAME" (--task NAME)',
    "worker": "if the votes have no worker ids, say worker=False (--no-workers); otherwise say which column holds them: "
    'worker="NAME" (--worker NAME)',
    "label": 'say which column holds the labels: label="NAME" (--label NAME)',
}
#: Whole numbers as Python writes them, within 64 bits. 007 is a code.
_WHOLE_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")


def as_column(values: Any, kind: str) -> pa.ChunkedArray:
    """Convert a sequence of ids to an Arrow column.

    Parameters
    ----------
    values : sequence
        Ids of one type.
    kind : str
        Kind of the ids, for messages: "task", "worker" or "label".

    Returns
    -------
    pyarrow.ChunkedArray
        The ids.

    Raises
    ------
    InputError
        If the ids have several types.

    Examples
    --------
    >>> as_column(["a", "b"], "task").type
    DataType(string)
    """
    try:
        with check_encodable():
            column = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise InputError(
            f"the {kind} column mixes types ({error}). Convert it to one type, for example "
            f"df[{kind!r}] = df[{kind!r}].astype(str)"
        ) from None
    return pa.chunked_array([column]) if isinstance(column, pa.Array) else column


@contextlib.contextmanager
def check_encodable() -> Iterator[None]:
    """Raise InputError when text inside the block contains a lone surrogate, which UTF-8 cannot encode.

    Examples
    --------
    >>> with check_encodable():
    ...     _ = "half \\ud800".encode()
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 'half \\ud800' contains a lone surrogate, which UTF-8 cannot encode; remove it first
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError(
            f"{preview([error.object])} contains a lone surrogate, which UTF-8 cannot encode; remove it first"
        ) from None


def find_missing(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Find null and NaN entries.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Values.

    Returns
    -------
    ndarray of bool
        True where an entry is missing.

    Examples
    --------
    >>> find_missing(as_column([1.0, None, float("nan")], "label")).tolist()
    [False, True, True]
    """
    mask = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return np.asarray(mask.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)


def check_no_missing(
    column: pa.ChunkedArray, kind: str, locate: Callable[[Sequence[int]], str] = lambda rows: f"row {preview(rows)}"
) -> None:
    """Raise when a column has missing values.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Values.
    kind : str
        Kind of the values, for messages.
    locate : callable, optional
        Describes the location of rows, for example by lines of a file.

    Raises
    ------
    InputError
        With the number and the location of the missing values.

    Examples
    --------
    >>> check_no_missing(as_column(["a", None], "worker"), "worker")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 1 of 2 rows has no worker (row 1); drop such rows first: missing="drop", or --missing drop
    """
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return
    rows = np.flatnonzero(find_missing(column))
    if rows.size == len(column) > 0 and (advice := EMPTY_COLUMN_ADVICE.get(kind)):
        raise InputError(f"no row has a {kind}: the column is empty in all {len(column):,} rows; {advice}")
    if rows.size:
        verb = "has" if rows.size == 1 else "have"
        raise InputError(
            f"{rows.size:,} of {len(column):,} rows {verb} no {kind} ({locate(rows.tolist())}); "
            f'drop such rows first: missing="drop", or --missing drop'
        )


def encode_ids(
    column: pa.ChunkedArray, kind: str, vocabulary: Sequence[Any] | pd.Index | NDArray[Any] | None = None
) -> tuple[Codes, pd.Index]:
    """Encode ids as positions in a vocabulary.

    A sorted vocabulary makes the codes independent of the order of the rows, so results cannot depend on it.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Ids.
    kind : str
        Kind of the ids, for messages: "task", "worker" or "label".
    vocabulary : sequence or Index, default=None
        Vocabulary in its order; the sorted ids of the column by default.

    Returns
    -------
    codes : ndarray of int32
        Position of each id.
    vocabulary : Index
        The vocabulary.

    Raises
    ------
    InputError
        If an id is missing or not in the vocabulary.

    Examples
    --------
    >>> codes, index = encode_ids(as_column(["b", "a", "b"], "worker"), "worker")
    >>> codes.tolist(), index.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    check_no_missing(column, kind)
    codes, ids = factorize_ids(as_exact_ids(column, kind), kind)
    distinct = as_index(ids)
    if vocabulary is None:
        return codes, distinct
    index = as_vocabulary(vocabulary, kind)
    position = index.get_indexer(match_id_type(distinct, index))
    unknown = distinct[position < 0]
    if len(unknown):
        raise InputError(
            f"{len(unknown):,} {kind} ids are not in the given vocabulary of {len(index):,}: {preview(unknown)}; "
            f"the vocabulary starts with {preview(index)}. Extend it, or drop those rows"
        )
    return np.take(position.astype(np.int32), codes), index


def as_exact_ids(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Check that values can be ids, and convert whole floats to integers.

    pandas turns integer ids into floats as soon as one is missing, and 1.0 and 1 must be the same id.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Ids.
    kind : str
        Kind of the ids, for messages: "task", "worker" or "label".

    Returns
    -------
    pyarrow.ChunkedArray
        The same ids.

    Raises
    ------
    InputError
        If the type cannot be that of ids, or floats are so large that they cannot tell integers apart.

    Examples
    --------
    >>> as_exact_ids(as_column([1.0, 2.0], "task"), "task").type
    DataType(int64)
    >>> as_exact_ids(as_column([9007199254740993.0], "task"), "task")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the task column holds 9007199254740992.0 as a float, which cannot tell it from its neighbours; ...
    """
    check_id_type(column.type, kind)
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_temporal(value_type):
        _check_years(column.cast(value_type), kind)
    if not pa.types.is_floating(value_type):
        return column
    column = column.cast(pa.float32() if pa.types.is_float16(value_type) else value_type)
    largest = pc.max(pc.abs(column)).as_py()
    if largest is not None and largest >= MIN_INEXACT_FLOAT:
        raise InputError(
            f"the {kind} column holds {largest!r} as a float, which cannot tell it from its neighbours; write large ids as "
            "integers or text, without missing values or fractions among them"
        )
    try:
        return pc.cast(column, pa.int64(), safe=True)
    except pa.ArrowInvalid:
        return column


def as_id_index(column: pa.ChunkedArray, kind: str) -> pd.Index:
    """Convert a column of ids to a pandas Index. Large integers stay exact.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Ids.
    kind : str
        Kind of the ids, for messages.

    Returns
    -------
    Index
        The same ids.

    Raises
    ------
    InputError
        If an id is missing, or the values cannot be ids.

    Examples
    --------
    >>> as_id_index(as_column([9007199254740993], "task"), "task").tolist()
    [9007199254740993]
    """
    check_id_type(column.type, kind)
    rows = np.flatnonzero(find_missing(column))
    if rows.size:
        raise InputError(
            f"{rows.size:,} of {len(column):,} rows have no {kind} (row {preview(rows)}); give every row one"
        )
    return pd.Index(as_exact_ids(column, kind).to_pandas(), name=None)


def _check_years(column: pa.ChunkedArray, kind: str) -> None:
    """Raise when dates are outside the years that Python represents."""
    try:
        years = pc.min_max(pc.year(column)).as_py()
    except pa.ArrowInvalid as error:  # an unknown time zone
        raise InputError(f"the {kind} column holds invalid dates: {error}") from None
    if years["min"] is not None and not 1 <= years["min"] <= years["max"] <= 9999:
        year = years["min"] if years["min"] < 1 else years["max"]
        raise InputError(f"the {kind} column holds a date in the year {year}; expected years from 1 to 9999")


def as_index(values: Any) -> pd.Index:
    """Convert ids to a pandas Index.

    Parameters
    ----------
    values : Index, Arrow array or iterable
        Ids.

    Returns
    -------
    Index
        The same ids.

    Examples
    --------
    >>> as_index(pa.array(["x", "y"])).tolist()
    ['x', 'y']
    """
    if isinstance(values, pd.Index):
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return pd.Index(values.to_pandas())
    return pd.Index(list(values) if not hasattr(values, "__len__") else values)


def as_vocabulary(values: Iterable[Any], kind: str) -> pd.Index:
    """Validate a vocabulary that the caller passes.

    Parameters
    ----------
    values : iterable
        Ids in their order.
    kind : str
        Kind of the ids, for messages.

    Returns
    -------
    Index
        The same ids.

    Raises
    ------
    InputError
        If an id is missing, repeated, or not encodable.

    Examples
    --------
    >>> as_vocabulary(["yes", "no"], "class").tolist()
    ['yes', 'no']
    """
    with check_encodable():
        index = as_index(values)
        if index.dtype == object:  # only object arrays may contain text that has not been encoded yet
            "".join(value for value in index if isinstance(value, str)).encode()
    if index.hasnans:
        raise InputError(f"the {kind} vocabulary contains a missing value; remove it")
    if not (_is_sorted(index) or index.is_unique):
        raise InputError(
            f"the {kind} vocabulary repeats {preview(index[index.duplicated()].unique())}; list each id once"
        )
    return index


def unite_vocabularies(indexes: Sequence[pd.Index]) -> pd.Index:
    """Unite several vocabularies.

    Parameters
    ----------
    indexes : sequence of Index
        Vocabularies.

    Returns
    -------
    Index
        The first vocabulary if it contains the others; otherwise all ids, sorted.

    Examples
    --------
    >>> unite_vocabularies([pd.Index(["b", "a"]), pd.Index(["b", "a"])]).tolist()
    ['b', 'a']
    >>> unite_vocabularies([pd.Index(["b"]), pd.Index(["a"])]).tolist()
    ['a', 'b']
    """
    first = indexes[0]
    if all(other.isin(first).all() for other in indexes[1:]):
        return first
    union = first
    for other in indexes[1:]:
        union = union.append(other)
    union = union.unique()
    return union.sort_values() if union.inferred_type not in ("mixed", "mixed-integer") else union


def unite_codes(columns: Sequence[tuple[pd.Index, NDArray[Any] | None]]) -> tuple[pd.Index, NDArray[Any]]:
    """Unite vocabularies and translate the codes over each of them.

    Ids take the type of the first vocabulary: its 7 and another's "7" are the same id.

    Parameters
    ----------
    columns : sequence of (Index, ndarray of int)
        Vocabularies, and codes over them.

    Returns
    -------
    vocabulary : Index
        See `unite_vocabularies`.
    codes : ndarray of int
        All codes over it, in the order of the columns.

    Examples
    --------
    >>> union, codes = unite_codes([(pd.Index(["b"]), np.array([0])), (pd.Index(["a"]), np.array([0]))])
    >>> union.tolist(), codes.tolist()
    (['a', 'b'], [1, 0])
    """
    first = columns[0][0]
    indexes = [first, *(_take_id_type(index, first) for index, _ in columns[1:])]
    union = unite_vocabularies(indexes)
    return union, np.concatenate(
        [union.get_indexer(index)[codes] for index, (_, codes) in zip(indexes, columns, strict=True)]
    )


def _take_id_type(ids: pd.Index, vocabulary: pd.Index) -> pd.Index:
    """Return ids in the type of a vocabulary, also those that it does not have: "30" becomes 30 beside 28 and 29."""
    matched = match_id_type(ids, vocabulary)
    if vocabulary.dtype.kind not in "iu" or matched.dtype != object:
        return matched
    return pd.Index(
        [int(value) if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) else value for value in matched]
    )


def match_id_type(ids: pd.Index, vocabulary: pd.Index) -> pd.Index:
    """Convert ids to the type of a vocabulary when only one of them is text.

    A file's "7" and a vocabulary's 7 are the same id, also if pandas made it 7.0 because another id is missing.

    Parameters
    ----------
    ids : Index
        Ids to look up.
    vocabulary : Index
        Vocabulary to look them up in.

    Returns
    -------
    Index
        Ids of the vocabulary; unknown ids stay as they are.

    Examples
    --------
    >>> match_id_type(pd.Index(["7", "x"]), pd.Index([7, 8])).tolist()
    [7, 'x']
    """
    if pd.api.types.is_string_dtype(ids) == pd.api.types.is_string_dtype(vocabulary):
        # pandas would compare integers and floats as floats, in which large integers are equal.
        is_mixed = {ids.dtype.kind, vocabulary.dtype.kind} in ({"i", "f"}, {"u", "f"})
        return ids.astype(object) if is_mixed else ids
    by_text = dict(zip(_as_texts(vocabulary), vocabulary, strict=True))
    return pd.Index([by_text.get(text, text) for text in _as_texts(ids)], dtype=object, name=ids.name)


def _as_texts(ids: pd.Index) -> pd.Index:
    """Return ids as text; whole numbers that are stored as floats without a fraction."""
    if ids.dtype.kind == "f" and np.array_equal(ids, np.trunc(ids)) and (np.abs(ids) < MIN_INEXACT_FLOAT).all():
        ids = ids.astype(np.int64)
    return ids.astype(str)


def locate_ids(ids: pd.Index | None, vocabulary: pd.Index | None) -> NDArray[np.intp]:
    """Return the positions of ids in a vocabulary, whether either of them is text or numbers.

    Parameters
    ----------
    ids : Index or None
        Ids to look up.
    vocabulary : Index or None
        Vocabulary, such as the workers of a fit.

    Returns
    -------
    ndarray of shape (n_ids,)
        Positions, -1 for unknown ids.

    Examples
    --------
    >>> locate_ids(pd.Index(["28", "x"]), pd.Index([27, 28])).tolist()
    [1, -1]
    """
    assert ids is not None
    assert vocabulary is not None
    return np.asarray(vocabulary.get_indexer(match_id_type(ids, vocabulary)))


def sort_by_size(codes: Codes, classes: pd.Index) -> tuple[Codes, pd.Index]:
    """Sort ordered classes that are numbers, or texts of numbers, by size.

    Parameters
    ----------
    codes : ndarray of int32
        Class code of each vote.
    classes : Index
        Classes.

    Returns
    -------
    codes : ndarray of int32
        Codes over the sorted classes.
    classes : Index
        Classes from lowest to highest.

    Raises
    ------
    InputError
        If a class is not a number, so that its place is unknown.

    Examples
    --------
    >>> codes, classes = sort_by_size(np.array([0, 1, 2], dtype=np.int32), pd.Index(["10", "2", "3"]))
    >>> codes.tolist(), classes.tolist()
    ([2, 0, 1], ['2', '3', '10'])
    """
    size = pd.to_numeric(pd.Series(classes), errors="coerce").to_numpy(dtype=np.float64)
    unknown = classes[np.isnan(size)]
    if len(unknown):
        raise InputError(
            f"the order of the classes {preview(unknown)} is unknown; list all classes from lowest to highest: "
            'classes=["low", "middle", "high"] (--classes low,middle,high)'
        )
    order = np.argsort(size, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[codes], classes[order]


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


def _is_sorted(index: pd.Index) -> bool:
    # Most vocabularies are sorted, and checking that is far cheaper than building a hash table of all ids.
    has_order = index.dtype.kind in "iu" or isinstance(index.dtype, pd.StringDtype)
    return has_order and is_strictly_ascending(pa.array(index))
