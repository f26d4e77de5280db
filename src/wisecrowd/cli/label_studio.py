"""``wisecrowd label-studio``: pull votes from a Label Studio server and push labels to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, show_progress
from wisecrowd.cli._failures import explain_interruption
from wisecrowd.cli._options import Quiet, flag, parse_output_path

if TYPE_CHECKING:
    from wisecrowd.io.tools.label_studio_server import LabelStudioClient
    from wisecrowd.io.tools.label_studio_sync import PushSummary

app = typer.Typer(no_args_is_help=True)

Url = Annotated[
    str,
    typer.Option(
        metavar="URL", show_default=False, help="Address of the server, such as https://label-studio.example.com"
    ),
]
Number = Annotated[
    int,
    typer.Option("--project", metavar="N", min=1, show_default=False, help="Number of the project, as in its address."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", show_default=False, help="File with the token. Default: variable LABEL_STUDIO_API_KEY."
    ),
]
Timeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=1, help="Longest time of the whole exchange with the server."),
]
Insecure = Annotated[bool, flag("--insecure", help="Send the token over plain http to another machine.")]
AsJson = Annotated[bool, flag("--json", help="Print the figures as JSON instead.")]


@app.callback()
def label_studio() -> None:
    """Pull votes from a Label Studio server, and push labels to it.

    The token is a personal or legacy access token from the account page of
    Label Studio. It is never printed or stored:

      export LABEL_STUDIO_API_KEY=...
      wisecrowd label-studio pull --url URL --project 12 -o export.json
      wisecrowd aggregate export.json --question mood -o results
      wisecrowd label-studio push results --url URL --project 12
    """


@app.command()
def pull(
    *,
    url: Url,
    project: Number,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=parse_output_path, metavar="FILE", show_default=False, help="File to write."
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Name of the server, if wisecrowd serve takes votes from several servers.",
        ),
    ] = "",
    token_file: TokenFile = None,
    insecure: Insecure = False,
    timeout: Timeout = 3600,
    force: Annotated[bool, flag("--force", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write all tasks of a project, with annotations and predictions, to an export file.

    Unlabelled tasks are included. Workers are named by their numbers:

      wisecrowd label-studio pull --url URL --project 12 -o export.json
      wisecrowd label-studio pull --url URL --project 12 -o export.json --force

    List the questions in the file: wisecrowd questions export.json
    """
    from wisecrowd.cli.export import check_file
    from wisecrowd.io.tools.label_studio_sync import pull as pulled
    from wisecrowd.utils.text import count_noun

    check_file(output, [], force=force)
    connection = _connected(url, token_file, insecure=insecure, timeout=timeout)
    with connection as (server, version), show_progress(quiet=quiet):
        counts = pulled(server, project, output, name=name)
    questions = _questions(output)
    if as_json:
        show_json({"url": server.url, "version": version, "project": project, **counts, "questions": questions})
    elif not quiet:
        what = f"{count_noun(counts['tasks'], 'task')}, {count_noun(counts['annotations'], 'annotation')}, "
        rows = [
            ("Read", f"project {project} of {server.url} (Label Studio {version})"),
            ("Wrote", f"{output}: {what}{count_noun(counts['predictions'], 'prediction')}"),
            (
                "Questions",
                ", ".join(f"{name} ({count_noun(n, 'vote')})" for name, n in questions.items()) or "no votes yet",
            ),
        ]
        show_facts(rows)


