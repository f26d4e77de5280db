"""Hostile votes, features and truth for every method.

    python -m tests.fuzz.methods --seed 7 --cases 5000 --keep findings
    python -m tests.fuzz.methods --seed 7 --case 123

A target is a method. A case fits it to a crowd of an extreme shape, with weights, features and truth at the ends of their
ranges. The fit must raise a `WisecrowdError`, or return probabilities that are finite and sum to one.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.fuzz import runner
from tests.fuzz.runner import Target

from wisecrowd.base.registry import method_modules

#: File with the seed of the data of a case.
SEED = "seed.json"
#: Parameters under which methods are quick. What a method does not have is left out.
QUICK = {"epochs": 2, "batch_size": 16, "hidden": 8, "max_iter": 8, "n_restarts": 1, "restarts": 1}

#: Processor time of a case. Thousands of classes take time, and that is no hang.
MAX_SECONDS = 60.0

Draw = Callable[[np.random.Generator], dict[str, Any]]


def _codes(rng: np.random.Generator, n_tasks: int, n_workers: int, n_classes: int, n_votes: int) -> dict[str, Any]:
    return {
        "task": rng.integers(n_tasks, size=n_votes),
        "worker": rng.integers(n_workers, size=n_votes),
        "label": rng.integers(n_classes, size=n_votes),
        "tasks": [f"t{number}" for number in range(n_tasks)],
        "workers": [f"w{number}" for number in range(n_workers)],
        "classes": [f"c{number}" for number in range(n_classes)],
        "duplicates": "keep",
    }


def _ordinary(rng: np.random.Generator) -> dict[str, Any]:
    return _codes(rng, 20, 5, 3, 80)


def _weighted(*values: float) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        votes = _ordinary(rng)
        return votes | {"weight": rng.choice(values, size=len(votes["task"]))}

    return draw


def _cliques(rng: np.random.Generator) -> dict[str, Any]:
    """Two halves of the workers contradict each other on every task."""
    votes = _codes(rng, 20, 6, 2, 0)
    task, worker = (grid.ravel() for grid in np.meshgrid(np.arange(20), np.arange(6), indexing="ij"))
    return votes | {"task": task, "worker": worker, "label": worker % 2}


def _distinct(rng: np.random.Generator) -> dict[str, Any]:
    """Every vote has a class of its own."""
    votes = _codes(rng, 20, 5, 80, 80)
    return votes | {"label": np.arange(80)}


def _distinct_classes(rng: np.random.Generator) -> dict[str, Any]:
    votes = _codes(rng, 1000, 50, 100_000, 100_000)
    return votes | {"label": np.arange(100_000)}


def _one_vote_per_worker(rng: np.random.Generator) -> dict[str, Any]:
    votes = _codes(rng, 20, 80, 3, 80)
    return votes | {"worker": np.arange(80)}


#: Shapes of crowds by name.
CROWDS: dict[str, Draw] = {
    "ordinary": _ordinary,
    "no votes": lambda rng: _codes(rng, 3, 2, 2, 0),
    "one vote": lambda rng: _codes(rng, 1, 1, 1, 1),
    "one vote of two classes": lambda rng: _codes(rng, 1, 1, 2, 1),
    "one task": lambda rng: _codes(rng, 1, 5, 3, 20),
    "one worker": lambda rng: _codes(rng, 20, 1, 3, 60),
    "one class": lambda rng: _codes(rng, 20, 5, 1, 60),
    "unanimous": lambda rng: _codes(rng, 20, 5, 3, 60) | {"label": np.zeros(60, dtype=int)},
    "two cliques": _cliques,
    "all votes differ": _distinct,
    "one vote per worker": _one_vote_per_worker,
    "one task has all votes": lambda rng: _codes(rng, 20, 5, 3, 60) | {"task": np.zeros(60, dtype=int)},
    "one worker repeats a vote": lambda rng: _codes(rng, 3, 3, 3, 3000) | {"worker": np.zeros(3000, dtype=int)},
    "workers without votes": lambda rng: _codes(rng, 20, 2000, 3, 60),
    "tasks without votes": lambda rng: _codes(rng, 2000, 5, 3, 60),
    "many classes without votes": lambda rng: _codes(rng, 10, 4, 20_000, 30) | {"label": rng.integers(5, size=30)},
    "many classes": lambda rng: _codes(rng, 60, 10, 3000, 300),
    "a hundred thousand classes": lambda rng: _codes(rng, 60, 10, 100_000, 300),
    "a vote for each of a hundred thousand classes": _distinct_classes,
    "no workers": lambda rng: _ordinary(rng) | {"worker": None, "workers": None},
    "tiny weights": _weighted(1e-6),
    "huge weights": _weighted(1e6),
    "weights at both ends": _weighted(1e-6, 1.0, 1e6),
    "weights at the limits": _weighted(1e-12, 1.0, 1e12),
    "smallest weights": _weighted(1e-12),
    "largest weights": _weighted(1e12),
    "weights out of range": _weighted(1e-300, 1e300, 5e-324),
    "weights of zero": _weighted(0.0, 1.0),
    "only weights of zero": _weighted(0.0),
}
#: Labels of numeric crowds by name.
NUMBERS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "ordinary": lambda rng, n: rng.normal(size=n),
    "equal": lambda rng, n: np.full(n, 7.0),
    "huge": lambda rng, n: rng.choice([1e308, -1e308], size=n),
    "tiny": lambda rng, n: rng.choice([5e-324, -5e-324, 0.0], size=n),
    "of all sizes": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, size=n),
    "one far away": lambda rng, n: np.r_[1e300, rng.normal(size=n - 1)] if n else np.empty(0),
    "integers": lambda rng, n: rng.integers(2**53, 2**62, size=n).astype(float),
}
#: Features by name.
FEATURES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "ordinary": lambda rng, n: rng.normal(size=(n, 4)),
    "constant": lambda rng, n: np.ones((n, 3)),
    "one column": lambda rng, n: rng.normal(size=(n, 1)),
    "no column": lambda rng, n: np.empty((n, 0)),
    "huge": lambda rng, n: rng.choice([1e308, -1e308, 0.0], size=(n, 3)),
    "large": lambda rng, n: rng.normal(size=(n, 3)) * 1e30,
    "tiny": lambda rng, n: rng.normal(size=(n, 3)) * 1e-308,
    "of all sizes": lambda rng, n: rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-30, 30, size=(n, 3)),
    "missing": lambda rng, n: np.where(rng.random((n, 3)) < 0.1, np.nan, 1.0),
    "infinite": lambda rng, n: np.full((n, 3), np.inf),
    "collinear": lambda rng, n: np.outer(np.arange(n), [1.0, 2.0, -3.0]),
    "more columns than tasks": lambda rng, n: rng.normal(size=(n, 300)),
    "whole numbers": lambda rng, n: rng.integers(2**62, size=(n, 2)),
    "too few rows": lambda rng, n: rng.normal(size=(max(0, n - 1), 2)),
    "images": lambda rng, n: rng.normal(size=(n, 2, 3, 3)),
}
#: Truth of tasks by name.
TRUTHS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "unknown": lambda rng, crowd: None,
    "of all tasks": lambda rng, crowd: dict(zip(crowd.tasks, rng.choice(crowd.classes, len(crowd.tasks)), strict=True)),
    "of one task": lambda rng, crowd: {crowd.tasks[0]: crowd.classes[0]},
    "of one class": lambda rng, crowd: dict.fromkeys(crowd.tasks, crowd.classes[-1]),
    "of another class": lambda rng, crowd: {crowd.tasks[0]: "something else"},
    "of another task": lambda rng, crowd: {"another": crowd.classes[0]},
}


def _make_method(name: str) -> Any:
    from wisecrowd.base.registry import find

    kind: Any = find(name)
    fields = {field.name for field in dataclasses.fields(kind)}
    return kind(**{key: value for key, value in QUICK.items() if key in fields})


def _draw(rng: np.random.Generator, choices: dict[str, Any]) -> tuple[str, Any]:
    # Half of all draws are ordinary, so that a case has one or two hostile parts and is not refused for the first of five.
    names = list(choices)
    name = names[0] if rng.random() < 0.5 else names[int(rng.integers(len(names)))]
    return name, choices[name]


def prepare(name: str, folder: Path, rng: np.random.Generator) -> str:
    """Store the seed of the data of a case."""
    seed = int(rng.integers(1 << 62))
    (folder / SEED).write_text(json.dumps(seed))
    return f"{name}: {_describe(seed)}"


def _describe(seed: int) -> str:
    rng = np.random.default_rng(seed)
    parts = {"crowd": CROWDS, "numbers": NUMBERS, "features": FEATURES, "truth": TRUTHS}
    return ", ".join(f"{key} {_draw(rng, choices)[0]}" for key, choices in parts.items())


def fit(name: str, folder: Path) -> None:
    """Fit a method to the data of a case, and check its results."""
    from wisecrowd.base.completer import Completer
    from wisecrowd.base.learner import Learner
    from wisecrowd.data.crowd import Crowd

    rng = np.random.default_rng(json.loads((folder / SEED).read_text()))
    (_, draw_crowd), (_, draw_numbers), (_, draw_features), (_, draw_truth) = (
        _draw(rng, choices) for choices in (CROWDS, NUMBERS, FEATURES, TRUTHS)
    )
    method, votes = _make_method(name), draw_crowd(rng)
    if "numeric" in method.answer_types and ("categorical" not in method.answer_types or rng.random() < 0.5):
        votes |= {"label": draw_numbers(rng, len(votes["task"])), "classes": None}
    crowd = Crowd.from_codes(**votes)
    rows = draw_features(rng, crowd.n_tasks)
    X: Any = pd.DataFrame(rows, index=crowd.tasks) if rows.ndim == 2 and len(rows) == crowd.n_tasks else rows
    if isinstance(method, Completer):
        completed = method.complete(crowd, X if method.uses_features else None)
        _check_finite(name, "weights", completed.weight)
        return
    truth = None if crowd.is_numeric else draw_truth(rng, crowd)
    if isinstance(method, Learner):
        method.fit(X, crowd, truth=truth)
        _check_probabilities(name, method.predict_proba(X))
    elif crowd.is_numeric:
        method.fit(crowd)
        _check_finite(name, "labels", method.labels_[crowd.votes_per_task > 0])
        return
    else:
        method.fit(crowd, X if method.uses_features else None, truth=truth)
    _check_probabilities(name, method.proba_)
    for table in ("labels_", "workers_"):
        getattr(method, table, None)


def _check_finite(name: str, noun: str, values: Any) -> None:
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise AssertionError(f"{name} returned {noun} that are not finite")


def _check_probabilities(name: str, table: Any) -> None:
    values = np.asarray(table, dtype=float)
    _check_finite(name, "probabilities", values)
    if values.size and not (np.all(values >= 0) and np.allclose(values.sum(axis=1), 1, atol=1e-6)):
        raise AssertionError(f"{name} returned probabilities that do not sum to one")


TARGETS = tuple(
    Target(name, functools.partial(prepare, name), functools.partial(fit, name), max_seconds=MAX_SECONDS)
    for name in method_modules()
)

if __name__ == "__main__":
    runner.main("tests.fuzz.methods")
