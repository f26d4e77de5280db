"""What a run leaves behind about itself, so that it can be understood and repeated."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from wisecrowd import __version__
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.method import Method
from wisecrowd.data.types import AnyCrowd

_VERSIONS_OF = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "numba", "torch")


def record(method: Method, crowd: AnyCrowd, **extra: Any) -> dict[str, Any]:
    """Method, parameters, seed, versions, input digest, time and convergence, ready for JSON.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> record(MajorityVote().fit(crowd), crowd)["method"]
    'majority-vote'
    """
    parameters = {field.name: _plain(getattr(method, field.name)) for field in parameter_fields(method)}
    trace = getattr(method, "trace_", None)
    return {
        "method": method.name,
        "parameters": parameters,
        "random_state": parameters.get("random_state"),
        "seconds": round(getattr(method, "fit_seconds_", 0.0), 4),
        "iterations": getattr(method, "n_iter_", None),
        "converged": getattr(method, "converged_", None),
        "objective": None if trace is None or len(trace) == 0 else float(trace[-1]),
        **surroundings(crowd),
        **extra,
    }


def surroundings(crowd: AnyCrowd) -> dict[str, Any]:
    """What was read, with what versions, and when, ready for JSON.

    >>> from wisecrowd import Crowd
    >>> surroundings(Crowd.from_triples([("t1", "ann", "cat")]))["input"]["labels"]
    1
    """
    return {
        "input": {
            "tasks": crowd.n_tasks,
            "workers": None if crowd.workers is None else len(crowd.workers),
            "labels": crowd.n_votes,
            "classes": None if crowd.classes is None else [str(name) for name in crowd.classes[:1000]],
            "sha256": crowd.digest,
        },
        "versions": {"wisecrowd": __version__, "python": platform.python_version(), **_versions()},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _VERSIONS_OF:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    # A classifier or an aggregator within a method is told as it would be written.
    return value if value is None or isinstance(value, bool | int | float | str | list | tuple | dict) else repr(value)
