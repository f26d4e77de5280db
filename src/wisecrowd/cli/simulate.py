"""``wisecrowd simulate``: votes of simulated workers with known truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from wisecrowd.cli._console import show_facts
from wisecrowd.cli._options import Quiet, flag, parse_output_path

PANEL = "Workers: share of each type; the rest are noisy"


def _share(what: str) -> Any:
    return typer.Option(metavar="SHARE", show_default=False, min=0, max=1, rich_help_panel=PANEL, help=what)


def simulate(
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            parser=parse_output_path,
            metavar="FILE",
            show_default=False,
            help="File for the votes: .csv, .tsv or .parquet.",
        ),
    ],
    tasks: Annotated[int, typer.Option(metavar="N", min=1, help="Number of tasks.")] = 1000,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Number of workers.")] = 50,
    classes: Annotated[int, typer.Option(metavar="N", min=2, help="Number of classes.")] = 4,
    votes_per_task: Annotated[
        str, typer.Option(metavar="N", help="Votes on each task: 3, or 2-5 for any number between.")
    ] = "3",
    activity: Annotated[
        str,
        typer.Option(metavar="SHAPE", help="Distribution of votes over workers: uniform, zipf, zipf(1.5), beta(2, 3)."),
    ] = "uniform",
    difficulty: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            show_default=False,
            help="Difficulty of tasks from 0 to 1: a number or a distribution, beta(1.5, 3).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    experts: Annotated[float | None, _share("Nearly always right.")] = None,
    biased: Annotated[float | None, _share("Give one favourite answer too often.")] = None,
    spammers: Annotated[float | None, _share("Answer at random.")] = None,
    one_button: Annotated[float | None, _share("Always give the same answer.")] = None,
    adversaries: Annotated[float | None, _share("Give a wrong answer on purpose.")] = None,
    copiers: Annotated[float | None, _share("Repeat another worker's answers.")] = None,
    drifters: Annotated[float | None, _share("Become worse with time.")] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            metavar="KIND=SHARE,…",
            show_default=False,
            rich_help_panel=PANEL,
            help="All types with their shares: noisy(0.7)=0.8,spammer=0.2",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", help="Overwrite existing files.")] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate votes of workers with known accuracy on tasks with known truth.

    Writes the votes, the truth (votes-truth.csv) and the workers
    (votes-workers.csv):

      wisecrowd simulate -o votes.csv
      wisecrowd simulate -o votes.csv --tasks 2000 --votes-per-task 2-5
      wisecrowd simulate -o votes.csv --spammers .3 --activity "zipf(1.2)"

    Then score a method against the truth:

      wisecrowd aggregate votes.csv -m dawid-skene --score votes-truth.csv
    """  # fmt: skip
    from wisecrowd import io
    from wisecrowd.cli._outputs import check_writable, table_of, write_all
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.errors import UsageError
    from wisecrowd.simulate import simulate_crowd

    if output.suffix not in (".csv", ".tsv", ".parquet"):
        raise UsageError(f"unknown suffix of {output}; use .csv, .tsv or .parquet")
    truth, kinds = (output.with_name(f"{output.stem}-{what}{output.suffix}") for what in ("truth", "workers"))
    for path in (output, truth, kinds):
        check_writable(path)
        if path.exists() and not force:
            raise UsageError(f"{path} exists; choose another name with -o, or overwrite it with --force")
    shares = {
        "expert": experts, "biased": biased, "spammer": spammers, "one-button": one_button,
        "adversary": adversaries, "copier": copiers, "drifter": drifters,
    }  # fmt: skip
    rich_table = simulate_crowd(
        tasks,
        workers,
        classes,
        votes_per_task=_parse_votes_per_task(votes_per_task),
        workers=_mix({kind: share for kind, share in shares.items() if share is not None}, mix),
        activity=activity,
        difficulty=_number_or_text(difficulty),
        random_state=seed,
    )
    about = rich_table.kind.to_frame().assign(accuracy=rich_table.accuracy.round(6), copies=rich_table.copies)
    write_all(
        {
            output: lambda path: io.write(rich_table.crowd, path),
            truth: table_of(rich_table.truth.reset_index()),
            kinds: table_of(about.reset_index()),
        }
    )
    if not quiet:
        counts = ", ".join(f"{number} {kind}" for kind, number in rich_table.kind.value_counts().items())
        wrote = f"{output} (votes), {truth} (truth), {kinds} (workers)"
        show_facts([("Made", describe_crowd(rich_table.crowd)), ("Workers", counts), ("Wrote", wrote)])


def _parse_votes_per_task(text: str) -> int | tuple[int, int]:
    from wisecrowd.errors import UsageError

    low, dash, high = text.partition("-")
    try:
        return (int(low), int(high)) if dash else int(low)
    except ValueError:
        raise UsageError(f"--votes-per-task takes a number or a range, 3 or 2-5; got {text!r}") from None


def _number_or_text(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _mix(shares: dict[str, float], mix: str | None) -> dict[str, float] | None:
    """Return shares by type, or None for the default mix."""
    from wisecrowd.errors import UsageError

    if mix is not None:
        if shares:
            raise UsageError("--mix gives all types of workers; leave out the options for single types")
        return _parse_mix(mix)
    if not shares:
        return None
    rest = 1 - sum(shares.values())
    if rest < -1e-9:
        raise UsageError(f"the shares of workers sum to {1 - rest:g}, more than one; lower some of them")
    return shares | {"noisy": max(rest, 0.0)}


def _parse_mix(mix: str) -> dict[str, float]:
    from wisecrowd.errors import UsageError

    # A comma inside parentheses belongs to the arguments of a type: noisy(0.6, 0.9)=0.5
    parts = re.split(r",(?![^(]*\))", mix)
    try:
        return {kind.strip(): float(share) for kind, _, share in (part.rpartition("=") for part in parts)}
    except ValueError:
        raise UsageError(
            f"--mix takes types with shares, such as expert=0.2,noisy(0.7)=0.6,spammer=0.2; got {mix!r}"
        ) from None
