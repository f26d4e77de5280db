"""HTML report on a crowd: workers, tasks, classes, methods and recommended next steps, in one self-contained page."""

from __future__ import annotations

import html as html_text
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.utils.files import write_text
from wisecrowd.utils.notebook import render_frame
from wisecrowd.utils.progress import report as report_progress

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.label_set_aggregator import LabelSetAggregator
    from wisecrowd.base.pairwise_aggregator import PairwiseAggregator
    from wisecrowd.em.confusion import ConfusionEM

__all__ = ["Report", "ReportHead", "build", "is_report", "read_head"]

#: Mark near the beginning of a file by which a report is recognised; other pages of wisecrowd have another last word.
_GENERATOR_MARK = re.compile(r'<meta name="generator" content="wisecrowd [^"]* report">')
_VOTES_MARK = re.compile(r'<meta name="wisecrowd-votes" content="([^"]*)">')
_QUESTION_MARK = re.compile(r'<meta name="wisecrowd-question" content="([^"]*)">')
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
#: Bytes at the beginning of a file in which the marks and the title are.
_HEAD_BYTES = 8192
#: Largest size of a page with images, so that it can be sent by e-mail.
MAX_PAGE_BYTES = 6_000_000
#: Maximum length of the title.
MAX_TITLE_CHARACTERS = 200
#: Steps of the progress bar, with their shares of the time in percent.
_STEPS = {"inferring labels": 10, "workers": 35, "tasks": 25, "methods": 20, "writing the page": 10}


class ReportHead(NamedTuple):
    """Facts in the head of a report.

    Parameters
    ----------
    title : str
        Title of the page.
    votes_digest : str
        SHA-256 of the votes; empty on pages that do not have it.
    question : str
        Name of the question that the votes answer; empty if it is unknown.
    """

    title: str
    votes_digest: str
    question: str = ""


@dataclass(frozen=True)
class Report:
    """A finished page in one file, which needs no network.

    Attributes
    ----------
    html : str
        HTML of the page.
    warnings : tuple of str
        Reasons not to trust the labels, which the page shows at its top.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> page = build(simulate_crowd(n_tasks=30, n_workers=5).crowd, compare=False)
    >>> page.html.startswith("<!doctype html>")
    True
    """

    html: str = field(repr=False)
    warnings: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return render_frame(self.html)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page. The file appears complete or not at all.

        Parameters
        ----------
        path : path-like
            File to write.

        Returns
        -------
        pathlib.Path
            Path of the file.

        Examples
        --------
        >>> from wisecrowd import simulate_crowd
        >>> page = build(simulate_crowd(n_tasks=30, n_workers=5).crowd, compare=False)
        >>> is_report(page.save("report.html"))
        True
        """
        write_text(path, self.html)
        return Path(path)


def is_report(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a report and may be overwritten.

    Parameters
    ----------
    path : path-like
        File to check.

    Returns
    -------
    bool
        Whether wisecrowd wrote the file.

    Examples
    --------
    >>> _ = Path("letter.html").write_text("<!doctype html><p>Dear all</p>")
    >>> is_report("letter.html")
    False
    """
    return read_head(path) is not None


def read_head(path: str | os.PathLike[str]) -> ReportHead | None:
    """Read the title of a report and the digest of its votes.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    ReportHead or None
        None if the file is not a report.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> crowd = simulate_crowd(n_tasks=30, n_workers=5).crowd
    >>> head = read_head(build(crowd, title="Cats & dogs", compare=False).save("report.html"))
    >>> head.title, head.votes_digest == crowd.digest
    ('Cats & dogs', True)
    """
    with Path(path).open("rb") as file:
        text = file.read(_HEAD_BYTES).decode(errors="replace")
    if not _GENERATOR_MARK.search(text):
        return None
    title, digest, question = (
        "" if mark is None else html_text.unescape(mark[1]).strip()
        for mark in (pattern.search(text) for pattern in (_TITLE, _VOTES_MARK, _QUESTION_MARK))
    )
    return ReportHead(title, digest, question)


