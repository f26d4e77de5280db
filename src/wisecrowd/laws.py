"""Laws that every aggregator obeys, run over the whole registry by the tests and open to whoever adds a method.

A law takes an unfitted method and a crowd, and raises AssertionError when it is broken. A method that must break one
says so beside its code, with the reason: ``breaks = {"class_names_do_not_matter": "ties go to the first class"}``.

>>> from wisecrowd import Crowd, DawidSkene
>>> crowd = Crowd.from_triples([(task, worker, (task * worker) % 2) for task in range(6) for worker in range(3)])
>>> LAWS["posteriors_are_distributions"](DawidSkene(), crowd)
"""

from __future__ import annotations

import copy
import pickle
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base import Aggregator
from wisecrowd.crowd import Crowd
from wisecrowd.errors import DataWarning, NotConverged, WisecrowdError
from wisecrowd.persist import load

Law = Callable[[Aggregator, Crowd], None]
F = TypeVar("F", bound=Law)

#: Every law by name.
LAWS: dict[str, Law] = {}
#: How far apart two answers may lie that differ only in the order of sums.
NEAR = 1e-6


def law(function: F) -> F:
    """Enter a function into `LAWS`.

    >>> "row_order_is_irrelevant" in LAWS
    True
    """
    LAWS[function.__name__.removeprefix("_")] = function
    return function


def _fit(method: Aggregator, crowd: Crowd, **options: Any) -> Aggregator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # laws hold wherever an iteration stops
        warnings.simplefilter("ignore", DataWarning)  # and on crowds of which somebody should be warned
        return copy.deepcopy(method).fit(crowd, **options)


def _table(method: Aggregator, crowd: Crowd) -> pd.DataFrame:
    return _fit(method, crowd).proba_.sort_index().sort_index(axis=1)


def _rebuilt(crowd: Crowd, frame: pd.DataFrame, **vocabularies: Any) -> Crowd:
    given = {"tasks": crowd.tasks, "workers": crowd.workers, "classes": crowd.classes} | vocabularies
    weight = "weight" if "weight" in frame else None
    return Crowd.from_frame(frame, weight=weight, duplicates="keep", **given)


def _near(found: pd.DataFrame | NDArray[Any], wanted: pd.DataFrame | NDArray[Any], what: str) -> None:
    gap = np.abs(np.asarray(found) - np.asarray(wanted)).max(initial=0)
    assert gap <= NEAR, f"{what} changed the posterior by up to {gap:.3g}"


def _new_names(index: pd.Index, seed: int) -> dict[Any, str]:
    order = np.random.default_rng(seed).permutation(len(index))
    return {name: f"n{place:04d}" for name, place in zip(index, order, strict=True)}


