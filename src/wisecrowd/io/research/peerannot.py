"""peerannot: a folder with ``answers.json`` or ``answers.txt``, and optionally ``metadata.json``.

Ids are integers in peerannot. They are read as integers, although JSON stores them as text.

References
----------
T. Lefort, B. Charlier, A. Joly and J. Salmon (2024). Peerannot: classification for crowdsourced image datasets with Python.
Computo.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.errors import InputError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.tables.text_files import peek_lines, read_head_lines
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

_NAMES = ("answers.json", "answers.txt")


def _read_votes(is_inverted: bool, path: Path, options: ReadOptions) -> VoteTable:  # noqa: ARG001
    file = _find_answers(path)
    outer, inner, label, n_tasks = _read_matrix(file) if file.suffix == ".txt" else _read_nested(file)
    task, worker = (inner, outer) if is_inverted else (outer, inner)
    try:
        table = pa.table({"task": task, "worker": worker, "label": label})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{file.name} mixes types: {error}") from None
    meta = _read_meta(path)
    n_classes = meta.get("n_classes") if pa.types.is_integer(table["label"].type) else None
    n_tasks = n_tasks if n_tasks is not None else meta.get("n_tasks", meta.get("n_task"))
    tasks, classes = _make_range(table["task"], n_tasks), _make_range(table["label"], n_classes)
    return VoteTable(table=table, tasks=tasks, classes=classes)


def _make_range(column: pa.ChunkedArray, n: Any) -> NDArray[np.int64] | None:
    """Return the integers below n if they include the ids. The metadata may count something else."""
    if not isinstance(n, int) or not pa.types.is_integer(column.type):
        return None
    ids = column.to_numpy()
    return np.arange(n) if len(ids) and ids.min() >= 0 and ids.max() < n else None


def _read_nested(path: Path) -> tuple[list[Any], list[Any], list[Any], None]:
    answers = _read_json(path)
    if not (isinstance(answers, dict) and all(isinstance(labels, dict) for labels in answers.values())):
        raise InputError(f'{path.name} should look like {{"task": {{"worker": label}}}}')
    outer = [key for key, labels in answers.items() for _ in labels]
    inner = [key for labels in answers.values() for key in labels]
    labels = [label for labels in answers.values() for label in labels.values()]
    return _to_integers(outer), _to_integers(inner), labels, None


def _to_integers(keys: list[str]) -> list[Any]:
    return [int(key) for key in keys] if all(key.isdecimal() and str(int(key)) == key for key in keys) else keys


def _read_matrix(path: Path) -> tuple[Any, Any, Any, int]:
    """Read a matrix with a row per task and a column per worker. -1 is no vote."""
    read_head_lines(path)
    try:
        matrix = pd.read_csv(path, sep=r"\s+", header=None, dtype=np.int64, encoding="utf-8-sig").to_numpy()
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(
            f"{path.name} is not a matrix of integers, tasks by workers, with -1 for no vote: {error}"
        ) from None
    task, worker = np.nonzero(matrix >= 0)
    return task, worker, matrix[task, worker], len(matrix)


def _read_truth(path: Path, task: str | None, truth: str | None) -> TruthTable | None:  # noqa: ARG001
    """Read the true classes that peerannot's simulator writes, in the order of the tasks."""
    file = _get_folder(path) / "ground_truth.npy"
    if not file.is_file():
        return None
    try:
        labels = np.load(file, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise InputError(f"{file.name} cannot be read: {error}") from None
    return pd.DataFrame({"truth": labels.ravel()}, index=pd.RangeIndex(labels.size, name="task"))


def _read_meta(path: Path) -> dict[str, Any]:
    file = _get_folder(path) / "metadata.json"
    meta = _read_json(file) if file.is_file() else {}
    return meta if isinstance(meta, dict) else {}


def _read_json(path: Path) -> Any:
    read_head_lines(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is not JSON: {error}") from None


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
