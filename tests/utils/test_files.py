"""Atomic files."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.errors import DiskFull, InputError
from wisecrowd.utils import files
from wisecrowd.utils.files import (
    TEMPORARY_PREFIX,
    TemporaryFolder,
    atomic_folder,
    atomic_path,
    get_replaced_path,
    read_json,
    remove_stale_files,
    write_json,
    write_text,
)


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(TypeError), atomic_path(path) as partial:
        partial.write_text(None)  # type: ignore[arg-type]  # the error
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_contents_are_on_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "a.txt", []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.exists())))
    write_text(path, "12345")
    assert seen == [(5, False)]


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"no room for .*a\.txt; make room"), atomic_path(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_an_inner_full_disk_keeps_its_own_file(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"no room for inner\.txt"), atomic_path(tmp_path / "outer.txt"):
        raise DiskFull("inner.txt")


def test_folders_are_made_and_the_suffix_stays(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "new" / "votes.csv.gz") as partial:
        assert partial.name.endswith(".csv.gz")
        partial.write_bytes(b"")
    assert (tmp_path / "new" / "votes.csv.gz").exists()


def test_json_escapes_lone_surrogates_only(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"ü": "\ud800"})
    assert "ü" in (tmp_path / "x.json").read_text(encoding="utf-8")
    assert read_json(tmp_path / "x.json") == {"ü": "\ud800"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "y.json", float("nan"))


# ---------------------------------------------------------------------- files of killed processes

WRITE_AND_WAIT = """
import sys, time
from pathlib import Path
from wisecrowd.utils.files import TemporaryFolder, atomic_path
folder = Path(sys.argv[1])
scratch = TemporaryFolder(folder, "state")
(scratch.path / "big.npy").write_text("half")
with atomic_path(folder / "labels.csv") as partial:
    partial.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def writing_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the middle of writing a file and a folder."""
    command = [sys.executable, "-c", WRITE_AND_WAIT, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def temporary_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(TEMPORARY_PREFIX))


def test_files_of_a_killed_process_are_removed_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    with writing_process(tmp_path) as living:
        before = temporary_names(tmp_path)
        assert [name.rsplit("-", 1)[0] for name in before] == [".wisecrowd-labels", ".wisecrowd-state"]
        write_text(tmp_path / "other.txt", "written beside it")
        remove_stale_files(tmp_path)
        assert temporary_names(tmp_path) == before
        living.kill()
        living.wait()
        assert temporary_names(tmp_path) == before
        remove_stale_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.txt"]


def test_the_next_run_removes_them(tmp_path: Path) -> None:
    with writing_process(tmp_path) as process:
        process.kill()
        process.wait()
    assert len(temporary_names(tmp_path)) == 2
    write_text(tmp_path / "labels.csv", "complete")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_files_of_others_are_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".labels-abc12345.csv").write_text("not ours")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").write_text("years of work")
    (tmp_path / f"{TEMPORARY_PREFIX}link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / f"{TEMPORARY_PREFIX}pipe")
    names = sorted(path.name for path in tmp_path.iterdir())
    remove_stale_files(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "elsewhere" / "thesis.txt").read_text() == "years of work"
    (tmp_path / f"{TEMPORARY_PREFIX}foreign").write_text("of another user")
    uid = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: uid)
    remove_stale_files(tmp_path)
    assert (tmp_path / f"{TEMPORARY_PREFIX}foreign").exists()


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / f"{TEMPORARY_PREFIX}old.csv").write_text("half")
    write_text(tmp_path / "a.txt", "complete")
    with TemporaryFolder(tmp_path) as folder:
        (folder / "b.txt").write_text("scratch")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{TEMPORARY_PREFIX}old.csv", "a.txt"]


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkstemp, made = tempfile.mkstemp, []

    def make_and_lose(**options: Any) -> tuple[int, str]:
        handle, name = mkstemp(**options)
        made.append(name)
        if len(made) == 1:
            os.unlink(name)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", make_and_lose)
    write_text(tmp_path / "a.txt", "complete")
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


# ---------------------------------------------------------------------- folders in one step


def fill(folder: Path, text: str) -> None:
    with atomic_folder(folder) as partial:
        (partial / "a.txt").write_text(text)
        (partial / "b").mkdir()
        (partial / "b" / "c.txt").write_text(text)


def cannot_exchange(source: Path, target: Path) -> None:  # noqa: ARG001
    raise OSError(errno.EINVAL, "Invalid argument")


@pytest.fixture(params=["exchange", "two steps"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replace folders where the system can exchange names, and where it cannot."""
    if request.param == "two steps":
        monkeypatch.setattr(files, "_exchange", cannot_exchange)
    elif sys.platform != "linux":
        pytest.skip("names are exchanged on Linux only")
    return str(request.param)


@pytest.mark.usefixtures("either_way")
def test_a_folder_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        fill(tmp_path / "model", text)
        assert (tmp_path / "model" / "b" / "c.txt").read_text() == text
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "model"):
        raise ZeroDivisionError
    assert (tmp_path / "model" / "a.txt").read_text() == "three"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_permissions_are_those_of_any_new_folder(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    fill(tmp_path / "model", "x")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_full_disk_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=r"no room for .*model; make room"), atomic_folder(tmp_path / "model"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("either_way")
def test_many_writers_at_once_leave_one_complete_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fill(tmp_path / "model", str(number)), range(40)))
    text = (tmp_path / "model" / "a.txt").read_text()
    assert (tmp_path / "model" / "b" / "c.txt").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.slow
def test_a_reader_never_sees_nothing(tmp_path: Path) -> None:
    target, missing, stop = tmp_path / "model", 0, threading.Event()
    fill(target, "first")

    def watch() -> int:
        return sum(not (target / "a.txt").exists() for _ in iter(stop.is_set, True))

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            for number in range(60):
                fill(target, str(number))
        finally:
            stop.set()
        missing = watching.result()
    assert missing == 0


def test_where_names_cannot_be_exchanged_the_old_folder_has_another_name_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchange", cannot_exchange)
    fill(tmp_path / "model", "old")
    rename, left = Path.rename, iter([True, False])

    def killed(path: Path, target: Any) -> Path:
        if path.name == "new" and not next(left):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "model", "new")
    replaced = get_replaced_path(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert (replaced / "a.txt").read_text() == "old"
    monkeypatch.setattr(Path, "rename", rename)
    fill(tmp_path / "model", "newest")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "run.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"run\.json is not a file"):
        files.read_json(tmp_path / "run.json")