@app.command()
def push(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            show_default=False,
            help="Folder that wisecrowd aggregate wrote, or a table with the columns task and label.",
        ),
    ],
    *,
    url: Url,
    project: Number,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Question that the results answer.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", help="Print the changes without making them.")] = False,
    token_file: TokenFile = None,
    insecure: Insecure = False,
    timeout: Timeout = 3600,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add labels to the tasks of a project, as predictions with their confidence.

    They replace those of an earlier push for the same question; predictions of
    other models are not changed. An interrupted push continues when it is run
    again:

      wisecrowd label-studio push results --url URL --project 12 --dry-run
      wisecrowd label-studio push results --url URL --project 12

    Objects become regions, each with its score. Label Studio shows predictions
    beside the annotations under the model name "wisecrowd" and the method. They are never counted as votes.
    """
    import dataclasses

    from wisecrowd.cli._results import check_question, find_structures, read_answers, read_structures
    from wisecrowd.io.tools.label_studio_sync import push as push_labels
    from wisecrowd.io.tools.label_studio_sync import push_objects, push_texts
    from wisecrowd.utils.text import count_noun

    _refuse_plan(results)
    pushed: Callable[..., PushSummary] = push_labels
    further: dict[str, Any] = {}
    if find_structures(results):
        structures = read_structures(results)
        table, run = structures.table, structures.run
        pushed = push_texts if structures.is_texts else push_objects
        further = {} if structures.is_texts else {"tasks": structures.tasks}
    else:
        table, run = read_answers(results)
    method = str(run.get("method", ""))
    chosen = check_question(results, run, question)
    connection = _connected(url, token_file, insecure=insecure, timeout=timeout)
    with (
        connection as (server, version),
        show_progress(quiet=quiet),
        explain_interruption(lambda: "predictions pushed so far stay; run the same command again to continue."),
    ):
        result = pushed(server, project, table, question=chosen, model=method, dry_run=dry_run, **further)
    if as_json:
        figures = dataclasses.asdict(result)
        show_json({"url": server.url, "version": version, "project": project, "dry_run": dry_run, **figures})
    elif not quiet:
        steps = {
            "added": result.added,
            "changed": result.changed,
            "removed": result.removed,
            "as they were": result.same,
        }
        what = ", ".join(f"{n:,} {step}" for step, n in steps.items() if n) or "nothing to do"
        model = f"wisecrowd {method}".strip()
        rows = [
            ("Read", str(results)),
            (
                "Would put" if dry_run else "Put",
                f"{count_noun(len(table), 'answer')} to {result.question!r} by {model!r}: {what}",
            ),
            ("Where", f"project {project} of {server.url} (Label Studio {version})"),
        ]
        if result.stale:
            tasks = count_noun(result.stale, "prediction")
            rows.append(("Older", f"{tasks} of earlier runs on tasks without a label now; not removed"))
        show_facts(rows)


@contextmanager
def _connected(
    url: str, token_file: Path | None, *, insecure: bool, timeout: float
) -> Iterator[tuple[LabelStudioClient, str]]:
    """Yield the server and its version; the token is sent only after the server answered as Label Studio."""
    from wisecrowd.io.tools.label_studio_server import LabelStudioClient, load_token

    with LabelStudioClient(url, load_token(token_file), insecure=insecure, timeout=timeout) as server:
        yield server, server.get_version()


def _questions(export: Path) -> dict[str, int]:
    """Return the number of votes of every answered question."""
    from wisecrowd.io.problems import EmptyInput
    from wisecrowd.io.tools.projects import read_project

    try:
        project = read_project(export, "label-studio", duplicates="keep")
    except EmptyInput:
        return {}
    votes = {name: one.crowd.n_votes for name, one in project.questions.items()}
    return votes | {name: len(one.structure.task) for name, one in project.structured.items()}


def _refuse_plan(results: Path) -> None:
    """Raise an error for a folder of ``wisecrowd plan``, whose order of tasks Label Studio cannot store."""
    from wisecrowd.cli._results import ANSWERS, QUEUE
    from wisecrowd.errors import UsageError

    def has_any(names: tuple[Any, ...]) -> bool:
        return any((results / name).is_file() for name in names)

    if has_any(QUEUE) and not has_any(ANSWERS):
        raise UsageError(
            f"{results} was written by wisecrowd plan, and Label Studio cannot store an order of tasks. Write the tasks for import "
            "with wisecrowd export --queue, or push labels and switch on uncertainty sampling (Settings, Annotation)"
        )
