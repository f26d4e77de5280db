"""Checkpoints: the state of a long fit in one file, from which an interrupted fit resumes.

A checkpoint is a numpy ``.npz`` archive of arrays and one JSON text. It contains no pickles, so reading a file from
an untrusted source executes no code. A fit checks shapes and ranges of what it reads, and refuses NaN. Every write
replaces the file atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import parameter_fields
from wisecrowd.errors import DataWarning, InputError, UsageError, preview
from wisecrowd.utils.files import atomic_path
from wisecrowd.utils.stored_files import load_arrays, refuse_damage

if TYPE_CHECKING:
    from wisecrowd.base.method import Method
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.data.types import AnyCrowd

Arrays = dict[str, NDArray[Any]]

#: Largest share of the running time that `Checkpoint.write_if_due` spends on writing.
TIME_SHARE = 0.05
#: Length of a fingerprint in hexadecimal digits: 128 bits, so that two fits do not collide.
FINGERPRINT_LENGTH = 32
#: What to do about a damaged file.
ADVICE = "Delete the file to start over, or choose another checkpoint"
#: Name of the JSON text among the arrays of the archive.
METADATA = "metadata"
#: Parameters that do not change the result of a fit; a fit may resume with other values of them.
IRRELEVANT_PARAMETERS = ("checkpoint", "engine", "max_iter", "n_jobs", "verbose")
#: Parameters of learners that the fingerprint of a fit leaves out; the classifier is described separately.
IRRELEVANT_LEARNER_PARAMETERS = ("checkpoint", "verbose", "classifier")


class CheckpointState(NamedTuple):
    """State of a fit: arrays by name, and values that JSON can represent.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Arrays by name.
    json_values : dict, default {}
        Further values, which JSON can represent.

    Examples
    --------
    >>> CheckpointState({"weights": np.zeros(3)}).json_values
    {}
    """

    arrays: Arrays
    json_values: dict[str, Any] = {}  # noqa: RUF012  # a default of a named tuple, never changed

    def read_numbers(self, name: str, shape: tuple[int, ...], *, lowest: float = -np.inf) -> NDArray[Any]:
        """Return an array after a check of its shape and its numbers.

        Parameters
        ----------
        name : str
            Name of the array.
        shape : tuple of int
            Shape that it must have.
        lowest : float, default -inf
            Smallest valid number.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If the array is absent, has another shape, or contains invalid numbers, such as NaN.

        Examples
        --------
        >>> CheckpointState({"prior": np.array([0.5, np.nan])}).read_numbers("prior", (2,))
        Traceback (most recent call last):
            ...
        ValueError: prior contains NaN or infinite numbers
        """
        array = self.arrays.get(name)
        if array is None or array.shape != shape or array.dtype.kind not in "fiu":
            actual = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{name} must be numbers of shape {shape}; got {actual}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinite numbers")
        if (array < lowest).any():
            raise ValueError(f"{name} contains {array.min():.6g}; its numbers must be {lowest:g} or more")
        return array

    def read_trace(self, name: str = "trace") -> list[float]:
        """Return a list of objectives after a check.

        Parameters
        ----------
        name : str, default "trace"
            Name of the value.

        Returns
        -------
        list of float

        Raises
        ------
        ValueError
            If it is not a list of finite numbers.

        Examples
        --------
        >>> CheckpointState({}, {"trace": [-3.5]}).read_trace()
        [-3.5]
        """
        return check_trace(self.json_values[name])


def check_trace(values: Any) -> list[float]:
    """Return objectives from a checkpoint as a list of floating-point numbers.

    Parameters
    ----------
    values : object
        Value of JSON.

    Returns
    -------
    list of float

    Raises
    ------
    ValueError
        If it is not a list of finite numbers.

    Examples
    --------
    >>> check_trace([1.0, "x"])
    Traceback (most recent call last):
        ...
    ValueError: a trace must be a list of finite numbers; got [1.0, 'x']
    """
    is_list = isinstance(values, list)
    if not is_list or not all(type(value) in (int, float) and abs(value) < np.inf for value in values):
        raise ValueError(f"a trace must be a list of finite numbers; got {preview([values])}")
    return [float(value) for value in values]


class Checkpoint:
    """File that holds the state of one fit.

    Parameters
    ----------
    path : path-like or None
        File to read and write. With None, `read` returns None and writing does nothing.
    owner : mapping
        JSON description of the fit: method, parameters, fingerprints of the data. `read` refuses a file with another
        owner.
    writes : bool, default True
        Whether this process writes. Of several processes that hold the same state, exactly one should.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fit.npz"
    >>> Checkpoint(path, {"method": "one-coin"}).write(CheckpointState({"tally": np.ones((2, 2))}, {"trace": [-3.5]}))
    >>> arrays, values = Checkpoint(path, {"method": "one-coin"}).read()
    >>> arrays["tally"].shape, values
    ((2, 2), {'trace': [-3.5]})
    """

    def __init__(self, path: str | os.PathLike[str] | None, owner: Mapping[str, Any], *, writes: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.owner: dict[str, Any] = json.loads(json.dumps(dict(owner)))
        self.writes = writes
        self._next_write = 0.0

    def read(self) -> CheckpointState | None:
        """Return the state in the file, or None if there is no file.

        Returns
        -------
        CheckpointState or None

        Raises
        ------
        InputError
            If the file is not a checkpoint, or the checkpoint of another fit.
        """
        if self.path is None or not self.path.exists():
            return None
        stored = load_arrays(self.path, ADVICE)
        with self.refuse_damage():
            metadata = json.loads(str(stored.pop(METADATA)))
            owner, values, names = metadata["owner"], metadata["values"], metadata["names"]
            if not (isinstance(owner, dict) and isinstance(values, dict) and isinstance(names, list)):
                raise ValueError("its description has another form")
            if not (all(isinstance(name, str) for name in names) and len(set(names)) == len(names) == len(stored)):
                raise ValueError("the names of its arrays are invalid")
            arrays = {name: stored[f"array-{number}"] for number, name in enumerate(names)}
            self._check_owner(owner)
        return CheckpointState(arrays, values)

    def refuse_damage(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which every error means that the file is damaged; see `stored_files.refuse_damage`.

        Returns
        -------
        context manager

        Examples
        --------
        >>> with Checkpoint("fit.npz", {}).refuse_damage():
        ...     raise ValueError("tally must be numbers of shape (2, 2)")
        Traceback (most recent call last):
            ...
        wisecrowd.errors.InputError: fit.npz is damaged or not a file of wisecrowd (ValueError: tally must be ...
        """
        return refuse_damage("checkpoint" if self.path is None else self.path, ADVICE)

    def _check_owner(self, owner: dict[str, Any]) -> None:
        """Raise if the file belongs to another fit."""
        names = [name for name in {**self.owner, **owner} if owner.get(name) != self.owner.get(name)]
        if names:
            differences = (
                f"{str(name)[:60]} is {_show(owner, name)} there and {_show(self.owner, name)} here" for name in names
            )
            raise InputError(
                f"the checkpoint {self.path} belongs to another fit: {', '.join([*differences][:3])}; delete the file to "
                "start over, or choose another checkpoint"
            )

    def write(self, state: CheckpointState) -> None:
        """Replace the file by a state; if that fails, warn and let the fit continue.

        Parameters
        ----------
        state : CheckpointState
            Arrays (no arrays of Python objects) and JSON values.
        """
        if self.path is None or not self.writes:
            return
        start = time.monotonic()
        metadata = {"owner": self.owner, "values": state.json_values, "names": list(state.arrays)}
        # Names of arrays are in the metadata, since not every name is valid in a zip archive.
        arrays = {f"array-{number}": array for number, array in enumerate(state.arrays.values())}
        if any(array.dtype.hasobject for array in arrays.values()):
            raise TypeError("arrays of Python objects would be pickled; convert them before writing a checkpoint")
        try:
            with atomic_path(self.path) as partial, partial.open("wb") as file:
                np.savez(file, **{METADATA: np.array(json.dumps(metadata))}, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error.strerror}); the fit continues, but cannot resume "
                "from here. Free some space, or choose a checkpoint on another disk",
                DataWarning,
                stacklevel=2,
            )
        end = time.monotonic()
        self._next_write = end + (end - start) / TIME_SHARE

    def write_if_due(self, make_state: Callable[[], CheckpointState], *, final: bool = False) -> None:
        """Write the state unless the last write is so recent that writing would take more than `TIME_SHARE` of the time.

        Parameters
        ----------
        make_state : callable
            Function that returns the state; called only if it is written.
        final : bool, default False
            Write in any case.
        """
        if self.path is not None and self.writes and (final or time.monotonic() >= self._next_write):
            self.write(make_state())


