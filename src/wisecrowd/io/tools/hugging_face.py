"""Tables of Hugging Face ``datasets``: a row per task, in Parquet or JSON lines.

Who said what stands in lists of one length (``annotators`` and ``labels``, or several lists of answers), in a list of objects
or an object of lists (``annotations``: annotator and label), or in a column for each worker (``annotator_1``, …).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.errors import InputError, some
from wisecrowd.io.formats import Format
from wisecrowd.io.tables.columns import ROLES, plain
from wisecrowd.io.tables.json import JSONL
from wisecrowd.io.tables.parquet import PARQUET, read_schema
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import entries, first_object, objects, part
from wisecrowd.io.tools.gathering import Gathering, identity

_TASKS = {name for group in ROLES["task"] for name in group} | {"id", "idx", "uid", "uuid", "textid", "pairid"}
_WORKERS = {name for group in ROLES["worker"] for name in group}
_LABELS = {name for group in ROLES["label"] for name in group}
#: A column for each worker.
_OF_WORKER = re.compile(
    r"^(?:labels?[ _-]?)?((?:annotator|worker|rater|coder|judge|labell?er)[ _-]?\d+)(?:[ _-]?labels?)?$", re.IGNORECASE
)
#: Lists that are no answers: what follows from them.
_NO_ANSWERS = {"softlabel", "softlabels", "probabilities", "probs", "embedding", "embeddings", "tokens"}


def gather(path: Path) -> Gathering:
    """All that a table tells, in whichever form.

    >>> _ = Path("data.jsonl").write_text('{"id": "a", "annotators": ["ann", "bob"], "labels": ["cat", "dog"]}\\n')
    >>> gather(Path("data.jsonl")).question("labels").worker
    ['ann', 'bob']
    """
    gathered = Gathering()
    told = rows_of(path) if is_parquet(path) else objects(path, "a row of a dataset")
    rows = [{name: _unrolled(value) for name, value in row.items()} for row in told]
    names = dict.fromkeys(name for row in rows for name in row)
    tasks = [name for name in names if plain(name) in _TASKS]
    if len(tasks) > 1:
        tasks = [name for name in tasks if plain(name) in ("task", "taskid", "id")][:1] or tasks[:1]
    columns = {found.group(1): name for name in names if (found := _OF_WORKER.match(name))}
    lists = [name for name in names if any(isinstance(row.get(name), list) for row in rows)]
    who = [name for name in lists if _is_workers(name)]
    nested = [name for name in lists if _holds_votes(rows, name)]
    used = {*columns.values(), *lists}
    decode = class_names(path)
    for number, row in enumerate(rows, start=1):
        where = f"row {number:,}"
        task = identity(row[tasks[0]], "task", where) if tasks and row.get(tasks[0]) is not None else str(number - 1)
        if task in gathered.tasks:
            raise InputError(f"{where} is about {task!r} again; a row for each task was wanted")
        gathered.tasks[task] = {name: value for name, value in row.items() if name not in used}
        if who:
            _parallel(row, task, where, who[0], [name for name in lists if name not in who], gathered, decode)
        elif nested:
            _objects(row, task, where, nested[0], gathered, decode)
        elif columns:
            for worker, name in columns.items():
                _answer(gathered, "label", task, worker, row.get(name), decode.get(name))
        else:
            raise InputError(
                "nobody can tell who said what: lists such as annotators and labels were wanted, or columns such as "
                f"annotator_1 and annotator_2; the columns are {some(names, 12)}"
            )
    return gathered


def _parallel(
    row: dict[str, Any], task: str, where: str, who: str, lists: list[str], gathered: Gathering, decode: Mapping[str, list[str]]
) -> None:  # fmt: skip
    workers = part(row, who, list, where)
    for name in lists:
        if row.get(name) is None or plain(name) in _NO_ANSWERS:
            continue
        said = part(row, name, list, where)
        if len(said) != len(workers):
            if plain(name) in _LABELS:
                raise InputError(f"{where} has {len(said)} {name} of {len(workers)} {who}; one for each was wanted")
            gathered.left_out[f"lists {name!r} of another length"] += 1
            continue
        for worker, one in zip(workers, said, strict=True):
            _answer(gathered, name, task, identity(worker, "worker", where), one, decode.get(name))


def _objects(
    row: dict[str, Any], task: str, where: str, name: str, gathered: Gathering, decode: Mapping[str, list[str]]
) -> None:
    for vote in entries(row, name, where):
        worker = next((vote[key] for key in vote if plain(key) in _WORKERS), None)
        for key in [key for key in vote if plain(key) in _LABELS]:
            _answer(gathered, key, task, identity(worker, "worker", where), vote[key], decode.get(f"{name}.{key}"))


def _answer(gathered: Gathering, question: str, task: str, worker: str, said: object, names: list[str] | None) -> None:
    asked = gathered.question(question)
    if names is not None:
        asked.options.update(dict.fromkeys(names))
    chosen = said if isinstance(said, list) else [] if said is None else [said]
    if any(isinstance(one, dict | list) for one in chosen):
        gathered.left_out["answers of parts"] += 1
        return
    # Among numbers of classes, -1 says that nobody answered; elsewhere it may be an answer.
    if said is None or said == "" or said != said or (names is not None and said == -1):
        asked.left_out["empty"] += 1
        return
    asked.multiple = asked.multiple or isinstance(said, list)
    asked.number = asked.number or (isinstance(said, float) and not said.is_integer())
    asked.answer(task, worker, [_named(one, names) for one in chosen])


def _named(value: object, names: list[str] | None) -> object:
    return names[value] if names is not None and isinstance(value, int) and 0 <= value < len(names) else value


def _is_workers(name: str) -> bool:
    return plain(name) in _WORKERS or plain(name).removesuffix("s") in _WORKERS


def _holds_votes(rows: list[dict[str, Any]], name: str) -> bool:
    first = next((row[name][0] for row in rows if isinstance(row.get(name), list) and row[name]), None)
    return isinstance(first, dict) and _are_of_votes(first)


def _are_of_votes(keys: Iterable[str]) -> bool:
    """Whether an object with these keys is a vote."""
    found = {plain(key) for key in keys}
    return bool(found & _WORKERS) and bool(found & _LABELS)


def _unrolled(value: Any) -> Any:
    """Votes as a list of objects; ``datasets`` makes an object of lists of a sequence of objects."""
    if not isinstance(value, dict) or not _are_of_votes(value):
        return value
    lists = list(value.values())
    if not all(isinstance(one, list) and len(one) == len(lists[0]) for one in lists):
        return value
    return [dict(zip(value, one, strict=True)) for one in zip(*lists, strict=True)]


def _is_of_votes(kind: pa.DataType) -> bool:
    """The same of a column in Parquet."""
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    if not pa.types.is_struct(inner):
        return False
    fields = [inner.field(place) for place in range(inner.num_fields)]
    rolled = all(pa.types.is_list(one.type) or pa.types.is_large_list(one.type) for one in fields)
    return (inner is not kind or rolled) and _are_of_votes(one.name for one in fields)


def is_parquet(path: Path) -> bool:
    """Whether a file is in Parquet, whatever it is called.

    >>> _ = Path("votes.parquet").write_text("task,worker,label")
    >>> is_parquet(Path("votes.parquet"))
    False
    """
    return PARQUET.sniff(path)


def known_schema(path: Path) -> pa.Schema | None:
    """The columns of a table in Parquet, unless it is damaged.

    >>> _ = Path("votes.parquet").write_text("PAR1 and nothing else")
    >>> known_schema(Path("votes.parquet")) is None
    True
    """
    try:
        return read_schema(path)
    except ValueError:  # also names that are no text
        return None


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a table in Parquet; columns of bytes, such as images, stay where they are.

    >>> pq.write_table(pa.table({"id": [1], "image": [b"png"]}), "data.parquet")
    >>> rows_of(Path("data.parquet"))
    [{'id': 1}]
    """
    schema = known_schema(path)
    if schema is None:
        raise InputError("it cannot be read as Parquet: it is damaged")
    wanted = [field.name for field in schema if not _is_media(field.type)]
    try:
        with pq.ParquetFile(path) as file:
            rows: list[dict[str, Any]] = file.read(columns=wanted).to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        raise InputError(f"it cannot be read as Parquet: {str(error)[:200]}") from None
    if not rows:
        raise InputError("there are no rows in it")
    return rows


