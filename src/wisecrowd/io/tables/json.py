"""Tables in JSON: one object per vote, on lines (JSONL) or in a list."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_exact_ids
from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import check_compressed_file, open_input
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import MixedTypes, shorten_message
from wisecrowd.io.tables.columns import find_columns, names_votes
from wisecrowd.io.tables.crowd_tables import iter_text_tables
from wisecrowd.io.tables.json_text import parse_json
from wisecrowd.io.tables.text_files import encoding_error, peek_lines, read_head_lines, read_text
from wisecrowd.io.tables.vote_columns import VoteColumns, build_truth
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable
from wisecrowd.utils.files import atomic_path

_ARROW_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
#: Bytes parsed at a time. A line must fit into one block.
_BLOCK_BYTES = 1 << 24

_Record = dict[str, Any]


def _read_votes_from_lines(path: Path, options: ReadOptions) -> VoteTable:
    records = _read_first_records(path)
    columns = VoteColumns.choose(_collect_keys(records), options)
    table = _read_lines(path, records, list(columns.by_role.values()))
    return columns.extract_votes(_check_ids(table, columns), lambda rows: _find_lines(path, rows))


def _read_truth_from_lines(path: Path, task: str | None, truth: str | None) -> TruthTable:
    records = _read_first_records(path)
    return _build_truth(_collect_keys(records), lambda names: _read_lines(path, records, names), task, truth)


def _read_votes_from_list(path: Path, options: ReadOptions) -> VoteTable:
    records = _read_records(path)
    columns = VoteColumns.choose(_collect_keys(records), options)
    return columns.extract_votes(_check_ids(_to_table(records, list(columns.by_role.values())), columns))


def _read_truth_from_list(path: Path, task: str | None, truth: str | None) -> TruthTable:
    records = _read_records(path)
    return _build_truth(_collect_keys(records), lambda names: _to_table(records, names), task, truth)


def _build_truth(
    names: list[str], read_table: Callable[[list[str]], pa.Table], task: str | None, truth: str | None
) -> TruthTable:
    columns = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    table = read_table([name for name in (*columns.values(), split) if name is not None])
    _check_whole_numbers(table[columns["task"]], "task")
    return build_truth(table, columns["task"], columns["truth"], split)


def _check_ids(table: pa.Table, columns: VoteColumns) -> pa.Table:
    for role, name in columns.by_role.items():
        if role in ("task", "worker"):
            _check_whole_numbers(table[name], role)
    return table


def _check_whole_numbers(column: pa.ChunkedArray, role: str) -> None:
    """Raise an error if ids are fractions: several numbers in a text may be the same float."""
    if pa.types.is_floating(column.type):
        fractions = column.filter(pc.and_(pc.is_finite(column), pc.not_equal(column, pc.floor(column))))
        if len(fractions):
            raise MixedTypes(
                f"the {role} column holds fractions such as {fractions[0].as_py()!r}, and ids are not read as floats; write "
                "ids as whole numbers or text"
            )
    as_exact_ids(column, role)


def _collect_keys(records: Sequence[_Record]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))


def _read_first_records(path: Path) -> list[_Record]:
    """Read the objects on the first lines. They show which keys there are, and of what type."""
    records = []
    for number, line in enumerate(read_head_lines(path), start=1):
        if not line.strip():
            continue
        record = parse_json(line, f"every line must hold one object, but line {number}")
        if not isinstance(record, dict):
            raise InputError(
                f"line {number} is not a JSON object: {line.strip()[:40]}; every line must hold one object"
            )
        records.append(record)
    return records


def _find_lines(path: Path, rows: Sequence[int]) -> list[int]:
    """Return the line numbers of objects, in ascending order. Blank lines hold none."""
    with open_input(path, in_memory=False) as stream:
        filled_lines = (number for number, line in enumerate(io.BufferedReader(stream), start=1) if line.strip())
        requested = set(rows)
        return [line for row, line in zip(range(max(rows) + 1), filled_lines, strict=False) if row in requested]


def _read_lines(path: Path, records: Sequence[_Record], names: list[str]) -> pa.Table:
    # Without a schema, the parser would turn text that looks like a date into a date.
    types = {name: _find_type(records, name) for name in names}
    check_compressed_file(path)
    try:
        return _parse_lines(path, types)
    except pa.ArrowInvalid as error:
        is_fraction = "to int64" in str(error) and any(mark in str(error).rpartition(":")[2] for mark in ".eE")
        if not is_fraction:
            raise _mixed_types(error) from None
    # Only the columns with fractions become floats, which cannot represent large integers.
    types = {
        name: pa.float64() if kind == pa.int64() and not _holds_integers(path, name) else kind
        for name, kind in types.items()
    }
    try:
        return _parse_lines(path, types)
    except pa.ArrowInvalid as error:
        raise _mixed_types(error) from None


def _holds_integers(path: Path, name: str) -> bool:
    try:
        _parse_lines(path, {name: pa.int64()})
    except pa.ArrowInvalid:
        return False
    return True


def _parse_lines(path: Path, types: dict[str, pa.DataType]) -> pa.Table:
    schema = pa.schema(list(types.items()))
    try:
        with open_input(path) as stream:
            table = arrow_json.read_json(
                stream,
                read_options=arrow_json.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        table.validate(full=True)
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}") from None
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise encoding_error(error) from None
        raise
    return table


def _find_type(records: Sequence[_Record], name: str) -> pa.DataType:
    """Return the Arrow type of the values under a key."""
    types = {type(record[name]) for record in records if record.get(name) is not None}
    nested = types - set(_ARROW_TYPES)
    if nested:
        raise InputError(
            f"{preview([name])} holds {nested.pop().__name__} values; use text, numbers, or true and false"
        )
    if len(types) > 1 and types != {int, float}:
        raise _mixed_types(f"{preview([name])} holds {' and '.join(sorted(kind.__name__ for kind in types))}")
    return _ARROW_TYPES[float if float in types else types.pop() if types else str]


def _mixed_types(cause: object) -> MixedTypes:
    return MixedTypes(f"values have different types: {shorten_message(cause)}; use one type per key, for example text")


def _read_records(path: Path) -> list[_Record]:
    records = parse_json(read_text(path))
    if not (isinstance(records, list) and all(isinstance(record, dict) for record in records)):
        raise InputError('it is not a list of objects such as [{"task": "t1", "worker": "ann", "label": "cat"}]')
    return records


def _to_table(records: Sequence[_Record], names: list[str]) -> pa.Table:
    schema = pa.schema([(name, _find_type(records, name)) for name in names])
    try:
        return pa.Table.from_pylist(list(records), schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise _mixed_types(error) from None


def _read_columns_from_lines(path: Path, columns: Sequence[str]) -> pa.Table:
    """Read some keys of an object per line; values may be lists."""
    records = _read_first_records(path)
    if not any(isinstance(record.get(name), list) for record in records for name in columns):
        return _read_lines(path, records, list(columns))
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    return _records_to_columns(
        [parse_json(line, "every line must hold one object, but one line") for line in lines], columns
    )


def _records_to_columns(records: Sequence[Any], columns: Sequence[str]) -> pa.Table:
    """Return some keys of objects as a table, with lists as JSON text."""
    if not all(isinstance(record, dict) for record in records):
        raise InputError('every element must be an object such as {"task": "t1", "worker": "ann", "label": "cat"}')
    rows = [
        {
            name: json.dumps(value, ensure_ascii=False) if isinstance(value := record.get(name), list) else value
            for name in columns
        }
        for record in records
    ]
    return _to_table(rows, list(columns))


def _detect_lines(path: Path) -> bool:
    first_line = next((line for line in peek_lines(path) if line.strip()), "")
    try:
        record = parse_json(first_line)
    except InputError:
        return False
    return isinstance(record, dict) and names_votes(record)


def _detect_list(path: Path) -> bool:
    return "".join("".join(peek_lines(path)).split()).startswith("[{")


def _write_votes(crowd: Crowd, path: Path) -> None:
    if crowd.is_numeric and not pc.all(pc.is_finite(pa.array(crowd.label))).as_py():
        raise InputError("JSON cannot represent infinite labels; write this crowd as Parquet")
    with atomic_path(path) as partial_path, pa.output_stream(str(partial_path)) as stream:
        for portion in iter_text_tables(crowd, _quote_ids):
            if crowd.has_times:
                portion = _quote_times(portion)
            parts: list[Any] = []
            for name, column in zip(portion.column_names, portion.columns, strict=True):
                parts += [f'{", " if parts else "{"}"{name}": ', column.cast(pa.string())]
            lines = pc.binary_join_element_wise(*parts, "}\n", "")
            stream.write("".join(lines.to_pylist()).encode("utf-8"))


def _quote_times(portion: pa.Table) -> pa.Table:
    stamps = portion["time"].cast(pa.string())
    quoted = pc.binary_join_element_wise('"', stamps, '"', "", null_handling="emit_null")
    return portion.set_column(portion.column_names.index("time"), "time", pc.fill_null(quoted, "null"))


def _quote_ids(ids: pa.Array) -> pa.Array:
    return pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in ids.to_pylist()], pa.string())


JSONL = FormatReader(
    read_votes=_read_votes_from_lines,
    detect=_detect_lines,
    read_truth=_read_truth_from_lines,
    write_votes=_write_votes,
    read_names=lambda path: _collect_keys(_read_first_records(path)),
    read_columns=_read_columns_from_lines,
)
JSON = FormatReader(
    read_votes=_read_votes_from_list,
    detect=_detect_list,
    read_truth=_read_truth_from_list,
    read_names=lambda path: _collect_keys(_read_records(path)),
    read_columns=lambda path, columns: _records_to_columns(_read_records(path), columns),
)
