"""Which format a file is of, and what `read`, `read_truth` and `write` make of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import FORMATS, find_format

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])


def test_every_format_is_found() -> None:
    assert set(FORMATS) == {
        "csv", "tsv", "parquet", "jsonl", "json", "folder", "ceka", "peerannot", "peerannot-inverted", "truth-inference", "mace",
        "label-studio", "label-studio-min", "argilla", "doccano", "prodigy", "cvat", "toloka", "mturk", "crowdflower",
        "hugging-face",
    }  # fmt: skip
    assert all(form.description for form in FORMATS.values())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("task,worker,label\na,x,p\n", "csv"),
        ("task\tworker\tlabel\na\tx\tp\n", "tsv"),
        ('{"task": "a", "worker": "x", "label": "p"}\n', "jsonl"),
        ('[\n {"task": "a", "worker": "x", "label": "p"}]', "json"),
    ],
)
def test_content_tells_when_the_name_does_not(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / "votes"
    path.write_text(content)
    assert find_format(path).name == name
    assert wc.read(path).n_votes == 1


def test_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "votes.dat"
    path.write_text("lorem ipsum\n")
    with pytest.raises(
        InputError, match=r"cannot tell what .*votes\.dat is.*csv.*Say which it is, for example format=\"csv\""
    ):
        wc.read(path)


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no format is called 'parkett'.*Did you mean 'parquet'"):
        wc.read(tmp_path, format="parkett")


def test_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\n")
    with pytest.raises(InputError, match=r"there is no file or folder .*vote\.csv\. Did you mean 'votes\.csv'"):
        wc.read(tmp_path / "vote.csv")
    with pytest.raises(InputError, match="there is no file or folder"):
        wc.read(tmp_path / "no" / "such.csv")


def test_an_empty_file_without_a_telling_name(tmp_path: Path) -> None:
    (tmp_path / "votes").touch()
    with pytest.raises(InputError, match="is empty"):
        wc.read(tmp_path / "votes")


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="duplicates must be one of"):
        wc.read(tmp_path, duplicates="frist")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="missing must be one of"):
        wc.read(tmp_path, missing="ignore")  # type: ignore[arg-type]


def test_vocabularies_are_passed_on(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.csv")
    crowd = wc.read(tmp_path / "v.csv", tasks=["t0", "t1"], workers=["bob", "ann"], classes=["dog", "cat", "fox"])
    assert (crowd.tasks.tolist(), crowd.workers.tolist(), crowd.n_classes) == (["t0", "t1"], ["bob", "ann"], 3)
    assert crowd.has_task_order
    with pytest.raises(InputError, match=r"v\.csv: 1 label ids are not in the given vocabulary"):
        wc.read(tmp_path / "v.csv", classes=["cat"])


def test_paths_may_be_text(tmp_path: Path) -> None:
    wc.write(CROWD, os.path.join(tmp_path, "v.csv"))
    assert wc.read(os.path.join(tmp_path, "v.csv")) == CROWD


def test_write_by_name_of_format(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.dat", format="tsv")
    assert (tmp_path / "v.dat").read_text().startswith('"task"\t"worker"')


def test_write_says_what_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"end it in \.csv"):
        wc.write(CROWD, tmp_path / "v.xlsx")
    with pytest.raises(UsageError, match="reads ceka but does not write it; it writes"):
        wc.write(CROWD, tmp_path / "v", format="ceka")
    assert list(tmp_path.iterdir()) == []


def test_write_makes_folders_and_replaces_files(tmp_path: Path) -> None:
    path = tmp_path / "new" / "v.csv"
    wc.write(CROWD, path)
    wc.write(CROWD.select_workers(["ann"]), path)
    assert wc.read(path).n_votes == 1


def test_ids_of_several_types_cannot_be_written(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_codes([0, 1], [0, 0], [0, 0], tasks=[1, "b"], workers=["x"], classes=["p"])
    with pytest.raises(InputError, match="the task ids mix types"):
        wc.write(crowd, tmp_path / "v.csv")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- truth


def test_truth_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("photo,expert view,label\n1,cat,x\n2,,y\n")
    assert wc.read_truth(path, task="photo", truth="expert view").to_dict() == {"1": "cat"}


def test_truth_beside_the_votes(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,gold\nt1,ann,cat,cat\nt1,bob,dog,cat\n")
    assert wc.read_truth(path).to_dict() == {"t1": "cat"}


def test_truth_in_numbers(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,0.5\nb,2\n")
    assert wc.read_truth(path, numeric=True).to_dict() == {"a": 0.5, "b": 2.0}
    path.write_text("task,truth\na,much\n")
    with pytest.raises(InputError, match=r"truth\.csv: numbers were wanted as the truth; got 'much' for the task 'a'"):
        wc.read_truth(path, numeric=True)


def test_conflicting_truth(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,x\na,y\n")
    with pytest.raises(InputError, match=r"truth\.csv: 1 task has more than one truth"):
        wc.read_truth(path)


def test_no_truth_there(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="this mace data does not hold it"):
        wc.read_truth(tmp_path / "matrix.csv", format="mace")


def test_truths_are_counted_by_task(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,x\na,y\na,z\nb,x\nb,y\nc,x\n")
    with pytest.raises(InputError, match="2 tasks have more than one truth, for example 'a', 'b'; keep"):
        wc.read_truth(path)


def test_a_folder_of_other_files_is_told_apart(tmp_path: Path) -> None:
    for name in ("gold.csv", "votes.csv", "readme.md"):
        (tmp_path / name).write_text("task,worker,label\nt1,ann,cat\n")
    wanted = r"In it: 'gold\.csv', 'readme\.md', 'votes\.csv'\. Give .* for example .*/votes\.csv$"
    with pytest.raises(InputError, match=f"is a folder, but no dataset.*{wanted}"):
        wc.read(tmp_path)
    with pytest.raises(InputError, match=f"is a folder, but csv is the format of a file.*{wanted}"):
        wc.read(tmp_path, format="csv")


@pytest.mark.parametrize(("name", "advice"), [("v.xlsx", "save its sheet as CSV"), ("v.7Z", "unpack it first")])
def test_what_is_not_read_is_refused_with_advice(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError, match=f"which is not read; {advice}"):
        wc.read(tmp_path / name)
    with pytest.raises(InputError, match="zip or Excel file"):
        wc.read(tmp_path / name, format="csv")


def test_standard_input_is_not_read() -> None:
    with pytest.raises(InputError, match="standard input; save them to a file"):
        wc.read("-")


def test_what_is_no_path_or_no_crowd() -> None:
    frame: Any = pd.DataFrame({"task": [1]})
    with pytest.raises(UsageError, match=r"got DataFrame\. .*Crowd\.from_frame"):
        wc.read(frame)
    with pytest.raises(UsageError, match=r"got DataFrame\. .*Series by task"):
        wc.read_truth(frame)
    fitted: Any = wc.MajorityVote().fit(wc.Crowd.from_triples([("t1", "ann", "cat")]))
    with pytest.raises(UsageError, match=r"a crowd was wanted.*got MajorityVote\. .*save\(path\)"):
        wc.write(fitted, "v.csv")
