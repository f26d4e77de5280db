"""What laws are tried with: crowds and features, other names for the same things, and copies of what was fitted."""

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

M = TypeVar("M", bound=Method)

#: How far apart two answers may lie that differ only in the order of sums.
NEAR = 1e-6


def features_of(tasks: pd.Index) -> pd.DataFrame:
    """Features for a law: eight numbers that stay with a task's place, however many tasks come after it.

    >>> features_of(pd.Index(["a", "b"])).shape
    (2, 8)
    """
    rows = np.random.default_rng(7).normal(size=(len(tasks), 8))
    return pd.DataFrame(rows, index=tasks, columns=[f"x{place}" for place in range(8)])


def odd_crowds() -> list[Crowd]:
    """Small crowds that break careless code.

    >>> len(odd_crowds()) > 5
    True
    """
    grid = [(task, worker) for task in range(5) for worker in range(3)]
    return [
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


def rebuilt(crowd: Crowd, frame: pd.DataFrame, **vocabularies: Any) -> Crowd:
    """A crowd of other rows over the same vocabularies, but for those that are given.

    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1)])
    >>> rebuilt(crowd, crowd.to_frame().iloc[::-1]) == crowd
    True
    """
    given = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes} | vocabularies
    weight = "weight" if "weight" in frame else None
    return Crowd.from_frame(frame, weight=weight, duplicates="keep", **given)


def new_names(index: pd.Index | None, seed: int) -> dict[Any, str]:
    """Another name for each, so that they stand in another order.

    >>> sorted(new_names(pd.Index(["ann", "bob"]), 0).values())
    ['n0000', 'n0001']
    """
    assert index is not None
    order = np.random.default_rng(seed).permutation(len(index))
    return {name: f"n{place:04d}" for name, place in zip(index, order, strict=True)}


def near(found: Any, wanted: Any, what: str, most: float = NEAR) -> None:
    """Raise if an answer differs by more than the order of sums explains.

    >>> near(np.ones(2), np.zeros(2), "nothing")
    Traceback (most recent call last):
        ...
    AssertionError: nothing changed an answer by up to 1...
    """
    one, other = (np.asarray(table, dtype=np.float64) for table in (found, wanted))
    assert np.array_equal(np.isnan(one), np.isnan(other)), f"{what} changed of what nothing is known"
    gap = np.nan_to_num(np.abs(one - other)).max(initial=0)
    assert gap <= most, f"{what} changed an answer by up to {gap:.3g}"


def copies_of(method: M, fitted: M) -> list[M]:
    """What pickle, and save and load, make of a fitted method; they, and scikit-learn's clone, keep its parameters.

    >>> from wisecrowd import MajorityVote
    >>> len(copies_of(MajorityVote(), MajorityVote().fit(Crowd.from_triples([("t1", "ann", 0)]))))
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
