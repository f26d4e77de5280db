"""Validation of votes: `check_votes` names problems and how to fix them.

A problem that would silently change the result is an error, and its fix names the option that resolves it. A problem that
makes the result less certain is a warning. Other observations are notes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import as_table
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.rows import WEIGHT_RANGE, are_weights
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.data.types import DataFrameLike
from wisecrowd.data.vocabulary import EMPTY_COLUMN_ADVICE, find_missing
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.io.answer_tables import (
    MARK_CROWDS,
    NOUNS,
    AnswerCrowd,
    AnswerTable,
    build_answers,
    find_answer_columns,
    find_answer_table,
    read_task_table,
)
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.problems import EmptyInput, MissingColumn, MixedTypes, convert_errors, display_name
from wisecrowd.io.tables.vote_columns import VoteColumns
from wisecrowd.io.validation.comparison_checks import check_comparisons
from wisecrowd.io.validation.crowd_checks import check_crowd, make_number_finding
from wisecrowd.io.validation.findings import Finding, ValidationReport
from wisecrowd.io.validation.label_set_checks import check_label_sets
from wisecrowd.io.validation.mark_checks import check_marks
from wisecrowd.io.validation.mark_row_checks import check_documents, check_images, check_mark_rows
from wisecrowd.io.validation.mask_checks import check_masks
from wisecrowd.io.validation.score_checks import check_scores
from wisecrowd.io.validation.text_checks import check_texts
from wisecrowd.io.vote_source import SourceLike, VoteSource
from wisecrowd.io.vote_table import ReadOptions, VoteTable
from wisecrowd.utils.text import count_noun

__all__ = ["Finding", "ValidationReport", "check_votes"]


#: Different labels of a table that is taken for one with a column per worker: as a number, and as a share of its cells.
MAX_WIDE_LABELS, MAX_WIDE_SHARE = 5, 0.1


def check_votes(
    source: SourceLike | DataFrameLike | Crowd | AnswerCrowd,
    *,
    format: str | None = None,
    images: SourceLike | DataFrameLike | None = None,
    documents: SourceLike | DataFrameLike | None = None,
    **options: Any,
) -> ValidationReport:
    """Check votes, comparisons, label sets, marks or texts for problems.

    Answers other than labels are recognised by their columns. Checking continues after a problem with the remaining votes, so
    that one call reports everything.

    Parameters
    ----------
    source : path-like, VoteSource, DataFrame, dict of columns, Crowd, Comparisons, LabelSetCrowd or ScoreCrowd
        Votes.
    format : str, optional
        Name of the file format. Without it, content and file name decide.
    images : path-like or DataFrame, optional
        Sizes of images (task, width and height), to find boxes, points and polygons outside of them. A dataset folder may have them
        in images.parquet.
    documents : path-like or DataFrame, optional
        Texts (task, and tokens or text), to find spans beyond their end. A dataset folder may have them in documents.parquet.
    **options
        Options of :func:`wisecrowd.read`.

    Returns
    -------
    ValidationReport
        Findings, the most severe first.

    Examples
    --------
    >>> print(check_votes({"task": [1, 1, 2], "worker": ["ann", "ann", "bob"], "label": ["cat", "cat", None]}))
    votes: Crowd(2 votes: 1 task x 1 worker, 1 class, 2.0 votes/task)
    2 errors, 2 warnings
    error    missing-labels: 1 of 3 rows without a label (row 2)
             Drop such rows: missing="drop" (--missing drop).
    error    duplicate-votes: 1 repeated vote, the same worker's same answer to the same task (task 1 by 'ann')
             Choose a rule: duplicates="distinct" counts each answer once, "keep" all of them (--duplicates distinct).
    warning  single-worker: all votes are by 'ann', so workers cannot be compared
    warning  single-class: every vote is 'cat', so there is nothing to decide
             If there are other classes, name all of them: classes=[...] (--classes A,B,…).
    """
    read_options = ReadOptions(**options)
    if isinstance(source, Crowd):
        findings = tuple(check_crowd(source, repeats_allowed=True))
        return ValidationReport(source="votes", summary=repr(source), findings=findings)
    if isinstance(source, Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | ScoreCrowd | TextCrowd):
        findings = (
            *_check_answers(source, repeats_allowed=True),
            *_check_media(source, _read_media(images), _read_media(documents)),
        )
        return ValidationReport(source="votes", summary=repr(source), findings=findings)
    with limit_unpacked(read_options.max_unpacked):
        return _check_table(source, format, read_options, images, documents)


def _read_media(table: Any) -> Any:
    """Return a table about tasks, read from its file if a path is given."""
    return read_task_table(table) if isinstance(table, str | os.PathLike | VoteSource) else table


def _check_media(answers: AnswerCrowd, images: Any, documents: Any) -> Iterator[Finding]:
    """Check that marks lie inside of their images and documents."""
    kind = answers.answer_type if isinstance(answers, MarkCrowd) else ""
    if images is not None and kind not in ("boxes", "points", "polygons"):
        raise UsageError("sizes of images (images=, --images) apply to boxes, points and polygons only; leave them out")
    if documents is not None and kind != "spans":
        raise UsageError("documents (documents=, --documents) apply to spans only; leave them out")
    if isinstance(answers, MarkCrowd) and images is not None:
        yield from check_images(answers, images)
    if isinstance(answers, MarkCrowd) and documents is not None:
        yield from check_documents(answers, documents)


def _check_table(
    source: Any, format: str | None, options: ReadOptions, images: Any = None, documents: Any = None
) -> ValidationReport:
    name = "votes"
    if isinstance(source, str | os.PathLike | VoteSource):
        name = source.name if isinstance(source, VoteSource) else display_name(Path(source))
    findings: list[Finding] = []
    summary = ""
    try:
        with convert_errors():
            answers = _find_answers(source, format, options)
            if answers is not None:
                if options.normalise:
                    raise UsageError("normalise= (--normalise) applies to ordinary votes only; leave it out")
                answer_type, table, by_role, further = answers
                further |= {
                    name: media for name, media in (("images", images), ("documents", documents)) if media is not None
                }
                summary = _check_answer_table(answer_type, table, by_role, further, options, findings)
                return ValidationReport(source=name, summary=summary, findings=tuple(findings))
            if images is not None or documents is not None:
                raise UsageError(
                    "images= and documents= (--images, --documents) apply to boxes, points, polygons and spans; leave them out"
                )
            votes = _read_votes(source, format, options, findings)
            for replacement in votes.replacements:
                findings.append(Finding(name="spellings", severity="note", count=1, message=replacement))
            votes = _check_rows(votes, options, findings)
            crowd, settled_crowd = _build_crowds(votes, options, findings)
        summary = repr(settled_crowd)
        classes_listed = options.classes is not None or votes.classes is not None
        repeats_allowed = options.duplicates != "error"
        findings += check_crowd(
            crowd,
            repeats_allowed=repeats_allowed,
            classes_listed=classes_listed,
            can_normalise=not options.normalise and isinstance(source, str | os.PathLike | VoteSource),
            votes=votes,
        )
    except _EmptyColumn as error:
        finding = error.make_finding()
        if error.role == "worker":  # check the rest as if there were no such column
            rest = _check_table(source, format, replace(options, worker=False))
            return replace(rest, findings=(*findings, finding, *rest.findings))
        findings.append(finding)
    except MissingColumn as error:
        if format is None and _looks_wide(source, error, options):  # check the rest as if the format had been named
            findings.append(replace(_make_error_finding(error), options={"format": "wide"}))
            path = source.path if isinstance(source, VoteSource) else source
            rest = _check_table(path, "wide", options)
            return replace(rest, source=name, findings=(*findings, *rest.findings))
        findings.append(replace(_make_error_finding(error), options=error.candidates))
        if error.candidates and set(error.roles) <= error.candidates.keys():  # check the rest as if they had been named
            columns: dict[str, Any] = error.candidates
            rest = _check_table(source, format, replace(options, **columns))
            return replace(rest, findings=(*findings, *rest.findings))
    except InputError as error:
        findings.append(_make_error_finding(error))
    return ValidationReport(source=name, summary=summary, findings=tuple(findings))


def find_options(
    source: SourceLike,
    report: ValidationReport,
    *,
    format: str | None = None,
    images: SourceLike | DataFrameLike | None = None,
    documents: SourceLike | DataFrameLike | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Find the options of `wisecrowd.read` that resolve the problems of a report and those that they reveal.

    An option may reveal further problems: a worker's votes on ``t1`` and ``T1`` are repeated votes once both are one task.
    Therefore, the votes are checked again with the options.

    Parameters
    ----------
    source : path-like or VoteSource
        Votes.
    report : ValidationReport
        Result of `check_votes` with the same arguments.
    format : str, optional
        Name of the file format.
    images, documents : path-like or DataFrame, optional
        Tables that the votes were checked with.
    **options
        Options of :func:`wisecrowd.read` that the votes were checked with.

    Returns
    -------
    dict of str to object
        Options to add. Empty if no option helps.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("votes.csv").write_text("task,worker,label\\nt1,ann,cat\\nT1,ann,dog\\nt1,bob,\\n")
    >>> find_options("votes.csv", check_votes("votes.csv"))
    {'missing': 'drop', 'normalise': True, 'duplicates': 'last'}
    """
    resolved: dict[str, Any] = {}
    while True:
        further: dict[str, Any] = {}
        for finding in report.findings:
            further |= finding.options
        if any(finding.options.get("duplicates") == "last" for finding in report.findings):
            further["duplicates"] = "last"  # resolves equal votes as well as different ones
        if further.items() <= resolved.items():
            return resolved
        resolved |= further
        # A VoteSource has a detected format; its path is passed when an option replaces that format.
        path = source.path if "format" in resolved and isinstance(source, VoteSource) else source
        report = check_votes(path, images=images, documents=documents, **({"format": format} | options | resolved))