def open_checkpoint(
    path: str | None, method: Method, votes: AnyCrowd, gold: Any, start: Any, **further: Any
) -> Checkpoint:
    """Return the checkpoint of a method's fit.

    A fit may resume on another machine, with another number of threads or a higher ``max_iter``.

    Parameters
    ----------
    path : str or None
        File of the checkpoint; None for a fit without one.
    method : Method
        Method to fit.
    votes : Crowd or ShardedCrowd
        Votes to fit on.
    gold, start : object
        Known truth and starting point of the fit.
    **further : object
        Further properties that must be equal for a fit to resume.

    Returns
    -------
    Checkpoint

    Examples
    --------
    >>> from wisecrowd import Crowd, DawidSkene
    >>> open_checkpoint(None, DawidSkene(), Crowd.from_triples([("t1", "ann", "cat")]), None, None).path is None
    True
    """
    if path is None:
        return Checkpoint(None, {})
    fingerprints = {
        "votes": votes.digest,
        "truth": compute_fingerprint(gold),
        "start": compute_fingerprint(getattr(start, "tally_", start)),
    }
    parameters = {
        name: repr(value) for name, value in method.get_params(deep=False).items() if name not in IRRELEVANT_PARAMETERS
    }
    owner = (
        {"method": method.name} | further | {f"digest of the {name}": text[:12] for name, text in fingerprints.items()}
    )
    return Checkpoint(path, owner | parameters)


