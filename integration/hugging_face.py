"""Hugging Face ``datasets``: tables that it writes are read, and a release is loaded by it, without a network.

python integration/hugging_face.py [--venv FOLDER] [--record]
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from _running import Trial, main

import wisecrowd as wc
from wisecrowd.io import read_project
from wisecrowd.io.research.release import make_pseudonyms, write_release

NAMES = ["cat", "dog", "eel"]
SAID = {
    ("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "dog"), ("t3", "ann", "eel"), ("t3", "bob", "eel"),
    ("t3", "cy", "cat"),
}  # fmt: skip
COLUMNS = {"annotator_1": "ann", "annotator_2": "bob", "annotator_3": "cy"}
SECRET = b"sixteen bytes or more"


def trial(tried: Trial) -> None:
    """There and back."""
    print(f"datasets {tried.version('datasets')}")
    tried.run_inside("datasets_write.py")
    for name in ("lists", "objects", "sequence", "columns"):
        for form in ("parquet", "jsonl"):
            path = Path(f"{name}.{form}")
            tried.keep(path)
            project = read_project(path)
            # JSON lines have no place for the names of classes: there an answer is its number.
            names = NAMES if form == "parquet" else ["0", "1", "2"]
            wanted = {(task, who, names[NAMES.index(said)]) for task, who, said in SAID}
            frame = project.get_question().crowd.to_frame()
            told = {(row.task, COLUMNS.get(row.worker, row.worker), str(row.label)) for row in frame.itertuples()}
            told = {vote for vote in told if vote[2] != "-1"}
            tried.check(f"{path} is read as {project.format}", told == wanted, told ^ wanted)

    crowd = wc.Crowd.from_triples(sorted(SAID))
    model = wc.MajorityVote().fit(crowd)
    posterior = pd.DataFrame(model.posterior_, index=crowd.tasks, columns=crowd.classes)
    answers = model.labels_.to_frame("label").assign(confidence=posterior.max(axis=1))
    for form, kind in (("parquet", "parquet"), ("jsonl", "json")):
        path = Path(f"release.{form}")
        write_release(crowd, path, key=SECRET, answers=answers, posterior=posterior)
        tried.run_inside("datasets_load.py", kind, path)
        told = json.loads(Path(f"{path}.told").read_text())
        columns = ["task", "workers", "labels", "soft_label", "label", "confidence"]
        tried.check(f"{path}: columns", told["features"] == columns, told["features"])
        name = dict(zip(["ann", "bob", "cy"], make_pseudonyms(["ann", "bob", "cy"], SECRET), strict=True))
        votes = {
            (row["task"], *vote) for row in told["rows"] for vote in zip(row["workers"], row["labels"], strict=True)
        }
        tried.check(f"{path}: votes", votes == {(task, name[who], said) for task, who, said in SAID}, votes)
        soft = pd.DataFrame([row["soft_label"] for row in told["rows"]], index=[row["task"] for row in told["rows"]])
        near = (soft[NAMES] - posterior[NAMES]).abs().to_numpy().max() < 1e-9
        tried.check(f"{path}: soft labels", bool(near), soft)
        tried.check(f"{path}: read again", wc.read(path).n_votes == len(SAID))


if __name__ == "__main__":
    main("hugging_face", ["datasets==5.2.0"], trial)
