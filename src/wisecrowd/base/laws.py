"""Laws that every method obeys, run over the whole registry by the tests and open to whoever adds a method.

A law takes an unfitted method and a crowd, and raises AssertionError when it is broken. A method that must break one
says so beside its code, with the reason: ``breaks = {"class_names_do_not_matter": "ties go to the first class"}``.
Whoever looks at features is given some, each task its own. Learners obey the laws of aggregators, and some that only they
can break.

>>> from wisecrowd import Crowd, DawidSkene
>>> crowd = Crowd.from_triples([(task, worker, (task * worker) % 2) for task in range(6) for worker in range(3)])
>>> LAWS["posteriors_are_distributions"](DawidSkene(), crowd)
"""

from __future__ import annotations

import copy
import random
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.law_inputs import copies_of, features_of, near, new_names, odd_crowds, rebuilt
from wisecrowd.base.learner import Learner
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.errors import WisecrowdError, unwarned

AnyMethod = Aggregator | Learner
Law = Callable[[Any, Crowd], None]
F = TypeVar("F", bound=Law)

#: Every law of methods that infer the truth, by name.
LAWS: dict[str, Law] = {}
#: Further laws of learners.
LEARNER_LAWS: dict[str, Law] = {}


def law(function: F) -> F:
    """Enter a function into `LAWS`.

    >>> "row_order_is_irrelevant" in LAWS
    True
    """
    LAWS[function.__name__.removeprefix("_")] = function
    return function


def learner_law(function: F) -> F:
    """Enter a function into `LEARNER_LAWS`.

    >>> "rows_are_predicted_one_by_one" in LEARNER_LAWS
    True
    """
    LEARNER_LAWS[function.__name__.removeprefix("_")] = function
    return function


def laws_of(method: AnyMethod | type[AnyMethod]) -> dict[str, Law]:
    """The laws that a method is under.

    >>> from wisecrowd import Raykar
    >>> len(laws_of(Raykar)) > len(laws_of(Aggregator)) == len(LAWS)
    True
    """
    kind = method if isinstance(method, type) else type(method)
    return LAWS | LEARNER_LAWS if issubclass(kind, Learner) else dict(LAWS)


def _fit(method: AnyMethod, crowd: AnyCrowd, X: pd.DataFrame | None = None, **options: Any) -> Any:
    with unwarned():  # laws hold wherever an iteration stops
        fresh = copy.deepcopy(method)
        given = features_of(crowd.tasks) if X is None else X
        if isinstance(fresh, Learner):
            return fresh.fit(given, crowd, **options)
        return fresh.fit(crowd, given if fresh.uses_features else None, **options)


def _table(method: AnyMethod, crowd: Crowd, X: pd.DataFrame | None = None) -> pd.DataFrame:
    return _fit(method, crowd, X).proba_.sort_index().sort_index(axis=1)


