"""Rows of the input files of sharding, in batches: with common types, numbered, and complete."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from wisecrowd.data.crowd import Missing
from wisecrowd.data.rows import WEIGHT_RANGE, are_weights
from wisecrowd.data.vocabulary import as_exact_ids, find_missing
from wisecrowd.errors import InputError
from wisecrowd.io.compressed_files import open_input
from wisecrowd.io.problems import prefix_errors
from wisecrowd.io.sharding._input_files import TEXT, InputFile
from wisecrowd.io.tables.csv import BLOCK_BYTES, convert_options, ragged_row_error
from wisecrowd.io.tables.csv_records import check_quotes_closed
from wisecrowd.io.tables.numeric_labels import parse_numbers
from wisecrowd.io.tables.parquet import open_parquet
from wisecrowd.io.tables.text_files import encoding_error

#: Rows of Parquet that are read at a time.
_BATCH_ROWS = 1 << 17


class RowStream:
    """Rows of several files in sequence, with common types, numbered, and complete.

    Parameters
    ----------
    files : sequence of InputFile
        Files.
    types : mapping of str to pyarrow.DataType
        Type of each role.
    missing : {"error", "drop"}
        Rule for rows with an empty cell.
    threads : bool
        Use several threads.
    first_row : int, default=0
        Number of the first row.
    report : callable, optional
        Function that is called with the stream and the position of the file after each batch.

    Attributes
    ----------
    n_rows : int
        Number of the next row.
    n_votes : int
        Number of complete rows.
    is_weighted : bool
        Whether some weight differs from 1.
    has_integer_tasks : bool
        Whether all task ids are whole numbers, if they are numbers.
    failure : BaseException or None
        Error that ended the stream. DuckDB passes on its text only.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wisecrowd.io import ReadOptions
    >>> from wisecrowd.io.sharding._input_files import inspect_file, unify_types
    >>> _ = Path("votes.csv").write_text("task,worker,label\\nt1,ann,cat\\nt2,bob,\\n")
    >>> file = inspect_file("votes.csv", ReadOptions())
    >>> stream = RowStream([file], unify_types([file]), "drop", threads=False)
    >>> [batch.to_pylist() for batch in stream.open_reader()]
    [[{'task': 't1', 'worker': 'ann', 'label': 'cat', 'row': 0}]]
    >>> stream.n_rows, stream.n_votes
    (2, 1)
    """

    def __init__(
        self,
        files: Sequence[InputFile],
        types: Mapping[str, pa.DataType],
        missing: Missing,
        *,
        threads: bool,
        first_row: int = 0,
        report: Callable[[RowStream, int], None] | None = None,
    ) -> None:
        self.files, self.types, self.missing, self.threads, self.report = files, types, missing, threads, report
        self.schema = pa.schema([*types.items(), ("row", pa.int64())])
        self.n_rows, self.n_votes, self.is_weighted, self.has_integer_tasks = first_row, 0, False, True
        self.failure: BaseException | None = None
        # DuckDB reads in threads of its own, which do not know the limits that the caller chose.
        self.context = contextvars.copy_context()

    def open_reader(self) -> pa.RecordBatchReader:
        """Return the batches as an Arrow reader.

        Returns
        -------
        pyarrow.RecordBatchReader
            Reader that can be used once.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._iter_batches())

    def _iter_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for number, file in enumerate(self.files):
                file_start = self.n_rows
                iter_file = _iter_parquet if file.separator is None else _iter_text
                with prefix_errors(file.path):
                    batches = iter_file(file, self.threads)
                    while (batch := self.context.run(next, batches, None)) is not None:
                        yield self.context.run(self._prepare_batch, file, batch, file_start)
                        if self.report is not None:
                            self.report(self, number)
        except GeneratorExit:  # DuckDB stopped reading, for another reason
            raise
        except BaseException as error:
            self.failure = error
            raise

    def _prepare_batch(self, file: InputFile, batch: pa.RecordBatch, file_start: int) -> pa.RecordBatch:
        first = self.n_rows - file_start  # position of the batch in its file
        self.n_rows += batch.num_rows

        def describe_rows(rows: Sequence[int]) -> str:
            return file.describe_rows([row + first for row in rows])

        columns = {role: self._cast(batch, file.columns[role], role, describe_rows) for role in self.types}
        is_missing = {role: find_missing(column) for role, column in columns.items()}
        is_complete = ~np.logical_or.reduce(list(is_missing.values()))
        if self.missing == "error":
            for role in ("task", "worker", "label"):
                if role in is_missing:
                    _check_no_missing(is_missing[role], role, first, describe_rows)
        if "weight" in columns:
            weight = columns["weight"].to_numpy()
            is_invalid = ~are_weights(weight)
            if self.missing == "drop":
                is_invalid &= ~is_missing["weight"]
            _check_weights(is_invalid, first, describe_rows)
            self.is_weighted |= bool((weight[is_complete] != 1).any())
        numbers = np.arange(self.n_rows - batch.num_rows, self.n_rows)
        table = pa.table(columns | {"row": pa.chunked_array([numbers])}, schema=self.schema)
        table = table if is_complete.all() else table.filter(pa.array(is_complete))
        self.n_votes += table.num_rows
        self.has_integer_tasks = self.has_integer_tasks and _holds_integers(table["task"])
        return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], self.schema)

    def _cast(
        self, batch: pa.RecordBatch, name: str, role: str, describe_rows: Callable[[Sequence[int]], str]
    ) -> pa.ChunkedArray:
        column, kind = pa.chunked_array([batch.column(name)]), self.types[role]
        if role == "weight":
            return parse_numbers(column, "weight", describe_rows)
        as_exact_ids(column, role)  # raises an error for floats that cannot tell ids apart
        try:
            column = column.cast(kind)
            if kind == TEXT:
                column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise (
                encoding_error(error)
                if kind == TEXT
                else InputError(f"the {role} column cannot be read as {kind}, as in another file: {error}")
            ) from None
        return column


