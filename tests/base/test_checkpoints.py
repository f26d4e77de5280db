"""Fits that are interrupted and go on: to the same bits, from their own file only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import MACE, Crowd, DawidSkene, FastDS, OneCoin, Rasch, TwoPL, simulate_crowd
from wisecrowd.base.checkpoints import Standing, likeness
from wisecrowd.errors import DataWarning, InputError
from wisecrowd.utils import progress


class Stopped(Exception):
    """Somebody pulled the plug."""


def crowd() -> Crowd:
    made = simulate_crowd(
        n_tasks=150, n_classes=3, votes_per_task=4, random_state=1, workers={"noisy": 9, "spammer": 4}
    )
    return made.crowd


@pytest.fixture
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Standing, "due", lambda self: self.path is not None)


def interrupted(method: Any, votes: Any, every: int, truth: Any = None) -> tuple[Any, int]:
    """Fit, stopped after every so many passes and begun again, until it ends."""
    for stops in range(1000):
        left = every

        def stop(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        try:
            with progress.listen(stop):
                return type(method)(**method.get_params(deep=False)).fit(votes, truth=truth), stops
        except Stopped:
            continue
    raise AssertionError("it never came to an end")


@pytest.mark.usefixtures("always_due")
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(
    "kind",
    [DawidSkene, OneCoin, FastDS, lambda **options: MACE(n_init=3, **options), Rasch, TwoPL],
    ids=["ds", "1c", "fds", "mace", "rasch", "2pl"],
)
def test_it_goes_on_to_the_same_bits(kind: Any, sharded: bool, tmp_path: Path) -> None:
    votes: Any = crowd()
    if sharded:
        votes = votes.to_shards(tmp_path / "crowd", votes_per_shard=200)
    truth = pd.Series({votes.tasks[3]: votes.classes[1]})
    wanted = kind(tol=1e-10).fit(votes, truth=truth)
    found, stops = interrupted(kind(tol=1e-10, checkpoint=str(tmp_path / "fit.npz")), votes, 4, truth)
    assert stops > 0 or wanted.n_iter_ < 4
    assert np.array_equal(found.tally_, wanted.tally_)
    assert np.array_equal(found.trace_, wanted.trace_)
    assert np.array_equal(found.posterior_, wanted.posterior_)
    if hasattr(wanted, "restarts_"):
        assert found.restarts_.equals(wanted.restarts_)
    if hasattr(wanted, "tasks_"):
        assert found.tasks_.equals(wanted.tasks_)


@pytest.mark.usefixtures("always_due")
def test_a_finished_fit_is_not_done_again(tmp_path: Path) -> None:
    votes, place = crowd(), str(tmp_path / "fit.npz")
    first = DawidSkene(checkpoint=place).fit(votes)
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    with progress.listen(count):
        again = DawidSkene(checkpoint=place).fit(votes)
    assert passes == 0
    assert np.array_equal(again.posterior_, first.posterior_)


@pytest.mark.usefixtures("always_due")
def test_a_finished_climb_is_not_climbed_again(tmp_path: Path) -> None:
    votes, place = crowd(), str(tmp_path / "fit.npz")
    first = Rasch(checkpoint=place).fit(votes)
    again = Rasch(checkpoint=place).fit(votes)
    assert np.array_equal(again.posterior_, first.posterior_)
    assert again.tasks_.equals(first.tasks_)
    assert again.n_iter_ == first.n_iter_
    with pytest.raises(InputError, match="whose chunks is 1, here"):
        Rasch(checkpoint=place).fit(votes.to_shards(tmp_path / "crowd", votes_per_shard=200))


def test_a_file_of_another_fit_is_refused(tmp_path: Path) -> None:
    votes, place = crowd(), str(tmp_path / "fit.npz")
    DawidSkene(checkpoint=place).fit(votes)
    for other in (
        lambda: OneCoin(checkpoint=place).fit(votes),
        lambda: DawidSkene(checkpoint=place, smoothing=0.5).fit(votes),
        lambda: DawidSkene(checkpoint=place).fit(votes[:100]),
        lambda: DawidSkene(checkpoint=place).fit(votes, truth={votes.tasks[0]: votes.classes[0]}),
        lambda: DawidSkene(checkpoint=place).fit(votes, start=np.ones((150, 3))),
    ):
        with pytest.raises(InputError, match=r"belongs to another fit, whose .* delete it to start anew"):
            other()
    assert DawidSkene(checkpoint=place, n_jobs=2, max_iter=600).fit(votes).converged_  # no other fit


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_a_damaged_file_is_refused(damage: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    if damage is None:
        np.savez(place, something=np.ones(2))
    else:
        place.write_bytes(damage)
    with pytest.raises(InputError, match="is no checkpoint"):
        DawidSkene(checkpoint=str(place)).fit(crowd())


def test_a_full_disk_does_not_end_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(DataWarning, match=r"could not be kept in .* \(No space left on device\); it goes on"):
        fitted = DawidSkene(checkpoint=str(tmp_path / "fit.npz")).fit(crowd())
    assert fitted.converged_
    assert not list(tmp_path.iterdir())


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    script = """
import sys, os, signal, time
from wisecrowd import DawidSkene, progress, simulate_crowd
from wisecrowd.base.checkpoints import Standing
Standing.due = lambda self: self.path is not None
votes = simulate_crowd(n_tasks=150, n_classes=3, votes_per_task=4, random_state=1, workers={"noisy": 9, "spammer": 4}).crowd
left = int(sys.argv[2])
def die(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with progress.listen(die):
    print(repr(DawidSkene(tol=1e-10, checkpoint=sys.argv[1]).fit(votes).trace_.tolist()))
"""
    place, outputs = str(tmp_path / "fit.npz"), []
    for passes in (3, 5, 0):
        command = [sys.executable, "-c", script, place, str(passes)]
        outputs.append(subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False))
    assert [run.returncode for run in outputs] == [-9, -9, 0]
    made = simulate_crowd(
        n_tasks=150, n_classes=3, votes_per_task=4, random_state=1, workers={"noisy": 9, "spammer": 4}
    )
    assert outputs[-1].stdout.strip() == repr(DawidSkene(tol=1e-10).fit(made.crowd).trace_.tolist())


def test_likeness_sees_every_difference() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    kinds = [
        None,
        0,
        "0",
        np.zeros(1),
        np.zeros((1, 1)),
        frame,
        frame.rename(columns={"a": "b"}),
        frame * 2,
        [1],
        (1, 2),
    ]
    assert len({likeness(kind) for kind in kinds}) == len(kinds)
