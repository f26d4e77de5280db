"""Laws: properties that every aggregator and learner has. The tests check them for all registered methods.

A law takes an unfitted method and a crowd, and raises AssertionError if the method breaks it. A method that breaks a law by
design declares it with the reason: ``breaks = {"class_names_do_not_matter": "ties go to the first class"}``. Methods that
use features receive random ones. Learners obey the laws of aggregators and some of their own.

Examples
--------
>>> from wisecrowd import Crowd, DawidSkene
>>> crowd = Crowd.from_triples([(task, worker, (task * worker) % 2) for task in range(6) for worker in range(3)])
>>> LAWS["posteriors_are_distributions"](DawidSkene(), crowd)
"""

from __future__ import annotations

import copy
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted_fields
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
from wisecrowd.base.learner import Learner
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import AnyCrowd
from wisecrowd.errors import DataWarning, WisecrowdError, ignore_fit_warnings

AnyMethod = Aggregator | Learner
Law = Callable[[Any, Crowd], None]
F = TypeVar("F", bound=Law)

#: Laws of aggregators and learners, by name.
LAWS: dict[str, Law] = {}
#: Laws of learners only, by name.
LEARNER_LAWS: dict[str, Law] = {}


def law(function: F) -> F:
    """Register a function in `LAWS`.

    Parameters
    ----------
    function : callable
        Function of a method and a crowd that raises AssertionError.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> "row_order_is_irrelevant" in LAWS
    True
    """
    LAWS[function.__name__.removeprefix("_")] = function
    return function


def learner_law(function: F) -> F:
    """Register a function in `LEARNER_LAWS`.

    Parameters
    ----------
    function : callable
        Function of a learner and a crowd that raises AssertionError.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> "rows_are_predicted_one_by_one" in LEARNER_LAWS
    True
    """
    LEARNER_LAWS[function.__name__.removeprefix("_")] = function
    return function


def get_laws(method: AnyMethod | type[AnyMethod]) -> dict[str, Law]:
    """Return the laws that apply to a method.

    Parameters
    ----------
    method : Aggregator or Learner, or their class
        Method.

    Returns
    -------
    dict of str to callable
        Functions that check a law, by its name.

    Examples
    --------
    >>> from wisecrowd import Raykar
    >>> len(get_laws(Raykar)) > len(get_laws(Aggregator)) == len(LAWS)
    True
    """
    kind = method if isinstance(method, type) else type(method)
    return LAWS | LEARNER_LAWS if issubclass(kind, Learner) else dict(LAWS)


def _fit(method: AnyMethod, crowd: AnyCrowd, X: pd.DataFrame | None = None, **options: Any) -> Any:
    """Fit a copy of a method, with random features if it uses features."""
    with ignore_fit_warnings():  # laws hold at every iteration limit
        copied = copy.deepcopy(method)
        features = make_features(crowd.tasks) if X is None else X
        if isinstance(copied, Learner):
            return copied.fit(features, crowd, **options)
        return copied.fit(crowd, features if copied.uses_features else None, **options)


