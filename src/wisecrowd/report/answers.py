"""Report on comparisons, label sets and scores of judges: sections of tables, rendered by ``answers.html``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.citations import cite, format_citation
from wisecrowd.base.registry import find
from wisecrowd.base.run_record import record_run
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.diagnose import (
    ComparisonDiagnosis,
    JudgeDiagnosis,
    LabelSetDiagnosis,
    diagnose_comparisons,
    diagnose_judges,
    diagnose_label_sets,
)
from wisecrowd.errors import WisecrowdError
from wisecrowd.evaluate.model_selection import Comparison, compare_methods
from wisecrowd.io.validation.vote_checks import check_votes
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import (
    MAX_REASON_CHARS,
    count_noun,
    describe_selection,
    display_name,
    escape_control_characters,
    format_number,
    format_percent,
    shorten,
)

#: Rows of a table on the page.
MAX_ROWS = 300
#: Comparisons that the page recommends.
PLANNED = 8
#: Labels of a task named as uncertain, and the probability from which on a decision is certain.
SHOWN_LABELS, CERTAIN = 3, 0.95

Cell = dict[str, Any]


def build_comparison_content(
    comparisons: Comparisons, *, model: Any = None, compare: bool = True, command: str | None = None
) -> dict[str, Any]:
    """Build the content of a report on comparisons.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons.
    model : PairwiseAggregator or str, default=None
        Fitted method, or the name of one.
    compare : bool, default=True
        Whether to compare methods.
    command : str, default=None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    diagnosis = diagnose_comparisons(comparisons, model=model)
    figures = diagnosis.overview
    methods = _compare(comparisons) if compare else None
    alpha = figures["krippendorff_alpha"]
    tiles = [
        _tile("Comparisons", f"{figures['comparisons']:,}", f"of {figures['pairs']:,} pairs"),
        _tile("Items", f"{figures['items']:,}", f"in {figures['components']:,} group" + "s" * (figures["components"] > 1)),
        _tile("Workers", f"{figures['workers']:,}" if figures["workers"] else "–", f"{figures['flagged_workers']:,} flagged"),
        _tile("Agreement", "–" if alpha is None else f"{alpha:.2f}", "Krippendorff’s alpha on pairs compared several times"),
        _tile("Ties", format_percent(figures["tie_share"]), f"left item wins {_percent(figures['left_share'])} of the rest"),
    ]  # fmt: skip
    sections = [_ranking(diagnosis), _next_comparisons(diagnosis)]
    if len(diagnosis.workers):
        sections.append(_comparison_workers(diagnosis))
    return {
        "tiles": tiles,
        "sentences": _comparison_sentences(diagnosis),
        "findings": _findings(comparisons),
        "sections": [section for section in [*sections, _methods(methods)] if section is not None],
        "provenance": _provenance(diagnosis.model, comparisons, methods, command),
    }