@law
def _row_order_is_irrelevant(method: Aggregator, crowd: Crowd) -> None:
    """Shuffling the rows of a file changes not a single bit."""
    shuffled = _rebuilt(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert np.array_equal(_fit(method, shuffled).posterior_, _fit(method, crowd).posterior_)


@law
def _worker_names_do_not_matter(method: Aggregator, crowd: Crowd) -> None:
    """Renaming the workers leaves every posterior."""
    frame = crowd.to_frame()
    frame["worker"] = frame["worker"].map(_new_names(crowd.workers, 2))  # type: ignore[arg-type]  # has workers
    _near(_table(method, _rebuilt(crowd, frame, workers=None)), _table(method, crowd), "renaming workers")


@law
def _task_names_do_not_matter(method: Aggregator, crowd: Crowd) -> None:
    """Renaming the tasks moves every posterior along with its task."""
    names = _new_names(crowd.tasks, 3)
    frame = crowd.to_frame()
    frame["task"] = frame["task"].map(names)
    found = _table(method, _rebuilt(crowd, frame, tasks=sorted(names.values())))
    _near(
        found.loc[[names[task] for task in crowd.tasks]],
        _fit(method, crowd).proba_.sort_index(axis=1),
        "renaming tasks",
    )


@law
def _class_names_do_not_matter(method: Aggregator, crowd: Crowd) -> None:
    """Renaming the classes permutes the columns of the posterior."""
    names = _new_names(crowd.classes, 4)  # type: ignore[arg-type]  # categorical
    frame = crowd.to_frame()
    frame["label"] = frame["label"].map(names)
    found = _fit(method, _rebuilt(crowd, frame, classes=sorted(names.values()))).proba_
    wanted = _fit(method, crowd).proba_
    _near(found[[names[name] for name in wanted.columns]], wanted, "renaming classes")


@law
def _posteriors_are_distributions(method: Aggregator, crowd: Crowd) -> None:
    """Every row of the posterior is finite, not negative, and sums to one; every table fits its vocabulary."""
    fitted = _fit(method, crowd)
    posterior = fitted.posterior_
    assert posterior.shape == (crowd.n_tasks, crowd.n_classes)
    assert np.isfinite(posterior).all(), "a posterior is not finite"
    assert (posterior >= 0).all(), "a posterior is negative"
    assert np.allclose(posterior.sum(axis=1), 1, atol=1e-6), "a posterior does not sum to one"
    assert fitted.labels_.index.equals(crowd.tasks), "labels_ is not by task"
    if crowd.has_workers:
        assert list(fitted.workers_.index) == list(crowd.workers)  # type: ignore[arg-type]  # has workers
        confusion = fitted.confusion_
        assert confusion.shape == (crowd.n_workers, crowd.n_classes, crowd.n_classes)
        assert np.allclose(confusion.sum(axis=2), 1, atol=1e-6), "a row of a confusion matrix does not sum to one"


@law
def _unanimity_wins(method: Aggregator, crowd: Crowd) -> None:
    """When nobody ever disagrees, everybody is right."""
    truth = np.arange(crowd.n_tasks) % crowd.n_classes
    agreed = Crowd(crowd.task, crowd.worker, truth[crowd.task], tasks=crowd.tasks, workers=crowd.workers,
                   classes=crowd.classes, duplicates="keep")  # fmt: skip
    voted = agreed.labels_per_task > 0
    found = _fit(method, agreed).posterior_.argmax(axis=1)
    assert (found == truth)[voted].all(), "a unanimous answer was overruled"


@law
def _an_unlabelled_task_changes_nothing(method: Aggregator, crowd: Crowd) -> None:
    """A task nobody labelled gets a posterior of its own and leaves the others alone."""
    more = Crowd(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks.append(pd.Index(["~nobody saw this"])),
                 workers=crowd.workers, classes=crowd.classes, weight=crowd.weight, duplicates="keep")  # fmt: skip
    fitted = _fit(method, more)
    _near(fitted.posterior_[:-1], _fit(method, crowd).posterior_, "an unlabelled task")
    if hasattr(fitted, "prior_"):
        _near(fitted.posterior_[-1], fitted.prior_, "having no votes")


@law
def _a_double_weight_is_a_repeated_row(method: Aggregator, crowd: Crowd) -> None:
    """Counting every vote twice is the same as writing it twice."""
    heavy = Crowd(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers,
                  classes=crowd.classes, weight=crowd.weight * 2, duplicates="keep")  # fmt: skip
    twice = Crowd.concat([crowd, crowd], duplicates="keep")
    _near(_fit(method, twice).posterior_, _fit(method, heavy).posterior_, "repeating rows instead of doubling weights")


@law
def _the_input_is_untouched(method: Aggregator, crowd: Crowd) -> None:
    """Fitting changes neither the crowd nor the parameters, nor anybody else's random numbers."""
    before = copy.deepcopy(crowd)
    parameters = copy.deepcopy(method.get_params())
    states = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    fitted = _fit(method, crowd)
    assert crowd == before, "the crowd changed"
    assert str(fitted.get_params()) == str(parameters), "a parameter changed"
    assert random.getstate() == states[0], "Python's global random state was used"
    assert np.array_equal(np.random.get_state()[1], states[1]), "numpy's global random state was used"  # type: ignore[index]  # noqa: NPY002


@law
def _same_seed_same_bits(method: Aggregator, crowd: Crowd) -> None:
    """Two fits give the same bits, and refitting an object is like fitting a new one."""
    once = _fit(method, crowd)
    first = once.posterior_.copy()
    assert np.array_equal(first, _fit(method, crowd).posterior_)
    assert np.array_equal(first, _fit(once, crowd).posterior_), "a second fit remembers the first"


@law
def _it_survives_copies_and_disks(method: Aggregator, crowd: Crowd) -> None:
    """Pickle, scikit-learn's clone, and save and load keep parameters and answers."""
    from sklearn.base import clone

    fitted = _fit(method, crowd)
    assert str(clone(method).get_params()) == str(method.get_params())
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    for other in (pickle.loads(pickle.dumps(fitted)), loaded):
        assert isinstance(other, type(fitted))
        assert str(other.get_params()) == str(fitted.get_params())
        assert other.labels_.equals(fitted.labels_)
        assert np.array_equal(other.posterior_, fitted.posterior_)
        if crowd.has_workers:
            pd.testing.assert_frame_equal(other.workers_, fitted.workers_)
            assert np.array_equal(other.confusion_, fitted.confusion_)


@law
def _gold_is_kept(method: Aggregator, crowd: Crowd) -> None:
    """A task whose truth is given has that class, for certain."""
    known = {crowd.tasks[0]: crowd.classes[-1], crowd.tasks[-1]: crowd.classes[0]}  # type: ignore[index]  # categorical
    labels = _fit(method, crowd, truth=known).proba_
    for task, name in known.items():
        assert labels.loc[task, name] == 1, "a given truth was overruled"


@law
def _the_objective_never_falls(method: Aggregator, crowd: Crowd) -> None:
    """Where an iteration climbs an objective, every accepted pass climbs."""
    fitted = _fit(method, crowd)
    trace = getattr(fitted, "trace_", None)
    if trace is not None and getattr(method, "monotone", True):
        assert (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all(), "the objective fell"


@law
def _odd_crowds_get_an_answer_or_a_reason(method: Aggregator, crowd: Crowd) -> None:  # noqa: ARG001
    """One class, one worker, one label per task, unused classes, constant workers: no NaN, no obscure error."""
    for votes in odd_crowds():
        try:
            posterior = _fit(method, votes).posterior_
        except WisecrowdError as refusal:
            assert len(str(refusal)) > 20, "a refusal must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(posterior).all(), f"no finite answer for {votes}"


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


def broken_by(method: Aggregator, crowd: Crowd) -> dict[str, str]:
    """Run every law; give those that were broken and are not declared, with what happened.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in range(3)])
    >>> broken_by(MajorityVote(), crowd)
    {}
    """
    broken = {}
    for name, check in LAWS.items():
        if name not in method.breaks:
            try:
                check(method, crowd)
            except Exception as failure:  # a crash breaks a law as surely as a wrong answer
                broken[name] = f"{type(failure).__name__}: {failure}"
    return broken
