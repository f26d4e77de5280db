from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import read_project


def rows(crowd: wc.Crowd) -> list[tuple[Any, ...]]:
    return sorted(crowd.to_frame()[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_records(export: Any) -> None:
    project = read_project(export("argilla"))
    assert {name: question.kind for name, question in project.questions.items()} == {
        "mood": "single", "stars": "single", "topics": "multiple",
    }  # fmt: skip
    mood = project.questions["mood"]
    assert rows(mood.crowd) == [("r1", "gpt", "good"), ("r1", "u1", "good"), ("r2", "u2", "bad")]
    assert mood.excluded == {"draft": 1, "discarded": 1}
    assert mood.machines == ["gpt"]
    assert mood.scores.to_dict("records") == [{"task": "r1", "worker": "gpt", "label": "good", "score": 0.9}]
    assert rows(project.questions["stars"].crowd) == [("r1", "u1", "4")]
    assert rows(project.questions["topics"].crowd) == [("r1", "u1", "food|price")]
    assert project.tasks["r1"]["fields"] == {"text": "Lovely!"}


def test_the_flat_form_says_the_same(export: Any, tmp_path: Path, making: Any) -> None:
    nested = read_project(export("argilla")).questions["mood"]
    flat = read_project(export("argilla-parquet")).get_question("mood")
    assert flat.crowd == nested.crowd
    assert flat.scores.equals(nested.scores)
    columns = making.ARGILLA_FLAT
    records = [{name: values[place] for name, values in columns.items()} for place in range(2)]
    (tmp_path / "flat.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_project(tmp_path / "flat.jsonl").get_question().crowd == nested.crowd


def test_the_score_of_several_options_is_that_of_the_least_sure(tmp_path: Path) -> None:
    suggestion = {"value": ["a", "b"], "score": [0.9, 0.6], "agent": "gpt"}
    record = {"id": "r1", "fields": {}, "suggestions": {"q": suggestion}, "responses": {}}
    (tmp_path / "records.json").write_text(json.dumps([record]))
    question = read_project(tmp_path / "records.json").get_question()
    assert question.scores["score"].tolist() == [0.6]
    assert rows(question.crowd) == [("r1", "gpt", "a|b")]


def test_rankings_are_comparisons(tmp_path: Path) -> None:
    ranks = [{"value": "a", "rank": 1}, {"value": "b", "rank": 2}]
    record = {"id": "r1", "fields": {}, "suggestions": {}, "responses": {"order": [{"value": ranks, "user_id": "u1"}]}}
    (tmp_path / "records.json").write_text(json.dumps([record]))
    assert wc.read_comparisons(tmp_path / "records.json").to_frame()["label"].tolist() == ["a"]
    with pytest.raises(InputError, match="rankings are comparisons"):
        read_project(tmp_path / "records.json")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "r1", "fields": {}}, "record 1 has neither responses nor suggestions"),
        ({"responses": {"q": [{"value": "a"}]}}, r"the user needs an id.*got None \(record 1\)"),
        ({"responses": {}, "suggestions": {"q": "a"}}, "the suggestion 'q' of record 1 should be an object"),
        ({"q.responses": ["a"], "q.responses.users": []}, "record 1 has 1 responses to 'q', 0 users and 1 states"),
    ],
)
def test_bad_records(tmp_path: Path, record: Any, message: str) -> None:
    (tmp_path / "records.json").write_text(json.dumps([record]))
    with pytest.raises(InputError, match=message):
        read_project(tmp_path / "records.json", "argilla")


def test_spans_are_votes_if_submitted(tmp_path: Path) -> None:
    span = {"start": 0, "end": 3, "label": "PER"}
    responses = [
        {"value": [span], "user_id": "ann", "status": "submitted"},
        {"value": [], "user_id": "bob", "status": "submitted"},  # marked nothing
        {"value": [span], "user_id": "cy", "status": "draft"},
        {"value": None, "user_id": "dan", "status": "submitted"},
    ]
    suggestions = {"names": {"value": [span], "score": [0.75], "agent": "bert"}}
    record = {
        "id": "r1",
        "fields": {"text": "Ann left."},
        "suggestions": suggestions,
        "responses": {"names": responses},
    }
    (tmp_path / "records.json").write_text(json.dumps([record]))
    question = read_project(tmp_path / "records.json").get_structured()
    assert question.crowd.to_frame()["worker"].tolist() == ["ann", "bert", "bob"]
    assert (question.machines, question.excluded) == (["bert"], {"draft": 1, "empty": 1})
    assert question.structure.lengths == {"r1": 9}


def test_spans_in_flat_records(tmp_path: Path) -> None:
    spans = [[{"start": 0, "end": 3, "label": "PER"}], []]
    record = {
        "id": "r1", "text": "Ann left.", "names.responses": spans, "names.responses.users": ["ann", "bob"],
        "names.responses.status": ["submitted", "submitted"], "names.suggestion": spans[0], "names.suggestion.agent": "bert",
        "names.suggestion.score": [0.5],
    }  # fmt: skip
    (tmp_path / "flat.jsonl").write_text(json.dumps(record) + "\n")
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "flat.parquet")
    for name in ("flat.jsonl", "flat.parquet"):
        crowd = wc.read_spans(tmp_path / name)
        assert (crowd.n_votes, crowd.n_marks, crowd.workers.tolist()) == (3, 2, ["ann", "bert", "bob"])


def test_texts_are_read_on_request(tmp_path: Path) -> None:
    record = {
        "id": "r1",
        "fields": {},
        "suggestions": {},
        "responses": {"note": [{"value": "a cat", "user_id": "ann"}]},
    }
    (tmp_path / "records.json").write_text(json.dumps([record]))
    assert wc.read_texts(tmp_path / "records.json").text.tolist() == ["a cat"]