def _is_media(kind: pa.DataType) -> bool:
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return binary or (pa.types.is_struct(kind) and any(_is_media(kind.field(i).type) for i in range(kind.num_fields)))


def class_names(path: Path) -> dict[str, list[str]]:
    """The names of classes that ``datasets`` keeps beside a column of their numbers.

    >>> class_names(Path("votes.jsonl"))
    {}
    """
    if not is_parquet(path):
        return {}
    schema = known_schema(path)
    told = None if schema is None else (schema.metadata or {}).get(b"huggingface")
    try:
        features = json.loads(told)["info"]["features"] if told else {}
        found = {name: _names_in(feature) for name, feature in _columns_of(features)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    return {name: names for name, names in found.items() if names}


def _columns_of(features: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Columns, and the parts of those that hold objects."""
    for name, feature in features.items():
        yield name, feature
        inside = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        for key, part_of in inside.items() if isinstance(inside, dict) and "_type" not in inside else ():
            yield f"{name}.{key}", part_of


def _names_in(feature: Any) -> list[str]:
    while isinstance(feature, dict) and "names" not in feature and "feature" in feature:
        feature = feature["feature"]
    names = feature.get("names") if isinstance(feature, dict) else None
    return ["" if name is None else str(name) for name in names] if isinstance(names, list) else []


def _sniff(path: Path) -> bool:
    if is_parquet(path):
        schema = known_schema(path)
        if schema is None:
            return False
        names = schema.names
        lists = [field.name for field in schema if pa.types.is_list(field.type) or pa.types.is_large_list(field.type)]
        objects_of_votes = any(_is_of_votes(field.type) for field in schema)
    else:
        record = {name: _unrolled(value) for name, value in first_object(path).items()}
        names, lists = list(record), [name for name, value in record.items() if isinstance(value, list)]
        objects_of_votes = any(_holds_votes([record], name) for name in lists)
    votes = {plain(name) for name in names}
    if votes & _WORKERS and not lists:
        return False  # a row per vote
    of_worker = sum(bool(_OF_WORKER.match(name)) for name in names)
    return of_worker > 1 or objects_of_votes or (len(lists) > 1 and any(map(_is_workers, lists)))


def _table(path: Path) -> Format:
    return PARQUET if is_parquet(path) else JSONL


HUGGING_FACE = tool_format(
    "hugging-face", "a dataset with a row per task and lists of its workers and labels", gather, _sniff, _table
)
