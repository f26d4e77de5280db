"""Parts of pages on answers other than labels: cells, tables, and sections that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.citations import cite, format_citation
from wisecrowd.base.registry import find
from wisecrowd.base.run_record import record_run
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import WisecrowdError
from wisecrowd.evaluate.model_selection import Comparison, compare_methods
from wisecrowd.io.validation.vote_checks import check_votes
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import (
    MAX_REASON_CHARS,
    describe_selection,
    display_name,
    escape_control_characters,
    format_number,
    format_percent,
    shorten,
)

#: Rows of a table on the page.
MAX_ROWS = 300
#: Votes with which methods are compared; a larger crowd is represented by random tasks.
MAX_COMPARED_VOTES = 25_000

Cell = dict[str, Any]


def build_worker_section(
    workers: pd.DataFrame, fields: dict[str, Any], percents: Sequence[str], text: str
) -> dict[str, Any]:
    """Build the section about workers, those with flags first.

    Parameters
    ----------
    workers : DataFrame
        Workers with the columns n_votes, flags and why.
    fields : dict of str to dict
        Columns of the page by column of the table.
    percents : sequence of str
        Columns that are shown in percent.
    text : str
        Introduction.

    Returns
    -------
    dict
        Section of the template.
    """
    is_flagged = (workers["flags"] != "").to_numpy()
    order = np.lexsort((-workers["n_votes"].to_numpy(), ~is_flagged))
    shown = workers.iloc[order[:MAX_ROWS]]
    present = [name for name in fields if name in workers]
    rows = []
    for name, row in shown.iterrows():
        flags = row["flags"].split(", ") if row["flags"] else []
        reasons = {"text": shorten(row["why"], MAX_REASON_CHARS), "kind": "flags", "flags": flags}
        cells = [make_name(name), reasons, make_number(row["n_votes"], f"{row['n_votes']:,.0f}")]
        for field in present:
            if isinstance(row[field], str):
                cells.append({"text": shorten(row[field], MAX_REASON_CHARS) or "–", "kind": "text"})
                continue
            value = float(row[field])
            cells.append(make_number(value, format_percent(value) if field in percents else format_number(value)))
        rows.append({"cells": cells, "tags": " ".join(flags), "least": int(row["n_votes"])})
    # Flags are second, as on the page of classes: with many columns, the last ones are out of sight.
    columns = [make_column("Worker", "text"), make_column("Flags and reasons", "text"), make_column("Votes")]
    columns += [fields[name] for name in present]
    caption = describe_selection(len(shown), len(workers), "workers", "those with flags, then those with most votes")
    used = sorted({flag for flags in workers["flags"] for flag in flags.split(", ") if flag})
    return {
        "id": "workers",
        "title": "Workers",
        "text": text,
        "table": make_table(caption, columns, rows) | {"filter": {"noun": "workers", "flags": used}},
    }


def build_task_section(
    tasks: pd.DataFrame, columns: Sequence[dict[str, str]], make_cells: Callable[[pd.Series], list[Cell]], text: str
) -> dict[str, Any]:
    """Build the section with a row per task.

    Parameters
    ----------
    tasks : DataFrame
        Tasks, the least certain first.
    columns : sequence of dict
        Heads of the columns after the id of the task.
    make_cells : callable
        Function that returns the cells of these columns for a row of `tasks`.
    text : str
        Introduction.

    Returns
    -------
    dict
        Section of the template.
    """
    shown = tasks.head(MAX_ROWS)
    rows = [{"cells": [make_name(name), *make_cells(row)], "tags": "", "least": 0} for name, row in shown.iterrows()]
    caption = describe_selection(len(shown), len(tasks), "tasks", "the least certain ones")
    table = make_table(caption, [make_column("Task", "text"), *columns], rows)
    return {"id": "tasks", "title": "Tasks", "text": text, "table": table}


def assemble_content(
    diagnosis: Any,
    comparison: Comparison | None,
    command: str | None,
    *,
    tiles: list[dict[str, str]],
    sentences: list[str],
    sections: Iterable[dict[str, Any] | None],
) -> dict[str, Any]:
    """Return the content of a page: its own parts, problems of the votes, and provenance.

    Parameters
    ----------
    diagnosis : MarkDiagnosis, MaskDiagnosis or TextDiagnosis
        Diagnosis with the votes and the fitted method.
    comparison : Comparison or None
        Comparison of methods.
    command : str or None
        Command line that builds the page.
    tiles : list of dict
        Tiles of the summary.
    sentences : list of str
        Sentences of the summary.
    sections : iterable of dict or None
        Sections. None are left out.

    Returns
    -------
    dict
        Variables of the template.
    """
    return {
        "tiles": tiles,
        "sentences": sentences,
        "findings": list_findings(diagnosis.crowd),
        "sections": [section for section in sections if section is not None],
        "provenance": describe_provenance(diagnosis.model, diagnosis.crowd, comparison, command),
    }


def compare_if_possible(votes: Any, documents: Any = None) -> Comparison | None:
    """Compare methods by held-out votes; marks, masks and texts of a large crowd by those of random tasks.

    Parameters
    ----------
    votes : Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd or TextCrowd
        Votes.
    documents : table, default=None
        Texts of the tasks, for spans.

    Returns
    -------
    Comparison or None
        None if there are too few votes.
    """
    if isinstance(votes, MarkCrowd | MaskCrowd | TextCrowd) and votes.n_votes > MAX_COMPARED_VOTES:
        order = np.random.default_rng(0).permutation(votes.n_tasks)
        is_chosen = np.zeros(votes.n_tasks, dtype=bool)
        is_chosen[order[np.cumsum(votes.votes_per_task[order]) <= MAX_COMPARED_VOTES]] = True
        votes = votes.take(is_chosen[votes.task])
    try:
        return compare_methods(votes, None, documents)
    except WisecrowdError:  # too few votes
        return None


def build_method_section(comparison: Comparison | None, noun: str = "vote") -> dict[str, Any] | None:
    """Build the section about the comparison of methods.

    Parameters
    ----------
    comparison : Comparison or None
        Comparison.
    noun : str, default="vote"
        Word for what was held out.

    Returns
    -------
    dict or None
        Section of the template.
    """
    if comparison is None:
        return None
    columns = [
        make_column("Method", "text"),
        make_column(f"Probability of a held-out {noun}", about="Geometric mean"),
        make_column(
            "Difference to the best",
            about=f"Of the mean log-probability of a {noun}, in nats, with a " + format_level(),
        ),
        make_column("Seconds", about="Duration of one fit"),
    ]
    rows = []
    for name, row in comparison.table.iterrows():
        flags = ["use this"] if name == comparison.best else ["tied"] if name in comparison.tied_methods else []
        soft = {"soft": f"{row['low']:.3f} to {row['high']:.3f}"} if row["behind"] > 0 else {}
        cells = [
            {"text": str(name), "kind": "name", "flags": flags},
            make_number(np.exp(row["log_likelihood"]), format_number(np.exp(row["log_likelihood"]), 3)),
            make_number(row["behind"], format_number(row["behind"], 3)) | soft,
            make_number(row["seconds"], format_number(row["seconds"])),
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    caption = "The best method comes first. Methods marked as tied do not differ significantly from it."
    return {
        "id": "methods",
        "title": "Comparison of methods",
        "text": f"Methods are compared by their predictions of held-out votes. {comparison.summary}",
        "table": make_table(caption, columns, rows),
    }


def list_findings(votes: Any) -> list[dict[str, str]]:
    """Return the errors and warnings about votes.

    Parameters
    ----------
    votes : Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, TextCrowd or ScoreCrowd
        Votes.

    Returns
    -------
    list of dict
        Severity and text of each.
    """
    report = check_votes(votes)
    return [
        {"severity": finding.severity.capitalize(), "text": shorten(f"{finding.message}. {finding.fix}", 4 * MAX_REASON_CHARS)}
        for finding in [*report.errors, *report.warnings]
    ]  # fmt: skip


def describe_provenance(model: Any, votes: Any, comparison: Comparison | None, command: str | None) -> dict[str, Any]:
    """Return method, parameters, versions and papers for the end of the page.

    Parameters
    ----------
    model : Method
        Fitted method.
    votes : Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, TextCrowd or ScoreCrowd
        Votes.
    comparison : Comparison or None
        Comparison, whose methods are cited, too.
    command : str or None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    run = record_run(model, votes)
    names = [
        model.name,
        *(() if comparison is None else (method.name for method in comparison.fitted_methods.values())),
    ]
    names = list(dict.fromkeys(names))
    papers = [{"method": name, "papers": [format_citation(key) for key in find(name).references]} for name in names]
    return {
        "method": run["method"],
        "parameters": [f"{name} = {shorten(repr(value), 200)}" for name, value in run["parameters"].items()],
        "versions": run["versions"],
        "digest": run["input"]["sha256"],
        "finished": run["finished"],
        "command": None if command is None else escape_control_characters(command),
        "papers": [row for row in papers if row["papers"]],
        "bibtex": cite(*names),
    }


