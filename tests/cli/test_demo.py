from __future__ import annotations

import csv
import functools
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.cli.demo import _program, _tell_declined
from wisecrowd.demo.run import TITLE
from wisecrowd.evaluate import metrics

#: Digits to label here; the demo has 1,797, which take a minute.
FEW = 200


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer digits, and networks that look at them once, but every method; tests/demo looks at the whole crowd."""
    from sklearn import datasets

    from wisecrowd.demo import contest

    pixels, digits = datasets.load_digits(return_X_y=True)
    monkeypatch.setattr(datasets, "load_digits", lambda **_: (pixels[:FEW], digits[:FEW]))
    monkeypatch.setattr(contest, "EPOCHS", 1)


@pytest.mark.torch
@pytest.mark.usefixtures("few_digits")
def test_the_demo(run: Any) -> None:
    """One run, looked at from all sides, for it takes seconds."""
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    shown = result.stdout
    assert all(f"{answers} (" in shown for answers in ("Ratings", "Comparisons", "Label sets"))
    folder = Path("wisecrowd-demo")
    names = {"votes", "truth", "labels", "workers", "methods", "agreement", "completions"}
    assert {path.name for path in folder.iterdir()} == {f"{name}.csv" for name in names} | {
        "run.json",
        "report.html",
    }
    crowd = wc.read(folder / "votes.csv")
    truth = wc.read_truth(folder / "truth.csv")
    assert crowd.shape == (FEW, 40)
    assert len(truth) == FEW
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
    wanted = {name for name, method in wc.methods().items() if "categorical" in method.answer_types}
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
    assert [
        line for line in result.stderr.splitlines() if not re.search(r"(%|step .*) after \d+ (s|min)", line)
    ] == []  # a busy machine shows progress

    for words in (
        "Accuracy of every method against the known truth",
        "Agreement: share of tasks with the same label from two methods",
        "Accuracy after completion: every missing vote is predicted first",
        "Workers as rated by dawid-skene, without known truth",
        "Ratings compared with the simulated types of workers",
        "Done in",
    ):
        assert words in shown
    for worker, row in _workers(folder).items():
        assert worker in shown or row["finding"] == "fallible"
    [address] = re.findall(r"^  (file:.*)$", shown, re.MULTILINE)
    assert max(len(line) for line in shown.splitlines() if address not in line) <= 80
    assert address == (folder / "report.html").resolve().as_uri()
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert TITLE in html
    assert "wisecrowd report wisecrowd-demo/votes.csv --score wisecrowd-demo/truth.csv" in html

    [command] = re.findall(r"^  wisecrowd (.*)$", shown, re.MULTILINE)
    again = run(*command.split())
    assert again.exit_code == 0, again.stderr
    accuracy = f"{float(table['model-average']['accuracy']):.1%}"  # the default of the command
    assert f"accuracy {accuracy}" in again.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("few_digits")
def test_without_the_extra_the_demo_says_how_to_get_the_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd import demo
    from wisecrowd.report import page

    monkeypatch.setattr(
        demo, "run_demo", functools.partial(demo.run_demo, only=["dawid-skene", "majority-vote", "gmv"])
    )
    monkeypatch.setitem(sys.modules, "jinja2", None)
    page.load_templates.cache_clear()
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    told = " ".join(result.stdout.split())
    assert "report.html was not written: reports need" in told
    assert 'pip install "wisecrowd[report]"' in told
    assert Path("wisecrowd-demo/labels.csv").exists()
    assert not Path("wisecrowd-demo/report.html").exists()


def test_who_declines_for_the_same_reason_is_told_together(capsys: pytest.CaptureFixture[str]) -> None:
    _tell_declined({"ccc": "no torch", "mine": "not today", "mmlc": "no torch"})
    assert capsys.readouterr().out.splitlines() == ["ccc, mmlc skipped: no torch", "mine skipped: not today"]


def test_the_demo_names_itself_as_it_can_be_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "wisecrowd"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _program() == str(Path("bin", "wisecrowd"))
    monkeypatch.setenv("PATH", str(program.parent))
    assert _program() == "wisecrowd"


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
