"""Fitted methods as folders of arrays, tables and JSON. Nothing is pickled, so a folder from a stranger is only data.

A part with a life of its own, such as a trained classifier, gives ``arrays()``; the method makes it anew from them. A
method within a method has a folder within the folder.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.method import Method
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.utils.files import read_json, write_json

VERSION = 1


def save(method: Method, folder: str | os.PathLike[str]) -> None:
    """Write a fitted method to a folder, whole or not at all.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> place = Path(tempfile.mkdtemp()) / "model"
    >>> save(fitted, place)
    >>> sorted(file.name for file in place.iterdir())
    ['arrays.npz', 'classes_.parquet', 'method.json', 'task_index_.parquet', 'worker_index_.parquet']
    """
    target = Path(folder)
    if target.is_file() or (target.exists() and not (target / "method.json").exists() and any(target.iterdir())):
        raise UsageError(f"{target} exists and is something else; choose another folder to save the method in")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        partial = Path(scratch) / "method"
        partial.mkdir()
        _write(method, partial)
        if target.exists():
            target.rename(Path(scratch) / "old")
        partial.rename(target)


def load(folder: str | os.PathLike[str]) -> Method:
    """Read back a method that `save` wrote; it answers as before.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> place = Path(tempfile.mkdtemp()) / "model"
    >>> MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")])).save(place)
    >>> load(place).labels_.to_dict()
    {'t1': 'cat'}
    """
    source = Path(folder)
    if not (source / "method.json").is_file():
        raise InputError(f"{source} is not a saved method: it has no method.json. Give the folder that save() wrote")
    try:
        state = read_json(source / "method.json")
    except ValueError as error:  # neither UTF-8 nor JSON
        raise InputError(f"{source} is not a saved method: its method.json cannot be read ({error})") from None
    version = state.get("version") if isinstance(state, dict) else None
    if version != VERSION:
        raise InputError(f"{source} was saved in layout {version!r}; this wisecrowd reads layout {VERSION}")
    try:
        return _read(source, state)
    except (KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{source} is not a saved method: its method.json lacks something ({error!r})") from error


def _read(source: Path, state: dict[str, Any]) -> Method:
    method: Method = _from_json({"method": state["method"], "parameters": state["parameters"]})
    with np.load(source / "arrays.npz", allow_pickle=False) as arrays:
        for name in arrays.files:
            setattr(method, _learnt(name), arrays[name])
    for name, kind in state["tables"].items():
        setattr(method, _learnt(name), _read_table(source / f"{name}.parquet", kind))
    for name, value in state["learnt"].items():
        setattr(method, _learnt(name), value)
    for name in state.get("methods", ()):
        setattr(method, _learnt(name), load(source / name))
    for name in state.get("parts", ()):  # last: to make one anew, a method may look at what else it learnt
        with np.load(source / f"{_learnt(name)}.npz", allow_pickle=False) as arrays:
            setattr(method, name, method._revive(name, dict(arrays)))
    return method


def _learnt(name: str) -> str:
    """The name of something learnt, and of its file: neither a method's function nor the way to another folder."""
    if not (name.isidentifier() and name.endswith("_") and not name.startswith("_")):
        raise InputError(f"this is not a saved method: nothing that a method learns is called {some([name])}")
    return name


def _write(method: Method, folder: Path) -> None:
    arrays: dict[str, Any] = {}
    tables: dict[str, str] = {}
    learnt: dict[str, Any] = {}
    parts: list[str] = []
    methods: list[str] = []
    for name, value in vars(method).items():
        if not name.endswith("_"):
            continue
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, pd.Index | pd.Series | pd.DataFrame):
            tables[name] = _write_table(value, folder / f"{name}.parquet")
        elif isinstance(value, Method):
            (folder / name).mkdir()
            _write(value, folder / name)
            methods.append(name)
        elif hasattr(value, "arrays"):
            np.savez(folder / f"{name}.npz", **value.arrays())
            parts.append(name)
        else:
            learnt[name] = value.item() if isinstance(value, np.generic) else value
    np.savez(folder / "arrays.npz", **arrays)
    state = {
        "version": VERSION,
        **_as_json(method),
        "tables": tables,
        "learnt": learnt,
        "parts": parts,
        "methods": methods,
    }
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{type(method).__name__} holds something that cannot be saved as JSON: {error}") from None
    write_json(folder / "method.json", state)


def _as_json(method: Method) -> dict[str, Any]:
    """Name and parameters of a method."""
    parameters = {}
    for field in parameter_fields(method):
        value = getattr(method, field.name)
        parameters[field.name] = _to_json(value)
        try:
            json.dumps(parameters[field.name], allow_nan=False)
        except (TypeError, ValueError):
            kind = value.__name__ if hasattr(value, "__name__") else type(value).__name__
            raise UsageError(
                f"{field.name} of {type(method).__name__} is of the kind {kind}, which cannot be saved: a folder holds "
                "numbers, texts, arrays and methods of wisecrowd, never code. Choose one by its name where that is "
                "possible, or keep the program that makes it and fit again"
            ) from None
    return {"method": method.name, "parameters": parameters}


def _to_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):  # JSON has lists only
        return {"tuple": [_to_json(part) for part in value]}
    return _as_json(value) if isinstance(value, Method) else value


def _from_json(value: Any) -> Any:
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"array"}:
        return np.asarray(value["array"])
    if keys == {"tuple"}:
        return tuple(map(_from_json, value["tuple"]))
    if keys == {"method", "parameters"}:
        from wisecrowd.base.registry import find

        return find(value["method"])(**{name: _from_json(inner) for name, inner in value["parameters"].items()})
    return value


def _write_table(value: pd.Index | pd.Series | pd.DataFrame, path: Path) -> str:
    frame = pd.DataFrame({"value": value}) if isinstance(value, pd.Index | pd.Series) else value
    pq.write_table(pa.Table.from_pandas(frame), path)
    return type(value).__name__ if isinstance(value, pd.Series | pd.DataFrame) else "Index"


def _read_table(path: Path, kind: str) -> Any:
    frame = pq.read_table(path).to_pandas()
    if kind == "DataFrame":
        return frame
    return frame["value"] if kind == "Series" else pd.Index(frame["value"])


__all__ = ["load", "save"]