def _check_no_missing(
    is_missing: NDArray[np.bool_], role: str, first: int, describe_rows: Callable[[Sequence[int]], str]
) -> None:
    rows = np.flatnonzero(is_missing)
    if rows.size:
        verb = "has" if rows.size == 1 else "have"
        raise InputError(
            f"{rows.size:,} of the first {first + len(is_missing):,} rows {verb} no {role} "
            f'({describe_rows(rows.tolist())}); drop such rows first: missing="drop", or --missing drop'
        )


def _check_weights(is_invalid: NDArray[np.bool_], first: int, describe_rows: Callable[[Sequence[int]], str]) -> None:
    rows = np.flatnonzero(is_invalid)
    if rows.size:
        raise InputError(
            f"{rows.size:,} of the first {first + len(is_invalid):,} weights do not lie {WEIGHT_RANGE} "
            f"({describe_rows(rows.tolist())}); drop votes that should not count"
        )


def _holds_integers(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(column.type):
        return True
    try:
        pc.cast(column, pa.int64(), safe=True)
    except pa.ArrowInvalid:
        return False
    return True


def _iter_parquet(file: InputFile, threads: bool) -> Iterator[pa.RecordBatch]:
    # With pre_buffer, the compressed columns of a whole row group would be in memory.
    with open_parquet(file.path, pre_buffer=False) as parquet:
        yield from parquet.iter_batches(_BATCH_ROWS, columns=list(file.columns.values()), use_threads=threads)


def _iter_text(file: InputFile, threads: bool) -> Iterator[pa.RecordBatch]:
    check_quotes_closed(file.path, str(file.separator))
    ragged_rows: list[Any] = []
    try:
        yield from _parse_text(file, threads, ragged_rows)
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # one of many files may be empty
            return
        if "UTF8" in str(error):
            raise encoding_error(error) from None
        if not ragged_rows:
            raise InputError(f"it cannot be read as a table separated by {file.separator!r}: {error}") from None
        raise _find_ragged_row(file) from None


def _parse_text(file: InputFile, threads: bool, ragged_rows: list[Any]) -> Iterator[pa.RecordBatch]:
    def refuse_row(row: Any) -> str:
        ragged_rows.append(row)
        return "error"

    convert = convert_options(dict.fromkeys(file.columns.values(), pa.string()))
    parse = arrow_csv.ParseOptions(delimiter=file.separator, newlines_in_values=True, invalid_row_handler=refuse_row)
    read = arrow_csv.ReadOptions(use_threads=threads, block_size=BLOCK_BYTES)
    with (
        open_input(file.path, in_memory=False) as stream,
        arrow_csv.open_csv(stream, read, parse, convert) as reader,
    ):
        yield from reader


def _find_ragged_row(file: InputFile) -> InputError:
    ragged_rows: list[Any] = []
    with contextlib.suppress(pa.ArrowInvalid):
        for _ in _parse_text(file, False, ragged_rows):  # only a single thread counts the rows
            pass
    return ragged_row_error(file.path, str(file.separator), ragged_rows[0])