def build_label_set_content(
    crowd: LabelSetCrowd, *, model: Any = None, compare: bool = True, command: str | None = None
) -> dict[str, Any]:
    """Build the content of a report on label sets.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    model : LabelSetAggregator or str, default=None
        Fitted method, or the name of one.
    compare : bool, default=True
        Whether to compare methods.
    command : str, default=None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    diagnosis = diagnose_label_sets(crowd, model=model)
    figures = diagnosis.overview
    methods = _compare(crowd) if compare else None
    masi = figures["alpha_masi"]
    reach = (
        ""
        if masi is None
        else f"{format_level()} {figures['alpha_masi_low']:.2f} to {figures['alpha_masi_high']:.2f}; "
    )
    tiles = [
        _tile("Tasks", f"{figures['tasks']:,}", f"{figures['votes'] / max(figures['tasks'], 1):.1f} votes each"),
        _tile("Workers", f"{figures['workers']:,}", f"{figures['flagged_workers']:,} flagged"),
        _tile("Labels", f"{figures['labels']:,}", f"{figures['labels_per_vote']:.2f} in a set; {figures['empty_sets']:.0%} empty"),
        _tile("Agreement", "–" if masi is None else f"{masi:.2f}", f"{reach}Krippendorff’s alpha, MASI distance"),
        _tile("Expected F1", f"{figures['expected_f1']:.2f}", "of the chosen labels"),
        _tile("Whole sets", f"{figures['mean_confidence']:.2f}", "mean probability that all labels of a task are right"),
    ]  # fmt: skip
    sections = [_labels(diagnosis), _set_tasks(diagnosis), _set_workers(diagnosis), _methods(methods)]
    return {
        "tiles": tiles,
        "sentences": _label_set_sentences(diagnosis),
        "findings": _findings(crowd),
        "sections": [section for section in sections if section is not None],
        "provenance": _provenance(diagnosis.model, crowd, methods, command),
    }


# ---------------------------------------------------------------------- comparisons


def _comparison_sentences(diagnosis: ComparisonDiagnosis) -> list[str]:
    items, figures = diagnosis.items, diagnosis.overview
    best = items.index[0]
    sentences = [f"{display_name(best)} has the highest score."]
    if "rank_high" in items:
        rivals = items.index[1:][(items["rank_low"].iloc[1:] == 1).to_numpy()]
        level = f"{diagnosis.model.level:.0%}"
        sentences[0] += (
            f" At the level of {level}, no other item may be the best."
            if not len(rivals)
            else f" At the level of {level}, {count_noun(len(rivals), 'other item')} may be the best, first of all "
            f"{display_name(rivals[0])}."
        )
    if figures["components"] > 1:
        sentences.append(
            f"The items form {figures['components']:,} groups without comparisons between them. Scores are comparable within a "
            "group only."
        )
    left = figures["left_share"]
    if left is not None and abs(left - 0.5) > 0.05:
        side = "left" if left > 0.5 else "right"
        sentences.append(f"The {side} item wins {max(left, 1 - left):.0%} of the comparisons that are decided.")
    if figures["flagged_workers"]:
        sentences.append(f"{figures['flagged_workers']:,} of {figures['workers']:,} workers are flagged.")
    return sentences


def _ranking(diagnosis: ComparisonDiagnosis) -> dict[str, Any]:
    items = diagnosis.items
    shown = items.head(MAX_ROWS)
    has_intervals = "lower" in items
    low = items["lower"].min() if has_intervals else items["score"].min()
    span = max((items["upper"].max() if has_intervals else items["score"].max()) - low, 1e-12)
    columns = [_column("Rank"), _column("Item", "text"), _column("Score", about="In logits; the mean is zero")]
    if has_intervals:
        columns.append(_column("Ranks left open", about="Ranks that the comparisons do not exclude"))
    columns += [_column("Wins"), _column("Losses"), _column("Ties")]
    with_groups = items["component"].max() > 0
    columns += [_column("Group", about="Items of different groups were never compared")] if with_groups else []
    rows = []
    for name, row in shown.iterrows():
        cells = [_number(row["rank"], f"{row['rank']:.0f}"), _name(name)]
        score = _number(row["score"], format_number(row["score"]))
        if has_intervals:
            ends = {
                key: float((row[column] - low) / span)
                for key, column in (("low", "lower"), ("high", "upper"), ("middle", "score"))
            }
            score |= {"interval": ends, "soft": f"{format_number(row['lower'])} to {format_number(row['upper'])}"}
        cells.append(score)
        if has_intervals:
            cells.append(_number(row["rank_low"], f"{row['rank_low']:.0f}–{row['rank_high']:.0f}"))
        cells += [_number(row[key], f"{row[key]:,.6g}") for key in ("wins", "losses", "ties")]
        cells += [_number(row["component"], f"{row['component'] + 1:.0f}")] if with_groups else []
        rows.append({"cells": cells, "tags": "", "least": 0})
    text = f"Scores by {diagnosis.model.name}."
    if has_intervals:
        text += f" Intervals: {format_level(diagnosis.model.level)}."
    caption = describe_selection(len(shown), len(items), "items", "those with the highest scores")
    return {"id": "ranking", "title": "Ranking", "text": text, "table": _table(caption, columns, rows)}


def _next_comparisons(diagnosis: ComparisonDiagnosis) -> dict[str, Any] | None:
    from wisecrowd.plan.pair_acquisition import plan_comparisons

    model = diagnosis.model
    try:
        plan = plan_comparisons(model, budget=PLANNED)
    except WisecrowdError:  # a method without intervals, or too many items
        return None
    # One row per pair, in either order.
    first = [tuple(sorted(pair, key=str)) for pair in zip(plan["left"], plan["right"], strict=True)]
    rows = []
    for pair in dict.fromkeys(first):
        wins = model.win_probability(*pair)
        cells = [
            *map(_name, pair),
            _number(wins, format_percent(wins)),
            _number(first.count(pair), f"{first.count(pair)}"),
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    columns = [
        _column("Item", "text"),
        _column("Other item", "text"),
        _column("First wins", about="Probability that the first item wins, ties split"),
        _column("Times", about="How often to compare the pair"),
    ]
    text = f"The next {PLANNED} comparisons that tell most about the scores. wisecrowd.plan_comparisons plans more, with workers."
    table = _table("Most informative first.", columns, rows)
    return {"id": "next", "title": "What to compare next", "text": text, "table": table}


def _comparison_workers(diagnosis: ComparisonDiagnosis) -> dict[str, Any]:
    fields = {
        "left_share": _column("Left", about="Share of decided comparisons that the left item won"),
        "tie_share": _column("Ties", about="Share of ties"),
        "follows_scores": _column("With the scores", about="Share of decided comparisons that the higher score won"),
        "expected": _column("Expected", about="The same share for a worker who follows the scores"),
        "discrimination": _column("Discrimination", about="1 is an average worker; 0 answers at random"),
        "lean": _column("Lean", about="Preference for the left (+) or right (−) side, in logits"),
        "reliability": _column("Reliability", about="Probability of reporting the better item"),
    }
    percents = ("left_share", "tie_share", "follows_scores", "expected")
    text = "Flags name workers who nearly always choose one side or a tie, and those who contradict the scores."
    return _worker_section(diagnosis.workers, fields, percents, text)


# ---------------------------------------------------------------------- label sets


def _label_set_sentences(diagnosis: LabelSetDiagnosis) -> list[str]:
    figures, labels = diagnosis.overview, diagnosis.labels
    sentences = [f"Labels with a probability of {diagnosis.model.threshold_:.2f} or more are chosen."]
    alphas = labels["alpha"].dropna()
    if len(alphas) > 1:
        sentences.append(
            f"Workers agree most on {display_name(alphas.idxmax())} (alpha {alphas.max():.2f}) and least on "
            f"{display_name(alphas.idxmin())} ({alphas.min():.2f})."
        )
    n_certain = int((diagnosis.tasks["confidence"] >= CERTAIN).sum())
    sentences.append(
        f"{n_certain:,} of {figures['tasks']:,} tasks have a set that is right with a probability of {CERTAIN:.0%} or more."
    )
    if figures["alpha_jaccard"] is not None:
        sentences.append(
            f"Alpha is {figures['alpha_jaccard']:.2f} by Jaccard distance and {figures['alpha_whole_sets']:.2f} if only equal sets "
            "agree."
        )
    return sentences


def _labels(diagnosis: LabelSetDiagnosis) -> dict[str, Any]:
    labels = diagnosis.labels.sort_values("marked", ascending=False, kind="stable")
    columns = [
        _column("Label", "text"),
        _column("In sets", about="Share of the votes that contain the label"),
        _column("Chosen", about="Share of the tasks for which the label is chosen"),
        _column("Agreement", about="Krippendorff’s alpha of the yes/no question whether the label applies"),
        _column("Confidence", about="Mean probability that the decision about the label is right"),
        _column("Uncertain tasks", about="Tasks on which this probability is below 0.8"),
    ]
    rows = [
        {
            "cells": [
                _name(name),
                _number(row["marked"], format_percent(row["marked"])),
                _number(row["chosen"], format_percent(row["chosen"])) | {"bar": float(row["chosen"])},
                _number(row["alpha"], format_number(row["alpha"])),
                _number(row["confidence"], format_number(row["confidence"], 3)),
                _number(row["uncertain"], f"{row['uncertain']:,.0f}"),
            ],
            "tags": "",
            "least": 0,
        }
        for name, row in labels.head(MAX_ROWS).iterrows()
    ]
    caption = describe_selection(len(rows), len(labels), "labels", "the most frequent ones")
    text = "Agreement and confidence of every label."
    return {"id": "labels", "title": "Labels", "text": text, "table": _table(caption, columns, rows)}


def _set_tasks(diagnosis: LabelSetDiagnosis) -> dict[str, Any]:
    tasks = diagnosis.tasks
    shown = tasks.head(MAX_ROWS)
    probs, names = diagnosis.model.label_probs_, diagnosis.model.label_index_
    position = diagnosis.model.task_index_.get_indexer(shown.index)
    columns = [
        _column("Task", "text"),
        _column("Labels", "text"),
        _column("Confidence", about="Probability that all labels of the task are right"),
        _column("Expected F1"),
        _column("Votes"),
        _column("Least certain labels", "text", about="Probability that the label applies"),
    ]
    rows = []
    for code, (name, row) in zip(position, shown.iterrows(), strict=True):
        doubt = np.abs(probs[code] - diagnosis.model.threshold_)
        nearest = [
            label for label in np.argsort(doubt, kind="stable")[:SHOWN_LABELS] if 0.05 < probs[code, label] < CERTAIN
        ]
        uncertain = ", ".join(f"{display_name(names[label])} {format_percent(probs[code, label])}" for label in nearest)
        cells = [
            _name(name),
            {"text": ", ".join(map(display_name, row["labels"])) or "∅", "kind": "text"},
            _number(row["confidence"], format_number(row["confidence"])) | {"bar": float(row["confidence"])},
            _number(row["expected_f1"], format_number(row["expected_f1"])),
            _number(row["n_votes"], f"{row['n_votes']:,}"),
            {"text": shorten(uncertain, MAX_REASON_CHARS) or "–", "kind": "text"},
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    caption = describe_selection(len(shown), len(tasks), "tasks", "those with the least certain sets")
    text = "The chosen labels of every task, the least certain sets first."
    return {"id": "tasks", "title": "Tasks", "text": text, "table": _table(caption, columns, rows)}


def _set_workers(diagnosis: LabelSetDiagnosis) -> dict[str, Any]:
    fields = {
        "labels_per_vote": _column("Labels per vote"),
        "agreement": _column("Agreement", about="Mean similarity (MASI) to the sets of others on the same tasks"),
        "hit_rate": _column("Hits", about="Share of the labels that apply which the worker marks"),
        "false_alarm_rate": _column(
            "False alarms", about="Share of the labels that do not apply which the worker marks"
        ),
    }
    text = "Flags name workers who mark nothing, always the same labels, or labels that do not depend on the truth."
    return _worker_section(diagnosis.workers, fields, ("hit_rate", "false_alarm_rate"), text)


# ---------------------------------------------------------------------- scores of judges


def build_score_content(
    scores: ScoreCrowd,
    *,
    gold: Any = None,
    truth: Any = None,
    texts: pd.Series | None = None,
    versions: Any = None,
    model: Any = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Build the content of a report on scores of judges.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores.
    gold, truth : truth-like, default=None
        Truth that the panel is fitted with, and truth that judges are compared with.
    texts : Series, default=None
        Text of each task, whose length is compared with the scores.
    versions : mapping, default=None
        Versions of judges, in order.
    model : Panel, default=None
        Fitted panel.
    command : str, default=None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    lengths = None if texts is None else texts.astype(str).str.count(r"\S+")
    diagnosis = diagnose_judges(scores, gold=gold, truth=truth, lengths=lengths, versions=versions, model=model)
    figures = diagnosis.overview
    source = "known truth" if diagnosis.truth is not None else "the labels of the panel, to which the judges contribute"
    tiles = [
        _tile("Scores", f"{figures['scores']:,}", f"of {figures['tasks']:,} tasks"),
        _tile("Judges", f"{figures['judges']:,}", f"{figures['flagged_judges']:,} flagged"),
        _tile("Effective judges", f"{figures['n_effective']:.1f}", "independent judges with the same information"),
        _tile("People", f"{figures['people']:,}" if figures["people"] else "–", "who label tasks independently"),
        _tile("Reference", f"{figures['reference_tasks']:,}", f"tasks, by {source}"),
    ]
    sections = [_judge_section(diagnosis, source), _curve_section(diagnosis), _drift_section(diagnosis)]
    return {
        "tiles": tiles,
        "sentences": diagnosis.verdict,
        "findings": _findings(scores),
        "sections": [section for section in sections if section is not None],
        "provenance": _provenance(diagnosis.model, scores, None, command),
    }


def _judge_section(diagnosis: JudgeDiagnosis, source: str) -> dict[str, Any]:
    fields = {
        "accuracy": _column("Accuracy", about="After every score was turned into the class that it stands for"),
        "kappa": _column("Kappa", about="Agreement beyond chance: 0 is chance, 1 is perfect"),
        "kappa_people": _column("Kappa with people", about="Agreement beyond chance with votes of people"),
        "kappa_ceiling": _column("One person with others", about="Kappa of a person with the other people"),
        "severity": _column("Severity", about="Distance of scores below the truth, as a share of the judge’s scale"),
        "consistency": _column("Consistency", about="Intraclass correlation of repeated scores on a task"),
        "length_bias": _column("Length bias", about="Rank correlation of score and length, given the true class"),
        "shared": _column("Shared errors", about="Share of its errors that the other judges explain"),
    }
    table = diagnosis.judges.rename(columns={"n_scores": "n_votes"})
    table = table[[name for name in table if name not in fields or table[name].notna().any()]]
    text = f"Every judge is compared with {source}. Severity, length and repeats concern the scores as they are."
    section = _worker_section(table, fields, ("accuracy", "shared", "severity"), text)
    return section | {"id": "judges", "title": "Judges"}


def _curve_section(diagnosis: JudgeDiagnosis) -> dict[str, Any]:
    curves = diagnosis.curves
    shown: Any = curves.head(MAX_ROWS).itertuples()
    highest = display_name(diagnosis.model.classes_[-1])
    columns = [
        _column("Judge", "text"),
        _column("Score", about="Mean score of the bin"),
        _column("Scores", about="Number of scores"),
        _column(f"Share of {highest}", about="Share of tasks of this class, with its standard error"),
    ]
    rows = [
        {
            "cells": [
                _name(row.worker),
                _number(row.score, format_number(row.score)),
                _number(row.n_scores, f"{row.n_scores:,.0f}"),
                _number(row.share, format_percent(row.share)) | {"bar": float(row.share), "soft": f"± {row.error:.0%}"},
            ],
            "tags": "",
            "least": int(row.n_scores),
        }
        for row in shown
    ]
    caption = describe_selection(len(rows), len(curves), "bins of scores", "those of the first judges")
    text = f"What a score of each judge means: how often tasks with this score are {highest}."
    return {"id": "curves", "title": "Calibration curves", "text": text, "table": _table(caption, columns, rows)}


def _drift_section(diagnosis: JudgeDiagnosis) -> dict[str, Any] | None:
    drift = diagnosis.drift
    if not len(drift):
        return None
    columns = [
        _column("Judge", "text"),
        _column("Versions", "text"),
        _column("Tasks", about="Tasks that both versions scored"),
        _column("Shift", about="Change of the mean score, with its standard error"),
        _column("Rank correlation"),
        _column("Labels changed"),
        _column("Kappa", about="Change of the agreement beyond chance, with its standard error"),
    ]
    rows = []
    shown: Any = drift.head(MAX_ROWS).itertuples()
    for row in shown:
        flags = ["changed"] if row.significant else []
        cells = [
            _name(row.judge) | {"flags": flags},
            {"text": f"{display_name(row.before)} → {display_name(row.after)}", "kind": "text"},
            _number(row.n_tasks, f"{row.n_tasks:,}"),
            _number(row.shift, f"{row.shift:+.2f}") | {"soft": f"± {row.shift_error:.2f}"},
            _number(row.rank_correlation, format_number(row.rank_correlation)),
            _number(row.changed, format_percent(row.changed)),
            _number(row.kappa_change, f"{row.kappa_change:+.2f}") | {"soft": f"± {row.kappa_error:.2f}"},
        ]
        rows.append({"cells": cells, "tags": " ".join(flags), "least": int(row.n_tasks)})
    text = (
        "Successive versions of a judge on the same tasks. A change is marked if it exceeds twice its standard error."
    )
    return {"id": "drift", "title": "Versions", "text": text, "table": _table("All versions.", columns, rows)}


# ---------------------------------------------------------------------- all types


def _worker_section(
    workers: pd.DataFrame, fields: dict[str, Any], percents: Sequence[str], text: str
) -> dict[str, Any]:
    is_flagged = (workers["flags"] != "").to_numpy()
    order = np.lexsort((-workers["n_votes"].to_numpy(), ~is_flagged))
    shown = workers.iloc[order[:MAX_ROWS]]
    present = [name for name in fields if name in workers]
    rows = []
    for name, row in shown.iterrows():
        cells = [_name(name), _number(row["n_votes"], f"{row['n_votes']:,.0f}")]
        for field in present:
            value = float(row[field])
            cells.append(_number(value, format_percent(value) if field in percents else format_number(value)))
        flags = row["flags"].split(", ") if row["flags"] else []
        cells.append({"text": shorten(row["why"], MAX_REASON_CHARS), "kind": "flags", "flags": flags})
        rows.append({"cells": cells, "tags": " ".join(flags), "least": int(row["n_votes"])})
    columns = [_column("Worker", "text"), _column("Votes"), *(fields[name] for name in present)]
    columns.append(_column("Flags and reasons", "text"))
    caption = describe_selection(len(shown), len(workers), "workers", "those with flags, then those with most votes")
    used = sorted({flag for flags in workers["flags"] for flag in flags.split(", ") if flag})
    return {
        "id": "workers",
        "title": "Workers",
        "text": text,
        "table": _table(caption, columns, rows) | {"filter": {"noun": "workers", "flags": used}},
    }


def _compare(votes: Comparisons | LabelSetCrowd) -> Comparison | None:
    try:
        return compare_methods(votes)
    except WisecrowdError:  # too few votes
        return None


def _methods(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    columns = [
        _column("Method", "text"),
        _column("Probability of a held-out vote", about="Geometric mean"),
        _column(
            "Difference to the best", about="Of the mean log-probability of a vote, in nats, with a " + format_level()
        ),
        _column("Seconds", about="Duration of one fit"),
    ]
    rows = []
    for name, row in comparison.table.iterrows():
        flags = ["use this"] if name == comparison.best else ["tied"] if name in comparison.tied_methods else []
        soft = {"soft": f"{row['low']:.3f} to {row['high']:.3f}"} if row["behind"] > 0 else {}
        cells = [
            {"text": str(name), "kind": "name", "flags": flags},
            _number(np.exp(row["log_likelihood"]), format_number(np.exp(row["log_likelihood"]), 3)),
            _number(row["behind"], format_number(row["behind"], 3)) | soft,
            _number(row["seconds"], format_number(row["seconds"])),
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    caption = "The best method comes first. Methods marked as tied do not differ significantly from it."
    return {
        "id": "methods",
        "title": "Comparison of methods",
        "text": f"Methods are compared by their predictions of held-out votes. {comparison.summary}",
        "table": _table(caption, columns, rows),
    }


def _findings(votes: Comparisons | LabelSetCrowd | ScoreCrowd) -> list[dict[str, str]]:
    report = check_votes(votes)
    return [
        {"severity": finding.severity.capitalize(), "text": shorten(f"{finding.message}. {finding.fix}", 4 * MAX_REASON_CHARS)}
        for finding in [*report.errors, *report.warnings]
    ]  # fmt: skip


def _provenance(
    model: Any, votes: Comparisons | LabelSetCrowd | ScoreCrowd, comparison: Comparison | None, command: str | None
) -> dict[str, Any]:
    run = record_run(model, votes)  # type: ignore[arg-type]  # it describes any votes
    names = list(dict.fromkeys([model.name, *(() if comparison is None else comparison.table.index)]))
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


def _tile(name: str, value: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "note": note}


def _percent(share: float | None) -> str:
    return "–" if share is None else format_percent(share)


def _column(text: str, kind: str = "number", about: str = "") -> dict[str, str]:
    return {"text": text, "kind": kind, "about": about}


def _name(value: Any) -> Cell:
    return {"text": display_name(value), "kind": "name", "flags": []}


def _number(value: Any, text: str) -> Cell:
    return {"kind": "number", "value": float(value), "text": text}


def _table(caption: str, columns: Iterable[dict[str, str]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"caption": caption, "columns": list(columns), "rows": rows, "filter": None}
