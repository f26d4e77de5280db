"""Saved methods: folders of arrays, tables and JSON.

Nothing is pickled, so loading a folder from an untrusted source executes no code. A fitted part that is neither array nor
table, such as a trained classifier, has a method ``arrays()``, and the method restores it from these arrays. A nested
method is saved in a subfolder. ``method.json`` has the SHA-256 of all other files.

A folder appears, and is replaced, in one step. Loading checks the digests, and then types, shapes and ranges of all
fitted attributes, because somebody who changes a file can also compute its digest.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.fitted_state import check_fitted_state
from wisecrowd.base.method import Method
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.utils.files import atomic_folder, get_replaced_path, write_json
from wisecrowd.utils.stored_files import (
    FileSignature,
    StoredTable,
    compute_file_digest,
    load_arrays,
    load_json,
    refuse_damage,
    write_table,
)

#: Version of the layout of a folder; `load` refuses other versions.
LAYOUT_VERSION = 2
#: File with the parameters and the list of everything else.
STATE = "method.json"
#: What to do about a damaged folder.
ADVICE = "Fit and save the method again, or use a copy of the folder"
#: Number of times that a folder is read again because somebody replaced it in the meantime.
MAX_ATTEMPTS = 100
#: Methods nested in each other, at most.
MAX_DEPTH = 8
Result = TypeVar("Result")
#: Types of tables.
_TABLE_KINDS = ("Index", "Series", "DataFrame")
#: Keys of ``method.json`` and the types of their values.
_STATE_TYPES: dict[str, type] = {
    "method": str, "parameters": dict, "tables": dict, "values": dict, "parts": list, "methods": list, "sha256": dict,
}  # fmt: skip


def save(method: Method, folder: str | os.PathLike[str]) -> None:
    """Write a fitted method to a folder, atomically.

    A saved method in the folder is replaced in one step: another process reads the old one or the new one. Several
    processes may save to one folder at the same time; the last one wins.

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
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> save(fitted, folder)
    >>> sorted(file.name for file in folder.iterdir())
    ['arrays.npz', 'classes_.arrow', 'method.json', 'task_index_.arrow', 'worker_index_.arrow']
    """
    target = Path(os.path.realpath(folder))  # a link to a folder stays
    foreign = _read_unchanged(target, _find_foreign_files)
    if foreign:
        raise UsageError(f"{folder} exists and is not a saved method ({preview(foreign)}); choose another folder")
    with atomic_folder(target) as partial:
        _write(method, partial)


def load(folder: str | os.PathLike[str]) -> Method:
    """Read a method that `save` wrote.

    The parameters ``checkpoint`` and ``engine`` are not those of the fit if they name a file or a cluster: a later fit uses
    these only if you set them again.

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
        If the folder is not a saved method, has another layout, or is damaged.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")])).save(folder)
    >>> load(folder).labels_.to_dict()
    {'t1': 'cat'}
    """
    return _read_unchanged(Path(folder), _read)


def _find_foreign_files(target: Path) -> list[str]:
    """Return the names of files in a folder that do not belong to a saved method."""
    if not target.is_dir():
        return [target.name] if target.exists() else []
    own = re.compile(r"method\.json|arrays\.npz|[^\W_]\w*_(\.arrow|\.npz)?")
    names = sorted(path.name for path in target.iterdir())
    has_state = STATE in names
    return [name for name in names if not has_state or own.fullmatch(name) is None]


def _read_unchanged(source: Path, read: Callable[[Path], Result]) -> Result:
    """Return what a function reads from a folder; if another process replaces the folder meanwhile, read again.

    A process that replaces a folder removes the old one, so that a reader may find some of its files, or files of both folders.
    """
    for attempt in range(MAX_ATTEMPTS):
        folder, identity = _find_folder(source)
        try:
            result = read(folder)
        except (InputError, OSError):
            if _find_folder(source) == (folder, identity):
                raise
        else:
            if _find_folder(source) == (folder, identity):
                return result
        time.sleep(0.0001 * attempt)
    return read(_find_folder(source)[0])


def _find_folder(source: Path) -> tuple[Path, FileSignature | None]:
    """Return the folder to read, and its identity; it is the folder itself, or the one that is being replaced."""
    for folder in (source, get_replaced_path(source)):
        with suppress(OSError):
            return folder, FileSignature.of(folder.stat())
    return source, None


# ---------------------------------------------------------------------- reading


def _read(source: Path, depth: int = 0) -> Method:
    """Return the method that a folder contains."""
    if not (source / STATE).is_file():
        raise InputError(f"{source} is not a saved method: it has no {STATE}. Give the folder that save() wrote")
    if depth == MAX_DEPTH:
        raise InputError(f"{source} is nested too deeply. {ADVICE}")
    state = load_json(source / STATE, ADVICE)
    version = state.get("version") if isinstance(state, dict) else None
    if version != LAYOUT_VERSION:
        raise InputError(
            f"{source} was saved in layout {preview([version])}; this wisecrowd reads layout {LAYOUT_VERSION}. {ADVICE}"
        )
    with refuse_damage(source / STATE, ADVICE):
        _check_state(state)
        try:
            method: Method = _from_json({"method": state["method"], "parameters": state["parameters"]})
        except UsageError as error:  # the file is wrong, not the caller
            raise ValueError(str(error)) from error
    _check_digests(source, state)
    arrays = load_arrays(source / "arrays.npz", ADVICE)
    with refuse_damage(source, ADVICE):
        repeated = set(arrays) & {*state["tables"], *state["values"], *state["methods"], *state["parts"]}
        if repeated:
            raise ValueError(f"{preview(sorted(repeated))} is listed twice")
        for name, array in arrays.items():
            setattr(method, _check_attribute_name(name), array)
        for name, kind in state["tables"].items():
            setattr(method, name, _read_table(source / f"{name}.arrow", kind))
        for name, value in state["values"].items():
            setattr(method, name, value)
        for name in state["methods"]:
            setattr(method, name, _read(source / name, depth + 1))
        for name in state["parts"]:  # last, because a method may need other attributes to restore a part
            part = source / f"{name}.npz"
            with refuse_damage(part, ADVICE):
                setattr(method, name, method.restore_attribute(name, load_arrays(part, ADVICE)))
        check_fitted_state(method)
    return method


def _check_state(state: dict[str, Any]) -> None:
    """Raise if ``method.json`` does not have its form, or names something that is not a fitted attribute."""
    for key, kind in _STATE_TYPES.items():
        if not isinstance(state.get(key), kind):
            raise ValueError(f"{key} is missing or has another type")
    names = [*state["tables"], *state["values"], *state["methods"], *state["parts"]]
    for name in names:
        _check_attribute_name(name)
    if len(set(names)) != len(names):
        raise ValueError("an attribute is listed twice")
    unknown = [kind for kind in state["tables"].values() if kind not in _TABLE_KINDS]
    if unknown:
        raise ValueError(f"no type of table is called {preview(unknown)}")


def _check_attribute_name(name: Any) -> str:
    """Return the name of a fitted attribute, or raise an error for the name of a method or a path to another folder."""
    if not (isinstance(name, str) and name.isidentifier() and name.endswith("_") and not name.startswith("_")):
        raise ValueError(f"{preview([name])} is not the name of a fitted attribute")
    return name


def _check_digests(source: Path, state: dict[str, Any]) -> None:
    """Raise if a file is absent or was changed after it was written."""
    for name in _list_files(state):
        digest = state["sha256"].get(name)
        with refuse_damage(source / name, ADVICE):
            if compute_file_digest(source / name) != digest:
                raise InputError(
                    f"{source / name} was changed after it was written: its SHA-256 is not the one in {STATE}. {ADVICE}"
                )


def _list_files(state: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the files of a saved method, other than ``method.json``."""
    yield "arrays.npz"
    yield from (f"{name}.arrow" for name in state["tables"])
    yield from (f"{name}.npz" for name in state["parts"])
    yield from (f"{name}/{STATE}" for name in state["methods"])


