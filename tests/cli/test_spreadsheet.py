"""Texts that a spreadsheet would run: exact by default, with one warning; harmless on request, and no two made one."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.cli._outputs import rounded
from wisecrowd.cli._spreadsheet import Guard

RUN = ["=1", "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "@handle", "\t=1", "\r=1", "\n=1", "＝1", "--", "-a",
       "+1 2"]  # fmt: skip
HARMLESS = ["", " ", "x=1", "1-1", "-1", "+1", "-1.5", "+.5e-3", "-1.", "-", "+", "=", "@", "'", "'a", "a\n=1", "007",
            "é"]  # fmt: skip
WARNING = "look like spreadsheet formulas"


def guarded(texts: list[str | None]) -> list[str | None]:
    return Guard(on=True).texts(pa.chunked_array([texts], pa.string()), "x.csv").to_pylist()


def restored(text: str) -> str:
    """Remove the apostrophe as the documentation describes."""
    return re.sub(r"\A'('*[=+\-@\t\r\n＝＋－＠].)", r"\1", text, flags=re.DOTALL)


def test_only_what_would_run_is_changed() -> None:
    assert guarded([*RUN, None]) == [*(f"'{text}" for text in RUN), None]
    assert guarded([*HARMLESS]) == HARMLESS


@given(texts=st.lists(st.text(st.sampled_from("=+-@'\t\r\n1ax ＝.e"), max_size=5), max_size=20))
def test_it_can_be_undone(texts: list[str]) -> None:
    after = guarded([*texts])
    assert [restored(text) for text in after if text is not None] == texts
    assert len(set(after)) == len(set(texts))
    assert guarded(after) == guarded([*guarded([*texts])])
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
    assert all(text[0] not in "=+-@\t\r\n＝" or len(text) == 1 or number.fullmatch(text) for text in after if text)


def test_numbers_and_holes_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"x": [-1.5, None], "text": [None, "-x"], "=n": [-1, 2]})
    exact = Guard(on=False)
    assert exact.table(table, "t.csv").equals(table)
    exact.warn()
    assert "2 texts in t.csv" in capsys.readouterr().err, "one of them is the name of a column"
    safe = Guard(on=True)
    assert safe.table(table, "t.csv").to_pydict() == {"x": [-1.5, None], "text": [None, "'-x"], "'=n": [-1, 2]}
    safe.warn()
    assert capsys.readouterr().err == ""


def test_tables_have_one_form() -> None:
    index = pd.Index(["a", "b"], name="x")
    made = rounded(pd.DataFrame({"x": [1 / 3, 2.0], "x_id": ["p", "q"]}, index=index))
    assert made.to_dict("list") == {"x_id_id": ["a", "b"], "x": [0.333333, 2.0], "x_id": ["p", "q"]}
    plain = pd.DataFrame({"x": [1.0]})
    assert rounded(plain).to_dict("list") == {"x": [1.0]}
    both = pd.DataFrame({"n": [1]}, index=pd.MultiIndex.from_tuples([("a", "b")], names=["n", "m"]))
    assert list(rounded(both)) == ["n_id", "m", "n"]


# ---------------------------------------------------------------------- commands


COMMANDS = {
    "aggregate": ["--proba", "-m", "majority-vote"],
    "diagnose": [],
    "compare": ["-m", "majority-vote", "-m", "dawid-skene", "--folds", "2"],
    "plan": ["--budget", "20"],
    "complete": ["-m", "gmv"],
    "learn": ["-m", "raykar", "-x", "X.csv", "--predict", "X.csv", "--proba"],
}


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Ids and labels that begin like formulas, and some that only look so."""
    rng = np.random.default_rng(1)
    tasks = [f"={n}" for n in range(8)] + [str(n - 8) for n in range(8)]
    workers = ["@ann", "+bob", "-1", "cy", "'=dan"]
    rows = [
        (task, who, ["=yes", "-1", "no"][(n + (rng.random() < 0.5)) % 3])
        for n, task in enumerate(tasks)
        for who in workers[: 4 + n % 2]
    ]
    wc.write(wc.Crowd.from_triples(rows), tmp_path / "votes.csv")
    pd.DataFrame({"task": tasks, "x": rng.normal(size=len(tasks))}).to_csv(tmp_path / "X.csv", index=False)
    return tmp_path / "votes.csv"


def cells(folder: str) -> dict[str, list[list[str]]]:
    found = {}
    for path in sorted(Path(folder).glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.name] = list(csv.reader(file))
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_exact_with_a_warning_or_harmless_on_request(run: Any, votes: Path, command: str) -> None:
    exact = run(command, votes, *COMMANDS[command], "-o", "exact")
    assert exact.exit_code == 0, exact.stderr
    assert exact.stderr.count(WARNING) == 1
    assert "--spreadsheet" in exact.stderr
    safe = run(command, votes, *COMMANDS[command], "-o", "safe", "--spreadsheet")
    assert safe.exit_code == 0, safe.stderr
    assert WARNING not in safe.stderr
    before, after = cells("exact"), cells("safe")
    assert list(before) == list(after)
    dangerous = [cell for rows in before.values() for row in rows for cell in row if re.match("[=+@]|-[^.0-9]", cell)]
    assert dangerous, "ids are exact"
    for name, rows in after.items():
        assert not [cell for row in rows for cell in row if re.match("[=+@]|-[^.0-9]", cell)]
        if name != "methods.csv":  # seconds are never the same
            assert [[restored(cell) for cell in row] for row in rows] == before[name]
    assert json.loads(Path("safe/run.json").read_text(encoding="utf-8"))["spreadsheet"] is True
    assert "spreadsheet" not in json.loads(Path("exact/run.json").read_text(encoding="utf-8"))


def test_harmless_results_give_no_warning(run: Any, tmp_path: Path) -> None:
    wc.write(
        wc.Crowd.from_triples([(str(-n), who, str(-1 - n % 2)) for n in range(4) for who in "ab"]),
        tmp_path / "votes.csv",
    )
    result = run("aggregate", tmp_path / "votes.csv", "-m", "majority-vote", "-o", "out")
    assert result.exit_code == 0
    assert result.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_about_files(run: Any, votes: Path, command: str) -> None:
    result = run(command, votes, *(word for word in COMMANDS[command] if word != "--proba"), "--spreadsheet")
    assert result.exit_code == 2
    assert "--spreadsheet is about output files; name a folder with -o FOLDER" in result.stderr


def test_parquet_needs_no_apostrophes(run: Any, votes: Path) -> None:
    result = run("complete", votes, "-m", "gmv", "--parquet", "-o", "out")
    assert WARNING not in result.stderr
    result = run("complete", votes, "-m", "gmv", "--parquet", "--spreadsheet", "-o", "out")
    assert result.exit_code == 0
    assert wc.read("out/completed.parquet").select_observed() == wc.read(votes)
