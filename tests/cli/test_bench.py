from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TABLE = '''
"""Two on one."""

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.data import SimulatedDataset
from wisecrowd.bench.entries import Aggregate, UnavailableMethod


def benchmark():
    return Benchmark(
        title="Two on one",
        entries={"MV": Aggregate("majority-vote"), "none": UnavailableMethod("it was lost")},
        data={"simulated": SimulatedDataset({"n_tasks": 30})},
        published={("MV", "simulated", "accuracy"): 0.5},
    )
'''


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "two_on_one.py").write_text(TABLE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "two_on_one.py"
    sys.modules.pop("two_on_one", None)


def test_the_list(run: Any) -> None:
    result = run("bench", "list")
    assert result.exit_code == 0, result.stderr
    names = [line.split()[0] for line in result.stdout.splitlines() if line and not line.startswith(" ")]
    assert {"zheng2017", "truth-inference-at-scale", "crowdkit", "all-aggregators", "synthetic-sparsity"} <= set(names)


@pytest.mark.slow
def test_run_keeps_and_shows(run: Any, table: Path, tmp_path: Path) -> None:
    result = run("bench", "run", table, "-o", tmp_path / "kept", "-j", 1)
    assert result.exit_code == 0, result.stderr
    assert "2/2 after" in result.stderr
    assert "not in wisecrowd: it was lost" in result.stdout
    assert all(word in result.stdout for word in ("paper", "ours", "diff."))
    assert "two-on-one.parquet" in "".join(result.stdout.split()), "a long path is wrapped, and still all there"
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["two-on-one.md", "two-on-one.parquet"]

    shown = run("bench", "show", table, "-o", tmp_path / "kept")
    assert shown.stdout.splitlines()[:8] == result.stdout.splitlines()[:8]
    page = run("bench", "show", table, "-o", tmp_path / "kept", "--markdown")
    assert page.stdout == (tmp_path / "kept" / "two-on-one.md").read_text()


@pytest.mark.slow
def test_a_small_version_has_results_of_its_own(run: Any, table: Path, tmp_path: Path) -> None:
    small = "\n\ndef quick():\n    return Benchmark(title='One', entries={'none': UnavailableMethod('a')}, data=benchmark().data)\n"
    table.write_text(TABLE + small)
    result = run("bench", "run", table, "--quick", "-o", tmp_path / "kept", "-j", 1)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("One\n")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "two-on-one-quick.md",
        "two-on-one-quick.parquet",
    ]
    assert run("bench", "show", table, "--quick", "-o", tmp_path / "kept").stdout.startswith("One\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "zheng"), 2, "no benchmark is called 'zheng'"),
        (("run", "missing.py"), 1, "there is no file missing.py"),
        (("run", "two_on_one.py", "--only", "mw"), 2, "nothing in two-on-one is called 'mw'"),
        (("run", "two_on_one.py", "--time-limit", "0"), 2, "the time limit must be positive"),
        (("run", "two_on_one.py", "-o", "two_on_one.py"), 2, "cannot be written"),
        (("run", "two_on_one.py", "--quick"), 2, "two-on-one has no quick version"),
        (("show", "zheng2017", "--quick"), 2, "zheng2017 has no quick version"),
    ],
)
@pytest.mark.usefixtures("table")
def test_what_cannot_be(run: Any, words: tuple[str, ...], code: int, message: str) -> None:
    result = run("bench", *words)
    assert result.exit_code == code
    assert message in result.stderr
    assert not Path("benchmarks").exists()


def test_nothing_has_been_run(run: Any, table: Path) -> None:
    result = run("bench", "show", table)
    assert result.exit_code == 0
    assert "Nothing has been run yet." in result.stdout


@pytest.mark.slow
def test_outdated_and_missing_results_are_found(run: Any, table: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    missing = run("bench", "verify", table, "-o", kept)
    assert missing.exit_code == 1
    assert "two-on-one: run again MV, none" in missing.stdout
    assert run("bench", "run", table, "-o", kept, "-j", 1, "--quiet").exit_code == 0
    valid = run("bench", "verify", table, "-o", kept)
    assert valid.exit_code == 0, valid.stdout
    assert valid.stdout.split()[-6:] == ["two-on-one", "2", "0", "0", "0", "0"]
    table.write_text(TABLE.replace('"MV": ', '"MV, renamed": '))
    sys.modules.pop("two_on_one", None)
    surplus = run("bench", "verify", table, "-o", kept)
    assert surplus.exit_code == 1
    assert "two-on-one 1 0 1 1 0" in " ".join(surplus.stdout.split())
    table.write_text(TABLE.replace('"n_tasks": 30', '"n_tasks": 31'))
    sys.modules.pop("two_on_one", None)
    outdated = run("bench", "verify", table, "-o", kept)
    assert outdated.exit_code == 1
    assert "two-on-one 0 2 0 0 0" in " ".join(outdated.stdout.split())


@pytest.mark.slow
def test_results_of_other_code_are_confirmed(run: Any, table: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert run("bench", "run", table, "-o", kept, "-j", 1, "--quiet").exit_code == 0
    nothing = run("bench", "confirm", table, "-o", kept, "-j", 1)
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "No stored result is outdated" in nothing.stderr
    table.write_text(TABLE.replace('"n_tasks": 30', '"n_tasks": 31'))
    sys.modules.pop("two_on_one", None)
    differing = run("bench", "confirm", table, "-o", kept, "-j", 1)
    assert differing.exit_code == 1
    assert "two-on-one: 2 outdated results, 2 run again" in differing.stdout
    assert "other figures than stored: MV on simulated" in differing.stdout
    assert run("bench", "verify", table, "-o", kept).exit_code == 0
