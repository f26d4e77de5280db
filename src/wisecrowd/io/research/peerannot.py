"""peerannot: a folder with ``answers.json`` or ``answers.txt``, and perhaps ``metadata.json``.

Lefort, Charlier, Joly and Salmon (2024), Peerannot: classification for crowdsourced image datasets with Python.
Its ids are integers, and so are they here, although JSON makes text of them.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.tables import text as _text

_NAMES = ("answers.json", "answers.txt")


def _votes(inverted: bool, path: Path, options: Options) -> Votes:  # noqa: ARG001
    file = _answers(path)
    outer, inner, label, n_tasks = _matrix(file) if file.suffix == ".txt" else _nested(file)
    task, worker = (inner, outer) if inverted else (outer, inner)
    columns = {"task": task, "worker": worker, "label": label}
    try:
        table = pa.table(columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{file.name} mixes types: {error}") from None
    meta = _meta(path)
    classes = meta.get("n_classes") if pa.types.is_integer(table["label"].type) else None
    n_tasks = n_tasks if n_tasks is not None else meta.get("n_tasks", meta.get("n_task"))
    return Votes(table=table, tasks=_counted(table["task"], n_tasks), classes=_counted(table["label"], classes))


def _counted(column: pa.ChunkedArray, n: int | None) -> Any:
    """The integers below n, if the ids are among them: metadata may count what the answers do not."""
    if not isinstance(n, int) or not pa.types.is_integer(column.type):
        return None
    held = column.to_numpy()
    return np.arange(n) if len(held) and held.min() >= 0 and held.max() < n else None


def _nested(path: Path) -> tuple[list[Any], list[Any], list[Any], None]:
    answers = _json(path)
    if not (isinstance(answers, dict) and all(isinstance(said, dict) for said in answers.values())):
        raise InputError(f'{path.name} should look like {{"task": {{"worker": label}}}}')
    outer = [key for key, said in answers.items() for _ in said]
    inner = [key for said in answers.values() for key in said]
    return (
        _as_integers(outer),
        _as_integers(inner),
        [label for said in answers.values() for label in said.values()],
        None,
    )


def _as_integers(keys: list[str]) -> list[Any]:
    return [int(key) for key in keys] if all(key.isdecimal() and str(int(key)) == key for key in keys) else keys


def _matrix(path: Path) -> tuple[Any, Any, Any, int]:
    """Rows are tasks, columns workers, and -1 means no answer."""
    _text.head_lines(path)
    try:
        matrix = pd.read_csv(path, sep=r"\s+", header=None, dtype=np.int64, encoding="utf-8-sig").to_numpy()
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(
            f"{path.name}: a matrix of integers was wanted, tasks by workers, -1 for none: {error}"
        ) from None
    task, worker = np.nonzero(matrix >= 0)
    return task, worker, matrix[task, worker], len(matrix)


def _truth(path: Path, task: str | None, truth: str | None) -> Truth | None:  # noqa: ARG001
    """What its simulator leaves: the true class of each task, in order."""
    file = _folder(path) / "ground_truth.npy"
    if not file.is_file():
        return None
    try:
        known = np.load(file, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise InputError(f"{file.name} cannot be read: {error}") from None
    return pd.DataFrame({"truth": known.ravel()}, index=pd.RangeIndex(known.size, name="task"))


def _meta(path: Path) -> dict[str, Any]:
    file = _folder(path) / "metadata.json"
    meta = _json(file) if file.is_file() else {}
    return meta if isinstance(meta, dict) else {}


def _json(path: Path) -> Any:
    _text.head_lines(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is not JSON: {error}") from None


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _answers(path: Path) -> Path:
    if path.is_file():
        return path
    file = next((path / name for name in _NAMES if (path / name).is_file()), None)
    if file is None:
        raise InputError(f"there is neither {' nor '.join(_NAMES)} here")
    return file


def _sniff(path: Path) -> bool:
    """By name, and for a file also by its first letters: a list of records may be called answers.json too."""
    if path.is_dir():
        return any((path / name).is_file() for name in _NAMES)
    if path.name == "answers.txt":
        words = "".join(_text.looks_like_text(path)[:1]).split()
        return bool(words) and all(word.removeprefix("-").isdecimal() for word in words)
    if path.name != "answers.json":
        return False
    letters = "".join("".join(_text.looks_like_text(path)).split())
    return letters.startswith('{"') and '":{' in letters


PEERANNOT = Format(
    name="peerannot",
    about="peerannot's answers.json or answers.txt",
    patterns=(),
    votes=partial(_votes, False),
    sniff=_sniff,
    truth=_truth,
    meta=_meta,
)
PEERANNOT_INVERTED = Format(
    name="peerannot-inverted",
    about="the same with workers outside and tasks inside",
    patterns=(),
    votes=partial(_votes, True),
    sniff=lambda path: path.name == "answers_inversed.json",
    truth=_truth,
    meta=_meta,
)
