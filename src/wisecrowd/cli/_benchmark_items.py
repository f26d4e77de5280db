"""Benchmarks as tests of items on the command line: ``wisecrowd evaluate --benchmark``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import heading, shorten_id, show, table

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.diagnose.benchmark_items import BenchmarkDiagnosis

#: Files of models and items.
MODELS, BENCHMARK_ITEMS = "models.csv", "items.csv"
#: Models and flagged items shown; the files contain all.
SHOWN = 10


def diagnose_logs(
    paths: Sequence[Path], key: Path | None, metric: str | None, format: str | None, level: float
) -> BenchmarkDiagnosis:
    """Read the answers or scores of models, and diagnose the benchmark.

    Parameters
    ----------
    paths : sequence of Path
        Logs, one or several models each, or a table of task, model and score, or of task, worker and label.
    key : Path or None
        Right answers: table with task and label.
    metric : str or None
        Scorer or metric, if there are several.
    format : str or None
        Format of the logs.
    level : float
        Level of intervals.

    Returns
    -------
    BenchmarkDiagnosis
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.diagnose.benchmark_items import diagnose_benchmark
    from wisecrowd.errors import InputError, UsageError, preview
    from wisecrowd.io.evaluations.evaluation_log import combine_logs, read_evaluation_log

    rows = combine_logs([read_evaluation_log(resolve_path(path), format=format) for path in paths]).scores
    if "system" in rows:
        judges = rows["judge"].astype(str).unique().tolist()
        if metric is None and len(judges) > 1:
            raise UsageError(
                f"models have {len(judges)} scores for an item: {preview(judges, 8)}; name one with --metric"
            )
        if metric is not None and metric not in judges:
            raise UsageError(f"there is no score {metric!r}; there is {preview(judges, 8)}")
        rows = rows if metric is None else rows[rows["judge"].astype(str) == metric]
        rows = rows.assign(judge=rows["system"])
    if (rows["judge"].astype(str) == "").all():
        raise InputError("the answers do not name the model; add the column model (or worker)")
    answers = rows[["task", "judge", "score"]].rename(columns={"judge": "worker", "score": "label"}).astype(str)
    if answers.duplicated(["task", "worker"]).any():
        raise InputError(
            "a model answers an item more than once; give one answer each, or name one scorer with --metric"
        )
    truth: pd.Series[Any] | None = None
    if key is not None:
        right = read_evaluation_log(resolve_path(key), format="table").scores.astype(str)
        truth = right.drop_duplicates("task").set_index("task")["score"]
    return diagnose_benchmark(answers, truth, level=level)


def describe_benchmark(diagnosis: BenchmarkDiagnosis) -> list[tuple[str, str]]:
    """Return lines about models and items.

    Parameters
    ----------
    diagnosis : BenchmarkDiagnosis
        Diagnosis.

    Returns
    -------
    list of tuple of str
    """
    flags = diagnosis.items["flag"].value_counts()
    flagged = ", ".join(
        f"{flags[name]:,} {name}" for name in ("mis-keyed", "redundant", "no information") if name in flags
    )
    n = len(diagnosis.items)
    return [
        ("Models", f"{len(diagnosis.models):,}, answers to {n:,} items"),
        ("Information", f"{diagnosis.n_for_most:,} of {n:,} items carry nine tenths of it"),
        ("Flagged", flagged or "no item"),
        *(("Note", note) for note in diagnosis.notes),
    ]


def show_benchmark(diagnosis: BenchmarkDiagnosis) -> None:
    """Print the ablest models and the flagged items.

    Parameters
    ----------
    diagnosis : BenchmarkDiagnosis
        Diagnosis.
    """
    heading("Ablest models")
    rows = [
        (
            shorten_id(name, 30),
            *(f"{row[key]:.2f}" for key in ("ability", "low", "high", "share_right")),
            f"{row['n_items']:.0f}",
        )
        for name, row in diagnosis.models.head(SHOWN).iterrows()
    ]
    show(table(["model", "ability", "low", "high", "right", "items"], rows))
    flagged = diagnosis.items[diagnosis.items["flag"] != ""]
    if flagged.empty:
        return
    heading("Flagged items")
    lines = [
        (
            shorten_id(name, 30),
            row["flag"],
            shorten_id(_advise(row), 30),
            f"{row['share_right']:.2f}",
            f"{row['item_rest']:.2f}",
        )
        for name, row in flagged.head(SHOWN).iterrows()
    ]
    show(table(["item", "flag", "see", "right", "item-rest"], lines, n_text_columns=3))
    if len(flagged) > SHOWN:
        show(f"and {len(flagged) - SHOWN:,} more")


def _advise(row: Any) -> str:
    """Return the answer of able models, or the item of which this one is a copy."""
    if row["flag"] == "mis-keyed" and row.get("suggested") is not None:
        return f"able models answer {row['suggested']}"
    return f"as {row['redundant_with']}" if row["flag"] == "redundant" else "-"