def _check_answers(answers: AnswerCrowd, *, repeats_allowed: bool) -> Iterator[Finding]:
    if isinstance(answers, Comparisons):
        yield from check_comparisons(answers, repeats_allowed=repeats_allowed)
    elif isinstance(answers, MarkCrowd):
        yield from check_marks(answers)
    elif isinstance(answers, ScoreCrowd):
        yield from check_scores(answers, repeats_allowed=repeats_allowed)
    elif isinstance(answers, MaskCrowd):
        yield from check_masks(answers)
    elif isinstance(answers, TextCrowd):
        yield from check_texts(answers)
    else:
        yield from check_label_sets(answers)


def _find_answers(
    source: Any, format: str | None, options: ReadOptions
) -> tuple[AnswerType, pa.Table, Mapping[str, str], dict[str, Any]] | None:
    """Return the answers that a table or a file holds, and files beside it by role; None for ordinary votes."""
    if options.numeric or options.ordered or "=" in (options.question or "") or options.worker is False:
        return None
    requested = {"task": options.task, "worker": options.worker, "label": options.label, "weight": options.weight}
    if isinstance(source, str | os.PathLike | VoteSource):
        # A folder of marks has no format of its own.
        file = source if format is None else VoteSource.detect(source, format)
        answers = find_answer_table(file, columns=requested, question=options.question)
        if answers is None:
            return None
        further: dict[str, Any] = {}
        if isinstance(answers, AnswerTable):
            further = {"assignments": answers.read_assignments()}
            further |= {"images": answers.images} if answers.answer_type in ("boxes", "points", "polygons") else {}
            further |= {"documents": answers.documents} if answers.answer_type == "spans" else {}
        return answers.answer_type, answers.read_table(), answers.columns, further
    names = list(map(str, source.columns if isinstance(source, pd.DataFrame) else as_table(source).column_names))
    columns = find_answer_columns(names, requested, lambda name: as_table(source, [name])[name])
    if columns is None:
        return None
    answer_type, by_role = columns
    return answer_type, as_table(source, list(by_role.values())), by_role, {}