def make_tile(name: str, value: str, note: str) -> dict[str, str]:
    """Return a tile of the summary.

    Parameters
    ----------
    name, value, note : str
        Heading, figure, and explanation.

    Returns
    -------
    dict of str to str
    """
    return {"name": name, "value": value, "note": note}


def make_count_tiles(figures: dict[str, Any], votes: str = "votes") -> list[dict[str, str]]:
    """Return the tiles with the numbers of tasks and workers.

    Parameters
    ----------
    figures : dict
        Overview of a diagnosis.
    votes : str, default="votes"
        Name of the answers.

    Returns
    -------
    list of dict
    """
    return [
        make_tile("Tasks", f"{figures['tasks']:,}", f"{figures['votes'] / max(figures['tasks'], 1):.1f} {votes} each"),
        make_tile("Workers", f"{figures['workers']:,}", f"{figures['flagged_workers']:,} flagged"),
    ]


def describe_flagged_workers(figures: dict[str, Any]) -> list[str]:
    """Return the sentence about flagged workers, if there are any.

    Parameters
    ----------
    figures : dict
        Overview of a diagnosis.

    Returns
    -------
    list of str
        One sentence, or none.
    """
    if not figures["flagged_workers"]:
        return []
    return [f"{figures['flagged_workers']:,} of {figures['workers']:,} workers are flagged."]


