"""Sharding goes on where it was interrupted, whatever interrupted it, and the folder is the same to the byte."""

from __future__ import annotations

import csv
import itertools
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils import progress

pytest.importorskip("duckdb", reason="sharding files needs duckdb, of the extra [cluster]")

from wisecrowd.io.sharding import shard_files

Row = tuple[Any, ...]


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("task", "worker", "label"), *rows])
    return path


def said(crowd: wc.Crowd | ShardedCrowd) -> list[Row]:
    loaded = crowd.load() if isinstance(crowd, ShardedCrowd) else crowd
    return sorted(loaded.to_frame().itertuples(index=False, name=None))


@pytest.fixture
def rows() -> list[Row]:
    """A crowd of 200 votes without repeats."""
    made = wc.simulate_crowd(50, 10, 3, votes_per_task=4, random_state=0).crowd
    return list(made.to_frame().itertuples(index=False, name=None))


@pytest.fixture
def files(tmp_path: Path, rows: list[Row]) -> list[Path]:
    """The same votes in five files, in no order of tasks; the last two are Parquet."""
    shuffled = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    found = []
    for number in range(5):
        part = shuffled[40 * number : 40 * (number + 1)]
        if number < 3:
            found.append(write_csv(tmp_path / f"{number}.csv", part))
        else:
            found.append(tmp_path / f"{number}.parquet")
            pd.DataFrame(part, columns=["task", "worker", "label"]).to_parquet(found[-1])
    return found


class Stop(BaseException):
    """Stands for whatever ends a program."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def stopped_at(place: int, files: list[Path], folder: Path, **options: Any) -> bool:
    """Return True if the work stopped at this report, which is one of reading, of the vocabularies or of a shard."""
    seen = 0

    def listener(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == place:
            raise Stop

    try:
        with progress.listen(listener):
            shard_files(files, folder, votes_per_shard=60, **options)
    except Stop:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("duplicates", ["error", "last"])
def test_interrupted_anywhere_it_goes_on(tmp_path: Path, files: list[Path], rows: list[Row], duplicates: str) -> None:
    if duplicates != "error":  # some pairs are only of votes that do not stay
        files.append(write_csv(tmp_path / "5.csv", [(task, worker, "c0") for task, worker, _ in rows[::2]]))
    shard_files(files, tmp_path / "whole", votes_per_shard=60, duplicates=duplicates)  # type: ignore[arg-type]
    whole = contents(tmp_path / "whole")
    place = 0
    while stopped_at(place := place + 1, files, tmp_path / "crowd", duplicates=duplicates):
        if place % 3 == 0:
            shard_files(files, tmp_path / "crowd", votes_per_shard=60, duplicates=duplicates)  # type: ignore[arg-type]
            assert contents(tmp_path / "crowd") == whole
            shutil.rmtree(tmp_path / "crowd")
    assert place > 7
    assert contents(tmp_path / "crowd") == whole


CHILD = """
import os, signal, sys
from wisecrowd.io.sharding import shard_files
left = int(sys.argv[1])
def hook(event, arguments):
    global left
    if event in ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "tempfile.mkstemp"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
