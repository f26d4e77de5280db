"""Scores of judges and labels of people in the log of an evaluation tool or in a table."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.errors import InputError, UsageError, preview, suggest_name
from wisecrowd.io.evaluations.score_values import to_number
from wisecrowd.io.formats import find_format
from wisecrowd.io.problems import check_file_name, check_file_type, prefix_errors
from wisecrowd.utils.text import count_noun

log = logging.getLogger(__name__)

#: Formats of evaluation tools by name: module, whose functions ``detect`` and ``read`` take a path, and noun phrase.
LOG_FORMATS: Mapping[str, tuple[str, str]] = {
    "inspect": ("inspect_log", "a log of Inspect (.eval or JSON)"),
    "promptfoo": ("promptfoo", "results of promptfoo in JSON"),
    "lm-eval": ("lm_eval", "samples of the LM Evaluation Harness in JSON lines"),
    "deepeval": ("deepeval", "a test run of DeepEval in JSON"),
    "mlflow": ("mlflow", "traces of MLflow with assessments"),
}
#: Format of all other files.
TABLE = "table"
#: Words in the column ``kind`` that mean people.
_PEOPLE = ("person", "people", "human", "humans")


@dataclass(frozen=True, eq=False)
class EvaluationLog:
    """Scores of judges and labels of people.

    Attributes
    ----------
    scores : DataFrame
        Columns task, judge and score, and system and cluster where the log has them.
    labels : DataFrame
        Columns task, rater, label and metric, and system where the log has it. Empty if no person is in the log.
    format : str
        Name of the format.
    notes : tuple of str
        Remarks on rows that were left out.
    """

    scores: pd.DataFrame
    labels: pd.DataFrame
    format: str
    notes: tuple[str, ...] = field(default=())

    def select_metric(self, metric: str | None) -> pd.DataFrame:
        """Return the labels of people about one metric.

        Parameters
        ----------
        metric : str or None
            Metric. None is allowed if there is only one.

        Returns
        -------
        DataFrame

        Raises
        ------
        UsageError
            If there are several metrics and none was named, or the name is unknown.
        """
        metrics = [str(name) for name in self.labels["metric"].unique()] if len(self.labels) else []
        if metric is None and len(metrics) > 1:
            raise UsageError(f"people judged {len(metrics)} metrics: {preview(metrics, 8)}; name one with --metric")
        if metric is not None and metric not in metrics:
            raise UsageError(
                f"no person judged {metric!r}; there is {preview(metrics, 8)}.{suggest_name(metric, metrics)}"
            )
        return self.labels if metric is None else self.labels[self.labels["metric"] == metric]


def read_evaluation_log(path: str | Path, *, format: str | None = None) -> EvaluationLog:
    """Read scores of judges, and labels of people if there are any.

    Parameters
    ----------
    path : path-like
        Log of Inspect, promptfoo, the LM Evaluation Harness, DeepEval or MLflow, or a table (CSV, TSV, Parquet, JSON) with the
        columns task, judge and score. A column ``kind`` with *person* marks labels of people.
    format : str, optional
        Name of the format; by default, the content decides.

    Returns
    -------
    EvaluationLog

    Raises
    ------
    InputError
        If the file is damaged or holds no scores.
    UsageError
        If no format has that name.

    Examples
    --------
    >>> _ = Path("scores.csv").write_text("task,judge,score,kind\\nt1,gpt,0.9,machine\\nt1,ann,1,person\\n")
    >>> evaluation = read_evaluation_log("scores.csv")
    >>> len(evaluation.scores), len(evaluation.labels)
    (1, 1)
    """
    path = Path(path)
    check_file_name(path)
    check_file_type(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    names = [*LOG_FORMATS, TABLE]
    if format is not None and format not in names:
        raise UsageError(
            f"there is no evaluation log {format!r}; there are {', '.join(names)}.{suggest_name(format, names)}"
        )
    with prefix_errors(path):
        name = format or next((name for name in LOG_FORMATS if _module(name).detect(path)), TABLE)
        rows, notes = _read_table(path) if name == TABLE else _module(name).read(path)
        evaluation = _divide(rows, name, notes)
    for note in evaluation.notes:
        log.info("%s: %s", path, note)
    return evaluation


def combine_logs(logs: Sequence[EvaluationLog]) -> EvaluationLog:
    """Return the rows of several logs, such as one for each system.

    Parameters
    ----------
    logs : sequence of EvaluationLog
        Logs.

    Returns
    -------
    EvaluationLog

    Raises
    ------
    InputError
        If only some of them name systems.
    """
    if len({"system" in evaluation.scores for evaluation in logs}) > 1:
        raise InputError("some files name the system and others do not; add the column system to all of them")
    return EvaluationLog(
        pd.concat([evaluation.scores for evaluation in logs], ignore_index=True),
        pd.concat([evaluation.labels for evaluation in logs], ignore_index=True),
        logs[0].format,
        tuple(note for evaluation in logs for note in evaluation.notes),
    )


def _module(name: str) -> Any:
    return importlib.import_module(f"wisecrowd.io.evaluations.{LOG_FORMATS[name][0]}")


def _divide(rows: Iterable[Mapping[str, Any]] | pd.DataFrame, format: str, notes: tuple[str, ...]) -> EvaluationLog:
    """Return judges' scores and people's labels of rows with task, judge, score, kind and metric."""
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if table.empty:
        raise InputError("there are no scores in it; expected at least one scored output")
    if format != TABLE:
        number = table["score"].map(to_number).astype(np.float64)
        n_words = int(number.isna().sum())
        if n_words == len(table):
            raise InputError(f"no score in it is a number, such as {preview(table['score'].astype(str).unique())}")
        if n_words:
            notes = (*notes, f"{count_noun(n_words, 'score')} that are no numbers were left out")
        table = table.assign(score=number)[number.notna()]
    is_person = pd.Series(False, index=table.index)
    if "kind" in table:
        is_person = table["kind"].astype(str).str.lower().isin(_PEOPLE)
    people = table[is_person].rename(columns={"judge": "rater", "score": "label"})
    if "metric" not in people:
        people = people.assign(metric="")
    keep = ("system", "task", "judge", "rater", "score", "label", "cluster", "stratum", "inclusion", "metric")
    judges, people = (
        part[[name for name in keep if name in part.columns]].reset_index(drop=True)
        for part in (table[~is_person].drop(columns="metric", errors="ignore"), people)
    )
    return EvaluationLog(judges, people, format, notes)


def _read_table(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a table with our names of columns."""
    form = find_format(path)
    if form.reader.read_names is None or form.reader.read_columns is None:
        raise InputError(
            f"it is {form.description}, not scores of judges; expected a table with task, judge and score, or a log of "
            f"{', '.join(LOG_FORMATS)}"
        )
    names = form.reader.read_names(path)
    aliases = {
        "task": ("task", "item", "id"),
        "judge": ("judge", "worker", "rater", "annotator", "scorer"),
        "score": ("score", "label", "value"),
        "system": ("system", "model"),
        "cluster": ("cluster", "prompt"),
        "stratum": ("stratum",),
        "inclusion": ("inclusion",),
        "kind": ("kind",),
        "metric": ("metric",),
    }
    columns = {role: next((name for name in group if name in names), None) for role, group in aliases.items()}
    if columns["task"] is None or columns["score"] is None:
        raise InputError(
            f"the columns are {preview(names, 12)}; expected task, judge and score for judges, or task and label for people"
        )
    roles = {name: role for role, name in columns.items() if name is not None}
    table = form.reader.read_columns(path, list(roles)).to_pandas().rename(columns=roles)
    if "judge" not in table:
        table["judge"] = ""
    return table, ()
