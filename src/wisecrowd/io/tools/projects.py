"""Exports of labelling tools: several questions in one project, each with a crowd of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.formats import Format, Options, about, find_format, formats
from wisecrowd.io.problems import EmptyInput, MissingColumn
from wisecrowd.io.tables.columns import find_columns
from wisecrowd.io.tables.parquet import read_schema
from wisecrowd.io.tables.text import head_lines
from wisecrowd.io.tools.answers import (
    MACHINE,
    chosen,
    kind_of,
    known_options,
    left_out_of,
    names_of,
    nothing,
    rows_of_votes,
    set_of,
    truth_from,
    votes_from,
    written_set,
)  # fmt: skip
from wisecrowd.io.tools.exports import objects_in, whole_text
from wisecrowd.io.tools.gathering import Asked, Gathering

__all__ = ["Project", "Question", "read_project", "set_of", "written_set"]

PERSON = "person"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Question:
    """One question of a project: who answered what, and all that the tool tells beside it.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "gpt", "dog")])
    >>> question = Question(name="animal", kind="single", crowd=crowd, kinds=pd.Series({"ann": "person", "gpt": "machine"}))
    >>> question
    Question('animal', single, Crowd(2 labels: 1 tasks x 2 workers, 2 classes, 2.0 labels/task), 1 machine)
    >>> question.people
    Crowd(1 labels: 1 tasks x 1 workers, 2 classes, 1.0 labels/task)
    """

    name: str
    #: One option, several options, or a number.
    kind: Literal["single", "multiple", "number"]
    #: The votes, of people and machines; of a multiple-choice question, the sets of options that were chosen.
    crowd: Crowd
    #: Worker -> "person" or "machine".
    kinds: pd.Series[Any]
    #: What the tool marks as right, by task.
    truth: pd.Series[Any] | None = None
    #: Worker -> model, vendor or channel, where the tool tells.
    groups: pd.Series[Any] | None = None
    #: How sure machines were, and of what: task, worker, label, score.
    scores: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame({"task": [], "worker": [], "label": [], "score": []})
    )
    #: How long answers took: task, worker, seconds.
    seconds: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"task": [], "worker": [], "seconds": []}))
    #: Why answers are not among the votes, and how many.
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    #: Of a multiple-choice question: option -> a crowd of "no" and "yes".
    options: Mapping[str, Crowd] = field(default_factory=lambda: MappingProxyType({}))
    #: What wisecrowd wrote into the tool before, by task: label and confidence. It is no vote.
    consensus: pd.DataFrame | None = None
    #: How the tool calls the question, for whoever writes answers back into it.
    control: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def joint(self) -> Crowd:
        """A crowd whose classes are the sets of options that were chosen, written "a|b"."""
        return self.crowd

    @property
    def machines(self) -> list[str]:
        """The workers who are machines."""
        return list(self.kinds.index[self.kinds == MACHINE])

    @property
    def people(self) -> Crowd:
        """The votes without those of machines; tasks and classes stay."""
        machines = set(self.machines)
        return self.crowd.select_workers([worker for worker in self.kinds.index if worker not in machines])

    def __repr__(self) -> str:
        n = len(self.machines)
        machines = f", {n} machine{'s' * (n > 1)}" if n else ""
        return f"Question({self.name!r}, {self.kind}, {self.crowd!r}{machines})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Project:
    """All that an export holds: its questions by name, and its tasks as the tool wrote them.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> animal = Question(name="animal", kind="single", crowd=crowd, kinds=pd.Series({"ann": "person"}))
    >>> project = Project(format="prodigy", questions={"animal": animal})
    >>> project
    Project(prodigy: 'animal')
    >>> project.question().name
    'animal'
    """

    #: The name of the format, such as "label-studio".
    format: str
    questions: Mapping[str, Question]
    #: Task -> what the tool holds of it.
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    #: What concerns no one question and was left out: boxes, spans, whole tasks that were skipped.
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    #: What to know of the export, such as that the tool does not tell drafts from answers.
    notes: tuple[str, ...] = ()

    def question(self, name: str | None = None) -> Question:
        """The question of that name; the only one needs no name."""
        base, equals, _ = (name or "").partition("=")
        if equals and name not in self.questions and base in self.questions:
            raise UsageError(
                f"{name!r} is one option of {base!r}, whose votes are among its options; a tool takes answers to {base!r} as a "
                f"whole, which are sets of options: question={base!r} (wisecrowd aggregate --question {base})"
            )
        return self.questions[chosen(self.questions, name)]

    def __repr__(self) -> str:
        return f"Project({self.format}: {some(self.questions, 6)})"


def read_project(
    path: str | os.PathLike[str], format: str | None = None, *, duplicates: Duplicates = "error"
) -> Project:
    """Read all questions in the export of a labelling tool.

    The tool is recognised by what the file holds, unless ``format`` names it. ``duplicates`` says what to do when one worker
    answered a question about a task more than once, as for :func:`wisecrowd.read`; where times are known, the first and the last
    answer are so by time.

    >>> record = '{"text": "Hi", "_input_hash": 1, "_session_id": "demo-ann", "_view_id": "choice", "accept": ["good"], "answer": "accept"}'
    >>> _ = Path("answers.jsonl").write_text(record + "\\n")
    >>> read_project("answers.jsonl").question().crowd.to_frame().to_dict("records")
    [{'task': '1', 'worker': 'demo-ann', 'label': 'good'}]
    """  # noqa: E501
    place = Path(path)
    form = find_format(place, format)
    if form.project is None:
        with about(place):
            what = _what_it_is(place, form)
        tools = ", ".join(known.name for known in formats().values() if known.project is not None)
        raise InputError(
            f"{place} is {what}. If a labelling tool exported it, say which, for example "
            f'format="label-studio" (--format label-studio). There are {tools}'
        )
    with about(place):
        return project_of(form.project(place), form.name, duplicates=duplicates)


def project_of(gathered: Gathering, format: str, *, duplicates: Duplicates = "error") -> Project:
    """The project in what was gathered from an export, or from a server.

    >>> gathered = Gathering()
    >>> gathered.question("animal").answer("t1", "ann", ["cat"])
    >>> project_of(gathered, "label-studio")
    Project(label-studio: 'animal')
    """
    questions = {name: _question(asked, gathered, duplicates) for name, asked in gathered.asked.items()}
    if not questions:
        raise EmptyInput(nothing(gathered))
    return Project(
        format=format,
        questions=MappingProxyType(questions),
        tasks=MappingProxyType(gathered.tasks),
        left_out=MappingProxyType(dict(gathered.left_out)),
        notes=tuple(gathered.notes),
    )


# ---------------------------------------------------------------------- inside


def _what_it_is(path: Path, form: Format) -> str:
    """What a file is that is no export; one that is not even the table that it seems to be is refused."""
    if form.name == "parquet":
        read_schema(path)
    elif form.name in ("json", "jsonl"):
        text = whole_text(path)
        found = objects_in(text, "a list of tasks, as a labelling tool exports them,")
        keys = f"whose keys are {some(found[0], 8)}" if found[0] else "with nothing in it"
        if form.name == "json" and len(found) == 1 and not text.lstrip().startswith("["):
            raise InputError(
                f"it is one JSON object, {keys}; a list of tasks, as a labelling tool exports them, was wanted. "
                "If it tells of an error, export again"
            )
        try:
            find_columns(list(found[0]), {"task": None, "label": None})
        except MissingColumn:
            return f"{form.about}, {keys}: neither votes nor an export that is known by them"
    elif form.is_table:
        head_lines(path)
    return f"{form.about}, with one question and no more; wisecrowd.read gives its votes"


def _question(asked: Asked, gathered: Gathering, duplicates: Duplicates) -> Question:
    kind, names, rows = kind_of(asked), names_of(asked), rows_of_votes(asked)
    votes = votes_from(asked, names, rows)
    try:
        crowd = votes.crowd(Options(duplicates=duplicates)) if rows else _nobody(asked, kind)
    except InputError as error:
        error.args = (f"question {asked.name!r}: {error}",)
        raise
    machine = {name: asked.machine[row] for row, name in enumerate(names)}
    workers: list[str] = [] if crowd.workers is None else crowd.workers.tolist()
    plain = dict(zip(names, asked.worker, strict=True))
    told = {name: gathered.groups[plain[name]] for name in workers if plain[name] in gathered.groups}
    index = pd.Index(workers, name="worker", dtype=object)
    groups = pd.Series([told.get(name) for name in workers], index=index, name="group", dtype=object) if told else None
    return Question(
        name=asked.name,
        kind=kind,
        crowd=crowd,
        kinds=pd.Series([MACHINE if machine[name] else PERSON for name in workers], index=index, name="kind", dtype=object),
        truth=truth_from(asked),
        groups=groups,
        scores=_told(asked.score, "score", asked, names, rows, kind),
        seconds=_told(asked.seconds, "seconds", asked, names, rows),
        left_out=MappingProxyType(left_out_of(asked, gathered, rows)),
        options=MappingProxyType(_by_option(asked, crowd) if kind == "multiple" else {}),
        consensus=_consensus(asked, kind),
        control=MappingProxyType(asked.control),
    )  # fmt: skip


def _nobody(asked: Asked, kind: str) -> Crowd:
    classes = None if kind == "number" else known_options(asked) if kind == "single" else []
    return Crowd([], [], [], tasks=[], workers=[], classes=classes)


def _told(
    values: list[float], name: str, asked: Asked, names: list[str], rows: list[int], kind: str | None = None
) -> pd.DataFrame:
    """What is known of answers beside what was said, and that, too, where the ``kind`` of the question is told."""
    known = [row for row in rows if values[row] == values[row]]
    columns = {"task": [asked.task[row] for row in known], "worker": [names[row] for row in known]}
    if kind is not None:
        said = [asked.said[row] for row in known]
        columns["label"] = [written_set(one) if kind == "multiple" else one[0] for one in said]
    frame = pd.DataFrame(columns, dtype=object).assign(
        **{name: np.array([values[row] for row in known], dtype=np.float64)}
    )
    return frame.astype({"label": float}) if kind == "number" else frame


def _by_option(asked: Asked, joint: Crowd) -> dict[str, Crowd]:
    """For each option, who chose it and who did not."""
    sets = [set(set_of(str(name))) for name in (() if joint.classes is None else joint.classes)]
    return {
        option: Crowd(
            joint.task,
            joint.worker,
            np.array([option in one for one in sets], dtype=np.int32)[joint.label],
            tasks=joint.tasks,
            workers=joint.workers,
            classes=["no", "yes"],
            time=joint.time if joint.has_times else None,
            duplicates="keep",
            tasks_given=joint.tasks_given,
        )
        for option in known_options(asked)
    }


def _consensus(asked: Asked, kind: str) -> pd.DataFrame | None:
    if not asked.consensus:
        return None
    written = {
        task: (written_set(said) if kind == "multiple" else (said or ("",))[0], score)
        for task, (said, score) in asked.consensus.items()
    }
    frame = pd.DataFrame.from_dict(written, orient="index", columns=["label", "confidence"]).rename_axis("task")
    return frame.astype({"label": float}) if kind == "number" else frame
