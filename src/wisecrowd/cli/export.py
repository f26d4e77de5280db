"""``wisecrowd export``: answers back into the tool that people label in, and votes for others to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, warn
from wisecrowd.cli._options import Quiet, flag, place

HUGGING_FACE = "hugging-face"


def export(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            show_default=False,
            help="What wisecrowd aggregate or plan wrote with -o, or a table with the columns task and label.",
        ),
    ],
    *,
    project: Annotated[
        Path,
        typer.Option(
            metavar="EXPORT", show_default=False, help="The export of the tool that the votes were read from."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", parser=place, metavar="FILE", show_default=False, help="What to write."),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TOOL",
            show_default=False,
            help="label-studio, argilla, doccano, prodigy or hugging-face; the tool of the export unless given.",
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="The question that was answered.")
    ] = None,
    queue: Annotated[bool, flag("--queue", help="Write tasks to label again, most urgent first, not answers.")] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", show_default=False, help="The tool of the export, when it does not tell."
        ),
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            show_default=False,
            help="For hugging-face: when a worker answered twice, as for other commands; as the results were made unless given.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="For hugging-face: the key that hides worker ids; else the variable WISECROWD_KEY.",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", help="Overwrite a file that is there.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the figures as JSON instead.")] = False,
) -> None:
    """Write answers, or tasks to label again, as a labelling tool imports them.

    Consensus with its confidence: predictions of Label Studio, suggestions of
    Argilla, or examples of doccano and Prodigy with the label filled in. When
    they come back, wisecrowd knows them again, and they are no votes:

      wisecrowd export results --project export.json -o predictions.json
      wisecrowd export results --project export.json --question mood -o mood.json

    Tasks that deserve more votes, from wisecrowd plan or a list of tasks:

      wisecrowd export next --queue --project export.json -o again.json

    Votes, soft labels and answers as a dataset of Hugging Face. Workers go by a
    keyed hash, and without a key nothing is written:

      wisecrowd export results --to hugging-face --project votes.csv -o v.parquet
    """
    from wisecrowd.errors import UsageError

    check_file(output, [results, project], force=force)
    if queue and to == HUGGING_FACE:
        raise UsageError("a queue is for a labelling tool; leave --queue or --to hugging-face out")
    if to == HUGGING_FACE:
        figures = _release(results, project, output, question, format, duplicates, key_file, quiet=quiet)
    else:
        figures = _back(results, project, output, question, format, to, queue=queue)
    if as_json:
        show_json(figures)
    elif not quiet:
        show_facts([("Read", f"{results} and {project}"), ("Wrote", f"{output}: {figures['sentence']}")])


def _back(
    results: Path, project: Path, output: Path, question: str | None, format: str | None, to: str | None, *, queue: bool
) -> dict[str, Any]:
    from wisecrowd.cli._results import answered, answers_in, tasks_in
    from wisecrowd.errors import UsageError
    from wisecrowd.io.tools.projects import read_project
    from wisecrowd.io.tools.write_back import TOOLS, doubts, write_answers, write_queue
    from wisecrowd.utils.text import count_noun

    if to is not None and to not in TOOLS:
        raise UsageError(f"nothing is written for {to!r}; there are {', '.join([*TOOLS, HUGGING_FACE])}")
    held = read_project(project, format, duplicates="keep")
    if to is not None and to.removesuffix("-min") != held.format.removesuffix("-min"):
        raise UsageError(f"{project} is of {held.format}, and its tasks cannot be written for {to}; leave --to out")
    for doubt in doubts(held):
        warn(f"{project}: {doubt}")
    if queue:
        tasks = tasks_in(results)
        write_queue(tasks, held, output)
        n = len(set(tasks))
        return {
            "tool": held.format,
            "queue": n,
            "sentence": f"{count_noun(n, 'task')} to label again, for {held.format}",
        }
    table, run = answers_in(results)
    chosen = answered(results, run, question)
    write_answers(table, held, output, question=chosen, model=str(run.get("method", "")))
    asked = held.question(chosen)
    sentence = f"{count_noun(len(table), 'answer')} to {asked.name!r}, for {held.format}"
    return {"tool": held.format, "question": asked.name, "answers": len(table), "sentence": sentence}


def _release(
    results: Path,
    project: Path,
    output: Path,
    question: str | None,
    format: str | None,
    duplicates: str | None,
    key_file: Path | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    from wisecrowd.cli._results import answered, answers_in, check_votes, posterior_in, reading_of
    from wisecrowd.errors import InputError
    from wisecrowd.io.formats import find_format
    from wisecrowd.io.problems import MissingColumn
    from wisecrowd.io.research.release import release_key, write_release
    from wisecrowd.io.tools.projects import read_project
    from wisecrowd.utils.text import count_noun

    key = release_key(key_file)
    table, run = answers_in(results)
    chosen = answered(results, run, question)
    reading = reading_of(run, project, question=chosen, format=format, duplicates=duplicates)
    form = find_format(project, reading.format)
    try:
        with reading.hushed(quiet=quiet):
            crowd = reading.read(project)
    except MissingColumn as error:  # whose advice is for other commands
        error.args = (
            f"{error}. An export goes by what the results tell of columns: aggregate {project} so, then export",
        )
        raise
    if crowd.workers is None:
        raise InputError(
            f"{results} were made without worker ids, so that there is nothing to release of any worker; aggregate {project} "
            "without --no-workers first"
        )
    check_votes(results, run, table, project, crowd, form.name)
    if crowd.is_numeric:
        table["label"] = table["label"].astype(float)
    sets = False
    if form.project is not None and "=" not in (chosen or ""):  # of one option, the answers are yes and no
        sets = read_project(project, form.name, duplicates="keep").question(chosen).kind == "multiple"
    posterior = posterior_in(results, run)
    write_release(crowd, output, key=key, answers=table, posterior=posterior, sets=sets)
    sentence = f"{count_noun(crowd.n_votes, 'vote')} on {count_noun(crowd.n_tasks, 'task')}, {count_noun(crowd.n_workers, 'worker')} "
    return {
        "tool": HUGGING_FACE,
        "votes": crowd.n_votes,
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "soft_labels": "votes" if posterior is None else "posterior",
        "sentence": sentence + "under pseudonyms",
    }


def check_file(output: Path, inputs: list[Path], *, force: bool) -> None:
    """Refuse a file before the work begins rather than after it."""
    from wisecrowd.cli._outputs import check_writable
    from wisecrowd.errors import UsageError

    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file")
    check_writable(output)
    if output.exists():
        if output.resolve() in {path.resolve() for path in inputs}:
            raise UsageError(f"that would overwrite {output}, which is read; choose another file with -o")
        if not force:
            raise UsageError(f"{output} exists; choose another file with -o, or overwrite it with --force")