def _check_answer_table(
    answer_type: AnswerType,
    table: pa.Table,
    columns: Mapping[str, str],
    further: Mapping[str, Any],
    options: ReadOptions,
    findings: list[Finding],
) -> str:
    """Add the findings about comparisons, label sets, marks or scores in a table, and return their summary."""
    listed = ", ".join(f"{name!r}" for name in columns.values())
    findings.append(
        Finding(
            name="columns", severity="note", count=1, message=f"read {NOUNS[answer_type]} from the columns {listed}"
        )
    )
    if answer_type in MARK_CROWDS:
        row_findings, is_sound = check_mark_rows(MARK_CROWDS[answer_type], table, columns)
        findings += row_findings
        sound = table if is_sound.all() else table.filter(pa.array(is_sound))
        marks = build_answers(answer_type, sound, columns, assignments=further.get("assignments"))
        findings += _check_answers(marks, repeats_allowed=True)
        findings += _check_media(marks, _read_media(further.get("images")), _read_media(further.get("documents")))
        return repr(marks)
    if further.get("images") is not None or further.get("documents") is not None:
        raise UsageError(
            "images= and documents= (--images, --documents) apply to boxes, points, polygons and spans; leave them out"
        )
    if answer_type == "texts":
        return _check_text_table(table, columns, options, findings)
    if answer_type == "masks":
        masks = build_answers(answer_type, table, columns, duplicates=options.duplicates)
        findings += _check_answers(masks, repeats_allowed=True)
        return repr(masks)
    complete = np.ones(table.num_rows, dtype=bool)
    for role, column in columns.items():
        is_missing = find_missing(table[column])
        if answer_type == "scores" and role in ("score", "label") and "label" in columns:
            other = columns["label" if role == "score" else "score"]
            is_missing &= find_missing(table[other])  # a row has a score or a label
        rows = np.flatnonzero(is_missing)
        if rows.size:
            complete &= ~is_missing
            findings.append(
                Finding(
                    name="missing-labels" if role == "label" else "missing-ids",
                    severity="note" if options.missing == "drop" else "error",
                    count=rows.size,
                    examples=tuple(rows[:3].tolist()),
                    message=f"{rows.size:,} of {count_noun(table.num_rows, 'row')} without a value in {column!r} "
                    f"(row {', '.join(map(str, rows[:3].tolist()))}{', …' * (rows.size > 3)})",
                    fix="" if options.missing == "drop" else 'Drop such rows: missing="drop" (--missing drop).',
                    options={} if options.missing == "drop" else {"missing": "drop"},
                )
            )
    if not complete.all():
        table = table.filter(pa.array(complete))
    repeats_allowed = options.duplicates != "error"
    if answer_type == "pairwise":
        answers = build_answers(answer_type, table, columns, duplicates="keep", swapped="keep")
    elif answer_type == "scores":
        answers = build_answers(answer_type, table, columns, duplicates="keep")
    else:
        rule = options.duplicates if repeats_allowed else "union"
        answers = build_answers(answer_type, table, columns, duplicates=rule)
        n_repeated = table.num_rows - answers.n_votes
        if n_repeated:
            findings.append(
                Finding(
                    name="duplicate-votes",
                    severity="note" if repeats_allowed else "error",
                    count=n_repeated,
                    message=f"{count_noun(n_repeated, 'repeated row')} of a worker on a task",
                    fix="" if repeats_allowed else 'Choose a rule: duplicates="first" or "last" (--duplicates last).',
                    options={} if repeats_allowed else {"duplicates": "last"},
                )
            )
    findings += _check_answers(answers, repeats_allowed=repeats_allowed)
    return repr(answers)


