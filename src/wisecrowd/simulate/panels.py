"""Simulated panels of people and machine judges; judges of one model share its errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate.kinds import build_symmetric_confusion
from wisecrowd.simulate.spec import RandomState, broadcast_fractions, check_fraction
from wisecrowd.simulate.votes import draw_labels, make_ids

#: Values of ``PanelSimulation.kinds``.
MACHINE, PERSON = "machine", "person"


@dataclass(frozen=True, eq=False, repr=False)
class PanelSimulation:
    """Simulated panel with its truth.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    truth : Series
        True class by task.
    hard : Series
        True for tasks on which a model is misled.
    groups : Series
        Model by judge, in the form that `wisecrowd.Panel` takes. People have no group.
    kinds : Series
        "machine" or "person" by worker, in the form that `wisecrowd.Panel` takes.
    opinions : DataFrame
        Opinion of each model (column) on each task (row).
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrix of the votes that a worker does not take over from a model.
    opinion_confusion : ndarray of shape (n_models, n_classes, n_classes)
        Confusion matrix of the models.
    shared : Series
        Probability with which each worker repeats the opinion of the model.

    Examples
    --------
    >>> simulate_panel(n_tasks=50, n_judges=4, n_people=2)
    PanelSimulation(4 judges of 1 model, 2 people; Crowd(300 votes: 50 tasks x 6 workers, 3 classes, 6.0 votes/task))
    """

    crowd: Crowd
    truth: pd.Series
    hard: pd.Series
    groups: pd.Series
    kinds: pd.Series
    opinions: pd.DataFrame
    confusion: NDArray[np.float64]
    opinion_confusion: NDArray[np.float64]
    shared: pd.Series

    def __repr__(self) -> str:
        n_people = int((self.kinds == PERSON).sum())
        n_models = self.opinions.shape[1]
        return (
            f"PanelSimulation({len(self.groups)} judges of {n_models} model{'s' if n_models != 1 else ''}, "
            f"{n_people} people; {self.crowd!r})"
        )


def simulate_panel(
    n_tasks: int = 500,
    n_judges: int = 10,
    n_people: int = 3,
    n_classes: int = 3,
    *,
    n_models: int = 1,
    strength: float = 0.9,
    hard: float = 0.25,
    model_accuracy: float = 0.9,
    judge_accuracy: float | tuple[float, float] = (0.6, 0.8),
    people_accuracy: float | tuple[float, float] = (0.75, 0.9),
    people_density: float = 1.0,
    random_state: RandomState = 0,
) -> PanelSimulation:
    """Simulate a panel of machine judges and independent people.

    Every model has an opinion on every task. On hard tasks it is misled and takes the class for the next one (the last
    for the first). Judges vote on all tasks and mostly repeat the opinion of their model. Truth, models, judges and
    people have random streams of their own.

    Parameters
    ----------
    n_tasks, n_judges, n_people, n_classes : int
        Sizes.
    n_models : int, default=1
        Number of models, to which the judges are assigned in turn.
    strength : float, default=0.9
        Probability with which a judge repeats the opinion of the model.
    hard : float, default=0.25
        Fraction of tasks that are hard for a model, drawn for each model.
    model_accuracy : float, default=0.9
        Accuracy of a model on the other tasks; its errors are uniform.
    judge_accuracy : float or tuple (low, high), default=(0.6, 0.8)
        Accuracy of a judge's own labels, or bounds between which to draw it.
    people_accuracy : float or tuple (low, high), default=(0.75, 0.9)
        Accuracy of people, or bounds between which to draw it.
    people_density : float, default=1.0
        Probability with which a person votes on a task.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    PanelSimulation
        Votes, truth and behaviour.

    Examples
    --------
    >>> simulation = simulate_panel(n_tasks=400, n_judges=3, n_people=1, strength=1.0)
    >>> votes = simulation.crowd.to_frame().pivot(index="task", columns="worker", values="label")
    >>> bool((votes["judge0"] == votes["judge2"]).all()), simulation.groups.to_dict()
    (True, {'judge0': 'model0', 'judge1': 'model0', 'judge2': 'model0'})
    """
    _check_sizes(n_tasks, n_judges, n_people, n_classes, n_models)
    for name, value in (("strength", strength), ("hard", hard), ("model_accuracy", model_accuracy)):
        check_fraction(name, value)
    check_fraction("people_density", people_density)
    truth_rng, model_rng, judge_rng, people_rng, density_rng = np.random.default_rng(random_state).spawn(5)
    truth = truth_rng.integers(n_classes, size=n_tasks)

    is_misled = model_rng.random((n_models, n_tasks)) < hard
    easy_confusion = build_symmetric_confusion(np.array([model_accuracy]), n_classes)[0]
    hard_confusion = np.roll(np.eye(n_classes), 1, axis=1)
    opinion = draw_labels(
        np.stack([easy_confusion, hard_confusion]), is_misled.ravel().astype(int), np.tile(truth, n_models), model_rng
    ).reshape(n_models, n_tasks)

    model = np.arange(n_judges) % max(n_models, 1)
    accuracy = np.concatenate(
        [
            _draw_accuracy("judge_accuracy", judge_accuracy, n_judges, judge_rng),
            _draw_accuracy("people_accuracy", people_accuracy, n_people, people_rng),
        ]
    )
    confusion = build_symmetric_confusion(accuracy, n_classes)
    own_label = _draw_label_matrix(confusion[:n_judges], truth, judge_rng)
    repeats = judge_rng.random((n_judges, n_tasks)) < strength
    judge_label = np.where(repeats, opinion[model], own_label)
    people_label = _draw_label_matrix(confusion[n_judges:], truth, people_rng)
    label = np.concatenate([judge_label, people_label])
    is_judged = np.ones((n_judges, n_tasks), dtype=bool)
    worker, task = np.nonzero(np.concatenate([is_judged, density_rng.random((n_people, n_tasks)) < people_density]))

    workers = make_ids("judge", n_judges).append(make_ids("person", n_people))
    tasks, classes, models = make_ids("t", n_tasks), make_ids("c", n_classes), make_ids("model", n_models)
    return PanelSimulation(
        crowd=Crowd.from_codes(task, worker, label[worker, task], tasks=tasks, workers=workers, classes=classes),
        truth=pd.Series(classes[truth], index=tasks, name="truth"),
        hard=pd.DataFrame(is_misled.T, index=tasks, columns=models).any(axis=1).rename("hard"),
        groups=pd.Series(models[model], index=workers[:n_judges], name="group"),
        kinds=pd.Series([MACHINE] * n_judges + [PERSON] * n_people, index=workers, name="kind"),
        opinions=pd.DataFrame(classes.to_numpy()[opinion.T], index=tasks, columns=models),
        confusion=confusion,
        opinion_confusion=np.repeat((hard * hard_confusion + (1 - hard) * easy_confusion)[None], n_models, axis=0),
        shared=pd.Series(np.where(np.arange(len(workers)) < n_judges, strength, 0.0), index=workers, name="shared"),
    )


def _draw_label_matrix(
    confusion: NDArray[np.float64], truth: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw a label of every worker for every task."""
    n_workers, n_tasks = len(confusion), len(truth)
    labels = draw_labels(confusion, np.repeat(np.arange(n_workers), n_tasks), np.tile(truth, n_workers), rng)
    return labels.reshape(n_workers, n_tasks)


def _check_sizes(n_tasks: int, n_judges: int, n_people: int, n_classes: int, n_models: int) -> None:
    if n_classes < 2:
        raise UsageError(f"n_classes must be 2 or more; got {n_classes}")
    if min(n_tasks, n_judges, n_people) < 0 or n_judges + n_people < 1 or n_tasks < 1:
        raise UsageError(
            f"a panel needs tasks and workers; got {n_tasks} tasks, {n_judges} judges and {n_people} people"
        )
    if not 1 <= n_models <= max(n_judges, 1):
        raise UsageError(f"n_models must lie between 1 and the number of judges, {n_judges}; got {n_models}")


def _draw_accuracy(
    name: str, accuracy: float | tuple[float, float], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    low, high = accuracy if isinstance(accuracy, tuple) else (accuracy, accuracy)
    broadcast_fractions(name, [low, high], 2, "end")
    if low > high:
        raise UsageError(f"{name} must be a low and a high number, in this order; got {low}, {high}")
    return np.asarray(low + (high - low) * rng.random(n))
