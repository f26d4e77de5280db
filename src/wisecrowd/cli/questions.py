"""``wisecrowd questions``: list the questions in the export of a labelling tool."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show, show_facts, show_hanging, show_json, show_verbatim, table
from wisecrowd.cli._options import flag
from wisecrowd.cli._reading import MaxUnpacked

if TYPE_CHECKING:
    from wisecrowd.io.tools.projects import Project, Question
    from wisecrowd.io.tools.structured_questions import StructuredQuestion

Export = Annotated[
    Path,
    typer.Argument(metavar="EXPORT", show_default=False, help="Export of a labelling tool: a file or folder."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", show_default=False, help="Labelling tool, if it is not recognised."),
]


def questions(
    export: Export,
    *,
    format: Format = None,
    max_unpacked: MaxUnpacked = None,  # noqa: ARG001  # it applies while the command runs
    as_json: Annotated[bool, flag("--json", help="Print the figures as JSON instead.")] = False,
) -> None:
    """List the questions in the export of a labelling tool, with their votes.

    Exports of Label Studio, Argilla, doccano, Prodigy, CVAT, Toloka, Mechanical
    Turk and CrowdFlower, COCO with annotators, and tables of Hugging Face, are
    recognised by what they hold:

      wisecrowd questions export.json
      wisecrowd questions results.csv --format mturk

    The kind is single, multiple or number for labels of whole tasks, or spans,
    boxes, points or texts. Predictions of models count as votes of machines.
    Skipped and cancelled tasks, polygons, and results of wisecrowd are ignored.
    """
    from wisecrowd.io.tools.projects import read_project

    project = read_project(export, format, duplicates="keep")
    figures = {
        "export": str(export),
        "format": project.format,
        "tasks": len(project.tasks),
        "questions": {
            **{name: _figures(one) for name, one in project.questions.items()},
            **{name: _structured_figures(one) for name, one in project.structured.items()},
        },
        "left_out": dict(project.excluded),
    }
    if as_json:
        show_json(figures)
    else:
        _show(export, project, figures, format)


def _figures(question: Question) -> dict[str, Any]:
    crowd, machines = question.crowd, question.machines
    of_question = {why: n for why, n in question.excluded.items() if n}
    return {
        "kind": question.kind,
        "votes": crowd.n_votes,
        "people": crowd.n_workers - len(machines),
        "machines": machines,
        "tasks": crowd.n_tasks,
        "classes": None if crowd.classes is None else len(crowd.classes),
        "options": list(question.options) or None,
        "gold": 0 if question.truth is None else len(question.truth),
        "answered_by_wisecrowd": 0 if question.consensus is None else len(question.consensus),
        "left_out": of_question,
    }


def _structured_figures(question: StructuredQuestion) -> dict[str, Any]:
    """Return the figures of a question of marks or texts. Answers that cannot be read are counted, with the reason."""
    from wisecrowd.errors import InputError

    structure, problem = question.structure, None
    try:
        n_votes = question.crowd.n_votes
    except InputError as error:
        n_votes, problem = len(structure.task), str(error)
    machines = question.machines
    return {
        "kind": question.kind,
        "votes": n_votes,
        "people": len(question.kinds) - len(machines),
        "machines": machines,
        "tasks": len(set(structure.task)),
        "classes": None if question.kind == "texts" else len(question.labels),
        "options": None if question.kind == "texts" else question.labels,
        "marks": None if question.kind == "texts" else sum(map(len, structure.answers)),
        "unit": structure.unit,
        "gold": len(structure.truth),
        "answered_by_wisecrowd": len(structure.consensus),
        "left_out": dict(question.excluded),
        "problem": problem,
        "notes": question.notes,
    }


def _show(export: Path, project: Project, figures: dict[str, Any], format: str | None) -> None:
    from wisecrowd.io.formats import FORMATS
    from wisecrowd.io.tools.question_votes import format_counts
    from wisecrowd.utils.text import count_noun

    facts = figures["questions"]
    show_facts(
        [
            ("Read", str(export)),
            ("What", FORMATS[project.format].description),
            ("Tasks", count_noun(figures["tasks"], "task")),
        ]
    )
    show()
    rows = [
        [name, one["kind"], *(f"{n:,}" for n in (one["votes"], one["tasks"], one["people"], len(one["machines"]), one["gold"]))]
        for name, one in facts.items()
    ]  # fmt: skip
    show(table(["question", "kind", "votes", "tasks", "people", "machines", "gold"], rows, n_text_columns=2))
    notes = [
        (f"Left out of {name}" if len(facts) > 1 else "Left out", format_counts(one["left_out"]))
        for name, one in facts.items()
    ]
    notes = [(what, text) for what, text in notes if text]
    notes += [("Machines", ", ".join(dict.fromkeys(name for one in facts.values() for name in one["machines"])))]
    notes += [("Note", text) for text in project.notes]
    notes += [("Note", text) for one in facts.values() for text in one.get("notes", ())]
    notes += [("Problem", one["problem"]) for one in facts.values() if one.get("problem")]
    notes = [(what, text) for what, text in notes if text]
    if notes:
        show()
        show_facts(notes)
    show()
    first = next(iter(facts))
    read_options = {"format": format, "question": first if len(facts) > 1 else None}
    more = [
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in read_options.items() if value is not None
    ]
    words = [word for name, value in read_options.items() if value is not None for word in (f"--{name}", value)]
    show_hanging("Next  ", shlex.join(["wisecrowd", "aggregate", str(export), *words, "-o", "results"]), style="bold")
    show()
    show("In Python:")
    kind = facts[first]["kind"]
    reader = f"read_{kind}" if kind in ("spans", "boxes", "points", "texts") else "read"
    show_verbatim(f"  wisecrowd.{reader}({', '.join([json.dumps(str(export), ensure_ascii=False), *more])})")
