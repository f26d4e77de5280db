"""Fits that are interrupted and go on: to the same bits, from their own file only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wisecrowd import MACE, Crowd, DawidSkene, FastDS, OneCoin, Rasch, TwoPL, simulate_crowd
from wisecrowd.base import checkpoints
from wisecrowd.base.checkpoints import METADATA, Checkpoint, CheckpointState, compute_fingerprint
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
    monkeypatch.setattr(checkpoints, "TIME_SHARE", 1e9)


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


@pytest.mark.slow
@pytest.mark.usefixtures("always_due")
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        DawidSkene,
        OneCoin,
        FastDS,
        lambda **options: MACE(n_init=3, **options),
        lambda **options: Rasch(max_iter=9, **options),
        lambda **options: TwoPL(max_iter=9, **options),
    ],
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
    with pytest.raises(InputError, match="chunks is 1 there and"):
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
        with pytest.raises(
            InputError, match=r"belongs to another fit: .* there and .* here.*; delete the file to start over"
        ):
            other()
    assert DawidSkene(checkpoint=place, n_jobs=2, max_iter=600).fit(votes).converged_  # no other fit


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_a_damaged_file_is_refused(damage: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    if damage is None:
        np.savez(place, something=np.ones(2))
    else:
        place.write_bytes(damage)
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file to start over"):
        DawidSkene(checkpoint=str(place)).fit(crowd())


def test_a_full_disk_does_not_end_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(DataWarning, match=r"could not be written \(No space left on device\); the fit continues"):
        fitted = DawidSkene(checkpoint=str(tmp_path / "fit.npz")).fit(crowd())
    assert fitted.converged_
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    script = """
import sys, os, signal, time
from wisecrowd import DawidSkene, simulate_crowd
from wisecrowd.utils import progress
from wisecrowd.base import checkpoints
checkpoints.TIME_SHARE = 1e9
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


def test_fingerprints_see_every_difference() -> None:
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
    assert len({compute_fingerprint(kind) for kind in kinds}) == len(kinds)


def test_fingerprints_tell_contents_apart() -> None:
    rows = np.arange(6.0)
    parts: list[tuple[Any, ...]] = [
        (rows,), (rows.reshape(2, 3),), (np.nextafter(rows, 9),), (rows, None), (None, rows), (rows, 1),
        (rows, "1"), (rows.astype(np.float32),),
    ]  # fmt: skip
    assert len({compute_fingerprint(*each) for each in parts}) == len(parts)
    assert compute_fingerprint(rows.reshape(2, 3).T) == compute_fingerprint(rows.reshape(2, 3).T.copy())


# ---------------------------------------------------------------------- the file

ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0)
)


