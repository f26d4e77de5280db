"""Small exports of labelling tools, as the tools write them, one for each."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def choice(name: str, *chosen: str) -> dict[str, Any]:
    """A result of Label Studio."""
    value = {"choices": list(chosen)}
    return {
        "id": "r" + name,
        "from_name": name,
        "to_name": "text",
        "type": "choices",
        "value": value,
        "origin": "manual",
    }


def annotation(who: object, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An annotation of Label Studio."""
    told = {
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": 4.5,
        "created_at": "2024-03-09T22:16:08.728353Z",
    }
    return {"id": 1, "completed_by": who, "result": list(results), **told, **more}


def box(name: str) -> dict[str, Any]:
    value = {"x": 1.5, "y": 2, "width": 3, "height": 4, "rotation": 0, "rectanglelabels": ["Car"]}
    return {"from_name": name, "to_name": "image", "type": "rectanglelabels", "value": value}


LABEL_STUDIO = [
    {
        "id": 11,
        "data": {"text": "Lovely!"},
        "annotations": [
            annotation(1, choice("mood", "good"), choice("topics", "food", "price")),
            annotation(2, choice("mood", "good"), choice("topics", "food"), lead_time=9.0),
            annotation({"id": 3, "email": "cy@example.com"}, choice("mood", "bad"), box("objects")),
        ],
        "predictions": [{"model_version": "bert-1", "score": 0.8, "result": [choice("mood", "good")]}],
        "drafts": [{"id": 5}],
    },
    {
        "id": 12,
        "data": {"text": "Meh."},
        "annotations": [
            annotation(1, choice("mood", "bad"), choice("topics", "price")),
            annotation(2, was_cancelled=True),
            annotation(9, choice("mood", "bad"), ground_truth=True),
        ],
        "predictions": [],
        "drafts": [],
    },
]
LABEL_STUDIO_MIN = [
    {"id": 11, "text": "Lovely!", "mood": "good", "annotator": 1, "annotation_id": 1, "lead_time": 4.5,
     "created_at": "2024-03-09T22:16:08Z", "updated_at": "2024-03-09T22:16:08Z"},
    {"id": 11, "text": "Lovely!", "mood": "bad", "annotator": 2, "annotation_id": 2, "lead_time": 5.5,
     "created_at": "2024-03-09T22:17:08Z", "updated_at": "2024-03-09T22:17:08Z"},
    {"id": 12, "text": "Meh.", "mood": "bad", "annotator": 1, "annotation_id": 3, "lead_time": 6.5,
     "created_at": "2024-03-09T22:18:08Z", "updated_at": "2024-03-09T22:18:08Z"},
]  # fmt: skip
ARGILLA = [
    {
        "id": "r1", "fields": {"text": "Lovely!"}, "metadata": {"page": 3}, "vectors": {}, "_server_id": "s1",
        "suggestions": {"mood": {"value": "good", "score": 0.9, "agent": "gpt"}},
        "responses": {
            "mood": [
                {"value": "good", "user_id": "u1", "status": "submitted"},
                {"value": "bad", "user_id": "u2", "status": "draft"},
            ],
            "stars": [{"value": 4, "user_id": "u1", "status": "submitted"}],
            "topics": [{"value": ["food", "price"], "user_id": "u1", "status": "submitted"}],
            "parts": [{"value": [{"start": 0, "end": 3, "label": "X"}], "user_id": "u1", "status": "submitted"}],
        },
    },
    {
        "id": "r2", "fields": {"text": "Meh."}, "metadata": {}, "vectors": {}, "_server_id": "s2", "suggestions": {},
        "responses": {"mood": [{"value": "bad", "user_id": "u1", "status": "discarded"}, {"value": "bad", "user_id": "u2"}]},
    },
]  # fmt: skip
ARGILLA_FLAT = {
    "id": ["r1", "r2"], "text": ["Lovely!", "Meh."],
    "mood.responses": [["good", "bad"], ["bad"]], "mood.responses.users": [["u1", "u2"], ["u2"]],
    "mood.responses.status": [["submitted", "draft"], ["submitted"]],
    "mood.suggestion": ["good", None], "mood.suggestion.score": [0.9, None], "mood.suggestion.agent": ["gpt", None],
}  # fmt: skip
DOCCANO = {
    "ann.jsonl": [{"id": 1, "text": "Lovely!", "label": ["good"]}, {"id": 2, "text": "Meh.", "label": ["bad"]}],
    "bob.jsonl": [{"id": 1, "text": "Lovely!", "label": ["bad"]}, {"id": 2, "text": "Meh.", "label": []}],
}
OPTIONS = [{"id": "good", "text": "Good"}, {"id": "bad", "text": "Bad"}]


