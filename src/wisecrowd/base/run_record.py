"""Record of a run: method, parameters, versions and input, so that the run can be understood and repeated."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from wisecrowd import __version__
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.method import Method
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.data.types import AnyCrowd

#: Number of classes that a record lists.
MAX_LISTED_CLASSES = 1000
_RECORDED_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "numba", "torch")


def record_run(
    method: Method, crowd: AnyCrowd, *, rows: Mapping[str, Any] | None = None, **extra: Any
) -> dict[str, Any]:
    """Return method, parameters, seed, duration, convergence, versions and input digest of a fit.

    Parameters
    ----------
    method : Method
        Fitted method.
    crowd : Crowd or ShardedCrowd
        Votes of the fit.
    rows : mapping, default=None
        Numbers of rows that reading removed or changed.
    **extra : object
        Further entries.

    Returns
    -------
    dict
        Values that JSON can represent.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> record_run(MajorityVote().fit(crowd), crowd)["method"]
    'majority-vote'
    """
    parameters = {field.name: _to_plain(getattr(method, field.name)) for field in parameter_fields(method)}
    trace = getattr(method, "trace_", None)
    return {
        "method": method.name,
        "parameters": parameters,
        "random_state": parameters.get("random_state"),
        "seconds": round(getattr(method, "fit_seconds_", 0.0), 4),
        "iterations": getattr(method, "n_iter_", None),
        "converged": getattr(method, "converged_", None),
        "objective": None if trace is None or len(trace) == 0 else float(trace[-1]),
        **describe_environment(crowd, rows=rows),
        **extra,
    }


def _describe_input(
    crowd: AnyCrowd | Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | ScoreCrowd | TextCrowd,
) -> dict[str, Any]:
    """Return the sizes and the digest of votes of any type."""
    common = {
        "workers": None if crowd.workers is None else len(crowd.workers),
        "votes": crowd.n_votes,
        "sha256": crowd.digest,
    }
    if isinstance(crowd, Comparisons):
        return {"items": crowd.n_items, "tasks": None if crowd.tasks is None else len(crowd.tasks), **common}
    if isinstance(crowd, MaskCrowd | TextCrowd):
        return {"tasks": crowd.n_tasks, **common}
    names = crowd.labels if isinstance(crowd, LabelSetCrowd) else crowd.classes
    classes = None if names is None else [str(name) for name in names[:MAX_LISTED_CLASSES]]
    return {"tasks": crowd.n_tasks, **common, "classes": classes}


def describe_environment(
    crowd: AnyCrowd | Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | ScoreCrowd | TextCrowd,
    *,
    rows: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the sizes and the digest of the input, the versions of packages, and the time.

    Parameters
    ----------
    crowd : Crowd, ShardedCrowd, Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, ScoreCrowd or TextCrowd
        Votes.
    rows : mapping, default=None
        Numbers of rows that reading removed or changed; recorded with the input.

    Returns
    -------
    dict
        Values that JSON can represent.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> describe_environment(Crowd.from_triples([("t1", "ann", "cat")]))["input"]["votes"]
    1
    """
    recorded_rows = {} if rows is None else {"rows": dict(rows)}
    return {"input": {**_describe_input(crowd), **recorded_rows}, **describe_versions()}


def describe_versions() -> dict[str, Any]:
    """Return the versions of packages, and the time.

    Returns
    -------
    dict
        Values that JSON can represent.

    Examples
    --------
    >>> sorted(describe_versions())
    ['finished', 'versions']
    """
    return {
        "versions": {"wisecrowd": __version__, "python": platform.python_version(), **_get_versions()},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def _get_versions() -> dict[str, str]:
    """Return the versions of the packages that are installed, which are found by searching the path for each."""
    versions = {}
    for package in _RECORDED_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _to_plain(value: Any) -> Any:
    """Return a parameter as a value that JSON can represent; a nested method as its repr."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str | list | tuple | dict) else repr(value)
