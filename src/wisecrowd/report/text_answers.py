"""Report on texts, such as transcriptions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from wisecrowd.base.mark_aggregator import MIN_RELIABLE_CANDIDATES
from wisecrowd.data.texts import TextCrowd
from wisecrowd.diagnose import TextDiagnosis, diagnose_texts
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
from wisecrowd.report.text_slots import build_slots
from wisecrowd.utils.text import count_noun, describe_selection, display_name, format_number, format_percent, shorten

#: Tasks whose texts are shown side by side.
MAX_PICTURES = 12
#: Length of a text in the table of tasks.
MAX_TEXT = 300
#: Probability from which on a text is certain.
CERTAIN = 0.95
#: Number of words below which workers cannot be rated, as the number of candidate objects below which they cannot.
MIN_RELIABLE_WORDS = MIN_RELIABLE_CANDIDATES


def build_text_content(
    crowd: TextCrowd, *, model: Any = None, compare: bool = True, command: str | None = None
) -> dict[str, Any]:
    """Build the content of a report on texts.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    model : TextAggregator or str, default=None
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
    diagnosis = diagnose_texts(crowd, model=model)
    figures, unit = diagnosis.overview, diagnosis.model.unit
    methods = compare_if_possible(crowd) if compare else None
    wer = figures["pairwise_wer"]
    tiles = [
        *make_count_tiles(figures, "texts"),
        make_tile(f"Right {unit}", format_number(figures["token_confidence"]), "expected share, if errors are independent"),
        make_tile("Right texts", format_number(figures["mean_confidence"]), "mean probability that a whole text is right"),
        make_tile(
            "Pairwise WER", "–" if wer is None else f"{wer:.2f}",
            "" if wer is None else f"word error rate of two workers; of characters {figures['pairwise_cer']:.2f}",
        ),
    ]  # fmt: skip
    sections = [
        _build_alignments(diagnosis),
        _build_workers(diagnosis),
        _build_tasks(diagnosis),
        build_method_section(methods, "word"),
    ]
    content = assemble_content(
        diagnosis, methods, command, tiles=tiles, sentences=_write_sentences(diagnosis), sections=sections
    )
    return content | {"warnings": _warn_few_words(diagnosis)}


def _warn_few_words(diagnosis: TextDiagnosis) -> list[str]:
    """Return a warning if the words are too few to estimate how reliable workers are, as for few candidate objects."""
    n_words = sum(len(str(text).split()) for text in diagnosis.tasks["text"])
    if n_words >= MIN_RELIABLE_WORDS:
        return []
    return [
        f"There are only {count_noun(n_words, 'word')} in {count_noun(len(diagnosis.tasks), 'text')}, too few to estimate how "
        "reliable workers are. Expected shares and probabilities are not reliable; check the texts yourself."
    ]


def _write_sentences(diagnosis: TextDiagnosis) -> list[str]:
    figures, model = diagnosis.overview, diagnosis.model
    n_certain = int((model.confidence_ >= CERTAIN).sum())
    sentences = [
        f"Texts are compared by {model.unit} after normalisation {model.normalisation!r}.",
        f"{n_certain:,} of {figures['tasks']:,} texts are right with a probability of {CERTAIN:.0%} or more.",
    ]
    if figures["identical_pairs"] is not None:
        sentences.append(f"{format_percent(figures['identical_pairs'])} of the pairs of workers wrote the same text.")
    return sentences + describe_flagged_workers(figures)


def _build_alignments(diagnosis: TextDiagnosis) -> dict[str, Any]:
    tasks = diagnosis.tasks
    shown = tasks.head(MAX_PICTURES)
    pictures = []
    for task, row in shown.iterrows():
        note = f"{format_percent(row['token_confidence'])} of the {diagnosis.model.unit} are expected to be right, "
        pictures.append(
            build_slots(diagnosis.crowd, diagnosis.model, task)
            | {"task": display_name(task), "note": note + count_noun(int(row["n_votes"]), "text"), "objects": []}
        )
    text = "The least certain texts. Each column is a word of the result; other, missing (—) and additional words are marked."
    caption = describe_selection(len(shown), len(tasks), "tasks", "the least certain ones")
    return {"id": "disputed", "title": "Disputed texts", "text": f"{text} {caption}", "pictures": pictures}


def _build_workers(diagnosis: TextDiagnosis) -> dict[str, Any]:
    fields = {
        "accuracy": make_column("Accuracy", about="Share of right words, as the method estimates it"),
        "agreement": make_column("Agreement", about="1 minus the mean distance to the texts of others"),
        "wer": make_column("WER", about="Word error rate against the inferred texts"),
        "cer": make_column("CER", about="Character error rate against the inferred texts"),
        "replaced": make_column("Replaced", about="Words that differ, per word of the inferred texts"),
        "omitted": make_column("Omitted", about="Missing words, per word of the inferred texts"),
        "added": make_column("Added", about="Additional words, per word of the inferred texts"),
    }
    text = (
        "Flags name workers with many errors, who leave out or add words, and who give empty or always the same texts."
    )
    return build_worker_section(diagnosis.workers, fields, ("accuracy", "replaced", "omitted", "added"), text)


def _build_tasks(diagnosis: TextDiagnosis) -> dict[str, Any]:
    columns = [
        make_column("Text", "text"),
        make_column("Right words", about="Expected share"),
        make_column("Right text", about="Probability that the whole text is right"),
        make_column("Disagreement", about="Mean distance of two texts, between 0 and 1"),
        make_column("Votes"),
    ]

    def make_cells(row: pd.Series) -> list[Cell]:
        return [
            {"text": shorten(str(row["text"]), MAX_TEXT) or "∅", "kind": "text"},
            make_number(row["token_confidence"], format_number(row["token_confidence"])) | {"bar": float(row["token_confidence"])},
            make_number(row["confidence"], format_number(row["confidence"])),
            make_number(row["disagreement"], format_number(row["disagreement"])),
            make_number(row["n_votes"], f"{row['n_votes']:,}"),
        ]  # fmt: skip

    return build_task_section(diagnosis.tasks, columns, make_cells, "The text of every task, the least certain first.")
