from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd import metrics


def test_the_demo(run: Any) -> None:
    """One run, looked at from all sides, for it takes seconds."""
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    folder = Path("wisecrowd-demo")
    names = {"votes", "truth", "labels", "workers", "methods", "agreement", "completions"}
    assert {path.name for path in folder.iterdir()} == {f"{name}.csv" for name in names} | {"run.json"}
    crowd = wc.read(folder / "votes.csv")
    truth = wc.read_truth(folder / "truth.csv")
    assert crowd.shape == (1797, 40)
    assert len(truth) == 1797
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record["input"]["sha256"] == crowd.digest

    with (folder / "methods.csv").open(encoding="utf-8", newline="") as file:
        table = {row["method"]: row for row in csv.DictReader(file)}
    with (folder / "completions.csv").open(encoding="utf-8", newline="") as file:
        filled = {row["filled_in_by"]: row for row in csv.DictReader(file)}
    assert filled.pop("nothing")["dawid-skene"] == table["dawid-skene"]["accuracy"]
    assert set(filled) == set(wc.methods("complete")) - set(record["declined"])
    for name, row in filled.items():
        assert re.search(rf"^{name} .* {float(row['majority-vote']):.1%} ", shown, re.MULTILINE)
    wanted = {name for name, method in wc.methods().items() if not method.numeric}
    assert set(table) | set(filled) | set(record["declined"]) == wanted
    fitted = wc.DawidSkene().fit(crowd)
    assert float(table["dawid-skene"]["accuracy"]) == pytest.approx(metrics.accuracy(truth, fitted), abs=1e-6)
    accuracy = f"{float(table['dawid-skene']['accuracy']):.1%}"
    assert re.search(rf"^dawid-skene +votes +{accuracy} ", shown, re.MULTILINE)

    assert record["parameters"] == json.loads(json.dumps(wc.DawidSkene().get_params()))
    assert record["footnotes"]
    told = " ".join(shown.split())
    assert all(note in told for note in record["footnotes"])
    assert {note.split()[0] for note in record["footnotes"]} >= {
        name for name, row in table.items() if float(row["accuracy"]) <= 0.1
    }
    assert result.stderr == ""

    for words in (
        "What is true?",
        "Do they agree?",
        "What would the others have said?",
        "Whom to trust?",
        "Was that right?",
        "Done in",
    ):
        assert words in shown
    for worker, row in _workers(folder).items():
        assert worker in shown or row["finding"] == "fallible"
    assert max(map(len, shown.splitlines())) <= 80

    [command] = re.findall(r"^  wisecrowd (.*)$", shown, re.MULTILINE)
    again = run(*command.split())
    assert again.exit_code == 0, again.stderr
    assert f"accuracy {accuracy}" in again.stdout


def _workers(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "workers.csv").open(encoding="utf-8", newline="") as file:
        return {row["worker"]: row for row in csv.DictReader(file)}


def test_it_overwrites_itself_but_nothing_else(run: Any) -> None:
    mine = Path("mine")
    mine.mkdir()
    (mine / "votes.csv").write_text("precious", encoding="utf-8")
    result = run("demo", "-o", "mine")
    assert result.exit_code == 2
    assert (mine / "votes.csv").read_text(encoding="utf-8") == "precious"