def _check_text_table(
    table: pa.Table, columns: Mapping[str, str], options: ReadOptions, findings: list[Finding]
) -> str:
    """Add the findings about texts in a table, and return their summary."""
    lacks_id = find_missing(table[columns["task"]]) | find_missing(table[columns["worker"]])
    if lacks_id.any():
        rows = np.flatnonzero(lacks_id)
        findings.append(
            Finding(
                name="missing-ids",
                severity="error",
                count=rows.size,
                examples=tuple(rows[:3].tolist()),
                message=f"{count_noun(rows.size, 'row')} without a task or a worker (row {', '.join(map(str, rows[:3].tolist()))})",
                fix="Add the ids, or remove the rows.",
            )
        )
        table = table.filter(pa.array(~lacks_id))
    repeats_allowed = options.duplicates != "error"
    texts = build_answers("texts", table, columns, duplicates=options.duplicates if repeats_allowed else "last")
    n_repeated = table.num_rows - texts.n_votes
    if n_repeated:
        findings.append(
            Finding(
                name="duplicate-votes",
                severity="note" if repeats_allowed else "error",
                count=n_repeated,
                message=f"{count_noun(n_repeated, 'repeated row')} of a worker on a task",
                fix="" if repeats_allowed else 'Choose a rule: duplicates="first" or "last" (--duplicates last).',
                options={} if repeats_allowed else {"duplicates": "last"},
            )
        )
    findings += _check_answers(texts, repeats_allowed=repeats_allowed)
    return repr(texts)


