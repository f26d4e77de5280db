"""One file that holds a computation half-way: arrays as safetensors, what they belong to as JSON in its head.

Nothing is pickled, so that a file from a stranger is only data; and the file is replaced in one step, so that whoever
is killed while writing leaves the one before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import InputError, MissingExtra
from wisecrowd.nn.process_group import my_team
from wisecrowd.utils.files import atomic_path

Arrays = dict[str, NDArray[Any]]

#: How much of the time may go into writing checkpoints.
TIME_SHARE = 0.05


class Checkpoint:
    """A place to keep arrays between two runs of one program.

    ``belongs`` says whose arrays they are (settings, a `fingerprint` of the data); a file that belongs to something
    else is refused, for to go on from it would give a result that neither fit has.

    >>> import tempfile
    >>> place = Checkpoint(Path(tempfile.mkdtemp()) / "half-way.safetensors", {"seed": 0})
    >>> place.read() is None
    True
    >>> place.write({"weights": np.array([1.5, 2.5])})
    >>> place.read()["weights"].tolist()
    [1.5, 2.5]
    """

    def __init__(self, path: str | Path, belongs: dict[str, Any]) -> None:
        self.path = Path(path)
        self.belongs = json.loads(json.dumps(belongs))
        self._next = 0.0

    def read(self) -> Arrays | None:
        """What was kept, or None when there is nothing yet."""
        my_team().wait()  # the first of several processes may still be writing
        if not self.path.exists():
            return None
        numpy_format, refused = _safetensors()
        try:
            with numpy_format(self.path, framework="numpy") as file:
                belongs = json.loads((file.metadata() or {}).get("belongs", "null"))
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dict
        except (refused, json.JSONDecodeError) as error:
            raise InputError(f"{self.path} is no checkpoint ({error}); delete it, or name another folder") from None
        if belongs != self.belongs:
            raise InputError(
                f"the checkpoint {self.path} belongs to another fit ({_difference(belongs, self.belongs)}); delete it "
                "to start anew, or name another folder"
            )
        return arrays

    def offer(self, arrays: Callable[[], Arrays], *, last: bool = False) -> None:
        """Write what ``arrays()`` gives, if it is the last or writing takes no part of the time worth mentioning.

        Of several processes that have the same arrays, the first writes.
        """
        if my_team().is_first and (last or time.monotonic() >= self._next):
            self.write(arrays())

    def write(self, arrays: Arrays) -> None:
        """Take the place of what was kept before."""
        _safetensors()
        from safetensors.numpy import save_file

        begun = time.monotonic()
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        for name, array in arrays.items():
            whole[name] = whole[name].reshape(array.shape)  # ascontiguousarray gives a number a dimension
        with atomic_path(self.path) as partial:
            save_file(whole, partial, metadata={"belongs": json.dumps(self.belongs)})
        ended = time.monotonic()
        self._next = ended + (ended - begun) / TIME_SHARE


def fingerprint(*parts: Any) -> str:
    """A short text that differs when anything differs: arrays by their content, all else by how it prints.

    >>> fingerprint(np.arange(3), "mlp") == fingerprint(np.arange(3), "mlp"), len(fingerprint(0))
    (True, 32)
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3.0))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def plain(settings: Any) -> dict[str, Any]:
    """A dataclass as JSON can hold it, what JSON does not know by how it prints.

    >>> plain(dataclasses.make_dataclass("Settings", ["rate", "kind"])(0.5, complex))
    {'rate': 0.5, 'kind': "<class 'complex'>"}
    """
    fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {
        name: value if isinstance(value, str | int | float | None) else repr(value) for name, value in fields.items()
    }


def _difference(there: Any, here: dict[str, Any]) -> str:
    if not isinstance(there, dict):
        return "it does not say to which"
    differ = [name for name in sorted({*there, *here}) if there.get(name) != here.get(name)]
    return ", ".join(f"{name} is {there.get(name)!r} there and {here.get(name)!r} here" for name in differ[:3])


def _safetensors() -> tuple[Any, type[Exception]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingExtra("learn", "checkpoints") from None
    return safe_open, SafetensorError
