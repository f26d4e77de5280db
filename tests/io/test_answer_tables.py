"""Comparisons and label sets in files: recognition by columns, and reading."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io.answer_tables import (
    find_answer_table,
    read_boxes,
    read_comparisons,
    read_label_sets,
    read_points,
    read_spans,
    read_task_table,
    read_true_masks,
    read_true_objects,
    read_true_texts,
)
from wisecrowd.io.problems import MissingColumn

VOTES = [("ann", "m1", "m2", "m1"), ("bob", "m2", "m3", "tie")]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "json"])
def test_every_table_format_holds_comparisons(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame(VOTES, columns=["judge", "model_a", "model_b", "winner"])
    path = tmp_path / f"arena.{suffix}"
    if suffix in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        records = frame.to_dict("records")
        path.write_text("\n".join(map(json.dumps, records)) if suffix == "jsonl" else json.dumps(records))
    assert read_comparisons(path) == wc.Comparisons.from_tuples(VOTES)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "json"])
def test_every_table_format_holds_label_sets(tmp_path: Path, suffix: str) -> None:
    sets = [["cat", "dog"], [], ["dog"]]
    frame = pd.DataFrame({"item": ["t1", "t1", "t2"], "rater": ["ann", "bob", "ann"], "tags": sets})
    path = tmp_path / f"tags.{suffix}"
    if suffix == "csv":
        frame.assign(tags=["cat|dog", "", "dog"]).to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        records = frame.to_dict("records")
        path.write_text("\n".join(map(json.dumps, records)) if suffix == "jsonl" else json.dumps(records))
    table = find_answer_table(path)
    assert table is not None
    assert table.description == "sets of labels (columns item, rater, tags)"
    assert read_label_sets(path).to_frame()["labels"].tolist() == sets


@pytest.mark.parametrize(
    "content",
    ["task,worker,label\nt,ann,cat\n", "task,worker,labels\nt,ann,cat\n", "left,right\na,b\n", "task,labels\nt,a|b\n"],
)
def test_ordinary_votes_are_neither(tmp_path: Path, content: str) -> None:
    (tmp_path / "votes.csv").write_text(content)
    assert find_answer_table(tmp_path / "votes.csv") is None


def test_named_columns_are_used(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("first,second,better,who,prompt\na,b,a,ann,p1\n")
    comparisons = read_comparisons(tmp_path / "pairs.csv", left="first", right="second", worker="who")
    assert (comparisons.n_votes, comparisons.n_tasks, comparisons.n_workers) == (1, 1, 1)
    with pytest.raises(MissingColumn, match="there is no column 'thrid' to be the right"):
        read_comparisons(tmp_path / "pairs.csv", left="first", right="thrid")
    with pytest.raises(MissingColumn, match=r"comparisons need the columns left, right and label"):
        read_comparisons(tmp_path / "pairs.csv")
    with pytest.raises(MissingColumn, match="label sets need the columns task, worker and labels"):
        read_label_sets(tmp_path / "pairs.csv")


def test_a_dataset_folder_with_comparisons(tmp_path: Path) -> None:
    frame = pd.DataFrame(VOTES, columns=["worker", "left", "right", "label"])
    frame.to_parquet(tmp_path / "comparisons.parquet")
    assert read_comparisons(tmp_path).n_votes == 2


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("worker,left,right,label\nann,a,b,maybe\n")
    with pytest.raises(
        InputError, match=r"pairs\.csv: 1 label that is neither an item of its row nor a known word: 'maybe'"
    ):
        read_comparisons(tmp_path / "pairs.csv")


def test_marks_are_recognised_by_their_columns(tmp_path: Path) -> None:
    def write(text: str) -> Path:
        path = tmp_path / f"marks{len(text)}.csv"
        path.write_text(text)
        return path

    boxes = write("image_id,annotator,x,y,w,h,category\ni1,ann,1,2,3,4,cat\ni1,bob,,,,,\n")
    crowd = read_boxes(boxes)
    assert (crowd.n_marks, crowd.n_votes, crowd.classes.tolist()) == (1, 2, ["cat"])
    assert read_points(write("task,worker,x,y\n1,a,2,3\n")).coordinates.tolist() == [[2, 3]]
    assert read_spans(write("doc_id,worker,start_offset,end_offset,label\n1,a,2,3,P\n")).n_marks == 1
    with pytest.raises(MissingColumn, match="holds boxes; spans need the columns task, worker, start, end"):
        read_spans(boxes)


def test_times_are_no_spans(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,start,end\n1,a,x,1700000000,1700000010\n1,b,y,1700000000,1700000020\n")
    assert find_answer_table(path) is None
    path.write_text("task,worker,label,start,end\n1,a,x,2024-01-01 10:00,2024-01-01 10:01\n")
    assert find_answer_table(path) is None


def test_true_objects_and_texts_have_no_workers(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("image_id,x,y,w,h,label\ni1,1,2,3,4,cat\ni2,,,,,\n")
    truth = read_true_objects(path, "boxes")
    assert truth["width"].tolist()[0] == 3
    assert truth["x"].isna().tolist() == [False, True]
    path.write_text("task,x,y,width,height\ni1,one,2,3,4\n")
    with pytest.raises(InputError, match="the column x has a value that is no number"):
        read_true_objects(path, "boxes")
    with pytest.raises(MissingColumn, match="true spans need the columns task, start, end"):
        read_true_objects(path, "spans")
    path.write_text("task,reference\n1,a cat\n2,\n")
    assert read_true_texts(path).to_dict() == {"1": "a cat", "2": ""}
    path.write_text("task,reference\n1,a cat\n1,b\n")
    with pytest.raises(InputError, match="the table of texts has several rows for"):
        read_true_texts(path)
    path.write_text("task,x\n1,a cat\n")
    with pytest.raises(MissingColumn, match="true texts need"):
        read_true_texts(path)


def test_a_table_about_tasks_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("task,width,height\ni1,640,480\n")
    assert read_task_table(tmp_path / "sizes.csv")["width"].to_pylist() == ["640"]


def test_true_polygons_and_masks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text('image_id,polygon,label\ni1,"[[0, 0], [4, 0], [0, 4]]",cat\ni2,,\n')
    objects = read_true_objects(path, "polygons")
    assert objects.columns.tolist() == ["task", "polygon", "label"]
    assert objects["polygon"].isna().tolist() == [False, True]
    path.write_text("image_id,rle,h,w\ni1,13,2,2\ni2,,2,2\n")
    masks = read_true_masks(path)
    assert masks["i1"] == '{"size": [2, 2], "counts": "13"}'
    assert masks.index.tolist() == ["i1", "i2"]
    path.write_text("task,mask,height,width\ni1,13,2,2\ni1,13,2,2\n")
    with pytest.raises(InputError, match="several masks for 'i1'"):
        read_true_masks(path)
    path.write_text("task,label\ni1,13\n")
    with pytest.raises(MissingColumn, match="true masks need the columns task and mask"):
        read_true_masks(path)


def _write_captions(path: Path, *, equal: bool, columns: str = "kind") -> None:
    """Write a CSV of Label Studio: the captions of a task are equal if they are an input and differ if they are answers."""
    names = columns.split(",")
    rows = [
        [task, worker, f"a cat {task} {0 if equal else worker}", *(("animal", "person")[task % 2] for _ in names)]
        for task in range(6)
        for worker in range(3)
    ]
    pd.DataFrame(rows, columns=["id", "annotator", "caption", *names]).assign(annotation_id=range(18)).to_csv(
        path, index=False
    )


def test_equal_texts_of_a_task_beside_classes_are_no_answers(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    _write_captions(path, equal=True)
    assert find_answer_table(path) is None
    assert wc.read(path).classes.tolist() == ["animal", "person"]
    _write_captions(path, equal=False)
    answers = find_answer_table(path)
    assert answers is not None
    assert answers.columns == {"task": "id", "worker": "annotator", "text": "caption"}
    _write_captions(path, equal=True, columns="kind,mood")  # the user names one
    assert find_answer_table(path) is None
    _write_captions(path, equal=True, columns="size")
    assert find_answer_table(path) is not None


def test_a_named_label_wins_over_texts_and_masks(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    _write_captions(path, equal=False)
    assert find_answer_table(path, columns={"label": "kind"}) is None
    path.write_text("task,worker,mask,height,width,kind\ni1,ann,13,2,2,cat\n")
    assert find_answer_table(path) is not None
    assert find_answer_table(path, columns={"label": "kind"}) is None