def build(
    crowd: CrowdLike | Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | ScoreCrowd | TextCrowd,
    *,
    gold: TruthLike | None = None,
    truth: TruthLike | None = None,
    X: FeaturesLike | None = None,
    texts: pd.Series | Mapping[Any, str] | None = None,
    images: pd.Series | Mapping[Any, Any] | str | os.PathLike[str] | None = None,
    links: pd.Series | Mapping[Any, str] | None = None,
    title: str | None = None,
    question: str | None = None,
    compare: bool = True,
    model: ConfusionEM | PairwiseAggregator | LabelSetAggregator | str | None = None,
    scores: pd.DataFrame | None = None,
    command: str | None = None,
) -> Report:
    """Build the report on a crowd.

    The page of a large crowd shows a selection of workers, tasks and classes, and states how many were left out.

    Parameters
    ----------
    crowd : Crowd, Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, ScoreCrowd, TextCrowd or DataFrame
        Votes. The page of comparisons has the ranking, that of label sets the agreement and confidence of labels and sets; they
        take no gold, truth, features, texts, images and scores. The page of objects or masks has pictures of disputed
        ones over ``images`` or ``texts``, that of texts has disputed texts side by side. The page of scores diagnoses the
        judges; it takes gold, truth and texts, whose length is compared with the scores.
    gold : mapping or Series, default=None
        True classes of some tasks that the labels are fitted with. A fitted ``model`` must have been fitted with them.
    truth : mapping or Series, default=None
        True classes of some tasks. They are compared with the inferred labels; nothing else on the page uses them.
    X : array-like or DataFrame, default=None
        Features of the tasks. They show which tasks have labels that do not fit, and let learners take part in the comparison.
    texts : mapping or Series, default=None
        Text of each task. For spans whose offsets count tokens, a list of tokens.
    images : mapping, Series or path-like, default=None
        Images of the tasks: paths or bytes by task, or a folder or table for `wisecrowd.report.images.read_images`. The page
        contains thumbnails, scaled so that it stays below six megabytes.
    links : mapping or Series, default=None
        Web address of each task (http or https), to which its id on the page links.
    title : str, default=None
        Title of the page.
    question : str, default=None
        Name of the question that the votes answer, for the summary.
    compare : bool, default=True
        Whether to compare methods.
    model : ConfusionEM or str, default=None
        Fitted method with confusion matrices, or the name of one, for labels and workers. By default labels are those of
        ``wisecrowd aggregate``, and workers are rated by Dawid–Skene. A fitted `Panel` adds a section about judges.
    scores : DataFrame, default=None
        Scores of judges in the columns task, worker, label and score; the report compares them with the accuracy.
    command : str, default=None
        Command line that builds the same page.

    Returns
    -------
    Report
        Page.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulated = simulate_crowd(n_tasks=60, workers=["expert"] * 6 + ["spammer"], votes_per_task=4)
    >>> page = build(simulated.crowd, truth=simulated.truth, compare=False)
    >>> "Recommended next steps" in page.html
    True
    """
    from wisecrowd.diagnose import diagnose_crowd
    from wisecrowd.report import agreement, classes, groups, judges, methods, provenance, tasks, worker_map, workers
    from wisecrowd.report.gold import match_gold
    from wisecrowd.report.images import read_images
    from wisecrowd.report.notes import collect_warnings
    from wisecrowd.report.page import load_templates, render_report
    from wisecrowd.report.summary import ReportSummary
    from wisecrowd.report.task_media import as_task_series
    from wisecrowd.utils.levels import format_level
    from wisecrowd.utils.text import MAX_REASON_CHARS, shorten

    if isinstance(crowd, Comparisons | LabelSetCrowd):
        unused = {
            "gold": gold,
            "truth": truth,
            "X": X,
            "texts": texts,
            "images": images,
            "links": links,
            "scores": scores,
        }
        return _build_answers(
            crowd, unused, title=title, question=question, compare=compare, model=model, command=command
        )
    if isinstance(crowd, MarkCrowd | MaskCrowd | TextCrowd):
        media = {"texts": texts, "images": images}
        unused = {"gold": gold, "truth": truth, "X": X, "links": links, "scores": scores}
        return _build_objects(
            crowd, unused, media, title=title, question=question, compare=compare, model=model, command=command
        )
    if isinstance(crowd, ScoreCrowd):
        return _build_scores(
            crowd, {"X": X, "images": images, "scores": scores}, gold=gold, truth=truth, texts=texts, title=title,
            question=question, model=model, command=command,
        )  # fmt: skip
    load_templates()  # a missing extra should be reported before the work starts
    image_series = as_task_series(read_images(images) if isinstance(images, str | os.PathLike) else images, "image")
    votes = as_crowd(crowd)

    def start_step(step: int) -> None:
        names = list(_STEPS)
        finished = sum(_STEPS[name] for name in names[:step])
        report_progress("building the report", finished, 100, names[min(step, len(names) - 1)])

    start_step(0)
    with collect_warnings() as warnings:
        features = _drop_useless_features(X, votes)
        diagnosis = diagnose_crowd(votes, features, model=model, gold=gold)  # type: ignore[arg-type]  # model of a crowd
    known_truth = None
    if gold is not None:
        known_truth = replace(match_gold(gold, diagnosis.crowd), is_fitted=True)
    elif truth is not None:
        known_truth = match_gold(truth, diagnosis.crowd)
    start_step(1)
    shown = workers.select_workers(diagnosis)
    worker_section = workers.build_section(diagnosis, shown, known_truth)
    start_step(2)
    task_section = tasks.build_section(
        diagnosis, as_task_series(texts, "text"), known_truth, as_task_series(links, "link")
    )
    start_step(3)
    comparison, comparison_note = methods.run_comparison(diagnosis, X, known_truth, enabled=compare)
    start_step(4)
    class_section = classes.build_section(diagnosis, shown)
    summary = ReportSummary(diagnosis, known_truth, comparison, class_section["confusions"])
    notes = dict.fromkeys([*diagnosis.assessment.warnings, *warnings, *getattr(diagnosis.model, "notes_", ())])
    content = {
        "question": question,
        "title": shorten(title or "Crowd report", MAX_TITLE_CHARACTERS),
        "tiles": summary.build_tiles(),
        "notes": [shorten(note, MAX_REASON_CHARS) for note in notes],
        "sentences": summary.write_sentences(),
        "counts": summary.build_histograms(),
        "advice": summary.recommend_steps(),
        "workers": worker_section,
        "map": worker_map.build_map(diagnosis, shown, worker_section["rows"]),
        "groups": groups.build_section(diagnosis, shown),
        "agreement": agreement.build_section(diagnosis, shown),
        "judges": judges.build_section(diagnosis, shown, scores, known_truth),
        "tasks": task_section,
        "classes": class_section,
        "methods": methods.build_section(comparison, comparison_note),
        "provenance": provenance.build_section(diagnosis, comparison, command),
        "level": format_level(diagnosis.level),
    }
    data = workers.build_cards(diagnosis, shown, worker_section["rows"])
    html = render_report(content, data)
    if image_series is not None:  # images use the space that the rest leaves
        content["tasks"] = tasks.add_images(task_section, image_series, MAX_PAGE_BYTES - len(html.encode()))
        html = render_report(content, data)
    start_step(len(_STEPS))
    return Report(html, diagnosis.assessment.warnings)