def _looks_wide(source: Any, error: MissingColumn, options: ReadOptions) -> bool:
    """Return whether a table without worker and label columns holds few different values in many cells, as labels do."""
    if (
        set(error.roles) != {"worker", "label"}
        or error.candidates
        or not isinstance(source, str | os.PathLike | VoteSource)
    ):
        return False
    try:
        with convert_errors():
            path = source.path if isinstance(source, VoteSource) else source
            labels = VoteSource.detect(path, "wide").read_table(options).table["label"]
    except WisecrowdError:
        return False
    return len(labels.unique()) <= max(MAX_WIDE_LABELS, MAX_WIDE_SHARE * len(labels))


class _EmptyColumn(Exception):
    """Column of a role that has no value in any row."""

    def __init__(self, role: str, n_rows: int) -> None:
        super().__init__(role)
        self.role, self.n_rows = role, n_rows

    def make_finding(self) -> Finding:
        """Return the finding, with the option that resolves it if there is one."""
        advice = EMPTY_COLUMN_ADVICE[self.role]
        return Finding(
            name="empty-column",
            severity="error",
            count=self.n_rows,
            message=f"no row has a {self.role}: the column is empty in all {self.n_rows:,} rows",
            fix=f"{advice[0].upper()}{advice[1:]}.",
            options={"worker": False} if self.role == "worker" else {},
        )


def _make_error_finding(error: InputError) -> Finding:
    names = {MissingColumn: "missing-column", EmptyInput: "empty-file", MixedTypes: "mixed-types"}
    return Finding(name=names.get(type(error), "unreadable"), severity="error", count=1, message=str(error))


