"""peerannot: a folder with ``answers.json`` or ``answers.txt``, and optionally ``metadata.json``.

Ids are integers in peerannot. They are read as integers, although JSON stores them as text.

References
----------
T. Lefort, B. Charlier, A. Joly and J. Salmon (2024). Peerannot: classification for crowdsourced image datasets with Python.
Computo.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.errors import InputError, preview
from wisecrowd.io.compressed_files import check_unpacked_size
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.problems import shorten_message
from wisecrowd.io.tables.arrays import read_npy
from wisecrowd.io.tables.json_text import read_json_file
from wisecrowd.io.tables.text_files import peek_lines, read_lines
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

_NAMES = ("answers.json", "answers.txt")
#: Digits of the longest id that is read as a number.
_MAX_DIGITS = 18
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def _read_votes(is_inverted: bool, path: Path, options: ReadOptions) -> VoteTable:  # noqa: ARG001
    file = _find_answers(path)
    outer, inner, label, n_tasks = _read_matrix(file) if file.suffix == ".txt" else _read_nested(file)
    task, worker = (inner, outer) if is_inverted else (outer, inner)
    try:
        table = pa.table({"task": task, "worker": worker, "label": label})
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(f"{file.name} mixes types: {shorten_message(error)}") from None
    meta, n_bytes = _read_meta(path), file.stat().st_size
    n_classes = meta.get("n_classes") if pa.types.is_integer(table["label"].type) else None
    n_tasks = n_tasks if n_tasks is not None else meta.get("n_tasks", meta.get("n_task"))
    tasks = _make_range(table["task"], n_tasks, "tasks", n_bytes)
    classes = _make_range(table["label"], n_classes, "classes", n_bytes)
    return VoteTable(table=table, tasks=tasks, classes=classes)


def _make_range(column: pa.ChunkedArray, n: Any, noun: str, file_bytes: int) -> NDArray[np.int64] | None:
    """Return the integers below n if they include the ids. The metadata may count something else."""
    if type(n) is not int or not pa.types.is_integer(column.type):
        return None
    ids = column.to_numpy()
    if not (len(ids) and ids.min() >= 0 and ids.max() < n):
        return None
    check_unpacked_size(n * ids.itemsize, file_bytes, f"metadata.json declares {n:,} {noun}, which")
    return np.arange(n)


def _read_nested(path: Path) -> tuple[list[Any], list[Any], list[Any], None]:
    answers = read_json_file(path)
    if not (isinstance(answers, dict) and all(isinstance(labels, dict) for labels in answers.values())):
        raise InputError(f'{path.name} should look like {{"task": {{"worker": label}}}}')
    outer = [key for key, labels in answers.items() for _ in labels]
    inner = [key for labels in answers.values() for key in labels]
    labels = [label for labels in answers.values() for label in labels.values()]
    return _to_integers(outer), _to_integers(inner), labels, None


def _to_integers(keys: list[str]) -> list[Any]:
    is_integer = all(key.isdecimal() and len(key) <= _MAX_DIGITS and str(int(key)) == key for key in keys)
    return [int(key) for key in keys] if is_integer else keys


def _read_matrix(path: Path) -> tuple[Any, Any, Any, int]:
    """Read a matrix with a row per task and a column per worker. -1 is no vote."""
    rows: list[list[int]] = []
    for number, line in enumerate(read_lines(path), start=1):
        words = line.split()
        if not words:
            continue
        is_row = all(_INTEGER.fullmatch(word) for word in words) and (not rows or len(words) == len(rows[0]))
        if not is_row:
            width = f"{len(rows[0]):,} " if rows else ""
            raise InputError(
                f"{path.name} is not a matrix of integers, tasks by workers, with -1 for no vote: line {number:,} is "
                f"{preview([line])}; expected {width}integers"
            )
        rows.append([int(word) for word in words])
    matrix = np.array(rows, dtype=np.int64)
    task, worker = np.nonzero(matrix >= 0)
    return task, worker, matrix[task, worker], len(matrix)


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:  # noqa: ARG001
    """Read the true classes that peerannot's simulator writes, in the order of the tasks."""
    file = _get_folder(path) / "ground_truth.npy"
    if not file.is_file():
        return None
    labels = read_npy(file)
    if labels.dtype.kind == "S":
        raise InputError(f"{file.name} holds bytes; expected classes as integers or text")
    return pd.DataFrame({"truth": labels.ravel()}, index=pd.RangeIndex(labels.size, name="task"))


def _read_meta(path: Path) -> dict[str, Any]:
    file = _get_folder(path) / "metadata.json"
    meta = read_json_file(file) if file.is_file() else {}
    return meta if isinstance(meta, dict) else {}


def _get_folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _find_answers(path: Path) -> Path:
    if path.is_file():
        return path
    file = next((path / name for name in _NAMES if (path / name).is_file()), None)
    if file is None:
        raise InputError(f"there is neither {' nor '.join(_NAMES)} here")
    return file


def _detect(path: Path) -> bool:
    """Return whether name and first characters fit. A list of records may be called answers.json, too."""
    if path.is_dir():
        return any((path / name).is_file() for name in _NAMES)
    if path.name == "answers.txt":
        words = "".join(peek_lines(path)[:1]).split()
        return bool(words) and all(word.removeprefix("-").isdecimal() for word in words)
    if path.name != "answers.json":
        return False
    text = "".join("".join(peek_lines(path)).split())
    return text.startswith('{"') and '":{' in text


PEERANNOT = FormatReader(
    read_votes=partial(_read_votes, False), detect=_detect, read_truth=_read_truth, read_meta=_read_meta
)
PEERANNOT_INVERTED = FormatReader(
    read_votes=partial(_read_votes, True),
    detect=lambda path: path.name == "answers_inversed.json",
    read_truth=_read_truth,
    read_meta=_read_meta,
)