def example(text: str, key: int, who: str, answer: str, *accept: str) -> dict[str, Any]:
    """An example of Prodigy."""
    return {
        "text": text, "options": OPTIONS, "_input_hash": key, "_task_hash": -key, "_view_id": "choice",
        "config": {"choice_style": "single"}, "accept": list(accept), "answer": answer, "_timestamp": 1700000000 + key,
        "_annotator_id": f"news-{who}", "_session_id": f"news-{who}",
    }  # fmt: skip


PRODIGY = [
    example("Lovely!", 101, "ann", "accept", "good"),
    example("Lovely!", 101, "bob", "accept", "bad"),
    example("Meh.", 102, "ann", "ignore"),
    example("Meh.", 102, "bob", "accept", "bad"),
]
CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta><task><id>7</id><name>cats</name><assignee><username>ann</username><email>a@example.com</email></assignee></task></meta>
  <image id="0" name="a.jpg" width="640" height="480">
    <tag label="cat" source="manual"></tag>
    <box label="cat" source="manual" occluded="0" xtl="1" ytl="2" xbr="3" ybr="4"></box>
  </image>
  <image id="1" name="b.jpg" width="640" height="480"><tag label="dog" source="auto"></tag></image>
  <image id="2" name="c.jpg" width="640" height="480"></image>
