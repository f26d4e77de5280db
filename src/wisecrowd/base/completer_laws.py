"""Laws that every completer obeys; those of methods that infer the truth are in `wisecrowd.base.laws`.

>>> from wisecrowd import GMV, simulate_crowd
>>> COMPLETER_LAWS["real_votes_stay"](GMV(), simulate_crowd(n_tasks=30, n_workers=5, votes_per_task=2).crowd)
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import pandas as pd

from wisecrowd.base import completer as completion
from wisecrowd.base.completer import Completer
from wisecrowd.base.law_inputs import NEAR, copies_of, features_of, near, new_names, odd_crowds, rebuilt
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import WisecrowdError, unwarned

CompleterLaw = Callable[[Completer, Crowd], None]
F = TypeVar("F", bound=CompleterLaw)

#: Every law of completers, by name.
COMPLETER_LAWS: dict[str, CompleterLaw] = {}


def completer_law(function: F) -> F:
    """Enter a function into `COMPLETER_LAWS`.

    >>> "real_votes_stay" in COMPLETER_LAWS
    True
    """
    COMPLETER_LAWS[function.__name__.removeprefix("_")] = function
    return function


def _fit(method: Completer, crowd: Crowd, X: pd.DataFrame | None = None, **changed: Any) -> Completer:
    with unwarned():  # laws hold wherever an iteration stops
        fresh = copy.deepcopy(method).set_params(**changed)
        given = features_of(crowd.tasks) if X is None else X
        return fresh.fit(crowd, given if method.uses_features else None)


def _back(names: dict[Any, str]) -> list[int]:
    """Where each old name stands among the new ones."""
    new = sorted(names.values())
    return [new.index(name) for name in names.values()]


@completer_law
def _real_votes_stay(method: Completer, crowd: Crowd) -> None:
    """Every vote of before is there as it was, and the crowd that was given is not touched."""
    before = crowd.digest
    filled = _fit(method, crowd).fill()
    assert Crowd(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes,
                 duplicates="keep").digest == before, "the crowd was changed"  # fmt: skip
    real = filled.only_observed()
    for mine, theirs in ((real.task, crowd.task), (real.worker_codes, crowd.worker), (real.label, crowd.label)):
        assert np.array_equal(mine, theirs), "a real vote was changed"  # type: ignore[arg-type]  # has workers
    assert np.array_equal(real.weight, crowd.weight), "a real vote counts otherwise"


@completer_law
def _filled_votes_are_new_and_marked(method: Completer, crowd: Crowd) -> None:
    """No filled vote stands where a worker voted; each cell is filled once; weights are what was asked for."""
    for weight in ("shared", 0.25):
        filled = _fit(method, crowd, answers="hard", fill_weight=weight).fill()
        cell = filled.task.astype(np.int64) * filled.n_workers + filled.worker_codes
        assert len(np.unique(cell)) == len(np.unique(cell[filled.observed])) + (~filled.observed).sum()
        new = filled.weight[~filled.observed]
        assert (new <= 1).all() if weight == "shared" else (new == weight).all()
        share = np.bincount(filled.task[~filled.observed], new, minlength=filled.n_tasks)
        assert weight != "shared" or (share <= crowd.n_votes / (crowd.votes_per_task > 0).sum() + NEAR).all()


@completer_law
def _answers_are_distributions(method: Completer, crowd: Crowd) -> None:
    """What a worker would say is finite, not negative, and sums to one."""
    label_probs = _fit(method, crowd).predict_worker_proba()
    assert label_probs.shape == (*crowd.shape, crowd.n_classes)
    assert np.isfinite(label_probs).all()
    assert (label_probs >= 0).all()
    assert np.allclose(label_probs.sum(axis=2), 1, atol=1e-5)


@completer_law
def _soft_answers_add_up(method: Completer, crowd: Crowd) -> None:
    """Soft votes of a cell weigh together what a hard one weighs, and the expected votes are their sum."""
    soft = _fit(method, crowd, answers="soft")
    hard = _fit(method, crowd, answers="hard").fill()
    votes = soft.fill().votes
    assert np.allclose(votes.sum(axis=1), hard.votes.sum(axis=1), atol=1e-5)
    # Faint answers are left out of rows, never more of a cell than this.
    assert (
        np.abs(votes - soft.expected_votes().to_numpy()).max()
        <= completion.FAINT * crowd.n_classes * votes.sum(1).max()
    )


@completer_law
def _pieces_are_the_whole(method: Completer, crowd: Crowd) -> None:
    """In however many chunks it is filled, a crowd ends with the same bits."""
    fitted = _fit(method, crowd, answers="sample")
    whole = fitted.fill()
    with mock.patch.object(completion, "CELLS", 3 * crowd.n_workers * crowd.n_classes):
        chunks = list(fitted.stream())
        assert len(chunks) > 1 or crowd.n_tasks <= 3
        again = fitted.fill()
    near = np.array_equal(whole.task, again.task) and np.array_equal(whole.worker_codes, again.worker_codes)
    assert near, "other cells were filled"
    assert (whole.label == again.label).mean() > 0.999, "chunks change labels"  # sums in another order may turn a draw


@completer_law
def _who_has_too_few_labels_is_left_alone(method: Completer, crowd: Crowd) -> None:
    """Workers with no more labels than the threshold get no votes; beyond everybody's, nothing is filled."""
    counts = crowd.votes_per_worker
    some = int(np.median(counts))
    filled = _fit(method, crowd, min_labels=some).fill()
    assert (counts[filled.worker_codes[~filled.observed]] > some).all()
    assert _fit(method, crowd, min_labels=int(counts.max())).fill() == crowd
    few = _fit(method, crowd, max_per_task=2).fill()
    assert np.bincount(few.task[~few.observed], minlength=1).max(initial=0) <= 2


