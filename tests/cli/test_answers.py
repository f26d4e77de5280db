"""``wisecrowd aggregate`` on comparisons, label sets and marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd.evaluate.mask_metrics import score_masks
from wisecrowd.evaluate.object_metrics import score_objects
from wisecrowd.evaluate.text_metrics import compute_error_rates
from wisecrowd.simulate.comparisons import simulate_comparisons
from wisecrowd.simulate.label_sets import simulate_label_sets
from wisecrowd.simulate.marks import simulate_boxes, simulate_points, simulate_spans
from wisecrowd.simulate.masks import simulate_masks
from wisecrowd.simulate.polygons import simulate_polygons
from wisecrowd.simulate.texts import simulate_texts


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    path = tmp_path / "arena.csv"
    made = simulate_comparisons(n_items=8, n_workers=5, votes_per_worker=40, random_state=0)
    frame = made.comparisons.to_frame().rename(columns={"left": "model_a", "right": "model_b", "label": "winner"})
    frame.drop_duplicates(["worker", "model_a", "model_b"]).to_csv(path, index=False)
    return path


@pytest.fixture
def tags(tmp_path: Path) -> Path:
    path = tmp_path / "tags.csv"
    frame = simulate_label_sets(n_tasks=40, n_workers=6, n_labels=4, random_state=0).crowd.to_frame()
    frame.assign(labels=["|".join(labels) for labels in frame["labels"]]).to_csv(path, index=False)
    return path


def test_comparisons_are_recognised_and_scored(run: Any, arena: Path, tmp_path: Path) -> None:
    result = run("aggregate", arena, "-o", tmp_path / "out", "--save")
    assert "comparisons of two items (columns model_a, model_b, winner, worker)" in result.stdout
    assert "judge-aware-bradley-terry" in result.stdout
    assert "90% interval" in result.stdout
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores.columns[:3].tolist() == ["item", "score", "standard_error"]
    assert scores["rank"].tolist() == list(range(1, 9))
    assert {"discrimination", "lean", "tie_habit"} <= set(pd.read_csv(tmp_path / "out" / "workers.csv").columns)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["answers"] == "pairwise"
    assert record["input"]["items"] == 8
    assert (tmp_path / "out" / "model" / "method.json").is_file()


def test_a_method_for_comparisons_can_be_chosen(run: Any, arena: Path) -> None:
    result = run("aggregate", arena, "-m", "elo", "-p", "n_orders=5")
    assert "elo" in result.stdout
    assert "interval" not in result.stdout


def test_comparisons_without_workers(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,label\na,b,a\nb,c,b\nc,a,tie\n")
    assert "bradley-terry, converged" in run("aggregate", path).stdout


def test_label_sets_are_recognised(run: Any, tags: Path, tmp_path: Path) -> None:
    result = run("aggregate", tags, "-m", "binary-relevance", "-o", tmp_path / "out")
    assert "sets of labels (columns task, worker, labels)" in result.stdout
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels.columns.tolist() == ["task", "labels", "expected_f1", "confidence"]
    probs = pd.read_csv(tmp_path / "out" / "posterior.csv")
    assert len(probs) == 160
    assert probs["probability"].between(0, 1).all()


def test_other_methods_and_options_are_refused_with_advice(run: Any, arena: Path, tags: Path) -> None:
    result = run("aggregate", arena, "-m", "glad")
    assert result.exit_code != 0
    assert "glad takes other votes; leave -m out, or choose -m judge-aware-bradley-terry" in " ".join(
        result.output.split()
    )
    result = run("aggregate", tags, "--proba", "-o", tags.parent / "out")
    assert "leave out --proba, which applies to votes on classes" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("simulate", "kind"), [(simulate_boxes, "boxes"), (simulate_points, "points"), (simulate_spans, "spans")]
)
def test_marks_are_recognised_and_merged(run: Any, tmp_path: Path, simulate: Any, kind: str) -> None:
    simulation = simulate(n_tasks=60, n_workers=6, random_state=0)
    simulation.crowd.to_frame().to_csv(tmp_path / "marks.csv", index=False)
    result = run("aggregate", tmp_path / "marks.csv", "-o", tmp_path / "out", "--save")
    assert f"{kind} (columns task, worker" in result.stdout
    objects = pd.read_csv(tmp_path / "out" / "objects.csv")
    score = score_objects(objects, simulation.truth, kind=kind, radius=15)  # type: ignore[arg-type]  # a kind
    assert score.f1 > 0.85
    assert len(pd.read_csv(tmp_path / "out" / "candidates.csv")) >= len(objects)
    workers = pd.read_csv(tmp_path / "out" / "workers.csv")
    assert {"detection_rate", "false_alarms", "boundary_error"} <= set(workers.columns)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["answers"] == kind
    assert record["summary"]["objects"] == len(objects)
    assert record["input"]["votes"] == simulation.crowd.n_votes
    assert (tmp_path / "out" / "model" / "method.json").is_file()


def test_a_folder_has_its_assignments(run: Any, tmp_path: Path) -> None:
    crowd = simulate_boxes(n_tasks=30, n_workers=5, detection_rate=0.3, random_state=0).crowd
    frame = crowd.to_frame()
    frame.dropna().to_parquet(tmp_path / "boxes.parquet")
    without = json.loads(run("aggregate", tmp_path, "--json").stdout)["input"]["votes"]
    frame[["task", "worker"]].drop_duplicates().to_parquet(tmp_path / "assignments.parquet")
    assert json.loads(run("aggregate", tmp_path, "--json").stdout)["input"]["votes"] == crowd.n_votes > without
    assert "without any" in run("diagnose", tmp_path).stdout
    assert "no-empty-votes" not in run("check", tmp_path).stdout


def test_a_folder_has_its_documents(run: Any, tmp_path: Path) -> None:
    rows = [(task, worker, 1, 3, "LOC") for task in "ab" for worker in "xyz"]
    pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"]).to_parquet(tmp_path / "spans.parquet")
    documents = pd.DataFrame({"task": ["a", "b"], "tokens": [["in", "New", "York"], ["in", "New"]]})
    documents.to_parquet(tmp_path / "documents.parquet")
    assert "beyond the end of the document: task 'b'" in run("aggregate", tmp_path, "-m", "bayesian-sequence").output
    documents.assign(tokens=[["in", "New", "York"]] * 2).to_parquet(tmp_path / "documents.parquet")
    run("aggregate", tmp_path, "-m", "bayesian-sequence", "-o", tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "objects.csv")[["start", "end"]].to_numpy().tolist() == [[1, 3], [1, 3]]


def test_options_of_votes_are_refused_for_marks(run: Any, tmp_path: Path) -> None:
    simulate_spans(n_tasks=5, n_workers=5).crowd.to_frame().to_csv(tmp_path / "spans.csv", index=False)
    result = run("aggregate", tmp_path / "spans.csv", "--duplicates", "last")
    assert "cannot be chosen for spans" in result.output


def test_polygons_are_recognised_and_merged(run: Any, tmp_path: Path) -> None:
    simulation = simulate_polygons(n_tasks=6, n_workers=4, votes_per_task=4, random_state=0)
    path = tmp_path / "polygons.csv"
    simulation.crowd.to_frame().to_csv(path, index=False)
    assert "polygons (columns task, worker, polygon, label)" in run("aggregate", path, "-o", tmp_path / "out").stdout
    objects = pd.read_csv(tmp_path / "out" / "objects.csv")
    assert score_objects(objects, simulation.truth, kind="polygons").f1 > 0.8
    assert "read polygons from the columns" in run("check", path).stdout


@pytest.fixture(scope="module")
def polygons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("polygons")
    simulation = simulate_polygons(n_tasks=6, n_workers=4, votes_per_task=4, random_state=0)
    simulation.crowd.to_frame().to_csv(folder / "polygons.csv", index=False)
    simulation.truth.to_csv(folder / "truth.csv", index=False)
    return folder


def test_polygons_are_diagnosed_compared_and_reported(run: Any, polygons: Path, tmp_path: Path) -> None:
    path = polygons / "polygons.csv"
    diagnosis = run("diagnose", path, "-o", tmp_path / "out")
    assert "on overlapping polygons" in diagnosis.stdout
    assert {"detection_rate", "size_ratio", "flags"} <= set(pd.read_csv(tmp_path / "out" / "workers.csv"))
    compared = run("compare", path, "--score", polygons / "truth.csv", "--folds", "2")
    assert "polygon-consensus -p model=majority" in compared.stdout
    assert "F1" in compared.stdout
    assert run("report", path, "-o", tmp_path / "report.html", "--no-compare").exit_code == 0
    assert "<polygon class=" in (tmp_path / "report.html").read_text()


def test_masks_are_recognised_and_combined(run: Any, tmp_path: Path) -> None:
    simulation = simulate_masks(n_tasks=5, n_workers=4, votes_per_task=3, height=9, width=11, random_state=0)
    path = tmp_path / "masks.csv"
    simulation.crowd.to_frame().rename(columns={"mask": "segmentation"}).to_csv(path, index=False)
    result = run("aggregate", path, "-o", tmp_path / "out", "--save")
    assert "masks (columns task, worker, segmentation)" in result.stdout
    masks = pd.read_csv(tmp_path / "out" / "masks.csv", index_col="task")["mask"]
    assert score_masks(masks, simulation.truth)["iou"].mean() > 0.8
    assert json.loads((tmp_path / "out" / "run.json").read_text())["answers"] == "masks"
    assert "mask-majority" in run("aggregate", path, "-m", "mask-majority", "-p", "weights=task").stdout
    assert "read masks from the columns" in run("check", path).stdout
    assert "masks of two workers have a Dice coefficient" in run("diagnose", path, "-o", tmp_path / "quality").stdout
    assert {"sensitivity", "area_ratio", "flags"} <= set(pd.read_csv(tmp_path / "quality" / "workers.csv"))
    truth = pd.DataFrame({"task": simulation.crowd.tasks, "mask": simulation.truth.to_texts()})
    truth.to_csv(tmp_path / "truth.csv", index=False)
    compared = run("compare", path, "--score", tmp_path / "truth.csv", "--folds", "2")
    assert "held-out masks" in " ".join(compared.stdout.split())
    assert "Dice" in compared.stdout
    assert run("report", path, "-o", tmp_path / "report.html", "--no-compare").exit_code == 0
    assert "Disputed masks" in (tmp_path / "report.html").read_text()
    refused = " ".join(run("plan", path, "--budget", "5").output.split())
    assert (
        "polygons, spans, masks and texts have the commands check, aggregate, diagnose, compare and report" in refused
    )
    # Counts beside the size of the image; the same column in ordinary votes holds labels.
    path.write_text("task,worker,mask,height,width\ni1,ann,021,1,3\ni1,bob,,1,3\n")
    assert "2 masks: 1 task x 2 workers, 33% of the pixels marked" in run("check", path).stdout
    path.write_text("task,worker,label,mask\ni1,ann,cat,1\ni1,bob,cat,0\n")
    assert "2 votes: 1 task x 2 workers" in run("check", path).stdout


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "--budget", "5"],
        ["audit", "--size", "5"],
        ["complete", "-o", "filled"],
        ["learn", "--features", "X.csv"],
        ["review", "-o", "decisions.csv"],
    ],
)
@pytest.mark.parametrize("simulate", [simulate_spans, simulate_texts])
def test_commands_for_labels_refuse_marks_and_texts(
    run: Any, tmp_path: Path, command: list[str], simulate: Any
) -> None:
    simulate(n_tasks=5, n_workers=5).crowd.to_frame().to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "X.csv").write_text("task,a\nt0,1\n")
    result = run(command[0], "answers.csv", *command[1:])
    assert result.exit_code != 0
    assert f"wisecrowd {command[0]} takes votes on labels" in " ".join(result.output.split())


def test_texts_are_recognised_and_combined(run: Any, tmp_path: Path) -> None:
    simulation = simulate_texts(n_tasks=40, n_workers=6, random_state=0)
    path = tmp_path / "texts.csv"
    simulation.crowd.to_frame().rename(columns={"text": "transcription"}).to_csv(path, index=False)
    result = run("aggregate", path, "-o", tmp_path / "out", "--save")
    assert "texts (columns task, worker, transcription)" in result.stdout
    texts = pd.read_csv(tmp_path / "out" / "texts.csv", index_col="task")["text"]
    assert compute_error_rates(texts, simulation.truth).mean() < 0.05
    assert json.loads((tmp_path / "out" / "run.json").read_text())["answers"] == "texts"
    assert "text-medoid" in run("aggregate", path, "-m", "text-medoid").stdout
    assert "read texts from the columns" in run("check", path).stdout


def test_spans_of_a_labelling_tool(run: Any, tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 3, "label": "PER"}, {"start": 9, "end": 13, "label": "LOC"}]
    records = [
        {
            "text": "Ann left Rome.", "_input_hash": task, "_session_id": who, "_view_id": "ner_manual", "answer": "accept",
            "spans": spans[: 1 if who == "cy" else 2],
        }
        for task in range(5) for who in ("ann", "bob", "cy")
    ]  # fmt: skip
    path = tmp_path / "db.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = run("aggregate", path, "-o", tmp_path / "out")
    assert "spans (question spans)" in result.stdout
    objects = pd.read_csv(tmp_path / "out" / "objects.csv")
    assert objects.groupby("task").size().tolist() == [2] * 5
    workers = pd.read_csv(tmp_path / "out" / "workers.csv").set_index("worker")
    assert workers["detection_rate"].idxmin() == "cy"
    twice = run("aggregate", path, "--duplicates", "last", "--json")
    assert json.loads(twice.stdout)["summary"]["objects"] == 10


def test_answers_of_a_tool_are_texts_if_the_method_takes_texts(run: Any, tmp_path: Path) -> None:
    header = ["INPUT:audio", "OUTPUT:transcription", "ASSIGNMENT:worker_id"]
    rows = [("a.wav", text, who) for who, text in (("w1", "a cat sat"), ("w2", "a cat sat"), ("w3", "a cap sat"))]
    path = tmp_path / "assignments.tsv"
    path.write_text("\n".join("\t".join(row) for row in [header, *rows]) + "\n")
    assert run("aggregate", path, "-m", "rover", "-o", tmp_path / "out").exit_code == 0
    assert pd.read_csv(tmp_path / "out" / "texts.csv")["text"].tolist() == ["a cat sat"]
    assert "3 votes" in run("aggregate", path, "-m", "majority-vote").stdout


def test_what_label_sets_leave_out_is_said(run: Any, tmp_path: Path) -> None:
    def annotation(who: int, *chosen: str) -> dict[str, Any]:
        result = {"from_name": "topics", "to_name": "text", "type": "choices", "value": {"choices": list(chosen)}}
        return {"completed_by": who, "result": [result]}

    tasks = [
        {"id": number, "data": {}, "annotations": [annotation(1, "food"), annotation(2, "food", "price")]}
        for number in range(5)
    ]
    tasks[4]["annotations"] = [{**annotation(1, "food"), "was_cancelled": True}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    notes = run("aggregate", path, "--question", "topics").stderr
    assert "left out cancelled (1)" in notes
    assert "1 of 5 tasks has no vote on 'topics' and gets no label: '4'" in notes
    assert "1 of 5 tasks has no vote on 'topics'" in run("aggregate", path, "-m", "majority-vote").stderr


def test_captions_in_json_min_are_texts_unless_a_method_takes_classes(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "min.json"
    records = [
        {"id": task, "image": "i", "caption": f"cat {worker} sits on mat {task}", "annotator": worker, "annotation_id": 1,
         "lead_time": 1.0}
        for task in (1, 2, 3) for worker in (1, 2)
    ]  # fmt: skip
    path.write_text(json.dumps(records))
    result = run("aggregate", path)
    assert "texts (question caption)" in result.stdout
    assert "JSON_MIN does not say which control they come from" in result.stderr
    assert "JSON_MIN" not in run("aggregate", path, "-m", "rover").stderr
    result = run("aggregate", path, "-m", "majority-vote")
    assert "6 votes" in result.stdout
    assert "the labels look like texts" in result.stderr
    assert "6 votes" in run("plan", path, "--budget", "3").stdout


def test_columns_that_the_user_names_win_over_texts(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    rows = [
        (task, worker, f"caption {task} by {worker}", "animal" if task % 2 else "person")
        for task in range(6)
        for worker in range(3)
    ]
    pd.DataFrame(rows, columns=["id", "annotator", "caption", "kind"]).to_csv(path, index=False)
    words = ("--task", "id", "--worker", "annotator")
    for further in ((), ("-m", "majority-vote"), ("--format", "csv")):
        result = run("aggregate", path, *words, "--label", "kind", *further)
        assert result.exit_code == 0, result.stderr
    assert "2 classes" in run("check", path, *words, "--label", "kind").stdout
    refused = run("aggregate", path, *words, "-m", "majority-vote").stderr
    assert "to read classes instead, name their column: --label COLUMN" in refused
    refused = run("aggregate", path, *words, "--classes", "animal,person").stderr
    assert "--classes applies to ordinary votes only; to read classes instead" in refused


def test_the_label_of_boxes_may_be_named(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    simulate_boxes(n_tasks=6, n_workers=5, random_state=0).crowd.to_frame().to_csv(path, index=False)
    assert "boxes" in run("aggregate", path, "--label", "label").stdout