@pytest.mark.slow
@given(arrays=st.dictionaries(st.text(), ARRAYS, max_size=4))
def test_what_is_read_is_what_was_written(arrays: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    checkpoint = Checkpoint(tmp_path_factory.mktemp("fits") / "fit.npz", {"seed": 0})
    checkpoint.write(CheckpointState(arrays, {"trace": [0.5]}))
    state = checkpoint.read()
    assert state is not None
    assert state.json_values == {"trace": [0.5]}
    assert set(state.arrays) == set(arrays)
    for name, array in arrays.items():
        assert (state.arrays[name].shape, state.arrays[name].dtype) == (array.shape, array.dtype)
        assert state.arrays[name].tobytes() == array.tobytes()


def test_a_view_is_written_as_it_looks(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.npz", {})
    checkpoint.write(CheckpointState({"turned": np.arange(6).reshape(2, 3).T}))
    state = checkpoint.read()
    assert state is not None
    assert state.arrays["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_writing_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.npz", {})
    checkpoint.write(CheckpointState({"weights": np.ones(2)}))
    with pytest.raises(TypeError, match="arrays of Python objects"):
        checkpoint.write(CheckpointState({"text": np.array(["a"], dtype=object)}))
    state = checkpoint.read()
    assert state is not None
    assert state.arrays["weights"].tolist() == [1, 1]
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


def test_a_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    Checkpoint(path, {"seed": 0, "data": "a"}).write(CheckpointState({"weights": np.ones(2)}))
    with pytest.raises(InputError, match="data is 'a' there and 'b' here"):
        Checkpoint(path, {"seed": 0, "data": "b"}).read()
    with pytest.raises(InputError, match="data is 'a' there and missing here"):
        Checkpoint(path, {"seed": 0}).read()
    path.write_text("hello")
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file"):
        Checkpoint(path, {}).read()


def test_a_process_that_does_not_write_reads(tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"
    reader = Checkpoint(path, {}, writes=False)
    reader.write(CheckpointState({}))
    reader.write_if_due(lambda: CheckpointState({}), final=True)
    assert not path.exists()
    Checkpoint(path, {}).write(CheckpointState({"weights": np.ones(2)}))
    assert reader.read() is not None


def test_writing_takes_a_small_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 100.0

        @classmethod
        def monotonic(cls) -> float:
            cls.now += 0.5  # so that a writing seems to take half a second
            return cls.now

    monkeypatch.setattr(checkpoints, "time", Clock)
    checkpoint = Checkpoint(tmp_path / "fit.npz", {})
    written: list[float] = []

    def make_state() -> CheckpointState:
        written.append(Clock.now)
        return CheckpointState({"weights": np.ones(1)})

    for _ in range(100):
        checkpoint.write_if_due(make_state)
    assert len(written) == 5  # in 50 seconds, one every ten
    checkpoint.write_if_due(make_state, final=True)
    assert len(written) == 6


# ---------------------------------------------------------------------- checkpoints from a stranger


def tamper(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change arrays (by name) and values of a checkpoint that otherwise belongs to its fit."""
    with np.load(path) as archive:
        stored = dict(archive)
    metadata = json.loads(str(stored.pop(METADATA)))
    arrays = {name: stored[f"array-{number}"] for number, name in enumerate(metadata["names"])}
    change(arrays, metadata["values"])
    metadata["names"] = list(arrays)
    columns = {f"array-{number}": array for number, array in enumerate(arrays.values())}
    np.savez(path, **{METADATA: np.array(json.dumps(metadata))}, **columns)  # type: ignore[arg-type]


Change = Callable[[dict[str, Any], dict[str, Any]], object]
EM_CHANGES: list[Change] = [
    lambda arrays, _: arrays.update(best_tally=arrays["best_tally"][:-1]),
    lambda arrays, _: arrays.update(best_tally=arrays["best_tally"].T),
    lambda arrays, _: arrays.update(best_tally=np.full_like(arrays["best_tally"], np.nan)),
    lambda arrays, _: arrays.update(best_tally=-arrays["best_tally"]),
    lambda arrays, _: arrays.update(best_tally=np.full(arrays["best_tally"].shape, "x")),
    lambda arrays, _: arrays.update(best_class_counts=np.array([1.0, np.inf, 0.0])),
    lambda arrays, _: arrays.update(best_class_counts=np.ones(4)),
    lambda arrays, _: arrays.update(best_class_counts=np.zeros(3)),
    lambda arrays, _: arrays.update(best_tally=np.full_like(arrays["best_tally"], 1e300)),
    lambda arrays, _: arrays.pop("best_class_counts"),
    lambda arrays, _: arrays.pop("best_tally"),
    lambda arrays, _: arrays.update(current_tally=np.ones((1, 1)), current_class_counts=np.ones(1)),
    lambda _, values: values.update(trace="long"),
    lambda _, values: values.update(trace=[1.0, None]),
    lambda _, values: values.update(trace=[float("nan")]),
    lambda _, values: values.update(restarts=[]),
    lambda _, values: values.update(restarts=[[1.0, "x", True]]),
    lambda _, values: values.update(restarts=[[1.0]]),
    lambda _, values: values.update(restarts=7),
    lambda _, values: values.update(best=[[], True]),
    lambda _, values: values.update(best=[[float("nan")], True]),
    lambda _, values: values.pop("best"),
    lambda _, values: values.clear(),
]


@pytest.mark.parametrize("change", EM_CHANGES, ids=range(len(EM_CHANGES)))
def test_a_tampered_checkpoint_of_em_is_refused(change: Change, tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    DawidSkene(checkpoint=str(place)).fit(crowd())
    tamper(place, change)
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file"):
        DawidSkene(checkpoint=str(place)).fit(crowd())


GRADIENT_CHANGES: list[Change] = [
    lambda arrays, _: arrays.update(prior=np.array([np.nan, 1.0, 0.0])),
    lambda arrays, _: arrays.update(prior=np.ones(2)),
    lambda arrays, _: arrays.update(prior=-np.ones(3)),
    lambda arrays, _: arrays.pop("prior"),
    lambda arrays, _: arrays.update({next(name for name in arrays if name != "prior"): np.ones(2)}),
    lambda arrays, _: [arrays.update({name: np.full(array.shape, np.inf)}) for name, array in list(arrays.items())],
    lambda arrays, _: arrays.clear(),
    lambda _, values: values.update(converged="yes"),
    lambda _, values: values.update(trace=[[]]),
    lambda _, values: values.pop("trace"),
]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("change", GRADIENT_CHANGES, ids=range(len(GRADIENT_CHANGES)))
def test_a_tampered_checkpoint_of_gradient_em_is_refused(change: Change, sharded: bool, tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    votes: Any = crowd()
    if sharded:
        votes = votes.to_shards(tmp_path / "crowd", votes_per_shard=200)
    Rasch(checkpoint=str(place), max_iter=5, tol=1).fit(votes)
    tamper(place, change)
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file"):
        Rasch(checkpoint=str(place), max_iter=5, tol=1).fit(votes)


def test_task_parameters_of_other_shards_are_refused(tmp_path: Path) -> None:
    place, votes = tmp_path / "fit.npz", crowd().to_shards(tmp_path / "crowd", votes_per_shard=200)
    Rasch(checkpoint=str(place), max_iter=5, tol=1).fit(votes)
    for ends in ([-1, 0, 150], [10**9, 10**9, 10**9], [150, 60, 10], [0, 0, 150]):
        tamper(place, lambda arrays, _: arrays.update(ends=np.array(ends)))  # noqa: B023
        with pytest.raises(InputError, match=r"fit\.npz is damaged"):
            Rasch(checkpoint=str(place), max_iter=5, tol=1).fit(votes)


@pytest.mark.parametrize(
    "metadata",
    ["{", "[]", "[" * 50_000, '{"owner": 1, "values": {}, "names": []}', '{"owner": {}, "values": [], "names": []}',
     '{"owner": {}, "values": {}, "names": ["x"]}', '{"owner": {}, "values": {}, "names": [1]}', "9" * 5000],
    ids=range(8),
)  # fmt: skip
def test_tampered_metadata_is_refused(metadata: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "fit.npz", **{METADATA: np.array(metadata)})
    with pytest.raises(InputError, match=r"fit\.npz"):
        Checkpoint(tmp_path / "fit.npz", {}).read()


def test_a_huge_array_is_refused_before_memory_is_allocated(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (400000000000,), }\n"
    with zipfile.ZipFile(tmp_path / "fit.npz", "w") as archive:
        archive.writestr(f"{METADATA}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError, match="does not have the length that its header says"):
        Checkpoint(tmp_path / "fit.npz", {}).read()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fit.npz")
    with pytest.raises(InputError, match="is not a regular file"):
        DawidSkene(checkpoint=str(tmp_path / "fit.npz")).fit(crowd())


def test_a_long_owner_is_shown_in_part(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "fit.npz", {"x" * 10_000: "y" * 10_000}).write(CheckpointState({}))
    with pytest.raises(InputError) as caught:
        Checkpoint(tmp_path / "fit.npz", {}).read()
    assert len(str(caught.value)) < 500


def test_numbers_below_the_lowest_are_told_apart_from_nan() -> None:
    state = CheckpointState({"tally": np.array([1.0, -0.5]), "prior": np.array([np.inf])})
    with pytest.raises(ValueError, match=r"tally contains -0\.5; its numbers must be 0 or more"):
        state.read_numbers("tally", (2,), lowest=0)
    with pytest.raises(ValueError, match="prior contains NaN or infinite numbers"):
        state.read_numbers("prior", (1,))