def _fit_proba(method: AnyMethod, crowd: Crowd, X: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the posterior table of a fit, with sorted rows and columns."""
    return _fit(method, crowd, X).proba_.sort_index().sort_index(axis=1)


@law
def _row_order_is_irrelevant(method: AnyMethod, crowd: Crowd) -> None:
    """Check that the order of votes does not change a single bit."""
    shuffled = rebuild_crowd(crowd, crowd.to_frame().sample(frac=1, random_state=1))
    assert np.array_equal(_fit(method, shuffled).posterior_, _fit(method, crowd).posterior_)


@law
def _worker_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Check that renaming workers does not change the posterior."""
    frame = crowd.to_frame()
    frame["worker"] = frame["worker"].map(shuffle_names(crowd.workers, 2))
    assert_close(
        _fit_proba(method, rebuild_crowd(crowd, frame, workers=None)), _fit_proba(method, crowd), "renaming workers"
    )


@law
def _task_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Check that renaming tasks only renames the rows of the posterior."""
    names = shuffle_names(crowd.tasks, 3)
    frame = crowd.to_frame()
    frame["task"] = frame["task"].map(names)
    features = make_features(crowd.tasks).rename(index=names)
    renamed = _fit_proba(method, rebuild_crowd(crowd, frame, tasks=sorted(names.values())), features)
    assert_close(
        renamed.loc[[names[task] for task in crowd.tasks]],
        _fit(method, crowd).proba_.sort_index(axis=1),
        "renaming tasks",
    )


@law
def _class_names_do_not_matter(method: AnyMethod, crowd: Crowd) -> None:
    """Check that renaming classes only permutes the columns of the posterior; ordered classes keep their order."""
    names = shuffle_names(crowd.classes, 4)
    if crowd.is_ordered:
        names = dict(zip(names, sorted(names.values()), strict=True))
    frame = crowd.to_frame()
    frame["label"] = frame["label"].map(names)
    renamed = _fit(method, rebuild_crowd(crowd, frame, classes=sorted(names.values()))).proba_
    expected = _fit(method, crowd).proba_
    assert_close(renamed[[names[name] for name in expected.columns]], expected, "renaming classes")


@law
def _posteriors_are_distributions(method: AnyMethod, crowd: Crowd) -> None:
    """Check that posteriors and confusion matrices are distributions, and that tables match their vocabularies."""
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
def _fitted_attributes_are_declared(method: AnyMethod, crowd: Crowd) -> None:
    """Check that every attribute that a fit sets is declared with `fitted`, and so documented."""
    fitted = _fit(method, crowd)
    declared = {field.name for field in fitted_fields(fitted)}
    undeclared = [
        name for name in vars(fitted) if name.endswith("_") and not name.startswith("_") and name not in declared
    ]
    assert not undeclared, f"attributes without a fitted(help=...) field: {', '.join(undeclared)}"


@law
def _unanimity_wins(method: AnyMethod, crowd: Crowd) -> None:
    """Check that a unanimous vote that agrees with the features wins."""
    truth = np.arange(crowd.n_tasks) % crowd.n_classes
    agreed = Crowd.from_codes(crowd.task, crowd.worker, truth[crowd.task], tasks=crowd.tasks, workers=crowd.workers,
                   classes=crowd.classes, ordered=crowd.is_ordered, duplicates="keep")  # fmt: skip
    voted = agreed.votes_per_task > 0
    indicators = {f"is {code}": (truth == code).astype(float) for code in range(crowd.n_classes)}
    labels = _fit(method, agreed, make_features(crowd.tasks).assign(**indicators)).posterior_.argmax(axis=1)
    assert (labels == truth)[voted].all(), "a unanimous vote was overruled"


@law
def _an_unlabelled_task_changes_nothing(method: AnyMethod, crowd: Crowd) -> None:
    """Check that a task without votes has the prior and does not change other tasks."""
    more = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks.append(pd.Index(["~without votes"])),
                 workers=crowd.workers, classes=crowd.classes, ordered=crowd.is_ordered, weight=crowd.weight,
                 duplicates="keep")  # fmt: skip
    fitted = _fit(method, more)
    assert_close(fitted.posterior_[:-1], _fit(method, crowd).posterior_, "an unlabelled task")
    if hasattr(fitted, "prior_"):
        assert_close(fitted.posterior_[-1], fitted.prior_, "having no votes")


@law
def _a_double_weight_is_a_repeated_row(method: AnyMethod, crowd: Crowd) -> None:
    """Check that a weight of two equals two rows."""
    heavy = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers,
                  classes=crowd.classes, ordered=crowd.is_ordered, weight=crowd.weight * 2, duplicates="keep")  # fmt: skip
    twice = Crowd.concat([crowd, crowd], duplicates="keep")
    assert_close(
        _fit(method, twice).posterior_, _fit(method, heavy).posterior_, "repeating rows instead of doubling weights"
    )


@law
def _extreme_weights_give_finite_results(method: AnyMethod, crowd: Crowd) -> None:
    """Check that weights at the ends of the valid range give distributions, or an error with a reason."""
    for name, votes in make_extreme_crowds(crowd).items():
        try:
            posterior = _fit(method, votes).posterior_
        except WisecrowdError as error:
            assert len(str(error)) > 20, "an error must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(posterior).all(), f"weights at the ends of the range ({name}) gave NaN"
            assert np.allclose(posterior.sum(axis=1), 1, atol=TOLERANCE), (
                f"extreme weights ({name}) broke a distribution"
            )


@law
def _input_is_unchanged(method: AnyMethod, crowd: Crowd) -> None:
    """Check that a fit changes neither crowd, features, parameters nor global random states."""
    before = copy.deepcopy(crowd)
    features = make_features(crowd.tasks)
    parameters = copy.deepcopy(method.get_params())
    states = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    torch = sys.modules.get("torch")  # a method cannot have used it without importing it
    torch_state = None if torch is None else torch.get_rng_state().tolist()
    fitted = _fit(method, crowd, features)
    assert crowd == before, "the crowd changed"
    assert features.equals(make_features(crowd.tasks)), "the features changed"
    assert torch_state is None or torch.get_rng_state().tolist() == torch_state, "torch's global random state was used"  # type: ignore[union-attr]
    assert str(fitted.get_params()) == str(parameters), "a parameter changed"
    assert random.getstate() == states[0], "Python's global random state was used"
    assert np.array_equal(np.random.get_state()[1], states[1]), "numpy's global random state was used"  # type: ignore[index]  # noqa: NPY002


@law
def _same_seed_same_bits(method: AnyMethod, crowd: Crowd) -> None:
    """Check that fits are reproducible, and that a second fit does not depend on the first."""
    first = _fit(method, crowd).posterior_
    assert np.array_equal(first, _fit(method, crowd).posterior_)
    fitted_before = _fit(method, crowd[: crowd.n_tasks // 2])
    assert np.array_equal(first, _fit(fitted_before, crowd).posterior_), "a second fit depends on the first"


@law
def _copies_are_equal(method: AnyMethod, crowd: Crowd) -> None:
    """Check that pickle, scikit-learn's clone, and save and load preserve parameters and results."""
    fitted = _fit(method, crowd)
    for other in copy_fitted(method, fitted):
        assert other.labels_.equals(fitted.labels_)
        assert np.array_equal(other.posterior_, fitted.posterior_)
        if crowd.has_workers:
            pd.testing.assert_frame_equal(other.workers_, fitted.workers_)
            assert np.array_equal(other.confusion_, fitted.confusion_)
        if isinstance(fitted, Learner):
            assert isinstance(other, Learner)
            rows = make_features(crowd.tasks[:5]) + 0.5
            assert np.array_equal(other.predict_proba(rows), fitted.predict_proba(rows)), "predictions changed"


@law
def _gold_is_kept(method: AnyMethod, crowd: Crowd) -> None:
    """Check that gold tasks have their class with probability one."""
    truth = {crowd.tasks[0]: crowd.classes[-1], crowd.tasks[-1]: crowd.classes[0]}  # type: ignore[index]  # categorical
    posterior = _fit(method, crowd, truth=truth).proba_
    for task, name in truth.items():
        assert posterior.loc[task, name] == 1, "a gold task was overruled"


@law
def _the_objective_never_falls(method: AnyMethod, crowd: Crowd) -> None:
    """Check that the objective does not decrease in any iteration."""
    fitted = _fit(method, crowd)
    trace = getattr(fitted, "trace_", None)
    if trace is not None and getattr(method, "monotone", True):
        assert (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all(), "the objective decreased"


@law
def _chunks_change_nothing(method: AnyMethod, crowd: Crowd) -> None:
    """Check that shards and engines give the results of a crowd in memory."""
    if not (isinstance(method, Aggregator) and method.streams):
        return
    gold = {crowd.tasks[0]: crowd.classes[-1]}  # type: ignore[index]  # categorical
    with tempfile.TemporaryDirectory() as folder:
        shards = crowd.to_shards(f"{folder}/crowd", votes_per_shard=crowd.n_votes // 4 + 1)
        for truth in (None, gold):
            expected = _fit(copy.deepcopy(method).set_params(engine="local"), crowd, truth=truth)
            assert_close(_fit(method, crowd, truth=truth).posterior_, expected.posterior_, "the engine", tolerance=1e-9)
            fitted = _fit(method, shards, truth=truth)
            assert_close(fitted.posterior_, expected.posterior_, "being in shards", tolerance=1e-9)
            assert_close(fitted.workers_, expected.workers_, "being in shards", tolerance=1e-9)
            assert fitted.labels_.index.equals(crowd.tasks), "labels_ is not by task"


@law
def _features_meet_tasks_by_id(method: AnyMethod, crowd: Crowd) -> None:
    """Check that features are aligned by task id: neither their order nor rows of other tasks change a single bit."""
    if isinstance(method, Aggregator) and not method.uses_features:
        return
    table = make_features(crowd.tasks)
    others = table.iloc[:2].rename(index=lambda name: f"{name} of another crowd")
    shuffled = pd.concat([others, table]).sample(frac=1, random_state=5)
    assert np.array_equal(_fit(method, crowd, shuffled).posterior_, _fit(method, crowd, table).posterior_)


@learner_law
def _predictions_are_distributions(method: Learner, crowd: Crowd) -> None:
    """Check that predictions are distributions, also far from the training data."""
    fitted = _fit(method, crowd)
    for scale in (0.0, 1.0, 1e6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # of features far outside their range in training
            predicted = fitted.predict_proba(scale * make_features(pd.RangeIndex(7)))
        assert predicted.shape == (7, crowd.n_classes)
        assert np.isfinite(predicted).all(), "a prediction is not finite"
        assert (predicted >= 0).all(), "a prediction is negative"
        assert np.allclose(predicted.sum(axis=1), 1, atol=1e-5), "a prediction does not sum to one"


@learner_law
def _rows_are_predicted_one_by_one(method: Learner, crowd: Crowd) -> None:
    """Check that predictions depend neither on the other rows nor on previous predictions."""
    fitted = _fit(method, crowd)
    rows = make_features(pd.RangeIndex(6))
    together = fitted.predict_proba(rows)
    single = np.concatenate([fitted.predict_proba(rows.iloc[[row]]) for row in range(6)])
    assert_close(single, together, "predicting one task at a time")
    assert np.array_equal(fitted.predict_proba(rows), together), "predicting again changed a prediction"


@law
def _degenerate_crowds_are_handled(method: AnyMethod, crowd: Crowd) -> None:
    """Check that degenerate crowds give finite results or an error of wisecrowd with a reason."""
    for votes in make_degenerate_crowds(ordered=crowd.is_ordered):
        try:
            posterior = _fit(method, votes).posterior_
        except WisecrowdError as refusal:
            assert len(str(refusal)) > 20, "a refusal must give its reason"  # noqa: PT017
        else:
            assert np.isfinite(posterior).all(), f"no finite posterior for {votes}"


def find_broken_laws(method: AnyMethod, crowd: Crowd) -> dict[str, str]:
    """Check all laws of a method.

    Parameters
    ----------
    method : Aggregator or Learner
        Unfitted method.
    crowd : Crowd
        Votes.

    Returns
    -------
    dict of str to str
        Error messages of broken laws that the method does not declare in ``breaks``.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(6) for worker in range(3)])
    >>> find_broken_laws(MajorityVote(), crowd)
    {}
    """
    broken = {}
    for name, check in get_laws(method).items():
        if name not in method.breaks:
            try:
                check(method, crowd)
            except Exception as failure:  # an unexpected error breaks a law, too
                broken[name] = f"{type(failure).__name__}: {failure}"
    return broken