def _read_table(path: Path, kind: str) -> Any:
    """Read what `_write_table` wrote."""
    with refuse_damage(path, ADVICE):
        table = StoredTable(path, ADVICE, mapped=False)
        table.validate()
        frame = pa.Table.from_batches([table.batch]).to_pandas()
        if kind == "DataFrame":
            return frame
        return frame["value"] if kind == "Series" else pd.Index(frame["value"])


def _from_json(value: Any) -> Any:
    """Return the parameter that `_to_json` converted."""
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"array"}:
        return np.asarray(value["array"])
    if keys == {"tuple"}:
        return tuple(map(_from_json, value["tuple"]))
    if keys == {"method", "parameters"}:
        from wisecrowd.base.registry import find

        if not isinstance(value["method"], str):
            raise ValueError(f"{preview([value['method']])} is not the name of a method")
        parameters = {name: _from_json(inner) for name, inner in value["parameters"].items()}
        return find(value["method"])(**_drop_places(parameters))
    return value


def _drop_places(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters without files and clusters, which a later fit would write to or connect to."""
    engine = parameters.get("engine")
    dropped = {"checkpoint"} | ({"engine"} if isinstance(engine, str) and ":" in engine else set())
    return {name: value for name, value in parameters.items() if name not in dropped}


# ---------------------------------------------------------------------- writing


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
            tables[name] = _write_table(value, folder / f"{name}.arrow")
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
    state: dict[str, Any] = {
        "version": LAYOUT_VERSION,
        **_as_json(method),
        "tables": tables,
        "values": values,
        "parts": parts,
        "methods": methods,
    }
    state["sha256"] = {name: compute_file_digest(folder / name) for name in _list_files(state)}
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"an attribute of {type(method).__name__} cannot be saved as JSON: {error}") from None
    write_json(folder / STATE, state)


def _as_json(method: Method) -> dict[str, Any]:
    """Return the name and the parameters of a method."""
    parameters = {}
    values = {field.name: getattr(method, field.name) for field in parameter_fields(method)}
    for name, value in _drop_places(values).items():
        parameters[name] = _to_json(value)
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError):
            kind = value.__name__ if hasattr(value, "__name__") else type(value).__name__
            raise UsageError(
                f"{name} of {type(method).__name__} is of the type {kind}, which cannot be saved: a folder contains numbers, "
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


def _write_table(value: pd.Index | pd.Series | pd.DataFrame, path: Path) -> str:
    """Write an index, a series or a table and return its type."""
    frame = pd.DataFrame({"value": value}) if isinstance(value, pd.Index | pd.Series) else value
    write_table(path, pa.Table.from_pandas(frame))
    return type(value).__name__ if isinstance(value, pd.Series | pd.DataFrame) else "Index"
