"""Crowds as Arrow tables, for writing them to files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pandas as pd
import pyarrow as pa

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.timestamps import to_timestamps
from wisecrowd.errors import InputError

#: Votes per portion of text, so that the text of all votes is never in memory at once.
_PORTION_VOTES = 1 << 20


def crowd_to_table(crowd: Crowd, *, extra_columns: Collection[str] = ()) -> pa.Table:
    """Return the votes of a crowd as an Arrow table. Ids are dictionaries, so no text is repeated.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    extra_columns : collection of {"weight", "observed", "time"}, default=()
        Columns to write even if they hold no information. Chunks of one file need the same columns.

    Returns
    -------
    pyarrow.Table
        One row per vote.

    Examples
    --------
    >>> crowd_to_table(Crowd.from_triples([("t1", "ann", "cat")])).to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    columns = {"task": pa.DictionaryArray.from_arrays(pa.array(crowd.task), _ids_to_arrow(crowd.tasks, "task"))}
    if crowd.workers is not None:
        workers = _ids_to_arrow(crowd.workers, "worker")
        columns["worker"] = pa.DictionaryArray.from_arrays(pa.array(crowd.worker), workers)
    if crowd.classes is None:
        columns["label"] = pa.array(crowd.label)
    else:
        classes = _ids_to_arrow(crowd.classes, "class")
        columns["label"] = pa.DictionaryArray.from_arrays(pa.array(crowd.label), classes)
    if "weight" in extra_columns or crowd.is_weighted:
        columns["weight"] = pa.array(crowd.weight)
    if "observed" in extra_columns or not crowd.observed.all():
        columns["observed"] = pa.array(crowd.observed)
    if "time" in extra_columns or crowd.has_times:
        columns["time"] = to_timestamps(crowd.time)
    return pa.table(columns)


def iter_text_tables(
    crowd: Crowd, format_ids: Callable[[pa.Array], pa.Array], *, extra_columns: Collection[str] = ()
) -> Iterator[pa.Table]:
    """Yield the votes of a crowd in portions, with ids as text.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    format_ids : callable
        Function from the ids of a vocabulary to text.
    extra_columns : collection of {"weight", "observed", "time"}, default=()
        Columns to write even if they hold no information.

    Yields
    ------
    pyarrow.Table
        Portion of the votes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(1, "ann", True)])
    >>> [portion.to_pylist() for portion in iter_text_tables(crowd, lambda ids: ids.cast(pa.string()))]
    [[{'task': '1', 'worker': 'ann', 'label': 'true'}]]
    """
    table = crowd_to_table(crowd, extra_columns=extra_columns)
    columns = [
        pa.DictionaryArray.from_arrays(column.chunk(0).indices, format_ids(column.chunk(0).dictionary))
        if pa.types.is_dictionary(column.type)
        else column
        for column in table.columns
    ]
    table = pa.table(columns, names=table.column_names)
    types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    schema = pa.schema(list(zip(table.column_names, types, strict=True)))
    for start in range(0, max(table.num_rows, 1), _PORTION_VOTES):
        yield table.slice(start, _PORTION_VOTES).cast(schema)


def _ids_to_arrow(index: pd.Index, noun: str) -> pa.Array:
    try:
        return pa.array(index)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the {noun} ids mix types and cannot be written ({error}); make them text first") from None
