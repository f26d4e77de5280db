"""The rows of the files that shards are made of, a batch at a time: in one set of types, numbered, without holes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data._building import Missing
from wisecrowd.data.vocabulary import missing_mask
from wisecrowd.errors import InputError
from wisecrowd.io.formats import about
from wisecrowd.io.sharding._inputs import TEXT, Source
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.numerals import numbers
from wisecrowd.io.tables.records import lines_of_records, refuse_open_quote

_BLOCK = 1 << 23  # bytes of text at a time; a row must fit into them
_BATCH = 1 << 17  # rows of Parquet at a time


class Stream:
    """The rows of several files, one after the other: in one set of types, numbered, without holes.

    It counts as it goes: ``rows`` read and ``votes`` kept, and whether some vote is ``weighted`` and all tasks are ``whole``
    numbers. What goes wrong is kept as ``failure``, for an engine that reads it passes on no more than a text.

    >>> from pathlib import Path
    >>> from wisecrowd.io.sharding._inputs import common_kinds, look
    >>> from wisecrowd.io import Options
    >>> _ = Path("votes.csv").write_text("task,worker,label\\nt1,ann,cat\\nt2,bob,\\n")
    >>> source = look("votes.csv", Options())
    >>> stream = Stream([source], common_kinds([source]), "drop", threads=False)
    >>> [batch.to_pylist() for batch in stream.reader()]
    [[{'task': 't1', 'worker': 'ann', 'label': 'cat', 'row': 0}]]
    >>> stream.rows, stream.votes
    (2, 1)
    """

    def __init__(
        self, sources: Sequence[Source], kinds: Mapping[str, pa.DataType], missing: Missing, *, threads: bool,
        first_row: int = 0, tell: Callable[[Stream, int], None] | None = None,
    ) -> None:  # fmt: skip
        self.sources, self.kinds, self.missing, self.threads, self.tell = sources, kinds, missing, threads, tell
        self.schema = pa.schema([*kinds.items(), ("row", pa.int64())])
        self.rows, self.votes, self.weighted, self.whole = first_row, 0, False, True
        self.failure: BaseException | None = None

    def reader(self) -> pa.RecordBatchReader:
        """The batches, for whatever speaks Arrow."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for number, source in enumerate(self.sources):
                begin = self.rows
                read = _rows_of_parquet if source.separator is None else _rows_of_text
                with about(source.path):
                    for batch in read(source, self.threads):
                        yield self._prepared(source, batch, begin)
                        if self.tell is not None:
                            self.tell(self, number)
        except BaseException as error:
            self.failure = error
            raise

    def _prepared(self, source: Source, batch: pa.RecordBatch, begin: int) -> pa.RecordBatch:
        first = self.rows - begin  # of this batch, in its file
        self.rows += batch.num_rows

        def where(rows: Sequence[int]) -> str:
            return source.where([row + first for row in rows])

        columns = {role: self._typed(batch, source.columns[role], role, where) for role in self.kinds}
        holes = {role: missing_mask(column) for role, column in columns.items()}
        kept = ~np.logical_or.reduce(list(holes.values()))
        if self.missing == "error":
            for role in ("task", "worker", "label"):
                if role in holes:
                    _refuse_holes(holes[role], role, first, where)
        if "weight" in columns:
            weight = columns["weight"].to_numpy()
            bad = ~(np.isfinite(weight) & (weight > 0))
            _refuse_weights(bad & ~holes["weight"] if self.missing == "drop" else bad, first, where)
            self.weighted |= bool((weight[kept] != 1).any())
        numbered = columns | {"row": pa.chunked_array([np.arange(self.rows - batch.num_rows, self.rows)])}
        table = pa.table(numbered, schema=self.schema)
        table = table if kept.all() else table.filter(pa.array(kept))
        self.votes += table.num_rows
        self.whole = self.whole and _all_whole(table["task"])
        return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], self.schema)

    def _typed(
        self, batch: pa.RecordBatch, name: str, role: str, where: Callable[[Sequence[int]], str]
    ) -> pa.ChunkedArray:
        column, kind = pa.chunked_array([batch.column(name)]), self.kinds[role]
        if role == "weight":
            return numbers(column, "weight", where)
        try:
            column = column.cast(kind)
            if kind == TEXT:
                column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise (
                _text.not_utf8(error)
                if kind == TEXT
                else InputError(f"the {role} column cannot be read as {kind}, as in another file: {error}")
            ) from None
        return column


def _refuse_holes(holes: NDArray[np.bool_], role: str, first: int, where: Callable[[Sequence[int]], str]) -> None:
    rows = np.flatnonzero(holes)
    if rows.size:
        verb = "has" if rows.size == 1 else "have"
        raise InputError(
            f"{rows.size:,} of the first {first + len(holes):,} rows {verb} no {role} ({where(rows.tolist())}); "
            'drop such rows first: missing="drop", or --missing drop'
        )


def _refuse_weights(bad: NDArray[np.bool_], first: int, where: Callable[[Sequence[int]], str]) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        raise InputError(
            f"{rows.size:,} of the first {first + len(bad):,} weights are not finite and positive "
            f"({where(rows.tolist())}); drop votes that should not count"
        )


def _all_whole(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(column.type):
        return True
    try:
        pc.cast(column, pa.int64(), safe=True)
    except pa.ArrowInvalid:
        return False
    return True


def _rows_of_parquet(source: Source, threads: bool) -> Iterator[pa.RecordBatch]:
    try:
        # Without it, the columns of a whole row group are held in memory as they are in the file.
        with pq.ParquetFile(source.path, pre_buffer=False) as file:
            yield from file.iter_batches(_BATCH, columns=list(source.columns.values()), use_threads=threads)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"it cannot be read as Parquet: {error}") from None


def _rows_of_text(source: Source, threads: bool) -> Iterator[pa.RecordBatch]:
    refuse_open_quote(source.path, str(source.separator))
    ragged: list[Any] = []
    try:
        yield from _parsed(source, threads, ragged)
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # one of many files may well have no votes
            return
        if "UTF8" in str(error):
            raise _text.not_utf8(error) from None
        if not ragged:
            raise InputError(f"it cannot be read as a table separated by {source.separator!r}: {error}") from None
        raise _ragged(source) from None


def _parsed(source: Source, threads: bool, ragged: list[Any]) -> Iterator[pa.RecordBatch]:
    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    names = list(source.columns.values())
    # As io.csv reads it: an empty cell is a hole, but "" in quotes is an empty text.
    convert = arrow_csv.ConvertOptions(
        include_columns=names,
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = arrow_csv.ParseOptions(delimiter=source.separator, newlines_in_values=True, invalid_row_handler=refuse)
    with (
        pa.input_stream(str(source.path)) as stream,
        arrow_csv.open_csv(
            stream, arrow_csv.ReadOptions(use_threads=threads, block_size=_BLOCK), parse, convert
        ) as reader,
    ):
        yield from reader


def _ragged(source: Source) -> InputError:
    ragged: list[Any] = []
    try:
        for _ in _parsed(source, False, ragged):  # one thread counts the rows
            pass
    except pa.ArrowInvalid:
        pass
    row = ragged[0]
    lines = None if row.number is None else lines_of_records(source.path, str(source.separator), [row.number - 1])
    place = "a row" if row.number is None else f"row {row.number}" if lines is None else f"line {lines[0]}"
    return InputError(
        f"{place} has {row.actual_columns} columns, not {row.expected_columns}: {row.text[:80]!r}; "
        f"put quotes around values that hold {source.separator!r}"
    )
