"""Laws that every completer obeys.

The laws of methods that infer the truth are in `wisecrowd.base.laws`.

Examples
--------
>>> from wisecrowd import GMV, simulate_crowd
>>> COMPLETER_LAWS["observed_votes_stay"](GMV(), simulate_crowd(n_tasks=30, n_workers=5, votes_per_task=2).crowd)
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
from wisecrowd.base.law_inputs import (
    TOLERANCE,
    assert_close,
    copy_fitted,
    make_degenerate_crowds,
    make_extreme_crowds,
    make_features,
    rebuild_crowd,
    shuffle_names,
)
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import WisecrowdError, ignore_fit_warnings

CompleterLaw = Callable[[Completer, Crowd], None]
F = TypeVar("F", bound=CompleterLaw)

#: Largest difference of sums of single-precision probabilities.
SINGLE_PRECISION_TOLERANCE = 1e-5
#: Smallest share of labels that chunks must leave alone: sums in another order may turn a random draw.
MIN_EQUAL_SHARE = 0.999

#: Every law of completers, by name.
COMPLETER_LAWS: dict[str, CompleterLaw] = {}


def completer_law(function: F) -> F:
    """Register a function in `COMPLETER_LAWS`.

    Parameters
    ----------
    function : callable
        Function of a completer and a crowd that raises an AssertionError if the law is broken.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> "observed_votes_stay" in COMPLETER_LAWS
    True
    """
    COMPLETER_LAWS[function.__name__.removeprefix("_")] = function
    return function


def _fit(completer: Completer, crowd: Crowd, X: pd.DataFrame | None = None, **parameters: Any) -> Completer:
    """Fit a copy of a completer with some parameters changed."""
    with ignore_fit_warnings():  # laws hold wherever an iteration stops
        copied = copy.deepcopy(completer).set_params(**parameters)
        features = make_features(crowd.tasks) if X is None else X
        return copied.fit(crowd, features if completer.uses_features else None)


def _find_new_positions(names: dict[Any, str]) -> list[int]:
    """Return the position of every old name among the sorted new names."""
    new_names = sorted(names.values())
    return [new_names.index(name) for name in names.values()]


@completer_law
def _observed_votes_stay(completer: Completer, crowd: Crowd) -> None:
    """Observed votes are part of the completed crowd, and the input does not change."""
    digest = crowd.digest
    filled = _fit(completer, crowd).fill()
    copied = Crowd.from_codes(
        crowd.task,
        crowd.worker,
        crowd.label,
        tasks=crowd.tasks,
        workers=crowd.workers,
        classes=crowd.classes,
        duplicates="keep",
    )
    assert copied.digest == digest, "the crowd was changed"
    observed = filled.select_observed()
    assert np.array_equal(observed.task, crowd.task), "the task of an observed vote was changed"
    assert np.array_equal(observed.worker_codes, crowd.worker_codes), "the worker of an observed vote was changed"
    assert np.array_equal(observed.label, crowd.label), "the label of an observed vote was changed"
    assert np.array_equal(observed.weight, crowd.weight), "the weight of an observed vote was changed"


@completer_law
def _filled_votes_are_new_and_marked(completer: Completer, crowd: Crowd) -> None:
    """No filled vote is in a cell with an observed vote, each cell is filled once, and weights are as requested."""
    for weight in ("shared", 0.25):
        filled = _fit(completer, crowd, fill_mode="hard", fill_weight=weight).fill()
        cell = filled.task.astype(np.int64) * filled.n_workers + filled.worker_codes
        assert len(np.unique(cell)) == len(np.unique(cell[filled.observed])) + (~filled.observed).sum()
        filled_weight = filled.weight[~filled.observed]
        assert (filled_weight <= 1).all() if weight == "shared" else (filled_weight == weight).all()
        task_weight = np.bincount(filled.task[~filled.observed], filled_weight, minlength=filled.n_tasks)
        mean_votes = crowd.n_votes / (crowd.votes_per_task > 0).sum()
        assert weight != "shared" or (task_weight <= mean_votes + TOLERANCE).all()


@completer_law
def _label_probs_are_distributions(completer: Completer, crowd: Crowd) -> None:
    """Predicted label probabilities are finite, not negative, and sum to one."""
    proba = _fit(completer, crowd).predict_worker_proba()
    assert proba.shape == (*crowd.shape, crowd.n_classes)
    assert np.isfinite(proba).all()
    assert (proba >= 0).all()
    assert np.allclose(proba.sum(axis=2), 1, atol=SINGLE_PRECISION_TOLERANCE)


@completer_law
def _soft_votes_add_up(completer: Completer, crowd: Crowd) -> None:
    """Soft votes of a cell have the weight of one hard vote, and the expected votes are their sum."""
    soft = _fit(completer, crowd, fill_mode="soft")
    hard_counts = _fit(completer, crowd, fill_mode="hard").fill().vote_counts
    soft_counts = soft.fill().vote_counts
    assert np.allclose(soft_counts.sum(axis=1), hard_counts.sum(axis=1), atol=SINGLE_PRECISION_TOLERANCE)
    # Improbable labels are left out of the rows, at most this much of a cell.
    omitted = completion.MIN_SOFT_PROB * crowd.n_classes * soft_counts.sum(axis=1).max()
    assert np.abs(soft_counts - soft.expected_votes().to_numpy()).max() <= omitted


@completer_law
def _chunks_change_nothing(completer: Completer, crowd: Crowd) -> None:
    """The completed crowd does not depend on the size of the chunks."""
    fitted = _fit(completer, crowd, fill_mode="sample")
    at_once = fitted.fill()
    with mock.patch.object(completion, "BLOCK_CELLS", 3 * crowd.n_workers * crowd.n_classes):
        chunks = list(fitted.stream())
        assert len(chunks) > 1 or crowd.n_tasks <= 3
        in_chunks = fitted.fill()
    assert np.array_equal(at_once.task, in_chunks.task), "other cells were filled"
    assert np.array_equal(at_once.worker_codes, in_chunks.worker_codes), "other cells were filled"
    assert (at_once.label == in_chunks.label).mean() > MIN_EQUAL_SHARE, "chunks change labels"


@completer_law
def _workers_with_few_votes_are_left_out(completer: Completer, crowd: Crowd) -> None:
    """Workers with no more than ``min_votes`` votes get no filled votes, and a task at most ``max_per_task``."""
    counts = crowd.votes_per_worker
    threshold = int(np.median(counts))
    filled = _fit(completer, crowd, min_votes=threshold).fill()
    assert (counts[filled.worker_codes[~filled.observed]] > threshold).all()
    assert _fit(completer, crowd, min_votes=int(counts.max())).fill() == crowd
    limited = _fit(completer, crowd, max_per_task=2).fill()
    assert np.bincount(limited.task[~limited.observed], minlength=1).max(initial=0) <= 2


@completer_law
def _completing_again_changes_nothing(completer: Completer, crowd: Crowd) -> None:
    """Filled votes are ignored in a fit: the completion of a completed crowd is that crowd."""
    completed = _fit(completer, crowd).fill()
    assert _fit(completer, completed).fill() == completed


@completer_law
def _row_order_is_irrelevant(completer: Completer, crowd: Crowd) -> None:
    """Shuffling the rows of a file does not change a single bit."""
    shuffled = rebuild_crowd(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert _fit(completer, shuffled).fill() == _fit(completer, crowd).fill()


@completer_law
def _worker_names_do_not_matter(completer: Completer, crowd: Crowd) -> None:
    """Renaming the workers moves every prediction along with its worker."""
    names, frame = shuffle_names(crowd.workers, 2), crowd.to_frame()
    frame["worker"] = frame["worker"].map(names)
    renamed = rebuild_crowd(crowd, frame, workers=sorted(names.values()))
    proba = _fit(completer, renamed).predict_worker_proba()[:, _find_new_positions(names)]
    assert_close(proba, _fit(completer, crowd).predict_worker_proba(), "renaming workers")


@completer_law
def _task_names_do_not_matter(completer: Completer, crowd: Crowd) -> None:
    """Renaming the tasks moves every prediction along with its task."""
    names, frame = shuffle_names(crowd.tasks, 3), crowd.to_frame()
    frame["task"] = frame["task"].map(names)
    renamed = rebuild_crowd(crowd, frame, tasks=sorted(names.values()))
    features = make_features(crowd.tasks).rename(index=names)
    proba = _fit(completer, renamed, features).predict_worker_proba()[_find_new_positions(names)]
    assert_close(proba, _fit(completer, crowd).predict_worker_proba(), "renaming tasks")


@completer_law
def _class_names_do_not_matter(completer: Completer, crowd: Crowd) -> None:
    """Renaming the classes moves every prediction along with its class."""
    names, frame = shuffle_names(crowd.classes, 4), crowd.to_frame()
    frame["label"] = frame["label"].map(names)
    renamed = rebuild_crowd(crowd, frame, classes=sorted(names.values()))
    proba = _fit(completer, renamed).predict_worker_proba()[:, :, _find_new_positions(names)]
    assert_close(proba, _fit(completer, crowd).predict_worker_proba(), "renaming classes")


@completer_law
def _same_seed_same_bits(completer: Completer, crowd: Crowd) -> None:
    """Two fits are equal to the last bit, also of a fitted object, and the global random state does not change."""
    state = pickle.dumps(np.random.get_state())  # noqa: NPY002  # the state that must not change
    first = _fit(completer, crowd)
    assert np.array_equal(first.predict_worker_proba(), _fit(completer, crowd).predict_worker_proba())
    fitted_before = _fit(completer, crowd[: crowd.n_tasks // 2])
    assert _fit(fitted_before, crowd).fill() == first.fill(), "a second fit depends on the first"
    assert pickle.dumps(np.random.get_state()) == state, "the global random state of numpy changed"  # noqa: NPY002


@completer_law
def _copies_are_equal(completer: Completer, crowd: Crowd) -> None:
    """Pickle, scikit-learn's clone, and save and load keep parameters and predictions."""
    fitted = _fit(completer, crowd)
    for copied in copy_fitted(completer, fitted):
        assert copied.fill() == fitted.fill()


@completer_law
def _degenerate_crowds_are_handled(completer: Completer, crowd: Crowd) -> None:  # noqa: ARG001
    """Degenerate crowds give finite predictions or an error with a reason."""
    for votes in make_degenerate_crowds():
        try:
            fitted = _fit(completer, votes)
            proba, filled = fitted.predict_worker_proba(), fitted.fill()
        except WisecrowdError as error:
            assert len(str(error)) > 20, "an error must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(proba).all(), f"predictions for {votes} are not finite"
            assert filled.select_observed().n_votes == votes.n_votes


@completer_law
def _extreme_weights_give_finite_results(completer: Completer, crowd: Crowd) -> None:
    """Weights at the ends of the valid range give finite predictions or an error with a reason."""
    for name, votes in make_extreme_crowds(crowd).items():
        try:
            proba = _fit(completer, votes).predict_worker_proba()
        except WisecrowdError as error:
            assert len(str(error)) > 20, "an error must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(proba).all(), f"weights at the ends of the range ({name}) gave NaN"
