"""``wisecrowd label-studio``: tasks from a running Label Studio, and answers back into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import show_facts, show_json, watched
from wisecrowd.cli._options import Quiet, flag, place

if TYPE_CHECKING:
    from wisecrowd.io.tools.label_studio_server import LabelStudio

app = typer.Typer(no_args_is_help=True)

Url = Annotated[
    str, typer.Option(metavar="URL", show_default=False, help="Where it is, such as https://label-studio.example.com")
]
Number = Annotated[
    int, typer.Option("--project", metavar="N", min=1, show_default=False, help="The number in the project's address.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", show_default=False, help="The token's file; else it is in the variable LABEL_STUDIO_API_KEY."
    ),
]
Insecure = Annotated[bool, flag("--insecure", help="Send the token over plain http to another machine.")]
AsJson = Annotated[bool, flag("--json", help="Print the figures as JSON instead.")]


@app.callback()
def label_studio() -> None:
    """Pull votes from a running Label Studio, and push the consensus into it.

    The token is a personal access token, or an access token of old, from the
    account page of Label Studio. It is never printed or stored:

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
        typer.Option("--output", "-o", parser=place, metavar="FILE", show_default=False, help="What to write."),
    ],
    token_file: TokenFile = None,
    insecure: Insecure = False,
    force: Annotated[bool, flag("--force", help="Overwrite a file that is there.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write all tasks of a project, with annotations and predictions, as an export.

    Tasks that nobody labelled are among them. Workers go by their numbers:

      wisecrowd label-studio pull --url URL --project 12 -o export.json
      wisecrowd label-studio pull --url URL --project 12 -o export.json --force

    What is in it: wisecrowd questions export.json
    """
    from wisecrowd.cli.export import check_file
    from wisecrowd.io.tools.label_studio_sync import pull as pulled
    from wisecrowd.utils.text import count_noun

    check_file(output, [], force=force)
    with _connected(url, token_file, insecure=insecure) as (server, version), watched(quiet=quiet):
        counts = pulled(server, project, output)
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
            help="What wisecrowd aggregate wrote with -o, or a table with the columns task and label.",
        ),
    ],
    *,
    url: Url,
    project: Number,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="The question that was answered.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", help="Say what would be done, and do nothing.")] = False,
    token_file: TokenFile = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Put answers into the tasks of a project, as predictions with their confidence.

    They replace what an earlier push said of the same question; predictions of
    other models are not touched. Given again, it goes on where it was stopped:

      wisecrowd label-studio push results --url URL --project 12 --dry-run
      wisecrowd label-studio push results --url URL --project 12

    Label Studio shows them beside the annotations, as the model "wisecrowd" and
    the method. They are never counted as votes.
    """
    import dataclasses

    from wisecrowd.cli._results import answered, answers_in
    from wisecrowd.io.tools.label_studio_sync import push as pushed
    from wisecrowd.utils.text import count_noun

    _refuse_plan(results)
    table, run = answers_in(results)
    method = str(run.get("method", ""))
    chosen = answered(results, run, question)
    with _connected(url, token_file, insecure=insecure) as (server, version), watched(quiet=quiet):
        try:
            done = pushed(server, project, table, question=chosen, model=method, dry_run=dry_run)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("what was put there stays; give the same command again to go on.") from None
    if as_json:
        figures = dataclasses.asdict(done)
        show_json({"url": server.url, "version": version, "project": project, "dry_run": dry_run, **figures})
    elif not quiet:
        steps = {"added": done.added, "changed": done.changed, "removed": done.removed, "as they were": done.same}
        what = ", ".join(f"{n:,} {step}" for step, n in steps.items() if n) or "nothing to do"
        model = f"wisecrowd {method}".strip()
        rows = [
            ("Read", str(results)),
            (
                "Would put" if dry_run else "Put",
                f"{count_noun(len(table), 'answer')} to {done.question!r} by {model!r}: {what}",
            ),
            ("Where", f"project {project} of {server.url} (Label Studio {version})"),
        ]
        if done.stale:
            tasks = count_noun(done.stale, "prediction")
            rows.append(("Older", f"{tasks} of wisecrowd on tasks that have no answer now; they stay"))
        show_facts(rows)


@contextmanager
def _connected(url: str, token_file: Path | None, *, insecure: bool) -> Iterator[tuple[LabelStudio, str]]:
    """The server and its version; the token is not sent before it is known that a Label Studio is there."""
    from wisecrowd.io.tools.label_studio_server import LabelStudio, token_from

    with LabelStudio(url, token_from(token_file), insecure=insecure) as server:
        yield server, server.version()


def _questions(export: Path) -> dict[str, int]:
    """The questions that somebody answered, and how many votes they have."""
    from wisecrowd.io.problems import EmptyInput
    from wisecrowd.io.tools.projects import read_project

    try:
        project = read_project(export, "label-studio", duplicates="keep")
    except EmptyInput:
        return {}
    return {name: one.crowd.n_votes for name, one in project.questions.items()}


def _refuse_plan(results: Path) -> None:
    """A plan says what to ask next; Label Studio has no place for that in a task."""
    from wisecrowd.cli._results import ANSWERS, QUEUE
    from wisecrowd.errors import UsageError

    def held(names: tuple[Any, ...]) -> bool:
        return any((results / name).is_file() for name in names)

    if held(QUEUE) and not held(ANSWERS):
        raise UsageError(
            f"{results} is a plan of what to ask next, and Label Studio's tasks have no place for an order; write it as "
            "tasks to import with wisecrowd export --queue, or push the consensus, and let Label Studio ask about the least "
            "certain first (Settings, Annotation, Uncertainty sampling)"
        )
