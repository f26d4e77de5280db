"""Test runs of DeepEval: the file of a results folder, or the result of ``evaluate`` as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json_text import read_json_file
from wisecrowd.io.tools.export_files import get_objects, peek_object
from wisecrowd.utils.text import count_noun

#: Names of the list of cases and of the list of metrics: in the files of DeepEval, and in ``model_dump_json``.
_NAMES = (("testCases", "metricsData"), ("test_results", "metrics_data"), ("test_cases", "metrics_data"))


def detect(path: Path) -> bool:
    """Return whether a file is a test run of DeepEval.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    bool
    """
    keys = set(peek_object(path))
    return bool(keys & {"testCases", "test_results"}) and "doc_id" not in keys


def read(path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read the score of every metric on every test case.

    Parameters
    ----------
    path : Path
        Test run.

    Returns
    -------
    tuple of list of dict and tuple of str
        Rows of task, judge (metric) and score, and remarks.

    Raises
    ------
    InputError
        If there are no test cases with metrics.
    """
    document = read_json_file(path)
    if isinstance(document, dict) and isinstance(document.get("testRunData"), dict):
        document = document["testRunData"]
    names = next((names for names in _NAMES if isinstance(document, dict) and names[0] in document), None)
    if names is None:
        raise InputError("it has no testCases, so it is no test run of DeepEval")
    rows: list[dict[str, Any]] = []
    n_failed = 0
    used: set[str] = set()
    for number, case in enumerate(get_objects(document, names[0], "the test run")):
        task = str(case.get("name") or f"case {number}")
        if task in used:
            task = f"{task} ({number})"
        used.add(task)
        for metric in case.get(names[1]) or []:
            if not isinstance(metric, dict) or metric.get("score") is None:
                n_failed += 1
                continue
            rows.append({"task": task, "judge": str(metric.get("name")), "score": metric["score"]})
    if not rows:
        raise InputError("no test case has a scored metric; the metrics may have failed, see their field error")
    return rows, () if not n_failed else (f"{count_noun(n_failed, 'metric')} without a score",)