@completer_law
def _completing_again_changes_nothing(method: Completer, crowd: Crowd) -> None:
    """Filled votes are not learnt from: to complete a completed crowd is to complete the real one."""
    once = _fit(method, crowd).fill()
    assert _fit(method, once).fill() == once


@completer_law
def _row_order_is_irrelevant(method: Completer, crowd: Crowd) -> None:
    """Shuffling the rows of a file changes not a single bit."""
    shuffled = rebuilt(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert _fit(method, shuffled).fill() == _fit(method, crowd).fill()


@completer_law
def _worker_names_do_not_matter(method: Completer, crowd: Crowd) -> None:
    """Renaming the workers moves every answer along with its worker."""
    names, frame = new_names(crowd.workers, 2), crowd.to_frame()
    frame["worker"] = frame["worker"].map(names)
    found = _fit(method, rebuilt(crowd, frame, workers=sorted(names.values()))).predict_worker_proba()
    near(found[:, _back(names)], _fit(method, crowd).predict_worker_proba(), "renaming workers")


@completer_law
def _task_names_do_not_matter(method: Completer, crowd: Crowd) -> None:
    """Renaming the tasks moves every answer along with its task."""
    names, frame = new_names(crowd.tasks, 3), crowd.to_frame()
    frame["task"] = frame["task"].map(names)
    moved = features_of(crowd.tasks).rename(index=names)
    found = _fit(method, rebuilt(crowd, frame, tasks=sorted(names.values())), moved).predict_worker_proba()
    near(found[_back(names)], _fit(method, crowd).predict_worker_proba(), "renaming tasks")


@completer_law
def _class_names_do_not_matter(method: Completer, crowd: Crowd) -> None:
    """Renaming the classes moves every answer along with its class."""
    names, frame = new_names(crowd.classes, 4), crowd.to_frame()
    frame["label"] = frame["label"].map(names)
    found = _fit(method, rebuilt(crowd, frame, classes=sorted(names.values()))).predict_worker_proba()
    near(found[:, :, _back(names)], _fit(method, crowd).predict_worker_proba(), "renaming classes")


@completer_law
def _same_seed_same_bits(method: Completer, crowd: Crowd) -> None:
    """Two fits give the same bits, a used object is as good as new, and nobody else's random numbers are touched."""
    state = pickle.dumps(np.random.get_state())  # noqa: NPY002  # what must not change
    first = _fit(method, crowd)
    assert np.array_equal(first.predict_worker_proba(), _fit(method, crowd).predict_worker_proba())
    used = _fit(method, crowd[: crowd.n_tasks // 2])
    assert _fit(used, crowd).fill() == first.fill(), "a second fit remembers the first"
    assert pickle.dumps(np.random.get_state()) == state, "numpy's own random state moved"  # noqa: NPY002


@completer_law
def _it_survives_copies_and_disks(method: Completer, crowd: Crowd) -> None:
    """Pickle, scikit-learn's clone, and save and load keep parameters and answers."""
    fitted = _fit(method, crowd)
    for other in copies_of(method, fitted):
        assert other.fill() == fitted.fill()


@completer_law
def _odd_crowds_get_an_answer_or_a_reason(method: Completer, crowd: Crowd) -> None:  # noqa: ARG001
    """One class, one worker, one label per task, unused classes, constant workers: no NaN, no obscure error."""
    for votes in odd_crowds():
        try:
            fitted = _fit(method, votes)
            label_probs, filled = fitted.predict_worker_proba(), fitted.fill()
        except WisecrowdError as refusal:
            assert len(str(refusal)) > 20, "a refusal must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(label_probs).all(), f"no finite answer for {votes}"
            assert filled.only_observed().n_votes == votes.n_votes