@law
def _row_order_is_irrelevant(method: AnyMethod, crowd: Crowd) -> None:
    """Shuffling the rows of a file changes not a single bit."""
    shuffled = rebuilt(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert np.array_equal(_fit(method, shuffled).posterior_, _fit(method, crowd).posterior_)


@law
def _worker_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Renaming the workers leaves every posterior."""
    frame = crowd.to_frame()
    frame["worker"] = frame["worker"].map(new_names(crowd.workers, 2))
    near(_table(method, rebuilt(crowd, frame, workers=None)), _table(method, crowd), "renaming workers")


@law
def _task_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Renaming the tasks moves every posterior along with its task."""
    names = new_names(crowd.tasks, 3)
    frame = crowd.to_frame()
    frame["task"] = frame["task"].map(names)
    features = features_of(crowd.tasks).rename(index=names)
    found = _table(method, rebuilt(crowd, frame, tasks=sorted(names.values())), features)
    near(
        found.loc[[names[task] for task in crowd.tasks]],
        _fit(method, crowd).proba_.sort_index(axis=1),
        "renaming tasks",
    )


@law
def _class_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Renaming the classes permutes the columns of the posterior."""
    names = new_names(crowd.classes, 4)
    frame = crowd.to_frame()
    frame["label"] = frame["label"].map(names)
    found = _fit(method, rebuilt(crowd, frame, classes=sorted(names.values()))).proba_
    wanted = _fit(method, crowd).proba_
    near(found[[names[name] for name in wanted.columns]], wanted, "renaming classes")


@law
def _posteriors_are_distributions(method: AnyMethod, crowd: Crowd) -> None:
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
def _unanimity_wins(method: AnyMethod, crowd: Crowd) -> None:
    """When nobody ever disagrees, nor do the features, everybody is right."""
    truth = np.arange(crowd.n_tasks) % crowd.n_classes
    agreed = Crowd(crowd.task, crowd.worker, truth[crowd.task], tasks=crowd.tasks, workers=crowd.workers,
                   classes=crowd.classes, duplicates="keep")  # fmt: skip
    voted = agreed.votes_per_task > 0
    kinds = {f"is {place}": (truth == place).astype(float) for place in range(crowd.n_classes)}
    found = _fit(method, agreed, features_of(crowd.tasks).assign(**kinds)).posterior_.argmax(axis=1)
    assert (found == truth)[voted].all(), "a unanimous answer was overruled"


@law
def _an_unlabelled_task_changes_nothing(method: AnyMethod, crowd: Crowd) -> None:
    """A task nobody labelled gets a posterior of its own and leaves the others alone."""
    more = Crowd(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks.append(pd.Index(["~nobody saw this"])),
                 workers=crowd.workers, classes=crowd.classes, weight=crowd.weight, duplicates="keep")  # fmt: skip
    fitted = _fit(method, more)
    near(fitted.posterior_[:-1], _fit(method, crowd).posterior_, "an unlabelled task")
    if hasattr(fitted, "prior_"):
        near(fitted.posterior_[-1], fitted.prior_, "having no votes")


@law
def _a_double_weight_is_a_repeated_row(method: AnyMethod, crowd: Crowd) -> None:
    """Counting every vote twice is the same as writing it twice."""
    heavy = Crowd(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers,
                  classes=crowd.classes, weight=crowd.weight * 2, duplicates="keep")  # fmt: skip
    twice = Crowd.concat([crowd, crowd], duplicates="keep")
    near(_fit(method, twice).posterior_, _fit(method, heavy).posterior_, "repeating rows instead of doubling weights")


@law
def _the_input_is_untouched(method: AnyMethod, crowd: Crowd) -> None:
    """Fitting changes neither the crowd nor the features nor the parameters, nor anybody else's random numbers."""
    before = copy.deepcopy(crowd)
    features = features_of(crowd.tasks)
    parameters = copy.deepcopy(method.get_params())
    states = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    torch = sys.modules.get("torch")  # who did not import it cannot have used it
    drawn = None if torch is None else torch.get_rng_state().tolist()
    fitted = _fit(method, crowd, features)
    assert crowd == before, "the crowd changed"
    assert features.equals(features_of(crowd.tasks)), "the features changed"
    assert drawn is None or torch.get_rng_state().tolist() == drawn, "torch's global random state was used"  # type: ignore[union-attr]
    assert str(fitted.get_params()) == str(parameters), "a parameter changed"
    assert random.getstate() == states[0], "Python's global random state was used"
    assert np.array_equal(np.random.get_state()[1], states[1]), "numpy's global random state was used"  # type: ignore[index]  # noqa: NPY002


@law
def _same_seed_same_bits(method: AnyMethod, crowd: Crowd) -> None:
    """Two fits give the same bits, and refitting an object that knew other tasks is like fitting a new one."""
    first = _fit(method, crowd).posterior_
    assert np.array_equal(first, _fit(method, crowd).posterior_)
    used = _fit(method, crowd[: crowd.n_tasks // 2])
    assert np.array_equal(first, _fit(used, crowd).posterior_), "a second fit remembers the first"


@law
def _it_survives_copies_and_disks(method: AnyMethod, crowd: Crowd) -> None:
    """Pickle, scikit-learn's clone, and save and load keep parameters and answers."""
    fitted = _fit(method, crowd)
    for other in copies_of(method, fitted):
        assert other.labels_.equals(fitted.labels_)
        assert np.array_equal(other.posterior_, fitted.posterior_)
        if crowd.has_workers:
            pd.testing.assert_frame_equal(other.workers_, fitted.workers_)
            assert np.array_equal(other.confusion_, fitted.confusion_)
        if isinstance(fitted, Learner):
            assert isinstance(other, Learner)
            rows = features_of(crowd.tasks[:5]) + 0.5
            assert np.array_equal(other.predict_proba(rows), fitted.predict_proba(rows)), "predictions changed"


@law
def _gold_is_kept(method: AnyMethod, crowd: Crowd) -> None:
    """A task whose truth is given has that class, for certain."""
    known = {crowd.tasks[0]: crowd.classes[-1], crowd.tasks[-1]: crowd.classes[0]}  # type: ignore[index]  # categorical
    labels = _fit(method, crowd, truth=known).proba_
    for task, name in known.items():
        assert labels.loc[task, name] == 1, "a given truth was overruled"


@law
def _the_objective_never_falls(method: AnyMethod, crowd: Crowd) -> None:
    """Where an iteration climbs an objective, every accepted pass climbs."""
    fitted = _fit(method, crowd)
    trace = getattr(fitted, "trace_", None)
    if trace is not None and getattr(method, "monotone", True):
        assert (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all(), "the objective fell"


@law
def _pieces_change_nothing(method: AnyMethod, crowd: Crowd) -> None:
    """Votes in shards on disk, however many, and on any engine, give what they give in memory, to 1e-9."""
    if not (isinstance(method, Aggregator) and method.streams):
        return
    known = {crowd.tasks[0]: crowd.classes[-1]}  # type: ignore[index]  # categorical
    with tempfile.TemporaryDirectory() as folder:
        shards = crowd.to_shards(f"{folder}/crowd", votes_per_shard=crowd.n_votes // 4 + 1)
        for truth in (None, known):
            wanted = _fit(copy.deepcopy(method).set_params(engine="local"), crowd, truth=truth)
            near(_fit(method, crowd, truth=truth).posterior_, wanted.posterior_, "the engine", most=1e-9)
            found = _fit(method, shards, truth=truth)
            near(found.posterior_, wanted.posterior_, "being in shards", most=1e-9)
            near(found.workers_, wanted.workers_, "being in shards", most=1e-9)
            assert found.labels_.index.equals(crowd.tasks), "labels_ is not by task"


@law
def _features_meet_tasks_by_id(method: AnyMethod, crowd: Crowd) -> None:
    """Shuffling the rows of a table of features, and adding rows of other tasks, changes not a single bit."""
    if isinstance(method, Aggregator) and not method.uses_features:
        return
    table = features_of(crowd.tasks)
    others = table.iloc[:2].rename(index=lambda name: f"{name} of elsewhere")
    shuffled = pd.concat([others, table]).sample(frac=1, random_state=5)
    assert np.array_equal(_fit(method, crowd, shuffled).posterior_, _fit(method, crowd, table).posterior_)


@learner_law
def _predictions_are_distributions(method: Learner, crowd: Crowd) -> None:
    """What is predicted is finite, not negative, and sums to one, also far from all that was seen."""
    fitted = _fit(method, crowd)
    for scale in (0.0, 1.0, 1e6):
        found = fitted.predict_proba(scale * features_of(pd.RangeIndex(7)))
        assert found.shape == (7, crowd.n_classes)
        assert np.isfinite(found).all(), "a prediction is not finite"
        assert (found >= 0).all(), "a prediction is negative"
        assert np.allclose(found.sum(axis=1), 1, atol=1e-5), "a prediction does not sum to one"


@learner_law
def _rows_are_predicted_one_by_one(method: Learner, crowd: Crowd) -> None:
    """What is predicted of a task does not depend on the tasks that it is asked with, nor on how often one asks."""
    fitted = _fit(method, crowd)
    rows = features_of(pd.RangeIndex(6))
    together = fitted.predict_proba(rows)
    alone = np.concatenate([fitted.predict_proba(rows.iloc[[place]]) for place in range(6)])
    near(alone, together, "asking for one task at a time")
    assert np.array_equal(fitted.predict_proba(rows), together), "asking again changed a prediction"


@law
def _odd_crowds_get_an_answer_or_a_reason(method: AnyMethod, crowd: Crowd) -> None:  # noqa: ARG001
    """One class, one worker, one label per task, unused classes, constant workers: no NaN, no obscure error."""
    for votes in odd_crowds():
        try:
            posterior = _fit(method, votes).posterior_
        except WisecrowdError as refusal:
            assert len(str(refusal)) > 20, "a refusal must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(posterior).all(), f"no finite answer for {votes}"


def broken_by(method: AnyMethod, crowd: Crowd) -> dict[str, str]:
    """Run every law; give those that were broken and are not declared, with what happened.

    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in range(3)])
    >>> broken_by(MajorityVote(), crowd)
    {}
    """
    broken = {}
    for name, check in laws_of(method).items():
        if name not in method.breaks:
            try:
                check(method, crowd)
            except Exception as failure:  # a crash breaks a law as surely as a wrong answer
                broken[name] = f"{type(failure).__name__}: {failure}"
    return broken