shard_files(sys.argv[4:], sys.argv[2], votes_per_shard=60, duplicates=sys.argv[3])
print(left)
"""


@pytest.mark.slow
def test_killed_it_goes_on(tmp_path: Path, files: list[Path]) -> None:
    def run(left: int, folder: Path, duplicates: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", CHILD, str(left), folder, duplicates, *files]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole = run(-1, tmp_path / "whole", "error")
    assert whole.stderr == ""
    n_events = -1 - int(whole.stdout)
    assert n_events > 30
    for left in (n_events // 4, n_events // 2, n_events - 2):
        assert run(left, tmp_path / f"{left}", "error").returncode == -signal.SIGKILL
        shard_files(files, tmp_path / f"{left}", votes_per_shard=60)
        assert contents(tmp_path / f"{left}") == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [False, True])
def test_stopped_while_a_file_gets_its_name(
    tmp_path: Path, files: list[Path], rows: list[Row], repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if repeats:
        files.append(write_csv(tmp_path / "5.csv", [(task, worker, "c0") for task, worker, _ in rows[::2]]))
    options: dict[str, Any] = {"votes_per_shard": 110, "duplicates": "last"}
    shard_files(files, tmp_path / "whole", **options)
    left, folder = 0, tmp_path / "crowd"

    def stopping(function: Any) -> Any:
        def stopped(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stop
            return function(*arguments)

        return stopped

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, stopping(getattr(os, name)))
    for number in itertools.count(1):
        left = number
        try:
            shard_files(files, folder, **options)
            break
        except Stop:
            if number % 4 == 0:
                shard_files(files, folder, **options)
                assert contents(folder) == contents(tmp_path / "whole")
                shutil.rmtree(folder)
    assert number > 5
    assert contents(folder) == contents(tmp_path / "whole")


def test_other_inputs_and_options_are_refused(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    folder = tmp_path / "crowd"
    assert stopped_at(6, files, folder)
    for paths, options, advice in (
        (files[:-1], {}, r"4\.parquet is not among the files any more"),
        (files[::-1], {}, "another order"),
        (files, {"votes_per_shard": 61}, "votes_per_shard was 60 and is 61"),
        (files, {"task": "task"}, "task was None and is 'task'"),
    ):
        with pytest.raises(UsageError, match=f"begun with other inputs: .*{advice}.*--fresh"):
            shard_files(paths, folder, **{"votes_per_shard": 60} | options)  # type: ignore[arg-type]
    write_csv(files[0], rows[:1])
    with pytest.raises(UsageError, match=r"0\.csv has changed"):
        shard_files(files, folder, votes_per_shard=60)
    crowd = shard_files(files, folder, fresh=True, duplicates="distinct")
    assert crowd.n_votes <= 161
    whole = pd.concat(wc.read(file).to_frame() for file in files)
    assert said(crowd) == said(wc.Crowd.from_frame(whole, duplicates="distinct"))


def test_a_whole_folder(tmp_path: Path, files: list[Path], rows: list[Row]) -> None:
    folder = tmp_path / "crowd"
    made = shard_files(files, folder)
    before = contents(folder)
    assert shard_files(files, folder).digest == made.digest  # nothing is left to do
    with pytest.raises(UsageError, match=r"holds another crowd already: .*--fresh"):
        shard_files(files[:2], folder)
    assert contents(folder) == before
    assert shard_files(files[:2], folder, fresh=True).n_votes == 80
    wc.Crowd.from_triples(rows).to_shards(tmp_path / "other")
    with pytest.raises(UsageError, match="not made of files"):
        shard_files(files, tmp_path / "other")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    for fresh in (False, True):
        with pytest.raises(UsageError, match="holds something else"):
            shard_files(files, tmp_path / "full", fresh=fresh)
    with pytest.raises(UsageError, match="is a file"):
        shard_files(files, files[0])


def test_two_at_once(tmp_path: Path, files: list[Path]) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    problems: list[str] = []

    def listener(*_: object) -> None:
        with pytest.raises(UsageError, match="another run is writing") as caught:
            shard_files(files, tmp_path / "crowd")
        problems.append(str(caught.value))

    with progress.listen(listener):
        shard_files(files, tmp_path / "crowd")
    assert problems


# ---------------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    made = wc.simulate_crowd(20_000, 50, 4, votes_per_task=5, random_state=0).crowd
    votes = tmp_path / "votes.parquet"
    wc.write(made, votes)
    ballast = small_disk / "ballast"
    # So full that reading fails, then so full that only the shards do not fit.
    for room in (400_000, 780_000):
        ballast.write_bytes(b"x" * (2 * 2**20 - room))
        with pytest.raises(
            InputError, match=r"the disk of .* is full: about .* MB are needed.*repeat the same command"
        ):
            shard_files(votes, small_disk / "crowd", votes_per_shard=20_000)
        assert not (small_disk / "crowd" / "crowd.json").exists()
    ballast.unlink()
    crowd = shard_files(votes, small_disk / "crowd", votes_per_shard=20_000)
    assert said(crowd) == said(made)
    assert crowd.digest == shard_files(votes, tmp_path / "crowd", votes_per_shard=20_000).digest


@pytest.mark.slow
def test_a_program_whose_files_are_bad_ends_without_a_word(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from wisecrowd.io.sharding import shard_files
        try:
            shard_files(sys.argv[2:], sys.argv[1], votes_per_shard=60)
        except ValueError:
            pass
    """)
    bad = tmp_path / "bad.csv"
    bad.write_text("task,worker,label\nt1,ann\n")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "crowd", bad], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
