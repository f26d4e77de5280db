from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wisecrowd.bench import find_benchmark
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.session import Session
from wisecrowd.errors import InputError, UsageError

PROGRAM = "from wisecrowd.cli.bench import app; app()"


def session(odd: ModuleType, folder: Path, **options: Any) -> Session:
    benchmark: Benchmark = replace(odd.benchmark(), name="odd")
    return Session(benchmark, folder, **options)


@pytest.mark.slow
def test_a_second_run_does_what_is_left(odd: ModuleType, tmp_path: Path) -> None:
    first = session(odd, tmp_path, only=["one", "small"])
    assert {str(cell) for cell, _ in first.run(jobs=1)} == {"one on small", "one on small, seed 1"}
    second = session(odd, tmp_path, only=["one", "MV"])
    assert second.n_settled == 2
    assert len(list(second.run(jobs=2))) == 6
    assert sorted((tmp_path / "calls").read_text().splitlines()) == ["20 0", "20 1", "40 0", "40 1"]  # nothing twice
    third = session(odd, tmp_path, only=["one", "MV"])
    assert (third.n_settled, list(third.run(jobs=1))) == (8, [])
    assert ".375±.177" in third.text()  # the mean of .25 and .5
    assert (tmp_path / "odd.md").read_text() == third.markdown()


@pytest.mark.slow
def test_fresh_runs_everything_again(odd: ModuleType, tmp_path: Path) -> None:
    for _ in range(2):
        list(session(odd, tmp_path, only=["one", "small"], seeds=1, fresh=True).run(jobs=1))
    assert (tmp_path / "calls").read_text() == "20 0\n20 0\n"


@pytest.mark.slow
def test_leaving_the_loop_keeps_what_came(odd: ModuleType, tmp_path: Path) -> None:
    answers = session(odd, tmp_path, only=["one"]).run(jobs=1)
    next(answers)
    answers.close()
    assert session(odd, tmp_path, only=["one"]).n_settled == 1
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.slow
def test_what_is_gone_is_forgotten(odd: ModuleType, tmp_path: Path) -> None:
    list(session(odd, tmp_path, only=["one", "small"]).run(jobs=1))
    benchmark = odd.benchmark()
    fewer = replace(benchmark, name="odd", data={"large": benchmark.data["large"]}, published={})
    elsewhere = replace(fewer, data_at_hand=True)
    list(Session(elsewhere, tmp_path, only=["MV"], seeds=1).run(jobs=1))
    assert {row["data"] for row in Session(elsewhere, tmp_path).rows} == {"small", "large"}
    fewest = replace(fewer, entries={"MV": benchmark.entries["MV"]})
    list(Session(fewest, tmp_path).run(jobs=1))
    assert {(row["entry"], row["data"]) for row in Session(fewest, tmp_path).rows} == {("MV", "large")}


def test_titles_are_chosen_by_pattern(odd: ModuleType, tmp_path: Path) -> None:
    chosen = session(odd, tmp_path, only=["O*", "mv", "SMALL"], seeds=1)
    assert {cell.key for cell in chosen.todo} == {("one", "small", 0), ("MV", "small", 0)}
    with pytest.raises(UsageError, match=r"nothing in odd is called 'smal'\. Did you mean 'small'"):
        session(odd, tmp_path, only=["smal"])


@pytest.mark.parametrize("options", [{"seeds": 0}, {"time_limit": 0}])
def test_impossible_options(odd: ModuleType, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        session(odd, tmp_path, **options)


def test_data_that_are_not_here_are_left_out(odd: ModuleType, tmp_path: Path) -> None:
    from wisecrowd.bench.data import StoredDataset

    benchmark = replace(odd.benchmark(), name="odd", data={"nowhere": StoredDataset("no_such_dataset", "keep")})
    made = Session(benchmark, tmp_path)
    assert not made.todo
    assert "not on this machine" in made.absent["nowhere"]


def test_a_file_can_be_a_benchmark(odd: ModuleType, tmp_path: Path) -> None:  # noqa: ARG001
    assert find_benchmark(str(tmp_path / "odd_entries.py")).name == "odd-entries"
    (tmp_path / "empty_file.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="defines no function benchmark"):
        find_benchmark(str(tmp_path / "empty_file.py"))
    with pytest.raises(InputError, match="there is no file"):
        find_benchmark(str(tmp_path / "missing.py"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_run_goes_on_where_it_stopped_and_leaves_no_process(odd: ModuleType, tmp_path: Path) -> None:  # noqa: ARG001
    command = [sys.executable, "-c", PROGRAM, "run", str(tmp_path / "odd_entries.py"), "-o", str(tmp_path), "-j", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("2/"):
                children = _children(running.pid)
                running.send_signal(signal.SIGKILL)
                break
    assert running.returncode == -signal.SIGKILL
    _wait_until_gone(children)
    before = (tmp_path / "odd-entries.jsonl").read_text().count("\n")
    assert before >= 2
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{before} of 12 results are stored already" in done.stderr
    assert "method" in done.stdout
    assert len(Session(find_benchmark(str(tmp_path / "odd_entries.py")), tmp_path).todo) == 0
    assert not (tmp_path / "odd-entries.jsonl").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupted_run_keeps_what_came(odd: ModuleType, tmp_path: Path) -> None:  # noqa: ARG001
    command = [sys.executable, "-c", PROGRAM, "run", str(tmp_path / "odd_entries.py"), "-o", str(tmp_path), "-j", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("2/"):
                children = _children(running.pid)
                running.send_signal(signal.SIGINT)
                break
        running.communicate(timeout=30)
    assert running.returncode not in (0, None)
    _wait_until_gone(children)
    assert (tmp_path / "odd-entries.parquet").exists()
    assert (tmp_path / "odd-entries.md").exists()
    assert not (tmp_path / "odd-entries.jsonl").exists()
    assert Session(find_benchmark(str(tmp_path / "odd_entries.py")), tmp_path).n_settled >= 2


def _children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def _wait_until_gone(processes: list[int], seconds: float = 20) -> None:
    assert processes
    deadline = time.monotonic() + seconds
    while any(_is_running(pid) for pid in processes):
        assert time.monotonic() < deadline, f"{processes} outlived their parent"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # The process that adopted it may not have collected its exit code yet.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")
