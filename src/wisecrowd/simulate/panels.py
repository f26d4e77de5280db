"""Panels of people and machine judges with known truth: judges of one model share its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError
from wisecrowd.simulate.kinds import build_symmetric_confusion
from wisecrowd.simulate.spec import broadcast_fractions, check_fraction
from wisecrowd.simulate.votes import draw_labels, make_ids

MACHINE, PERSON = "machine", "person"


@dataclass(frozen=True, eq=False, repr=False)
class PanelSimulation:
    """A panel and what is true of it.

    ``truth`` and ``hard`` (where the models are misled) are Series by task; ``groups`` and ``kinds`` Series by worker, in the form
    that `wisecrowd.Panel` takes, people having no group; ``opinions`` is the table of what each model thinks of each task.
    ``confusion`` (workers, true, said) is how each votes for itself, ``opinion_confusion`` (models, true, opinion) how models
    think, and ``shared`` how often each worker repeats its model.

    >>> made = simulate_panel(n_tasks=50, n_judges=4, n_people=2)
    >>> made
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
        people = int((self.kinds == PERSON).sum())
        models = self.opinions.shape[1]
        return (
            f"PanelSimulation({len(self.groups)} judges of {models} model{'s' if models != 1 else ''}, {people} people; "
            f"{self.crowd!r})"
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
    random_state: Any = 0,
) -> PanelSimulation:
    """Make a panel: judges on all tasks, dealt to ``n_models`` models in turn, and independent people.

    A model has an opinion on every task. On ``hard`` of the tasks, drawn anew for each model, it is misled and takes the class
    for the next one (the last for the first); on the others it is right with ``model_accuracy`` and errs evenly. A judge repeats
    its model with probability ``strength``, and otherwise looks for itself, right with a ``judge_accuracy`` of its own.
    People are right with ``people_accuracy`` and vote on each task with probability ``people_density``. Accuracies are a number,
    or two between which each worker's is drawn. Truth, models, judges and people have random streams of their own.

    >>> made = simulate_panel(n_tasks=400, n_judges=3, n_people=1, strength=1.0)
    >>> votes = made.crowd.to_frame().pivot(index="task", columns="worker", values="label")
    >>> bool((votes["judge0"] == votes["judge2"]).all()), made.groups.to_dict()
    (True, {'judge0': 'model0', 'judge1': 'model0', 'judge2': 'model0'})
    """
    _check(n_tasks, n_judges, n_people, n_classes, n_models)
    for name, value in (("strength", strength), ("hard", hard), ("model_accuracy", model_accuracy)):
        check_fraction(name, value)
    check_fraction("people_density", people_density)
    truths, models, judges, people, attending = np.random.default_rng(random_state).spawn(5)
    truth = truths.integers(n_classes, size=n_tasks)

    misled = models.random((n_models, n_tasks)) < hard
    thinks = build_symmetric_confusion(np.array([model_accuracy]), n_classes)[0]
    next_one = np.roll(np.eye(n_classes), 1, axis=1)
    every = np.tile(truth, n_models)
    opinion = draw_labels(np.stack([thinks, next_one]), misled.ravel().astype(int), every, models)
    opinion = opinion.reshape(n_models, n_tasks)

    model = np.arange(n_judges) % max(n_models, 1)
    right = np.concatenate([_drawn("judge_accuracy", judge_accuracy, n_judges, judges),
                            _drawn("people_accuracy", people_accuracy, n_people, people)])  # fmt: skip
    confusion = build_symmetric_confusion(right, n_classes)
    own = draw_labels(confusion[:n_judges], np.repeat(np.arange(n_judges), n_tasks), np.tile(truth, n_judges), judges)
    repeats = judges.random((n_judges, n_tasks)) < strength
    said = np.where(repeats, opinion[model], own.reshape(n_judges, n_tasks))
    theirs = draw_labels(
        confusion[n_judges:], np.repeat(np.arange(n_people), n_tasks), np.tile(truth, n_people), people
    )
    label = np.concatenate([said, theirs.reshape(n_people, n_tasks)])
    worker, task = np.nonzero(
        np.concatenate(
            [np.ones((n_judges, n_tasks), dtype=bool), attending.random((n_people, n_tasks)) < people_density]
        )
    )

    names = make_ids("judge", n_judges).append(make_ids("person", n_people))
    tasks, classes, called = make_ids("t", n_tasks), make_ids("c", n_classes), make_ids("model", n_models)
    return PanelSimulation(
        crowd=Crowd.from_codes(task, worker, label[worker, task], tasks=tasks, workers=names, classes=classes),
        truth=pd.Series(classes[truth], index=tasks, name="truth"),
        hard=pd.DataFrame(misled.T, index=tasks, columns=called).any(axis=1).rename("hard"),
        groups=pd.Series(called[model], index=names[:n_judges], name="group"),
        kinds=pd.Series([MACHINE] * n_judges + [PERSON] * n_people, index=names, name="kind"),
        opinions=pd.DataFrame(classes.to_numpy()[opinion.T], index=tasks, columns=called),
        confusion=confusion,
        opinion_confusion=np.repeat((hard * next_one + (1 - hard) * thinks)[None], n_models, axis=0),
        shared=pd.Series(np.where(np.arange(len(names)) < n_judges, strength, 0.0), index=names, name="shared"),
    )


def _check(n_tasks: int, n_judges: int, n_people: int, n_classes: int, n_models: int) -> None:
    if n_classes < 2:
        raise UsageError(f"n_classes must be 2 or more; got {n_classes}")
    if min(n_tasks, n_judges, n_people) < 0 or n_judges + n_people < 1 or n_tasks < 1:
        raise UsageError(
            f"a panel needs tasks and somebody who votes; got {n_tasks} tasks, {n_judges} judges and {n_people} people"
        )
    if not 1 <= n_models <= max(n_judges, 1):
        raise UsageError(f"n_models must lie between 1 and the number of judges, {n_judges}; got {n_models}")


def _drawn(
    name: str, accuracy: float | tuple[float, float], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:  # fmt: skip
    low, high = accuracy if isinstance(accuracy, tuple) else (accuracy, accuracy)
    broadcast_fractions(name, [low, high], 2, "end")
    if low > high:
        raise UsageError(f"{name} lies between a low and a high number, in this order; got {low}, {high}")
    return np.asarray(low + (high - low) * rng.random(n))
