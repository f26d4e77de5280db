"""Tables in JSON: an object per vote, one per line (JSONL) or all in one list."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.problems import MixedTypes
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.columns import ROLES, find_columns, plain
from wisecrowd.io.tables.votes_table import Columns, text_portions, truth_frame
from wisecrowd.utils.files import atomic_path

_KINDS = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_BLOCK = 1 << 24  # bytes; a line must fit into one


def _line_votes(path: Path, options: Options) -> Votes:
    records = _first_records(path)
    columns = Columns.choose(_keys(records), options)
    return columns.votes(_lines(path, records, list(columns.roles.values())), lambda rows: _line_numbers(path, rows))


def _line_truth(path: Path, task: str | None, truth: str | None) -> Truth:
    records = _first_records(path)
    return _truth(_keys(records), lambda names: _lines(path, records, names), task, truth)


def _list_votes(path: Path, options: Options) -> Votes:
    records = _records(path)
    columns = Columns.choose(_keys(records), options)
    return columns.votes(_typed(records, list(columns.roles.values())))


def _list_truth(path: Path, task: str | None, truth: str | None) -> Truth:
    records = _records(path)
    return _truth(_keys(records), lambda names: _typed(records, names), task, truth)


def _truth(names: list[str], table: Any, task: str | None, truth: str | None) -> Truth:
    found = find_columns(names, {"task": task, "truth": truth})
    split = "split" if "split" in names else None
    columns = [name for name in (*found.values(), split) if name is not None]
    return truth_frame(table(columns), found["task"], found["truth"], split)


def _keys(records: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))


def _first_records(path: Path) -> list[dict[str, Any]]:
    """The objects on the first lines: enough to see which keys there are, and of what type."""
    records = []
    for number, line in enumerate(_text.head_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"line {number} is not JSON ({error}); one object per line was wanted") from None
        if not isinstance(record, dict):
            raise InputError(f"line {number} is no JSON object but {line.strip()[:40]}; one object per line was wanted")
        records.append(record)
    return records


def _line_numbers(path: Path, rows: Sequence[int]) -> list[int]:
    """The lines on which some objects are, in ascending order; blank lines hold none."""
    with pa.input_stream(str(path)) as stream:
        filled = (number for number, line in enumerate(io.BufferedReader(stream), start=1) if line.strip())
        wanted = set(rows)
        return [line for row, line in zip(range(max(rows) + 1), filled, strict=False) if row in wanted]


def _lines(path: Path, records: Sequence[dict[str, Any]], names: list[str]) -> pa.Table:
    # Left to itself the parser would turn text that looks like a date into one.
    schema = pa.schema([(name, _kind(records, name)) for name in names])
    try:
        return _parse(path, schema)
    except pa.ArrowInvalid as error:
        fraction = "to int64" in str(error) and any(mark in str(error).rpartition(":")[2] for mark in ".eE")
        if not fraction:
            raise _mixed(error) from None
    floats = [pa.float64() if kind == pa.int64() else kind for kind in schema.types]
    try:
        return _parse(path, pa.schema(list(zip(names, floats, strict=True))))
    except pa.ArrowInvalid as error:
        raise _mixed(error) from None


def _parse(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        with pa.input_stream(str(path)) as stream:
            table = arrow_json.read_json(
                stream,
                read_options=arrow_json.ReadOptions(block_size=_BLOCK),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        table.validate(full=True)
    except OSError as error:
        raise InputError(f"cannot read it: {error}") from None
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise _text.not_utf8(error) from None
        raise
    return table


def _kind(records: Sequence[dict[str, Any]], name: str) -> pa.DataType:
    kinds = {type(record[name]) for record in records if record.get(name) is not None}
    nested = kinds - set(_KINDS)
    if nested:
        raise InputError(f"{name!r} holds {nested.pop().__name__} values; text, numbers or true and false were wanted")
    if len(kinds) > 1 and kinds != {int, float}:
        raise _mixed(f"{name!r} holds {' and '.join(sorted(kind.__name__ for kind in kinds))}")
    return _KINDS[float if float in kinds else kinds.pop() if kinds else str]


def _mixed(error: object) -> MixedTypes:
    return MixedTypes(f"a value is not like those before it: {error}; keep to one type per key, for example text")


def _records(path: Path) -> list[dict[str, Any]]:
    _text.head_lines(path)
    try:
        with pa.input_stream(str(path)) as stream:
            records = json.loads(stream.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _text.not_utf8(error) from None
    except (json.JSONDecodeError, OSError) as error:
        raise InputError(f"it is not JSON: {error}") from None
    if not (isinstance(records, list) and all(isinstance(record, dict) for record in records)):
        raise InputError('a list of objects was wanted, such as [{"task": "t1", "worker": "ann", "label": "cat"}]')
    return records


def _typed(records: Sequence[dict[str, Any]], names: list[str]) -> pa.Table:
    schema = pa.schema([(name, _kind(records, name)) for name in names])
    try:
        return pa.Table.from_pylist(list(records), schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise _mixed(error) from None


def _sniff_lines(path: Path) -> bool:
    first = next((line for line in _text.looks_like_text(path) if line.strip()), "")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False
    names = {plain(name) for name in record} if isinstance(record, dict) else set()
    return all(names & {name for group in ROLES[role] for name in group} for role in ("task", "label"))


def _sniff_list(path: Path) -> bool:
    return "".join("".join(_text.looks_like_text(path)).split()).startswith("[{")


def _write(crowd: Crowd, path: Path) -> None:
    if crowd.is_numeric and not pc.all(pc.is_finite(pa.array(crowd.label))).as_py():
        raise InputError("JSON has no word for infinity; write this crowd as Parquet")
    with atomic_path(path) as unfinished, pa.output_stream(str(unfinished)) as stream:
        for portion in text_portions(crowd, _quoted):
            if crowd.has_times:
                portion = _with_quoted_times(portion)
            parts: list[Any] = []
            for name, column in zip(portion.column_names, portion.columns, strict=True):
                parts += [f'{", " if parts else "{"}"{name}": ', column.cast(pa.string())]
            lines = pc.binary_join_element_wise(*parts, "}\n", "")
            stream.write("".join(lines.to_pylist()).encode("utf-8"))


def _with_quoted_times(portion: pa.Table) -> pa.Table:
    stamps = portion["time"].cast(pa.string())
    quoted = pc.binary_join_element_wise('"', stamps, '"', "", null_handling="emit_null")
    return portion.set_column(portion.column_names.index("time"), "time", pc.fill_null(quoted, "null"))


def _quoted(ids: pa.Array) -> pa.Array:
    return pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in ids.to_pylist()], pa.string())


JSONL = Format(
    name="jsonl",
    about="a JSON object per line",
    patterns=("*.jsonl", "*.ndjson", "*.jsonl.gz", "*.ndjson.gz", "*.jsonl.zst"),
    votes=_line_votes,
    sniff=_sniff_lines,
    truth=_line_truth,
    write=_write,
    is_table=True,
)
JSON = Format(
    name="json",
    about="a list of JSON objects",
    patterns=("*.json", "*.json.gz"),
    votes=_list_votes,
    sniff=_sniff_list,
    truth=_list_truth,
    is_table=True,
)
