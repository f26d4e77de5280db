"""A crowd that comes in chunks, written as it comes: votes that would not fit in memory together."""

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
from wisecrowd.io.tables.votes_table import text_portions, votes_table
from wisecrowd.utils.files import atomic_path


def write_pieces(
    chunks: Iterable[Crowd],
    path: str | os.PathLike[str],
    *,
    times: bool = False,
    spell: Callable[[pa.Array], pa.Array] | None = None,
) -> None:
    """Write chunks of a crowd to one CSV, TSV or Parquet file, with weight and observed; it appears whole or not at all.

    With ``times``, votes have a time as well, also in chunks where none is known. ``spell`` says how the texts of ids and
    labels are to be written in CSV and TSV, if not as they are.

    >>> from wisecrowd import read
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t3", "bob", "dog")])
    >>> write_pieces(crowd.shards(2), "votes.csv")
    >>> read("votes.csv") == crowd
    True
    """
    target = Path(path)
    if target.suffix not in (".csv", ".tsv", ".parquet"):
        raise UsageError(f"cannot tell from the name of {target} what to write; end it in .csv, .tsv or .parquet")
    also = ("weight", "observed", "time") if times else ("weight", "observed")
    tables = _in_parquet(chunks, also) if target.suffix == ".parquet" else _in_text(chunks, also, spell)
    try:
        first = next(tables)
    except StopIteration:
        raise UsageError("chunks of a crowd were wanted; there are none") from None
    with contextlib.ExitStack() as stack:
        unfinished = stack.enter_context(atomic_path(target))
        write = stack.enter_context(_writer(unfinished, first.schema))
        write(first)
        for table in tables:
            write(table)


def _in_text(
    chunks: Iterable[Crowd], also: Collection[str], spell: Callable[[pa.Array], pa.Array] | None
) -> Iterator[pa.Table]:
    def written(ids: pa.Array) -> pa.Array:
        text = ids.cast(pa.string())
        return text if spell is None else spell(text)

    for chunk in chunks:
        yield from text_portions(chunk, written, also=also)


def _in_parquet(chunks: Iterable[Crowd], also: Collection[str]) -> Iterator[pa.Table]:
    for chunk in chunks:
        yield votes_table(chunk, also=also)


@contextlib.contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, schema, store_schema=False, compression="zstd") as writer:
            yield writer.write_table
        return
    options = arrow_csv.WriteOptions(delimiter="," if path.suffix == ".csv" else "\t", quoting_style="needed")
    with pa.output_stream(str(path)) as stream, arrow_csv.CSVWriter(stream, schema, write_options=options) as writer:
        yield writer.write_table
