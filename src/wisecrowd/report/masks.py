"""Report on masks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from wisecrowd.data.masks import MaskCrowd
from wisecrowd.diagnose import MaskDiagnosis, diagnose_masks
from wisecrowd.report.mask_pictures import draw_masks
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
from wisecrowd.report.thumbnails import PICTURE_SIZES, embed_thumbnails
from wisecrowd.utils.text import count_noun, describe_selection, display_name, format_number

#: Tasks with a picture.
MAX_PICTURES = 12
#: Length of all images on a page, in characters.
MAX_IMAGE_CHARACTERS = 4_000_000
#: Expected intersection over union below which a mask is disputed.
DISPUTED = 0.9


def build_mask_content(
    crowd: MaskCrowd,
    *,
    model: Any = None,
    compare: bool = True,
    images: pd.Series | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Build the content of a report on masks.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    model : MaskAggregator or str, default=None
        Fitted method, or the name of one.
    compare : bool, default=True
        Whether to compare methods.
    images : Series, default=None
        Path or bytes of the image of each task.
    command : str, default=None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    diagnosis = diagnose_masks(crowd, model=model)
    figures = diagnosis.overview
    methods = compare_if_possible(crowd) if compare else None
    agreement = figures["agreement"]
    overlap = "" if agreement is None else f"; intersection over union {figures['pairwise_iou']:.2f}"
    tiles = [
        *make_count_tiles(figures),
        make_tile("Expected IoU", format_number(figures["mean_confidence"]), "intersection over union of results and truth"),
        make_tile("Expected Dice", format_number(figures["expected_dice"]), "Dice coefficient of results and truth"),
        make_tile("Sensitivity", format_number(figures["sensitivity"]), "of the median worker"),
        make_tile("Specificity", format_number(figures["specificity"]), "of the median worker"),
        make_tile(
            "Agreement", "–" if agreement is None else f"{agreement:.2f}", f"Dice coefficient of two workers{overlap}"
        ),
    ]  # fmt: skip
    sections = [
        _build_pictures(diagnosis, images),
        _build_workers(diagnosis),
        _build_tasks(diagnosis),
        build_method_section(methods, "pixel"),
    ]
    content = assemble_content(
        diagnosis, methods, command, tiles=tiles, sentences=_write_sentences(diagnosis), sections=sections
    )
    return content | {"has_images": images is not None}


def _write_sentences(diagnosis: MaskDiagnosis) -> list[str]:
    figures, tasks = diagnosis.overview, diagnosis.tasks
    n_disputed = int((tasks["confidence"] < DISPUTED).sum())
    sentences = [
        f"{n_disputed:,} of {len(tasks):,} masks are disputed: their expected intersection over union with the truth is below "
        f"{DISPUTED:.2f}.",
        f"{int((tasks['area'] == 0).sum()):,} results and {figures['empty_votes']:.0%} of the votes have no pixels.",
        "Expected figures are too high if workers make the same errors, or if they disagree mostly about boundaries.",
    ]
    return sentences + describe_flagged_workers(figures)


def _build_pictures(diagnosis: MaskDiagnosis, images: pd.Series | None) -> dict[str, Any] | None:
    """Return the section with pictures of the least certain tasks."""
    crowd, tasks = diagnosis.crowd, diagnosis.tasks
    tasks = tasks[tasks["n_votes"] > 0]
    shown = tasks.head(MAX_PICTURES)
    if not len(shown):
        return None
    notes: list[str] = []
    sources: list[str | None] = [None] * len(shown)
    if images is not None:
        thumbnails = embed_thumbnails(
            align_with_tasks(images, shown.index, "image"), MAX_IMAGE_CHARACTERS, sizes=PICTURE_SIZES
        )
        sources, notes = thumbnails.sources, thumbnails.notes
    pictures = []
    for source, (task, row) in zip(sources, shown.iterrows(), strict=True):
        n_votes = count_noun(int(row["n_votes"]), "vote")
        agreement = "" if pd.isna(row["agreement"]) else f", Dice coefficient of two workers {row['agreement']:.2f}"
        pictures.append(
            draw_masks(crowd, diagnosis.model, task, source)
            | {"task": display_name(task), "note": f"expected IoU {row['confidence']:.2f}{agreement}, {n_votes}"}
        )
    text = (
        "The least certain tasks, with the mask of every worker in a colour of its own, and its intersection over union (IoU) with "
        "the result."
    )
    caption = describe_selection(len(shown), len(tasks), "tasks", "those with the lowest expected IoU")
    return {
        "id": "disputed",
        "title": "Disputed masks",
        "text": " ".join([text, caption, *notes]),
        "pictures": pictures,
    }


def _build_workers(diagnosis: MaskDiagnosis) -> dict[str, Any]:
    fields = {
        "agreement": make_column("Agreement", about="Mean Dice coefficient with the other workers' masks of the same tasks"),
        "pairwise_iou": make_column("Pairwise IoU", about="Mean intersection over union with these masks"),
        "iou": make_column("IoU", about="Mean intersection over union with the results"),
        "sensitivity": make_column("Sensitivity", about="Share of the true pixels that the worker marks"),
        "specificity": make_column("Specificity", about="Share of the other pixels near the mask that the worker leaves out"),
        "area_ratio": make_column("Area", about="Median area relative to the results"),
        "empty_share": make_column("Empty", about="Masks without pixels, where the result has some"),
    }  # fmt: skip
    text = "Flags name workers who mark nothing, the background, something else, too little or too much, or whose masks are rough."
    return build_worker_section(diagnosis.workers, fields, ("area_ratio", "empty_share"), text)


def _build_tasks(diagnosis: MaskDiagnosis) -> dict[str, Any]:
    columns = [
        make_column("Expected IoU", about="Intersection over union of the result and the truth"),
        make_column("Expected Dice", about="Dice coefficient of the result and the truth"),
        make_column("Agreement", about="Mean Dice coefficient of two workers"),
        make_column("Pixels", about="Area of the result"),
        make_column("Votes"),
    ]

    def make_cells(row: pd.Series) -> list[Cell]:
        return [
            make_number(row["confidence"], format_number(row["confidence"])) | {"bar": float(row["confidence"])},
            *(make_number(row[key], format_number(row[key])) for key in ("expected_dice", "agreement")),
            *(make_number(row[key], f"{row[key]:,.0f}") for key in ("area", "n_votes")),
        ]

    return build_task_section(diagnosis.tasks, columns, make_cells, "All tasks, the least certain first.")
