"""Tables of Hugging Face ``datasets``, in Parquet or JSON lines, with a row per task.

Votes are in lists of one length (``annotators`` and ``labels``, or several lists of answers), in a list of objects or an
object of lists (``annotations``: annotator and label), or in a column per worker (``annotator_1``, …).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from wisecrowd.errors import InputError, preview
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import convert_errors
from wisecrowd.io.tables.columns import simplify_name, specific_names
from wisecrowd.io.tables.json import JSONL
from wisecrowd.io.tables.parquet import PARQUET, is_parquet, read_schema, read_table
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object, read_objects
from wisecrowd.io.tools.exported_answers import ExportedAnswers, parse_id
from wisecrowd.io.tools.question_votes import make_tool_reader
from wisecrowd.utils.text import shorten

_TASK_NAMES = {*specific_names("task"), "id", "idx", "uid", "uuid", "textid", "pairid"}
_WORKER_NAMES, _LABEL_NAMES = set(specific_names("worker")), set(specific_names("label"))
#: Name of a column with the answers of one worker.
_WORKER_COLUMN = re.compile(
    r"^(?:labels?[ _-]?)?((?:annotator|worker|rater|coder|judge|labell?er)[ _-]?\d+)(?:[ _-]?labels?)?$", re.IGNORECASE
)
#: Lists that are not answers but derived from answers or from the text.
_OTHER_LISTS = {"softlabel", "softlabels", "probabilities", "probs", "embedding", "embeddings", "tokens"}

_Row = dict[str, Any]


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a table, in any of the layouts.

    Parameters
    ----------
    path : Path
        Parquet or JSON lines.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> _ = Path("data.jsonl").write_text('{"id": "a", "annotators": ["ann", "bob"], "labels": ["cat", "dog"]}\\n')
    >>> read_export(Path("data.jsonl")).get_question("labels").worker
    ['ann', 'bob']
    """
    export = ExportedAnswers()
    raw_rows = read_parquet_rows(path) if is_parquet(path) else read_objects(path, "a row of a dataset")
    rows = [{name: _to_vote_list(value) for name, value in row.items()} for row in raw_rows]
    names = dict.fromkeys(name for row in rows for name in row)
    task_columns = [name for name in names if simplify_name(name) in _TASK_NAMES]
    if len(task_columns) > 1:
        preferred = [name for name in task_columns if simplify_name(name) in ("task", "taskid", "id")]
        task_columns = preferred[:1] or task_columns[:1]
    worker_columns = {match.group(1): name for name in names if (match := _WORKER_COLUMN.match(name))}
    lists = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, list))
    worker_lists = [name for name in lists if _names_workers(name)]
    vote_lists = _find_vote_lists(rows)
    answer_columns = {*worker_columns.values(), *lists}
    worker_by_column = {name: worker for worker, name in worker_columns.items()}
    class_names = read_class_names(path)
    for number, row in enumerate(rows, start=1):
        location = f"row {number:,}"
        task_id = row.get(task_columns[0]) if task_columns else None
        task = str(number - 1) if task_id is None else parse_id(task_id, "task", location)
        if task in export.tasks:
            raise InputError(f"{location} repeats the task {preview([task])}; there must be one row per task")
        export.tasks[task] = {name: value for name, value in row.items() if name not in answer_columns}
        if worker_lists:
            answer_lists = [name for name in row if name in lists and not _names_workers(name)]
            _add_parallel_lists(row, task, location, worker_lists[0], answer_lists, export, class_names)
        elif vote_lists:
            _add_vote_list(row, task, location, vote_lists[0], export, class_names)
        elif worker_columns:
            answered = [name for name in row if name in worker_by_column]
            for name in answered:
                _add_answer(export, "label", task, worker_by_column[name], row[name], class_names.get(name))
            if n_empty := len(worker_by_column) - len(answered):
                export.get_question("label").excluded["empty"] += n_empty
        else:
            raise InputError(
                "the workers cannot be recognised; expected lists such as annotators and labels, or columns such as "
                f"annotator_1 and annotator_2. The columns are {preview(names, 12)}"
            )
    return export


