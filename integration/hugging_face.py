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
EXPECTED = {
    ("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "dog"), ("t3", "ann", "eel"), ("t3", "bob", "eel"),
    ("t3", "cy", "cat"),
}  # fmt: skip
COLUMNS = {"annotator_1": "ann", "annotator_2": "bob", "annotator_3": "cy"}
SECRET = b"sixteen bytes or more"


def run_trial(context: Trial) -> None:
    """Read tables of ``datasets``, and load a release with it."""
    print(f"datasets {context.version('datasets')}")
    context.run_inside("datasets_write.py")
    for name in ("lists", "objects", "sequence", "columns"):
        for form in ("parquet", "jsonl"):
            path = Path(f"{name}.{form}")
            context.keep(path)
            project = read_project(path)
            # JSON lines cannot hold class names, so an answer is a number.
            names = NAMES if form == "parquet" else ["0", "1", "2"]
            expected = {(task, who, names[NAMES.index(label)]) for task, who, label in EXPECTED}
            frame = project.get_question().crowd.to_frame()
            votes = {(row.task, COLUMNS.get(row.worker, row.worker), str(row.label)) for row in frame.itertuples()}
            votes = {vote for vote in votes if vote[2] != "-1"}
            context.check(f"{path} is read as {project.format}", votes == expected, votes ^ expected)

    crowd = wc.Crowd.from_triples(sorted(EXPECTED))
    model = wc.MajorityVote().fit(crowd)
    posterior = pd.DataFrame(model.posterior_, index=crowd.tasks, columns=crowd.classes)
    answers = model.labels_.to_frame("label").assign(confidence=posterior.max(axis=1))
    for form, kind in (("parquet", "parquet"), ("jsonl", "json")):
        path = Path(f"release.{form}")
        write_release(crowd, path, key=SECRET, answers=answers, posterior=posterior)
        context.run_inside("datasets_load.py", kind, path)
        loaded = json.loads(Path(f"{path}.loaded.json").read_text())
        columns = ["task", "workers", "labels", "soft_label", "label", "confidence"]
        context.check(f"{path}: columns", loaded["features"] == columns, loaded["features"])
        name = dict(zip(["ann", "bob", "cy"], make_pseudonyms(["ann", "bob", "cy"], SECRET), strict=True))
        votes = {
            (row["task"], *vote) for row in loaded["rows"] for vote in zip(row["workers"], row["labels"], strict=True)
        }
        context.check(f"{path}: votes", votes == {(task, name[who], label) for task, who, label in EXPECTED}, votes)
        soft = pd.DataFrame(
            [row["soft_label"] for row in loaded["rows"]], index=[row["task"] for row in loaded["rows"]]
        )
        near = (soft[NAMES] - posterior[NAMES]).abs().to_numpy().max() < 1e-9
        context.check(f"{path}: soft labels", bool(near), soft)
        context.check(f"{path}: read again", wc.read(path).n_votes == len(EXPECTED))


if __name__ == "__main__":
    main("hugging_face", ["datasets==5.2.0"], run_trial)