def format_share(share: float | None) -> str:
    """Return a share in percent; a dash if there is none.

    Parameters
    ----------
    share : float or None
        Share.

    Returns
    -------
    str
    """
    return "–" if share is None else format_percent(share)


def make_column(text: str, kind: str = "number", about: str = "") -> dict[str, str]:
    """Return the head of a column.

    Parameters
    ----------
    text : str
        Heading.
    kind : {"number", "text"}, default="number"
        Kind of the cells, by which they are sorted.
    about : str, default=""
        Explanation.

    Returns
    -------
    dict of str to str
    """
    return {"text": text, "kind": kind, "about": about}


def make_name(value: Any) -> Cell:
    """Return the cell with the id of a row.

    Parameters
    ----------
    value : object
        Id.

    Returns
    -------
    dict
    """
    return {"text": display_name(value), "kind": "name", "flags": []}


def make_number(value: Any, text: str) -> Cell:
    """Return a cell with a number.

    Parameters
    ----------
    value : float
        Value, by which rows are sorted.
    text : str
        Value as it is shown.

    Returns
    -------
    dict
    """
    return {"kind": "number", "value": float(value), "text": text}


def make_table(caption: str, columns: Iterable[dict[str, str]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table without filters.

    Parameters
    ----------
    caption : str
        Caption.
    columns : iterable of dict
        Heads of columns.
    rows : list of dict
        Rows with cells, tags and the number of votes.

    Returns
    -------
    dict
    """
    return {"caption": caption, "columns": list(columns), "rows": rows, "filter": None}
