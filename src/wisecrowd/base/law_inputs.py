"""Inputs of the laws: crowds, features, renamed vocabularies, and copies of fitted methods."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from wisecrowd.base.method import Method
from wisecrowd.base.persistence import load
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import MAX_WEIGHT, MIN_WEIGHT

M = TypeVar("M", bound=Method)

#: Largest difference between results that differ only in the order of summation.
TOLERANCE = 1e-6
#: Number of features of a task.
N_FEATURES = 8


def make_features(tasks: pd.Index) -> pd.DataFrame:
    """Return random features of tasks; the first n tasks have the same features, however many follow.

    Parameters
    ----------
    tasks : Index
        Task ids.

    Returns
    -------
    DataFrame of shape (n_tasks, 8)

    Examples
    --------
    >>> make_features(pd.Index(["a", "b"])).shape
    (2, 8)
    """
    rows = np.random.default_rng(7).normal(size=(len(tasks), N_FEATURES))
    return pd.DataFrame(rows, index=tasks, columns=[f"x{number}" for number in range(N_FEATURES)])


def make_degenerate_crowds(*, ordered: bool = False) -> list[Crowd]:
    """Return small crowds that break careless code: one class, one worker, one vote per task, unused classes, ….

    Parameters
    ----------
    ordered : bool, default False
        Whether the classes are ordered.

    Returns
    -------
    list of Crowd

    Examples
    --------
    >>> len(make_degenerate_crowds()) > 5
    True
    """
    grid = [(task, worker) for task in range(5) for worker in range(3)]
    crowds = [
        Crowd.from_triples([(0, 0, "a")]),
        Crowd.from_triples([(task, worker, "a") for task, worker in grid]),
        Crowd.from_triples([(task, worker, "a") for task, worker in grid], classes=["a", "b", "c"]),
        Crowd.from_triples([(task, 0, "ab"[task % 2]) for task in range(5)]),
        Crowd.from_triples([(task, task, "ab"[task % 2]) for task in range(5)]),
        Crowd.from_triples([(task, worker, "ab"[task % 2] if worker else "a") for task, worker in grid]),
        Crowd.from_triples(
            [(task, worker, "ab"[worker % 2]) for task, worker in grid], tasks=range(8), workers=range(6)
        ),
        Crowd.from_triples([(0, worker, "ab"[worker % 2]) for worker in range(400)]),
    ]
    return [crowd.replace_fields(ordered=ordered) for crowd in crowds]


def make_extreme_crowds(crowd: Crowd) -> dict[str, Crowd]:
    """Return the votes of a crowd with weights at the ends of the valid range.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    dict of str to Crowd
        Crowds by a description of their weights.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "cat")])
    >>> make_extreme_crowds(crowd)["tasks"].weight.tolist()
    [1e-12, 1000000000000.0]
    """
    number: dict[str, Any] = {"votes": np.arange(crowd.n_votes), "tasks": crowd.task, "workers": crowd.worker_codes}
    weights = {name: np.where(codes % 2 == 0, MIN_WEIGHT, MAX_WEIGHT) for name, codes in number.items()}
    weights |= {"lowest": np.full(crowd.n_votes, MIN_WEIGHT), "highest": np.full(crowd.n_votes, MAX_WEIGHT)}
    return {name: crowd.replace_fields(weight=weight) for name, weight in weights.items()}


def rebuild_crowd(crowd: Crowd, frame: pd.DataFrame, **vocabularies: Any) -> Crowd:
    """Return a crowd with other rows over the same vocabularies.

    Parameters
    ----------
    crowd : Crowd
        Crowd whose vocabularies are used.
    frame : DataFrame
        Votes.
    **vocabularies : Index or list
        Replacements of ``tasks``, ``workers`` or ``classes``.

    Returns
    -------
    Crowd

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1)])
    >>> rebuild_crowd(crowd, crowd.to_frame().iloc[::-1]) == crowd
    True
    """
    options = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes} | vocabularies
    weight = "weight" if "weight" in frame else None
    return Crowd.from_frame(frame, weight=weight, duplicates="keep", ordered=crowd.is_ordered, **options)


def shuffle_names(index: pd.Index | None, seed: int) -> dict[Any, str]:
    """Return new names in a random order that differs from the current one.

    Parameters
    ----------
    index : Index
        Current names.
    seed : int
        Seed of the order.

    Returns
    -------
    dict
        New names by current name.

    Examples
    --------
    >>> sorted(shuffle_names(pd.Index(["ann", "bob"]), 0).values())
    ['n0000', 'n0001']
    """
    assert index is not None
    order = np.random.default_rng(seed).permutation(len(index))
    if (np.diff(order) > 0).all():
        order = order[::-1]
    return {name: f"n{rank:04d}" for name, rank in zip(index, order, strict=True)}


def assert_close(actual: Any, expected: Any, change: str, tolerance: float = TOLERANCE) -> None:
    """Raise an error if two results differ by more than the order of summation explains.

    Parameters
    ----------
    actual, expected : array-like
        Results.
    change : str
        Difference of the inputs, for the error message.
    tolerance : float, default 1e-6
        Largest accepted difference.

    Raises
    ------
    AssertionError
        If the results differ, or are NaN in different cells.

    Examples
    --------
    >>> assert_close(np.ones(2), np.zeros(2), "nothing")
    Traceback (most recent call last):
        ...
    AssertionError: nothing changed a result by up to 1...
    """
    actual_values, expected_values = (np.asarray(table, dtype=np.float64) for table in (actual, expected))
    assert np.array_equal(np.isnan(actual_values), np.isnan(expected_values)), (
        f"{change} changed the cells that are NaN"
    )
    gap = np.nan_to_num(np.abs(actual_values - expected_values)).max(initial=0)
    assert gap <= tolerance, f"{change} changed a result by up to {gap:.3g}"


def copy_fitted(method: M, fitted: M) -> list[M]:
    """Return copies of a fitted method made by pickle, and by save and load; check that parameters are preserved.

    Parameters
    ----------
    method : Method
        The method before the fit.
    fitted : Method
        The fitted method.

    Returns
    -------
    list of Method

    Examples
    --------
    >>> from wisecrowd import MajorityVote
    >>> len(copy_fitted(MajorityVote(), MajorityVote().fit(Crowd.from_triples([("t1", "ann", 0)]))))
    2
    """
    from sklearn.base import clone

    assert str(clone(method).get_params()) == str(method.get_params())
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        loaded: Any = load(Path(folder) / "model")
    copies = [pickle.loads(pickle.dumps(fitted)), loaded]
    for copied in copies:
        assert isinstance(copied, type(fitted))
        assert str(copied.get_params()) == str(fitted.get_params())
    return copies
