"""``wisecrowd export``: files that labelling tools import, and datasets for publication."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, warn
from wisecrowd.cli._options import Quiet, flag, parse_output_path
from wisecrowd.cli._reading import MaxUnpacked

if TYPE_CHECKING:
    from wisecrowd.io.tools.projects import Project

HUGGING_FACE = "hugging-face"


def export(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            show_default=False,
            help="Folder that wisecrowd aggregate or plan wrote, the table of wisecrowd review, or a table with task and label (or "
            "truth, for decisions of people).",
        ),
    ],
    *,
    project: Annotated[
        Path,
        typer.Option(
            metavar="EXPORT", show_default=False, help="Export of the labelling tool that the votes came from."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=parse_output_path, metavar="FILE", show_default=False, help="File to write."
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TOOL",
            show_default=False,
            help="label-studio, argilla, doccano, prodigy, cvat, coco or hugging-face. Default: the tool of the export.",
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Question that the results answer.")
    ] = None,
    queue: Annotated[
        bool, flag("--queue", help="Write the tasks to label next, most urgent first, instead of labels.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            show_default=False,
            help="Labelling tool of the export, if it is not recognised.",
        ),
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            show_default=False,
            help="For hugging-face: rule for repeated votes. Default: the rule that made the results.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="For hugging-face: file with the key that hides worker ids. Default: variable WISECROWD_KEY.",
        ),
    ] = None,
    max_unpacked: MaxUnpacked = None,  # noqa: ARG001  # it applies while the command runs
    force: Annotated[bool, flag("--force", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, flag("--json", help="Print the figures as JSON instead.")] = False,
) -> None:
    """Write labels, or the tasks to label next, as a file that a labelling tool imports.

    Labels with confidence become predictions of Label Studio, suggestions of
    Argilla, or prelabelled examples of doccano and Prodigy. When a later export
    contains them, wisecrowd recognises them and does not count them as votes:

      wisecrowd export results --project export.json -o predictions.json
      wisecrowd export results --project export.json --question mood -o mood.json

    Objects and texts become regions of predictions, spans or suggestions; boxes
    and points also XML of CVAT and COCO JSON.

    Decisions of wisecrowd review become annotations of Label Studio that are
    marked as ground truth, and labels with confidence 1 in the other tools:

      wisecrowd export checked.csv --project export.json -o gold.json

    Tasks that need more votes, from wisecrowd plan or a list of tasks:

      wisecrowd export next --queue --project export.json -o again.json

    Votes, soft labels and labels as a Hugging Face dataset. Worker ids are
    replaced by a keyed hash; a key is required:

      wisecrowd export results --to hugging-face --project votes.csv -o v.parquet
    """
    from wisecrowd.errors import UsageError

    check_file(output, [results, project], force=force)
    if queue and to == HUGGING_FACE:
        raise UsageError(
            "--queue writes tasks for a labelling tool and does not go with --to hugging-face; leave one out"
        )
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
    from wisecrowd.cli._results import (
        GOLD,
        check_question,
        check_same_project,
        find_structures,
        read_answers,
        read_queue,
    )
    from wisecrowd.errors import UsageError
    from wisecrowd.io.tools.consensus_export import TOOLS, find_export_warnings, write_answers, write_gold, write_queue
    from wisecrowd.io.tools.projects import read_project
    from wisecrowd.io.tools.structured_export import STRUCTURED_TOOLS
    from wisecrowd.utils.text import count_noun

    if to is not None and to not in TOOLS and to not in STRUCTURED_TOOLS:
        tools = dict.fromkeys([*TOOLS, *STRUCTURED_TOOLS, HUGGING_FACE])
        raise UsageError(f"--to must be one of {', '.join(tools)}; got {to!r}")
    labelling_project = read_project(project, format, duplicates="keep")
    if to is not None and to.removesuffix("-min") != labelling_project.format.removesuffix("-min"):
        raise UsageError(f"{project} is an export of {labelling_project.format}, not of {to}; leave --to out")
    for warning in find_export_warnings(labelling_project):
        warn(f"{project}: {warning}")
    if queue:
        tasks = read_queue(results)
        write_queue(tasks, labelling_project, output)
        n = len(set(tasks))
        return {
            "tool": labelling_project.format,
            "queue": n,
            "sentence": f"{count_noun(n, 'task')} to label again, for {labelling_project.format}",
        }
    if find_structures(results):
        return _write_structures(results, project, labelling_project, output, question)
    table, run = read_answers(results)
    chosen = check_question(results, run, question)
    check_same_project(results, run, project, labelling_project, table.index)
    if run.get("answers") == GOLD:
        write_gold(table["label"], labelling_project, output, question=chosen)
    else:
        write_answers(table, labelling_project, output, question=chosen, model=str(run.get("method", "")))
    exported_question = labelling_project.get_question(chosen)
    sentence = f"{count_noun(len(table), 'answer')} to {exported_question.name!r}, for {labelling_project.format}"
    return {
        "tool": labelling_project.format,
        "question": exported_question.name,
        "answers": len(table),
        "sentence": sentence,
    }


def _write_structures(
    results: Path, path: Path, project: Project, output: Path, question: str | None
) -> dict[str, Any]:
    """Write objects or texts for a labelling tool, and return the figures."""
    from wisecrowd.cli._results import check_question, check_same_project, read_structures
    from wisecrowd.io.tools.structured_export import write_objects, write_texts
    from wisecrowd.utils.text import count_noun

    structures = read_structures(results)
    chosen = check_question(results, structures.run, question)
    task_ids = structures.table.index if structures.is_texts else structures.table["task"]
    check_same_project(results, structures.run, path, project, task_ids)
    model = str(structures.run.get("method", ""))
    if structures.is_texts:
        write_texts(structures.table, project, output, question=chosen, model=model)
    else:
        write_objects(structures.table, project, output, tasks=structures.tasks, question=chosen, model=model)
    kind = str(structures.run.get("answers") or ("texts" if structures.is_texts else "objects"))
    names = [*project.structured, *project.questions] if structures.is_texts else list(project.structured)
    name = chosen or names[0]  # the only one, as writing has checked
    n, tasks = len(structures.table), count_noun(structures.n_tasks, "task")
    sentence = f"{n:,} {kind} in {tasks}, answers to {name!r}, for {project.format}"
    return {"tool": project.format, "question": name, "answers": n, "sentence": sentence}


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
    from wisecrowd.cli._results import (
        check_question,
        check_results_match,
        read_answers,
        read_posterior,
        restore_reading,
    )
    from wisecrowd.errors import InputError
    from wisecrowd.io.problems import MissingColumn
    from wisecrowd.io.research.release import load_release_key, write_release
    from wisecrowd.io.tools.projects import read_project
    from wisecrowd.utils.text import count_noun

    key = load_release_key(key_file)
    table, run = read_answers(results)
    chosen = check_question(results, run, question)
    reading = restore_reading(run, project, question=chosen, format=format, duplicates=duplicates)
    source = reading.open(project)
    try:
        with reading.silence_notes(quiet=quiet):
            crowd = reading.read(source)
    except MissingColumn as error:  # its advice is for other commands
        error.args = (
            f"{error}. wisecrowd export reads the columns as the results record them: run wisecrowd aggregate {project} first",
        )
        raise
    if crowd.workers is None:
        raise InputError(
            f"{results} was made with --no-workers, and a dataset needs worker ids; run wisecrowd aggregate {project} "
            "without --no-workers first"
        )
    check_results_match(results, run, table, project, crowd, source.format.name)
    if crowd.is_numeric:
        table["label"] = table["label"].astype(float)
    sets = False
    if source.format.is_tool and "=" not in (chosen or ""):  # one option of a question is answered by yes or no
        sets = read_project(source, duplicates="keep").get_question(chosen).kind == "multiple"
    posterior = None if run.get("answers") == "multilabel" else read_posterior(results, run)
    write_release(crowd, output, key=key, answers=table, posterior=posterior, sets=sets)
    n_votes, n_tasks = count_noun(crowd.n_votes, "vote"), count_noun(crowd.n_tasks, "task")
    sentence = f"{n_votes} on {n_tasks}, {count_noun(crowd.n_workers, 'worker')} "
    return {
        "tool": HUGGING_FACE,
        "votes": crowd.n_votes,
        "tasks": crowd.n_tasks,
        "workers": crowd.n_workers,
        "soft_labels": "votes" if posterior is None else "posterior",
        "sentence": sentence + "under pseudonyms",
    }


def check_file(output: Path, inputs: list[Path], *, force: bool) -> None:
    """Raise an error if the output file cannot be written, before any work is done.

    Parameters
    ----------
    output : Path
        File to write.
    inputs : list of Path
        Files that the command reads and must not overwrite.
    force : bool
        Whether an existing file may be overwritten.
    """
    from wisecrowd.cli._outputs import check_writable
    from wisecrowd.errors import UsageError

    if output.is_dir():
        raise UsageError(f"{output} is a folder; -o takes a file")
    check_writable(output)
    if output.exists():
        if output.resolve() in {path.resolve() for path in inputs}:
            raise UsageError(f"{output} is an input file and would be overwritten; choose another file with -o")
        if not force:
            raise UsageError(f"{output} exists; choose another file with -o, or overwrite it with --force")
