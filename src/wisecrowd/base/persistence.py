"""Saved methods: folders of arrays, tables and JSON.

Nothing is pickled, so loading a folder from an untrusted source executes no code. A fitted part that is neither array nor
table, such as a trained classifier, has a method ``arrays()``, and the method restores it from these arrays. A nested
method is saved in a subfolder.
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
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.utils.files import read_json, write_json

#: Version of the layout of a folder; `load` refuses other versions.
LAYOUT_VERSION = 1


def save(method: Method, folder: str | os.PathLike[str]) -> None:
    """Write a fitted method to a folder, atomically.

    Parameters
    ----------
    method : Method
        Fitted method.
    folder : path-like
        Folder to create. A saved method in it is replaced.

    Raises
    ------
    UsageError
        If the folder contains something else, or a parameter cannot be saved.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> save(fitted, folder)
    >>> sorted(file.name for file in folder.iterdir())
    ['arrays.npz', 'classes_.parquet', 'method.json', 'task_index_.parquet', 'worker_index_.parquet']
    """
    target = Path(folder)
    if target.is_file() or (target.exists() and not (target / "method.json").exists() and any(target.iterdir())):
        raise UsageError(f"{target} exists and is not a saved method; choose another folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        partial = Path(scratch) / "method"
        partial.mkdir()
        _write(method, partial)
        if target.exists():
            target.rename(Path(scratch) / "old")
        partial.rename(target)


def load(folder: str | os.PathLike[str]) -> Method:
    """Read a method that `save` wrote.

    Parameters
    ----------
    folder : path-like
        Folder that `save` wrote.

    Returns
    -------
    Method
        Fitted method.

    Raises
    ------
    InputError
        If the folder is not a saved method, or has another layout.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")])).save(folder)
    >>> load(folder).labels_.to_dict()
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
    if version != LAYOUT_VERSION:
        raise InputError(f"{source} was saved in layout {version!r}; this wisecrowd reads layout {LAYOUT_VERSION}")
    try:
        return _read(source, state)
    except (KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{source} is not a saved method: its method.json is incomplete ({error!r})") from error


def _read(source: Path, state: dict[str, Any]) -> Method:
    """Return the method that a folder contains."""
    method: Method = _from_json({"method": state["method"], "parameters": state["parameters"]})
    with np.load(source / "arrays.npz", allow_pickle=False) as arrays:
        for name in arrays.files:
            setattr(method, _check_attribute_name(name), arrays[name])
    for name, kind in state["tables"].items():
        setattr(method, _check_attribute_name(name), _read_table(source / f"{name}.parquet", kind))
    for name, value in state["values"].items():
        setattr(method, _check_attribute_name(name), value)
    for name in state.get("methods", ()):
        setattr(method, _check_attribute_name(name), load(source / name))
    for name in state.get("parts", ()):  # last, because a method may need other attributes to restore a part
        with np.load(source / f"{_check_attribute_name(name)}.npz", allow_pickle=False) as arrays:
            setattr(method, name, method.restore_part(name, dict(arrays)))
    return method


def _check_attribute_name(name: str) -> str:
    """Return the name of a fitted attribute, or raise an error for the name of a method or a path to another folder."""
    if not (name.isidentifier() and name.endswith("_") and not name.startswith("_")):
        raise InputError(f"this is not a saved method: {preview([name])} is not the name of a fitted attribute")
    return name


def _write(method: Method, folder: Path) -> None:
    """Write a method to an empty folder."""
    arrays: dict[str, Any] = {}
    tables: dict[str, str] = {}
    values: dict[str, Any] = {}
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
            values[name] = value.item() if isinstance(value, np.generic) else value
    np.savez(folder / "arrays.npz", **arrays)
    state = {
        "version": LAYOUT_VERSION,
        **_as_json(method),
        "tables": tables,
        "values": values,
        "parts": parts,
        "methods": methods,
    }
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"an attribute of {type(method).__name__} cannot be saved as JSON: {error}") from None
    write_json(folder / "method.json", state)


def _as_json(method: Method) -> dict[str, Any]:
    """Return the name and the parameters of a method."""
    parameters = {}
    for field in parameter_fields(method):
        value = getattr(method, field.name)
        parameters[field.name] = _to_json(value)
        try:
            json.dumps(parameters[field.name], allow_nan=False)
        except (TypeError, ValueError):
            kind = value.__name__ if hasattr(value, "__name__") else type(value).__name__
            raise UsageError(
                f"{field.name} of {type(method).__name__} is of the type {kind}, which cannot be saved: a folder contains numbers, "
                "strings, arrays and methods of wisecrowd, but no code. Use a name where the parameter accepts one, or fit "
                "again instead of loading"
            ) from None
    return {"method": method.name, "parameters": parameters}


def _to_json(value: Any) -> Any:
    """Return a parameter in a form that JSON can represent."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):  # JSON has lists only
        return {"tuple": [_to_json(part) for part in value]}
    return _as_json(value) if isinstance(value, Method) else value


def _from_json(value: Any) -> Any:
    """Return the parameter that `_to_json` converted."""
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
    """Write an index, a series or a table to Parquet and return its type."""
    frame = pd.DataFrame({"value": value}) if isinstance(value, pd.Index | pd.Series) else value
    pq.write_table(pa.Table.from_pandas(frame), path)
    return type(value).__name__ if isinstance(value, pd.Series | pd.DataFrame) else "Index"


def _read_table(path: Path, kind: str) -> Any:
    """Read what `_write_table` wrote."""
    frame = pq.read_table(path).to_pandas()
    if kind == "DataFrame":
        return frame
    return frame["value"] if kind == "Series" else pd.Index(frame["value"])