def open_learner_checkpoint(
    folder: str | None,
    method: Method,
    description: str,
    X: NDArray[Any],
    crowd: Crowd,
    gold: NDArray[Any] | None,
    *,
    writes: bool = True,
) -> Checkpoint:
    """Return the checkpoint of a learner's fit, in a folder that several fits may share.

    The fingerprint of data and parameters is part of the file name, so that the fits of a cross-validation have files
    of their own.

    Parameters
    ----------
    folder : str or None
        Folder of the checkpoint; None for a fit without one.
    method : Learner
        Learner to fit.
    description : str
        Description of the classifier.
    X : ndarray of shape (n_tasks, ...)
        Features.
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,) or None
        Known classes.
    writes : bool, default True
        Whether this process writes.

    Returns
    -------
    Checkpoint
        Without a path if there is no folder.

    Raises
    ------
    UsageError
        If ``folder`` is a file.

    Examples
    --------
    >>> from wisecrowd import Crowd, CrowdLayer
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> open_learner_checkpoint("fits", CrowdLayer(), "mlp", np.zeros((1, 2)), crowd, None).path.parent.name
    'fits'
    """
    if folder is None:
        return Checkpoint(None, {})
    if Path(folder).is_file():
        raise UsageError(f"checkpoint={folder!r} is a file; give the path of a folder")
    names = [field.name for field in parameter_fields(method) if field.name not in IRRELEVANT_LEARNER_PARAMETERS]
    votes = (crowd.task, crowd.worker, crowd.label, crowd.weight, crowd.n_tasks, crowd.n_classes)
    settings = {name: getattr(method, name) for name in names}
    fingerprint = compute_fingerprint(X, *votes, gold, description, settings)
    return Checkpoint(Path(folder) / f"{method.name}-{fingerprint}.npz", {"fit": fingerprint}, writes=writes)


def compute_fingerprint(*parts: Any) -> str:
    """Return a short text that differs whenever any part differs.

    Parameters
    ----------
    *parts : object
        Arrays and tables are compared by their content, crowds by their ``digest``, everything else by its ``repr``.

    Returns
    -------
    str
        Hexadecimal digits.

    Examples
    --------
    >>> compute_fingerprint(np.arange(3), "mlp") == compute_fingerprint(np.arange(3), "mlp")
    True
    >>> compute_fingerprint(np.arange(3)) == compute_fingerprint(np.arange(3.0))
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, pd.DataFrame | pd.Series):
            digest.update(
                pd.util.hash_pandas_object(part).to_numpy().tobytes() + preview(part.axes[-1][:100], 100).encode()
            )
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif hasattr(part, "digest"):
            digest.update(str(part.digest).encode())
        elif isinstance(part, list | tuple):
            digest.update(compute_fingerprint(*part).encode())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


def _show(owner: dict[str, Any], name: str) -> str:
    """Return the value of a property as an error message shows it."""
    return preview([owner[name]]) if name in owner else "missing"
