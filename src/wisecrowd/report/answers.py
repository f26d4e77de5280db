"""Report on comparisons, label sets and scores of judges: sections of tables, rendered by ``answers.html``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

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
from wisecrowd.report.section_tables import (
    MAX_ROWS,
    build_method_section,
    build_worker_section,
    compare_if_possible,
    describe_provenance,
    format_share,
    list_findings,
    make_column,
    make_name,
    make_number,
    make_table,
    make_tile,
)
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import (
    MAX_REASON_CHARS,
    count_noun,
    describe_selection,
    display_name,
    format_number,
    format_percent,
    shorten,
)

#: Comparisons that the page recommends.
PLANNED = 8
#: Labels of a task named as uncertain, and the probability from which on a decision is certain.
SHOWN_LABELS, CERTAIN = 3, 0.95


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
    methods = compare_if_possible(comparisons) if compare else None
    alpha = figures["krippendorff_alpha"]
    tiles = [
        make_tile("Comparisons", f"{figures['comparisons']:,}", f"of {figures['pairs']:,} pairs"),
        make_tile("Items", f"{figures['items']:,}", f"in {figures['components']:,} group" + "s" * (figures["components"] > 1)),
        make_tile("Workers", f"{figures['workers']:,}" if figures["workers"] else "–", f"{figures['flagged_workers']:,} flagged"),
        make_tile("Agreement", "–" if alpha is None else f"{alpha:.2f}", "Krippendorff’s alpha on pairs compared several times"),
        make_tile(
            "Ties", format_percent(figures["tie_share"]), f"left item wins {format_share(figures['left_share'])} of the rest"
        ),
    ]  # fmt: skip
    sections = [_ranking(diagnosis), _next_comparisons(diagnosis)]
    if len(diagnosis.workers):
        sections.append(_comparison_workers(diagnosis))
    return {
        "tiles": tiles,
        "sentences": _comparison_sentences(diagnosis),
        "findings": list_findings(comparisons),
        "sections": [section for section in [*sections, build_method_section(methods)] if section is not None],
        "provenance": describe_provenance(diagnosis.model, comparisons, methods, command),
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
    methods = compare_if_possible(crowd) if compare else None
    masi = figures["alpha_masi"]
    reach = (
        ""
        if masi is None
        else f"{format_level()} {figures['alpha_masi_low']:.2f} to {figures['alpha_masi_high']:.2f}; "
    )
    tiles = [
        make_tile("Tasks", f"{figures['tasks']:,}", f"{figures['votes'] / max(figures['tasks'], 1):.1f} votes each"),
        make_tile("Workers", f"{figures['workers']:,}", f"{figures['flagged_workers']:,} flagged"),
        make_tile(
            "Labels", f"{figures['labels']:,}", f"{figures['labels_per_vote']:.2f} in a set; {figures['empty_sets']:.0%} empty"
        ),
        make_tile("Agreement", "–" if masi is None else f"{masi:.2f}", f"{reach}Krippendorff’s alpha, MASI distance"),
        make_tile("Expected F1", f"{figures['expected_f1']:.2f}", "of the chosen labels"),
        make_tile("Whole sets", f"{figures['mean_confidence']:.2f}", "mean probability that all labels of a task are right"),
    ]  # fmt: skip
    sections = [_labels(diagnosis), _set_tasks(diagnosis), _set_workers(diagnosis), build_method_section(methods)]
    return {
        "tiles": tiles,
        "sentences": _label_set_sentences(diagnosis),
        "findings": list_findings(crowd),
        "sections": [section for section in sections if section is not None],
        "provenance": describe_provenance(diagnosis.model, crowd, methods, command),
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
    columns = [
        make_column("Rank"),
        make_column("Item", "text"),
        make_column("Score", about="In logits; the mean is zero"),
    ]
    if has_intervals:
        columns.append(make_column("Ranks left open", about="Ranks that the comparisons do not exclude"))
    columns += [make_column("Wins"), make_column("Losses"), make_column("Ties")]
    with_groups = items["component"].max() > 0
    columns += [make_column("Group", about="Items of different groups were never compared")] if with_groups else []
    rows = []
    for name, row in shown.iterrows():
        cells = [make_number(row["rank"], f"{row['rank']:.0f}"), make_name(name)]
        score = make_number(row["score"], format_number(row["score"]))
        if has_intervals:
            ends = {
                key: float((row[column] - low) / span)
                for key, column in (("low", "lower"), ("high", "upper"), ("middle", "score"))
            }
            score |= {"interval": ends, "soft": f"{format_number(row['lower'])} to {format_number(row['upper'])}"}
        cells.append(score)
        if has_intervals:
            cells.append(make_number(row["rank_low"], f"{row['rank_low']:.0f}–{row['rank_high']:.0f}"))
        cells += [make_number(row[key], f"{row[key]:,.6g}") for key in ("wins", "losses", "ties")]
        cells += [make_number(row["component"], f"{row['component'] + 1:.0f}")] if with_groups else []
        rows.append({"cells": cells, "tags": "", "least": 0})
    text = f"Scores by {diagnosis.model.name}."
    if has_intervals:
        text += f" Intervals: {format_level(diagnosis.model.level)}."
    caption = describe_selection(len(shown), len(items), "items", "those with the highest scores")
    return {"id": "ranking", "title": "Ranking", "text": text, "table": make_table(caption, columns, rows)}


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
            *map(make_name, pair),
            make_number(wins, format_percent(wins)),
            make_number(first.count(pair), f"{first.count(pair)}"),
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    columns = [
        make_column("Item", "text"),
        make_column("Other item", "text"),
        make_column("First wins", about="Probability that the first item wins, ties split"),
        make_column("Times", about="How often to compare the pair"),
    ]
    text = f"The next {PLANNED} comparisons that tell most about the scores. wisecrowd.plan_comparisons plans more, with workers."
    table = make_table("Most informative first.", columns, rows)
    return {"id": "next", "title": "What to compare next", "text": text, "table": table}


def _comparison_workers(diagnosis: ComparisonDiagnosis) -> dict[str, Any]:
    fields = {
        "left_share": make_column("Left", about="Share of decided comparisons that the left item won"),
        "tie_share": make_column("Ties", about="Share of ties"),
        "follows_scores": make_column(
            "With the scores", about="Share of decided comparisons that the higher score won"
        ),
        "expected": make_column("Expected", about="The same share for a worker who follows the scores"),
        "discrimination": make_column("Discrimination", about="1 is an average worker; 0 answers at random"),
        "lean": make_column("Lean", about="Preference for the left (+) or right (−) side, in logits"),
        "reliability": make_column("Reliability", about="Probability of reporting the better item"),
    }
    percents = ("left_share", "tie_share", "follows_scores", "expected")
    text = "Flags name workers who nearly always choose one side or a tie, and those who contradict the scores."
    return build_worker_section(diagnosis.workers, fields, percents, text)


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
        make_column("Label", "text"),
        make_column("In sets", about="Share of the votes that contain the label"),
        make_column("Chosen", about="Share of the tasks for which the label is chosen"),
        make_column("Agreement", about="Krippendorff’s alpha of the yes/no question whether the label applies"),
        make_column("Confidence", about="Mean probability that the decision about the label is right"),
        make_column("Uncertain tasks", about="Tasks on which this probability is below 0.8"),
    ]
    rows = [
        {
            "cells": [
                make_name(name),
                make_number(row["marked"], format_percent(row["marked"])),
                make_number(row["chosen"], format_percent(row["chosen"])) | {"bar": float(row["chosen"])},
                make_number(row["alpha"], format_number(row["alpha"])),
                make_number(row["confidence"], format_number(row["confidence"], 3)),
                make_number(row["uncertain"], f"{row['uncertain']:,.0f}"),
            ],
            "tags": "",
            "least": 0,
        }
        for name, row in labels.head(MAX_ROWS).iterrows()
    ]
    caption = describe_selection(len(rows), len(labels), "labels", "the most frequent ones")
    text = "Agreement and confidence of every label."
    return {"id": "labels", "title": "Labels", "text": text, "table": make_table(caption, columns, rows)}


def _set_tasks(diagnosis: LabelSetDiagnosis) -> dict[str, Any]:
    tasks = diagnosis.tasks
    shown = tasks.head(MAX_ROWS)
    probs, names = diagnosis.model.label_probs_, diagnosis.model.label_index_
    position = diagnosis.model.task_index_.get_indexer(shown.index)
    columns = [
        make_column("Task", "text"),
        make_column("Labels", "text"),
        make_column("Confidence", about="Probability that all labels of the task are right"),
        make_column("Expected F1"),
        make_column("Votes"),
        make_column("Least certain labels", "text", about="Probability that the label applies"),
    ]
    rows = []
    for code, (name, row) in zip(position, shown.iterrows(), strict=True):
        doubt = np.abs(probs[code] - diagnosis.model.threshold_)
        nearest = [
            label for label in np.argsort(doubt, kind="stable")[:SHOWN_LABELS] if 0.05 < probs[code, label] < CERTAIN
        ]
        uncertain = ", ".join(f"{display_name(names[label])} {format_percent(probs[code, label])}" for label in nearest)
        cells = [
            make_name(name),
            {"text": ", ".join(map(display_name, row["labels"])) or "∅", "kind": "text"},
            make_number(row["confidence"], format_number(row["confidence"])) | {"bar": float(row["confidence"])},
            make_number(row["expected_f1"], format_number(row["expected_f1"])),
            make_number(row["n_votes"], f"{row['n_votes']:,}"),
            {"text": shorten(uncertain, MAX_REASON_CHARS) or "–", "kind": "text"},
        ]
        rows.append({"cells": cells, "tags": "", "least": 0})
    caption = describe_selection(len(shown), len(tasks), "tasks", "those with the least certain sets")
    text = "The chosen labels of every task, the least certain sets first."
    return {"id": "tasks", "title": "Tasks", "text": text, "table": make_table(caption, columns, rows)}


def _set_workers(diagnosis: LabelSetDiagnosis) -> dict[str, Any]:
    fields = {
        "labels_per_vote": make_column("Labels per vote"),
        "agreement": make_column("Agreement", about="Mean similarity (MASI) to the sets of others on the same tasks"),
        "hit_rate": make_column("Hits", about="Share of the labels that apply which the worker marks"),
        "false_alarm_rate": make_column(
            "False alarms", about="Share of the labels that do not apply which the worker marks"
        ),
    }
    text = "Flags name workers who mark nothing, always the same labels, or labels that do not depend on the truth."
    return build_worker_section(diagnosis.workers, fields, ("hit_rate", "false_alarm_rate"), text)


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
        make_tile("Scores", f"{figures['scores']:,}", f"of {figures['tasks']:,} tasks"),
        make_tile("Judges", f"{figures['judges']:,}", f"{figures['flagged_judges']:,} flagged"),
        make_tile("Effective judges", f"{figures['n_effective']:.1f}", "independent judges with the same information"),
        make_tile("People", f"{figures['people']:,}" if figures["people"] else "–", "who label tasks independently"),
        make_tile("Reference", f"{figures['reference_tasks']:,}", f"tasks, by {source}"),
    ]
    sections = [_judge_section(diagnosis, source), _curve_section(diagnosis), _drift_section(diagnosis)]
    return {
        "tiles": tiles,
        "sentences": diagnosis.verdict,
        "findings": list_findings(scores),
        "sections": [section for section in sections if section is not None],
        "provenance": describe_provenance(diagnosis.model, scores, None, command),
    }


def _judge_section(diagnosis: JudgeDiagnosis, source: str) -> dict[str, Any]:
    fields = {
        "accuracy": make_column("Accuracy", about="After every score was turned into the class that it stands for"),
        "kappa": make_column("Kappa", about="Agreement beyond chance: 0 is chance, 1 is perfect"),
        "kappa_people": make_column("Kappa with people", about="Agreement beyond chance with votes of people"),
        "kappa_ceiling": make_column("One person with others", about="Kappa of a person with the other people"),
        "severity": make_column(
            "Severity", about="Distance of scores below the truth, as a share of the judge’s scale"
        ),
        "consistency": make_column("Consistency", about="Intraclass correlation of repeated scores on a task"),
        "length_bias": make_column("Length bias", about="Rank correlation of score and length, given the true class"),
        "shared": make_column("Shared errors", about="Share of its errors that the other judges explain"),
    }
    table = diagnosis.judges.rename(columns={"n_scores": "n_votes"})
    table = table[[name for name in table if name not in fields or table[name].notna().any()]]
    text = f"Every judge is compared with {source}. Severity, length and repeats concern the scores as they are."
    section = build_worker_section(table, fields, ("accuracy", "shared", "severity"), text)
    return section | {"id": "judges", "title": "Judges"}


def _curve_section(diagnosis: JudgeDiagnosis) -> dict[str, Any]:
    curves = diagnosis.curves
    shown: Any = curves.head(MAX_ROWS).itertuples()
    highest = display_name(diagnosis.model.classes_[-1])
    columns = [
        make_column("Judge", "text"),
        make_column("Score", about="Mean score of the bin"),
        make_column("Scores", about="Number of scores"),
        make_column(f"Share of {highest}", about="Share of tasks of this class, with its standard error"),
    ]
    rows = [
        {
            "cells": [
                make_name(row.worker),
                make_number(row.score, format_number(row.score)),
                make_number(row.n_scores, f"{row.n_scores:,.0f}"),
                make_number(row.share, format_percent(row.share))
                | {"bar": float(row.share), "soft": f"± {row.error:.0%}"},
            ],
            "tags": "",
            "least": int(row.n_scores),
        }
        for row in shown
    ]
    caption = describe_selection(len(rows), len(curves), "bins of scores", "those of the first judges")
    text = f"What a score of each judge means: how often tasks with this score are {highest}."
    return {"id": "curves", "title": "Calibration curves", "text": text, "table": make_table(caption, columns, rows)}


def _drift_section(diagnosis: JudgeDiagnosis) -> dict[str, Any] | None:
    drift = diagnosis.drift
    if not len(drift):
        return None
    columns = [
        make_column("Judge", "text"),
        make_column("Versions", "text"),
        make_column("Tasks", about="Tasks that both versions scored"),
        make_column("Shift", about="Change of the mean score, with its standard error"),
        make_column("Rank correlation"),
        make_column("Labels changed"),
        make_column("Kappa", about="Change of the agreement beyond chance, with its standard error"),
    ]
    rows = []
    shown: Any = drift.head(MAX_ROWS).itertuples()
    for row in shown:
        flags = ["changed"] if row.significant else []
        cells = [
            make_name(row.judge) | {"flags": flags},
            {"text": f"{display_name(row.before)} → {display_name(row.after)}", "kind": "text"},
            make_number(row.n_tasks, f"{row.n_tasks:,}"),
            make_number(row.shift, f"{row.shift:+.2f}") | {"soft": f"± {row.shift_error:.2f}"},
            make_number(row.rank_correlation, format_number(row.rank_correlation)),
            make_number(row.changed, format_percent(row.changed)),
            make_number(row.kappa_change, f"{row.kappa_change:+.2f}") | {"soft": f"± {row.kappa_error:.2f}"},
        ]
        rows.append({"cells": cells, "tags": " ".join(flags), "least": int(row.n_tasks)})
    text = (
        "Successive versions of a judge on the same tasks. A change is marked if it exceeds twice its standard error."
    )
    return {"id": "drift", "title": "Versions", "text": text, "table": make_table("All versions.", columns, rows)}
