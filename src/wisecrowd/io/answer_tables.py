"""Tables of answers that are not one label per vote, such as comparisons, label sets, marks and masks, told apart by columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.comparisons import Comparisons, RepeatedComparisons, Swapped
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.mask_runs import parse_masks, read_mask_column
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.points import PointCrowd
from wisecrowd.data.polygons import PolygonCrowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.data.vocabulary import find_missing
from wisecrowd.errors import InputError, UsageError, preview, suggest_name
from wisecrowd.io.mask_files import SUFFIXES, load_mask_files
from wisecrowd.io.problems import MissingColumn, prefix_errors
from wisecrowd.io.source_files import fetch_source
from wisecrowd.io.tables.columns import (
    find_columns,
    find_exported_id,
    label_names,
    role_names,
    simplify_name,
    specific_names,
)
from wisecrowd.io.vote_source import SourceLike, VoteSource

if TYPE_CHECKING:
    from wisecrowd.io.tools.answer_questions import AnswerQuestion

#: Names of columns by role, without case, spaces, dashes and underscores. The first name of each role is ours.
_LEFT = ("left", "leftitem", "modela", "responsea", "answera", "outputa", "optiona", "itema", "candidatea")
_RIGHT = ("right", "rightitem", "modelb", "responseb", "answerb", "outputb", "optionb", "itemb", "candidateb")
_WINNER = (
    "label",
    "winner",
    "preference",
    "preferred",
    "better",
    "choice",
    "verdict",
    "judgment",
    "judgement",
    "answer",
    "vote",
)
_PROMPT = ("task", "taskid", "prompt", "promptid", "question", "questionid", "context", "contextid", "instruction")
#: Names of the columns that all answers but comparisons have.
_TASK_AND_WORKER = {"task": role_names("task"), "worker": role_names("worker")}
_SCORE = ("score", "judgescore", "scores", "grade", "probability", "prob", "logit")
_LABEL_SET = ("labels", "labelset", "tags", "categories", "answers")
#: Columns of marks by kind and role. Boxes come first, because they have the columns of points, too.
_MARKS: dict[AnswerType, dict[str, tuple[str, ...]]] = {
    "boxes": {
        "x": ("x", "xmin", "boxx", "bboxx"),
        "y": ("y", "ymin", "boxy", "bboxy"),
        "width": ("width", "w", "boxwidth", "bboxwidth"),
        "height": ("height", "h", "boxheight", "bboxheight"),
    },
    "points": {"x": ("x", "pointx"), "y": ("y", "pointy")},
    "polygons": {"polygon": ("polygon", "vertices", "polygonpoints")},
    "spans": {
        "start": ("start", "startoffset", "startchar", "starttoken", "tokenstart", "begin"),
        "end": ("end", "endoffset", "endchar", "endtoken", "tokenend", "stop"),
    },
}
#: Columns of masks, and of the sizes of images.
_MASK = ("mask", "rle", "segmentation", "maskpath", "maskfile")
_SIZES = {"height": ("height", "imageheight", "h"), "width": ("width", "imagewidth", "w")}
#: Columns of texts.
_TEXT = ("text", "transcription", "transcript", "transcribedtext", "translation", "caption", "summary")
#: Further names of columns with true texts.
_TRUE_TEXT = ("truth", "reference", "gold", "groundtruth")
MARK_CROWDS: dict[AnswerType, type[MarkCrowd]] = {
    "boxes": BoxCrowd,
    "points": PointCrowd,
    "polygons": PolygonCrowd,
    "spans": SpanCrowd,
}
#: Noun phrases for messages.
NOUNS: dict[AnswerType, str] = {
    "pairwise": "comparisons of two items",
    "multilabel": "sets of labels",
    "scores": "scores of judges",
    **{kind: crowd.plural for kind, crowd in MARK_CROWDS.items()},
    "masks": "masks",
    "texts": "texts",
}
#: Offsets in texts are smaller; larger numbers in columns called start and end are times.
_MAX_OFFSET = 1e8
#: Files in a dataset folder that hold answers other than votes.
ANSWER_FILES = ("comparisons.parquet", *(f"{kind}.parquet" for kind in MARK_CROWDS))
#: Files in a dataset folder beside marks: the pairs of tasks and workers, the tokens of texts, and the sizes of images.
FURTHER_FILES = {
    "assignments": "assignments.parquet",
    "documents": "documents.parquet",
    "images": "images.parquet",
}
#: Rows that are read to tell label sets from single labels.
_PEEKED_ROWS = 200


#: Rule for several answers of a worker about a task in the export of a labelling tool. "keep" unites the marks.
MarkRule: TypeAlias = Literal["error", "first", "last", "keep"]
#: Votes that are not one label per vote.
AnswerCrowd: TypeAlias = Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | ScoreCrowd | TextCrowd


@dataclass(frozen=True)
class AnswerTable:
    """Table whose columns hold comparisons, label sets, marks or scores.

    Parameters
    ----------
    answer_type : {"pairwise", "multilabel", "boxes", "points", "polygons", "spans", "masks", "scores", "texts"}
        Type of the answers.
    source : VoteSource
        File.
    columns : mapping of str to str
        Column by role.
    assignments : VoteSource, default=None
        File with the pairs of tasks and workers, for marks.
    documents : VoteSource, default=None
        File with the tokens of tasks, for spans.
    images : VoteSource, default=None
        File with the sizes of images in the columns task, width and height, for boxes and points.
    """

    answer_type: AnswerType
    source: VoteSource
    columns: Mapping[str, str]
    assignments: VoteSource | None = None
    documents: VoteSource | None = None
    images: VoteSource | None = None

    @property
    def is_assumed(self) -> bool:
        """True if the type of the answers is assumed from the columns of a table."""
        return False

    @property
    def description(self) -> str:
        """Noun phrase for messages: the kind of answers and their columns."""
        names = ", ".join(self.columns.values())
        return f"{NOUNS[self.answer_type]} (columns {names})"

    def read_table(self) -> pa.Table:
        """Read the columns of the answers.

        Returns
        -------
        pyarrow.Table
        """
        table = _read_columns(self.source, list(dict.fromkeys(self.columns.values())))
        if self.answer_type == "texts":  # an empty cell of a text file is an empty text
            text = table.column_names.index(self.columns["text"])
            if pa.types.is_null(table.schema.field(text).type) or pa.types.is_string(table.schema.field(text).type):
                table = table.set_column(text, self.columns["text"], table.column(text).cast(pa.string()).fill_null(""))
        if self.answer_type == "masks":
            mask = table.column_names.index(self.columns["mask"])
            cells = load_mask_files(table.column(mask), self.source.path.parent)
            table = table.set_column(mask, self.columns["mask"], cells)
        if self.answer_type == "multilabel":
            label = table.column_names.index(self.columns["label"])
            if pa.types.is_string(table.schema.field(label).type):  # an empty cell of a text file is an empty set
                table = table.set_column(label, self.columns["label"], table.column(label).fill_null(""))
        return table

    def read_assignments(self) -> pa.Table | None:
        """Read the pairs of tasks and workers.

        Returns
        -------
        pyarrow.Table or None
            None if the pairs are those of the marks.
        """
        if self.assignments is None:
            return None
        with prefix_errors(self.assignments.path):
            return _read_columns(self.assignments, ["task", "worker"])

    def read_documents(self) -> pa.Table | None:
        """Read the tokens of the tasks.

        Returns
        -------
        pyarrow.Table or None
            Columns task, tokens and, if the file has it, sentences; None if there is no file of documents.
        """
        if self.documents is None or self.documents.format.reader.read_names is None:
            return None
        with prefix_errors(self.documents.path):
            names = self.documents.format.reader.read_names(self.documents.path)
            columns = [name for name in ("task", "tokens", "sentences") if name in names]
            return _read_columns(self.documents, columns)

    def read(self, **options: Any) -> AnswerCrowd:
        """Read the answers.

        Parameters
        ----------
        **options
            Options of ``from_frame`` of the class of the answers, except the names of columns.

        Returns
        -------
        Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, ScoreCrowd or TextCrowd
        """
        assignments = self.read_assignments()
        if assignments is not None:
            options = {"assignments": assignments, **options}
        with prefix_errors(self.source.path):
            return build_answers(self.answer_type, self.read_table(), self.columns, **options)


def read_task_table(source: SourceLike) -> pa.Table:
    """Read all columns of a table about tasks, such as the sizes of images or the texts of documents.

    Parameters
    ----------
    source : path-like or VoteSource
        CSV, TSV, Parquet or JSON.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    InputError
        If the file is no table.

    Examples
    --------
    >>> _ = Path("sizes.csv").write_text("task,width,height\\ni1,640,480\\n")
    >>> read_task_table("sizes.csv").column_names
    ['task', 'width', 'height']
    """
    file = VoteSource.detect(source)
    with prefix_errors(file.path):
        if file.format.reader.read_names is None:
            raise InputError(f"{file.format.description} is no table; use CSV, TSV, Parquet or JSON")
        return _read_columns(file, file.format.reader.read_names(file.path))


def build_answers(answer_type: AnswerType, table: pa.Table, columns: Mapping[str, str], **options: Any) -> AnswerCrowd:
    """Build comparisons, label sets, marks or scores from a table.

    Parameters
    ----------
    answer_type : {"pairwise", "multilabel", "boxes", "points", "polygons", "spans", "masks", "scores", "texts"}
        Type of the answers.
    table : pyarrow.Table
        Rows.
    columns : mapping of str to str
        Column by role, from `find_answer_columns`.
    **options
        Options of ``from_frame`` of the class of the answers, except the names of columns.

    Returns
    -------
    Comparisons, LabelSetCrowd, MarkCrowd or ScoreCrowd

    Raises
    ------
    UsageError
        If an option does not apply to marks.

    Examples
    --------
    >>> columns = {"left": "a", "right": "b", "label": "winner"}
    >>> build_answers("pairwise", pa.table({"a": ["m1"], "b": ["m2"], "winner": ["m1"]}), columns)
    Comparisons(1 comparison: 2 items, 1 pair, no worker ids, 0% ties)
    """
    if answer_type == "pairwise":
        roles = {role: columns.get(role) for role in ("left", "right", "label", "worker", "task", "weight")}
        return Comparisons.from_frame(table, **(roles | options))
    if answer_type in MARK_CROWDS:
        unusable = [name for name in ("duplicates", "missing") if options.pop(name, "error") != "error"]
        if unusable:
            raise UsageError(
                f"{' and '.join(unusable)} cannot be chosen for {NOUNS[answer_type]}: a mark that a worker made twice counts once, "
                "and an empty place is a task without marks; leave it out"
            )
        return MARK_CROWDS[answer_type].from_frame(table, columns=columns, **options)
    if answer_type == "scores":
        return ScoreCrowd.from_frame(table, **(dict(columns) | options))
    if answer_type == "masks":
        if options.pop("missing", "error") != "error":
            raise UsageError("missing cannot be chosen for masks; an empty cell is a mask without pixels")
        sizes = {role: columns.get(role) for role in _SIZES}
        return MaskCrowd.from_frame(
            table, **({role: columns[role] for role in ("task", "worker", "mask")} | sizes | options)
        )
    if answer_type == "texts":
        if options.pop("missing", "error") != "error":
            raise UsageError(
                "missing cannot be chosen for texts; leave out rows without a text, or write an empty text"
            )
        return TextCrowd.from_frame(table, **({role: columns[role] for role in ("task", "worker", "text")} | options))
    return LabelSetCrowd.from_frame(table, **({role: columns[role] for role in ("task", "worker", "label")} | options))


def find_answer_columns(
    names: Sequence[str], requested: Mapping[str, str | None], read_column: Callable[[str], pa.ChunkedArray]
) -> tuple[AnswerType, dict[str, str]] | None:
    """Return the type of answers that a table holds, and its columns by role.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    requested : mapping of str to str or None
        Columns that the user named, by role: left, right, label, worker, task.
    read_column : callable
        Function of the name of a column that returns its cells.

    Returns
    -------
    tuple of str and dict, or None
        None if the table holds ordinary votes.

    Examples
    --------
    >>> find_answer_columns(["a", "model_a", "model_b", "winner"], {}, lambda name: pa.chunked_array([[]]))
    ('pairwise', {'left': 'model_a', 'right': 'model_b', 'label': 'winner'})
    """
    named = {role: name for role, name in requested.items() if name is not None}
    comparison_columns = _find_comparison_columns(names, named)
    if comparison_columns is not None:
        return "pairwise", comparison_columns
    for kind in MARK_CROWDS:
        mark_columns = _find_mark_columns(kind, names, named)
        if mark_columns is not None and (kind != "spans" or _hold_offsets(mark_columns, read_column)):
            return kind, mark_columns
    mask_columns = _find_columns(names, named, {**_TASK_AND_WORKER, "mask": _MASK}, _SIZES)
    if mask_columns is not None and "label" not in named and _hold_masks(mask_columns, read_column):
        return "masks", mask_columns
    set_columns = _find_label_set_columns(names, named)
    if set_columns is not None and _hold_sets(read_column(set_columns["label"])):
        return "multilabel", set_columns
    score_columns = _find_score_columns(names, named)
    if score_columns is not None and _hold_scores(score_columns, read_column):
        return "scores", score_columns
    text_columns = _find_text_columns(names, named)
    if text_columns is None or _describe_tasks(text_columns, names, read_column):
        return None
    return "texts", text_columns


def find_answer_table(
    source: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    question: str | None = None,
    as_texts: bool = False,
) -> AnswerTable | AnswerQuestion | None:
    """Return the comparisons, label sets, marks or scores that a file holds, by its columns or by the question of a labelling tool.

    Parameters
    ----------
    source : path-like or VoteSource
        File, or dataset folder with comparisons.parquet, boxes.parquet, points.parquet or spans.parquet. With
        assignments.parquet in the folder, workers who marked nothing have voted, too; documents.parquet has the tokens of texts.
    columns : mapping of str to str or None, default=None
        Columns that the user named, by role: left, right, label, worker, task.
    question : str, default=None
        Question of a labelling tool's export. Multiple-choice questions hold label sets, pairwise questions and rankings hold
        comparisons; others hold spans, boxes, points or texts.
    as_texts : bool, default=False
        Whether answers to a question of classes in such an export are texts, such as transcriptions.

    Returns
    -------
    AnswerTable, AnswerQuestion or None
        None if the file holds ordinary votes.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("arena.csv").write_text("model_a,model_b,winner\\nm1,m2,model_a\\n")
    >>> find_answer_table("arena.csv").description
    'comparisons of two items (columns model_a, model_b, winner)'
    """
    path = source.path if isinstance(source, VoteSource) else fetch_source(source)
    further_files: dict[str, VoteSource] = {}
    if path.is_dir():
        for name in ANSWER_FILES:
            if (path / name).is_file():
                source = path / name
                if name.removesuffix(".parquet") in MARK_CROWDS:
                    further_files = _find_further_files(path)
                break
    file = VoteSource.detect(source)
    if file.format.is_tool and not any((columns or {}).values()):
        from wisecrowd.io.tools.answer_questions import find_answer_question

        with prefix_errors(file.path):
            return find_answer_question(file, question, as_texts=as_texts)
    if file.format.reader.read_names is None or question is not None:
        return None
    with prefix_errors(file.path):
        names = file.format.reader.read_names(file.path)
        answer = find_answer_columns(names, columns or {}, lambda name: _read_columns(file, [name])[name])
    return None if answer is None else AnswerTable(answer[0], file, answer[1], **further_files)


def read_comparisons(
    path: SourceLike,
    *,
    left: str | None = None,
    right: str | None = None,
    label: str | None = None,
    worker: str | None = None,
    task: str | None = None,
    duplicates: RepeatedComparisons = "error",
    swapped: Swapped = "average",
    missing: Literal["error", "drop"] = "error",
    question: str | None = None,
) -> Comparisons:
    """Read comparisons of two items from a table.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON with one comparison per row, or a dataset folder with comparisons.parquet.
    left, right, label, worker, task : str, optional
        Names of columns. Without them, common names are recognised: left and right, model_a and model_b, winner, judge, prompt.
        Worker and task are optional.
    duplicates : {"error", "first", "last", "keep"}, default="error"
        Rule for repeated comparisons of a worker; see `Comparisons.from_frame`.
    swapped : str, default="average"
        Rule for comparisons of a worker in both orders; see `Comparisons.from_frame`.
    missing : {"error", "drop"}, default="error"
        Rule for rows with an empty cell.
    question : str, optional
        Pairwise question or ranking in the export of a labelling tool.

    Returns
    -------
    Comparisons

    Raises
    ------
    MissingColumn
        If the table has no columns of two items and a winner.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("arena.csv").write_text("model_a,model_b,winner,judge\\nm1,m2,tie (bothbad),ann\\nm2,m1,m2,ann\\n")
    >>> read_comparisons("arena.csv")
    Comparisons(2 comparisons: 2 items, 1 pair, 1 worker, 50% ties)
    """
    requested = {"left": left, "right": right, "label": label, "worker": worker, "task": task}
    table = find_answer_table(path, columns=requested, question=question)
    if table is None or table.answer_type != "pairwise":
        raise MissingColumn(
            f"{path}: comparisons need the columns left, right and label (or model_a, model_b and winner); name yours: "
            'left="a", right="b", label="preferred"',
            tuple(role for role in ("left", "right", "label")),
        )
    comparisons = table.read(duplicates=duplicates, swapped=swapped, missing=missing)
    assert isinstance(comparisons, Comparisons)
    return comparisons


def read_label_sets(
    path: SourceLike,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    separator: str | None = None,
    duplicates: Literal["error", "first", "last", "union"] = "error",
    question: str | None = None,
) -> LabelSetCrowd:
    """Read sets of labels from a table with one set per row, or from a multiple-choice question of a labelling tool.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON.
    task, worker, label : str, optional
        Names of columns. Without them, common names are recognised: task, worker and labels, tags or categories.
    separator : str, optional
        Separator of the labels of a set; see `LabelSetCrowd.from_frame`.
    duplicates : {"error", "first", "last", "union"}, default="error"
        Rule for repeated sets of a worker on a task.
    question : str, optional
        Question in the export of a labelling tool.

    Returns
    -------
    LabelSetCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("tags.csv").write_text("task,worker,labels\\nt1,ann,cat|dog\\nt1,bob,\\n")
    >>> read_label_sets("tags.csv")
    LabelSetCrowd(2 votes: 1 task x 2 workers, 2 labels, 1.0 labels/vote)
    """
    file = VoteSource.detect(path)
    if file.format.is_tool:
        answers = find_answer_table(file, question=question)
        if answers is not None and answers.answer_type == "multilabel":
            sets = answers.read(duplicates=duplicates)
            assert isinstance(sets, LabelSetCrowd)
            return sets
    requested = {
        role: name for role, name in (("task", task), ("worker", worker), ("label", label)) if name is not None
    }
    names = [] if file.format.reader.read_names is None else file.format.reader.read_names(file.path)
    columns = _find_label_set_columns(names, requested)
    if columns is None:
        raise MissingColumn(
            f'{path}: label sets need the columns task, worker and labels; name yours: label="tags". For one label per row, use '
            "LabelSetCrowd.from_marks",
            ("label",),
        )
    crowd = AnswerTable("multilabel", file, columns).read(separator=separator, duplicates=duplicates)
    assert isinstance(crowd, LabelSetCrowd)
    return crowd


def read_texts(
    path: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    duplicates: Literal["error", "first", "last"] = "error",
    question: str | None = None,
) -> TextCrowd:
    """Read texts, such as transcriptions, from a table with one text per row, or from the export of a labelling tool.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON; or the export of a labelling tool.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker, text. Without them, common names are recognised: text, transcription, translation.
    duplicates : {"error", "first", "last"}, default="error"
        Rule for several texts of a worker on a task.
    question : str, optional
        Question in the export of a labelling tool.

    Returns
    -------
    TextCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> _ = Path("texts.csv").write_text("task,worker,transcription\\nt1,ann,a cat\\n")
    >>> read_texts("texts.csv").n_votes
    1
    """
    answers = find_answer_table(path, columns=columns, question=question, as_texts=True)
    if answers is None or answers.answer_type != "texts":
        raise MissingColumn(f"{path}: texts need the columns task, worker and text, and no labels", ("text",))
    crowd = answers.read(duplicates=duplicates)
    assert isinstance(crowd, TextCrowd)
    return crowd


def read_masks(
    path: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    duplicates: Literal["error", "first", "last"] = "error",
) -> MaskCrowd:
    """Read masks of images from a table with one mask per row.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON. A mask is COCO's run-length encoding (a dictionary with size and counts, or counts beside
        columns of height and width), or the path of a PNG or npy file in the folder of the table. An empty cell is a mask
        without pixels.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker, mask, height, width. Without them, common names are recognised.
    duplicates : {"error", "first", "last"}, default="error"
        Rule for several masks of a worker on a task.

    Returns
    -------
    MaskCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> _ = Path("masks.csv").write_text("task,worker,mask,height,width\\ni1,ann,13,2,2\\ni1,bob,,2,2\\n")
    >>> read_masks("masks.csv")
    MaskCrowd(2 masks: 1 task x 2 workers, 38% of the pixels marked)
    """
    answers = find_answer_table(path, columns=columns)
    if answers is None or answers.answer_type != "masks":
        raise MissingColumn(
            f"{path}: masks need the columns task, worker and mask, and height and width if the masks have no size",
            ("mask",),
        )
    crowd = answers.read(duplicates=duplicates)
    assert isinstance(crowd, MaskCrowd)
    return crowd


def read_boxes(
    path: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    question: str | None = None,
    duplicates: MarkRule = "error",
) -> BoxCrowd:
    """Read boxes from a table with one box per row.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON, or a dataset folder with boxes.parquet and assignments.parquet. A row without coordinates is a
        worker who marked nothing.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker. Other columns have common names: x, y, width, height, label.
    question : str, optional
        Question in the export of a labelling tool.
    duplicates : {"error", "first", "last", "keep"}, default="error"
        Rule for several answers of a worker about a task in such an export; the last one unites the marks.

    Returns
    -------
    BoxCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("boxes.csv").write_text("task,worker,x,y,width,height\\ni1,ann,1,2,30,40\\ni1,bob,,,,\\n")
    >>> read_boxes("boxes.csv")
    BoxCrowd(1 box in 2 votes: 1 task x 2 workers, 1 class)
    """
    crowd = _read_marks(path, "boxes", columns, question, duplicates)
    assert isinstance(crowd, BoxCrowd)
    return crowd


def read_points(
    path: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    question: str | None = None,
    duplicates: MarkRule = "error",
) -> PointCrowd:
    """Read points from a table with one point per row; see `read_boxes`.

    Parameters
    ----------
    path : path-like or VoteSource
        File, or dataset folder with points.parquet.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker. Other columns have common names: x, y, label.
    question : str, optional
        Question in the export of a labelling tool.
    duplicates : {"error", "first", "last", "keep"}, default="error"
        Rule for several answers of a worker about a task in such an export; the last one unites the marks.

    Returns
    -------
    PointCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("points.csv").write_text("task,worker,x,y\\ni1,ann,1,2\\n")
    >>> read_points("points.csv").n_marks
    1
    """
    crowd = _read_marks(path, "points", columns, question, duplicates)
    assert isinstance(crowd, PointCrowd)
    return crowd


def read_polygons(path: SourceLike, *, columns: Mapping[str, str | None] | None = None) -> PolygonCrowd:
    """Read polygons from a table with one polygon per row; see `read_boxes`.

    Parameters
    ----------
    path : path-like or VoteSource
        File, or dataset folder with polygons.parquet. A polygon is a list of points: ``[[x, y], [x, y], ...]``.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker. Other columns have common names: polygon, label.

    Returns
    -------
    PolygonCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("polygons.csv").write_text('task,worker,polygon\\ni1,ann,"[[0, 0], [4, 0], [0, 2]]"\\ni1,bob,\\n')
    >>> read_polygons("polygons.csv")
    PolygonCrowd(1 polygon in 2 votes: 1 task x 2 workers, 1 class)
    """
    crowd = _read_marks(path, "polygons", columns, None, "error")
    assert isinstance(crowd, PolygonCrowd)
    return crowd


def read_spans(
    path: SourceLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    question: str | None = None,
    duplicates: MarkRule = "error",
) -> SpanCrowd:
    """Read spans from a table with one span per row; see `read_boxes`.

    Parameters
    ----------
    path : path-like or VoteSource
        File, or dataset folder with spans.parquet.
    columns : mapping of str to str, default=None
        Names of columns by role: task, worker. Other columns have common names: start, end (exclusive), label.
    question : str, optional
        Question in the export of a labelling tool.
    duplicates : {"error", "first", "last", "keep"}, default="error"
        Rule for several answers of a worker about a task in such an export; the last one unites the marks.

    Returns
    -------
    SpanCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("spans.csv").write_text("task,worker,start,end,label\\nd1,ann,0,5,PER\\n")
    >>> read_spans("spans.csv").classes.tolist()
    ['PER']
    """
    crowd = _read_marks(path, "spans", columns, question, duplicates)
    assert isinstance(crowd, SpanCrowd)
    return crowd


def read_true_objects(
    path: SourceLike, kind: AnswerType, *, columns: Mapping[str, str | None] | None = None
) -> pd.DataFrame:
    """Read true boxes, points, polygons or spans from a table with one object per row and no workers.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON. A row without coordinates is a task without objects.
    kind : {"boxes", "points", "polygons", "spans"}
        Kind of objects.
    columns : mapping of str to str, default=None
        Names of columns by role: task, label.

    Returns
    -------
    DataFrame
        Columns task, the coordinates, and label if the table has it.

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> _ = Path("truth.csv").write_text("image_id,x,y,w,h,label\\ni1,1,2,30,40,cat\\n")
    >>> read_true_objects("truth.csv", "boxes").columns.tolist()
    ['task', 'x', 'y', 'width', 'height', 'label']
    """
    file = VoteSource.detect(path)
    with prefix_errors(file.path):
        names = [] if file.format.reader.read_names is None else list(file.format.reader.read_names(file.path))
        requested = {role: name for role, name in (columns or {}).items() if name is not None and role != "worker"}
        required = {"task": role_names("task"), **_MARKS[kind]}
        by_role = _find_columns(names, requested, required, {"label": role_names("label")})
        if by_role is None:
            raise MissingColumn(
                f"true {NOUNS[kind]} need the columns {', '.join(required)}; the columns are {preview(names, 12)}",
                tuple(required),
            )
        table = _read_columns(file, list(by_role.values())).to_pandas()
        for role in [] if kind == "polygons" else _MARKS[kind]:
            try:
                table[by_role[role]] = pd.to_numeric(table[by_role[role]])
            except (ValueError, TypeError) as error:
                raise InputError(f"the column {by_role[role]} has a value that is no number: {error}") from None
    return pd.DataFrame({role: table[name] for role, name in by_role.items()})


def read_true_texts(path: SourceLike, *, columns: Mapping[str, str | None] | None = None) -> pd.Series:
    """Read true texts from a table with one text per task and no workers.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON.
    columns : mapping of str to str, default=None
        Names of columns by role: task, text.

    Returns
    -------
    Series
        Text by task.

    Raises
    ------
    MissingColumn
        If the table lacks a column.
    InputError
        If a task has several texts.

    Examples
    --------
    >>> _ = Path("truth.csv").write_text("task,reference\\nt1,a cat\\n")
    >>> read_true_texts("truth.csv").to_dict()
    {'t1': 'a cat'}
    """
    file = VoteSource.detect(path)
    with prefix_errors(file.path):
        names = [] if file.format.reader.read_names is None else list(file.format.reader.read_names(file.path))
        requested = {role: name for role, name in (columns or {}).items() if name is not None and role != "worker"}
        by_role = _find_columns(names, requested, {"task": role_names("task"), "text": (*_TEXT, *_TRUE_TEXT)})
        if by_role is None:
            raise MissingColumn(
                f"true texts need the columns task and text; the columns are {preview(names, 12)}", ("task", "text")
            )
        table = _read_columns(file, list(by_role.values())).to_pandas()
        texts = table.set_index(by_role["task"])[by_role["text"]].fillna("").astype(str)
        if not texts.index.is_unique:
            raise InputError(
                f"the table of texts has several rows for {preview(texts.index[texts.index.duplicated()].unique())}; keep one row "
                "per task"
            )
    return texts.rename("text").rename_axis("task")


def read_true_masks(path: SourceLike, *, columns: Mapping[str, str | None] | None = None) -> pd.Series:
    """Read true masks from a table with one mask per task and no workers.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON, with masks as in `read_masks`.
    columns : mapping of str to str, default=None
        Names of columns by role: task, mask, height, width.

    Returns
    -------
    Series
        COCO's run-length encoding by task, as JSON texts.

    Raises
    ------
    MissingColumn
        If the table lacks a column.
    InputError
        If a task has several masks, or a cell holds none.

    Examples
    --------
    >>> _ = Path("truth.csv").write_text("task,mask,height,width\\ni1,13,2,2\\n")
    >>> read_true_masks("truth.csv").to_dict()
    {'i1': '{"size": [2, 2], "counts": "13"}'}
    """
    file = VoteSource.detect(path)
    with prefix_errors(file.path):
        names = [] if file.format.reader.read_names is None else list(file.format.reader.read_names(file.path))
        requested = {role: name for role, name in (columns or {}).items() if name is not None and role != "worker"}
        by_role = _find_columns(names, requested, {"task": role_names("task"), "mask": _MASK}, _SIZES)
        if by_role is None:
            raise MissingColumn(
                f"true masks need the columns task and mask; the columns are {preview(names, 12)}", ("task", "mask")
            )
        table = _read_columns(file, list(by_role.values()))
        sizes = [table[by_role[role]].to_pylist() if role in by_role else None for role in _SIZES]
        masks = parse_masks(read_mask_column(load_mask_files(table[by_role["mask"]], file.path.parent)), *sizes)
        tasks = pd.Index(table[by_role["task"]].to_pandas(), name="task")
        if not tasks.is_unique:
            raise InputError(f"several masks for {preview(tasks[tasks.duplicated()])}; keep one row per task")
    return pd.Series(masks.to_texts(), index=tasks, name="mask", dtype=object)


def _read_marks(
    path: SourceLike,
    kind: AnswerType,
    columns: Mapping[str, str | None] | None,
    question: str | None,
    duplicates: MarkRule,
) -> AnswerCrowd:
    """Read marks of one kind."""
    answers = find_answer_table(path, columns=columns, question=question)
    if answers is None or answers.answer_type != kind:
        content = "other votes" if answers is None else NOUNS[answers.answer_type]
        roles = ("task", "worker", *_MARKS[kind])
        raise MissingColumn(
            f"{path} holds {content}; {NOUNS[kind]} need the columns {', '.join(roles)}", tuple(_MARKS[kind])
        )
    return answers.read(duplicates=duplicates)


def _find_comparison_columns(names: Sequence[str], requested: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of comparisons by role, or None if two items and a winner are not among them."""
    required = {"left": _LEFT, "right": _RIGHT, "label": _WINNER}
    optional = {"worker": specific_names("worker"), "task": _PROMPT, "weight": ("weight",)}
    return _find_columns(names, requested, required, optional)


