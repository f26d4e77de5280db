"""Samples of the LM Evaluation Harness (``lm_eval --log_samples``): ``samples_TASK_TIME.jsonl`` in a folder of the model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tools.export_files import peek_object, read_objects

_FILE_NAME = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d:.-]+)?\.jsonl")


def detect(path: Path) -> bool:
    """Return whether a file has samples of the harness.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    bool
    """
    return {"doc_id", "filtered_resps"} <= set(peek_object(path))


def read(path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read the metrics of every document.

    The system is the name of the folder, in which the harness writes the results of a model.

    Parameters
    ----------
    path : Path
        Samples.

    Returns
    -------
    tuple of list of dict and tuple of str
        Rows of system, task, judge (metric) and score, and remarks.

    Raises
    ------
    InputError
        If a sample lacks its document or its metrics.
    """
    match = _FILE_NAME.fullmatch(path.name)
    prefix = f"{match['task']}/" if match else ""
    system = path.resolve().parent.name
    rows: list[dict[str, Any]] = []
    for number, sample in enumerate(read_objects(path, "samples of the LM Evaluation Harness"), start=1):
        if "doc_id" not in sample:
            raise InputError(
                f"line {number:,} has no doc_id, so it is no sample of the harness; the file may be damaged"
            )
        metrics = sample.get("metrics")
        if not isinstance(metrics, list):  # releases before 0.4.5 do not list the metrics
            fields = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
            metrics = [
                name for name, value in sample.items() if name not in fields and isinstance(value, bool | int | float)
            ]
        filtered = str(sample.get("filter", "none"))
        item = {"system": system, "task": f"{prefix}{sample['doc_id']}"}
        rows += [
            item | {"judge": name if filtered == "none" else f"{name} ({filtered})", "score": sample[name]}
            for name in map(str, metrics)
            if name in sample
        ]
    if not rows:
        raise InputError(
            "no sample has a metric; run lm_eval with --log_samples and a task that has metrics by document"
        )
    return rows, ()
