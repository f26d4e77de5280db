"""Traces of MLflow with assessments (``mlflow.search_traces()``), as JSON, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json_text import parse_json
from wisecrowd.io.tools.export_files import peek_object, read_objects
from wisecrowd.utils.text import count_noun

ASSESSMENTS = "assessments"


def detect(path: Path) -> bool:
    """Return whether a file has traces with assessments.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    bool
    """
    if path.suffix in (".parquet", ".pq"):
        from wisecrowd.io.formats import FORMATS

        read_names = FORMATS["parquet"].reader.read_names
        assert read_names is not None
        names = set(read_names(path))
        return ASSESSMENTS in names and bool(names & {"trace_id", "request_id"})
    keys = set(peek_object(path))
    return ASSESSMENTS in keys and bool(keys & {"trace_id", "request_id", "info"})


def read(path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read the feedback on every trace.

    Feedback of the source type HUMAN is a label of a person about the metric of its name; that of LLM judges and of code is a
    score. Expectations are no scores and are left out.

    Parameters
    ----------
    path : Path
        Table of traces.

    Returns
    -------
    tuple of list of dict and tuple of str
        Rows of task (trace), judge, score, kind and metric, and remarks.

    Raises
    ------
    InputError
        If no trace has feedback.
    """
    rows: list[dict[str, Any]] = []
    n_invalid = 0
    for number, trace in enumerate(_read_traces(path), start=1):
        task = str(trace.get("trace_id") or trace.get("request_id") or number)
        assessments = trace.get(ASSESSMENTS)
        if isinstance(assessments, str):
            assessments = parse_json(assessments, f"the assessments of {task}")
        if assessments is None:
            continue
        if not isinstance(assessments, list):
            raise InputError(f"the assessments of {task} are no list; write them with mlflow.search_traces()")
        for assessment in assessments:
            if not isinstance(assessment, dict) or not isinstance(assessment.get("feedback"), dict):
                continue
            if assessment.get("valid") is False or assessment["feedback"].get("error"):
                n_invalid += 1
                continue
            rows.append({"task": task} | _read_feedback(assessment))
    if not rows:
        raise InputError("no trace has feedback; log it with mlflow.log_feedback, or run mlflow.genai.evaluate")
    return rows, () if not n_invalid else (f"{count_noun(n_invalid, 'assessment')} that failed or were replaced",)


def _read_traces(path: Path) -> list[dict[str, Any]]:
    if path.suffix not in (".parquet", ".pq"):
        return read_objects(path, "traces of MLflow")
    from wisecrowd.io.formats import FORMATS

    reader = FORMATS["parquet"].reader
    assert reader.read_names is not None
    assert reader.read_columns is not None
    names = [name for name in ("trace_id", "request_id", ASSESSMENTS) if name in reader.read_names(path)]
    traces: list[dict[str, Any]] = reader.read_columns(path, names).to_pylist()
    return traces


def _read_feedback(assessment: dict[str, Any]) -> dict[str, Any]:
    """Return judge, score, kind and metric of an assessment."""
    source = assessment.get("source")
    source = source if isinstance(source, dict) else {}
    name = str(assessment.get("assessment_name") or assessment.get("name") or "feedback")
    who = str(source.get("source_id") or source.get("source_type") or "unknown")
    score = assessment["feedback"].get("value")
    if str(source.get("source_type")).upper() == "HUMAN":
        return {"judge": who, "score": score, "kind": "person", "metric": name}
    return {"judge": f"{name} by {who}", "score": score, "kind": "machine", "metric": name}
