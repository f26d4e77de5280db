"""Writing of crowds that come in chunks and do not fit into memory together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.io.tables.crowd_tables import crowd_to_table, iter_text_tables
from wisecrowd.utils.files import atomic_path


def write_chunks(
    chunks: Iterable[Crowd],
    path: str | os.PathLike[str],
    *,
    times: bool = False,
    format_text: Callable[[pa.Array], pa.Array] | None = None,
) -> None:
    """Write chunks of a crowd to one CSV, TSV or Parquet file. The file appears complete or not at all.

    Parameters
    ----------
    chunks : iterable of Crowd
        Votes. They are written with weight and observed.
    path : path-like
        File that ends in ``.csv``, ``.tsv`` or ``.parquet``.
    times : bool, default=False
        Write the time as well, also for chunks without times.
    format_text : callable, optional
        Function that formats the text of ids and labels in CSV and TSV.

    Raises
    ------
    UsageError
        If there are no chunks, or the suffix is another one.

    Examples
    --------
    >>> from wisecrowd import read
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t3", "bob", "dog")])
    >>> write_chunks(crowd.split_tasks(2), "votes.csv")
    >>> read("votes.csv") == crowd
    True
    """
    target = Path(path)
    if target.suffix not in (".csv", ".tsv", ".parquet"):
        raise UsageError(f"the name of {target} does not imply a format; end it in .csv, .tsv or .parquet")
    columns = ("weight", "observed", "time") if times else ("weight", "observed")
    tables: Iterator[pa.Table]
    if target.suffix == ".parquet":
        tables = (crowd_to_table(chunk, extra_columns=columns) for chunk in chunks)
    else:
        tables = _iter_text_tables(chunks, columns, format_text)
    try:
        first = next(tables)
    except StopIteration:
        raise UsageError("there are no chunks to write; give at least one crowd") from None
    with contextlib.ExitStack() as stack:
        partial = stack.enter_context(atomic_path(target))
        write = stack.enter_context(_open_writer(partial, first.schema))
        write(first)
        for table in tables:
            write(table)


def _iter_text_tables(
    chunks: Iterable[Crowd], columns: Collection[str], format_text: Callable[[pa.Array], pa.Array] | None
) -> Iterator[pa.Table]:
    def format_ids(ids: pa.Array) -> pa.Array:
        text = ids.cast(pa.string())
        return text if format_text is None else format_text(text)

    for chunk in chunks:
        yield from iter_text_tables(chunk, format_ids, extra_columns=columns)


@contextlib.contextmanager
def _open_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, schema, store_schema=False, compression="zstd") as writer:
            yield writer.write_table
        return
    options = arrow_csv.WriteOptions(delimiter="," if path.suffix == ".csv" else "\t", quoting_style="needed")
    with pa.output_stream(str(path)) as stream, arrow_csv.CSVWriter(stream, schema, write_options=options) as writer:
        yield writer.write_table