</annotations>
"""
TOLOKA = "\n".join(
    "\t".join(row)
    for row in [
        ["INPUT:image", "OUTPUT:result", "GOLDEN:result", "HINT:text", "ASSIGNMENT:task_id", "ASSIGNMENT:assignment_id",
         "ASSIGNMENT:worker_id", "ASSIGNMENT:status", "ASSIGNMENT:started", "ASSIGNMENT:submitted"],
        ["a.jpg", "cat", "cat", "", "t1", "p1", "w1", "APPROVED", "2021-03-04T10:00:00.000", "2021-03-04T10:00:30.000"],
        ["b.jpg", "dog", "", "", "t2", "p1", "w1", "APPROVED", "2021-03-04T10:00:00.000", "2021-03-04T10:00:30.000"],
        ["", "", "", "", "", "", "", "", "", ""],
        ["a.jpg", "dog", "cat", "", "t1", "p2", "w2", "SUBMITTED", "2021-03-04T11:00:00.000", "2021-03-04T11:00:10.000"],
        ["b.jpg", "dog", "", "", "t2", "p3", "w3", "REJECTED", "2021-03-04T11:00:00.000", "2021-03-04T11:00:10.000"],
    ]
) + "\n"  # fmt: skip
_BEGUN, _SENT = "Mon Dec 10 11:23:12 PST 2018", "Mon Dec 10 11:23:42 PST 2018"
MTURK = (
    "HITId,HITTypeId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,Input.image_url,"
    "Answer.category.label,Answer.topics,Answer.seen.day,Answer.seen.night,Approve,Reject\n"
    f"h1,x,a1,w1,Approved,{_BEGUN},{_SENT},30,a.jpg,cat,fur|tail,true,false\n"
    f"h1,x,a2,w2,Submitted,{_BEGUN},{_SENT},60,a.jpg,dog,fur,false,true\n"
    f"h2,x,a3,w1,Rejected,{_BEGUN},{_SENT},60,b.jpg,dog,,true,false\n"
    f"h2,x,a4,w2,Approved,{_BEGUN},{_SENT},60,b.jpg,dog,,true,false\n"
)
CROWDFLOWER = (
    "_unit_id,_created_at,_golden,_id,_missed,_started_at,_tainted,_channel,_trust,_worker_id,_country,mood,text,mood_gold\n"
    "501,7/14/2015 18:33:56,false,1,,7/14/2015 18:33:36,false,elite,0.9,31,USA,good,Lovely!,good\n"
    "502,7/14/2015 18:33:56,false,2,,7/14/2015 18:33:36,false,elite,0.9,31,USA,bad,Meh.,\n"
    "501,7/14/2015 18:40:00,false,3,,7/14/2015 18:39:50,false,neodev,0.7,32,GBR,bad,Lovely!,good\n"
    "502,7/14/2015 18:40:10,false,4,,7/14/2015 18:40:00,true,neodev,0.1,33,GBR,good,Meh.,\n"
)
HUGGING_FACE = [
    {"id": "a", "text": "Lovely!", "annotators": ["u1", "u2"], "labels": ["good", "bad"], "soft_label": [0.5, 0.5]},
    {"id": "b", "text": "Meh.", "annotators": ["u1"], "labels": ["bad"], "soft_label": [0.0, 1.0]},
]
HUGGING_FACE_COLUMNS = [
    {"id": "a", "text": "Lovely!", "annotator_1": "good", "annotator_2": "bad"},
    {"id": "b", "text": "Meh.", "annotator_1": "bad", "annotator_2": None},
]


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def parquet(columns: dict[str, list[Any]], metadata: dict[str, str] | None = None) -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), held)
    return held.getvalue()


#: Name of a sample -> format, file name, content.
EXPORTS: dict[str, tuple[str, str, bytes]] = {
    "label-studio": ("label-studio", "export.json", json.dumps(LABEL_STUDIO).encode()),
    "label-studio-min": ("label-studio-min", "export.json", json.dumps(LABEL_STUDIO_MIN).encode()),
    "argilla": ("argilla", "records.json", json.dumps(ARGILLA).encode()),
    "argilla-parquet": ("argilla", "records.parquet", parquet(ARGILLA_FLAT)),
    "doccano": ("doccano", "doccano.zip", zipped({name: lines(records) for name, records in DOCCANO.items()})),
    "prodigy": ("prodigy", "answers.jsonl", lines(PRODIGY)),
    "cvat": ("cvat", "annotations.xml", CVAT.encode()),
    "cvat-zip": ("cvat", "job.zip", zipped({"annotations.xml": CVAT.encode(), "images/a.jpg": b"\xff\xd8"})),
    "toloka": ("toloka", "assignments.tsv", TOLOKA.encode()),
    "mturk": ("mturk", "batch.csv", MTURK.encode()),
    "crowdflower": ("crowdflower", "full.csv", CROWDFLOWER.encode()),
    "hugging-face": ("hugging-face", "data.jsonl", lines(HUGGING_FACE)),
    "hugging-face-columns": ("hugging-face", "data.jsonl", lines(HUGGING_FACE_COLUMNS)),
}

Export = Callable[[str], Path]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Write one of the samples, and say where it is."""

    def written(name: str) -> Path:
        _, file, content = EXPORTS[name]
        (tmp_path / file).write_bytes(content)
        return tmp_path / file

    return written


@pytest.fixture(params=EXPORTS)
def sample(request: pytest.FixtureRequest) -> tuple[str, str, bytes]:
    """Each of the samples in turn: format, file name, content."""
    return EXPORTS[request.param]


@pytest.fixture(scope="session")
def making() -> Any:
    """The functions and literals that the samples are made of, for tests that change them."""
    import types

    return types.SimpleNamespace(**{name: value for name, value in globals().items() if not name.startswith("_")})
