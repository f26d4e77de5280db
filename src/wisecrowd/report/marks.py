"""Report on boxes, points, polygons and spans."""

from __future__ import annotations

from typing import Any

import pandas as pd

from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.diagnose import MarkDiagnosis, diagnose_marks
from wisecrowd.report.mark_pictures import describe_objects, draw_frame, draw_text, select_task_marks
from wisecrowd.report.section_tables import (
    Cell,
    assemble_content,
    build_method_section,
    build_task_section,
    build_worker_section,
    compare_if_possible,
    describe_flagged_workers,
    make_column,
    make_count_tiles,
    make_number,
    make_tile,
)
from wisecrowd.report.task_media import align_with_tasks
from wisecrowd.report.thumbnails import PICTURE_SIZES, embed_thumbnails, measure_image
from wisecrowd.utils.text import count_noun, describe_selection, display_name, format_number, format_percent

#: Tasks with a picture.
MAX_PICTURES = 12
#: Length of all images on a page, in characters.
MAX_IMAGE_CHARACTERS = 4_000_000
#: Confidence outside of which an object is not disputed.
DISPUTED = (0.05, 0.95)


def build_mark_content(
    crowd: MarkCrowd,
    *,
    model: Any = None,
    compare: bool = True,
    texts: pd.Series | None = None,
    images: pd.Series | None = None,
    documents: Any = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Build the content of a report on boxes, points, polygons or spans.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    model : MarkAggregator or str, default=None
        Fitted method, or the name of one.
    compare : bool, default=True
        Whether to compare methods.
    texts : Series, default=None
        Text of each task for spans: a str if offsets count characters, a list of tokens if they count tokens.
    images : Series, default=None
        Path or bytes of the image of each task, for boxes, points and polygons.
    documents : table, default=None
        Columns task and tokens, for methods that use words.
    command : str, default=None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    diagnosis = diagnose_marks(crowd, model=model)
    figures, scores = diagnosis.overview, diagnosis.expected_scores
    methods = compare_if_possible(crowd, documents) if compare else None
    agreement = figures["agreement"]
    tiles = [
        *make_count_tiles(figures),
        make_tile("Objects", f"{figures['objects']:,}", f"of {len(diagnosis.model.object_task_):,} candidates"),
        make_tile("Expected F1", format_number(scores["f1"]), "of the chosen objects"),
        make_tile("Expected precision", format_number(scores["precision"]), "share of the chosen objects that are real"),
        make_tile("Expected recall", format_number(scores["recall"]), "of the real objects that somebody marked"),
        make_tile(
            "Agreement", "–" if agreement is None else f"{agreement:.2f}", "F1 score of two workers" + _describe_agreement(figures)
        ),
    ]  # fmt: skip
    sections = [
        _build_pictures(diagnosis, texts, images),
        _build_workers(diagnosis),
        _build_tasks(diagnosis),
        build_method_section(methods, "decision"),
    ]
    content = assemble_content(
        diagnosis, methods, command, tiles=tiles, sentences=_write_sentences(diagnosis), sections=sections
    )
    return content | {"warnings": diagnosis.model.warnings_, "has_images": images is not None}


def _describe_agreement(figures: dict[str, Any]) -> str:
    """Return the further measures of agreement, for a tile."""
    names = {
        "agreement_exact": "on equal spans {:.2f}",
        "agreement_iou50": "from an IoU of 0.5 {:.2f}",
        "mean_iou": "mean IoU {:.2f}",
        "alpha_u": "alpha for unitizing {:.2f}",
    }
    return "".join(f"; {text.format(figures[name])}" for name, text in names.items() if figures.get(name) is not None)


def _write_sentences(diagnosis: MarkDiagnosis) -> list[str]:
    figures, model, crowd = diagnosis.overview, diagnosis.model, diagnosis.crowd
    candidates = model.candidates_
    disputed = candidates["confidence"].between(*DISPUTED)
    sentences = [
        f"{count_noun(figures['objects'], 'object')} with a confidence of {_format_threshold(model.threshold_)} are chosen, "
        f"{figures['objects'] / max(figures['tasks'], 1):.2f} per task.",
        f"{int(disputed.sum()):,} of {len(candidates):,} candidates on {candidates['task'][disputed].nunique():,} tasks are "
        f"disputed: their confidence is between {DISPUTED[0]:.2f} and {DISPUTED[1]:.2f}.",
    ]
    workers = diagnosis.workers
    median = workers["detection_rate"].median()
    sentences.append(f"The median worker marks {format_percent(median)} of the objects that somebody marked.")
    if crowd.n_classes > 1:
        counts = model.objects_["label"].value_counts(normalize=True).head(4)
        named = ", ".join(f"{display_name(label)} {format_percent(share)}" for label, share in counts.items())
        sentences.append(f"The most frequent classes are {named}.")
    sentences.append("Expected figures are too high if workers make the same errors, or all overlook the same objects.")
    return sentences + describe_flagged_workers(figures)


def _format_threshold(threshold: float) -> str:
    """Return the smallest confidence of a chosen object, which is not rounded to certainty."""
    return "more than 0.99" if threshold >= 0.995 else f"{threshold:.2f} or more"


def _build_pictures(
    diagnosis: MarkDiagnosis, texts: pd.Series | None, images: pd.Series | None
) -> dict[str, Any] | None:
    """Return the section with pictures of the least certain tasks."""
    crowd, model = diagnosis.crowd, diagnosis.model
    tasks = diagnosis.tasks
    tasks = tasks[tasks["n_candidates"] > 0]
    shown = tasks.head(MAX_PICTURES)
    if not len(shown):
        return None
    notes: list[str] = []
    task_texts = [None] * len(shown) if texts is None else align_with_tasks(texts, shown.index, "text")
    task_images = [None] * len(shown) if images is None else align_with_tasks(images, shown.index, "image")
    sources: list[str | None] = [None] * len(shown)
    if images is not None:
        thumbnails = embed_thumbnails(task_images, MAX_IMAGE_CHARACTERS, sizes=PICTURE_SIZES)
        sources, notes = thumbnails.sources, thumbnails.notes
    pictures, candidates = [], model.candidates_
    for position, (task, row) in enumerate(shown.iterrows()):
        marks = select_task_marks(crowd, model, task, candidates)
        if isinstance(crowd, SpanCrowd):
            picture = draw_text(marks, task_texts[position])
        else:
            source = sources[position]
            picture = draw_frame(marks, None if source is None else measure_image(task_images[position]), source)
        n_candidates = count_noun(int(row["n_candidates"]), "candidate")
        n_chosen, n_votes = count_noun(int(row["n_objects"]), "object"), count_noun(int(row["n_votes"]), "vote")
        picture |= {
            "task": display_name(task),
            "note": f"expected F1 {row['expected_f1']:.2f}, {n_chosen} of {n_candidates}, {n_votes}",
            "objects": describe_objects(marks, task_texts[position]),
        }
        pictures.append(picture)
    text = (
        "The least certain tasks, with the marks of every worker in a colour of its own. Objects are listed by number, the least "
        "certain first."
    )
    caption = describe_selection(len(shown), len(tasks), "tasks", "those with the lowest expected F1 score")
    return {
        "id": "disputed",
        "title": "Disputed objects" if candidates["confidence"].between(*DISPUTED).any() else "Least certain tasks",
        "text": " ".join([text, caption, *notes]),
        "pictures": pictures,
    }


def _build_workers(diagnosis: MarkDiagnosis) -> dict[str, Any]:
    fields = {
        "marks_per_vote": make_column("Marks per vote"),
        "agreement": make_column("Agreement", about="Pairwise F1 score with the other workers on the same tasks"),
        "detection_rate": make_column("Detects", about="Share of the real objects that somebody marked"),
        "false_alarms": make_column("False alarms", about="Expected number of false marks per task"),
        "boundary_error": make_column(
            "Edges off", about="Relative to the size of objects; for spans, the probability of a wrong start or end"
        ),
        "size_ratio": make_column("Size", about="Of marks relative to the objects"),
        "shift_x": make_column("Shift right", about="Of the centre, relative to the object; in pixels for points"),
        "shift_y": make_column("Shift down", about="Of the centre, relative to the object; in pixels for points"),
        "shift": make_column("Shift", about="Of the centre towards the end, in tokens or characters"),
        "splits": make_column("Splits", about="Objects that the worker marked in several parts"),
        "merges": make_column("Merges", about="Marks that cover several objects"),
        "accuracy": make_column("Class right", about="Share of detected objects with the right class"),
        "confuses": make_column("Most frequent confusion", "text"),
    }
    text = (
        "Flags name workers who miss objects, mark what is not there, draw too large, too small, shifted or roughly, split or "
        "merge objects, or confuse classes."
    )
    return build_worker_section(diagnosis.workers, fields, ("detection_rate", "size_ratio", "accuracy"), text)


def _build_tasks(diagnosis: MarkDiagnosis) -> dict[str, Any]:
    columns = [
        make_column("Expected F1", about="Of the chosen objects of the task"),
        make_column("Objects", about="Chosen objects"),
        make_column("Candidates", about="Objects that somebody marked"),
        make_column("Votes", about="Workers who saw the task"),
    ]

    def make_cells(row: pd.Series) -> list[Cell]:
        return [
            make_number(row["expected_f1"], format_number(row["expected_f1"])) | {"bar": float(row["expected_f1"])},
            *(make_number(row[key], f"{row[key]:,.0f}") for key in ("n_objects", "n_candidates", "n_votes")),
        ]

    return build_task_section(diagnosis.tasks, columns, make_cells, "All tasks, the least certain first.")