def _read_votes(source: Any, format: str | None, options: ReadOptions, findings: list[Finding]) -> VoteTable:
    if isinstance(source, str | os.PathLike | VoteSource):
        return VoteSource.detect(source, format).read_table(options)
    if not isinstance(source, pd.DataFrame | dict):
        table = as_table(source)
        votes = VoteColumns.choose(table.column_names, options).extract_votes(table)
        return votes.unify_spellings(options) if options.normalise else votes
    frame = pd.DataFrame(source).rename(columns=str)
    columns = VoteColumns.choose(list(frame.columns), options)
    frame = frame[list(columns.by_role.values())]
    for name in frame:
        if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed"):
            types = sorted({type(value).__name__ for value in frame[name].dropna()})
            findings.append(
                Finding(
                    name="mixed-types",
                    severity="error",
                    count=len(types),
                    examples=tuple(types),
                    message=f"the column {name!r} mixes {' and '.join(types)}",
                    fix=f"Convert it to one type: df[{name!r}] = df[{name!r}].astype(str).",
                )
            )
            frame[name] = frame[name].map(str, na_action="ignore")
    votes = columns.extract_votes(as_table(frame))
    return votes.unify_spellings(options) if options.normalise else votes


def _check_rows(votes: VoteTable, options: ReadOptions, findings: list[Finding]) -> VoteTable:
    """Report rows with missing cells or invalid weights, and return the complete rows."""
    table = votes.table
    for note in votes.notes:
        findings.append(Finding(name="columns", severity="note", count=1, message=note))
    for column, name in (("task", "missing-ids"), ("worker", "missing-ids"), ("label", "missing-labels")):
        is_missing = find_missing(table[column]) if column in table.column_names else np.zeros(0, dtype=bool)
        rows = np.flatnonzero(is_missing)
        if rows.size == table.num_rows > 0:
            raise _EmptyColumn(column, table.num_rows)
        if rows.size:
            findings.append(
                Finding(
                    name=name,
                    severity="note" if options.missing == "drop" else "error",
                    count=rows.size,
                    examples=tuple(votes.locate_rows(rows[:3].tolist())[1]),
                    message=f"{rows.size:,} of {count_noun(table.num_rows, 'row')} without a {column} "
                    f"({votes.describe_rows(rows.tolist())})",
                    fix="" if options.missing == "drop" else 'Drop such rows: missing="drop" (--missing drop).',
                    options={} if options.missing == "drop" else {"missing": "drop"},
                )
            )
    if "weight" in table.column_names:
        weight = table["weight"].to_numpy()
        rows = np.flatnonzero(~are_weights(weight))
        if rows.size:
            findings.append(
                Finding(
                    name="bad-weights",
                    severity="error",
                    count=rows.size,
                    examples=tuple(votes.locate_rows(rows[:3].tolist())[1]),
                    message=f"{count_noun(rows.size, 'weight')} not {WEIGHT_RANGE} "
                    f"({votes.describe_rows(rows.tolist())})",
                    fix="Leave out votes that should not count.",
                )
            )
            table = table.drop_columns("weight")
    return replace(votes, table=table).drop_incomplete_rows()


def _build_crowds(votes: VoteTable, options: ReadOptions, findings: list[Finding]) -> tuple[Crowd, Crowd]:
    """Return the crowd of all valid votes, and the crowd after applying the rule for repeated votes."""
    label = votes.table["label"]
    if pa.types.is_floating(label.type) and not (votes.numeric or options.numeric):
        numbers = pd.unique(label.to_numpy())
        fractions = numbers[numbers != np.round(numbers)]
        if fractions.size:
            findings.append(make_number_finding("error", fractions))
            options = replace(options, numeric=True)
    try:
        return _apply_duplicate_rule(votes, options)
    except EmptyInput:
        raise
    except InputError as error:
        findings.append(Finding(name="unknown-ids", severity="error", count=1, message=str(error)))
    try:
        votes = replace(votes, tasks=None, workers=None, classes=None)
        return _apply_duplicate_rule(votes, replace(options, tasks=None, workers=None, classes=None))
    except InputError:
        del findings[-1]  # the vocabulary was not the cause
        raise


def _apply_duplicate_rule(votes: VoteTable, options: ReadOptions) -> tuple[Crowd, Crowd]:
    crowd = votes.to_crowd(replace(options, duplicates="keep"))
    return crowd, crowd if options.duplicates in ("error", "keep") else votes.to_crowd(options)
