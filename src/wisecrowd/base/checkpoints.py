"""Long fits that can be interrupted: where an iteration stands, in one file that is replaced in one step.

The file holds arrays and JSON in numpy's format without pickles, so that one from a stranger is only data.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.errors import DataWarning, InputError, some
from wisecrowd.utils.files import atomic_path

#: How much of the time may go into writing.
TIME_SHARE = 0.05


class Standing:
    """Where a fit stands: arrays and plain values by name, kept in a file if there is one to keep them in.

    ``belongs`` says of which fit; a file that belongs to another is refused, for to go on from it would give a result that
    neither fit has.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "half-way.npz"
    >>> Standing(place, {"method": "one-coin"}).write({"trace": [-3.5]}, {"tally": np.ones((2, 2))})
    >>> told, arrays = Standing(place, {"method": "one-coin"}).read()
    >>> told, arrays["tally"].shape
    ({'trace': [-3.5]}, (2, 2))
    """

    def __init__(self, path: str | os.PathLike[str] | None, belongs: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.belongs: dict[str, Any] = json.loads(json.dumps(belongs))
        self._next = 0.0

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """What was written, or None when there is nothing yet."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = dict(file)
            told = json.loads(str(arrays.pop("told")))
            belongs = told.pop("belongs")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{self.path} is no checkpoint of a fit; delete it, or keep this fit elsewhere") from None
        differ = [name for name in [*self.belongs, *belongs] if belongs.get(name) != self.belongs.get(name)]
        if differ:
            name = differ[0]
            raise InputError(
                f"the checkpoint {self.path} belongs to another fit, whose {name} is {belongs.get(name, 'not told')}, here "
                f"{self.belongs.get(name, 'not told')}; delete it to start anew, or keep this fit elsewhere"
            )
        return told, arrays

    def due(self) -> bool:
        """Whether to write now takes no part of the time worth mentioning."""
        return self.path is not None and time.monotonic() >= self._next

    def write(self, told: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take the place of what was written before; where that cannot be, the fit goes on without."""
        if self.path is None:
            return
        begun = time.monotonic()
        text = np.array(json.dumps(told | {"belongs": self.belongs}))
        try:
            with atomic_path(self.path) as partial, partial.open("wb") as file:
                np.savez(file, told=text, **arrays)  # type: ignore[arg-type]  # names are our own
        except OSError as error:
            warnings.warn(
                f"where the fit stands could not be kept in {self.path} ({error.strerror}); it goes on, but cannot be "
                "resumed from here. Make room, or name a checkpoint on another disk",
                DataWarning,
                stacklevel=2,
            )
        ended = time.monotonic()
        self._next = ended + (ended - begun) / TIME_SHARE


def standing_of(method: Any, votes: Any, gold: Any, start: Any, **further: Any) -> Standing:
    """Where a method's fit is kept while it runs, by its ``checkpoint``: it may go on elsewhere, with other threads, or for longer.

    ``further`` says what else must be the same.

    >>> from wisecrowd import Crowd, DawidSkene
    >>> standing_of(DawidSkene(), Crowd.from_triples([("t1", "ann", "cat")]), None, None).due()  # nowhere
    False
    """
    if method.checkpoint is None:
        return Standing(None, {})
    aside = ("checkpoint", "engine", "max_iter", "n_jobs", "verbose")
    parameters = {name: repr(value) for name, value in method.get_params(deep=False).items() if name not in aside}
    digests = {
        "votes": votes.digest,
        "truth": likeness(gold),
        "start": likeness(getattr(start, "tally_", start)),
    }
    told = (
        {"method": method.name} | further | {f"digest of the {what}": digest[:12] for what, digest in digests.items()}
    )
    return Standing(method.checkpoint, told | parameters)


def likeness(*parts: Any) -> str:
    """A short text that differs when anything differs: arrays and tables by their content, all else by how it prints.

    >>> likeness(np.arange(3)) == likeness(np.arange(3)), likeness(np.arange(3)) == likeness(None)
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, pd.DataFrame | pd.Series):
            digest.update(
                pd.util.hash_pandas_object(part).to_numpy().tobytes() + some(part.axes[-1][:100], 100).encode()
            )
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif hasattr(part, "digest"):
            digest.update(str(part.digest).encode())
        elif isinstance(part, list | tuple):
            digest.update(likeness(*part).encode())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:32]