def _add_parallel_lists(
    row: _Row,
    task: str,
    location: str,
    worker_list: str,
    answer_lists: list[str],
    export: ExportedAnswers,
    class_names: Mapping[str, list[str]],
) -> None:
    workers = get_part(row, worker_list, list, location)
    for name in answer_lists:
        if row.get(name) is None or simplify_name(name) in _OTHER_LISTS:
            continue
        answers = get_part(row, name, list, location)
        if len(answers) != len(workers):
            if simplify_name(name) in _LABEL_NAMES:
                raise InputError(
                    f"{location} has {len(answers)} {shorten(name)} for {len(workers)} {shorten(worker_list)}; there must be "
                    "one for each"
                )
            export.excluded[f"lists {name!r} of another length"] += 1
            continue
        for worker, answer in zip(workers, answers, strict=True):
            _add_answer(export, name, task, parse_id(worker, "worker", location), answer, class_names.get(name))


def _add_vote_list(
    row: _Row, task: str, location: str, name: str, export: ExportedAnswers, class_names: Mapping[str, list[str]]
) -> None:
    for vote in get_objects(row, name, location):
        worker = next((vote[key] for key in vote if simplify_name(key) in _WORKER_NAMES), None)
        for key in [key for key in vote if simplify_name(key) in _LABEL_NAMES]:
            worker_id = parse_id(worker, "worker", location)
            _add_answer(export, key, task, worker_id, vote[key], class_names.get(f"{name}.{key}"))


def _add_answer(
    export: ExportedAnswers, name: str, task: str, worker: str, answer: object, class_names: list[str] | None
) -> None:
    question = export.get_question(name)
    if class_names is not None:
        question.options.update(dict.fromkeys(class_names))
    labels = answer if isinstance(answer, list) else [] if answer is None else [answer]
    if any(isinstance(label, dict | list) for label in labels):
        export.excluded["answers of parts"] += 1
        return
    # -1 is a missing answer only if classes are numbered; elsewhere it may be a label.
    if answer is None or answer == "" or answer != answer or (class_names is not None and answer == -1):
        question.excluded["empty"] += 1
        return
    question.multiple = question.multiple or isinstance(answer, list)
    question.number = question.number or (isinstance(answer, float) and not answer.is_integer())
    question.add_answer(task, worker, [_decode_class(label, class_names) for label in labels])


def _decode_class(label: object, class_names: list[str] | None) -> object:
    if class_names is not None and isinstance(label, int) and 0 <= label < len(class_names):
        return class_names[label]
    return label


def _names_workers(name: str) -> bool:
    return simplify_name(name) in _WORKER_NAMES or simplify_name(name).removesuffix("s") in _WORKER_NAMES


def _find_vote_lists(rows: list[_Row]) -> list[str]:
    """Return the columns of lists whose first object is a vote."""
    first_items: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list) and value:
                first_items.setdefault(name, value[0])
    return [name for name, item in first_items.items() if isinstance(item, dict) and _are_vote_keys(item)]


def _are_vote_keys(keys: Iterable[str]) -> bool:
    """Return whether an object with these keys is a vote."""
    names = {simplify_name(key) for key in keys}
    return bool(names & _WORKER_NAMES) and bool(names & _LABEL_NAMES)


def _to_vote_list(value: Any) -> Any:
    """Convert an object of lists to a list of objects: ``datasets`` stores a sequence of objects transposed."""
    if not isinstance(value, dict) or not _are_vote_keys(value):
        return value
    lists = list(value.values())
    if not all(isinstance(items, list) and len(items) == len(lists[0]) for items in lists):
        return value
    return [dict(zip(value, items, strict=True)) for items in zip(*lists, strict=True)]