def _build_answers(
    votes: Comparisons | LabelSetCrowd,
    unused: Mapping[str, Any],
    *,
    title: str | None,
    question: str | None,
    compare: bool,
    model: Any,
    command: str | None,
) -> Report:
    """Build the report on comparisons or label sets."""
    from wisecrowd.errors import UsageError
    from wisecrowd.report.answers import build_comparison_content, build_label_set_content
    from wisecrowd.report.page import load_templates, render_report
    from wisecrowd.utils.text import shorten

    if unusable := [name for name, value in unused.items() if value is not None]:
        raise UsageError(f"the report on comparisons and label sets takes no {', '.join(unusable)}; leave this out")
    load_templates()  # a missing extra should be reported before the work starts
    if isinstance(votes, Comparisons):
        content = build_comparison_content(votes, model=model, compare=compare, command=command)
    else:
        content = build_label_set_content(votes, model=model, compare=compare, command=command)
    content["question"] = question
    content["title"] = shorten(title or "Crowd report", MAX_TITLE_CHARACTERS)
    return Report(render_report(content, {}, "answers.html"))


def _build_objects(
    votes: MarkCrowd | MaskCrowd | TextCrowd,
    unused: Mapping[str, Any],
    media: Mapping[str, Any],
    *,
    title: str | None,
    question: str | None,
    compare: bool,
    model: Any,
    command: str | None,
) -> Report:
    """Build the report on boxes, points, polygons, spans, masks or texts."""
    import pandas as pd

    from wisecrowd.errors import UsageError
    from wisecrowd.report.images import read_images
    from wisecrowd.report.marks import build_mark_content
    from wisecrowd.report.masks import build_mask_content
    from wisecrowd.report.page import load_templates, render_report
    from wisecrowd.report.task_media import as_task_series
    from wisecrowd.report.text_answers import build_text_content
    from wisecrowd.utils.text import shorten

    suitable = ("texts",) if votes.answer_type == "spans" else () if isinstance(votes, TextCrowd) else ("images",)
    others = {name: value for name, value in media.items() if name not in suitable}
    if unusable := [name for name, value in {**unused, **others}.items() if value is not None]:
        raise UsageError(f"the report on {votes.answer_type} takes no {', '.join(unusable)}; leave this out")
    load_templates()  # a missing extra should be reported before the work starts
    if isinstance(votes, TextCrowd):
        content = build_text_content(votes, model=model, compare=compare, command=command)
    else:
        images, texts = media["images"], as_task_series(media["texts"], "text")
        if isinstance(images, str | os.PathLike):
            images = read_images(images)
        documents = None
        if texts is not None and len(texts) and not isinstance(texts.iloc[0], str):
            documents = pd.DataFrame({"task": texts.index, "tokens": list(map(list, texts))})
        task_images = as_task_series(images, "image")
        if isinstance(votes, MaskCrowd):
            content = build_mask_content(votes, model=model, compare=compare, images=task_images, command=command)
        else:
            content = build_mark_content(
                votes,
                model=model,
                compare=compare,
                texts=texts,
                images=task_images,
                documents=documents,
                command=command,
            )
    content["question"] = question
    content["title"] = shorten(title or "Crowd report", MAX_TITLE_CHARACTERS)
    return Report(render_report(content, {}, "answers.html"), tuple(content.get("warnings", ())))


