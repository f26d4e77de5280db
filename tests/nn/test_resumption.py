"""EM steps that resume from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.checkpoints import Checkpoint, CheckpointState
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.em.loop import Statistics
from wisecrowd.errors import InputError
from wisecrowd.nn.resumption import make_resumable_step

pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(12, 2))
START = Statistics(np.random.default_rng(1).dirichlet(np.ones(2), 12), np.ones((3, 2)))


@dataclass
class Outputs:
    task_prior: Any = None
    strength: float = 0.0


class Fit:
    """Iterates a step that changes statistics, outputs and a classifier, and counts how often it is really computed."""

    def __init__(self, path: Path | None, max_iter: int = 6) -> None:
        self.outputs, self.classifier, self.n_computed = Outputs(), Logistic(l2=0.1), 0
        checkpoint = Checkpoint(path, {"data": "x"})
        self.step = make_resumable_step(self.compute, checkpoint, max_iter, self.outputs, [self.classifier])

    def compute(self, statistics: Statistics) -> tuple[Statistics, float]:
        self.n_computed += 1
        posterior, tally = statistics
        self.outputs.task_prior = self.classifier.fit(X, posterior).predict_proba(X)
        self.outputs.strength += 1.5
        return Statistics((posterior + self.outputs.task_prior) / 2, tally * 1.1), float(self.outputs.strength)

    def run(self, n_steps: int) -> tuple[Statistics, list[float]]:
        statistics, trace = START, []
        for _ in range(n_steps):
            statistics, objective = self.step(statistics)
            trace.append(objective)
        return statistics, trace


@pytest.fixture
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write after every step, not after some seconds."""
    write = Checkpoint.write_if_due
    monkeypatch.setattr(Checkpoint, "write_if_due", lambda self, make, **_: write(self, make, final=True))


@pytest.mark.usefixtures("always_due")
@pytest.mark.parametrize("n_before", [1, 3, 6])
def test_an_interrupted_iteration_ends_as_an_uninterrupted_one(tmp_path: Path, n_before: int) -> None:
    whole = Fit(None)
    expected, trace = whole.run(6)
    Fit(tmp_path / "checkpoint").run(n_before)
    again = Fit(tmp_path / "checkpoint")
    statistics, resumed_trace = again.run(6)
    assert again.n_computed == 6 - n_before
    assert resumed_trace == trace
    np.testing.assert_allclose(statistics.class_counts, expected.class_counts, atol=1e-6)
    np.testing.assert_allclose(statistics.tally, expected.tally)
    assert again.outputs.strength == whole.outputs.strength
    np.testing.assert_allclose(again.classifier.predict_proba(X), whole.classifier.predict_proba(X), atol=1e-5)


def test_without_a_file_every_step_is_computed() -> None:
    fit = Fit(None)
    fit.run(4)
    assert fit.n_computed == 4


def test_the_last_step_is_written(tmp_path: Path) -> None:
    Fit(tmp_path / "checkpoint", max_iter=2).run(2)
    again = Fit(tmp_path / "checkpoint", max_iter=2)
    again.run(2)
    assert again.n_computed == 0


def tamper(place: Path, arrays: dict[str, Any]) -> None:
    """Change arrays of a checkpoint that otherwise belongs to its fit; None removes one."""
    checkpoint = Checkpoint(place, {"data": "x"})
    state = checkpoint.read()
    assert state is not None
    changed = {name: array for name, array in (state.arrays | arrays).items() if array is not None}
    checkpoint.write(CheckpointState(changed, state.json_values))


@pytest.mark.usefixtures("always_due")
@pytest.mark.parametrize(
    "arrays",
    [
        {"trace": np.array([np.nan, 1.0])}, {"trace": np.array("x")}, {"trace": None}, {"tally": np.ones((3, 3))}, {"tally": None},
        {"tally": np.full((3, 2), np.nan)}, {"class_counts": -np.ones((12, 2))}, {"class_counts": np.ones(12)},
        {"outputs.strength": np.array(np.inf)}, {"outputs.strength": None}, {"outputs.more": np.ones(2)},
        {"outputs.task_prior": np.ones((3, 2))}, {"outputs.task_prior": np.array(["x"])},
        {"classifier-0.coefficients": np.ones((9, 9))}, {"classifier-0.mean": None},
    ],
    ids=range(15),
)  # fmt: skip
def test_a_tampered_checkpoint_is_refused(arrays: dict[str, Any], tmp_path: Path) -> None:
    Fit(tmp_path / "fit.npz").run(2)
    tamper(tmp_path / "fit.npz", arrays)
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file"):
        Fit(tmp_path / "fit.npz").run(2)
