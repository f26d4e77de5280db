"""Questions of labelling tools whose answers are not classes: label sets, comparisons, spans, boxes, points and texts."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.comparisons import OUTCOMES, TIE, Comparisons
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import DataWarning, InputError, preview
from wisecrowd.io.answer_tables import MARK_CROWDS, NOUNS
from wisecrowd.io.problems import prefix_errors
from wisecrowd.io.tables.columns import simplify_name
from wisecrowd.io.tools.exported_answers import ExportedAnswers, ExportedQuestion
from wisecrowd.io.tools.exported_structures import ExportedStructure
from wisecrowd.io.tools.question_votes import (
    choose_question,
    describe_left_out,
    find_question_kind,
    find_vote_rows,
    list_options,
    name_workers,
)
from wisecrowd.io.tools.structured_questions import build_structured_crowd, build_structured_table, log_notes
from wisecrowd.io.vote_source import VoteSource

log = logging.getLogger("wisecrowd.io")

#: Keys of a task's data that hold the two items of a pairwise question, without case, spaces, dashes and underscores.
LEFT_KEYS = ("left", "leftitem", "modela", "responsea", "answera", "outputa", "optiona", "itema", "candidatea", "a")
RIGHT_KEYS = ("right", "rightitem", "modelb", "responseb", "answerb", "outputb", "optionb", "itemb", "candidateb", "b")
#: Answer types of marks and texts.
STRUCTURE_KINDS = (*MARK_CROWDS, "texts")
_COMPARISON_COLUMNS = ("task", "worker", "left", "right", "label", "weight")
_SET_SCHEMA = pa.schema([("task", pa.string()), ("worker", pa.string()), ("labels", pa.list_(pa.string()))])


@dataclass(frozen=True)
class AnswerQuestion:
    """Question of an export whose answers are label sets, comparisons, marks or texts.

    It has the interface of `wisecrowd.io.answer_tables.AnswerTable`.

    Parameters
    ----------
    answer_type : {"pairwise", "multilabel", "spans", "boxes", "points", "texts"}
        Type of the answers.
    source : VoteSource
        Export.
    name : str
        Question.
    export : ExportedAnswers
        All answers.
    is_assumed : bool, default=False
        Whether the type of the answers is an assumption, because the export does not say it.
    """

    answer_type: AnswerType
    source: VoteSource
    name: str
    export: ExportedAnswers
    is_assumed: bool = False

    @property
    def columns(self) -> Mapping[str, str]:
        """Column of `read_table` by role."""
        if self.answer_type == "pairwise":
            return {name: name for name in _COMPARISON_COLUMNS}
        if self.answer_type == "texts":
            return {name: name for name in ("task", "worker", "text")}
        if self.answer_type in MARK_CROWDS:
            names = ("task", "worker", *MARK_CROWDS[self.answer_type].coordinate_names, "label")
            return {name: name for name in names}
        return {"task": "task", "worker": "worker", "label": "labels"}

    @property
    def description(self) -> str:
        """Noun phrase for messages: the kind of answers and the question."""
        return f"{NOUNS[self.answer_type]} (question {self.name})"

    @property
    def structure(self) -> ExportedStructure:
        """Answers that are marks or texts. Answers to a question of classes are texts, too."""
        if self.name in self.export.structures:
            return self.export.structures[self.name]
        question = self.export.questions[self.name]
        texts = ExportedStructure(self.name, "texts")
        for row in find_vote_rows(question):
            answer = question.labels[row][0]
            texts.add_answer(question.task[row], question.worker[row], answer, machine=question.machine[row])
        return texts

    def read_table(self) -> pa.Table:
        """Return the answers as a table.

        Returns
        -------
        pyarrow.Table
        """
        if self.answer_type == "pairwise":
            return pa.table(_make_comparison_columns(self.export, self.name))
        if self.answer_type in STRUCTURE_KINDS:
            return build_structured_table(self.structure, duplicates="last")
        return _make_set_table(self.export.questions[self.name])

    def read_documents(self) -> None:
        """Return no tokens: tools count characters."""
        return

    def read(self, **options: Any) -> Comparisons | LabelSetCrowd | MarkCrowd | TextCrowd:
        """Return the answers.

        Parameters
        ----------
        **options
            Options of `Comparisons.from_frame` or `LabelSetCrowd.from_frame`, except the names of columns; ``duplicates`` for marks
            and texts.

        Returns
        -------
        Comparisons, LabelSetCrowd, MarkCrowd or TextCrowd
        """
        if self.is_assumed:
            warnings.warn(
                f"{self.source.name}: the answers to {preview([self.name])} were read as texts, because most are different and "
                "long; JSON_MIN does not say which control they come from. If they are classes, name a method for classes "
                "(-m majority-vote); to be sure, export JSON instead of JSON_MIN",
                DataWarning,
                stacklevel=2,
            )
        with prefix_errors(self.source.path):
            if self.answer_type in ("pairwise", "multilabel") and self.name in self.export.questions:
                question = self.export.questions[self.name]
                for note in describe_left_out(question, self.export, find_vote_rows(question)):
                    log.info("%s: %s", self.source.name, note)
            if self.answer_type == "pairwise":
                return build_comparisons(self.export, self.name, **options)
            if self.answer_type in STRUCTURE_KINDS:
                log_notes(self.structure, self.export, self.source.name)
                return build_structured_crowd(self.structure, duplicates=options.get("duplicates", "error"))
            return build_label_sets(self.export.questions[self.name], **options)


def find_answer_question(
    source: VoteSource, question: str | None = None, *, as_texts: bool = False
) -> AnswerQuestion | None:
    """Return the question of an export if its answers are not classes.

    Parameters
    ----------
    source : VoteSource
        Export of a labelling tool.
    question : str, optional
        Name of the question. An export with a single question needs none.
    as_texts : bool, default=False
        Whether answers to a question of classes are texts, such as transcriptions.

    Returns
    -------
    AnswerQuestion or None
        None if the answers are ordinary votes, or the question cannot be told.

    Raises
    ------
    UsageError
        If all questions have marks or texts as answers, and none is named.
    """
    export = source.read_export()
    # Questions of classes come first, as they did before others were read.
    names = list(dict.fromkeys([*export.questions, *export.rankings])) or list(export.structures)
    name = question if question is not None else names[0] if len(names) == 1 else None
    if name is None and export.structures and not export.questions:
        name = choose_question(export.structures, None)
    if export.structures and question is not None and not export.questions:
        choose_question(export.structures, question)  # refuse a name that is misspelt
    if name in export.structures:
        return AnswerQuestion(export.structures[str(name)].kind, source, str(name), export)
    if as_texts and name in export.questions:
        return AnswerQuestion("texts", source, str(name), export)
    if name in export.rankings:
        return AnswerQuestion("pairwise", source, str(name), export)
    if name is None or name not in export.questions:
        return None
    chosen = export.questions[name]
    if chosen.assumed_text:
        return AnswerQuestion("texts", source, name, export, is_assumed=True)
    if chosen.control.get("type") == "pairwise" and any(_find_items(data) for data in export.tasks.values()):
        return AnswerQuestion("pairwise", source, name, export)
    return AnswerQuestion("multilabel", source, name, export) if find_question_kind(chosen) == "multiple" else None


def build_label_sets(question: ExportedQuestion, *, duplicates: Any = "error") -> LabelSetCrowd:
    """Build label sets from the answers to a multiple-choice question.

    Parameters
    ----------
    question : ExportedQuestion
        Answers.
    duplicates : {"error", "first", "last", "union"}, default="error"
        Rule for repeated answers of a worker.

    Returns
    -------
    LabelSetCrowd
        Its labels are all options of the question, in their order.

    Examples
    --------
    >>> question = ExportedQuestion("topics", options={"food": None, "price": None, "staff": None})
    >>> question.add_answer("t1", "ann", ["price", "food"])
    >>> question.add_answer("t1", "bob", [])
    >>> sets = build_label_sets(question)
    >>> sets.to_frame()["labels"].tolist(), sets.labels.tolist()
    ([['food', 'price'], []], ['food', 'price', 'staff'])
    """
    return LabelSetCrowd.from_frame(_make_set_table(question), labels=list_options(question), duplicates=duplicates)


def _make_set_table(question: ExportedQuestion) -> pa.Table:
    rows, workers = find_vote_rows(question), name_workers(question)
    columns = {
        "task": [question.task[row] for row in rows],
        "worker": [workers[row] for row in rows],
        "labels": [list(question.labels[row]) for row in rows],
    }
    return pa.table(columns, schema=_SET_SCHEMA)


def build_comparisons(export: ExportedAnswers, name: str, **options: Any) -> Comparisons:
    """Build comparisons from a pairwise question or a ranking.

    A ranking of k items gives k (k − 1) / 2 comparisons of weight 2 / k, which count as k − 1 together. The order in which a tool
    showed ranked items is unknown, so the items of a comparison are in the order of their ids.

    Parameters
    ----------
    export : ExportedAnswers
        Answers.
    name : str
        Question.
    **options
        Options of `Comparisons.from_frame`, except the names of columns.

    Returns
    -------
    Comparisons

    Raises
    ------
    InputError
        If the data of a task does not name the two items.

    Examples
    --------
    >>> export = ExportedAnswers()
    >>> export.rankings["best"] = [("t1", "ann", (("b",), ("a",), ("c",)))]
    >>> build_comparisons(export, "best").to_frame()[["left", "right", "label"]].values.tolist()
    [['a', 'b', 'b'], ['a', 'c', 'a'], ['b', 'c', 'b']]
    """
    columns = _make_comparison_columns(export, name)
    return Comparisons.from_frame(columns, worker="worker", task="task", weight="weight", **options)


def _make_comparison_columns(export: ExportedAnswers, name: str) -> dict[str, list[Any]]:
    if name in export.rankings:
        rows = [row for ranking in export.rankings[name] for row in _iter_pairs(*ranking)]
    else:
        rows = list(_iter_pairwise(export, name))
    if not rows:
        raise InputError(f"nobody answered {preview([name])}, so there are no comparisons")
    return dict(zip(_COMPARISON_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def _iter_pairs(
    task: str, worker: str, order: tuple[tuple[str, ...], ...]
) -> Iterator[tuple[str, str, str, str, str, float]]:
    """Yield the comparisons of a ranking: groups of equal items, the best first."""
    rank = {item: number for number, group in enumerate(order) for item in group}
    for left, right in combinations(sorted(rank), 2):
        winner = OUTCOMES[TIE] if rank[left] == rank[right] else left if rank[left] < rank[right] else right
        yield task, worker, left, right, winner, 2 / len(rank)


def _iter_pairwise(export: ExportedAnswers, name: str) -> Iterator[tuple[str, str, str, str, str, float]]:
    """Yield the answers to a pairwise question of Label Studio."""
    question = export.questions[choose_question(export.questions, name)]
    workers = name_workers(question)
    for row in find_vote_rows(question):
        task, (label,) = question.task[row], question.labels[row]
        items = _find_items(export.tasks.get(task, {}))
        if items is None:
            raise InputError(
                f"the data of task {preview([task])} does not name the two items that were compared; expected keys such as "
                "model_a and model_b. Add them to the tasks, or read the question as votes for left and right with wisecrowd.read"
            )
        yield task, workers[row], *items, label, 1.0


def _find_items(task: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the ids of the left and right item from the data of a task, or None if it does not name them."""
    data = task.get("data")
    if not isinstance(data, Mapping):
        return None
    by_name = {simplify_name(str(key)): str(value) for key, value in data.items() if isinstance(value, str | int)}
    for left, right in zip(LEFT_KEYS, RIGHT_KEYS, strict=True):
        if left in by_name and right in by_name and by_name[left] != by_name[right]:
            return by_name[left], by_name[right]
    return None