def _build_scores(
    scores: ScoreCrowd,
    unused: Mapping[str, Any],
    *,
    gold: Any,
    truth: Any,
    texts: Any,
    title: str | None,
    question: str | None,
    model: Any,
    command: str | None,
) -> Report:
    """Build the report on scores of judges."""
    from wisecrowd.errors import UsageError
    from wisecrowd.report.answers import build_score_content
    from wisecrowd.report.page import load_templates, render_report
    from wisecrowd.report.task_media import as_task_series
    from wisecrowd.utils.text import shorten

    if unusable := [name for name, value in unused.items() if value is not None]:
        raise UsageError(f"the report on scores of judges takes no {', '.join(unusable)}; leave this out")
    if isinstance(model, str):
        raise UsageError(f"the report on scores of judges takes a fitted Panel as model; got {model!r}")
    load_templates()
    content = build_score_content(
        scores, gold=gold, truth=truth, texts=as_task_series(texts, "text"), model=model, command=command
    )
    content["question"] = question
    content["title"] = shorten(title or "Judges", MAX_TITLE_CHARACTERS)
    return Report(render_report(content, {}, "answers.html"))


def _drop_useless_features(X: FeaturesLike | None, votes: Crowd) -> FeaturesLike | None:
    """Return the features, or None where a single class fits any features."""
    return None if votes.classes is not None and len(votes.classes) < 2 else X