def _is_list_type(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _is_vote_type(kind: pa.DataType) -> bool:
    """Return whether a Parquet column holds votes: a list of objects, or an object of lists."""
    inner = kind.value_type if _is_list_type(kind) else kind
    if not pa.types.is_struct(inner):
        return False
    fields = [inner.field(position) for position in range(inner.num_fields)]
    is_transposed = all(_is_list_type(field.type) for field in fields)
    return (inner is not kind or is_transposed) and _are_vote_keys(field.name for field in fields)


def read_valid_schema(path: Path) -> pa.Schema | None:
    """Read the schema of a Parquet file, or return None if the file is damaged.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    pyarrow.Schema or None
        Schema.

    Examples
    --------
    >>> _ = Path("votes.parquet").write_text("PAR1 and nothing else")
    >>> read_valid_schema(Path("votes.parquet")) is None
    True
    """
    try:
        return read_schema(path)
    except InputError:
        return None


def read_parquet_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a Parquet file without binary columns such as images.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    list of dict
        Rows.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> pq.write_table(pa.table({"id": [1], "image": [b"png"]}), "data.parquet")
    >>> read_parquet_rows(Path("data.parquet"))
    [{'id': 1}]
    """
    columns = [field.name for field in read_schema(path) if not _is_binary(field.type)]
    table = read_table(path, columns)
    with convert_errors():
        rows: list[dict[str, Any]] = table.to_pylist()
    if not rows:
        raise InputError("there are no rows in it; expected one row per task or vote")
    return rows


def _is_binary(kind: pa.DataType) -> bool:
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return binary or (pa.types.is_struct(kind) and any(_is_binary(kind.field(i).type) for i in range(kind.num_fields)))


def read_class_names(path: Path) -> dict[str, list[str]]:
    """Read the class names that ``datasets`` stores in the metadata of a Parquet file.

    Parameters
    ----------
    path : Path
        Any file.

    Returns
    -------
    dict of str to list of str
        Class names by column. Fields of objects are named ``column.field``.

    Examples
    --------
    >>> read_class_names(Path("votes.jsonl"))
    {}
    """
    if not is_parquet(path):
        return {}
    schema = read_valid_schema(path)
    metadata = None if schema is None else (schema.metadata or {}).get(b"huggingface")
    try:
        features = json.loads(metadata)["info"]["features"] if metadata else {}
        names_by_column = {name: _get_class_names(feature) for name, feature in _iter_features(features)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return {name: class_names for name, class_names in names_by_column.items() if class_names}


def _iter_features(features: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the features of all columns and of the fields of objects."""
    for name, feature in features.items():
        yield name, feature
        inner = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        for key, field in inner.items() if isinstance(inner, dict) and "_type" not in inner else ():
            yield f"{name}.{key}", field


def _get_class_names(feature: Any) -> list[str]:
    while isinstance(feature, dict) and "names" not in feature and "feature" in feature:
        feature = feature["feature"]
    names = feature.get("names") if isinstance(feature, dict) else None
    return ["" if name is None else str(name) for name in names] if isinstance(names, list) else []


def _detect(path: Path) -> bool:
    if is_parquet(path):
        schema = read_valid_schema(path)
        if schema is None:
            return False
        names = schema.names
        lists = [field.name for field in schema if _is_list_type(field.type)]
        has_vote_objects = any(_is_vote_type(field.type) for field in schema)
    else:
        record = {name: _to_vote_list(value) for name, value in peek_object(path).items()}
        names, lists = list(record), [name for name, value in record.items() if isinstance(value, list)]
        has_vote_objects = bool(_find_vote_lists([record]))
    if {simplify_name(name) for name in names} & _WORKER_NAMES and not lists:
        return False  # a table with a row per vote
    n_worker_columns = sum(bool(_WORKER_COLUMN.match(name)) for name in names)
    return n_worker_columns > 1 or has_vote_objects or (len(lists) > 1 and any(map(_names_workers, lists)))


def _choose_table_reader(path: Path) -> FormatReader:
    return PARQUET if is_parquet(path) else JSONL


HUGGING_FACE = make_tool_reader("hugging-face", read_export, _detect, _choose_table_reader)