def _find_text_columns(names: Sequence[str], requested: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of texts by role, or None if one is missing; a table with labels holds votes on texts."""
    if "label" in requested or any(simplify_name(name) in label_names() for name in names):
        return None
    return _find_columns(names, requested, {**_TASK_AND_WORKER, "text": _TEXT})


def _describe_tasks(
    columns: Mapping[str, str], names: Sequence[str], read_column: Callable[[str], pa.ChunkedArray]
) -> bool:
    """Return whether texts beside a column of classes are what the workers saw: all rows of a task have the same text."""
    others = [name for name in names if name not in columns.values()]
    try:
        label = find_columns(others, {"label": None})["label"]
    except MissingColumn as error:  # of several columns, the user must name one
        label = error.candidates.get("label", "")
        if simplify_name(label) not in role_names("label"):
            return False
    cells = {name: read_column(name) for name in (columns["task"], columns["text"], label)}
    n_rows = len(cells[label])
    n_labels, n_tasks = (len(cells[name].unique()) for name in (label, columns["task"]))
    pairs = pa.table({"task": cells[columns["task"]], "text": cells[columns["text"]]}).group_by(["task", "text"])
    n_pairs = pairs.aggregate([]).num_rows
    return n_tasks == n_pairs < n_rows and 2 * n_labels <= n_rows


def _find_label_set_columns(names: Sequence[str], requested: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of label sets by role, or None if one is missing."""
    return _find_columns(names, requested, {**_TASK_AND_WORKER, "label": _LABEL_SET})


def _find_further_files(folder: Path) -> dict[str, VoteSource]:
    """Return the files beside marks in a folder."""
    return {role: VoteSource.detect(folder / name) for role, name in FURTHER_FILES.items() if (folder / name).is_file()}


def _find_mark_columns(kind: AnswerType, names: Sequence[str], requested: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of marks by role, or None if one is missing; the label is optional."""
    required = {**_TASK_AND_WORKER, **_MARKS[kind]}
    columns = _find_columns(names, requested, required, {"label": role_names("label")})
    if columns is None or len({columns[role] for role in required}) < len(required):
        return None
    return columns


def _hold_offsets(columns: Mapping[str, str], read_column: Callable[[str], pa.ChunkedArray]) -> bool:
    """Return whether columns called start and end hold offsets in texts and not times."""
    values = []
    for role in ("start", "end"):
        cells = read_column(columns[role]).slice(0, _PEEKED_ROWS)
        try:
            values.append(cells.cast(pa.float64(), safe=False).to_numpy())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
    start, end = values
    is_given = ~(np.isnan(start) | np.isnan(end))
    whole = (start == np.floor(start)) & (end == np.floor(end))
    return (
        bool((whole & (start >= 0) & (end > start) & (end < _MAX_OFFSET))[is_given].mean() >= 0.5)
        if is_given.any()
        else False
    )


def read_scores(
    path: SourceLike,
    *,
    task: str | None = None,
    worker: str | None = None,
    score: str | None = None,
    label: str | None = None,
    votes: SourceLike | None = None,
    duplicates: Literal["error", "first", "last", "keep"] = "error",
    missing: Literal["error", "drop"] = "error",
) -> ScoreCrowd:
    """Read scores of judges from a table with one score per row.

    Parameters
    ----------
    path : path-like or VoteSource
        CSV, TSV, Parquet or JSON with the columns task, judge (or worker) and score.
    task, worker, score : str, optional
        Names of columns. Without them, common names are recognised.
    label : str, optional
        Column of labels of people, in rows without a score.
    votes : path-like or VoteSource, optional
        File with votes of people on the same tasks.
    duplicates : {"error", "first", "last", "keep"}, default="error"
        Rule for several scores of a judge on a task.
    missing : {"error", "drop"}, default="error"
        Rule for rows without a score.

    Returns
    -------
    ScoreCrowd

    Raises
    ------
    MissingColumn
        If the table lacks a column.

    Examples
    --------
    >>> _ = Path("scores.csv").write_text("task,judge,score\\nt1,gpt,7\\nt1,llama,0.9\\n")
    >>> read_scores("scores.csv")
    ScoreCrowd(2 scores: 1 task x 2 judges)
    """
    file = VoteSource.detect(path)
    requested = {"task": task, "worker": worker, "score": score, "label": label}
    named = {role: name for role, name in requested.items() if name is not None}
    with prefix_errors(file.path):
        names = [] if file.format.reader.read_names is None else file.format.reader.read_names(file.path)
        columns = _find_score_columns(names, named)
    if columns is None:
        raise MissingColumn(
            f'{path}: scores need the columns task, judge and score; name yours: worker="model", score="grade"',
            ("score",),
        )
    if (
        label is None
        and columns.get("label") is not None
        and not _hold_scores(columns, lambda name: _read_columns(file, [name])[name])
    ):
        columns = {role: name for role, name in columns.items() if role != "label"}
    scores = AnswerTable("scores", file, columns).read(duplicates=duplicates, missing=missing)
    assert isinstance(scores, ScoreCrowd)
    return scores if votes is None else scores.with_votes(VoteSource.detect(votes).read_votes())


def _find_score_columns(names: Sequence[str], requested: Mapping[str, str]) -> dict[str, str] | None:
    """Return the columns of scores by role, or None if one is missing; the label column is optional."""
    required = {**_TASK_AND_WORKER, "score": _SCORE}
    columns = _find_columns(names, requested, required, {"label": role_names("label")})
    if columns is not None and columns.get("label") == columns["score"]:
        del columns["label"]
    return columns


def _hold_scores(columns: Mapping[str, str], read_column: Callable[[str], pa.ChunkedArray]) -> bool:
    """Return whether a table holds scores: it has no labels, or labels only in rows without a score."""
    if "label" not in columns:
        return True
    has_score, has_label = (~find_missing(read_column(columns[role])) for role in ("score", "label"))
    return bool(has_score.any() and not (has_score & has_label).any())


def _find_columns(
    names: Sequence[str],
    requested: Mapping[str, str],
    required: Mapping[str, Sequence[str]],
    optional: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str] | None:
    """Return the columns by role, or None if a required one is missing; both mappings have known names by role."""
    columns = {role: _find_name(names, role, group, requested) for role, group in required.items()}
    if any(name is None for name in columns.values()):
        return None
    columns |= {role: _find_name(names, role, group, requested) for role, group in (optional or {}).items()}
    return {role: name for role, name in columns.items() if name is not None}


def _find_name(names: Sequence[str], role: str, group: Sequence[str], requested: Mapping[str, str]) -> str | None:
    """Return the column of a role: the one that the user named, or the only one with a known name."""
    if role in requested:
        if requested[role] not in names:
            raise MissingColumn(
                f"there is no column {preview([requested[role]])} to be the {role}; the columns are {preview(names, 12)}."
                f"{suggest_name(requested[role][:100], (name for name in names if len(name) <= 100))}",
                (role,),
            )
        return requested[role]
    if role in names and simplify_name(role) in group:
        return role
    if role == "task" and group == _TASK_AND_WORKER["task"] and (exported_id := find_exported_id(names)) is not None:
        return exported_id
    # The first names of a group are the most specific.
    matches = sorted((group.index(simplify_name(name)), name) for name in names if simplify_name(name) in group)
    return matches[0][1] if matches else None


def _hold_masks(columns: Mapping[str, str], read_column: Callable[[str], pa.ChunkedArray]) -> bool:
    """Return whether a table holds masks: dictionaries, names of files, or counts beside the size of the image."""
    cells = read_column(columns["mask"]).slice(0, _PEEKED_ROWS)
    if pa.types.is_struct(cells.type):
        return True
    texts = [str(cell).strip().lower() for cell in cells.to_pylist() if cell is not None and str(cell).strip()]
    if texts and all(text.startswith("{") or text.endswith(SUFFIXES) for text in texts):
        return True
    return all(role in columns for role in _SIZES)


def _hold_sets(column: pa.ChunkedArray) -> bool:
    """Return whether the first cells of a column look like sets: lists, JSON lists, or several labels in a cell."""
    cells = column.slice(0, _PEEKED_ROWS)
    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
        return True
    texts = [str(text) for text in cells.to_pylist() if text is not None]
    return any("|" in text or text.strip().startswith("[") for text in texts)


def _read_columns(file: VoteSource, columns: Sequence[str]) -> pa.Table:
    read = file.format.reader.read_columns
    if read is None:
        raise InputError(
            f"{file.format.description} cannot hold comparisons, label sets, marks or scores; use CSV, TSV, Parquet or JSON"
        )
    return read(file.path, columns)
